"""Results of several networks and seeds in one table: what is averaged first, over what an SD is,
and what is refused.
"""

import math
from dataclasses import replace
from statistics import mean, stdev

import pytest
from support.quick_evaluation import QUICK, node_model, values_model
from support.small_networks import Stack, build, random_graph
from torch_geometric.nn import GCNConv

import graphgauge as gg
from graphgauge.core.errors import BadSetting
from graphgauge.evaluation import MetricValue, Row, Settings

SETTINGS = {**QUICK, "stability": "none"}


def rows_of(values, model="", seed=0, task="", explainer="x", metric="edge_ec", status="ok"):
    """A row for each value, of targets 0, 1 ..."""
    return tuple(
        Row(
            task,
            model,
            explainer,
            t,
            0,
            metric,
            MetricValue(value, status, flipped=True),
            None,
            seed,
            "digest",
            "version",
        )
        for t, value in enumerate(values)
    )


def made(values, **options):
    return gg.Results(rows_of(values, **options), Settings())


def line(results, metric="edge_ec"):
    return results.summary().loc[("x", metric)]


def test_several_networks_are_averaged_over_targets_first_and_the_sd_is_over_networks():
    parts = {"a": [1.0, 2.0, 3.0], "b": [10.0], "c": [4.0, 6.0]}
    found = line(gg.concat([made(values, model=name) for name, values in parts.items()]))
    means = [2.0, 10.0, 5.0]
    assert (found["mean"], found["sd"]) == (pytest.approx(mean(means)), pytest.approx(stdev(means)))
    assert (found["n"], found["networks"], found["seeds"], found["sd_over"]) == (
        6,
        3,
        1,
        "networks",
    )


def test_seeds_of_one_network_are_what_is_replicated_where_there_is_one_network():
    found = line(made([1.0, 3.0], seed=0) + made([5.0, 7.0], seed=1))
    assert (found["mean"], found["sd"]) == (4.0, pytest.approx(math.sqrt(8)))
    assert (found["n"], found["networks"], found["seeds"], found["sd_over"]) == (4, 1, 2, "seeds")


def test_seeds_of_several_networks_do_not_count_as_networks():
    """Network a has 2 and 4 with two seeds, network b 9 with one: the mean of 3 and 9, and an SD
    over two.
    """
    found = line(
        gg.concat(
            [made([2.0], model="a"), made([4.0], model="a", seed=1), made([9.0, 9.0], model="b")]
        )
    )
    assert (found["mean"], found["sd"]) == (6.0, pytest.approx(math.sqrt(18)))
    assert (found["n"], found["networks"], found["seeds"], found["sd_over"]) == (
        4,
        2,
        2,
        "networks",
    )


def test_one_network_has_an_sd_over_targets():
    found = line(made([1.0, 2.0, 6.0]))
    assert (found["mean"], found["sd"], found["sd_over"]) == (
        3.0,
        pytest.approx(stdev([1, 2, 6])),
        "targets",
    )
    assert (found["n"], found["networks"], found["seeds"]) == (3, 1, 1)


def test_gaps_are_counted_and_a_network_without_a_value_is_none():
    gaps = gg.Results(rows_of([None, None], model="b", status="empty"), Settings())
    found = line(made([1.0, 3.0], model="a") + gaps)
    assert (found["mean"], found["n"], found["networks"], found["missing"]) == (
        2.0,
        2,
        1,
        "2 empty",
    )
    assert found["sd_over"] == "targets"
    assert math.isnan(line(gaps)["mean"])


def test_the_same_rows_twice_are_refused():
    one = made([1.0, 2.0], model="a")
    with pytest.raises(
        BadSetting, match="2 rows come more than once, for example edge_ec of x for target 0"
    ):
        one + one
    with pytest.raises(BadSetting, match="more than once"):
        gg.concat([made([1.0], model="a"), made([2.0], model="b"), one])
    assert len(gg.concat([made([1.0]), made([1.0], explainer="y")])) == 2


def test_what_is_no_set_of_results_is_refused():
    for nothing in ([], {}):
        with pytest.raises(BadSetting, match="none was given"):
            gg.concat(nothing)
    with pytest.raises(BadSetting, match="but got DataFrame"):
        gg.concat([made([1.0]).to_pandas()])
    with pytest.raises(TypeError, match="unsupported operand"):
        made([1.0]) + 1
    other = gg.Results(rows_of([1.0], model="b"), Settings(cap=50))
    with pytest.raises(BadSetting, match=r"different settings \(cap: 100 and 50\)"):
        made([1.0], model="a") + other
    with pytest.raises(BadSetting, match="of several networks, which have names already"):
        gg.concat({"c": made([1.0], model="a") + made([1.0], model="b")})


def network(seed):
    return gg.NodeClassificationModel(
        build(Stack, GCNConv, seed=seed), random_graph(undirected=True)
    )


@pytest.fixture(scope="module")
def parts():
    """Two networks, the first with two seeds, explained at other targets each."""
    explainers = [gg.Saliency(), gg.RandomExplainer()]
    return [
        gg.Evaluator(network(4), name="a", **SETTINGS).compare(explainers, [3, 20]),
        gg.Evaluator(network(4), name="a", seed=1, **SETTINGS).compare(explainers, [3, 20, 41]),
        gg.Evaluator(network(5), name="b", **SETTINGS).compare(explainers, [3, 41]),
    ]


def test_the_joined_results_have_all_rows_and_the_curves_behind_each(parts):
    joined = gg.concat(parts)
    assert joined.rows == sum((part.rows for part in parts), ())
    assert (parts[0] + parts[1] + parts[2]).rows == joined.rows
    assert joined.settings == parts[0].settings
    for part, start in zip(parts, (0, len(parts[0]), len(parts[0]) + len(parts[1])), strict=True):
        (k,) = [
            k
            for k, row in enumerate(part.rows)
            if row.metric == "feature_ec" and row.explainer == "random" and row.target == 3
        ]
        assert str(joined.explain(start + k)) == str(part.explain(k))
    table = joined.to_pandas().query(
        "metric == 'feature_pertinence_tied' and explainer == 'random'"
    )
    seeds = table.groupby(["model", "seed"])["value"].mean()
    found = joined.summary().loc[("random", "feature_pertinence_tied")]
    networks = [mean([seeds["a", 0], seeds["a", 1]]), seeds["b", 0]]
    assert (found["mean"], found["sd"]) == (
        pytest.approx(mean(networks)),
        pytest.approx(stdev(networks)),
    )


def test_two_networks_under_one_name_are_refused_and_a_dictionary_names_them(parts):
    unnamed = [
        replace(part, rows=tuple(replace(row, model="") for row in part.rows))
        for part in (parts[1], parts[2])
    ]
    with pytest.raises(
        BadSetting, match=r"two different networks are both called ''.*Evaluator\(model, name=...\)"
    ):
        gg.concat(unnamed)
    joined = gg.concat({"first": unnamed[0], "second": unnamed[1]})
    assert [row.model for row in joined.rows] == ["first"] * len(parts[1]) + ["second"] * len(
        parts[2]
    )
    k = next(
        k
        for k, row in enumerate(joined.rows)
        if row.metric == "edge_ec" and row.model == "second" and row.cell.value
    )
    assert str(joined.explain(k)) == str(unnamed[1].explain(k - len(parts[1])))


def test_joined_results_are_saved_loaded_and_reported(parts, tmp_path):
    joined = gg.concat(parts)
    joined.save(tmp_path)
    loaded = gg.Results.load(tmp_path)
    assert loaded.rows == joined.rows
    assert loaded.summary().equals(joined.summary())
    assert loaded.kept().keys() == joined.kept().keys() != set()
    for results in (joined, loaded):
        content = results.report().content
        scores = {
            (own.explainer, score.metric): score.n
            for own in content["tasks"][0].lines
            for score in own.scores
        }
        # no seed's value is taken for that of another
        assert scores["saliency", "feature_pertinence"] == 7
    assert [own["model"] for own in joined.made["parts"]] == ["a", "a", "b"]


def test_tasks_are_kept_apart_by_name():
    first = gg.Evaluator(node_model(), task="nodes", **SETTINGS).compare(gg.RandomExplainer(), [3])
    second = gg.Evaluator(values_model(), task="values", **SETTINGS).compare(
        gg.RandomExplainer(), [3]
    )
    assert {row.task for row in (first + second).rows} == {"nodes", "values"}
