"""What a user asks for is in the job, or it is refused: modules, variables, queues, GPUs, threads."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from golden_files import Words
from parts.cli import call
from parts.jobs import MODULE, error_of, job, launched, refusal
from provision.errors import EXIT_USAGE, ConfigError
from provision.jobs.arguments import split_arguments
from provision.machine.submission.render_jobs import render_user_job
from provision.model import quoting
from provision.profile.strategy import StrategyName


def written(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """The script that the verb prints."""
    assert call("job", *words, "--account", "tests") == 0, capsys.readouterr().err
    return capsys.readouterr().out


def refused(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """What the verb says of a job that it does not write."""
    assert call("job", *words, "--account", "tests") == EXIT_USAGE
    out, err = capsys.readouterr()
    assert out == ""
    return err


# Modules


def test_a_module_of_the_user_replaces_those_of_the_profile(capsys: pytest.CaptureFixture[str]) -> None:
    words = ("horovod", "--site", "nersc-cori", "--arch", "knl", "--runtime", "modules")
    text = written(capsys, *words, "--module", "tensorflow/intel-1.13.1-py36")
    assert "\nmodule load tensorflow/intel-1.13.1-py36\n" in text
    assert "intel-1.15.0" not in text
    text = written(capsys, "single", "--site", "sigma2-saga", "--arch", "accel", "--modules", "a/1", "b/2")
    assert "\nmodule load a/1\nmodule load b/2\n" in text
    assert "TensorFlow/" not in text


def test_a_site_whose_profile_names_no_module_runs_with_those_of_the_user(capsys: pytest.CaptureFixture[str]) -> None:
    text = written(capsys, "single", "--site", "sigma2-saga", "--arch", "normal", "--module", "TensorFlow/2.11.0-foss")
    assert "\nmodule load TensorFlow/2.11.0-foss\n" in text


def test_our_environment_is_one_module(capsys: pytest.CaptureFixture[str], words: Words) -> None:
    command = ("single", "--site", "sigma2-saga", "--arch", "normal", "--runtime", "venv", "--module", "a/1")
    assert "\nmodule load a/1\n" in written(capsys, *command)
    err = refused(capsys, *command, "b/1")
    assert "`--module`" in err
    words("job", err)


@pytest.mark.parametrize(
    "command",
    [
        ("single", "--site", "sigma2-saga", "--arch", "accel", "--stack", "tensorflow-2.15.1-gpu"),
        ("mirrored", "--site", "nyu-torch", "--arch", "h200", "--stack", "tensorflow-2.15.1"),
        ("mirrored", "--site", "nyu-torch", "--arch", "h200", "--module", "a/1"),
        ("mirrored", "--site", "nyu-torch", "--arch", "h200", "--venv", "/a"),
    ],
)
def test_an_option_that_this_runtime_would_not_use_is_refused(
    command: tuple[str, ...], capsys: pytest.CaptureFixture[str], words: Words
) -> None:
    err = refused(capsys, *command)
    assert f"`{command[5]}`" in err
    words("job", err)


@pytest.mark.parametrize("changes", [{}, {"runtime": "venv", "module": "mine/1", "tensorflow": "1.15.5"}])
def test_a_tensorflow_without_multiworker_is_not_given_such_a_job(changes: dict[str, str], words: Words) -> None:
    message = error_of(job("nersc-cori", "knl", "multiworker", **changes))
    assert "`tf.distribute.MultiWorkerMirroredStrategy`" in message and "2.4" in message
    words("job", message)
    newer = {"runtime": "modules", "site_modules": ("tensorflow/2.9.0",)}
    text = " ".join(render_user_job(job("nersc-cori", "knl", "multiworker", **newer)).replace("\n# ", " ").split())
    assert "deprecated here: its workers connect with gRPC" in text


# Variables


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ()),
        ("--epochs 3", ("--epochs", "3")),
        ("--data-dir=$PROVISION_DATA", ('"--data-dir=${PROVISION_DATA}"',)),
        ("${A}b $C/d", ('"${A}b"', '"${C}/d"')),
        ('"$A b"', ('"${A} b"',)),
        ("'$A b'", ("$A b",)),
        (r"\$A", ("$A",)),
        (r'"\$A" "\x"', ("$A", r"\x")),
        ("5$ $ a$1", ("5$", "$", "a$1")),
        ("''  ''", ("", "")),
        ("a'b'\"c\"\\ d", ("abc d",)),
        ("'$(id)' '`id`' '${A:-b}'", ("$(id)", "`id`", "${A:-b}")),
        ("$A'`\"$'\\\\", ('"${A}\\`\\"\\$\\\\"',)),
    ],
)
def test_arguments_are_words_in_which_the_node_expands_variables(text: str, expected: tuple[str, ...]) -> None:
    assert split_arguments(text) == expected


def test_bash_expands_the_variables_of_arguments_and_nothing_else() -> None:
    text = """$A'`"$(id)\\' "a $C" '$A' *"""
    script = f"printf '%s\\n' {quoting.words(split_arguments(text))}"
    done = subprocess.run(
        ["bash", "-c", script], env={"A": "1 2", "C": "$(x)"}, capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines() == ['1 2`"$(id)\\', "a $(x)", "$A", "*"]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("it's", "quotation"),
        ('"', "quotation"),
        ("a\\", "backslash"),
        ("$(id)", "`$(id)`"),
        ("${A:-b}", "`${A:-b}`"),
        ("`id`", "backquote"),
        ('"`id`"', "backquote"),
    ],
)
def test_arguments_that_ask_for_more_than_variables_are_refused(text: str, why: str) -> None:
    with pytest.raises(ConfigError) as caught:
        split_arguments(text)
    assert why in caught.value.message
    assert caught.value.exit_code == EXIT_USAGE


def test_data_and_arguments_reach_the_program_expanded_on_the_node(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data").mkdir()
    (tmp_path / "train.py").write_text("import sys; print(sys.argv[1:])")
    words = ("single", "--site", "nersc-cori", "--arch", "knl", "--script", "train.py", "--data", "$SCRATCH/data")
    text = written(capsys, *words, "--arguments", "--data-dir=$PROVISION_DATA '--x=$(id) $A' --t=${NUM_INTRA_THREADS}")
    environ = {"PATH": os.environ["PATH"], "SCRATCH": str(tmp_path)}
    done = subprocess.run(["bash", "-c", MODULE + text], env=environ, capture_output=True, text=True, check=False)
    assert f"['--data-dir={tmp_path}/data', '--x=$(id) $A', '--t=32']" in done.stdout, done.stderr
    alone = written(capsys, *words, "--arguments", "--data-dir=$PROVISION_DATA")
    assert '"$script" "--data-dir=${PROVISION_DATA}"' in alone, "one argument, which argparse takes for an option"
    assert call("job", *words, "--arguments", "--time", "00:10:00") == EXIT_USAGE, "its value was forgotten"


def test_a_staged_folder_has_the_variables_of_this_shell(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], words: Words
) -> None:
    command = ("single", "--site", "nersc-cori", "--arch", "knl", "--stage-in", "$SCRATCH/mnist")
    monkeypatch.delenv("SCRATCH", raising=False)
    err = refused(capsys, *command)
    assert "`--stage-in $SCRATCH/mnist`" in err
    words("job", err)
    monkeypatch.setenv("SCRATCH", "/global/ada")
    assert "#DW stage_in source=/global/ada/mnist " in written(capsys, *command)


# Nodes, queues and threads


@pytest.mark.parametrize("kind", ["single", "mirrored", "horovod", "multiworker"])
def test_a_job_without_gpus_goes_to_the_nodes_without_them(kind: StrategyName) -> None:
    text = render_user_job(job("sigma2-saga", "accel", kind, use_gpu=False))
    assert "#SBATCH --partition=normal " in text
    assert "#SBATCH --mem-per-cpu=4G " in text
    assert "accel" not in text.partition("\nset -euo")[0].replace("--arch accel", "").replace(f"{kind}-accel", "")
    assert "\nmodule load TensorFlow/2.11.0-foss-2022a-CUDA-11.7.0\n" in text, "the modules are those of the arch"
    cpu = render_user_job(job("nersc-perlmutter", "gpu", kind, use_gpu=False))
    assert "#SBATCH --constraint=cpu " in cpu


def test_a_job_without_gpus_needs_nodes_with_the_same_cpu(words: Words) -> None:
    error = refusal(job("sigma2-saga", "a100", "single", use_gpu=False))
    assert "`a100`" in error.message
    assert error.hint == "`--arch accel --no-gpu`"
    words("job", "\n".join(error.to_lines()))
    only = render_user_job(job("alcf-polaris", "gpu", "horovod", use_gpu=False))
    assert "CUDA_VISIBLE_DEVICES=$((" not in only
    assert "\nexport CUDA_VISIBLE_DEVICES=''\n" in only


def test_a_queue_that_is_a_qos_is_spelt_as_one() -> None:
    text = render_user_job(job("sigma2-saga", "accel", "single", queue="devel"))
    assert "#SBATCH --partition=accel " in text
    assert "#SBATCH --qos=devel " in text
    assert "02:00:00 at most" in error_of(job("sigma2-saga", "accel", "single", queue="devel", time="03:00:00"))


def test_a_queue_that_the_profile_does_not_know_is_refused(words: Words) -> None:
    error = refusal(job("alcf-polaris", "gpu", "single", queue="debug-scalin"))
    assert "(did you mean `debug-scaling`?)" in error.message
    hint = str(error.hint)
    assert "`--queue debug-scaling`" in hint and "`archs.gpu.queues.debug-scalin = {}`" in hint
    words("job", hint)
    assert refusal(job("sigma2-saga", "accel", "single", queue="normal")).hint == "`--arch normal`"


def test_a_single_job_with_two_gpus_is_refused(words: Words) -> None:
    error = refusal(job("sigma2-saga", "accel", "single", gpus=2))
    assert "`single`" in error.message and "`--gpus` is 2" in error.message
    assert "`provision job mirrored --gpus 2`" in str(error.hint)
    words("job", "\n".join(error.to_lines()))


def test_ranks_that_share_a_node_share_the_threads_that_a_module_sets_for_all() -> None:
    text = render_user_job(job("nersc-cori", "haswell", "horovod", ranks_per_node=8))
    assert "\nexport OMP_NUM_THREADS=4\n" in text
    assert "# The module sets OMP_NUM_THREADS" not in text
    few = render_user_job(job("nersc-cori", "haswell", "horovod"))
    assert "export OMP_NUM_THREADS" not in few, "two ranks of 32 threads fit into the node"
    assert launched(few)


# A Slurm site without a module system


MINI = """
name = "mini"
root = "{root}"
stack = "tensorflow-2.15.1"
runtimes = ["venv", "modules"]
scheduler = {{ system = "slurm" }}
[archs.cpu]
target = "x86_64_v3"
mpi = {{ provider = "pypi", family = "mpich", requirements = "mpich-5.0.2" }}
launcher = {{ name = "mpiexec" }}
"""


def test_a_site_without_modules_uses_the_activation_script_of_our_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], words: Words
) -> None:
    """By bash, with an environment that only its activation script puts on PATH."""
    monkeypatch.chdir(tmp_path)
    root = tmp_path / "root"
    (tmp_path / "mini.toml").write_text(MINI.format(root=root))
    (tmp_path / "train.py").write_text("")
    command = ("single", "--site", "./mini.toml", "--script", "train.py")
    unpublished = refused(capsys, *command)
    assert "`tensorflow/2.15.1`" in unpublished and "`cpu`" in unpublished
    words("job", unpublished)
    words("job", refused(capsys, *command, "--runtime", "modules"))
    name = "cpu/tensorflow/2.15.1-0123456789"
    generation = root / "modules" / ".generations" / "cpu" / "1"
    pointer = generation / "environments" / "tensorflow" / "2.15.1"
    records = root / "envs" / name / ".provision"
    for folder in (pointer.parent, records, root / "envs" / name / "bin"):
        folder.mkdir(parents=True)
    pointer.write_text(f"{name}\n")
    (root / "modules" / "cpu").symlink_to(generation)
    python = root / "envs" / name / "bin" / "python"
    python.write_text("#!/bin/sh\necho ours: $*\n")
    python.chmod(0o755)
    (records / "activate.sh").write_text(f'export PATH={python.parent}"${{PATH:+:$PATH}}"\n')
    text = written(capsys, *command)
    assert f"\nsource {records}/activate.sh\n" in text
    assert "module load" not in text
    done = subprocess.run(
        ["bash", "-c", text], env={"PATH": "/usr/bin:/bin"}, capture_output=True, text=True, check=False
    )
    assert done.stdout.splitlines()[-1] == f"ours: -u {tmp_path}/train.py", done.stderr


def test_a_queue_at_a_site_that_forbids_one_is_left_out_by_the_user_not_in_the_profile() -> None:
    assert refusal(job("nyu-torch", "h200", "single", queue="gpu")).hint == "leave `--queue` out"
