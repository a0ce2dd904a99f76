"""Checks of the node that rest on one value each: file systems, quota, limits of the user, certificates, stubs of CUDA. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from provision.model.check import Check, State, observed
from provision.model.facts import Facts
from provision.model.surroundings import Surroundings
from provision.profile.arch import Arch

# TensorFlow for GPUs with its packages has about 25,000 files; an environment with a user's packages has more.
FILES = 50_000
# Each worker of a data pipeline, each connection between ranks and each file of a data set needs one. Debian's default.
OPEN_FILES = 1024
# InfiniBand registers the buffers of each rank; MPI's documentation asks for an unlimited amount.
LOCKED_BYTES = 64 * 1024**2


def seen(state: State, check: str, message: str, *evidence: str, hint: str | None = None) -> Check:
    """What a check of the node saw, by the check's stable name."""
    return observed("node", state, message, *evidence, hint=hint, name=check)


good, note, bad = partial(seen, "good"), partial(seen, "note"), partial(seen, "bad")


def check_file_systems(around: Surroundings) -> Iterator[Check]:
    """Quota, the number of files that may be made, and locks."""
    if around.over_quota:
        yield note(
            "quota",
            "you have used more than your quota on a file system: writes there fail",
            *around.over_quota,
            hint="`quota -s`; free some space, or `export PROVISION_ROOT=…` to a file system of your project",
        )
    for check, folder in (("tmp-files", around.tmp), ("root-files", around.root)):
        if folder.writable and folder.free_files is not None and folder.free_files < FILES:
            yield note(
                check,
                f"only {folder.free_files:,} more files can be made in `{folder.path}`; an environment has about {FILES // 2:,}",
                "the message when there are none left is `No space left on device`",
                hint=f"`df -i '{folder.path}'`; remove old environments: `provision prune`",
            )
    kind, options = around.root_mount[0], around.root_mount[1].split(",")
    without = kind == "lustre" and not {"flock", "localflock"} & set(options)
    if without or (kind in ("nfs", "nfs4") and "nolock" in options):
        yield note(
            "root-locks",
            f"the file system of the root ({kind}) is mounted without locks between nodes, which HDF5 and SQLite use",
            f"mounted with {around.root_mount[1]}; mount.lustre(8), nfs(5)",
            hint="`export HDF5_USE_FILE_LOCKING=FALSE` in jobs, and let only rank 0 write",
        )


def check_loaded(arch: Arch, facts: Facts, around: Surroundings) -> Iterator[Check]:
    """Limits of the user, certificates that are not there, and the stub of the driver in front of the driver."""
    if around.open_files_limit is not None and around.open_files_limit < OPEN_FILES:
        yield note(
            "limit-open-files",
            f"a process may open {around.open_files_limit} files (`ulimit -n`); data pipelines and many ranks need more",
            hint="`ulimit -n $(ulimit -H -n)`",
        )
    locked = around.locked_memory_bytes
    if around.infiniband and locked is not None and locked < LOCKED_BYTES:
        yield note(
            "limit-locked-memory",
            f"a process may lock {locked / 1024**2:.0f} MiB of memory (`ulimit -l`), but this node has InfiniBand, which locks "
            "the buffers of MPI and NCCL",
            hint="`ulimit -l unlimited`; if that is refused, ask the site to raise `memlock` in /etc/security/limits.conf",
        )
    for name, path in around.lost_certificates:
        yield note(
            "shell-certificates",
            f"{name} names a file that does not exist: downloads fail with an error about certificates",
            f"{name}={path}",
            hint=f"`unset {name}`, or set it to the site's bundle",
        )
    path = {**facts.environ, **dict(arch.build_environ)}.get("LD_LIBRARY_PATH", "")
    stubs = [folder for folder in path.split(":") if folder.rstrip("/").endswith("/stubs")]
    if arch.gpu and stubs:
        yield note(
            "modules-stubs",
            "the modules put stubs of CUDA on LD_LIBRARY_PATH: programs load a `libcuda.so` that is no driver, and see no GPU",
            *stubs,
            hint="leave the module that does it out of `archs.<arch>.modules`: `module show` lists what modules set",
        )
