"""A request to plan: site, arch and stack, with all files that they name already read. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from provision.errors import PlanError
from provision.knowledge.frameworks.interface import FrameworkInterface
from provision.model.lock import Lock, Pin
from provision.model.patch import Patch
from provision.profile.arch import Arch
from provision.profile.site import Site
from provision.profile.stack import Stack


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A request to plan an environment, with the files that it names already read."""

    site: Site
    arch: Arch
    stack: Stack
    lock: Lock
    mpi_lock: Lock | None
    build_lock: Lock | None
    """The packages that compile others; None if nothing is compiled."""
    patches: tuple[Patch, ...]
    """All patches for the stack's Horovod; the plan selects those that apply."""
    programs_folder: str
    """The folder of the programs that run inside the environment."""
    minor: str
    """The minor version of Python of the locks."""
    advisories: str = ""
    """What `module help` shows about open advisories of the locked packages; empty: nothing."""
    rebuild: bool = False
    """Whether to build it again beside the one that is there."""
    publish: bool = True
    """Whether users are to load it; otherwise it stays a candidate for pilots."""

    @property
    def locks(self) -> tuple[Lock, ...]:
        """All locks of the build: those of the environment, and the one that compiles Horovod."""
        return tuple(lock for lock in (self.lock, self.mpi_lock, self.build_lock) if lock)

    @property
    def pins(self) -> tuple[Pin, ...]:
        """The pins of the environment's locks."""
        return (*self.lock.pins, *(self.mpi_lock.pins if self.mpi_lock else ()))

    @property
    def sources(self) -> tuple[Pin, ...]:
        """The pins of all packages that are compiled."""
        return tuple(self.source(name, version) for name, version in self.stack.from_source.items())

    @property
    def mpi_wheel(self) -> str:
        """The MPI that is installed into the environment, as text; empty if the site provides MPI."""
        return "; ".join(f"{pin.name} {pin.version} (wheel)" for pin in self.mpi_lock.pins) if self.mpi_lock else ""

    def source(self, package: str, version: str) -> Pin:
        """The lock's pin of a package that is compiled: only its source has a hash there.

        Raises:
            PlanError: the lock has another version of the package, or the hashes of several files.
        """
        pin = self.pinned(package, version)
        if len(pin.hashes) != 1:
            raise PlanError(
                f"`{package}` is compiled, but the lock allows {len(pin.hashes)} files of it",
                evidence=[self.lock.path],
                hint=f"write `--no-binary {package}` into `{self.stack.name}.in`, then `provision lock {self.stack.name}`",
            )
        return pin

    def framework_pin(self, framework: FrameworkInterface) -> Pin:
        """The lock's pin of a framework of the stack: of its own version, or of that which the lock has beside it.

        Raises:
            PlanError: the lock has another version, or does not contain it.
        """
        own = self.stack.framework
        if framework is own.interface:
            return self.pinned(own.package, own.version)
        found = next((pin for name in framework.distributions if (pin := self.lock.pin(name))), None)
        if found is None:
            raise PlanError(
                f"the lock does not pin {framework.title}, which the stack `{self.stack.name}` names",
                evidence=[self.lock.path],
                hint=f"write `{framework.distributions[0]}==VERSION` into `{self.stack.name}.in`, then "
                f"`provision lock {self.stack.name}`",
            )
        return found

    def pinned(self, package: str, version: str) -> Pin:
        """The lock's pin of a package that the stack names.

        Raises:
            PlanError: the lock has another version of the package, or does not contain it.
        """
        pin = self.lock.pin(package)
        if pin is None or pin.version != version:
            raise PlanError(
                f"the lock does not pin `{package}=={version}`, which the stack `{self.stack.name}` requires",
                evidence=[self.lock.path, f"it pins: {pin.version if pin else 'nothing'}"],
                hint="use the same version in the stack and in its requirements, then run `provision lock NAME`",
            )
        return pin
