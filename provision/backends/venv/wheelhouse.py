"""The wheelhouse: packages that `provision fetch` downloaded, for builds without network. Pure.

A build takes its packages from the wheelhouse if every lock it installs was fetched completely; it never mixes sources.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from provision.model.lock import Lock, Pin
from provision.model.operation import FetchLock
from provision.model.request import Request

# The platform tags that wheels for Linux carry (PEP 513, 571, 599, 600), of the glibc versions that sites run.
GLIBC = range(5, 40)


def platform_tags(family: str) -> tuple[str, ...]:
    """The tags of wheels that run on Linux with a CPU of this family (`x86_64`, `aarch64`), the newest first."""
    old = ("manylinux2014", "manylinux2010", "manylinux1") if family == "x86_64" else ("manylinux2014",)
    return (*(f"manylinux_2_{minor}_{family}" for minor in reversed(GLIBC)), *(f"{name}_{family}" for name in old))


def download_argv(
    tool_python: str, requirements: str, folder: str, *, minor: str, foreign: str | None
) -> tuple[str, ...]:
    """The command that downloads a lock's packages for Python `minor`, whichever Python runs it.

    `foreign`: the CPU family of nodes that is not this machine's. Every file is compared with the lock's hashes.
    """
    tags = (word for tag in platform_tags(foreign) for word in ("--platform", tag)) if foreign else ()
    return file_argv(tool_python, requirements, folder, *("--python-version", minor, "--implementation", "cp", *tags))


def fetch_lock(lock: Lock, request: Request, target: str) -> FetchLock:
    """What downloads the packages of a lock; what is compiled is fetched as source: a wheel of it is for another MPI."""
    requirements = lock.without(*request.stack.from_source)
    return FetchLock(path=lock.path, sha256=lock.sha256, requirements=requirements, minor=request.minor, target=target)


def file_argv(tool_python: str, requirements: str, folder: str, *kind: str) -> tuple[str, ...]:
    """The command that downloads files of pip's `kind` (`--only-binary :all:`), each compared with its hash."""
    return (
        *(tool_python, "-m", "pip", "download", "--no-input", "--require-hashes", "--no-deps", *kind),
        *("--dest", folder, "-r", requirements),
    )


def source_name(pin: Pin) -> str:
    """The file of a source package among the sources."""
    return f"{pin.name}-{pin.version}.tar.gz"


def not_fetched(
    locks: Sequence[Lock], wanted: Sequence[Pin], *, fetched: Collection[str], sources: Collection[str]
) -> list[str]:
    """What a build would have to ask the network for, as names for people. `wanted`: the packages that are compiled."""
    missing = [lock.path for lock in locks if lock.sha256 not in fetched]
    return [*missing, *(name for name in map(source_name, wanted) if name not in sources)]
