"""Compares an environment with its plan: the report of `proof/programs/inspect_env.py`, and its compiled libraries. Pure.

Of a library: what it needs, where it searches, and for which CPU it was compiled; that is judged before the smoke test.
"""

from __future__ import annotations

import os.path
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from provision.knowledge.combinations import Combinations
from provision.knowledge.cuda import same_major
from provision.knowledge.frameworks import FRAMEWORKS
from provision.knowledge.frameworks.interface import REPORTED, FrameworkInterface, MathLibrary
from provision.model.check import Check, good, judged, skipped
from provision.model.operation import Expectation, ExpectedGpu
from provision.proof.reports import Report

# Where an operating system keeps its libraries.
SYSTEM = ("/lib", "/lib64", "/usr/lib", "/usr/lib64", "/usr/libexec", "/etc", "/opt/cray/lib64", "/opt/cray/libfabric")


def below(path: str, folders: tuple[str, ...]) -> bool:
    """Whether `path` is in one of the folders or below it."""
    return any(path == folder or path.startswith(folder.rstrip("/") + "/") for folder in folders)


def judge_inspection(
    program_report: Mapping[str, Any],
    expectation: Expectation,
    resolve: Callable[[str], str],
    links_out: Sequence[tuple[str, str]] = (),
) -> tuple[Check, ...]:
    """Compare the report with the expectation: one check for each question.

    `links_out` are the links of the environment that lead out of it, each with what it names.

    `resolve` follows symbolic links: the kernel names mapped files by their real paths.
    """
    report, framework = Report(program_report), FRAMEWORKS[expectation.framework]
    errors, versions = report.part("errors").fields, report.part("versions")
    mapped = report.texts("mapped_objects")
    checks = [
        judged(
            "imports",
            not any(name.startswith("import") for name in errors),
            "; ".join(f"{name}: {text}" for name, text in errors.items())
            or f"{framework.title}{' and Horovod' if expectation.horovod else ''} import{'' if expectation.horovod else 's'}",
        )
    ]
    for name, wanted in expectation.versions:
        seen = str(versions.get(name))
        same = wanted in (seen, seen.split("+")[0])
        checks.append(judged(f"version of {name}", same, f"planned {wanted}, seen {seen}"))
    if expectation.horovod:
        checks += _horovod(report, expectation, resolve)
    if expectation.mpi_libraries:
        checks.append(_mpi(mapped, expectation, resolve))
    checks += [
        _outside(mapped, expectation, resolve),
        _links(links_out),
        _math(report, expectation.math, framework),
        judged(
            "no packages from a home directory",
            report.get("enable_user_site") is not True,
            f"site.ENABLE_USER_SITE is {report.get('enable_user_site')}",
        ),
    ]
    if framework.brings:
        checks.append(_brought(mapped, expectation, framework))
    if expectation.gpu:
        checks += _gpu(report, framework, expectation.gpu, mapped, resolve)
    return tuple(checks)


def _links(links_out: Sequence[tuple[str, str]]) -> Check:
    """No file of the environment is elsewhere, such as in a user's cache."""
    return judged(
        "links",
        not links_out,
        "; ".join(f"{path} is a link to {target}" for path, target in links_out[:4])
        or "no link leads out of the environment",
        "`provision build --rebuild`, without a setting that makes an installer link to its cache",
    )


def _horovod(report: Report, expectation: Expectation, resolve: Callable[[str], str]) -> list[Check]:
    """Horovod is built for this framework, with MPI and without Gloo; its compiled part is loaded."""
    horovod, framework = report.part("horovod"), FRAMEWORKS[expectation.framework]
    flags, metadata = horovod.part("flags"), horovod.part("metadata").get(framework.name)
    extensions, mapped = horovod.texts("extensions"), report.texts("mapped_objects")
    loaded = any(resolve(path) in mapped for path in extensions)
    wanted, prints_mpi = dict(expectation.versions)[framework.package], "[X] MPI" in str(horovod.get("check_build"))
    return [
        judged(
            "framework built in",
            str(metadata).split("+")[0] == wanted and loaded,
            f"Horovod's metadata.json contains {framework.title} {metadata}, planned {wanted}; extensions: "
            f"{', '.join(os.path.basename(path) for path in extensions) or 'none'}"
            f"{'' if loaded or not extensions else ', not loaded'}",
        ),
        judged(
            "MPI built in",
            bool(flags.get("mpi_built")) and prints_mpi,
            f"mpi_built is {flags.get('mpi_built')}, check-build prints {'[X] MPI' if prints_mpi else 'no MPI'}",
        ),
        judged("Gloo left out", not flags.get("gloo_built"), f"gloo_built is {flags.get('gloo_built')}"),
    ]


def _gpu(
    report: Report,
    framework: FrameworkInterface,
    planned: ExpectedGpu,
    mapped: tuple[str, ...],
    resolve: Callable[[str], str],
) -> list[Check]:
    """What a build for GPUs must contain; the ranks prove that it runs on them."""
    built, driver = report.part(framework.package), report.part("cuda_driver")
    cuda = str(built.part("build_info").get("cuda_version"))
    with_horovod = planned.nccl_version is not None
    return [
        judged(
            f"{framework.title} with CUDA",
            bool(built.get("built_with_cuda"))
            and (planned.cuda_version is None or same_major(cuda, planned.cuda_version)),
            f"{framework.title} is built {f'with CUDA {cuda}' if built.get('built_with_cuda') else 'without CUDA'}, "
            f"{'Horovod with' if with_horovod else 'planned'} {planned.cuda_version or 'any'}",
        ),
        *(_horovod_gpu(report, planned, mapped, resolve) if with_horovod else ()),
        good(
            "driver",
            f"the driver of this node supports CUDA {driver.get('serves')}"
            if driver.get("serves")
            else f"this node has no driver, and a build does not need one: {driver.get('reason')}",
        ),
    ]


def _horovod_gpu(
    report: Report, planned: ExpectedGpu, mapped: tuple[str, ...], resolve: Callable[[str], str]
) -> list[Check]:
    """Horovod's NCCL and its device code."""
    horovod, errors = report.part("horovod"), report.part("errors")
    flags = horovod.part("flags")
    nccl = nccl_version(flags.get("nccl_built"))
    seen = [path for path in mapped if os.path.basename(path).startswith("libnccl.so")]
    wanted = resolve(planned.nccl_library) if planned.nccl_library else None
    code = horovod.texts("device_code")
    without = [capability for capability in planned.capabilities if capability not in code]
    if horovod.get("device_code") is not None or "device_code" in errors.fields:
        kernels = judged(
            "device code",
            not without,
            f"planned for {' '.join(planned.capabilities)}, in the library: "
            + (" ".join(code) or str(errors.get("device_code", "none"))),
            "the build ignored HOROVOD_BUILD_CUDA_CC_LIST; read the log of the step `compile`",
        )
    else:
        kernels = good("device code", "not inspected: this CUDA toolkit has no `cuobjdump`")
    return [
        judged(
            "NCCL built in",
            bool(flags.get("cuda_built")) and nccl == planned.nccl_version,
            f"planned NCCL {planned.nccl_version}, nccl_built is {nccl or 'none'}, cuda_built is {flags.get('cuda_built')}",
        ),
        judged(
            "linked NCCL",
            seen == ([wanted] if wanted else []),
            f"planned {wanted or 'a static one'}, loaded {', '.join(seen) or 'none'}",
            "another NCCL comes before the plan's: a wheel of it in the environment, or LD_LIBRARY_PATH"
            if seen
            else None,
        ),
        kernels,
    ]


def nccl_version(code: object) -> str | None:
    """`2.22.3` of the number that `hvd.nccl_built()` returns (NCCL's version code), None if it is 0 or not a number.

    NCCL's header: major * 10000 + minor * 100 + patch from 2.9 on, major * 1000 + minor * 100 + patch before.
    """
    if not isinstance(code, int) or code <= 0:
        return None
    scale = 10000 if code >= 10000 else 1000
    return f"{code // scale}.{code % scale // 100}.{code % 100}"


def _math(report: Report, required: MathLibrary | None, framework: FrameworkInterface) -> Check:
    """Which library computes on CPUs: the last digits of results depend on it, and the speed.

    If none is required, the check passes and is for the record.
    """
    math, errors = report.part("math"), report.part("errors")
    switch = framework.onednn_switch
    setting = math.get(switch) if switch else None
    why = f"chosen by {framework.title}" if setting is None else f"{switch}={setting}"
    reason = errors.get("math", "the report does not contain it")
    message = f"{math.get('backend')} on CPUs, {why}" if "backend" in math.fields else f"not known: {reason}"
    passed = required is None or math.get("backend") == REPORTED[required]
    return judged(
        "math backend",
        passed,
        message if passed or required is None else f"{message}, but {REPORTED[required]} is required",
        f"`math` in the stack or the profile requires it: set `{switch}` to 1 in their `environ`, or use a stack "
        "with Intel's package"
        if switch
        else None,
    )


def _mpi(mapped: tuple[str, ...], expectation: Expectation, resolve: Callable[[str], str]) -> Check:
    """The process has loaded the plan's libmpi, and no other."""
    seen = [
        path
        for path in mapped
        if os.path.basename(path).startswith(("libmpi.so", "libmpich.so", "libmpi_cray", "libmpi_gnu"))
    ]
    planned = {resolve(path) for path in expectation.mpi_libraries}
    # The mpich wheel has copies instead of links: libmpi.so and libmpi.so.12.
    others = [path for path in seen if not any(f"{path}.".startswith(f"{library}.") for library in planned)]
    return judged(
        "linked MPI",
        seen and not others,
        f"planned {', '.join(sorted(planned))}, loaded {', '.join(seen) or 'none'}",
        None if seen else "what is compiled was built without MPI, or with a static MPI",
    )


def _brought(mapped: tuple[str, ...], expectation: Expectation, framework: FrameworkInterface) -> Check:
    """CUDA's libraries are those of the environment's wheels: LD_LIBRARY_PATH of a module goes before their RUNPATH."""
    prefix, *_ = expectation.allowed
    seen = [path for path in mapped if os.path.basename(path).startswith(framework.brings)]
    others = [path for path in seen if not below(path, (prefix,))]
    return judged(
        "CUDA of the wheels",
        not others,
        f"{framework.title} was tested with the libraries of its own wheels, but loads {', '.join(others)}"
        if others
        else f"{len(seen)} libraries of CUDA, cuDNN and NCCL, all of the environment's wheels",
        "leave the module that puts their folder on LD_LIBRARY_PATH out of `modules` of the arch",
    )


def _outside(mapped: tuple[str, ...], expectation: Expectation, resolve: Callable[[str], str]) -> Check:
    """Every library comes from the environment, its modules, its Python or the system."""
    allowed = tuple(dict.fromkeys((*expectation.allowed, *(resolve(path) for path in expectation.allowed), *SYSTEM)))
    strange = [path for path in mapped if not below(path, allowed)]
    return judged(
        "nothing from outside",
        mapped and not strange,
        f"{len(mapped)} libraries mapped; from outside: {', '.join(strange) or 'none'}",
        "a library outside can change or disappear while the environment stays" if strange else None,
    )


# Patterns for grep over the disassembly, and the features of a CPU, by archspec's names, that the instruction needs: any of
# them will do. Of registers every use counts. Registers 16 to 31 that are narrower than zmm need AVX512VL, which Xeon Phi
# lacks; AVX512ER and AVX512PF are Xeon Phi's alone.
FEATURE_OF: Mapping[str, tuple[str, ...]] = {
    "%zmm": ("avx512f",),
    "%[xy]mm(1[6-9]|2[0-9]|3[01])": ("avx512vl",),
    "%ymm": ("avx",),
    r"\bvfn?m(add|sub)[0-9a-z]+": ("fma", "fma4"),
    r"\bvcvtp[hs]2p[hs]": ("f16c",),
    r"\bv(rcp28|rsqrt28|exp2|gatherpf|scatterpf)[0-9a-z]*": ("avx512er", "avx512pf"),
}
# Left out of our builds: a build that needs them took a switch from elsewhere.
UNWANTED = ("libccl.so", "libgloo.so", "libmlsl.so", "libmxnet.so")


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedObject:
    """The facts of one ELF file. `search` holds the folders of RPATH and RUNPATH, `versions` the newest version of each
    name (`GLIBC`, `GLIBCXX`) that it needs.

    `instructions`: how often the code has an instruction of each kind (`%zmm`), or None if it was not disassembled;
    `reason` says why.
    """

    path: str
    machine: str
    needed: tuple[str, ...]
    search: tuple[str, ...]
    symbols: frozenset[str]
    """Those that it defines or uses."""
    versions: tuple[tuple[str, str], ...]
    instructions: Mapping[str, int] | None = None
    reason: str = ""


def judge_objects(
    objects: Sequence[SharedObject],
    libraries: Sequence[SharedObject],
    *,
    allowed: Sequence[str],
    target: str,
    features: Collection[str],
    known: Combinations,
) -> tuple[Check, ...]:
    """One check for each question, over everything that was compiled.

    `libraries`: the plan's libmpi. `allowed`: folders from which libraries may be loaded. `features`: of the CPU `target`.
    """
    return (
        _needed(objects),
        _search(objects, allowed),
        _family(objects, libraries, known),
        _versions(objects),
        _instructions(objects, target, features),
    )


def _needed(objects: Sequence[SharedObject]) -> Check:
    """The extensions need one MPI, and nothing that our builds leave out."""
    needed = list(dict.fromkeys(name for one in objects for name in one.needed))
    mpis = [name for name in needed if name.startswith("libmpi")]
    unwanted = [name for name in needed if name.startswith(UNWANTED)]
    return judged(
        "needed libraries",
        len(mpis) <= 1 and not unwanted,
        f"needs {', '.join(needed)}" + (f"; not wanted: {', '.join(unwanted)}" if unwanted else ""),
        "a variable of the modules changed the build: `provision doctor` shows CCL_ROOT and others"
        if unwanted
        else None,
    )


def _search(objects: Sequence[SharedObject], allowed: Sequence[str]) -> Check:
    """The extensions search only folders that stay: of the environment, its modules and the system."""
    folders = list(dict.fromkeys(folder for one in objects for folder in one.search))
    places = (*allowed, *SYSTEM)
    strange = [
        folder
        for folder in folders
        if not folder.startswith("$ORIGIN")
        and not (folder.startswith("/") and below(os.path.normpath(folder), tuple(places)))
    ]
    return judged(
        "search paths",
        not strange,
        f"searches {', '.join(folders) or 'only the usual folders'}"
        + (f"; outside: {', '.join(strange)}" if strange else ""),
        "such a folder can disappear, or belong to another user",
    )


def _family(objects: Sequence[SharedObject], libraries: Sequence[SharedObject], known: Combinations) -> Check:
    """The extensions were compiled with the header of the same family of MPI as the plan's library.

    Only a program compiled against Open MPI uses its symbol; with MPICH's header, handles are numbers.
    """
    openmpi = next(row for row in known.mpi if row.name == "openmpi")
    compiled = "openmpi" if any(openmpi.symbol in one.symbols for one in objects) else "mpich"
    families = [row.name for one in libraries if (row := known.mpi_family(one.symbols))]
    linked = families[0] if families else None
    return judged(
        "MPI family",
        linked in (None, compiled),
        f"compiled with the header of {compiled}, the plan's library is {linked or 'of a family that is not known'}",
        "the wrapper is of another MPI than the library: `provision doctor`",
    )


def _versions(objects: Sequence[SharedObject]) -> Check:
    """The oldest glibc and libstdc++ with which the extensions can be loaded, for the record."""
    parts = dict.fromkeys(f"{name} {version}" for one in objects for name, version in one.versions)
    return good("symbol versions", f"needs {', '.join(parts) or 'none'} or newer")


def _instructions(objects: Sequence[SharedObject], target: str, features: Collection[str]) -> Check:
    """No instruction in the extensions is beyond the arch's CPU."""
    reasons = [one.reason or "it was not disassembled" for one in objects if one.instructions is None]
    if reasons:
        return skipped("instructions", f"not inspected: {reasons[0]}")
    beyond, seen = [], []
    for kind, wanted in FEATURE_OF.items():
        number = sum((one.instructions or {}).get(kind, 0) for one in objects)
        if number:
            seen.append(f"{'/'.join(wanted)} {number}")
            if not set(wanted) & set(features):
                beyond.append(f"{number} of {' or '.join(wanted)}")
    return judged(
        "instructions",
        not beyond,
        f"for {target}: {', '.join(seen) or 'none of AVX or newer'}"
        + (f"; its CPUs lack {', '.join(beyond)}" if beyond else ""),
        "a flag of the modules or of `build_environ` changed the target: `grep -- -march` in the log of the step `compile`",
    )
