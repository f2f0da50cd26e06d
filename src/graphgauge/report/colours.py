"""The colours of every picture: told apart with any kind of colour vision, and in a grey print by
their depth.

The hues are those of Okabe and Ito. A score s is shown by hue and depth, with |s| measured against
the strongest, m:

    signed     blue for s > 0 (raises the output), vermilion for s < 0 (lowers it)
    unsigned   green
    depth      from PALEST (next to 0) to 1 (the strongest):  PALEST + (1 - PALEST) |s| / m
"""

BLUE, VERMILION, GREEN, GREY = "#0072B2", "#D55E00", "#009E73", "#999999"
ORANGE, SKY, YELLOW, PURPLE, BLACK = "#E69F00", "#56B4E9", "#F0E442", "#CC79A7", "#000000"
#: for lines that stand beside each other, in this order
SERIES = (BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY, BLACK)
EXPLAINED, RANDOM, CHANGE = BLUE, GREY, VERMILION
RAISES, LOWERS, UNSIGNED = BLUE, VERMILION, GREEN
TARGET, NODE, GROUP, OUTLINE, INK = YELLOW, "#E8E8E8", "#CFE6F5", "#555555", "#222222"
PALEST = 0.35


def mixed(colour: str, depth: float) -> str:
    """``colour`` on white, at a depth between 0 (white) and 1.

    >>> mixed("#0072B2", 1.0), mixed("#0072B2", 0.0), mixed("#000000", 0.5)
    ('#0072b2', '#ffffff', '#808080')
    """
    parts = (int(colour[k : k + 2], 16) for k in (1, 3, 5))
    return "#" + "".join(f"{round(255 - depth * (255 - part)):02x}" for part in parts)


def hue_of(score: float, signed: bool) -> str:
    """The hue that tells the direction of a score."""
    if not signed:
        return UNSIGNED
    return RAISES if score >= 0 else LOWERS


def score_colour(score: float, strongest: float, signed: bool) -> str:
    """The colour of a score, ``strongest`` being the largest absolute one in the picture.

    >>> score_colour(-2.0, 2.0, signed=True) == mixed(LOWERS, 1.0)
    True
    """
    share = abs(score) / strongest if strongest else 0.0
    return mixed(hue_of(score, signed), PALEST + (1 - PALEST) * share)
