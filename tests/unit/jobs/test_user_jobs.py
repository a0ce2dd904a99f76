"""Users' jobs: golden scripts for every profile, arch and kind; what cannot work is refused with the field and the fix."""

from __future__ import annotations

import dataclasses
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from golden_files import Golden, Words, local_site
from parts.cli import call
from parts.jobs import MODULE, job, launched, refusal, render_user_job
from parts.loops import for_each
from parts.profiles import ARCHS, profile
from provision.jobs.user_job import UserJob, decide
from provision.jobs.user_script import make_script
from provision.knowledge.frameworks.pytorch import PYTORCH
from provision.profile.arch import Deliver
from provision.profile.container import Container
from provision.profile.module_system import ModuleSystemName
from provision.profile.reader import Faults, Reader
from provision.profile.stack import Framework
from provision.profile.strategy import StrategyName

OF_TENSORFLOW: tuple[StrategyName, ...] = ("single", "mirrored", "multiworker", "horovod")
ALL = tuple((name, arch, kind) for name, arch in ARCHS for kind in OF_TENSORFLOW)
REFUSED = {("alcf-theta", "knl", "multiworker"), ("alcf-polaris", "gpu", "multiworker")}
TOO_OLD = {("nersc-cori", "haswell", "multiworker"), ("nersc-cori", "knl", "multiworker")}
WRITTEN = tuple(one for one in ALL if one not in REFUSED | TOO_OLD)
OTHER_CPU = ("a100", "accel")  # than the nodes without GPUs of their sites
EXAMPLE = "$CRAYPE_ML_PLUGIN_BASEDIR/examples/tf_mnist/mnist.py"
STAGED = {"nodes": 32, "stage_in": "/global/cscratch1/sd/ada/mnist"}
# The golden files of other runtimes and of options, by their names behind the kind.
WITH_OPTIONS: tuple[tuple[str, str, StrategyName, str, dict[str, Any]], ...] = (
    ("nersc-cori", "knl", "horovod", "-venv", {"runtime": "venv"}),
    ("nersc-cori", "knl", "horovod", "-staged", STAGED),
    ("sigma2-saga", "accel", "horovod", "-venv", {"runtime": "venv"}),
    ("alcf-theta", "knl", "horovod", "-venv", {"runtime": "venv"}),
    ("alcf-theta", "knl", "horovod", "-flat", {"queue": "debug-flat-quad"}),
    ("alcf-theta", "knl", "cray-ml-plugin", "", {"script": EXAMPLE}),
    ("nersc-perlmutter", "gpu", "horovod", "-modules", {"runtime": "modules"}),
    ("alcf-polaris", "gpu", "single", "-modules", {"runtime": "modules"}),
    ("generic-slurm", "gpu", "horovod", "-container", {"runtime": "container"}),
    ("generic-slurm", "gpu", "single", "-container", {"runtime": "container"}),
    ("sigma2-saga", "accel", "ddp", "", {"runtime": "venv", "module": "pytorch/2.7.1"}),
    ("alcf-polaris", "gpu", "ddp", "", {"watch_gpus": True}),
    ("alcf-theta", "knl", "ddp", "", {}),
    ("nyu-greene", "gpu", "ddp", "", {"image": PYTORCH.image, "use_overlay": False}),
    ("sigma2-saga", "normal", "mpi", "", {}),
    ("alcf-polaris", "gpu", "mpi", "-venv", {"runtime": "venv", "ranks_per_node": 32, "cpus": 1}),
    ("nyu-greene", "gpu", "mirrored", "-watched", {"gpus": 2, "watch_gpus": True}),
)


@for_each(("name", "arch", "kind"), WRITTEN)
def test_the_script_of_every_profile_arch_and_kind_equals_its_golden_file(
    name: str, arch: str, kind: StrategyName, golden: Golden
) -> None:
    golden(f"jobs/{name}/{arch}/{kind}.sh", render_user_job(job(name, arch, kind)))


@pytest.mark.parametrize(("name", "arch", "kind", "ending", "options"), WITH_OPTIONS)
def test_the_script_of_a_job_with_options_equals_its_golden_file(
    name: str, arch: str, kind: StrategyName, ending: str, options: dict[str, Any], golden: Golden
) -> None:
    golden(f"jobs/{name}/{arch}/{kind}{ending}.sh", render_user_job(job(name, arch, kind, **options)))


def test_bash_and_shellcheck_find_no_fault_in_any_script(shellcheck: str, tmp_path: Path) -> None:
    more = {"data": "/data/$USER", "venv": "/home/ada/env", "resume": "42", "arguments": ("--say", "it's; so")}
    # The scripts of two archs of a site differ in names and numbers, unless one has GPUs.
    forms = {(name, profile(name).arch(arch).gpu is None, kind): (name, arch, kind) for name, arch, kind in WRITTEN}
    asked = [job(*one) for one in forms.values()]
    asked += [job(name, arch, kind, **options) for name, arch, kind, _, options in WITH_OPTIONS]
    runtimes = [(*one, options) for *one, _, options in WITH_OPTIONS if "runtime" in options]
    asked += [job(name, arch, kind, **options, **more) for name, arch, kind, options in runtimes]
    asked += [job(name, arch, "single", use_gpu=False, **more) for name, arch in ARCHS if arch not in OTHER_CPU]
    asked.append(job("alcf-theta", "knl", "horovod", queue="debug-flat-quad", **more))
    asked += [job("alcf-theta", "knl", "cray-ml-plugin", script=script, **more) for script in (EXAMPLE, "train.py")]
    paths = []
    for number, one in enumerate(asked):
        path = tmp_path / f"{number}-{one.site.name}-{one.arch.name}-{one.kind}.sh"
        path.write_text(render_user_job(one), encoding="utf-8")
        paths.append(str(path))
    subprocess.run(["bash", "-c", 'for one in "$@"; do bash -n "$one" || exit 1; done', "bash", *paths], check=True)
    done = subprocess.run([shellcheck, "--shell=bash", *paths], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_a_users_script_on_the_plug_in_gets_no_arguments_of_the_example() -> None:
    text = render_user_job(job("alcf-theta", "knl", "cray-ml-plugin", arguments=("--epochs", "3")))
    assert launched(text)[-1].endswith('"$script" --epochs 3')
    assert "BASEDIR" not in text


@pytest.mark.parametrize("kind", ["single", "mpi"])
@pytest.mark.parametrize(
    "options",
    [
        {"runtime": "venv", "module": "pytorch/2.7.1"},
        {"runtime": "modules", "site_modules": ("PyTorch/2.1.2-foss-2022b-CUDA-11.7.0",)},
        {"runtime": "container", "image": PYTORCH.image},
    ],
    ids=lambda options: options["runtime"],
)
def test_a_job_of_pytorch_has_nothing_of_tensorflow(kind: StrategyName, options: dict[str, Any]) -> None:
    text = render_user_job(job("sigma2-saga", "accel", kind, **options))
    assert not re.findall(r"(?i)tensorflow|\bTF|XLA|NUM_INT", text), text
    assert "# Variables that PyTorch and its libraries read.\n" in text


@pytest.mark.parametrize("script", [EXAMPLE, None])
def test_the_plug_in_job_stops_if_the_modules_were_removed(script: str | None, tmp_path: Path, words: Words) -> None:
    """By bash, with a stand-in for `module`: first the modulefile is missing, then what it should have set."""
    asked = job("alcf-theta", "knl", "cray-ml-plugin", **({"script": script} if script else {}))
    (tmp_path / "train.py").write_text("print(1)\n")
    text = f"{MODULE}{render_user_job(asked)}"

    def run(text: str) -> str:
        environ = {"PATH": os.environ["PATH"]}
        done = subprocess.run(
            ["bash", "-c", text], capture_output=True, text=True, check=False, env=environ, cwd=tmp_path
        )
        assert done.returncode == (2 if "error:" in done.stderr else 127), done.stderr
        return done.stderr

    said = run(text)
    assert "/lus/theta-fs0/" in said
    words("job", errors_of(said))
    there = text.replace("[ -e /lus/", "[ -e / ] || [ -e /lus/")
    said = run(there)
    assert ("CRAYPE_ML_PLUGIN_BASEDIR" if script else "aprun: command not found") in said
    if script:
        words("job", errors_of(said))


def test_shifter_gets_the_name_of_the_image(shellcheck: str, tmp_path: Path) -> None:
    site = profile("nersc-perlmutter")
    table = {"command": "shifter", "image": "nersc/tensorflow:ngc-23.03-tf2-v0"}
    site = dataclasses.replace(site, runtimes=("container",), container=Reader(table, Faults("x")).into(Container))
    text = render_user_job(job("nersc-perlmutter", "gpu", "horovod", site=site))
    assert launched(text)[-1].strip() == 'shifter --image="$image" python -u "$script"'
    (tmp_path / "job.sh").write_text(text)
    subprocess.run([shellcheck, "--shell=bash", str(tmp_path / "job.sh")], check=True)


@pytest.mark.parametrize("has", [True, False])
def test_a_job_of_mpi_stops_before_its_ranks_if_mpi4py_is_missing(tmp_path: Path, *, has: bool, words: Words) -> None:
    (tmp_path / "python").write_text(f'#!/bin/sh\nexec {sys.executable} -S "$@"\n')
    (tmp_path / "srun").write_text("#!/bin/sh\necho ranks\n")
    for name in ("python", "srun"):
        (tmp_path / name).chmod(0o755)
    (tmp_path / "train.py").write_text("print(1)\n")
    (tmp_path / "modules").mkdir()
    if has:
        (tmp_path / "modules/mpi4py.py").touch()
    text = f"{MODULE}{render_user_job(job('sigma2-saga', 'normal', 'mpi', script=str(tmp_path / 'train.py')))}"
    environ = {
        "PATH": f"{tmp_path}:{os.environ['PATH']}",
        "PYTHONPATH": str(tmp_path / "modules"),
        "USERWORK": str(tmp_path),
    }
    done = subprocess.run(["bash", "-c", text], capture_output=True, text=True, check=False, env=environ, cwd=tmp_path)
    assert (done.returncode, "ranks" in done.stdout) == ((0, True) if has else (2, False)), done.stderr
    if not has:
        words("job", errors_of(done.stderr))


@pytest.mark.parametrize("kind", ["single", "horovod"])
def test_a_script_runs_to_its_launcher_on_this_machine(kind: StrategyName, tmp_path: Path, words: Words) -> None:
    """The whole script by bash, with stand-ins for `module`, `srun` and `python` that say what they were given."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in ("srun", "python"):
        (folder / name).write_text(f'#!/bin/sh\necho "{name}:$*:$OMPI_MCA_pml:$PROVISION_OUTPUT"\n')
        (folder / name).chmod(0o755)
    (tmp_path / "my train.py").write_text("print(1)\n")
    asked = job("sigma2-saga", "accel", kind, script=str(tmp_path / "my train.py"), arguments=("--name", "it's $x"))
    path = tmp_path / "job.sh"
    path.write_text(f"{MODULE}EBROOTCUDA=/cuda\n{render_user_job(asked)}")
    environ = {"PATH": f"{folder}:{os.environ['PATH']}", "USERWORK": str(tmp_path / "work"), "SLURM_JOB_ID": "7"}
    done = subprocess.run(["bash", str(path)], capture_output=True, text=True, check=False, env=environ, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0] == f"output: {tmp_path}/work/runs/7"
    assert lines[1] == "module load TensorFlow/2.11.0-foss-2022a-CUDA-11.7.0"
    assert "module list" in lines
    started = "python" if kind == "single" else "srun"
    (line,) = [line for line in lines if line.startswith(f"{started}:")]
    assert f"-u {tmp_path}/my train.py --name it's $x:ob1:{tmp_path}/work/runs/7" in line
    assert lines[-1] == "provision data pull runs/7 --site sigma2-saga", "the site deletes it"
    assert (tmp_path / "work/runs/7/checkpoints").is_dir()
    (tmp_path / "my train.py").unlink()
    done = subprocess.run(["bash", str(path)], capture_output=True, text=True, check=False, env=environ, cwd=tmp_path)
    assert done.returncode == 2
    assert "train.py" in errors_of(done.stderr)
    words("job", errors_of(done.stderr))


@pytest.mark.parametrize(
    ("init", "code"),
    [
        ("module() { LOADEDMODULES=$2; }\n[ -n '' ] && export LMOD_COLORIZE=yes\n", 0),
        ("module() { LOADEDMODULES=$2; }\nreturn 3\n", 0),
        ("false\nmodule() { LOADEDMODULES=$2; }\necho $UNSET\n", 0),
        ("echo nothing\n", 2),
    ],
)
def test_the_command_module_counts_and_not_how_its_init_file_ends(init: str, code: int, tmp_path: Path) -> None:
    (tmp_path / "init").write_text(init)
    (tmp_path / "train.py").write_text("print('trained')")
    site = profile("sigma2-saga")
    site = dataclasses.replace(site, modules=dataclasses.replace(site.modules, init=str(tmp_path / "init")))
    text = render_user_job(job("sigma2-saga", "normal", "single", site=site, site_modules=("a/1",)))
    environ = {"PATH": os.environ["PATH"], "USERWORK": str(tmp_path)}
    done = subprocess.run(["bash", "-c", text], capture_output=True, text=True, check=False, env=environ, cwd=tmp_path)
    assert (done.returncode, "trained" in done.stdout) == (code, not code), done.stderr
    assert ("is not defined by" in done.stderr) is bool(code)


def test_a_job_reaches_the_network_through_the_proxy_of_its_nodes() -> None:
    """The user's own proxy stays; workers that connect by gRPC get none."""
    for kind in ("single", "horovod", "multiworker"):
        asked = job("sigma2-saga", "accel", kind)
        network = dataclasses.replace(asked.site.network, compute="proxy", proxy="http://proxy:1")
        text = render_user_job(dataclasses.replace(asked, site=dataclasses.replace(asked.site, network=network)))
        lines = [line for line in text.splitlines() if re.match("(export|unset) https?_proxy", line)]
        script = "\n".join([*lines, 'echo "$http_proxy ${HTTPS_PROXY-}"'])
        for given in ({}, {"http_proxy": "http://me@proxy:2"}):
            done = subprocess.run(["bash", "-c", script], env=given, capture_output=True, text=True, check=False)
            first = given.get("http_proxy", "http://proxy:1") if kind != "multiworker" else ""
            assert done.stdout.startswith(f"{first} "), (kind, text)


def errors_of(said: str) -> str:
    """The errors in what a script printed."""
    return "\n".join(line for line in said.splitlines() if line.startswith("error: "))


def run_with_venv(
    tmp_path: Path, venv: Path, *, modules: Path | None = None, **environ: str
) -> subprocess.CompletedProcess[str]:
    """Run a job with a venv by bash, with a stand-in for `module`; `modules` is the folder that they put on PYTHONPATH."""
    (tmp_path / "train.py").write_text("print('trained')")
    asked = job("sigma2-saga", "normal", "single", runtime="venv", venv=str(venv))
    values = {"PATH": os.environ["PATH"], "USERWORK": str(tmp_path / "work"), **environ}
    values |= {"PYTHONPATH": str(modules)} if modules else {}
    text = f"{MODULE}{render_user_job(asked)}"
    return subprocess.run(["bash", "-c", text], capture_output=True, text=True, check=False, env=values, cwd=tmp_path)


@pytest.fixture
def venv(tmp_path: Path) -> Path:
    """A real virtual environment, without pip."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "venv")], check=True)
    return tmp_path / "venv"


def packages_of(venv: Path) -> Path:
    """The folder of packages of a venv."""
    (folder,) = venv.glob("lib/python3*/site-packages")
    return folder


def put_tensorflow(folder: Path) -> None:
    """A stand-in for TensorFlow 2.15.1 in a folder of packages."""
    for name in (
        "tensorflow",
        "tensorflow_cpu-2.15.1.dist-info",
        "tensorflow_datasets",
        "tensorflow_datasets-4.9.dist-info",
    ):
        (folder / name).mkdir(parents=True)


def test_a_venv_that_hides_the_tensorflow_of_the_modules_stops_the_job(
    venv: Path, tmp_path: Path, words: Words
) -> None:
    put_tensorflow(packages_of(venv))
    alone = run_with_venv(tmp_path, venv)
    assert (alone.returncode, "trained" in alone.stdout.splitlines()) == (0, True), (
        "the modules bring none: it hides nothing"
    )
    put_tensorflow(tmp_path / "of-site")
    done = run_with_venv(tmp_path, venv, modules=tmp_path / "of-site")
    assert done.returncode == 2
    error = errors_of(done.stderr)
    assert f"{packages_of(venv)}/tensorflow" in error and f"{tmp_path}/of-site" in error
    words("job", error.replace(str(packages_of(venv)), "PACKAGES"))
    assert "trained" not in done.stdout
    shutil.rmtree(packages_of(venv) / "tensorflow")
    for folder in (packages_of(venv), tmp_path / "of-site"):
        (folder / "torch").mkdir()
    assert "torch hides" in errors_of(run_with_venv(tmp_path, venv, modules=tmp_path / "of-site").stderr)


@pytest.mark.parametrize(
    ("built_for", "library", "named"),
    [
        ("2.15.1", "openmpi", ""),
        ({"tensorflow": "2.15.1", "pytorch": "2.7.1"}, "openmpi", ""),
        ({"pytorch": "2.7.1"}, "openmpi", "PyTorch 2.7.1"),
        ("2.14.0", "openmpi", "TensorFlow 2.14.0"),
        (None, "openmpi", ""),
        ("2.15.1", None, "MPI"),
        ("2.15.1", "mpich", "mpich"),
    ],
)
def test_a_horovod_of_the_user_is_used_if_it_was_compiled_for_what_is_loaded(
    built_for: str | dict[str, str] | None, library: str | None, named: str, venv: Path, tmp_path: Path, words: Words
) -> None:
    """The venv and the libraries are real; they stand in for Open MPI's and MPICH's, by the symbol that tells them apart."""
    compiler = shutil.which("gcc")
    if compiler is None:
        pytest.skip("there is no gcc here (`.ci/install` brings it)")
    put_tensorflow(tmp_path / "of-site")
    horovod = packages_of(venv) / "horovod" / "tensorflow"
    horovod.mkdir(parents=True)
    if built_for:
        (horovod.parent / "metadata.json").write_text(
            json.dumps({"tensorflow": built_for} if isinstance(built_for, str) else built_for)
        )
    symbol = "int ompi_mpi_comm_world;" if library == "openmpi" else "int MPI_Init(void) { return 0; }"
    mpi = tmp_path / "libmpi.so.40"
    for target, text, more in (
        (mpi, symbol, ["-Wl,-soname,libmpi.so.40"]),
        (horovod / "mpi_lib.so", "int used;", ["-Wl,--no-as-needed", str(mpi)] if library else []),
    ):
        command = [compiler, "-shared", "-fPIC", "-x", "c", "-", "-o", str(target), "-x", "none", *more]
        subprocess.run(command, input=text, text=True, check=True)
    done = run_with_venv(tmp_path, venv, modules=tmp_path / "of-site", LD_LIBRARY_PATH=str(tmp_path))
    if not named:
        assert (done.returncode, "trained" in done.stdout.splitlines()) == (0, True), done.stderr
        assert str(horovod.parent) in done.stdout and str(mpi) in done.stdout
        assert (str(horovod.parent) in done.stderr) == (built_for is None)
    else:
        assert done.returncode == 2
        assert named in errors_of(done.stderr)
        words("job", errors_of(done.stderr).replace(str(packages_of(venv)), "PACKAGES"))
        assert "trained" not in done.stdout


ENVIRONMENT = "knl/tensorflow/2.15.1-0123456789"


@pytest.mark.parametrize(
    ("key", "made_on", "loaded", "stops"),
    [
        ("environment", ENVIRONMENT, ENVIRONMENT, False),
        ("environment", ENVIRONMENT, "knl/tensorflow/2.15.1-9876543210", True),
        ("environment", ENVIRONMENT, "", True),
        ("modules", "tensorflow/2.15.1", "", False),  # the job loads this one
        ("modules", "tensorflow", "", False),
        ("modules", "TensorFlow/2.11.0", "", True),
    ],
)
def test_a_venv_that_was_made_on_something_else_stops_the_job(
    key: str, made_on: str, loaded: str, stops: bool, venv: Path, tmp_path: Path, words: Words
) -> None:
    with (venv / "pyvenv.cfg").open("a") as file:
        file.write(f"provision-{key} = {made_on}\n")
    done = run_with_venv(tmp_path, venv, **({"PROVISION_ENVIRONMENT": loaded} if loaded else {}))
    assert (done.returncode, "trained" in done.stdout.splitlines()) == (2 if stops else 0, not stops), done.stderr
    if stops:
        words("job", errors_of(done.stderr))


def test_an_image_without_gpu_support_is_accepted_with_no_gpu() -> None:
    image = "docker://tensorflow/tensorflow:2.15.0"
    assert make_script(job("nyu-greene", "gpu", "single", use_gpu=False, image=image)).image == image
    assert make_script(job("nyu-greene", "gpu", "single", image=f"{image}-gpu")).image == f"{image}-gpu"


def test_an_arch_for_which_the_site_has_no_modules_runs_with_our_environment() -> None:
    arch = dataclasses.replace(profile("sigma2-saga").arch("normal"), provided=())
    assert make_script(job("sigma2-saga", "normal", "single", arch=arch)).runtime == "venv"


@pytest.mark.parametrize("system", ["none", "lmod"])
def test_a_program_is_run_without_a_job_by_the_command_that_loads_its_environment(
    system: ModuleSystemName, words: Words
) -> None:
    site = local_site()
    site = dataclasses.replace(
        site, modules=dataclasses.replace(site.modules, name=system, path=("/site/modulefiles", "/my modules"))
    )
    asked = UserJob(kind="horovod", site=site, arch=site.archs[0], command="x", module="m/1", modulepath="/m")
    load = (
        "module use /site/modulefiles; module use '/my modules'; module use /m; module load m/1"
        if system == "lmod"
        else 'eval "$(provision activate --site local --arch native m/1)"'
    )
    published = dataclasses.replace(asked, activate="/site/activate.sh")
    hint = str(refusal(published).hint)
    assert f"`{load}`" in hint and "`mpiexec -n 2 python train.py`" in hint
    words("job", hint)


# The verb


def test_the_verb_prints_the_script_and_notes_an_unpublished_module(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], words: Words
) -> None:
    script = tmp_path / "train.py"
    script.write_text("import horovod.tensorflow.keras as hvd\nhvd.init()\n")
    monkeypatch.chdir(tmp_path)
    command = ("horovod", "--site", "nersc-perlmutter", "--arch", "gpu", "--account", "tests", "--script", "train.py")
    assert call("job", *command) == 0
    out, err = capsys.readouterr()
    assert out.startswith("#!/usr/bin/env bash\n#SBATCH --job-name=horovod-gpu ")
    assert "\n\n# Horovod: 8 ranks on 2 nodes" in out
    assert f"script={script}\n" in out
    assert f"`provision job {' '.join(command)}`" in out
    (note,) = [line for line in err.splitlines() if line.startswith("note: ")]
    assert "`tensorflow/2.15.1`" in note
    assert "`provision build --site nersc-perlmutter --arch gpu --stack tensorflow-2.15.1-gpu --submit`" in note
    words("job", note)
    assert not Path(os.environ["PROVISION_ROOT"]).exists()


def test_a_job_on_many_nodes_is_advised_to_use_the_burst_buffer(
    capsys: pytest.CaptureFixture[str], words: Words
) -> None:
    command = ("horovod", "--site", "nersc-cori", "--arch", "knl", "--account", "tests")
    for options, advised in ((["32"], True), (["31"], False), (["32", "--stage-in", "/data"], False)):
        assert call("job", *command, "--nodes", *options) == 0
        out, err = capsys.readouterr()
        assert ("32 nodes" in err, "# Note: 32 nodes" in out) == (advised, advised)
        if advised:
            words("job", err)


@pytest.mark.parametrize(
    ("arch", "asked", "delivers"),
    [("files", None, False), ("image", None, True), ("image", "files", False), ("files", "image", True)],
)
def test_a_job_mounts_the_image_as_the_profile_or_the_user_wants(
    arch: Deliver, asked: Deliver | None, delivers: bool
) -> None:
    one = job("sigma2-saga", "accel", "horovod", runtime="venv", deliver=asked)
    text = render_user_job(dataclasses.replace(one, arch=dataclasses.replace(one.arch, deliver=arch)))
    assert ('"$deliver" --broadcast' in text, ' "$deliver" python -u' in text) == (delivers, delivers)
    if delivers:
        last = re.findall(r"^export (\w+)|(--broadcast)| (python -u) ", text, re.MULTILINE)
        assert ["".join(found) for found in last][-2:] == ["--broadcast", "python -u"], "the copy is where TMPDIR is"
    assert "deliver" not in render_user_job(dataclasses.replace(one, deliver=None))


@pytest.mark.parametrize(
    "place", [("sigma2-saga", "normal"), ("sigma2-saga", "accel"), ("nyu-greene", "gpu")], ids="-".join
)
def test_a_stack_that_is_typed_is_run_from_its_environment(
    place: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    """Also where the site's first runtime is its modules or a container."""
    site, arch = place
    command = ("job", "ddp", "--site", site, "--arch", arch, "--stack", "pytorch-2.7.1", "--nodes", "2")
    assert call(*command, "--account", "tests") == 0
    assert "module load pytorch/2.7.1" in capsys.readouterr().out


def test_a_job_stops_if_slurm_gives_no_address_of_its_first_node() -> None:
    text = render_user_job(job("sigma2-saga", "accel", "ddp", runtime="venv", module="pytorch/2.7.1"))
    lines = text[text.index("\nMASTER_ADDR=") : text.index("\njob_number=")]
    for address, code in (("", 2), ("10.0.0.1", 0)):
        shell = f"set -euo pipefail; SLURM_JOB_NODELIST=a; stop() {{ exit 2; }}; scontrol() {{ echo 'x NodeAddr={address} y'; }}"
        assert subprocess.run(["bash", "-c", f"{shell}\n{lines}\n:"], check=False).returncode == code


@pytest.mark.parametrize("kind", ["single", "mpi"])
def test_a_job_of_pytorch_sets_no_pools_of_tensorflow(kind: StrategyName) -> None:
    torch = Framework(name="pytorch", package="torch", version="2.7.1")
    threads = dict(decide(job("sigma2-saga", "normal", kind, runtime="venv", framework=torch)).threads)
    assert list(threads) == ["OMP_NUM_THREADS"]
