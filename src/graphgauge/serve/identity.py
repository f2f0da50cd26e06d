"""What made an answer: digests of the model, the data and the settings, and the versions of the packages."""

import hashlib
import json
from typing import Any

from graphgauge.evaluation.identity import digest
from graphgauge.models import BaseModel

BYTES = 32


def digests(model: BaseModel) -> dict[str, str]:
    """Of the network (names, shapes and bits of its tensors, and its layout) and of the data; made anew when either changes."""

    def find() -> dict[str, str]:
        state, source = model.net.state_dict(keep_vars=True), model.source
        layout = f"{type(model).__name__}{model.net!r}{list(state)}"
        tensors = [value for value in state.values() if hasattr(value, "layout")]
        attributes = {**source.node_attrs, **source.edge_attrs}
        return {
            "model": text_digest(layout + digest(tensors, BYTES)),
            "data": text_digest(f"{list(attributes)}{digest([source.edge_index, *attributes.values()], BYTES)}"),
        }

    return model.known("digests for the audit log", find)


def text_digest(text: str) -> str:
    """SHA-256 of a text."""
    return hashlib.sha256(text.encode()).hexdigest()


def settings_digest(record: Any) -> str:
    """SHA-256 of plain data, whatever the order of its keys."""
    return text_digest(json.dumps(record, sort_keys=True, ensure_ascii=True, allow_nan=False, separators=(",", ":")))
