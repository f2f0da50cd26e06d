"""The networks in the package: their weights give the scores that their records state."""

import pytest

from graphgauge.benchmark.paper.model_accuracy import SCORED_PARTS, score_parts
from graphgauge.datasets import trained, trained_record
from graphgauge.datasets.fingerprints import data_digest
from graphgauge.datasets.network_tasks import NETWORK_TASKS


@pytest.mark.parametrize("task", NETWORK_TASKS.values(), ids=lambda task: task.name)
def test_a_shipped_network_has_the_scores_of_its_record(task, loaded):
    data, record = (
        loaded(task.data_set, task.level),
        trained_record(task.data_set, task.level, task.conv),
    )
    assert record["task"]["data"] == data_digest(data)
    found = score_parts(trained(task.data_set, task.level, task.conv), data, SCORED_PARTS)
    # trained on a GPU: a label in thousands may fall the other way
    assert found == pytest.approx(record["scores_kept"], abs=2e-4)


@pytest.mark.parametrize("task", NETWORK_TASKS.values(), ids=lambda task: task.name)
def test_a_shipped_network_was_chosen_from_the_whole_grid_and_five_seeds(task):
    record = trained_record(task.data_set, task.level, task.conv)
    points = 450 if record["architecture"]["decoder_bias"] else 225
    if task.name.startswith("movielens-link"):  # one point, on batches of pairs
        points = 1
        assert (record["settings"]["pairs"], record["settings"]["steps"]) == (4096, 6000)
    assert (record["settings"]["points"], len(record["settings"]["seeds"])) == (points, 5)
    assert record["task"]["command"].startswith(f"graphgauge train {task.name}")
