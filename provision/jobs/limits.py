"""What a site takes: words that its jobs must say or must not, the limits of its queues, the shape of its nodes. Pure."""

from __future__ import annotations

from provision.errors import ConfigError
from provision.model.batch import Batch
from provision.model.problem import Problem, raise_problems
from provision.model.walltime import to_clock, to_seconds
from provision.profile.arch import Arch
from provision.profile.patterns import NAME
from provision.profile.site import Site

# Options by which a site's file may say a word itself.
OPTION_SPELLINGS: dict[str, tuple[str, ...]] = {
    "account": ("--account", "-A"),
    "partition": ("--partition", "-p", "-q"),
    "qos": ("--qos", "-q"),
    "constraint": ("--constraint", "-C", "--attrs"),
    "filesystems": ("-l filesystems", "--licenses", "-L"),
    "memory": ("--mem", "--mem-per-cpu"),
    "time": ("--time", "-t", "-l walltime"),
}


def says(batch: Batch, word: str) -> bool:
    """Whether a job says this word of `[archs.<arch>.job]`, by itself or among its options."""
    options = (*batch.scheduler.options, *batch.options)
    return bool(getattr(batch, word)) or any(one.startswith(OPTION_SPELLINGS[word]) for one in options)


def refusals(site: Site, arch: Arch, batch: Batch) -> tuple[Problem, ...]:
    """Why the site's scheduler would not take or never start this job, each with its fix."""
    where = f"archs.{arch.name}.job"
    # What a person typed goes into a directive: a line break there would be a directive of its own.
    found = [
        Problem(
            kind="name",
            subject=word,
            message=f"{value!r} is no name of {thing}",
            evidence=(f"names have the form {NAME.pattern}",),
            hint=f"`{option} NAME`",
        )
        for word, value, thing, option in (
            ("account", batch.account, "an account", "--account"),
            ("partition", batch.partition, "a queue", "--queue"),
            ("qos", batch.qos, "a queue", "--queue"),
        )
        if value is not None and not NAME.fullmatch(value)
    ]
    found += [
        Problem(
            kind="missing",
            subject=word,
            message=f"site `{site.name}` wants `{word}` of every job, and this one says none",
            evidence=_told(site, "scheduler.required"),
            hint=f'`--account ACCOUNT`, or `{where}.account = "…"` in `{site.origin}`'
            if word == "account"
            else f"set `{where}.{word}` in `{site.origin}`",
        )
        for word in site.scheduler.required
        if not says(batch, word)
    ]
    found += [
        Problem(
            kind="forbidden",
            subject=word,
            message=f"site `{site.name}` wants no `{word}` of a job, and this one says `{getattr(batch, word) or word}`",
            evidence=_told(site, "scheduler.forbidden"),
            hint=f"take `{where}.{word}` out of `{site.origin}`",
        )
        for word in site.scheduler.forbidden
        if says(batch, word)
    ]
    return (*found, *_queue(site, arch, batch), *_node(site, arch, batch))


def _queue(site: Site, arch: Arch, batch: Batch) -> list[Problem]:
    """Nodes and time against the queue's limits."""
    found = []
    for queue in arch.queues:
        if queue.name not in (batch.partition, batch.qos):
            continue
        place = f"archs.{arch.name}.queues.{queue.name}"
        if queue.most_nodes is not None and batch.nodes > queue.most_nodes:
            found.append(
                Problem(
                    kind="limit",
                    subject="nodes",
                    message=f"{batch.nodes} nodes, and queue `{queue.name}` takes {queue.most_nodes} at most",
                    evidence=_told(site, f"{place}.most_nodes"),
                    hint=f"`--nodes {queue.most_nodes}`, or another queue: `--queue QUEUE`",
                )
            )
        if batch.nodes < queue.least_nodes:
            found.append(
                Problem(
                    kind="limit",
                    subject="nodes",
                    message=f"{batch.nodes} nodes, and queue `{queue.name}` takes {queue.least_nodes} at least",
                    evidence=_told(site, f"{place}.least_nodes"),
                    hint=f"`--nodes {queue.least_nodes}`, or another queue: `--queue QUEUE`",
                )
            )
        if queue.time is not None and to_seconds(batch.time) > to_seconds(queue.time):
            most = to_clock(to_seconds(queue.time))
            found.append(
                Problem(
                    kind="limit",
                    subject="time",
                    message=f"a time of {to_clock(to_seconds(batch.time))}, and queue `{queue.name}` gives {most} at most",
                    evidence=_told(site, f"{place}.time"),
                    hint=f"`--time {most}`, or another queue: `--queue QUEUE`",
                )
            )
    return found


def _node(site: Site, arch: Arch, batch: Batch) -> list[Problem]:
    """CPUs, GPUs and memory of a node against what it has."""
    found, node = [], arch.node
    if batch.gpus_per_node and arch.gpu is None:
        with_gpus = [f"`--arch {one.name}`" for one in site.archs if one.gpu]
        found.append(
            Problem(
                kind="missing",
                subject="gpus",
                message=f"{batch.gpus_per_node} GPUs on each node, and arch `{arch.name}` has none",
                evidence=(f"`archs.{arch.name}.gpu` is not in `{site.origin}`",),
                hint=f"leave `--gpus` out, or {' or '.join(with_gpus)}" if with_gpus else "leave `--gpus` out",
            )
        )
    if arch.gpu is not None and batch.gpus_per_node > arch.gpu.per_node:
        found.append(
            Problem(
                kind="limit",
                subject="gpus",
                message=f"{batch.gpus_per_node} GPUs on each node, and arch `{arch.name}` has {arch.gpu.per_node}",
                evidence=_told(site, f"archs.{arch.name}.gpu.per_node"),
                hint=f"`--gpus {arch.gpu.per_node}`, and more nodes",
            )
        )
    if node is None:
        return found
    cpus = node.threads if site.scheduler.cpu == "thread" else node.cores
    if batch.cpus_per_rank * batch.ranks_per_node > cpus:
        found.append(
            Problem(
                kind="limit",
                subject="cpus",
                message=f"{batch.ranks_per_node} ranks of {batch.cpus_per_rank} CPUs on each node, and it has {cpus}",
                evidence=_told(site, f"archs.{arch.name}.node.cores"),
                hint=f"`--cpus {cpus // batch.ranks_per_node}`",
            )
        )
    asked = memory_gb(batch)
    if node.memory_gb and asked > node.memory_gb:
        found.append(
            Problem(
                kind="limit",
                subject="memory",
                message=f"{asked:g} GB of memory on each node, and it has {node.memory_gb}",
                evidence=_told(site, f"archs.{arch.name}.node.memory_gb"),
                hint=f"set `archs.{arch.name}.job.memory` in `{site.origin}` to less",
            )
        )
    return found


def memory_gb(batch: Batch) -> float:
    """The memory that a job asks for on each node, in GB; 0 where it says none."""
    if batch.node_memory is None or batch.scheduler.memory == "none":
        return 0
    return int(batch.node_memory[:-1]) * {"M": 1 / 1024, "G": 1, "T": 1024}[batch.node_memory[-1]]


def refuse(site: Site, arch: Arch, batch: Batch) -> None:
    """Raise for a job that the site would not take.

    Raises:
        ConfigError: the first reason is the message, the others stand in its evidence.
    """
    raise_problems(refusals(site, arch, batch), ConfigError, "refused-by-site")


def _told(site: Site, path: str) -> tuple[str, ...]:
    """The key path of a value, and the page that it came from."""
    source = site.source(path)
    return (f"`{path}` in `{site.origin}`" + (f" ({source})" if source else ""),)
