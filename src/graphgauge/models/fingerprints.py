"""Names of exactly this network and of exactly these data.

A network has one name of 24 hexadecimal digits, which is shown everywhere: in decisions, saved
runs, the gate, the log of answers, the monitor and explanations. So an answer can be matched to its
validation by eye.

    network   4 bytes of the kind of model, its hops and the names of its tensors,
              8 bytes of their shapes, types and bits
    data      4 bytes of the names of the attributes, 8 bytes of the edges and of all attributes

They find mistakes, not forgery, and are equal on all machines.
"""

from graphgauge.core import digest_of_tensors, digest_of_texts
from graphgauge.models.base import BaseModel

#: digits of the names of networks in older baselines of the monitor: without those of names and
#: kind
_TENSOR_DIGEST_LENGTH = 16


def digest_of_network(model: BaseModel) -> str:
    """The name of a network: its parameters and buffers, their names and the kind of model.

    It is computed again when the network changes.
    """

    def find() -> str:
        parts = [*model.net.named_parameters(), *model.net.named_buffers()]
        names = digest_of_texts(
            [type(model).__name__, str(model.hops), *(name for name, _ in parts)]
        )
        return f"{names}{digest_of_tensors(tensor for _, tensor in parts)}"

    return model.cached_fact("digest of the network", find)


def digest_of_data(model: BaseModel) -> str:
    """The name of the data: edges, features and all other attributes that the network takes.

    It is computed again when the data change.
    """

    def find() -> str:
        source = model.source
        attributes = {**source.node_attrs, **source.edge_attrs}
        tensors = [source.edge_index, *attributes.values()]
        return f"{digest_of_texts(list(attributes))}{digest_of_tensors(tensors)}"

    return model.cached_fact("digest of the data", find)


def model_identity(model: BaseModel) -> dict[str, str]:
    """What was measured: the kind of task, the network and the data."""
    return {
        "task": f"{model.level}_{model.task}",
        "network": digest_of_network(model),
        "data": digest_of_data(model),
    }


def is_same_network(one: str, other: str) -> bool:
    """Whether two names are of one network; older baselines of the monitor only have the second
    part.

    >>> is_same_network("0123456789abcdef01234567", "89abcdef01234567"), is_same_network("a", "b")
    (True, False)
    """
    longer, shorter = sorted((one, other), key=len, reverse=True)
    return one == other or (len(shorter) == _TENSOR_DIGEST_LENGTH and longer.endswith(shorter))
