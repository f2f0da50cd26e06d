"""The files that `Results.save` writes and `Results.load` reads: numbers to the last bit."""

import json
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graphgauge.core import BadFile, JsonObject, lookup
from graphgauge.evaluation.metric_value import FAULTS, STATUSES, MetricValue
from graphgauge.evaluation.result_row import LIST_COLUMNS, ExplanationKey, Row, explanation_key
from graphgauge.evaluation.settings import Settings

if TYPE_CHECKING:
    from graphgauge.evaluation.results import Results

#: the store of a benchmark run
RUN_FILE = "run.sqlite"
#: the rows that `Results.save` writes, and the same compressed, as published runs have them
ROWS_FILES = ("rows.csv", "rows.csv.xz")
SETTINGS_FILE = "settings.json"
#: versions, device, and how the network was treated
ORIGIN_FILE = "made.json"
#: the worst and the best explanations, as they are shown
EXAMPLES_FILE = "examples.json"
#: a name can hold half a character, such as one from a file name or from JavaScript
_ANY_TEXT = "surrogatepass"


def write_results(results: "Results", folder: Path) -> None:
    """Write rows, settings and origin into a folder, which is made if it is not there."""
    folder.mkdir(parents=True, exist_ok=True)
    write_rows(results, folder / ROWS_FILES[0])
    stated = {} if results.accuracy is None else {"accuracy": results.accuracy.record()}
    origin = json.dumps({**results.made, **stated}, indent=2)
    (folder / ORIGIN_FILE).write_text(origin + "\n")


def read_results_folder(folder: Path) -> "Results":
    """Read what `write_results` and `write_examples` wrote, examples when they are needed."""
    import pandas as pd

    from graphgauge.evaluation.results import Results  # it imports this file

    record = json.loads((folder / SETTINGS_FILE).read_text())
    options: Any = {
        "keep_default_na": False,
        "dtype": object,
        "lineterminator": "\n",
        "encoding_errors": _ANY_TEXT,
    }
    paths = [folder / name for name in ROWS_FILES]
    table = pd.read_csv(next((path for path in paths if path.exists()), paths[0]), **options)
    settings = Settings.from_record(record)
    made = _read_origin(folder / ORIGIN_FILE) if (folder / ORIGIN_FILE).exists() else {}
    kept = cache(partial(_read_examples, folder / EXAMPLES_FILE))
    rows = tuple(map(_parse_row, table.to_dict("records")))
    return Results(rows, settings, kept=kept, made=made)


def write_rows(results: "Results", path: Path) -> None:
    """The table, numbers to the last bit, compressed if the name ends in ``.xz``; the settings
    beside it.
    """
    table = results.to_pandas()
    for name in ("target", *LIST_COLUMNS):
        table[name] = [None if value is None else json.dumps(value) for value in table[name]]
    part, form = path.with_name(f"{path.name}.part"), "xz" if path.suffix == ".xz" else None
    table.to_csv(
        part, index=False, lineterminator="\n", encoding="utf-8", errors=_ANY_TEXT, compression=form
    )
    path.with_name(SETTINGS_FILE).write_text(json.dumps(results.settings.record(), indent=2) + "\n")
    part.replace(path)


def write_examples(folder: Path, records: list[JsonObject]) -> None:
    """Write what is kept of single explanations, one a line.

    A file that is there already is removed where there is nothing to keep.
    """
    path = folder / EXAMPLES_FILE
    if not records:
        path.unlink(missing_ok=True)
        return
    lines = ",\n".join(
        json.dumps(record, allow_nan=False, separators=(",", ":")) for record in records
    )
    path.with_name(f"{path.name}.part").write_text(f"[\n{lines}\n]\n", encoding="utf-8")
    path.with_name(f"{path.name}.part").replace(path)


def _read_examples(path: Path) -> dict[ExplanationKey, JsonObject]:
    """What `write_examples` wrote; nothing where there is no file."""
    if not path.exists():
        return {}
    try:
        return {
            explanation_key(record): record["exhibit"]
            for record in json.loads(path.read_text(encoding="utf-8"))
        }
    except (OSError, LookupError, ValueError, TypeError) as error:
        raise BadFile(
            f"{path} holds no explanations that graphgauge saved: {error}. Without it, a report "
            "has none."
        ) from error


def _read_origin(path: Path) -> JsonObject:
    """Versions, device and how the network was treated."""
    made = json.loads(path.read_text())
    if not isinstance(made, dict) or not isinstance(made.get("network", {}), dict):
        raise ValueError(f"{path.name} does not say how they were made")
    return made


def _parse_row(text: dict[str, str]) -> Row:
    """A row of ``rows.csv``."""
    target = json.loads(text["target"])
    lists = {
        name: tuple(json.loads(text[name])) if text.get(name) else None for name in LIST_COLUMNS
    }
    draws = text.get("draws", "").strip("()[],")  # written as a tuple, such as (2.0, 4.0)
    lists["draws"] = tuple(json.loads(f"[{draws}]")) if draws else None
    numbers = {name: float(text[name]) if text[name] else None for name in ("value", "error")}
    flipped = {"True": True, "False": False}.get(text["flipped"])
    lookup({**STATUSES, **FAULTS}, text["status"], "status")
    cell = MetricValue(
        status=text["status"],
        flipped=flipped,
        message=text.get("message") or None,
        **numbers,  # type: ignore[arg-type]
        **lists,  # type: ignore[arg-type]
    )
    kept = {
        name: text[name] for name in ("task", "model", "explainer", "metric", "settings", "version")
    }
    return Row(
        target=tuple(target) if isinstance(target, list) else target,
        occurrence=int(text["occurrence"]),
        cell=cell,
        seconds=float(text["seconds"]) if text["seconds"] else None,
        seed=int(text["seed"]),
        **kept,
    )
