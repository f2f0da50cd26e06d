"""A made-up bank: accounts, transactions between them, and a network that says which accounts look
like fraud.

    accounts        600, of which one in five is in a ring of six that passes money around
    features (8)    standardised; two of them ("age of the account", "newsletter") say nothing about
                    rings
    transactions    directed, payer to payee, with three attributes: log amount, at night, abroad
    rings           pay each other larger sums, more often at night and abroad

Weeks are alike, for accounts and habits stay: nine tenths of the variance of a feature and two of
three payments are the same in every week, the rest is drawn anew. `week(0)` is what the network is
trained on; later weeks come `without` or with a drift from `DRIFTS`. Nothing here is real, and
nothing is downloaded.
"""

from collections.abc import Callable

import torch
from torch import Generator, Tensor, nn
from torch_geometric.data import Data
from torch_geometric.nn import GATConv

FEATURES = (
    "share of cash",
    "new counterparties",
    "payments at night",
    "turnover",
    "countries",
    "devices",
    "age of the account",
    "newsletter",
)
SIGNAL = torch.tensor(
    [2.0, 1.5, 1.2, 1.0, 0.8, 0.6, 0.0, 0.0]
)  #: how much a ring moves each feature, in SDs
EDGE_ATTRIBUTES = ("log amount", "at night", "abroad")
CLASSES = ("ordinary", "suspicious")
ACCOUNTS, RING, SHARE, PAYMENTS = (
    600,
    6,
    0.2,
    3,
)  #: payments per account and week, inside and outside rings
STANDING, HABIT = (
    2,
    0.9,
)  #: payments that are the same in every week; share of a feature's variance that is
SHIFT = 1.0  #: SDs that a drift moves something


class FraudGAT(nn.Module):
    """Two layers of attention that read the attributes of transactions."""

    def __init__(self, hidden: int = 16, heads: int = 2) -> None:
        super().__init__()
        self.first = GATConv(len(FEATURES), hidden, heads=heads, edge_dim=len(EDGE_ATTRIBUTES))
        self.act = nn.ReLU()
        self.second = GATConv(hidden * heads, len(CLASSES), edge_dim=len(EDGE_ATTRIBUTES))

    def forward(self, x: Tensor, edge_index: Tensor, edge_attr: Tensor) -> Tensor:
        """Logits of every account.  (N, F), (2, E), (E, 3) -> (N, 2)"""
        return self.second(self.act(self.first(x, edge_index, edge_attr)), edge_index, edge_attr)


def make_net(hidden: int = 16) -> FraudGAT:
    """The network without its weights, for the project file."""
    return FraudGAT(hidden)


# --- data -----------------------------------------------------------------------------------------


def rings(seed: int = 0) -> Tensor:
    """The ring of each account, -1 for none; the same in every week.  (N,)"""
    chosen = torch.randperm(ACCOUNTS, generator=generator(seed))[
        : int(ACCOUNTS * SHARE) // RING * RING
    ]
    return torch.full((ACCOUNTS,), -1).index_copy(0, chosen, torch.arange(len(chosen)) // RING)


def generator(*numbers: int) -> Generator:
    """Random numbers for one purpose."""
    mixed = 0
    for number in numbers:
        mixed = (mixed * 1_000_003 + number + 1) % 2**31
    return Generator().manual_seed(mixed)


def week(number: int, drift: str = "none", seed: int = 0) -> Data:
    """Features and transactions of one week, with masks for training and testing; ``drift`` is a
    name in `DRIFTS`.
    """
    ring = rings(seed)
    usual, fresh = generator(seed, 1), generator(seed, number, 3)
    habit, news = (torch.randn(ACCOUNTS, len(FEATURES), generator=draw) for draw in (usual, fresh))
    x = HABIT**0.5 * habit + (1 - HABIT) ** 0.5 * news + (ring >= 0)[:, None] * SIGNAL
    parts = [payments(ring, STANDING, usual), payments(ring, PAYMENTS - STANDING, fresh)]
    edge_index, edge_attr = (
        torch.cat([part[0] for part in parts], 1),
        torch.cat([part[1] for part in parts]),
    )
    data = Data(x=x, edge_index=edge_index, edge_attr=edge_attr, y=(ring >= 0).long())
    is_train = torch.rand(ACCOUNTS, generator=generator(seed, 2)) < 0.6
    data.train_mask, data.test_mask = is_train, ~is_train
    data.feature_names, data.class_names, data.edge_attr_names = (
        list(FEATURES),
        list(CLASSES),
        list(EDGE_ATTRIBUTES),
    )
    return DRIFTS[drift](data)


def payments(ring: Tensor, number: int, draw: Generator) -> tuple[Tensor, Tensor]:
    """So many payments of each account, and their attributes.  (2, E), (E, 3)"""
    edge_index, inside = transactions(ring, number, draw)
    return edge_index, attributes(inside, draw)


def transactions(ring: Tensor, number: int, draw: Generator) -> tuple[Tensor, Tensor]:
    """Draw payments to anybody, and inside rings; no account pays itself.

    Returns the edges, (2, E), and whether each is inside a ring, (E,).
    """
    payer = torch.arange(ACCOUNTS).repeat_interleave(number)
    anybody = (payer + torch.randint(1, ACCOUNTS, payer.shape, generator=draw)) % ACCOUNTS
    member = (ring >= 0).nonzero()[:, 0].repeat_interleave(number)
    of_ring = ring.argsort(stable=True)[-int((ring >= 0).sum()) :].view(
        -1, RING
    )  # row r: the members of ring r
    place = (of_ring[ring[member]] == member[:, None]).int().argmax(1)
    other = (place + torch.randint(1, RING, place.shape, generator=draw)) % RING
    fellow = of_ring[ring[member], other]
    edge_index = torch.stack([torch.cat([payer, member]), torch.cat([anybody, fellow])])
    return edge_index, torch.cat([torch.zeros(len(payer)), torch.ones(len(member))]).bool()


def attributes(inside: Tensor, draw: Generator) -> Tensor:
    """Log amount, at night, abroad; larger and more often inside rings.  (E, 3)"""
    amount = torch.randn(len(inside), generator=draw) + 1.5 * inside
    chance = torch.where(inside[:, None], torch.tensor([0.6, 0.5]), torch.tensor([0.15, 0.1]))
    return torch.cat(
        [amount[:, None], (torch.rand(len(inside), 2, generator=draw) < chance).float()], 1
    )


# --- what may happen later ------------------------------------------------------------------------


def without(data: Data) -> Data:
    """Nothing has changed."""
    return data


def newsletter_campaign(data: Data) -> Data:
    """A feature that the network hardly reads moves by one SD: the data drift, explanations need
    not.
    """
    data.x[:, FEATURES.index("newsletter")] += SHIFT
    return data


def cash_boom(data: Data) -> Data:
    """Everybody uses more cash, by one SD in the feature that tells rings best: data, predictions
    and explanations move.
    """
    data.x[:, FEATURES.index("share of cash")] += SHIFT
    return data


def inflation(data: Data) -> Data:
    """All amounts grow by one SD: only attributes of transactions move."""
    data.edge_attr[:, 0] += SHIFT
    return data


#: what `week` can be asked for
DRIFTS: dict[str, Callable[[Data], Data]] = {
    "none": without,
    "newsletter campaign": newsletter_campaign,
    "cash boom": cash_boom,
    "inflation": inflation,
}


def trained(data: Data, epochs: int = 100, seed: int = 0) -> FraudGAT:
    """The network, trained on the accounts of the training mask; leaves no trace in torch's random
    state.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        net = make_net()
        optimiser = torch.optim.Adam(net.parameters(), lr=0.01, weight_decay=5e-3)
        weight = torch.tensor([1.0, (1 - SHARE) / SHARE])
        for _ in range(epochs):
            optimiser.zero_grad()
            logits = net(data.x, data.edge_index, data.edge_attr)[data.train_mask]
            nn.functional.cross_entropy(logits, data.y[data.train_mask], weight).backward()
            optimiser.step()
    return net.eval()


def accuracy(net: nn.Module, data: Data) -> float:
    """Share of test accounts that are told right."""
    with torch.no_grad():
        right = net(data.x, data.edge_index, data.edge_attr).argmax(1) == data.y
    return right[data.test_mask].float().mean().item()
