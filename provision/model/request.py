"""What somebody asked for, with every file that it names already read. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from provision.errors import PlanError
from provision.model.lock import Lock, Pin
from provision.model.patch import Patch
from provision.profile.arch import Arch
from provision.profile.site import Site
from provision.profile.stack import Stack


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What somebody asked for, with the files it names already read."""

    site: Site
    arch: Arch
    stack: Stack
    lock: Lock
    mpi_lock: Lock | None
    build_lock: Lock | None
    """What compiles Horovod; None where the stack has none."""
    patches: tuple[Patch, ...]
    """All that there are for the stack's Horovod; the plan chooses."""
    programs_folder: str
    """Where the programs that run inside the environment stand."""
    minor: str
    """The Python minor version that the locks are for."""

    @property
    def locks(self) -> tuple[Lock, ...]:
        """All locks of the build: the environment's, and what compiles Horovod."""
        return tuple(lock for lock in (self.lock, self.mpi_lock, self.build_lock) if lock)

    @property
    def mpi_wheel(self) -> str:
        """The MPI that comes into the environment, as text; empty where it is the site's."""
        return "; ".join(f"{pin.name} {pin.version} (wheel)" for pin in self.mpi_lock.pins) if self.mpi_lock else ""

    def pinned(self, package: str, version: str) -> Pin:
        """The lock's pin of what the stack names.

        Raises:
            PlanError: the lock has another version, or none.
        """
        pin = self.lock.pin(package)
        if pin is None or pin.version != version:
            raise PlanError(
                f"the lock does not pin `{package}=={version}`, which the stack `{self.stack.name}` names",
                evidence=[self.lock.path, f"it pins: {pin.version if pin else 'nothing'}"],
                hint="make the stack and its requirements agree, then `provision lock`",
            )
        return pin
