"""What a call of `Evaluator.compare` has finished, in a folder: a stopped call continues from it.

Each finished phase is one file, which is complete or not there: the explanations of an explainer,
the curve metrics of one side for a group of targets, the stability and the time of an explainer.
The name of a file is a digest of everything that its numbers depend on: the network and its data,
the targets and classes, the explainers with their parameters, the settings, the seed and the
version. Where one of them differs, the file is not found, and the phase is measured again. A phase
that is read has the same bits as one that is measured, and the phases after it see no difference.

What an explainer's code does is not part of the digest, its name and parameters are.
"""

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import graphgauge
from graphgauge.core import (
    BadExplanation,
    BadFile,
    Xplanation,
    blake2b_hex,
    from_json_value,
    load_explanations,
    save_explanations,
    to_json_value,
)
from graphgauge.evaluation.metric_value import MetricValue
from graphgauge.explainers import BaseExplainer, OtherTaskExplainer

_SUFFIXES = (".phase.safetensors", ".phase.json", ".part")


@dataclass(frozen=True)
class KeptPhases:
    """The finished phases in a folder.

    Args:
        folder: Where they are; None: nothing is kept.
        scope: What all of them depend on.
    """

    folder: Path | None = None
    scope: str = ""

    @staticmethod
    def in_folder(folder: str | os.PathLike[str] | None, *scope: object) -> "KeptPhases":
        """The phases in a folder, which is made if it is not there; None: nothing is kept.

        Args:
            folder: The folder.
            scope: What all phases depend on.

        Raises:
            BadFile: The folder cannot be made.
        """
        if folder is None:
            return KeptPhases()
        place = Path(folder)
        try:
            place.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise BadFile(f"{place} cannot be written to: {error}.") from error
        return KeptPhases(place, _digest(graphgauge.__version__, *scope))

    def read_explanations(self, name: str) -> list[Xplanation] | None:
        """The explanations that were kept under a name; None if there are none.

        Args:
            name: What they depend on.
        """
        path = self._path("explaining", name, _SUFFIXES[0])
        return load_explanations(path) if path is not None and path.exists() else None

    def write_explanations(
        self, name: str, explainer: BaseExplainer, xs: Sequence[Xplanation]
    ) -> None:
        """Keep the explanations of an explainer, unless they hold what no file can hold.

        Args:
            name: What they depend on.
            explainer: What made them.
            xs: The explanations.
        """
        path = self._path("explaining", name, _SUFFIXES[0])
        if path is None or isinstance(explainer, OtherTaskExplainer):
            return
        try:
            save_explanations(xs, path)
        except BadExplanation:  # such as parameters that are functions: explained again
            path.unlink(missing_ok=True)

    def read_values(self, phase: str, name: str) -> list[dict[str, MetricValue]] | None:
        """The values that were kept of a phase; None if there are none.

        Args:
            phase: Which phase.
            name: What they depend on.

        Raises:
            BadFile: The file cannot be read.
        """
        path = self._path(phase, name, _SUFFIXES[1])
        if path is None or not path.exists():
            return None
        try:
            found = json.loads(path.read_text(encoding="utf-8"))
            return [
                {metric: MetricValue.from_record(_record(cell)) for metric, cell in own.items()}
                for own in found
            ]
        except (OSError, ValueError, TypeError, AttributeError) as error:
            raise BadFile(f"{path} cannot be read: {error}. Remove it.") from error

    def write_values(
        self, phase: str, name: str, values: Sequence[Mapping[str, MetricValue]]
    ) -> None:
        """Keep the values of a phase, one mapping for each explanation.

        Args:
            phase: Which phase.
            name: What they depend on.
            values: The values by metric.

        Raises:
            BadFile: The file cannot be written.
        """
        path = self._path(phase, name, _SUFFIXES[1])
        if path is None:
            return
        records = [
            {metric: to_json_value(cell.record()) for metric, cell in own.items()} for own in values
        ]
        part = path.with_name(f"{path.name}.part")
        try:
            part.write_text(json.dumps(records, allow_nan=False), encoding="utf-8")
            part.replace(path)
        except OSError as error:
            raise BadFile(f"{path} could not be written: {error}.") from error

    def _path(self, phase: str, name: str, suffix: str) -> Path | None:
        """The file of a phase."""
        if self.folder is None:
            return None
        return self.folder / f"{phase}-{_digest(self.scope, name)}{suffix}"


def count_kept_phases(folder: str | os.PathLike[str]) -> int:
    """How many finished phases a folder holds.

    Args:
        folder: The folder that `Evaluator.compare` kept them in.
    """
    return sum(len(list(Path(folder).glob(f"*{suffix}"))) for suffix in _SUFFIXES[:2])


def remove_kept_phases(folder: str | os.PathLike[str]) -> None:
    """Remove the finished phases in a folder, and the folder if nothing else is in it.

    Args:
        folder: The folder that `Evaluator.compare` kept them in.
    """
    place = Path(folder)
    if not place.is_dir():
        return
    for path in place.iterdir():
        if path.name.endswith(_SUFFIXES):
            path.unlink()
    if not any(place.iterdir()):
        place.rmdir()


def _digest(*parts: object) -> str:
    """A name of what numbers depend on."""
    return blake2b_hex("\0".join(map(str, parts)), size=12)


def _record(cell: object) -> dict[str, object]:
    """The record of a value as `MetricValue.record` gave it."""
    found = from_json_value(cell)
    if not isinstance(found, dict):
        raise ValueError("it does not hold values of metrics")
    return found
