"""An explainer uses the user's network, and the next one finds it as it was.

`lent(model, borrower)` puts back all that a borrower leaves behind: training mode, hooks, frozen
parameters, attributes. One that changes weights or data has explained something else, and that is
an error by its name. Networks may change themselves when they are called (an embedding with
``max_norm``, a counter): nobody is blamed for that.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import torch

from graphgauge.core.errors import ChangedModel
from graphgauge.models.guard import Checksum, untouched, weights_of

if TYPE_CHECKING:
    from graphgauge.models.base import BaseModel


@contextmanager
def lent(model: "BaseModel", borrower: str) -> Iterator[None]:
    """Let ``borrower`` use the network, in a session; a loan within a loan is the same one."""
    if model.is_lent:
        yield
        return
    data, before = model.versions_of_data(), weights_of(model.net)
    model.is_lent = True
    try:
        with untouched(model.net):
            yield
            after = weights_of(model.net)
    finally:
        model.is_lent = False
    if was_changed(model, before, after):
        raise ChangedModel(
            f"{borrower} changed the network's weights while explaining. They were put back."
        )
    if model.versions_of_data() != data:
        raise ChangedModel(
            f"{borrower} wrote into the data while explaining. Load the data again and wrap the network anew."
        )


def was_changed(
    model: "BaseModel", before: dict[str, Checksum], after: dict[str, Checksum]
) -> bool:
    """Whether weights have changed, those aside that the network writes itself when it is called."""
    changed = [name for name, bits in before.items() if after.get(name) != bits]
    if not changed:
        return False
    with untouched(model.net), torch.no_grad():
        model.run_once()
        called = weights_of(model.net)
    return any(called.get(name) == before[name] for name in changed)
