"""Checks of a diagnosis on targets: those that were not measured, or not for all explainers."""

from collections.abc import Iterator
from functools import partial

from graphgauge.core import JsonObject
from graphgauge.guidelines.aggregation import SIDES
from graphgauge.guidelines.findings import (
    DiagnosedRun,
    DiagnosticCheck,
    Finding,
    format_share,
    load_rules,
    make_finding,
)
from graphgauge.guidelines.thresholds import metric_title

_TARGET = ["task", "model", "target"]  #: columns that name one target


def _find_status(rule: JsonObject, run: DiagnosedRun) -> Iterator[Finding]:
    """Count the targets with the status of a rule, once for all explainers."""
    rows = run.table[run.table["metric"].isin([f"{side}_ec" for side in SIDES])]
    for metric, part in rows.groupby("metric", sort=False):
        affected = part[part["status"] == rule["status"]].drop_duplicates(_TARGET)
        n = len(part.drop_duplicates(_TARGET))
        if len(affected):
            share = format_share(len(affected), n)
            text = f"{metric_title(str(metric))}: {rule['what']} for {share} targets"
            numbers = {"hit": float(len(affected)), "n": float(n)}
            yield make_finding(rule["name"], text, numbers)


def find_unequal_targets(run: DiagnosedRun) -> Iterator[Finding]:
    """Find explainers that have values on other targets than the rest."""
    for side in SIDES:
        all_targets = {name: set(run.values(f"{side}_ec", name).index) for name in run.explainers}
        targets = {name: own for name, own in all_targets.items() if own}
        shared = set.intersection(*targets.values()) if targets else set()
        uneven = {name: len(own) for name, own in targets.items() if own != shared}
        if uneven:
            counts = ", ".join(f"{name} {count}" for name, count in uneven.items())
            text = (
                f"Explainers are compared on different targets ({side} side): "
                f"{len(shared)} are shared by all, but {counts}"
            )
            numbers = {"shared": float(len(shared))}
            numbers |= {name: float(count) for name, count in uneven.items()}
            yield make_finding("unequal_targets", text, numbers)


#: one check for each rule that names a status
TARGET_CHECKS: tuple[DiagnosticCheck, ...] = tuple(
    partial(_find_status, rule) for rule in load_rules()["finding"] if "status" in rule
)
