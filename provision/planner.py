"""What is wanted and what is here, to a plan. Pure: no clock, no environment, no file system.

Everything that decides an environment goes into `identity`; its hash is the fingerprint, and a plan from a login node
is held against the node's by comparing identities.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from pathlib import PurePosixPath
from typing import Literal

from provision.backends import venv
from provision.backends.installer import Installer
from provision.errors import PlanError
from provision.horovod import abi as horovod_abi
from provision.horovod import flags as horovod_flags
from provision.horovod.patches import select_patches
from provision.knowledge.targets import flags_for
from provision.model.arch import Arch
from provision.model.facts import Existing, Facts, GpuFacts, MpiFacts
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
    Publish,
    SmokeTest,
    Step,
    WriteCandidate,
    fingerprint,
)
from provision.preflight import gpu_problems, raise_problems
from provision.proof import smoke_test
from provision.request import Request
from provision.threads import module_environ
from provision.wheelhouse import not_fetched

# Raised when the steps change in a way that makes a different environment of the same inputs.
RECIPE = "1"


def make_plan(request: Request, facts: Facts, existing: Existing) -> Plan:
    """The plan for what was asked, on a machine with these facts, given what exists.

    Raises:
        PlanError: something that the environment needs is not there; everything that is missing is listed.
    """
    site, arch, stack = request.site, request.arch, request.stack
    raise_problems(facts.problems)
    if facts.python is None or facts.compiler is None or (facts.mpi is None and arch.mpi.provider == "site"):
        raise PlanError("the probes did not find Python, a compiler and MPI, and said no reason")
    if facts.gpu is None and arch.gpu is not None:
        raise PlanError("the probes did not find CUDA and NCCL, and said no reason")
    target = facts.cpu.target if arch.target == "native" else arch.target
    arch_name = target if arch.target == "native" else arch.name
    flags = flags_for(target, facts.compiler.family, facts.compiler.version)
    horovod, framework = request.lock.pin("horovod"), request.lock.pin(stack.framework.package)
    for name, version, pin in (
        ("horovod", stack.horovod, horovod),
        (stack.framework.package, stack.framework.version, framework),
    ):
        if pin is None or pin.version != version:
            raise PlanError(
                f"the lock does not pin `{name}=={version}`, which the stack `{stack.name}` names",
                evidence=[request.lock.path, f"it pins: {pin.version if pin else 'nothing'}"],
                hint="make the stack and its requirements agree, then `provision lock`",
            )
    assert horovod is not None and framework is not None  # the loop above raised otherwise

    raise_problems(gpu_problems(request, facts))
    gpu = facts.gpu if arch.gpu else None
    patches = select_patches(request.patches, stack.framework.version, gpu=gpu is not None)
    mpi_name = _mpi_name(request, facts.mpi)
    environ = (*stack.environ, *module_environ(arch), *_gpu_environ(gpu, arch), *arch.environ)
    build_environ = (*([("CC", arch.compiler.cc)] if arch.compiler.cc != "gcc" else []), *arch.build_environ)
    identity = {
        "recipe": RECIPE,
        "arch": arch_name,
        "target": f"{target} ({flags.flags})",
        "modules": " ".join((*(f"-{one}" for one in arch.unload), *facts.modules)),
        "python": f"{facts.python.version} {facts.python.executable}",
        "compiler": f"{facts.compiler.family} {facts.compiler.version} {facts.compiler.cxx}",
        "mpi": mpi_name,
        "stack": stack.name,
        "framework": f"{framework.name} {framework.version}",
        "horovod": f"{horovod.version} {' '.join(horovod.hashes)}",
        "patches": " ".join(f"{patch.name}:{patch.sha256[:12]}" for patch in patches),
        "lock": request.lock.sha256,
        "mpi lock": request.mpi_lock.sha256 if request.mpi_lock else "",
        "module": stack.module,
        "module environment": _assignments(environ),
        **({"build environment": _assignments(build_environ)} if build_environ else {}),
        **_gpu_identity(gpu, arch),
    }
    name, version = stack.module.split("/")
    layout = Layout(PurePosixPath(site.root))
    environment = EnvironmentId(arch_name, name, version, fingerprint(identity))
    prefix = str(layout.prefix(environment))

    in_prefix = arch.mpi.provider == "pypi"
    mpicxx = f"{prefix}/bin/{arch.mpi.cxx}" if in_prefix else facts.mpi.cxx if facts.mpi else ""
    libraries = () if in_prefix else facts.mpi.libraries if facts.mpi else ()
    runpath = horovod_flags.runpath(libraries, gpu.nccl_library if gpu and gpu.nccl_shared else None)
    flag_environ = horovod_flags.build_environ(cxx=facts.compiler.cxx, arch_flags=flags.flags, patches=len(patches))
    if gpu and arch.gpu:
        flag_environ |= horovod_flags.gpu_environ(arch.gpu, gpu)
    flag_environ |= dict(build_environ)
    abi = horovod_abi.abi(
        source=horovod,
        framework=framework,
        python_tag=facts.python.tag,
        compiler=identity["compiler"],
        mpi=mpi_name,
        environ=flag_environ,
        # The wrapper inside the prefix is the same wheel's in every prefix: its path does not decide the ABI.
        toolchain=horovod_flags.toolchain_file(
            f"{arch.mpi.cxx}" if in_prefix else mpicxx, runpath, gpu=gpu is not None
        ),
        patches=patches,
        gpu=gpu,
    )
    missing = not_fetched(request.locks, horovod, fetched=existing.fetched, sources=existing.sources)
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
        build_lock=request.build_lock,
        horovod=horovod,
        flags=flag_environ,
        mpicxx=mpicxx,
        runpath=runpath,
        patches=patches,
        abi_key=horovod_abi.key(abi),
        abi=abi,
        launcher=arch.launcher if site.scheduler.script_on == "service-node" else None,
        gpu=gpu,
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
            ("horovod", horovod_flags.local_version(horovod.version, len(patches))),
            ("python", facts.python.version),
            ("mpi", mpi_name.split(";")[0]),
            ("compiler", f"{facts.compiler.family} {facts.compiler.version}"),
            ("built for", f"{arch_name}: {identity['target']}"),
            *((("gpu", f"{identity['gpu']}, CUDA {gpu.cuda_version}, NCCL {gpu.nccl_version}"),) if gpu else ()),
            ("environment", str(environment)),
        ),
    )
    expectation = Expectation(
        versions=(
            ("tensorflow", stack.framework.version),
            ("horovod", stack.horovod),
            ("python", facts.python.version),
        ),
        mpi_libraries=libraries or (f"{prefix}/lib/libmpi.so",),
        allowed=(prefix, *_roots(facts)),
        gpu=ExpectedGpu(
            capabilities=arch.gpu.capabilities,
            cuda_version=gpu.cuda_version,
            nccl_version=gpu.nccl_version,
            nccl_library=gpu.nccl_library if gpu.nccl_shared else None,
        )
        if gpu and arch.gpu
        else None,
    )
    smoke = smoke_test(site, arch, stack, request.smoke_folder, prefix)
    inspect = Inspect(
        command=recipe.on_node(
            Command(
                argv=(
                    *(recipe.prefix_python, f"{request.smoke_folder}/inspect_env.py"),
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
        abi_key=recipe.abi_key,
        not_fetched=tuple(missing),
        steps=_steps(
            recipe, inspect, smoke, existing, json.dumps(identity, indent=1) + "\n", f"{arch_name}/{stack.module}"
        ),
    )


def _assignments(environ: Sequence[tuple[str, str]]) -> str:
    """Variables as text."""
    return " ".join(f"{name}={shlex.quote(value)}" for name, value in environ)


def _gpu_identity(gpu: GpuFacts | None, arch: Arch) -> dict[str, str]:
    """What decides a GPU build besides all else; nothing on a CPU arch."""
    if gpu is None or arch.gpu is None:
        return {}
    return {
        "gpu": f"compute capability {' '.join(arch.gpu.capabilities)}",
        "cuda": f"{gpu.cuda_version} {gpu.cuda_home}",
        "nccl": f"{gpu.nccl_version} {gpu.nccl_library}",
    }


def _gpu_environ(gpu: GpuFacts | None, arch: Arch) -> tuple[tuple[str, str], ...]:
    """Where XLA finds CUDA's device library: it knows /usr/local/cuda alone. What the site's file says goes before."""
    if gpu is None or "XLA_FLAGS" in dict(arch.environ):
        return ()
    return (("XLA_FLAGS", f"--xla_gpu_cuda_data_dir={gpu.cuda_home}"),)


def _mpi_name(request: Request, mpi: MpiFacts | None) -> str:
    """What MPI this is, as text that differs whenever the ABI may."""
    if request.mpi_lock is not None:
        return "; ".join(f"{pin.name} {pin.version} (wheel)" for pin in request.mpi_lock.pins)
    return f"{mpi.family} {mpi.version}; {mpi.show}" if mpi else ""


def _roots(facts: Facts) -> tuple[str, ...]:
    """The folders of the loaded modules and of Python, which an environment may map libraries from."""
    roots = [str(PurePosixPath(facts.python.executable).parent.parent)] if facts.python else []
    for variable in ("LD_LIBRARY_PATH", "LIBRARY_PATH"):
        roots += [folder for folder in facts.environ.get(variable, "").split(":") if folder.startswith("/")]
    if facts.mpi:
        roots += [str(PurePosixPath(library).parent) for library in facts.mpi.libraries]
    if facts.gpu:
        roots += [facts.gpu.cuda_home, str(PurePosixPath(facts.gpu.nccl_library).parent)]
    return tuple(dict.fromkeys(roots))


StepName = Literal["create", "install", "compile", "horovod", "bytecode", "inspect", "candidate", "smoke", "publish"]


def _steps(
    recipe: venv.Recipe, inspect: Inspect, smoke: SmokeTest, existing: Existing, identity_text: str, pointer: str
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
    has_wheel = recipe.abi_key in existing.wheels
    what_else = "NCCL and its code for each GPU, " if recipe.gpu else ""
    wheel = f"wheels/{recipe.abi_key}"
    table: list[tuple[StepName, str, str, tuple[Operation, ...]]] = [
        (
            "create",
            f"virtual environment with Python {recipe.minor}",
            recipe.installer.python,
            venv.create(recipe, identity_text),
        ),
        (
            "install",
            f"{sum(len(lock.pins) for lock in recipe.locks) - 1} locked packages by {recipe.installer.name}",
            "the framework before Horovod, which is compiled against it",
            venv.install(recipe),
        ),
        (
            "compile",
            f"Horovod {horovod_flags.local_version(recipe.horovod.version, len(recipe.patches))} from source",
            f"no wheel {recipe.abi_key} yet",
            (),
        ),
        ("horovod", "Horovod into the environment", wheel, venv.install_wheel(recipe)),
        ("bytecode", "bytecode", "else every rank compiles at every start", venv.compile_bytecode(recipe)),
        (
            "inspect",
            "what is really in it",
            f"framework and MPI built in, {what_else}the plan's libmpi, nothing from outside",
            (inspect,),
        ),
        ("candidate", "candidate modulefile", "the proof loads what users will load", (WriteCandidate(),)),
        (
            "smoke",
            f"train on {smoke.nodes * smoke.ranks_per_node} ranks, {smoke.nodes} node{'s' * (smoke.nodes > 1)}",
            f"through the candidate modulefile and {smoke.launcher.name}",
            (smoke,),
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
            elif has_wheel:
                action, reason = "reuse", f"{wheel} was compiled from the same source with the same flags"
            else:
                operations = venv.compile_wheel(recipe)
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
