"""What a built environment is expected to be, and the command that inspects it. Pure."""

from __future__ import annotations

from pathlib import PurePosixPath

from provision.backends.backend import Construction
from provision.knowledge.compilable import COMPILABLE
from provision.model.facts import Facts, Interpreter
from provision.model.operation import Command, Expectation, ExpectedGpu, Inspect
from provision.model.request import Request
from provision.planning.identity import gpu_of, loaded_environ, required_library


def inspections(
    request: Request, facts: Facts, python: Interpreter, construction: Construction, prefix: str
) -> tuple[Inspect, ...]:
    """The program that reports the contents of the environment, and what it must report, for each of its frameworks.

    Each has a process of its own: TensorFlow 2.21 and the triton that PyTorch imports both export LLVM's symbols, and a process
    that loads triton as the second of them ends with a segmentation fault (torch 2.14.1 with triton 3.8.0).
    """
    gpu, stack = gpu_of(request, facts), request.stack
    loaded, found = loaded_environ(request.arch, stack, gpu), []
    for framework in stack.frameworks:
        first = framework is stack.framework.interface
        horovod = stack.horovod is not None and (first or framework.name in stack.beside)
        compiled = stack.compiled if first else ()
        argv = (
            *(f"{prefix}/bin/python", f"{request.programs_folder}/inspect_env.py"),
            *("--framework", framework.package),
            *(() if horovod else ("--without-horovod",)),
            *(word for name, _ in compiled for word in ("--compiled", COMPILABLE[name].module)),
            *(("--gpu",) if request.arch.gpu else ()),
            *(("--cuobjdump", gpu.cuobjdump) if gpu and gpu.cuobjdump else ()),
        )
        expectation = Expectation(
            framework=framework.name,
            versions=(
                (framework.package, request.framework_pin(framework).version),
                *((("horovod", stack.horovod),) if stack.horovod and horovod else ()),
                *compiled,
                ("python", python.version),
            ),
            mpi_libraries=construction.mpi_libraries if horovod or compiled else (),
            allowed=(prefix, *construction.allowed, *_roots(facts, python)),
            gpu=_expected_gpu(request, facts),
            math=required_library(request.arch, stack) if first else None,
        )
        # The inspection runs before there is a modulefile.
        selected = tuple(pair for pair in loaded if pair[0] == framework.onednn_switch)
        launcher = request.site.launcher_to_node(request.arch)
        found.append(Inspect(command=Command(argv=argv, environ=selected, launcher=launcher), expectation=expectation))
    return tuple(found)


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
