"""What Spack is to use of a site: Python, the compiler, MPI, CUDA and NCCL, each as an external with a prefix and a target.

From the facts of a machine every prefix is known. From a profile alone none is: then it is a text that begins with
`UNKNOWN_PREFIX`, which `lock_checks` refuses before anything is installed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import PurePosixPath

from provision.errors import Fault, raise_faults
from provision.horovod.flags import gpu_environ
from provision.horovod.wheel import c_wrapper, site_environ
from provision.knowledge.targets import family_of, flags_for
from provision.model.facts import CompilerFacts, Cpu, Facts, Folder, GpuFacts, Interpreter, MpiFacts
from provision.model.request import Request

UNKNOWN_PREFIX = "/PREFIX-OF-"
# What Spack's grammar reads as a version (`spec_parser.py`, VERSION), and the paths of a folder that is not the root.
VERSION = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9_.-]*[A-Za-z0-9_])?")
PREFIX = re.compile(r"/[^/].*")
# Spack's names for the compilers whose family the probes know.
COMPILER_PACKAGES = {"gcc": "gcc", "clang": "llvm"}
# What a version is if neither a fact nor the name of a module gives it; a comment in spack.yaml says so.
ASSUMED = {"gcc": "12.2.0", "mpich": "4.1.2", "openmpi": "4.1.6", "cuda": "12.2", "nccl": "2.18.3"}


@dataclass(frozen=True, slots=True, kw_only=True)
class External:
    """One package that the site provides.

    `spec` is its name, version and variants, without a target. `attributes` are texts that the generated packages read,
    `compilers` the paths of compilers, and `environment` the changes that the site's modules make, as Spack writes them:
    `set` and `prepend_path`. `comment` is for the person who reads the file.
    """

    name: str
    spec: str
    prefix: str
    target: str
    comment: str = ""
    compilers: tuple[tuple[str, str], ...] = ()
    attributes: tuple[tuple[str, str], ...] = ()
    sets: tuple[tuple[str, str], ...] = ()
    prepends: tuple[tuple[str, str], ...] = ()


UNUSED_COMPILER = External(
    name="gcc",
    spec="gcc@12.2.0",
    prefix="/usr",
    target="",
    comment="not used, nothing is compiled: Spack does not solve without a compiler",
    compilers=(("c", "/usr/bin/gcc"), ("cxx", "/usr/bin/g++")),
)


# What a person reads of each external of a machine.
COMMENTS = {
    "python": "the Python of the site",
    "compiler": "the compiler; `environment` is what the site's modules change, and how Horovod is configured",
    "mpi": "the MPI of the site's modules",
    "cuda": "CUDA",
    "nccl": "NCCL",
}


def externals_here(request: Request, facts: Facts, target: str) -> tuple[External, ...]:
    """The externals of a machine with these facts; all have prefixes.

    Raises:
        PlanError: Spack could not use one of them.
    """
    found = tuple(_externals(request, facts, target, COMMENTS))
    raise_faults([fault for external in found if (fault := _unusable(external, request))])
    return found


def _externals(request: Request, facts: Facts, target: str, comments: Mapping[str, str]) -> Iterator[External]:
    """An external for each part of the facts; Python's is for the family of CPUs, so that packages serve all archs."""
    python, compiler, mpi, gpu, spack = facts.python, facts.compiler, facts.mpi, facts.gpu, facts.spack
    assert python is not None  # the planner refuses a machine without Python
    family = family_of(target, target)
    yield External(
        name="python",
        spec=f"python@{python.version}",
        prefix=_above(python.executable),
        target=family,
        comment=comments["python"],
        attributes=(("executable", python.executable),),
    )
    if not request.stack.from_source or compiler is None:
        yield replace(UNUSED_COMPILER, target=family)
        return
    gpu = gpu if request.arch.gpu else None
    name = COMPILER_PACKAGES[compiler.family]
    # Spack empties LD_LIBRARY_PATH and the like before it builds, and a batch job may have no module command. A compiler that
    # is newer than those that archspec knows gets the flags of the newest.
    yield External(
        name=name,
        spec=f"{name}@{compiler.version}",
        prefix=_above(compiler.cxx),
        target=target,
        comment=comments["compiler"],
        compilers=(("c", str(PurePosixPath(compiler.cxx).with_name(request.arch.compiler.cc))), ("cxx", compiler.cxx)),
        sets=(
            *(spack.sets if spack else ()),
            ("HOROVOD_BUILD_ARCH_FLAGS", flags_for(target, compiler.family, compiler.version)),
            *(gpu_environ(request.arch.gpu, gpu).items() if gpu and request.arch.gpu else ()),
            *site_environ(request).items(),
        ),
        prepends=spack.prepends if spack else (),
    )
    if mpi is not None and request.mpi_lock is None:
        yield External(
            name=mpi.family,
            spec=f"{mpi.family}@{mpi.version}",
            prefix=_above(mpi.cxx),
            target=target,
            comment=comments["mpi"],
            compilers=(*((("c", mpi.cc),) if mpi.cc else ()), ("cxx", mpi.cxx)),
            attributes=(("libraries", ":".join(mpi.libraries)),),
        )
    if gpu:
        cuda = f"cuda@{gpu.cuda_version}"
        yield External(name="cuda", spec=cuda, prefix=gpu.cuda_home, target=target, comment=comments["cuda"])
    if gpu and gpu.nccl_library:
        yield External(
            name="nccl",
            spec=f"nccl@{gpu.nccl_version}",
            prefix=gpu.nccl_home or _above(gpu.nccl_library),
            target=target,
            comment=comments["nccl"],
            attributes=(("library", gpu.nccl_library),),
        )


def _unusable(external: External, request: Request) -> Fault | None:
    """Why Spack could not use an external, which it would say much later or not at all."""
    name, _, version = external.spec.partition("@")
    modules = f"`archs.{request.arch.name}.modules` in `{request.site.origin}`"
    if not VERSION.fullmatch(version):
        return Fault(
            "broken",
            "external",
            f"Spack cannot read `{version}` as the version of `{name}`",
            evidence=(f"external: {external.spec}", f"prefix: {external.prefix}"),
            hint=f"a version has letters, digits, `.`, `_` and `-` only; change {modules} to a module whose {name} has one",
        )
    if not PREFIX.fullmatch(external.prefix):
        return Fault(
            "broken",
            "external",
            f"the modules give no usable prefix for `{name}`: `{external.prefix}`",
            evidence=tuple(f"{key}: {path}" for key, path in (*external.attributes, *external.compilers)),
            hint=f"its programs must be in a folder `PREFIX/bin` on PATH; change {modules}",
        )
    return None


def externals_of_profile(request: Request) -> tuple[External, ...]:
    """The externals that the profile names, for a machine that cannot be looked at; their prefixes are to be filled in."""
    arch, minor = request.arch, request.minor
    mpi_name = {"mpich": r"(?:cray-)?mpich", "openmpi": "openmpi"}[arch.mpi.family]
    names = {"gcc": r"gcc(?:core|-native)?", arch.mpi.family: mpi_name, "cuda": "cuda(?:toolkit)?", "nccl": "nccl"}
    named = {name: version_in(arch.modules, pattern) for name, pattern in names.items()}
    comments = {name: "" if version else "the profile does not name the version" for name, version in named.items()}
    comments |= {
        "python": "any Python of this minor version",
        "compiler": comments["gcc"],
        "mpi": comments[arch.mpi.family],
    }
    version = {name: version or ASSUMED[name] for name, version in named.items()}
    prefix = {name: f"{UNKNOWN_PREFIX}{name.upper()}" for name in (*names, "python")}
    mpi = prefix[arch.mpi.family]
    facts = Facts(
        host="",
        job=None,
        cpu=Cpu(target=arch.target, features=frozenset()),
        python=Interpreter(executable=f"{prefix['python']}/bin/python{minor}", version=minor, tag=""),
        compiler=CompilerFacts(family="gcc", version=version["gcc"], cxx=f"{prefix['gcc']}/bin/{arch.compiler.cxx}"),
        mpi=MpiFacts(
            family=arch.mpi.family,
            version=version[arch.mpi.family],
            cxx=f"{mpi}/bin/{arch.mpi.cxx}",
            cc=c_wrapper(f"{mpi}/bin/{arch.mpi.cxx}"),
            show="",
            libraries=(f"{mpi}/lib/libmpi.so",),
        ),
        modules=arch.modules,
        tool_python="",
        uv=None,
        cores=0,
        place=Folder(path="", is_folder=True, writable=True, runs=True, free_bytes=0),
        gpu=GpuFacts(
            cuda_home=prefix["cuda"],
            cuda_version=version["cuda"],
            nccl_home=prefix["nccl"],
            nccl_version=version["nccl"],
            nccl_library=f"{prefix['nccl']}/lib/libnccl.so.2",
        ),
    )
    return tuple(_externals(request, facts, arch.target, comments))


def version_in(modules: tuple[str, ...], name: str) -> str | None:
    """The version that the name of a module gives for a package: `12.2` in `cudatoolkit/12.2`, `11.3.0` in `…-GCC-11.3.0`."""
    at_start = re.compile(rf"^{name}/(?:[a-z]+/)?v?([0-9]+(?:\.[0-9]+)+)", re.IGNORECASE)
    inside = re.compile(rf"-{name}-([0-9]+(?:\.[0-9]+)+)", re.IGNORECASE)
    for pattern in (at_start, inside):
        for module in modules:
            match = pattern.search(module)
            if match:
                return match[1]
    return None


def _above(path: str) -> str:
    """The prefix of a program or library: the folder above its `bin` or `lib`."""
    return str(PurePosixPath(path).parent.parent)


def module_changes(
    before: Mapping[str, str], after: Mapping[str, str]
) -> tuple[tuple[tuple[str, str], ...], tuple[tuple[str, str], ...]]:
    """What loading the site's modules changes: the variables that it sets, and what it puts in front of lists of paths.

    The state of the module system itself is left out: Spack does not run `module`.
    """
    sets, prepends = [], []
    for name in sorted(after):
        value, old = after[name], before.get(name)
        if value == old or name in IGNORED or name.startswith(MODULE_STATE):
            continue
        if name.endswith("PATH"):
            # Not the text in front of the old value: Lmod also drops duplicates from what the caller had.
            had = (old or "").split(":")
            new = dict.fromkeys(entry for entry in value.split(":") if entry and entry not in had)
            prepends += [(name, ":".join(new))] if new else []
        else:
            sets.append((name, value))
    return tuple(sets), tuple(prepends)


IGNORED = ("_", "PWD", "OLDPWD", "SHLVL", "SHELLOPTS", "BASHOPTS", "HOME", "MANPATH", "ENV", "FPATH")
MODULE_STATE = ("LOADEDMODULES", "_LMFILES_", "MODULE", "_ModuleTable", "LMOD_", "__", "BASH_", "FPATH", "SLURM")
