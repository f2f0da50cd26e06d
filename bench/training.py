"""How much faster are networks trained together than one after another?

    python bench/training.py [--networks 45] [--hidden 16] [--epochs 30] [--device cpu]

BA-Shapes (700 nodes, 3,942 edges), node classes. The peer is the same loop with PyG's layers and
``torch.optim.Adam``; both take the validation loss after each epoch, and none stops early.
"""

import argparse
from functools import partial

import torch
from timing import once
from torch.nn.functional import cross_entropy
from torch_geometric.data import Data

from graphgauge.benchmark import StoppingRule, TrainingRecipe, train_networks
from graphgauge.datasets import ba_shapes, create_network


def task(device: str) -> Data:
    """BA-Shapes as a task."""
    data = ba_shapes()
    data.name, data.level, data.task = "BA-Shapes", "node", "classification"
    return data.to(device)


def one_after_another(data: Data, conv: str, recipes: list[TrainingRecipe], epochs: int) -> None:
    """The usual loop."""
    for recipe in recipes:
        net = create_network(data, conv, recipe.hidden, recipe.dropout, seed=recipe.seed).to(
            data.x.device
        )
        optimiser = torch.optim.Adam(
            net.parameters(), lr=recipe.learning_rate, weight_decay=recipe.weight_decay
        )
        for _ in range(epochs):
            net.train()
            optimiser.zero_grad()
            cross_entropy(
                net(data.x, data.edge_index)[data.train_mask], data.y[data.train_mask]
            ).backward()
            optimiser.step()
            with torch.no_grad():
                float(
                    cross_entropy(
                        net.eval()(data.x, data.edge_index)[data.val_mask], data.y[data.val_mask]
                    )
                )


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    for name, value in (("--networks", 45), ("--hidden", 16), ("--epochs", 30)):
        parser.add_argument(name, type=int, default=value)
    parser.add_argument("--device", default="cpu")
    given = parser.parse_args()
    data = task(given.device)
    recipes = [
        TrainingRecipe(given.hidden, 1e-3, 1e-4, (0.0, 0.2, 0.5)[number % 3], seed=number)
        for number in range(given.networks)
    ]
    stopping = StoppingRule(given.epochs, given.epochs)
    for conv in ("gcn", "gat"):
        train_networks(data, conv, recipes[:2], StoppingRule(2))  # to warm up
        together = once(partial(train_networks, data, conv, recipes, stopping))
        alone = once(partial(one_after_another, data, conv, recipes, given.epochs))
        print(
            f"{conv}: {given.networks} networks, {given.epochs} epochs: one after another "
            f"{alone:.2f} s, together {together:.2f} s, {alone / together:.1f} times as fast"
        )


if __name__ == "__main__":
    main()
