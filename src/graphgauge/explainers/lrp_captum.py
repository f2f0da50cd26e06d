"""LRP as Captum computes it for a PyG network, as modified gradients of one forward pass.

Captum's LRP propagates relevance in place of gradients. Let g be the gradient that arrives at a
tensor, summed over all its uses. Every layer without children, called as z = layer(a), modifies it:

    ε-rule        z:  g → g / (z + ε)    and    a:  g → g · a         ε = 1e-9 with the sign of z
    pass-through  a:  g → gradient at z                               ReLU, Dropout, Tanh

So an ε-rule propagates R_a = a · Wᵀ(R_z / (z + ε)) through a linear layer or an aggregation, and
the bias in z keeps its share. Pass-through layers skip their derivative. Everything else
(functional activations, attention, softmax, biases and means after the aggregation) keeps its plain
gradient.

The result at the leaves, times the explained output f, is Captum's attribution. All rules are
linear in g, so

    with captum_rules(net):
        f = outputs of a batch
    grad((f.detach() * f).sum(), [x, factor])

gives the attributions of all targets. They do not sum to f: a message's relevance is counted both
at a and at the message's factor, the attention of a GAT has relevance of its own, and the first
gradient is df/dz, which the rules treat as a relevance.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import TypeGuard

import torch
from torch import Tensor, nn

from graphgauge.core import BadModel

_EPSILON = 1e-9
PASS_THROUGH_MODULES = (nn.ReLU, nn.Dropout, nn.Tanh)  #: exactly these types, no subclasses


@contextmanager
def captum_rules(net: nn.Module) -> Iterator[None]:
    """Apply Captum's backward rules to the tensors of a forward pass of ``net``.

    The rules stay on the tensors after the pass, also on x, so use a new leaf for each pass.
    """
    epsilon_rule, pass_through = _EpsilonRule(), _PassThrough()
    with ExitStack() as stack:
        for layer in net.modules():
            if type(layer) in PASS_THROUGH_MODULES:
                stack.callback(layer.register_forward_pre_hook(pass_through.before).remove)
                stack.callback(layer.register_forward_hook(pass_through.after).remove)
            elif next(layer.children(), None) is None:
                stack.callback(layer.register_forward_hook(epsilon_rule.after).remove)
        yield


class _EpsilonRule:
    """The ε-rule for all layers of a network.

    A tensor that enters several layers is multiplied once, as in Captum.
    """

    def __init__(self) -> None:
        #: by id; holding the tensors keeps their ids unique
        self.multiplied: dict[int, Tensor] = {}

    def after(self, layer: nn.Module, inputs: tuple[object, ...], output: object) -> Tensor:
        """Forward hook: add gradient hooks to the inputs and the output of a layer.

        Args:
            layer: The layer.
            inputs: What it was called with.
            output: What it returned.

        Returns:
            A clone of the output, so that hooks of later layers run before those of this one.
        """
        if not isinstance(output, Tensor):
            raise BadModel(
                f"LRP(variant='captum') has no rule for {type(layer).__name__}, which returns a "
                f"{type(output).__name__}. Use LRP() for this network, or another explainer."
            )
        for entered in inputs:
            if _carries_relevance(entered) and id(entered) not in self.multiplied:
                self.multiplied[id(entered)] = entered
                entered.register_hook(_multiply_gradient(entered.detach()))
        if _carries_relevance(output):
            output.register_hook(_divide_gradient(_stabilise_denominator(output.detach())))
        return output.clone()


class _PassThrough:
    """Replaces the gradient in front of an activation by the gradient behind it.

    The gradient is remembered per layer, not per call, as in Captum: two parallel calls of a layer
    can get each other's. If two activations follow each other (ReLU, then Tanh), both derivatives
    are skipped here, and only one in Captum.
    """

    def __init__(self) -> None:
        self.left: dict[nn.Module, Tensor] = {}

    def before(self, layer: nn.Module, inputs: tuple[Tensor]) -> Tensor:
        """Forward pre-hook: give the input of a layer its output's gradient, if one has arrived.

        Args:
            layer: The layer.
            inputs: Its only input.

        Returns:
            A clone of the input, so that the layer can work in place.
        """
        (entered,) = inputs
        if _carries_relevance(entered):
            entered.register_hook(lambda gradient: self.left.get(layer))
        return entered.clone()

    def after(self, layer: nn.Module, inputs: tuple[object, ...], output: Tensor) -> None:
        """Forward hook: remember the gradient of the output, modified by all other rules.

        Args:
            layer: The layer.
            inputs: What it was called with; not used.
            output: What it returned.
        """
        if output.grad_fn is not None:
            output.grad_fn.register_prehook(
                lambda gradients: self.left.update({layer: gradients[0]})
            )


def _carries_relevance(value: object) -> TypeGuard[Tensor]:
    """Whether a tensor carries relevance. Parameters do not; they outlive the pass."""
    return isinstance(value, Tensor) and value.requires_grad and not isinstance(value, nn.Parameter)


def _multiply_gradient(factor: Tensor) -> Callable[[Tensor], Tensor]:
    """A gradient hook that multiplies by ``factor``."""
    return lambda gradient: gradient * factor


def _divide_gradient(divisor: Tensor) -> Callable[[Tensor], Tensor]:
    """A gradient hook that divides by ``divisor``."""
    return lambda gradient: gradient / divisor


def _stabilise_denominator(z: Tensor) -> Tensor:
    """Add ε to z with the sign of z.

    >>> _stabilise_denominator(torch.tensor([0.0], dtype=torch.float64)).item()
    1e-09
    """
    return torch.where(z < 0, z - _EPSILON, z + _EPSILON)
