"""The check that LRP conserves relevance.

The relevance of the features and the share of the biases must sum to the explained output of each
target. If they do not, the network calls an operation that has no rule.
"""

import torch
from torch import Tensor

from graphgauge.core import BadModel
from graphgauge.execution import GraphBatch
from graphgauge.explainers.lrp_layer_rules import ConservingRules


def check_conservation(
    rules: ConservingRules,
    output: Tensor,
    x: Tensor,
    gradient: Tensor | None,
    shares: dict[int, Tensor],
) -> None:
    """Raise BadModel if an operation loses or creates relevance.

    Features and biases must sum to the output (K,) of each copy, up to rounding.
    """
    union = rules.union
    by_node = (torch.zeros_like(x) if gradient is None else x * gradient)[union.node_at]
    relevance, size = (
        _sum_per_copy(union, values.sum(1), union.node_copy) for values in (by_node, by_node.abs())
    )
    bias_share = _bias_share_per_copy(union, shares)
    if bias_share is None:  # the shares cannot be assigned to copies: check the sum over all copies
        relevance, size, output = (values.sum()[None] for values in (relevance, size, output))
        bias_share = torch.stack([share.sum() for share in shares.values()]).sum()[None]
    total = relevance + bias_share
    gap = (total - output).abs()
    if not bool((gap <= 1e-3 * output.abs() + 1e-4 * size + 1e-6).all()):
        worst = int(gap.nan_to_num(torch.inf).argmax())
        raise BadModel(
            f"LRP hands back {float(total[worst]):.4g}, the share of biases included, of an "
            f"output of {float(output[worst]):.4g}: {type(rules.net).__name__} calls an operation "
            "without a rule. Use IntegratedGradients."
        )


def _bias_share_per_copy(union: GraphBatch, shares: dict[int, Tensor]) -> Tensor | None:
    """The share of biases in each copy's output, from shares by their number of rows. (K,)

    Returns None if it is not clear to which copies the rows belong.
    """
    total = union.x.new_zeros(len(union))
    for rows, share in shares.items():
        owner = _find_row_owners(union, rows)
        if owner is None:
            return None
        total = total + _sum_per_copy(union, share[owner[0]], owner[1])
    return total


def _sum_per_copy(union: GraphBatch, values: Tensor, copy: Tensor) -> Tensor:
    """Sum values over the copies to which they belong. (n,), (n,) -> (K,)"""
    return values.new_zeros(len(union)).index_add(0, copy, values)


def _find_row_owners(union: GraphBatch, rows: int) -> tuple[Tensor, Tensor] | None:
    """Which rows belong to copies, and to which ones. (n,), (n,)

    The number of rows tells whether rows are nodes, edges, or links and graphs. Returns None if
    that is ambiguous.
    """
    kinds = [
        (union.x.size(0), (union.node_at, union.node_copy)),
        (union.edge_index.size(1), (union.edge_at, union.edge_copy)),
    ]
    if union.target_rows.size(1) != 1:
        kinds.append(
            (
                union.num_outputs,
                (union.output_row, torch.arange(len(union), device=union.graph_index.device)),
            )
        )
    fitting = [owner for size, owner in kinds if size == rows]
    return fitting[0] if len(fitting) == 1 else None
