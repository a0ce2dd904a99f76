"""The rules that need a site: its scheduler, the options that its jobs need, its queues and nodes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from provision.jobs.limits import refusals
from provision.jobs.scheduler_request import batch_for
from provision.launch.rank_threads import cpus_of_node
from provision.lint import Finding
from provision.lint.arch_choice import (
    archs_for,
    features,
    on_other_nodes,
    queues_of,
    unknown_features,
    unknown_queue,
)
from provision.lint.job_script import JobScript, fault, gpus_of, ranks_per_node
from provision.lint.training import Training
from provision.lint.written_directives import write_directive
from provision.model.shape import Shape
from provision.profile.arch import Arch
from provision.profile.job import Job
from provision.profile.patterns import MEMORY, TIME
from provision.profile.site import Site
from provision.schedulers import TITLES

# The options of a script that give each key of `[archs.<arch>.job]`.
GIVEN_BY = {
    "account": ("account",),
    "partition": ("partition",),
    "qos": ("qos",),
    "constraint": ("constraint", "attrs", "system"),
    "filesystems": ("filesystems", "licenses"),
    "memory": ("mem", "mem-per-cpu", "mem-per-gpu"),
    "time": ("time",),
}
# The options that a refusal is about, if they are not those of that name.
STATED = {
    **GIVEN_BY,
    "gpus": ("gres", "gpus", "gpus-per-node", "gpus-per-task"),
    "cpus": ("cpus-per-task",),
    "nodes": ("nodes",),
}


def check_site(script: JobScript, site: Site, arch: Arch | None, training: Training | None = None) -> Iterator[Finding]:
    """The faults against the scheduler, the queues and the nodes of the site.

    Without an arch a script is compared with all archs that it may be for, and what is wrong at each of them is reported.
    """
    if script.scheduler != "none" and script.scheduler != site.scheduler.name:
        yield fault(
            script,
            "scheduler",
            script.line_of(*script.options),
            f"these directives are for {TITLES[script.scheduler]}, but the scheduler of site `{site.name}` is "
            f"{TITLES.get(site.scheduler.name, 'none')}",
            f"write them for {TITLES.get(site.scheduler.name, 'a shell')}; `provision job KIND --site {site.typed}` shows how",
        )
        return
    archs = (arch,) if arch else archs_for(script, site)
    yield from _of_scheduler(script, site)
    yield from _words(script, site, archs)
    yield from _unknown(script, site)
    yield from _gpus(script, training, site, archs, named=arch is not None)
    if arch is not None or not on_other_nodes(script, site):
        yield from _of_all(script, site, archs)
    yield from _network(script, site)


def _of_scheduler(script: JobScript, site: Site) -> Iterator[Finding]:
    """What the scheduler of the site does to a job that the script must undo."""
    if site.scheduler.name == "pbs":
        if "umask" not in "".join(line.text for line in script.lines) and "umask" not in script.options:
            yield fault(
                script,
                "umask",
                (1, ""),
                "PBS starts jobs with umask 0077, so no other user can read the files that the job writes",
                "`umask 022`",
            )
        if not any(command.name == "cd" for command in script.commands):
            yield fault(script, "folder", (1, ""), "PBS starts jobs in your home folder", '`cd "$PBS_O_WORKDIR"`')
    nodes = script.number("nodes") or 1
    if site.files.needs_burst_buffer(nodes) and not re.search(r"^#(DW|BB) ", script.text, re.MULTILINE):
        yield fault(
            script,
            "burst-buffer",
            script.line_of("nodes"),
            f"{nodes} nodes: from {site.files.burst_buffer_from} nodes on, data must be on the burst buffer of `{site.name}`",
            "add `#DW jobdw` and `#DW stage_in`; `provision job KIND --stage-in FOLDER` writes them",
        )


def _words(script: JobScript, site: Site, archs: Sequence[Arch]) -> Iterator[Finding]:
    """What the site requires of every job, and what it forbids."""
    for word in site.scheduler.required:
        if script.value(*GIVEN_BY[word]) is None:
            yield fault(
                script,
                word,
                (1, ""),
                f"site `{site.name}` requires {_title(word)} for every job, but the script gives none",
                f"add `{write_directive(site, archs[0], word)}`, or give it on the command line",
            )
    for word in site.scheduler.forbidden:
        value = script.value(*GIVEN_BY[word])
        if value is not None:
            yield fault(
                script,
                word,
                script.line_of(*GIVEN_BY[word]),
                f"site `{site.name}` forbids {_title(word)} in a job, but this one has `{value}`",
                "remove it; the scheduler chooses",
            )


def _title(word: str) -> str:
    return {"account": "an account", "qos": "a QOS", "filesystems": "the file systems", "memory": "the memory"}.get(
        word, f"a {word}" if word != "time" else "a time limit"
    )


def _unknown(script: JobScript, site: Site) -> Iterator[Finding]:
    """Queues and features that the profile does not have."""
    for key in ("partition", "qos"):
        if unknown_queue(script, site, key):
            names = ", ".join(f"`{name}`" for name in sorted({name for arch in site.archs for name in queues_of(arch)}))
            title = "QOS" if key == "qos" else "queue"
            yield fault(
                script,
                "unknown-queue",
                script.line_of(key),
                f"the profile of `{site.name}` has no {title} `{script.value(key)}`; it has {names}",
                "`sinfo -s` lists the partitions, `sacctmgr show qos format=name` the QOS"
                if script.scheduler == "slurm"
                else "`qstat -Q` lists the queues",
            )
    offered = unknown_features(script, site)
    if offered:
        names = ", ".join(f"`{name}`" for name in sorted(offered))
        yield fault(
            script,
            "unknown-constraint",
            script.line_of("constraint"),
            f"the profile of `{site.name}` has no nodes with `{script.value('constraint')}`; it has {names}",
            '`sinfo -o "%N %f"` lists the features of the nodes',
        )


def _gpus(
    script: JobScript, training: Training | None, site: Site, archs: Sequence[Arch], *, named: bool
) -> Iterator[Finding]:
    """GPUs and partitions that contradict each other."""
    if site.scheduler.gpus == "none" or script.scheduler != "slurm":
        return
    partition, asked = script.value("partition"), script.requests_gpus
    of_gpus = {arch.job.partition for arch in site.archs if arch.gpu and arch.job.partition}
    of_cpus = {arch.job.partition for arch in site.archs if not arch.gpu and arch.job.partition}
    option = {"gres": "--gres=gpu:1", "none": ""}.get(site.scheduler.gpus, f"--{site.scheduler.gpus}=1")
    if partition in of_gpus and of_cpus and partition not in of_cpus and not asked:
        others = " or ".join(f"`--partition={name}`" for name in sorted(of_cpus))
        yield fault(
            script,
            "gpu-partition",
            script.line_of("partition"),
            f"partition `{partition}` is for jobs with GPUs, but the job requests none",
            f"`#SBATCH {option}`" + (f", or {others} for a job without GPUs" if others else ""),
        )
    elif asked and partition is None and of_gpus and of_cpus and not features(script.value("constraint")):
        yield fault(
            script,
            "gpu-partition",
            script.line_of("gres", "gpus", "gpus-per-node", "gpus-per-task"),
            f"the job requests GPUs, but the nodes of the default partition of `{site.name}` have none",
            " or ".join(f"`#SBATCH --partition={name}`" for name in sorted(of_gpus)),
        )
    elif (
        not asked
        and all(arch.gpu for arch in archs)
        and (
            (_uses_gpus(script) and (named or partition is None))
            or (partition in of_gpus - of_cpus and _trains(training) and "CUDA_VISIBLE_DEVICES" not in script.variables)
        )
    ):
        where = script.line_of("constraint", "partition")
        yield fault(
            script,
            "no-gpus-requested",
            where,
            "the nodes have GPUs, but the job requests none, so its programs see none",
            f"`#SBATCH {option}`",
        )


def _trains(training: Training | None) -> bool:
    """Whether the job trains a model of TensorFlow, for which a user waits for nodes with GPUs."""
    return training is not None and training.uses_tensorflow and training.trains is not None


def _uses_gpus(script: JobScript) -> bool:
    """Whether the script loads modules for GPUs, or hands GPUs to a container."""
    modules = any(re.search(r"cuda|cudnn|nccl|-gpu\b", name, re.IGNORECASE) for _, name in script.modules())
    return modules or any("--nv" in command.words for command in script.commands)


def _of_all(script: JobScript, site: Site, archs: Sequence[Arch]) -> Iterator[Finding]:
    """What the queues and nodes of every arch that the script may be for refuse."""
    each = [list(_refused(script, site, arch)) for arch in archs]
    for finding in each[0] if each else ():
        if all(any(finding.rule == other.rule for other in findings) for findings in each[1:]):
            yield finding


def _refused(script: JobScript, site: Site, arch: Arch) -> Iterator[Finding]:
    """The directives that exceed a queue or a node."""
    time, memory = script.value("time") or "0", script.value("mem-per-cpu") or ""
    requested = Job(
        time=time if TIME.fullmatch(time) else "0",
        partition=script.value("partition"),
        constraint=script.value("constraint", "attrs", "system"),
        account=script.value("account"),
        qos=script.value("qos"),
        exclusive=True,
        cpus_per_task=0,
        options=(),
        memory=memory if MEMORY.fullmatch(memory) else None,
    )
    shape = Shape(
        nodes=script.number("nodes") or 1,
        ranks_per_node=ranks_per_node(script),
        cpus_per_rank=script.number("cpus-per-task") or (1 if memory else 0),
        gpus_per_node=gpus_of(script),
    )
    # `--gpus` without a number of nodes may be on several.
    spread = "nodes" not in script.options and "gpus" in script.options and script.scheduler == "slurm"
    batch = batch_for(site, arch, shape, name="", job=requested)
    for problem in refusals(site, arch, batch):
        subject = problem.subject
        counts = problem.kind in ("limit", "mismatch") or subject == "gpus"
        if counts and subject in STATED and not (subject == "gpus" and spread and arch.gpu):
            where = script.line_of(*STATED[subject])
            yield fault(script, subject, where, problem.message, _less(script, site, arch, subject))
    node, whole = arch.node, script.value("mem") or ""
    if node is not None and node.memory_gb and re.fullmatch(r"\d{1,15}[GT]B?", whole, re.IGNORECASE):
        amount = int(re.sub(r"\D", "", whole)) * (1024 if "T" in whole.upper() else 1)
        if amount > node.memory_gb:
            yield fault(
                script,
                "memory",
                script.line_of("mem"),
                f"the job requests {amount} GiB of memory, but a node has {node.memory_gb} GiB",
                f"request at most `--mem={node.memory_gb}G`",
            )


def _less(script: JobScript, site: Site, arch: Arch, subject: str) -> str:
    """What to write instead of a directive that exceeds a queue or a node."""
    queue = next(iter(arch.queues_of(script.value("partition"), script.value("qos"))), None)
    ranks, cpus = ranks_per_node(script), cpus_of_node(site, arch)
    match subject:
        case "nodes" if queue is not None:
            nodes = script.number("nodes") or 1
            most = queue.most_nodes if queue.most_nodes and nodes > queue.most_nodes else queue.least_nodes
            return f"`{write_directive(site, arch, 'nodes', str(most))}`, or another queue"
        case "time" if queue is not None and queue.time:
            return f"`{write_directive(site, arch, 'time', queue.time)}` or less, or another queue"
        case "constraint" if queue is not None and queue.constraint:
            return f"ask for `{queue.constraint}`, or another queue"
        case "gpus" if arch.gpu is not None:
            return f"{arch.gpu.per_node} GPUs on each node, and more nodes"
        case "gpus":
            others = [
                write_directive(site, other, "partition") for other in site.archs if other.gpu and other.job.partition
            ]
            return " or ".join(f"`{other}`" for other in others) or "request no GPUs"
        case "cpus" if cpus:
            return f"`--cpus-per-task={max(1, cpus // ranks)}`"
        case "memory" if arch.node is not None:
            each = arch.node.memory_gb // max(1, ranks * (script.number("cpus-per-task") or 1))
            return f"`--mem-per-cpu={max(1, each)}G` or less"
    return f"request less, or another queue of `{site.name}`"


# Programs that fetch from the internet, with the words that make them do it.
FETCHES = (
    re.compile(r"(python[\d.]* -m )?pip[\d.]* (install|download)\b"),
    re.compile(r"uv (pip install|sync|add)\b"),
    re.compile(r"(conda|mamba|micromamba) (install|create|update|env create)\b"),
    re.compile(r"(wget|curl|aria2c) .{0,2000}?(https?|ftp)://"),
    re.compile(r"git clone .{0,500}?(https?://|git@)"),
    re.compile(r"(apptainer|singularity) (pull|build|exec|run) .{0,2000}?(docker|library|oras)://"),
)
LOCAL = re.compile(r"--no-index|--offline|install (-e )?\.|install \S+\.whl$|--no-deps \.|127\.0\.0\.1|localhost")


def _network(script: JobScript, site: Site) -> Iterator[Finding]:
    """Downloads and installations inside a job."""
    proxied = {name.lower() for name in script.variables} & {"http_proxy", "https_proxy", "all_proxy"}
    for command in script.commands:
        text = " ".join(command.words)[:4096]
        fetch = next((match for pattern in FETCHES if (match := pattern.match(text))), None)
        if fetch is None or LOCAL.search(text):
            continue
        if site.network.compute == "no" and not proxied:
            where = site.network.where_to_download
            yield fault(
                script,
                "no-network",
                command.line,
                f"compute nodes of `{site.name}` do not reach the internet",
                f"run it on {where} before the job" if where else "copy what it fetches to the site before the job",
            )
        elif fetch[0].partition(" ")[0] not in ("wget", "curl", "aria2c", "git") and script.main():
            yield fault(
                script,
                "installs-in-job",
                command.line,
                "each run of the job may get other versions, and jobs that run at once write to the same folder",
                "run it once before the job",
            )
