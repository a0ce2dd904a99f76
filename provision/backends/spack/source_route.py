"""The route `source`: spack.yaml for Spack's own recipes, with the versions that the stack's lock has. Pure.

Spack then compiles TensorFlow itself, with bazel, a JDK, LLVM and Rust. `provision build` does not take this route: it is for
sites that want every package from source, with plain Spack. What the text contains that the route `wheels` does not need was
found by trying (Spack 1.2.0.dev0, spack-packages 1e8cf05): every py-horovod is deprecated there for its advisories, Keras and
the estimator are not tied to TensorFlow's version, and variants for GPUs reach LLVM and hwloc.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import PurePosixPath

from provision.backends.spack.environment_yaml import SpackEnvironment, external_lines, solved_lines
from provision.backends.spack.externals import External, compiler_in
from provision.backends.spack.repository import refuse_compiling
from provision.backends.spack.scalar import scalar
from provision.model.request import Request

# What Spack's recipe of Python asks of an external one.
PYTHON_VARIANTS = "+bz2+ctypes+dbm+lzma+pyexpat+sqlite3+ssl+zlib~tkinter"
# What the recipes for TensorFlow leave open, although only one minor version fits.
TIED = ("keras", "tensorflow-estimator")


def root_spec(request: Request) -> str:
    """The package that the environment is made for, with the versions that fit each other."""
    arch, stack = request.arch, request.stack
    refuse_compiling(stack)
    gpu = arch.gpu is not None
    framework = f"{stack.framework.interface.spack}@{stack.framework.version}{'+cuda+nccl' if gpu else ''}"
    tied = [f"^py-{name}@{minor}" for name in TIED if (minor := _minor(request, name))]
    if stack.horovod is None:
        return " ".join((framework, *tied))
    kinds = "tensor_ops=nccl +cuda" if gpu else "tensor_ops=mpi ~cuda"
    horovod = f"py-horovod@{stack.horovod} frameworks=tensorflow,keras controllers=mpi {kinds}"
    return " ".join((horovod, f"^{framework}", *tied))


def _minor(request: Request, name: str) -> str | None:
    pin = request.lock.pin(name)
    return _first_two(pin.version) if pin else None


def _first_two(version: str) -> str:
    return ".".join(version.split(".")[:2])


def source_yaml(environment: SpackEnvironment) -> str:
    """The text of spack.yaml for Spack's own recipes."""
    request, target, externals = environment.request, environment.target, environment.externals
    compiler = next(external for external in externals if external.name == compiler_in(externals))
    version = compiler.spec.partition("@")[2]
    gpu = request.arch.gpu
    codes = ",".join(gpu.capabilities) if gpu else ""
    variants = f"+cuda cuda_arch={codes} ~rocm" if gpu else "~cuda ~rocm"
    lines = [
        *environment.head,
        "#",
        "# Spack's own recipes compile about 155 packages, TensorFlow among them: with bazel, a JDK, LLVM and Rust. That needs",
        "# hours, network on the node that builds or a whole mirror, and 50 GB. With Spack 1.0 or newer:",
        "#     spack -e . concretize && spack -e . install",
        *solved_lines(
            root_spec(request), *(f"py-{name}@{_first_two(version)}" for name, version in request.stack.compiled)
        ),
        "  config:",
        "    deprecated: true                # all versions of py-horovod are marked so, for CVE-2024-10190",
        "  view: false",
        "  packages:",
        "    all:",
        f"      require: [{scalar(f'target={target}')}]",
        f"      variants: {scalar(variants)}",
        *(
            line
            for name in ("c", "cxx", "fortran")
            for line in (f"    {name}:", f"      require: [{compiler.name}@{version}]")
        ),
    ]
    lines += external_lines([_for_builtin(external, target, codes) for external in externals])
    return "\n".join(lines) + "\n"


def _for_builtin(external: External, target: str, codes: str) -> External:
    """An external as Spack's own recipes want it; all have the target of the arch, since they are compiled for it."""
    cuda = f"+cuda cuda_arch={codes}" if codes else ""
    more = {
        "python": PYTHON_VARIANTS,
        "gcc": " languages:='c,c++,fortran'",
        "nccl": cuda,
        "mpich": "+cuda" if codes else "",
        "openmpi": cuda,
    }
    kept = tuple((name, value) for name, value in external.sets if not name.startswith("HOROVOD_"))
    compilers = external.compilers
    if external.name == "gcc":  # OpenBLAS has Fortran
        compilers = (*compilers, ("fortran", str(PurePosixPath(compilers[0][1]).with_name("gfortran"))))
    spec = external.spec + more.get(external.name, "")
    return replace(external, spec=spec, target=target, attributes=(), sets=kept, compilers=compilers)
