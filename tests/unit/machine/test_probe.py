"""Facts of this machine: what is kept of a shell, what a program says, and what is missing."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from golden_files import Words, local_site, slurm_site, stack
from provision.machine.probes.loaded_modules import unloaded
from provision.machine.probes.probe import Probes, interpreter_at
from provision.profile.module_system import ModuleSystem
from provision.profile.site import Site


@pytest.mark.parametrize("reset", ["reset", "none"])
def test_modules_of_the_login_shell_stay_unless_they_are_purged(reset: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LMOD_SYSTEM_DEFAULT_MODULES", "StdEnv")
    monkeypatch.setenv("MODULEPATH", "/site/modules")
    system = ModuleSystem(name="lmod", init="/i", path=(), reset=reset)  # type: ignore[arg-type]
    environ = unloaded(system)
    assert (environ["LMOD_SYSTEM_DEFAULT_MODULES"], environ["MODULEPATH"]) == ("StdEnv", "/site/modules")
    assert "MODULEPATH" not in unloaded(dataclasses.replace(system, reset="purge"))


def program(path: Path, script: str) -> Path:
    """An executable of this shell script."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/bash\n{script}\n")
    path.chmod(0o755)
    return path


def probes_at(site: Site) -> Probes:
    """The probes of the site's only arch."""
    return Probes(site, site.archs[0])


# Modules

MODULE = """
module() {
    case "$1 ${2:-}" in
        "load gcc/12.2.0") echo "Lmod has detected the following error" >&2; return 1 ;;
        "load "*) LOADEDMODULES="${LOADEDMODULES:+$LOADEDMODULES:}$2"; export LOADEDMODULES ;;
        "-t avail"|"-t spider") printf '/site/modulefiles:\\ngcc/\\ngcc/9.1.0\\ngcc/11.3.0(default)\\ngcc-libs/1\\n' ;;
    esac
}
"""


def site_of_modules(tmp_path: Path, init: str | None, modules: tuple[str, ...]) -> Site:
    """A site whose module system is this init file."""
    path = tmp_path / "init" / "bash"
    if init is not None:
        path.parent.mkdir()
        path.write_text(init)
    site = slurm_site()
    system = dataclasses.replace(site.modules, init=str(path))
    return dataclasses.replace(site, modules=system, archs=(dataclasses.replace(site.archs[0], modules=modules),))


def test_modules_are_loaded_and_their_environment_is_read(tmp_path: Path) -> None:
    probes = probes_at(site_of_modules(tmp_path, MODULE, ("mpich/4.0.2", "python/3.11")))
    assert probes.environment()["LOADEDMODULES"] == "mpich/4.0.2:python/3.11"
    assert probes.faults == []


def test_a_missing_module_is_a_problem_that_lists_the_available_ones(tmp_path: Path, words: Words) -> None:
    probes = probes_at(site_of_modules(tmp_path, MODULE, ("mpich/4.0.2", "gcc/12.2.0")))
    assert "LOADEDMODULES" not in probes.environment()
    (fault,) = probes.faults
    assert "`gcc/12.2.0`" in fault.message and "`haswell`" in fault.message
    assert fault.evidence == ("searched: /site/modulefiles", "Lmod has detected the following error")
    hint = str(fault.hint)
    assert hint.startswith("`module avail gcc` ") and "gcc/9.1.0, gcc/11.3.0 " in hint and "`gcc/11.3.0`" in hint
    words("doctor", f"{fault.message}\n{hint}")


def test_a_misspelt_module_is_answered_with_the_nearest_name(tmp_path: Path, words: Words) -> None:
    init = MODULE.replace('"load gcc/12.2.0")', '"load gc/11.3.0")')
    probes = probes_at(site_of_modules(tmp_path, init, ("gc/11.3.0",)))
    probes.environment()
    (fault,) = probes.faults
    assert "`gc/11.3.0`" in fault.message and "`gcc/11.3.0`" in fault.message
    words("doctor", f"{fault.message}\n{fault.hint}")
    assert str(fault.hint).startswith("write `gcc/11.3.0` in `archs.haswell.modules`")


@pytest.mark.parametrize(
    ("init", "message"), [(None, "does not exist"), ("exit 1", "did not start"), ("(", "did not start")]
)
def test_a_module_system_that_does_not_start_is_a_problem(tmp_path: Path, init: str | None, message: str) -> None:
    probes = probes_at(site_of_modules(tmp_path, init, ("gcc/12",)))
    assert probes.environment()["PYTHONNOUSERSITE"] == "1"
    (fault,) = probes.faults
    assert message in fault.message
    assert str(tmp_path / "init" / "bash") in fault.message


# Python


def python(path: Path, version: str) -> Path:
    """A program that answers like a Python of this version."""
    return program(path, f"echo {path}; echo {version}; echo 'cpython linux-x86_64'")


@pytest.mark.parametrize("script", ["echo one", "exit 1", "echo a; echo 3.11.7; echo c; echo d"])
def test_a_program_with_other_output_is_not_an_interpreter(tmp_path: Path, script: str) -> None:
    assert interpreter_at(str(program(tmp_path / "python3.11", script)), {}) is None
    assert interpreter_at(str(tmp_path / "nosuch"), {}) is None


def test_a_python_without_wheels_is_a_problem_with_its_version(tmp_path: Path, words: Words) -> None:
    python(tmp_path / "python3", "3.6.15")
    old = dataclasses.replace(stack(), pythons=("3.7",))
    probes = probes_at(local_site())
    assert probes.python(old, {"PATH": str(tmp_path), "HOME": str(tmp_path)}) is None
    (fault,) = probes.faults
    assert "Python 3.7 " in fault.message and "`tensorflow-2.15.1`" in fault.message
    words("doctor", fault.message)
    assert fault.evidence == (f"{tmp_path}/python3 is 3.6.15",)


def test_only_the_python_that_the_arch_names_is_tried(tmp_path: Path, words: Words) -> None:
    site = slurm_site()
    environ = {"PATH": str(tmp_path), "HOME": str(tmp_path)}
    path = python(tmp_path / "python3.11", "3.11.7")
    interpreter = probes_at(site).python(stack(), environ)
    assert interpreter is not None
    assert interpreter.executable == str(path)
    python(tmp_path / "python3.11", "3.10.2")
    probes = probes_at(site)
    assert probes.python(stack(), environ) is None
    assert "`python3.11`" in probes.faults[0].message
    words("doctor", probes.faults[0].message)


# The compiler


@pytest.mark.parametrize(
    ("macros", "family"), [("#define __GNUC__ 12", "gcc"), ("#define __GNUC__ 4\n#define __clang__ 1", "clang")]
)
def test_the_compiler_family_is_read_from_its_macros(tmp_path: Path, macros: str, family: str) -> None:
    answer = f"case $1 in -dumpfullversion) echo 12.2.0 ;; *) printf '%s\\n' '{macros}' ;; esac"
    path = program(tmp_path / "g++", answer)
    probes = probes_at(local_site())
    compiler = probes.compiler({"PATH": str(tmp_path)})
    assert compiler is not None
    assert (compiler.family, compiler.version, compiler.cxx) == (family, "12.2.0", str(path))


@pytest.mark.parametrize(
    "script", ["exit 1", "echo not a version", "case $1 in -dumpfullversion) echo 12 ;; *) exit 1 ;; esac"]
)
def test_a_broken_compiler_is_a_problem(tmp_path: Path, script: str) -> None:
    program(tmp_path / "g++", script)
    probes = probes_at(local_site())
    assert probes.compiler({"PATH": str(tmp_path)}) is None
    assert [(fault.kind, fault.subject) for fault in probes.faults] == [("broken", "compiler")]


def test_a_missing_compiler_is_a_problem_with_the_searched_path(tmp_path: Path) -> None:
    probes = probes_at(local_site())
    assert probes.compiler({"PATH": str(tmp_path)}) is None
    (fault,) = probes.faults
    assert (fault.kind, fault.evidence) == ("missing", (f"PATH: {tmp_path}",))
