"""What a profile alone says: the outline of a build and its job, for every profile and arch, without the site."""

from __future__ import annotations

import dataclasses
import json
import subprocess
from pathlib import Path

import pytest

from golden_files import SUBMITTER, Golden, Words, stack
from parts.cli import call
from parts.loops import for_each
from parts.profiles import ARCHS, SITES, profile
from provision.errors import EXIT_USAGE
from provision.jobs.build_job import profile_script
from provision.machine.configuration import shipped
from provision.machine.submission.render_jobs import render_build_job
from provision.planning.outline import outline

BUILT = tuple((name, arch) for name, arch in ARCHS if "venv" in profile(name).runtimes)


def build_of(name: str, arch: str, **environ: str) -> str:
    """The build's job from the profile alone, written on a machine with these variables."""
    site = dataclasses.replace(profile(name), origin=f"/site/sites/{name}.toml")
    submitter = dataclasses.replace(SUBMITTER, environ={**SUBMITTER.environ, **environ})
    return render_build_job(profile_script(site, site.arch(arch), stack(), submitter, account="tests")).text


@for_each(("name", "arch"), BUILT)
def test_the_build_job_of_every_profile_and_arch_is_the_golden_one(
    name: str, arch: str, tmp_path: Path, golden: Golden
) -> None:
    text = build_of(name, arch)
    golden(f"builds/{name}/{arch}/build.sh", text)
    path = tmp_path / "build.sh"
    path.write_text(text)
    subprocess.run(["bash", "-n", str(path)], check=True)


def test_shellcheck_finds_no_fault_in_any_build_job(tmp_path: Path, shellcheck: str) -> None:
    paths = [tmp_path / f"{name}-{arch}.sh" for name, arch in BUILT]
    for path, (name, arch) in zip(paths, BUILT, strict=True):
        path.write_text(build_of(name, arch))
    done = subprocess.run([shellcheck, "--shell=bash", *map(str, paths)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_the_outline_for_spack_has_its_steps() -> None:
    site = profile("sigma2-saga")
    usual, spack = (
        outline(site, site.arch("normal"), dataclasses.replace(stack(), backend=backend), ())
        for backend in ("venv", "spack")
    )
    assert "backend" not in usual
    assert spack["backend"] == ("spack, after `provision spack setup DIR --site sigma2-saga`",)
    assert "py-horovod" in spack["compile"][0] and "`spack install`" in spack["install"][0]
    assert {title for title in usual if usual[title] != spack[title]} == {"compile", "install"}


def test_an_overlay_is_only_for_the_framework_that_our_job_puts_into_it() -> None:
    site = profile("nyu-torch")
    assert "overlay" not in outline(site, site.arch("rtx6000"), shipped.load_stack("pytorch-2.14.1"), ())
    assert "overlay" in outline(site, site.arch("h200"), shipped.load_stack("tensorflow-2.21.0"), ())


@for_each(("name", "arch"), ARCHS)
def test_the_outline_of_every_profile_and_arch_is_the_golden_one(name: str, arch: str, golden: Golden) -> None:
    site = profile(name)
    sections = outline(site, site.arch(arch), stack(), ("(the job's directives)",))
    golden(
        f"builds/{name}/{arch}/outline.txt",
        "".join(f"{title}: {line}\n" for title, lines in sections.items() for line in lines),
    )


def test_what_the_modules_of_the_caller_set_is_not_in_a_build_job() -> None:
    assert build_of("alcf-polaris", "gpu", CUDA_HOME="/usr/local/cuda") == build_of("alcf-polaris", "gpu")


@pytest.mark.parametrize(
    "verb", [("build",), ("build", "--submit"), ("plan",), ("job", "build"), ("job", "build", "--profile")]
)
def test_no_verb_builds_at_a_site_of_containers(
    verb: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str], words: Words
) -> None:
    (tmp_path / "init").write_text("module() { :; }\n")
    text = (SITES / "nyu-torch.toml").read_text(encoding="utf-8")
    (tmp_path / "nyu-torch.toml").write_text(text.replace("/share/apps/lmod/lmod/init/bash", str(tmp_path / "init")))
    assert call(*verb, "--site", str(tmp_path / "nyu-torch.toml"), "--arch", "h200") == EXIT_USAGE
    err = capsys.readouterr().err
    words(verb[0], err)


# The verbs


@pytest.mark.parametrize("name", ["nersc-cori", "alcf-theta", "alcf-polaris", "sigma2-saga"])
def test_a_plan_for_a_site_that_is_not_here_says_what_its_profile_says(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    site = profile(name)
    words = ("plan", "--site", name, "--arch", site.archs[0].name)
    # A machine with Lmod where the site has it looks like one of the site's, until the modules are not there.
    here = Path(site.modules.init or "").is_file()
    assert call(*words, *(["--profile"] if here else [])) == 0
    out, err = capsys.readouterr()
    assert (err, here or f"`{site.modules.init}`" in out) == ("", True)
    module = shipped.load_stack(site.archs[0].stack or site.stack).module
    assert f"environment  {site.archs[0].name}/{module} (" in out
    # NERSC charges the user's own project if a job names none.
    for said in ("no job yet: site", "hint: `--account ACCOUNT`"):
        assert (said in out) is ("account" in site.scheduler.required)
    assert call(*words, "--account", "tests", "--profile", "--json") == 0
    result = json.loads(capsys.readouterr().out)["result"]
    assert result["refused"] is None
    assert result["outline"]["job"] and all(line.startswith("#") for line in result["outline"]["job"])
    assert not (tmp_path / "root").exists()


def test_a_stack_that_was_asked_for_must_work_as_an_environment(capsys: pytest.CaptureFixture[str]) -> None:
    words = ("plan", "--profile", "--site", "sigma2-saga", "--arch", "accel", "--account", "tests")
    assert (call(*words), call(*words, "--stack", "pytorch-2.14.1")) == (0, 1)
    assert "cannot work as a virtual environment: pytorch-2.14.1 has code for GPUs" in capsys.readouterr().out


def test_where_a_module_cannot_be_loaded_the_plan_says_how_to_see_the_profile(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: Words
) -> None:
    (tmp_path / "init").write_text('module() { [ "$1" != load ]; }\n')
    text = (Path(profile("alcf-polaris").origin)).name
    source = (SITES / text).read_text(encoding="utf-8")
    (tmp_path / text).write_text(source.replace("[modules]\n", f'[modules]\ninit = "{tmp_path}/init"\n'))
    assert call("plan", "--site", str(tmp_path / text)) == 1
    err = capsys.readouterr().err
    assert f"`provision plan --site {tmp_path / text} --arch gpu --profile`" in err
    words("plan", err)


def test_a_builds_job_by_the_profile_is_printed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: Words
) -> None:
    command = ("job", "build", "--site", "alcf-theta", "--profile")
    assert call(*command) == EXIT_USAGE
    err = capsys.readouterr().err
    words("job", err)
    assert call(*command, "--account", "tests") == 0
    out = capsys.readouterr().out
    assert "#COBALT -A tests\n" in out
    assert "--plan" not in out


def test_what_is_said_against_a_virtual_environment_is_not_said_of_a_container(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Only containers run TensorFlow at NYU Torch; on Greene, environments with the site's modules can be built too."""
    for arch in ("h200", "l40s"):
        assert call("plan", "--site", "nyu-torch", "--arch", arch, "--profile") == 0
        shown = capsys.readouterr().out
        assert "cannot work" not in shown and "no module is named after" not in shown
        assert "provision job overlay --site nyu-torch" in shown
    assert call("plan", "--site", "nyu-greene", "--arch", "gpu", "--profile") == 0
    assert "cannot work as a virtual environment: tensorflow-2.15.1-gpu wants CUDA" in capsys.readouterr().out


def test_the_outline_of_pytorch_has_nothing_of_tensorflow() -> None:
    site = profile("sigma2-saga")
    sections = outline(site, site.arch("accel"), shipped.load_stack("pytorch-2.7.1"), ())
    assert sections["threads"] == ("the job sets OpenMP's", "OMP_NUM_THREADS=6")
    assert {line.partition(":")[0] for line in sections["strategies"]} == {"ddp"}
