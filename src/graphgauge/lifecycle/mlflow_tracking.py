"""Log runs to MLflow: parameters, a metric for each explainer and number, tables, and files.

    parameters   the settings of the Evaluator, and what the caller adds
    metrics      ``explainer/metric`` (mean over targets), and the same with ``.sd`` and ``.n``;
                 numbers without a value are left out
    artifacts    ``summary.json`` and ``rows.json`` (tables that MLflow's page shows),
                 ``settings.json``, ``report.html``, and files

No global state is kept: a client is opened for one address, so that runs of your own training are
not touched. MLflow is an extra: ``pip install "graphgauge[mlflow]"``. Its usage statistics are
switched off (`DO_NOT_TRACK`, unless set).
"""

import json
import os
import re
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, TypeVar

from graphgauge.core import BadFile, BadSetting, MissingExtra
from graphgauge.evaluation import Results
from graphgauge.narrative import NamesLike

if TYPE_CHECKING:
    import pandas as pd
    from mlflow.tracking import MlflowClient

    from graphgauge.lifecycle.validation import Validation

_MAX_LENGTH = {"key": 250, "value": 6000}  #: characters that MLflow takes
_MAX_BATCH = {"metrics": 1000, "params": 100}  #: entries that MLflow takes in one call
_INVALID_KEY_CHARACTERS = re.compile(r"[^\w\-./ ]", re.ASCII)  #: what a key cannot hold
_SQLITE_PREFIX = "sqlite:///"
_T = TypeVar("_T")


def _import_mlflow() -> ModuleType:
    """Import MLflow, or raise `MissingExtra` with the command that installs it."""
    os.environ.setdefault("DO_NOT_TRACK", "true")
    try:
        import mlflow
        import mlflow.tracking
    except ImportError as error:
        raise MissingExtra('tracking needs MLflow: pip install "graphgauge[mlflow]".') from error
    return mlflow


def mlflow_client(uri: str) -> "MlflowClient":
    """Open a client of one tracking store, or raise `BadSetting` if that fails."""
    mlflow = _import_mlflow()
    try:
        return mlflow.tracking.MlflowClient(tracking_uri=uri)
    except (mlflow.exceptions.MlflowException, ImportError, OSError, ValueError) as error:
        raise BadSetting(
            f"there is no MLflow store at {uri!r}: {error}. "
            "Such as sqlite:///runs.db or http://127.0.0.1:5000."
        ) from error


@dataclass(frozen=True)
class Tracker:
    """Log results to MLflow: ``Tracker("sqlite:///runs.db")(results)`` returns the id of the run.

    Its method ``validation`` is a callback for `Validation.save`.

    Args:
        uri: Address of the tracking store.
        experiment: Name of the experiment; it is made if it does not exist.
        name: Name of the runs.
        tags: Tags of the runs.
    """

    uri: str
    experiment: str = "graphgauge"
    name: str = ""
    tags: Mapping[str, str] = field(default_factory=dict)

    def __call__(
        self,
        results: Results,
        parameters: Mapping[str, object] | None = None,
        files: Sequence[Path] = (),
        names: NamesLike = None,
    ) -> str:
        """Log one run; it is marked as failed if it could not be logged completely.

        Args:
            results: The results to log.
            parameters: Further parameters of the run; nested ones are flattened, "a.b".
            files: Further files to store with the run.
            names: Names of features, nodes and classes, for the report.

        Returns:
            The id of the run.
        """
        client, mlflow = mlflow_client(self.uri), _import_mlflow()
        try:
            run = self._start_run(client)
            try:
                _log_everything(
                    client,
                    run,
                    results,
                    {**_settings_parameters(results), **_flatten_record(parameters or {})},
                    files,
                    names,
                )
            except BaseException:
                client.set_terminated(run, "FAILED")
                raise
            client.set_terminated(run)
        except mlflow.exceptions.MlflowException as error:
            raise BadFile(
                f"the run could not be written to MLflow at {self.uri!r}: {error}."
            ) from error
        return run

    def validation(self, found: "Validation", folder: Path) -> str:
        """Log a validation with its decision and page.

        Use it as a callback: ``found.save(folder, [Tracker(uri).validation])``.

        Args:
            found: The validation.
            folder: The folder that the validation was saved to.

        Returns:
            The id of the run.
        """
        own = found.decision
        parameters = {
            "explainer": own.label,
            "network": own.network,
            "data": own.data,
            "decision": own.digest,
            "targets": own.targets,
        }
        return self(
            found.results,
            parameters,
            [folder / "decision.json", folder / "validation.md"],
            found.names,
        )

    def _start_run(self, client: "MlflowClient") -> str:
        """Start a run in the experiment, which is made if it does not exist."""
        found = client.get_experiment_by_name(self.experiment)
        place = None if found is not None else _artifact_location(self.uri)
        owner = (
            found.experiment_id
            if found is not None
            else client.create_experiment(self.experiment, artifact_location=place)
        )
        return str(
            client.create_run(owner, run_name=self.name or None, tags=dict(self.tags)).info.run_id
        )


def _artifact_location(uri: str) -> str | None:
    """Return where the files of a new experiment go.

    They go beside a SQLite file; for a server, the server decides (None).

    >>> _artifact_location("http://127.0.0.1:5000") is None
    True
    """
    if not uri.startswith(_SQLITE_PREFIX):
        return None
    return (Path(uri.removeprefix(_SQLITE_PREFIX)).absolute().parent / "mlartifacts").as_uri()


# --- what is logged -------------------------------------------------------------------------------


def _log_everything(
    client: "MlflowClient",
    run: str,
    results: Results,
    parameters: Mapping[str, str],
    files: Sequence[Path],
    names: NamesLike,
) -> None:
    """Log parameters, metrics, tables, report and files of one run."""
    from mlflow.entities import Metric, Param

    now = int(time.time() * 1000)
    metrics = [Metric(name, value, now, 0) for name, value in _mlflow_metrics(results).items()]
    for part in _split_batches(metrics, _MAX_BATCH["metrics"]):
        client.log_batch(run, metrics=part)
    params = [Param(name, value) for name, value in parameters.items()]
    for some in _split_batches(params, _MAX_BATCH["params"]):
        client.log_batch(run, params=some)
    client.log_dict(run, results.settings.record(), "settings.json")
    _log_tables(
        client,
        run,
        {"summary.json": results.summary().reset_index(), "rows.json": results.to_pandas()},
    )
    _log_report(client, run, results, names)
    for file in files:
        client.log_artifact(run, str(file))


def _log_tables(client: "MlflowClient", run: str, tables: Mapping[str, "pd.DataFrame"]) -> None:
    """Log tables in the form that MLflow's page shows; its own `log_table` warns with pandas 3."""
    for name, frame in tables.items():
        client.log_text(run, frame.to_json(orient="split", index=False), name)
    client.set_tag(
        run,
        "mlflow.loggedArtifacts",
        json.dumps([{"path": name, "type": "table"} for name in tables]),
    )


def _log_report(client: "MlflowClient", run: str, results: Results, names: NamesLike) -> None:
    """Log the report as one HTML file."""
    with tempfile.TemporaryDirectory() as folder:
        page = str(Path(folder) / "report.html")
        results.report(names=names).save(page)
        client.log_artifact(run, page)


def _mlflow_metrics(results: Results) -> dict[str, float]:
    """Return mean, SD and n of every explainer and metric, without missing values."""
    found: dict[str, float] = {}
    for (explainer, metric), line in results.summary().iterrows():
        name = _mlflow_key(f"{explainer}/{metric}")
        found |= {
            name: float(line["mean"]),
            f"{name}.sd": float(line["sd"]),
            f"{name}.n": float(line["n"]),
        }
    return {name: value for name, value in found.items() if value == value}


def _settings_parameters(results: Results) -> dict[str, str]:
    """Return the settings as parameters."""
    return _flatten_record(
        {"settings": results.settings.record(), "settings_digest": results.settings.digest}
    )


def _flatten_record(tree: Mapping[str, object], above: str = "") -> dict[str, str]:
    """Flatten nested data to one level of texts.

    >>> _flatten_record({"a": {"b": 1}, "c": [2, 3]})
    {'a.b': '1', 'c': '[2, 3]'}
    """
    found: dict[str, str] = {}
    for name, value in tree.items():
        path = f"{above}{name}"
        found |= (
            _flatten_record(value, f"{path}.")
            if isinstance(value, Mapping)
            else {_mlflow_key(path): str(value)[: _MAX_LENGTH["value"]]}
        )
    return found


def _mlflow_key(text: str) -> str:
    """Turn a name into a key that MLflow accepts.

    >>> _mlflow_key("lrp(variant=captum)/time"), _mlflow_key("../x")
    ('lrp_variant_captum_/time', '_./x')
    """
    kept = _INVALID_KEY_CHARACTERS.sub("_", text)[: _MAX_LENGTH["key"] - 3]  # room for '.sd'
    return "/".join(
        "_" + part[1:] if part.startswith(".") else part or "_" for part in kept.split("/")
    )


def _split_batches(entries: Sequence[_T], size: int) -> Iterator[Sequence[_T]]:
    """Split entries into pieces of at most ``size``."""
    return (entries[start : start + size] for start in range(0, len(entries), size))


def existing_files(folder: Path, names: Iterable[str]) -> list[Path]:
    """Return those files of a folder that exist.

    Args:
        folder: The folder.
        names: Names of files in it, in the order of the result.
    """
    return [folder / name for name in names if (folder / name).is_file()]
