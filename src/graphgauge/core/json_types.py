"""Types of plain data, as JSON files, settings and stored records hold them.

A JSON object has text keys and values of any type: whoever reads a file checks them there, because
no signature could promise what a file holds. That is why the first alias contains ``Any``.
"""

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

#: an object as `json.loads` gives it
JsonObject: TypeAlias = dict[str, Any]
#: what `json.dumps` is given; it refuses values inside that JSON does not know
JsonValue: TypeAlias = bool | int | float | str | Sequence[object] | Mapping[str, object] | None
