"""Workers that no MPI brings together: the number of one, the addresses of all, and the end of one that waits for ever.

The rules of `rank.py` hold here too; nothing here is of a framework. Under srun the cluster comes from TensorFlow's own
resolver (see `multiworker.py`). Other launchers give a process only its number, so the workers exchange their addresses
with files in the folder of the reports, which all nodes see.
"""

import faulthandler
import fcntl
import json
import os
import re
import socket
import struct
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

# Rank and size: MPICH's Hydra, PALS and srun with an MPI plugin; Open MPI; srun alone. The order matters: Hydra starts its
# proxies with srun, and then Slurm's variables describe a proxy.
RANKS = (
    ("PMI_RANK", "PMI_SIZE"),
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("SLURM_PROCID", "SLURM_STEP_NUM_TASKS"),
)
LOCAL_RANKS = ("MPI_LOCALRANKID", "PALS_LOCAL_RANKID", "OMPI_COMM_WORLD_LOCAL_RANK", "SLURM_LOCALID")
LOOPBACK = "127."
SIOCGIFADDR = 0x8915  # linux/sockios.h
CONNECT_S = 5
PROXIES = ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "all_proxy", "ALL_PROXY", "grpc_proxy")


def place(environ):
    """The rank of this process, the number of processes, the rank on the node, and whether srun started the processes."""
    for rank, size in RANKS:
        if rank in environ and size in environ:
            rank_and_size = int(environ[rank]), int(environ[size])
            break
    else:
        names = ", ".join("{} and {}".format(*pair) for pair in RANKS)
        raise RuntimeError("the launcher did not set the number of this worker: none of {} is set".format(names))
    local = next((int(environ[name]) for name in LOCAL_RANKS if name in environ), 0)
    step = tuple(environ.get(name) for name in RANKS[-1])
    by_srun = step == tuple(map(str, rank_and_size))
    return {"rank": rank_and_size[0], "size": rank_and_size[1], "local_rank": local, "srun": by_srun}


def tf_config(workers, rank):
    """The text of TF_CONFIG for worker `rank` of the workers at these addresses."""
    return json.dumps({"cluster": {"worker": list(workers)}, "task": {"type": "worker", "index": rank}})


def unset_proxies(environ):
    """Remove the proxy variables, because a proxy would block the traffic between workers; returns their names."""
    return [name for name in PROXIES if environ.pop(name, None) is not None]


def most_tasks(tasks_per_node):
    """The largest number of tasks on a node, from Slurm's `2(x3),1`."""
    return max(int(count) for count in re.findall(r"(\d+)(?:\(x\d+\))?", tasks_per_node))


def port_base(job):
    """The first port of a job's workers: it differs between jobs on one node, and is below Linux's own range (32768)."""
    return 12000 + int(job) * 64 % 20000


def exchange(folder, rank, size, limit, value):
    """The values of all workers, by rank: each writes a file, and waits for those of the others.

    Raises:
        RuntimeError: some workers did not appear within `limit` seconds, or the folder is of another run.
    """
    os.makedirs(folder, exist_ok=True)
    paths = [os.path.join(folder, "{}.json".format(worker)) for worker in range(size)]
    if os.path.exists(paths[rank]):
        raise RuntimeError("{} already exists: give each run an empty folder".format(paths[rank]))
    with open(paths[rank] + ".part", "w") as stream:
        json.dump(value, stream)
    os.rename(stream.name, paths[rank])
    end = time.time() + limit
    while True:
        missing = [worker for worker, path in enumerate(paths) if not os.path.exists(path)]
        if not missing:
            break
        if time.time() > end:
            raise RuntimeError("workers did not appear within {} s: {}".format(limit, ", ".join(map(str, missing))))
        time.sleep(0.05)
    values = []
    for path in paths:
        with open(path) as stream:
            values.append(json.load(stream))
    return values


def own_interfaces():
    """The network interfaces of this machine that have an IPv4 address, without the loopback, as pairs of name and address."""
    found = []
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asked:
        for _, name in socket.if_nameindex():
            try:
                answer = fcntl.ioctl(asked.fileno(), SIOCGIFADDR, struct.pack("256s", name.encode()[:15]))
            except OSError:
                continue  # it has no IPv4 address
            found.append((name, socket.inet_ntoa(answer[20:24])))
    return [(name, address) for name, address in found if not address.startswith(LOOPBACK)]


def reach(address, port):
    """The numeric address at which another node answers; None if nothing does, or if this node has that address itself."""
    try:
        with socket.create_connection((address, port), CONNECT_S) as connection:
            peer, own = connection.getpeername()[0], connection.getsockname()[0]
            return None if peer.startswith(LOOPBACK) or peer == own else peer
    except OSError:
        return None


def choose_address(names, answers, wanted=()):
    """The address of a node that all other nodes reach, and its interface.

    Args:
        names: the host name of the node, then its interfaces, each with its address.
        answers: for each other node, the numeric address at which it reached each of the names, or None.
        wanted: the only interfaces that may be chosen, if the site has set some.

    Raises:
        RuntimeError: there is no such address.
    """
    (host, _), *interfaces = names
    for at, (_, address) in enumerate(names):
        reached = {answer[at] for answer in answers}
        if None in reached or len(reached) != 1:
            continue
        (numeric,) = reached
        interface = next((card for card, own in interfaces if own == numeric), None)
        if not wanted or interface in wanted:
            return address, interface
    tried = ", ".join("{} ({})".format(*pair) for pair in interfaces) or "none but the loopback"
    only = " by the interface that is set, {}".format(",".join(wanted)) if wanted else ""
    raise RuntimeError(
        "the other nodes cannot connect to {}{}: they tried its name and its interfaces, {}".format(host, only, tried)
    )


def meet(folder, rank, size, limit, host=None, wanted=()):
    """Publish the address of this worker, wait for the others, and find addresses at which all nodes reach each other.

    A host name is not enough: on some machines it has the address 127.0.1.1, on others that of a network that the other nodes
    do not have. So one worker of each node tries the name and all interfaces of each other node. `wanted` are the only interfaces
    of this node that may be used.

    A worker holds its port until all workers have seen all addresses, so that two workers on a node cannot get the same port.
    It listens on another one: who connects early to a port that is only held is refused, and tries again.

    Returns:
        `workers`, the addresses of all by rank; `interface`, that of this node on which the others reach it; `local_size`, the
        number of workers on this node.

    Raises:
        RuntimeError: as `exchange`; or a node cannot be reached.
    """
    with socket.socket() as holder, socket.socket() as listener:
        holder.bind(("", 0))
        listener.bind(("", 0))
        listener.listen(1024)
        host, port = host or socket.gethostname(), holder.getsockname()[1]
        names = [(host, host)] + own_interfaces()
        mine = [host, port, names, wanted, listener.getsockname()[1]]
        everyone = exchange(os.path.join(folder, "addresses"), rank, size, limit, mine)
        hosts = [one[0] for one in everyone]
        firsts = {name: hosts.index(name) for name in hosts}
        answers = {}
        if firsts[host] == rank and len(firsts) > 1:
            others = [(name, everyone[first]) for name, first in firsts.items() if name != host]
            tried = [(name, address, one[4]) for name, one in others for _, address in one[2]]
            with ThreadPoolExecutor(32) as pool:
                for (name, _, _), answer in zip(tried, pool.map(lambda one: reach(*one[1:]), tried)):
                    answers.setdefault(name, []).append(answer)
        reached = exchange(os.path.join(folder, "reached"), rank, size, limit, answers)
    if len(firsts) == 1:
        chosen = {host: ("127.0.0.1", "lo")}
    else:
        chosen = {
            name: choose_address(
                everyone[first][2],
                [reached[other][name] for key, other in firsts.items() if key != name],
                everyone[first][3],
            )
            for name, first in firsts.items()
        }
    return {
        "workers": ["{}:{}".format(chosen[one[0]][0], one[1]) for one in everyone],
        "interface": chosen[host][1],
        "local_size": hosts.count(host),
    }


class Watchdog(threading.Thread):
    """Ends the process after `limit` seconds without progress; a new stage and a `beat` are progress."""

    def __init__(self, report, limit):
        super().__init__(name="watchdog", daemon=True)
        self.report, self.limit, self.last = report, limit, time.time()

    def beat(self):
        """Record progress."""
        self.last = time.time()

    def run(self):
        """Check every second until the report is done."""
        fields = self.report.fields
        while fields["stage"] != "done" and fields["error"] is None:
            if time.time() - max(self.last, self.report.stage_started) > self.limit:
                stage = fields["stage"]
                fields["stalled"] = {"stage": stage, "seconds": self.limit}
                fields["error"] = "Stall: nothing happened for {} s in stage `{}`".format(self.limit, stage)
                self.report.write()
                print("error: " + fields["error"] + "\n  report: " + self.report.path, file=sys.stderr, flush=True)
                faulthandler.dump_traceback(all_threads=True)
                # The main thread waits in a collective operation and cannot be interrupted.
                os._exit(1)
            time.sleep(min(1.0, self.limit / 4.0))
