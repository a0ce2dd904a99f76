"""A process without any network (a namespace of its own, in which only the loopback interface is up), and what one serves.

Real: the kernel's. MPI needs the loopback, a node without it is none.
"""

from __future__ import annotations

import contextlib
import http.server
import os
import socket
import ssl
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

# SIOCSIFFLAGS with IFF_UP on `lo`, then become the program.
_UP = """
import fcntl, os, socket, struct, sys
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
    fcntl.ioctl(one, 0x8914, struct.pack("16sh14x", b"lo", 1))
os.execvp(sys.argv[1], sys.argv[1:])
"""


def without_network(*argv: str) -> list[str]:
    """The command that runs `argv` where there is no network."""
    user = [] if os.geteuid() == 0 else ["--map-root-user"]
    return ["unshare", *user, "--net", sys.executable, "-c", _UP, *argv]


def why_not() -> str | None:
    """Why no process can be cut off here, or None."""
    try:
        done = subprocess.run(without_network("true"), capture_output=True, text=True, check=False)
    except OSError as error:
        return str(error)
    return done.stderr.strip() or "unshare failed" if done.returncode else None


def free_port() -> int:
    """A port of the loopback interface that is free now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def served(process: subprocess.Popen[str], address: str) -> str:
    """The page at this address, once the process serves it."""
    while True:
        try:
            with urllib.request.urlopen(address) as answer:
                return str(answer.read().decode())
        except OSError:
            assert process.poll() is None, process.communicate()
            time.sleep(0.1)


@contextlib.contextmanager
def serving(handler: type[http.server.BaseHTTPRequestHandler], *pems: Path) -> Iterator[int]:
    """Answer by this handler, as long as the context lasts, by TLS if a certificate and its key are given; the port."""
    quiet = type("Quiet", (handler,), {"log_message": lambda *_: None})
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), quiet)
    if pems:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*pems)
        server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()


def files_in(folder: Path) -> type[http.server.SimpleHTTPRequestHandler]:
    """What answers with the files of this folder."""
    return type("Files", (http.server.SimpleHTTPRequestHandler,), {"translate_path": lambda _, path: f"{folder}{path}"})
