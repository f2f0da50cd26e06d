"""Run an experiment on a cluster of two workers, kill one of them when the first shard is done, and print what happened.

python on_a_cluster.py ENGINE EXPERIMENT FOLDER NETWORKS PATTERN-OF-WORKERS
"""

import json
import os
import re
import signal
import sys

import psutil
from tiny import run_here


def kill_one(named):
    """End one worker process, as the system would."""
    found = [child for child in psutil.Process().children(recursive=True) if re.search(named, " ".join(child.cmdline()))]
    os.kill(found[0].pid, signal.SIGKILL)
    return found[0].pid


def main():
    """One run."""
    engine, path, folder, networks, named = sys.argv[1:]
    killed = []

    def report(text, size):
        if named and " done" in text and not killed:
            killed.append(kill_one(named))

    run = run_here(path, folder, networks, engine, report=report, workers=2)
    print(json.dumps({"killed": len(killed), "finished": run.is_finished, "engine": run.sessions()[-1]["engine"]}))


if __name__ == "__main__":
    main()
