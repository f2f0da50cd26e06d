"""The decision file: reading returns what was written, and edits and later changes are reported."""

import json
from datetime import datetime, timedelta, timezone

import pytest
import torch
from support.decisions import NOW, decision
from support.tiny_model import model
from typer.testing import CliRunner

from graphgauge.cli.main import app, main
from graphgauge.core.errors import BadFile, BadSetting
from graphgauge.evaluation import Settings
from graphgauge.explainers import GNNExplainer
from graphgauge.guidelines import Requirements
from graphgauge.lifecycle import Decision
from graphgauge.models.fingerprints import digest_of_data, digest_of_network


def kinds(problems):
    return [problem.kind for problem in problems]


def test_what_is_written_is_read(tmp_path):
    made = decision()
    made.write(tmp_path / "decision.json")
    assert Decision.read(tmp_path / "decision.json") == made
    assert Decision.read(tmp_path) == made  # the folder is enough
    assert [path.name for path in tmp_path.iterdir()] == ["decision.json"]


def test_parts_come_back_as_objects():
    made = decision(
        explainer="gnn_explainer", parameters={"epochs": 7}, settings=Settings(cap=50).record()
    )
    assert made.chosen() == GNNExplainer(epochs=7)
    assert made.wanted() == Requirements(
        "node_classification", num_features=3, limits={"edge_ec": 5.0}
    )
    assert made.measured_with() == Settings(cap=50)
    assert made.monitor_with() == Settings()
    assert [(verdict.metric, verdict.n) for verdict in made.numbers()] == [("edge_pertinence", 100)]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("label", "saliency"),
        ("warnings", []),
        ("expires", "2099-01-01T00:00:00+00:00"),
        ("signed_by", "Mallory"),
        ("requirements", {"limits": {"edge_ec": 99}}),
        ("seed", 1),
    ],
)
def test_an_edit_is_noticed(tmp_path, field, value):
    path = tmp_path / "decision.json"
    decision().write(path)
    content = json.loads(path.read_text())
    path.write_text(json.dumps({**content, field: value}))
    with pytest.raises(BadFile, match="was edited after it was written"):
        Decision.read(path)


def test_the_order_of_keys_and_blanks_are_no_edit(tmp_path):
    path = tmp_path / "decision.json"
    decision().write(path)
    path.write_text(json.dumps(dict(reversed(json.loads(path.read_text()).items()))))
    assert Decision.read(path) == decision()


@pytest.mark.parametrize(
    "content", ["", "{", "[]", "{}", '{"format": 1}', '{"format": 2, "digest": ""}', "null", "NaN"]
)
def test_what_is_no_decision_is_refused(tmp_path, content):
    path = tmp_path / "decision.json"
    path.write_text(content)
    with pytest.raises(BadFile, match="graphgauge validate"):
        Decision.read(path)


def test_a_field_of_another_kind_is_named(tmp_path):
    made = decision(seed="zero")
    made.write(tmp_path / "decision.json")
    with pytest.raises(BadFile, match="seed hold something else"):
        Decision.read(tmp_path)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(BadFile, match=r"nowhere\.json holds no decision"):
        Decision.read(tmp_path / "nowhere.json")


def test_a_folder_that_cannot_be_written_is_named(tmp_path):
    with pytest.raises(BadFile, match="could not be written"):
        decision().write(tmp_path / "no" / "decision.json")


def test_the_same_network_and_data_raise_no_problem():
    own = model()
    assert decision_for(own).check(own, NOW) == []


def test_other_weights_are_another_network_and_other_features_other_data():
    own, made = model(), decision_for(model())
    with torch.no_grad():
        own.net.lin.weight[0, 0] += 1e-6
    assert kinds(made.check(own, NOW)) == ["network"]
    moved = model(shift=1e-6)
    assert kinds(made.check(moved, NOW)) == ["data"]


def test_names_do_not_depend_on_the_machine_but_on_every_bit():
    assert digest_of_network(model()) == digest_of_network(model())
    assert digest_of_data(model()) == digest_of_data(model())
    assert digest_of_data(model()) != digest_of_data(model(edges=[[0, 1], [2, 1]]))
    assert digest_of_network(model()) != digest_of_network(model(seed=1))


def test_a_decision_ends_and_needs_a_name():
    made = decision(signed_by="", signed="")
    assert kinds(made.check(now=NOW)) == ["unsigned"]
    signed = made.sign(" Ada ", NOW)
    assert (signed.signed_by, signed.signed) == ("Ada", "2026-11-15T12:00:00+00:00")
    end = datetime.fromisoformat(signed.expires)
    assert kinds(signed.check(now=end - timedelta(seconds=1))) == []
    assert kinds(signed.check(now=end)) == ["expired"]
    assert kinds(signed.check(now=end.astimezone(timezone(timedelta(hours=9))))) == ["expired"]
    with pytest.raises(BadSetting, match="signed with a name"):
        made.sign("  ")


def test_signing_changes_the_digest_and_nothing_else(tmp_path):
    made = decision(signed_by="", signed="")
    signed = made.sign("Ada", NOW)
    assert signed.digest != made.digest
    changed = {name for name in made.record() if made.record()[name] != signed.record()[name]}
    assert changed == {"signed_by", "signed", "digest"}


def test_a_signature_is_not_replaced_unless_asked_for_and_is_kept_then(tmp_path):
    made = decision(signed_by="", signed="").sign("Ada", NOW)
    with pytest.raises(BadSetting, match=r"signed by Ada on 2026-11-15T12:00:00\+00:00.*--again"):
        made.sign("Bob")
    again = made.sign("Bob", NOW + timedelta(days=1), again=True).sign(
        "Cleo", NOW + timedelta(days=2), again=True
    )
    assert (again.signed_by, again.signed) == ("Cleo", "2026-11-17T12:00:00+00:00")
    assert [(own["by"], own["at"][:10]) for own in again.signed_before] == [
        ("Ada", "2026-11-15"),
        ("Bob", "2026-11-16"),
    ]
    again.write(tmp_path / "decision.json")
    assert Decision.read(tmp_path) == again


def test_the_command_refuses_to_sign_over_a_name(tmp_path, monkeypatch, capsys):
    decision().write(tmp_path / "decision.json")
    before = (tmp_path / "decision.json").read_bytes()
    monkeypatch.setattr("sys.argv", ["graphgauge", "sign", str(tmp_path), "--by", "Bob"])
    with pytest.raises(SystemExit) as stop:
        main()
    assert stop.value.code == 2
    assert "signed by Ada on 2026-11-15T12:00:00+00:00" in capsys.readouterr().err
    assert (tmp_path / "decision.json").read_bytes() == before
    assert CliRunner().invoke(app, ["sign", str(tmp_path), "--by", "Bob", "--again"]).exit_code == 0
    found = Decision.read(tmp_path)
    assert (found.signed_by, [own["by"] for own in found.signed_before]) == ("Bob", ["Ada"])


def test_a_decision_that_was_signed_once_is_written_as_ever(tmp_path):
    assert "signed_before" not in decision().record()


def decision_for(own):
    return decision(network=digest_of_network(own), data=digest_of_data(own))
