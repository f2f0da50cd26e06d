"""One writer per folder: a lock that the system lets go of when its process ends, however it ends.

The file says who holds it, for people; what counts is the system's lock on it, so a file left
behind by a killed process locks nothing.
"""

import json
import os
import socket
from pathlib import Path
from types import TracebackType
from typing import IO

from graphgauge.core.errors import BadFile
from graphgauge.store.database import now


class Lock:
    """``with Lock(folder / "run.lock"): ...``; refused while another process is inside."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self.file: IO[str] | None = None

    def __enter__(self) -> "Lock":
        try:
            self.file = open(self.path, "a+", encoding="utf-8")
        except OSError as error:
            raise BadFile(
                f"{self.path} could not be opened: {error}. Choose a folder that can be written."
            ) from error
        if not seized(self.file):
            self.file.close()
            raise BadFile(
                f"{self.path.parent} is in use by {holder(self.path)}. Wait for it, stop it, or choose another folder."
            )
        self.file.truncate(0)
        self.file.write(
            json.dumps({"pid": os.getpid(), "host": socket.gethostname(), "since": now()})
        )
        self.file.flush()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self.file is not None:
            self.file.truncate(0)
            self.file.close()
            self.file = None


def seized(file: IO[str]) -> bool:
    """Whether the lock is ours now."""
    try:
        import fcntl
    except ImportError:  # Windows
        return seized_on_windows(file)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def seized_on_windows(file: IO[str]) -> bool:
    """Lock a byte far behind the text, which stays readable."""
    import msvcrt

    try:
        file.seek(2**30)
        msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined, unused-ignore]
    except OSError:
        return False
    return True


def holder(path: Path) -> str:
    """Who holds the lock, for people."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        return f"process {found['pid']} on {found['host']} (since {found['since']})"
    except (OSError, ValueError, KeyError, TypeError):
        return "another process"
