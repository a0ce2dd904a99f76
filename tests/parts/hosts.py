"""Several hosts on one machine: each has its own network, name, /etc/hosts and process ids; a bridge joins them.

Real: the kernel's namespaces, veth pairs and bridge. What runs on a host listens on ports and speaks to other hosts by their
names as on a cluster, and files are shared. Nothing of it has a name on the machine, so that it goes with its processes:
where a host's first process ends, or the process that started it is killed, the kernel ends all of it and removes the links.
"""

from __future__ import annotations

import random
import socket
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

# With `--kill-child` the first process of a host ends with the one that waits for it, and all others with the first.
_APART = ("unshare", "--fork", "--kill-child", "--pid", "--mount-proc", "--net", "--mount", "--uts")
# The first process of a host. It stays, for orphans need a parent that reaps them: Slurm waits for zombies. Were the
# program its last command, bash would become it.
_HOST = """
set -euo pipefail
mount --bind "$1" /etc/hosts
echo "$2" >/proc/sys/kernel/hostname
ip link set lo up
for _ in {1..200}; do if ip link show eth0 >/dev/null 2>&1; then break; fi; sleep 0.05; done
ip address add "$3/24" dev eth0
ip link set eth0 up
shift 3
"$@"
exit
"""
# Of the block for benchmarks (RFC 2544): no machine's own network is there.
_NETWORKS = range(1, 255)
_OURS = 254


@dataclass(frozen=True, slots=True, kw_only=True)
class Network:
    """A network `198.18.<number>.0/24` with these hosts; `file` is their /etc/hosts."""

    number: int
    names: tuple[str, ...]
    file: Path

    @property
    def ours(self) -> str:
        """The address under which hosts reach this machine."""
        return f"198.18.{self.number}.{_OURS}"

    @property
    def link(self) -> str:
        """This machine's end of the link to the bridge."""
        return f"prov-{self.number}"

    def address(self, name: str) -> str:
        """The address of a host."""
        return f"198.18.{self.number}.{self.names.index(name) + 1}"

    def host(self, name: str, *argv: str) -> list[str]:
        """The command that becomes the host `name`, and runs `argv` there once it is plugged in."""
        return [*_APART, "bash", "-c", _HOST, "host", str(self.file), name, self.address(name), *argv]

    def plug_in(self, switch: int, name: str, pid: int) -> None:
        """Join the host that the process `pid` becomes to the bridge of the process `switch`."""
        _wait_for_network(pid)
        port = f"port{self.names.index(name) + 1}"
        _ip(switch, f"link add name {port} type veth peer name eth0 netns {pid}")
        _ip(switch, f"link set {port} master bridge up")


SWITCH = ("unshare", "--net", "sleep", "infinity")
"""The command that becomes the network's bridge, once it is handed to `make_network`."""


def make_network(switch: int, names: Sequence[str], folder: Path) -> Network:
    """A network whose bridge is with the process `switch`, and which this machine reaches. Writes `<folder>/hosts`."""
    _wait_for_network(switch)
    for number in random.sample(_NETWORKS, len(_NETWORKS)):
        network = Network(number=number, names=tuple(names), file=folder / "hosts")
        try:
            _ip(None, f"link add name {network.link} type veth peer name uplink netns {switch}")
        except OSError as error:
            if "File exists" in str(error):  # another cluster has this one
                continue
            raise
        break
    else:
        raise OSError("all networks of 198.18.0.0/16 are taken")
    _ip(None, f"address add {network.ours}/24 dev {network.link}")
    _ip(None, f"link set {network.link} up")
    _ip(switch, "link add name bridge type bridge")
    _ip(switch, "link set uplink master bridge up")
    _ip(switch, "link set bridge up")
    rows = [("127.0.0.1", "localhost"), (network.ours, socket.gethostname().split(".")[0])]
    rows += [(network.address(name), name) for name in names]
    network.file.write_text("".join(f"{address} {name}\n" for address, name in rows))
    return network


def why_not() -> str | None:
    """Why there can be no hosts here, or None."""
    trial = "ip link add name a type veth peer name b && ip link add name c type bridge && mount --bind /etc/hosts /etc/hosts"
    argv = [*_APART, "bash", "-e", "-c", trial]
    try:
        done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=30)
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    return done.stderr.strip() or f"unshare ended with {done.returncode}" if done.returncode else None


def _wait_for_network(pid: int) -> None:
    """Wait until a process is in a network of its own."""
    ours, end = Path("/proc/self/ns/net").readlink(), time.monotonic() + 10
    while Path(f"/proc/{pid}/ns/net").readlink() == ours:
        if time.monotonic() > end:
            raise OSError(f"process {pid} got no network of its own")
        time.sleep(0.01)


def _ip(pid: int | None, words: str) -> None:
    """Run `ip` here, or in the network of a process."""
    inside = [] if pid is None else ["nsenter", f"--net=/proc/{pid}/ns/net"]
    done = subprocess.run([*inside, "ip", *words.split()], capture_output=True, text=True, check=False)
    if done.returncode:
        raise OSError(f"`ip {words}`: {done.stderr.strip()}")
