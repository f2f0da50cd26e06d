"""The digest of a task's data, by which stored runs and trained networks name what they used."""

import hashlib

import torch
from torch_geometric.data import Data


def digest(data: Data) -> str:
    """Digest of a task's content: its name, level, kind, class names and all its tensors."""
    content = hashlib.blake2b(
        f"{data.name} {data.level} {data.task} {list(data.get('class_names') or [])}".encode(),
        digest_size=16,
    )
    for name in sorted(
        key for key, value in data.to_dict().items() if isinstance(value, torch.Tensor)
    ):
        value = data[name].detach().cpu().contiguous()
        content.update(f"{name} {value.dtype} {tuple(value.shape)}".encode())
        content.update(value.numpy().tobytes())
    return content.hexdigest()
