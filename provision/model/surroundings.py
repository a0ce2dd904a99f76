"""The surroundings of a build on one node: what is not an input of the plan, but can make the build or the proof fail."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Folder:
    """A folder in which programs write: whether it is one, can be written, and lets a program in it run."""

    path: str
    is_folder: bool
    writable: bool
    runs: bool
    free_bytes: int
    free_files: int | None = None
    """How many files may still be made; None if the file system has no such limit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What was seen on this node. None: it is not known, or the node has no such thing."""

    glibc: str | None
    umask: int
    """Of the shell; the tool writes with its own."""
    tmp: Folder
    root: Folder
    """The root, or the nearest folder above it that exists."""
    user_packages: tuple[str, ...]
    """The packages in the user's home that Python would import, for the Python of the environment."""
    user_site: str
    shell: Mapping[str, str] = field(repr=False)
    """The variables of the caller's shell, before they are cleaned."""
    locale: str
    locale_works: bool
    shared_memory_bytes: int | None
    """The size of /dev/shm."""
    available_memory_bytes: int | None
    process_limit: int | None
    driver: str | None
    """The version of NVIDIA's driver."""
    mpiexec: str | None
    """The mpiexec that the loaded modules give."""
    root_mount: tuple[str, str] = ("", "")
    """The type and the options of the file system of the root, as the kernel lists them."""
    open_files_limit: int | None = None
    locked_memory_bytes: int | None = None
    """How much memory a process may lock; None: any amount."""
    infiniband: bool = False
    """Whether this node has InfiniBand, RoCE or another network with verbs."""
    lost_certificates: tuple[tuple[str, str], ...] = ()
    """Variables that name a file of certificates that does not exist, with the file."""
    over_quota: tuple[str, ...] = ()
    """What `quota` and `lfs quota` print of file systems on which the user has more than allowed."""
    tool_on_path: str = ""
    """The folder of this tool's own Python, as PATH names it, if a shell finds its `python3` before any other."""
