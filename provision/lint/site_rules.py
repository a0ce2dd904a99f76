"""The rules that need a site: its scheduler, the options that its jobs need, its queues, and the threads of its nodes."""

from __future__ import annotations

import re
from collections.abc import Iterator

from provision.jobs.limits import refusals
from provision.jobs.scheduler_request import batch_for
from provision.knowledge.whole_numbers import whole_number
from provision.launch.rank_threads import INTER, INTRA, OMP, explain_too_many_threads
from provision.lint import Finding
from provision.lint.job_script import JobScript, fault, gpus_of, ranks_per_node
from provision.model.shape import Shape
from provision.profile.arch import Arch
from provision.profile.job import Job
from provision.profile.patterns import MEMORY, TIME
from provision.profile.site import Site
from provision.schedulers import TITLES


def check_site(script: JobScript, site: Site, arch: Arch | None) -> Iterator[Finding]:
    """The faults against the scheduler of the site and, if the arch is given, against its nodes and queues."""
    if script.scheduler != "none" and script.scheduler != site.scheduler.name:
        yield fault(
            script,
            "scheduler",
            script.line_of(*script.options),
            f"these directives are for {TITLES[script.scheduler]}, but the scheduler of site `{site.name}` is "
            f"{TITLES.get(site.scheduler.name, 'none')}",
            f"`provision job KIND --site {site.typed}` writes a script with the directives of the site",
        )
        return
    if site.scheduler.name == "pbs":
        if "umask" not in "".join(line.text for line in script.lines):
            yield fault(
                script,
                "umask",
                (1, ""),
                "PBS starts jobs with umask 0077, so no other user can read the files that the job writes",
                "`umask 022`",
            )
        if not re.search(r"cd \"?\$\{?(PBS_O_WORKDIR|submit_folder)", script.text):
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
    if arch is None:
        return
    yield from _refused(script, site, arch)
    yield from _threads(script, site, arch)


def _refused(script: JobScript, site: Site, arch: Arch) -> Iterator[Finding]:
    """The directives that the scheduler or the profile would refuse."""

    def value_of(*keys: str) -> str | None:
        return next((script.options[key].value for key in keys if key in script.options), None)

    time, memory = value_of("time") or "0", value_of("mem-per-cpu") or ""
    filesystems = value_of("filesystems", "licenses")
    requested = Job(
        time=time if TIME.fullmatch(time) else "0",
        partition=value_of("partition"),
        constraint=value_of("constraint", "attrs", "system"),
        account=value_of("account"),
        qos=value_of("qos"),
        exclusive=True,
        cpus_per_task=0,
        options=tuple(f"--{key}" for key in script.options),  # options that no other field holds: `--mem`
        filesystems=tuple(filesystems.replace(":", ",").split(",")) if filesystems else (),
        memory=memory if MEMORY.fullmatch(memory) else None,
    )
    shape = Shape(
        nodes=script.number("nodes") or 1,
        ranks_per_node=ranks_per_node(script),
        cpus_per_rank=script.number("cpus-per-task") or 0,
        gpus_per_node=gpus_of(script),
    )
    batch = batch_for(site, arch, shape, name="", job=requested)
    stated = {
        "memory": ("mem", "mem-per-cpu"),
        "filesystems": ("filesystems", "licenses"),
        "gpus": ("gres", "gpus", "gpus-per-node", "gpus-per-task"),
        "cpus": ("cpus-per-task",),
        "time": ("time",),
        "constraint": ("constraint", "attrs", "system"),
    }
    for problem in refusals(site, arch, batch):
        keys = stated.get(problem.subject, (problem.subject,))
        yield fault(script, problem.subject, script.line_of(*keys), problem.message, str(problem.hint))
    node, whole = arch.node, value_of("mem") or ""
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


def _threads(script: JobScript, site: Site, arch: Arch) -> Iterator[Finding]:
    """The threads must fit the node, and must not be set if a module of the site sets them."""
    values = {
        name: (number, script.variables[name][1])
        for name in (OMP, INTER, INTRA)
        if name in script.variables and (number := whole_number(script.variables[name][0])) is not None
    }
    ranks = ranks_per_node(script)
    for _, launcher, words in script.started():
        each = re.search(r"(?:^|\s)(?:-N|--ppn)[ =](\d{1,15})(?=\s|$)", " ".join(words)) if launcher != "srun" else None
        ranks = int(each[1]) if each else ranks
    if OMP in values and arch.threads.owner == "module":
        yield fault(
            script,
            "omp-owner",
            (values[OMP][1], f"{OMP}={values[OMP][0]}"),
            f"the modules of `{site.name}` set it; another value uses too few or too many threads of the node",
            "remove this line",
        )
    if arch.node is None:
        return
    if OMP in values and values[OMP][0] * ranks > arch.node.threads:
        yield fault(
            script,
            "threads",
            (values[OMP][1], f"{OMP}={values[OMP][0]}"),
            f"{ranks} ranks × {values[OMP][0]} threads, but a node has {arch.node.threads} threads",
            f"set `{OMP}={arch.node.threads // ranks}` or less",
        )
    if INTER in values and INTRA in values:
        reason = explain_too_many_threads(arch.node, ranks, values[INTER][0], values[INTRA][0])
        if reason:
            yield fault(
                script,
                "threads",
                (values[INTRA][1], f"{INTRA}={values[INTRA][0]}"),
                reason,
                f"lower `{INTER}` or `{INTRA}`",
            )
    if OMP in values and INTRA in values and values[OMP][0] != values[INTRA][0]:
        yield fault(
            script,
            "intra-omp",
            (values[INTRA][1], f"{INTRA}={values[INTRA][0]}"),
            f"TensorFlow's intra pool differs from the {values[OMP][0]} threads of OpenMP",
            f"`{INTRA}={values[OMP][0]}`",
        )
