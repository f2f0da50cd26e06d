"""Other gradient rules for the operations of a network.

`GradientRules` intercepts every torch function that runs inside it, whether the network calls it as
a module, function or method. It also knows whether a layer is passing messages, because attention
is computed there and rules for operations between layers must not apply to it. Subclasses define
what becomes of an operation.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import TypeAlias

from torch import Tensor
from torch.nn import Module
from torch.overrides import TorchFunctionMode

from graphgauge.subgraphs import message_layers

#: a torch function such as `torch.relu`
Operation: TypeAlias = Callable[..., Tensor]
#: what an operation is called with, so far as rules use it
Operand: TypeAlias = Tensor | float
#: (activation, its input) -> the output of the activation, with other derivatives
ActivationRule: TypeAlias = Callable[[Callable[[Tensor], Tensor], Tensor], Tensor]


class GradientRules(TorchFunctionMode):
    """While active, operations of ``net`` go through `apply`.

    ``passing`` is above 0 inside `propagate` or `edge_update` of a layer.
    """

    def __init__(self, net: Module) -> None:
        super().__init__()
        self.net, self.passing = net, 0
        self.hooks = ExitStack()

    def __enter__(self) -> "GradientRules":
        for layer in message_layers(self.net):
            for register, step in (
                (layer.register_propagate_forward_pre_hook, 1),
                (layer.register_propagate_forward_hook, -1),
                (layer.register_edge_update_forward_pre_hook, 1),
                (layer.register_edge_update_forward_hook, -1),
            ):
                self.hooks.callback(register(self._count_nesting(step)).remove)
        self.add_hooks()
        super().__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        super().__exit__(*error)
        self.hooks.close()

    def __torch_function__(
        self,
        func: Operation,
        types: object,
        args: tuple[Operand, ...] = (),
        kwargs: dict[str, Operand] | None = None,
    ) -> Tensor:
        return self.apply(func, getattr(func, "__name__", ""), args, kwargs or {})

    def apply(
        self, func: Operation, name: str, args: tuple[Operand, ...], kwargs: dict[str, Operand]
    ) -> Tensor:
        """Execute one operation; subclasses change how.

        Args:
            func: The operation.
            name: Its name, such as "relu_"; empty for operations without one.
            args: The positional arguments of the call.
            kwargs: The keyword arguments of the call.
        """
        return func(*args, **kwargs)

    def add_hooks(self) -> None:
        """Add hooks that a subclass needs; ``self.hooks`` removes them at the end."""

    def apply_activation_rule(
        self,
        rule: ActivationRule,
        func: Operation,
        args: tuple[Operand, ...],
        kwargs: dict[str, Operand],
    ) -> Tensor:
        """Return ``rule(act, x)`` for an activation, and write it into x if the activation does.

        Args:
            rule: What becomes of the activation.
            func: The activation.
            args: The positional arguments of the call; x is the first.
            kwargs: The keyword arguments of the call; x may be given as ``input``.
        """
        rest = dict(kwargs)
        x, *others = args or (rest.pop("input"),)
        assert isinstance(x, Tensor)
        in_place = False

        def act(inner: Tensor) -> Tensor:
            nonlocal in_place
            out = func(inner, *others, **rest)
            in_place = out is inner
            return out

        out = rule(act, x)
        return x.copy_(out) if in_place else out

    def _count_nesting(self, step: int) -> Callable[..., None]:
        """A hook that counts the nesting of message passing."""

        def hook(*_: object) -> None:
            self.passing += step

        return hook


@contextmanager
def freeze_parameters(net: Module) -> Iterator[None]:
    """Switch off the gradients of all parameters.

    Inside, only what depends on the input has a gradient.
    """
    learning = [parameter for parameter in net.parameters() if parameter.requires_grad]
    try:
        for parameter in learning:
            parameter.requires_grad_(False)
        yield
    finally:
        for parameter in learning:
            parameter.requires_grad_(True)
