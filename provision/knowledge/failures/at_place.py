"""What an entry of the catalogue means at the place at which its exception was raised."""

from __future__ import annotations

import re
from dataclasses import replace

from provision.knowledge.failures.catalogue import KnownFailure
from provision.knowledge.failures.gone_paths import STARTS
from provision.knowledge.failures.own_program import BUILT, place_of
from provision.knowledge.failures.tracebacks import LIBRARY, Traceback

# Part of the path of the environments in which pip builds packages.
BUILD_ENVIRONMENT = "/pip-build-env-"
# Code that writes to the terminal or the log, and packages in which what they write to is one of these.
PRINTS = re.compile(r"^print\s*\((?!.*\bfile\s*=)|\bsys\.(?:stdout|stderr)\.")
PRINTERS = frozenset(("tqdm", "logging"))


# The file of a module from which a name cannot be imported.
OWN_MODULE = re.compile(r"\((?P<path>/[\w./+@~-]{1,300}\.py)\)$")
# Code of a program in JAX that arranges the devices of all processes in a mesh.
DEVICES = re.compile(r"\bjax\.(?:local_)?devices\(|\bjax\.(?:local_)?device_count\(|\bcreate_device_mesh\(")
# The file whose text the `setup.py` of a placeholder raises.
PLACEHOLDER = "ERROR.txt"


def at_place(failure: KnownFailure, traceback: Traceback | None) -> KnownFailure:
    """An entry whose line ends a traceback, with what the traceback adds: the place in the user's program, or another cause."""
    if traceback is None:
        return failure
    if failure.id == "module-not-installed" and any(BUILD_ENVIRONMENT in frame.file for frame in traceback.frames):
        return _missing_for_build(failure)
    if failure.id == "file-not-found" and traceback.frames and traceback.frames[-1].function == STARTS:
        return _program_missing(failure, traceback)
    if failure.id == "file-not-found" and traceback.frames and (built := BUILT.search(traceback.frames[-1].file)):
        return _missing_in_source(failure, built[1], traceback.code)
    by_package = (
        bool(traceback.frames) and traceback.frames[-1].is_library
    )  # it found the module of another package there
    own = None if by_package else OWN_MODULE.search(traceback.text)
    if failure.id == "api-removed" and own and not LIBRARY.search(own["path"]):
        return _name_missing(failure, own["path"])
    if failure.id == "image-not-read" and ".grad" in traceback.code:
        return _no_gradient(failure)
    if failure.id == "shapes-incompatible" and DEVICES.search(traceback.code):
        return _devices_differ(failure)
    last = traceback.frames[-1].package if traceback.frames else None
    if failure.id == "io-error" and (PRINTS.search(traceback.code) or last in PRINTERS):
        return _terminal_gone(failure)
    frame = traceback.own_frame if failure.program else None
    return replace(failure, cause=f"{failure.cause} (at {place_of(frame)})") if frame else failure


def _missing_for_build(failure: KnownFailure) -> KnownFailure:
    """A package is missing in the environment that pip makes for a build: that of the user may have it."""
    return replace(
        failure,
        cause="a package needs `{module}` while pip builds it, in an environment that pip made for the build and that lacks it",
        hint="run `python -m pip install {module}`, then `python -m pip install --no-build-isolation PACKAGE`",
    )


def _program_missing(failure: KnownFailure, traceback: Traceback) -> KnownFailure:
    """A program starts another one, which is not there; a path can also be that of the folder in which it starts it."""
    if "/" in (traceback.text.rpartition(": ")[2]):
        return replace(
            failure,
            cause="the program starts another one, but that, or the folder in which it starts it, is not there: `{path}`",
            hint="`ls -ld {path}` on the node of the job shows whether it is there; a job may run on a node without that folder",
        )
    return replace(
        failure,
        cause="the program starts `{path}`, which this node does not have: no loaded module or active environment provides it",
        hint="load its module or activate the environment in the job script: `command -v {path}` shows the result; "
        "the commands of a scheduler exist only on the nodes that belong to it",
        program=False,
    )


def _missing_in_source(failure: KnownFailure, package: str, code: str) -> KnownFailure:
    """A package that is built looks for a file of its source; those of NVIDIA on the public index are placeholders."""
    if PLACEHOLDER in code:
        return replace(
            failure,
            cause=f"what the index has as `{package}` is a placeholder, which only says that the package is somewhere else",
            hint=f"name the index of its maker with `--extra-index-url` (the page of `{package}` says which); if it is named, it "
            "has no wheel for this Python or this old pip: `python -m pip install --upgrade pip`, or another Python",
            source="NVIDIA, the packages of RAPIDS",
            program=False,
        )
    return replace(
        failure,
        cause=f"the build of `{package}` does not find `{{path}}`, which should be in its source or on this machine",
        hint="a version with a wheel for this Python needs no build: `python -m pip install --only-binary :all: PACKAGE`; a "
        "source that was cloned may lack its submodules: `git submodule update --init --recursive`",
        program=False,
    )


def _name_missing(failure: KnownFailure, path: str) -> KnownFailure:
    """A program imports a name from a module of its own: no package is of another version."""
    return replace(
        failure,
        cause=f"an error in your program: its own module `{path}` has no `{{name}}`",
        hint=f"`grep -n {{name}} {path}` shows whether the name is defined there, and before it is needed",
        source="Python",
        program=True,
    )


def _devices_differ(failure: KnownFailure) -> KnownFailure:
    """The array holds the devices: there are more or fewer of them than the program, or a saved state, arranges."""
    return replace(
        failure,
        cause="JAX sees more or fewer devices than the program arranges in a mesh, or than a checkpoint was saved with",
        hint="`python -c 'import jax; print(jax.device_count(), jax.local_device_count())'` in the job shows how many there are: "
        "request as many as the shape needs, start `jax.distributed.initialize()` on all nodes, or change the mesh; give a "
        "checkpoint of another mesh new shardings when it is restored",
        source="JAX, sharding.Mesh; Orbax",
        program=True,
    )


def _no_gradient(failure: KnownFailure) -> KnownFailure:
    """`None` is no image here."""
    return replace(
        failure,
        cause="an error in your program: a tensor has no gradient (`.grad` is None)",
        hint="it was not part of the loss, needs `requires_grad=True` (`retain_grad()` if it is no leaf), or `backward()` did "
        "not run",
        source="PyTorch, autograd",
        program=True,
    )


def _terminal_gone(failure: KnownFailure) -> KnownFailure:
    """A program printed to a terminal that was closed: no disk is involved."""
    return replace(
        failure,
        cause="the program printed to a terminal that does not exist any more, because the connection to the node ended",
        hint="start it in a job (`sbatch`), in `tmux`, or with `nohup PROGRAM > run.log 2>&1 &`",
    )
