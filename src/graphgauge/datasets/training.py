"""Training of many networks at once: the paper's rule, for each network as if it were alone.

Full batch, Adam (with L2 weight decay, as ``torch.optim.Adam`` does it) on the training part,
stopped early (stopping.py). Each network has its own learning rate, weight decay, dropout and
random numbers, so its company changes nothing but the order in which a product is summed. Stopped
networks leave once they are half of the stack.

With g the gradient, t the epoch, learning rate r and weight decay w:

    g <- g + w theta      m <- m + 0.1 (g - m)      v <- 0.999 v + 0.001 g²
    theta <- theta - r / (1 - 0.9^t)  m / (sqrt(v / (1 - 0.999^t)) + 1e-8)
"""

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from graphgauge.core.errors import BadSetting, OutOfMemory
from graphgauge.core.memory import budget_bytes
from graphgauge.core.progress import advance
from graphgauge.core.seeds import derive_seed
from graphgauge.datasets.blocks import LARGEST_INDEX
from graphgauge.datasets.networks import Architecture, architecture, network
from graphgauge.datasets.stacks import Inputs, Parameters, Stack, prepare
from graphgauge.datasets.stopping import Stopping, best_at_start

BETAS, EPSILON = (0.9, 0.999), 1e-8


@dataclass(frozen=True)
class Recipe:
    """How one network is made. ``bias``: a learned number in an inner-product decoder."""

    hidden: int
    learning_rate: float
    weight_decay: float
    dropout: float
    bias: bool = False
    seed: int = 0


@dataclass(frozen=True)
class Trained:
    """The kept weights of one network, on the CPU, their validation loss, the epoch that gave them
    and the last epoch.
    """

    state: dict[str, Tensor]
    val_loss: float
    best_epoch: int
    epochs: int


def train(
    data: Data,
    conv: str,
    recipes: list[Recipe],
    stopping: Stopping | None = None,
    budget: int | str | None = None,
) -> list[Trained]:
    """Train one network per recipe, all of one hidden size, where ``data`` is; as many at once as
    memory allows.
    """
    if len({(recipe.hidden, recipe.bias) for recipe in recipes}) != 1:
        raise BadSetting(
            "train needs recipes of one hidden size and decoder; call it once for each."
        )
    inputs, plan = (
        prepare(data, conv),
        architecture(data, conv, recipes[0].hidden, 0.0, recipes[0].bias),
    )
    at_once = networks_at_once(inputs, plan, data, budget)
    parts = [recipes[start : start + at_once] for start in range(0, len(recipes), at_once)]
    return [
        done
        for part in parts
        for done in Run(data, inputs, plan, part).finish(stopping or Stopping())
    ]


def networks_at_once(
    inputs: Inputs, plan: Architecture, data: Data, budget: int | str | None
) -> int:
    """How many networks fit into the budget (default: a quarter of what is free), counted from
    their largest tensors.
    """
    labelled = sum(len(part.label) for part in inputs.part.values())
    wide = (
        data.num_nodes * (14 * plan.hidden + 8 * plan.outputs) + plan.num_features * plan.hidden * 8
    )
    long = len(inputs.edges) * (24 if plan.conv == "gat" else 6) + labelled * (
        12 + 4 * plan.classes
    )
    count = budget_bytes(budget, data.x.device) // ((wide + long) * data.x.element_size())
    if count < 1:
        raise OutOfMemory(
            "not even one network of this task fits into the memory budget. Free memory or use another device."
        )
    return min(count, LARGEST_INDEX // max(len(inputs.edges), labelled, data.num_nodes))


class Adam:
    """The optimiser of K networks, each with its own learning rate and weight decay (K, 1); theta
    (K, T).
    """

    def __init__(self, theta: Tensor, rate: Tensor, decay: Tensor) -> None:
        self.theta, self.rate, self.decay = theta, rate, decay
        self.mean, self.square = torch.zeros_like(theta), torch.zeros_like(theta)

    def step(self, slope: Tensor, epoch: int) -> None:
        """One step against the slope (K, T), which is used up."""
        slope = slope.add_(self.decay * self.theta)
        self.mean.lerp_(slope, 1 - BETAS[0])
        self.square.mul_(BETAS[1]).addcmul_(slope, slope, value=1 - BETAS[1])
        spread = (self.square.sqrt() / (1 - BETAS[1] ** epoch) ** 0.5).add_(EPSILON)
        self.theta = self.theta - self.rate / (1 - BETAS[0] ** epoch) * self.mean / spread

    def keep(self, index: Tensor) -> None:
        """Go on with some of the networks."""
        self.theta, self.rate, self.decay = self.theta[index], self.rate[index], self.decay[index]
        self.mean, self.square = self.mean[index], self.square[index]


class Dropout:
    """Random factors of K hidden layers: 0, or 1 / (1 - p); each network draws from its own stream."""

    def __init__(self, recipes: list[Recipe], device: torch.device) -> None:
        self.share = [recipe.dropout for recipe in recipes]
        self.random = [
            torch.Generator(device).manual_seed(derive_seed(recipe.seed, "dropout"))
            for recipe in recipes
        ]

    def factors(self, like: Tensor, rows: int, columns: int) -> Tensor | None:
        """In the float type and place of ``like``; None where nothing is dropped.
        (K, rows, columns)
        """
        if not any(self.share):
            return None
        draw = like.new_ones(len(self.share), rows, columns)
        for row, random, share in zip(draw, self.random, self.share, strict=True):
            if share > 0:
                row.uniform_(generator=random)
        dropped = like.new_tensor(self.share)[:, None, None]
        return (draw >= dropped) / (1 - dropped)

    def keep(self, places: list[int]) -> None:
        """Go on with some of the networks."""
        self.share, self.random = (
            [self.share[place] for place in places],
            [self.random[place] for place in places],
        )


class Run:
    """The networks of one stack on their way: those that still learn, and what was kept of each."""

    def __init__(
        self, data: Data, inputs: Inputs, plan: Architecture, recipes: list[Recipe]
    ) -> None:
        nets: list[nn.Module] = [
            network(data, plan.conv, r.hidden, r.dropout, r.bias, r.seed).to(data.x.device)
            for r in recipes
        ]
        self.inputs, self.plan, self.parameters = inputs, plan, Parameters(nets[0])
        theta = self.parameters.theta(nets)
        rate, decay = theta.new_tensor([(r.learning_rate, r.weight_decay) for r in recipes]).t()[
            ..., None
        ]
        self.adam, self.dropout, self.best = (
            Adam(theta, rate, decay),
            Dropout(recipes, theta.device),
            best_at_start(theta),
        )
        self.number = list(range(len(recipes)))  # which recipe is in which place
        self.done: dict[int, Trained] = {}
        self.stack = Stack(inputs, plan, self.parameters, len(recipes))

    def finish(self, stopping: Stopping) -> list[Trained]:
        """Train until each has stopped."""
        count = len(self.number)
        for epoch in range(1, stopping.epochs + 1):
            learns = self.epoch(epoch, stopping).tolist()
            advance(count / stopping.epochs)
            if sum(learns) <= len(learns) / 2:
                self.release(learns)
            if not self.number:
                advance(count * (1 - epoch / stopping.epochs))
                break
        self.release([False] * len(self.number))
        return [self.done[number] for number in range(count)]

    def epoch(self, epoch: int, stopping: Stopping) -> Tensor:
        """One step of Adam for all, then a look at the watched loss; says who goes on.  (K,) bool"""
        theta = self.adam.theta.detach().requires_grad_()
        keep = self.dropout.factors(theta, self.inputs.edges.num_rows, self.plan.hidden)
        (slope,) = torch.autograd.grad(self.stack.losses(theta, "train", keep).sum(), theta)
        self.adam.step(slope, epoch)
        with torch.no_grad():
            loss = self.stack.losses(self.adam.theta, stopping.watch)
        self.best = self.best.after(epoch, loss, self.adam.theta, stopping.patience)
        return self.best.waited < stopping.patience

    def release(self, learns: list[bool]) -> None:
        """Write down who has stopped and go on with the rest."""
        self.write_down([place for place, goes_on in enumerate(learns) if not goes_on])
        rest = [place for place, goes_on in enumerate(learns) if goes_on]
        index = torch.tensor(rest, dtype=torch.int64, device=self.adam.theta.device)
        self.adam.keep(index)
        self.dropout.keep(rest)
        self.best, self.number = self.best.rows(index), [self.number[place] for place in rest]
        if rest:
            self.stack = Stack(self.inputs, self.plan, self.parameters, len(rest))

    @torch.no_grad()
    def write_down(self, places: list[int]) -> None:
        """What is kept of the networks at these places of the stack."""
        if not places:
            return
        val_loss = self.stack.losses(self.best.theta, "val").tolist()
        best_epoch, last_epoch = self.best.epoch.tolist(), self.best.last_epoch.tolist()
        for place in places:
            state = self.parameters.state(self.best.theta[place].cpu())
            self.done[self.number[place]] = Trained(
                state, val_loss[place], best_epoch[place], last_epoch[place]
            )
