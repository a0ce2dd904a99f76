"""A build described from the profile alone, for a machine that cannot be probed from here. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Mapping

from provision.horovod.flags import build_environ, gpu_environ
from provision.knowledge.frameworks.tensorflow import TENSORFLOW
from provision.launch.launchers import launch_argv
from provision.launch.modules import reset_lines, unload_lines
from provision.model.facts import GpuFacts
from provision.model.quoting import bash
from provision.planning.identity import library_path, loaded_environ
from provision.profile.arch import Arch
from provision.profile.choices import BACKENDS
from provision.profile.site import Site
from provision.profile.stack import Stack
from provision.proof.proof_shape import proof_environ, proof_shape
from provision.wording import count

# Titles that a stack without Horovod lacks: nothing is compiled.
OF_HOROVOD = ("compiler", "mpi", "horovod", "compile")
# Titles that a site lacks if our environments are not built there.
OF_A_BUILD = ("environment", "backend", "compiler", "mpi", "horovod", "fetch", "compile", "install", "prove", "job")
# Where packages are installed, by the nodes that can write the root.
INSTALLED = {
    "login": "in the job, below a root that compute nodes can write: the site's software file system is read-only for them, and "
    "virtual environments cannot be moved",
    "compute": "in the job: login nodes cannot write the root",
    "everywhere": "in the job",
}


def outline(site: Site, arch: Arch, stack: Stack, directives: tuple[str, ...]) -> Mapping[str, tuple[str, ...]]:
    """Title to lines, in the order in which people read them."""
    title = stack.framework.interface.title
    parts: dict[str, tuple[str, ...]] = {
        "site": (site.title or site.name, *((site.retirement,) if site.retired else ())),
        "arch": (_arch(arch),),
        "environment": (f"{arch.name}/{stack.module} (the fingerprint depends on the node)",),
        "backend": _backend(site, stack),
        "runs by": (", ".join(site.runtimes),),
        "modules": _modules(site, arch),
        "compiler": (f"{arch.compiler.cxx} and {arch.compiler.cc} for {arch.target}",),
        "mpi": (f"{arch.mpi.family} ({arch.mpi.provider}, wrapper {arch.mpi.cxx})",),
        "horovod": _horovod(arch, stack),
        "fetch": (_fetch(site, stack),),
        "compile": (_by_spack(site, arch) if stack.backend == "spack" else _compile(site, arch),),
        "install": (
            ("`spack install` and a view, " if stack.backend == "spack" else "") + INSTALLED[site.files.root_writable],
        ),
        "prove": (_prove(site, arch, stack),),
        "threads": _threads(site, arch, stack),
        "module sets": tuple(
            f"{name}={value}" for name, value in (*loaded_environ(arch, stack, None), *library_path(arch))
        ),
        "job": directives,
        "strategies": tuple(
            f"{strategy.name}: {strategy.status}" + (f", {strategy.note}" if strategy.note else "")
            for strategy in site.strategies
            if strategy.name in stack.framework.interface.kinds and (stack.horovod or strategy.name != "horovod")
        ),
    }
    if stack.horovod is None:
        parts = {title: lines for title, lines in parts.items() if title not in OF_HOROVOD}
    if "venv" not in site.runtimes:
        parts = {title: lines for title, lines in parts.items() if title not in OF_A_BUILD}
        parts["build"] = (
            f"none: the site runs {title} with {' or '.join(site.runtimes)}, but provision builds virtual environments",
        )
    if site.container and site.container.overlay and stack.framework.name == TENSORFLOW.name:  # it fills no others
        job = f"provision job overlay --site {site.typed} --arch {arch.name}"
        parts["overlay"] = (f"{title}{' with its own CUDA' if arch.gpu else ''}, installed by `{job}`",)
    return {title: lines for title, lines in parts.items() if lines}


def _arch(arch: Arch) -> str:
    node, gpu = arch.node, arch.gpu
    words = [f"{arch.name} ({arch.target})"]
    if node:
        sockets = f"{node.sockets} socket{'s' if node.sockets > 1 else ''}"
        words.append(f"{sockets}, {count(node.cores, 'core')}, {count(node.threads, 'thread')}, {node.memory_gb} GiB")
    if gpu:
        words.append(
            f"{count(gpu.per_node, 'GPU')}"
            + (f" of capability {', '.join(gpu.capabilities)}" if gpu.capabilities else "")
        )
    return "; ".join(words)


def _modules(site: Site, arch: Arch) -> tuple[str, ...]:
    if site.modules.name == "none":
        return ()
    lines = [*reset_lines(site.modules), *unload_lines(site.modules, arch.unload)]
    plain = [line.removesuffix(" >/dev/null 2>&1 || true") for line in lines]
    return (
        *plain,
        *(bash("module use %s", path) for path in site.modules.path),
        *(bash("module load %s", module) for module in arch.modules),
    )


def _horovod(arch: Arch, stack: Stack) -> tuple[str, ...]:
    """The switches that do not depend on the machine; `-march` comes from archspec and the compiler."""
    switches = build_environ(
        frameworks=(stack.framework.name, *stack.beside), cxx=arch.compiler.cxx, arch_flags=f"(archspec: {arch.target})"
    )
    own = dict(arch.build_environ) | ({"CC": arch.compiler.cc} if arch.compiler.cc != "gcc" else {})
    lines = [f"{name}={value}" for name, value in {**switches, **own}.items()]
    gpu = arch.gpu
    if gpu:
        looked_for = "(searched on the node)"
        facts = GpuFacts(cuda_home=gpu.cuda_home or looked_for, cuda_version="", nccl_home=gpu.nccl_home or looked_for)
        lines += [f"{name}={value}" for name, value in gpu_environ(gpu, facts).items()]
    return tuple(lines)


def _backend(site: Site, stack: Stack) -> tuple[str, ...]:
    """The backend, if it is not the usual one, and what it needs first."""
    if stack.backend == BACKENDS[0]:
        return ()
    return (f"{stack.backend}, after `provision spack setup DIR --site {site.typed}`",)


def _by_spack(site: Site, arch: Arch) -> str:
    given = (
        "the compiler and the site's MPI are externals"
        if arch.mpi.provider == "site"
        else "the compiler is an external"
    )
    return f"by Spack, {_compile(site, arch)}: py-horovod with the switches above, in generated packages; {given}"


def _fetch(site: Site, stack: Stack) -> str:
    network = site.network
    if network.compute == "yes":
        return "in the job: compute nodes reach the network"
    if network.compute == "proxy":
        return f"in the job, through the proxy {network.proxy}"
    where = network.where_to_download or "a machine with network"
    option = "" if stack.backend == BACKENDS[0] else f" --backend {stack.backend}"
    return f"on {where} beforehand, with `provision fetch{option}`: compute nodes have no network"


def _compile(site: Site, arch: Arch) -> str:
    if site.scheduler.script_on == "service-node":
        return f"on a node of the arch, by {arch.launcher.name} from the service node that runs the job's script"
    return "on a node of the arch, in the job" if site.scheduler.name != "none" else "on this machine"


def _prove(site: Site, arch: Arch, stack: Stack) -> str:
    shape = proof_shape(site, arch, stack)
    argv = launch_argv(
        arch.launcher,
        ("python", "…"),
        nodes=shape.nodes,
        ranks_per_node=shape.ranks_per_node,
        cpus=shape.cpus_per_rank,
    )
    return shlex.join(argv).replace("'…'", "…")


def _threads(site: Site, arch: Arch, stack: Stack) -> tuple[str, ...]:
    set_by_job = tuple(f"{name}={value}" for name, value in proof_environ(site, arch, stack))
    return (f"the {arch.threads.owner} sets OpenMP's", *set_by_job) if set_by_job else ()
