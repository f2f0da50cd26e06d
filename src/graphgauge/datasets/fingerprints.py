"""The digest of a task's data, by which stored runs and trained networks name what they used."""

from collections.abc import Iterator

import torch
from torch_geometric.data import Data

from graphgauge.core import blake2b_hex


def data_digest(data: Data) -> str:
    """Digest of a task's content: its name, level, kind, class names and all its tensors."""
    return blake2b_hex(_content(data), size=16)


def _content(data: Data) -> Iterator[str | bytes]:
    """What the task is called, and then each tensor by its name, type, shape and bits."""
    yield f"{data.name} {data.level} {data.task} {list(data.get('class_names') or [])}"
    for name in sorted(
        key for key, value in data.to_dict().items() if isinstance(value, torch.Tensor)
    ):
        value = data[name].detach().cpu().contiguous()
        yield f"{name} {value.dtype} {tuple(value.shape)}"
        yield value.numpy().tobytes()
