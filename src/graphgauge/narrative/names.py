"""What things are called: the words that turn column 3 of a matrix into "income".

Every name is optional; a thing without a name appears under its number. Names are ready phrases in
the language of the text ("die Schulden", "a high debt ratio"): no grammar is applied to them. They
are data, never code: whatever they hold appears as text on one line.
"""

import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

from graphgauge.core import BadSetting, lookup, warn_renamed

_MAX_NAME_LENGTH = 120  #: characters of a name that are shown
MAX_SENTENCE_LENGTH = 600  #: characters of a ready sentence, such as ``role``
_JOINERS = "\u200c\u200d"  #: invisible, but part of the spelling of some languages and of emoji

_NameList = Sequence[str] | Mapping[int, str] | None  #: becomes {id: name}
_NounForms = str | Sequence[str] | None  #: becomes (singular, plural); ("", "") if there is none
#: becomes {(singular, plural): ids}; a singular that was not given is ""
_NamedGroups = Mapping[Any, Iterable[int]]


@dataclass(frozen=True)
class Names:
    """What the parts of a graph are called. Every name is optional, and is checked and tidied.

    Args:
        features: A list, or a dictionary {id: name}; so are ``nodes``, ``graphs`` and ``classes``.
        nodes: Names of nodes.
        graphs: Names of graphs.
        classes: Names of classes, or of labels.
        unit: Unit of a regression value, such as "stars".
        node: What one node and several are called: ("account", "accounts").
        link: The same for links.
        graph: The same for graphs.
        decision: What the decision is about, as the subject of a letter: "your loan application".
        role: A whole sentence on what the model's result is used for.
        relation: What stands between the ends of an edge, "lent money to": one text, or one for
            each edge.
        groups: Nodes with something in common: {"accounts with prior defaults": [4, 7]}; also with
            a singular: {("account with prior defaults", "accounts with prior defaults"): [4, 7]}.
        feature_groups: Features that count as one; their scores add up: {"title": range(384)}.
        remarks: What else can be said about a feature, for templates that ask for it:
            {"Credit History": "was positive"}.
        not_used: What the model's owner states is not used, such as ["nationality"].

    >>> Names(features=["income", "age"], node=("account", "accounts")).features
    {0: 'income', 1: 'age'}
    """

    features: _NameList = None
    nodes: _NameList = None
    graphs: _NameList = None
    classes: _NameList = None
    unit: str = ""
    node: _NounForms = None
    link: _NounForms = None
    graph: _NounForms = None
    decision: str = ""
    role: str = ""
    relation: str | _NameList = ""
    groups: _NamedGroups = field(default_factory=dict)
    feature_groups: _NamedGroups = field(default_factory=dict)
    remarks: Mapping[str, str] = field(default_factory=dict)
    not_used: Sequence[str] = ()

    def __post_init__(self) -> None:
        for kind in ("features", "nodes", "graphs", "classes"):
            self.set_field(kind, _parse_names(kind, getattr(self, kind)))
        for kind in ("node", "link", "graph"):
            self.set_field(kind, _parse_noun(kind, getattr(self, kind)))
        for kind, longest in (
            ("unit", _MAX_NAME_LENGTH),
            ("decision", _MAX_NAME_LENGTH),
            ("role", MAX_SENTENCE_LENGTH),
        ):
            self.set_field(kind, _parse_text(kind, getattr(self, kind), longest))
        is_one = isinstance(self.relation, str)
        self.set_field(
            "relation",
            _parse_text("relation", self.relation)
            if is_one
            else _parse_names("relation", self.relation),
        )
        self.set_field("groups", _parse_groups("groups", self.groups))
        self.set_field("feature_groups", _parse_groups("feature_groups", self.feature_groups))
        self.set_field("remarks", _parse_remarks(self.remarks))
        self.set_field("not_used", tuple(_parse_names("not_used", self.not_used).values()))
        _check_disjoint(self.feature_groups)

    def set_field(self, kind: str, value: object) -> None:
        """Set a field of this frozen object while it is being built.

        Args:
            kind: Name of the field, such as "features".
            value: What the field holds from now on, already checked and tidied.
        """
        object.__setattr__(self, kind, value)

    @staticmethod
    def from_data(data: object) -> "Names":
        """Take ``feature_names``, ``class_names``, ``node_names`` and ``unit`` from a data set.

        >>> from types import SimpleNamespace
        >>> Names.from_data(SimpleNamespace(class_names=["no", "yes"], unit="stars")).classes
        {0: 'no', 1: 'yes'}
        """
        features, nodes, classes = (
            getattr(data, f"{kind}_names", None) for kind in ("feature", "node", "class")
        )
        return Names(
            features=features, nodes=nodes, classes=classes, unit=getattr(data, "unit", None) or ""
        )

    @staticmethod
    def of(data: Any) -> "Names":
        """Do the same as `from_data`, which is this method's new name."""
        warn_renamed("Names.of", "from_data")
        return Names.from_data(data)

    @staticmethod
    def from_value(names: "NamesLike") -> "Names":
        """Accept Names, a dictionary of its fields, or None."""
        if isinstance(names, Names):
            return names
        if names is not None and not isinstance(names, Mapping):
            raise BadSetting(
                "names must be gg.Names(...) or a dictionary of its fields, "
                f"but is {type(names).__name__}."
            )
        for name in names or {}:
            lookup({entry.name: None for entry in fields(Names)}, name, "kind of names")
        return Names(**(names or {}))

    def with_defaults(self, others: "Names") -> "Names":
        """Return these names; what has none here takes its name from ``others``."""
        gaps = {
            entry.name: getattr(others, entry.name)
            for entry in fields(self)
            if _is_missing(getattr(self, entry.name))
        }
        return replace(self, **gaps)

    def name_of(self, kind: str, number: int) -> str:
        """Return the name of one feature, node, graph or class; "" if it has none.

        Args:
            kind: The field that is searched: "features", "nodes", "graphs" or "classes".
            number: The id of the feature, node, graph or class, counted from 0.
        """
        listed: Mapping[int, str] = getattr(self, kind)
        return listed.get(number, "")

    def relation_of(self, edge: int) -> str:
        """Return what stands between the ends of an edge; "" if nothing was given."""
        return self.relation if isinstance(self.relation, str) else self.name_of("relation", edge)

    def check_ids_fit(self, sizes: Mapping[str, int]) -> None:
        """Raise BadSetting if a name belongs to an id that does not exist.

        ``sizes`` holds the number of features, nodes, classes and so on.
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
                    f"names.{kind} speaks of number {max(ids[kind])}, but there are {size} "
                    f"(0..{size - 1}), and {len(set(ids[kind]))} are named. "
                    "Give the names of the data that the model was wrapped with."
                )


def _is_missing(value: object) -> bool:
    """Whether a kind of names was not given."""
    return not value or value == ("", "")


def tidy_text(text: str, longest: int = _MAX_NAME_LENGTH) -> str:
    r"""Put a text on one line, without control characters, and cut it if it is too long.

    Right-to-left text cannot turn the text around it.

    >>> tidy_text(" net\n income\x00 ")
    'net income'
    """
    line = " ".join(part for part in "".join(map(_clean_letter, text)).split(" ") if part)
    short = line if len(line) <= longest else line[: longest - 1].rstrip() + "…"
    is_turned = any(unicodedata.bidirectional(letter) in ("R", "AL") for letter in short)
    return f"\u2068{short}\u2069" if is_turned else short


def _clean_letter(letter: str) -> str:
    """Turn line breaks and control characters into a space, and drop invisible letters."""
    kind = unicodedata.category(letter)
    if kind in ("Cc", "Zl", "Zp", "Zs"):
        return letter if letter in "\u00a0\u202f" else " "
    return "" if kind in ("Cf", "Cs") and letter not in _JOINERS else letter


def _parse_text(kind: str, text: object, longest: int = _MAX_NAME_LENGTH) -> str:
    """Check and tidy a text."""
    if not isinstance(text, str):
        raise BadSetting(f"names.{kind} must be a text, but is {type(text).__name__}.")
    return tidy_text(text, longest)


def _parse_names(kind: str, value: object) -> dict[int, str]:
    """Return names by id. A name without a visible letter counts as missing."""
    if value is None:
        return {}
    if isinstance(value, (str, bytes)) or not isinstance(value, (Mapping, Sequence)):
        raise BadSetting(
            f"names.{kind} must be a list of texts or a dictionary {{id: text}}, "
            f"but is {type(value).__name__}."
        )
    pairs = value.items() if isinstance(value, Mapping) else enumerate(value)
    named = {
        _parse_id(kind, number): _parse_text(f"{kind}[{number!r}]", name) for number, name in pairs
    }
    return {number: name for number, name in named.items() if name}


def _parse_id(kind: str, number: object) -> int:
    """Return a number that can be an id."""
    if isinstance(number, bool) or not hasattr(number, "__index__") or number.__index__() < 0:
        raise BadSetting(f"names.{kind} must speak of ids 0, 1, 2 ..., but names {number!r}.")
    return int(number.__index__())


def _parse_noun(kind: str, value: object) -> tuple[str, str]:
    """Return singular and plural; one text alone is a plural whose singular is unknown."""
    if value is None:
        return "", ""
    parts = ("", value) if isinstance(value, str) else value
    if not isinstance(parts, Sequence) or len(parts) != 2:
        raise BadSetting(
            f"names.{kind} must be a pair (singular, plural), such as ('account', 'accounts'), "
            f"but is {value!r}."
        )
    one, other = (_parse_text(kind, part) for part in parts)
    return one, other


def _parse_groups(kind: str, value: object) -> dict[tuple[str, str], frozenset[int]]:
    """Return members by (singular, plural)."""
    if not isinstance(value, Mapping):
        raise BadSetting(
            f"names.{kind} must be a dictionary {{'name of the group': [ids]}}, "
            f"but is {type(value).__name__}."
        )
    groups = {}
    for name, members in value.items():
        noun = _parse_noun(f"{kind}[{name!r}]", name)
        if not noun[1]:
            raise BadSetting(f"names.{kind} has a group without a name: {name!r}.")
        if isinstance(members, (str, bytes)) or not isinstance(members, Iterable):
            raise BadSetting(
                f"names.{kind}[{name!r}] must list ids, but is {type(members).__name__}."
            )
        groups[noun] = frozenset(_parse_id(kind, number) for number in members)
    return groups


def _parse_remarks(value: object) -> dict[str, str]:
    """Return remarks by the name of the feature."""
    if not isinstance(value, Mapping):
        raise BadSetting(
            "names.remarks must be a dictionary {'feature': 'remark'}, "
            f"but is {type(value).__name__}."
        )
    return {
        _parse_text("remarks", name): _parse_text(f"remarks[{name!r}]", remark)
        for name, remark in value.items()
    }


def _check_disjoint(feature_groups: Mapping[Any, Iterable[int]]) -> None:
    """Raise if a feature is in two groups: its score would count twice."""
    listed = [number for members in feature_groups.values() for number in members]
    twice = (
        sorted({number for number in listed if listed.count(number) > 1})
        if len(set(listed)) < len(listed)
        else []
    )
    if twice:
        raise BadSetting(
            f"names.feature_groups must not share features, but feature {twice[0]} is in two "
            "of them."
        )


#: what functions accept as names: `Names`, or a dictionary of its fields
NamesLike = Names | Mapping[str, Any] | None
