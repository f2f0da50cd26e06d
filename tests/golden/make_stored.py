"""Files as graphgauge 0.1.0.dev0 wrote them before its names were revised, kept in ``stored/``.

    python tests/golden/make_stored.py FOLDER      # write such files as this version writes them

The case ``stored`` of the golden run reads the kept files: whoever has saved a run, a decision, a
monitoring store, an audit log or an explanation must be able to read it with later versions. The
kept files are never written again; a new format gets a folder of its own beside them.
"""

import contextlib
import sqlite3
import sys
import time
from pathlib import Path
from unittest import mock

import yaml
from golden_cases import EXPERIMENT, QUICK, model_of, run_command, some_explainers
from golden_networks import write_project

import graphgauge as gg

TOKEN = "a-token-for-tests-only"
#: keys of a project that is measured in a moment
FEW = {
    "settings": {"trials": [3, 6], "twin_trials": 3, "permutations": 2, "timed": 1, "cap": 5},
    "explainers": ["saliency", "random"],
    "targets": [1, 4, 9],
}
#: keys of an experiment that has one shard
ONE = {"tasks": ["ba-shapes-node"], "models": ["gcn"], "targets": {"number": 2}}


def write_audit_log(path: Path) -> None:
    """The log of a service that answered two questions."""
    from starlette.testclient import TestClient

    from graphgauge.serve import Settings, create_app

    model, targets = model_of("node_classification")
    settings = Settings(token=TOKEN, port=0, budget_ms=60_000)
    app = create_app(model, gg.InputXGradient(), path, settings=settings)
    token = {"Authorization": f"Bearer {TOKEN}"}
    with TestClient(app, base_url="http://127.0.0.1") as client:
        for target in targets[:2]:
            question = {"target": target, "asked_by": "Ada", "language": "de"}
            while client.post("/explain", json=question, headers=token).status_code != 200:
                time.sleep(0.1)  # until the service has started


def close_databases(folder: Path) -> None:
    """Bring every database into its one file, and remove locks."""
    for path in folder.rglob("*.sqlite"):
        with contextlib.closing(sqlite3.connect(path)) as database:
            database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    for path in [*folder.rglob("*-wal"), *folder.rglob("*-shm"), *folder.rglob("*.lock")]:
        path.unlink(missing_ok=True)


def write_all(folder: Path) -> None:
    """One example of everything that is stored."""
    folder.mkdir(parents=True)
    model, targets = model_of("link_regression")
    evaluator = gg.Evaluator(model, task="links", name="gcn", extras=True, **{**QUICK, "cap": 5})
    evaluator.compare(some_explainers(), targets[:2]).save(folder / "results")
    (x,) = gg.InputXGradient().explain(model, targets[:1], seed=1)
    evaluator.evaluate([x])
    x.save(folder / "explanation.safetensors")
    write_project(folder)
    few = folder / "few.yaml"
    keys = yaml.safe_load((folder / "project.yaml").read_text())
    few.write_text(yaml.safe_dump({**keys, **FEW}))
    run_command("evaluate", few, "--output", folder / "run", "-q")
    run_command("validate", few, "--output", folder / "validation", "--signed-by", "Ada")
    store = ["--store", folder / "monitor.sqlite"]
    own = ["--explainer", "saliency", "-q"]
    run_command("monitor", "baseline", few, *store, "--at", "2026-01-05", *own)
    run_command("monitor", "run", few, *store, "--at", "2026-01-12", "-q")
    (folder / "experiment.yaml").write_text(yaml.safe_dump({**EXPERIMENT, **ONE}))
    kept = ["--engine", "inline", "--folder", folder / "benchmark"]
    run_command("benchmark", folder / "experiment.yaml", *kept)
    write_audit_log(folder / "audit.sqlite")
    close_databases(folder)


if __name__ == "__main__":
    with (
        mock.patch("platform.node", return_value="host"),
        mock.patch("socket.gethostname", return_value="host"),
        mock.patch("platform.platform", return_value="Linux"),
    ):  # the files speak of no machine
        write_all(Path(sys.argv[1]))
