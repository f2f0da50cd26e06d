"""Records of settings, of this version and of earlier ones, and the unit of `flip`."""

import warnings

import pytest
from support.hand_computed_networks import OfNodes, graph
from support.quick_evaluation import QUICK, node_model

import graphgauge as gg
from graphgauge.core.errors import BadSetting, GraphgaugeWarning
from graphgauge.evaluation import PRESETS, Settings


@pytest.mark.parametrize("preset", PRESETS)
def test_a_record_gives_the_same_settings_again(preset):
    settings = PRESETS[preset]
    assert Settings.from_record(settings.record()) == settings
    assert Settings.from_record(settings.to_dict()) == settings


def test_the_presets_say_what_counts_as_a_change_of_a_value():
    presets = {name: (own.flip, own.flip_unit) for name, own in PRESETS.items()}
    assert presets == {"paper": (0.1, "absolute"), "calibrated": (0.2, "sd")}


def test_a_record_without_a_unit_counted_standard_deviations():
    record = {**PRESETS["paper"].record(), "flip": 0.2}
    del record["flip_unit"]
    old = Settings.from_record(record)
    assert (old.flip, old.flip_unit) == (0.2, "sd")
    assert old.record() == record
    # the digest that the preset "paper" had when this was its threshold
    assert old.digest == "371f16dfc736"
    assert PRESETS["paper"].digest != old.digest


def test_a_record_of_another_version_or_with_impossible_values_is_refused():
    record = PRESETS["paper"].record()
    with pytest.raises(TypeError, match="speed"):
        Settings.from_record({**record, "speed": 3})
    with pytest.raises(LookupError, match="trials"):
        Settings.from_record({"cap": 3})
    with pytest.raises(BadSetting, match="cap must be"):
        Settings.from_record({**record, "cap": 0})


# --- thresholds in the wrong unit -----------------------------------------------------------------


def scaled_model(unit):
    """Node 0 adds up what three leaves send; values are in the given unit."""
    data = graph([(1, 0), (2, 0), (3, 0)], [[0.0], [3.0], [2.0], [1.0]])
    net = OfNodes(lambda x, sent: unit * sent)
    return gg.NodeRegressionModel(net, data, embedding=lambda net, g: g.x)


def flip_warnings(model, **settings):
    """The messages about the threshold that `compare` and `evaluate` each give."""
    evaluator = gg.Evaluator(model, **{**QUICK, **settings})
    found = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        xs = gg.InputXGradient().explain(model, [0])
        calls = (
            lambda: evaluator.compare(gg.InputXGradient(), [0]),
            lambda: evaluator.evaluate(xs),
        )
        for call in calls:
            caught.clear()
            call()
            own = [each for each in caught if issubclass(each.category, GraphgaugeWarning)]
            assert all(each.filename == __file__ for each in own)
            found.append([str(each.message) for each in own if "flip=" in str(each.message)])
    assert found[0] == found[1]
    return found[0]


def test_a_threshold_that_every_edit_exceeds_is_told_once_a_call():
    model = scaled_model(100_000)
    (message,) = flip_warnings(model)
    assert message == (
        f"flip=0.1 (flip_unit='absolute') is {0.1 / model.spread:.2g} standard deviations of the "
        f"predictions, which is {model.spread:.3g}. Almost every edit counts as a change of the "
        "prediction, so EC and pertinence say little. Use Evaluator(model, flip=0.2, "
        "flip_unit='sd') or preset='calibrated', or give flip in the unit of the predicted values."
    )


def test_a_threshold_that_hardly_any_edit_exceeds_is_told_once_a_call():
    (message,) = flip_warnings(scaled_model(0.001))
    assert "Hardly any edit counts as a change of the prediction" in message


@pytest.mark.parametrize(
    ("in_sd", "is_told"), [(0.009, True), (0.011, False), (2.9, False), (3.1, True)]
)
def test_thresholds_are_told_from_a_hundredth_and_three_standard_deviations(in_sd, is_told):
    model = scaled_model(7.0)
    assert bool(flip_warnings(model, flip=in_sd * model.spread)) is is_told


@pytest.mark.parametrize(
    "settings", [{"flip": 0.2, "flip_unit": "sd"}, {"flip": 1e9, "flip_unit": "sd"}, {"flip": 0.0}]
)
def test_a_threshold_in_standard_deviations_or_of_zero_is_as_it_was_asked_for(settings):
    assert flip_warnings(scaled_model(100_000), **settings) == []


def test_equal_predictions_and_classes_have_no_threshold_in_the_wrong_unit():
    assert flip_warnings(scaled_model(0.0)) == []
    assert flip_warnings(node_model(), flip=1e9) == []
