"""The six wrappers: node, link or graph targets, with classes or values."""

from dataclasses import replace
from typing import Any, ClassVar

import torch
from torch import Tensor
from torch.nn import Module

from graphgauge.core import BadModel, BadSetting
from graphgauge.execution import as_rows
from graphgauge.models.base import BaseModel
from graphgauge.models.output_types import (
    MULTI_LABEL_TYPES,
    check_output_type,
    class_probabilities,
    flip_band_side,
    infer_output_type,
    most_likely_class,
)
from graphgauge.models.target_levels import GraphLevel, LinkLevel, NodeLevel
from graphgauge.models.tolerances import PREDICTION_TOLERANCE
from graphgauge.subgraphs import LabelSet, as_whole_number

_FLIP_WIDTH = 0.2  #: half-width of the flip band of regression, in SD of predictions


class _ClassificationModel(BaseModel):
    """Models that predict classes.

    Args:
        net: The network.
        data: Its data.
        output: What the network returns: "logits", "log_probs" or "probs"; None to find out. Or
            "multi_label" (a probability for each of several labels that do not exclude each other)
            or "multi_label_logits" (the same before the sigmoid). A target then is a node, link or
            graph with a label, ``(node, label)``, ``(node, node, label)`` or ``(graph, label)``,
            and asks whether it has this label (class 1) or not (class 0). A label is a number or
            one of ``data.class_names``.
        options: As for `BaseModel`.
    """

    task: ClassVar[str] = "classification"

    def __init__(
        self, net: Module, data: Any, *, output: str | None = None, **options: Any
    ) -> None:
        if output is not None:
            check_output_type(torch.zeros(0, 1), output)
        self.output = output
        super().__init__(net, data, **options)

    @property
    def kind(self) -> str:
        """The type of the rows, as stated or inferred: "logits", "log_probs" or "probs"."""
        return self.cached_fact("kind", self.find_kind)

    def find_kind(self) -> str:
        """Infer the type from the population, or check the stated type."""
        raw = self.whole_rows(self.population_rows)
        if self.output is None:
            return infer_output_type(raw)
        check_output_type(raw, self.output)
        return MULTI_LABEL_TYPES.get(self.output, self.output)

    @property
    def labels(self) -> LabelSet | None:
        """The labels if ``output`` is "multi_label" or "multi_label_logits"; otherwise None."""
        if self.output not in MULTI_LABEL_TYPES:
            return None
        count = self.cached_fact("labels", lambda: as_rows(self.first_call()).size(1))
        names = getattr(self.data[0] if self.level == "graph" else self.data, "class_names", None)
        return LabelSet(
            count, names if isinstance(names, (list, tuple)) and len(names) == count else None
        )

    @property
    def num_classes(self) -> int:
        """Number of classes C; two for networks with one output column."""
        return self.cached_fact(
            "classes", lambda: self.interpret(self.whole_rows(self.population_rows[:1])).size(1)
        )

    def interpret(self, raw: Tensor) -> Tensor:
        """Class probabilities.  (T, C)"""
        return class_probabilities(as_rows(raw), self.kind)

    def tolerance(self) -> float:
        """1e-5 of a probability."""
        return PREDICTION_TOLERANCE

    def pred_discrete(self, targets: Any, around: None = None) -> Tensor:
        """Predicted classes; among equal probabilities the lowest number.  (T,)

        Args:
            targets: Node ids, pairs of node ids or graph indices.
            around: Always None: only the predictions of regression have a band.
        """
        if around is not None:
            raise BadSetting(
                "around= is the centre of a regression's flip band; classification has none: leave "
                "it out."
            )
        return most_likely_class(self.pred_continuous(targets))


class RegressionModel(BaseModel):
    """Models that predict values.

    Args:
        net: The network.
        data: Its data.
        output_column: The column of the network's output that holds the values, if it has several.
        options: As for `BaseModel`.
    """

    task: ClassVar[str] = "regression"

    def __init__(
        self, net: Module, data: Any, *, output_column: int | None = None, **options: Any
    ) -> None:
        if output_column is not None and (
            as_whole_number(output_column) is None or output_column < 0
        ):
            raise BadSetting(
                f"output_column must be the number of a column, from 0, but {output_column!r} was "
                "given."
            )
        super().__init__(net, data, **options)
        self.output_column = output_column
        if output_column is not None:
            self.call = replace(self.call, column=int(output_column))
            self.executor.call = self.call

    def interpret(self, raw: Tensor) -> Tensor:
        """The values of raw rows.  (T,)"""
        rows = as_rows(raw)
        if rows.size(1) != 1:
            raise BadModel(
                f"a regression model gives one value per {self.level}, but the net returns "
                f"{rows.size(1)} columns. "
                f"Choose one of them: {type(self).__name__}(net, data, output_column=0), up to "
                f"{rows.size(1) - 1}."
            )
        return rows[:, 0]

    @property
    def mean(self) -> float:
        """Mean prediction over the population."""
        return self.cached_fact(
            "mean",
            lambda: float(self.interpret(self.whole_rows(self.population_rows)).double().mean()),
        )

    @property
    def spread(self) -> float:
        """Standard deviation of the predictions over the population (dividing by P)."""
        return self.cached_fact(
            "spread",
            lambda: float(
                self.interpret(self.whole_rows(self.population_rows)).double().std(correction=0)
            ),
        )

    def tolerance(self) -> float:
        """1e-5 of the predictions' standard deviation, but at least what their float type
        resolves.
        """
        return self.cached_fact("tolerance", self.find_tolerance)

    def find_tolerance(self) -> float:
        """Compute the tolerance from all predictions of the population."""
        values = self.interpret(self.whole_rows(self.population_rows))
        return max(
            PREDICTION_TOLERANCE * self.spread,
            16 * torch.finfo(values.dtype).eps * float(values.abs().max()),
        )

    def pred_discrete(self, targets: Any, around: Any = None, flip: float = _FLIP_WIDTH) -> Tensor:
        """The side of each prediction: -1 below, 0 inside or +1 above a band.  (T,)

        Args:
            targets: Node ids, pairs of node ids or graph indices.
            around: Centre of the band: one number, or one for each target; by default the mean
                prediction.
            flip: Half-width of the band in standard deviations of the predictions.
        """
        if not (isinstance(flip, (int, float)) and 0 <= flip < float("inf")):
            raise BadSetting(
                f"flip must be a number of standard deviations, 0 or more, but {flip!r} was given."
            )
        value = self.pred_continuous(targets)
        return flip_band_side(value, self.centre(around, value), flip * self.spread)

    def centre(self, around: Any, value: Tensor) -> Tensor:
        """``around`` as one finite number, or one for each target.

        Args:
            around: One number, or one for each target (T,); None for the mean prediction.
            value: The predictions of the T targets, whose type and device the result has.  (T,)

        Returns:
            The centre of the flip band, () or (T,).

        Raises:
            BadSetting: ``around`` is not a finite number, or does not have T entries.
        """
        try:
            centre = torch.as_tensor(
                self.mean if around is None else around, dtype=value.dtype, device=value.device
            )
        except (TypeError, ValueError, RuntimeError) as error:
            raise BadSetting(
                f"around must be a number, or one for each target, but {around!r} was given."
            ) from error
        if centre.dim() and centre.shape != value.shape:
            raise BadSetting(
                f"around must be one number, or one for each of {len(value)} targets, but has "
                f"{tuple(centre.shape)}."
            )
        if not bool(centre.isfinite().all()):
            raise BadSetting("around must be finite, but has NaN or infinite entries.")
        return centre


class NodeClassificationModel(NodeLevel, _ClassificationModel):
    """A network that gives each node a class. A target is the id of a node.

    Args:
        net: The network, called as ``net(x, edge_index)``; other attributes of the data that its
            ``forward`` names are passed by keyword. It returns one row per node (N, C); a single
            column belongs to the second of two classes.
        data: The graph, a PyG ``Data`` with ``x`` (N, F) and ``edge_index`` (2, E).
        output: What the network returns: "logits", "log_probs" or "probs"; by default this is found
            out from its rows. With "multi_label" (a probability for each of several labels that do
            not exclude each other) or "multi_label_logits", a target is ``(node, label)``, and the
            classes are 0 (it does not have this label) and 1 (it does).
        **options: The options of `BaseModel`, such as ``forward`` or ``memory_budget``.

    Raises:
        BadModel: The network cannot be used.
        BadGraph: The data cannot be used.
        BadSetting: An option is wrong.

    Nodes 302, 510 and 604 of BA-Shapes are predicted to be three different parts of houses.

        >>> model = gg.NodeClassificationModel(net, data, output="logits")
        >>> [data.class_names[k] for k in model.pred_discrete([302, 510, 604])]
        ['bottom', 'middle', 'top']
    """


class NodeRegressionModel(NodeLevel, RegressionModel):
    """A network that gives each node a value. A target is the id of a node.

    Args:
        net: The network, called as ``net(x, edge_index)``; other attributes of the data that its
            ``forward`` names are passed by keyword. It returns one number or one row per node, (N,)
            or (N, columns).
        data: The graph, a PyG ``Data`` with ``x`` (N, F) and ``edge_index`` (2, E).
        output_column: Number of the column that holds the values, from 0. It is needed only if the
            network returns several columns.
        **options: The options of `BaseModel`, such as ``forward`` or ``memory_budget``.

    Raises:
        BadModel: The network cannot be used.
        BadGraph: The data cannot be used.
        BadSetting: An option is wrong.

    Here the logit of the third class of a classifier is the value. Node 302 is above the band of
    0.2 standard deviations around the mean prediction, and node 0 is below it.

        >>> model = gg.NodeRegressionModel(net, data, output_column=2)
        >>> [round(value) for value in model.pred_continuous([302, 0]).tolist()]
        [5, -17]
        >>> model.pred_discrete([302, 0])
        tensor([ 1, -1])
    """


class LinkClassificationModel(LinkLevel, _ClassificationModel):
    """A network that gives a pair of nodes a class: linked or not, or the kind of link.

    A target is a pair of node ids, whether or not the graph has an edge between them.

    Args:
        net: The network. It is called as ``net(x, edge_index, edge_label_index=pairs)`` if it takes
            ``edge_label_index``, else as ``net.decode(net.encode(x, edge_index), pairs)``, with
            pairs (2, P). It returns one number or one row per pair, (P,) or (P, C); a single
            column belongs to the second of two classes.
        data: The graph, a PyG ``Data`` with ``x`` (N, F) and ``edge_index`` (2, E).
        output: What the network returns: "logits", "log_probs" or "probs"; by default this is found
            out from its rows, but it must be named for a single column of numbers inside [0, 1].
            With "multi_label" (a probability for each of several labels that do not exclude each
            other) or "multi_label_logits", a target is ``(node, node, label)``, and the classes are
            0 (it does not have this label) and 1 (it does).
        **options: The options of `BaseModel`, such as ``forward`` or ``memory_budget``.

    Raises:
        BadModel: The network cannot be used.
        BadGraph: The data cannot be used.
        BadSetting: An option is wrong.

    The function ``forward`` turns a network of nodes into one of links. It finds the pairs in
    ``g.edge_label_index``.

        >>> from torch_geometric.nn import InnerProductDecoder
        >>> decoder = InnerProductDecoder()
        >>> def forward(net, g):
        ...     return decoder(net(g.x, g.edge_index), g.edge_label_index)
        >>> model = gg.LinkClassificationModel(net, data, output="probs", forward=forward)
        >>> model.pred_discrete([(302, 303), (302, 0)])
        tensor([1, 0])
    """


class LinkRegressionModel(LinkLevel, RegressionModel):
    """A network that gives a pair of nodes a value, such as a rating.

    A target is a pair of node ids, whether or not the graph has an edge between them.

    Args:
        net: The network. It is called as ``net(x, edge_index, edge_label_index=pairs)`` if it takes
            ``edge_label_index``, else as ``net.decode(net.encode(x, edge_index), pairs)``, with
            pairs (2, P). It returns one number or one row per pair, (P,) or (P, columns).
        data: The graph, a PyG ``Data`` with ``x`` (N, F) and ``edge_index`` (2, E).
        output_column: Number of the column that holds the values, from 0. It is needed only if the
            network returns several columns.
        **options: The options of `BaseModel`, such as ``forward`` or ``memory_budget``.

    Raises:
        BadModel: The network cannot be used.
        BadGraph: The data cannot be used.
        BadSetting: An option is wrong.

    Here the value of a pair is the inner product of the outputs for its two nodes.

        >>> def forward(net, g):
        ...     first, second = net(g.x, g.edge_index)[g.edge_label_index]
        ...     return (first * second).sum(1)
        >>> model = gg.LinkRegressionModel(net, data, forward=forward)
        >>> [round(value) for value in model.pred_continuous([(302, 303), (302, 0)]).tolist()]
        [50, -144]
    """


class GraphClassificationModel(GraphLevel, _ClassificationModel):
    """A network that gives each graph of a list a class. A target is the index of a graph.

    Args:
        net: The network, called as ``net(x, edge_index, batch=batch)``, where ``batch`` (N,) tells
            which graph each node belongs to. It returns one row per graph (G, C); a single column
            belongs to the second of two classes.
        data: A list or dataset of G graphs, each a PyG ``Data`` with the same attributes.
        output: What the network returns: "logits", "log_probs" or "probs"; by default this is found
            out from its rows. With "multi_label" (a probability for each of several labels that do
            not exclude each other) or "multi_label_logits", a target is ``(graph, label)``, and the
            classes are 0 (it does not have this label) and 1 (it does).
        **options: The options of `BaseModel`, such as ``forward`` or ``memory_budget``.

    Raises:
        BadModel: The network cannot be used.
        BadGraph: The data cannot be used.
        BadSetting: An option is wrong.

    Here the graphs are three houses of BA-Shapes, and ``forward`` averages over their nodes.

        >>> from torch_geometric.nn import global_mean_pool
        >>> houses = [data.subgraph(torch.arange(start, start + 5)) for start in (300, 305, 310)]
        >>> def forward(net, g):
        ...     return global_mean_pool(net(g.x, g.edge_index), g.batch)
        >>> model = gg.GraphClassificationModel(net, houses, forward=forward)
        >>> model.pred_discrete([0, 2])
        tensor([2, 1])
    """


class GraphRegressionModel(GraphLevel, RegressionModel):
    """A network that gives each graph of a list a value. A target is the index of a graph.

    Args:
        net: The network, called as ``net(x, edge_index, batch=batch)``, where ``batch`` (N,) tells
            which graph each node belongs to. It returns one number or one row per graph, (G,) or
            (G, columns).
        data: A list or dataset of G graphs, each a PyG ``Data`` with the same attributes.
        output_column: Number of the column that holds the values, from 0. It is needed only if the
            network returns several columns.
        **options: The options of `BaseModel`, such as ``forward`` or ``memory_budget``.

    Raises:
        BadModel: The network cannot be used.
        BadGraph: The data cannot be used.
        BadSetting: An option is wrong.

    Here the graphs are two houses of BA-Shapes, and their value is the sum of one column.

        >>> from torch_geometric.nn import global_add_pool
        >>> houses = [data.subgraph(torch.arange(start, start + 5)) for start in (300, 305)]
        >>> def forward(net, g):
        ...     return global_add_pool(net(g.x, g.edge_index), g.batch)
        >>> model = gg.GraphRegressionModel(net, houses, output_column=2, forward=forward)
        >>> [round(value) for value in model.pred_continuous([0, 1]).tolist()]
        [9, 16]
    """
