"""What Spack is to use of a site: Python, the compiler, MPI, CUDA and NCCL, each as an external with a prefix and a target.

From the facts of a machine every prefix is known. From a profile alone none is: then it is a text that begins with
`UNKNOWN_PREFIX`, which `lock_checks` refuses before anything is installed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePosixPath

from provision.horovod.flags import gpu_environ
from provision.horovod.wheel import Build, site_environ
from provision.knowledge.targets import family_of, flags_for
from provision.model.facts import CompilerFacts, Facts, GpuFacts, Interpreter
from provision.model.problem import Problem, raise_problems
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


def externals_here(request: Request, facts: Facts, target: str, build: Build | None) -> tuple[External, ...]:
    """The externals of a machine with these facts; all have prefixes.

    Raises:
        PlanError: Spack could not use one of them.
    """
    assert facts.python is not None  # `draft` refuses a machine without Python
    family = family_of(target, target)
    found = [_python(facts.python, family)]
    if build is None or facts.compiler is None:
        return (*found, replace(UNUSED_COMPILER, target=family))
    found.append(_compiler(request, facts, facts.compiler, target))
    if facts.mpi is not None and request.mpi_lock is None:
        found.append(
            External(
                name=facts.mpi.family,
                spec=f"{facts.mpi.family}@{facts.mpi.version}",
                prefix=_above(facts.mpi.cxx),
                target=target,
                comment="the MPI of the site's modules",
                compilers=(("cxx", facts.mpi.cxx),),
                attributes=(("libraries", ":".join(facts.mpi.libraries)),),
            )
        )
    if facts.gpu is not None and request.arch.gpu is not None:
        found += _gpu(facts.gpu, target)
    raise_problems([problem for external in found if (problem := _unusable(external, request))])
    return tuple(found)


def _unusable(external: External, request: Request) -> Problem | None:
    """Why Spack could not use an external, which it would say much later or not at all."""
    name, _, version = external.spec.partition("@")
    modules = f"`archs.{request.arch.name}.modules` in `{request.site.origin}`"
    if not VERSION.fullmatch(version):
        return Problem(
            kind="broken",
            subject="external",
            message=f"Spack cannot read `{version}` as the version of `{name}`",
            evidence=(f"external: {external.spec}", f"prefix: {external.prefix}"),
            hint=f"a version has letters, digits, `.`, `_` and `-` only; change {modules} to a module whose {name} has one",
        )
    if not PREFIX.fullmatch(external.prefix):
        return Problem(
            kind="broken",
            subject="external",
            message=f"the modules give no usable prefix for `{name}`: `{external.prefix}`",
            evidence=tuple(f"{key}: {path}" for key, path in (*external.attributes, *external.compilers)),
            hint=f"its programs must be in a folder `PREFIX/bin` on PATH; change {modules}",
        )
    return None


def externals_of_profile(request: Request) -> tuple[External, ...]:
    """The externals that the profile names, for a machine that cannot be looked at; their prefixes are to be filled in."""
    arch, modules = request.arch, request.arch.modules
    family = family_of(arch.target, arch.target)
    python = _unknown("python", request.minor, family, "any Python of this minor version", assumed=False)
    found = [replace(python, attributes=(("executable", f"{python.prefix}/bin/python{request.minor}"),))]
    if request.stack.horovod is None:
        return (*found, replace(UNUSED_COMPILER, target=family))
    version = version_in(modules, r"gcc(?:core|-native)?")
    version, assumed = version or ASSUMED["gcc"], version is None
    # A compiler that is newer than those that archspec knows gets the flags of the newest.
    flags = f"{flags_for(arch.target, 'gcc', version)}"
    gcc = _unknown("gcc", version, arch.target, "", assumed=assumed)
    prefix = gcc.prefix
    found.append(
        External(
            name="gcc",
            spec=gcc.spec,
            prefix=prefix,
            target=arch.target,
            comment=gcc.comment,
            compilers=(("c", f"{prefix}/bin/{arch.compiler.cc}"), ("cxx", f"{prefix}/bin/{arch.compiler.cxx}")),
            sets=(("HOROVOD_BUILD_ARCH_FLAGS", flags), *_gpu_sets(request, None), *site_environ(request).items()),
        )
    )
    if request.mpi_lock is None:
        names = {"mpich": r"(?:cray-)?mpich", "openmpi": "openmpi"}
        version = version_in(modules, names[arch.mpi.family])
        mpi = _unknown(arch.mpi.family, version or ASSUMED[arch.mpi.family], arch.target, "", assumed=version is None)
        found.append(
            External(
                name=mpi.name,
                spec=mpi.spec,
                prefix=mpi.prefix,
                target=arch.target,
                comment=mpi.comment,
                compilers=(("cxx", f"{mpi.prefix}/bin/{arch.mpi.cxx}"),),
                attributes=(("libraries", f"{mpi.prefix}/lib/libmpi.so"),),
            )
        )
    if arch.gpu is not None:
        for name, pattern in (("cuda", "cuda(?:toolkit)?"), ("nccl", "nccl")):
            version = version_in(modules, pattern)
            external = _unknown(name, version or ASSUMED[name], arch.target, "", assumed=version is None)
            library = (("library", f"{external.prefix}/lib/libnccl.so.2"),) if name == "nccl" else ()
            found.append(replace(external, attributes=library))
    return tuple(found)


def compiler_in(externals: Sequence[External]) -> str:
    """Spack's name of the compiler among the externals; gcc's if nothing is compiled."""
    names = [external.name for external in externals if external.name in COMPILER_PACKAGES.values()]
    return names[0] if names else "gcc"


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


def _unknown(name: str, version: str, target: str, comment: str, *, assumed: bool) -> External:
    comment = "the profile does not name the version" if assumed else comment
    return External(
        name=name, spec=f"{name}@{version}", prefix=f"{UNKNOWN_PREFIX}{name.upper()}", target=target, comment=comment
    )


def _python(python: Interpreter, family: str) -> External:
    """Python, for the family of CPUs: an environment of packages that are not compiled here serves all archs."""
    return External(
        name="python",
        spec=f"python@{python.version}",
        prefix=_above(python.executable),
        target=family,
        comment="the Python of the site",
        attributes=(("executable", python.executable),),
    )


def _compiler(request: Request, facts: Facts, compiler: CompilerFacts, target: str) -> External:
    """The compiler, with the variables of the site's modules and of Horovod's build.

    Spack empties LD_LIBRARY_PATH and the like before it builds, and a batch job may have no module command.
    """
    name = COMPILER_PACKAGES[compiler.family]
    folder = PurePosixPath(compiler.cxx).parent
    flags = flags_for(target, compiler.family, compiler.version)
    spack = facts.spack
    return External(
        name=name,
        spec=f"{name}@{compiler.version}",
        prefix=str(folder.parent),
        target=target,
        comment="the compiler; `environment` is what the site's modules change, and how Horovod is configured",
        compilers=(("c", str(folder / request.arch.compiler.cc)), ("cxx", compiler.cxx)),
        sets=(
            *(spack.sets if spack else ()),
            ("HOROVOD_BUILD_ARCH_FLAGS", flags),
            *_gpu_sets(request, facts.gpu),
            *site_environ(request).items(),
        ),
        prepends=spack.prepends if spack else (),
    )


def _gpu_sets(request: Request, gpu: GpuFacts | None) -> tuple[tuple[str, str], ...]:
    if request.arch.gpu is None:
        return ()
    unknown = GpuFacts(
        cuda_home=f"{UNKNOWN_PREFIX}CUDA", cuda_version="", nccl_home=f"{UNKNOWN_PREFIX}NCCL", nccl_library=""
    )
    return tuple(gpu_environ(request.arch.gpu, gpu or unknown).items())


def _gpu(gpu: GpuFacts, target: str) -> list[External]:
    found = [
        External(name="cuda", spec=f"cuda@{gpu.cuda_version}", prefix=gpu.cuda_home, target=target, comment="CUDA")
    ]
    if gpu.nccl_library:
        found.append(
            External(
                name="nccl",
                spec=f"nccl@{gpu.nccl_version}",
                prefix=gpu.nccl_home or _above(gpu.nccl_library),
                target=target,
                comment="NCCL",
                attributes=(("library", gpu.nccl_library),),
            )
        )
    return found


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
