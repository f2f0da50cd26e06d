"""Short names of exactly this network, called in exactly this way, with its data, and of exactly
these scores.
"""

from graphgauge.core import Xplanation, digest_of_tensors
from graphgauge.models import BaseModel


def digest_of_model(model: BaseModel) -> str:
    """The network's parameters and buffers, and the data; made anew when either has changed. Kept
    with numbers, never shown.

    How the network is called and what its hidden space is may differ with the same weights: answers
    to a few targets tell.
    """

    def find() -> str:
        source, probes = model.source, model.probes
        data = [source.edge_index, *source.node_attrs.values(), *source.edge_attrs.values()]
        answers = [model.pred_continuous(probes), model.embed(probes)]
        tensors = [*model.net.parameters(), *model.net.buffers(), *data, *answers]
        return f"{type(model).__name__}/{model.hops}/{digest_of_tensors(tensors)}"

    return model.cached_fact("digest", find)


def digest_of_scores(x: Xplanation, size: int = 8) -> str:
    """The ids and scores of one explanation, in ``size`` bytes."""
    return digest_of_tensors(
        (t for t in (x.nodes, x.edges, x.feature_score, x.edge_score) if t is not None), size
    )
