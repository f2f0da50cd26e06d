"""Training of many networks at once: the paper's rule, for each network as if it were alone.

Full batch, Adam (with L2 weight decay, as ``torch.optim.Adam`` does it) on the training part, at most 200 epochs. After each
epoch the loss on the validation part is taken without dropout; the weights with the lowest one are kept, and a network stops when
it has not gone lower for 10 epochs. Each network has its own learning rate, weight decay, dropout and random numbers, so its
company changes nothing but the order in which a product is summed. Stopped networks leave once they are half of the stack.

With g the gradient, t the epoch, learning rate r and weight decay w:

    g <- g + w theta      m <- m + 0.1 (g - m)      v <- 0.999 v + 0.001 g²
    theta <- theta - r / (1 - 0.9^t)  m / (sqrt(v / (1 - 0.999^t)) + 1e-8)
"""

from collections.abc import Iterator
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

EPOCHS, PATIENCE = 200, 10
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
    """The best weights of one network, on the CPU, the validation loss they have, the epoch that gave them and the last epoch."""

    state: dict[str, Tensor]
    val_loss: float
    best_epoch: int
    epochs: int


def train(
    data: Data, conv: str, recipes: list[Recipe], epochs: int = EPOCHS, patience: int = PATIENCE, budget: int | str | None = None
) -> list[Trained]:
    """Train one network per recipe, all of one hidden size, where ``data`` is; as many at once as memory allows."""
    if len({(recipe.hidden, recipe.bias) for recipe in recipes}) != 1 or epochs < 1 or patience < 1:
        raise BadSetting("train needs recipes of one hidden size and decoder, and at least one epoch of training and of patience.")
    inputs, plan = prepare(data, conv), architecture(data, conv, recipes[0].hidden, 0.0, recipes[0].bias)
    at_once = networks_at_once(inputs, plan, data, budget)
    parts = [recipes[start : start + at_once] for start in range(0, len(recipes), at_once)]
    return [done for part in parts for done in Run(data, inputs, plan, part).finish(epochs, patience)]


def networks_at_once(inputs: Inputs, plan: Architecture, data: Data, budget: int | str | None) -> int:
    """How many networks fit into the budget (default: a quarter of what is free), counted from their largest tensors."""
    labelled = sum(len(part.label) for part in inputs.part.values())
    wide = data.num_nodes * (14 * plan.hidden + 8 * plan.outputs) + plan.num_features * plan.hidden * 8
    long = len(inputs.edges) * (24 if plan.conv == "gat" else 6) + labelled * (12 + 4 * plan.classes)
    count = budget_bytes(budget, data.x.device) // ((wide + long) * data.x.element_size())
    if count < 1:
        raise OutOfMemory("not even one network of this task fits into the memory budget. Free memory or use another device.")
    return min(count, LARGEST_INDEX // max(len(inputs.edges), labelled, data.num_nodes))


class Run:
    """The networks of one stack on their way: those that still learn, and what was kept of each."""

    def __init__(self, data: Data, inputs: Inputs, plan: Architecture, recipes: list[Recipe]) -> None:
        nets = [network(data, plan.conv, r.hidden, r.dropout, r.bias, r.seed).to(data.x.device) for r in recipes]
        self.inputs, self.plan, self.parameters = inputs, plan, Parameters(nets[0])
        self.theta = self.parameters.theta(nets)
        self.mean, self.square = torch.zeros_like(self.theta), torch.zeros_like(self.theta)
        self.rate, self.decay, self.dropped = (
            self.theta.new_tensor(column)[:, None]
            for column in zip(*[(r.learning_rate, r.weight_decay, r.dropout) for r in recipes], strict=True)
        )
        self.random = [torch.Generator(data.x.device).manual_seed(derive_seed(r.seed, "dropout")) for r in recipes]
        self.has_dropout = [r.dropout > 0 for r in recipes]
        self.number = torch.arange(len(recipes), device=data.x.device)
        self.best, self.best_theta = torch.full_like(self.rate[:, 0], torch.inf), self.theta.clone()
        self.best_epoch, self.last_epoch = torch.zeros_like(self.number), torch.zeros_like(self.number)
        self.waited = torch.zeros_like(self.number)
        self.done: dict[int, Trained] = {}
        self.stack = Stack(inputs, plan, self.parameters, len(recipes))

    def finish(self, epochs: int, patience: int) -> list[Trained]:
        """Train until each has stopped."""
        count = len(self.number)
        for epoch in range(1, epochs + 1):
            self.step(epoch)
            learns = self.judge(epoch, patience).tolist()
            advance(count / epochs)
            if sum(learns) <= len(learns) / 2:
                self.release(learns)
            if not len(self.number):
                advance(count * (1 - epoch / epochs))
                break
        self.release([False] * len(self.number))
        return [self.done[number] for number in range(count)]

    def step(self, epoch: int) -> None:
        """One step of Adam for all."""
        theta = self.theta.detach().requires_grad_()
        (slope,) = torch.autograd.grad(self.stack.losses(theta, "train", self.kept()).sum(), theta)
        slope = slope.add_(self.decay * self.theta)
        self.mean.lerp_(slope, 1 - BETAS[0])
        self.square.mul_(BETAS[1]).addcmul_(slope, slope, value=1 - BETAS[1])
        spread = (self.square.sqrt() / (1 - BETAS[1] ** epoch) ** 0.5).add_(EPSILON)
        self.theta = self.theta - self.rate / (1 - BETAS[0] ** epoch) * self.mean / spread

    def kept(self) -> Tensor | None:
        """Dropout's factors: 0, or 1 / (1 - p); each network draws from its own stream.  (K, N, D)"""
        if not any(self.has_dropout):
            return None
        draw = self.theta.new_ones(len(self.number), self.inputs.edges.num_rows, self.plan.hidden)
        for row, random, wanted in zip(draw, self.random, self.has_dropout, strict=True):
            if wanted:
                row.uniform_(generator=random)
        dropped = self.dropped[..., None]
        return (draw >= dropped) / (1 - dropped)

    @torch.no_grad()
    def judge(self, epoch: int, patience: int) -> Tensor:
        """Take the validation loss, keep what is best, and say who goes on.  (K,)"""
        loss, learns = self.stack.losses(self.theta, "val"), self.waited < patience
        better = learns & (loss < self.best)
        self.best = torch.where(better, loss, self.best)
        self.best_theta = torch.where(better[:, None], self.theta, self.best_theta)
        self.best_epoch = torch.where(better, epoch, self.best_epoch)
        self.last_epoch = torch.where(learns, epoch, self.last_epoch)
        self.waited = torch.where(better, 0, self.waited + 1).where(learns, self.waited)
        return self.waited < patience

    def release(self, learns: list[bool]) -> None:
        """Write down who has stopped and go on with the rest."""
        stopped = [place for place, goes_on in enumerate(learns) if not goes_on]
        self.done.update(self.results(stopped))
        rest = [place for place, goes_on in enumerate(learns) if goes_on]
        index = torch.tensor(rest, dtype=torch.int64, device=self.theta.device)
        for name in ("theta", "mean", "square", "rate", "decay", "dropped", "number", "best", "best_theta", "best_epoch"):
            setattr(self, name, getattr(self, name)[index])
        self.last_epoch, self.waited = self.last_epoch[index], self.waited[index]
        self.random, self.has_dropout = [self.random[place] for place in rest], [self.has_dropout[place] for place in rest]
        if rest:
            self.stack = Stack(self.inputs, self.plan, self.parameters, len(rest))

    def results(self, places: list[int]) -> Iterator[tuple[int, Trained]]:
        """What is kept of the networks at these places of the stack."""
        columns = torch.stack([self.number, self.best_epoch, self.last_epoch], 1).tolist()
        for place in places:
            number, best_epoch, last_epoch = columns[place]
            state = self.parameters.state(self.best_theta[place].cpu())
            yield number, Trained(state, float(self.best[place]), best_epoch, last_epoch)


def rebuilt(plan: Architecture, state: dict[str, Tensor]) -> nn.Module:
    """The network with these weights, in evaluation mode."""
    from graphgauge.core.randomness import seeded_globally

    with seeded_globally(0):
        net = plan.build()
    net = net.to(next(iter(state.values())).dtype)
    net.load_state_dict(state)
    return net.eval()
