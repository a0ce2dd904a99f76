"""What the planner needs from a backend: a draft, whose identity decides the prefix, and what it builds there."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from provision.horovod.wheel import Build
from provision.model.facts import Existing
from provision.model.layout import EnvironmentId, Layout
from provision.model.operation import Operation
from provision.model.request import Request


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A step before it is known whether it has to run."""

    name: str
    title: str
    reason: str
    operations: tuple[Operation, ...]
    receipt: str | None = None
    """The step whose receipt shows that this step's result is in the prefix; None: its own."""
    kept: str = "done"
    """The reason to give if the step is kept."""
    reuse: str | None = None
    """Why the step need not run although its result is not in the prefix: an earlier run left it elsewhere."""
    packages: int = 0
    """How many packages the step installs; 0 if they are not to be counted."""
    starts_over: bool = False
    """Whether a prefix without this step's receipt is removed: the step cannot be repeated in place."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Construction:
    """What a backend makes at one prefix, which is then a virtual environment: its Python is `bin/python`.

    `mpi_libraries` are the files of the MPI that everything compiled must be linked against. `not_fetched` names what the build
    would have to download.
    """

    rows: tuple[Row, ...]
    not_fetched: tuple[str, ...]
    mpi_libraries: tuple[str, ...]
    allowed: tuple[str, ...] = ()
    """Folders outside of the prefix from which the environment loads libraries, in addition to those of the site."""
    proved: tuple[Row, ...] = ()
    """What follows the proof, before the environment is published."""
    notes: tuple[str, ...] = ()
    """What a person should know of the plan before anything starts, one line each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """What a backend would build, before it is known where. The texts are for people, and empty if there is no such part.

    `identity` is everything that decides the backend's part; a name that the planner's part has too replaces that text. `mpi`
    is the MPI that is linked, or that comes into the environment; the part up to `;` is its name and version. `horovod` is
    its version, as the environment will report it. `wheels` are the keys of the compiled packages among the cached wheels; empty
    if the backend keeps none.
    """

    identity: Mapping[str, str]
    compiler: str
    mpi: str
    horovod: str
    construct: Callable[[Layout, EnvironmentId, Existing, str], Construction]
    """What is made for an environment, given what exists; the text is its identity, written to the prefix as `plan.json`."""
    wheels: Mapping[str, str] = field(default_factory=dict)


def draft_of(
    request: Request,
    target: str,
    builds: Sequence[Build],
    construct: Callable[[Layout, EnvironmentId, Existing, str], Construction],
    *,
    own: Mapping[str, str],
    wheels: Mapping[str, str] | None = None,
) -> Draft:
    """The draft for a CPU target. Locks decide it, everything that compiles packages, and what is the backend's `own`."""
    by_name, first = {build.name: build for build in builds}, builds[0] if builds else None
    mpi = first.mpi if first else request.mpi_wheel
    horovod = by_name.pop("horovod", None)
    compiled: dict[str, str] = {}
    if first:
        compiled |= {"target": f"{target} ({first.target_flags})", "compiler": first.compiler}
    if horovod:
        compiled |= {
            "horovod": f"{horovod.source.version} {' '.join(horovod.source.hashes)}",
            "patches": " ".join(f"{patch.name}:{patch.sha256[:12]}" for patch in horovod.patches),
        }
    if by_name:
        words = (
            " ".join((name, build.source.version, *build.source.hashes, build.flags)) for name, build in by_name.items()
        )
        compiled["compiled"] = "; ".join(words)
    locks = {"lock": request.lock.sha256, "mpi lock": request.mpi_lock.sha256 if request.mpi_lock else ""}
    return Draft(
        identity={**compiled, **({"mpi": mpi} if mpi else {}), **locks, **own},
        compiler=first.compiler if first else "",
        mpi=mpi,
        horovod=horovod.version if horovod else "",
        construct=construct,
        wheels=wheels or {},
    )
