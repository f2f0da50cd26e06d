"""Training of link networks on batches of labelled pairs: many more steps than with full batches.

In each step, every network computes the embeddings of all nodes, takes the loss of its own batch of
training pairs, and makes one step of Adam. The pairs are shuffled once an epoch, with a generator
for each network, and an epoch's last pairs, too few for a batch, are left out. With rate r, S steps
and a final share q, step s has

    rate(s) = r                       for s <= (1 - q) S
    rate(s) = r * final_rate_factor   afterwards

Before the first step, every ``check_every`` steps and after the last one, the loss on the watched
part is computed without dropout. The weights with the lowest loss are kept. A network whose loss is
not finite, or more than ``max_loss_ratio`` times its lowest, has diverged. It goes back to its best
weights, with half the learning rate and a new Adam.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from graphgauge.benchmark.paper.early_stopping import WATCHED_PARTS
from graphgauge.core import BadSetting, derive_seed, lookup


@dataclass(frozen=True)
class PairBatches:
    """How to train on batches of pairs: their size, the number of steps, the learning rate at the
    end, and the guard against divergence.

    >>> PairBatches(pairs=0)
    Traceback (most recent call last):
    ...
    graphgauge.core.errors.BadSetting: pairs, steps and check_every must be at least 1, but are 0, \
6000 and 100.
    """

    pairs: int = 4096  #: in a batch, or all training pairs if there are fewer
    steps: int = 6000
    final_rate_factor: float = 0.1  #: of the learning rate in the last steps
    final_share: float = 0.3  #: of the steps
    check_every: int = 100  #: steps
    max_loss_ratio: float = 2.0  #: to the lowest loss; infinity: only a NaN or inf is divergence
    watch: str = "val"

    def __post_init__(self) -> None:
        lookup(dict.fromkeys(WATCHED_PARTS), self.watch, "part to watch")
        if min(self.pairs, self.steps, self.check_every) < 1:
            raise BadSetting(
                f"pairs, steps and check_every must be at least 1, but are {self.pairs}, "
                f"{self.steps} and {self.check_every}."
            )
        if not 0 <= self.final_share <= 1 or self.final_rate_factor <= 0 or self.max_loss_ratio < 1:
            raise BadSetting(
                "final_share must be from 0 to 1, final_rate_factor above 0 and max_loss_ratio at "
                f"least 1, but they are {self.final_share}, {self.final_rate_factor} and "
                f"{self.max_loss_ratio}."
            )

    @property
    def steps_at_full_rate(self) -> int:
        """The last step before the learning rate falls.

        >>> PairBatches(steps=6000, final_share=0.3).steps_at_full_rate
        4200
        """
        return round(self.steps * (1 - self.final_share))

    def has_diverged(self, loss: Tensor, lowest: Tensor) -> Tensor:
        """Whether the loss of each network shows divergence.  (K,), (K,) -> (K,) bool"""
        return ~(loss.isfinite() & (loss <= self.max_loss_ratio * lowest))


def draw_batches(
    seeds: list[int], num_pairs: int, size: int, device: torch.device
) -> Iterator[Tensor]:
    """Batches of positions for K networks, without end. The seed of a network decides its batches,
    on every device.  (K, B)
    """
    generators = [
        torch.Generator().manual_seed(derive_seed(seed, "pair batches")) for seed in seeds
    ]
    size = min(size, num_pairs)
    while True:
        order = torch.stack([torch.randperm(num_pairs, generator=random) for random in generators])
        yield from order[:, : num_pairs // size * size].to(device).split(size, 1)
