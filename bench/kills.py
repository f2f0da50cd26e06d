"""Kill a benchmark at random moments, again and again, and compare what it ends with to a run that
was left alone.

    python bench/kills.py quick --kills 200 [--networks FOLDER] [--engine processes]
                          [--targets 2] [--within 25]

Each call of the command is killed at a moment drawn evenly from the time an uninterrupted run
takes, or from its first ``--within`` seconds (which makes 200 kills affordable: the next call goes
on where this one stopped, so that over many calls every part of the run is hit). Time is processor
time of the command and its workers, so that a busy machine shifts no moment.

What a reader sees in the store just before a kill is acknowledged. After the kill the store must
open, pass SQLite's integrity check and hold all of it. When a run is complete its rows (clocks
aside) must be those of the uninterrupted run, byte for byte after sorting; then the next run
begins.
"""

import argparse
import contextlib
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import psutil

from graphgauge.benchmark import STORE_FILE, BenchmarkRun
from graphgauge.core import BadFile
from graphgauge.metrics import MetricName
from graphgauge.store import Store


def command(options: argparse.Namespace, folder: Path) -> list[str]:
    """The command that is killed."""
    words = [
        sys.executable,
        "-m",
        "graphgauge",
        "benchmark",
        options.experiment,
        "--folder",
        str(folder),
        "--device",
        "cpu",
    ]
    words += ["--engine", options.engine]
    for name in ("networks", "targets", "workers"):
        value = getattr(options, name)
        words += [] if value is None else [f"--{name}", str(value)]
    return words


def table(folder: Path) -> list[str]:
    """All rows but clocks, as sorted text."""
    rows = [
        row.record()
        for row in BenchmarkRun(folder).results().rows
        if MetricName.parse(row.metric).family != "time"
    ]
    return sorted(
        repr({name: value for name, value in row.items() if name != "seconds"}) for row in rows
    )


def kept(folder: Path) -> dict[str, int]:
    """The stored shards: key and number of rows. Empty while there is no store."""
    try:
        with Store(folder / STORE_FILE) as store:
            return {entry.key: len(list(store.rows(entry))) for entry in store.entries("shard")}
    except BadFile as error:
        if "there is no store" in str(error) or "holds nothing yet" in str(error):
            return {}
        raise


def check_whole(folder: Path) -> None:
    """What SQLite itself says about the file."""
    if kept(folder):
        with Store(folder / STORE_FILE) as store:
            (verdict,) = store.connection.execute("pragma integrity_check").fetchone()
        if verdict != "ok":
            raise SystemExit(f"the store in {folder} is damaged: {verdict}")


def killed_once(
    options: argparse.Namespace, folder: Path, seconds: float
) -> tuple[bool, dict[str, int]]:
    """Start the command and kill it after some seconds: whether it was still running, and what was
    acknowledged until then.
    """
    process = subprocess.Popen(
        command(options, folder), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    while process.poll() is None and processor_seconds(process.pid) < seconds:
        time.sleep(0.05)
    acknowledged = kept(folder)
    was_running = process.poll() is None
    process.kill()
    process.wait()
    return was_running, acknowledged


def processor_seconds(number: int) -> float:
    """What a process and those it started have used."""
    with contextlib.suppress(psutil.NoSuchProcess):
        family = [psutil.Process(number), *psutil.Process(number).children(recursive=True)]
        return sum(sum(member.cpu_times()[:2]) for member in family)
    return 0.0


def check_kept(acknowledged: dict[str, int], folder: Path) -> None:
    """Every acknowledged shard is there with all of its rows."""
    now = kept(folder)
    lost = {key: rows for key, rows in acknowledged.items() if now.get(key) != rows}
    if lost:
        raise SystemExit(
            f"{sum(lost.values())} rows of {len(lost)} acknowledged shards were lost in {folder}"
        )


def one_run(
    options: argparse.Namespace, folder: Path, dice: random.Random, longest: float, left: int
) -> Counter[str]:
    """Kill a run until it is complete, at most ``left`` times; the rest is then left alone. Counts
    of what happened.
    """
    found: Counter[str] = Counter()
    while found["kills"] < left:
        was_running, acknowledged = killed_once(options, folder, dice.uniform(0, longest))
        check_whole(folder)
        check_kept(acknowledged, folder)
        found += Counter(
            kills=was_running,
            looks=1,
            acknowledged=sum(acknowledged.values()),
            begun=was_running and bool(acknowledged),
        )
        if not was_running:
            return found
    subprocess.run(
        command(options, folder), check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    return found


def main() -> None:
    """Kill, look, compare."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("experiment", nargs="?", default="quick")
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--engine", default="processes")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--within",
        type=float,
        help="seconds of each call, of processor time; default: of a whole run",
    )
    for name in ("networks", "targets", "workers"):
        parser.add_argument(f"--{name}")
    options = parser.parse_args()
    dice, place = random.Random(options.seed), Path(tempfile.mkdtemp(prefix="kills-"))
    longest = processor_seconds_of(command(options, place / "alone"))
    alone = table(place / "alone")
    print(f"alone: {len(alone)} rows in {longest:.1f} s of processor time", flush=True)
    total: Counter[str] = Counter()
    while total["kills"] < options.kills:
        folder = place / f"run{total['runs']}"
        total += one_run(
            options, folder, dice, options.within or longest, options.kills - total["kills"]
        )
        if table(folder) != alone:
            raise SystemExit(f"{folder} is not the uninterrupted run")
        total += Counter(runs=1, rows=len(alone))
        print(told(total), flush=True)
    shutil.rmtree(place)


def processor_seconds_of(words: list[str]) -> float:
    """Run a command to its end."""
    process, used = subprocess.Popen(words, stdout=subprocess.DEVNULL), 0.0
    while process.poll() is None:
        used = max(used, processor_seconds(process.pid))
        time.sleep(0.05)
    if process.returncode:
        raise SystemExit(f"{' '.join(words)} ended with {process.returncode}")
    return used


def told(total: Counter[str]) -> str:
    """What happened so far."""
    return (
        f"{total['kills']} kills ({total['begun']} with shards in the store), {total['runs']} "
        f"runs complete and byte-identical ({total['rows']} rows compared), 0 of "
        f"{total['acknowledged']} acknowledged rows lost in {total['looks']} looks"
    )


if __name__ == "__main__":
    main()
