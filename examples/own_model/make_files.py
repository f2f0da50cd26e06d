"""Train the network in a few seconds and write what graphgauge needs: weights, graph and project
file (`python make_files.py`).
"""

import argparse
from pathlib import Path

import torch
from safetensors.torch import save_model
from sage_example import accounts, make_net
from torch.nn.functional import cross_entropy

from graphgauge.datasets import save_graph

PROJECT = """\
name: accounts
model: sage_example.network:make_net
arguments: {hidden: 16}
weights: w.safetensors
data: graph.safetensors
level: node
task: classification
explainers: [input_x_gradient, saliency, {name: integrated_gradients, parameters: {steps: 20}}, \
random]
targets: {number: 60, among: test_mask}
use: {stakes: standard}
thresholds: {feature_ec: 6}     # half of the 12 entries (6 own, 6 of the neighbours); the paper's \
tenth of 6 features is below 1
names:
  node: [account, accounts]
  decision: your loan application
  groups: {accounts with a prior default: %s}
seed: 0
"""


def trained(data, epochs=150):
    """The network after training on the accounts outside the test set."""
    torch.manual_seed(0)
    net = make_net(hidden=16)
    optimizer = torch.optim.Adam(net.parameters(), lr=0.01, weight_decay=5e-4)
    for _ in range(epochs):
        optimizer.zero_grad()
        loss = cross_entropy(
            net(data.x, data.edge_index, data.edge_attr)[~data.test_mask], data.y[~data.test_mask]
        )
        loss.backward()
        optimizer.step()
    return net.eval()


def main(folder: Path) -> None:
    """Write the three files."""
    data = accounts()
    net = trained(data)
    right = net(data.x, data.edge_index, data.edge_attr).argmax(1) == data.y
    folder.mkdir(parents=True, exist_ok=True)
    save_model(net, folder / "w.safetensors")
    save_graph(data, folder / "graph.safetensors")
    (folder / "config.yaml").write_text(PROJECT % data.x[:, 5].nonzero()[:, 0].tolist())
    print(f"accuracy on the test set: {right[data.test_mask].float().mean():.2f}")
    print("wrote w.safetensors, graph.safetensors and config.yaml")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, nargs="?", default=Path("."))
    main(parser.parse_args().folder)
