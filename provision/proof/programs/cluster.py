"""Workers that no MPI brings together: the number of one, the addresses of all, and the end of one that waits for ever.

The rules of `rank.py` hold here too; nothing here is of a framework. Under srun the cluster comes from TensorFlow's own
resolver (see `multiworker.py`). Other launchers give a process only its number, so the workers exchange their addresses
with files in the folder of the reports, which all nodes see.
"""

import faulthandler
import json
import os
import re
import socket
import sys
import threading
import time

# Rank and size: MPICH's Hydra, PALS and srun with an MPI plugin; Open MPI; srun alone. The order matters: Hydra starts its
# proxies with srun, and then Slurm's variables describe a proxy.
RANKS = (
    ("PMI_RANK", "PMI_SIZE"),
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("SLURM_PROCID", "SLURM_STEP_NUM_TASKS"),
)
LOCAL_RANKS = ("MPI_LOCALRANKID", "PALS_LOCAL_RANKID", "OMPI_COMM_WORLD_LOCAL_RANK", "SLURM_LOCALID")
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


def meet(folder, rank, size, limit, host=None):
    """Publish the address of this worker, wait for the others, and return the addresses of all, by rank.

    A worker keeps its port open until all workers have seen all addresses, so that two workers on a node cannot get the
    same port. It raises what `exchange` raises.
    """
    with socket.socket() as holder:
        holder.bind(("", 0))
        mine = [host or socket.gethostname(), holder.getsockname()[1]]
        addresses = exchange(os.path.join(folder, "addresses"), rank, size, limit, mine)
        exchange(os.path.join(folder, "seen"), rank, size, limit, True)
    one_node = len({name for name, _ in addresses}) == 1
    return ["{}:{}".format("127.0.0.1" if one_node else name, port) for name, port in addresses]


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
