"""A real OpenSSH server on a port of its own: a login node of a site, on this machine, for this user.

`ssh` and `rsync` are the real programs. On the client's PATH `ssh` is a file that adds the configuration of the test, because
OpenSSH reads `~/.ssh/config` of the account, whatever HOME is.
"""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

PROGRAMS = {"ssh": "openssh-client", "sshd": "openssh-server", "ssh-keygen": "openssh-client", "rsync": "rsync"}
PATH = f"{os.environ['PATH']}:/usr/sbin:/sbin"
USER = pwd.getpwuid(os.geteuid()).pw_name

SERVER = """\
ListenAddress 127.0.0.1
Port {port}
HostKey {folder}/host_key
AuthorizedKeysFile {folder}/key.pub
PidFile none
StrictModes no
UsePAM no
PasswordAuthentication no
SetEnv HOME={home}
"""
# Every host is the server, except the one where nothing answers.
CLIENT = """\
Host unreachable.example.org
  Port 1
Host *
  HostName 127.0.0.1
  Port {port}
  IdentityFile {folder}/key
  IdentitiesOnly yes
  IdentityAgent none
  StrictHostKeyChecking no
  UserKnownHostsFile {folder}/known_hosts
  GlobalKnownHostsFile /dev/null
  ConnectTimeout 20
"""


def missing_programs() -> str | None:
    """Why there can be no server here."""
    missing = sorted({package for program, package in PROGRAMS.items() if not shutil.which(program, path=PATH)})
    return f"missing: {', '.join(missing)} (`.ci/install` installs them)" if missing else None


@dataclass(frozen=True, slots=True, kw_only=True)
class LoginNode:
    """A running server: its folder, the home of its user, and the programs for a client's PATH."""

    folder: Path
    home: Path
    bin: Path

    def connections(self) -> list[str]:
        """The clients that are connected: each process that was started with the configuration of this node."""
        found = []
        for path in Path("/proc").glob("[0-9]*/cmdline"):
            with contextlib.suppress(OSError):
                if str(self.folder / "client").encode() in (line := path.read_bytes()):
                    found.append(line.replace(b"\0", b" ").decode())
        return found

    def logins(self) -> int:
        """How often a user has been authenticated."""
        return (self.folder / "log").read_text().count("Accepted publickey")

    def write_start_file(self, text: str) -> None:
        """What a login shell reads first."""
        (self.home / ".bash_profile").write_text(text)

    def protect_key(self, passphrase: str) -> None:
        """Let ssh ask for a passphrase in the terminal, as it asks for a second factor."""
        key = str(self.folder / "key")
        subprocess.run(["ssh-keygen", "-q", "-p", "-f", key, "-P", "", "-N", passphrase], check=True)


@contextlib.contextmanager
def login_node(folder: Path) -> Iterator[LoginNode]:
    """A server that runs while the context is open, in a new folder."""
    node = LoginNode(folder=folder, home=folder / "home", bin=folder / "bin")
    for path in (folder, node.home, node.bin):
        path.mkdir()
    for key in ("host_key", "key"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / key)], check=True)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    (folder / "server").write_text(SERVER.format(port=port, folder=folder, home=node.home))
    (folder / "client").write_text(CLIENT.format(port=port, folder=folder))
    (node.bin / "ssh").write_text(f'#!/bin/sh\nexec {shutil.which("ssh")} -F {folder}/client "$@"\n')
    (node.bin / "ssh").chmod(0o755)
    if os.geteuid() == 0:
        Path("/run/sshd").mkdir(exist_ok=True)  # the server refuses to start without it
    sshd = str(shutil.which("sshd", path=PATH))
    server = subprocess.Popen([sshd, "-D", "-f", str(folder / "server"), "-E", str(folder / "log")])
    try:
        _wait(port, server, folder / "log")
        yield node
    finally:
        server.terminate()
        server.wait()


def _wait(port: int, server: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline and server.poll() is None:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return
        time.sleep(0.05)
    raise RuntimeError(f"sshd does not answer: {log.read_text() if log.exists() else 'no log'}")
