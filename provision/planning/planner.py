"""Make a plan from the request and the facts. Pure: no clock, no environment, no file system.

Everything that decides an environment goes into its identity; the hash of that is the fingerprint, and a plan from a login
node is compared with the node's by their identities.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import PurePosixPath

from provision.backends import backend_for
from provision.backends.backend import Construction, Draft
from provision.errors import PlanError, raise_faults
from provision.knowledge.compilable import COMPILABLE
from provision.launch.launchers import launcher_command
from provision.model.facts import Existing, Facts, GpuFacts, Interpreter
from provision.model.layout import DELIVER, EnvironmentId, Layout
from provision.model.modulefile import Modulefile
from provision.model.operation import Command, Expectation, ExpectedGpu, Inspect, Pack
from provision.model.plan import Plan
from provision.model.request import Request
from provision.planning.identity import environment_id, gpu_of, identity, library_path, loaded_environ
from provision.planning.math_library import library_faults, required_library
from provision.planning.preflight import gpu_faults, image_faults
from provision.planning.steps import decide_steps, last_rows
from provision.proof.proof_shape import prove_operation

# What users search the modules for. The other packages of a lock would only make `module avail` long.
SEARCHED = (
    *("horovod", "keras", "tf-keras", "numpy", "h5py", "tensorboard", "tensorflow-datasets", "tensorflow-hub"),
    *("torchvision", "torchaudio"),
    *("tensorflow-probability", "scipy", "pandas", "matplotlib", "scikit-learn", "pillow", "mpi4py", "ipykernel"),
)


def make_plan(request: Request, facts: Facts, existing: Existing) -> Plan:
    """The plan for a request, on a machine with these facts, given what exists.

    Raises:
        PlanError: something that the environment needs is missing; everything that is missing is listed.
    """
    site, stack, python = request.site, request.stack, _refuse_missing(request, facts)
    draft = backend_for(stack.backend)(request, facts, facts.target_of(request.arch.target))
    decided = identity(request, facts, python, draft)
    layout = Layout(PurePosixPath(site.root))
    environment = choose_build(environment_id(decided), existing, rebuild=request.rebuild)
    prefix = str(layout.prefix(environment))
    construction = draft.construct(layout, environment, existing, json.dumps(decided, indent=1) + "\n")
    inspect = inspection(request, facts, python, construction, prefix)
    pack = Pack(mount_with=request.arch.deliver_with) if request.arch.deliver == "image" else None
    deliver = str(layout.images(environment) / DELIVER) if pack else None
    proof = prove_operation(site, request.arch, stack, request.programs_folder, prefix, deliver)
    published = existing.pointers.get(environment.pointer)
    last = last_rows(inspect, proof, stack.module, construction.proved, pack=pack, publish=request.publish)
    rows = (*construction.rows, *last)
    steps = decide_steps(rows, existing, environment, publish=request.publish)
    return Plan(
        site=site.name,
        stack=stack.name,
        environment=environment,
        prefix=prefix,
        identity=decided,
        modulefile=modulefile(
            request, facts, python, draft, construction, environment, prefix, decided, str(layout.images(environment))
        ),
        abi_key=draft.wheels.get("horovod"),
        wheels=tuple(draft.wheels.values()),
        not_fetched=construction.not_fetched,
        notes=() if all(step.action == "keep" for step in steps) else construction.notes,
        steps=steps,
        replaces=published if request.publish and published != str(environment) else None,
        broken=existing.broken.get(str(environment.rebuilt(environment.number - 1)))
        if environment.number > 1
        else None,
    )


def choose_build(first: EnvironmentId, existing: Existing, *, rebuild: bool) -> EnvironmentId:
    """Which build of this identity is meant: the newest, or the next if that is broken, or another one is wanted.

    A rebuild has a prefix of its own, because users may have the broken one loaded. One that was interrupted is continued.
    """
    found = [env for env in map(EnvironmentId.parse, existing.receipts) if env.rebuilt(1) == first]
    newest = max(found, key=lambda env: env.number, default=first)
    finished = "publish" in existing.receipts.get(str(newest), ())
    if finished and (rebuild or str(newest) in existing.broken):
        return first.rebuilt(newest.number + 1)
    return newest


def _refuse_missing(request: Request, facts: Facts) -> Interpreter:
    """Raise for everything that this machine lacks; return the Python that was found."""
    raise_faults(facts.faults)
    if facts.python is None:
        raise PlanError("the probes did not find Python, and gave no reason")
    if facts.gpu is None and request.arch.gpu is not None and request.stack.uses_cuda_of_site:
        raise PlanError("the probes did not find CUDA and NCCL, and gave no reason")
    raise_faults((*gpu_faults(request, facts), *library_faults(request), *image_faults(request)))
    return facts.python


def modulefile(
    request: Request,
    facts: Facts,
    python: Interpreter,
    draft: Draft,
    construction: Construction,
    environment: EnvironmentId,
    prefix: str,
    identity: Mapping[str, str],
    images: str,
) -> Modulefile:
    """The modulefile of this environment; the backend's paths and variables come first. `images` is the folder of its image."""
    gpu = gpu_of(request, facts)
    launcher = launcher_command(request.arch.launcher)
    facts_shown = {
        "framework": identity["framework"],
        "horovod": draft.horovod,
        "python": python.version,
        "mpi": draft.mpi.split(";")[0],
        "compiler": " ".join(draft.compiler.split()[:2]),
        "built for": f"{environment.arch}: {identity['target']}",
        "gpu": _gpu_text(request, gpu, identity) if request.arch.gpu else "",
        "environment": str(environment),
        "advisories": request.advisories,
    }
    return Modulefile(
        name=environment.name,
        version=environment.version,
        summary=request.stack.summary,
        environment=str(environment),
        prefix=prefix,
        modules=facts.modules,
        unload=request.arch.unload,
        prepend=(
            *construction.prepend,
            *((("PATH", images),) if request.arch.deliver == "image" else ()),
            *library_path(request.arch),
        ),
        environ=(
            *construction.environ,
            ("PROVISION_ENVIRONMENT", str(environment)),
            # Not part of the identity: `horovodrun`, which is switched off, prints it in its hint.
            *((("PROVISION_LAUNCHER", launcher),) if launcher and draft.horovod else ()),
            *loaded_environ(request, facts),
        ),
        facts=tuple((name, text) for name, text in facts_shown.items() if text),
        packages=tuple((name, pin.version) for name in SEARCHED if (pin := request.lock.pin(name))),
        defaults=request.stack.framework.interface.quiet,
    )


def _gpu_text(request: Request, gpu: GpuFacts | None, identity: Mapping[str, str]) -> str:
    """The GPU part of a build."""
    if gpu is None:
        framework = request.stack.framework
        return f"CUDA {framework.interface.cuda_of(framework.version) or ''} of its own wheels".replace("  ", " ")
    cuda = f"CUDA {gpu.cuda_version}"
    return f"{identity['gpu']}, {cuda}, NCCL {gpu.nccl_version}" if "gpu" in identity else cuda


def inspection(request: Request, facts: Facts, python: Interpreter, construction: Construction, prefix: str) -> Inspect:
    """The program that reports the contents of the environment, and what it must report."""
    gpu, stack = gpu_of(request, facts), request.stack
    framework = stack.framework.interface
    argv = (
        *(construction.python, f"{request.programs_folder}/inspect_env.py"),
        *("--framework", framework.package),
        *(() if stack.horovod else ("--without-horovod",)),
        *(word for name, _ in stack.compiled for word in ("--compiled", COMPILABLE[name].module)),
        *(("--gpu",) if request.arch.gpu else ()),
        *(("--cuobjdump", gpu.cuobjdump) if gpu and gpu.cuobjdump else ()),
    )
    expectation = Expectation(
        framework=framework.name,
        versions=(
            (framework.package, stack.framework.version),
            *stack.from_source.items(),
            ("python", python.version),
        ),
        mpi_libraries=construction.mpi_libraries,
        allowed=(prefix, *construction.allowed, *_roots(facts, python)),
        gpu=_expected_gpu(request, facts),
        math=required_library(request.arch, stack),
    )
    # The inspection runs before there is a modulefile.
    selected = tuple(pair for pair in loaded_environ(request, facts) if pair[0] == framework.onednn_switch)
    launcher = request.site.launcher_to_node(request.arch)
    return Inspect(command=Command(argv=argv, environ=selected, launcher=launcher), expectation=expectation)


def _expected_gpu(request: Request, facts: Facts) -> ExpectedGpu | None:
    """What the inspection of a GPU build must also find; None on an arch without GPUs."""
    gpu, framework = gpu_of(request, facts), request.stack.framework
    if request.arch.gpu is None:
        return None
    if gpu is None:
        return ExpectedGpu(cuda_version=framework.interface.cuda_of(framework.version))
    if request.stack.horovod is None:
        return ExpectedGpu(cuda_version=gpu.cuda_version)
    return ExpectedGpu(
        cuda_version=gpu.cuda_version,
        capabilities=request.arch.gpu.capabilities,
        nccl_version=gpu.nccl_version,
        nccl_library=gpu.nccl_library if gpu.nccl_shared else None,
    )


def _roots(facts: Facts, python: Interpreter) -> tuple[str, ...]:
    """The folders of Python and of the loaded modules: an environment may map libraries from them."""
    roots = [str(PurePosixPath(python.executable).parent.parent)]
    for variable in ("LD_LIBRARY_PATH", "LIBRARY_PATH"):
        roots += [folder for folder in facts.environ.get(variable, "").split(":") if folder.startswith("/")]
    if facts.mpi:
        roots += [str(PurePosixPath(library).parent) for library in facts.mpi.libraries]
    if facts.gpu:
        roots += [facts.gpu.cuda_home]
        roots += [str(PurePosixPath(facts.gpu.nccl_library).parent)] if facts.gpu.nccl_library else []
    return tuple(dict.fromkeys(roots))
