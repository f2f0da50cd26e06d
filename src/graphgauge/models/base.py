"""What every wrapped network offers, whatever its task: predictions, embeddings, computation graphs, edited copies.

Two promises are tested on the network itself before anything relies on them, and the answers are kept in `record()`:

1. The extracted graph is the model. Its prediction must equal the whole graph's within 1e-5 of a probability (or of the
   standard deviation of the predictions). Where it does not, the halo grows, at last to the whole graph.
2. A union does not change the model. Different copies in one union must give what each gives alone. Where they do not
   (layers that normalise over all nodes), ``batch=`` is passed if forward takes it; else copies run one by one.
"""

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar, TypeVar

import torch
from torch import Tensor
from torch.nn import Module

from graphgauge.core.errors import BadModel, BadSetting, OutOfMemory
from graphgauge.core.memory import budget_bytes, parse_bytes
from graphgauge.core.seeds import generator
from graphgauge.models import depth, masking
from graphgauge.models.calling import Call, Forward
from graphgauge.models.computation import HALOS, ComputationGraphs, refuse_foreign
from graphgauge.models.engine import ALONE, TOGETHER, WITH_BATCH, Engine, Work
from graphgauge.models.extraction import SCOPES
from graphgauge.models.graphs import Graphs, check_feature_names
from graphgauge.models.guard import all_tensors, untouched
from graphgauge.models.outputs import check_finite
from graphgauge.models.targets import read_targets
from graphgauge.models.union import Union

T = TypeVar("T")
Edit = Callable[[Union], Union]
Embedding = Tensor | Callable[[Module, Any], Tensor]

TOLERANCE = 1e-5  #: of a probability, or of the SD of predictions
NUM_PROBES = 8  #: targets on which the two promises are first tested


class BaseModel:
    """A network, its data, and how the two go together. Use one of the six subclasses.

    ``forward``        says how to call the net where its signature does not: ``lambda net, g: net(g.x, g.edge_index)``
    ``embedding``      the hidden space, where it is not the input of the last layer: a tensor or ``lambda net, g: ...``
    ``num_hops``       how far messages travel, where counting them is not right
    ``edge_scope``     "messages" (edges that can carry a message to the target) or "induced" (all among its neighbours)
    ``memory_budget``  for every batched call, such as "2GiB"; default a quarter of what is free
    ``feature_names``  for people; default ``data.feature_names`` if there is one
    """

    level: ClassVar[str]
    task: ClassVar[str]

    def __init__(
        self,
        net: Module,
        data: Any,
        *,
        forward: Forward | None = None,
        embedding: Embedding | None = None,
        num_hops: int | None = None,
        edge_scope: str = "messages",
        memory_budget: int | str | None = None,
        feature_names: Sequence[str] | None = None,
    ) -> None:
        if edge_scope not in SCOPES:
            raise BadSetting(f"edge_scope must be 'messages' or 'induced', but {edge_scope!r} was given.")
        if num_hops is not None and (isinstance(num_hops, bool) or not isinstance(num_hops, int) or num_hops < 0):
            raise BadSetting(f"num_hops must be a whole number of hops, but {num_hops!r} was given.")
        if memory_budget is not None:
            parse_bytes(memory_budget)
        self.source, self.call = self.open(net, data, forward)
        self.data, self.embedding, self.num_hops, self.edge_scope = data, embedding, num_hops, edge_scope
        given = feature_names if feature_names is not None else getattr(data, "feature_names", None)
        self.feature_names = check_feature_names(given, self.source.x.size(1))
        self.engine = Engine(self.call, memory_budget)
        self._facts: dict[str, Any] = {}
        self._mark: Any = None
        self._depth = 0
        self.check_device()

    def __repr__(self) -> str:
        source = self.source
        return f"{type(self).__name__}({type(self.net).__name__}, {source.num_nodes} nodes, {source.num_edges} edges)"

    @property
    def net(self) -> Module:
        """The user's network."""
        return self.call.net

    # --- what people ask for -----------------------------------------------------------------------------------------

    def pred_continuous(self, targets: Any) -> Tensor:
        """Probabilities (T, C) of classification models, values (T,) of regression models, on the whole graph."""
        target = self.read(targets)
        with self.session(), torch.no_grad():
            return self.interpret(self.whole_rows(target))

    def pred_discrete(self, targets: Any, around: Any = None) -> Tensor:
        """Predicted classes (T,), or for regression the side of a flip band (T,)."""
        raise NotImplementedError

    def embed(self, targets: Any) -> Tensor:
        """Last hidden space of the targets.  (T, D)"""
        target = self.read(targets)
        with self.session(), torch.no_grad():
            return self.hidden_rows(target)

    def population(self) -> Tensor:
        """Everything a statistic of predictions runs over.  (P,) nodes or graphs, (P, 2) links"""
        target = self.known("population", self.all_targets)
        return target if self.level == "link" else target[:, 0]

    def computation_graphs(self, targets: Any, edge_scope: str | None = None) -> ComputationGraphs:
        """The computation graphs of the targets, each checked against the whole graph."""
        scope = self.edge_scope if edge_scope is None else edge_scope
        if scope not in SCOPES:
            raise BadSetting(f"edge_scope must be 'messages' or 'induced', but {edge_scope!r} was given.")
        target = self.read(targets)
        with self.session(), torch.no_grad():
            return self.checked_graphs(target, scope)

    def pred_copies(self, graphs: ComputationGraphs, of: Tensor | None = None, edit: Edit | None = None) -> Tensor:
        """Predictions of copies of ``graphs[of]`` after ``edit`` (a function of a union).  (K, C) or (K,)

        ``of`` (K,) says which graph each copy is of (default: each once). ``edit`` sees some of the copies at a time and finds
        their numbers in ``union.copy``.
        """

        def work(union: Union) -> Tensor:
            return self.engine.outputs(union if edit is None else edit(union))

        with torch.no_grad():
            return self.interpret(self.map(work, graphs, of))

    def map(self, work: Work, graphs: ComputationGraphs, of: Tensor | None = None, kind: str = "forward") -> Tensor:
        """Any work on unions of copies, inside the memory budget, leaving the network as it was; see `Engine.map`."""
        refuse_foreign(graphs, self.source)
        with self.session():
            self.engine.joining = self.joining
            return self.engine.map(work, graphs, of, kind)

    def record(self) -> dict[str, Any]:
        """How this network is treated, and why: hops, flow, halo, joining, mask support."""
        with self.session():
            return {
                "hops": self.hops,
                "hops_counted": self.trace.calls,
                "flow": self.trace.flow,
                "edge_scope": self.edge_scope,
                "halo": HALOS[self.base_halo],
                "copies": self.joining,
                "mask": self.mask_support,
            }

    # --- what the levels and tasks fill in ---------------------------------------------------------------------------

    def open(self, net: Module, data: Any, forward: Forward | None) -> tuple[Graphs, Call]:
        """Check the data and find out how to call the net."""
        raise NotImplementedError

    def num_targets(self) -> int:
        """How many nodes (or graphs) a target id can name."""
        raise NotImplementedError

    def all_targets(self) -> Tensor:
        """The population.  (P, 1) or (P, 2)"""
        raise NotImplementedError

    def cut(self, target: Tensor, hops: int, halo: int, scope: str) -> ComputationGraphs:
        """Computation graphs, unchecked."""
        raise NotImplementedError

    def whole_rows(self, target: Tensor) -> Tensor:
        """Raw rows of the net for ``target`` on the whole graph.  (T, columns)"""
        raise NotImplementedError

    def hidden_rows(self, target: Tensor) -> Tensor:
        """The last hidden space for ``target``.  (T, D)"""
        raise NotImplementedError

    def run_once(self) -> Any:
        """One call of the net on the data, for those who watch it."""
        raise NotImplementedError

    def interpret(self, raw: Tensor) -> Tensor:
        """Raw rows as probabilities (T, C) or values (T,)."""
        raise NotImplementedError

    def tolerance(self) -> float:
        """The largest difference between two predictions that counts as none."""
        raise NotImplementedError

    # --- facts about the network, found once -------------------------------------------------------------------------

    @contextmanager
    def session(self) -> Iterator[None]:
        """Everything that calls the net happens in here: evaluation mode, and no trace afterwards."""
        if self._depth:
            yield
            return
        self._depth += 1
        try:
            with untouched(self.net):
                yield
        finally:
            self._depth -= 1

    def known(self, name: str, find: Callable[[], T]) -> T:
        """A fact about the network, found on first use and again when its parameters have changed."""
        mark = [(id(tensor), tensor.data_ptr(), tensor._version) for tensor in all_tensors(self.net)]
        if mark != self._mark:
            self._facts.clear()
            self.engine.costs.clear()
            self._mark = mark
        if name not in self._facts:
            with self.session(), torch.no_grad():
                self._facts[name] = find()
        fact: T = self._facts[name]
        return fact

    @property
    def trace(self) -> depth.Trace:
        """What one forward pass showed of the messages."""
        return self.known("trace", lambda: depth.trace(self.net, self.run_once))

    @property
    def hops(self) -> int:
        """L: how far messages travel to a target."""
        return self.known("hops", self.find_hops)

    @property
    def joining(self) -> str:
        """How copies may share a call of the net."""
        return self.known("joining", self.find_joining)

    @property
    def base_halo(self) -> int:
        """The halo that the probes needed; targets that need more get more."""
        return self.known("halo", self.find_halo)

    @property
    def mask_support(self) -> str:
        """Whether messages can be masked: "exact", or why not."""
        return self.known("mask", self.find_mask_support)

    @property
    def probes(self) -> Tensor:
        """A few targets spread over the population, with messages if there are any.  (<= NUM_PROBES, 1 or 2)"""
        return self.known("probes", self.find_probes)

    def find_probes(self) -> Tensor:
        """Evenly spaced targets among those that receive messages."""
        everything = self.all_targets() if self.level == "link" else self.known("population", self.all_targets)
        if self.level != "graph":
            heads = self.source.edge_index.unique()
            busy = everything[torch.isin(everything, heads).all(1)]
            everything = busy if len(busy) else everything
        return everything[torch.linspace(0, len(everything) - 1, NUM_PROBES).round().long().unique()]

    def counted_hops(self) -> int:
        """What the user said, or the number of propagations in one forward pass."""
        if self.num_hops is not None:
            return self.num_hops
        if self.trace.calls == 0 and self.level != "graph":
            raise BadModel(
                f"{type(self.net).__name__} has no torch_geometric MessagePassing layer that runs, so how far it looks cannot be "
                "counted. Say it: num_hops=2."
            )
        return self.trace.calls

    def find_hops(self) -> int:
        """The counted hops, compared with how far gradients really come."""
        counted = self.counted_hops()
        if self.level == "graph":
            return counted
        further = max(counted, self.trace.calls)
        graphs = self.cut(self.probes, further, depth.needed_halo(self.net), "messages")
        seen = self.reach(graphs, further + 2)
        found = depth.depth_from(seen[:, : further + 1], further, least_evidence=3)
        if self.num_hops is not None:
            if found > self.num_hops and bool((seen[:, self.num_hops + 1 : -1] == 2).any()):
                warnings.warn(
                    f"num_hops={self.num_hops} was given, but the prediction depends on features {found} hops away.",
                    stacklevel=2,
                )
            return self.num_hops
        return found

    def reach(self, graphs: ComputationGraphs, num_rings: int) -> Tensor:
        """Which distances gradients reach, with the real features and with random ones.  (K, num_rings)"""
        engine = Engine(self.call, self.engine.budget, self.joining)
        scale = self.source.x.std() + self.source.x.abs().mean()

        def real(union: Union) -> Tensor:
            return depth.gradient_by_hop(engine.outputs, union, union.x, num_rings)

        def random(union: Union) -> Tensor:
            noise = torch.randn(union.x.shape, generator=generator(0), dtype=torch.float64).to(union.x) * scale
            return depth.gradient_by_hop(engine.outputs, union, noise, num_rings)

        return torch.maximum(engine.map(real, graphs), engine.map(random, graphs))

    def find_joining(self) -> str:
        """Whether different copies in one union give what each gives alone."""
        hops = self.counted_hops()
        graphs = self.cut(self.probes[:4], hops, depth.needed_halo(self.net), "messages")
        of = torch.arange(len(graphs), device=graphs.node.device).repeat(2)
        alone = self.joint_rows(graphs, of, ALONE)
        check_finite(alone, "probe")
        for joining in [TOGETHER, WITH_BATCH] if self.call.takes_batch else [TOGETHER]:
            if self.agrees(graphs, of, joining, alone):
                return joining
        return ALONE

    def agrees(self, graphs: ComputationGraphs, of: Tensor, joining: str, alone: Tensor) -> bool:
        """Whether a union in this way gives the rows that the copies give alone; a net that cannot take it does not."""
        try:
            joint = self.joint_rows(graphs, of, joining)
        except (RuntimeError, ValueError, IndexError, AssertionError, TypeError):
            return False
        return joint.shape == alone.shape and is_close(joint, alone)

    def joint_rows(self, graphs: ComputationGraphs, of: Tensor, joining: str) -> Tensor:
        """Raw rows of copies, the second half of them with their features turned upside down.  (K, columns)"""
        engine = Engine(self.call, self.engine.budget, joining)
        half = len(of) // 2

        def work(union: Union) -> Tensor:
            is_turned = union.copy[union.node_copy] >= half
            last = union.graphs.sizes[union.of][union.node_copy] - 1 - union.node_position
            mirrored = torch.where(is_turned, union.node_start[union.node_copy] + last, union.node_at)
            x = union.x.index_copy(0, union.node_at, union.x[mirrored])
            return engine.outputs(union.with_x(x))

        return engine.map(work, graphs, of, kind="joining")

    def find_halo(self) -> int:
        """The smallest halo, from what the layers are known to need upwards, with which all probes pass."""
        if self.level == "graph":
            return HALOS.index("none")
        for halo in range(depth.needed_halo(self.net), len(HALOS)):
            graphs = self.cut(self.probes, self.hops, halo, "messages")
            if not bool(self.differs(graphs).any()):
                return halo
        raise BadModel(
            f"{type(self.net).__name__} gives other predictions when the nodes are renumbered, so it cannot be evaluated on parts "
            "of the graph. Does it keep something for each node by its position? Store that in data, where it is cut along with x."
        )

    def differs(self, graphs: ComputationGraphs) -> Tensor:
        """Which extracted graphs give another prediction than the whole graph.  (T,) bool"""
        here = self.pred_copies(graphs)
        whole = self.interpret(self.whole_rows(graphs.target))
        gap = (here - whole).abs()
        return (gap.amax(1) if gap.dim() == 2 else gap) > self.tolerance()

    def checked_graphs(self, target: Tensor, scope: str) -> ComputationGraphs:
        """Computation graphs whose predictions are the whole graph's; where one is not, its halo grows."""
        halo = self.base_halo
        self.check_room(target, halo)
        graphs = self.cut(target, self.hops, halo, scope)
        while halo < len(HALOS) - 1 and self.level != "graph" and len(graphs):
            wrong = (self.differs(graphs) & (graphs.halo == halo)).nonzero().squeeze(1)
            if not len(wrong):
                break
            halo += 1
            self.check_room(target[wrong], halo)
            graphs = replaced(graphs, wrong, self.cut(target[wrong], self.hops, halo, scope))
        return graphs

    def check_room(self, target: Tensor, halo: int) -> None:
        """Refuse to list the whole graph for more targets than memory holds."""
        needed = len(target) * 8 * 6 * (self.source.num_nodes + self.source.num_edges)
        if HALOS[halo] == "whole graph" and needed > budget_bytes(self.engine.budget, self.source.device):
            raise OutOfMemory(
                f"{type(self.net).__name__} needs the whole graph for each target, and {len(target)} copies of it take about "
                f"{needed / 2**30:.1f} GiB. Ask for fewer targets at a time, or raise memory_budget."
            )

    def find_mask_support(self) -> str:
        """Silence every message: does a target then stop hearing the other nodes?"""
        doubtful = masking.doubtful_aggregations(self.net)
        if doubtful:
            return f"doubtful: a silenced message can win in {', '.join(doubtful)}; use drop"
        graphs = self.cut(self.probes, self.hops, self.base_halo, "messages")
        try:
            heard = self.map(self.silent_outputs, graphs, kind="silent")
            changed = self.map(lambda union: self.silent_outputs(union.with_x(other_neighbours(union))), graphs, kind="silent")
        except BadModel as error:
            return f"refused: {error}"
        is_deaf = self.level == "graph" or is_close(heard, changed)
        return "exact" if is_deaf and self.trace.calls else "refused: messages flow outside MessagePassing layers; use drop"

    def silent_outputs(self, union: Union) -> Tensor:
        """Raw rows when no message gets through, not even from a node to itself."""
        with masking.masked_messages(self.net, union.edge_index, torch.zeros_like(union.edge_index[0], dtype=union.x.dtype), 0.0):
            return self.engine.outputs(union)

    # --- small checks ------------------------------------------------------------------------------------------------

    def read(self, targets: Any) -> Tensor:
        """Targets as (T, 1) or (T, 2) ids on the data's device."""
        return read_targets(targets, self.level, self.num_targets()).to(self.source.device)

    def check_device(self) -> None:
        """Refuse a net and data on different devices."""
        places = {tensor.device for tensor in all_tensors(self.net)}
        if places and places != {self.source.device}:
            names = ", ".join(sorted(map(str, places)))
            raise BadModel(f"the net is on {names} and data on {self.source.device}: move one, for example data.to({names!r}).")

    def check_repeatable(self, first: Tensor, second: Tensor) -> None:
        """Refuse a net whose second answer to the same question is another one."""
        if not is_close(first, second):
            gap = float((first - second).abs().max())
            raise BadModel(
                f"{type(self.net).__name__} gives different outputs for the same input in evaluation mode (by up to {gap:.2g}). "
                "A common cause is F.dropout without training=self.training."
            )


def other_neighbours(union: Union) -> Tensor:
    """Features in which all nodes but the targets are changed."""
    x = 1 - union.x
    rows = union.target_rows.reshape(-1)
    return x.index_copy(0, rows, union.x[rows])


def is_close(first: Tensor, second: Tensor) -> bool:
    """Equal within 1e-5 of the larger of the rows' spread and size."""
    scale = float(torch.maximum(first.abs(), second.abs()).nan_to_num(posinf=0.0).max()) if first.numel() else 0.0
    equal = (first == second) | ((first - second).abs() <= TOLERANCE * max(scale, torch.finfo(first.dtype).tiny))
    return bool(equal.all())


def replaced(graphs: ComputationGraphs, index: Tensor, others: ComputationGraphs) -> ComputationGraphs:
    """``graphs`` with those at ``index`` exchanged for ``others``."""
    order = torch.arange(len(graphs), device=index.device)
    order[index] = len(graphs) + torch.arange(len(index), device=index.device)
    return ComputationGraphs.join([graphs, others]).take(order)
