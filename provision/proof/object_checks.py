"""Judges the libraries that were compiled before the smoke test: what they need, where they search, for which CPU. Pure."""

from __future__ import annotations

import os.path
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from provision.knowledge.combinations import Combinations
from provision.model.check import Check, good, judged, skipped
from provision.proof.inspection import SYSTEM, below

# Patterns for grep over the disassembly, and the features of a CPU, by archspec's names, that the instruction needs: any of
# them will do. Of registers every use counts. Registers 16 to 31 that are narrower than zmm need AVX512VL, which Xeon Phi
# lacks; AVX512ER and AVX512PF are Xeon Phi's alone.
FEATURE_OF: Mapping[str, tuple[str, ...]] = {
    "%zmm": ("avx512f",),
    "%[xy]mm(1[6-9]|2[0-9]|3[01])": ("avx512vl",),
    "%ymm": ("avx",),
    r"\bvfn?m(add|sub)[0-9a-z]+": ("fma", "fma4"),
    r"\bvcvtp[hs]2p[hs]": ("f16c",),
    r"\bv(rcp28|rsqrt28|exp2|gatherpf|scatterpf)[0-9a-z]*": ("avx512er", "avx512pf"),
}
# Left out of our builds: a build that needs them took a switch from elsewhere.
UNWANTED = ("libccl.so", "libgloo.so", "libmlsl.so", "libmxnet.so")


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedObject:
    """The facts of one ELF file. `search` holds the folders of RPATH and RUNPATH, `versions` the newest version of each
    name (`GLIBC`, `GLIBCXX`) that it needs.

    `instructions`: how often the code has an instruction of each kind (`%zmm`), or None if it was not disassembled;
    `reason` says why.
    """

    path: str
    machine: str
    needed: tuple[str, ...]
    search: tuple[str, ...]
    symbols: frozenset[str]
    """Those that it defines or uses."""
    versions: tuple[tuple[str, str], ...]
    instructions: Mapping[str, int] | None = None
    reason: str = ""


def judge_objects(
    objects: Sequence[SharedObject],
    libraries: Sequence[SharedObject],
    *,
    allowed: Sequence[str],
    target: str,
    features: Collection[str],
    known: Combinations,
) -> tuple[Check, ...]:
    """One check for each question, over everything that was compiled.

    `libraries`: the plan's libmpi. `allowed`: folders from which libraries may be loaded. `features`: of the CPU `target`.
    """
    return (
        _needed(objects),
        _search(objects, allowed),
        _family(objects, libraries, known),
        _versions(objects),
        _instructions(objects, target, features),
    )


def _needed(objects: Sequence[SharedObject]) -> Check:
    """The extensions need one MPI, and nothing that our builds leave out."""
    needed = list(dict.fromkeys(name for one in objects for name in one.needed))
    mpis = [name for name in needed if name.startswith("libmpi")]
    unwanted = [name for name in needed if name.startswith(UNWANTED)]
    return judged(
        "needed libraries",
        len(mpis) <= 1 and not unwanted,
        f"needs {', '.join(needed)}" + (f"; not wanted: {', '.join(unwanted)}" if unwanted else ""),
        "a variable of the modules changed the build: `provision doctor` shows CCL_ROOT and others"
        if unwanted
        else None,
    )


def _search(objects: Sequence[SharedObject], allowed: Sequence[str]) -> Check:
    """The extensions search only folders that stay: of the environment, its modules and the system."""
    folders = list(dict.fromkeys(folder for one in objects for folder in one.search))
    places = (*allowed, *SYSTEM)
    strange = [
        folder
        for folder in folders
        if not folder.startswith("$ORIGIN")
        and not (folder.startswith("/") and below(os.path.normpath(folder), tuple(places)))
    ]
    return judged(
        "search paths",
        not strange,
        f"searches {', '.join(folders) or 'only the usual folders'}"
        + (f"; outside: {', '.join(strange)}" if strange else ""),
        "such a folder can disappear, or belong to another user",
    )


def _family(objects: Sequence[SharedObject], libraries: Sequence[SharedObject], known: Combinations) -> Check:
    """The extensions were compiled with the header of the same family of MPI as the plan's library.

    Only a program compiled against Open MPI uses its symbol; with MPICH's header, handles are numbers.
    """
    openmpi = next(row for row in known.mpi if row.name == "openmpi")
    compiled = "openmpi" if any(openmpi.symbol in one.symbols for one in objects) else "mpich"
    families = [row.name for one in libraries if (row := known.mpi_family(one.symbols))]
    linked = families[0] if families else None
    return judged(
        "MPI family",
        linked in (None, compiled),
        f"compiled with the header of {compiled}, the plan's library is {linked or 'of a family that is not known'}",
        "the wrapper is of another MPI than the library: `provision doctor`",
    )


def _versions(objects: Sequence[SharedObject]) -> Check:
    """The oldest glibc and libstdc++ with which the extensions can be loaded, for the record."""
    parts = dict.fromkeys(f"{name} {version}" for one in objects for name, version in one.versions)
    return good("symbol versions", f"needs {', '.join(parts) or 'none'} or newer")


def _instructions(objects: Sequence[SharedObject], target: str, features: Collection[str]) -> Check:
    """No instruction in the extensions is beyond the arch's CPU."""
    reasons = [one.reason or "it was not disassembled" for one in objects if one.instructions is None]
    if reasons:
        return skipped("instructions", f"not inspected: {reasons[0]}")
    beyond, seen = [], []
    for kind, wanted in FEATURE_OF.items():
        number = sum((one.instructions or {}).get(kind, 0) for one in objects)
        if number:
            seen.append(f"{'/'.join(wanted)} {number}")
            if not set(wanted) & set(features):
                beyond.append(f"{number} of {' or '.join(wanted)}")
    return judged(
        "instructions",
        not beyond,
        f"for {target}: {', '.join(seen) or 'none of AVX or newer'}"
        + (f"; its CPUs lack {', '.join(beyond)}" if beyond else ""),
        "a flag of the modules or of `build_environ` changed the target: `grep -- -march` in the log of the step `compile`",
    )
