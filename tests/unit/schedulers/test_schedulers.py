"""The interface of the schedulers, and PBS and Cobalt as their manuals describe them: neither can run in the tests."""

from __future__ import annotations

import dataclasses
import shlex
import subprocess
from pathlib import Path
from typing import get_args

import pytest

from golden_files import SUBMITTER, Words, facts_of, request_for
from parts.languages import options_of_sbatch
from parts.paths import RECORDED
from provision.errors import EXIT_USAGE, ConfigError
from provision.jobs.build_job import build_script
from provision.jobs.script import explain
from provision.lint.job_script import PREFIXES
from provision.machine.submission.render_jobs import render_build_job
from provision.model.batch import Batch, to_clock, to_seconds
from provision.model.facts import Existing
from provision.planning.planner import make_plan
from provision.profile.choices import LAUNCHERS
from provision.profile.scheduler import Scheduler, SchedulerName
from provision.profile.site import Site, read_site
from provision.schedulers import TITLES, SchedulerInterface, scheduler_for
from provision.schedulers.cobalt import scheduler as cobalt
from provision.schedulers.pbs import scheduler as pbs
from provision.schedulers.short_options import SHORT
from provision.schedulers.slurm import scheduler as slurm
from provision.schedulers.status import JobStatus, ending

NAMES: tuple[SchedulerName, ...] = ("slurm", "pbs", "cobalt")
MODULES: tuple[SchedulerInterface, ...] = (slurm, pbs, cobalt)

BATCH = Batch(
    scheduler=Scheduler(name="pbs", options=("-k doe",), gpus="gres", memory="per-node"),
    name="mnist",
    output="/site/jobs/",
    nodes=2,
    ranks_per_node=4,
    time="90",
    partition="debug",
    constraint="system=polaris",
    account="tests",
    filesystems=("home", "eagle"),
    gpus_per_node=4,
    memory="2G",
    cpus_per_rank=8,
)


def test_every_list_of_schedulers_has_the_same_names() -> None:
    assert set(get_args(SchedulerName)) == set(LAUNCHERS) == set(SHORT) == {*NAMES, "none"}
    assert set(NAMES) == set(TITLES) == set(PREFIXES.values())
    assert tuple(map(scheduler_for, NAMES)) == MODULES


def test_a_site_without_a_scheduler_has_no_scheduler_module(words: Words) -> None:
    with pytest.raises(ConfigError) as caught:
        scheduler_for("none")
    words("job", "\n".join(caught.value.to_lines()))


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("30", 1800),
        ("30:15", 1815),
        ("01:30:00", 5400),
        ("48:00:00", 172800),
        ("1-12", 129600),
        ("1-12:30", 131400),
        ("2-00:00:01", 172801),
    ],
)
def test_a_time_limit_is_parsed_as_slurm_does(text: str, seconds: int) -> None:
    assert to_seconds(text) == seconds
    assert to_seconds(to_clock(seconds)) == seconds


@pytest.mark.parametrize("text", ["", "soon", "1:2:3", "-1", "1.5"])
def test_an_invalid_time_limit_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=repr(text)):
        to_seconds(text)


# PBS


def test_pbs_directives() -> None:
    assert [str(line).removeprefix("#PBS ") for line in pbs.directives(BATCH)] == [
        *("-N mnist", "-o /site/jobs/", "-j oe", "-l select=2:system=polaris:ngpus=4:mem=64gb"),
        *("-l place=scatter:excl", "-l walltime=01:30:00", "-W umask=022", "-q debug", "-A tests"),
        *("-l filesystems=home:eagle", "-k doe"),
    ]


QSTAT = """\
Job Id: 123.polaris-pbs-01
    Job_Name = mnist
    job_state = {state}
    exec_host = x3001/0*64+x3002/0*64
    Output_Path = polaris-login-01:/site/jobs/123.polaris-pbs-01.OU
    Resource_List.walltime = 01:30:00
    resources_used.walltime = 00:10:00
    Variable_List = PBS_O_HOME=/home/ada,PBS_O_WORKDIR=/home/ada,
\tjob_state=X
"""


def status(state: str, more: str = "") -> JobStatus:
    """The parsed output of `qstat -xf` for a job in this state."""
    parsed = pbs.parse_status(QSTAT.format(state=state) + more)
    assert parsed is not None
    return parsed


def test_all_fields_of_a_running_pbs_job_are_parsed() -> None:
    assert status("R") == JobStatus(
        job="123.polaris-pbs-01",
        state="RUNNING",
        output="/site/jobs/123.polaris-pbs-01.OU",
        time_limit="01:30:00",
        run_time="00:10:00",
        nodes="x3001+x3002",
    )
    queued = status("Q", "    comment = Not Running: No available resources on nodes\n")
    assert (queued.state, queued.ended) == ("PENDING", False)
    assert pbs.waiting(queued) == "Not Running: No available resources on nodes"
    assert pbs.waiting(status("Q")) == ""


@pytest.mark.parametrize(
    ("more", "state"),
    [
        ("    Exit_status = 0\n", "COMPLETED"),
        ("    Exit_status = 3\n", "FAILED"),
        ("    Exit_status = 265\n", "FAILED"),
        ("    Exit_status = -29\n", "TIMEOUT"),
        ("    Exit_status = -27\n", "OUT_OF_MEMORY"),
        ("", "CANCELLED"),
    ],
)
def test_each_ending_of_a_pbs_job_is_described(more: str, state: str, words: Words) -> None:
    ended = status("F", more)
    assert (ended.ended, ended.state) == (True, state)
    words("job", ending(ended))


def test_a_chunk_of_pbs_names_its_cpus_and_slots_where_nodes_are_shared() -> None:
    """OpenPBS 23.06 gives a chunk without `ncpus` one CPU, and mpirun one slot of its host without `mpiprocs`."""
    shared = dataclasses.replace(BATCH, exclusive=False, cpus_per_rank=8, ranks_per_node=4)
    lines = [one.line for one in pbs.directives(shared)]
    assert any(line.startswith("#PBS -l select=") and ":ncpus=32:mpiprocs=4" in line for line in lines)
    whole = [one.line for one in pbs.directives(dataclasses.replace(shared, exclusive=True))]
    assert not any("ncpus" in line for line in whole)


def test_what_a_real_pbs_answers_is_understood() -> None:
    folder = RECORDED / "openpbs-23.06"
    found = {
        path.stem.removeprefix("qstat-"): pbs.parse_status(path.read_text(encoding="utf-8"))
        for path in folder.glob("qstat-*.txt")
    }
    assert {name: job.state for name, job in found.items() if job} == {
        "running": "RUNNING",
        "finished": "COMPLETED",
        "failed": "FAILED",
        "array-failed": "FAILED",
        "walltime": "TIMEOUT",
        "deleted": "CANCELLED",
        "never-run": "CANCELLED",
    }
    assert found["unknown.err"] is None
    assert pbs.is_unknown((folder / "qstat-unknown.err.txt").read_text(encoding="utf-8"))
    running, array = found["running"], found["array-failed"]
    assert running and array
    assert (running.nodes, running.output) == ("pbsnode", "/home/ada/13.pbsnode.OU")
    assert array.output == "/home/ada/12[[]*.pbsnode.OU", "a pattern for a shell"


def test_a_pbs_job_id_is_a_number_and_a_server() -> None:
    assert pbs.parse_job_id("123.polaris-pbs-01.hsn.cm.polaris\n") == "123.polaris-pbs-01.hsn.cm.polaris"
    assert pbs.parse_job_id("qsub: Job rejected by all possible destinations\n") is None
    assert pbs.is_job_id("123")
    assert pbs.is_job_id("123.server")
    assert not pbs.is_job_id("--all")
    assert pbs.parse_status("qstat: Unknown Job Id 1.server") is None
    assert pbs.is_unknown("qstat: Unknown Job Id 1.server")
    assert not pbs.is_unknown("qstat: cannot connect to server")


# Cobalt


def test_cobalt_directives_have_all_attributes_in_one_option() -> None:
    batch = dataclasses.replace(BATCH, constraint="mcdram=cache:numa=quad", output="/site/jobs/mnist")
    batch = dataclasses.replace(batch, scheduler=Scheduler(name="cobalt", options=()))
    assert [str(line).removeprefix("#COBALT ") for line in cobalt.directives(batch)] == [
        *("--jobname mnist", "-O /site/jobs/mnist-$jobid", "-n 2", "-t 01:30:00", "-q debug", "-A tests"),
        "--attrs mcdram=cache:numa=quad:filesystems=home,eagle",
    ]


def test_the_status_of_a_cobalt_job_is_parsed() -> None:
    text = "JobID: 77\n    JobName       : mnist\n    WallTime      : 01:30:00\n    RunTime       : 00:10:00\n"
    running = cobalt.parse_status(f"{text}    State         : running\n    Location      : 1-2\n")
    assert running == JobStatus(job="77", state="RUNNING", time_limit="01:30:00", run_time="00:10:00", nodes="1-2")
    held = cobalt.parse_status(f"{text}    State         : admin_hold\n    Location      : None\n")
    assert held is not None
    assert (held.state, held.nodes, held.ended) == ("PENDING", "", False)
    assert "file systems" in cobalt.waiting(held)
    assert cobalt.parse_status("") is None


def test_the_job_id_of_cobalt_is_found_after_messages_and_queued_jobs_by_their_name() -> None:
    assert cobalt.parse_job_id('Job routed to queue "debug-cache-quad".\nMemory mode set to cache\n77\n') == "77"
    assert cobalt.parse_job_id("No project specified\n") is None
    table = "JobID  JobName\n=====\n77     mnist\n78     other\n"
    assert cobalt.parse_queued(table, "mnist") == ("77",)
    assert pbs.parse_queued("1.server\n2.server\n", "mnist") == ("1.server", "2.server")
    assert scheduler_for("slurm").parse_queued("5\n", "mnist") == ("5",)


# Build jobs


def site_of(scheduler: SchedulerName, **job: object) -> Site:
    """A site with this scheduler, which requires an account and file systems for every job."""
    return read_site(
        {
            "name": "cluster",
            "root": "/site/root",
            "stack": "tensorflow-2.15.1",
            "modules": {"system": "lmod", "init": "/site/lmod/init/bash"},
            "scheduler": {"system": scheduler, "required": ["account", "filesystems"]},
            "network": {"compute": "proxy", "proxy": "http://proxy.example:3128"},
            "files": {"temporary": "/local/$USER"},
            "archs": {
                "knl": {
                    "target": "haswell",
                    "mpi": {"provider": "site"},
                    "job": {"filesystems": ["home"], **job},
                    "proof": {"nodes": 2, "ranks_per_node": 1},
                }
            },
        },
        "/site/sites/cluster.toml",
        {},
    )


SCRIPTS = {
    "slurm": ("#SBATCH --licenses=home",),
    "pbs": ("#PBS -l filesystems=home\n", '\ncd "$PBS_O_WORKDIR"\n', '"$PBS_JOBID".events.jsonl', "with `qsub`"),
    "cobalt": ("#COBALT --attrs filesystems=home\n", '"$COBALT_JOBID".events.jsonl'),
}


@pytest.mark.parametrize("name", NAMES)
def test_a_build_job_uses_the_variables_and_directives_of_its_scheduler(name: SchedulerName, tmp_path: Path) -> None:
    site = site_of(name, account="tests")
    build = request_for(site)
    text = render_build_job(build_script(build, make_plan(build, facts_of(site), Existing()), SUBMITTER)).text
    (tmp_path / "job.sh").write_text(text)
    subprocess.run(["bash", "-n", str(tmp_path / "job.sh")], check=True)
    everywhere = ("https_proxy=http://proxy.example:3128\n", 'export TMPDIR="/local/$USER"\n', "umask 022\n")
    assert [part for part in (*SCRIPTS[name], *everywhere) if part not in text] == []
    assert ("\ncd " in text) is (name == "pbs")


@pytest.mark.parametrize("name", NAMES)
def test_a_build_job_without_the_required_account_is_refused(name: SchedulerName, words: Words) -> None:
    site = site_of(name)
    request = request_for(site)
    plan = make_plan(request, facts_of(site), Existing())
    with pytest.raises(ConfigError, match="`account`") as caught:
        build_script(request, plan, SUBMITTER)
    assert caught.value.exit_code == EXIT_USAGE
    words("job", "\n".join(caught.value.to_lines()))


# Values in directives: what a root or an option of a profile can contain.

VALUES = (
    "with space",
    'double " quote',
    "single ' quote",
    "$(id) `id` $HOME",
    "back\\slash\\",
    "hash # and ; and &",
    "--wrap=id",
    "Größe ✓",
)


@pytest.mark.parametrize("value", VALUES)
def test_the_real_sbatch_reads_every_value_of_a_directive_unchanged(value: str, tmp_path: Path) -> None:
    named = dataclasses.replace(
        BATCH,
        output=f"/{value}/x-%j.out",
        filesystems=(),
        options=(f"--comment={value}",),
        scheduler=Scheduler(name="slurm", options=("-k",)),
    )
    script = "\n".join(("#!/bin/bash", *explain(slurm, named)[0], "true", ""))
    read = options_of_sbatch(script, tmp_path)
    assert (read["output"], read["comment"]) == (f"/{value}/x-%j.out", value)
    assert "wrap" not in read and read["account"] == "tests"


@pytest.mark.parametrize("value", VALUES)
def test_pbs_reads_the_output_folder_as_one_word_and_cobalt_gets_only_plain_ones(value: str) -> None:
    batch = dataclasses.replace(BATCH, output=f"/{value}/")
    (line,) = [str(line) for line in pbs.directives(batch) if str(line).startswith("#PBS -o")]
    assert shlex.split(line.removeprefix("#PBS"))[1:] == [f"/{value}/"]
    if value != "--wrap=id":
        with pytest.raises(ConfigError) as caught:
            cobalt.directives(batch)
        assert caught.value.exit_code == EXIT_USAGE
