"""Which layers support masked messages, and which explainers give edge scores then."""

from torch.nn import Module
from torch_geometric.nn import FastRGCNConv, MessagePassing

from graphgauge.subgraphs import message_layers

#: aggregations under which a message times 0 adds nothing
_FAITHFUL_AGGREGATIONS = ("sum", "add", "mean", "SumAggregation()", "MeanAggregation()")


#: layers that sum or average by a routine of their own
_FAITHFUL_ROUTINES = (MessagePassing.aggregate, FastRGCNConv.aggregate)


#: what gives edge scores, and measures them, where messages cannot be masked
ADVICE_WITHOUT_MASKS = "use Occlusion or RandomExplainer with edge_removal='drop'"


def list_doubtful_aggregations(net: Module) -> list[str]:
    """Layers whose aggregation can select a silenced message (max), or that aggregate in their own
    way.
    """
    return sorted(
        {
            f"{type(layer).__name__}(aggr={layer.aggr!r})"
            for layer in message_layers(net)
            if not _has_faithful_aggregation(layer)
        }
    )


def _has_faithful_aggregation(layer: MessagePassing) -> bool:
    """Whether a layer sums or averages its messages by a known routine."""
    return layer.aggr in _FAITHFUL_AGGREGATIONS and type(layer).aggregate in _FAITHFUL_ROUTINES


def edge_score_sources(mask_support: str, uses_edges: bool) -> str:
    """Which explainers give edges scores, and how these can be measured, as text."""
    if not uses_edges:
        return (
            "none that mean anything: no edge changes a prediction, since the network does not "
            "use the graph's edges"
        )
    if mask_support == "exact":
        return "every explainer"
    if mask_support.startswith("refused"):
        return f"only explainers that need no masks: {ADVICE_WITHOUT_MASKS}"
    return "every explainer; evaluate with edge_removal='drop'"
