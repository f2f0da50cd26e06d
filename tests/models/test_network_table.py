"""The table of thirty kinds of networks in docs/models.md says what happens when they are run."""

import re

import network_table
import pytest
import torch
from network_table import found, heading_of, reason, stored
from support.network_kinds import KINDS

ASKED = """GCN, SAGE, GIN, GINE, PNA, RGCN, FastRGCN, GPS, TransformerConv, NNConv, AttentiveFP,
SchNet, TopK, SAG, ASAP, DiffPool, SortPool, JumpingKnowledge, virtual node, GraphNorm,
batch statistics, tuple, dictionary, compile, script, trace, float64, bfloat16, multi-label,
multi-output"""


def test_thirty_kinds_are_in_the_table():
    wanted = [name.strip() for name in ASKED.split(",")]
    assert len(wanted) == len(KINDS) == len(stored()) == 30
    assert all(name in kind for name, kind in zip(wanted, KINDS, strict=True))


@pytest.mark.parametrize("name", KINDS)
def test_the_table_says_what_happens(name):
    """If this fails after a change that is meant: PYTHONPATH=tests python bench/network_table.py
    --write.
    """
    kind = KINDS[name]
    assert found(kind).cells == stored()[heading_of(kind)]


@pytest.mark.parametrize("name", ["DiffPool", "ASAP pooling"])
def test_zeros_do_not_hide_that_edges_act_outside_of_messages(name):
    """Without biases silent layers give zeros, and an adjacency matrix times zero is zero whatever
    its edges.
    """
    model = KINDS[name].model()
    with torch.no_grad():
        for weight_name, weight in model.net.named_parameters():
            if weight_name.endswith("bias"):
                weight.zero_()
    assert model.mask_support.startswith("refused: edges act outside the messages")


def test_every_cost_is_a_number():
    lines = (
        network_table.PAGE.read_text()
        .split(network_table.START)[1]
        .split(network_table.END)[0]
        .strip()
        .splitlines()[2:]
    )
    assert all(float(line.strip("| ").split(" | ")[-1]) > 0 for line in lines)


def test_refusals_are_told_in_a_few_words():
    assert reason("LRP has no rule for PNAConv. It knows Linear.") == "no rule for PNAConv"
    assert reason("Something else is wrong. Do this.") == "Something else is wrong"
    assert not re.search(r"\|", reason("no rule for A|B"))
