"""What explainers require of a network: a wrapper, visible operations, full precision, masks."""

import torch

from graphgauge.core import BadModel
from graphgauge.models import BaseModel


def check_wrapped_model(model: object) -> BaseModel:
    """Raise BadModel unless the network is wrapped."""
    if not isinstance(model, BaseModel):
        raise BadModel(
            f"explain needs a wrapped network, but got {type(model).__name__}. Wrap it with its "
            "data, for example gg.NodeClassificationModel(net, data)."
        )
    return model


def can_mask_messages(model: BaseModel) -> bool:
    """Whether single messages can be multiplied by a factor, so that edges can have scores."""
    return not model.mask_support.startswith("refused")


def check_visible_operations(name: str, model: BaseModel) -> None:
    """Raise BadModel if the network's operations cannot be observed or compute in low precision.

    Operations that `torch.jit` has compiled cannot be observed.
    """
    if any(isinstance(module, torch.jit.ScriptModule) for module in model.net.modules()):
        raise BadModel(
            f"{name} follows the network's operations, which torch.jit hides: wrap the module that "
            "was compiled, or use IntegratedGradients."
        )
    check_precision(name, model)


def check_precision(name: str, model: BaseModel) -> None:
    """Raise BadModel if layers compute in float16 or bfloat16."""
    low = {
        weight.dtype
        for weight in model.net.parameters()
        if weight.dtype in (torch.float16, torch.bfloat16)
    }
    if low:
        raise BadModel(
            f"{name} mixes what layers compute with its own numbers, but "
            f"{type(model.net).__name__} computes in {str(low.pop()).removeprefix('torch.')}: use "
            "net.float(), or another explainer such as IntegratedGradients."
        )
