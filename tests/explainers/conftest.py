"""Numeric tests run ours on ``--device``, the definition or the peer on the CPU."""

from copy import deepcopy

import pytest

from graphgauge.explainers import BaseExplainer
from graphgauge.models import BaseModel


@pytest.fixture(autouse=True)
def on_device(request, device, monkeypatch):
    """Models get a copy of network and data on the device; explanations come back to the CPU."""
    if device == "cpu":
        return
    if request.node.get_closest_marker("numeric") is None:
        pytest.skip("not a numeric test: --device says nothing about it")
    open_model, explain = BaseModel.__init__, BaseExplainer.explain

    def open_there(self, net, data, **options):
        there = (
            [graph.clone().to(device) for graph in data]
            if isinstance(data, list)
            else data.clone().to(device)
        )
        open_model(self, deepcopy(net).to(device), there, **options)

    def explain_there(self, *args, **kwargs):
        return [x.to("cpu") for x in explain(self, *args, **kwargs)]

    monkeypatch.setattr(BaseModel, "__init__", open_there)
    monkeypatch.setattr(BaseExplainer, "explain", explain_there)
