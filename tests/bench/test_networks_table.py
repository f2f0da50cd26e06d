"""The table of trained networks says what the kept files say."""

import networks
import pytest

from graphgauge.benchmark.paper.network_files import _format_toml
from graphgauge.core.errors import BadFile

SCORES = {"train": 1.0, "val": 0.7, "test": 0.6, "all": 0.9}


def write(folder, name, *, watch="val", bias=False, length=None, **scores):
    folder.mkdir(exist_ok=True)
    mean = {**SCORES, **scores}
    sections = {
        "architecture": {"decoder_bias": bias},
        "settings": {
            "hidden": 16,
            "learning_rate": 0.01,
            "weight_decay": 1e-05,
            "dropout": 0.2,
            "watch": watch,
            "kept_epoch": 37,
            **(length or {"epochs": 200}),
        },
        "scores": mean,
        "scores_sd": dict.fromkeys(mean, 0.0125),
        "scores_kept": {part: value - 0.5 for part, value in mean.items()},
    }
    (folder / f"{name}.toml").write_text(_format_toml(sections))


def table(*folders):
    return [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in networks.markdown(list(folders)).splitlines()
    ]


def test_a_row_holds_means_deviations_the_kept_scores_the_papers_figure_and_the_settings(tmp_path):
    write(tmp_path, "cora-link-gat", bias=True)
    heading, line, row = table((tmp_path, "default"))
    assert dict(zip(heading, row, strict=True)) == {
        "network": "cora-link-gat",
        "run": "default",
        "train": "1.000 ± 0.013",
        "val": "0.700 ± 0.013",
        "test": "0.600 ± 0.013",
        "all": "0.900 ± 0.013",
        "kept: train, val, test, all": "0.500, 0.200, 0.100, 0.400",
        "paper": "0.92",
        "reached by": "all",
        "settings": (
            "hidden 16, lr 0.01, decay 1e-05, dropout 0.2, decoder bias, watch val, epoch 37 of 200"
        ),
    }
    assert line == ["---"] * len(heading)


def test_rows_of_one_network_stand_together_in_the_papers_order(tmp_path):
    one, other = tmp_path / "one", tmp_path / "other"
    write(one, "cora-node-gcn")
    write(one, "ba-shapes-node-gcn")
    write(other, "cora-node-gcn", watch="train")
    rows = table((one, "default"), (other, "by train"))[2:]
    assert [row[:2] for row in rows] == [
        ["ba-shapes-node-gcn", "default"],
        ["cora-node-gcn", "default"],
        ["cora-node-gcn", "by train"],
    ]
    assert "watch train" in rows[2][-1]


@pytest.mark.parametrize(
    ("score", "part"),
    [
        ({"test": 0.77}, "test"),
        ({"test": 0.769}, "all"),
        ({"val": 0.78}, "val"),
        ({"all": 0.2}, "train"),
        ({"train": 0.1, "all": 0.2}, "none"),
        ({"test": float("nan"), "val": float("nan"), "all": 0.8}, "all"),
    ],
)
def test_the_strictest_part_that_reaches_the_figure_is_named(score, part):
    assert networks.reached_by({**SCORES, **score}, 0.8) == part


def test_a_folder_without_networks_is_refused(tmp_path):
    with pytest.raises(BadFile, match="holds no trained network"):
        networks.markdown([(tmp_path, "default")])


def test_a_network_trained_on_batches_of_pairs_says_how_many_steps_and_pairs(tmp_path):
    write(tmp_path, "movielens-link-gcn", length={"steps": 6000, "pairs": 4096})
    _, _, row = table((tmp_path, "default"))
    assert row[-1].endswith("watch val, step 37 of 6000, 4096 pairs each")
