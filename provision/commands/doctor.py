"""`provision doctor`: check the requirements of a build and print fixes for faults. Read-only; exit 1 if a check fails."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from provision.commands.shared.environments import read_store
from provision.commands.shared.hints import complete_with
from provision.commands.shared.outcome import Args, Outcome
from provision.commands.shared.target import Target, describe_own_files, make_target
from provision.errors import EXIT_FAILED, EXIT_OK, CommandError, ConfigError, Fault, ProvisionError, StoreError
from provision.jobs.on_cluster import misfits
from provision.jobs.scheduler_request import batch_for
from provision.machine.configuration import shipped
from provision.machine.configuration.search_path import unused_here
from provision.machine.network import ask_index
from provision.machine.network.data_files import choose_data
from provision.machine.probes.ask_scheduler import cluster, family_of_launcher, mpi_types
from provision.machine.probes.probe_gpu import has_gpu
from provision.machine.probes.provided import look_at_container, provided_faults
from provision.machine.root.completing import needed_subject
from provision.machine.root.store import Store
from provision.machine.root.usable import unusable
from provision.model.check import Check, State, observed
from provision.model.facts import Facts
from provision.planning.preflight import closed_faults, cpu_faults, gpu_faults, library_faults, place_faults
from provision.profile.arch import Arch
from provision.profile.site import Site
from provision.proof.proof_shape import proof_shape
from provision.schedulers import TITLES
from provision.wording import count


def run(args: Args) -> Outcome:
    """Check everything that a build needs."""
    site = shipped.load_site(args.site)
    checks = [observed("site", "good", f"`{site.name}`: {site.title or site.origin} ({site.origin})")]
    checks += _configuration(make_target(site, args.arch or site.archs[0].name, args.stack), args.stack)
    checks += _scheduler(site, args.stack)
    checks += _root(site)
    checks += look_at_container(site)
    for arch in [site.arch(args.arch)] if args.arch else site.archs:
        checks += [seen for seen in _arch(make_target(site, arch.name, args.stack)) if seen not in checks]
        checks += _provided(site, arch)
    lines, group = [], ""
    for check in checks:
        if check.group != group:
            group = check.group
            lines.append(group)
        lines += [f"  {line}" for line in check.to_lines()]
    bad = sum(check.state == "bad" for check in checks)
    lines += ["", f"{count(bad, 'problem')} found" if bad else "no problems found: a build can start"]
    return Outcome(
        text="\n".join(lines),
        result={"observations": [check.to_observation() for check in checks], "bad": bad},
        exit_code=EXIT_FAILED if bad else EXIT_OK,
    )


def _configuration(target: Target, typed_stack: str | None) -> Iterator[Check]:
    """Which files do not come with the tool, and that those of the working directory are not among them."""
    yield observed("site", "good", f"configuration: {describe_own_files(target.own_files(typed_stack))}")
    for name in unused_here():
        message = f"the folder `{name}/` in the working directory is not searched"
        hint = "`export PROVISION_CONFIG=$PWD` uses it, if you trust everyone who wrote there"
        yield observed("site", "note", message, hint=hint)


def _of(group: str, wrong: Fault | ProvisionError, state: State = "bad") -> Check:
    return observed(group, state, wrong.message, *wrong.evidence, hint=wrong.hint)


# Where a profile says what a job of a build asks for.
KEYS = {"nodes": "proof.nodes", "gpus": "gpu", "cpus": "job.cpus_per_task"}


def _scheduler(site: Site, stack: str | None) -> Iterator[Check]:
    """Check that the scheduler answers, and that it would start the jobs of builds and their ranks."""
    if site.scheduler.name == "none":
        yield observed("scheduler", "good", "none: builds run on this machine")
        return
    title = TITLES[site.scheduler.name]
    try:
        there = cluster(site.scheduler.name)
    except CommandError as error:
        hint = error.hint or f"run this on a machine with {title}"
        yield observed("scheduler", "bad", error.message, *error.evidence, hint=hint)
        return
    kind = "partition" if site.scheduler.name == "slurm" else "queue"
    names = ", ".join(queue.name for queue in there.queues)
    yield observed("scheduler", "good", f"{title} answers" + (f"; {kind}s: {names}" if names else ""))
    for arch in site.archs:
        shape = proof_shape(site, arch, make_target(site, arch.name, stack).stack)
        for fault in misfits(batch_for(site, arch, shape, name="build"), there):
            place = f"archs.{arch.name}.{KEYS.get(fault.subject, f'job.{fault.subject}')}"
            hint = f"set `{place}` in `{site.origin}`" + (f" to `{fault.accepted}`" if fault.accepted else "")
            yield observed("scheduler", "bad", f"arch `{arch.name}`: {fault.message}", *fault.evidence, hint=hint)
    if site.scheduler.name == "slurm":
        yield from _launchers(site, there.mpi)


def _launchers(site: Site, default: str | None) -> Iterator[Check]:
    """Check that srun knows the type of MPI that an arch names, or has one: with a wrong one every rank is rank 0 of 1."""
    by_srun = {
        arch.name: next((one.partition("=")[2] for one in arch.launcher.options if one.startswith("--mpi=")), None)
        for arch in site.archs
        if arch.launcher.name == "srun" and "SLURM_MPI_TYPE" not in dict(arch.environ)
    }
    there = mpi_types() if by_srun else ()
    if any(by_srun.values()) and not there:
        message, hint = "`srun --mpi=list` lists no type of MPI", "run this on a machine with Slurm"
        yield observed("scheduler", "bad", message, hint=hint)
        return
    for name, kind in by_srun.items():
        place = f"set `archs.{name}.launcher.options` in `{site.origin}`"
        if kind is not None and kind not in there:
            message = f"arch `{name}` starts ranks with `srun --mpi={kind}`, which this Slurm does not have"
            yield observed("scheduler", "bad", message, hint=f"{place} to one of {', '.join(there)}")
        elif kind is None and default == "none":
            yield observed(
                "scheduler",
                "note",
                f"arch `{name}` starts ranks with `srun` without `--mpi=`, and this Slurm has no default for it",
                "`MpiDefault` of `scontrol show config` is none: ranks may not find each other",
                hint=f"{place} to the type of the MPI: `--mpi=` and one of {', '.join(there)}",
            )


def _root(site: Site) -> Iterator[Check]:
    """Check that an environment fits below the root, that only its admins may write there, and what users can load."""
    store = read_store(site)
    place = store.place()
    faults = place_faults(place)
    yield from (_of("root", fault) for fault in faults)
    if not faults:
        yield observed("root", "good", f"`{place.path}` can be written, {place.free_bytes / 1e9:.0f} GB left")
    yield from (_of("root", fault) for fault in store.shared.admins.faults())
    try:
        yield from [_of("root", fault, "note") for fault in store.shared.admins.notes()]
    except StoreError as error:
        yield _of("root", error)
    yield from _modules(store, site)


def _modules(store: Store, site: Site) -> Iterator[Check]:
    """Check that each module that users can load leads to what passed its proof."""
    wrong, there = unusable(store), store.pointers()
    for one in wrong:
        hint = complete_with(one.hint or "", needed_subject(store, one.group or None, site))
        yield observed("modules", "bad", f"{one.name}: {one.message}", hint=hint)
    if there and not wrong:
        message = f"the modules that users can load ({len(there)}) lead to what passed its proof"
        yield observed("modules", "good", message)


def _arch(target: Target) -> Iterator[Check]:
    """Check everything that a build for one arch needs."""
    arch, facts = target.arch, target.observe()
    group = f"arch {arch.name}"
    yield from (_of(group, fault) for fault in facts.faults)
    yield from (observed(group, "good", line) for line in _found(facts))
    try:
        yield from _request(target, facts, group)
    except ConfigError as error:
        yield _of(group, error)
    except ProvisionError:
        pass  # the faults that stop the request are checks already
    yield from _index(target, facts)
    node = target.check_node(facts)
    if not any(seen.state != "good" for seen in node):
        yield observed("node", "good", "TMPDIR, variables, limits, glibc and the compiler of this node fit")
    yield from node


def _request(target: Target, facts: Facts, group: str) -> Iterator[Check]:
    """Check what can be checked once the build for an arch can be requested."""
    arch, request = target.arch, target.request(facts)
    yield observed(group, "good", f"lock `{request.lock.path}` matches its input")
    faults = (*gpu_faults(request, facts), *library_faults(request), *closed_faults(request, facts))
    yield from (_of(group, fault) for fault in faults)
    yield from _launcher_of_other_mpi(target, facts, group)
    if arch.gpu and not has_gpu():
        yield observed(
            group,
            "note",
            f"`{facts.host}` has no GPU: it can build for arch `{arch.name}`, but not run the proof",
            "no device files /dev/nvidia0 and so on",
            hint="run the build on a node with the arch's GPUs",
        )
    wrong = cpu_faults(request, facts)
    # A login node may have another CPU; on the node itself this makes the build fail.
    elsewhere = target.site.scheduler.name != "none" and facts.job is None
    yield from (_of(group, fault, "note" if elsewhere else "bad") for fault in wrong)
    if not wrong:
        yield observed(group, "good", f"this CPU runs what is built for `{arch.target}`")
    data = choose_data(Path(target.store.layout.data), f"{request.programs_folder}/x")
    yield observed(group, "good", f"the proof trains on {data.name} (`{data.path}`)")


def _launcher_of_other_mpi(target: Target, facts: Facts, group: str) -> list[Check]:
    """A launcher of another MPI than the compiler wrapper: each rank would be rank 0 of 1."""
    arch = target.arch
    name, mpi = arch.launcher.name, facts.mpi
    if name not in ("mpiexec", "mpirun") or mpi is None or arch.mpi.provider != "site":
        return []
    family = family_of_launcher(name, facts.environ)
    if family in (None, mpi.family):
        return []
    message = f"`{name}` is of {family}, but `{mpi.cxx}` compiles for {mpi.family}: each rank would be rank 0 of 1"
    hint = f"load the modules of one MPI: `archs.{arch.name}.modules` in `{target.site.origin}`"
    return [observed(group, "bad", message, hint=hint)]


def _index(target: Target, facts: Facts) -> list[Check]:
    """Ask the package index for one file, if a build or `provision fetch` on this machine would."""
    network = target.site.network
    reach = network.compute if facts.job else network.login
    try:
        request, fetched = target.request(facts), target.store.downloads.fetched()
    except ProvisionError:
        return []  # what stops the request is an check already
    if reach == "no" or {lock.sha256 for lock in request.locks} <= fetched.keys():
        return []
    seen = ask_index.ask_index(facts, request.lock, dict(network.environ) if reach == "proxy" else {})
    return [seen] if seen else []


def _provided(site: Site, arch: Arch) -> list[Check]:
    """Check that the site's own modules with a framework can be loaded: jobs with `--runtime modules` do that after queueing."""
    if not arch.provided or site.modules.name == "none":
        return []
    group, faults = f"arch {arch.name}", provided_faults(site, arch)
    loaded = observed(group, "good", f"the site's modules {' '.join(arch.provided)} load")
    return [_of(group, fault) for fault in faults] or [loaded]


def _found(facts: Facts) -> list[str]:
    lines = [f"modules {' '.join(facts.modules)} load"] if facts.modules and facts.python else []
    if facts.python:
        lines.append(f"Python {facts.python.version} (`{facts.python.executable}`)")
    if facts.compiler:
        lines.append(f"{facts.compiler.family} {facts.compiler.version} (`{facts.compiler.cxx}`)")
    if facts.mpi:
        lines.append(f"{facts.mpi.family} {facts.mpi.version} (`{facts.mpi.cxx}`)")
    if facts.gpu:
        lines.append(f"CUDA {facts.gpu.cuda_version} (`{facts.gpu.cuda_home}`)")
        if facts.gpu.nccl_version:
            lines.append(f"NCCL {facts.gpu.nccl_version} (`{facts.gpu.nccl_library}`)")
    lines.append(
        f"packages are installed by uv (`{facts.uv}`)"
        if facts.uv
        else "packages are installed by pip: there is no uv on PATH"
    )
    return lines
