"""What stands in the way of a build, all of it at once, each with its fix. Pure: it judges facts."""

from __future__ import annotations

from provision.errors import ConfigError
from provision.knowledge.cuda import CPU_PACKAGES, cuda_of, same_major
from provision.knowledge.targets import is_foreign, missing_features
from provision.model.facts import Facts, Place
from provision.model.plan import Plan
from provision.model.problem import Problem
from provision.model.request import Request
from provision.profile.site import Site

# A TensorFlow environment, its build folder and its wheel, with room to spare (measured: 1.4 GB and 23,000 files).
NEEDED_BYTES = 3_000_000_000
NEEDED_INODES = 40_000
LEFT_WHEN_INSTALLED = 0.2


def refuse_runtime(site: Site) -> None:
    """Raise for a site where our environments are not how TensorFlow is run.

    Raises:
        ConfigError: its profile says that containers are.
    """
    if "venv" not in site.runtimes:
        raise ConfigError(
            f"site `{site.name}` runs TensorFlow by {' or '.join(site.runtimes)}; provision builds virtual environments",
            evidence=[f"`runtimes` in `{site.origin}`"],
            hint=f"`provision job single --site {site.typed}` writes jobs for it; or add `venv` to `runtimes`",
        )


def cpu_problem(request: Request, facts: Facts) -> Problem | None:
    """Why this machine's CPU cannot run what is built for the arch, if it cannot."""
    target = facts.cpu.target if request.arch.target == "native" else request.arch.target
    if request.site.scheduler.script_on == "service-node" and facts.job is not None:
        return None  # the script's node is of another kind by design; what needs the arch's CPU goes by the launcher
    foreign, missing = is_foreign(target, facts.cpu.target), missing_features(target, facts.cpu.features)
    if not foreign and not missing:
        return None
    hint = f"set `archs.{request.arch.name}.target` in `{request.site.origin}` to what the node has"
    if request.site.scheduler.name != "none" and facts.job is None:
        hint = f"build on a node of the arch: `{_submit(request)}`"
    return Problem(
        kind="mismatch",
        subject="cpu",
        message=f"the CPU of `{facts.host}` cannot run what is built for `{target}`",
        evidence=(*(() if foreign else (f"it lacks: {' '.join(missing)}",)), f"it is: {facts.cpu.target}"),
        hint=hint,
    )


def gpu_problems(request: Request, facts: Facts) -> tuple[Problem, ...]:
    """Why this framework cannot use the GPUs of the arch with the CUDA that is here; none on a CPU arch."""
    framework, arch, stack = request.stack.framework, request.arch, request.stack
    if arch.gpu is None or facts.gpu is None:
        return ()
    if framework.package in CPU_PACKAGES:
        return (
            Problem(
                kind="mismatch",
                subject="framework",
                message=f"arch `{arch.name}` has GPUs, and the stack `{stack.name}` installs `{framework.package}`, "
                "which never uses one",
                evidence=("a Horovod built for GPUs cannot even be loaded beside it: undefined symbols",)
                if stack.horovod
                else (),
                hint=f"`--stack {stack.name}-gpu`, or another stack whose `framework.package` is `tensorflow`",
            ),
        )
    built_with = cuda_of(framework.version)
    if built_with is None or same_major(built_with, facts.gpu.cuda_version):
        return ()
    return (
        Problem(
            kind="mismatch",
            subject="cuda",
            message=f"`{framework.package}` {framework.version} is built with CUDA {built_with}, and CUDA here is "
            f"{facts.gpu.cuda_version}: the major versions must be the same",
            evidence=(f"CUDA: {facts.gpu.cuda_home}",),
            hint=f"load a CUDA {built_with.split('.')[0]} module: change `archs.{arch.name}.modules` in "
            f"`{request.site.origin}`",
        ),
    )


def _submit(request: Request) -> str:
    return f"provision build --site {request.site.typed} --arch {request.arch.name} --submit"


def blockers(request: Request, facts: Facts, *, installed: bool = False) -> tuple[Problem, ...]:
    """What stops this machine from building the environment itself, though it can plan it.

    `installed`: the large part of it is already there, from a run that did not come to its end.
    """
    problem = cpu_problem(request, facts)
    found = [problem] if problem else []
    if request.site.scheduler.name != "none" and facts.job is None:
        name = request.site.scheduler.name
        found.append(
            Problem(
                kind="outside-job",
                subject="job",
                message=f"site `{request.site.name}` builds inside a {name} job, and this is none",
                hint=f"`{_submit(request)}`",
            )
        )
    return (*found, *place_problems(facts.place, installed=installed))


def network_problems(request: Request, plan: Plan) -> tuple[Problem, ...]:
    """Why the nodes that build cannot have what they need, if they cannot: no network, and not fetched before."""
    network = request.site.network
    reach = network.login if request.site.scheduler.name == "none" else network.compute
    if reach != "no" or not plan.asks_network:
        return ()
    return (
        Problem(
            kind="missing",
            subject="network",
            message=f"the nodes of site `{request.site.name}` have no network, and not everything is fetched",
            evidence=tuple(f"not fetched: {name}" for name in plan.not_fetched),
            hint=f"where there is network: `provision fetch --site {request.site.typed} --arch {request.arch.name} "
            f"--stack {request.stack.name}`",
        ),
    )


def place_problems(place: Place, *, installed: bool = False) -> tuple[Problem, ...]:
    """Whether the file system of the root can take an environment."""
    elsewhere = "`export PROVISION_ROOT=…` to another file system"
    if not place.writable:
        return (
            Problem(
                kind="not-writable",
                subject="root",
                message=f"`{place.path}` cannot be written",
                hint="`export PROVISION_ROOT=…` to a folder of yours, or set `root` in the site's file",
            ),
        )
    found = []
    share = LEFT_WHEN_INSTALLED if installed else 1
    if place.free_bytes < NEEDED_BYTES * share:
        left, need = f"{place.free_bytes / 1e9:.1f} GB", f"{NEEDED_BYTES * share / 1e9:.1g} GB"
        found.append(
            Problem(
                kind="no-space",
                subject="root",
                message=f"the file system of `{place.path}` has {left} left; an environment needs {need}",
                hint=f"`df -h {place.path}`; free some, or {elsewhere}",
            )
        )
    if place.free_inodes is not None and place.free_inodes < NEEDED_INODES * share:
        left, need = str(place.free_inodes), f"{NEEDED_INODES * share:.0f}"
        found.append(
            Problem(
                kind="no-space",
                subject="root",
                message=f"the file system of `{place.path}` has {left} inodes left; an environment needs {need}",
                hint=f"`df -i {place.path}`; free some, or {elsewhere}",
            )
        )
    return tuple(found)
