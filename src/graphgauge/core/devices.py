"""Where things are computed."""

import torch

from graphgauge.core.errors import BadSetting


def resolve_device(name: str | None) -> torch.device:
    """The device asked for, or a GPU where there is one."""
    try:
        device = torch.device(name or ("cuda" if torch.cuda.is_available() else "cpu"))
        torch.zeros(1, device=device)
    except (RuntimeError, AssertionError) as error:
        raise BadSetting(
            f"device {name!r} cannot be used here: {str(error).splitlines()[0]}"
        ) from error
    return device
