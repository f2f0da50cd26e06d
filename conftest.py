"""Names that the examples of docstrings use without making them.

``data``, ``net``, ``model``, ``evaluator`` and ``results`` are those of the README: a GCN on the
generated graph BA-Shapes, and a comparison of two explainers on three of its nodes.
"""

from functools import cache
from types import SimpleNamespace

import pytest


@cache
def _example_objects():
    import graphgauge as gg
    from graphgauge.datasets import ba_shapes, trained

    data, net = ba_shapes(), trained("BA-Shapes", "node", "gcn")
    model = gg.NodeClassificationModel(net, data)
    evaluator = gg.Evaluator(model, timed=1)
    explainers = [gg.InputXGradient(), gg.RandomExplainer()]
    return SimpleNamespace(
        data=data,
        net=net,
        model=model,
        evaluator=evaluator,
        results=evaluator.compare(explainers, [302, 510, 604]),
    )


@pytest.fixture(autouse=True)
def example_objects(request, doctest_namespace):
    """Give the examples of docstrings what the README makes."""
    if isinstance(request.node, pytest.DoctestItem) and "README" not in request.node.name:
        import torch

        import graphgauge

        doctest_namespace.update(vars(_example_objects()), gg=graphgauge, torch=torch)
