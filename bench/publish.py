"""Make a run fit to be kept in a repository.

    python bench/publish.py runs/paper benchmarks/paper [--consult] [--unfinished]

writes

    experiment.yaml     what was measured, every setting written out
    summary.csv         task, explainer, metric, mean, sd, n
    targets.csv.xz      a line for each explanation and metric, numbers to 9 digits (single precision in full)
    shards.csv          task, model, block, explanations, seconds, and what they went to
    machine.json        processor, versions and number of workers of each call, shards and seconds in all

and with ``--consult`` puts the summary also where `graphgauge consult` looks for it. Names of hosts, users and kernels stay behind.
"""

import argparse
import json
import shutil
from pathlib import Path
from typing import Any

from graphgauge.benchmark import Run
from graphgauge.benchmark.runs import COPY
from graphgauge.benchmark.summary import summary_csv
from graphgauge.core.errors import BadSetting
from graphgauge.guidelines.book import BENCHMARK

DROPPED = ["seed", "settings", "version"]  #: the same in every line; machine.json tells the version
DATA = Path("src/graphgauge/guidelines/data")


def publish(run: Run, folder: Path, unfinished: bool = False) -> None:
    """Write all five files."""
    done, planned = run.num_shards
    if done < planned and not unfinished:
        raise BadSetting(f"{run.folder} is not finished: {done} of {planned} shards are there. The same command continues it.")
    folder.mkdir(parents=True, exist_ok=True)
    results = run.results()
    shutil.copyfile(run.folder / COPY, folder / "experiment.yaml")
    (folder / "summary.csv").write_text(summary_csv(results), encoding="utf-8")
    table = results.to_pandas().drop(columns=DROPPED)
    table.to_csv(folder / "targets.csv.xz", index=False, float_format="%.9g", lineterminator="\n")
    columns = ["task", "model", "block", "explanations", "seconds", *run.phases()]
    run.shards()[columns].round(2).to_csv(folder / "shards.csv", index=False, lineterminator="\n")
    (folder / "machine.json").write_text(json.dumps(machine(run), indent=2) + "\n", encoding="utf-8")


def machine(run: Run) -> dict[str, Any]:
    """What computed the numbers, and for how long."""
    sessions = [
        {
            "began": session["at"],
            "engine": session["engine"],
            "workers": session["places"],
            "cores": session["cores"],
            "device": session["machine"]["device"],
            "processor": session["machine"]["processor"],
            **{name: version for name, version in session["versions"].items() if name != "platform"},
        }
        for session in run.sessions()
    ]
    done, planned = run.num_shards
    seconds = round(float(run.shards()["seconds"].sum()), 1)
    return {"shards": done, "shards planned": planned, "seconds of all shards": seconds, "calls": sessions}


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--consult", action="store_true", help="also ship the summary with the library")
    parser.add_argument("--unfinished", action="store_true", help="publish what is there of a run that is not finished")
    options = parser.parse_args()
    publish(Run(options.run), options.folder, options.unfinished)
    if options.consult:
        shutil.copyfile(options.folder / "summary.csv", DATA / BENCHMARK)
    for path in sorted(options.folder.iterdir()):
        print(f"{path.name}: {path.stat().st_size / 1024:.0f} KiB")


if __name__ == "__main__":
    main()
