"""The options of users' jobs: each is in the script of every scheduler that has such a thing, or it is refused."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from golden_files import Words
from parts.cli import call
from parts.jobs import MODULE, error_of, job, launched, refusal
from parts.profiles import profile
from provision.errors import EXIT_JOB_LEFT, EXIT_USAGE, ConfigError
from provision.jobs.user_job import with_launcher, without_prefix
from provision.machine.submission.render_jobs import render_user_job
from provision.profile.strategy import StrategyName
from provision.schedulers import cobalt, pbs, slurm

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
def test_an_option_is_spelt_as_the_scheduler_spells_it_or_refused(
    changes: dict[str, Any], of_slurm: str, of_pbs: str | None, of_cobalt: str | None
) -> None:
    for asked, option, prefix in (
        (SAGA, of_slurm, "#SBATCH"),
        (POLARIS, of_pbs, "#PBS"),
        (THETA, of_cobalt, "#COBALT"),
    ):
        if option is None:
            (name,) = changes
            assert refusal(job(*asked, **changes)).problems[0]["subject"] == name
        else:
            assert f"{prefix} {option}" in directives(asked, **changes)


def test_pbs_and_cobalt_read_all_directives_before_the_first_other_line() -> None:
    wishes = {"name": "a", "mail": "me@x.org", "extra": ("--nice=1",)}
    for asked in (SAGA, POLARIS, THETA):
        lines = render_user_job(job(*asked, **wishes)).splitlines()
        first_other = next(
            index for index, line in enumerate(lines[1:], 1) if not re.match("#(SBATCH|PBS|COBALT) ", line)
        )
        assert not [line for line in lines[first_other:] if re.match("#(SBATCH|PBS|COBALT) ", line)]


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
    (folder / "train.py").write_text("")
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


def test_the_head_says_where_the_output_is_and_when_the_site_deletes_it() -> None:
    def head(name: str, arch: str) -> str:
        text = render_user_job(job(name, arch, "single")).partition("\nset -euo")[0]
        return " ".join(text.replace("\n#", "").split())

    assert (
        "Output: $USERWORK/runs/JOBID. The site deletes there files older than 21 days, or up to 42 if there is room. "
        "Copy it to the current folder with `provision data pull runs/JOBID --site sigma2-saga`."
    ) in head("sigma2-saga", "accel")
    assert "Output: runs/JOBID below the folder from which you submit." in head("alcf-polaris", "gpu")
    for name in ("nersc-perlmutter", "sigma2-saga", "nyu-greene", "nyu-torch"):
        assert profile(name).files.scratch_deletes, "the living sites with a scratch delete files there"


def test_the_pools_of_threads_are_those_that_the_user_asks_for(words: Words) -> None:
    text = render_user_job(job("alcf-theta", "knl", "horovod", inter=2, intra=32))
    for line in ("OMP_NUM_THREADS=32", "NUM_INTER_THREADS=2", "NUM_INTRA_THREADS=32"):
        assert f"\nexport {line}\n" in text
    zero = render_user_job(job("alcf-theta", "knl", "horovod", inter=0, intra=0))
    for line in ("OMP_NUM_THREADS=62", "NUM_INTER_THREADS=0", "NUM_INTRA_THREADS=0"):
        assert f"\nexport {line}\n" in zero
    cori = render_user_job(job("nersc-cori", "knl", "horovod", intra=4))
    assert "export OMP_NUM_THREADS" not in cori, "a module sets it there"
    wrong = error_of(job("alcf-theta", "knl", "horovod", inter=3, intra=128))
    assert [part for part in ("384 threads", "256") if part not in wrong] == []
    words("job", wrong)


def test_the_memory_mode_of_nodes_can_be_asked_for_in_every_queue(words: Words) -> None:
    flat = {"queue": "default", "nodes": 128, "constraint": "mcdram=flat:numa=quad"}
    text = render_user_job(job("alcf-theta", "knl", "horovod", **flat))
    assert "#COBALT --attrs mcdram=flat:numa=quad:filesystems=home,theta-fs0\n" in text
    assert " ".join(launched(text)).endswith('numactl --preferred=1 python -u "$script"')
    wrong = job("alcf-theta", "knl", "horovod", queue="debug-flat-quad", constraint="mcdram=cache:numa=quad")
    said = error_of(wrong)
    assert [part for part in ("`mcdram=cache`", "`debug-flat-quad`", "`mcdram=flat`") if part not in said] == []
    words("job", said)


def test_the_burst_buffer_has_the_size_that_the_user_asks_for(words: Words) -> None:
    assert "#DW jobdw capacity=500GB " in render_user_job(
        job("nersc-cori", "knl", "single", stage_in="/x", burst_buffer_gb=500)
    )
    wrong = error_of(job("nersc-cori", "knl", "single", burst_buffer_gb=9))
    assert "`--burst-buffer-gb`" in wrong
    words("job", wrong)


def test_a_launcher_must_fit_the_scheduler_and_the_mpi(words: Words) -> None:
    site = profile("sigma2-saga")
    arch = with_launcher(site, site.arch("accel"), "mpirun")
    text = render_user_job(job("sigma2-saga", "accel", "horovod", arch=arch))
    assert launched(text)[0].startswith("mpirun -np 8 --map-by ppr:4:node --bind-to none -x ")
    assert with_launcher(site, site.arch("accel"), "srun") is site.arch("accel")
    for name in ("mpiexec", "aprun", "mpiexec-pals"):
        with pytest.raises(ConfigError, match=rf"`{name}` .*`accel`") as caught:
            with_launcher(site, site.arch("accel"), name)  # type: ignore[arg-type]
        assert "`--launcher srun`" in str(caught.value.hint)
        words("job", "\n".join(caught.value.to_lines()))
    assert "needs srun" in error_of(job("sigma2-saga", "accel", "multiworker", arch=arch))


@pytest.mark.parametrize(
    ("asked", "changes", "message", "hint"),
    [
        (SAGA, {"name": "a b"}, "`--name 'a b'`", "`--name mnist-2`"),
        (SAGA, {"name": "x" * 65}, "--", "`--name mnist-2`"),
        (SAGA, {"memory": "8 GB"}, "`--memory '8 GB'`", "`--memory 8G`"),
        (SAGA, {"memory": "200G"}, "4800 GiB", "`--memory`"),
        (SAGA, {"qos": "turbo"}, "`turbo`", "`--queue"),
        (SAGA, {"qos": "devel", "time": "03:00:00"}, "`devel`", "`--time 02:00:00`"),
        (SAGA, {"constraint": "a b"}, "`--constraint 'a b'`", "`--constraint a100`"),
        (SAGA, {"mail": "me"}, "`--mail 'me'`", "`--mail me@example.org`"),
        (SAGA, {"mail": "me@x\n#SBATCH -x"}, "--", "`--mail me@example.org`"),
        (SAGA, {"array": "8-1"}, "Slurm", "`--array 1-8`"),
        (POLARIS, {"array": "1,2"}, "PBS", "`--array 1-8`"),
        (SAGA, {"extra": ("nice",)}, "`--extra 'nice'`", "#SBATCH OPTION"),
        (SAGA, {"extra": ("#PBS -r y",)}, "--extra", "#SBATCH OPTION"),
        (SAGA, {"extra": ("--a\n#SBATCH --b",)}, "--extra", "#SBATCH OPTION"),
        (SAGA, {"extra": ("--nodes=4",)}, "--extra", "--help"),
        (SAGA, {"extra": ("-N4",)}, "--extra", "--help"),
        (SAGA, {"extra": ("--ntasks=4",)}, "--extra", "--help"),
        (POLARIS, {"extra": ("-l walltime=1",)}, "--extra", "--help"),
        (THETA, {"extra": ("-n 4",)}, "--extra", "--help"),
        (POLARIS, {"memory": "8G"}, "`alcf-polaris`", "leave `--memory` out"),
        (THETA, {"requeue": True}, "Cobalt", "leave `--requeue` out"),
    ],
)
def test_an_option_with_a_wrong_value_is_refused(
    asked: tuple[str, str, StrategyName], changes: dict[str, Any], message: str, hint: str, words: Words
) -> None:
    error = refusal(job(*asked, **changes))
    assert message in error.message
    assert hint in str(error.hint)
    words("job", "\n".join(error.to_lines()))


def test_an_extra_directive_is_given_with_or_without_its_first_word() -> None:
    site = profile("sigma2-saga")
    assert without_prefix(site, "#SBATCH --nice=100") == without_prefix(site, "--nice=100") == "--nice=100"
    assert without_prefix(site, "#PBS -r y") == "#PBS -r y"


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
    (folder / "train.py").write_text("")
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
    assert call(*at_saga(tmp_path, monkeypatch, state="TIMEOUT")) == 1
    err = capsys.readouterr().err
    assert "job 12 " in err and "00:30:00" in err
    assert "`provision job KIND --resume-from 12`" in err
    words("job", "\n".join(line for line in err.splitlines() if not line.startswith("submitted ")))


def test_nothing_stays_if_the_scheduler_refuses_the_job(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call(*at_saga(tmp_path, monkeypatch, refuses=True)) == 1
    assert "invalid account" in capsys.readouterr().err
    assert list(tmp_path.glob("*.sh")) == []


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (("--no-wait",), "`--no-wait`"),
        (("--inter", "-1"), "`-1`"),
        (("--launcher", "horovodrun"), "`horovodrun`"),
        (("--submit", "--array", "8-1"), "--array"),
        (("--submit", "--extra", "#COBALT -n 1"), "--extra"),
    ],
)
def test_a_wrong_option_writes_and_submits_nothing(
    command: tuple[str, ...],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    words: Words,
) -> None:
    given = at_saga(tmp_path, monkeypatch)[:-1]
    assert call(*given, *command) == EXIT_USAGE
    out, err = capsys.readouterr()
    assert out == ""
    assert message in err
    words("job", err)
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
