"""The options of users' jobs: each is in the script of every scheduler that has such a thing, or it is refused."""

from __future__ import annotations

import dataclasses
import json
import os
import re
import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest

from golden_files import Words
from parts.cli import call
from parts.jobs import MODULE, job, launched, render_user_job
from parts.profiles import profile
from provision.errors import EXIT_JOB_LEFT, EXIT_USAGE, ConfigError
from provision.jobs.arguments import split_arguments
from provision.jobs.user_job import with_launcher, without_prefix
from provision.model import quoting
from provision.profile.arch import Launcher
from provision.profile.strategy import StrategyName
from provision.schedulers.cobalt import scheduler as cobalt
from provision.schedulers.pbs import scheduler as pbs
from provision.schedulers.slurm import scheduler as slurm

SAGA, POLARIS, THETA = (
    ("sigma2-saga", "accel", "horovod"),
    ("alcf-polaris", "gpu", "horovod"),
    ("alcf-theta", "knl", "horovod"),
)


def directives(asked: tuple[str, str, StrategyName], **changes: Any) -> list[str]:
    """The directives of a job, without comments."""
    lines = render_user_job(job(*asked, **changes)).splitlines()
    return [line.partition("  #")[0].strip() for line in lines if line.startswith(("#SBATCH ", "#PBS ", "#COBALT "))]


@pytest.mark.parametrize(
    ("changes", "of_slurm", "of_pbs", "of_cobalt"),
    [
        ({"name": "mnist-2"}, "--job-name=mnist-2", "-N mnist-2", "--jobname mnist-2"),
        ({"memory": "2G"}, "--mem-per-cpu=2G", None, None),
        ({"qos": "devel"}, "--qos=devel", None, None),
        (
            {"constraint": "a=b"},
            "--constraint=a=b",
            "-l select=2:a=b",
            "--attrs a=b:filesystems=home,theta-fs0",
        ),
        ({"mail": "me@x.org"}, "--mail-user=me@x.org", "-M me@x.org", "--notify me@x.org"),
        ({"array": "1-8"}, "--array=1-8", "-J 1-8", None),
        ({"requeue": True}, "--requeue", "-r y", None),
        ({"extra": ("--nice=100",)}, "--nice=100", "--nice=100", "--nice=100"),
    ],
)
def test_an_option_is_spelt_as_the_scheduler_spells_it(
    changes: dict[str, Any], of_slurm: str, of_pbs: str | None, of_cobalt: str | None
) -> None:
    for asked, option, prefix in (
        (SAGA, of_slurm, "#SBATCH"),
        (POLARIS, of_pbs, "#PBS"),
        (THETA, of_cobalt, "#COBALT"),
    ):
        if option:
            assert f"{prefix} {option}" in directives(asked, **changes)


def test_an_array_has_an_output_folder_and_a_number_for_each_task(tmp_path: Path) -> None:
    text = render_user_job(job("sigma2-saga", "accel", "single", array="1-8%2", arguments=("x",)))
    assert "#SBATCH --output=./single-accel-%A_%a.out" in text
    environ = {"SLURM_JOB_ID": "9", "SLURM_ARRAY_JOB_ID": "7", "SLURM_ARRAY_TASK_ID": "3"}
    said = ran(text, tmp_path, **environ)
    assert f"output: {tmp_path}/work/runs/7_3" in said
    assert "PROVISION_TASK=3" in said
    polaris = render_user_job(job("alcf-polaris", "gpu", "single", array="1-8"))
    said = ran(polaris, tmp_path, PBS_JOBID="7[3].server", PBS_ARRAY_ID="7[].server", PBS_ARRAY_INDEX="3")
    assert f"output: {tmp_path}/runs/7_3" in said
    assert slurm.is_job_id("7_3"), "`--resume-from 7_3` continues from that folder"
    assert pbs.is_job_id("7_3")


@pytest.mark.parametrize(
    ("text", "of_slurm", "of_pbs"),
    [
        *[(text, True, True) for text in ("1-8", "0-30:10", "1-8%2")],
        *[(text, True, False) for text in ("1", "1,2,4,8", "1,4-6%1", "3-3")],
        *[(text, False, False) for text in ("", "8-1", "a", "1-", "1,,2", "1%", "1%0x", "1-8\n", "1-99999999")],
    ],
)
def test_the_numbers_of_an_array_have_the_notation_of_the_scheduler(text: str, of_slurm: bool, of_pbs: bool) -> None:
    assert (slurm.is_array(text), pbs.is_array(text), cobalt.is_array(text)) == (of_slurm, of_pbs, False)


def ran(text: str, folder: Path, **variables: str) -> str:
    """What a script prints by bash with stand-ins: `module` loads every name, `python` prints its variables and words."""
    (folder / "bin").mkdir(exist_ok=True)
    for name in ("python", "srun"):
        (folder / "bin" / name).write_text("#!/bin/sh\nenv | grep ^PROVISION_; printf 'word:%s\\n' \"$@\"\n")
        (folder / "bin" / name).chmod(0o755)
    (folder / "train.py").write_text("print(1)\n")
    environ = {
        "PATH": f"{folder}/bin:{os.environ['PATH']}",
        "USERWORK": f"{folder}/work",
        "EBROOTCUDA": "/cuda",
        "CUDA_HOME": "/cuda",
    }
    done = subprocess.run(
        ["bash", "-c", MODULE + text],
        env={**environ, **variables},
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout + done.stderr


def test_a_job_that_starts_again_continues_from_its_own_checkpoints(tmp_path: Path) -> None:
    text = render_user_job(job("sigma2-saga", "accel", "single", requeue=True))
    assert '${PROVISION_RESUME:+--resume-from "$PROVISION_RESUME"}' in launched(text)[-1]
    first = ran(text, tmp_path, SLURM_JOB_ID="7")
    assert "PROVISION_RESUME" not in first
    assert "--resume-from" not in first
    checkpoints = tmp_path / "work" / "runs" / "7" / "checkpoints"
    (checkpoints / "epoch-0001.weights.h5").write_text("")
    again = ran(text, tmp_path, SLURM_JOB_ID="7")
    assert f"it continues from {checkpoints}\n" in again
    assert f"PROVISION_RESUME={checkpoints}\n" in again
    assert f"word:--resume-from\nword:{checkpoints}\n" in again
    without = ran(render_user_job(job("sigma2-saga", "accel", "single")), tmp_path, SLURM_JOB_ID="7")
    assert f"PROVISION_RESUME={checkpoints}\n" in without, "sites also start jobs again that did not ask for it"
    assert "--resume-from" not in without, "a program that does not know the option would stop"
    by_hand = tmp_path / "work" / "runs" / "by-hand" / "checkpoints"
    by_hand.mkdir(parents=True)
    (by_hand / "x").write_text("")
    assert "it continues" not in ran(text, tmp_path)


def errors_of(said: str) -> str:
    """The errors in what a script printed."""
    return "\n".join(line for line in said.splitlines() if line.startswith("error: "))


def test_a_job_does_not_resume_from_a_folder_without_checkpoints(tmp_path: Path, words: Words) -> None:
    text = render_user_job(job("sigma2-saga", "accel", "single", resume="42"))
    (tmp_path / "work/runs/42/checkpoints").mkdir(parents=True)
    said = ran(text, tmp_path)
    assert "word:" not in said
    words("job", errors_of(said))
    (tmp_path / "work/runs/42/checkpoints/x").write_text("")
    assert f"word:--resume-from\nword:{tmp_path}/work/runs/42/checkpoints\n" in ran(text, tmp_path)


def test_a_module_that_was_not_loaded_stops_the_job_even_if_module_succeeds(tmp_path: Path, words: Words) -> None:
    text = render_user_job(job("nersc-cori", "knl", "single"))
    silent = text.replace("set -euo pipefail\n", "set -euo pipefail\nmodule() { :; }\n", 1)
    said = ran(silent, tmp_path, SCRATCH=f"{tmp_path}/work")
    assert "tensorflow/intel-1.15.0-py37 " in errors_of(said)
    words("job", errors_of(said))
    assert "word:" not in said
    default = silent.replace("module() { :; }", "module() { :; }; LOADEDMODULES=a:tensorflow/intel-1.15.0-py37/x:b")
    assert "word:" in ran(default, tmp_path, SCRATCH=f"{tmp_path}/work"), "the version of a name without one"


def test_the_pools_of_threads_are_those_that_the_user_asks_for() -> None:
    text = render_user_job(job("alcf-theta", "knl", "horovod", inter=2, intra=32))
    for line in ("OMP_NUM_THREADS=32", "NUM_INTER_THREADS=2", "NUM_INTRA_THREADS=32"):
        assert f"\nexport {line}\n" in text
    zero = render_user_job(job("alcf-theta", "knl", "horovod", inter=0, intra=0))
    for line in ("OMP_NUM_THREADS=62", "NUM_INTER_THREADS=0", "NUM_INTRA_THREADS=0"):
        assert f"\nexport {line}\n" in zero
    cori = render_user_job(job("nersc-cori", "knl", "horovod", intra=4))
    assert "export OMP_NUM_THREADS" not in cori, "a module sets it there"


def test_the_memory_mode_of_nodes_can_be_asked_for_in_every_queue() -> None:
    flat = {"queue": "default", "nodes": 128, "constraint": "mcdram=flat:numa=quad"}
    text = render_user_job(job("alcf-theta", "knl", "horovod", **flat))
    assert "#COBALT --attrs mcdram=flat:numa=quad:filesystems=home,theta-fs0\n" in text
    assert " ".join(launched(text)).endswith('numactl --preferred=1 python -u "$script"')
    of_arch = render_user_job(job("alcf-theta", "knl", "horovod", queue="default", nodes=128))
    assert "#COBALT --attrs mcdram=cache:numa=quad:" in of_arch, "a queue without a mode takes the one of the arch"


def test_the_burst_buffer_has_the_size_that_the_user_asks_for() -> None:
    assert "#DW jobdw capacity=500GB " in render_user_job(
        job("nersc-cori", "knl", "single", stage_in="/x", burst_buffer_gb=500)
    )


def test_a_launcher_must_fit_the_scheduler_and_the_mpi(words: Words) -> None:
    site = profile("nyu-greene")
    arch = with_launcher(site, site.arch("gpu"), "mpirun")
    text = render_user_job(job("nyu-greene", "gpu", "horovod", arch=arch, runtime="venv", image=None, use_overlay=True))
    assert launched(text)[0].startswith("mpirun -np 8 --map-by ppr:4:node --bind-to none -x ")
    assert with_launcher(site, site.arch("gpu"), "srun") is site.arch("gpu")
    for name in ("mpiexec", "aprun", "mpiexec-pals"):
        with pytest.raises(ConfigError, match=rf"`{name}` .*`gpu`") as caught:
            with_launcher(site, site.arch("gpu"), name)  # type: ignore[arg-type]
        assert "`--launcher srun`" in str(caught.value.hint)
        words("job", "\n".join(caught.value.to_lines()))


def test_gpus_are_asked_for_by_node_if_mpirun_starts_the_ranks() -> None:
    """The daemon of mpirun is the one task of a node: with `--gpus-per-task` its ranks would all get the first GPU."""
    asked = job(*SAGA)
    by_mpirun = dataclasses.replace(asked.arch, launcher=Launcher(name="mpirun", options=()))
    assert "#SBATCH --gpus-per-task=1" in directives(SAGA)
    assert "#SBATCH --gpus-per-node=4" in directives(SAGA, arch=by_mpirun)
    assert not any("per-task=1" in line for line in directives(SAGA, arch=by_mpirun))


def test_only_jobs_of_horovod_load_the_module_of_horovod() -> None:
    for kind, modules in (("single", 1), ("mirrored", 1), ("multiworker", 1), ("horovod", 2)):
        text = render_user_job(job("sigma2-saga", "accel", kind))
        assert len(re.findall("^module load ", text, re.MULTILINE)) == modules, kind
    named = render_user_job(job("sigma2-saga", "accel", "single", site_modules=("a/1", "Horovod/1")))
    assert "module load Horovod/1" in named


def test_a_test_without_gpus_has_the_cpus_of_one_gpu_where_nodes_are_shared() -> None:
    assert "#SBATCH --cpus-per-task=32" in directives(("nersc-perlmutter", "gpu", "single"), use_gpu=False)
    assert "#SBATCH --cpus-per-task=256" in directives(("nersc-perlmutter", "cpu", "single"))


def test_a_launcher_of_which_the_site_warns_is_refused_with_the_page(words: Words) -> None:
    site = profile("sigma2-saga")
    assert with_launcher(site, site.arch("accel"), "srun") is site.arch("accel")
    with pytest.raises(ConfigError) as caught:
        with_launcher(site, site.arch("accel"), "mpirun")
    words("job", "\n".join(caught.value.to_lines()))


def test_an_extra_directive_is_given_with_or_without_its_first_word() -> None:
    site = profile("sigma2-saga")
    assert without_prefix(site, "#SBATCH --nice=100") == without_prefix(site, "--nice=100") == "--nice=100"
    assert without_prefix(site, "#PBS -r y") == "#PBS -r y"


def written(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """The script that the verb prints."""
    assert call("job", *words, "--account", "tests") == 0, capsys.readouterr().err
    return capsys.readouterr().out


# Modules


def test_a_module_of_the_user_replaces_those_of_the_profile(capsys: pytest.CaptureFixture[str]) -> None:
    words = ("horovod", "--site", "nersc-cori", "--arch", "knl", "--runtime", "modules")
    text = written(capsys, *words, "--module", "tensorflow/intel-1.13.1-py36")
    assert "\nmodule load tensorflow/intel-1.13.1-py36\n" in text
    assert "intel-1.15.0" not in text
    text = written(capsys, "single", "--site", "sigma2-saga", "--arch", "accel", "--modules", "a/1", "b/2")
    assert "\nmodule load a/1\nmodule load b/2\n" in text
    assert "TensorFlow/" not in text


def test_a_tensorflow_with_multiworker_is_given_such_a_job_with_a_note() -> None:
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
    assert call("job", *command, "--account", "tests") == EXIT_USAGE
    words("job", capsys.readouterr().err)
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
    assert "\nexport CUDA_VISIBLE_DEVICES=''\n" in text
    cpu = render_user_job(job("nersc-perlmutter", "gpu", kind, use_gpu=False))
    assert "#SBATCH --constraint=cpu " in cpu


def test_a_queue_that_is_a_qos_is_spelt_as_one() -> None:
    text = render_user_job(job("sigma2-saga", "accel", "single", queue="devel"))
    assert "#SBATCH --partition=accel " in text
    assert "#SBATCH --qos=devel " in text


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
    (tmp_path / "train.py").write_text("print(1)\n")
    command = ("single", "--site", "./mini.toml", "--script", "train.py")
    for more in ((), ("--runtime", "modules")):
        assert call("job", *command, "--account", "tests", *more) == EXIT_USAGE
        words("job", capsys.readouterr().err)
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
    assert f"ours: -u {tmp_path}/train.py" in done.stdout.splitlines(), done.stderr


# Submitting, with stand-ins of sbatch and scontrol that run the script at once


def at_saga(
    folder: Path, monkeypatch: pytest.MonkeyPatch, state: str = "COMPLETED", refuses: bool = False
) -> list[str]:
    """The words of a job at a site whose stand-in of Slurm ends every job in this state."""
    programs = folder / "programs"
    programs.mkdir()
    answer = f"JobId=12 JobState={state} Reason=None ExitCode=1:0 RunTime=00:01:02 TimeLimit=00:30:00 NodeList=c1"
    refusal = "echo 'sbatch: error: invalid account' >&2; exit 1"
    (programs / "sbatch").write_text(f"#!/bin/sh\n{refusal if refuses else 'echo 12'}\n")
    (programs / "scontrol").write_text(f"#!/bin/sh\necho '{answer} StdOut={folder}/out.txt Power='\n")
    for path in programs.iterdir():
        path.chmod(0o755)
    (folder / "out.txt").write_text("slurmstepd: error: *** DUE TO TIME LIMIT ***\n")
    (folder / "train.py").write_text("print(1)\n")
    monkeypatch.chdir(folder)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    return [
        "job",
        "single",
        "--site",
        "sigma2-saga",
        "--arch",
        "accel",
        "--account",
        "me",
        "--script",
        "train.py",
        "--submit",
    ]


def test_a_job_is_submitted_and_followed_to_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = at_saga(tmp_path, monkeypatch)
    assert call(*words, "--json") == 0
    out, err = capsys.readouterr()
    result = json.loads(out)["result"]
    assert (result["job"], result["state"]) == ("12", "COMPLETED")
    script = tmp_path / result["file"]
    assert re.fullmatch(r"single-accel-[0-9a-f]{8}\.sh", script.name)
    assert script.read_text() == result["script"]
    assert os.access(script, os.X_OK), "Cobalt needs it"
    assert "submitted job 12" in err
    assert call(*words, "--no-wait") == EXIT_JOB_LEFT
    out, err = capsys.readouterr()
    assert out == "12\n"
    assert "`provision job follow 12 --site sigma2-saga`" in err


def test_a_job_that_ran_out_of_time_can_continue_from_its_checkpoints(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], words: Words
) -> None:
    at_saga_words = at_saga(tmp_path, monkeypatch, state="TIMEOUT")
    assert call(*at_saga_words) == 1
    err = capsys.readouterr().err
    assert "job 12 " in err and "00:30:00" in err
    assert f"`provision {shlex.join(at_saga_words)} --resume-from 12`" in err
    words("job", "\n".join(line for line in err.splitlines() if not line.startswith("submitted ")))


def test_nothing_stays_if_the_scheduler_refuses_the_job(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call(*at_saga(tmp_path, monkeypatch, refuses=True)) == 1
    assert "invalid account" in capsys.readouterr().err
    assert list(tmp_path.glob("*.sh")) == []


# Arrays, as scontrol shows them (Slurm 22.05)


def shown(task: str, state: str) -> str:
    """The line of a task of the array 12."""
    names = f"JobId=9{task[:1]} ArrayJobId=12 ArrayTaskId={task} JobName=a"
    return f"{names} JobState={state} Reason=None RunTime=00:00:09 NodeList=c1"


def test_an_array_ends_when_all_its_tasks_have_ended() -> None:
    running = slurm.parse_status("\n".join((shown("3-8", "PENDING"), shown("1", "COMPLETED"), shown("2", "RUNNING"))))
    assert running is not None
    assert (running.job, running.state, running.running, running.failed) == ("12", "RUNNING", 1, None)
    failed = slurm.parse_status("\n".join((shown("2", "COMPLETED"), shown("1", "FAILED"))))
    assert failed is not None
    assert (failed.job, failed.state, failed.ended) == ("12_1", "FAILED", True)
    done = slurm.parse_status("\n".join((shown("2", "COMPLETED"), shown("1", "COMPLETED"))))
    assert done is not None
    assert (done.job, done.state, done.failed) == ("12", "COMPLETED", None)
