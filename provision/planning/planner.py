"""What is wanted and what is here, to a plan. Pure: no clock, no environment, no file system.

Everything that decides an environment goes into `identity`; its hash is the fingerprint, and a plan from a login node
is held against the node's by comparing identities.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath
from typing import Literal

from provision.backends.venv import steps as venv
from provision.backends.venv.installer import Installer
from provision.backends.venv.wheelhouse import not_fetched
from provision.errors import PlanError
from provision.horovod.wheel import Build, make_build, site_environ
from provision.launch.rank_threads import module_environ
from provision.model.facts import Existing, Facts, GpuFacts
from provision.model.layout import EnvironmentId, Layout
from provision.model.modulefile import Modulefile
from provision.model.plan import (
    Action,
    Command,
    Expectation,
    ExpectedGpu,
    Inspect,
    Operation,
    Plan,
    Prove,
    Publish,
    Step,
    WriteCandidate,
    fingerprint,
)
from provision.model.request import Request
from provision.planning.preflight import gpu_problems, raise_problems
from provision.profile.arch import Arch
from provision.proof.shape import prove_operation

# Raised when the steps change in a way that makes a different environment of the same inputs.
RECIPE = "1"


def make_plan(request: Request, facts: Facts, existing: Existing) -> Plan:
    """The plan for what was asked, on a machine with these facts, given what exists.

    Raises:
        PlanError: something that the environment needs is not there; everything that is missing is listed.
    """
    site, arch, stack = request.site, request.arch, request.stack
    raise_problems(facts.problems)
    if facts.python is None:
        raise PlanError("the probes did not find Python, and said no reason")
    if facts.gpu is None and arch.gpu is not None:
        raise PlanError("the probes did not find CUDA and NCCL, and said no reason")
    target = facts.cpu.target if arch.target == "native" else arch.target
    arch_name = target if arch.target == "native" else arch.name
    gpu = facts.gpu if arch.gpu else None
    horovod = make_build(request, facts, gpu, target)
    framework = request.pinned(stack.framework.package, stack.framework.version)
    raise_problems(gpu_problems(request, facts))
    environ = (*stack.environ, *module_environ(arch), *_gpu_environ(gpu, arch), *arch.environ)
    own = site_environ(request) if horovod else {}
    mpi = horovod.mpi if horovod else request.mpi_wheel
    identity = {
        "recipe": RECIPE,
        "arch": arch_name,
        "target": f"{target} ({horovod.target_flags})" if horovod else target,
        "modules": " ".join((*(f"-{one}" for one in arch.unload), *facts.modules)),
        "python": f"{facts.python.version} {facts.python.executable}",
        **({"compiler": horovod.compiler} if horovod else {}),
        **({"mpi": mpi} if mpi else {}),
        "stack": stack.name,
        "framework": f"{framework.name} {framework.version}",
        **(_horovod_identity(horovod) if horovod else {}),
        "lock": request.lock.sha256,
        "mpi lock": request.mpi_lock.sha256 if request.mpi_lock else "",
        "module": stack.module,
        "module environment": _assignments(environ),
        **({"build environment": _assignments(tuple(own.items()))} if own else {}),
        **_gpu_identity(gpu, arch, horovod),
    }
    name, version = stack.module.split("/")
    layout = Layout(PurePosixPath(site.root))
    environment = EnvironmentId(arch_name, name, version, fingerprint(identity))
    prefix = str(layout.prefix(environment))
    source = horovod.source if horovod else None
    missing = not_fetched(request.locks, source, fetched=existing.fetched, sources=existing.sources)
    installer = Installer(
        python=facts.python.executable,
        own_venv=facts.python.own_venv,
        tool_python=facts.tool_python,
        uv=facts.uv,
        wheelhouse=None if missing else str(layout.wheelhouse),
    )
    recipe = venv.Recipe(
        layout=layout,
        environment=environment,
        installer=installer,
        minor=facts.python.minor,
        cores=facts.cores,
        locks=(request.lock, *([request.mpi_lock] if request.mpi_lock else [])),
        horovod=horovod,
        launcher=arch.launcher if site.scheduler.script_on == "service-node" else None,
    )
    modulefile = Modulefile(
        name=name,
        version=version,
        summary=stack.summary,
        environment=str(environment),
        prefix=prefix,
        modules=facts.modules,
        unload=arch.unload,
        prepend=(("PATH", f"{prefix}/bin"),),
        environ=(("VIRTUAL_ENV", prefix), ("PROVISION_ENVIRONMENT", str(environment)), *environ),
        facts=(
            ("framework", identity["framework"]),
            *((("horovod", horovod.version),) if horovod else ()),
            ("python", facts.python.version),
            *((("mpi", mpi.split(";")[0]),) if mpi else ()),
            *((("compiler", " ".join(horovod.compiler.split()[:2])),) if horovod else ()),
            ("built for", f"{arch_name}: {identity['target']}"),
            *((("gpu", _gpu_told(gpu, identity)),) if gpu else ()),
            ("environment", str(environment)),
        ),
    )
    expectation = Expectation(
        versions=(
            ("tensorflow", stack.framework.version),
            *((("horovod", stack.horovod),) if stack.horovod else ()),
            ("python", facts.python.version),
        ),
        mpi_libraries=(horovod.mpi_libraries or (f"{prefix}/lib/libmpi.so",)) if horovod else (),
        allowed=(prefix, *_roots(facts)),
        gpu=_expected_gpu(gpu, arch, horovod),
    )
    proof = prove_operation(site, arch, stack, request.programs_folder, prefix)
    inspect = Inspect(
        command=recipe.on_node(
            Command(
                argv=(
                    *(recipe.prefix_python, f"{request.programs_folder}/inspect_env.py"),
                    *(() if horovod else ("--without-horovod",)),
                    *(("--gpu",) if gpu else ()),
                    *(("--cuobjdump", gpu.cuobjdump) if gpu and gpu.cuobjdump else ()),
                )
            )
        ),
        expectation=expectation,
    )
    return Plan(
        site=site.name,
        stack=stack.name,
        environment=environment,
        prefix=prefix,
        identity=identity,
        modulefile=modulefile,
        abi_key=horovod.key if horovod else None,
        not_fetched=tuple(missing),
        steps=_steps(
            recipe, inspect, proof, existing, json.dumps(identity, indent=1) + "\n", f"{arch_name}/{stack.module}"
        ),
    )


def _assignments(environ: Sequence[tuple[str, str]]) -> str:
    """Variables as text."""
    return " ".join(f"{name}={shlex.quote(value)}" for name, value in environ)


def _horovod_identity(horovod: Build) -> dict[str, str]:
    """What decides Horovod's part, besides the compiler and MPI."""
    return {
        "horovod": f"{horovod.source.version} {' '.join(horovod.source.hashes)}",
        "patches": " ".join(f"{patch.name}:{patch.sha256[:12]}" for patch in horovod.patches),
    }


def _gpu_identity(gpu: GpuFacts | None, arch: Arch, horovod: Build | None) -> dict[str, str]:
    """What decides a GPU build besides all else; nothing on a CPU arch. Only Horovod has device code, and links NCCL."""
    if gpu is None or arch.gpu is None:
        return {}
    cuda = f"{gpu.cuda_version} {gpu.cuda_home}"
    if horovod is None:
        return {"cuda": cuda}
    return {
        "gpu": f"compute capability {' '.join(arch.gpu.capabilities)}",
        "cuda": cuda,
        "nccl": f"{gpu.nccl_version} {gpu.nccl_library}",
    }


def _gpu_told(gpu: GpuFacts, identity: Mapping[str, str]) -> str:
    """A GPU build in the words of `module help`."""
    cuda = f"CUDA {gpu.cuda_version}"
    return f"{identity['gpu']}, {cuda}, NCCL {gpu.nccl_version}" if "gpu" in identity else cuda


def _expected_gpu(gpu: GpuFacts | None, arch: Arch, horovod: Build | None) -> ExpectedGpu | None:
    """What the inspection of a GPU build must find besides; None on a CPU arch."""
    if gpu is None or arch.gpu is None:
        return None
    if horovod is None:
        return ExpectedGpu(cuda_version=gpu.cuda_version)
    return ExpectedGpu(
        cuda_version=gpu.cuda_version,
        capabilities=arch.gpu.capabilities,
        nccl_version=gpu.nccl_version,
        nccl_library=gpu.nccl_library if gpu.nccl_shared else None,
    )


def _gpu_environ(gpu: GpuFacts | None, arch: Arch) -> tuple[tuple[str, str], ...]:
    """Where XLA finds CUDA's device library: it knows /usr/local/cuda alone. What the site's file says goes before."""
    if gpu is None or "XLA_FLAGS" in dict(arch.environ):
        return ()
    return (("XLA_FLAGS", f"--xla_gpu_cuda_data_dir={gpu.cuda_home}"),)


def _roots(facts: Facts) -> tuple[str, ...]:
    """The folders of the loaded modules and of Python, which an environment may map libraries from."""
    roots = [str(PurePosixPath(facts.python.executable).parent.parent)] if facts.python else []
    for variable in ("LD_LIBRARY_PATH", "LIBRARY_PATH"):
        roots += [folder for folder in facts.environ.get(variable, "").split(":") if folder.startswith("/")]
    if facts.mpi:
        roots += [str(PurePosixPath(library).parent) for library in facts.mpi.libraries]
    if facts.gpu:
        roots += [facts.gpu.cuda_home]
        roots += [str(PurePosixPath(facts.gpu.nccl_library).parent)] if facts.gpu.nccl_library else []
    return tuple(dict.fromkeys(roots))


StepName = Literal["create", "install", "compile", "horovod", "bytecode", "inspect", "candidate", "proof", "publish"]
Row = tuple[StepName, str, str, tuple[Operation, ...]]
"""A step before it is known whether it is to be done: name, title, reason, operations."""


def _steps(
    recipe: venv.Recipe, inspect: Inspect, proof: Prove, existing: Existing, identity_text: str, pointer: str
) -> tuple[Step, ...]:
    """The steps with their actions, from what exists.

    A step is kept when it has a receipt and every step before it is kept. Installing is not repeatable in place, so a
    prefix without the receipt of `install` starts over; what comes after it is.
    """
    environment = str(recipe.environment)
    receipts = existing.receipts.get(environment, frozenset())
    is_published = existing.pointers.get(pointer) == environment
    if "install" not in receipts:
        receipts = frozenset()
    horovod = recipe.horovod
    packages = sum(len(lock.pins) for lock in recipe.locks) - (horovod is not None)
    table: list[Row] = [
        (
            "create",
            f"virtual environment with Python {recipe.minor}",
            recipe.installer.python,
            venv.create(recipe, identity_text),
        ),
        (
            "install",
            f"{packages} locked packages by {recipe.installer.name}",
            "the framework before Horovod, which is compiled against it"
            if horovod
            else "the framework, without Horovod",
            venv.install(recipe),
        ),
        *(_steps_of_horovod(recipe, horovod) if horovod else ()),
        ("bytecode", "bytecode", "else every rank compiles at every start", venv.compile_bytecode(recipe)),
        (
            "inspect",
            "what is really in it",
            _asked(horovod),
            (inspect,),
        ),
        ("candidate", "candidate modulefile", "the proof loads what users will load", (WriteCandidate(),)),
        (
            "proof",
            f"train {_trainers(proof)}, {proof.nodes} node{'s' * (proof.nodes > 1)}",
            f"through the candidate modulefile and {proof.launcher.name}",
            (proof,),
        ),
        ("publish", "publish", f"users load {pointer.split('/', 1)[1]}", (Publish(),)),
    ]
    steps, keeping = [], True
    for name, title, reason, operations in table:
        action: Action = "create"
        done = is_published if name == "publish" else name in receipts
        if name == "compile":
            # Compiled or not is a matter of the cache, which outlives every prefix.
            if keeping and "horovod" in receipts:
                action, reason = "keep", "installed"
            elif horovod and horovod.key in existing.wheels:
                action, reason = "reuse", f"wheels/{horovod.key} was compiled from the same source with the same flags"
            elif horovod:
                operations = venv.compile_wheel(recipe, horovod)
        elif keeping and done:
            action, reason = "keep", "done"
        else:
            keeping = False
        steps.append(
            Step(
                name=name,
                title=title,
                action=action,
                reason=reason,
                operations=operations if action == "create" else (),
            )
        )
    return tuple(steps)


def _steps_of_horovod(recipe: venv.Recipe, horovod: Build) -> tuple[Row, ...]:
    """Horovod's wheel compiled, and installed. The operations that compile it are added where there is none yet."""
    return (
        ("compile", f"Horovod {horovod.version} from source", f"no wheel {horovod.key} yet", ()),
        ("horovod", "Horovod into the environment", f"wheels/{horovod.key}", venv.install_wheel(recipe, horovod)),
    )


def _asked(horovod: Build | None) -> str:
    """What the inspection asks."""
    if horovod is None:
        return "the framework, nothing from outside"
    what_else = "NCCL and its code for each GPU, " if horovod.gpu else ""
    return f"framework and MPI built in, {what_else}the plan's libmpi, nothing from outside"


def _trainers(proof: Prove) -> str:
    """Who trains in the proof, in the words of a plan."""
    match proof.strategy:
        case "single":
            return "in one process"
        case "mirrored":
            return f"on {proof.devices} device{'s' * (proof.devices > 1)} of one process"
        case "multiworker":
            return f"on {proof.processes} workers"
        case _:
            return f"on {proof.processes} ranks"
