"""Parsed data sets, kept so that the next load is quick: tensors as safetensors, texts and a
checksum as JSON, no pickle.

A kept set is named after the checksums of the raw files it was made of and the version of this
format, so another raw file or another version never meets it. Each file is written as a whole, the
JSON last. Whatever does not match its checksum is made anew.
"""

import json
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from safetensors.torch import load, save
from torch import Tensor
from torch_geometric.data import Data

from graphgauge.core.digests import sha256_hex
from graphgauge.core.errors import GraphgaugeWarning
from graphgauge.datasets.files import cache_folder, sha256, write_whole

FORMAT = 1  #: raised whenever a parser gives something else for the same files


def cached(name: str, contents: Mapping[str, bytes], make: Callable[[], Data]) -> Data:
    """The parsed data set from the cache, or made and kept."""
    stem = cache_folder() / "processed" / f"{name}-{key_of(name, contents)}"
    found = read(stem)
    if found is not None:
        return found
    made = make()
    store(stem, made)
    return made


def key_of(name: str, contents: Mapping[str, bytes]) -> str:
    """Names a parsed set by what it is made of."""
    parts = [FORMAT, name, sorted((file, sha256(content)) for file, content in contents.items())]
    return sha256_hex(json.dumps(parts))[:24]


def read(stem: Path) -> Data | None:
    """What was kept, or None where there is nothing or it is damaged."""
    try:
        about = json.loads(stem.with_suffix(".json").read_bytes())
        content = stem.with_suffix(".safetensors").read_bytes()
        return (
            Data(**load(content), **about["texts"])
            if about["sha256"] == digest(content, about["texts"])
            else None
        )
    except (OSError, ValueError, KeyError, TypeError):  # not there, not JSON, not ours
        return None


def digest(content: bytes, texts: dict[str, Any]) -> str:
    """The checksum of tensors and texts together."""
    return sha256(content + json.dumps(texts).encode())


def store(stem: Path, data: Data) -> None:
    """Write both files; a cache that cannot be written to is told, and does not stop the load."""
    tensors, texts = parts_of(data)
    content = save(tensors)
    try:
        write_whole(stem.with_suffix(".safetensors"), content)
        write_whole(
            stem.with_suffix(".json"),
            json.dumps({"sha256": digest(content, texts), "texts": texts}).encode(),
        )
    except OSError as error:
        warnings.warn(
            f"The parsed data set could not be kept in {stem.parent}: {error}. It will be parsed again next time; "
            "name a folder that can be written to in GRAPHGAUGE_CACHE.",
            GraphgaugeWarning,
            stacklevel=2,
        )


def parts_of(data: Data) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Tensors, and what is not a tensor (strings and lists of strings)."""
    items = data.to_dict()
    tensors = {key: value.contiguous() for key, value in items.items() if isinstance(value, Tensor)}
    return tensors, {key: value for key, value in items.items() if key not in tensors}
