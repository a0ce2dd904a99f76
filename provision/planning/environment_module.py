"""The modulefile of an environment: what users load, and what `module help` says about it. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from provision.backends.backend import Draft
from provision.launch.launchers import launcher_command
from provision.model.facts import Facts, GpuFacts, Interpreter
from provision.model.layout import EnvironmentId
from provision.model.plan import Modulefile
from provision.model.request import Request
from provision.planning.identity import gpu_of, library_path, loaded_environ

# What users search the modules for. The other packages of a lock would only make `module avail` long.
SEARCHED = (
    *("horovod", "keras", "tf-keras", "numpy", "h5py", "tensorboard", "tensorflow-datasets", "tensorflow-hub"),
    *("torchvision", "torchaudio"),
    *("tensorflow-probability", "scipy", "pandas", "matplotlib", "scikit-learn", "pillow", "mpi4py", "ipykernel"),
)


def modulefile(
    request: Request,
    facts: Facts,
    python: Interpreter,
    draft: Draft,
    environment: EnvironmentId,
    prefix: str,
    identity: Mapping[str, str],
    images: str,
) -> Modulefile:
    """The modulefile of this environment; `images` is the folder of its image."""
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
            ("PATH", f"{prefix}/bin"),
            *((("PATH", images),) if request.arch.deliver != "files" else ()),
            *library_path(request.arch),
        ),
        environ=(
            ("VIRTUAL_ENV", prefix),
            ("PROVISION_ENVIRONMENT", str(environment)),
            # Not part of the identity: `horovodrun`, which is switched off, prints it in its hint.
            *((("PROVISION_LAUNCHER", launcher),) if launcher and draft.horovod else ()),
            *loaded_environ(request.arch, request.stack, gpu),
        ),
        facts=tuple((name, text) for name, text in facts_shown.items() if text),
        packages=tuple((name, pin.version) for name in SEARCHED if (pin := request.lock.pin(name))),
        defaults=request.stack.framework.interface.quiet,
    )


def _gpu_text(request: Request, gpu: GpuFacts | None, identity: Mapping[str, str]) -> str:
    if gpu is None:
        framework = request.stack.framework
        return f"CUDA {framework.interface.cuda_of(framework.version) or ''} of its own wheels".replace("  ", " ")
    cuda = f"CUDA {gpu.cuda_version}"
    return f"{identity['gpu']}, {cuda}, NCCL {gpu.nccl_version}" if "gpu" in identity else cuda
