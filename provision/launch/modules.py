"""The module system as lines of bash: how an environment with modules loaded comes to be. Pure text; `probe` runs it.

We never evaluate a modulecmd's output in our own process: bash sources the system's init file, loads the modules as a
user's job script would, and prints the environment that results.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence

from provision.knowledge.toolchains import generation
from provision.knowledge.versions import release
from provision.profile.module_system import ModuleSystem

# What a user's or an admin's shell may carry that changes what a build does. Index settings of pip and uv stay: a site
# without a direct way to the package index has nothing else.
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
)
DROPPED_PREFIXES = ("HOROVOD_", "VIRTUALENV_", "CMAKE_")
KEPT_INSTALLER_SETTINGS = (
    *("INDEX_URL", "EXTRA_INDEX_URL", "DEFAULT_INDEX", "INDEX", "CERT", "CLIENT_CERT", "PROXY", "TRUSTED_HOST"),
    *(
        "INSECURE_HOST",
        "FIND_LINKS",
        "NO_INDEX",
        "CONFIG_FILE",
        "CACHE_DIR",
        "DEFAULT_TIMEOUT",
        "HTTP_TIMEOUT",
        "OFFLINE",
    ),
    *("KEYRING_PROVIDER", "NATIVE_TLS", "SYSTEM_CERTS", "LINK_MODE"),
)


def clean_environ(environ: Mapping[str, str]) -> dict[str, str]:
    """The environment without what lies to builds, and telling Python to leave the user's own packages alone."""
    kept = {}
    for name, value in environ.items():
        tool, _, setting = name.partition("_")
        if tool in ("PIP", "UV") and setting not in KEPT_INSTALLER_SETTINGS:
            continue
        if name in DROPPED_VARIABLES or name.startswith(DROPPED_PREFIXES):
            continue
        kept[name] = value
    return {**kept, "PYTHONNOUSERSITE": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}


def drop_module_state(environ: Mapping[str, str]) -> dict[str, str]:
    """The environment without the state of a module system: loading starts from nothing, whoever calls us."""
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


# What an init file prints is talk: the environment goes out by a file descriptor of its own.
SEND_STDOUT_TO_STDERR = "exec 3>&1 1>&2"
PRINT_ENVIRON = "env -0 >&3"
# A script of `load_script` prints this and the module's name on stderr when a module cannot be loaded.
FAILED_MODULE = "provision-failed-module="


def activate_script(activate: str) -> str:
    """Bash that sources `activate` and prints the environment, as `load_script` does for modules."""
    return f"set -euo pipefail\n{SEND_STDOUT_TO_STDERR}\n. {shlex.quote(activate)}\n{PRINT_ENVIRON}\n"


def purge_script(system: ModuleSystem) -> str:
    """Bash that unloads what the caller has loaded, by the caller's own state, and prints the environment that is left.

    Dropping that state would leave what the modules did: their PATH entries and variables.
    """
    lines = ("set -eo pipefail", SEND_STDOUT_TO_STDERR, f"source {shlex.quote(system.init or '')}")
    return "\n".join((*lines, "module --force purge || module purge", PRINT_ENVIRON, ""))


RESET_LINES = {
    "purge": ("module purge >/dev/null 2>&1 || true",),
    "reset": ("module reset >/dev/null 2>&1 || true",),
    "none": (),
}


def reset_lines(system: ModuleSystem) -> list[str]:
    """Bash that starts from nothing, as the site has it."""
    return [*RESET_LINES[system.reset]]


def unload_lines(system: ModuleSystem, modules: Sequence[str]) -> list[str]:
    """Bash that takes modules away, sticky ones too; one that is not loaded is no fault."""
    force = " --force" if system.name == "lmod" else ""
    return [f"module{force} unload {shlex.quote(module)} >/dev/null 2>&1 || true" for module in modules]


def load_script(
    system: ModuleSystem,
    modules: Sequence[str],
    extra_path: Sequence[str] = (),
    last: str = PRINT_ENVIRON,
    unload: Sequence[str] = (),
) -> str:
    """Bash that starts from nothing as the site does, loads exactly `modules` in order, and then does `last`: prints the
    environment. `unload` are taken away first; one that is not loaded is no fault.

    `extra_path` are modulepaths in front of the site's. Both module systems tell a failed load by their exit code; that
    is followed by a look at what is really loaded.
    """
    if system.name == "none":
        return f"set -euo pipefail\n{SEND_STDOUT_TO_STDERR}\n{last}\n"
    lines = [
        "set -eo pipefail",  # init files of both systems use unset variables
        SEND_STDOUT_TO_STDERR,
        f"source {shlex.quote(system.init or '')}",
        *reset_lines(system),
        *(f"module use {shlex.quote(path)}" for path in reversed((*extra_path, *system.path))),
    ]
    lines += unload_lines(system, unload)
    for module in modules:
        name, failed = shlex.quote(module), f"echo {shlex.quote(f'{FAILED_MODULE}{module}')} >&2; exit 3"
        lines.append(f"module load {name} || {{ {failed}; }}")
        if not module.startswith("/"):
            lines.append(f'case ":$LOADEDMODULES:" in *:{name}:*|*:{name}/*) ;; *) {failed};; esac')
    return "\n".join((*lines, last, ""))


def find_newest_module(wanted: str, there: Sequence[str]) -> str | None:
    """The newest available module of the wanted name: of the same toolchain generation, if there is one.

    Names go up to the first digit behind the last slash: `datascience/tensorflow-1.10` is no `datascience/horovod-0.19`.
    """

    def name(module: str) -> str:
        folder, _, version = module.rpartition("/")
        return f"{folder}/{re.split(r'[0-9]', version)[0]}"

    same = [one for one in there if name(one) == name(wanted) or "/" not in wanted]
    mine = [one for one in same if generation(one) == generation(wanted)] if generation(wanted) else []
    return max(mine or same, key=lambda one: release(one.rpartition("/")[2]), default=None)


def resolve_loaded(modules: Sequence[str], environ: Mapping[str, str]) -> tuple[str, ...]:
    """The modules by the whole names under which they are loaded: `gcc` became `gcc/12.2.0`, which is what is recorded."""
    loaded = environ.get("LOADEDMODULES", "").split(":")
    return tuple(
        next((name for name in loaded if name == module or name.startswith(f"{module}/")), module) for module in modules
    )


def parse_environment(text: str) -> dict[str, str]:
    """The environment that `env -0` printed."""
    found = {}
    for entry in text.split("\0"):
        name, separator, value = entry.partition("=")
        if separator:
            found[name] = value
    return found


def failed_module(lines: Sequence[str]) -> str | None:
    """The module that a script of `load_script` could not load, from the lines of its stderr; None if it loaded all."""
    return next((line.removeprefix(FAILED_MODULE) for line in lines if line.startswith(FAILED_MODULE)), None)
