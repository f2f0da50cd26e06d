"""Parse targets that are given by name or by number.

'17' and 17 are numbers; 'CUST-34' is a name from the project or the data.
"""

from collections.abc import Mapping, Sequence

from graphgauge.core import IDS_PER_LEVEL, BadTarget
from graphgauge.narrative import Names, tidy_text
from graphgauge.subgraphs import TargetLike

#: what the name of a target stands for, by level
_NAMED_KIND = {"node": "node", "link": "node", "graph": "graph"}


def parse_named_target(
    given: TargetLike, level: str, names: Names, has_label: bool = False
) -> TargetLike:
    """Parse a target; the two ends of a link come in a list or are separated by a comma.

    Args:
        given: What somebody wrote: a number, a name, or a list of them.
        level: "node", "link" or "graph".
        names: Names of nodes and graphs.
        has_label: Whether the network has several labels. The number or name of one then comes
            last: "Ada, 2".

    Returns:
        The target by numbers, for `BaseModel.parse_targets`.

    Raises:
        BadTarget: A name is unknown or not unique, or a part of the target is missing.

    >>> names = Names(nodes={3: "Ada", 5: "Bob"})
    >>> parse_named_target("17", "node", names), parse_named_target("Bob", "node", names)
    (17, 5)
    >>> parse_named_target("Ada, 5", "link", names)
    [3, 5]
    >>> parse_named_target("Ada, 2", "node", names, has_label=True)
    [3, 2]
    >>> parse_named_target([3, 5, "late"], "link", names, has_label=True)
    [3, 5, 'late']
    """
    if has_label:
        parts = given.split(",") if isinstance(given, str) else given
        if not isinstance(parts, (list, tuple)) or len(parts) != IDS_PER_LEVEL[level] + 1:
            raise BadTarget(
                f"target {given!r} has no label: "
                f"say the {level} and the label it is about, such as 3,1."
            )
        own = parse_named_target(list(parts[:-1]) if level == "link" else parts[0], level, names)
        ids = own if isinstance(own, Sequence) and not isinstance(own, str) else [own]
        return [*ids, _parse_label(parts[-1])]
    if level != "link":
        if isinstance(given, Sequence) and not isinstance(given, str):
            return given
        return _parse_id(given, _NAMED_KIND[level], names)
    ends = given.split(",") if isinstance(given, str) else given
    if not isinstance(ends, (list, tuple)) or len(ends) != 2:
        raise BadTarget(f"target {given!r} is not a link: say both of its ends, such as 3,5.")
    return [_parse_id(end, "node", names) for end in ends]


def _parse_label(given: int | str) -> int | str:
    """Return the number of a label; a name is left for the model to parse."""
    text = tidy_text(given) if isinstance(given, str) else ""
    return int(text) if text.isdecimal() else text or given


def _parse_id(given: int | str, kind: str, names: Names) -> int | str:
    """Return the number behind a text; a number is returned as it is."""
    if not isinstance(given, str):
        return given
    text = tidy_text(given)
    if text.removeprefix("-").isdecimal():
        return int(text)
    known: Mapping[int, str] = getattr(names, f"{kind}s")
    found = [number for number, name in known.items() if name == text]
    if len(found) == 1:
        return found[0]
    if found:
        raise BadTarget(
            f"{len(found)} {kind}s are called {text!r}, such as {found[0]} and {found[1]}: "
            "say which, by its number."
        )
    example = (
        f" such as {next(iter(known.values()))!r}" if known else f", but no {kind} has one here"
    )
    raise BadTarget(
        f"no {kind} is called {given!r}: a target is a number, such as 17, "
        f"or a {kind}'s name{example}."
    )
