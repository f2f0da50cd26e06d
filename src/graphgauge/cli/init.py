"""The first project file: every key there is, with what it means and where to edit."""

from pathlib import Path
from typing import Annotated

import typer

from graphgauge.cli.console import JsonOption, print_answer
from graphgauge.core import BadFile

_PROJECT_FILE_NAME = "graphgauge.yaml"
_PROJECT_TEMPLATE = """\
# A project of graphgauge: your network, your graph, and what you ask of explanations.
# Edit the lines marked <-- EDIT. Then:
#   graphgauge doctor graphgauge.yaml       checks the files, the network and this machine
#   graphgauge evaluate graphgauge.yaml     measures explainers and ends with a verdict
#   graphgauge explain graphgauge.yaml --target 17
# Paths are relative to this file. A line that begins with '# ' and a key is an option with its \
usual value or an example.

# --- the network ---------------------------------------------------------------------------------\
----------------------
model: my_package.networks:make_net     # <-- EDIT  module:function (or class) that gives the \
network; a module beside this
                                        #           file (my_net.py -> my_net:make_net) or an \
installed package
arguments: {}                           # <-- EDIT  what the function is called with, by name: \
{hidden: 64}
weights: weights.safetensors            # <-- EDIT  safetensors.torch.save_model(net, \
"weights.safetensors"); never a pickle.
                                        #           Remove the line if the function gives a \
trained network.

# --- the graph -----------------------------------------------------------------------------------\
----------------------
data: graph.safetensors                 # <-- EDIT  graphgauge.datasets.save_graph(data, \
"graph.safetensors")
level: node                             # <-- EDIT  node, link or graph: what is predicted
task: classification                    # <-- EDIT  classification or regression

# Where the signature of forward does not say enough (docs/models.md):
# wrapping: {output: logits, num_hops: 3, memory_budget: 2GiB, forward: "my_net:call"}

# --- what is measured ----------------------------------------------------------------------------\
----------------------
explainers:                             # `graphgauge explainers` lists all names; keep random, it \
shows what chance reaches
  - input_x_gradient
  - integrated_gradients
  - {name: gnn_explainer, parameters: {epochs: 100}}
  # - lrp                               # knows the usual layers only
  - random
targets: {number: 100}                  # 50-100 for a first look, 200-500 for production, spread \
over classes and confidence.
                                        # Of a test set: {number: 100, among: test_mask}; some: \
[0, 17]; a file: targets.txt
preset: paper                           # or calibrated: numbers under which chance is 0.5 \
(docs/metrics.md)
# settings: {edge_removal: drop}        # any setting of the Evaluator
# metrics: [sparsity]                   # more metrics

# --- what is asked of explanations (docs/choosing.md) --------------------------------------------\
----------------------
use:
  stakes: standard                      # or high-stakes
  # latency: interactive                # or batch, offline; left out: 5 s
  # focus: feature                      # or edge: judge that side only
# thresholds: {feature_pertinence: 0.7, feature_ec: "10%"}      # your own, in place of the paper's

# --- what things are called, for sentences and pictures (docs/narrative.md) ----------------------\
----------------------
# names:
#   features: [income, age]
#   classes: [declined, granted]
#   node: [account, accounts]
#   groups: {accounts with prior defaults: [4, 7]}

seed: 0
# device: cpu                           # left out: a GPU where there is one
"""


def _write_project_file(folder: str) -> Path:
    """Write the file into a folder, which is made if need be; never over another."""
    path = Path(folder) / _PROJECT_FILE_NAME
    if path.exists():
        raise BadFile(
            f"{path} is there already, and is left as it is: remove it, or name another folder."
        )
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("x", encoding="utf-8") as file:
            file.write(_PROJECT_TEMPLATE)
    except OSError as error:
        raise BadFile(f"{path} could not be written: {error}.") from error
    return path


def _next_steps_text(path: Path) -> str:
    """Where it is, and what comes next."""
    return f"{path}\nEdit the lines marked EDIT, then: graphgauge doctor {path}"


def init_command(
    folder: Annotated[str, typer.Argument(help="Where to write graphgauge.yaml.")] = ".",
    json: JsonOption = False,
) -> None:
    """Write a commented project file for a model of your own; never over another."""
    path = _write_project_file(folder)
    print_answer({"file": str(path)}, lambda _: _next_steps_text(path), json)
