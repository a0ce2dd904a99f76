"""Which worker of how many this process is, and where the others listen: what TF_CONFIG says of them.

Beside `rank.py`, and by the same rules; nothing of TensorFlow in it. Under srun the cluster comes from TensorFlow's own
resolver (see `multiworker.py`). Every other launcher tells a process its number and no more, so workers tell each other
their addresses by files in a folder that all nodes see: the one of the reports.
"""

import json
import os
import re
import socket
import time

# Rank and size: MPICH's Hydra, PALS and srun with an MPI plugin; Open MPI; srun alone. In this order, for Hydra starts its
# proxies by srun, and Slurm's variables are then those of a proxy.
RANKS = (
    ("PMI_RANK", "PMI_SIZE"),
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("SLURM_PROCID", "SLURM_STEP_NUM_TASKS"),
)
LOCAL_RANKS = ("MPI_LOCALRANKID", "PALS_LOCAL_RANKID", "OMPI_COMM_WORLD_LOCAL_RANK", "SLURM_LOCALID")
PROXIES = ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "all_proxy", "ALL_PROXY", "grpc_proxy")


def place(environ):
    """This process's rank, the number of processes, its rank on the node, and whether srun's step is one of them each."""
    for rank, size in RANKS:
        if rank in environ and size in environ:
            found = int(environ[rank]), int(environ[size])
            break
    else:
        names = ", ".join("{} and {}".format(*pair) for pair in RANKS)
        raise RuntimeError("no launcher says which worker this is: there is none of {}".format(names))
    local = next((int(environ[name]) for name in LOCAL_RANKS if name in environ), 0)
    step = tuple(environ.get(name) for name in RANKS[-1])
    return {"rank": found[0], "size": found[1], "local_rank": local, "srun": step == tuple(map(str, found))}


def tf_config(workers, rank):
    """The text of TF_CONFIG for worker `rank` of those at these addresses."""
    return json.dumps({"cluster": {"worker": list(workers)}, "task": {"type": "worker", "index": rank}})


def unset_proxies(environ):
    """Take the proxies out, which would swallow what workers say to each other; their names are returned."""
    return [name for name in PROXIES if environ.pop(name, None) is not None]


def most_tasks(tasks_per_node):
    """The most tasks on a node, of Slurm's `2(x3),1`."""
    return max(int(count) for count in re.findall(r"(\d+)(?:\(x\d+\))?", tasks_per_node))


def port_base(job):
    """A first port for a job's workers: apart for jobs that share a node, below those that Linux gives away (32768)."""
    return 12000 + int(job) * 64 % 20000


def meet(folder, rank, size, limit, host=None):
    """Tell the others where this worker will listen, and return the addresses of all, by rank.

    The port is held until all have told theirs, so that two workers of a node cannot get the same one.

    Raises:
        RuntimeError: the others did not come within `limit` seconds, or the folder is another run's.
    """
    os.makedirs(folder, exist_ok=True)
    host = host or socket.gethostname()
    with socket.socket() as holder:
        holder.bind(("", 0))
        mine = os.path.join(folder, "address-{}.json".format(rank))
        if os.path.exists(mine):
            raise RuntimeError("{} is there already: give each run an empty folder".format(mine))
        with open(mine + ".part", "w") as stream:
            json.dump([host, holder.getsockname()[1]], stream)
        os.rename(mine + ".part", mine)
        end, found = time.time() + limit, {}
        while len(found) < size:
            for other in set(range(size)) - set(found):
                try:
                    with open(os.path.join(folder, "address-{}.json".format(other))) as stream:
                        found[other] = json.load(stream)
                except IOError:
                    continue
            if len(found) < size:
                if time.time() > end:
                    missing = ", ".join(str(one) for one in range(size) if one not in found)
                    raise RuntimeError("workers did not come within {} s: {}".format(limit, missing))
                time.sleep(0.05)
        # Told by all that all were heard, or a worker would close its port while another one still chooses.
        open(os.path.join(folder, "heard-{}".format(rank)), "w").close()
        while not all(os.path.exists(os.path.join(folder, "heard-{}".format(one))) for one in range(size)):
            if time.time() > end:
                raise RuntimeError("workers did not come within {} s".format(limit))
            time.sleep(0.05)
    alone = len({name for name, _ in found.values()}) == 1
    return ["{}:{}".format("127.0.0.1" if alone else found[one][0], found[one][1]) for one in range(size)]
