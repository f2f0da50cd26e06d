"""The colours of every picture.

Readers can tell them apart with any kind of colour vision, and by their depth in a grey print. The
hues are those of Okabe and Ito. Hue and depth show a score s; depth compares |s| with the strongest
score, m:

    signed     blue for s > 0 (raises the output), vermilion for s < 0 (lowers it)
    unsigned   green
    depth      from _PALEST (next to 0) to 1 (the strongest):  _PALEST + (1 - _PALEST) |s| / m
"""

BLUE, VERMILION, GREEN, GREY = "#0072B2", "#D55E00", "#009E73", "#999999"
_ORANGE, _SKY, _YELLOW, _PURPLE, _BLACK = "#E69F00", "#56B4E9", "#F0E442", "#CC79A7", "#000000"
#: Tol's wine stands in for the yellow of Okabe and Ito, which is too light for lines
_WINE = "#882255"
#: of explainers that stand beside each other, in this order
SERIES = (BLUE, VERMILION, GREEN, _PURPLE, _ORANGE, _SKY, _BLACK, _WINE)
EXPLAINED, RANDOM, CHANGE = BLUE, GREY, VERMILION
RAISES, LOWERS, UNSIGNED = BLUE, VERMILION, GREEN
TARGET, NODE, GROUP, OUTLINE, INK = _YELLOW, "#E8E8E8", "#CFE6F5", "#555555", "#222222"
#: of grid lines, words and numbers in pictures that stand on a page
GRID, SOFT, ACCENT = "#DCE1E7", "#586473", "#0B4F80"
_PALEST = 0.35


def _mix_with_white(colour: str, depth: float) -> str:
    """Mix a colour with white; depth 0 is white, depth 1 the full colour.

    >>> _mix_with_white("#0072B2", 1.0), _mix_with_white("#0072B2", 0.0)
    ('#0072b2', '#ffffff')
    >>> _mix_with_white("#000000", 0.5)
    '#808080'
    """
    parts = (int(colour[k : k + 2], 16) for k in (1, 3, 5))
    return "#" + "".join(f"{round(255 - depth * (255 - part)):02x}" for part in parts)


def score_hue(score: float, signed: bool) -> str:
    """Return the hue that shows the direction of a score."""
    if not signed:
        return UNSIGNED
    return RAISES if score >= 0 else LOWERS


def score_colour(score: float, strongest: float, signed: bool) -> str:
    """Return the colour of a score; ``strongest`` is the largest absolute score in the picture.

    >>> score_colour(-2.0, 2.0, signed=True) == _mix_with_white(LOWERS, 1.0)
    True
    """
    share = abs(score) / strongest if strongest else 0.0
    return _mix_with_white(score_hue(score, signed), _PALEST + (1 - _PALEST) * share)
