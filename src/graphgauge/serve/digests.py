"""What made an answer: digests of the model, the data and the settings, and the versions of the
packages.
"""

from typing import Any

from graphgauge.core import canonical_json, sha256_hex
from graphgauge.models import BaseModel, digest_of_data, digest_of_network

DIGEST_BYTES = 32


def model_and_data_digests(model: BaseModel) -> dict[str, str]:
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
