"""LRP as Captum computes it for a PyG network, as changed gradients of one forward pass.

Captum's LRP lets relevance travel in the place of gradients. With g the gradient that arrives at a
tensor, summed over all its uses, every layer without children, called as z = layer(a), changes it:

    ε-rule        z:  g → g / (z + ε)    and    a:  g → g · a         ε = 1e-9 with the sign of z, + at 0
    pass-through  a:  g → what left z                                 ReLU, Dropout, Tanh: their derivative is skipped

An ε-rule so sends R_a = a · Wᵀ(R_z / (z + ε)) through a linear layer or an aggregation; the bias
inside z keeps its share. Everything else (functional activations, attention, softmax, biases and
means after the aggregation) keeps its plain gradient. What is left at the leaves, times the
explained output f, is Captum's attribution. All rules are linear in g, so

    with captum_rules(net):
        f = outputs of a union
    grad((f.detach() * f).sum(), [x, factor])

gives the attributions of all targets. They do not add up to f: a and a message's factor both carry
the relevance of a message, the attention of a GAT carries some of its own, and the first gradient
is df/dz, which the rules take for a relevance.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from graphgauge.core.errors import BadModel

EPSILON = 1e-9
PASSED_THROUGH = (nn.ReLU, nn.Dropout, nn.Tanh)  #: these types alone, no subclasses


@contextmanager
def captum_rules(net: nn.Module) -> Iterator[None]:
    """Give the tensors of a forward pass Captum's backward rules. The rules stay on the tensors,
    also on x: take a fresh leaf.
    """
    epsilon_rule, pass_through = EpsilonRule(), PassThrough()
    with ExitStack() as stack:
        for layer in net.modules():
            if type(layer) in PASSED_THROUGH:
                stack.callback(layer.register_forward_pre_hook(pass_through.before).remove)
                stack.callback(layer.register_forward_hook(pass_through.after).remove)
            elif next(layer.children(), None) is None:
                stack.callback(layer.register_forward_hook(epsilon_rule.after).remove)
        yield


class EpsilonRule:
    """The ε-rule for all layers of a network. A tensor that enters several of them is multiplied
    once, as in Captum.
    """

    def __init__(self) -> None:
        self.multiplied: dict[
            int, Tensor
        ] = {}  # by identity; holding the tensors keeps their identities apart

    def after(self, layer: nn.Module, inputs: tuple[Any, ...], output: Any) -> Tensor:
        """After ``layer``: hook what went in and what came out; a clone goes on, so that later
        rules come before this one.
        """
        if not isinstance(output, Tensor):
            raise BadModel(
                f"LRP(variant='captum') has no rule for {type(layer).__name__}, which returns a {type(output).__name__}. "
                "Use LRP() for this network, or another explainer."
            )
        for entered in inputs:
            if is_on_the_way(entered) and id(entered) not in self.multiplied:
                self.multiplied[id(entered)] = entered
                entered.register_hook(times(entered.detach()))
        if is_on_the_way(output):
            output.register_hook(divided_by(stabilised(output.detach())))
        return output.clone()


class PassThrough:
    """The gradient behind an activation, rules on its output included, replaces the one in front of
    it.

    It is remembered per layer, not per call, as in Captum: two calls side by side can get each
    other's. Of two activations in a row (ReLU, then Tanh) both derivatives are skipped here, in
    Captum only one.
    """

    def __init__(self) -> None:
        self.left: dict[nn.Module, Tensor] = {}

    def before(self, layer: nn.Module, inputs: tuple[Any, ...]) -> Tensor:
        """Before ``layer``: its input takes its output's gradient, if one arrived. A clone goes in,
        which it may write into.
        """
        (entered,) = inputs
        if is_on_the_way(entered):
            entered.register_hook(lambda gradient: self.left.get(layer))
        return entered.clone()

    def after(self, layer: nn.Module, inputs: tuple[Any, ...], output: Tensor) -> None:
        """After ``layer``: remember the gradient of its output once all other rules have changed
        it.
        """
        if output.grad_fn is not None:
            output.grad_fn.register_prehook(
                lambda gradients: self.left.update({layer: gradients[0]})
            )


def is_on_the_way(value: Any) -> bool:
    """Whether relevance can pass through what enters or leaves a layer. It ends at parameters,
    which outlive the pass.
    """
    return isinstance(value, Tensor) and value.requires_grad and not isinstance(value, nn.Parameter)


def times(factor: Tensor) -> Callable[[Tensor], Tensor]:
    """A hook that multiplies gradients."""
    return lambda gradient: gradient * factor


def divided_by(divisor: Tensor) -> Callable[[Tensor], Tensor]:
    """A hook that divides gradients."""
    return lambda gradient: gradient / divisor


def stabilised(z: Tensor) -> Tensor:
    """Z moved away from 0 by ε.

    >>> stabilised(torch.tensor([0.0], dtype=torch.float64)).item()
    1e-09
    """
    return torch.where(z < 0, z - EPSILON, z + EPSILON)
