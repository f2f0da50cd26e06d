"""Predictions of many edited copies: one call of the network per copy on the whole graph against
unions of copies.

    python bench/unions.py [--copies 2000] [--repeat 3] [--budgets]

BA-Shapes, a trained GCN, copies of ten targets' computation graphs with one edge silenced in each.
``--budgets`` also shows copies per second against the memory budget.
"""

import argparse
from functools import partial

import torch
from timing import seconds
from torch import Tensor

from graphgauge.datasets import ba_shapes, trained_gcn
from graphgauge.execution import GraphBatch
from graphgauge.models import NodeClassificationModel


def silence_one(union: GraphBatch) -> GraphBatch:
    """Copy k without the message of its edge number k (counted around)."""
    number = union.copy % union.graphs.num_edges[union.graph_index].clamp(min=1)
    return union.with_mask((union.edge_position != number[union.edge_copy]).to(union.x.dtype))


def one_by_one(model: NodeClassificationModel, copies: int) -> None:
    """The peer: a forward pass over the whole graph for each copy."""
    with torch.no_grad():
        for _ in range(copies):
            model.net(model.source.x, model.source.edge_index)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--copies", type=int, default=2000)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--budgets", action="store_true")
    options = parser.parse_args()
    data = ba_shapes()
    model = NodeClassificationModel(trained_gcn(data, epochs=20), data)
    graphs = model.computation_graphs(range(300, 700, 40))
    of: Tensor = torch.arange(options.copies) % len(graphs)
    peer = seconds(lambda: one_by_one(model, options.copies // 10), 1) * 10
    mine = seconds(lambda: model.pred_copies(graphs, of, silence_one), options.repeat)
    print(f"{options.copies} edited copies, {torch.get_num_threads()} threads")
    print(f"whole graph, one call per copy    {peer:8.3f} s  (a tenth of them measured)")
    print(f"unions of computation graphs      {mine:8.3f} s  {peer / mine:6.1f} times as fast")
    for budget in ("4MiB", "16MiB", "64MiB", "256MiB", "1GiB", "4GiB") if options.budgets else ():
        limited = NodeClassificationModel(model.net, data, memory_budget=budget)
        chosen = limited.computation_graphs(range(300, 700, 40))
        spent = seconds(
            partial(limited.pred_copies, chosen, of, silence_one),
            options.repeat,
        )
        print(f"  budget {budget:>7}: {options.copies / spent:10.0f} copies per second")


if __name__ == "__main__":
    main()
