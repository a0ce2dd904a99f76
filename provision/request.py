"""What somebody asked for, with every file that it names already read. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from provision.horovod.patches import Patch
from provision.model.arch import Arch
from provision.model.lock import Lock
from provision.model.site import Site
from provision.model.stack import Stack


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What somebody asked for, with the files it names already read."""

    site: Site
    arch: Arch
    stack: Stack
    lock: Lock
    mpi_lock: Lock | None
    build_lock: Lock
    patches: tuple[Patch, ...]
    """All that there are for the stack's Horovod; the plan chooses."""
    smoke_folder: str
    """Where the programs that run inside the environment stand."""
    minor: str
    """The Python minor version that the locks are for."""

    @property
    def locks(self) -> tuple[Lock, ...]:
        """All locks of the build: the environment's, and what compiles Horovod."""
        return (self.lock, *([self.mpi_lock] if self.mpi_lock else []), self.build_lock)
