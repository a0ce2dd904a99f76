"""What a server on this node needs to know: a free port, and the names of the node and of the user."""

from __future__ import annotations

import os
import socket

from provision.errors import ConfigError
from provision.machine.files.who_may_write import user_name


def node_name() -> str:
    """The name of this machine."""
    return socket.gethostname()


def login_name() -> str:
    """The name of the user who runs this."""
    return user_name(os.geteuid())


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
