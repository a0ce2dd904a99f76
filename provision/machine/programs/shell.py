"""What the shell that started this process gave it: variables, the working folder, programs on PATH, a user on a node."""

from __future__ import annotations

import os
from collections.abc import Mapping

from provision.launch.program_path import steady_part


def environ() -> Mapping[str, str]:
    """The environment variables of this process."""
    return os.environ


def default_site(otherwise: str = "local") -> str:
    """The site of a command that names none."""
    return os.environ.get("PROVISION_SITE", otherwise)


def columns() -> int:
    """The width of the terminal, as shutil has it: from COLUMNS, else from the terminal, else 80."""
    try:
        return int(os.environ["COLUMNS"]) or 80
    except (KeyError, ValueError):
        pass
    try:
        return os.get_terminal_size().columns or 80
    except (OSError, ValueError):
        return 80


def absolute(path: str) -> str:
    """The path from the root of the file system; a relative path starts in the working folder."""
    return os.path.abspath(path)


def expand_home(path: str) -> str:
    """The path with the user's home instead of `~`."""
    return os.path.expanduser(path)


def expand_variables(path: str) -> str:
    """The path with the values of `$NAME` and `${NAME}`; those that are not set stay."""
    return os.path.expandvars(path)


def which(program: str, path: str | None = None) -> str | None:
    """The path of a program on PATH, or on another list of folders; None if no folder has it."""
    import shutil

    return shutil.which(program, path=path)


def find_program(name: str, environ: Mapping[str, str]) -> str | None:
    """The path of a program: where every shell finds it, otherwise in the folders of the caller's shell."""
    import shutil

    path = environ.get("PATH", "")
    return shutil.which(name, path=steady_part(path)) or shutil.which(name, path=path)


def node_name() -> str:
    """The name of this machine."""
    return os.uname().nodename


def login_name() -> str:
    """The name of the user who runs this."""
    from provision.machine.files.who_may_write import user_name  # it loads what the first words need not

    return user_name(os.geteuid())


def free_port(wanted: int | None) -> int:
    """A port of 127.0.0.1 on which nobody listens: this one, or any.

    Raises:
        ConfigError: the wanted port is taken.
    """
    import socket

    from provision.errors import ConfigError  # as above

    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", wanted or 0))
        except OSError as error:
            raise ConfigError(
                f"port {wanted} is not free on {node_name()}",
                evidence=[str(error)],
                hint="leave `--port` out: a free one is chosen",
            ) from error
        return int(probe.getsockname()[1])


def set_umask() -> None:
    """Write files that all users can read and only their owner can write, whatever the umask of the caller.

    PBS starts jobs with 0077, and some sites' shells have 0000 or 0002. Programs that we start (pip, compilers) inherit it.
    Folders that several admins write get their modes explicitly: see `shared_root.py`.
    """
    _of_shell.append(os.umask(0o022))


def umask_of_shell() -> int:
    """The umask that the caller's shell has; the tool's own, if `set_umask` was not called."""
    return _of_shell[0] if _of_shell else 0o022


_of_shell: list[int] = []
