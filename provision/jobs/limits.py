"""What a site accepts: what its jobs must and must not ask for, the limits of its queues, the shape of its nodes. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from provision.errors import ConfigError, Fault, FaultKind, raise_faults
from provision.launch.rank_threads import cpus_of_node
from provision.model.batch import Batch, to_clock, to_seconds
from provision.profile.arch import Arch
from provision.profile.patterns import NAME
from provision.profile.site import Site
from provision.schedulers.short_options import option_name
from provision.wording import count, nearest, nearest_name

# The options with which a profile may give these keys itself; any other key is the long name of its option.
OPTIONS = {
    "constraint": ("constraint", "attrs"),
    "filesystems": ("licenses", "-l filesystems"),
    "memory": ("mem", "mem-per-cpu"),
    "time": ("time", "-l walltime"),
}


def says(batch: Batch, word: str, *, typed: bool = True) -> bool:
    """Whether a job has this key of `[archs.<arch>.job]`, as one of its options or, if `typed`, as a value."""
    options = (*batch.scheduler.options, *batch.options, *batch.extra)
    names = {option_name(one, batch.scheduler.name) for one in options if one.strip()}
    return (typed and bool(getattr(batch, word))) or not names.isdisjoint(OPTIONS.get(word, (word,)))


def beyond(
    batch: Batch, queue: str, *, most: int | None, least: int, time_s: int | None
) -> Iterator[tuple[str, str, str, object]]:
    """What of a job is beyond the limits of a queue: the subject, the key of that limit, the message, and what fits."""
    nodes = f"the job has {count(batch.nodes, 'node')}, but {queue} takes"
    if most is not None and batch.nodes > most:
        yield "nodes", "most_nodes", f"{nodes} {most} at most", most
    if batch.nodes < least:
        yield "nodes", "least_nodes", f"{nodes} {least} at least", least
    if time_s is not None and to_seconds(batch.time) > time_s:
        asked, longest = to_clock(to_seconds(batch.time)), to_clock(time_s)
        yield "time", "time", f"the job asks for {asked}, but {queue} gives {longest} at most", longest


def _refusal(
    site: Site, kind: FaultKind, subject: str, message: str, path: str, hint: str, accepted: object = None
) -> Fault:
    """A fault whose evidence is the profile's value at this key path, with the page that it came from."""
    source, value = site.source(path), None if accepted is None else str(accepted)
    evidence = f"`{path}` in `{site.origin}`" + (f" ({source})" if source else "")
    return Fault(kind, subject, message, evidence=(evidence,), hint=hint, accepted=value)


def _names(site: Site, arch: Arch, batch: Batch) -> Iterator[Fault]:
    """The names that a user types go into directives: a line break in one would start another directive."""
    for word, thing, option in (
        ("account", "an account", "--account"),
        ("partition", "a queue", "--queue"),
        ("qos", "a queue", "--queue"),
    ):
        value = getattr(batch, word)
        if value is not None and not NAME.fullmatch(value):
            message = f"{value!r} is not a valid name of {thing}"
            yield Fault(
                "name", word, message, evidence=(f"names have the form {NAME.pattern}",), hint=f"`{option} NAME`"
            )


def _words(site: Site, arch: Arch, batch: Batch) -> Iterator[Fault]:
    """What the site requires of every job, and what it forbids."""
    where = f"archs.{arch.name}.job"
    for word in site.scheduler.required:
        if not says(batch, word):
            yield _refusal(
                site,
                "missing",
                word,
                f"site `{site.name}` requires `{word}` for every job, but none was given",
                "scheduler.required",
                f'`--account ACCOUNT`, or `{where}.account = "…"` in `{site.origin}`'
                if word == "account"
                else f"set `{where}.{word}` in `{site.origin}`",
            )
    for word in site.scheduler.forbidden:
        if says(batch, word):
            yield _refusal(
                site,
                "forbidden",
                word,
                f"site `{site.name}` forbids `{word}` in a job, but this one has `{getattr(batch, word) or word}`",
                "scheduler.forbidden",
                f"take `{where}.{word}` out of `{site.origin}`"
                if getattr(arch.job, word, None)
                else f"leave `--{'queue' if word == 'partition' else word}` out",
            )


def _unknown_queue(site: Site, arch: Arch, batch: Batch) -> Iterator[Fault]:
    """A queue must be one that the profile lists, if it lists any: the scheduler would refuse a name that is not one."""
    known = tuple(
        dict.fromkeys(name for name in (*(one.name for one in arch.queues), arch.job.partition, arch.job.qos) if name)
    )
    for name in (batch.partition, batch.qos):
        if not arch.queues or name is None or name in known or not NAME.fullmatch(name):
            continue
        others = [one.name for one in site.archs if name in [queue.name for queue in one.queues]]
        near = nearest_name(name, known)
        yield _refusal(
            site,
            "missing",
            "partition" if name == batch.partition else "qos",
            f"the profile of `{site.name}` has no queue `{name}` for arch `{arch.name}`{nearest(name, known)}",
            f"archs.{arch.name}.queues",
            f"`--arch {others[0]}`"
            if others
            else f"`--queue {near or known[0]}`, or add `archs.{arch.name}.queues.{name} = {{}}` to `{site.origin}`",
        )


def _queue(site: Site, arch: Arch, batch: Batch) -> Iterator[Fault]:
    """Nodes, time and kind of node against those of the job's queue."""
    for queue in arch.queues_of(batch.partition, batch.qos):
        place, other = f"archs.{arch.name}.queues.{queue.name}", "or another queue: `--queue QUEUE`"
        time = queue.time_for(batch.nodes)
        most, least, time_s = queue.most_nodes, queue.least_nodes, to_seconds(time) if time else None
        limits = beyond(batch, f"queue `{queue.name}`", most=most, least=least, time_s=time_s)
        for subject, key, message, fits in limits:
            yield _refusal(site, "limit", subject, message, f"{place}.{key}", f"`--{subject} {fits}`, {other}", fits)
        asked, nodes_have = _attributes(batch.constraint), _attributes(queue.constraint)
        for name in sorted(asked.keys() & nodes_have.keys()):
            if asked[name] != nodes_have[name]:
                yield _refusal(
                    site,
                    "limit",
                    "constraint",
                    f"the job asks for `{name}={asked[name]}`, but the nodes of queue `{queue.name}` have "
                    f"`{name}={nodes_have[name]}`",
                    f"{place}.constraint",
                    f"ask for `{queue.constraint}`, {other}",
                    queue.constraint,
                )


def _node(site: Site, arch: Arch, batch: Batch) -> Iterator[Fault]:
    """GPUs, CPUs and memory against what a node has."""
    gpus = f"the job has {count(batch.gpus_per_node, 'GPU')} on each node"
    if batch.gpus_per_node and arch.gpu is None:
        with_gpus = " or ".join(f"`--arch {other.name}`" for other in site.archs if other.gpu)
        yield Fault(
            "missing",
            "gpus",
            f"{gpus}, but arch `{arch.name}` has none",
            evidence=(f"`archs.{arch.name}.gpu` is not in `{site.origin}`",),
            hint=f"leave `--gpus` out, or {with_gpus}" if with_gpus else "leave `--gpus` out",
        )
    if arch.gpu is not None and batch.gpus_per_node > arch.gpu.per_node:
        yield _refusal(
            site,
            "limit",
            "gpus",
            f"{gpus}, but arch `{arch.name}` has {arch.gpu.per_node}",
            f"archs.{arch.name}.gpu.per_node",
            f"`--gpus {arch.gpu.per_node}`, and more nodes",
            arch.gpu.per_node,
        )
    if arch.node is None:
        return
    cpus, memory, most = cpus_of_node(site, arch), memory_gib(batch), arch.node.memory_gb
    if batch.cpus_per_rank * batch.ranks_per_node > cpus:
        ranks = f"{count(batch.ranks_per_node, 'rank')} of {count(batch.cpus_per_rank, 'CPU')}"
        yield _refusal(
            site,
            "limit",
            "cpus",
            f"the job has {ranks} on each node, but a node has {cpus}",
            f"archs.{arch.name}.node.cores",
            f"`--cpus {cpus // batch.ranks_per_node}`",
            max(1, cpus // batch.ranks_per_node),
        )
    if most and memory > most:
        yield _refusal(
            site,
            "limit",
            "memory",
            f"the job asks for {memory:g} GiB of memory on each node, but a node has {most} GiB",
            f"archs.{arch.name}.node.memory_gb",
            f"`--memory` asks for less for each CPU; the default is `archs.{arch.name}.job.memory` in `{site.origin}`",
            f"{max(1, most // max(1, batch.ranks_per_node * batch.cpus_per_rank))}G",
        )


def _attributes(constraint: str | None) -> dict[str, str]:
    """The parts `name=value` of a constraint: `mcdram=flat:numa=quad`."""
    return {name: value for name, found, value in (p.partition("=") for p in (constraint or "").split(":")) if found}


def refusals(site: Site, arch: Arch, batch: Batch) -> tuple[Fault, ...]:
    """Why the site's scheduler would refuse or never start this job, each with its fix."""
    checks = (_names, _words, _unknown_queue, _queue, _node)
    return tuple(fault for check in checks for fault in check(site, arch, batch))


def memory_gib(batch: Batch) -> float:
    """The memory that a job asks for on each node, in GiB; 0 if it asks for none. Schedulers mean GiB by `G`."""
    if batch.node_memory is None or batch.scheduler.memory == "none":
        return 0
    return int(batch.node_memory[:-1]) * {"M": 1 / 1024, "G": 1, "T": 1024}[batch.node_memory[-1]]


def refuse(site: Site, arch: Arch, batch: Batch) -> None:
    """Raise for a job that the site would not accept.

    Raises:
        ConfigError: the first reason is the message, the others are in its evidence.
    """
    raise_faults(refusals(site, arch, batch), ConfigError, "refused-by-site")
