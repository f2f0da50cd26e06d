"""Questions about a network with several labels name one of them."""

import json

import pytest
from support.small_networks import Stack, build, random_graph
from torch_geometric.nn import GCNConv

import graphgauge as gg
from graphgauge.serve.requests import QuestionReader, RequestRefused


def body(target):
    return json.dumps({"target": target}).encode()


def test_a_question_names_a_label():
    model = gg.NodeClassificationModel(
        build(Stack, GCNConv), random_graph(20, 60), output="multi_label_logits"
    )
    reader = QuestionReader.for_model(model, ["saliency"], ["en"], 5)
    assert reader.read(body([3, 1])).target == (3, 1)
    for wrong in (3, [3], [3, 9], [20, 0], [3, 1, 1]):
        with pytest.raises(RequestRefused):
            reader.read(body(wrong))
    assert "one of its 4 labels" in json.dumps(reader.schema())
