"""`provision doctor`: check the requirements of a build and print fixes for problems. Read-only; exit 1 if a check fails."""

from __future__ import annotations

import argparse
from pathlib import Path

from provision.commands.shared.environments import read_store
from provision.commands.shared.hints import complete_with
from provision.commands.shared.node import observe_node
from provision.commands.shared.outcome import Outcome
from provision.commands.shared.target import Target, describe_own_files, make_target
from provision.errors import EXIT_FAILED, EXIT_OK, CommandError, ConfigError, ProvisionError, StoreError
from provision.jobs.on_cluster import misfits
from provision.jobs.scheduler_request import batch_for
from provision.machine.configuration import shipped
from provision.machine.configuration.search_path import unused_here
from provision.machine.network import ask_index
from provision.machine.network.data_files import choose_data
from provision.machine.probes.ask_scheduler import cluster, family_of_launcher, mpi_types
from provision.machine.probes.probe_gpu import has_gpu
from provision.machine.probes.provided import look_at_container, provided_problems
from provision.machine.root.completing import needed_subject
from provision.machine.root.store import Store
from provision.machine.root.usable import unusable
from provision.model.facts import Facts
from provision.model.observation import MARKS, Observation, State
from provision.model.problem import Problem
from provision.planning.math_library import library_problems
from provision.planning.preflight import closed_problem, cpu_problem, gpu_problems, place_problems
from provision.profile.arch import Arch
from provision.profile.site import Site
from provision.proof.proof_shape import proof_shape
from provision.schedulers import TITLES
from provision.schedulers.node_kind import Cluster


def run(args: argparse.Namespace) -> Outcome:
    """Check everything that a build needs."""
    site = shipped.load_site(args.site)
    observations = [
        Observation(group="site", state="good", message=f"`{site.name}`: {site.title or site.origin} ({site.origin})")
    ]
    observations += _configuration(make_target(site, args.arch or site.archs[0].name, args.stack), args.stack)
    observations += _scheduler(site, args.stack)
    observations += _root(site)
    observations += look_at_container(site)
    for arch in [site.arch(args.arch)] if args.arch else site.archs:
        observations += [seen for seen in _arch(make_target(site, arch.name, args.stack)) if seen not in observations]
        observations += _provided(site, arch)
    lines, group = [], ""
    for observation in observations:
        if observation.group != group:
            group = observation.group
            lines.append(group)
        lines += [
            f"  {MARKS[observation.state]} {observation.message}",
            *(f"      {line}" for line in observation.evidence),
        ]
        if observation.hint:
            lines.append(f"      hint: {observation.hint}")
    bad = sum(observation.state == "bad" for observation in observations)
    lines += [
        "",
        f"{bad} problem{'s' * (bad != 1)} found" if bad else "no problems found: a build can start",
    ]
    return Outcome(
        text="\n".join(lines),
        result={"observations": [observation.to_dict() for observation in observations], "bad": bad},
        exit_code=EXIT_FAILED if bad else EXIT_OK,
    )


def _configuration(target: Target, typed_stack: str | None) -> list[Observation]:
    """Which files do not come with the tool, and that those of the working directory are not among them."""
    own = target.own_files(typed_stack)
    message = f"configuration: {describe_own_files(own)}"
    observations = [Observation(group="site", state="good", message=message)]
    for name in unused_here():
        observations.append(
            Observation(
                group="site",
                state="note",
                message=f"the folder `{name}/` in the working directory is not searched",
                hint="`export PROVISION_CONFIG=$PWD` uses it, if you trust everyone who wrote there",
            )
        )
    return observations


def _of(group: str, problem: Problem, state: State = "bad") -> Observation:
    return Observation(group=group, state=state, message=problem.message, evidence=problem.evidence, hint=problem.hint)


# Where a profile says what a job of a build asks for.
KEYS = {"nodes": "proof.nodes", "gpus": "gpu", "cpus": "job.cpus_per_task"}


def _scheduler(site: Site, stack: str | None) -> list[Observation]:
    """Check that the scheduler answers, and that it would start the jobs of builds and their ranks."""
    if site.scheduler.name == "none":
        return [Observation(group="scheduler", state="good", message="none: builds run on this machine")]
    title = TITLES[site.scheduler.name]
    try:
        there = cluster(site.scheduler.name)
    except CommandError as error:
        hint = error.hint or f"run this on a machine with {title}"
        return [Observation(group="scheduler", state="bad", message=error.message, evidence=error.evidence, hint=hint)]
    kind = "partition" if site.scheduler.name == "slurm" else "queue"
    names = ", ".join(queue.name for queue in there.queues)
    message = f"{title} answers" + (f"; {kind}s: {names}" if names else "")
    observations = [Observation(group="scheduler", state="good", message=message)]
    for arch in site.archs:
        for problem in _misfits_of_build(site, arch, stack, there):
            place = f"archs.{arch.name}.{KEYS.get(problem.subject, f'job.{problem.subject}')}"
            value = f" to `{problem.accepted}`" if problem.accepted else ""
            observations.append(
                Observation(
                    group="scheduler",
                    state="bad",
                    message=f"arch `{arch.name}`: {problem.message}",
                    evidence=problem.evidence,
                    hint=f"set `{place}` in `{site.origin}`{value}",
                )
            )
    return observations + (_launchers(site, there.mpi) if site.scheduler.name == "slurm" else [])


def _misfits_of_build(site: Site, arch: Arch, stack: str | None, there: Cluster) -> tuple[Problem, ...]:
    """Why the scheduler would refuse or never start the job that builds for an arch. A site without builds has none."""
    shape = proof_shape(site, arch, make_target(site, arch.name, stack).stack)
    return misfits(batch_for(site, arch, shape, name="build"), there)


def _launchers(site: Site, default: str | None) -> list[Observation]:
    """Check that srun knows the type of MPI that an arch names, or has one: with a wrong one every rank is rank 0 of 1."""
    by_srun = {
        arch.name: next((one.partition("=")[2] for one in arch.launcher.options if one.startswith("--mpi=")), None)
        for arch in site.archs
        if arch.launcher.name == "srun" and "SLURM_MPI_TYPE" not in dict(arch.environ)
    }
    there = mpi_types() if by_srun else ()
    if any(by_srun.values()) and not there:
        message, hint = "`srun --mpi=list` lists no type of MPI", "run this on a machine with Slurm"
        return [Observation(group="scheduler", state="bad", message=message, hint=hint)]
    observations = []
    for name, kind in by_srun.items():
        place = f"set `archs.{name}.launcher.options` in `{site.origin}`"
        if kind is not None and kind not in there:
            observations.append(
                Observation(
                    group="scheduler",
                    state="bad",
                    message=f"arch `{name}` starts ranks with `srun --mpi={kind}`, which this Slurm does not have",
                    hint=f"{place} to one of {', '.join(there)}",
                )
            )
        elif kind is None and default == "none":
            observations.append(
                Observation(
                    group="scheduler",
                    state="note",
                    message=f"arch `{name}` starts ranks with `srun` without `--mpi=`, and this Slurm has no default for it",
                    evidence=("`MpiDefault` of `scontrol show config` is none: ranks may not find each other",),
                    hint=f"{place} to the type of the MPI: `--mpi=` and one of {', '.join(there)}",
                )
            )
    return observations


def _root(site: Site) -> list[Observation]:
    """Check that an environment fits below the root."""
    store = read_store(site)
    place = store.place()
    problems = place_problems(place)
    observations = [_of("root", problem) for problem in problems]
    if not problems:
        message = f"`{place.path}` can be written, {place.free_bytes / 1e9:.0f} GB left"
        observations.append(Observation(group="root", state="good", message=message))
    return observations + _admins(store) + _modules(store, site)


def _admins(store: Store) -> list[Observation]:
    """Check that nobody but its admins may write the root, and that all of the admins can."""
    problems = [_of("root", problem) for problem in store.shared.admins.problems()]
    try:
        return problems + [_of("root", problem, "note") for problem in store.shared.admins.notes()]
    except StoreError as error:
        hint, evidence = error.hint, error.evidence
        return [*problems, Observation(group="root", state="bad", message=error.message, evidence=evidence, hint=hint)]


def _modules(store: Store, site: Site) -> list[Observation]:
    """Check that each module that users can load leads to what passed its proof."""
    wrong, there = unusable(store), store.pointers()
    bad = [
        Observation(
            group="modules",
            state="bad",
            message=f"{one.subject}: {one.reason}",
            hint=complete_with(one.hint, needed_subject(store, one.environment, site)),
        )
        for one in wrong
    ]
    message = f"the modules that users can load ({len(there)}) lead to what passed its proof"
    return bad or ([Observation(group="modules", state="good", message=message)] if there else [])


def _arch(target: Target) -> list[Observation]:
    """Check everything that a build for one arch needs."""
    arch, facts = target.arch, target.observe()
    group = f"arch {arch.name}"
    observations = [_of(group, problem) for problem in facts.problems]
    observations += [Observation(group=group, state="good", message=line) for line in _found(facts)]
    try:
        request = target.request(facts)
        observations.append(
            Observation(group=group, state="good", message=f"lock `{request.lock.path}` matches its input")
        )
        observations += [_of(group, problem) for problem in (*gpu_problems(request, facts), *library_problems(request))]
        closed = closed_problem(request, facts)
        observations += [_of(group, closed)] if closed else []
        observations += _launcher_of_other_mpi(target, facts, group)
        if arch.gpu and not has_gpu():
            observations.append(
                Observation(
                    group=group,
                    state="note",
                    message=f"`{facts.host}` has no GPU: it can build for arch `{arch.name}`, but not run the proof",
                    evidence=("no device files /dev/nvidia0 and so on",),
                    hint="run the build on a node with the arch's GPUs",
                )
            )
        problem = cpu_problem(request, facts)
        if problem:
            # A login node may have another CPU; on the node itself this makes the build fail.
            elsewhere = target.site.scheduler.name != "none" and facts.job is None
            observations.append(_of(group, problem, "note" if elsewhere else "bad"))
        else:
            observations.append(
                Observation(group=group, state="good", message=f"this CPU runs what is built for `{arch.target}`")
            )
        data = choose_data(Path(target.store.layout.data), f"{request.programs_folder}/x")
        observations.append(
            Observation(group=group, state="good", message=f"the proof trains on {data.name} (`{data.path}`)")
        )
    except ConfigError as error:
        observations.append(
            Observation(group=group, state="bad", message=error.message, evidence=error.evidence, hint=error.hint)
        )
    except ProvisionError:
        pass  # the problems that stop the request are observations already
    observations += _index(target, facts)
    node = observe_node(target, facts)
    if not any(seen.state != "good" for seen in node):
        message = "TMPDIR, variables, limits, glibc and the compiler of this node fit"
        observations.append(Observation(group="node", state="good", message=message))
    return [*observations, *node]


def _launcher_of_other_mpi(target: Target, facts: Facts, group: str) -> list[Observation]:
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
    return [Observation(group=group, state="bad", message=message, hint=hint)]


def _index(target: Target, facts: Facts) -> list[Observation]:
    """Ask the package index for one file, if a build or `provision fetch` on this machine would."""
    network = target.site.network
    reach = network.compute if facts.job else network.login
    try:
        request, fetched = target.request(facts), target.store.downloads.fetched()
    except ProvisionError:
        return []  # what stops the request is an observation already
    if reach == "no" or {lock.sha256 for lock in request.locks} <= fetched:
        return []
    seen = ask_index.ask_index(facts, request.lock, dict(network.environ) if reach == "proxy" else {})
    return [seen] if seen else []


def _provided(site: Site, arch: Arch) -> list[Observation]:
    """Check that the site's own TensorFlow modules can be loaded: jobs with `--runtime modules` do that after queueing."""
    if not arch.provided or site.modules.name == "none":
        return []
    group, problems = f"arch {arch.name}", provided_problems(site, arch)
    loaded = Observation(group=group, state="good", message=f"the site's modules {' '.join(arch.provided)} load")
    return [_of(group, problem) for problem in problems] or [loaded]


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
