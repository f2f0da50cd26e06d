"""Every equation and algorithm of the paper by its name: what the Evaluator gives, against
`literal`.
"""

from dataclasses import fields, replace

import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from support import literal_metrics
from support.literal_studies import CLOSE, DEVICE, FEW, LAYERS, TASKS, Study, node_classes, study
from support.small_networks import (
    FEATURES,
    Stack,
    build,
    graphs,
    random_graph,
)
from torch_geometric.data import Data
from torch_geometric.nn import GCNConv, SAGEConv

import graphgauge as gg
from graphgauge.core.seeds import make_generator
from graphgauge.evaluation import Settings
from graphgauge.evaluation.settings import _CHOICES
from graphgauge.evaluation.stability import _pair_schedule

pytestmark = pytest.mark.numeric


every_task = pytest.mark.parametrize(
    ("task", "layer"), [(task, layer) for task in TASKS for layer in LAYERS]
)


def check_ec_edge(found):
    for name, target, question, s, ties, _ in found.edges():
        cell, order = (
            found.cell(name, target, "edge_ec"),
            literal_metrics.edge_order(question, s, ties),
        )
        assert cell.value == literal_metrics.algorithm_4_ec_edge(question, s, ties)
        assert cell.flipped == literal_metrics.ever_changed(
            question, order, literal_metrics.remove_edge, literal_metrics.way_of(question, 0)
        )
        assert cell.per_reference == (cell.value,)


def check_ec_feature(found):
    for name, target, question, f, ties, references in found.features():
        cell, draws = found.cell(name, target, "feature_ec"), found.evaluator.settings.draws
        counts, flips = [], []
        for ref in references:
            order, phis = (
                literal_metrics.feature_order(question, f, ties, ref.pull),
                [ref.phi, *ref.more],
            )
            _, each = literal_metrics.algorithm_5_ec_feature(
                question, f, ties, [(phi, ref.pull) for phi in phis]
            )
            flipped = [
                literal_metrics.ever_changed(
                    question, order, literal_metrics.substituting(phi), ref.pull
                )
                for phi in phis
            ]
            counts.append(each)
            flips.append(sum(flipped) / draws >= 0.5)
        means = [literal_metrics.average(each) for each in counts]
        assert cell.value == pytest.approx(min(means), abs=CLOSE)
        assert cell.per_reference == pytest.approx(means, abs=CLOSE)
        assert cell.flipped == any(
            flip for flip, mean in zip(flips, means, strict=True) if mean == min(means)
        )
        assert cell.draws == (None if draws == 1 else tuple(counts[means.index(min(means))]))


def check_pertinence_edge(found):
    for name, target, question, s, ties, permutations in found.edges():
        cell, ec = (
            found.cell(name, target, "edge_pertinence"),
            literal_metrics.algorithm_4_ec_edge(question, s, ties),
        )
        value, trials, reason = literal_metrics.algorithm_6_pertinence_edge(
            question, s, ec, ties, permutations
        )
        assert (cell.trials, cell.stop) == ((trials,), (reason,))
        assert abs(cell.value - value) <= CLOSE


def check_pertinence_feature(found):
    settings = found.evaluator.settings
    for name, target, question, f, ties, references in found.features():
        cell = found.cell(name, target, "feature_pertinence")
        ec, _ = literal_metrics.algorithm_5_ec_feature(
            question, f, ties, [(ref.phi, ref.pull) for ref in references]
        )
        given = [ref.as_given for ref in references]
        if settings.random_orders == "blocks" and settings.twins:
            orders = [
                literal_metrics.feature_order(question, f, ties, ref.pull) for ref in references
            ]
            twins = [found.drawn[target].twin_orders(question, order) for order in orders]
            given = [(ref.phi, own, ref.pull) for ref, own in zip(references, twins, strict=True)]
            fewest = tuple(min(number, settings.feature_trials) for number in settings.trials)
            question = replace(question, settings=replace(settings, trials=fewest))
        value, each = literal_metrics.algorithm_7_pertinence_feature(question, f, ec, ties, given)
        assert cell.trials == tuple(trials for _, trials, _ in each)
        assert cell.stop == tuple(reason for _, _, reason in each)
        assert cell.per_reference == pytest.approx([own for own, _, _ in each], abs=CLOSE)
        assert abs(cell.value - value) <= CLOSE


def check_twins(found):
    number = found.evaluator.settings.twin_trials
    for name, target, question, s, ties, permutations in found.edges():
        order, way = (
            literal_metrics.edge_order(question, s, ties),
            literal_metrics.way_of(question, 0),
        )
        case = literal_metrics.twins_of_case(
            question, order, literal_metrics.remove_edge, permutations[:number], way
        )
        check_same(
            found, name, target, "edge", literal_metrics.twins_of_cases([case], question.tolerance)
        )
    for name, target, question, f, ties, references in found.features():
        cases = []
        for ref in references:
            order = literal_metrics.feature_order(question, f, ties, ref.pull)
            orders = found.drawn[target].twin_orders(question, order)
            cases.append(
                literal_metrics.twins_of_case(
                    question, order, literal_metrics.substituting(ref.phi), orders, ref.pull
                )
            )
        check_same(
            found,
            name,
            target,
            "feature",
            literal_metrics.twins_of_cases(cases, question.tolerance),
        )


def check_same(found, name, target, side, wanted):
    twins = {
        metric
        for *own, metric in found.cells
        if own == [name, target] and metric.startswith(f"{side}_pertinence_")
    }
    assert twins == {f"{side}_pertinence_{twin}" for twin in wanted}
    for twin, value in wanted.items():
        assert abs(found.cell(name, target, f"{side}_pertinence_{twin}").value - value) <= CLOSE


def check_gaps(found):
    """Nothing has a value that should have none."""
    for (name, target, metric), cell in found.cells.items():
        if metric.startswith(("edge_ec", "edge_pertinence")):
            assert cell.status == ("ok" if found.questions[target].units else "empty"), (
                name,
                target,
                metric,
            )
        if metric.startswith(("feature_ec", "feature_pertinence")):
            assert cell.status == ("ok" if found.references[target] else "no_reference"), (
                name,
                target,
                metric,
            )


def check_curves(found):
    """All that comes from curves."""
    for check in (
        check_gaps,
        check_ec_edge,
        check_ec_feature,
        check_pertinence_edge,
        check_pertinence_feature,
    ):
        check(found)
    if found.evaluator.settings.twins:
        check_twins(found)


# --- Stability ------------------------------------------------------------------------------------


def likeness(question, side):
    """ρ_edge or ρ_feat of two (f, s)."""
    if side == "edge":
        return lambda a, b: literal_metrics.algorithm_2_stability_pair_edge(question, a[1], b[1])
    return lambda a, b: literal_metrics.algorithm_3_stability_pair_feature(question, a[0], b[0])


def alike(one, other):
    """The same cell: bit for bit on a CPU, within 1e-12 on a GPU, which adds up in any order."""
    if DEVICE == "cpu":
        return one == other
    numbers = [[cell.value, cell.error, *(cell.per_reference or ())] for cell in (one, other)]
    rest = [(cell.status, cell.trials, cell.stop, cell.flipped) for cell in (one, other)]
    return rest[0] == rest[1] and not any(differ(a, b) for a, b in zip(*numbers, strict=True))


def parts_of(question, side, a, b):
    """The parts of two (f, s) that are permuted apart."""
    parts, k = (
        (literal_metrics.edge_parts, 1) if side == "edge" else (literal_metrics.feature_parts, 0)
    )
    return list(zip(parts(question, a[k]), parts(question, b[k]), strict=True))


def check_corrected(cell, wanted):
    assert cell.status == ("constant" if wanted is None else "ok")
    assert wanted is None or abs(cell.value - wanted) <= CLOSE


def check_stability(found, name):
    """Algorithm 1 and its corrected twin."""
    explainer, chosen = found.explainers[name], found.evaluator.settings
    for target, question in found.questions.items():
        averages, trials, reasons = literal_metrics.algorithm_1_stability(
            question, found.drawn[target].pairs(explainer)
        )
        first = list(found.drawn[target].pairs(explainer))[: _pair_schedule(chosen)[0]]
        for side, value in averages.items():
            cell, twin = (
                found.cell(name, target, f"{side}_stability"),
                found.cell(name, target, f"{side}_stability_corrected"),
            )
            if value is None:
                assert cell.status == twin.status == "empty"
                continue
            assert (cell.trials, cell.stop) == ((trials,), (reasons[side],))
            assert abs(cell.value - value) <= CLOSE
            again = [first[k % len(first)] for k in range(chosen.permutations)]
            draw = found.drawn[target].permuting(
                side, chosen.permutations if len(first) == 1 else 0
            )
            chance = literal_metrics.chance(
                [parts_of(question, side, *pair) for pair in again], draw
            )
            check_corrected(twin, literal_metrics.corrected(value, chance))


def check_stability_of_all_pairs(found, name):
    """The binomial form and its corrected twin."""
    explainer, chosen = found.explainers[name], found.evaluator.settings
    for target, question in found.questions.items():
        made = found.drawn[target].explanations(explainer, chosen.calls)
        for side in ("feature", "edge") if question.e_rel else ("feature",):
            cell, twin = (
                found.cell(name, target, f"{side}_stability"),
                found.cell(name, target, f"{side}_stability_corrected"),
            )
            value, error = literal_metrics.all_pairs(made, likeness(question, side))
            assert (cell.trials, cell.stop) == ((chosen.calls,), ("binomial",))
            assert abs(cell.value - value) <= CLOSE
            assert abs(cell.error - error) <= CLOSE
            neighbours = [
                (made[k % chosen.calls], made[(k + 1) % chosen.calls])
                for k in range(chosen.permutations)
            ]
            chance = literal_metrics.chance(
                [parts_of(question, side, *two) for two in neighbours],
                found.drawn[target].permuting(side),
            )
            check_corrected(twin, literal_metrics.corrected(value, chance))


@every_task
def test_algorithm_1_stability(task, layer):
    check_stability(study(task, layer), "random")


@every_task
def test_algorithm_2_stability_pair_edge(task, layer):
    found = study(task, layer, trials=(1, 1), explainers=("random",))  # one pair
    for target, question in found.questions.items():
        if question.e_rel:
            ((_, s_1), (_, s_2)) = next(found.drawn[target].pairs(found.explainers["random"]))
            wanted = literal_metrics.algorithm_2_stability_pair_edge(question, s_1, s_2)
            assert abs(found.cell("random", target, "edge_stability").value - wanted) <= CLOSE


@every_task
def test_algorithm_3_stability_pair_feature(task, layer):
    found = study(task, layer, trials=(1, 1), explainers=("random",))
    for target, question in found.questions.items():
        ((f_1, _), (f_2, _)) = next(found.drawn[target].pairs(found.explainers["random"]))
        wanted = literal_metrics.algorithm_3_stability_pair_feature(question, f_1, f_2)
        assert abs(found.cell("random", target, "feature_stability").value - wanted) <= CLOSE


@every_task
def test_equation_stability_edge(task, layer):
    found = study(task, layer)
    for target, question in found.questions.items():
        if question.e_rel:
            cell = found.cell("random", target, "edge_stability")
            pairs = list(found.drawn[target].pairs(found.explainers["random"]))[: cell.trials[0]]
            E_rel = question.e_rel
            rho = []
            for (_, s_1), (_, s_2) in pairs:
                a, b = torch.tensor(
                    [[s[e] for e in E_rel] for s in (s_1, s_2)], dtype=torch.float64
                )
                rho.append(1 - float((a / a.norm() - b / b.norm()).norm()) / 2)
            assert abs(cell.value - sum(rho) / len(pairs)) <= CLOSE


@every_task
def test_equation_stability_feature(task, layer):
    found = study(task, layer)
    for target, question in found.questions.items():
        cell = found.cell("random", target, "feature_stability")
        pairs = list(found.drawn[target].pairs(found.explainers["random"]))[: cell.trials[0]]
        rho = []
        for (f_1, _), (f_2, _) in pairs:
            d = []
            for nodes in (list(question.ends), question.v_neigh):
                if nodes:
                    a, b = (torch.tensor(f, dtype=torch.float64)[nodes] for f in (f_1, f_2))
                    d.append(float((a / a.norm() - b / b.norm()).norm()) / 2)
            rho.append(1 - sum(d) / len(d))
        assert abs(cell.value - sum(rho) / len(pairs)) <= CLOSE


@pytest.mark.parametrize("layer", LAYERS)
def test_stability_of_a_learned_explainer_and_of_one_that_always_says_the_same(layer):
    found = study("node_classes", layer, explainers=("input_x_gradient",))
    learned = replace(
        found,
        explainers={
            "gnn_explainer": gg.GNNExplainer(epochs=3),
            "input_x_gradient": gg.InputXGradient(),
        },
    )
    check_stability(learned, "gnn_explainer")
    for target, question in found.questions.items():
        for side in ("feature", "edge") if question.e_rel else ("feature",):
            cell = learned.cell("input_x_gradient", target, f"{side}_stability")
            assert (cell.trials, cell.stop) == ((1,), ("deterministic",))
            # a GPU adds up in any order
            assert cell.value == (1.0 if DEVICE == "cpu" else pytest.approx(1.0, abs=CLOSE))


# --- Effective Compactness and Pertinence ---------------------------------------------------------


@every_task
def test_algorithm_4_ec_edge(task, layer):
    check_ec_edge(study(task, layer))


@every_task
def test_algorithm_5_ec_feature(task, layer):
    check_ec_feature(study(task, layer))


@every_task
def test_algorithm_6_pertinence_edge(task, layer):
    check_pertinence_edge(study(task, layer))


@every_task
def test_algorithm_7_pertinence_feature(task, layer):
    check_pertinence_feature(study(task, layer))


@every_task
def test_equation_ec_edge(task, layer):
    found = study(task, layer)
    for name, target, question, s, ties, _ in found.edges():
        order = literal_metrics.edge_order(question, s, ties)
        assert found.cell(name, target, "edge_ec").value == literal_metrics.equation_ec(
            question, order, literal_metrics.remove_edge
        )


@every_task
def test_equation_k_of_a_reference(task, layer):
    found = study(task, layer)
    for name, target, question, f, ties, references in found.features():
        order = literal_metrics.feature_order(question, f, ties)
        k = [
            literal_metrics.equation_ec(question, order, literal_metrics.substituting(ref.phi))
            for ref in references
        ]
        assert found.cell(name, target, "feature_ec").per_reference == tuple(k)


@every_task
def test_equation_ec_feature(task, layer):
    found = study(task, layer)
    for name, target, question, f, ties, references in found.features():
        order = literal_metrics.feature_order(question, f, ties)
        k = [
            literal_metrics.equation_ec(question, order, literal_metrics.substituting(ref.phi))
            for ref in references
        ]
        assert found.cell(name, target, "feature_ec").value == min(k)


@every_task
def test_equation_p_of_one_random_curve(task, layer):
    found = study(task, layer, trials=(1, 1), explainers=("random",))
    for name, target, question, s, ties, (first, *_) in found.edges():
        order = literal_metrics.edge_order(question, s, ties)
        K = literal_metrics.equation_ec(question, order, literal_metrics.remove_edge)
        curves = [
            literal_metrics.deletion_curve(question, one, K, literal_metrics.remove_edge)
            for one in (order, first)
        ]
        wanted = literal_metrics.equation_p(*curves, question.tolerance)
        assert abs(found.cell(name, target, "edge_pertinence").value - wanted) <= CLOSE


@every_task
def test_equation_pertinence_edge(task, layer):
    found = study(task, layer, early_stop="none", explainers=("random",))
    for name, target, question, s, ties, permutations in found.edges():
        wanted = literal_metrics.equation_pertinence_edge(
            question, s, ties, permutations[: FEW["trials"][1]]
        )
        cell = found.cell(name, target, "edge_pertinence")
        assert (cell.trials, cell.stop) == ((FEW["trials"][1],), ("most",))
        assert abs(cell.value - wanted) <= CLOSE


@every_task
def test_equation_pertinence_feature(task, layer):
    found = study(task, layer, early_stop="none", explainers=("random",))
    for name, target, question, f, ties, references in found.features():
        given_with = [(ref.phi, ref.orders[: FEW["trials"][1]], ref.pull) for ref in references]
        wanted = literal_metrics.equation_pertinence_feature(question, f, ties, given_with)
        assert abs(found.cell(name, target, "feature_pertinence").value - wanted) <= CLOSE


@every_task
def test_equation_calibrated_twins(task, layer):
    check_twins(study(task, layer))


@every_task
def test_explanations_have_no_value_only_where_there_is_nothing_to_edit(task, layer):
    check_gaps(study(task, layer))


# --- early stopping -------------------------------------------------------------------------------


def stops_of(found):
    """Every stop of the curves of a study, as the Evaluator told it."""
    return [stop for cell in found.cells.values() for stop in cell.stop or ()]


def test_equation_mean_convergence():
    found = study("node_classes", "SAGE", trials=(2, 9), tau=0.5, epsilon=0.0)
    check_curves(found)
    check_stability(found, "random")
    assert (
        {"decided", "most"}
        <= set(stops_of(found))
        <= {"decided", "most", "constant", "deterministic"}
    )


def test_equation_precision_tolerance():
    found = study("node_classes", "GAT", trials=(2, 9), tau=None, epsilon=0.3)
    check_curves(found)
    check_stability(found, "random")
    assert (
        {"precise", "most"}
        <= set(stops_of(found))
        <= {"precise", "most", "constant", "deterministic"}
    )


def test_early_stopping_begins_at_the_least_and_ends_at_the_most_number_of_trials():
    cells = study("node_classes", "GAT", trials=(4, 7)).cells.values()
    trials = {
        n
        for cell in cells
        for n, why in zip(cell.trials or (), cell.stop or (), strict=True)
        if why != "deterministic"
    }
    assert min(trials) == 4
    assert max(trials) == 7


def test_without_early_stopping_all_trials_are_made():
    # all means are precise
    found = study("node_values", "GCN", early_stop="none", trials=(2, 5), epsilon=2.0)
    check_curves(found)
    check_stability(found, "random")
    assert set(stops_of(found)) == {"most", "deterministic"}


def test_trials_of_every_stage_are_counted_once():
    trials = set()
    for epsilon in (0.11, 0.15):
        found = study("node_classes", "GCN", trials=(2, 45), tau=None, epsilon=epsilon, cap=3)
        check_curves(found)
        check_stability(found, "random")
        trials |= {n for cell in found.cells.values() for n in cell.trials or ()}
    # 4: the twins'
    assert all(any(a < n <= b for n in trials) for a, b in ((0, 4), (4, 14), (14, 34), (34, 45)))


# --- settings -------------------------------------------------------------------------------------

VARIANTS = {
    "drop": {"edge_removal": "drop"},
    "induced": {"edge_scope": "induced"},
    "induced, drop": {"edge_scope": "induced", "edge_removal": "drop"},
    "undirected": {"removal_unit": "undirected"},
    "undirected, drop, magnitude": {
        "removal_unit": "undirected",
        "edge_removal": "drop",
        "order": "magnitude",
    },
    "magnitude": {"order": "magnitude"},
    "sum": {"pooling": "sum"},
    "mean": {"pooling": "mean"},
    "abs_max": {"pooling": "abs_max"},
    "long curves": {"cap": 30, "trials": (2, 3), "twin_trials": 2},
    "more twins than trials": {"trials": (2, 3), "twin_trials": 6},
    "no twins": {"twins": False, "cap": 30, "trials": (2, 3)},
    "rough": {"tolerance": 0.05},
}


LEVELS = ["node_classes", "link_values", "graph_classes"]


@pytest.mark.parametrize(
    ("task", "layer", "variant"),
    [
        (task, list(LAYERS)[(i + j) % 3], variant)
        for i, task in enumerate(LEVELS)
        for j, variant in enumerate(VARIANTS)
    ],
)
def test_every_setting_means_what_the_paper_or_the_specification_says(task, layer, variant):
    check_curves(study(task, layer, **VARIANTS[variant]))


@pytest.mark.parametrize("how", ["raw", "towards", "abs"])
@pytest.mark.parametrize("task", ["node_values", "link_values", "graph_values"])
def test_regression_curves_are_read_raw_towards_the_reference_or_by_their_change(task, how):
    check_curves(study(task, "SAGE", regression_curve=how, flip=0.5, flip_unit="sd"))


@pytest.mark.parametrize("direction", ["any", "down", "up", "towards_reference"])
@pytest.mark.parametrize("task", ["node_values", "link_values", "graph_values"])
def test_a_direction_decides_order_curve_and_ec_of_values_alike(task, direction):
    check_curves(study(task, "SAGE", direction=direction, flip=0.5, flip_unit="sd", draws=2))


@pytest.mark.parametrize("task", ["node_classes", "link_existence", "graph_classes"])
def test_a_direction_is_of_values_only(task):
    cells = [study(task, "SAGE", direction=direction).cells for direction in ("paper", "up")]
    assert all(
        alike(cell, cells[1][key])
        for key, cell in cells[0].items()
        if not key[2].startswith("time")
    )


def test_any_direction_is_the_order_by_magnitude_and_the_curve_of_the_change():
    found = study("link_values", "SAGE", direction="any", explainers=("input_x_gradient",))
    by_hand = study(
        "link_values",
        "SAGE",
        order="magnitude",
        regression_curve="abs",
        explainers=("input_x_gradient",),
    )
    assert all(
        alike(cell, by_hand.cells[key])
        for key, cell in found.cells.items()
        if not key[2].startswith("time")
    )


@pytest.mark.parametrize("task", ["node_classes", "link_existence", "node_values"])
def test_the_ec_of_features_is_the_mean_over_the_draws_of_the_neighbours_map(task):
    found = study(task, "GCN", draws=4, early_stop="none", random_orders="blocks")
    check_curves(found)
    assert any(
        len(set(cell.draws)) > 1
        for (*_, metric), cell in found.cells.items()
        if metric == "feature_ec"
    )


@pytest.mark.parametrize("how", ["raw", "towards", "abs"])
@pytest.mark.parametrize("task", ["node_classes", "node_values"])
def test_a_story_counts_the_points_that_the_pertinence_counts(task, how):
    found, told = study(task, "SAGE", regression_curve=how, flip=0.5, flip_unit="sd"), 0
    for row in found.results.rows:
        if row.metric.endswith("_pertinence") and row.cell.status == "ok":
            for case, score in zip(
                found.results.explain(row).cases, row.cell.per_reference, strict=True
            ):
                assert case.won == pytest.approx(score, abs=CLOSE)
                assert case.won + case.tied + case.lost == pytest.approx(1, abs=CLOSE)
                told += 1
    assert told > 4


@pytest.mark.parametrize("task", ["node_classes", "node_values", "link_existence", "graph_classes"])
def test_the_calibrated_preset_takes_the_easiest_of_three_medoids_and_all_pairs_of_explanations(
    task,
):
    found = study(
        task,
        "SAGE",
        preset="calibrated",
        trials=(4, 4),
        cap=5,
        calls=4,
        explainers=("random",),
        permutations=5,
    )
    chosen = found.evaluator.settings
    assert (chosen.medoids, chosen.pooling, chosen.stability, chosen.early_stop) == (
        3,
        "sum",
        "binomial",
        "none",
    )
    check_curves(found)
    check_stability_of_all_pairs(found, "random")


def test_the_easiest_of_three_medoids_is_not_always_the_first():
    found = study(
        "node_classes",
        "SAGE",
        preset="calibrated",
        trials=(4, 4),
        cap=5,
        calls=4,
        explainers=("random",),
        permutations=5,
    )
    ranks = set()
    for target, used in found.references.items():
        everything = found.drawn[target].references(12, found.questions[target])
        ranks |= {
            [ref.phi for ref in everything if ref.kind == one.kind].index(one.phi) for one in used
        }
    assert len(ranks) > 1


@every_task
def test_without_twins_the_papers_numbers_are_the_same(task, layer):
    full = study(task, layer)
    short = study(task, layer, twins=False)
    assert {key for key in full.cells if key in short.cells} == set(short.cells)
    for key, cell in short.cells.items():
        if not key[2].startswith("time"):
            assert alike(cell, full.cells[key])


@pytest.mark.parametrize("layer", LAYERS)
def test_given_explanations_get_the_numbers_of_compare(layer):
    found = study("node_classes", layer)
    xs = [
        x
        for e in found.explainers.values()
        for x in e.explain(found.task.model, found.task.targets, seed=found.evaluator.seed)
    ]
    for row in found.evaluator.evaluate(xs).rows:
        if not row.metric.startswith("time"):
            assert alike(row.cell, found.cells[row.explainer, row.target, row.metric])


@pytest.mark.parametrize("task", ["node_classes", "link_values", "graph_classes"])
def test_no_number_depends_on_who_else_takes_part_or_on_groups_of_targets(task, monkeypatch):
    found = study(task, "SAGE")
    monkeypatch.setattr("graphgauge.evaluation.explanation_scoring._MOST_HEIGHTS", 1)
    for target in found.task.targets[1:]:
        alone = found.evaluator.compare({"random": gg.RandomExplainer()}, [target]).rows
        for row in alone:
            if not row.metric.startswith("time"):
                assert alike(row.cell, found.cells["random", target, row.metric])
    for row in found.evaluator.compare(found.explainers, found.task.targets).rows:
        if not row.metric.startswith("time"):
            assert alike(row.cell, found.cells[row.explainer, row.target, row.metric])


@pytest.mark.parametrize("own", ["messages", "induced"])
def test_the_evaluators_scope_holds_whatever_the_models_is(own):
    other = {"messages": "induced", "induced": "messages"}[own]
    task = node_classes(GCNConv, random_graph(30, 60, dtype=torch.float64), edge_scope=own)
    found = Study(
        task,
        gg.Evaluator(task.model, seed=5, **{**FEW, "edge_scope": other}),
        {"random": gg.RandomExplainer()},
    )
    check_curves(found)
    check_stability(found, "random")


#: what to change, in which study, and which metrics may move then (others must not)
MOVES = {
    "edge_removal": ("node_classes", {"edge_removal": "drop"}, ["edge_ec", "edge_pertinence"]),
    "edge_scope": ("node_classes", {"edge_scope": "induced"}, ["edge_ec", "edge_pertinence"]),
    "removal_unit": ("link_values", {"removal_unit": "undirected"}, ["edge_ec", "edge_pertinence"]),
    "order": (
        "node_classes",
        {"order": "magnitude"},
        ["edge_ec", "edge_pertinence", "feature_ec", "feature_pertinence"],
    ),
    "cap": (
        "node_classes",
        {"cap": 3},
        ["edge_ec", "edge_pertinence", "feature_ec", "feature_pertinence"],
    ),
    "flip": (
        "link_values",
        {"flip": 0.7},
        ["edge_ec", "edge_pertinence", "feature_ec", "feature_pertinence"],
    ),
    "flip_unit": (
        "link_values",
        {"flip_unit": "sd"},
        ["edge_ec", "edge_pertinence", "feature_ec", "feature_pertinence"],
    ),
    "tolerance": (
        "node_classes",
        {"tolerance": 0.05},
        ["edge_ec", "edge_pertinence", "feature_ec", "feature_pertinence"],
    ),
    "regression_curve": (
        "link_values",
        {"regression_curve": "abs"},
        ["edge_pertinence", "feature_pertinence"],
    ),
    "pooling": ("node_classes", {"pooling": "sum"}, ["feature_ec", "feature_pertinence"]),
    "medoids": ("node_classes", {"medoids": 3}, ["feature_ec", "feature_pertinence"]),
    "trials": (
        "node_classes",
        {"trials": (4, 5)},
        ["edge_pertinence", "feature_pertinence", "edge_stability", "feature_stability"],
    ),
    "early_stop": (
        "node_classes",
        {"early_stop": "none"},
        ["edge_pertinence", "feature_pertinence", "edge_stab", "feature_stab"],
    ),
    "tau": (
        "node_classes",
        {"tau": None},
        ["edge_pertinence", "feature_pertinence", "edge_stability", "feature_stability"],
    ),
    "epsilon": (
        "node_classes",
        {"epsilon": 0.5},
        ["edge_pertinence", "feature_pertinence", "edge_stability", "feature_stability"],
    ),
    "twin_trials": ("node_classes", {"twin_trials": 2}, ["edge_pertinence_"]),
    "feature_trials": ("node_classes", {"feature_trials": 2}, ["feature_pertinence_"]),
    "random_orders": ("node_classes", {"random_orders": "blocks"}, ["feature_pertinence"]),
    "draws": ("link_existence", {"draws": 3}, ["feature_ec"]),
    "direction": (
        "link_values",
        {"direction": "down"},
        ["edge_ec", "edge_pertinence", "feature_ec", "feature_pertinence"],
    ),
    "stability": (
        "node_classes",
        {"stability": "binomial"},
        ["edge_stability", "feature_stability"],
    ),
    "calls": ("node_classes", {"calls": 4}, ["edge_stability", "feature_stability"]),
    "permutations": (
        "node_classes",
        {"permutations": 2},
        ["edge_stability_corrected", "feature_stability_corrected"],
    ),
}
#: what is measured, timed, kept or shown; no number moves
STILL = {"sides", "twins", "timed", "extras", "top", "headline", "keep"}


def differ(a, b):
    return (a is None) != (b is None) or (a is not None and abs(a - b) > CLOSE)


@pytest.mark.parametrize("name", MOVES)
def test_every_setting_moves_the_numbers_that_it_is_about_and_no_others(name):
    task, changed, about = MOVES[name]
    base = {
        "calls": {"stability": "binomial", "calls": 3},
        "flip_unit": {"flip": 0.7},
    }.get(name, {})
    before, after = (study(task, "SAGE", **{**base, **own}).cells for own in ({}, changed))
    moved = {key[2] for key, cell in before.items() if differ(cell.value, after[key].value)} - {
        "time_batched"
    }
    assert moved
    assert all(metric.startswith(tuple(about)) for metric in moved)


@pytest.mark.parametrize("task", ["node_values", "graph_values"])
def test_an_absolute_flip_threshold_is_in_the_unit_of_the_predictions(task):
    found = study(task, "SAGE", flip=0.15, flip_unit="absolute")
    check_curves(found)
    in_units = study(task, "SAGE", flip=0.15 / found.evaluator.model.spread, flip_unit="sd")
    assert {
        key: cell.value for key, cell in found.cells.items() if not key[2].startswith("time")
    } == {key: cell.value for key, cell in in_units.cells.items() if not key[2].startswith("time")}


def test_every_setting_is_known_to_move_numbers_or_not_to():
    assert {field.name for field in fields(Settings)} == MOVES.keys() | STILL
    assert MOVES.keys().isdisjoint(STILL)


def test_betting_stops_where_its_wealth_says():
    found = study(
        "node_classes",
        "GCN",
        early_stop="betting",
        trials=(3, 25),
        tau=0.5,
        explainers=("input_x_gradient",),
    )
    for name, target, question, s, ties, permutations in found.edges():
        order, cell = (
            literal_metrics.edge_order(question, s, ties),
            found.cell(name, target, "edge_pertinence"),
        )
        K = literal_metrics.equation_ec(question, order, literal_metrics.remove_edge)
        C_del, *C_rand = (
            literal_metrics.deletion_curve(question, one, K, literal_metrics.remove_edge)
            for one in (order, *permutations)
        )
        values = [literal_metrics.equation_p(C_del, curve, question.tolerance) for curve in C_rand]
        trials, reason = literal_metrics.betting(values[:25], 0.5)
        assert (cell.trials, cell.stop) == ((trials,), (reason,))
        assert abs(cell.value - literal_metrics.average(values[:trials])) <= CLOSE
    assert "decided" in stops_of(found)


# --- predictions that are no numbers --------------------------------------------------------------


class Frail(torch.nn.Module):
    """One layer that gives NaN to a node that receives nothing."""

    def __init__(self):
        super().__init__()
        self.net = build(Stack, SAGEConv, 1, seed=3, dtype=torch.float64)

    def forward(self, x, edge_index):
        received = torch.bincount(edge_index[1], minlength=len(x)).to(x)[:, None]
        return self.net(x, edge_index) * (received / received)


def test_nan_is_held_against_those_explanations_only_that_meet_it():
    edges = torch.tensor([[v, (v + d) % 9] for v in range(9) for d in (1, 2, 3, 4)]).t()
    x = 2 * torch.randn(9, FEATURES, generator=make_generator(0), dtype=torch.float64)
    model = gg.NodeClassificationModel(Frail(), Data(x=x, edge_index=edges), output="logits")
    graph = model.computation_graphs([3])[0]
    scores = {
        f"made {k}": torch.randn(4, generator=make_generator(k), dtype=torch.float64)
        for k in range(10)
    }
    xs = {
        name: gg.Xplanation(
            3, graph.nodes, graph.edges, 9, edges.size(1), edge_score=score, explainer=name
        )
        for name, score in scores.items()
    }
    found = {}
    for twins in (True, False):
        evaluator = gg.Evaluator(model, edge_removal="drop", **{**FEW, "twins": twins})
        together = {
            (row.explainer, row.metric): row.cell
            for row in evaluator.evaluate(list(xs.values())).rows
        }
        for name, x in xs.items():
            x.metrics.clear()
            alone = {(name, row.metric): row.cell for row in evaluator.evaluate(x).rows}
            assert all(together[key] == cell for key, cell in alone.items())
        found[twins] = {name: together[name, "edge_pertinence"] for name in xs}
    assert found[True] == found[False]
    assert {cell.status for cell in found[True].values()} == {"ok", "nan_prediction"}
    assert all(
        together[name, "edge_ec"].status == "ok"
        for name, cell in found[True].items()
        if cell.status == "ok"
    )


# --- any graph ------------------------------------------------------------------------------------


@st.composite
def some_settings(draw):
    """Any settings that move curves, with few trials."""
    chosen = {
        name: draw(st.sampled_from(_CHOICES[name]))
        for name in (
            "edge_removal",
            "edge_scope",
            "removal_unit",
            "order",
            "regression_curve",
            "pooling",
            "flip_unit",
        )
    }
    least = draw(st.integers(1, 3))
    chosen |= {
        "trials": (least, draw(st.integers(least, 5))),
        "twin_trials": draw(st.integers(1, 4)),
        "timed": 0,
    }
    if chosen["regression_curve"] == "raw":
        chosen["direction"] = draw(st.sampled_from(_CHOICES["direction"]))
    chosen |= {"draws": draw(st.integers(1, 2)), "feature_trials": draw(st.integers(1, 4))}
    chosen["random_orders"] = draw(st.sampled_from(_CHOICES["random_orders"]))
    return chosen | {
        "cap": draw(st.integers(1, 9)),
        "tau": draw(st.sampled_from([None, 0.5])),
        "twins": draw(st.booleans()),
    }


@st.composite
def some_task(draw, name, layer):
    """A model of any graph or graphs, whose features may be 0 or 1 only, and one or two of its
    targets.
    """
    level = name.split("_")[0]
    data = draw(
        st.lists(graphs(), min_size=1, max_size=4)
        if level == "graph"
        else graphs(min_nodes=2 if level == "link" else 1)
    )
    if draw(st.booleans()):
        for graph in data if level == "graph" else [data]:
            graph.x = (graph.x > 0).to(graph.x)
    number = st.integers(0, (len(data) if level == "graph" else data.num_nodes) - 1)
    link = st.tuples(number, number).filter(lambda ends: ends[0] != ends[1])
    task = TASKS[name](LAYERS[layer], data)
    task.targets = draw(
        st.lists(link if level == "link" else number, min_size=1, max_size=2, unique=True)
    )
    return task


@pytest.mark.filterwarnings("ignore:flip=")  # any threshold, for values of any spread
@every_task
@settings(max_examples=10)
@given(draw=st.data())
def test_all_of_it_holds_on_any_graph(task, layer, draw):
    own = draw.draw(some_task(task, layer), label="task")
    # of equal predictions, the flip band has no width
    assume(own.spread is None or own.spread > 1e-3)
    evaluator = gg.Evaluator(
        own.model,
        seed=draw.draw(st.integers(0, 99)),
        **draw.draw(some_settings(), label="settings"),
    )
    found = Study(own, evaluator, {"random": gg.RandomExplainer(), "gradient": gg.InputXGradient()})
    check_curves(found)
    if evaluator.settings.twins:
        check_stability(found, "random")
