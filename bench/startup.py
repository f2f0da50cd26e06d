"""Time to the first result: how long importing, wrapping and the first comparison take.

    python bench/startup.py --repeats 5

Each repeat is a fresh process: a GCN of two layers on 50 nodes, three explainers, three targets.
The medians are printed, then the modules that take longest to import (`python -X importtime`,
without what they import themselves).
"""

import argparse
import json
import os
import subprocess
import sys
from statistics import median

WORK = """
import json, time
found, last = {}, time.perf_counter()
def note(name):
    global last
    now = time.perf_counter()
    found[name], last = now - last, now
import torch, torch_geometric
from torch_geometric.data import Data
from torch_geometric.nn import GCN
note("import torch, torch_geometric")
import graphgauge as gg
names = gg.NodeClassificationModel, gg.Evaluator, gg.Saliency, gg.GNNExplainer
note("import graphgauge")
torch.manual_seed(0)
data = Data(x=torch.rand(50, 8), edge_index=torch.randint(0, 50, (2, 200)))
model = gg.NodeClassificationModel(GCN(8, 16, 2, 4).eval(), data, output="logits")
note("wrap")
explainers = [gg.Saliency(), gg.GNNExplainer(epochs=20), gg.RandomExplainer()]
for name in ("first compare", "second compare"):
    results = gg.Evaluator(model).compare(explainers, [1, 2, 3])
    note(name)
results.headline()
note("headline")
print(json.dumps(found))
"""


def run_fresh(*flags: str) -> tuple[dict[str, float], str]:
    """The seconds of one fresh process, and what it wrote to stderr."""
    done = subprocess.run(
        [sys.executable, *flags, "-c", WORK], capture_output=True, text=True, check=True
    )
    return json.loads(done.stdout), done.stderr


def dearest_modules(text: str, number: int) -> list[tuple[float, str]]:
    """Modules by the milliseconds of their own import, from what ``-X importtime`` wrote."""
    lines = [line.removeprefix("import time:").split("|") for line in text.splitlines()]
    rows = [
        (int(own) / 1000, name.strip())
        for own, _, name in (line for line in lines if len(line) == 3)
        if own.strip().isdigit()
    ]
    return sorted(rows, reverse=True)[:number]


def main() -> None:
    """Measure, and print both tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--modules", type=int, default=10)
    options = parser.parse_args()
    print(f"{os.cpu_count()} cores, Python {sys.version.split()[0]}")
    runs = [run_fresh()[0] for _ in range(options.repeats)]
    for name in runs[0]:
        print(f"{median(run[name] for run in runs):8.3f} s  {name}")
    print(f"{median(sum(run.values()) for run in runs):8.3f} s  in all")
    for milliseconds, name in dearest_modules(run_fresh("-X", "importtime")[1], options.modules):
        print(f"{milliseconds:8.1f} ms {name}")


if __name__ == "__main__":
    main()
