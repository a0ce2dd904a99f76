"""Look at the surroundings of a build: processor, folders, limits, variables, the driver, what other users cannot read.

A program is tried in TMPDIR.
"""

from __future__ import annotations

import contextlib
import locale
import os
import re
import resource
import shutil
import stat
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeVar

from provision.errors import CommandError
from provision.machine.files.trusted_files import read_regular
from provision.machine.probes.installed_packages import installed_in
from provision.machine.programs.run import capture
from provision.machine.programs.shell import umask_of_shell
from provision.model.facts import Cpu, Facts, Folder, Surroundings
from provision.profile.patterns import show_controls

DRIVER_FILE = Path("/proc/driver/nvidia/version")
SHARED_MEMORY = Path("/dev/shm")
MEMORY_FILE = Path("/proc/meminfo")
MOUNTS = Path("/proc/self/mountinfo")
VERBS = Path("/sys/class/infiniband")
# Variables with which OpenSSL, requests, pip, curl, Git and uv find certificates.
CERTIFICATES = ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "PIP_CERT", "CURL_CA_BUNDLE", "GIT_SSL_CAINFO")
# The server of a network file system may not answer.
QUOTA_LIMIT_S = 5


def look_around(facts: Facts, root: Path) -> Surroundings:
    """The surroundings of a build for these facts. What cannot be read or asked is left out."""
    shell, minor = dict(os.environ), facts.python.minor if facts.python else None
    # As the site module computes it, for a user's Python that is not the one of this tool.
    base = Path(shell.get("PYTHONUSERBASE") or Path(shell.get("HOME") or "/") / ".local")
    user_site = base / "lib" / f"python{minor}" / "site-packages"
    above = nearest_existing(root)
    return Surroundings(
        glibc=glibc_version(),
        umask=umask_of_shell(),
        tmp=look_into(Path(tempfile.gettempdir() if "TMPDIR" not in shell else shell["TMPDIR"]), try_program=True),
        root=look_into(above, try_program=False),
        user_packages=tuple(installed_in([user_site])) if minor else (),
        user_site=str(user_site),
        shell=shell,
        locale=shell.get("LC_ALL") or shell.get("LC_CTYPE") or shell.get("LANG") or "",
        locale_works=_locale_works(),
        shared_memory_bytes=_or(lambda: _size(SHARED_MEMORY), None),
        available_memory_bytes=_or(_available_memory, None),
        process_limit=_limit(resource.RLIMIT_NPROC),
        driver=_or(driver_version, None),
        mpiexec=shutil.which("mpiexec", path=facts.environ.get("PATH")) if facts.mpi else None,
        root_mount=mount_of(os.path.realpath(above), _or(lambda: MOUNTS.read_text("utf-8", "replace"), "")),
        open_files_limit=_limit(resource.RLIMIT_NOFILE),
        locked_memory_bytes=_limit(resource.RLIMIT_MEMLOCK),
        infiniband=_or(lambda: any(VERBS.iterdir()), False),
        lost_certificates=tuple(
            (name, shell[name])
            for name in CERTIFICATES
            if shell.get(name) and not os.path.exists(shell[name])  # noqa: PTH110
        ),
        over_quota=_or(lambda: _over_quota(shell), ()),
        tool_on_path=tool_on_path(shell),
    )


def tool_on_path(shell: Mapping[str, str]) -> str:
    """The folder on PATH in which a shell finds this tool's own Python before any other; empty if there is none."""
    found = os.path.dirname(shutil.which("python3", path=shell.get("PATH")) or "")
    own = os.path.realpath(os.path.dirname(sys.executable))
    in_venv = sys.prefix != sys.base_prefix  # otherwise it is the Python of all
    return found if in_venv and found and os.path.realpath(found) == own else ""


T = TypeVar("T")


def _or(read: Callable[[], T], otherwise: T) -> T:
    """What `read` returns, or another value if this system does not have it, or does not let us read it."""
    try:
        return read()
    except (OSError, ValueError, CommandError):
        return otherwise


def mount_of(path: str, mounts: str) -> tuple[str, str]:
    """The type and options of the file system of a path, from the text of /proc/self/mountinfo (proc_pid_mountinfo(5))."""
    found, longest = ("", ""), -1
    for line in mounts.splitlines():
        before, dash, after = line.partition(" - ")
        fields, kind = before.split(" "), after.split(" ")
        if not dash or len(fields) < 6 or len(kind) < 3:
            continue
        point = fields[4].replace("\\040", " ")
        below = path == point or path.startswith(point.rstrip("/") + "/")
        if below and len(point) >= longest:  # of two on one folder, the later one is seen
            found, longest = (kind[0], f"{fields[5]},{kind[2]}"), len(point)
    return found


def _over_quota(shell: dict[str, str]) -> tuple[str, ...]:
    """What `quota --quiet` prints: only file systems on which the user is over quota, with a code that is not 0 (quota(1))."""
    if shutil.which("quota", path=shell.get("PATH")) is None:
        return ()
    done = capture(("quota", "--quiet"), shell, QUOTA_LIMIT_S)
    lines = done.stdout.splitlines() if done.returncode else ()
    return tuple(line.strip() for line in lines if line.strip())[:4]


def glibc_version() -> str | None:
    """The version of this system's glibc; None if it has another C library."""
    with contextlib.suppress(ValueError, OSError, AttributeError):
        name, _, version = (os.confstr("CS_GNU_LIBC_VERSION") or "").partition(" ")
        return version if name == "glibc" else None
    return None


def cpu() -> Cpu:
    """This machine's processor, detected by archspec."""
    import archspec.cpu
    from archspec.cpu.detect import detected_info

    return Cpu(target=archspec.cpu.host().name, features=frozenset(detected_info().features))


def cpu_family() -> str:
    """The family of this machine's processor, which `uname -m` prints: `x86_64`, `aarch64`."""
    import archspec.cpu

    return str(archspec.cpu.host().family.name)


def nearest_existing(path: Path) -> Path:
    """The folder, or the nearest one above it that exists."""
    # os.path.exists, not Path.exists, which raises for a path in another user's private folder.
    while not os.path.exists(path) and path != path.parent:  # noqa: PTH110
        path = path.parent
    return path


def look_into(path: Path, *, try_program: bool) -> Folder:
    """A folder; with `try_program` a small program is written there and run, otherwise the mount options decide."""
    exists = os.path.isdir(path)  # noqa: PTH112
    writable = exists and os.access(path, os.W_OK | os.X_OK)
    free, runs, files = 0, writable, None
    if exists:
        status = os.statvfs(path)
        free, runs = status.f_bavail * status.f_frsize, not status.f_flag & os.ST_NOEXEC
        # File systems without a fixed number of inodes (btrfs, some parallel ones) report 0.
        files = status.f_favail if status.f_files else None
    if writable and try_program:
        runs = _runs_programs(path)
    return Folder(path=str(path), is_folder=exists, writable=writable, runs=runs, free_bytes=free, free_files=files)


def _runs_programs(folder: Path) -> bool:
    """Whether a program in this folder can be started."""
    try:
        with tempfile.TemporaryDirectory(prefix="provision-", dir=folder) as scratch:
            program = Path(scratch) / "program"
            program.write_text("#!/bin/sh\nexit 0\n", encoding="utf-8")
            program.chmod(stat.S_IRWXU)
            return capture((str(program),), os.environ).returncode == 0
    except (OSError, CommandError):
        return False


def _locale_works() -> bool:
    try:
        before = locale.setlocale(locale.LC_CTYPE)
        locale.setlocale(locale.LC_CTYPE, "")
        locale.setlocale(locale.LC_CTYPE, before)
    except locale.Error:
        return False
    return True


def _size(folder: Path) -> int:
    status = os.statvfs(folder)
    return status.f_blocks * status.f_frsize


def _available_memory() -> int | None:
    found = re.search(r"^MemAvailable:\s+(\d{1,15}) kB$", MEMORY_FILE.read_text(encoding="ascii"), re.MULTILINE)
    return int(found[1]) * 1024 if found else None


def _limit(name: int) -> int | None:
    soft = resource.getrlimit(name)[0]
    return None if soft == resource.RLIM_INFINITY else soft


def driver_version() -> str | None:
    """The version in the file of NVIDIA's kernel module: `NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.104.05  …`."""
    text = read_regular(DRIVER_FILE, limit=1 << 16)[0].decode()
    found = re.search(r"Kernel Module(?: for \S+)?\s+(\d{1,6}(?:\.\d{1,6})+)", text)
    return found[1] if found else None


def closed_to_others(path: str) -> str | None:
    """The first folder on the way to the path, links followed, that other users cannot enter, or the path if they cannot read it.

    The answer is a line such as `drwx------ /home/ada`; None if all users can read the path. Nobody else is asked, so lists of
    access rights (ACLs) that give more are not seen; those that give less are.
    """
    for name in dict.fromkeys((os.path.abspath(path), os.path.realpath(path))):
        steps = [*reversed(Path(name).parents), Path(name)]
        for step in steps:
            try:
                mode = step.stat().st_mode
            except OSError:
                return None  # it is missing, which another probe reports
            needed = stat.S_IXOTH if stat.S_ISDIR(mode) else stat.S_IROTH
            if not mode & needed:
                return f"{stat.filemode(mode)} {show_controls(str(step))}"
    return None


def closed_python(executable: str, root: str) -> tuple[str, ...]:
    """Why other users cannot run this Python and its standard library; empty if they can, or cannot enter the root either."""
    if closed_to_others(str(nearest_existing(Path(root)))):
        return ()
    program = Path(os.path.realpath(executable))
    library = sorted(program.parent.parent.glob("lib*/python3*/os.py"))
    closed = (closed_to_others(str(path)) for path in (executable, *library))
    return tuple(dict.fromkeys(line for line in closed if line))
