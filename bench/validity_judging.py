"""What the sections of `validity` share: explanations under other names, their judgement, and
tables.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import pandas as pd
import torch
from torch import Tensor

import graphgauge as gg
from graphgauge.core import Target, Xplanation, mean_ranks
from graphgauge.models import BaseModel

AT_ONCE = 25  #: targets whose explanations are held at a time
PERTINENCES = ("pertinence", "pertinence_tied", "pertinence_rank")
EIGHT = (
    *(gg.Saliency(), gg.InputXGradient(), gg.IntegratedGradients(), gg.GuidedBackprop()),
    *(gg.Deconvolution(), gg.LRP(), gg.GNNExplainer(), gg.GraphMask()),
)


def evaluator(model: BaseModel, curves: int = 100, **settings: Any) -> gg.Evaluator:
    """Fixed numbers of random curves, nothing timed."""
    fixed = {
        "trials": (curves, curves),
        "early_stop": "none",
        "twin_trials": curves,
        "feature_trials": curves,
        "stability": "binomial",
        "timed": 0,
    }
    return gg.Evaluator(model, **{**fixed, **settings})


def judged(
    model: BaseModel, xs: Sequence[Xplanation], curves: int = 100, **settings: Any
) -> pd.DataFrame:
    """Values by explainer, target and occurrence (rows) and metric (columns). Explanations count as
    made elsewhere, by anyone.
    """
    table = evaluator(model, curves, **settings).evaluate(xs, check_network=False).to_pandas()
    return table.pivot(
        index=["explainer", "target", "occurrence"], columns="metric", values="value"
    )


def foreign(x: Xplanation, name: str, **changes: Any) -> Xplanation:
    """An explanation under another name, which nobody can run again."""
    return replace(x, explainer=name, params={}, metrics={}, **changes)


def groups(targets: Sequence[Target]) -> Iterator[list[Target]]:
    """A few targets at a time."""
    for start in range(0, len(targets), AT_ONCE):
        yield list(targets[start : start + AT_ONCE])


def error(values: "pd.Series", by: str = "target") -> float:
    """Standard error of the mean, over targets: rankings of one target share its random curves."""
    return float(values.groupby(by).mean().sem())


def random_rankings(
    model: BaseModel, targets: list[Target], count: int, seed: int = 0
) -> list[Xplanation]:
    """``count`` explanations of each target whose orders of edges and of feature candidates are
    random permutations.

    Independent scores of all nodes are no random ranking of the candidates: the pooled scores of
    many neighbours stand above the target's own. So all other nodes get the scores of one of them.
    """
    xs = gg.RandomExplainer().explain(
        model, [target for target in targets for _ in range(count)], seed=seed
    )
    return [
        foreign(x, "ranking", feature_score=others_replaced(x, lambda rows: rows[0])) for x in xs
    ]


def others_replaced(x: Xplanation, pooled: Callable[[Tensor], Tensor]) -> Tensor:
    """Feature scores with every row but the target's own replaced by one row, so that any pooling
    gives that row.  (n, F)
    """
    score = x.need("feature_score")
    is_own = torch.isin(x.nodes, torch.tensor(x.target_nodes))
    return (
        score if bool(is_own.all()) else torch.where(is_own[:, None], score, pooled(score[~is_own]))
    )


def spearman(first: Sequence[float], second: Sequence[float]) -> float:
    """Correlation of ranks, ties sharing theirs; values that differ by less than 1e-9 are tied."""
    a, b = (
        torch.from_numpy(
            mean_ranks(torch.tensor(list(part), dtype=torch.float64).round(decimals=9).numpy())
        )
        for part in (first, second)
    )
    a, b = a - a.mean(), b - b.mean()
    size = float(a.norm() * b.norm())
    return float(a @ b) / size if size else float("nan")


def markdown(rows: Sequence[dict[str, Any]]) -> str:
    """A table.

    >>> print(markdown([{"a": 1, "b": 2}]))
    | a | b |
    |---|---|
    | 1 | 2 |
    <BLANKLINE>
    """
    names = list(rows[0])
    lines = [names, ["---"] * len(names), *([row[name] for name in names] for row in rows)]
    told = ["| " + " | ".join(map(str, line)) + " |" for line in lines]
    return "\n".join([told[0], told[1].replace(" ", ""), *told[2:]]) + "\n"
