"""The paper's search for hyperparameters: 5 hidden sizes x 3 learning rates x 3 weight decays x 5
dropouts = 225 points, with one seed each.

The point with the highest validation score wins (among equals the one with the lower validation
loss, then the smaller network). It is trained again with five other seeds: mean and SD of the
scores are over these five networks, and the one with the best validation score is kept, whichever
part early stopping watched. Test scores are computed for these five only, and decide nothing. All
points of one hidden size are trained together (training.py).

A search can be interrupted: after each stack of networks its rows are written to one file, and the
same command continues from there.
"""

import json
import statistics
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, replace
from itertools import groupby, product
from pathlib import Path
from typing import Any

from torch import Tensor
from torch_geometric.data import Data

from graphgauge.core.errors import BadFile, BadSetting
from graphgauge.core.progress import progress
from graphgauge.datasets.files import write_whole
from graphgauge.datasets.fingerprints import digest
from graphgauge.datasets.networks import Architecture, architecture, decoder_of, rebuilt
from graphgauge.datasets.scores import SCORED_PARTS, scores
from graphgauge.datasets.stopping import Stopping
from graphgauge.datasets.training import Recipe, Trained, train

HIDDEN = (8, 16, 32, 64, 128)
LEARNING_RATE = (1e-4, 1e-3, 1e-2)
WEIGHT_DECAY = (1e-5, 1e-4, 1e-3)
DROPOUT = (0.0, 0.2, 0.3, 0.4, 0.5)
NUM_SEEDS = 5

Row = dict[str, Any]  #: a recipe's fields and what came out of it


@dataclass(frozen=True)
class Search:
    """What to search: the rule for early stopping, the seed, and how many points of the grid."""

    stopping: Stopping = field(default_factory=Stopping)
    seed: int = 0
    points: int | None = None  #: None: all of them
    decoder_bias: bool = False  #: also try inner products with a learned number

    def recipes(self, data: Data) -> list[Recipe]:
        """The grid, or ``points`` of it at equal distances, ordered by decoder and hidden size."""
        biases = (
            (False, True) if self.decoder_bias and decoder_of(data) == "inner_product" else (False,)
        )
        grid = [
            Recipe(hidden, rate, decay, dropout, bias, self.seed)
            for bias, hidden, rate, decay, dropout in product(
                biases, HIDDEN, LEARNING_RATE, WEIGHT_DECAY, DROPOUT
            )
        ]
        if self.points is not None and not 1 <= self.points <= len(grid):
            raise BadSetting(
                f"points must be from 1 to {len(grid)}, the size of the grid, but is {self.points}."
            )
        count = self.points or len(grid)
        return [grid[number * len(grid) // count] for number in range(count)]


@dataclass(frozen=True)
class Found:
    """The chosen recipe, the scores of its five networks, and the network that is kept."""

    recipe: Recipe  #: with the seed of the kept network
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


def search(
    data: Data, conv: str, request: Search, path: Path | None = None, title: str = "training"
) -> Found:
    """Try all points, choose the best, and train it again with five other seeds.

    Args:
        data: The task.
        conv: Kind of network, "gcn" or "gat".
        request: Which points to try, and how.
        path: File of finished points; its points are not tried again.
        title: Label of the progress bar.
    """
    recipes = request.recipes(data)
    rows = Rows(
        path, {**asdict(request.stopping), "seed": request.seed, "conv": conv, "data": digest(data)}
    )
    missing = [recipe for recipe in recipes if recipe not in rows.known]
    with progress(len(missing) + NUM_SEEDS, title):
        for stack in stacks(missing):
            rows.add(tried(data, conv, stack, request))
        return retrained(
            data, conv, best_of([rows.known[recipe] for recipe in recipes]), request, len(recipes)
        )


def stacks(recipes: list[Recipe]) -> Iterator[list[Recipe]]:
    """Groups of recipes that can be trained together."""
    for _, together in groupby(recipes, key=lambda recipe: (recipe.bias, recipe.hidden)):
        yield list(together)


def tried(data: Data, conv: str, recipes: list[Recipe], request: Search) -> list[Row]:
    """Train a group of recipes and return a row for each, with scores on training and validation
    part. The test part is not used here.
    """
    results = train(data, conv, recipes, request.stopping)
    return [
        row_of(data, conv, recipe, done, ("train", "val"))
        for recipe, done in zip(recipes, results, strict=True)
    ]


def row_of(data: Data, conv: str, recipe: Recipe, done: Trained, parts: tuple[str, ...]) -> Row:
    """A recipe and the result of training it, as a row."""
    net = rebuilt(
        architecture(data, conv, recipe.hidden, recipe.dropout, recipe.bias), done.state
    ).to(data.x.device)
    part_scores = {f"{part}_score": value for part, value in scores(net, data, parts).items()}
    return {
        **asdict(recipe),
        **part_scores,
        "val_loss": done.val_loss,
        "best_epoch": done.best_epoch,
        "epochs": done.epochs,
    }


def best_of(rows: list[Row]) -> Recipe:
    """The recipe with the highest validation score; ties go to the lowest validation loss, then to
    the smallest network. NaN loses.
    """
    best = min(
        rows,
        key=lambda row: (
            -number_or_worst(row["val_score"]),
            row["val_loss"],
            row["hidden"],
            row["bias"],
        ),
    )
    return recipe_of(best)


def number_or_worst(score: float) -> float:
    """The score, or minus infinity in place of NaN."""
    return score if score == score else float("-inf")


def recipe_of(row: Row) -> Recipe:
    """The recipe of a row."""
    return Recipe(**{name: row[name] for name in Recipe.__dataclass_fields__})


def retrained(data: Data, conv: str, recipe: Recipe, request: Search, points: int) -> Found:
    """Train the chosen recipe with five seeds that the choice did not use, and keep the best
    network.
    """
    seeds = [request.seed + 1 + number for number in range(NUM_SEEDS)]
    recipes = [replace(recipe, seed=seed) for seed in seeds]
    results = train(data, conv, recipes, request.stopping)
    rows = [
        row_of(data, conv, one, done, SCORED_PARTS)
        for one, done in zip(recipes, results, strict=True)
    ]
    best = recipes.index(best_of(rows))
    plan = architecture(data, conv, recipe.hidden, recipe.dropout, recipe.bias)
    part_scores = [{part: row[f"{part}_score"] for part in SCORED_PARTS} for row in rows]
    return Found(
        recipes[best],
        plan,
        results[best].state,
        part_scores,
        seeds,
        results[best].best_epoch,
        points,
    )


class Rows:
    """The finished points of one search in one file: a line with the settings of the search, then a
    line for each point.
    """

    def __init__(self, path: Path | None, asked: dict[str, Any]) -> None:
        self.path, self.asked = path, asked
        self.known: dict[Recipe, Row] = {}
        if path is not None and path.exists():
            self.read(path)

    def read(self, path: Path) -> None:
        """Read the finished points. Raises `BadFile` if another search wrote the file."""
        try:
            first, *rest = (json.loads(line) for line in path.read_text().splitlines())
            self.known = {recipe_of(row): row for row in rest}
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

    def add(self, rows: list[Row]) -> None:
        """Add rows and write the whole file again, so that it never holds half a stack."""
        self.known.update({recipe_of(row): row for row in rows})
        if self.path is not None:
            lines = (json.dumps(row) + "\n" for row in (self.asked, *self.known.values()))
            write_whole(self.path, "".join(lines).encode())
