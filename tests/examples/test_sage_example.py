"""A user's own network in a package of its own: from files on disk to a verdict, with the three
commands of the docs.
"""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from graphgauge.core.xplanation import Xplanation
from graphgauge.evaluation import Results

ROOT = Path(__file__).parent.parent.parent
PAGE = (ROOT / "docs" / "your-model.md").read_text()


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder after the first of the three commands, and the environment of somebody who installed
    the package.
    """
    folder = tmp_path_factory.mktemp("example")
    shutil.copytree(ROOT / "examples" / "own_model", folder / "source")
    install = [
        "pip",
        "install",
        "-q",
        "--no-deps",
        "--no-index",
        "--no-build-isolation",
        "--target",
        "site",
        "./source",
    ]
    subprocess.run([sys.executable, "-m", *install], cwd=folder, check=True)
    shutil.copy(folder / "source" / "make_files.py", folder)
    shutil.rmtree(folder / "source")
    paths = [str(folder / "site"), os.environ.get("PYTHONPATH", "")]
    tools = str(Path(sys.executable).parent)
    changed = {
        "PYTHONPATH": os.pathsep.join(filter(None, paths)),
        "PATH": tools + os.pathsep + os.environ["PATH"],
        "OMP_NUM_THREADS": "1",
    }
    environment = {**os.environ, **changed}
    made = run((folder, environment), commands_of_the_page()[0])
    assert made.stdout == (
        "accuracy on the test set: 0.90\nwrote w.safetensors, graph.safetensors and config.yaml\n"
    ), made.stderr
    return folder, environment


def run(place, command):
    folder, environment = place
    return subprocess.run(
        shlex.split(command),
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


def commands_of_the_page():
    block = re.search(r"```sh\n(python make_files\.py.*?)```", PAGE, re.DOTALL).group(1)
    return [line.partition("#")[0].strip() for line in block.splitlines()]


def without_times(text):
    """The table's last column is wall clock."""
    return re.sub(r" +\d+\.\d{3}$", "", text, flags=re.MULTILINE)


def test_three_commands_give_a_verdict(place):
    commands = commands_of_the_page()
    assert len(commands) == 3
    doctor, evaluated = (run(place, command) for command in commands[1:])
    assert [doctor.returncode, evaluated.returncode] == [0, 0], doctor.stdout + evaluated.stderr
    assert "  ok      26 of 26 checks" in doctor.stdout
    shown = re.search(r"```text\n(metric .*?)```", PAGE, re.DOTALL).group(1)
    found = without_times(evaluated.stdout)
    lines = [line.rstrip().removesuffix("...") for line in without_times(shown).splitlines()]
    assert [line for line in lines if line not in found] == []
    assert evaluated.stdout.splitlines()[-1] == shown.splitlines()[-1]
    assert {row.explainer for row in Results.load(place[0] / "runs" / "accounts").rows} == {
        "input_x_gradient",
        "saliency",
        "integrated_gradients",
        "random",
    }


def test_the_report_of_the_run_judges_as_the_evaluation_did_and_shows_explanations(place):
    folder = place[0] / "runs" / "accounts"
    done = run(place, "graphgauge report runs/accounts")
    assert (done.returncode, done.stdout.strip()) == (0, "runs/accounts/report.html"), done.stderr
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert "Use input_x_gradient</" in page
    assert "at most 6 (your own limit)" in page  # the project's limit, kept in project.json
    assert "The accuracy (or r²) of the model" not in page  # known, and kept there, too
    assert "SHA-256 of weights" in page
    assert page.count('<div class="paper"><svg') == 16
    assert "3 accounts with a prior default" in page
    done = run(
        place,
        (
            "graphgauge report runs/accounts --stakes high-stakes --language de --audience "
            "affected_person --format json"
        ),
    )
    assert done.returncode == 0, done.stderr
    content = json.loads((folder / "report.json").read_text(encoding="utf-8"))
    assert (content["requirements"]["stakes"], content["requirements"]["limits"]) == (
        "high-stakes",
        {"feature_ec": 6},
    )
    assert all(
        "Das hier beschriebene Ergebnis" in own["text"] for own in content["tasks"][0]["examples"]
    )


def test_a_prediction_of_the_example_is_told_in_words(place):
    done = run(
        place,
        (
            "graphgauge explain config.yaml --target 40 --audience affected_person --output "
            "x.safetensors --json"
        ),
    )
    found = json.loads(done.stdout)
    assert (done.returncode, found["code"], done.stderr) == (0, 0, "")
    assert "The model's result: “repays” (probability: 99.9%)." in found["text"]
    assert "accounts with a prior default" in found["text"]
    assert Xplanation.load(place[0] / "x.safetensors").target == 40
