"""Read compiled libraries: their dynamic section with pyelftools, and their instructions with `objdump` if it is there."""

from __future__ import annotations

import dataclasses
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from provision.errors import CommandError
from provision.knowledge.targets import features_of
from provision.knowledge.versions import release
from provision.machine.files.tables import read_combinations
from provision.machine.programs.run import capture
from provision.machine.programs.shell import which
from provision.model.check import Check, skipped
from provision.model.operation import Inspect
from provision.model.plan import Plan
from provision.model.quoting import bash
from provision.proof.inspection import FEATURE_OF, SharedObject, judge_objects
from provision.proof.reports import Report

TIME_LIMIT_S = 300
# A line of `ldd`: Open MPI's, MPICH's (also Intel's and Cray's).
MPI_LIBRARY = re.compile(r"^\s*libmpi(?:ch)?[\w.-]*\.so[\d.]* => (/\S+)", re.MULTILINE)


def inspect_objects(
    report: Mapping[str, Any], plan: Plan, inspect: Inspect, environ: Mapping[str, str]
) -> tuple[Check, ...]:
    """The checks of everything compiled, which the report of the inspection names; none if nothing is."""
    compiled = tuple(path for path in Report(report).part("compiled").fields.values() if isinstance(path, str))
    extensions = (*Report(report).part("horovod").texts("extensions"), *compiled)
    if not extensions:
        return ()
    try:
        objects = [with_instructions(read_object(path), environ) for path in extensions]
        # What was really loaded: the plan's `libmpi.so` can be a script for the linker.
        mapped = Report(report).texts("mapped_objects")
        libraries = [
            read_object(path) for path in mapped if os.path.basename(path).startswith(("libmpi.so", "libmpich.so"))
        ]
    except (ImportError, OSError, ValueError) as error:
        return (skipped("compiled libraries", f"not inspected: {error}"),)
    target = plan.identity["target"].split()[0]
    return judge_objects(
        objects,
        libraries,
        allowed=(*inspect.expectation.allowed, *map(os.path.realpath, inspect.expectation.allowed)),
        target=target,
        features=features_of(target),
        known=read_combinations(),
    )


def linked_mpi(file: Path, environ: Mapping[str, str]) -> set[str]:
    """The real paths of the MPI libraries that the loader finds for a program or a library; `ldd` prints them."""
    return set(map(os.path.realpath, MPI_LIBRARY.findall(capture(("ldd", str(file)), environ).stdout)))


def read_object(path: str) -> SharedObject:
    """The facts of an ELF file.

    Raises:
        ImportError: pyelftools is not installed.
        OSError, ValueError: the file cannot be read, or is not ELF.
    """
    from elftools.common.exceptions import ELFError
    from elftools.elf.elffile import ELFFile

    try:
        with Path(path).open("rb") as file:
            elf = ELFFile(file)
            needed, search = [], []
            dynamic: Any = elf.get_section_by_name(".dynamic")
            for tag in dynamic.iter_tags() if dynamic else ():
                if tag.entry.d_tag == "DT_NEEDED":
                    needed.append(str(tag.needed))
                elif tag.entry.d_tag in ("DT_RPATH", "DT_RUNPATH"):
                    text = tag.rpath if tag.entry.d_tag == "DT_RPATH" else tag.runpath
                    search += [folder for folder in str(text).split(":") if folder]
            table: Any = elf.get_section_by_name(".dynsym")
            symbols = frozenset(str(symbol.name) for symbol in table.iter_symbols()) if table else frozenset()
            section: Any = elf.get_section_by_name(".gnu.version_r")
            names = [str(one.name) for _, ones in (section.iter_versions() if section else ()) for one in ones]
            return SharedObject(
                path=path,
                machine=str(elf.get_machine_arch()),
                needed=tuple(needed),
                search=tuple(search),
                symbols=symbols,
                versions=newest_versions(names),
            )
    except ELFError as error:
        raise ValueError(str(error)) from error


def newest_versions(names: list[str]) -> tuple[tuple[str, str], ...]:
    """Of names such as `GLIBC_2.34`, the newest version of each."""
    newest: dict[str, str] = {}
    for name in names:
        family, _, version = name.rpartition("_")
        if family in ("GLIBC", "GLIBCXX", "CXXABI") and release(version) > release(newest.get(family, "")):
            newest[family] = version
    return tuple(sorted(newest.items()))


def with_instructions(found: SharedObject, environ: Mapping[str, str]) -> SharedObject:
    """The same with its instructions counted, or with the reason why they were not."""
    if found.machine != "x64":
        return dataclasses.replace(found, reason=f"its machine is {found.machine}, and only x86_64 is looked at")
    if which("objdump", environ.get("PATH")) is None:
        return dataclasses.replace(found, reason="there is no `objdump` on PATH")
    # The output of objdump is hundreds of MB for a library with a static NCCL; grep and uniq make a few lines of it.
    script = bash(
        "set -o pipefail; objdump -d --no-show-raw-insn %s | grep -oE %s | sort | uniq -c",
        found.path,
        "|".join(FEATURE_OF),
    )
    try:
        done = capture(("bash", "--noprofile", "--norc", "-c", script), {**environ, "LC_ALL": "C"}, TIME_LIMIT_S)
    except CommandError as error:
        return dataclasses.replace(found, reason=error.message)
    if done.returncode not in (0, 1):  # 1: grep found none
        return dataclasses.replace(found, reason=(done.stderr.strip().splitlines() or ["objdump failed"])[-1])
    counts: dict[str, int] = {}
    for line in done.stdout.splitlines():
        number, _, text = line.strip().partition(" ")
        kind = next((kind for kind in FEATURE_OF if re.fullmatch(kind, text)), text)
        counts[kind] = counts.get(kind, 0) + int(number)
    return dataclasses.replace(found, instructions=counts)
