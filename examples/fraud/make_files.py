"""Write what the walk-through needs: weights, the graph of week 0, later weeks, and the project
file.

python examples/fraud/make_files.py                # into this folder
python examples/fraud/make_files.py --folder X     # elsewhere; add this folder to PYTHONPATH
"""

import argparse
from pathlib import Path
from typing import Any

import fraud
import yaml
from safetensors.torch import save_file

from graphgauge.datasets import save_graph

HERE = Path(__file__).parent


#: weeks after the first: name of the file, number, drift
LATER = (
    ("week-1", 1, "none"),
    ("week-2", 2, "none"),
    ("week-3", 3, "none"),
    ("week-3-drifted", 3, "newsletter campaign"),
)


def project(targets: int = 120, data: str = "week-0") -> dict[str, Any]:
    """The project file for the data of a week.

    10 % of 8 features are less than one edit, so feature EC gets a limit of its own, and so does
    edge EC.
    """
    reported = (fraud.rings() == 0).nonzero()[:, 0].tolist()
    return {
        "name": "fraud",
        "model": "fraud:make_net",
        "arguments": {"hidden": 16},
        "weights": "weights.safetensors",
        "data": f"{data}.safetensors",
        "level": "node",
        "task": "classification",
        "targets": {"number": targets, "among": "test_mask"},
        "thresholds": {"feature_ec": 10, "edge_ec": 10},
        "use": {"stakes": "high-stakes", "latency": "interactive"},
        "names": {
            "features": list(fraud.FEATURES),
            "classes": list(fraud.CLASSES),
            "node": ["account", "accounts"],
            "link": ["payment", "payments"],
            "groups": {"accounts with prior reports": reported},
        },
        "seed": 0,
        "device": "cpu",
    }


def write_files(folder: Path = HERE, targets: int = 120) -> Path:
    """Train, write everything, and give the path of the project file."""
    folder.mkdir(parents=True, exist_ok=True)
    data = fraud.week(0)
    net = fraud.trained(data)
    save_file(net.state_dict(), folder / "weights.safetensors")
    save_graph(data, folder / "week-0.safetensors")
    for name, number, drift in LATER:
        save_graph(fraud.week(number, drift), folder / f"{name}.safetensors")
        write_project(folder / f"{name}.yaml", project(targets, name))
    return write_project(folder / "project.yaml", project(targets))


def write_project(path: Path, content: dict[str, Any]) -> Path:
    """Write one project file."""
    path.write_text(yaml.safe_dump(content, sort_keys=False), encoding="utf-8")
    return path


def main() -> None:
    """Read the arguments and write."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--folder", type=Path, default=HERE)
    parser.add_argument("--targets", type=int, default=120)
    given = parser.parse_args()
    print(write_files(given.folder, given.targets))


if __name__ == "__main__":
    main()
