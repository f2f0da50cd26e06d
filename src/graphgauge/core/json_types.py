"""Types of plain data, as JSON files, settings and stored records hold them.

A JSON object has text keys and values of any type: whoever reads a file checks them there, because
no signature could promise what a file holds. That is why the alias below contains ``Any``.
"""

from typing import Any, TypeAlias

JsonObject: TypeAlias = dict[str, Any]  #: an object as `json.loads` gives it
