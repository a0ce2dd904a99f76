"""A site's file systems (`[files]`)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from provision.profile.patterns import SHELL_PATH, form
from provision.profile.reader import Reader

# Names of users and groups, as useradd(8) and directories of large sites allow them.
USER = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.@-]*\$?")
UMASK = form(r"0?[0-7]{3}", "of a umask, such as `022`")


@dataclass(frozen=True, slots=True, kw_only=True)
class Files:
    """The folders of a site. `root_writable`: which nodes can write below the site's root, which holds the software.

    `scratch_deletes` are the files that the site deletes in `scratch`, as words for a sentence.
    `scratch` (data and output of jobs) and `temporary` (`TMPDIR`) are paths with `$VARIABLES` that the node expands, and so is
    `project` (what a project keeps), in which `$PROJECT` is the name of the project.
    `group` is the Unix group whose members write below the root, and `readers` the one whose members may enter it (None: every
    user). `admins` has no effect any more.
    `burst_buffer` is where jobs on `burst_buffer_from` or more nodes stage their data (0: no number is known).
    """

    root_writable: Literal["everywhere", "login", "compute"]
    scratch: str | None
    temporary: str | None
    umask: str
    burst_buffer: Literal["none", "datawarp"]
    burst_buffer_from: int = 0
    group: str | None = None
    readers: str | None = None
    admins: tuple[str, ...] = ()
    project: str | None = None
    scratch_deletes: str | None = None

    def needs_burst_buffer(self, nodes: int) -> bool:
        """Whether a job on this many nodes should read its data from the burst buffer."""
        return 0 < self.burst_buffer_from <= nodes


def read_files(table: Reader) -> Files:
    """Read `[files]`."""
    files = Files(
        root_writable=table.choice("root_writable", ("everywhere", "login", "compute"), "everywhere"),
        scratch=table.optional("scratch", pattern=SHELL_PATH),
        temporary=table.optional("temporary", pattern=SHELL_PATH),
        umask=table.text("umask", "022", pattern=UMASK),
        burst_buffer=table.choice("burst_buffer", ("none", "datawarp"), "none"),
        burst_buffer_from=table.integer("burst_buffer_from", 0),
        group=table.optional("group", pattern=USER),
        readers=table.optional("readers", pattern=USER),
        admins=table.texts("admins", pattern=USER),
        project=table.optional("project", pattern=SHELL_PATH),
        scratch_deletes=table.optional("scratch_deletes"),
    )
    if files.burst_buffer_from and files.burst_buffer == "none":
        table.fault("burst_buffer_from", 'needs a burst buffer, but `files.burst_buffer` is "none"')
    if files.scratch_deletes and files.scratch is None:
        table.fault("scratch_deletes", "is about `files.scratch`, which is missing")
    table.done()
    return files
