"""One writer per folder, and no lock outlives its process."""

import subprocess
import sys

import pytest

from graphgauge.core.errors import BadFile
from graphgauge.store import WriterLock

HOLDING = (
    "import sys, time\n"
    "from graphgauge.store import Lock\n"
    "with Lock(sys.argv[1]):\n"
    "    print(1, flush=True)\n"
    "    time.sleep(60)"
)


def test_the_second_is_refused_and_told_who_is_first(tmp_path):
    path = tmp_path / "run.lock"
    first = subprocess.Popen(
        [sys.executable, "-c", HOLDING, path], stdout=subprocess.PIPE, text=True
    )
    try:
        assert first.stdout.readline() == "1\n"
        with (
            pytest.raises(BadFile, match=f"is in use by process {first.pid} on .* \\(since 2"),
            WriterLock(path),
        ):
            pass
    finally:
        first.kill()
        first.wait()
        first.stdout.close()
    with WriterLock(path):  # a killed process locks nothing
        pass


def test_a_lock_can_be_taken_again_after_it_was_given_back(tmp_path):
    for _ in range(2):
        with (
            WriterLock(tmp_path / "run.lock"),
            pytest.raises(BadFile, match="is in use by process"),
            WriterLock(tmp_path / "run.lock"),
        ):
            pass


def test_a_folder_that_cannot_be_written_is_named(tmp_path):
    with (
        pytest.raises(BadFile, match=r"no/run.lock could not be opened"),
        WriterLock(tmp_path / "no" / "run.lock"),
    ):
        pass
