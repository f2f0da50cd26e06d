"""Kill a benchmark at random moments, again and again, and compare what it ends with to a run that was left alone.

    python bench/kills.py quick --kills 200 [--networks FOLDER] [--engine processes] [--targets 2]

After every kill the store must open, pass SQLite's integrity check and hold every shard it held before. When a run is complete
its rows (clocks aside) must be those of the uninterrupted run, byte for byte after sorting; then the next run begins.
"""

import argparse
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from graphgauge.benchmark import Run
from graphgauge.benchmark.runs import STORE
from graphgauge.core.errors import BadFile
from graphgauge.store import Store


def command(options: argparse.Namespace, folder: Path) -> list[str]:
    """The command that is killed."""
    words = [sys.executable, "-m", "graphgauge", "benchmark", options.experiment, "--folder", str(folder), "--device", "cpu"]
    words += ["--engine", options.engine]
    for name in ("networks", "targets", "workers"):
        value = getattr(options, name)
        words += [] if value is None else [f"--{name}", str(value)]
    return words


def table(folder: Path) -> list[str]:
    """All rows but clocks, as sorted text."""
    rows = [row.record() for row in Run(folder).results().rows if not row.metric.startswith("time")]
    return sorted(repr({name: value for name, value in row.items() if name != "seconds"}) for row in rows)


def kept(folder: Path) -> set[str]:
    """Keys of the stored shards, from a store that is whole."""
    try:
        with Store(folder / STORE) as store:
            (verdict,) = store.database.execute("pragma integrity_check").fetchone()
            if verdict != "ok":
                raise SystemExit(f"the store is damaged: {verdict}")
            return store.keys("shard")
    except BadFile as error:
        if "there is no store" in str(error) or "holds nothing yet" in str(error):
            return set()
        raise


def killed_once(options: argparse.Namespace, folder: Path, dice: random.Random, longest: float) -> bool:
    """Start the command and kill it at a random moment; whether it was still running."""
    process = subprocess.Popen(command(options, folder), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    end = time.monotonic() + dice.uniform(0, longest)
    while time.monotonic() < end and process.poll() is None:
        time.sleep(0.01)
    was_running = process.poll() is None
    process.send_signal(signal.SIGKILL) if was_running else None
    process.wait()
    return was_running


def main() -> None:
    """Kill, look, compare."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("experiment", nargs="?", default="quick")
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--engine", default="processes")
    parser.add_argument("--seed", type=int, default=0)
    for name in ("networks", "targets", "workers"):
        parser.add_argument(f"--{name}")
    options = parser.parse_args()
    dice, place = random.Random(options.seed), Path(tempfile.mkdtemp(prefix="kills-"))
    start = time.monotonic()
    subprocess.run(command(options, place / "alone"), check=True, stdout=subprocess.DEVNULL)
    alone, longest = table(place / "alone"), time.monotonic() - start
    print(f"alone: {len(alone)} rows in {longest:.1f} s", flush=True)
    kills = runs = 0
    while kills < options.kills:
        folder, before = place / f"run{runs}", set[str]()
        while True:
            is_kill = killed_once(options, folder, dice, longest)
            kills, now = kills + is_kill, kept(folder)
            if not before <= now:
                raise SystemExit(f"{len(before - now)} shards were lost in {folder}")
            before = now
            if not is_kill:
                break
            if kills >= options.kills:
                subprocess.run(command(options, folder), check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                break
        if table(folder) != alone:
            raise SystemExit(f"{folder} is not the uninterrupted run")
        runs += 1
        print(f"{kills} kills, {runs} runs complete and byte-identical", flush=True)
    shutil.rmtree(place)


if __name__ == "__main__":
    main()
