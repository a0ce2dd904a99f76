"""Folders of modulefiles that only the caller's shell searches, with the real module systems."""

from __future__ import annotations

import dataclasses
import subprocess
from pathlib import Path

import pytest

from golden_files import Words, slurm_site
from parts.modules import LMOD, SYSTEMS
from parts.modules import ModuleSystem as Installed
from provision.errors import Fault
from provision.launch.modules import parse_environment
from provision.machine.probes.loaded_modules import folders_of_this_shell
from provision.machine.probes.login_node import values_here
from provision.machine.probes.probe import Probes
from provision.profile.module_system import ModuleSystem


@pytest.fixture
def folders(tmp_path: Path) -> tuple[Path, Path]:
    """A folder with a compiler, whose module adds a second folder with an MPI."""
    site, behind = tmp_path / "site", tmp_path / "behind"
    for file, text in ((site / "gcc/12", f"prepend-path MODULEPATH {behind}\n"), (behind / "mpich/4", "")):
        file.parent.mkdir(parents=True)
        file.write_text(f"#%Module\n{text}")
    return site, behind


def enter(system: Installed, monkeypatch: pytest.MonkeyPatch, *commands: str) -> None:
    """Make this process one of a shell in which these commands ran."""
    script = "\n".join((f"source {system.init} >/dev/null 2>&1", *commands, "env -0"))
    done = subprocess.run(["bash", "--noprofile", "--norc", "-c", script], capture_output=True, text=True, check=True)
    for name, value in parse_environment(done.stdout).items():
        monkeypatch.setenv(name, value)


@pytest.mark.parametrize("system", SYSTEMS)
def test_folders_of_module_use_are_found_and_those_of_loaded_modules_are_not(
    system: Installed, folders: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    site, behind = folders
    described = ModuleSystem(name=system.name, init=str(system.init), path=())  # type: ignore[arg-type]
    assert folders_of_this_shell(described) == ()
    enter(
        system,
        monkeypatch,
        f"module use {site}",
        "module load gcc",
        f"case $MODULEPATH in *{behind}*) ;; *) exit 1; esac",
    )
    assert folders_of_this_shell(described) == (str(site),)
    assert values_here(["modules.path"]) == {"modules.path": str(site)}
    assert folders_of_this_shell(dataclasses.replace(described, path=(str(site),))) == ()


def test_a_machine_without_the_module_system_has_no_answer() -> None:
    assert folders_of_this_shell(ModuleSystem(name="lmod", init="/nosuch", path=())) is None
    assert values_here(["modules.path"]) == {}


@pytest.mark.parametrize("system", SYSTEMS)
def test_a_module_that_only_the_shell_finds_is_answered_with_its_folder(
    system: Installed, folders: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch, words: Words
) -> None:
    enter(system, monkeypatch, f"module use {folders[0]}")
    base = slurm_site()
    site = dataclasses.replace(
        base,
        modules=ModuleSystem(name=system.name, init=str(system.init), path=()),  # type: ignore[arg-type]
        archs=(dataclasses.replace(base.archs[0], modules=("gcc/12",), unload=()),),
    )
    probes = Probes(site, site.archs[0])
    probes.environment()
    (fault,) = probes.faults
    assert "`gcc/12`" in fault.message and "`haswell`" in fault.message
    for name in (f"`{folders[0]}`", "`modules.path`", f"`{site.origin}`"):
        assert name in str(fault.hint)
    words("doctor", f"{fault.message}\n{fault.hint}")


@pytest.mark.skipif(LMOD is None, reason="Lmod is not installed")
def test_a_module_that_a_later_one_of_its_family_replaces_is_named_with_that_one(tmp_path: Path) -> None:
    for name, text in (("gcc/12.2.0", 'family("compiler")'), ("mpich/4", ""), ("intel/2023", 'family("compiler")')):
        (tmp_path / name).parent.mkdir()
        (tmp_path / f"{name}.lua").write_text(f"{text}\n")
    base = slurm_site()
    system = dataclasses.replace(base.modules, name="lmod", init=str(LMOD and LMOD.init), path=(str(tmp_path),))
    site = dataclasses.replace(base, modules=system)

    def faults(*modules: str) -> list[Fault]:
        probes = Probes(site, dataclasses.replace(base.archs[0], modules=modules))
        probes.environment()
        return probes.faults

    assert faults("gcc/12.2.0", "mpich") == faults("intel", "mpich/4") == []
    (fault,) = faults("gcc/12.2.0", "mpich", "intel/2023")
    assert fault.kind == "mismatch" and "`gcc/12.2.0`" in fault.message and "`intel/2023`" in fault.message
    assert f"archs.{base.archs[0].name}.modules" in (fault.hint or "")
    (fault,) = faults("intel", "gcc/12.2.0")
    assert fault.message.index("`intel`") < fault.message.index("`gcc/12.2.0`")
