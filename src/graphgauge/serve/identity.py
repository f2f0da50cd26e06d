"""What made an answer: digests of the model, the data and the settings, and the versions of the
packages.
"""

from typing import Any

from graphgauge.core.digests import canonical_json, sha256_hex
from graphgauge.models import BaseModel
from graphgauge.models.fingerprints import digest_of_data, digest_of_network

BYTES = 32


def digests(model: BaseModel) -> dict[str, str]:
    """Of the network and of the data, as decisions and saved runs name them (see
    `models.fingerprints`).
    """
    return {"model": digest_of_network(model), "data": digest_of_data(model)}


def text_digest(text: str) -> str:
    """SHA-256 of a text."""
    return sha256_hex(text)


def settings_digest(record: Any) -> str:
    """SHA-256 of plain data, whatever the order of its keys."""
    return sha256_hex(canonical_json(record))
