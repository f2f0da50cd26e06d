"""A made-up bank: accounts that lend to each other. An account defaults if its debts are high, or
if much money of its own lies with accounts that defaulted before.
"""

import torch
from torch_geometric.data import Data

FEATURES = ["income", "debt", "savings", "age", "years as a customer", "prior default"]
NODES, LOANS = 300, 2  # each account has lent to so many others


def accounts(seed: int = 0) -> Data:
    """The graph: x (300, 6), edge_attr (E, 2) (amount and age of the loan), y (300,), test_mask
    (300,).
    """
    draw = torch.Generator().manual_seed(seed)
    x = torch.randn(NODES, len(FEATURES), generator=draw)
    x[:, 5] = (torch.rand(NODES, generator=draw) < 0.25).float()
    lender = torch.arange(NODES).repeat_interleave(LOANS)
    borrower = (lender + torch.randint(1, NODES, lender.shape, generator=draw)) % NODES
    edge_index = torch.stack([borrower, lender]).unique(
        dim=1
    )  # what is known of borrowers travels to the lender
    edge_attr = torch.rand(edge_index.size(1), 2, generator=draw)  # amount, age of the loan
    lost = torch.zeros(NODES).index_add(0, edge_index[1], edge_attr[:, 0] * x[edge_index[0], 5])
    risk = 1.2 * x[:, 1] - 0.8 * x[:, 0] + 2.5 * lost - 1.5
    return Data(
        x=x,
        edge_index=edge_index,
        edge_attr=edge_attr,
        y=(risk > 0).long(),
        test_mask=torch.rand(NODES, generator=draw) < 0.3,
        feature_names=FEATURES,
        class_names=["repays", "defaults"],
    )
