"""Probe this machine for facts: each probe runs a program, and a pure parser reads its output.

A probe does not raise an error if something is missing. It reports a fault with its fix, so that one run lists everything
that is missing.
"""

from __future__ import annotations

import dataclasses
import os
import re
import shutil
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from provision.errors import CommandError, Fault
from provision.horovod.wheel import c_wrapper
from provision.knowledge.versions import release
from provision.launch.modules import FAILED_MODULE, failed_module, load_script, replaced_module
from provision.launch.program_path import steady_part
from provision.machine.files.disk import is_file
from provision.machine.probes.loaded_modules import environment_after, unloaded, what_to_load
from provision.machine.probes.probe_gpu import Gpus, MissingError
from provision.machine.programs.run import capture
from provision.machine.programs.shell import find_program
from provision.model.facts import CompilerFacts, GpuFacts, Interpreter, MpiFacts
from provision.profile.arch import Arch
from provision.profile.site import Site
from provision.profile.stack import Stack

PYTHON_PROGRAM = (
    "import os,sys,sysconfig;"
    "print(os.path.realpath(getattr(sys,'_base_executable',None) or sys.executable));"
    "print('.'.join(map(str,sys.version_info[:3])));"
    "print((sysconfig.get_config_var('SOABI') or '')+' '+sysconfig.get_platform())"
)


T = TypeVar("T")


@dataclass(slots=True)
class Probes:
    """The probes of one arch, which collect faults."""

    site: Site
    arch: Arch
    faults: list[Fault] = field(default_factory=list)
    key: str = "modules"
    """The key of the arch that names its modules: those of a build, or `provided`."""

    def environment(self) -> dict[str, str]:
        """The cleaned environment with the arch's modules loaded; a module that cannot be loaded is a fault."""
        clean = unloaded(self.site.modules)
        if self.site.modules.name == "none":
            return clean
        loaded = self.ask("modules", "", lambda: self._loaded(clean))
        return clean if loaded is None else loaded

    def _loaded(self, clean: Mapping[str, str]) -> dict[str, str]:
        system, init, arch, origin = self.site.modules, self.site.modules.init or "", self.arch, self.site.origin
        if not is_file(init):
            message = f"the module system's init file `{init}` does not exist"
            hint = f"set `modules.init` in `{origin}`; search with `ls /usr/share/*/init/bash /usr/share/*/*/init/bash`"
            raise MissingError("missing", message, hint, [])
        setup = arch.provided_setup if self.key == "provided" else ()
        try:
            return environment_after(load_script(system, arch.modules, unload=arch.unload, setup=setup), clean)
        except CommandError as error:
            failed, replaced = failed_module(error.evidence), replaced_module(error.evidence)
            if replaced:
                old, new = replaced
                message = (
                    f"module `{old}` of arch `{arch.name}` is replaced when `{new}` is loaded: both are of one family"
                )
                hint = f"leave one of them out of `archs.{arch.name}.{self.key}` in `{origin}`"
                raise MissingError("mismatch", message, hint, list(error.evidence[:-1][:6])) from error
            if not failed:
                hint = f"run `source {init}` and read its messages"
                raise MissingError("broken", f"{error.message}: `{init}`", hint, error.evidence[-8:]) from error
            near, hint = what_to_load(self.site, failed, f"`archs.{arch.name}.{self.key}` in `{origin}`", clean)
            messages = [line for line in error.evidence if not line.startswith(FAILED_MODULE)][:6]
            raise MissingError(
                "missing",
                f"module `{failed}` of arch `{arch.name}` cannot be loaded{near}",
                hint,
                [*(f"searched: {path}" for path in system.path), *messages],
            ) from error

    def ask(self, subject: str, hint: str, probe: Callable[[], T]) -> T | None:
        """The answer of a probe; None if something is missing, which is a fault. `hint` is for a program that does not run."""
        try:
            return probe()
        except CommandError as error:
            missing = MissingError("broken", error.message, hint, error.evidence)
        except MissingError as error:
            missing = error
        self.faults.append(
            Fault(missing.kind, subject, missing.message, hint=missing.hint, evidence=tuple(missing.evidence))
        )
        return None

    def python(self, stack: Stack, environ: Mapping[str, str]) -> Interpreter | None:
        """The interpreter for the environment: the one that the arch names, otherwise the best one that the stack supports."""
        return self.ask("python", "", lambda: self._python(stack, environ))

    def _python(self, stack: Stack, environ: Mapping[str, str]) -> Interpreter:
        named = [self.arch.python] if self.arch.python else []
        our_minor = f"{sys.version_info[0]}.{sys.version_info[1]}"
        path, rejected = environ.get("PATH", ""), []
        places = (
            *(place for minor in stack.pythons for place in pythons(minor, environ)),
            *([sys.executable] if our_minor in stack.pythons else []),
            shutil.which("python3", path=steady_part(path)),
            *(place for minor in stack.pythons for place in own_pythons(minor, environ)),
            shutil.which("python3", path=path),
        )
        for place in dict.fromkeys(find_program(name, environ) for name in named) if named else dict.fromkeys(places):
            interpreter = interpreter_at(place, environ) if place else None
            if interpreter is None:
                continue
            if interpreter.minor in stack.pythons:
                return interpreter
            rejected.append(f"{place} is {interpreter.version}")
        wanted, evidence = " or ".join(stack.pythons), rejected or ["there is no Python on PATH"]
        if named:
            message = f"`{self.arch.python}` is not a Python {wanted}, which the stack `{stack.name}` needs"
            hint = f"set `archs.{self.arch.name}.python` in `{self.site.origin}`, or load a Python module"
            raise MissingError("missing", message, hint, evidence)
        message = f"there is no Python {wanted} on this machine, and `{stack.name}` has no wheels for another version"
        hint = f"`apt-get install python{stack.pythons[0]}` or load a module that provides it"
        raise MissingError("missing", message, hint, evidence)

    def packer(self, environ: Mapping[str, str]) -> None:
        """Report if the program is missing that makes the image of an environment."""
        if self.arch.deliver != "files" and shutil.which("mksquashfs", path=environ.get("PATH")) is None:
            message = "there is no `mksquashfs` on this machine, which makes the image of an environment"
            where = f"`archs.{self.arch.name}.deliver` in `{self.site.origin}`"
            hint = f'install squashfs-tools, or set {where} to "files"'
            self.faults.append(Fault("missing", "mksquashfs", message, hint=hint))

    def compiler(self, environ: Mapping[str, str]) -> CompilerFacts | None:
        """The C++ compiler, if it exists and works on a small input."""
        name, modules = self.arch.compiler.cxx, self.arch.modules
        hint = f"check the compiler module of arch `{self.arch.name}`" if modules else "`apt-get install g++`"

        def probe() -> CompilerFacts:
            path = find_program(name, environ)
            if path is None:
                evidence = [f"PATH: {environ.get('PATH', '')}"]
                raise MissingError("missing", f"there is no C++ compiler `{name}` on PATH", hint, evidence)
            done = capture((path, "-dumpfullversion", "-dumpversion"), environ)
            macros = capture((path, "-dM", "-E", "-x", "c++", os.devnull), environ)
            version = done.stdout.strip()
            if done.returncode or macros.returncode or not re.fullmatch(r"\d+(\.\d+)*", version):
                output = (done.stderr or macros.stderr or done.stdout).splitlines()[:4]
                raise MissingError("broken", f"`{path}` does not work as a C++ compiler", hint, output)
            return CompilerFacts(family="clang" if "__clang__" in macros.stdout else "gcc", version=version, cxx=path)

        return self.ask("compiler", hint, probe)

    def mpi(self, environ: Mapping[str, str]) -> MpiFacts | None:
        """The site's MPI, found through its compiler wrapper; None if MPI is a wheel."""
        wanted, name = self.arch.mpi, self.arch.mpi.cxx
        if wanted.provider != "site":
            return None
        hint = f"run `{find_program(name, environ)} -show`"

        def probe() -> MpiFacts:
            path = find_program(name, environ)
            if path is None:
                raise MissingError(
                    "missing",
                    f"there is no MPI: its compiler wrapper `{name}` is not on PATH",
                    f"add the MPI module to `archs.{self.arch.name}.modules` in `{self.site.origin}`",
                    [f"PATH: {environ.get('PATH', '')}"],
                )
            shown = capture((path, "-show"), environ)
            if shown.returncode:  # Cray's wrappers have another option for it
                shown = capture((path, "--cray-print-opts=all"), environ)
            macros = capture((path, "-dM", "-E", "-x", "c++", "-include", "mpi.h", os.devnull), environ)
            family, version = parse_mpi_macros(macros.stdout)
            if shown.returncode or family is None:
                output = (macros.stderr or shown.stderr).splitlines()[:4]
                message = f"`{path}` cannot compile a program that includes `mpi.h`"
                raise MissingError("broken", message, hint, output)
            if family != wanted.family:
                raise MissingError(
                    "mismatch",
                    f"`{path}` is {family} {version}, but arch `{self.arch.name}` requires {wanted.family}",
                    f"set `archs.{self.arch.name}.mpi.family`, or load the other MPI module",
                    [shown.stdout.strip()],
                )
            show = " ".join(shown.stdout.split())
            libraries, cc = mpi_libraries(show, family), find_program(c_wrapper(path), environ) or ""
            return MpiFacts(family=family, version=version, cxx=path, cc=cc, show=show, libraries=libraries)

        return self.ask("mpi", hint, probe)

    def gpu(
        self, environ: Mapping[str, str], compiler: CompilerFacts | None, *, compiles: bool = True
    ) -> GpuFacts | None:
        """CUDA and NCCL, or only CUDA if nothing is compiled; None for a CPU arch. Each missing part is one fault."""
        if self.arch.gpu is None:
            return None
        gpus = Gpus(arch=self.arch, gpu=self.arch.gpu, origin=self.site.origin, environ=environ)
        if not compiles:
            return self.ask("cuda", "`nvcc --version`", gpus.toolkit)
        cuda = self.ask("cuda", "`nvcc --version`", lambda: gpus.tried(compiler))
        nccl = self.ask("nccl", "", lambda: gpus.nccl(cuda.cuda_home if cuda else None))
        return dataclasses.replace(cuda, **nccl) if cuda and nccl else None


def interpreter_at(path: str, environ: Mapping[str, str]) -> Interpreter | None:
    """The interpreter at `path`; None if the file is not a working Python."""
    try:
        done = capture((path, "-I", "-c", PYTHON_PROGRAM), environ)
    except CommandError:
        return None
    lines = done.stdout.splitlines()
    if done.returncode or len(lines) != 3:
        return None
    return Interpreter(executable=lines[0], version=lines[1], tag=lines[2], own_venv=outlived(lines[1]))


def pythons(minor: str, environ: Mapping[str, str]) -> list[str]:
    """The possible paths of a Python of this minor version in every shell: of the system and modules, then of pyenv in the home.

    pyenv's shims run only selected versions.
    """
    on_path = shutil.which(f"python{minor}", path=steady_part(environ.get("PATH", "")))
    return [*([on_path] if on_path else []), *_of_pyenv(minor, Path(environ.get("HOME") or "/") / ".pyenv")]


def own_pythons(minor: str, environ: Mapping[str, str]) -> list[str]:
    """The possible paths that only the caller's shell has: in its own folders of PATH, and of its pyenv."""
    on_path, root = shutil.which(f"python{minor}", path=environ.get("PATH", "")), environ.get("PYENV_ROOT")
    return [*([on_path] if on_path else []), *(_of_pyenv(minor, Path(root)) if root else ())]


def _of_pyenv(minor: str, root: Path) -> list[str]:
    """The Pythons of this minor version that pyenv installed below `root`, the newest first."""
    try:
        found = sorted(root.glob(f"versions/{minor}.*/bin/python{minor}"), key=lambda path: release(path.parts[-3]))
    except OSError:
        return []  # another user's: a shell that su started has the variables of the caller
    return [str(path) for path in reversed(found)]


def interpreter_of(minor: str, environ: Mapping[str, str]) -> Interpreter | None:
    """A Python of this minor version; None if this machine has none."""
    places = (*pythons(minor, environ), *own_pythons(minor, environ))
    interpreters = (interpreter_at(path, environ) for path in places)
    return next((python for python in interpreters if python is not None and python.minor == minor), None)


def outlived(version: str) -> bool:
    """Whether this Python is older than the oldest one for which virtualenv contains a pip."""
    # virtualenv serves the Python that it runs on. Its import takes a fifth of a build that has nothing to do.
    if release(version)[:2] >= sys.version_info[:2]:
        return False
    from virtualenv.seed.wheels.embed import BUNDLE_SUPPORT

    return release(version)[:2] < min(map(release, BUNDLE_SUPPORT))


def parse_mpi_macros(text: str) -> tuple[str | None, str]:
    """The family and version that `mpi.h` defines (`MPICH_VERSION`, also of Cray and Intel, or `OMPI_*_VERSION`)."""
    macros = dict(re.findall(r"^#define (\w+) (.*)$", text, re.MULTILINE))
    if "MPICH_VERSION" in macros:
        return "mpich", macros["MPICH_VERSION"].strip('"')
    numbers = [macros.get(f"OMPI_{part}_VERSION") for part in ("MAJOR", "MINOR", "RELEASE")]
    if all(numbers):
        return "openmpi", ".".join(map(str, numbers))
    return None, ""


def mpi_libraries(show: str, family: str) -> tuple[str, ...]:
    """The libmpi files that the wrapper links from its `-L` folders, with symbolic links resolved.

    The name of Cray's library contains the compiler: `-lmpi_gnu_91`.
    """
    by_name = [f"lib{name}.so" for name in re.findall(r"(?:^|\s)-l\s*(mpi(?:ch)?_\w+)", show)]
    names = [*by_name, *(("libmpi.so", "libmpich.so") if family == "mpich" else ("libmpi.so",))]
    folders = re.findall(r"-L\s*(\S+)", show)
    files = [Path(folder) / name for folder in folders for name in names if is_file(f"{folder}/{name}")]
    return tuple(dict.fromkeys(str(path.resolve()) for path in files))
