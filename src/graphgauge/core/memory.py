"""How much memory a batched call may take."""

import re
from typing import TYPE_CHECKING

from graphgauge.core.errors import BadSetting

if TYPE_CHECKING:
    import torch

_UNITS = {
    "B": 1,
    "KB": 10**3,
    "MB": 10**6,
    "GB": 10**9,
    "TB": 10**12,
    "KIB": 2**10,
    "MIB": 2**20,
    "GIB": 2**30,
    "TIB": 2**40,
}
_FRACTION_OF_FREE = 0.25


def parse_bytes(budget: int | str) -> int:
    """A budget in bytes.

    >>> parse_bytes("2GiB"), parse_bytes("1.5 MB"), parse_bytes(4096)
    (2147483648, 1500000, 4096)
    """
    if isinstance(budget, int) and not isinstance(budget, bool) and budget > 0:
        return budget
    match = (
        re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([KMGT]?I?B)\s*", budget.upper())
        if isinstance(budget, str)
        else None
    )
    if match is None or float(match[1]) == 0:
        raise BadSetting(
            f"memory_budget must be bytes or a text such as '2GiB' or '500MB', but {budget!r} was "
            "given."
        )
    return int(float(match[1]) * _UNITS[match[2]])


def _free_bytes(device: "torch.device") -> int:
    """What is free on ``device`` now; on a CPU also below the process's address-space limit."""
    import torch

    if device.type == "cuda":
        return torch.cuda.mem_get_info(device)[0]
    import psutil

    free = psutil.virtual_memory().available
    limit = _address_space_left()
    return free if limit is None else min(free, limit)


def _address_space_left() -> int | None:
    """Bytes this process may still map under RLIMIT_AS; None where there is no such limit."""
    try:
        import resource
    except ImportError:  # Windows
        return None
    import psutil

    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    return (
        None
        if limit == resource.RLIM_INFINITY
        else max(0, limit - psutil.Process().memory_info().vms)
    )


def budget_bytes(budget: int | str | None, device: "torch.device") -> int:
    """The bytes a call may use: as asked, or a quarter of what is free on ``device``."""
    return (
        max(1, int(_free_bytes(device) * _FRACTION_OF_FREE))
        if budget is None
        else parse_bytes(budget)
    )
