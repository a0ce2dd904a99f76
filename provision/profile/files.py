"""A site's file systems, as `[files]` describes them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from provision.profile.patterns import SHELL_PATH
from provision.profile.reader import Reader

UMASK = re.compile(r"0?[0-7]{3}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Files:
    """Where files go. `root_writable`: which nodes may write below the site's root, where software is.

    `scratch` (data and output of jobs) and `temporary` (`TMPDIR`) are paths with `$VARIABLES` that the node expands.
    `burst_buffer` is what data are staged to for jobs of `burst_buffer_from` nodes and more (0: nobody says from how many).
    """

    root_writable: Literal["everywhere", "login", "compute"]
    scratch: str | None
    temporary: str | None
    umask: str
    burst_buffer: Literal["none", "datawarp"]
    burst_buffer_from: int = 0

    def needs_burst_buffer(self, nodes: int) -> bool:
        """Whether so many nodes are to read their data from the burst buffer."""
        return 0 < self.burst_buffer_from <= nodes


def read_files(table: Reader) -> Files:
    """The file systems of `[files]`."""
    files = Files(
        root_writable=table.text(  # type: ignore[arg-type]
            "root_writable", "everywhere", choices=("everywhere", "login", "compute")
        ),
        scratch=table.optional("scratch", pattern=SHELL_PATH),
        temporary=table.optional("temporary", pattern=SHELL_PATH),
        umask=table.text("umask", "022", pattern=UMASK),
        burst_buffer=table.text("burst_buffer", "none", choices=("none", "datawarp")),  # type: ignore[arg-type]
        burst_buffer_from=table.integer("burst_buffer_from", 0),
    )
    if files.burst_buffer_from and files.burst_buffer == "none":
        table.fault("burst_buffer_from", "is for a burst buffer, and `files.burst_buffer` names none")
    table.done()
    return files
