"""Short names of exactly this network with this data, and of exactly these scores."""

import hashlib
from collections.abc import Iterable

import torch
from torch import Tensor

from graphgauge.core.xplanation import Xplanation
from graphgauge.models import BaseModel


def digest(tensors: Iterable[Tensor], size: int = 8) -> str:
    """A name of the shapes, types and bits of tensors, of ``size`` bytes."""
    found = hashlib.blake2b(digest_size=size)
    for tensor in tensors:
        plain = (tensor.detach() if tensor.layout == torch.strided else tensor.detach().to_dense()).cpu().contiguous()
        found.update(f"{plain.dtype}{tuple(plain.shape)}".encode())
        found.update(plain.flatten().view(torch.uint8).numpy().tobytes())
    return found.hexdigest()


def digest_of_model(model: BaseModel) -> str:
    """The network's parameters and buffers, and the data; made anew when either has changed.

    How the network is called and what its hidden space is may differ with the same weights: answers to a few targets tell.
    """

    def find() -> str:
        source, probes = model.source, model.asked(model.probes)
        data = [source.edge_index, *source.node_attrs.values(), *source.edge_attrs.values()]
        answers = [model.pred_continuous(probes), model.embed(probes)]
        return f"{type(model).__name__}/{model.hops}/{digest([*model.net.parameters(), *model.net.buffers(), *data, *answers])}"

    return model.known("digest", find)


def digest_of_network(model: BaseModel) -> str:
    """The network's parameters and buffers, by name, and nothing of the machine: the same weights give the same name anywhere."""
    parts = [*model.net.named_parameters(), *model.net.named_buffers()]
    names = digest_of_text([type(model).__name__, str(model.hops), *(name for name, _ in parts)])
    return f"{names}{digest(tensor for _, tensor in parts)}"


def digest_of_data(model: BaseModel) -> str:
    """Edges, features and all other attributes of the data that the network reads."""
    source = model.source
    attributes = {**source.node_attrs, **source.edge_attrs}
    names = digest_of_text(list(attributes))
    return f"{names}{digest([source.edge_index, *attributes.values()])}"


def digest_of_text(texts: Iterable[str]) -> str:
    """A short name of some texts, in their order."""
    return hashlib.blake2b("\0".join(texts).encode(), digest_size=4).hexdigest()


def digest_of_scores(x: Xplanation, size: int = 8) -> str:
    """The ids and scores of one explanation, in ``size`` bytes."""
    return digest((t for t in (x.nodes, x.edges, x.feature_score, x.edge_score) if t is not None), size)
