"""What of this machine an environment depends on, measured when it was proved, and again when it is verified.

A trace is a kind, a subject and a value: the same function measures it both times. Nothing is loaded and nothing is run.
"""

from __future__ import annotations

import contextlib
import os
import platform
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from provision.machine.files.disk import sha256_of
from provision.machine.probes.look_around import driver_version
from provision.model.condition import Trace, TraceKind

# Only these list folders in which programs and libraries are searched.
SEARCHED = ("PATH", "LD_LIBRARY_PATH", "LIBRARY_PATH", "CPATH")
SYSTEM = ("/bin", "/usr/bin", "/sbin", "/usr/sbin", "/usr/local/bin", "/usr/local/sbin")
MOST_FOLDERS = 200
# What is measured of the system, by its name.
SYSTEM_NOW: Mapping[str, Callable[[], str | None]] = {
    "operating system": lambda: platform.freedesktop_os_release().get("PRETTY_NAME"),
    "glibc": lambda: " ".join(platform.libc_ver()).strip() or None,
    "GPU driver": driver_version,
}


def traces_now(environ: Mapping[str, str], prefix: Path, libraries: Iterable[str]) -> tuple[Trace, ...]:
    """Everything that an environment at this prefix depends on; `environ` has the modules of its build loaded.

    `libraries` are the files that its processes map from outside the prefix.
    """
    subjects: list[tuple[TraceKind, str]] = [("system", name) for name in SYSTEM_NOW]
    subjects.append(("python", str((prefix / "bin" / "python").resolve())))
    modulefiles = [path for path in environ.get("_LMFILES_", "").split(":") if path]
    subjects += [("module", path) for path in modulefiles]
    if modulefiles:
        folders = [entry for name in SEARCHED for entry in environ.get(name, "").split(":") if entry.startswith("/")]
        subjects += [("folder", folder) for folder in dict.fromkeys(folders) if folder not in SYSTEM][:MOST_FOLDERS]
    subjects += [("library", path) for path in sorted(set(libraries))]
    found = []
    for kind, subject in subjects:
        value = measure_trace(kind, subject)
        if value is not None:
            found.append(Trace(kind=kind, subject=subject, value=value))
    return tuple(found)


def measure_trace(kind: TraceKind, subject: str) -> str | None:
    """The value of a trace on this machine now; None if it is gone, or this machine has none."""
    path = Path(subject)
    with contextlib.suppress(OSError, ValueError):
        if kind == "system":
            return SYSTEM_NOW[subject]() if subject in SYSTEM_NOW else None
        if kind == "folder":
            return os.path.realpath(path) if path.is_dir() else None
        if kind == "module":
            # Lmod lists a modulefile of Lua without its ending in some versions.
            return sha256_of(path if path.is_file() else path.with_name(f"{path.name}.lua"))
        return f"{os.path.realpath(path)} {sha256_of(path)}"
    return None
