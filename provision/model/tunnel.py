"""The ssh tunnel through which a person's own machine reaches a server on a node of a site. Pure."""

from __future__ import annotations

from provision.model.quoting import bash

# The port on the person's own machine: TensorBoard's own.
LOCAL_PORT = 6006


def tunnel_command(*, user: str, login: str | None, node: str, port: int) -> str:
    """The command for the person's own machine, from where only the login node can be reached.

    The server listens on 127.0.0.1 of `node`, so the tunnel has to end on that node: behind a public name there may be several
    login nodes. `login` is the public name; None: the profile has none.
    """
    forward = f"{LOCAL_PORT}:127.0.0.1:{port}"
    if login is None or login == node:
        return bash("ssh -N -L %s %s", forward, f"{user}@{node}")
    return bash("ssh -N -L %s -J %s %s", forward, f"{user}@{login}", f"{user}@{node}")
