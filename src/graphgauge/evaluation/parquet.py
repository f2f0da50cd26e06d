"""Results in files that other programs read."""

import json
import os
from typing import TYPE_CHECKING

from graphgauge.core import BadFile, MissingExtra

if TYPE_CHECKING:
    import pandas as pd

    from graphgauge.evaluation.results import Results


def to_parquet(results: "Results", path: str | os.PathLike[str]) -> None:
    """Write the table of `to_pandas` as Parquet; targets and lists as JSON texts. Needs polars or
    pyarrow.
    """
    table = _parquet_table(results)
    try:
        if not _write_parquet(table, os.fspath(path)):
            raise MissingExtra(
                "Parquet needs polars or pyarrow, and neither is installed: pip install "
                '"graphgauge[polars]".'
            )
    except OSError as error:
        raise BadFile(f"{os.fspath(path)} could not be written: {error}.") from error


def _parquet_table(results: "Results") -> "pd.DataFrame":
    """With one type in each column, and texts that can be encoded: half a character becomes a
    question mark.
    """
    from graphgauge.evaluation.result_row import LIST_COLUMNS, TEXT_COLUMNS

    table = results.to_pandas()
    for name in ("target", *LIST_COLUMNS):
        table[name] = [None if value is None else json.dumps(value) for value in table[name]]
    for name in TEXT_COLUMNS:
        table[name] = [
            None if value is None else value.encode("utf-8", "replace").decode()
            for value in table[name]
        ]
    return table


def _write_parquet(table: "pd.DataFrame", path: str) -> bool:
    """Whether there was a package that could write it."""
    try:
        import polars
    except ImportError:
        return _write_with_pyarrow(table, path)
    polars.DataFrame(
        {name: table[name].tolist() for name in table.columns}, strict=False
    ).write_parquet(path)
    return True


def _write_with_pyarrow(table: "pd.DataFrame", path: str) -> bool:
    """By pandas, if pyarrow is there."""
    try:
        import pyarrow  # noqa: F401
    except ImportError:
        return False
    table.to_parquet(path, index=False)
    return True
