"""The paper's names of its eight explainers, and which of them a label of results means."""

#: the paper's names of its eight explainers
PAPER_EXPLAINERS = {
    "deconvolution": "Deconv",
    "gnn_explainer": "GNNExp",
    "graphmask": "GraphMask",
    "guided_backprop": "GuidedBP",
    "input_x_gradient": "Input×Grad",
    "integrated_gradients": "IntGrad",
    "lrp": "LRP",
    "saliency": "Saliency",
}

BASELINE_EXPLAINERS = ("random",)  #: no choice of anybody, only something to compare with


def paper_method(label: str) -> str | None:
    """The paper's method that a label means, variants included; None if there is none.

    >>> paper_method("lrp(variant=captum)"), paper_method("graphmask_pyg"), paper_method("random")
    ('lrp', 'graphmask', None)
    """
    names = [
        name
        for name in PAPER_EXPLAINERS
        if label == name or (label.startswith(name) and not label[len(name)].isalnum())
    ]
    return max(names, key=len, default=None)


def explainer_title(label: str) -> str:
    """The paper's short name if there is one, and what follows it in the label.

    >>> explainer_title("lrp(variant=captum)"), explainer_title("random")
    ('LRP(variant=captum)', 'random')
    """
    method = paper_method(label)
    return label if method is None else PAPER_EXPLAINERS[method] + label[len(method) :]


def sort_as_in_paper(labels: list[str]) -> list[str]:
    """Sort labels: the paper's methods first, in the order of its table, then the others in their
    order.
    """
    place = {name: k for k, name in enumerate(PAPER_EXPLAINERS)}
    return sorted(labels, key=lambda label: place.get(paper_method(label) or "", len(place)))
