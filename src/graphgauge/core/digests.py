"""Digests: short hexadecimal names of exactly these bytes, texts, plain data, tensors or files.

Two hash functions are in use, and stored files depend on both:

    BLAKE2b    names of settings, networks, data and decisions; they find mistakes, not forgery
    SHA-256    checksums of files, links of the audit log, digests of answers

Equal content has an equal digest on every machine and in every process.
"""

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import Tensor

_BLOCK = 2**20  #: bytes of a file that are read at a time


def blake2b_hex(content: bytes | str | Iterable[bytes | str], size: int) -> str:
    """The BLAKE2b digest as ``2 * size`` hexadecimal digits; texts are hashed as UTF-8.

    Several parts are hashed one after another, and have the digest of all of them joined.

    >>> blake2b_hex("graphgauge", size=4), blake2b_hex(["graph", b"gauge"], size=4)
    ('5a6fba72', '5a6fba72')
    """
    digest = hashlib.blake2b(digest_size=size)
    for part in [content] if isinstance(content, (bytes, str)) else content:
        digest.update(_as_bytes(part))
    return digest.hexdigest()


def sha256_hex(content: bytes | str) -> str:
    """The SHA-256 digest of bytes, or of a text as UTF-8, as 64 hexadecimal digits.

    >>> sha256_hex(b"")[:8]
    'e3b0c442'
    """
    return hashlib.sha256(_as_bytes(content)).hexdigest()


def sha256_of_file(path: Path) -> str:
    """The SHA-256 digest of a file of any size, which is read in blocks."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(_BLOCK):
            digest.update(block)
    return digest.hexdigest()


def canonical_json(content: Any) -> str:
    r"""Plain data as JSON in one form only: sorted keys, no blanks, ASCII.

    NaN and infinity raise ValueError.

    >>> canonical_json({"b": [1, None], "a": "é"})
    '{"a":"\\u00e9","b":[1,null]}'
    """
    return json.dumps(
        content, sort_keys=True, ensure_ascii=True, allow_nan=False, separators=(",", ":")
    )


def digest_of_texts(texts: Iterable[str]) -> str:
    """A name of some texts in their order, 8 hexadecimal digits.

    >>> digest_of_texts(["a", "b"]) == digest_of_texts(["ab"])
    False
    """
    return blake2b_hex("\0".join(texts), size=4)


def digest_of_tensors(tensors: "Iterable[Tensor]", size: int = 8) -> str:
    """A name of the types, shapes and bits of tensors in their order, ``2 * size`` digits long.

    >>> import torch
    >>> digest_of_tensors([torch.zeros(2)]) == digest_of_tensors([torch.zeros(1, 2)])
    False
    """
    return blake2b_hex((part for tensor in tensors for part in _tensor_parts(tensor)), size)


def _tensor_parts(tensor: "Tensor") -> tuple[str, bytes]:
    """The type and shape of a tensor, and its bits."""
    import torch

    strided = tensor.detach() if tensor.layout == torch.strided else tensor.detach().to_dense()
    plain = strided.cpu().contiguous()
    bits: bytes = plain.flatten().view(torch.uint8).numpy().tobytes()
    return f"{plain.dtype}{tuple(plain.shape)}", bits


def _as_bytes(content: bytes | str) -> bytes:
    return content.encode() if isinstance(content, str) else content
