"""The paper's search for hyperparameters: 5 hidden sizes x 3 learning rates x 3 weight decays x 5
dropouts = 225 points, with one seed each.

The point with the highest validation score wins (among equals the one with the lower validation
loss, then the smaller network). It is trained again with five other seeds: mean and SD of the
scores are over these five networks, and the one with the best validation score is kept, whichever
part early stopping watched. Test scores are computed for these five only, and decide nothing. All
points of one hidden size are trained together (training.py).

A search can be interrupted: after each stack of networks its rows are written to one file, and the
same command continues from there.

Training on batches of pairs (pair_batches.py) takes too long for a search, so one point is trained
with five seeds.
"""

import json
import statistics
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, replace
from itertools import groupby, product
from pathlib import Path

from torch import Tensor
from torch_geometric.data import Data

from graphgauge.benchmark.paper.early_stopping import StoppingRule
from graphgauge.benchmark.paper.model_accuracy import SCORED_PARTS, score_parts
from graphgauge.benchmark.paper.pair_batches import PairBatches
from graphgauge.benchmark.paper.training import TrainedNetwork, TrainingRecipe, train_networks
from graphgauge.core import BadFile, BadSetting, JsonObject, progress_bar
from graphgauge.datasets import (
    Architecture,
    data_digest,
    decoder_name,
    plan_architecture,
    rebuild_network,
    write_atomically,
)

_HIDDEN_SIZES = (8, 16, 32, 64, 128)
_LEARNING_RATES = (1e-4, 1e-3, 1e-2)
_WEIGHT_DECAYS = (1e-5, 1e-4, 1e-3)
_DROPOUTS = (0.0, 0.2, 0.3, 0.4, 0.5)
_NUM_SEEDS = 5

_PointRow = JsonObject  #: a recipe's fields and what came out of it


@dataclass(frozen=True)
class GridSearch:
    """What to search: the rule for early stopping, the seed, and how many points of the grid."""

    stopping: StoppingRule = field(default_factory=StoppingRule)
    seed: int = 0
    points: int | None = None  #: None: all of them
    decoder_bias: bool = False  #: also try inner products with a learned number

    def recipes(self, data: Data) -> list[TrainingRecipe]:
        """The grid, or ``points`` of it at equal distances, ordered by decoder and hidden size."""
        biases = (
            (False, True)
            if self.decoder_bias and decoder_name(data) == "inner_product"
            else (False,)
        )
        grid = [
            TrainingRecipe(hidden, rate, decay, dropout, bias, self.seed)
            for bias, hidden, rate, decay, dropout in product(
                biases, _HIDDEN_SIZES, _LEARNING_RATES, _WEIGHT_DECAYS, _DROPOUTS
            )
        ]
        if self.points is not None and not 1 <= self.points <= len(grid):
            raise BadSetting(
                f"points must be from 1 to {len(grid)}, the size of the grid, but is {self.points}."
            )
        count = self.points or len(grid)
        return [grid[number * len(grid) // count] for number in range(count)]


@dataclass(frozen=True)
class PairBatchTraining:
    """One point that is trained on batches of pairs, without a search. An inner product has a
    learned number, and nothing is dropped.
    """

    batches: PairBatches = field(default_factory=PairBatches)
    hidden: int = 64
    learning_rate: float = 0.01
    weight_decay: float = 0.0
    seed: int = 0  #: the five networks have the next five seeds

    def recipe(self, data: Data) -> TrainingRecipe:
        """The point."""
        bias = decoder_name(data) == "inner_product"
        return TrainingRecipe(
            self.hidden, self.learning_rate, self.weight_decay, 0.0, bias, self.seed
        )


@dataclass(frozen=True)
class SearchResult:
    """The chosen recipe, the scores of its five networks, and the network that is kept."""

    recipe: TrainingRecipe  #: with the seed of the kept network
    plan: Architecture
    state: dict[str, Tensor]
    scores: list[dict[str, float]]  #: per seed
    seeds: list[int]
    best_epoch: int
    points: int  #: how many were tried

    def mean(self, part: str) -> float:
        """Mean score of a part over the seeds."""
        return statistics.fmean(row[part] for row in self.scores)

    def sd(self, part: str) -> float:
        """Sample SD of the score of a part over the seeds."""
        return statistics.stdev(row[part] for row in self.scores)


def search_grid(
    data: Data, conv: str, request: GridSearch, path: Path | None = None, title: str = "training"
) -> SearchResult:
    """Try all points, choose the best, and train it again with five other seeds.

    Args:
        data: The task.
        conv: Kind of network, "gcn" or "gat".
        request: Which points to try, and how.
        path: File of finished points; its points are not tried again.
        title: Label of the progress bar.
    """
    recipes = request.recipes(data)
    rows = _SearchFile(
        path,
        {**asdict(request.stopping), "seed": request.seed, "conv": conv, "data": data_digest(data)},
    )
    missing = [recipe for recipe in recipes if recipe not in rows.known]
    with progress_bar(len(missing) + _NUM_SEEDS, title):
        for stack in _group_stacks(missing):
            rows.add(_try_recipes(data, conv, stack, request))
        best = _best_recipe([rows.known[recipe] for recipe in recipes])
        return _train_five_seeds(data, conv, best, request.stopping, len(recipes))


def train_on_pair_batches(
    data: Data, conv: str, request: PairBatchTraining, title: str = "training"
) -> SearchResult:
    """Train one point with five seeds on batches of pairs.

    Args:
        data: The task, one of links.
        conv: Kind of network, "gcn" or "gat".
        request: The point, and how to train it.
        title: Label of the progress bar.
    """
    with progress_bar(_NUM_SEEDS, title):
        return _train_five_seeds(data, conv, request.recipe(data), request.batches, 1)


def _group_stacks(recipes: list[TrainingRecipe]) -> Iterator[list[TrainingRecipe]]:
    """Groups of recipes that can be trained together."""
    for _, together in groupby(recipes, key=lambda recipe: (recipe.bias, recipe.hidden)):
        yield list(together)


def _try_recipes(
    data: Data, conv: str, recipes: list[TrainingRecipe], request: GridSearch
) -> list[_PointRow]:
    """Train a group of recipes and return a row for each, with scores on training and validation
    part. The test part is not used here.
    """
    results = train_networks(data, conv, recipes, request.stopping)
    return [
        _result_row(data, conv, recipe, done, ("train", "val"))
        for recipe, done in zip(recipes, results, strict=True)
    ]


def _result_row(
    data: Data, conv: str, recipe: TrainingRecipe, done: TrainedNetwork, parts: tuple[str, ...]
) -> _PointRow:
    """A recipe and the result of training it, as a row."""
    net = rebuild_network(
        plan_architecture(data, conv, recipe.hidden, recipe.dropout, recipe.bias), done.state
    ).to(data.x.device)
    part_scores = {f"{part}_score": value for part, value in score_parts(net, data, parts).items()}
    return {
        **asdict(recipe),
        **part_scores,
        "val_loss": done.val_loss,
        "best_epoch": done.best_epoch,
        "epochs": done.epochs,
    }


def _best_recipe(rows: list[_PointRow]) -> TrainingRecipe:
    """The recipe with the highest validation score; ties go to the lowest validation loss, then to
    the smallest network. NaN loses.
    """
    best = min(
        rows,
        key=lambda row: (
            -_score_or_worst(row["val_score"]),
            row["val_loss"],
            row["hidden"],
            row["bias"],
        ),
    )
    return _parse_recipe(best)


def _score_or_worst(score: float) -> float:
    """The score, or minus infinity in place of NaN."""
    return score if score == score else float("-inf")


def _parse_recipe(row: _PointRow) -> TrainingRecipe:
    """The recipe of a row."""
    return TrainingRecipe(**{name: row[name] for name in TrainingRecipe.__dataclass_fields__})


def _train_five_seeds(
    data: Data,
    conv: str,
    recipe: TrainingRecipe,
    schedule: StoppingRule | PairBatches,
    points: int,
) -> SearchResult:
    """Train the recipe with the five seeds after its own, which the choice did not use, and keep
    the best network.
    """
    seeds = [recipe.seed + 1 + number for number in range(_NUM_SEEDS)]
    recipes = [replace(recipe, seed=seed) for seed in seeds]
    results = train_networks(data, conv, recipes, schedule)
    rows = [
        _result_row(data, conv, one, done, SCORED_PARTS)
        for one, done in zip(recipes, results, strict=True)
    ]
    best = recipes.index(_best_recipe(rows))
    plan = plan_architecture(data, conv, recipe.hidden, recipe.dropout, recipe.bias)
    part_scores = [{part: row[f"{part}_score"] for part in SCORED_PARTS} for row in rows]
    return SearchResult(
        recipes[best],
        plan,
        results[best].state,
        part_scores,
        seeds,
        results[best].best_epoch,
        points,
    )


class _SearchFile:
    """The finished points of one search in one file: a line with the settings of the search, then a
    line for each point.
    """

    def __init__(self, path: Path | None, asked: JsonObject) -> None:
        self.path, self.asked = path, asked
        self.known: dict[TrainingRecipe, _PointRow] = {}
        if path is not None and path.exists():
            self.read(path)

    def read(self, path: Path) -> None:
        """Read the finished points. Raises `BadFile` if another search wrote the file."""
        try:
            first, *rest = (json.loads(line) for line in path.read_text().splitlines())
            self.known = {_parse_recipe(row): row for row in rest}
        except (ValueError, KeyError, TypeError) as error:
            raise BadFile(
                f"{path} is not a file of finished training runs ({error}). Remove it or use "
                "another folder."
            ) from error
        changed = [
            name
            for name in sorted({*first, *self.asked})
            if first.get(name) != self.asked.get(name)
        ]
        if changed:
            differences = ", ".join(
                f"{name} was {first.get(name)!r} and is {self.asked.get(name)!r}"
                for name in changed
            )
            raise BadFile(
                f"{path} holds runs with other settings: {differences}. Use another --folder, or "
                "remove this file."
            )

    def add(self, rows: list[_PointRow]) -> None:
        """Add rows and write the whole file again, so that it never holds half a stack."""
        self.known.update({_parse_recipe(row): row for row in rows})
        if self.path is not None:
            lines = (json.dumps(row) + "\n" for row in (self.asked, *self.known.values()))
            write_atomically(self.path, "".join(lines).encode())
