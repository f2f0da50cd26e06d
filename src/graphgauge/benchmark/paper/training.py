"""Trains many networks at once; each learns as if it were alone.

By the paper's rule: full batch, Adam (with L2 weight decay, as in ``torch.optim.Adam``) on the
training part, with early stopping (early_stopping.py). Link networks can be trained on batches of
pairs instead (pair_batches.py). Each network has its own learning rate, weight decay, dropout and
random numbers, so the other networks change nothing but the order in which a product is summed.
With early stopping, stopped networks are removed once they are half of the stack.

With g the gradient, t the number of the step, learning rate r and weight decay w:

    g <- g + w theta      m <- m + 0.1 (g - m)      v <- 0.999 v + 0.001 g²
    theta <- theta - r / (1 - 0.9^t)  m / (sqrt(v / (1 - 0.999^t)) + 1e-8)
"""

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from graphgauge.benchmark.paper.batched_networks import (
    NetworkStack,
    ParameterLayout,
    StackInputs,
    prepare_inputs,
)
from graphgauge.benchmark.paper.block_sparse import LARGEST_INDEX
from graphgauge.benchmark.paper.early_stopping import StoppingRule, initial_best
from graphgauge.benchmark.paper.pair_batches import PairBatches, draw_batches
from graphgauge.core import BadSetting, OutOfMemory, advance_progress, budget_bytes, derive_seed
from graphgauge.datasets import Architecture, create_network, plan_architecture

_ADAM_BETAS, _ADAM_EPSILON = (0.9, 0.999), 1e-8


@dataclass(frozen=True)
class TrainingRecipe:
    """How to train one network. ``bias``: whether an inner-product decoder has a learned number."""

    hidden: int
    learning_rate: float
    weight_decay: float
    dropout: float
    bias: bool = False
    seed: int = 0


@dataclass(frozen=True)
class TrainedNetwork:
    """The kept weights of one network, on the CPU, their validation loss, the epoch of these
    weights and the last epoch. With batches of pairs, both are numbers of steps.
    """

    state: dict[str, Tensor]
    val_loss: float
    best_epoch: int
    epochs: int


def train_networks(
    data: Data,
    conv: str,
    recipes: list[TrainingRecipe],
    schedule: StoppingRule | PairBatches | None = None,
    budget: int | str | None = None,
) -> list[TrainedNetwork]:
    """Train one network per recipe, on the device of ``data``, as many at once as memory allows.

    Args:
        data: The task.
        conv: "gcn" or "gat".
        recipes: All of one hidden size and decoder.
        schedule: When to stop with full batches, by default `StoppingRule()`; or batches of pairs.
        budget: Memory that may be used, such as "2GiB"; by default a quarter of what is free.
    """
    if len({(recipe.hidden, recipe.bias) for recipe in recipes}) != 1:
        raise BadSetting(
            "train needs recipes of one hidden size and decoder; call it once for each."
        )
    schedule = schedule or StoppingRule()
    batch = schedule.pairs if isinstance(schedule, PairBatches) else 0
    if batch and data.level != "link":
        raise BadSetting(
            f"batches of pairs train networks for links, but this is a {data.level} task. Use a "
            "link task, or full batches."
        )
    inputs, plan = (
        prepare_inputs(data, conv),
        plan_architecture(data, conv, recipes[0].hidden, 0.0, recipes[0].bias),
    )
    at_once = _max_networks_at_once(inputs, plan, data, budget, batch)
    parts = [recipes[start : start + at_once] for start in range(0, len(recipes), at_once)]
    return [
        done for part in parts for done in _TrainingLoop(data, inputs, plan, part).finish(schedule)
    ]


def _max_networks_at_once(
    inputs: StackInputs, plan: Architecture, data: Data, budget: int | str | None, batch: int
) -> int:
    """How many networks fit into the memory budget, counted from their largest tensors."""
    labelled = sum(len(part.label) for part in inputs.part.values())
    wide = (
        data.num_nodes * (14 * plan.hidden + 8 * plan.outputs) + plan.num_features * plan.hidden * 8
    )
    long = len(inputs.edges) * (24 if plan.conv == "gat" else 6) + labelled * (
        12 + 4 * plan.classes
    )
    long += min(batch, labelled) * 8 * plan.outputs
    count = budget_bytes(budget, data.x.device) // ((wide + long) * data.x.element_size())
    if count < 1:
        raise OutOfMemory(
            "not even one network of this task fits into the memory budget. Free memory or use "
            "another device."
        )
    return min(count, LARGEST_INDEX // max(len(inputs.edges), labelled, data.num_nodes))


class _BatchedAdam:
    """The optimiser of K networks, each with its own learning rate and weight decay (K, 1); theta
    (K, T).
    """

    def __init__(self, theta: Tensor, rate: Tensor, decay: Tensor) -> None:
        self.theta, self.rate, self.decay = theta, rate, decay
        self.mean, self.square = torch.zeros_like(theta), torch.zeros_like(theta)
        self.steps = torch.zeros_like(rate, dtype=torch.float64)

    def step(self, slope: Tensor) -> None:
        """One step against the gradient (K, T), which is overwritten."""
        slope = slope.add_(self.decay * self.theta)
        self.steps = self.steps + 1
        mean_share, square_share = (1 - beta**self.steps for beta in _ADAM_BETAS)
        self.mean.lerp_(slope, 1 - _ADAM_BETAS[0])
        self.square.mul_(_ADAM_BETAS[1]).addcmul_(slope, slope, value=1 - _ADAM_BETAS[1])
        spread = (self.square.sqrt() / square_share.sqrt().to(slope.dtype)).add_(_ADAM_EPSILON)
        self.theta = self.theta - self.rate / mean_share.to(slope.dtype) * self.mean / spread

    def restart(self, chosen: Tensor, theta: Tensor) -> None:
        """Let the chosen networks start again from the weights ``theta``, with half the learning
        rate.  (K,) bool, (K, T)
        """
        chosen = chosen[:, None]
        self.theta = torch.where(chosen, theta, self.theta)
        self.rate = torch.where(chosen, self.rate / 2, self.rate)
        for memory in (self.mean, self.square, self.steps):
            memory.masked_fill_(chosen, 0)

    def keep(self, index: Tensor) -> None:
        """Continue with some of the networks."""
        self.theta, self.rate, self.decay = self.theta[index], self.rate[index], self.decay[index]
        self.mean, self.square = self.mean[index], self.square[index]
        self.steps = self.steps[index]


class _BatchedDropout:
    """Random factors of K hidden layers, 0 or 1 / (1 - p). Each network has its own random
    numbers.
    """

    def __init__(self, recipes: list[TrainingRecipe], device: torch.device) -> None:
        self.share = [recipe.dropout for recipe in recipes]
        self.random = [
            torch.Generator(device).manual_seed(derive_seed(recipe.seed, "dropout"))
            for recipe in recipes
        ]

    def factors(self, like: Tensor, rows: int, columns: int) -> Tensor | None:
        """Factors in the float type and on the device of ``like``; None if nothing is dropped.  (K,
        rows, columns)
        """
        if not any(self.share):
            return None
        draw = like.new_ones(len(self.share), rows, columns)
        for row, random, share in zip(draw, self.random, self.share, strict=True):
            if share > 0:
                row.uniform_(generator=random)
        dropped = like.new_tensor(self.share)[:, None, None]
        return (draw >= dropped) / (1 - dropped)

    def keep(self, positions: list[int]) -> None:
        """Continue with some of the networks."""
        self.share, self.random = (
            [self.share[position] for position in positions],
            [self.random[position] for position in positions],
        )


class _TrainingLoop:
    """The training of one stack: the networks that still learn, and the results of those that
    stopped.
    """

    def __init__(
        self, data: Data, inputs: StackInputs, plan: Architecture, recipes: list[TrainingRecipe]
    ) -> None:
        nets: list[nn.Module] = [
            create_network(data, plan.conv, r.hidden, r.dropout, r.bias, r.seed).to(data.x.device)
            for r in recipes
        ]
        self.inputs, self.plan, self.parameters = inputs, plan, ParameterLayout(nets[0])
        self.seeds = [recipe.seed for recipe in recipes]
        theta = self.parameters.theta(nets)
        rate, decay = theta.new_tensor([(r.learning_rate, r.weight_decay) for r in recipes]).t()[
            ..., None
        ]
        self.adam, self.dropout, self.best = (
            _BatchedAdam(theta, rate, decay),
            _BatchedDropout(recipes, theta.device),
            initial_best(theta),
        )
        self.number = list(range(len(recipes)))  # which recipe is in which place
        self.done: dict[int, TrainedNetwork] = {}
        self.stack = NetworkStack(inputs, plan, self.parameters, len(recipes))

    def finish(self, schedule: StoppingRule | PairBatches) -> list[TrainedNetwork]:
        """Train until each network has stopped."""
        count = len(self.number)
        if isinstance(schedule, PairBatches):
            self.train_on_batches(schedule)
        else:
            self.train_until_stopped(schedule)
        self.release([False] * len(self.number))
        return [self.done[number] for number in range(count)]

    def train_until_stopped(self, stopping: StoppingRule) -> None:
        """Train with full batches and early stopping."""
        count = len(self.number)
        for epoch in range(1, stopping.epochs + 1):
            self.step()
            self.best = self.best.after(
                epoch, self.loss(stopping.watch), self.adam.theta, stopping.patience
            )
            learns = (self.best.waited < stopping.patience).tolist()
            advance_progress(count / stopping.epochs)
            if sum(learns) <= len(learns) / 2:
                self.release(learns)
            if not self.number:
                advance_progress(count * (1 - epoch / stopping.epochs))
                break

    def train_on_batches(self, batches: PairBatches) -> None:
        """Train on batches of pairs. Nothing here waits for the device."""
        num_pairs = len(self.inputs.part["train"].label)
        rows = draw_batches(self.seeds, num_pairs, batches.pairs, self.adam.theta.device)
        self.check_divergence(0, batches)
        for step in range(1, batches.steps + 1):
            if step == batches.steps_at_full_rate + 1:
                self.adam.rate = self.adam.rate * batches.final_rate_factor
            self.step(next(rows))
            if step % batches.check_every == 0 or step == batches.steps:
                self.check_divergence(step, batches)
            advance_progress(len(self.number) / batches.steps)

    def check_divergence(self, step: int, batches: PairBatches) -> None:
        """Keep the weights of the networks that are better than before, and let those that diverged
        go back to their best weights.
        """
        loss = self.loss(batches.watch)
        self.best = self.best.after(step, loss, self.adam.theta, patience=batches.steps + 2)
        self.adam.restart(batches.has_diverged(loss, self.best.loss), self.best.theta)

    def step(self, rows: Tensor | None = None) -> None:
        """One step of Adam for all networks, on the training part or on ``rows`` of it.  (K, B)"""
        theta = self.adam.theta.detach().requires_grad_()
        keep = self.dropout.factors(theta, self.inputs.edges.num_rows, self.plan.hidden)
        (slope,) = torch.autograd.grad(self.stack.losses(theta, "train", keep, rows).sum(), theta)
        self.adam.step(slope)

    @torch.no_grad()
    def loss(self, part: str) -> Tensor:
        """The loss of each network on a part of the labels, without dropout.  (K,)"""
        return self.stack.losses(self.adam.theta, part)

    def release(self, learns: list[bool]) -> None:
        """Store the results of the networks that stopped, and continue with the others."""
        self.write_down([position for position, goes_on in enumerate(learns) if not goes_on])
        remaining = [position for position, goes_on in enumerate(learns) if goes_on]
        index = torch.tensor(remaining, dtype=torch.int64, device=self.adam.theta.device)
        self.adam.keep(index)
        self.dropout.keep(remaining)
        self.best, self.number = (
            self.best.rows(index),
            [self.number[position] for position in remaining],
        )
        if remaining:
            self.stack = NetworkStack(self.inputs, self.plan, self.parameters, len(remaining))

    @torch.no_grad()
    def write_down(self, positions: list[int]) -> None:
        """Store the results of the networks at these positions of the stack."""
        if not positions:
            return
        val_loss = self.stack.losses(self.best.theta, "val").tolist()
        best_epoch, last_epoch = self.best.epoch.tolist(), self.best.last_epoch.tolist()
        for position in positions:
            state = self.parameters.state(self.best.theta[position].cpu())
            self.done[self.number[position]] = TrainedNetwork(
                state, val_loss[position], best_epoch[position], last_epoch[position]
            )
