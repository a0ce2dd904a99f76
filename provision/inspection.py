"""Is the environment what the plan says? Judges the report of `smoke/inspect_env.py`. Pure."""

from __future__ import annotations

import os.path
from collections.abc import Callable, Mapping
from typing import Any

from provision.model.plan import Expectation
from provision.verdict import Check

# Where an operating system keeps its libraries.
SYSTEM = ("/lib", "/lib64", "/usr/lib", "/usr/lib64", "/usr/libexec", "/etc", "/opt/cray/lib64", "/opt/cray/libfabric")


def below(path: str, folders: tuple[str, ...]) -> bool:
    """Whether `path` is in one of the folders or below it."""
    return any(path == folder or path.startswith(folder.rstrip("/") + "/") for folder in folders)


def judge_inspection(
    report: Mapping[str, Any], expectation: Expectation, resolve: Callable[[str], str] = os.path.realpath
) -> tuple[Check, ...]:
    """Hold the report against the expectation, a check for each question.

    `resolve` follows symbolic links: the kernel names mapped files by their real paths.
    """
    horovod = report.get("horovod") or {}
    flags: Mapping[str, Any] = horovod.get("flags") or {}
    errors: Mapping[str, str] = report.get("errors") or {}
    versions: Mapping[str, str] = report.get("versions") or {}
    mapped = tuple(report.get("mapped_objects") or ())
    checks = [
        Check(
            name="imports",
            passed=not any(name.startswith("import") for name in errors),
            message="; ".join(f"{name}: {text}" for name, text in errors.items()) or "TensorFlow and Horovod import",
        )
    ]
    for name, wanted in expectation.versions:
        seen = str(versions.get(name))
        checks.append(
            Check(
                name=f"version of {name}", passed=seen.split("+")[0] == wanted, message=f"planned {wanted}, seen {seen}"
            )
        )
    metadata = (horovod.get("metadata") or {}).get("tensorflow")
    wanted = dict(expectation.versions)["tensorflow"]
    checks += [
        Check(
            name="framework built in",
            passed=metadata == wanted and bool(horovod.get("extensions")),
            message=f"Horovod's metadata.json says TensorFlow {metadata}, planned {wanted}; extensions: "
            f"{', '.join(os.path.basename(path) for path in horovod.get('extensions') or ()) or 'none'}",
        ),
        Check(
            name="MPI built in",
            passed=bool(flags.get("mpi_built")) and "[X] MPI" in str(horovod.get("check_build")),
            message=f"mpi_built says {flags.get('mpi_built')}, check-build says "
            + ("[X] MPI" if "[X] MPI" in str(horovod.get("check_build")) else "no MPI"),
        ),
        Check(
            name="Gloo left out",
            passed=not flags.get("gloo_built"),
            message=f"gloo_built says {flags.get('gloo_built')}",
        ),
        _mpi(mapped, expectation, resolve),
        _outside(mapped, expectation, resolve),
        Check(
            name="no packages from a home directory",
            passed=report.get("enable_user_site") is not True,
            message=f"site.ENABLE_USER_SITE is {report.get('enable_user_site')}",
        ),
    ]
    return tuple(checks)


def _mpi(mapped: tuple[str, ...], expectation: Expectation, resolve: Callable[[str], str]) -> Check:
    """The libmpi in the process is the plan's, and there is one only."""
    seen = [
        path
        for path in mapped
        if os.path.basename(path).startswith(("libmpi.so", "libmpich.so", "libmpi_cray", "libmpi_gnu"))
    ]
    planned = {resolve(path) for path in expectation.mpi_libraries}
    return Check(
        name="linked MPI",
        # The mpich wheel holds copies where a system has links: libmpi.so beside libmpi.so.12.
        passed=bool(seen) and all(any(path == one or path.startswith(f"{one}.") for one in planned) for path in seen),
        message=f"planned {', '.join(sorted(planned))}, loaded {', '.join(seen) or 'none'}",
        hint=None if seen else "Horovod was built without MPI, or against a static one",
    )


def _outside(mapped: tuple[str, ...], expectation: Expectation, resolve: Callable[[str], str]) -> Check:
    """Every library comes from the environment, its modules, its Python or the system."""
    allowed = tuple(dict.fromkeys((*expectation.allowed, *(resolve(path) for path in expectation.allowed), *SYSTEM)))
    strange = [path for path in mapped if not below(path, allowed)]
    return Check(
        name="nothing from outside",
        passed=bool(mapped) and not strange,
        message=f"{len(mapped)} libraries mapped; from outside: {', '.join(strange) or 'none'}",
        hint="a library there can change or vanish under the environment" if strange else None,
    )
