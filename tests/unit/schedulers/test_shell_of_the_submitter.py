"""What the shell that submits a job cannot change: options, answers of the scheduler, and the steps of the job."""

from __future__ import annotations

import subprocess

import pytest

from provision.jobs.script import forget_line
from provision.launch.modules import clean_environ
from provision.model.batch import Directive
from provision.model.quoting import Code
from provision.schedulers import command_environ
from provision.schedulers.cobalt import scheduler as cobalt
from provision.schedulers.pbs import scheduler as pbs
from provision.schedulers.slurm import scheduler as slurm

HERE = {
    "PATH": "/usr/bin",
    "SLURM_CONF": "/etc/slurm.conf",
    "SLURM_MPI_TYPE": "pmix",
    "SLURM_JWT": "a",
    "MY_DATA": "/d",
}


@pytest.mark.parametrize(
    "environ",
    [
        {"SBATCH_PARTITION": "debug", "SBATCH_TIMELIMIT": "00:04:00", "SBATCH_EXPORT": "NONE", "SBATCH_GRES": "gpu:4"},
        {"SLURM_JOB_ID": "7", "SLURM_MEM_PER_NODE": "300", "SLURM_CPU_BIND": "map_cpu:0", "SLURMD_NODENAME": "n1"},
        {"SLURM_EXPORT_ENV": "NONE", "SLURM_CLUSTERS": "other", "SBATCH_CLUSTERS": "other", "SLURM_HET_SIZE": "2"},
        {"SQUEUE_STATES": "PD", "SQUEUE_PARTITION": "x", "SINFO_PARTITION": "x", "SALLOC_ACCOUNT": "x"},
        {"SLURM_JOB_ID": "7", "CUDA_VISIBLE_DEVICES": "3", "TMPDIR": "/local/7/tmp", "PMI_RANK": "0", "PMIX_RANK": "0"},
    ],
    ids=lambda environ: next(reversed(environ)),
)
def test_options_filters_and_the_outer_job_of_the_shell_do_not_reach_slurm(environ: dict[str, str]) -> None:
    assert command_environ(slurm, {**environ, **HERE}) == HERE


def test_who_pays_is_taken_from_the_shell_unless_the_script_says_it() -> None:
    environ = {"SBATCH_ACCOUNT": "mine", "SBATCH_WCKEY": "w"}
    assert command_environ(slurm, environ, "#SBATCH --time=5\n") == environ
    assert command_environ(slurm, environ, "#SBATCH --account=ours  # the account\n") == {"SBATCH_WCKEY": "w"}


def test_devices_and_folders_of_the_user_stay_outside_a_job() -> None:
    environ = {"CUDA_VISIBLE_DEVICES": "3", "TMPDIR": "/local/7/tmp"}
    assert command_environ(slurm, environ) == environ
    inside = {"SLURM_JOB_ID": "7", "TMPDIR": "/scratch/me"}
    assert command_environ(slurm, inside) == {"TMPDIR": "/scratch/me"}


def test_pbs_and_cobalt_get_no_other_prefix_and_no_outer_job() -> None:
    outer = {
        "PBS_DPREFIX": "#XX",
        "PBS_JOBID": "1.s",
        "PBS_NODEFILE": "/n",
        "PALS_RANKID": "0",
        "PBS_DEFAULT": "server",
    }
    assert command_environ(pbs, outer) == {"PBS_DEFAULT": "server"}
    assert command_environ(cobalt, {"COBALT_JOBID": "1", "COBALT_CONFIG_FILES": "/c"}) == {"COBALT_CONFIG_FILES": "/c"}


def line_for(*options: str) -> Code:
    """The line of a job with these options."""
    line = forget_line("slurm", tuple(Directive(line=Code(f"#SBATCH {option}"), meaning="") for option in options))
    assert line is not None
    return line


def test_a_script_unsets_what_srun_would_obey_but_not_what_its_own_options_set() -> None:
    names = (
        "EXPORT_ENV",
        "CPU_BIND",
        "MEM_PER_NODE",
        "GPUS_PER_TASK",
        "HINT",
        "HET_SIZE",
        "JOB_ID",
        "NTASKS",
        "MPI_TYPE",
    )
    show = "; ".join(f'echo "{name}=${{SLURM_{name}-}}"' for name in names)

    def left(*options: str) -> set[str]:
        environ = {f"SLURM_{name}": "1" for name in names}
        script = f"set -euo pipefail\n{line_for(*options)}\n{show}"
        done = subprocess.run(["bash", "-c", script], env=environ, capture_output=True, text=True, check=True)
        return {line.partition("=")[0] for line in done.stdout.splitlines() if line.endswith("=1")}

    assert left("--time=5") == {"JOB_ID", "NTASKS", "MPI_TYPE"}
    assert left("--gpus-per-task=1", "--hint=nomultithread", "--mem=3G") == {
        *("JOB_ID", "NTASKS", "MPI_TYPE", "GPUS_PER_TASK", "HINT", "MEM_PER_NODE")
    }
    assert forget_line("pbs", ()) is None


def test_ranks_of_a_build_get_no_export_and_binding_of_the_shell() -> None:
    kept = clean_environ({"SLURM_EXPORT_ENV": "NONE", "SLURM_CPU_BIND": "map_cpu:0", "SLURM_JOB_ID": "1"})
    assert {name for name in kept if name.startswith("SLURM_")} == {"SLURM_JOB_ID"}


# What sbatch, or a site's program in its place, prints


@pytest.mark.parametrize(
    ("text", "job"),
    [
        ("4711\n", "4711"),
        ("Submitted batch job 4711\n", "4711"),
        ("4711;c2\n", "4711@c2"),
        ("Submitted batch job 4711 on cluster c2\n", "4711@c2"),
        ("2026\nyou have used\n  300\nhours\n4711\n", "4711"),
        ("Submitted batch job 4711\n\nremaining hours:\n\n300\n", "4711"),
        ("sbatch: lua: be nice\n4711\r\n", "4711"),
        ("job accepted\n", None),
        ("", None),
    ],
)
def test_the_id_is_found_in_what_a_sites_sbatch_prints(text: str, job: str | None) -> None:
    assert slurm.parse_job_id(text) == job


def test_a_job_of_another_cluster_is_asked_for_and_cancelled_there() -> None:
    assert slurm.is_job_id("12@c2") and slurm.is_job_id("12+1") and slurm.is_job_id("12_3")
    assert not slurm.is_job_id("12;c2") and not slurm.is_job_id("--all") and not slurm.is_job_id("12@-x")
    assert slurm.status_argv("12@c2") == ("scontrol", "--clusters=c2", "show", "job", "--oneliner", "12")
    assert slurm.cancel_argv("12@c2") == ("scancel", "--clusters=c2", "12")
    assert slurm.cancel_argv("1", "2") == ("scancel", "1", "2")


# Heterogeneous jobs: scontrol (22.05) prints one line for each component, in any order


def component(offset: int, state: str, node: str) -> str:
    """The line of a component of the heterogeneous job 14."""
    names = f"JobId={14 + offset} HetJobId=14 HetJobOffset={offset} JobName=h HetJobIdSet=14-15"
    return f"{names} JobState={state} Reason=None ExitCode=0:0 RunTime=00:00:09 NodeList={node} StdOut=/o-{14 + offset}"


@pytest.mark.parametrize(
    ("states", "state"),
    [
        (("RUNNING", "RUNNING"), "RUNNING"),
        (("COMPLETED", "COMPLETED"), "COMPLETED"),
        (("COMPLETED", "FAILED"), "FAILED"),
        (("TIMEOUT", "CANCELLED"), "TIMEOUT"),
    ],
)
def test_a_heterogeneous_job_is_one_job_with_the_output_of_its_first_component(
    states: tuple[str, str], state: str
) -> None:
    lines = [component(1, states[1], "gp1"), component(0, states[0], "cn1")]
    status = slurm.parse_status("\n".join(lines))
    assert status is not None
    assert (status.job, status.state, status.nodes, status.output) == ("14", state, "cn1,gp1", "/o-14")
