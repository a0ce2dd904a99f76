"""Finds the number of this worker and the addresses of all workers, for TF_CONFIG.

The rules of `rank.py` hold here too; nothing here needs TensorFlow. Under srun the cluster comes from TensorFlow's own
resolver (see `multiworker.py`). Other launchers give a process only its number, so the workers exchange their addresses
with files in the folder of the reports, which all nodes see.
"""

import json
import os
import re
import socket
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


def meet(folder, rank, size, limit, host=None):
    """Publish the address of this worker, wait for the others, and return the addresses of all, by rank.

    A worker keeps its port open until all workers have published theirs, so that two workers on a node cannot get the
    same port.

    Raises:
        RuntimeError: some workers did not appear within `limit` seconds, or the folder is of another run.
    """
    os.makedirs(folder, exist_ok=True)
    host = host or socket.gethostname()
    with socket.socket() as holder:
        holder.bind(("", 0))
        mine = os.path.join(folder, "address-{}.json".format(rank))
        if os.path.exists(mine):
            raise RuntimeError("{} already exists: give each run an empty folder".format(mine))
        with open(mine + ".part", "w") as stream:
            json.dump([host, holder.getsockname()[1]], stream)
        os.rename(mine + ".part", mine)
        end, addresses = time.time() + limit, {}
        while len(addresses) < size:
            for other in set(range(size)) - set(addresses):
                try:
                    with open(os.path.join(folder, "address-{}.json".format(other))) as stream:
                        addresses[other] = json.load(stream)
                except IOError:
                    continue
            if len(addresses) < size:
                if time.time() > end:
                    missing = ", ".join(str(other) for other in range(size) if other not in addresses)
                    raise RuntimeError("workers did not appear within {} s: {}".format(limit, missing))
                time.sleep(0.05)
        # Wait until every worker has seen all addresses: otherwise one would close its port while another still chooses.
        open(os.path.join(folder, "heard-{}".format(rank)), "w").close()
        while not all(os.path.exists(os.path.join(folder, "heard-{}".format(other))) for other in range(size)):
            if time.time() > end:
                raise RuntimeError("workers did not appear within {} s".format(limit))
            time.sleep(0.05)
    one_node = len({name for name, _ in addresses.values()}) == 1
    return [
        "{}:{}".format("127.0.0.1" if one_node else addresses[worker][0], addresses[worker][1])
        for worker in range(size)
    ]
