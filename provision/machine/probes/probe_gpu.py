"""Probe CUDA and NCCL: their folders and versions, from nvcc and `nccl.h`, with the arch's modules loaded.

The probes do not need a GPU or its driver: a node without them can compile for GPUs.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from provision.errors import CommandError, FaultKind
from provision.machine.files.disk import is_file
from provision.machine.programs.run import capture
from provision.machine.programs.shell import find_program
from provision.model.facts import CompilerFacts, GpuFacts
from provision.profile.arch import Arch, Gpu

# The variables with which modules name the folder (NVIDIA SDK, Cray PE, EasyBuild, Spack).
CUDA_VARIABLES = ("CUDA_HOME", "CUDA_PATH", "CUDA_ROOT", "CUDATOOLKIT_HOME", "EBROOTCUDA")
NCCL_VARIABLES = ("NCCL_HOME", "NCCL_ROOT", "NCCL_PATH", "NCCL_DIR", "EBROOTNCCL")
LIBRARY_FOLDERS = ("lib", "lib64", "lib/x86_64-linux-gnu", "lib/aarch64-linux-gnu")
# Programs load the first; a wheel from the package index contains only that one, without the link for the linker.
NCCL_LIBRARIES = {"SHARED": ("libnccl.so.2", "libnccl.so"), "STATIC": ("libnccl_static.a",)}
# CMake refuses a toolkit without it; a toolkit made of wheels contains only libcudart.so.13.
CUDART = ("lib*/libcudart.so", "lib/*/libcudart.so", "targets/*/lib/libcudart.so")
VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")


class MissingError(Exception):
    """Something that a probe needs and does not find; `Probes.ask` makes a fault of it."""

    def __init__(self, kind: FaultKind, message: str, hint: str, evidence: Sequence[str]) -> None:
        super().__init__(message)
        self.kind, self.message, self.hint, self.evidence = kind, message, hint, evidence


@dataclass(frozen=True, slots=True, kw_only=True)
class Gpus:
    """The probes of one arch's CUDA and NCCL. Each raises `MissingError`, or `CommandError` if a program does not run."""

    arch: Arch
    gpu: Gpu
    origin: str
    environ: Mapping[str, str]

    def toolkit(self) -> GpuFacts:
        """Only CUDA, whose libraries TensorFlow loads; nothing is compiled with it."""
        on_path = find_program("nvcc", self.environ)
        elsewhere = (toolkit_of(on_path, self.environ),) if on_path else ()
        home = self._home("cuda_home", CUDA_VARIABLES, "bin/nvcc", elsewhere)
        nvcc = f"{home}/bin/nvcc"
        done = capture((nvcc, "--version"), self.environ)
        version = parse_nvcc_version(done.stdout)
        if done.returncode or version is None:
            output = (done.stderr or done.stdout).splitlines()[:4]
            message = f"`{nvcc}` does not work: it does not print its version"
            raise MissingError("broken", message, f"`{nvcc} --version`", output)
        return GpuFacts(cuda_home=home, cuda_version=version)

    def tried(self, compiler: CompilerFacts | None) -> GpuFacts:
        """CUDA, after a test of its nvcc with the C++ compiler and for each capability."""
        facts = self.toolkit()
        home, version, nvcc = facts.cuda_home, facts.cuda_version, f"{facts.cuda_home}/bin/nvcc"
        codes = capture((nvcc, "--list-gpu-code"), self.environ)
        host = ("-ccbin", compiler.cxx) if compiler else ()
        tried = capture((nvcc, *host, "-x", "cu", "-E", os.devnull), self.environ)
        modules = f"`archs.{self.arch.name}.modules`"
        if not any(path for pattern in CUDART for path in Path(home).glob(pattern)):
            raise MissingError(
                "broken",
                f"CUDA {version} in `{home}` has no `libcudart.so`, so CMake does not accept it",
                f"load a complete CUDA toolkit ({modules}), or change {self._key('cuda_home')}",
                [f"searched for: {' '.join(CUDART)}"],
            )
        known = re.findall(r"^sm_(\d+)$", codes.stdout, re.MULTILINE)
        unknown = [capability for capability in self.gpu.capabilities if known and capability not in known]
        if unknown:
            raise MissingError(
                "mismatch",
                f"nvcc {version} cannot build code for compute capability {', '.join(unknown)}",
                f"load another CUDA, or change {self._key('capabilities')}",
                [f"it can build for: {' '.join(known)}"],
            )
        if tried.returncode:
            raise MissingError(
                "mismatch",
                f"nvcc {version} does not work with `{compiler.cxx if compiler else 'the C++ compiler'}`",
                f"load a compiler that this CUDA supports, or a newer CUDA ({modules}), or name a compiler "
                f"(`archs.{self.arch.name}.compiler`)",
                [line for line in tried.stderr.splitlines() if line.strip()][:4],
            )
        tool = f"{home}/bin/cuobjdump"
        return replace(facts, cuobjdump=tool if os.access(tool, os.X_OK) else None)

    def nccl(self, cuda_home: str | None) -> dict[str, str]:
        """The facts of NCCL: its folder, its version, and the library to link."""
        home = self._home("nccl_home", NCCL_VARIABLES, "include/nccl.h", filter(None, (cuda_home, "/usr")))
        header = Path(home) / "include" / "nccl.h"
        version = parse_nccl_header(header.read_text(encoding="utf-8", errors="replace"))
        key = self._key("nccl_home")
        if version is None:
            raise MissingError("broken", f"`{header}` does not define the version of NCCL", f"change {key}", [])
        places = [Path(home) / folder for folder in LIBRARY_FOLDERS]
        libraries = {
            kind: next((str(place / name) for name in names for place in places if is_file(f"{place}/{name}")), None)
            for kind, names in NCCL_LIBRARIES.items()
        }
        library = libraries[self.gpu.nccl_link]
        if library is None:
            other = {"SHARED": "STATIC", "STATIC": "SHARED"}[self.gpu.nccl_link]
            there = libraries[other]
            raise MissingError(
                "missing",
                f"NCCL {version} in `{home}` has no `{NCCL_LIBRARIES[self.gpu.nccl_link][0]}`",
                f'set `nccl_link = "{other}"`' if there else f"change {key}",
                [f"searched: {', '.join(map(str, places))}", *([f"there is: {there}"] if there else [])],
            )
        return {"nccl_home": home, "nccl_version": version, "nccl_library": library}

    def _key(self, key: str) -> str:
        return f"`archs.{self.arch.name}.gpu.{key}` in `{self.origin}`"

    def _home(self, key: str, variables: Sequence[str], mark: str, elsewhere: Iterable[str]) -> str:
        """The folder that the profile names, otherwise the first of the usual folders that contains `mark`."""
        named: str | None = getattr(self.gpu, key)
        change, modules = f"change {self._key(key)}", f"`archs.{self.arch.name}.modules`"
        if named is not None:
            unset = [name for name in VARIABLE.findall(named) if not self.environ.get(name)]
            if unset:
                raise MissingError(
                    "missing",
                    f"`{named}` cannot be expanded: the modules of arch `{self.arch.name}` do not set `{unset[0]}`",
                    f"`module show` lists what they set; {change} or {modules}",
                    [f"modules: {' '.join(self.arch.modules) or 'none'}"],
                )
            home: str = VARIABLE.sub(lambda match: self.environ[match[1]], named).rstrip("/") or "/"
            if not is_file(f"{home}/{mark}"):
                raise MissingError("missing", f"there is no `{mark}` in `{home}`", change, [f"from: {named}"])
            return home
        known = [self.environ[name].rstrip("/") for name in variables if self.environ.get(name, "").startswith("/")]
        searched = list(dict.fromkeys((*known, *elsewhere)))
        for home in searched:
            if is_file(f"{home}/{mark}"):
                return home
        what = key.removesuffix("_home").upper()
        raise MissingError(
            "missing",
            f"there is no {what} for arch `{self.arch.name}`: no `{mark}` in the usual folders",
            f"load a module that provides it ({modules}), or set {self._key(key)}",
            [f"searched: {', '.join(searched) or 'no folder'}", f"variables that can name it: {' '.join(variables)}"],
        )


def has_gpu() -> bool:
    """Whether this machine has a GPU: its driver makes the files /dev/nvidia0 and so on."""
    return any(Path("/dev").glob("nvidia[0-9]*"))


def toolkit_of(nvcc: str, environ: Mapping[str, str]) -> str:
    """The toolkit's folder of an nvcc on PATH, as nvcc itself reports it: the nvcc may be a script or a symbolic link."""
    try:
        done = capture((nvcc, "--dryrun", "-x", "cu", "-c", os.devnull, "-o", os.devnull), environ)
    except CommandError:
        return str(Path(nvcc).resolve().parent.parent)
    return parse_toolkit(done.stderr) or str(Path(nvcc).resolve().parent.parent)


def parse_toolkit(text: str) -> str | None:
    """The toolkit's folder in the output of `nvcc --dryrun`; None if it is not there."""
    here = re.search(r"^#\$ _HERE_=(/.+)$", text, re.MULTILINE)
    return os.path.dirname(os.path.normpath(here[1])) if here else None


def parse_nvcc_version(text: str) -> str | None:
    """The version in the output of `nvcc --version`, such as `12.4.131`."""
    match = re.search(r"\brelease \d+\.\d+, V(\d+(?:\.\d+)+)", text)
    return match[1] if match else None


def parse_nccl_header(text: str) -> str | None:
    """The version in the text of `nccl.h`, such as `2.22.3`; None if it defines no version."""
    parts = dict(re.findall(r"^[ \t]*#[ \t]*define[ \t]+NCCL_(MAJOR|MINOR|PATCH)[ \t]+(\d+)", text, re.MULTILINE))
    return ".".join(parts[part] for part in ("MAJOR", "MINOR", "PATCH")) if len(parts) == 3 else None
