"""One comparison for each kind of model, made once."""

import pytest
from support.quick_evaluation import EXPLAINERS, MODELS, QUICK, numbers

import graphgauge as gg


@pytest.fixture(params=MODELS, scope="module")
def compared(request):
    """A maker of models, targets and the numbers of all explainers."""
    make, targets = MODELS[request.param]
    return make, targets, numbers(gg.Evaluator(make(), **QUICK).compare(EXPLAINERS, targets))
