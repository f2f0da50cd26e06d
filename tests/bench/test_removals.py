"""The table that holds `drop` against masks, by hand."""

import pytest
import removals
from support.chosen_results import run


def test_a_line_tells_the_change_the_order_and_the_distance_from_the_paper():
    """The paper's edge pertinence and EC in node classification: saliency 0.68, 42.1; GNNExplainer
    0.54, 42.8; LRP 0.75, 43.1.
    """
    numbers = {
        "saliency": ((0.9, 10.1), (0.7, 40.1)),
        "gnn_explainer": ((0.6, 20.8), (0.5, 50.8)),
        "lrp": ((0.95, 30.0), (0.4, 42.0)),
    }
    mask, drop = (
        run(
            {
                name: {"edge_pertinence": own[k][0], "edge_ec": own[k][1]}
                for name, own in numbers.items()
            },
            2,
            task="cora-node",
        )
        for k in (0, 1)
    )
    pertinence, ec = removals.removals(mask, drop).to_dict("records")
    told = ("kind", "metric", "explainers", "change", "order", "mask", "drop")
    assert [pertinence[name] for name in told] == [
        "node_classification",
        "edge_pertinence",
        3,
        pytest.approx((-0.2 - 0.1 - 0.55) / 3),
        pytest.approx(-0.5),  # ranks 2, 1, 3 and 3, 2, 1
        pytest.approx((0.22 + 0.06) / 2),
        pytest.approx((0.02 + 0.04) / 2),
    ]
    assert [ec[name] for name in told[1:]] == [
        "edge_ec",
        3,
        pytest.approx((30 + 30 + 12) / 3),
        pytest.approx(0.0),  # ranks 1, 2, 3 and 1.5, 3, 1.5: 40.1 and 42.0 are a tie
        pytest.approx((32 + 22) / 2),
        pytest.approx((2 + 8) / 2),
    ]


def test_targets_of_one_run_alone_do_not_count():
    mask = run(
        {
            "saliency": {"edge_pertinence": [0.5, 0.6, 0.0]},
            "lrp": {"edge_pertinence": [0.7, 0.8, 0.0]},
        },
        task="cora-node",
    )
    drop = run(
        {"saliency": {"edge_pertinence": [0.4, 0.5]}, "lrp": {"edge_pertinence": [0.6, 0.5]}},
        task="cora-node",
    )
    [line] = removals.removals(mask, drop).to_dict("records")
    assert line["change"] == pytest.approx((-0.1 - 0.2) / 2)


def test_a_kind_that_one_run_lacks_has_no_line():
    own = {"saliency": {"edge_pertinence": [0.5, 0.6]}, "lrp": {"edge_pertinence": [0.7, 0.8]}}
    nodes, links = run(own, task="cora-node"), run(own, task="cora-link", is_link=True)
    assert len(removals.removals(nodes, nodes)) == 1
    assert len(removals.removals(nodes, links)) == 0
