"""What a dashboard shows: the folder with runs, and where they are given a monitoring store and a
project file.
"""

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path

from graphgauge.core import BadFile


@dataclass(frozen=True)
class DashboardConfig:
    """Paths as they were given.

    `resolve_paths` makes them. The pages get them as one line of JSON.
    """

    root: str
    monitor: str | None = None
    project: str | None = None

    def resolve_paths(self) -> "DashboardConfig":
        """The same as whole paths; refuses what is not there."""
        if not Path(self.root).is_dir():
            raise BadFile(
                f"{self.root} is no folder: name one that holds runs, such as the 'runs' of "
                "`graphgauge evaluate`."
            )
        if self.monitor is not None and not Path(self.monitor).is_file():
            raise BadFile(
                f"there is no monitoring store {self.monitor}. Take a baseline first: graphgauge "
                "monitor baseline."
            )
        if self.project is not None and not Path(self.project).is_file():
            raise BadFile(f"there is no project file {self.project}: `graphgauge init` writes one.")
        return DashboardConfig(
            *(  # type: ignore[arg-type]
                None if own is None else os.path.abspath(own)
                for own in (self.root, self.monitor, self.project)
            )
        )

    def to_json(self) -> str:
        """For the command line of the pages.

        >>> DashboardConfig.from_json(DashboardConfig("runs", "m.sqlite").to_json())
        DashboardConfig(root='runs', monitor='m.sqlite', project=None)
        """
        return json.dumps(asdict(self))

    @staticmethod
    def from_json(line: str) -> "DashboardConfig":
        """Read what `to_json` wrote."""
        return DashboardConfig(**json.loads(line))
