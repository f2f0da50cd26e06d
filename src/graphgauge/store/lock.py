"""One writer per folder: a lock that the system releases when its process ends, however it ends.

The file also says who holds the lock, for the error message. What counts is the system's lock on
the file, so a file that a killed process left behind locks nothing.
"""

import json
import os
import socket
from contextlib import suppress
from pathlib import Path
from types import TracebackType

from filelock import FileLock, Timeout

from graphgauge.core import BadFile
from graphgauge.store.database import utc_now


class WriterLock:
    """A lock on a folder, held inside a ``with`` block.

    Raises:
        BadFile: Another process holds the lock, or the file cannot be written.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder, WriterLock(Path(folder) / "run.lock") as lock:
    ...     _lock_holder(lock.path).startswith(f"process {os.getpid()} on ")
    True
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self.lock = FileLock(self.path, timeout=0, thread_local=False)

    def __enter__(self) -> "WriterLock":
        try:
            self.path.open("a").close()  # filelock may make missing folders: those are refused
            first = _lock_holder(self.path)  # read now: some versions of filelock empty the file
            self.lock.acquire()
        except Timeout as error:
            raise BadFile(
                f"{self.path.parent} is in use by {first}. Wait for it, stop it, or choose another "
                "folder."
            ) from error
        except OSError as error:
            raise BadFile(
                f"{self.path} could not be opened: {error}. Choose a folder that can be written."
            ) from error
        record = {"pid": os.getpid(), "host": socket.gethostname(), "since": utc_now()}
        with suppress(OSError):  # Windows lets nobody write into a locked file
            self.path.write_text(json.dumps(record), encoding="utf-8")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with suppress(OSError):
            os.truncate(self.path, 0)
        self.lock.release()


def _lock_holder(path: Path) -> str:
    """Who holds the lock, for an error message."""
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
        return f"process {record['pid']} on {record['host']} (since {record['since']})"
    except (OSError, ValueError, KeyError, TypeError):
        return "another process"
