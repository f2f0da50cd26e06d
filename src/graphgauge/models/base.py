"""What every wrapped network offers: predictions, embeddings, computation graphs and edited
copies.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from threading import RLock
from typing import Any, ClassVar, TypeVar
from weakref import WeakKeyDictionary

import torch
from torch import Tensor
from torch.nn import Module

from graphgauge.core import (
    IDS_PER_LEVEL,
    BadModel,
    BadSetting,
    GraphgaugeError,
    OutOfMemory,
    budget_bytes,
    parse_bytes,
)
from graphgauge.execution import (
    BatchFunction,
    Executor,
    ForwardAdapter,
    ForwardFunction,
    GraphBatch,
    GraphCopies,
    edge_score_sources,
    is_out_of_memory,
    label_column,
)
from graphgauge.models.capability_probes import (
    find_edge_use,
    find_feature_use,
    find_joining,
    find_mask_support,
    find_prunable_rounds,
    find_trace,
    find_writes_input,
)
from graphgauge.models.checked_extraction import find_halo, find_raw_spread
from graphgauge.models.far_edges import find_far_edges
from graphgauge.models.halo_pruning import provide_graphs
from graphgauge.models.hop_count import find_hops
from graphgauge.models.probe_errors import FORWARD_ERRORS
from graphgauge.models.probe_targets import find_probes
from graphgauge.models.state_guard import network_fingerprint, network_tensors, preserve_network
from graphgauge.models.tolerances import is_close, largest_gap
from graphgauge.subgraphs import (
    EDGE_SCOPES,
    HALOS,
    ComputationGraphs,
    InputGraphs,
    LabelSet,
    MessageTrace,
    Targets,
    check_feature_names,
    check_same_source,
    parse_targets,
)

_T = TypeVar("_T")

#: one lock per network: wrappers in several threads take turns
_NETWORK_LOCKS: WeakKeyDictionary[Module, Any] = WeakKeyDictionary()
_BatchEdit = Callable[[GraphBatch], GraphBatch]
_EmbeddingSource = Tensor | Callable[[Module, Any], Tensor]


class BaseModel(ABC):
    """A network, its data, and how to call the one on the other. Use one of the six subclasses.

    The data is read once: wrap again after replacing ``data.x``. Further training is noticed.

        >>> isinstance(model, gg.BaseModel), model.hops
        (True, 2)
        >>> model.pred_continuous([302, 510]).shape  # probabilities (T, C) on the whole graph
        torch.Size([2, 4])
        >>> model.computation_graphs([302])[0].nodes.tolist()  # what the prediction depends on
        [302, 301, 303, 300, 304]

    Args:
        net: The network, a `torch.nn.Module`.
        data: A PyG ``Data``; a list or dataset of them for graph models.
        forward: How to call the network if its signature does not show it: ``lambda net, g:
            net(g.x, g.edge_index)``.
        embedding: The hidden space, if it is not the input of the last layer: a tensor or ``lambda
            net, g: ...``.
        num_hops: How far messages travel, if counting them gives a wrong number.
        edge_scope: Which edges are scored: "messages" (that can carry a message to the target) or
            "induced" (all among its neighbours).
        memory_budget: For every batched call, such as "2GiB"; by default a quarter of the free
            memory.
        feature_names: Names of the features; by default ``data.feature_names``.

    Raises:
        BadModel: If the network cannot be used.
        BadGraph: If the data cannot be used.
        BadSetting: If an option is wrong.
    """

    level: ClassVar[str]
    task: ClassVar[str]

    def __init__(
        self,
        net: Module,
        data: Any,
        *,
        forward: ForwardFunction | None = None,
        embedding: _EmbeddingSource | None = None,
        num_hops: int | None = None,
        edge_scope: str = "messages",
        memory_budget: int | str | None = None,
        feature_names: Sequence[str] | None = None,
    ) -> None:
        _check_edge_scope(edge_scope)
        _check_model_options(num_hops, memory_budget, embedding)
        with torch.inference_mode(False):
            self.source, self.call = self.load_input(net, data, forward)
        self.data, self.embedding, self.num_hops, self.edge_scope = (
            data,
            embedding,
            num_hops,
            edge_scope,
        )
        given = feature_names if feature_names is not None else getattr(data, "feature_names", None)
        self.feature_names = check_feature_names(given, self.source.x.size(1))
        self.executor = Executor(self.call, budget=memory_budget)
        self._facts: dict[str, Any] = {}
        self._lasting: dict[str, Any] = {}
        self._mark: Any = None
        self._depth, self.is_lent = 0, False
        self.check_device()

    def __repr__(self) -> str:
        source = self.source
        return (
            f"{type(self).__name__}({type(self.net).__name__}, {source.num_nodes} nodes, "
            f"{source.num_edges} edges)"
        )

    @property
    def net(self) -> Module:
        """The user's network."""
        return self.call.net

    # --- what people ask for ----------------------------------------------------------------------

    def pred_continuous(self, targets: Any) -> Tensor:
        """Predictions on the whole graph.

        Args:
            targets: Node ids, pairs of node ids or graph indices.

        Returns:
            Probabilities (T, C) of classification models, values (T,) of regression models.
        """
        with self.session(), torch.no_grad():
            return self.interpret(self.whole_rows(self.parse_targets(targets)))

    @abstractmethod
    def pred_discrete(self, targets: Any, around: Any = None) -> Tensor:
        """Predicted classes (T,), or for regression the side of a flip band (T,).

        Args:
            targets: Node ids, pairs of node ids or graph indices.
            around: For regression, the centre of the band: one number, or one for each target. By
                default it is the mean prediction. Classification accepts None only.

        Returns:
            The number of the most likely class; for regression -1 below, 0 inside and 1 above the
            band.

        Raises:
            BadTarget: A target does not exist.
            BadSetting: ``around`` does not fit the task or the targets.
        """

    def embed(self, targets: Any) -> Tensor:
        """The last hidden space of the targets.  (T, D)"""
        with self.session(), torch.no_grad():
            target = self.parse_targets(targets)
            if self.labels is None:
                return self.hidden_rows(target.ids)
            ids, own = target.ids.unique(dim=0, return_inverse=True)
            return self.hidden_rows(ids)[own]

    def population(self) -> Tensor:
        """All targets that statistics of predictions use: nodes or graphs (P,), links (P, 2), and a
        column more with labels.
        """
        return self.population_rows.to_user().clone()

    def computation_graphs(
        self, targets: Any, edge_scope: str | None = None, lean: bool = False
    ) -> ComputationGraphs:
        """The computation graphs of the targets, each checked against the whole graph.

        Args:
            targets: Node ids, pairs of node ids or graph indices.
            edge_scope: "messages" or "induced"; by default that of the model.
            lean: Edges that only set degrees may be left out, for work that drops no edge.
        """
        scope = self.edge_scope if edge_scope is None else _check_edge_scope(edge_scope)
        with self.session(), torch.no_grad():
            return provide_graphs(self, self.parse_targets(targets), scope, lean)

    def pred_copies(
        self,
        graphs: ComputationGraphs,
        of: Tensor | None = None,
        edit: _BatchEdit | None = None,
        kind: str = "copies",
    ) -> Tensor:
        """Predictions of edited copies of computation graphs.

        Args:
            graphs: Computation graphs of this model.
            of: Which graph each copy is of (K,); by default each graph once.
            edit: A pure function from a union of some of the copies to an edited union. It finds
                the numbers of the copies in ``union.copy`` and may be called more than once for a
                copy.
            kind: The name under which the cost of a copy is stored.

        Returns:
            Probabilities (K, C) or values (K,).
        """

        def work(union: GraphBatch) -> Tensor:
            return self.executor.outputs(
                union if edit is None else _check_edited_batch(edit(union))
            )

        return self.pred_rows(work, GraphCopies.of_graphs(graphs, of), kind)

    def pred_rows(self, work: BatchFunction, copies: GraphCopies, kind: str) -> Tensor:
        """Predictions from the raw rows that ``work`` gives for copies of any kind.

        Args:
            work: A pure function that gives the raw rows (copies, columns) of a union of some of
                the copies, such as ``model.executor.outputs``.
            copies: K copies of computation graphs of this model, in the order of the result.
            kind: The name under which the memory cost of a copy is stored. Work of another cost
                needs another name.

        Returns:
            Probabilities (K, C) or values (K,).
        """
        check_same_source(copies.graphs, self.source)
        with self.session(), torch.no_grad(), self.unwritten_features():
            self.prepare_engine()
            rows = self.executor.rows(work, copies, kind)
            return self.interpret(rows if len(rows) else self.whole_rows(self.population_rows[:0]))

    def map(
        self,
        work: BatchFunction,
        graphs: ComputationGraphs,
        of: Tensor | None = None,
        kind: str | None = None,
    ) -> Tensor:
        """Rows of ``work`` on unions of copies, inside the memory budget; see `Executor.map`.

        Args:
            work: A pure function that gives one row for each copy of a union.  (copies, ...)
            graphs: Computation graphs of this model.
            of: Which graph each copy is of (K,); by default each graph once.
            kind: The name under which the memory cost of a copy is stored; by default the
                function's name.

        Returns:
            The rows of all copies, in their order.  (K, ...)
        """
        check_same_source(graphs, self.source)
        with self.session():
            self.prepare_engine()
            return self.executor.map(work, graphs, of, kind)

    def for_each(
        self,
        work: Callable[[GraphBatch], _T],
        consume: Callable[[_T], None],
        graphs: ComputationGraphs,
        of: Tensor | None = None,
        kind: str | None = None,
        probe: Callable[[GraphBatch], Any] | None = None,
    ) -> None:
        """Run work whose results are not rows; see `Executor.for_each`.

        Args:
            work: A pure function of a union of copies. It may run more than once on a copy.
            consume: Receives each result of ``work`` once, in the order of the copies.
            graphs: Computation graphs of this model.
            of: Which graph each copy is of (K,); by default each graph once.
            kind: The name under which the memory cost of a copy is stored; by default the
                function's name.
            probe: What the memory cost is measured on instead of ``work``: one round of work that
                repeats itself. By default it is measured on ``work``.
        """
        check_same_source(graphs, self.source)
        with self.session():
            self.prepare_engine()
            self.executor.for_each(work, consume, graphs, of, kind, probe)

    def prepare_engine(self) -> None:
        """Set the options of the executor that depend on the network."""
        self.executor.joining, self.executor.copies_input, self.executor.cuts = (
            self.joining,
            self.writes_input,
            self.cuts,
        )
        self.executor.fuses = self.source.device.type == "cuda"

    def record(self) -> dict[str, Any]:
        """How this network is treated: hops, flow, halo, union of copies, mask support, and the
        number of labels.
        """
        with self.session():
            labels = (
                {} if self.labels is None else {"level": self.level, "labels": self.labels.count}
            )
            return {
                **labels,
                "hops": self.hops,
                "propagations": self.trace.calls,
                "flow": self.trace.flow,
                "edge_scope": self.edge_scope,
                "halo": HALOS[self.base_halo],
                "copies": self.joining,
                "mask": self.mask_support,
                "edge_scores": edge_score_sources(self.mask_support, self.uses_edges),
                "edges_beyond_hops": self.edges_beyond_hops,
            }

    def refresh(self) -> None:
        """Forget everything known about the network, after a change that cannot be noticed (such as
        a new dictionary).
        """
        self._mark = None

    # --- what the levels and tasks fill in --------------------------------------------------------

    @abstractmethod
    def load_input(
        self, net: Module, data: Any, forward: ForwardFunction | None
    ) -> tuple[InputGraphs, ForwardAdapter]:
        """Check the data and find out how to call the network.

        Args:
            net: The user's network.
            data: One graph, or a list or dataset of graphs for graph models.
            forward: The user's function ``forward(net, g)``; None to go by the network's signature.

        Returns:
            The data as flat tensors, with the attributes that the network takes, and the network
            with the way to call it.

        Raises:
            BadGraph: The data cannot be used.
            BadModel: The network cannot be called.
        """

    @abstractmethod
    def num_targets(self) -> int:
        """Number of nodes (or graphs) that a target id can name."""

    @abstractmethod
    def all_ids(self) -> Tensor:
        """All nodes, links or graphs of the population, without labels.  (P, 1) or (P, 2)"""

    def all_targets(self) -> Tensor:
        """The population with each label.  (P, 1) or (P, 2), or with one column more"""
        labels, ids = self.labels, self.all_ids()
        if labels is None:
            return ids
        label = torch.arange(labels.count, device=ids.device).repeat(len(ids))
        return torch.cat([ids.repeat_interleave(labels.count, 0), label[:, None]], 1)

    @property
    def labels(self) -> LabelSet | None:
        """The labels of which a target names one; None if targets have none."""
        return None

    def select_label_columns(self, rows: Tensor, target: Targets) -> Tensor:
        """The column of each target's label, if targets have labels; otherwise all columns.

        Args:
            rows: Raw rows of the network, one for each target.  (T, columns)
            target: The T targets, with or without labels.

        Returns:
            The column of the label (T, 1), or ``rows`` unchanged.
        """
        return rows if target.label is None else label_column(rows, target.label)

    @abstractmethod
    def extract_graphs(
        self, target: Targets, hops: int, halo: int, scope: str
    ) -> ComputationGraphs:
        """Extract computation graphs without checking their predictions.

        Models of graphs take the whole graph of each target, whatever the other arguments are.

        Args:
            target: The T targets, already validated.
            hops: Number of hops L that messages travel to a target.
            halo: Index into ``HALOS`` of what is added around each computation graph.
            scope: "messages" or "induced": which edges are relevant.
        """

    @abstractmethod
    def whole_rows(self, target: Targets) -> Tensor:
        """Raw rows of the network for ``target`` on the whole graph.  (T, columns)"""

    @abstractmethod
    def hidden_rows(self, ids: Tensor) -> Tensor:
        """The last hidden space of targets without labels.  (T, 1) or (T, 2) -> (T, D)"""

    @abstractmethod
    def run_once(self) -> Tensor:
        """Call the network once on the unchanged data."""

    def trial_rows(self, target: Targets, x: Tensor, kept: Tensor) -> Tensor:
        """Raw rows on the whole graph with other features and without some edges.

        Args:
            target: The T targets, already validated.
            x: The features to use instead of those of the data.  (N, F)
            kept: Whether each edge stays.  (E,) bool

        Returns:
            One row for each target.  (T, columns)

        Raises:
            NotImplementedError: The targets are graphs.
        """
        raise NotImplementedError(f"{self.level} targets are not cut out of a larger graph")

    @abstractmethod
    def interpret(self, raw: Tensor) -> Tensor:
        """Probabilities (T, C) or values (T,) of raw rows."""

    @abstractmethod
    def tolerance(self) -> float:
        """The largest difference between two predictions that counts as rounding."""

    # --- facts about the network, found once by trying (see `capability_probes`) ------------------

    @contextmanager
    def session(self) -> Iterator[None]:
        """Everything that calls the network happens inside a session.

        It sets evaluation mode, admits one thread at a time, and restores the network afterwards.
        """
        with _NETWORK_LOCKS.setdefault(self.net, RLock()):
            if self._depth:
                yield
                return
            self._depth += 1
            try:
                with _disable_autocast(self.source.device):
                    self.notice_changes()
                    with preserve_network(self.net):
                        yield
            finally:
                self._depth -= 1

    def versions_of_data(self) -> list[int]:
        """Version counters of the data's tensors, which change when somebody writes into them."""
        source = self.source
        tensors = [source.edge_index, *source.node_attrs.values(), *source.edge_attrs.values()]
        return [tensor._version for tensor in tensors if not tensor.is_inference()]

    def notice_changes(self) -> None:
        """Forget what is known about a network, or data, that has changed since."""
        mark = (network_fingerprint(self.net), self.versions_of_data())
        if self._mark is None or mark != self._mark:
            if self._mark is None or mark[1] != self._mark[1]:
                self._lasting.clear()
            self._facts.clear()
            self.executor.costs.clear()
            self._mark = mark

    def cached_fact(self, name: str, find: Callable[[], _T]) -> _T:
        """A fact about the network, computed on first use and again when the network has
        changed.

        Args:
            name: The name under which the fact is stored. Each fact needs a name of its own.
            find: Computes the fact. It is called in a session and without gradients.
        """
        with self.session(), torch.no_grad():
            if name not in self._facts:
                self._facts[name] = find()
            fact: _T = self._facts[name]
            return fact

    def cached_data_fact(self, name: str, find: Callable[[], _T]) -> _T:
        """A fact about the data alone, which stays when the network changes.

        Args:
            name: The name under which the fact is stored. Each fact needs a name of its own.
            find: Computes the fact. It is called on first use, and again when somebody has written
                into the data.
        """
        if name not in self._lasting:
            self._lasting[name] = find()
        fact: _T = self._lasting[name]
        return fact

    @property
    def population_rows(self) -> Targets:
        """The population, as checked targets."""
        return self.cached_data_fact(
            "population", lambda: Targets(self.level, self.num_targets(), self.all_targets())
        )

    @property
    def probes(self) -> Targets:
        """A few targets spread over the population, with messages if there are any."""
        return self.cached_data_fact("probes", lambda: find_probes(self, self.population_rows))

    @property
    def trace(self) -> MessageTrace:
        """The messages of one forward pass."""
        return self.cached_fact("trace", lambda: find_trace(self))

    @property
    def hops(self) -> int:
        """Number of hops L that messages travel to a target."""
        return self.cached_fact("hops", lambda: find_hops(self))

    @property
    def writes_input(self) -> bool:
        """Whether the network changes its input, so that it needs copies."""
        return self.cached_fact("writes input", lambda: find_writes_input(self))

    @property
    def joining(self) -> str:
        """How copies share a call of the network."""
        return self.cached_fact("joining", lambda: find_joining(self))

    @property
    def cuts(self) -> tuple[bool, ...]:
        """For each round of messages, whether messages that cannot arrive are left out; () if that
        may be wrong.
        """
        return self.cached_fact("cuts", lambda: find_prunable_rounds(self))

    @property
    def feature_use(self) -> str:
        """What the network does first with features: "linear" (only linear maps), "written" (other
        operations) or "no".
        """
        return self.cached_fact("feature use", lambda: find_feature_use(self))

    @contextmanager
    def unwritten_features(self) -> Iterator[None]:
        """Give the network features that are written out only when it needs them."""
        self.executor.lazy = self.feature_use != "no"
        try:
            yield
        finally:
            self.executor.lazy = False

    @property
    def base_halo(self) -> int:
        """The halo that the probes need; other targets may need more."""
        return self.cached_fact("halo", lambda: find_halo(self))

    @property
    def mask_support(self) -> str:
        """Whether messages can be masked: "exact", or the reason why not."""
        return self.cached_fact("mask", lambda: find_mask_support(self))

    @property
    def uses_edges(self) -> bool:
        """Whether the graph's edges change predictions."""
        return self.cached_fact("uses edges", lambda: find_edge_use(self))

    @property
    def edges_beyond_hops(self) -> dict[str, Any] | None:
        """The effect of edges that are too far away to be scored; None if they have none."""
        return self.cached_fact("edges beyond hops", lambda: find_far_edges(self))

    @property
    def raw_spread(self) -> float:
        """Standard deviation of the finite raw rows over the population."""
        return self.cached_fact("raw spread", lambda: find_raw_spread(self))

    # --- small checks -----------------------------------------------------------------------------

    def parse_targets(self, targets: Any) -> Targets:
        """Check targets of users; targets that were checked before are taken as they are."""
        labels = self.labels
        width = IDS_PER_LEVEL[self.level] + (labels is not None)
        if isinstance(targets, Targets):
            if (targets.level, targets.size, targets.rows.size(1)) == (
                self.level,
                self.num_targets(),
                width,
            ):
                return targets
            targets = targets.to_user()
        read = parse_targets(targets, self.level, self.num_targets(), labels)
        return read.with_rows(read.rows.to(self.source.device).clone())

    def first_call(self) -> Tensor:
        """Call the network once on the data; if it fails, the error shows the shapes of its
        input.
        """
        try:
            return self.run_once()
        except GraphgaugeError:
            raise
        except (MemoryError, *FORWARD_ERRORS) as error:
            if is_out_of_memory(error):
                raise OutOfMemory(
                    "one pass over the whole graph does not fit into memory: use a larger machine "
                    "or a smaller graph."
                ) from error
            shapes = {
                "edge_index": self.source.edge_index,
                **self.source.node_attrs,
                **self.source.edge_attrs,
            }
            given = ", ".join(
                f"{name} {tuple(value.shape)} {value.dtype}" for name, value in shapes.items()
            )
            raise BadModel(
                f"{type(self.net).__name__} could not be run on data: {type(error).__name__}: "
                f"{error}. It was given {given}."
            ) from error

    def check_device(self) -> None:
        """Raise BadModel if the network and the data are on different devices."""
        places = {tensor.device for tensor in network_tensors(self.net)}
        if places and places != {self.source.device}:
            names = ", ".join(sorted(map(str, places)))
            raise BadModel(
                f"the net is on {names} and data on {self.source.device}: move one, for example "
                f"data.to({names!r})."
            )

    def check_repeatable(self, first: Tensor, second: Tensor) -> None:
        """Raise BadModel if a second call with the same input gives another result.

        Args:
            first: Raw rows of the first call.  (T, columns)
            second: Raw rows of the second call.  (T, columns)
        """
        if not is_close(first, second):
            raise BadModel(
                f"{type(self.net).__name__} gives different outputs for the same input in "
                "evaluation mode, by up to "
                f"{float(largest_gap(first, second).max()):.2g}. A common cause: F.dropout without "
                "training=self.training."
            )

    def check_room(self, target: Targets, halo: int) -> None:
        """Raise OutOfMemory if the whole graph would be listed for more targets than memory
        holds.

        Args:
            target: The targets whose computation graphs are about to be extracted.
            halo: Index into ``HALOS``. Only the halo "whole graph" can raise the error.
        """
        # ids, positions and what sorting them takes
        words = 6 * (self.source.num_nodes + self.source.num_edges)
        needed = len(target) * words * 8
        if HALOS[halo] == "whole graph" and needed > budget_bytes(
            self.executor.budget, self.source.device
        ):
            raise OutOfMemory(
                f"{type(self.net).__name__} needs the whole graph for each target, and "
                f"{len(target)} copies of it take about "
                f"{needed / 2**30:.1f} GiB. Ask for fewer targets at a time, or raise "
                "memory_budget."
            )


@contextmanager
def _disable_autocast(device: torch.device) -> Iterator[None]:
    """Switch inference mode and autocast off; gradients are recorded or not as before."""
    needs_grad = torch.is_grad_enabled()
    with (
        torch.inference_mode(False),
        torch.autocast(device.type, enabled=False),
        torch.set_grad_enabled(needs_grad),
    ):
        yield


def _check_edited_batch(edited: Any) -> GraphBatch:
    """Raise BadSetting if an edit does not return a union."""
    if not isinstance(edited, GraphBatch):
        raise BadSetting(
            "edit must return a union, such as union.without_edges(...), but returned "
            f"{type(edited).__name__}."
        )
    return edited


def _check_edge_scope(edge_scope: str) -> str:
    """Raise BadSetting for an unknown edge scope."""
    if edge_scope not in EDGE_SCOPES:
        raise BadSetting(
            f"edge_scope must be 'messages' or 'induced', but {edge_scope!r} was given."
        )
    return edge_scope


def _check_model_options(num_hops: Any, memory_budget: Any, embedding: Any) -> None:
    """Raise BadSetting for wrong options of a model."""
    if num_hops is not None and (
        isinstance(num_hops, bool) or not isinstance(num_hops, int) or num_hops < 0
    ):
        raise BadSetting(f"num_hops must be a whole number of hops, but {num_hops!r} was given.")
    if memory_budget is not None:
        parse_bytes(memory_budget)
    if embedding is not None and not isinstance(embedding, Tensor) and not callable(embedding):
        raise BadSetting(
            "embedding must be a tensor or a function (net, g) -> tensor, but is "
            f"{type(embedding).__name__}."
        )
