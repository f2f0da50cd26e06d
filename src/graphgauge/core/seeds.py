"""Seeds derived from content: what a random number is for decides which number it is.

A seed is a hash of the run's seed and of everything that names the draw (task, target, reference,
purpose, occurrence ...). So a number does not depend on the order of the work, on the batch size,
on the number of workers or on which other explainers take part, and `PYTHONHASHSEED` plays no role.
"""

import hashlib
import json
from functools import lru_cache
from operator import index
from typing import TYPE_CHECKING, Any

from graphgauge.core.errors import BadSetting

if TYPE_CHECKING:
    import torch


def derive_seed(run_seed: int, *content: Any) -> int:
    """A seed in [0, 2^63) from a run's seed and from what the random number is for.

    ``content`` may hold None, booleans, integers, floats, strings and (nested) tuples or lists of
    these; a tuple and a list with the same items are the same content, 1, 1.0, True and "1" are
    not.

    >>> derive_seed(0, "cora", 17, "random curve") == derive_seed(0, "cora", 17, "random curve")
    True
    >>> derive_seed(0, "cora", 17) == derive_seed(0, "cora", "17")
    False
    """
    # the same text as json.dumps of the whole list, in less than half of its time
    text = f"[{','.join([str(check_seed(run_seed)), *map(_json_text, content)])}]"
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big") >> 1


def check_seed(seed: Any) -> int:
    """Refuse what cannot start a random stream."""
    if isinstance(seed, bool) or not hasattr(seed, "__index__") or not 0 <= index(seed) < 2**63:
        raise BadSetting(f"seed must be a whole number from 0 to 2^63 - 1, but {seed!r} was given.")
    return index(seed)


def _json_text(value: Any) -> str:
    """``value`` as a text of JSON that tells types apart.

    >>> _json_text(("a", 1, 1.0, None))
    '["list",["a",1,["float","0x1.0000000000000p+0"],null]]'
    """
    kind = type(value)
    if kind is int:
        return str(value)
    if kind is str:
        return _quoted_text(value)
    return json.dumps(_typed_json_value(value), ensure_ascii=True, separators=(",", ":"))


@lru_cache(maxsize=1024)
def _quoted_text(value: str) -> str:
    """A text as JSON writes it; the words of seeds are few."""
    return json.dumps(value, ensure_ascii=True)


def _typed_json_value(value: Any) -> Any:
    """``value`` as JSON that tells types apart; refuses what has no stable text (sets, tensors,
    objects).
    """
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return ["float", value.hex()]
    if isinstance(value, (tuple, list)):
        return ["list", [_typed_json_value(item) for item in value]]
    raise BadSetting(
        f"a seed cannot be derived from {type(value).__name__} {value!r}: use numbers, strings or "
        "tuples."
    )


def make_generator(seed: int) -> "torch.Generator":
    """Make a new random generator on the CPU.

    Numbers are drawn on the CPU, so that a seed gives the same ones on every device.
    """
    import torch

    return torch.Generator().manual_seed(seed)
