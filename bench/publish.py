"""Make a run fit to be kept in a repository.

    python bench/publish.py runs/paper benchmarks/paper [--consult] [--unfinished]

writes

    experiment.yaml     what was measured
    settings.json       every setting
    rows.csv.xz         a line for each explanation and metric; `Results.load` reads it together
                        with settings.json
    summary.csv         task, explainer, metric, mean, sd, n
    shards.csv          task, model, block, explanations, seconds, and what they went to
    machine.json        processor, versions and number of workers of each call, shards and seconds
                        in all, and a digest of everything that decides the numbers (`restore.py`
                        asks for it)

and with ``--consult`` puts the summary also where `graphgauge consult` looks for it. Names of
hosts, users and kernels stay behind, and so do single explanations: a report of a published run
draws none.
"""

import argparse
import json
import shutil
from pathlib import Path
from typing import Any

from graphgauge.benchmark import EXPERIMENT_FILE, BenchmarkRun, content_digest, summary_csv
from graphgauge.cli.console import run_app
from graphgauge.core import BadFile, BadSetting
from graphgauge.evaluation import ROWS_FILES, write_rows
from graphgauge.guidelines import BENCHMARK_FILE
from graphgauge.report import MACHINE_FILE

SHARDS = "shards.csv"
#: of shards.csv, before those of the phases
COLUMNS = ["task", "model", "block", "explanations", "seconds"]
DATA = Path("src/graphgauge/guidelines/data")


def publish(run: BenchmarkRun, folder: Path, unfinished: bool = False) -> None:
    """Write all six files."""
    done, planned = run.num_shards
    if done < planned and not unfinished:
        raise BadSetting(
            f"{run.folder} is not finished: {done} of {planned} shards are there. "
            "The command that began it continues it; --unfinished publishes what is there."
        )
    make_folder(folder)
    results = run.results()
    shutil.copyfile(run.folder / EXPERIMENT_FILE, folder / EXPERIMENT_FILE)
    write_rows(results, folder / ROWS_FILES[1])
    (folder / "summary.csv").write_text(summary_csv(results), encoding="utf-8")
    shards = run.shards()[[*COLUMNS, *run.phases()]].round(2)
    shards.to_csv(folder / SHARDS, index=False, lineterminator="\n")
    told = {"configuration": content_digest(run.config), "shards": done, "shards planned": planned}
    told |= {"seconds of all shards": round(float(shards["seconds"].sum()), 1), "calls": calls(run)}
    (folder / MACHINE_FILE).write_text(json.dumps(told, indent=2) + "\n", encoding="utf-8")


def make_folder(folder: Path) -> None:
    """Make a folder, or say why not."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BadFile(f"the folder {folder} cannot be made: {error}. Choose another.") from error


def calls(run: BenchmarkRun) -> list[dict[str, Any]]:
    """What computed the numbers, call by call."""
    return [
        {
            "began": session["at"],
            "engine": session["engine"],
            "workers": session["places"],
            "cores": session["cores"],
            "device": session["machine"]["device"],
            "processor": session["machine"]["processor"],
            **{
                name: version for name, version in session["versions"].items() if name != "platform"
            },
        }
        for session in run.sessions()
    ]


def command() -> None:
    """Read the command line, and do it."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("run", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument(
        "--consult", action="store_true", help="also ship the summary with the library"
    )
    parser.add_argument(
        "--unfinished",
        action="store_true",
        help="publish what is there of a run that is not finished",
    )
    options = parser.parse_args()
    publish(BenchmarkRun(options.run), options.folder, options.unfinished)
    if options.consult:
        shutil.copyfile(options.folder / "summary.csv", DATA / BENCHMARK_FILE)
    for path in sorted(options.folder.iterdir()):
        print(f"{path.name}: {path.stat().st_size / 1024:.0f} KiB")


def main() -> None:
    """The command: what has to be put right first is one line, and exit code 2."""
    run_app(command)


if __name__ == "__main__":
    main()
