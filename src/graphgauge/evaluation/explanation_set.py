"""Explanations as the Evaluator takes them: by explainer, each under the name that results show."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from graphgauge.core import BadSetting, GraphgaugeError, Target, Xplanation, derive_seed
from graphgauge.evaluation.candidate_scores import score_status
from graphgauge.explainers import BaseExplainer, find_explainer, number_occurrences
from graphgauge.models import BaseModel

#: explainers as users give them: one, several, or several under names of their own
ExplainersLike: TypeAlias = BaseExplainer | Iterable[BaseExplainer] | Mapping[str, BaseExplainer]


@dataclass(frozen=True)
class ExplanationSet:
    """One explainer's explanations, at most one per target."""

    label: str
    occurrence: int
    explainer: BaseExplainer | None  #: None: made elsewhere
    xs: Mapping[Target, Xplanation]
    seed: int | None = None  #: of the call that made them; None: made elsewhere

    @property
    def chosen(self) -> dict[Target, int]:
        """The classes that were chosen to be explained; targets whose predicted class is explained
        are left out.
        """
        return {target: x.label for target, x in self.xs.items() if x.label is not None}

    @property
    def runner(self) -> "BaseExplainer | ChosenClassExplainer | None":
        """The explainer, to be run on these targets again; it explains the same classes."""
        return (
            ChosenClassExplainer(self.explainer, self.chosen)
            if self.explainer is not None and self.chosen
            else self.explainer
        )

    def status(self, target: Target, side: str, count: int) -> str:
        """Why one side of the explanation of a target cannot be judged, given its number of
        candidates; '' if it can.
        """
        return (
            score_status(getattr(self.xs[target], f"{side}_score"), count)
            if target in self.xs
            else "absent"
        )


@dataclass(frozen=True)
class ChosenClassExplainer:
    """An explainer that is asked for chosen classes: those of ``chosen``, the predicted ones of all
    other targets.
    """

    explainer: BaseExplainer
    chosen: Mapping[Target, int]

    @property
    def name(self) -> str:
        """That of the explainer."""
        return self.explainer.name

    @property
    def deterministic(self) -> bool:
        """As the explainer."""
        return self.explainer.deterministic

    def explain(
        self, model: BaseModel, targets: Sequence[Target], seed: int = 0
    ) -> Sequence[Xplanation]:
        """Explanations of these classes."""
        return _explain_again(
            self.explainer, model, targets, seed, [self.chosen.get(target) for target in targets]
        )


@dataclass(frozen=True)
class ExplanationRebuilder:
    """An explainer as `compare` runs it, to make single explanations again."""

    explainer: BaseExplainer
    seed: int
    #: (target, occurrence) -> class, where one was chosen
    chosen: Mapping[tuple[Target, int], int] = field(default_factory=dict)

    def explain(self, model: BaseModel, targets: Sequence[Target]) -> Sequence[Xplanation]:
        """Explanations that are the same as before."""
        return _explain_again(
            self.explainer,
            model,
            targets,
            self.seed,
            [self.chosen.get(one) for one in number_occurrences([*targets])],
        )

    def explain_occurrence(self, model: BaseModel, target: Target, occurrence: int) -> Xplanation:
        """One of them."""
        return self.explain(model, [target] * (occurrence + 1))[occurrence]


def _explain_again(
    explainer: BaseExplainer,
    model: BaseModel,
    targets: Sequence[Target],
    seed: int,
    chosen: list[int | None],
) -> Sequence[Xplanation]:
    """Explain the targets for their chosen classes.

    If no class is chosen, the explainer need not support such a choice.
    """
    if all(one is None for one in chosen):
        return explainer.explain(model, targets, seed=seed)
    return explainer.explain(model, targets, seed=seed, label=chosen)


def label_explainers(explainers: ExplainersLike) -> dict[str, BaseExplainer]:
    """Explainers under the names that results show."""
    if isinstance(explainers, (BaseExplainer, str)) or not isinstance(explainers, Iterable):
        explainers = [explainers]
    named = explainers if isinstance(explainers, Mapping) else None
    found = list(explainers if named is None else named.values())
    wrong = [item for item in found if not isinstance(item, BaseExplainer)]
    if wrong:
        raise BadSetting(
            f"compare needs explainers such as gg.Saliency(), but got {wrong[0]!r}. By name: "
            "gg.find_explainer('saliency')."
        )
    if named is not None:
        return {str(label): explainer for label, explainer in named.items()}
    labels = unique_labels([(explainer.name, changed_parameters(explainer)) for explainer in found])
    if len(set(labels)) < len(labels):
        again = next(label for label in labels if labels.count(label) > 1)
        raise BadSetting(
            f"{again} is listed twice: give different settings, or names, compare({{'first': ..., "
            "'second': ...}, ...)."
        )
    return dict(zip(labels, found, strict=True))


def explainer_seed(label: str, explainer: BaseExplainer, seed: int) -> int:
    """The seed that an explainer is run with: under a label of its own it draws numbers of its own.

    Under its name, or the name with its parameters that a list gives it, it is the run's seed.

    >>> from graphgauge.explainers import RandomExplainer
    >>> explainer_seed("random", RandomExplainer(), 7)
    7
    >>> explainer_seed("again", RandomExplainer(), 7) == 7
    False
    """
    if label == explainer.name or (
        label.startswith(f"{explainer.name}(")
        and label == explainer.name + changed_parameters(explainer)
    ):
        return seed
    return derive_seed(seed, "explainer", label)


def explainer_key(explainer: BaseExplainer) -> str:
    """The class of an explainer and its parameters, as text."""
    kind = type(explainer)
    return f"{kind.__module__}.{kind.__qualname__}/{sorted(explainer.params.items())}"


def unique_labels(explainers: list[tuple[str, str]]) -> list[str]:
    """The name of each explainer; with its parameters, the second text, where a name comes more
    than once.
    """
    names = [name for name, _ in explainers]
    return [name if names.count(name) == 1 else name + params for name, params in explainers]


def changed_parameters(explainer: BaseExplainer) -> str:
    """Parameters that differ from the defaults, as ``(epochs=50)``; '' if none does."""
    fields = type(explainer).__dataclass_fields__
    return _format_parameters(
        {name: value for name, value in explainer.params.items() if value != fields[name].default}
    )


def _format_parameters(params: Mapping[str, object]) -> str:
    """Parameters as ``(epochs=50, lr=0.1)``; '' if there are none."""
    return f"({', '.join(f'{name}={value}' for name, value in params.items())})" if params else ""


def rebuild_explainer(x: Xplanation) -> BaseExplainer | None:
    """The explainer that made an explanation; None if it cannot be made again."""
    try:
        return find_explainer(x.explainer, **x.params) if x.explainer else None
    except (GraphgaugeError, TypeError):
        return None


def group_by_explainer(xs: Sequence[Xplanation]) -> list[ExplanationSet]:
    """Explanations by what made them; of groups that have one label in the end, the second gets the
    next occurrences.
    """
    groups: dict[tuple[str, str], list[Xplanation]] = {}
    for x in xs:
        groups.setdefault((x.explainer, repr(sorted(x.params.items()))), []).append(x)
    explainers = [rebuild_explainer(part[0]) for part in groups.values()]
    labels = unique_labels(
        [
            (
                part[0].explainer,
                _format_parameters(part[0].params)
                if explainer is None
                else changed_parameters(explainer),
            )
            for part, explainer in zip(groups.values(), explainers, strict=True)
        ]
    )
    merged: dict[str, tuple[BaseExplainer | None, list[Xplanation]]] = {}
    for label, explainer, part in zip(labels, explainers, groups.values(), strict=True):
        merged.setdefault(label, (explainer, []))[1].extend(part)
    return [
        entry
        for label, (explainer, own) in merged.items()
        for entry in split_by_occurrence(label, explainer, own)
    ]


def split_by_occurrence(
    label: str, explainer: BaseExplainer | None, xs: Sequence[Xplanation], seed: int | None = None
) -> list[ExplanationSet]:
    """Entries with each target once: the second explanation of a target goes into the second entry,
    and so on.
    """
    parts: dict[int, dict[Target, Xplanation]] = {}
    for x, (target, number) in zip(xs, number_occurrences([x.target for x in xs]), strict=True):
        parts.setdefault(number, {})[target] = x
    return [ExplanationSet(label, number, explainer, own, seed) for number, own in parts.items()]
