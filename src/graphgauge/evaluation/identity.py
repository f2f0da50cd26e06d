"""Short names of exactly this network with this data, and of exactly these scores."""

import hashlib
from collections.abc import Iterable

from torch import Tensor

from graphgauge.core.xplanation import Xplanation
from graphgauge.models import BaseModel


def digest(tensors: Iterable[Tensor]) -> str:
    """A short name of the shapes, types and bits of tensors."""
    found = hashlib.blake2b(digest_size=8)
    for tensor in tensors:
        plain = tensor.detach().cpu().contiguous()
        found.update(f"{plain.dtype}{tuple(plain.shape)}".encode())
        found.update(plain.flatten().view(dtype=plain.dtype).numpy().tobytes())
    return found.hexdigest()


def digest_of_model(model: BaseModel) -> str:
    """The network's parameters and buffers, and the data; made anew when either has changed."""
    source = model.source
    data = [source.edge_index, *source.node_attrs.values(), *source.edge_attrs.values()]
    return model.known("digest", lambda: digest([*model.net.parameters(), *model.net.buffers(), *data]))


def digest_of_scores(x: Xplanation) -> str:
    """The ids and scores of one explanation."""
    return digest(t for t in (x.nodes, x.edges, x.feature_score, x.edge_score) if t is not None)
