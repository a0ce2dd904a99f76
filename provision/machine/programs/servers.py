"""What a server on this node needs to know: a free port, and the names of the node and of the user."""

from __future__ import annotations

import os
import pwd
import socket

from provision.errors import ConfigError


def node_name() -> str:
    """The name of this machine."""
    return socket.gethostname()


def login_name() -> str:
    """The name of the user who runs this."""
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return os.environ.get("USER", "USER")


def free_port(wanted: int | None) -> int:
    """A port of 127.0.0.1 on which nobody listens: this one, or any.

    Raises:
        ConfigError: the wanted port is taken.
    """
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
