"""A site's modules, emulated by real folders over this machine's compiler, MPICH and Python, and the module systems.

The modulefiles are plain Tcl that Lmod and Environment Modules both read: an explicit `conflict` with its own name,
a `.version` for the default, no `module-tag`, no `prereq`. Everything of a tree lies under its root, so a program that
was built against it can be distinguished from one that picked up the machine's own compiler or MPI.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

# Read when the tests are collected: a test may run with a HOME of its own.
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "provision-tests"
_PYENV = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
_SYSTEM_PATH = "/usr/local/bin:/usr/bin:/bin"


# -- module systems ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ModuleSystem:
    """A module system of this machine; sourcing `init` in bash defines `module`."""

    name: str
    init: Path


def _first(name: str, candidates: Sequence[Path]) -> ModuleSystem | None:
    return next((ModuleSystem(name, path) for path in candidates if path.is_file()), None)


# The copy that `.ci/install` unpacked, or the package where it is installed instead of Lmod.
_UNPACKED = CACHE / "environment-modules/usr/share/modules/init/bash"
LMOD = _first("lmod", [Path("/usr/share/lmod/lmod/init/bash"), Path("/opt/apps/lmod/lmod/init/bash")])
ENVIRONMENT_MODULES = _first("environment-modules", [_UNPACKED, Path("/usr/share/modules/init/bash")])
SYSTEMS = [
    pytest.param(system, id=name, marks=pytest.mark.skipif(system is None, reason=f"{name} is not installed"))
    for name, system in (("lmod", LMOD), ("environment-modules", ENVIRONMENT_MODULES))
]
"""The cases of a test that is about both."""


def needed(system: ModuleSystem | None) -> ModuleSystem:
    """The module system; the test is skipped where this machine lacks it."""
    if system is None:
        pytest.skip("one of the module systems is not installed here (`.ci/install` brings it)")
    return system


def bash(
    script: str,
    system: ModuleSystem,
    modulepath: Path | str,
    *,
    environ: Mapping[str, str] | None = None,
    timeout_s: float = 60,
) -> subprocess.CompletedProcess[str]:
    """Run a bash script in which `module` works, as in a fresh login shell at the site.

    Nothing is inherited (no BASH_ENV, no loaded modules, no pyenv) but HOME; `environ` adds to a bare environment. The
    exit code is the script's; stdout and stderr are its own.
    """
    clean = {
        "HOME": os.environ.get("HOME", "/"),
        "PATH": _SYSTEM_PATH,
        "LANG": "C.UTF-8",
        "TERM": "dumb",
        "MODULEPATH": str(modulepath),
    }
    # MODULEPATH again after init: both systems may add folders of their own to what they were given.
    prelude = '. "$1" && export MODULEPATH="$2" && shift 2 || exit 97\n'
    return subprocess.run(
        ["/bin/bash", "--noprofile", "--norc", "-c", prelude + script, "bash", str(system.init), str(modulepath)],
        env={**clean, **(environ or {})},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=timeout_s,
        check=False,
    )


# -- the tree ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Interpreter:
    """A base interpreter (never a virtual environment's, never a shim) that can build extensions."""

    executable: Path
    version: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ModuleTree:
    """What was built: `modules` maps each full name to its folder, `missing` each name left out to the reason."""

    root: Path
    modules: Mapping[str, Path]
    missing: Mapping[str, str] = field(default_factory=dict)

    @property
    def modulepath(self) -> Path:
        return self.root / "modulefiles"

    def name(self, package: str) -> str:
        """The full name of a package's default module: `gcc` -> `gcc/12.2.0`."""
        for full in self.modules:
            if full.split("/")[0] == package:
                return full
        reasons = [reason for full, reason in self.missing.items() if full.split("/")[0] == package]
        raise LookupError(f"no module `{package}` in the tree: {'; '.join(reasons) or 'never asked for'}")

    @property
    def gcc(self) -> str:
        return self.name("gcc")

    @property
    def mpich(self) -> str:
        return self.name("mpich")

    @property
    def python(self) -> str:
        return self.name("python")


def build_module_tree(root: Path, *, pythons: Sequence[str]) -> ModuleTree:
    """Make `root/software/<package>/<version>` and `root/modulefiles` out of what this machine has.

    Args:
        root: a folder to fill; its path has no white space, which neither Lmod 8.6 (`.version` files) nor MPICH's wrappers carry.
        pythons: versions (`3.11`) to look for; the first one found is the default.
    """
    builder = _Builder(root)
    builder.add_gcc()
    builder.add_mpich()
    builder.add_openmpi()
    for version in pythons:
        builder.add_python(version)
    return ModuleTree(root=root, modules=builder.modules, missing=builder.missing)


class _Builder:
    def __init__(self, root: Path) -> None:
        self.root = root
        self.modules: dict[str, Path] = {}
        self.missing: dict[str, str] = {}

    def add_gcc(self) -> None:
        compilers = {name: shutil.which(name, path=_SYSTEM_PATH) for name in ("gcc", "g++")}
        if absent := [name for name, path in compilers.items() if path is None]:
            self.missing["gcc"] = f"not installed: {', '.join(absent)}"
            return
        version = _output([str(compilers["gcc"]), "-dumpfullversion"])
        folder = self._folder("gcc", version)
        for name in ("gcc", "g++", "cpp", "gfortran", "gcc-ar", "gcc-nm", "gcc-ranlib"):
            if path := shutil.which(name, path=_SYSTEM_PATH):
                (folder / "bin" / name).symlink_to(path)
        for name, target in (("cc", "gcc"), ("c++", "g++")):
            (folder / "bin" / name).symlink_to(target)
        # GCC itself reads GCC_ROOT (gcc/prefix.cc) and looks there for its own headers: with the variable set and
        # nothing there, every compiler of the machine fails on `stddef.h`.
        internals = Path(_output([str(compilers["gcc"]), "-print-libgcc-file-name"])).resolve().parents[2]
        (folder / "lib").mkdir()
        (folder / "lib/gcc").symlink_to(internals)
        self._modulefile(
            "gcc",
            version,
            "the GNU compilers",
            [
                f"setenv GCC_ROOT {_tcl(folder)}",
                f"setenv CC {_tcl(folder / 'bin/gcc')}",
                f"setenv CXX {_tcl(folder / 'bin/g++')}",
                f"prepend-path PATH {_tcl(folder / 'bin')}",
            ],
            default=True,
        )

    def add_mpich(self) -> None:
        """MPICH as a site would install it: wrappers that name this folder, and its libraries found through it."""
        wrapper = shutil.which("mpicxx.mpich", path=_SYSTEM_PATH)
        if wrapper is None:
            self.missing["mpich"] = "not installed: mpich, libmpich-dev"
            return
        text = Path(wrapper).read_text()
        settings = dict(re.findall(r'^(\w+)="?([^"\n]*)"?$', text, flags=re.MULTILINE))
        version = settings["MPICH_VERSION"]
        include, lib = Path(settings["includedir"]), Path(settings["libdir"])
        folder = self._folder("mpich", version)
        (folder / "include").symlink_to(include)
        (folder / "lib").mkdir()
        for pattern in ("libmpi*.so", "libmpi*.so.*"):
            for library in lib.glob(pattern):
                if library.resolve().name.startswith("libmpich"):
                    (folder / "lib" / library.name).symlink_to(library.resolve())
        places = {"prefix": folder, "exec_prefix": folder, "includedir": folder / "include", "libdir": folder / "lib"}
        for name in ("mpicc", "mpicxx", "mpifort"):
            if path := shutil.which(f"{name}.mpich", path=_SYSTEM_PATH):
                script = Path(path).read_text()
                for key, place in places.items():
                    script = re.sub(rf"^{key}=.*$", f"{key}={place}", script, flags=re.MULTILINE)
                (folder / "bin" / name).write_text(script)
                (folder / "bin" / name).chmod(0o755)
        (folder / "bin/mpic++").symlink_to("mpicxx")
        for name in ("mpiexec.hydra", "hydra_pmi_proxy", "mpichversion"):
            if path := shutil.which(name, path=_SYSTEM_PATH):
                shutil.copy2(path, folder / "bin" / name)
        for name in ("mpiexec", "mpirun"):
            (folder / "bin" / name).symlink_to("mpiexec.hydra")
        self._modulefile(
            "mpich",
            version,
            "MPICH, of the family of Cray MPICH",
            [
                f"setenv MPICH_ROOT {_tcl(folder)}",
                f"setenv MPICH_DIR {_tcl(folder)}",
                f"prepend-path PATH {_tcl(folder / 'bin')}",
                f"prepend-path CPATH {_tcl(folder / 'include')}",
                f"prepend-path LIBRARY_PATH {_tcl(folder / 'lib')}",
                f"prepend-path LD_LIBRARY_PATH {_tcl(folder / 'lib')}",
            ],
            default=True,
        )

    def add_openmpi(self) -> None:
        """Open MPI's wrapper, launcher and libraries, which stay where the machine has them."""
        found = {name: shutil.which(f"{name}.openmpi", path=_SYSTEM_PATH) for name in ("mpicc", "mpicxx", "mpirun")}
        output = _output([str(found["mpicxx"]), "--showme:version"]) if found["mpicxx"] and found["mpirun"] else ""
        version = re.search(r"Open MPI (\S+)", output)
        if version is None:
            self.missing["openmpi"] = "not installed: openmpi-bin, libopenmpi-dev"
            return
        folder = self._folder("openmpi", version[1])
        for name, path in found.items():
            if path:
                (folder / "bin" / name).symlink_to(Path(path).resolve())
        self._modulefile(
            "openmpi",
            version[1],
            "Open MPI",
            [
                f"setenv OPENMPI_ROOT {_tcl(folder)}",
                f"prepend-path PATH {_tcl(folder / 'bin')}",
                # Its mpirun refuses root, as whom containers run tests.
                "setenv OMPI_ALLOW_RUN_AS_ROOT 1",
                "setenv OMPI_ALLOW_RUN_AS_ROOT_CONFIRM 1",
            ],
        )

    def add_python(self, version: str) -> None:
        name = f"python/{version}"
        found = find_interpreter(version)
        if found is None:
            self.missing[name] = f"no Python {version} with venv, ensurepip and Python.h on PATH or under pyenv"
            return
        folder = self._folder("python", version)
        for link in (f"python{version}", "python3", "python"):
            (folder / "bin" / link).symlink_to(found.executable)
        self._modulefile(
            "python",
            version,
            f"Python {found.version}",
            [f"setenv PYTHON_ROOT {_tcl(folder)}", f"prepend-path PATH {_tcl(folder / 'bin')}"],
            default=not any(full.startswith("python/") for full in self.modules if full != name),
        )

    def _folder(self, package: str, version: str) -> Path:
        folder = self.root / "software" / package / version
        (folder / "bin").mkdir(parents=True)
        self.modules[f"{package}/{version}"] = folder
        return folder

    def _modulefile(
        self, package: str, version: str, whatis: str, changes: Sequence[str], *, default: bool = False
    ) -> None:
        folder = self.root / "modulefiles" / package
        folder.mkdir(parents=True, exist_ok=True)
        lines = ["#%Module", f"module-whatis {_tcl(whatis)}", f"conflict {package}", *changes]
        (folder / version).write_text("\n".join(lines) + "\n")
        if default:
            (folder / ".version").write_text(f"#%Module\nset ModulesVersion {_tcl(version)}\n")


# What an interpreter must tell of itself; -I keeps the caller's PYTHON* out.
_ASK = """
import json, os, sys, sysconfig, venv, ensurepip, ssl, ctypes, zlib
header = os.path.join(sysconfig.get_paths()["include"], "Python.h")
base = getattr(sys, "_base_executable", None) or sys.executable
print(json.dumps([os.path.realpath(base), "%d.%d.%d" % sys.version_info[:3], os.path.exists(header)]))
"""


def find_interpreter(version: str) -> Interpreter | None:
    """The base interpreter for a version such as `3.11`, complete enough to build in: pyenv's first, then PATH's.

    A pyenv shim or a virtual environment's Python is only asked where the real one lies.
    """

    def release(folder: Path) -> tuple[int, ...]:
        return tuple(int(part) for part in re.findall(r"\d+", folder.name))

    folders = sorted(_PYENV.glob(f"versions/{version}.*"), key=release, reverse=True)
    candidates = [folder / "bin" / f"python{version}" for folder in folders]
    for folder in [*os.environ.get("PATH", "").split(os.pathsep), *_SYSTEM_PATH.split(os.pathsep)]:
        if folder:
            candidates.append(Path(folder) / f"python{version}")
    for candidate in dict.fromkeys(candidates):
        if not os.access(candidate, os.X_OK):
            continue
        asked = subprocess.run(
            [str(candidate), "-I", "-c", _ASK], capture_output=True, text=True, check=False, timeout=60
        )
        if asked.returncode == 0:
            executable, full, has_header = json.loads(asked.stdout)
            if has_header and full.startswith(f"{version}."):
                return Interpreter(executable=Path(executable), version=full)
    return None


def _output(argv: Sequence[str]) -> str:
    return subprocess.run(argv, capture_output=True, text=True, check=True, timeout=60).stdout.strip()


def _tcl(value: Path | str) -> str:
    """A value as one literal Tcl word: quotes, brackets, dollars and spaces in a path mean nothing to Tcl."""
    return '"' + re.sub(r'([\\"\[\]$])', r"\\\1", str(value)) + '"'
