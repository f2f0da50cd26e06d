"""Names of metrics are read in one place."""

import pytest

from graphgauge.metrics import METRICS, MetricName

EXAMPLES = {
    "edge_ec": ("edge", "ec", ""),
    "feature_pertinence": ("feature", "pertinence", ""),
    "feature_pertinence_tied": ("feature", "pertinence", "tied"),
    "edge_stability_corrected": ("edge", "stability", "corrected"),
    "node_precision_at_k": ("node", "precision_at_k", ""),
    "edge_flipped_25": ("edge", "flipped", "25"),
    "time": ("", "time", ""),
    "time_batched": ("", "time", "batched"),
    "feature_steepest_edit": ("feature", "steepest_edit", ""),  # a user's
    "edge_my_pertinence_tied": ("edge", "my_pertinence_tied", ""),  # no form of the family
}


@pytest.mark.parametrize("text", EXAMPLES)
def test_a_name_has_a_side_a_family_and_a_form(text):
    name = MetricName.parse(text)
    assert (name.side, name.family, name.form) == EXAMPLES[text]


@pytest.mark.parametrize("name", METRICS)
@pytest.mark.parametrize("side", ["feature_", "edge_", "node_", ""])
def test_every_name_is_put_together_again_as_it_was(side, name):
    text = name if name.startswith(("feature_", "edge_")) else f"{side}{name}"
    assert str(MetricName.parse(text)) == text
    assert MetricName.parse(text).without_side == text.removeprefix(
        str(MetricName.parse(text).side)
    ).removeprefix("_")


def test_the_twin_of_a_pertinence_stands_for_the_papers():
    assert str(MetricName.parse("edge_pertinence_tied").as_paper()) == "edge_pertinence"
    assert str(MetricName.parse("edge_pertinence_p").as_paper()) == "edge_pertinence_p"
