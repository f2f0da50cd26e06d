"""The process of the dashboard: only here, quietly, and gone when told to go."""

import socket
import sys

import pytest
from typer.testing import CliRunner

from graphgauge.cli.main import app, main
from graphgauge.core.errors import BadFile, BadSetting, MissingExtra
from graphgauge.dashboard import DashboardConfig
from graphgauge.dashboard import launcher as running
from graphgauge.dashboard.auth import EXPOSED_VARIABLE, TOKEN_VARIABLE, new_token
from graphgauge.dashboard.launcher import ListenAddress, _streamlit_command, run_dashboard


def told(*_):
    return None


def test_the_command_line_is_this_python_on_loopback_without_statistics():
    words = _streamlit_command(DashboardConfig("runs"), ListenAddress(port=1234))
    assert words[:4] == [sys.executable, "-m", "streamlit", "run"]
    asked = {
        "--server.address=127.0.0.1",
        "--server.port=1234",
        "--server.headless=true",
        "--browser.gatherUsageStats=false",
    }
    assert asked | {"--server.fileWatcherType=none"} <= set(words)
    assert (words[-2], DashboardConfig.from_json(words[-1])) == ("--", DashboardConfig("runs"))


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.0.7", "example.invalid"])
def test_an_address_that_others_reach_must_be_asked_for(host):
    with pytest.raises(BadSetting, match="Add --expose if that is meant"):
        ListenAddress(host).with_free_port()


def test_a_port_is_found_or_refused():
    assert ListenAddress(port=0).with_free_port().port > 0
    assert ListenAddress("0.0.0.0", 0, expose=True).with_free_port().host == "0.0.0.0"
    with (
        socket.create_server(("127.0.0.1", 0)) as taken,
        pytest.raises(BadSetting, match="Choose another --port, or 0 for any"),
    ):
        ListenAddress(port=taken.getsockname()[1]).with_free_port()


def test_without_streamlit_the_command_names_the_extra(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(running.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match='pip install "graphgauge\\[dashboard\\]"'):
        run_dashboard(DashboardConfig(str(tmp_path)), ListenAddress(), told)
    monkeypatch.setattr("sys.argv", ["graphgauge", "dashboard", str(tmp_path)])
    with pytest.raises(SystemExit, match="2"):
        main()
    assert 'pip install "graphgauge[dashboard]"' in capsys.readouterr().err


def test_places_that_are_not_there_are_refused(tmp_path):
    for places, said in (
        (DashboardConfig(str(tmp_path / "no")), "is no folder: name one that holds runs"),
        (
            DashboardConfig(str(tmp_path), monitor="no.sqlite"),
            "there is no monitoring store no.sqlite",
        ),
        (DashboardConfig(str(tmp_path), project="no.yaml"), "there is no project file no.yaml"),
    ):
        with pytest.raises(BadFile, match=said):
            run_dashboard(places, ListenAddress(), told)


def test_a_process_that_breaks_down_is_no_success(monkeypatch, tmp_path):
    monkeypatch.setattr(
        running, "_streamlit_command", lambda *_: [sys.executable, "-c", "raise SystemExit(7)"]
    )
    said = []
    assert run_dashboard(DashboardConfig(str(tmp_path)), ListenAddress(port=0), said.append) == 7
    assert said[0].startswith(f"graphgauge shows {tmp_path} on http://127.0.0.1:")
    assert CliRunner().invoke(app, ["dashboard", str(tmp_path), "--port", "0"]).exit_code == 3


def test_every_start_has_its_own_token_and_the_command_line_does_not_show_it(monkeypatch, tmp_path):
    code = (
        f"import os; raise SystemExit(len(os.environ['{TOKEN_VARIABLE}']) if "
        f"os.environ['{EXPOSED_VARIABLE}'] == '' else 1)"
    )
    seen = []
    monkeypatch.setattr(
        running,
        "_streamlit_command",
        lambda *given: seen.append(_streamlit_command(*given)) or [sys.executable, "-c", code],
    )
    said = []
    assert [
        run_dashboard(DashboardConfig(str(tmp_path)), ListenAddress(port=0), said.append)
        for _ in range(2)
    ] == [32, 32]
    first, second = (line.partition("/?token=")[2].partition(" ")[0] for line in said)
    assert (len(first), first != second) == (32, True)
    assert not any(first in word for words in seen for word in words)


@pytest.mark.parametrize(
    "token", ["short", "with a space in it", "with/slashes/in/it/and/more", "ä" * 20]
)
def test_a_token_that_is_short_or_fits_no_address_is_refused_and_not_told(token):
    with pytest.raises(BadSetting, match="at least 16 letters, digits, - or _") as caught:
        new_token({TOKEN_VARIABLE: token})
    assert token not in str(caught.value)


def test_a_quiet_start_needs_a_token_that_someone_knows(monkeypatch, capsys, tmp_path):
    monkeypatch.delenv(TOKEN_VARIABLE, raising=False)
    monkeypatch.setattr("sys.argv", ["graphgauge", "dashboard", str(tmp_path), "--port", "0", "-q"])
    with pytest.raises(SystemExit, match="2"):
        main()
    assert "would not tell the address with its token" in capsys.readouterr().err


def test_importing_the_room_does_not_import_streamlit():
    import subprocess

    code = (
        "import sys, graphgauge.dashboard; print('streamlit' in sys.modules, 'torch' in "
        "sys.modules)"
    )
    assert (
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        ).stdout.split()
        == ["False"] * 2
    )
