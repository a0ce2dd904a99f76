"""The probe of the site's MPI through its compiler wrapper: MPICH, Open MPI, and Cray, whose wrapper has no `-show`."""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from golden_files import facts_of, slurm_site
from provision.commands.doctor import _launcher_of_other_mpi
from provision.commands.shared.target import Target
from provision.machine.probes.ask_scheduler import family_of_launcher
from provision.machine.probes.probe import Probes, mpi_libraries, parse_mpi_macros
from provision.profile.arch import Launcher
from provision.profile.site import read_site

MPI_H = '#define MPICH_VERSION "3.4a2"\n'


def cray(folder: Path) -> Path:
    """A stand-in for Cray's `CC`: it prints its options for Cray's option, and passes everything else to the real g++.

    Source: `CC --cray-print-opts=all`, as used on Cori, Titan, Polaris and LUMI; `-show` is an unknown option there.
    """
    (folder / "include").mkdir(parents=True)
    (folder / "include" / "mpi.h").write_text(MPI_H)
    (folder / "lib").mkdir()
    (folder / "lib" / "libmpi_gnu_91.so.12").write_text("")
    (folder / "lib" / "libmpi_gnu_91.so").symlink_to("libmpi_gnu_91.so.12")
    wrapper = folder / "bin" / "CC"
    wrapper.parent.mkdir()
    wrapper.write_text(
        "#!/usr/bin/env bash\nset -euo pipefail\n"
        'case "${1:-}" in\n'
        "-show) echo \"g++: error: unrecognized command-line option '-show'\" >&2; exit 1 ;;\n"
        f'--cray-print-opts=all) echo "-I{folder}/include -L{folder}/lib -lsci_gnu -lmpi_gnu_91 -ldl" ;;\n'
        f'*) exec g++ -I{folder}/include "$@" ;;\nesac\n'
    )
    wrapper.chmod(0o755)
    return wrapper


def test_the_wrapper_of_cray_is_probed_with_its_own_option(tmp_path: Path) -> None:
    wrapper = cray(tmp_path / "pe")
    arch = {
        "target": "haswell",
        "mpi": {"provider": "site", "family": "mpich", "cxx": "CC"},
        "launcher": {"name": "srun"},
    }
    site = read_site(
        {"name": "xc", "root": "/x", "stack": "s", "scheduler": {"system": "slurm"}, "archs": {"h": arch}}, "x.toml", {}
    )
    probes = Probes(site, site.archs[0])
    facts = probes.mpi({**os.environ, "PATH": f"{wrapper.parent}{os.pathsep}{os.environ['PATH']}"})
    assert probes.faults == []
    assert facts is not None
    assert (facts.family, facts.version, facts.cxx) == ("mpich", "3.4a2", str(wrapper))
    assert facts.libraries == (str(tmp_path / "pe" / "lib" / "libmpi_gnu_91.so.12"),)


def test_a_wrapper_without_either_option_is_a_problem(tmp_path: Path) -> None:
    wrapper = tmp_path / "mpicxx"
    wrapper.write_text("#!/bin/sh\nexit 1\n")
    wrapper.chmod(0o755)
    site = slurm_site()
    probes = Probes(site, site.archs[0])
    assert probes.mpi({"PATH": str(tmp_path)}) is None
    assert [fault.subject for fault in probes.faults] == ["mpi"]
    assert str(wrapper) in probes.faults[0].message


@pytest.mark.parametrize(
    ("show", "family", "file", "expected"),
    [
        ("g++ -I{0}/include -L{0} -lmpicxx -lmpi", "mpich", "libmpi.so", "libmpi.so"),
        ("g++ -L {0} -lmpi_cxx -lmpi", "openmpi", "libmpi.so", "libmpi.so"),
        ("-L{0} -lmpich_gnu_82", "mpich", "libmpich_gnu_82.so", "libmpich_gnu_82.so"),
        ("-L{0} -lmpi", "mpich", "libother.so", None),
    ],
)
def test_the_mpi_library_is_found_in_the_folders_of_the_wrapper(
    tmp_path: Path, show: str, family: str, file: str, expected: str | None
) -> None:
    (tmp_path / file).write_text("")
    libraries = (str(tmp_path / expected),) if expected else ()
    assert mpi_libraries(show.format(tmp_path), family) == libraries


def test_the_mpi_family_is_read_from_the_header() -> None:
    assert parse_mpi_macros(MPI_H) == ("mpich", "3.4a2")
    openmpi = "#define OMPI_MAJOR_VERSION 4\n#define OMPI_MINOR_VERSION 1\n#define OMPI_RELEASE_VERSION 6\n"
    assert parse_mpi_macros(openmpi) == ("openmpi", "4.1.6")
    assert parse_mpi_macros("") == (None, "")


# The launcher: what it prints about itself


@pytest.mark.parametrize(
    ("prints", "family"),
    [
        ("HYDRA build details:\n    Version:                                 4.0.2", "mpich"),
        ("mpiexec (OpenRTE) 4.1.4\n\nReport bugs to http://www.open-mpi.org/community/help/", "openmpi"),
        ("mpirun (Open MPI) 5.0.3", "openmpi"),
        ("Intel(R) MPI Library", None),
        ("", None),
    ],
)
def test_the_mpi_of_a_launcher_is_what_it_says(prints: str, family: str | None, tmp_path: Path) -> None:
    (tmp_path / "mpiexec").write_text(f"#!/bin/sh\ncat <<'END'\n{prints}\nEND\n")
    (tmp_path / "mpiexec").chmod(0o755)
    environ = {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    assert family_of_launcher("mpiexec", environ) == family
    assert family_of_launcher("no-such-launcher", environ) is None


def test_the_doctor_finds_a_launcher_of_another_mpi(tmp_path: Path) -> None:
    (tmp_path / "mpiexec").write_text("#!/bin/sh\necho HYDRA build details\n")
    (tmp_path / "mpiexec").chmod(0o755)
    site = slurm_site()
    arch = dataclasses.replace(site.arch(None), launcher=Launcher(name="mpiexec", options=()))
    assert arch.mpi.provider == "site"
    target = cast("Target", SimpleNamespace(site=site, arch=arch))
    facts = dataclasses.replace(facts_of(site), environ={"PATH": f"{tmp_path}:{os.environ['PATH']}"})
    assert facts.mpi is not None
    assert _launcher_of_other_mpi(target, facts, "arch") == []
    other = dataclasses.replace(facts, mpi=dataclasses.replace(facts.mpi, family="openmpi"))
    (seen,) = _launcher_of_other_mpi(target, other, "arch")
    assert seen.state == "bad" and "`mpiexec`" in seen.message
