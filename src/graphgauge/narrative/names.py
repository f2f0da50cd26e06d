"""What things are called: the words that turn column 3 of a matrix into "income".

Every name is optional; what has none is told by its number. Names are ready phrases in the language
of the text ("die Schulden", "a high debt ratio"): no grammar is applied to them. They are data,
never code: whatever they hold is shown as text on one line.
"""

import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

from graphgauge.core.errors import BadSetting
from graphgauge.core.registry import lookup

LONGEST = 120  #: characters of a name that are shown
LONGEST_SENTENCE = 600  #: characters of a ready sentence, such as ``role``
JOINERS = "\u200c\u200d"  #: invisible, but part of the spelling of some languages and of emoji

Listing = Sequence[str] | Mapping[int, str] | None  #: becomes {id: name}
Noun = str | Sequence[str] | None  #: becomes (singular, plural); ("", "") if there is none
Groups = Mapping[
    Any, Iterable[int]
]  #: becomes {(singular, plural): ids}; a singular that was not given is ""


@dataclass(frozen=True)
class Names:
    """Names of a graph's parts, all optional, checked and tidied when they are given.

    ``features, nodes, graphs, classes``  a list, or a dictionary {id: name}
    ``unit``            of a regression value, such as "stars"
    ``node, link, graph``  what one and many of them are called: ("account", "accounts")
    ``decision``        what the decision is about, as the subject of a letter: "your loan application"
    ``role``            a whole sentence on what the model's result is used for
    ``relation``        what stands between the ends of an edge: one text, or one for each edge: "lent money to"
    ``groups``          nodes with something in common: {"accounts with prior defaults": [4, 7]}; with a singular, too:
                        {("account with prior defaults", "accounts with prior defaults"): [4, 7]}
    ``feature_groups``  features that are told as one; their scores add up: {"title": range(384)}
    ``remarks``         what else can be said of a feature, for templates that ask for it: {"Credit History": "was positive"}
    ``not_used``        what the owner of the model states is not used, such as ["nationality"]

    >>> Names(features=["income", "age"], node=("account", "accounts")).features
    {0: 'income', 1: 'age'}
    """

    features: Listing = None
    nodes: Listing = None
    graphs: Listing = None
    classes: Listing = None
    unit: str = ""
    node: Noun = None
    link: Noun = None
    graph: Noun = None
    decision: str = ""
    role: str = ""
    relation: str | Listing = ""
    groups: Groups = field(default_factory=dict)
    feature_groups: Groups = field(default_factory=dict)
    remarks: Mapping[str, str] = field(default_factory=dict)
    not_used: Sequence[str] = ()

    def __post_init__(self) -> None:
        for kind in ("features", "nodes", "graphs", "classes"):
            self.put(kind, read_listing(kind, getattr(self, kind)))
        for kind in ("node", "link", "graph"):
            self.put(kind, read_noun(kind, getattr(self, kind)))
        for kind, longest in (("unit", LONGEST), ("decision", LONGEST), ("role", LONGEST_SENTENCE)):
            self.put(kind, read_text(kind, getattr(self, kind), longest))
        is_one = isinstance(self.relation, str)
        self.put(
            "relation",
            read_text("relation", self.relation)
            if is_one
            else read_listing("relation", self.relation),
        )
        self.put("groups", read_groups("groups", self.groups))
        self.put("feature_groups", read_groups("feature_groups", self.feature_groups))
        self.put("remarks", read_remarks(self.remarks))
        self.put("not_used", tuple(read_listing("not_used", self.not_used).values()))
        check_apart(self.feature_groups)

    def put(self, kind: str, value: Any) -> None:
        """Set a field of a frozen class, while it is made."""
        object.__setattr__(self, kind, value)

    @staticmethod
    def of(data: Any) -> "Names":
        """The names that a data set carries: ``feature_names``, ``class_names``, ``node_names`` and
        ``unit``.

        >>> from types import SimpleNamespace
        >>> Names.of(SimpleNamespace(class_names=["no", "yes"], unit="stars")).classes
        {0: 'no', 1: 'yes'}
        """
        features, nodes, classes = (
            getattr(data, f"{kind}_names", None) for kind in ("feature", "node", "class")
        )
        return Names(
            features=features, nodes=nodes, classes=classes, unit=getattr(data, "unit", None) or ""
        )

    @staticmethod
    def read(names: Any) -> "Names":
        """``names`` as given: Names, a dictionary of its fields, or None."""
        if isinstance(names, Names):
            return names
        if names is not None and not isinstance(names, Mapping):
            raise BadSetting(
                f"names must be gg.Names(...) or a dictionary of its fields, but is {type(names).__name__}."
            )
        for name in names or {}:
            lookup({entry.name: None for entry in fields(Names)}, name, "kind of names")
        return Names(**(names or {}))

    def filled(self, others: "Names") -> "Names":
        """These names, and those of ``others`` for what has none here."""
        gaps = {
            entry.name: getattr(others, entry.name)
            for entry in fields(self)
            if is_missing(getattr(self, entry.name))
        }
        return replace(self, **gaps)

    def of_one(self, kind: str, number: int) -> str:
        """The name of one feature, node, graph or class; "" if it has none."""
        listed: Mapping[int, str] = getattr(self, kind)
        return listed.get(number, "")

    def related(self, edge: int) -> str:
        """What stands between the ends of an edge; "" if nothing was given."""
        return self.relation if isinstance(self.relation, str) else self.of_one("relation", edge)

    def check_fits(self, sizes: Mapping[str, int]) -> None:
        """Refuse ids that the graph does not have; ``sizes`` holds the number of features, nodes,
        classes ...
        """
        ids = {
            **{
                kind: list(getattr(self, kind))
                for kind in ("features", "nodes", "graphs", "classes")
            },
            "groups": [number for group in self.groups.values() for number in group],
            "feature_groups": [
                number for group in self.feature_groups.values() for number in group
            ],
        }
        for kind, size in sizes.items():
            if ids[kind] and max(ids[kind]) >= size:
                raise BadSetting(
                    f"names.{kind} speaks of number {max(ids[kind])}, but there are {size} (0..{size - 1}), and "
                    f"{len(set(ids[kind]))} are named. "
                    "Give the names of the data that the model was wrapped with."
                )


def is_missing(value: Any) -> bool:
    """Whether a kind of names was not given."""
    return not value or value == ("", "")


def tidy(text: str, longest: int = LONGEST) -> str:
    r"""``text`` on one line, without control characters, not too long; right-to-left text cannot
    turn its surroundings.

    >>> tidy(" net\n income\x00 ")
    'net income'
    """
    kept = " ".join(part for part in "".join(map(shown, text)).split(" ") if part)
    short = kept if len(kept) <= longest else kept[: longest - 1].rstrip() + "…"
    is_turned = any(unicodedata.bidirectional(letter) in ("R", "AL") for letter in short)
    return f"\u2068{short}\u2069" if is_turned else short


def shown(letter: str) -> str:
    """A letter as it is shown: line breaks and control characters as a space, invisible ones not at
    all.
    """
    kind = unicodedata.category(letter)
    if kind in ("Cc", "Zl", "Zp", "Zs"):
        return letter if letter in "\u00a0\u202f" else " "
    return "" if kind in ("Cf", "Cs") and letter not in JOINERS else letter


def read_text(kind: str, text: Any, longest: int = LONGEST) -> str:
    """A tidy text."""
    if not isinstance(text, str):
        raise BadSetting(f"names.{kind} must be a text, but is {type(text).__name__}.")
    return tidy(text, longest)


def read_listing(kind: str, given: Any) -> dict[int, str]:
    """Names by id. A name with nothing to see in it counts as not given."""
    if given is None:
        return {}
    if isinstance(given, (str, bytes)) or not isinstance(given, (Mapping, Sequence)):
        raise BadSetting(
            f"names.{kind} must be a list of texts or a dictionary {{id: text}}, but is {type(given).__name__}."
        )
    pairs = given.items() if isinstance(given, Mapping) else enumerate(given)
    named = {
        read_id(kind, number): read_text(f"{kind}[{number!r}]", name) for number, name in pairs
    }
    return {number: name for number, name in named.items() if name}


def read_id(kind: str, number: Any) -> int:
    """A number that can be an id."""
    if isinstance(number, bool) or not hasattr(number, "__index__") or number.__index__() < 0:
        raise BadSetting(f"names.{kind} must speak of ids 0, 1, 2 ..., but names {number!r}.")
    return int(number.__index__())


def read_noun(kind: str, given: Any) -> tuple[str, str]:
    """Singular and plural; one text alone is a plural whose singular is not known."""
    if given is None:
        return "", ""
    parts = ("", given) if isinstance(given, str) else given
    if not isinstance(parts, Sequence) or len(parts) != 2:
        raise BadSetting(
            f"names.{kind} must be a pair (singular, plural), such as ('account', 'accounts'), but is {given!r}."
        )
    one, other = (read_text(kind, part) for part in parts)
    return one, other


def read_groups(kind: str, given: Any) -> dict[tuple[str, str], frozenset[int]]:
    """Members by (singular, plural)."""
    if not isinstance(given, Mapping):
        raise BadSetting(
            f"names.{kind} must be a dictionary {{'name of the group': [ids]}}, but is {type(given).__name__}."
        )
    found = {}
    for name, members in given.items():
        noun = read_noun(f"{kind}[{name!r}]", name)
        if not noun[1]:
            raise BadSetting(f"names.{kind} has a group without a name: {name!r}.")
        if isinstance(members, (str, bytes)) or not isinstance(members, Iterable):
            raise BadSetting(
                f"names.{kind}[{name!r}] must list ids, but is {type(members).__name__}."
            )
        found[noun] = frozenset(read_id(kind, number) for number in members)
    return found


def read_remarks(given: Any) -> dict[str, str]:
    """Remarks by the name of the feature."""
    if not isinstance(given, Mapping):
        raise BadSetting(
            f"names.remarks must be a dictionary {{'feature': 'remark'}}, but is {type(given).__name__}."
        )
    return {
        read_text("remarks", name): read_text(f"remarks[{name!r}]", remark)
        for name, remark in given.items()
    }


def check_apart(feature_groups: Any) -> None:
    """Refuse a feature in two groups: its score would be told twice."""
    listed = [number for members in feature_groups.values() for number in members]
    twice = (
        sorted({number for number in listed if listed.count(number) > 1})
        if len(set(listed)) < len(listed)
        else []
    )
    if twice:
        raise BadSetting(
            f"names.feature_groups must not share features, but feature {twice[0]} is in two of them."
        )
