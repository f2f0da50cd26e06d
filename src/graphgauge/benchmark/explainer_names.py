"""The paper's names of its eight explainers, and which of them a label of results means."""

#: the paper's names of its eight explainers
EXPLAINERS = {
    "deconvolution": "Deconv",
    "gnn_explainer": "GNNExp",
    "graphmask": "GraphMask",
    "guided_backprop": "GuidedBP",
    "input_x_gradient": "Input×Grad",
    "integrated_gradients": "IntGrad",
    "lrp": "LRP",
    "saliency": "Saliency",
}

BASELINES = ("random",)  #: no choice of anybody, only something to compare with


def method_of(label: str) -> str | None:
    """The paper's method that a label means, variants included; None if there is none.

    >>> method_of("lrp(variant=captum)"), method_of("graphmask_pyg"), method_of("random")
    ('lrp', 'graphmask', None)
    """
    names = [
        name
        for name in EXPLAINERS
        if label == name or (label.startswith(name) and not label[len(name)].isalnum())
    ]
    return max(names, key=len, default=None)


def shown_explainer(label: str) -> str:
    """The paper's short name if there is one, and what follows it in the label.

    >>> shown_explainer("lrp(variant=captum)"), shown_explainer("random")
    ('LRP(variant=captum)', 'random')
    """
    method = method_of(label)
    return label if method is None else EXPLAINERS[method] + label[len(method) :]


def papers_order(labels: list[str]) -> list[str]:
    """Sort labels: the paper's methods first, in the order of its table, then the others in their
    order.
    """
    place = {name: k for k, name in enumerate(EXPLAINERS)}
    return sorted(labels, key=lambda label: place.get(method_of(label) or "", len(place)))
