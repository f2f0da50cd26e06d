"""A finished run as files for a repository: nothing of the numbers is lost, nothing of the
machine's names is kept.
"""

import json
import socket
from pathlib import Path

import pandas as pd
import publish
import pytest
from restore import main as restoring
from restore import restore
from support.tiny_experiments import numbers, run_here, write_experiment

from graphgauge.benchmark import BenchmarkRun, RunEnvironment, read_experiment
from graphgauge.benchmark.summary import read_summary, summary_table
from graphgauge.core.errors import BadFile, BadSetting
from graphgauge.evaluation import Results
from graphgauge.report.provenance import provenance_facts

PLUGINS = Path(__file__).parent.parent / "support" / "plugins"
FILES = [
    "experiment.yaml",
    "machine.json",
    "rows.csv.xz",
    "settings.json",
    "shards.csv",
    "summary.csv",
]


@pytest.fixture(scope="module")
def run(tmp_path_factory, networks):
    folder = tmp_path_factory.mktemp("publish")
    return run_here(write_experiment(folder / "tiny.yaml"), folder / "run", networks)


@pytest.fixture(scope="module")
def odd(tmp_path_factory, networks):
    """Nodes and links, two networks, a seed, names that look like something else, and an explainer
    that fails.
    """
    folder = tmp_path_factory.mktemp("odd")
    strange = [
        {"name": "saliency", "label": "nan"},
        {"name": "random", "label": 'a "quoted", label\r'},
        "mended",
    ]
    path = write_experiment(
        folder / "odd.yaml",
        tasks=["ba-shapes-node", "ba-shapes-link"],
        models=["gcn", "gat"],
        explainers=strange,
        targets={"number": 2},
        seed=5,
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(PLUGINS))
        patch.setenv("MENDED_IS_BROKEN", "1")
        return run_here(path, folder / "run", networks)


def place(networks):
    return RunEnvironment(networks=str(networks))


def test_the_files_hold_what_the_run_holds(run, tmp_path):
    publish.publish(run, tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == FILES
    pd.testing.assert_frame_equal(
        read_summary(tmp_path / "summary.csv"), summary_table(run.results()), check_exact=True
    )
    assert (
        read_experiment(tmp_path / "experiment.yaml").full_settings.record()
        == run.config["settings"]
    )
    shards = pd.read_csv(tmp_path / "shards.csv")
    assert shards["explanations"].tolist() == [0, 6, 6]  # the first measures times
    assert shards["stability"].tolist() == pytest.approx(
        run.shards()["stability"].tolist(), abs=0.005, nan_ok=True
    )


@pytest.mark.parametrize("name", ["run", "odd"])
def test_a_published_run_is_read_to_the_last_bit(name, request, tmp_path):
    own = request.getfixturevalue(name)
    publish.publish(own, tmp_path)
    found, wanted = Results.load(tmp_path), own.results()
    pd.testing.assert_frame_equal(found.to_pandas(), wanted.to_pandas(), check_exact=True)
    assert found.settings == wanted.settings


def test_the_settings_are_those_of_then_whatever_the_preset_says_now(run, tmp_path):
    publish.publish(run, tmp_path)
    record = json.loads((tmp_path / "settings.json").read_text())
    (tmp_path / "settings.json").write_text(json.dumps({**record, "cap": 17}))
    assert Results.load(tmp_path).settings.cap == 17


@pytest.mark.parametrize("content", [b"", b"version https://git-lfs.github.com/spec/v1\n", "half"])
def test_a_table_that_is_no_table_is_refused(run, tmp_path, content):
    publish.publish(run, tmp_path)
    path = tmp_path / "rows.csv.xz"
    path.write_bytes(path.read_bytes()[:200] if content == "half" else content)
    with pytest.raises(BadFile, match="holds no results that graphgauge saved"):
        Results.load(tmp_path)


def test_the_machine_is_told_without_its_name(run, tmp_path):
    publish.publish(run, tmp_path)
    told = json.loads((tmp_path / "machine.json").read_text())
    assert told["seconds of all shards"] == pytest.approx(run.shards()["seconds"].sum(), abs=0.1)
    (call,) = told["calls"]
    assert (call["engine"], call["workers"], call["device"]) == ("inline", 1, "cpu")
    assert {"torch", "graphgauge", "processor", "began"} <= set(call)
    assert "host" not in call
    assert all(
        socket.gethostname() not in path.read_text()
        for path in tmp_path.iterdir()
        if path.suffix != ".xz"
    )
    facts = provenance_facts(Results.load(tmp_path), tmp_path)
    assert facts["shards"] == "3 of 3 finished"
    assert f"began: {call['began']}; engine: inline" in facts["call 1"]


def test_a_machine_that_tells_nothing_is_refused(run, tmp_path):
    publish.publish(run, tmp_path)
    (tmp_path / "machine.json").write_text("[]")
    with pytest.raises(BadFile, match="does not say how the run was made"):
        provenance_facts(Results.load(tmp_path), tmp_path)


def test_a_run_that_is_not_finished_is_refused_unless_that_is_asked_for(run, tmp_path, monkeypatch):
    monkeypatch.setattr(BenchmarkRun, "num_shards", property(lambda self: (2, 3)))
    with pytest.raises(BadSetting, match="2 of 3 shards are there"):
        publish.publish(run, tmp_path)
    publish.publish(run, tmp_path, unfinished=True)
    told = json.loads((tmp_path / "machine.json").read_text())
    assert (told["shards"], told["shards planned"]) == (2, 3)


def told_by(command, monkeypatch, capsys, *arguments):
    """What a command says on stderr, in one line, when it refuses."""
    monkeypatch.setattr("sys.argv", ["command", *map(str, arguments)])
    with pytest.raises(SystemExit) as ended:
        command()
    (line,) = capsys.readouterr().err.splitlines()
    assert ended.value.code == 2
    return line


def test_what_keeps_a_run_from_being_published_is_one_line(run, tmp_path, monkeypatch, capsys):
    told = told_by(publish.main, monkeypatch, capsys, tmp_path / "none", tmp_path / "out")
    assert told.startswith(f"graphgauge: error: {tmp_path / 'none'} holds no benchmark run")
    (tmp_path / "file").touch()
    assert "cannot be made" in told_by(
        publish.main, monkeypatch, capsys, run.folder, tmp_path / "file"
    )
    monkeypatch.setattr(BenchmarkRun, "num_shards", property(lambda self: (2, 3)))
    assert "--unfinished publishes what is there" in told_by(
        publish.main, monkeypatch, capsys, run.folder, tmp_path / "out"
    )
    assert not (tmp_path / "out").exists()


# --- and back -------------------------------------------------------------------------------------


def test_a_restored_run_is_published_alike(run, networks, tmp_path):
    publish.publish(run, tmp_path / "first")
    publish.publish(
        restore(tmp_path / "first", tmp_path / "run", place(networks)), tmp_path / "second"
    )
    for name in FILES:
        assert (tmp_path / "first" / name).read_bytes() == (
            tmp_path / "second" / name
        ).read_bytes(), name


def test_a_restored_run_has_its_faults_and_can_be_tried_again(odd, networks, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(PLUGINS))
    publish.publish(odd, tmp_path / "first")
    restored = restore(tmp_path / "first", tmp_path / "run", place(networks))
    assert numbers(restored.folder) == numbers(odd.folder)
    assert restored.shards()["faults"].tolist() == odd.shards()["faults"].tolist()
    path = tmp_path / "first" / "experiment.yaml"
    mended = run_here(path, tmp_path / "run", networks, retry=True)
    assert mended.shards()["faults"].tolist() == [{}] * len(odd.shards())
    assert numbers(mended.folder) == numbers(run_here(path, tmp_path / "whole", networks).folder)


def test_an_unfinished_run_goes_on_from_its_published_files(run, networks, tmp_path):
    publish.publish(run, tmp_path / "part")
    cut_off_the_second_shard(run, tmp_path / "part")
    assert restore(tmp_path / "part", tmp_path / "run", place(networks)).num_shards == (2, 3)
    told = []
    path = tmp_path / "part" / "experiment.yaml"
    finished = run_here(path, tmp_path / "run", networks, report=lambda text, _: told.append(text))
    assert (told[0], len(told)) == ("2 of 3 shards are there", 2)
    assert numbers(finished.folder) == numbers(run.folder)


def test_a_run_under_another_configuration_is_not_restored(run, networks, tmp_path):
    publish.publish(run, tmp_path / "first")
    path = tmp_path / "first" / "experiment.yaml"
    path.write_text(path.read_text() + "seed: 5\n")
    with pytest.raises(BadSetting, match="other data, networks, settings or code"):
        restore(tmp_path / "first", tmp_path / "run", place(networks))


@pytest.mark.parametrize(
    "damage", [lambda table: table[:-1], lambda table: pd.concat([table[:-1], table[:1]])]
)
def test_a_table_with_a_line_missing_or_twice_is_not_restored(run, networks, tmp_path, damage):
    publish.publish(run, tmp_path / "first")
    path = tmp_path / "first" / "rows.csv.xz"
    damage(pd.read_csv(path, dtype=str, keep_default_na=False)).to_csv(path, index=False)
    with pytest.raises(BadSetting, match="published lines where"):
        restore(tmp_path / "first", tmp_path / "run", place(networks))
    assert not (tmp_path / "run").exists()


def test_a_run_that_is_there_is_not_written_over(run, networks, tmp_path):
    publish.publish(run, tmp_path / "first")
    restore(tmp_path / "first", tmp_path / "run", place(networks))
    with pytest.raises(BadSetting, match="holds a run already"):
        restore(tmp_path / "first", tmp_path / "run", place(networks))


def test_what_keeps_a_run_from_being_restored_is_one_line(run, tmp_path, monkeypatch, capsys):
    """The tiny run's networks are not those that the command would measure."""
    first, again = tmp_path / "first", tmp_path / "run"
    assert "experiment.yaml cannot be read" in told_by(
        restoring, monkeypatch, capsys, tmp_path / "none", again
    )
    publish.publish(run, first)
    assert "other data, networks, settings or code" in told_by(
        restoring, monkeypatch, capsys, first, again
    )
    for content in ("", "[]", "{}"):
        (first / "machine.json").write_text(content)
        assert "does not say how the run was made" in told_by(
            restoring, monkeypatch, capsys, first, again
        )
    assert not again.exists()


@pytest.mark.parametrize("content", ["", "a,b\n1,2\n", None])
def test_a_list_of_shards_that_is_none_is_refused(run, networks, tmp_path, content):
    publish.publish(run, tmp_path / "first")
    path = tmp_path / "first" / "shards.csv"
    path.unlink() if content is None else path.write_text(content)
    with pytest.raises(BadFile, match="has no list of shards"):
        restore(tmp_path / "first", tmp_path / "run", place(networks))


def cut_off_the_second_shard(run, published):
    """As if it had not been measured."""
    with run.store() as store:
        rows = {(str(r["target"]), r["metric"]) for r in store.rows(store.entries("shard")[1])}
    shards = pd.read_csv(published / "shards.csv")
    shards.loc[1, "seconds"] = float("nan")
    shards.to_csv(published / "shards.csv", index=False)
    table = pd.read_csv(published / "rows.csv.xz", dtype=str, keep_default_na=False)
    is_cut = [key in rows for key in zip(table["target"], table["metric"], strict=True)]
    table[~pd.Series(is_cut)].to_csv(published / "rows.csv.xz", index=False)
