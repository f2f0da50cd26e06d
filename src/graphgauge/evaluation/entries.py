"""Explanations as the Evaluator takes them: by explainer, each under the name that results show."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from graphgauge.core.errors import BadSetting, GraphgaugeError
from graphgauge.core.seeds import derive_seed
from graphgauge.core.xplanation import Target, Xplanation
from graphgauge.evaluation.alignment import status_of
from graphgauge.explainers import BaseExplainer, find_explainer
from graphgauge.explainers.base import occurrences
from graphgauge.models import BaseModel


@dataclass(frozen=True)
class Entry:
    """One explainer's explanations, at most one per target."""

    label: str
    occurrence: int
    explainer: BaseExplainer | None  #: None: made elsewhere
    xs: Mapping[Target, Xplanation]
    seed: int | None = None  #: of the call that made them; None: made elsewhere

    def status(self, target: Target, side: str, count: int) -> str:
        """Why one side of the explanation of a target cannot be judged, given its number of candidates; '' if it can."""
        return status_of(getattr(self.xs[target], f"{side}_score"), count) if target in self.xs else "absent"


@dataclass(frozen=True)
class Maker:
    """An explainer as `compare` runs it, to make single explanations again."""

    explainer: BaseExplainer
    seed: int

    def explain(self, model: BaseModel, targets: Sequence[Target]) -> list[Xplanation]:
        """Explanations that are the same as before."""
        return self.explainer.explain(model, targets, seed=self.seed)

    def again(self, model: BaseModel, target: Target, occurrence: int) -> Xplanation:
        """One of them."""
        return self.explain(model, [target] * (occurrence + 1))[occurrence]


def labelled(explainers: Any) -> dict[str, BaseExplainer]:
    """Explainers under the names that results show."""
    if isinstance(explainers, (BaseExplainer, str)) or not isinstance(explainers, Iterable):
        explainers = [explainers]
    named = explainers if isinstance(explainers, Mapping) else None
    found = list(explainers.values() if named is not None else explainers)
    wrong = [item for item in found if not isinstance(item, BaseExplainer)]
    if wrong:
        raise BadSetting(
            f"compare needs explainers such as gg.Saliency(), but got {wrong[0]!r}. By name: gg.find_explainer('saliency')."
        )
    if named is not None:
        return {str(label): explainer for label, explainer in named.items()}
    labels = labels_of([(explainer.name, changed_parameters(explainer)) for explainer in found])
    if len(set(labels)) < len(labels):
        again = next(label for label in labels if labels.count(label) > 1)
        raise BadSetting(
            f"{again} is listed twice: give different settings, or names, compare({{'first': ..., 'second': ...}}, ...)."
        )
    return dict(zip(labels, found, strict=True))


def seed_under(label: str, explainer: BaseExplainer, seed: int) -> int:
    """The seed that an explainer is run with: under a label of its own it draws numbers of its own.

    Under its name, or the name with its parameters that a list gives it, it is the run's seed.

    >>> from graphgauge.explainers import RandomExplainer
    >>> seed_under("random", RandomExplainer(), 7), seed_under("again", RandomExplainer(), 7) == 7
    (7, False)
    """
    if label == explainer.name or (
        label.startswith(f"{explainer.name}(") and label == explainer.name + changed_parameters(explainer)
    ):
        return seed
    return derive_seed(seed, "explainer", label)


def labels_of(explainers: list[tuple[str, str]]) -> list[str]:
    """The name of each explainer; with its parameters, the second text, where a name comes more than once."""
    names = [name for name, _ in explainers]
    return [name if names.count(name) == 1 else name + params for name, params in explainers]


def changed_parameters(explainer: BaseExplainer) -> str:
    """Parameters that differ from the defaults, as ``(epochs=50)``; '' if none does."""
    fields = type(explainer).__dataclass_fields__
    return listed({name: value for name, value in explainer.params.items() if value != fields[name].default})


def listed(params: Mapping[str, Any]) -> str:
    """Parameters as ``(epochs=50, lr=0.1)``; '' if there are none."""
    return f"({', '.join(f'{name}={value}' for name, value in params.items())})" if params else ""


def rebuilt(x: Xplanation) -> BaseExplainer | None:
    """The explainer that made an explanation; None if it cannot be made again."""
    try:
        return find_explainer(x.explainer, **x.params) if x.explainer else None
    except (GraphgaugeError, TypeError):
        return None


def grouped_by_explainer(xs: Sequence[Xplanation]) -> list[Entry]:
    """Explanations by what made them; of groups that have one label in the end, the second gets the next occurrences."""
    groups: dict[tuple[str, str], list[Xplanation]] = {}
    for x in xs:
        groups.setdefault((x.explainer, repr(sorted(x.params.items()))), []).append(x)
    explainers = [rebuilt(part[0]) for part in groups.values()]
    labels = labels_of(
        [
            (part[0].explainer, listed(part[0].params) if explainer is None else changed_parameters(explainer))
            for part, explainer in zip(groups.values(), explainers, strict=True)
        ]
    )
    merged: dict[str, tuple[BaseExplainer | None, list[Xplanation]]] = {}
    for label, explainer, part in zip(labels, explainers, groups.values(), strict=True):
        merged.setdefault(label, (explainer, []))[1].extend(part)
    return [entry for label, (explainer, own) in merged.items() for entry in split_by_occurrence(label, explainer, own)]


def split_by_occurrence(
    label: str, explainer: BaseExplainer | None, xs: Sequence[Xplanation], seed: int | None = None
) -> list[Entry]:
    """Entries with each target once: the second explanation of a target goes into the second entry, and so on."""
    parts: dict[int, dict[Target, Xplanation]] = {}
    for x, (target, number) in zip(xs, occurrences([x.target for x in xs]), strict=True):
        parts.setdefault(number, {})[target] = x
    return [Entry(label, number, explainer, own, seed) for number, own in parts.items()]
