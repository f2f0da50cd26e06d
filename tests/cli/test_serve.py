"""`graphgauge serve` and `graphgauge audit`, as processes: a project in, answers out, a log that
can be checked.
"""

import csv
import io
import json
import os
import signal
import sqlite3
import stat
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest
from support.services import call
from support.user_networks import write_project

from graphgauge.cli.console import Notifier
from graphgauge.cli.serve import _run_serve, _ServeOptions
from graphgauge.core.errors import BadFile, BadSetting, MissingExtra, UnknownName
from graphgauge.serve.server import check_exposure, resolve_token
from graphgauge.serve.settings import Settings
from graphgauge.store import AuditLog
from graphgauge.store.audit import verify_log

COMMAND = [sys.executable, "-m", "graphgauge"]
SEEN = {
    **os.environ,
    "OMP_NUM_THREADS": "1",
    "PYTHONPATH": os.pathsep.join(p for p in sys.path if p),
}


def run(*words):
    return subprocess.run(
        [*COMMAND, *map(str, words)], capture_output=True, text=True, check=False, env=SEEN
    )


@contextmanager
def running(*words):
    """A `graphgauge serve` process, its port and what it said until then."""
    with subprocess.Popen(
        [*COMMAND, "serve", *map(str, words)], stderr=subprocess.PIPE, text=True, env=SEEN
    ) as process:
        said = []
        for line in process.stderr:
            said.append(line)
            if "serves on" in line:
                break
        try:
            yield process, int(said[-1].split(":")[2].split()[0]), "".join(said)
        finally:
            process.kill()


def test_a_project_is_served_until_it_is_told_to_stop(tmp_path):
    project, log, token_file = (
        write_project(tmp_path),
        tmp_path / "audit.sqlite",
        tmp_path / "token",
    )
    words = [
        project,
        "--port",
        0,
        "--audit",
        log,
        "--token-file",
        token_file,
        "--allow",
        "saliency",
        "--budget-ms",
        60_000,
    ]
    with running(*words) as (process, port, said):
        token = token_file.read_text().strip()
        assert token not in said
        assert "not validated" in said
        assert stat.S_IMODE(token_file.stat().st_mode) == 0o600
        headers = {"Authorization": f"Bearer {token}", "Content_Type": "application/json"}
        status, _, body = call(
            port, "POST", "/explain", '{"target": 4, "asked_by": "=1+1"}', **headers
        )
        answer = json.loads(body)
        assert (status, answer["explainer"], answer["target"]) == (200, "saliency", 4)
        assert (
            call(port, "POST", "/explain", '{"target": 4}', Content_Type="application/json")[0]
            == 401
        )
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0
    check_log(log, answer)


def check_log(log, answer):
    """What the commands on the log say of it."""
    whole = json.loads(
        run("audit", "verify", log, "--json", "--head", answer["audit"]["digest"]).stdout
    )
    assert (whole["whole"], whole["entries"]) == (True, 3)
    lines = [json.loads(line) for line in run("audit", "export", log).stdout.splitlines()]
    assert [line["record"]["what"] for line in lines] == ["start", "answer", "stop"]
    rows = list(csv.DictReader(io.StringIO(run("audit", "export", log, "--format", "csv").stdout)))
    assert (rows[1]["asked_by"], rows[1]["text"]) == ("'=1+1", answer["text"])
    with sqlite3.connect(log) as database:
        database.execute("drop trigger entries_delete")
        database.execute("delete from entries where key = '2'")
    database.close()
    broken = run("audit", "verify", log)
    assert (broken.returncode, "entry 2 was expected" in broken.stdout) == (1, True)


def test_killed_at_once_the_log_is_whole_and_goes_on(tmp_path):
    project, log = write_project(tmp_path), tmp_path / "audit.sqlite"
    with running(project, "--port", 0, "--audit", log) as (_, port, said):
        token = next(line for line in said.splitlines() if line.startswith("token: ")).removeprefix(
            "token: "
        )
        headers = {"Authorization": f"Bearer {token}", "Content_Type": "application/json"}
        answers = [
            json.loads(call(port, "POST", "/explain", f'{{"target": {k}}}', **headers)[2])
            for k in range(3)
        ]
    found = verify_log(log, answers[-1]["audit"]["digest"])
    assert (found.count, found.fault) == (4, "")
    with AuditLog(log) as again:
        assert again.append([{"what": "start"}])[0].number == 5


def serve_options(project, **changes):
    usual = {
        "decision": None,
        "allowed": (),
        "fallback": "input_x_gradient",
        "audit": str(project.parent / "a.sqlite"),
    }
    address = {"host": "127.0.0.1", "port": 8400, "hosts": (), "budget_ms": 300.0, "rate": 10.0}
    flags = {"token_file": None, "expose": False, "force": False}
    return _ServeOptions(str(project), **{**usual, **address, **flags, **changes})


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"fallback": "nothing"}, UnknownName, "No explainer is called 'nothing'"),
        ({"allowed": ("lrp",)}, UnknownName, "No explainer of this project is called 'lrp'"),
        ({"decision": "nowhere"}, BadFile, "holds no decision"),
        ({"host": "0.0.0.0"}, BadSetting, "can be reached from other machines. Add --expose"),
        ({"audit": "/nowhere/a.sqlite", "port": 0}, BadFile, "could not be opened"),
        ({"host": "192.0.2.1", "port": 0}, BadSetting, "--expose"),
    ],
)
def test_what_cannot_be_served_is_told_before_anything_listens(tmp_path, changes, error, message):
    with pytest.raises(error, match=message):
        _run_serve(serve_options(write_project(tmp_path), **changes), Notifier(quiet=True))


def test_a_missing_extra_is_named_with_its_command(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "fastapi", None)
    with pytest.raises(MissingExtra, match=r'pip install "graphgauge\[serve\]"'):
        _run_serve(serve_options(Path("not read.yaml")), Notifier(quiet=True))


def test_the_token_comes_from_the_environment_then_from_the_file(tmp_path):
    usual, path = Settings(), tmp_path / "token"
    assert resolve_token(usual, None, {}) == (usual, "random")
    made, _ = resolve_token(usual, str(path), {})
    assert path.read_text() == made.token + "\n" != usual.token + "\n"
    assert resolve_token(usual, str(path), {})[0].token == made.token
    assert resolve_token(usual, str(path), {"GRAPHGAUGE_TOKEN": "x" * 20})[0].token == "x" * 20
    path.chmod(0o644)
    with pytest.raises(BadFile, match="others can read the token"):
        resolve_token(usual, str(path), {})
    with pytest.raises(BadSetting, match="at least 16 printable ASCII characters") as caught:
        resolve_token(usual, None, {"GRAPHGAUGE_TOKEN": "hunter2"})
    assert "hunter2" not in str(caught.value)


def test_an_address_that_others_can_reach_is_warned_of():
    assert check_exposure(Settings(), False) == ""
    assert "in the clear" in check_exposure(Settings(host="0.0.0.0"), True)
    assert Settings(host="0.0.0.0", hosts=("Explain.Internal",)).host_names == {
        "0.0.0.0",
        "explain.internal",
    }
    assert Settings().host_names == {"127.0.0.1", "localhost", "[::1]"}


def test_an_export_never_replaces_a_file(tmp_path):
    with AuditLog(tmp_path / "a.sqlite") as log:
        log.append([{"what": "start"}])
    (tmp_path / "out.jsonl").write_text("mine")
    done = run("audit", "export", tmp_path / "a.sqlite", "--output", tmp_path / "out.jsonl")
    assert (done.returncode, "is there already" in done.stderr) == (2, True)
    assert (tmp_path / "out.jsonl").read_text() == "mine"


@pytest.mark.parametrize("form", ["csv", "jsonl"])
def test_an_export_of_no_log_writes_nothing(tmp_path, form):
    for words in ([], ["--output", tmp_path / "out"]):
        done = run("audit", "export", tmp_path / "nope.sqlite", "--format", form, *words)
        assert (done.returncode, done.stdout, "nope.sqlite" in done.stderr) == (2, "", True)
    assert list(tmp_path.iterdir()) == []


def test_an_export_of_an_empty_log_is_a_header(tmp_path):
    AuditLog(tmp_path / "a.sqlite").close()
    done = run("audit", "export", tmp_path / "a.sqlite", "--format", "csv")
    assert (done.returncode, len(done.stdout.splitlines())) == (0, 1)
