"""Everything that would make a build fail, each with its fix, and the space that a build needs. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from provision.errors import ConfigError, Fault, one_fault
from provision.knowledge.cuda import gpu_obstacle, same_major
from provision.knowledge.frameworks import FRAMEWORKS, TITLES, clash_of
from provision.knowledge.frameworks.interface import REPORTED
from provision.knowledge.targets import family_of, is_foreign, missing_features
from provision.model.facts import Facts, Folder
from provision.model.lock import Pin
from provision.model.plan import Plan
from provision.model.quoting import quote_sh
from provision.model.request import Request
from provision.planning.identity import required_library
from provision.profile.site import Site
from provision.profile.stack import Stack


@dataclass(frozen=True, slots=True, kw_only=True)
class Space:
    """Bytes and files that a build needs. `source` says, as a phrase, what they were estimated from."""

    size: int
    files: int
    source: str


# If nothing is known, by framework, with a reserve. TensorFlow with its build folder and its wheel (measured: 1.7 GB and 29,000
# files); PyTorch with CUDA's libraries (measured: 5.8 GB and 25,600 files).
USUAL = {
    "tensorflow": Space(size=3_000_000_000, files=40_000, source="what environments of TensorFlow usually need"),
    "pytorch": Space(size=8_000_000_000, files=35_000, source="what environments of PyTorch usually need"),
}


def usual_space(stack: Stack) -> Space:
    """What environments of a stack usually need: the sum over its frameworks."""
    parts, titles = [USUAL[one.name] for one in stack.frameworks], [one.title for one in stack.frameworks]
    return Space(
        size=sum(part.size for part in parts),
        files=sum(part.files for part in parts),
        source=f"what environments of {' and '.join(titles)} usually need",
    )


# The source of Horovod 0.28.1 has 24 MB in 3,726 files; the objects, the library and the wheel are the rest.
COMPILATION = (150_000_000, 5_000)
# What was unpacked elsewhere, blocks that are not full, records and logs.
MARGIN = 1.1
# The bytecode of 3,519 modules of Python 3.11 was 1.23 times as large as their source.
BYTECODE = 1.25


def space_of_wheels(wheels: int, size: int, files: int, modules: int, modules_size: int, *, compiles: bool) -> Space:
    """What unpacked wheels need: `files` with `size` bytes, of which `modules` get bytecode."""
    more = COMPILATION if compiles else (0, 0)
    return Space(
        size=int((size + modules_size * BYTECODE + more[0]) * MARGIN),
        files=int((files + modules + more[1]) * MARGIN),
        source=f"the content of {wheels} fetched wheels",
    )


def space_of_earlier(environment: str, size: int, files: int, *, compiles: bool) -> Space:
    """What another environment of the same stack takes, with a build folder: its tools are wheels with some hundred files."""
    more = (COMPILATION[0] * 2, COMPILATION[1] * 2) if compiles else (0, 0)
    return Space(
        size=int((size + more[0]) * MARGIN),
        files=int((files + more[1]) * MARGIN),
        source=f"the size of `{environment}`",
    )


def size_text(size: float) -> str:
    """Bytes for people: `2.1 GB`, `40 MB`."""
    return f"{size / 1e9:.1f} GB" if size >= 1e9 else f"{size / 1e6:.0f} MB"


# Of the space of a whole build, if the packages are installed.
LEFT_WHEN_INSTALLED = 0.2


def refuse_runtime(site: Site) -> None:
    """Raise for a site that does not run frameworks in virtual environments.

    Raises:
        ConfigError: the profile's `runtimes` do not include `venv`.
    """
    if "venv" not in site.runtimes:
        raise ConfigError(
            f"site `{site.name}` runs {TITLES} with {' or '.join(site.runtimes)}, but provision builds virtual environments",
            evidence=[f"`runtimes` in `{site.origin}`"],
            hint=f"`provision job single --site {site.typed}` writes jobs for it; or add `venv` to `runtimes`",
        )


def cpu_faults(request: Request, facts: Facts) -> tuple[Fault, ...]:
    """Why this machine's CPU cannot run what is built for the arch, if it cannot."""
    target = facts.target_of(request.arch.target)
    if request.site.scheduler.script_on == "service-node" and facts.job is not None:
        return ()  # the script runs on a node of another kind; the launcher starts what needs the arch's CPU
    foreign, missing = is_foreign(target, facts.cpu.target), missing_features(target, facts.cpu.features)
    if not foreign and not missing:
        return ()
    hint = f"set `archs.{request.arch.name}.target` in `{request.site.origin}` to the CPU of the node"
    if request.site.scheduler.name != "none" and facts.job is None:
        hint = f"build on a node of the arch: `{_submit(request)}`"
    return one_fault(
        "mismatch",
        "cpu",
        f"the CPU of `{facts.host}` cannot run what is built for `{target}`",
        *(() if foreign else (f"missing instruction sets: {' '.join(missing)}",)),
        f"its CPU: {facts.cpu.target}",
        hint=hint,
    )


def image_faults(request: Request) -> tuple[Fault, ...]:
    """Why no image can be made of this environment, although the arch wants one."""
    arch = request.arch
    if arch.deliver == "files" or request.stack.backend == "venv":
        return ()
    return one_fault(
        "mismatch",
        "deliver",
        "an environment of Spack cannot be packed into an image: its files are links into Spack's store",
        f"`archs.{arch.name}.deliver` in `{request.site.origin}`",
        hint='`--backend venv`, or set `deliver = "files"` for the arch',
    )


def gpu_faults(request: Request, facts: Facts) -> tuple[Fault, ...]:
    """Why this framework cannot use the GPUs of the arch with this machine's CUDA, or why an arch without GPUs cannot use it."""
    framework, arch, stack, origin = request.stack.framework, request.arch, request.stack, request.site.origin
    mismatch = partial(one_fault, "mismatch")
    if arch.gpu is None and stack.gpus:
        with_gpus = [f"`--arch {other.name}`" for other in request.site.archs if other.gpu]
        return mismatch(
            "gpus",
            f"the stack `{stack.name}` is for GPUs, but arch `{arch.name}` has none",
            f"`gpus` in the stack; `archs.{arch.name}.gpu` is not in `{origin}`",
            f"it would be published as `{stack.module}` and replace an environment for CPUs of that name",
            hint=" or ".join([*with_gpus, f"`--stack {stack.name.replace('-gpu', '')}`"]),
        )
    others = other_frameworks(request)
    if others:
        return others
    if arch.gpu is None:
        return ()
    if len(stack.frameworks) > 1:
        return mismatch(
            "frameworks",
            f"{' and '.join(one.title for one in stack.frameworks)} in one environment were tried on CPUs only, "
            f"but arch `{arch.name}` has GPUs",
            f"stack `{stack.name}`",
            hint="use a stack of one of them; `provision stack list` shows all",
        )
    if framework.for_cpus:
        for_gpus = "tensorflow-2.15.1-gpu" if stack.name.endswith("-intel") else f"{stack.name}-gpu"
        for_gpus = stack.name.removesuffix("-cpu") if framework.interface.brings else for_gpus
        return mismatch(
            "framework",
            f"arch `{arch.name}` has GPUs, but the stack `{stack.name}` installs `{framework.package}` {framework.version}, "
            "which never uses them",
            *(("a Horovod built for GPUs cannot be loaded with it: undefined symbols",) if stack.horovod else ()),
            hint=f"`--stack {for_gpus}`, or another one of `provision compat --site {request.site.typed} --arch {arch.name}`",
        )
    target = facts.target_of(arch.target)
    obstacle = gpu_obstacle(framework.interface, framework.version, family_of(target, target), arch.gpu.capabilities)
    if obstacle and obstacle[1]:
        return mismatch(
            "gpus",
            f"`{framework.package}` {framework.version} {obstacle[0]}",
            f"`archs.{arch.name}.target` and `.gpu.capabilities` in `{origin}`",
            hint=f"`provision compat --site {request.site.typed} --arch {arch.name}` shows which stacks work; "
            'or run an image of the GPU\'s vendor (`runtimes = ["container"]`)',
        )
    built_with = framework.interface.cuda_of(framework.version)
    if built_with is None or facts.gpu is None or same_major(built_with, facts.gpu.cuda_version):
        return ()
    return mismatch(
        "cuda",
        f"`{framework.package}` {framework.version} is built with CUDA {built_with}, but this machine has CUDA "
        f"{facts.gpu.cuda_version}: the major versions must be the same",
        f"CUDA: {facts.gpu.cuda_home}",
        hint=f"load a CUDA {built_with.split('.')[0]} module: change `archs.{arch.name}.modules` in `{origin}`",
    )


def library_faults(request: Request) -> tuple[Fault, ...]:
    """Why the framework of the stack cannot compute with the library that is required, if it cannot."""
    arch, stack = request.arch, request.stack
    required, framework = required_library(arch, stack), stack.framework
    if required is None or framework.interface.has_onednn(framework.package, framework.version):
        return ()
    name = REPORTED[required]
    if stack.math is None:
        who, where = f"arch `{arch.name}`", f"`archs.{arch.name}.math` in `{request.site.origin}`"
        hint = "`--stack tensorflow-1.15.2-intel`, or a stack of TensorFlow 2.5 or newer"
    else:
        who, where = f"the stack `{stack.name}`", f"`math` in the stack `{stack.name}`"
        hint = "set `framework.package` to `intel-tensorflow`, or remove the key `math`"
    return one_fault(
        "mismatch",
        "math",
        f"{who} requires {name}, but `{framework.package}` {framework.version} computes with Eigen",
        f"{where}; TensorFlow's own packages contain {name} from 2.5 on",
        hint=hint,
    )


def other_frameworks(request: Request) -> tuple[Fault, ...]:
    """Why the frameworks that the lock has beside that of the stack cannot be in one environment with it, if they cannot."""
    found: dict[str, str | None] = {}
    pins: dict[str, Pin] = {}
    for one in FRAMEWORKS.values():
        pin = next((pin for name in one.distributions if (pin := request.lock.pin(name))), None)
        pins |= {one.name: pin} if pin else {}
        if pin and pin.name not in one.cpu_distributions:
            found[f"{one.title} {pin.version}"] = one.cuda_of(pin.version)
    versions = {cuda.split(".")[0] for cuda in found.values() if cuda}
    if len(versions) > 1:
        return one_fault(
            "mismatch",
            "framework",
            f"{' and '.join(found)} need two versions of CUDA: one process cannot use both",
            f"`{request.lock.path}`",
            *(f"{name}: CUDA {cuda}" for name, cuda in found.items()),
            hint="take versions for the same CUDA into the requirements (`provision compat --verbose`), or a stack for each",
        )
    clash = clash_of({name: pin.version for name, pin in pins.items()})
    if clash is None:
        return ()
    names = " and ".join(f"{FRAMEWORKS[name].title} {pin.version}" for name, pin in pins.items())
    return one_fault(
        "mismatch",
        "framework",
        f"{names} cannot be in one environment: a process that uses both can crash",
        f"`{request.lock.path}`",
        clash,
        hint="use PyTorch 2.7.1, as the stack `tensorflow-2.21.0-pytorch-2.7.1` does, or a stack for each",
    )


def closed_faults(request: Request, facts: Facts) -> tuple[Fault, ...]:
    """Why other users could not use the environment, if they could not: Python is in a folder that is closed to them.

    A machine without scheduler and modules, of which no group of admins is named, may have one user only.
    """
    site = request.site
    shared = site.scheduler.name != "none" or site.modules.name != "none" or site.files.group
    if not facts.closed or not shared or facts.python is None:
        return ()
    return one_fault(
        "broken",
        "python",
        f"other users cannot run the Python of the environment, `{facts.python.executable}`",
        *facts.closed,
        hint=f"let all users enter these folders (`chmod o+x`), or set `archs.{request.arch.name}.python` in `{site.origin}` "
        "to a Python that they can read",
    )


def _submit(request: Request) -> str:
    return f"provision build --site {request.site.typed} --arch {request.arch.name}{_backend(request)} --submit"


def _backend(request: Request) -> str:
    """The option that names the backend, unless it is the usual one."""
    return "" if request.stack.backend == "venv" else f" --backend {request.stack.backend}"


def blockers(
    request: Request, facts: Facts, needed: Space | None = None, *, installed: bool = False
) -> tuple[Fault, ...]:
    """Why this machine cannot build the environment although it can plan it.

    `needed` is the space of a whole build. `installed`: its packages, the largest part, are in place from a run that stopped.
    """
    found = [*cpu_faults(request, facts), *closed_faults(request, facts)]
    if request.site.scheduler.name != "none" and facts.job is None:
        name, held = request.site.scheduler.name, facts.environ.get("SLURM_JOB_ID")
        message = f"site `{request.site.name}` builds inside a {name} job, but this process is not in one"
        if held:
            message = f"you hold job {held}, but this shell runs on `{facts.host}`, not on a node of that job"
        hint = f"`{_submit(request)}`" + (", or `srun --overlap --pty bash` enters that node" if held else "")
        found += one_fault("outside-job", "job", message, hint=hint)
    needed = needed or usual_space(request.stack)
    return (*found, *place_faults(facts.place, needed, installed=installed), *store_faults(facts))


def store_faults(facts: Facts) -> tuple[Fault, ...]:
    """Why Spack cannot install packages, if it cannot: another user made its store."""
    if facts.spack is None or not facts.spack.closed or not facts.place.writable:
        return ()
    return one_fault(
        "not-writable",
        "spack",
        f"Spack cannot install packages: `{facts.spack.closed}` cannot be written",
        hint=f"`ls -ld {quote_sh(facts.spack.closed)}` shows its owner; build as that user, or `export PROVISION_ROOT=…` "
        "to your own root",
    )


def network_faults(request: Request, plan: Plan) -> tuple[Fault, ...]:
    """Why the nodes that build cannot get their packages, if they cannot: no network, and not everything was fetched."""
    network = request.site.network
    reach = network.login if request.site.scheduler.name == "none" else network.compute
    if reach != "no" or not plan.asks_network:
        return ()
    return one_fault(
        "missing",
        "network",
        f"the nodes of site `{request.site.name}` have no network, but not everything was fetched",
        *(f"not fetched: {name}" for name in plan.not_fetched),
        hint=f"on a machine with network: `provision fetch --site {request.site.typed} --arch {request.arch.name} "
        f"--stack {request.stack.name}{_backend(request)}`",
    )


def place_faults(place: Folder, needed: Space = USUAL["tensorflow"], *, installed: bool = False) -> tuple[Fault, ...]:
    """Why the file system of the root cannot hold an environment that needs so much space, if it cannot."""
    elsewhere = "`export PROVISION_ROOT=…` to another file system"
    if not place.writable:
        hint = "`export PROVISION_ROOT=…` to a folder that you can write, or set `root` in the profile"
        return one_fault("not-writable", "root", f"`{place.path}` cannot be written", hint=hint)
    left = LEFT_WHEN_INSTALLED if installed else 1
    size, files, lacking = int(needed.size * left), int(needed.files * left), []
    if place.free_bytes < size:
        lacking.append(("-h", size_text(place.free_bytes), size_text(size)))
    if place.free_files is not None and place.free_files < files:
        lacking.append(("-i", f"{place.free_files:,} inodes", f"{files:,}"))
    return tuple(
        Fault(
            "no-space",
            "root",
            f"the file system of `{place.path}` has {there} left; the build needs about {need}",
            evidence=(f"estimated from {needed.source}",),
            hint=f"`df {option} {quote_sh(place.path)}`; free some space, or {elsewhere}",
        )
        for option, there, need in lacking
    )
