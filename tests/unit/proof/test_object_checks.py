"""The checks of compiled libraries, on small real ones: compiled here with gcc for chosen CPUs, and MPI's own."""

from __future__ import annotations

import dataclasses
import shutil
import subprocess
from pathlib import Path

import pytest

from provision.knowledge.targets import features_of
from provision.machine.files.tables import read_combinations
from provision.machine.install.read_objects import newest_versions, read_object, with_instructions
from provision.model.check import Check
from provision.proof.inspection import SharedObject, judge_objects

pytest.importorskip("elftools", reason="pyelftools is not installed; this package needs it")
KNOWN = read_combinations()
# A loop that a compiler turns into the widest multiply-adds of the target.
SOURCE = """
#include <cstdio>
extern "C" void hello() { puts("hello"); }
extern "C" void scale(float *a, const float *b, int n) { for (int i = 0; i < n; i++) a[i] += b[i] * 3.0f; }
#ifdef OPEN_MPI
extern "C" int ompi_mpi_comm_world;
extern "C" int *world() { return &ompi_mpi_comm_world; }
#endif
"""


@pytest.fixture(scope="session")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the source; skips if there is no compiler for x86_64."""
    folder = tmp_path_factory.mktemp("objects")
    (folder / "x.cc").write_text(SOURCE)
    if shutil.which("g++") is None or "x86_64" not in subprocess.check_output(["g++", "-dumpmachine"], text=True):
        pytest.skip("there is no g++ for x86_64")
    return folder


def library(folder: Path, *options: str) -> SharedObject:
    """What is read in a library that was compiled with these options."""
    path = folder / f"lib{abs(hash(options))}.so"
    subprocess.run(["g++", "-O3", "-shared", "-fPIC", str(folder / "x.cc"), "-o", str(path), *options], check=True)
    return read_object(str(path))


def judged(one: SharedObject, *libraries: SharedObject, target: str = "haswell") -> dict[str, Check]:
    """The checks by name."""
    checks = judge_objects(
        [one], libraries, allowed=("/site/env",), target=target, features=features_of(target), known=KNOWN
    )
    return {check.name: check for check in checks}


@pytest.mark.parametrize(
    ("march", "target", "passed"),
    [
        ("haswell", "haswell", True),
        ("haswell", "zen3", True),
        ("haswell", "nehalem", False),
        ("skylake-avx512", "haswell", False),
        ("skylake-avx512", "skylake_avx512", True),
        ("skylake-avx512", "mic_knl", False),
        ("x86-64", "nehalem", True),
    ],
)
def test_instructions_beyond_the_target_are_found(compiled: Path, march: str, target: str, passed: bool) -> None:
    if shutil.which("objdump") is None:
        pytest.skip("there is no objdump")
    options = [f"-march={march}", "-mprefer-vector-width=512"] if "avx512" in march else [f"-march={march}"]
    # Registers above 15 are what Xeon Phi lacks: narrow vectors use them when the others are reserved.
    options += [f"-ffixed-xmm{number}" for number in range(16)] if target == "mic_knl" else []
    found = with_instructions(library(compiled, *options), {"PATH": "/usr/bin:/bin"})
    assert found.instructions is not None
    check = judged(found, target=target)["instructions"]
    assert check.passed is passed, check.message
    assert not check.skipped


def test_without_objdump_it_is_said_that_nothing_was_inspected(compiled: Path) -> None:
    check = judged(with_instructions(library(compiled), {"PATH": "/nowhere"}))["instructions"]
    assert (check.passed, check.skipped) == (True, True)
    assert "no `objdump` on PATH" in check.message


@pytest.mark.parametrize(
    ("rpath", "passed"),
    [
        ("$ORIGIN/../lib", True),
        ("/site/env/lib", True),
        ("/usr/lib64", True),
        ("/site/env/../other", False),
        ("/home/x/build", False),
        ("lib", False),
    ],
)
def test_search_paths_stay_in_the_environment(rpath: str, passed: bool) -> None:
    found = SharedObject(
        path="/site/env/lib/libx.so", machine="", needed=(), search=(rpath,), symbols=frozenset(), versions=()
    )
    assert judged(found)["search paths"].passed is passed


def test_search_paths_are_read_in_both_forms(compiled: Path) -> None:
    for tags in ("--enable-new-dtags", "--disable-new-dtags"):  # RUNPATH, RPATH
        assert library(compiled, f"-Wl,{tags}", "-Wl,-rpath,$ORIGIN/../lib").search == ("$ORIGIN/../lib",)


def test_needed_libraries_and_the_versions_of_their_symbols(compiled: Path) -> None:
    found = library(compiled)
    assert "libc.so.6" in found.needed
    assert judged(found)["needed libraries"].passed
    for names in (("libmpi.so.12", "libmpi.so.40"), ("libmpi.so.12", "libccl.so.1")):
        assert not judged(dataclasses.replace(found, needed=names))["needed libraries"].passed
    assert "GLIBC 2." in judged(found)["symbol versions"].message
    assert newest_versions(["GLIBC_2.4", "GLIBC_2.34", "GLIBC_2.17", "tensorflow"]) == (("GLIBC", "2.34"),)


def real_mpi(*patterns: str) -> SharedObject:
    """A libmpi of this machine."""
    found = next((path for pattern in patterns for path in sorted(Path("/usr/lib").glob(pattern))), None)
    if found is None:
        pytest.skip(f"/usr/lib has none of {' '.join(patterns)}")
    return read_object(str(found))


def test_the_family_of_the_header_is_that_of_the_library(compiled: Path) -> None:
    of_mpich, of_openmpi = library(compiled), library(compiled, "-DOPEN_MPI")
    openmpi = real_mpi("*/openmpi/lib/libmpi.so.40", "*/libmpi.so.40")
    assert not judged(of_mpich, openmpi)["MPI family"].passed
    assert judged(of_openmpi, openmpi)["MPI family"].passed
    mpich = real_mpi("*/libmpich.so.12")
    assert judged(of_mpich, mpich)["MPI family"].passed
    assert not judged(of_openmpi, mpich)["MPI family"].passed


def test_another_file_is_not_read(tmp_path: Path) -> None:
    for content in (b"", b"INPUT(libmpi.so.12)", b"\x7fELF" + b"\xff" * 60):
        (tmp_path / "x.so").write_bytes(content)
        with pytest.raises(ValueError, match=r".*"):
            read_object(str(tmp_path / "x.so"))
