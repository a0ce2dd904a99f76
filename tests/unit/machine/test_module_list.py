"""`provision modules` and the doctor's look at what a site provides, with the real module systems."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from golden_files import Words, slurm_site
from parts.cli import call, envelope
from parts.modules import LMOD, SYSTEMS
from parts.profiles import profile
from parts.site_modules import ModuleSystem
from provision.machine.configuration import shipped
from provision.machine.probes.offer import cuda_of_modules
from provision.machine.probes.provided import look_at_container, provided_faults
from provision.profile.container import Template
from provision.profile.site import Site

Captured = pytest.CaptureFixture[str]
MODULES = ("gcc/9.3.0", "gcc/12.2.0", "TensorFlow/2.11.0-foss-2022a-CUDA-11.7.0", "datascience/horovod-0.19", "vim/9")


@pytest.fixture
def modulefiles(tmp_path: Path) -> Path:
    """Empty modulefiles of these names."""
    for name in MODULES:
        file = tmp_path / "modules" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("#%Module\n")
    return tmp_path / "modules"


@pytest.fixture
def site(tmp_path: Path, modulefiles: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The name of a site in a configuration folder of this test; `$INIT` is its module system."""
    (tmp_path / "config/sites").mkdir(parents=True)
    monkeypatch.setenv("PROVISION_CONFIG", str(tmp_path / "config"))
    monkeypatch.setenv("PROVISION_ROOT", str(tmp_path / "root"))
    (tmp_path / "config/sites/here.toml").write_text(
        f"""name = "here"
root = "${{PROVISION_ROOT}}"
stack = "tensorflow-2.15.1"
modules = {{ system = "SYSTEM", init = "INIT", path = ["{modulefiles}"] }}
[archs.cpu]
target = "x86_64_v3"
modules = ["gcc/12.2.0"]
mpi = {{ provider = "site", family = "mpich" }}
launcher = {{ name = "mpiexec" }}
proof = {{ nodes = 1, ranks_per_node = 2, timeout_s = 600 }}
"""
    )
    return "here"


def use(system: ModuleSystem, tmp_path: Path) -> None:
    """Make this the module system of the site."""
    file = tmp_path / "config/sites/here.toml"
    file.write_text(file.read_text().replace("SYSTEM", system.name).replace("INIT", str(system.init)))


@pytest.mark.parametrize("system", SYSTEMS)
def test_the_offer_of_an_arch_with_gpus_has_the_cuda_of_all_modules(
    system: ModuleSystem, site: str, tmp_path: Path, modulefiles: Path
) -> None:
    for name in ("cuda/11.8.0", "cuda/12.2", "CUDA/12.4.1"):
        (modulefiles / name).parent.mkdir(exist_ok=True)
        (modulefiles / name).write_text("#%Module\n")
    use(system, tmp_path)
    loaded = shipped.load_site(site)
    assert cuda_of_modules(loaded) == ("11.8", "12.2", "12.4")
    assert cuda_of_modules(dataclasses.replace(loaded, modules=dataclasses.replace(loaded.modules, name="none"))) == ()


@pytest.mark.parametrize("system", SYSTEMS)
def test_modules_are_listed_by_subject(system: ModuleSystem, site: str, tmp_path: Path, capsys: Captured) -> None:
    use(system, tmp_path)
    assert call("modules", "--site", site) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "compiler    gcc/12.2.0  (arch cpu)" in lines
    assert lines[lines.index("compiler    gcc/12.2.0  (arch cpu)") + 1] == "            gcc/9.3.0"
    assert "tensorflow  TensorFlow/2.11.0-foss-2022a-CUDA-11.7.0" in lines
    assert "cuda        none" in lines
    assert "vim" not in "".join(lines)
    assert call("modules", "--site", site, "horovod", "--json") == 0
    assert envelope(capsys)["result"] == {
        "site": "here",
        "modules": [{"name": "datascience/horovod-0.19", "subject": "horovod", "version": "0.19"}],
    }
    assert call("modules", "--site", site, "vi") == 0
    assert "vim/9" in capsys.readouterr().out


@pytest.mark.parametrize("system", SYSTEMS[:1])
def test_a_name_that_no_module_has_is_refused(
    system: ModuleSystem, site: str, tmp_path: Path, capsys: Captured, words: Words
) -> None:
    use(system, tmp_path)
    assert call("modules", "--site", site, "nosuch") == 2
    err = capsys.readouterr().err
    assert " 5 " in err and "`here`" in err and "`nosuch`" in err
    words("modules", err)


def test_modules_of_another_machine_are_refused(capsys: Captured, words: Words) -> None:
    assert call("modules", "--site", "sigma2-saga") != 0
    error = capsys.readouterr().err
    assert "init file `" in error and "\nhint: " in error
    words("modules", error.splitlines()[-1])
    assert call("modules", "--site", "local") == 2
    assert "has no module system" in capsys.readouterr().err


def providing(modulefiles: Path, *names: str) -> Site:
    """A site whose arch has these modules of its own TensorFlow."""
    assert LMOD is not None
    base = slurm_site()
    system = dataclasses.replace(base.modules, name="lmod", init=str(LMOD.init), path=(str(modulefiles),))
    return dataclasses.replace(base, modules=system, archs=(dataclasses.replace(base.archs[0], provided=names),))


@pytest.mark.skipif(LMOD is None, reason="Lmod is not installed")
def test_the_sites_own_tensorflow_must_load(modulefiles: Path) -> None:
    site = providing(modulefiles, "TensorFlow/2.11.0-foss-2022a-CUDA-11.7.0")
    assert provided_faults(site, site.archs[0]) == ()
    site = providing(modulefiles, "TensorFlow/2.99")
    (fault,) = provided_faults(site, site.archs[0])
    assert "module `TensorFlow/2.99`" in fault.message
    assert "`TensorFlow/2.11.0-foss-2022a-CUDA-11.7.0`" in fault.hint
    assert ".provided`" in fault.hint


def test_a_container_site_needs_its_program_and_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: Words
) -> None:
    site = profile("nyu-greene")
    assert site.container is not None
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("SCRATCH", str(tmp_path))
    templates = (Template(gb=1, files=1000, path=str(tmp_path / "t.gz")),)
    container = dataclasses.replace(
        site.container, image=f"{tmp_path}/no.sif", overlay="$SCRATCH/o.ext3", overlay_templates=templates
    )
    site = dataclasses.replace(site, container=container)
    missing = [
        ("bad", "`singularity`"),
        ("bad", f"`{tmp_path}/no.sif`"),
        ("note", f"`{tmp_path}/o.ext3`"),
        ("bad", f"`{tmp_path}/t.gz`"),
    ]
    seen = look_at_container(site)
    assert [one.state for one in seen] == [state for state, _ in missing]
    assert [name for one, (_, name) in zip(seen, missing, strict=True) if name not in one.message] == []
    words("doctor", "\n".join(one.message for one in seen))
    assert all(one.hint for one in seen)
    assert "`provision job overlay --site nyu-greene --arch gpu`" in str(seen[2].hint)
    second = dataclasses.replace(site, runtimes=("venv", "container"))
    assert {one.state for one in look_at_container(second)} == {"note"}, "a build does not need the container"
    for name in ("no.sif", "o.ext3", "t.gz"):
        (tmp_path / name).touch()
    (tmp_path / container.command).write_text("#!/bin/sh\n")
    (tmp_path / container.command).chmod(0o755)
    assert [one.state for one in look_at_container(site)] == ["good"] * 4
    monkeypatch.delenv("SCRATCH")
    (note,) = [one for one in look_at_container(site) if one.state == "note"]
    assert "`$SCRATCH/o.ext3`" in note.message
    words("doctor", note.message)


def test_an_image_of_a_registry_is_looked_for_where_jobs_use_it(tmp_path: Path, words: Words) -> None:
    site = dataclasses.replace(profile("sigma2-olivia"), runtimes=("container",))
    assert "was not checked" in look_at_container(site)[1].message, "it is in the folder of the submission"
    site = dataclasses.replace(site, files=dataclasses.replace(site.files, scratch=str(tmp_path)))
    _, image = look_at_container(site)
    assert image.state == "bad"
    assert f"`{tmp_path}/images/tensorflow-25.02-tf2-py3.sif`" in image.message
    words("doctor", image.message)
    assert "`provision job image --site sigma2-olivia --arch accel`" in str(image.hint)
    assert look_at_container(profile("alcf-polaris")) == ()
