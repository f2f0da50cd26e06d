"""What made an answer: digests of the model, the data and the settings, and the versions of the
packages.
"""

import hashlib
import json
from typing import Any

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
    return hashlib.sha256(text.encode()).hexdigest()


def settings_digest(record: Any) -> str:
    """SHA-256 of plain data, whatever the order of its keys."""
    return text_digest(
        json.dumps(
            record, sort_keys=True, ensure_ascii=True, allow_nan=False, separators=(",", ":")
        )
    )
