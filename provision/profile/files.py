"""A site's file systems (`[files]`)."""

from dataclasses import dataclass
from typing import Annotated, Literal

from provision.profile.absolute import NodePath
from provision.profile.patterns import Form
from provision.profile.reader import Count, Reader

# Names of users and groups, as useradd(8) and directories of large sites allow them.
USER = Form(r"[A-Za-z0-9_][A-Za-z0-9_.@-]*\$?")
User = Annotated[str, USER]
Umask = Annotated[str, Form(r"0?[0-7]{3}", "of a umask, such as `022`")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Files:
    """The folders of a site. `root_writable`: which nodes can write below the site's root, which holds the software.

    `scratch_deletes` are the files that the site deletes in `scratch`, as words for a sentence.
    `scratch` (data and output of jobs) and `temporary` (`TMPDIR`) are paths with `$VARIABLES` that the node expands, and so is
    `project` (what a project keeps), in which `$PROJECT` is the name of the project.
    `group` is the Unix group whose members write below the root, and `readers` the one whose members may enter it (None: every
    user).
    `burst_buffer` is where jobs on `burst_buffer_from` or more nodes stage their data (0: no number is known).
    """

    root_writable: Literal["everywhere", "login", "compute"] = "everywhere"
    scratch: NodePath | None = None
    temporary: NodePath | None = None
    umask: Umask = "022"
    burst_buffer: Literal["none", "datawarp"] = "none"
    burst_buffer_from: Count = 0
    group: User | None = None
    readers: User | None = None
    project: NodePath | None = None
    scratch_deletes: str | None = None

    def add_faults(self, table: Reader) -> None:
        """Record what is said of a burst buffer or a folder that the site does not have."""
        if self.burst_buffer_from and self.burst_buffer == "none":
            table.fault("burst_buffer_from", 'needs a burst buffer, but `files.burst_buffer` is "none"')
        if self.scratch_deletes and self.scratch is None:
            table.fault("scratch_deletes", "is about `files.scratch`, which is missing")

    def needs_burst_buffer(self, nodes: int) -> bool:
        """Whether a job on this many nodes should read its data from the burst buffer."""
        return 0 < self.burst_buffer_from <= nodes
