"""A stopped comparison continues from what it has finished, and its numbers are the same."""

from dataclasses import dataclass, field

import pytest
from support.quick_evaluation import QUICK, node_model, numbers

import graphgauge as gg
from graphgauge.core import Xplanation, load_explanations, save_explanations
from graphgauge.evaluation import count_kept_phases, remove_kept_phases
from graphgauge.evaluation.phases import EvaluationPhases
from graphgauge.explainers import BaseExplainer

TARGETS = [3, 20, 41, 3]
#: two explainings, both sides, and stability and time of two explainers; the second explanations of
#: target 3 have their own
NUM_PHASES = 12


@dataclass
class Counter:
    """How many explanations an explainer was asked for, and when it is stopped."""

    asked: int = 0
    stop_after: int = 10**9

    def __repr__(self):
        return "counter"


@dataclass(frozen=True)
class Counted(BaseExplainer):
    """Random scores of an explainer that counts its explanations."""

    name, deterministic, signed = "counted", False, True
    counter: Counter = field(default_factory=Counter, compare=False)

    @property
    def params(self):
        return {}

    def scores(self, model, graphs, seeds):
        if self.counter.asked >= self.counter.stop_after:
            raise KeyboardInterrupt
        self.counter.asked += len(graphs)
        return gg.RandomExplainer().scores(model, graphs, seeds)


def evaluator():
    return gg.Evaluator(node_model(), **{**QUICK, "timed": 1})


def stop_in_phase(monkeypatch, number):
    """Ctrl-C in the so-manieth phase."""
    run, calls = EvaluationPhases.run, []

    def stopped(self, name, explainer="shared", steps=0.0):
        if steps:
            calls.append(name)
            if len(calls) == number:
                raise KeyboardInterrupt
        return run(self, name, explainer, steps)

    monkeypatch.setattr(EvaluationPhases, "run", stopped)
    return calls


@pytest.mark.parametrize("number", range(1, NUM_PHASES + 1))
def test_a_stopped_call_continues_with_the_same_numbers(tmp_path, monkeypatch, number):
    explainers = [gg.Saliency(), gg.RandomExplainer()]
    whole = evaluator().compare(explainers, TARGETS)
    with monkeypatch.context() as patch:
        stop_in_phase(patch, number)
        with pytest.raises(KeyboardInterrupt):
            evaluator().compare(explainers, TARGETS, keep_in=tmp_path)
    assert count_kept_phases(tmp_path) == number - 1
    with monkeypatch.context() as patch:
        calls = stop_in_phase(patch, 0)
        results = evaluator().compare(explainers, TARGETS, keep_in=tmp_path)
    assert numbers(results) == numbers(whole)
    assert [row.metric for row in results.rows] == [row.metric for row in whole.rows]
    again = evaluator().compare(explainers, TARGETS)
    assert len(calls) > 0
    for row in results.rows[:3]:
        assert results.explain(row).values == again.explain(row).values


def test_finished_explainers_are_not_explained_again(tmp_path):
    first, second = Counted(), Counted(Counter(stop_after=len(TARGETS) + 1))
    explainers = {"first": first, "second": second}
    whole = evaluator().compare({"first": Counted(), "second": Counted()}, TARGETS)
    with pytest.raises(KeyboardInterrupt):  # in stability, or before
        evaluator().compare(explainers, TARGETS, keep_in=tmp_path)
    asked = first.counter.asked
    second.counter.stop_after = 10**9
    results = evaluator().compare(explainers, TARGETS, keep_in=tmp_path)
    assert first.counter.asked == asked
    assert numbers(results) == numbers(whole)


def test_a_finished_call_is_read_whole_and_measures_nothing(tmp_path, monkeypatch):
    explainers = [gg.Saliency(), gg.RandomExplainer()]
    first = evaluator().compare(explainers, TARGETS, keep_in=tmp_path)
    calls = stop_in_phase(monkeypatch, 0)
    second = evaluator().compare(explainers, TARGETS, keep_in=tmp_path)
    assert calls == []
    assert second.rows == first.rows  # also the times
    key = next(iter(first.stories))
    assert first.stories.keys() == second.stories.keys()
    assert str(first.stories[key]()) == str(second.stories[key]())


@pytest.mark.parametrize(
    "changed",
    [
        {"seed": 1},
        {"cap": 7},
        {"trials": (5, 12)},
        {"extras": True},
    ],
)
def test_what_was_kept_of_another_call_is_not_used(tmp_path, changed):
    options = {**QUICK, **changed}
    explainers = [gg.RandomExplainer()]
    gg.Evaluator(node_model(), **QUICK).compare(explainers, TARGETS, keep_in=tmp_path)
    found = gg.Evaluator(node_model(), **options).compare(explainers, TARGETS, keep_in=tmp_path)
    fresh = gg.Evaluator(node_model(), **options).compare(explainers, TARGETS)
    assert numbers(found) == numbers(fresh)


def test_an_added_explainer_leaves_the_stability_of_the_others(tmp_path, monkeypatch):
    evaluator().compare([gg.RandomExplainer()], TARGETS, keep_in=tmp_path)
    calls = stop_in_phase(monkeypatch, 0)
    both = [gg.RandomExplainer(), gg.Saliency()]
    found = evaluator().compare(both, TARGETS, keep_in=tmp_path)
    assert calls.count("explaining") == 1  # curves are measured for all of them together
    monkeypatch.undo()
    assert numbers(found) == numbers(evaluator().compare(both, TARGETS))


def test_only_kept_phases_are_removed(tmp_path):
    folder = tmp_path / "unfinished"
    evaluator().compare([gg.RandomExplainer()], TARGETS, keep_in=folder)
    (folder / "mine.txt").write_text("")
    remove_kept_phases(folder)
    assert [path.name for path in folder.iterdir()] == ["mine.txt"]
    (folder / "mine.txt").unlink()
    remove_kept_phases(folder)
    assert not folder.exists()
    remove_kept_phases(folder)


def test_explanations_come_back_bit_for_bit(tmp_path):
    xs = gg.RandomExplainer().explain(node_model(), TARGETS)
    save_explanations(xs, tmp_path / "xs.safetensors")
    found = load_explanations(tmp_path / "xs.safetensors")
    for x, y in zip(xs, found, strict=True):
        assert isinstance(y, Xplanation)
        assert (x.target, x.occurrence, x.seconds) == (y.target, y.occurrence, y.seconds)
        assert x.edge_score.equal(y.edge_score)
        assert x.feature_score.equal(y.feature_score)
