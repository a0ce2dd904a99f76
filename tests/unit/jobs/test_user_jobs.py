"""Users' jobs: golden scripts for every profile, arch and kind; what cannot work is refused with the field and the fix."""

from __future__ import annotations

import dataclasses
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from golden_files import Golden, Words, local_site
from parts.cli import call
from parts.jobs import MODULE, job, launched, refusal
from parts.loops import for_each
from parts.profiles import ARCHS, profile
from provision.errors import EXIT_USAGE
from provision.jobs.user_job import UserJob, shape_of
from provision.jobs.user_script import make_script
from provision.machine.submission.render_jobs import render_user_job
from provision.profile.container import Runtime, read_container
from provision.profile.module_system import ModuleSystemName
from provision.profile.reader import Faults, Reader
from provision.profile.strategy import STRATEGIES, StrategyName

ALL = tuple((name, arch, kind) for name, arch in ARCHS for kind in STRATEGIES)
REFUSED = {("alcf-theta", "knl", "multiworker"), ("alcf-polaris", "gpu", "multiworker")}
TOO_OLD = {("nersc-cori", "haswell", "multiworker"), ("nersc-cori", "knl", "multiworker")}
WRITTEN = tuple(one for one in ALL if one not in REFUSED | TOO_OLD)
EXAMPLE = "$CRAYPE_ML_PLUGIN_BASEDIR/examples/tf_mnist/mnist.py"
OTHER_RUNTIMES: tuple[tuple[str, str, StrategyName, Runtime], ...] = (
    ("nersc-cori", "knl", "horovod", "venv"),
    ("sigma2-saga", "accel", "horovod", "venv"),
    ("alcf-theta", "knl", "horovod", "venv"),
    ("nersc-perlmutter", "gpu", "horovod", "modules"),
    ("alcf-polaris", "gpu", "single", "modules"),
    ("generic-slurm", "gpu", "horovod", "container"),
    ("generic-slurm", "gpu", "single", "container"),
)


@for_each(("name", "arch", "kind"), WRITTEN)
def test_the_script_of_every_profile_arch_and_kind_equals_its_golden_file(
    name: str, arch: str, kind: StrategyName, golden: Golden
) -> None:
    golden(f"jobs/{name}/{arch}/{kind}.sh", render_user_job(job(name, arch, kind)))


@pytest.mark.parametrize(("name", "arch", "kind", "runtime"), OTHER_RUNTIMES)
def test_the_script_of_another_runtime_equals_its_golden_file(
    name: str, arch: str, kind: StrategyName, runtime: Runtime, golden: Golden
) -> None:
    golden(f"jobs/{name}/{arch}/{kind}-{runtime}.sh", render_user_job(job(name, arch, kind, runtime=runtime)))


def test_a_job_in_another_queue_asks_for_its_memory_mode_and_uses_the_memory(golden: Golden) -> None:
    text = render_user_job(job("alcf-theta", "knl", "horovod", queue="debug-flat-quad"))
    golden("jobs/alcf-theta/knl/horovod-flat.sh", text)
    assert "#COBALT -q debug-flat-quad\n" in text
    assert "#COBALT --attrs mcdram=flat:numa=quad:filesystems=home,theta-fs0\n" in text
    assert " ".join(launched(text)).endswith('numactl --preferred=1 python -u "$script"')
    single = render_user_job(job("alcf-theta", "knl", "single", queue="debug-flat-quad"))
    assert " ".join(launched(single)).endswith('numactl --preferred=1 python -u "$script"')
    cache = render_user_job(job("alcf-theta", "knl", "horovod"))
    assert "mcdram=cache:numa=quad" in cache
    assert "numactl" not in cache
    of_arch = render_user_job(job("alcf-theta", "knl", "horovod", queue="default", nodes=128))
    assert "#COBALT --attrs mcdram=cache:numa=quad:" in of_arch, "a queue without a mode takes the one of the arch"


def test_bash_and_shellcheck_find_no_fault_in_any_script(shellcheck: str, tmp_path: Path) -> None:
    more = {"data": "/data/$USER", "venv": "/home/ada/env", "resume": "42", "arguments": ("--say", "it's; so")}
    # The scripts of two archs of a site differ in names and numbers, unless one has GPUs.
    forms = {(name, profile(name).arch(arch).gpu is None, kind): (name, arch, kind) for name, arch, kind in WRITTEN}
    asked = [job(*one) for one in forms.values()]
    asked += [job(name, arch, kind, runtime=runtime, **more) for name, arch, kind, runtime in OTHER_RUNTIMES]
    asked += [job(name, arch, "single", use_gpu=False, **more) for name, arch in ARCHS if arch != "a100"]
    asked.append(job("alcf-theta", "knl", "horovod", queue="debug-flat-quad", **more))
    asked += [job("alcf-theta", "knl", "cray-ml-plugin", script=script, **more) for script in (EXAMPLE, "train.py")]
    asked += [job("nyu-greene", "gpu", "mirrored", watch_gpus=True), job("nersc-cori", "knl", "single", stage_in="/x")]
    paths = []
    for number, one in enumerate(asked):
        path = tmp_path / f"{number}-{one.site.name}-{one.arch.name}-{one.kind}.sh"
        path.write_text(render_user_job(one), encoding="utf-8")
        paths.append(str(path))
    subprocess.run(["bash", "-c", 'for one in "$@"; do bash -n "$one" || exit 1; done', "bash", *paths], check=True)
    done = subprocess.run([shellcheck, "--shell=bash", *paths], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_the_cray_plug_in_job_runs_its_example_with_the_documented_modules(golden: Golden) -> None:
    text = render_user_job(job("alcf-theta", "knl", "cray-ml-plugin", script=EXAMPLE))
    golden("jobs/alcf-theta/knl/cray-ml-plugin.sh", text)
    lines = text.splitlines()
    plugin = next(line for line in lines if line.startswith("module load /lus/"))
    assert (
        lines.index("module load cray-python/3.6.1.1")
        < lines.index(plugin)
        < lines.index("module list # record the modules in the output")
    )
    assert lines[lines.index(plugin) - 1].startswith("[ -e /lus/"), "a modulefile by its path may be gone"
    assert "which the site did not maintain" in " ".join(line.strip("# ") for line in lines)
    assert "unset PYTHONNOUSERSITE" in text, "Python would not look below PYTHONUSERBASE"
    assert "\nexport PYTHONNOUSERSITE" not in text
    assert '"$script" --enable_ml_comm "--data_dir=$PROVISION_DATA"' in " ".join(text.replace("\\\n", "").split())


def test_a_users_script_on_the_plug_in_gets_no_arguments_of_the_example() -> None:
    text = render_user_job(job("alcf-theta", "knl", "cray-ml-plugin", arguments=("--epochs", "3")))
    assert launched(text)[-1].endswith('"$script" --epochs 3')
    assert "BASEDIR" not in text


@pytest.mark.parametrize("name", sorted({name for name, _ in ARCHS} - {"alcf-theta"}))
def test_a_plug_in_is_refused_if_the_site_has_no_modules_for_it(name: str, words: Words) -> None:
    error = refusal(job(name, profile(name).archs[0].name, "cray-ml-plugin"))
    assert f"`{name}`" in error.message and "`cray-ml-plugin`" in error.message
    (reason,) = error.evidence
    assert "`strategies.cray-ml-plugin`" in reason and f"`sites/{name}.toml`" in reason
    assert "horovod" in str(error.hint)
    words("job", "\n".join([error.message, *error.evidence]))


def test_a_plug_in_is_refused_with_another_runtime(words: Words) -> None:
    error = refusal(job("alcf-theta", "knl", "cray-ml-plugin", runtime="venv"))
    assert "`--runtime venv`" in error.message
    words("job", "\n".join(error.to_lines()))


@pytest.mark.parametrize("script", [EXAMPLE, None])
def test_the_plug_in_job_stops_if_the_modules_were_removed(script: str | None, tmp_path: Path, words: Words) -> None:
    """By bash, with a stand-in for `module`: first the modulefile is missing, then what it should have set."""
    asked = job("alcf-theta", "knl", "cray-ml-plugin", **({"script": script} if script else {}))
    (tmp_path / "train.py").write_text("")
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


@pytest.mark.parametrize(("name", "arch", "kind"), sorted(REFUSED))
def test_a_strategy_that_does_not_work_at_a_site_is_refused(
    name: str, arch: str, kind: StrategyName, words: Words
) -> None:
    error = refusal(job(name, arch, kind))
    assert "`multiworker`" in error.message and f"`{name}`" in error.message
    assert "horovod" in str(error.hint)
    words("job", "\n".join(error.to_lines()))


# What each kind is


@for_each(("name", "arch", "kind"), WRITTEN)
def test_every_script_stops_at_the_first_error_and_records_its_modules(
    name: str, arch: str, kind: StrategyName
) -> None:
    lines = render_user_job(job(name, arch, kind)).splitlines()
    assert lines[0] == "#!/usr/bin/env bash"
    assert "set -euo pipefail" in lines
    assert "umask 022" in lines
    assert any(line.startswith("module list") for line in lines)
    first_command = next(index for index, line in enumerate(lines) if line and not line.startswith("#"))
    assert not [line for line in lines[first_command:] if line.startswith(("#SBATCH", "#PBS", "#COBALT"))]


def test_a_single_job_needs_no_launcher_except_from_a_service_node() -> None:
    assert launched(render_user_job(job("nersc-cori", "haswell", "single"))) == ['python -u "$script"']
    assert launched(render_user_job(job("alcf-polaris", "gpu", "single"))) == ['python -u "$script"']
    assert launched(render_user_job(job("alcf-theta", "knl", "single")))[0].startswith("aprun -n 1 -N 1 -d 64 ")


def test_horovod_has_one_rank_for_each_gpu_and_never_horovodrun() -> None:
    for name, arch in ARCHS:
        text = render_user_job(job(name, arch, "horovod"))
        assert "horovodrun" not in text
        gpu, shape = profile(name).arch(arch).gpu, shape_of(job(name, arch, "horovod"))
        if gpu is not None:
            assert (shape.ranks_per_node, shape.gpus_per_node) == (gpu.per_node, gpu.per_node)


def test_saga_jobs_request_two_nodes_and_one_gpu_for_each_task() -> None:
    text = render_user_job(job("sigma2-saga", "accel", "horovod"))
    for option in (
        "--nodes=2 ",
        "--ntasks-per-node=4 ",
        "--gpus-per-task=1 ",
        "--cpus-per-task=6 ",
        "--mem-per-cpu=8G ",
    ):
        assert f"#SBATCH {option}" in text
    assert "export OMPI_MCA_pml=ob1\n" in text
    assert "export HOROVOD_MPI_THREADS_DISABLE=1\n" in text
    assert launched(text)[0].startswith(
        "srun --nodes=2 --ntasks=8 --ntasks-per-node=4 --kill-on-bad-exit=1 --cpus-per-task=6"
    )
    mirrored = render_user_job(job("sigma2-saga", "accel", "mirrored", gpus=2))
    assert "#SBATCH --gpus=2 " in mirrored
    assert "#SBATCH --ntasks-per-node=1 " in mirrored


def test_shifter_gets_the_name_of_the_image(shellcheck: str, tmp_path: Path) -> None:
    site = profile("nersc-perlmutter")
    table = {"command": "shifter", "image": "nersc/tensorflow:ngc-23.03-tf2-v0"}
    reader = Reader({"container": table}, Faults("x"))
    site = dataclasses.replace(site, runtimes=("container",), container=read_container(reader.table("container")))
    text = render_user_job(job("nersc-perlmutter", "gpu", "horovod", site=site))
    assert launched(text)[-1].strip() == 'shifter --image="$image" python -u "$script"'
    (tmp_path / "job.sh").write_text(text)
    subprocess.run([shellcheck, "--shell=bash", str(tmp_path / "job.sh")], check=True)


def test_a_job_with_no_gpu_requests_none_and_names_the_option_to_omit() -> None:
    text = render_user_job(job("sigma2-saga", "accel", "single", use_gpu=False))
    assert "#SBATCH --gpus" not in text
    assert "Leave `--no-gpu` out to use GPUs." in text.partition("set -euo")[0]
    assert "\nexport CUDA_VISIBLE_DEVICES=''\n" in text


def test_a_job_resumes_from_the_checkpoints_of_another(tmp_path: Path) -> None:
    text = render_user_job(job("nersc-cori", "knl", "horovod", resume="42"))
    assert 'export PROVISION_RESUME="$runs"/42/checkpoints' in text
    assert '--resume-from "$PROVISION_RESUME"' in text


@pytest.mark.parametrize("kind", ["single", "horovod"])
def test_a_script_runs_to_its_launcher_on_this_machine(kind: StrategyName, tmp_path: Path, words: Words) -> None:
    """The whole script by bash, with stand-ins for `module`, `srun` and `python` that say what they were given."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in ("srun", "python"):
        (folder / name).write_text(f'#!/bin/sh\necho "{name}:$*:$OMPI_MCA_pml:$PROVISION_OUTPUT"\n')
        (folder / name).chmod(0o755)
    (tmp_path / "my train.py").write_text("")
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


@pytest.mark.parametrize(
    ("built_for", "library", "named"),
    [
        ("2.15.1", "openmpi", ""),
        ("2.14.0", "openmpi", "TensorFlow 2.14.0"),
        (None, "openmpi", ""),
        ("2.15.1", None, "MPI"),
        ("2.15.1", "mpich", "mpich"),
    ],
)
def test_a_horovod_of_the_user_is_used_if_it_was_compiled_for_what_is_loaded(
    built_for: str | None, library: str | None, named: str, venv: Path, tmp_path: Path, words: Words
) -> None:
    """The venv and the libraries are real; they stand in for Open MPI's and MPICH's, by the symbol that tells them apart."""
    compiler = shutil.which("gcc")
    if compiler is None:
        pytest.skip("there is no gcc here (`.ci/install` brings it)")
    put_tensorflow(tmp_path / "of-site")
    horovod = packages_of(venv) / "horovod" / "tensorflow"
    horovod.mkdir(parents=True)
    if built_for:
        (horovod.parent / "metadata.json").write_text(json.dumps({"tensorflow": built_for}))
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


@pytest.mark.parametrize("loaded", ["knl/tensorflow/2.15.1-0123456789", "knl/tensorflow/2.15.1-9876543210", None])
def test_a_venv_that_was_made_on_another_environment_stops_the_job(
    loaded: str | None, venv: Path, tmp_path: Path, words: Words
) -> None:
    made_on = "knl/tensorflow/2.15.1-0123456789"
    with (venv / "pyvenv.cfg").open("a") as file:
        file.write(f"provision-environment = {made_on}\n")
    done = run_with_venv(tmp_path, venv, **({"PROVISION_ENVIRONMENT": loaded} if loaded else {}))
    if loaded == made_on:
        assert (done.returncode, "trained" in done.stdout.splitlines()) == (0, True), done.stderr
    else:
        assert done.returncode == 2
        error = errors_of(done.stderr)
        assert str(venv) in error and made_on in error and (loaded or "") in error
        words("job", error)


@pytest.mark.parametrize("name", ["tensorflow/2.15.1", "tensorflow", "TensorFlow/2.11.0"])
def test_a_venv_that_was_made_on_other_modules_stops_the_job(
    name: str, venv: Path, tmp_path: Path, words: Words
) -> None:
    """The job loads `tensorflow/2.15.1`."""
    with (venv / "pyvenv.cfg").open("a") as file:
        file.write(f"provision-modules = {name}\n")
    done = run_with_venv(tmp_path, venv)
    if name.startswith("tensorflow"):
        assert (done.returncode, "trained" in done.stdout.splitlines()) == (0, True), done.stderr
    else:
        assert done.returncode == 2
        error = errors_of(done.stderr)
        assert str(venv) in error and name in error and "--runtime modules" in error
        words("job", error)


def test_data_are_staged_to_the_burst_buffer(golden: Golden) -> None:
    text = render_user_job(job("nersc-cori", "knl", "horovod", nodes=32, stage_in="/global/cscratch1/sd/ada/mnist"))
    golden("jobs/nersc-cori/knl/horovod-staged.sh", text)
    assert "#DW stage_in source=/global/cscratch1/sd/ada/mnist destination=$DW_JOB_STRIPED/data" in text
    assert text.index("#DW ") < text.index("set -euo pipefail")
    assert 'PROVISION_DATA="$DW_JOB_STRIPED/data"' in text


def test_a_job_on_many_nodes_is_advised_to_use_the_burst_buffer() -> None:
    expected = (
        "# Note: 32 nodes read the data from the parallel file system: from 32 nodes on they belong on the burst buffer"
    )
    assert expected in render_user_job(job("nersc-cori", "knl", "horovod", nodes=32))
    assert "burst buffer" not in render_user_job(job("nersc-cori", "knl", "horovod", nodes=31))
    assert "# Note:" not in render_user_job(job("nersc-cori", "knl", "horovod", nodes=32, stage_in="/data"))
    assert "burst buffer" not in render_user_job(job("nersc-perlmutter", "cpu", "horovod", nodes=4))


def test_the_load_of_the_gpus_is_recorded_next_to_the_output(golden: Golden) -> None:
    text = render_user_job(job("nyu-greene", "gpu", "mirrored", gpus=2, watch_gpus=True))
    golden("jobs/nyu-greene/gpu/mirrored-watched.sh", text)
    assert text.index("nvidia-smi") < text.index("singularity exec")
    assert "trap 'kill -INT" in text


# Bad input


@pytest.mark.parametrize(
    ("asked", "message", "hint"),
    [
        (("sigma2-saga", "accel", "mirrored", {"ranks_per_node": 2}), "`mirrored`", "horovod"),
        (("sigma2-saga", "accel", "mirrored", {"nodes": 2}), "`mirrored`", "leave `--nodes` out"),
        (("sigma2-saga", "accel", "single", {"nodes": 2}), "`single`", "`provision job horovod`"),
        (
            ("sigma2-saga", "accel", "horovod", {"nodes": 8}),
            "8 nodes",
            "`--nodes 7`",
        ),
        (
            ("sigma2-saga", "accel", "single", {"time": "15-0"}),
            "360:00:00",
            "`--time 336:00:00`",
        ),
        (
            ("sigma2-saga", "accel", "single", {"time": "soon"}),
            "`--time soon`",
            "`--time 00:30:00`",
        ),
        (
            ("sigma2-saga", "accel", "single", {"account": None}),
            "`account`",
            "`--account ACCOUNT`",
        ),
        (("sigma2-saga", "normal", "single", {"gpus": 1}), "`normal`", "`--arch accel`"),
        (
            ("sigma2-saga", "accel", "mirrored", {"gpus": 5}),
            "5 GPUs",
            "`--gpus 4`",
        ),
        (
            ("sigma2-saga", "accel", "horovod", {"ranks_per_node": 8}),
            "8 ranks",
            "`--gpus 8`",
        ),
        (("sigma2-saga", "accel", "single", {"gpus": 1, "use_gpu": False}), "`--gpus` and `--no-gpu`", "leave one"),
        (
            ("sigma2-saga", "accel", "horovod", {"cpus": 7}),
            "7 CPUs",
            "`--cpus 6`",
        ),
        (
            ("nyu-torch", "h200", "single", {"runtime": "venv"}),
            "`venv`",
            "container",
        ),
        (("sigma2-saga", "accel", "single", {"image": "x.sif"}), "`--image` is for", "`--runtime container`"),
        (
            ("nyu-greene", "gpu", "single", {"image": "docker://tensorflow/tensorflow:latest"}),
            "`docker://tensorflow/tensorflow:latest`",
            "tensorflow:2.15.0-gpu`",
        ),
        (
            ("nyu-greene", "gpu", "single", {"image": "docker://tensorflow/tensorflow"}),
            "`docker://tensorflow/tensorflow`",
            "-gpu`",
        ),
        (
            ("nyu-greene", "gpu", "single", {"image": "a b.sif"}),
            "`--image 'a b.sif'`",
            "`--image /a/path`",
        ),
        (
            ("sigma2-saga", "accel", "single", {"module": "x/1\nreboot"}),
            "--module",
            "--module tensorflow",
        ),
        (
            ("sigma2-saga", "accel", "single", {"module": "$(reboot)"}),
            "--module",
            "--module tensorflow",
        ),
        (
            ("sigma2-saga", "accel", "single", {"account": "a\n#SBATCH --x"}),
            "'a\\n#SBATCH --x'",
            "--account",
        ),
        (
            ("sigma2-saga", "accel", "single", {"account": "$(id)"}),
            "'$(id)'",
            "--account",
        ),
        (("sigma2-saga", "accel", "single", {"queue": "a b"}), "'a b'", "--queue"),
        (("nersc-cori", "knl", "single", {"queue": "a\nb"}), "'a\\nb'", "--queue"),
        (
            ("sigma2-saga", "accel", "single", {"data": "/x/$(id)"}),
            "`--data '/x/$(id)'`",
            "`--data",
        ),
        (("sigma2-saga", "accel", "single", {"venv": "/x;id"}), "`--venv '/x;id'`", "`--venv"),
        (("sigma2-saga", "accel", "single", {"stage_in": "/x"}), "burst buffer", "`--data /x`"),
        (("nersc-cori", "knl", "single", {"stage_in": "/x", "data": "/y"}), "data", "`--data /x`"),
        (
            ("nersc-cori", "knl", "single", {"watch_gpus": True}),
            "`--watch-gpus`",
            "leave `--watch-gpus`",
        ),
        (("sigma2-saga", "accel", "single", {"resume": "../x"}), "`--resume-from ../x`", "123"),
        (("sigma2-saga", "accel", "single", {"script": "a\nb.py"}), "script", "--script train.py"),
        (
            ("alcf-theta", "knl", "horovod", {"nodes": 9}),
            "9 nodes",
            "--queue",
        ),
        (
            ("alcf-theta", "knl", "horovod", {"queue": "default", "nodes": 8}),
            "8 nodes",
            "`--nodes 128`",
        ),
        (
            ("nersc-cori", "knl", "single", {"time": "31"}),
            "00:31:00",
            "`--time 00:30:00`",
        ),
    ],
)
def test_a_job_that_cannot_work_is_refused_with_a_hint(
    asked: tuple[str, str, StrategyName, dict[str, Any]], message: str, hint: str, words: Words
) -> None:
    name, arch, kind, changes = asked
    error = refusal(job(name, arch, kind, **changes))
    assert message in error.message
    assert hint in str(error.hint)
    words("job", "\n".join(error.to_lines()))


def test_one_error_contains_every_problem_of_a_job(words: Words) -> None:
    wrong = {"account": None, "nodes": 2, "time": "15-0", "image": "a b.sif", "watch_gpus": True, "use_gpu": False}
    error = refusal(job("sigma2-saga", "accel", "mirrored", **wrong))
    assert "`--watch-gpus`" in error.message and "`--no-gpu`" in error.evidence[0]
    also = [line.removeprefix("also: ") for line in error.evidence if line.startswith("also: ")]
    names = ("`--image 'a b.sif'`", "`--image`", "`mirrored`", "`sigma2-saga`", "360:00:00")
    for line, name in zip(also, names, strict=True):
        assert name in line
    assert any("`--nodes`" in line and "`provision job horovod`" in line for line in error.evidence)
    words("job", "\n".join(error.to_lines()))
    assert [problem["subject"] for problem in error.problems][-2:] == ["account", "time"]
    assert error.kind == "config"


def test_an_invalid_time_hides_no_other_problem(words: Words) -> None:
    error = refusal(job("sigma2-saga", "accel", "single", time="soon", module="$(x)"))
    assert any("`--module '$(x)'`" in line for line in error.evidence)
    words("job", "\n".join(error.to_lines()))


def test_an_image_without_gpu_support_is_accepted_with_no_gpu() -> None:
    image = "docker://tensorflow/tensorflow:2.15.0"
    assert make_script(job("nyu-greene", "gpu", "single", use_gpu=False, image=image)).image == image
    assert make_script(job("nyu-greene", "gpu", "single", image=f"{image}-gpu")).image == f"{image}-gpu"


@pytest.mark.parametrize("system", ["none", "lmod"])
def test_a_program_is_run_without_a_job_by_the_command_that_loads_its_environment(
    system: ModuleSystemName, words: Words
) -> None:
    site = local_site()
    site = dataclasses.replace(
        site, modules=dataclasses.replace(site.modules, name=system, path=("/site/modulefiles", "/my modules"))
    )
    asked = UserJob(
        kind="horovod", site=site, arch=site.archs[0], command="x", module="m/1", modulepath="/m", stack="s"
    )
    hint = str(refusal(asked).hint)
    assert "`provision build --site local --arch native --stack s`" in hint
    words("job", hint)
    hint = str(refusal(dataclasses.replace(asked, stack=None)).hint)
    assert "`provision list --site local`" in hint
    words("job", hint)
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
    assert "`provision build --site nersc-perlmutter --arch gpu --stack tensorflow-2.15.1-gpu`" in note
    words("job", note)
    assert not Path(os.environ["PROVISION_ROOT"]).exists()


def test_the_verb_advises_to_use_the_burst_buffer(capsys: pytest.CaptureFixture[str], words: Words) -> None:
    command = ("horovod", "--site", "nersc-cori", "--arch", "knl", "--account", "tests")
    assert call("job", *command, "--nodes", "32") == 0
    err = capsys.readouterr().err
    assert "32 nodes" in err
    words("job", err)
    assert call("job", *command, "--nodes", "32", "--stage-in", "/data") == 0
    assert "32 nodes" not in capsys.readouterr().err


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (("horovod", "--site", "sigma2-saga", "--arch", "acel"), "`acel`"),
        (("horovod", "--site", "generic-slurm"), "30 values"),
        (
            ("single", "--site", "sigma2-saga", "--arch", "accel", "--script", "nosuch.py"),
            "`nosuch.py`",
        ),
        (
            ("single", "--site", "sigma2-saga", "--arch", "accel", "--gpus", "0"),
            "--gpus: `0`",
        ),
        (("single", "--site", "sigma2-saga", "--arch", "accel", "--arguments", "it's"), "`--arguments`"),
        (("mirrored", "7", "--site", "sigma2-saga"), "`7`"),
        (("single", "--site", "local"), "scheduler"),
        (
            ("horovod", "--site", "local", "--stack", "tensorflow-2.20.0"),
            "`provision build --site local --arch native --stack tensorflow-2.20.0`",
        ),
        (("horovod", "--site", "local"), "--stack tensorflow-2.21.0`"),
        (("single", "--site", "local", "--module", "tensorflow/2.20.0"), "`provision list --site local`"),
    ],
)
def test_the_verb_refuses_with_exit_2_and_prints_no_script(
    command: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str], words: Words
) -> None:
    assert call("job", *command) == EXIT_USAGE
    out, err = capsys.readouterr()
    assert out == ""
    assert message in err
    words("job", err.splitlines()[0])
    assert not Path(os.environ["PROVISION_ROOT"]).exists()


def test_the_runtime_modules_is_refused_on_an_arch_without_a_module_of_tensorflow(words: Words) -> None:
    asked = job("sigma2-saga", "normal", "single", runtime="modules")
    error = refusal(dataclasses.replace(asked, arch=dataclasses.replace(asked.arch, provided=())))
    assert "`normal`" in error.message
    assert "venv" in str(error.hint)
    words("job", "\n".join(error.to_lines()))


def test_a_saga_job_without_gpus_loads_the_module_of_the_sites_example_for_cpus() -> None:
    text = render_user_job(job("sigma2-saga", "normal", "single", qos="devel"))
    assert "module load TensorFlow/2.11.0-foss-2022a-CUDA-11.7.0\n" in text
    assert "#SBATCH --qos=devel " in text
    assert "--gpus" not in text
