"""Any answer of a scheduler, a compiler, a module system: it is read, or it counts as no answer."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parts.hostile import damaged, fuzzed, garbled, json_values, refused, texts
from provision.jobs.on_cluster import misfits
from provision.launch.modules import failed_module, find_newest_module, parse_environment, resolve_loaded
from provision.machine.probes import probe, probe_gpu
from provision.machine.root.store import Store
from provision.machine.submission import follow
from provision.machine.terminal.progress_lines import Plain
from provision.model.batch import Batch, to_seconds
from provision.model.event import Event, parse_event
from provision.model.layout import Layout
from provision.model.progress import Doing, read_progress
from provision.profile.scheduler import Scheduler
from provision.schedulers import SchedulerInterface
from provision.schedulers.cobalt import scheduler as cobalt
from provision.schedulers.node_kind import Cluster
from provision.schedulers.pbs import scheduler as pbs
from provision.schedulers.slurm import parse_associations, parse_config, parse_mpi_types, parse_node_kinds
from provision.schedulers.slurm import scheduler as slurm
from provision.schedulers.status import JobStatus, ending

RECORDED = Path(__file__).resolve().parents[2] / "recorded" / "slurm-22.05"
OF_PBS = """Job Id: 123.server
    Job_Name = x
    job_state = F
    Exit_status = 271
    exec_host = n1/0*32+n2/0*32
    Output_Path = host:/a/b
    Resource_List.walltime = 01:00:00
    comment = Job run at Sun
"""
OF_COBALT = "JobID: 12\n    JobName : x\n    State : running\n    WallTime : 01:00:00\n    Location: nid1\n"
ANSWERS = (
    *(path.read_text(encoding="utf-8") for path in sorted(RECORDED.iterdir())),
    *(OF_PBS, OF_COBALT, "123\n", "123;cluster\n", "12.server\n", "Queue: a\n", "pmix\ncray_shasta\n"),
)
SCHEDULERS: tuple[Any, ...] = (slurm, pbs, cobalt)
OUTPUTS = (
    '#define MPICH_VERSION "4.0"\n#define OMPI_MAJOR_VERSION 4\n#define OMPI_MINOR_VERSION 1\n#define OMPI_RELEASE_VERSION 2\n',
    "g++ -I/usr/include -L/usr/lib -L/x -lmpi -lmpichcxx -lmpi_gnu_91",
    "nvcc: release 12.4, V12.4.131\n#$ _HERE_=/usr/local/cuda/bin\n#define NCCL_MAJOR 2\n#define NCCL_MINOR 22\n",
    "PATH=/x\0LOADEDMODULES=gcc/12.2.0:mpich/4.0\0",
    "gcc/12.2.0\ngcc/13.1\nprovision-failed-module=gcc/11\n",
)
PRINTED = (
    *("package 1 of 2", "[3/27] Building CXX object a/b.cc.o", "Downloading x (1.2MiB)", "Epoch 1/3 loss 1.2"),
    *("a passed 1.2 s", "Collecting x", "test accuracy 0.9", "Downloading x-py3-none.whl (1.2 MB)"),
)
EVENTS: tuple[dict[str, Any], ...] = (
    {"kind": "plan", "environment": "a/b/c-d", "steps": [["a", "b", "create"]], "expected": [["a", 1.0]]},
    {"kind": "finished", "step": "a", "seconds": 1.5, "text": "2 GB"},
    {"kind": "error", "text": "x", "error": {"message": "x", "evidence": ["y"], "hint": "z", "log": "/x"}},
)


@fuzzed(60)
@given(st.sampled_from(SCHEDULERS), garbled(ANSWERS) | texts)
def test_any_answer_of_a_scheduler_is_read(scheduler: SchedulerInterface, answer: str) -> None:
    status = scheduler.parse_status(answer)
    if status is not None:
        ending(status)
        scheduler.waiting(status)
    for job in (scheduler.parse_job_id(answer), *scheduler.parse_queued(answer, "x")):
        assert job is None or "\n" not in job
    scheduler.parse_queues(answer)
    scheduler.is_job_id(answer)
    scheduler.is_unknown(answer)
    parse_mpi_types(answer)


OF_SLURM = (
    "PartitionName=work AllowAccounts=a,b AllowQos=ALL Default=YES MaxNodes=2 MaxTime=1-02:00:00 MinNodes=1 State=UP\n",
    "work*|2:16:2|128000|gpu:a100:4(S:0-1),gpu:2|haswell,ssd|4\n",
    "ml|normal,long\n",
    "MpiDefault              = none\n",
)


@fuzzed(60)
@given(*(garbled((answer,)) | texts for answer in OF_SLURM))
def test_a_job_is_compared_with_whatever_slurm_says(queues: str, kinds: str, associations: str, config: str) -> None:
    cluster = Cluster(
        queues=slurm.parse_queues(queues),
        kinds=parse_node_kinds(kinds),
        associations=parse_associations(associations),
        mpi=parse_config(config).get("MpiDefault"),
    )
    wish = Scheduler(name="slurm", options=(), gpus="gres", memory="per-cpu")
    batch = Batch(scheduler=wish, name="a", output="a", nodes=3, ranks_per_node=2, time="9-0", partition="work")
    asked = replace(batch, constraint="haswell&x", gpus_per_node=4, gpu_model="A100", memory="4G", cpus_per_rank=8)
    for job in (batch, asked, replace(asked, partition=None, account="a", qos="b")):
        for fault in misfits(job, cluster):
            assert fault.hint and fault.evidence


@pytest.mark.parametrize("number", ["²", "٣", "--1", "9" * 5000, ""])
def test_an_odd_number_is_no_exit_status_of_pbs_and_not_the_id_of_a_job(number: str) -> None:
    status = pbs.parse_status(OF_PBS.replace("271", number))
    assert status is not None and status.exit_code == "0:0"
    assert not any(scheduler.is_job_id(number) for scheduler in (slurm, cobalt))


@fuzzed(60)
@given(garbled(OUTPUTS) | texts, garbled(OUTPUTS) | texts)
def test_any_output_of_a_probed_program_is_read(output: str, other: str) -> None:
    family, _ = probe.parse_mpi_macros(output)
    probe.mpi_libraries(output, family or "openmpi")
    for parse in (probe_gpu.parse_toolkit, probe_gpu.parse_nvcc_version, probe_gpu.parse_nccl_header):
        parse(output)
    lines = output.splitlines()
    find_newest_module(other, lines)
    failed_module(lines)
    resolve_loaded(lines, {**parse_environment(other), "LOADEDMODULES": other})


def test_an_open_mpi_without_all_parts_of_its_version_is_not_an_mpi() -> None:
    assert probe.parse_mpi_macros("#define OMPI_MAJOR_VERSION 4\n") == (None, "")
    assert probe.mpi_libraries(f"g++ -L/{'a' * 300} -lmpi_{'a' * 300}", "mpich") == (), (
        "its name is too long for a file"
    )


@fuzzed(60)
@given(st.lists(garbled(PRINTED) | texts, max_size=4), texts)
def test_any_line_of_a_program_is_read_as_progress_or_ignored(lines: list[str], limit: str) -> None:
    doing = Doing()
    for line in lines:
        doing = read_progress(line, doing)
        assert str(doing) is not None
    with refused(ValueError):
        to_seconds(limit)


def listen_to(event: Event | None) -> None:
    """Show an event as a build on no terminal does."""
    if event is not None:
        lines: list[str] = []
        Plain(say=lines.append).listen(event)


@fuzzed(60)
@given(damaged(EVENTS, json_values) | json_values)
def test_any_event_in_a_file_is_shown_or_ignored(value: Any) -> None:
    listen_to(parse_event(json.dumps(value)))


@fuzzed(20)
@given(st.lists(damaged(EVENTS, json_values), max_size=3), st.lists(garbled(ANSWERS), min_size=1, max_size=3))
def test_following_a_job_ends_with_its_status_or_an_error(
    tmp_path_factory: pytest.TempPathFactory, events: list[Any], answers: list[str]
) -> None:
    root = tmp_path_factory.getbasetemp() / "follow"
    (root / "jobs").mkdir(parents=True, exist_ok=True)
    text = "".join(json.dumps(event) + "\n" for event in events)
    (root / "jobs" / "x-123.events.jsonl").write_text(text, encoding="utf-8")
    statuses = [slurm.parse_status(answer) for answer in answers]

    def status(job: str, name: str) -> JobStatus | None:
        return statuses.pop() if statuses else None

    with pytest.MonkeyPatch.context() as patch, refused():
        patch.setattr(follow, "status", status)
        follow.follow("123", "slurm", Store(Layout(root)), listen_to, lambda _: None)  # type: ignore[arg-type]
