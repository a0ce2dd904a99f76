"""The modules of a real site, by their own names and of their own shapes, over the local parts of a module tree.

Names without a version, with three parts, with a toolchain behind them; what a login shell has loaded; a sticky default.
The sites' own compilers and MPI cannot be had: gcc, MPICH, Open MPI and CPython of this machine stand behind the names.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

from parts.modules import ModuleSystem, ModuleTree

VARIABLES = (("bin", "PATH"), ("include", "CPATH"), ("lib", "LIBRARY_PATH"), ("lib", "LD_LIBRARY_PATH"))


class SiteModules:
    """A site's modulefiles under `root`, and the init file that its jobs source.

    Args:
        root: a folder to fill.
        tree: where the parts are.
        system: the module system behind the init file.
        loaded: what a login shell has loaded already, and `module reset` goes back to.
    """

    def __init__(self, root: Path, tree: ModuleTree, system: ModuleSystem, *, loaded: Sequence[str] = ()) -> None:
        self.root, self.tree, self.system, self.loaded = root, tree, system, tuple(loaded)
        self.path = root / "modulefiles"
        self.path.mkdir(parents=True)
        self.init = root / "init.bash"
        lines = [f"source {shlex.quote(str(system.init))}"]
        if system.name == "lmod":
            lines += [
                f"export MODULEPATH={shlex.quote(str(self.path))}",
                f"export LMOD_SYSTEM_DEFAULT_MODULES={shlex.quote(':'.join(self.loaded))}",
                'if [ -z "${__Init_Default_Modules:-}" ]; then',
                "  export __Init_Default_Modules=1",
                *([f"  module load {shlex.join(self.loaded)}"] if self.loaded else []),
                "fi",
            ]
        else:
            lines += [
                'if [ -z "${LOADEDMODULES:-}" ]; then',
                f"  export MODULEPATH={shlex.quote(str(self.path))}",
                *([f"  module load {shlex.join(self.loaded)}"] if self.loaded else []),
                "fi",
            ]
        self.init.write_text("\n".join(lines) + "\n")

    def add(self, name: str, *parts: str, **environ: str) -> None:
        """A module: the folders of these packages of the tree (`gcc`, or `python/3.7`), and variables."""
        folders = [self.tree.modules[part if "/" in part else self.tree.name(part)] for part in parts]
        lines = ["#%Module", f"module-whatis {name}"]
        for folder in folders:
            lines += [f"prepend-path {path} {folder / sub}" for sub, path in VARIABLES if (folder / sub).is_dir()]
        lines += [f"setenv {variable} {{{value}}}" for variable, value in environ.items()]
        file = self.path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("\n".join(lines) + "\n")

    def add_openmpi(self, name: str, *more: str) -> None:
        """Open MPI with these other packages.

        Its mpirun refuses root, as whom containers run tests, and its ranks wait busily where they believe to have a CPU
        each: those of an emulated node are not there.
        """
        environ = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
        self.add(name, "openmpi", *more, **environ, OMPI_MCA_mpi_yield_when_idle="1")

    def add_sticky(self, name: str) -> None:
        """An empty module that Lmod unloads only by force."""
        (self.path / f"{name}.lua").write_text('add_property("lmod", "sticky")\n')

    def add_cray_compilers(self, name: str) -> None:
        """A programming environment of Cray's: `CC` and `cc`, a stand-in over MPICH's wrappers.

        As documented, they need what the module sets, tell their options by `--cray-print-opts=all`, and do not know `-show`.
        """
        mpich, place = self.tree.modules[self.tree.name("mpich")], self.root / "craype" / "bin"
        place.mkdir(parents=True)
        for driver, wrapper in (("CC", "mpicxx"), ("cc", "mpicc")):
            program = place / driver
            program.write_text(
                "#!/usr/bin/env bash\nset -euo pipefail\n"
                f"wrapper={shlex.quote(str(mpich / 'bin' / wrapper))}\n"
                '[ -n "${PE_ENV:-}" ] || { echo "error: no PrgEnv-* module is loaded" >&2; exit 1; }\n'
                'case "${1:-}" in\n'
                '--cray-print-opts=all) "$wrapper" -show | cut -d " " -f 2- ;;\n'
                "-show) echo \"error: unrecognized command-line option '-show'\" >&2; exit 1 ;;\n"
                '*) exec "$wrapper" "$@" ;;\nesac\n'
            )
            program.chmod(0o755)
        self.add(name, "gcc", "mpich", PE_ENV="GNU")
        file = self.path / name
        file.write_text(file.read_text() + f"prepend-path PATH {place}\n")
