"""Bash lines that load modules and print the environment that results. Pure text; `machine/probes/probe.py` runs it.

We never evaluate the output of a modulecmd in our own process. Instead, bash sources the init file of the module system,
loads the modules as a user's job script would, and prints the environment that results.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from provision.knowledge.index_settings import is_installer_setting
from provision.knowledge.srun_variables import OF_A_STEP
from provision.knowledge.toolchains import generation
from provision.knowledge.versions import release
from provision.model.quoting import Code, bash, words
from provision.profile.module_system import ModuleSystem

# Variables of a user's shell that would change the result of a build. The index settings of pip and uv are kept: a site
# that cannot reach the public package index directly depends on them.
DROPPED_VARIABLES = (
    "PYTHONHOME",
    "PYTHONPATH",
    "PYTHONSTARTUP",
    "PYTHONUSERBASE",
    "PYTHONDONTWRITEBYTECODE",
    "PYTHONOPTIMIZE",
    "PYTHONSAFEPATH",
    "LD_LIBRARY_PATH",
    "LD_PRELOAD",
    "LIBRARY_PATH",
    "CPATH",
    "C_INCLUDE_PATH",
    "CPLUS_INCLUDE_PATH",
    "GCC_ROOT",
    "GCC_EXEC_PREFIX",
    "MPICH_CC",
    "MPICH_CXX",
    "OMPI_CC",
    "OMPI_CXX",
    "I_MPI_CC",
    "I_MPI_CXX",
    "LD_RUN_PATH",
    "PKG_CONFIG_PATH",
    "SETUPTOOLS_USE_DISTUTILS",
    "VIRTUAL_ENV",
    "CONDA_PREFIX",
    "CC",
    "CXX",
    "CFLAGS",
    "CXXFLAGS",
    "CPPFLAGS",
    "LDFLAGS",
    "MAKEFLAGS",
    "CUDACXX",
    "CUDAHOSTCXX",
    "CUDAFLAGS",
    "CUDAARCHS",
    "NVCC_CCBIN",
    "NVCC_PREPEND_FLAGS",
    "NVCC_APPEND_FLAGS",
    "PROVISION_ENVIRONMENT",
    # With this variable Horovod's CMake links oneCCL, whatever HOROVOD_CPU_OPERATIONS is.
    "CCL_ROOT",
    *(f"SLURM_{name}" for name in OF_A_STEP),
)
DROPPED_PREFIXES = ("HOROVOD_", "VIRTUALENV_", "CMAKE_")


def clean_environ(environ: Mapping[str, str]) -> dict[str, str]:
    """The environment without the variables that would change a build; Python ignores the packages in the user's home."""
    kept = {}
    for name, value in environ.items():
        if name.startswith(("PIP_", "UV_")) and not is_installer_setting(name):
            continue
        if name in DROPPED_VARIABLES or name.startswith(DROPPED_PREFIXES):
            continue
        kept[name] = value
    return {**kept, "PYTHONNOUSERSITE": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}


def drop_module_state(environ: Mapping[str, str]) -> dict[str, str]:
    """The environment without the state of a module system, so that loading starts clean for every caller."""
    state = (
        "LOADEDMODULES",
        "_LMFILES_",
        "MODULEPATH",
        "_ModuleTable",
        "LMOD_",
        "MODULES_",
        "__Init_",
        "__LMOD",
        "__MODULES",
        "BASH_FUNC_",
        "BASH_ENV",
    )
    return {name: value for name, value in environ.items() if not name.startswith(state)}


# An init file may print anything, so the environment is written to a separate file descriptor.
SEND_STDOUT_TO_STDERR = Code("exec 3>&1 1>&2")
PRINT_ENVIRON = Code("env -0 >&3")
STRICT = Code("set -euo pipefail")
# The init files of both module systems use unset variables.
NEARLY_STRICT = Code("set -eo pipefail")
LINES, NOTHING = Code("\n"), Code("")
# A script of `load_script` prints this and the name of the module on stderr if a module cannot be loaded.
FAILED_MODULE = "provision-failed-module="
# And this, with two names, if a module has replaced one that was loaded before it: both are of one family of Lmod.
REPLACED_MODULE = "provision-replaced-module="


def activate_script(activate: str) -> Code:
    """Bash that sources the file `activate` and prints the environment, as `load_script` does for modules."""
    return LINES.join((STRICT, SEND_STDOUT_TO_STDERR, bash(". %s", activate), PRINT_ENVIRON, NOTHING))


def start_lines(system: ModuleSystem) -> tuple[Code, Code]:
    """Bash that makes the command `module`. The last command of an init file may be false, so the command is what counts."""
    missing = bash("echo %s >&2; exit 1", f"`{system.init}` does not define the command `module`")
    return bash("source %s || true", system.init or ""), bash("command -v module >/dev/null || { %s; }", missing)


def purge_script(system: ModuleSystem) -> Code:
    """Bash that unloads the caller's modules, using the caller's module state, and prints the remaining environment.

    Dropping only the state would keep what the modules did: their PATH entries and variables.
    """
    lines = (NEARLY_STRICT, SEND_STDOUT_TO_STDERR, *start_lines(system))
    return LINES.join((*lines, Code("module --force purge || module purge"), PRINT_ENVIRON, NOTHING))


def reset_lines(system: ModuleSystem) -> list[Code]:
    """Bash that unloads all modules in the way that the profile sets."""
    return [] if system.reset == "none" else [bash("module %s >/dev/null 2>&1 || true", system.reset)]


def unload_lines(system: ModuleSystem, modules: Sequence[str]) -> list[Code]:
    """Bash that unloads modules, sticky ones included. A module that is not loaded is not an error."""
    unload = Code("module --force unload" if system.name == "lmod" else "module unload")
    return [bash("%s %s >/dev/null 2>&1 || true", unload, module) for module in modules]


def load_script(
    system: ModuleSystem,
    modules: Sequence[str],
    extra_path: Sequence[str] = (),
    last: Code = PRINT_ENVIRON,
    unload: Sequence[str] = (),
    setup: Sequence[str] = (),
) -> Code:
    """Bash that resets the modules, unloads `unload`, loads exactly `modules` in order, runs `setup`, and ends with `last`.

    `last` prints the environment by default. A module of `unload` that is not loaded is not an error. `extra_path` holds
    modulepaths that come before those of the site. Both module systems report a failed load with their exit code; the
    script also checks which modules are really loaded.
    """
    if system.name == "none":
        return LINES.join((STRICT, SEND_STDOUT_TO_STDERR, last, NOTHING))
    lines = [
        NEARLY_STRICT,
        SEND_STDOUT_TO_STDERR,
        *start_lines(system),
        *reset_lines(system),
        *(bash("module use %s", path) for path in reversed((*extra_path, *system.path))),
    ]
    lines += unload_lines(system, unload)
    for number, module in enumerate(modules):
        failed = bash("echo %s >&2; exit 3", f"{FAILED_MODULE}{module}")
        lines.append(bash("module load %s || { %s; }", module, failed))
        for needed in (module, *modules[:number]):
            if not needed.startswith("/"):
                replaced = bash("echo %s >&2; exit 3", f"{REPLACED_MODULE}{needed} {module}")
                wrong = failed if needed is module else replaced
                lines.append(bash('case ":$LOADEDMODULES:" in *:%s:*|*:%s/*) ;; *) %s;; esac', needed, needed, wrong))
    return LINES.join((*lines, *(words(command.split(" ")) for command in setup), last, NOTHING))


def find_newest_module(wanted: str, available: Sequence[str]) -> str | None:
    """The newest available module of the wanted name: of the same toolchain generation, if there is one.

    A name ends before the first digit after the last slash, so `datascience/tensorflow-1.10` and
    `datascience/horovod-0.19` have different names.
    """

    def name(module: str) -> str:
        folder, _, version = module.rpartition("/")
        return f"{folder}/{re.split(r'[0-9]', version)[0]}"

    same_name = [module for module in available if name(module) == name(wanted) or "/" not in wanted]
    same_generation = []
    if generation(wanted):
        same_generation = [module for module in same_name if generation(module) == generation(wanted)]
    return max(same_generation or same_name, key=lambda module: release(module.rpartition("/")[2]), default=None)


def resolve_loaded(modules: Sequence[str], environ: Mapping[str, str]) -> tuple[str, ...]:
    """The full names of the loaded modules: `gcc` was loaded as `gcc/12.2.0`, and that name is recorded."""
    loaded = environ.get("LOADEDMODULES", "").split(":")
    return tuple(
        next((name for name in loaded if name == module or name.startswith(f"{module}/")), module) for module in modules
    )


def parse_environment(text: str) -> dict[str, str]:
    """The environment that `env -0` printed."""
    entries = (entry.partition("=") for entry in text.split("\0"))
    return {name: value for name, separator, value in entries if separator}


def failed_module(lines: Sequence[str]) -> str | None:
    """The module that a script of `load_script` could not load, from the lines of its stderr; None if it loaded all."""
    return next((line.removeprefix(FAILED_MODULE) for line in lines if line.startswith(FAILED_MODULE)), None)


def replaced_module(lines: Sequence[str]) -> tuple[str, str] | None:
    """The module that a later one replaced in a script of `load_script`, and that one; None if all stayed loaded."""
    found = (line.removeprefix(REPLACED_MODULE) for line in lines if line.startswith(REPLACED_MODULE))
    old, _, new = next(found, "").partition(" ")
    return (old, new) if new else None
