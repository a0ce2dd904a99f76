"""The look at listening sockets sees them in the processes that a process started."""

from __future__ import annotations

import socket
import subprocess
import sys

import pytest

from parts.sockets import Listener, watch

CHILD = """
import socket, sys, time
made = socket.socket(socket.AF_INET6 if ":" in sys.argv[1] else socket.AF_INET)
made.bind((sys.argv[1], 0))
if sys.argv[2] == "listen":
    made.listen()
time.sleep(0.6)
"""
PARENT = """
import subprocess, sys
subprocess.run([sys.executable, "-c", *sys.argv[1:]], check=True)
"""


def seen(address: str, does: str = "listen") -> set[Listener]:
    """The listeners while a grandchild of this process is bound to the address."""
    try:
        with socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET) as one:
            one.bind((address, 0))
    except OSError as error:
        pytest.skip(f"no process can be bound to {address} here: {error}")
    words = [sys.executable, "-c", PARENT, CHILD, address, does]
    process = subprocess.Popen(words, text=True)
    watched = watch(process)
    assert process.returncode == 0
    assert watched.looks > 5
    return set(watched.listeners)


@pytest.mark.parametrize("address", ["0.0.0.0", "::"])
def test_a_port_on_all_addresses_is_seen_in_a_child_and_is_reachable(address: str) -> None:
    (listener,) = seen(address)
    assert listener.address == address
    assert listener.port > 0
    assert listener.program.startswith("python")
    assert listener.reachable


@pytest.mark.parametrize("address", ["127.0.0.1", "::1"])
def test_a_port_of_the_loopback_is_seen_but_is_not_reachable(address: str) -> None:
    (listener,) = seen(address)
    assert listener.address == address
    assert not listener.reachable


def test_a_socket_that_does_not_listen_is_not_seen() -> None:
    assert seen("0.0.0.0", "bind") == set()
