"""A cache of parsed data sets: tensors as safetensors, texts and a checksum as JSON, no pickle.

The name of a cached data set holds the checksums of its raw files and the version of this format,
so another raw file or another version never matches it. Each file is written in one step, the JSON
last. A file that does not match its checksum is parsed and written again.
"""

import json
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from safetensors.torch import load, save
from torch import Tensor
from torch_geometric.data import Data

from graphgauge.core import GraphgaugeWarning, sha256_hex
from graphgauge.datasets.raw_files import cache_folder, write_atomically

_CACHE_FORMAT = 1  #: raised whenever a parser gives something else for the same files


def load_or_parse(name: str, contents: Mapping[str, bytes], make: Callable[[], Data]) -> Data:
    """Return the parsed data set from the cache, or parse it and write it there.

    Args:
        name: Name of the data set.
        contents: Raw files by name.
        make: Parses the raw files.
    """
    stem = cache_folder() / "processed" / f"{name}-{_cache_key(name, contents)}"
    parsed = _read_parsed(stem)
    if parsed is not None:
        return parsed
    fresh = make()
    _write_parsed(stem, fresh)
    return fresh


def _cache_key(name: str, contents: Mapping[str, bytes]) -> str:
    """A digest of the name, the raw files and the format, by which a parsed data set is found
    again.
    """
    parts = [
        _CACHE_FORMAT,
        name,
        sorted((file, sha256_hex(content)) for file, content in contents.items()),
    ]
    return sha256_hex(json.dumps(parts))[:24]


def _read_parsed(stem: Path) -> Data | None:
    """The parsed data set below ``stem``, or None if it is missing or damaged."""
    try:
        description = json.loads(stem.with_suffix(".json").read_bytes())
        content = stem.with_suffix(".safetensors").read_bytes()
        return (
            Data(**load(content), **description["texts"])
            if description["sha256"] == _parsed_digest(content, description["texts"])
            else None
        )
    except (OSError, ValueError, KeyError, TypeError):  # missing, not JSON, or of another program
        return None


def _parsed_digest(content: bytes, texts: dict[str, Any]) -> str:
    """The checksum of tensors and texts together."""
    return sha256_hex(content + json.dumps(texts).encode())


def _write_parsed(stem: Path, data: Data) -> None:
    """Write both files. If the cache cannot be written to, warn and go on."""
    tensors, texts = _split_tensors(data)
    content = save(tensors)
    try:
        write_atomically(stem.with_suffix(".safetensors"), content)
        write_atomically(
            stem.with_suffix(".json"),
            json.dumps({"sha256": _parsed_digest(content, texts), "texts": texts}).encode(),
        )
    except OSError as error:
        warnings.warn(
            f"The parsed data set could not be written to {stem.parent}: {error}. It will be "
            "parsed again next time. To avoid that, name a writable folder in GRAPHGAUGE_CACHE.",
            GraphgaugeWarning,
            stacklevel=2,
        )


def _split_tensors(data: Data) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """The tensors of a graph, and its other values (texts and lists of texts)."""
    items = data.to_dict()
    tensors = {key: value.contiguous() for key, value in items.items() if isinstance(value, Tensor)}
    return tensors, {key: value for key, value in items.items() if key not in tensors}
