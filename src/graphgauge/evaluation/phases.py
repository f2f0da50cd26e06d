"""The phases of one call of the Evaluator: what the bar says, and the seconds that each takes.

The seconds only tell people what a call costs. They are in memory, and in no row and no file.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from graphgauge.core import Phase, PhaseBar, phase_bar, timed_phase
from graphgauge.evaluation.explanation_set import ExplanationSet
from graphgauge.evaluation.kept_phases import KeptPhases
from graphgauge.evaluation.metric_value import MetricValue
from graphgauge.evaluation.settings import Settings
from graphgauge.evaluation.timing import REPEATS

if TYPE_CHECKING:
    import pandas as pd

#: the phases in the order of the table of costs, and what people call them
_TITLES = {
    "explaining": "explaining",
    "feature_curves": "feature curves",
    "edge_curves": "edge curves",
    "stability": "stability",
    "timing": "time",
}
SHARED = "shared"  #: what all explainers have in common, such as random curves
# what a call takes of which nothing is known yet: two layers, 60 nodes, one core of 2024
_SECONDS_PER_CALL = {True: 0.005, False: 0.1}  #: by whether the explainer is deterministic
_SECONDS_PER_TARGET = {"explaining": 0.001, "feature_curves": 0.013, "edge_curves": 0.007}
#: a large batch takes no less than this share of what its explanations took in a small one
_GAIN_OF_BATCHES = 0.25


@dataclass
class ExplainerLoad:
    """What one explainer has to do in a call.

    Args:
        deterministic: Whether it says so; then two explanations are compared.
        num_targets: How many targets it explains.
        is_explained: Whether the explanations are there already.
        seconds: How long one of them took; None if this is not known.
    """

    deterministic: bool
    num_targets: int
    is_explained: bool = False
    seconds: float | None = None

    def repeats(self, settings: Settings) -> int:
        """How many explanations of each target stability makes, at least."""
        if settings.stability == "none":
            return 0
        if self.deterministic:
            return 2
        return settings.calls if settings.stability == "binomial" else 2 * settings.trials[0]


@dataclass
class EvaluationPhases:
    """What the phases of one call are, and the seconds that they have taken.

    Args:
        settings: They say what is measured.
        loads: What each explainer has to do, by its label.
        bar: What people see.
        phases: The phases by name and explainer.
        kept: What was finished by an earlier call that was stopped.
        seconds: The seconds by name and explainer.
    """

    settings: Settings
    loads: Mapping[str, ExplainerLoad]
    bar: PhaseBar
    phases: Mapping[tuple[str, str], Phase]
    kept: KeptPhases = field(default_factory=KeptPhases)
    seconds: dict[tuple[str, str], float] = field(default_factory=dict)

    @contextmanager
    def run(self, name: str, explainer: str = SHARED, steps: float = 0.0) -> Iterator[None]:
        """Do a phase, or some steps of it.

        Args:
            name: The phase, as `timed_phase` knows it.
            explainer: Whose phase it is.
            steps: How many of its steps are done inside.
        """
        start = time.perf_counter()
        try:
            with timed_phase(name), self.bar.run(self.phases[name, explainer], steps):
                yield
        finally:
            own = (name, explainer)
            self.seconds[own] = self.seconds.get(own, 0.0) + time.perf_counter() - start

    def skip(self, name: str, explainer: str = SHARED, steps: float = 0.0) -> None:
        """Count steps of a phase that an earlier call has done.

        Args:
            name: The phase.
            explainer: Whose phase it is.
            steps: How many of its steps are done.
        """
        phase = self.phases[name, explainer]
        phase.done += steps
        self.seconds.setdefault((name, explainer), 0.0)

    def measure(
        self,
        name: str,
        cells: Sequence[dict[str, MetricValue]],
        work: Callable[[], None],
        key: str,
        explainer: str = SHARED,
        steps: float = 0.0,
    ) -> bool:
        """Add values to cells: those that an earlier call kept, or else by measuring and keeping.

        Args:
            name: The phase.
            cells: What is filled: the values of each explanation by metric.
            work: Measures, and fills the cells.
            key: What the values depend on.
            explainer: Whose phase it is.
            steps: How many of its steps are done.

        Returns:
            Whether the values were measured now.
        """
        known = self.kept.read_values(name, key)
        if known is not None:
            for own, found in zip(cells, known, strict=True):
                own.update(found)
            self.skip(name, explainer, steps)
            return False
        before = [set(own) for own in cells]
        with self.run(name, explainer, steps):
            work()
        new = [
            {metric: cell for metric, cell in own.items() if metric not in names}
            for own, names in zip(cells, before, strict=True)
        ]
        self.kept.write_values(name, key, new)
        return True

    def estimate_from(self, explainer: str, first: float, batch: float) -> None:
        """Estimate the later phases of an explainer from its first calls.

        Args:
            explainer: Its label.
            first: Seconds of the call that explained one target.
            batch: Seconds of the call that explained all of them.
        """
        load = self.loads[explainer]
        alone = min(first, batch)
        rest = max(load.num_targets - 1, 1)
        each = max((batch - alone) / rest, _GAIN_OF_BATCHES * batch / max(load.num_targets, 1))
        self.estimate(explainer, alone, each)

    def estimate(self, explainer: str, alone: float, each: float) -> None:
        """Set what an explainer's stability and time may take.

        Args:
            explainer: Its label.
            alone: Seconds of a call that explains one target.
            each: Seconds that each further target adds to a call.
        """
        for name in ("stability", "timing"):
            phase = self.phases[name, explainer]
            per_step = each if name == "stability" else alone
            phase.seconds = alone + per_step * phase.steps


@contextmanager
def evaluation_phases(
    settings: Settings, loads: Mapping[str, ExplainerLoad], kept: KeptPhases | None = None
) -> Iterator[EvaluationPhases]:
    """The phases of a call, with a bar where somebody looks.

    Args:
        settings: They say what is measured.
        loads: What each explainer has to do, by its label.
        kept: What was finished by an earlier call that was stopped.
    """
    phases: dict[tuple[str, str], Phase] = {}
    for label, load in loads.items():
        alone, each = _SECONDS_PER_CALL[load.deterministic], _SECONDS_PER_TARGET["explaining"]
        steps = 0 if load.is_explained else load.num_targets + 1
        phases["explaining", label] = _make_phase("explaining", label, steps, alone + each * steps)
    num_targets = max((load.num_targets for load in loads.values()), default=0)
    for side in ("feature", "edge"):
        name = f"{side}_curves"
        steps = num_targets if side in settings.curve_sides else 0
        phases[name, SHARED] = _make_phase(name, SHARED, steps, _SECONDS_PER_TARGET[name] * steps)
    for label, load in loads.items():
        repeated = load.repeats(settings) * load.num_targets
        timed = min(settings.timed, load.num_targets) * REPEATS
        phases["stability", label] = _make_phase("stability", label, repeated, 0.0)
        phases["timing", label] = _make_phase("timing", label, timed, 0.0)
    with phase_bar(list(phases.values())) as bar:
        found = EvaluationPhases(settings, loads, bar, phases, kept or KeptPhases())
        for label, load in loads.items():
            alone, each = _SECONDS_PER_CALL[load.deterministic], _SECONDS_PER_TARGET["explaining"]
            known = load.seconds
            found.estimate(
                label, alone if known is None else known, each if known is None else known
            )
        yield found


def explainer_loads(entries: Sequence[ExplanationSet]) -> dict[str, ExplainerLoad]:
    """What is left to do where the explanations are there already.

    Args:
        entries: The explanations.
    """
    loads: dict[str, ExplainerLoad] = {}
    for entry in entries:
        known = [x.seconds for x in entry.xs.values() if x.seconds is not None]
        load = loads.setdefault(
            entry.label,
            ExplainerLoad(
                entry.explainer is None or entry.explainer.deterministic,
                0,
                is_explained=True,
                seconds=sum(known) / len(known) if known else None,
            ),
        )
        load.num_targets += len(entry.xs)
    return loads


def _make_phase(name: str, explainer: str, steps: float, seconds: float) -> Phase:
    """A phase with its title, such as "stability: graphmask"."""
    owner = "" if explainer == SHARED else f": {explainer}"
    kind = f"{name}{owner}" if name == "explaining" else name.partition("_")[2] or name
    counts_calls = name in ("explaining", "stability")
    return Phase(f"{_TITLES[name]}{owner}", steps, seconds, kind, counts_calls)


def cost_table(seconds: Mapping[tuple[str, str], float]) -> "pd.DataFrame":
    """Seconds by explainer and phase, with the sum; what all explainers share comes last.

    Args:
        seconds: By name of the phase and label of the explainer.
    """
    import pandas as pd

    owners = dict.fromkeys(owner for _, owner in seconds if owner != SHARED)
    shared = [SHARED] if any(owner == SHARED for _, owner in seconds) else []
    rows = {
        owner: {title: seconds.get((name, owner), 0.0) for name, title in _TITLES.items()}
        for owner in [*owners, *shared]
    }
    table = pd.DataFrame.from_dict(rows, orient="index", columns=list(_TITLES.values()))
    table["total"] = table.sum(axis=1)
    return table.rename_axis("explainer")
