"""The training run of several ranks under torch's DistributedDataParallel, on MNIST-shaped digits.

It is for stacks whose users train with DDP (`proof.program = "ddp"`): one process for each GPU or share of a node. The launcher
of the site starts the ranks, never torchrun, which would start as many again on each of them. Nothing is compiled.

- Rank and size come from the launcher, the address of rank 0 from files that all nodes see (`cluster.py`); torch gets them as
  `env://` (MASTER_ADDR, MASTER_PORT, RANK, WORLD_SIZE, LOCAL_RANK).
- Ranks on GPUs exchange by NCCL, those on CPUs by gloo. Gloo alone would use the address of the host name, which is that of
  the wrong network on some nodes and 127.0.1.1 on others; it gets the interface on which the other nodes reach this one.
- A rank whose partner died may wait for ever (NCCL does), so a process ends after `--stall` seconds without progress.

Works with torch 1.13 and later.
"""

import datetime
import os

from cluster import Watchdog, meet, place, unset_proxies
from pytorch_rank import TorchTrial, import_torch, take_device
from trial import add_communication, main

INTERFACE = "GLOO_SOCKET_IFNAME"


def choose_backend(torch, asked, device):
    """The backend of torch.distributed for ranks on this device.

    Raises:
        RuntimeError: this torch does not have it.
    """
    distributed = torch.distributed
    if not distributed.is_available():
        raise RuntimeError("this torch is built without torch.distributed: no ranks can train together")
    backend = asked.lower() if asked != "AUTO" else "nccl" if device.type == "cuda" else "gloo"
    # torch < 2.0 has no function for gloo
    has = getattr(distributed, "is_{}_available".format(backend), lambda: hasattr(distributed, "ProcessGroupGloo"))
    if not has():
        wanted = "by which ranks on a {} exchange gradients".format("GPU" if device.type == "cuda" else "CPU")
        raise RuntimeError(
            "this torch ({}) is built without {}, {}".format(
                torch.__version__, backend.upper(), wanted if asked == "AUTO" else "which this run asks for"
            )
        )
    if backend == "nccl" and device.type != "cuda":
        raise RuntimeError("NCCL needs a GPU for each rank, but this rank has none")
    return backend


class Ddp(TorchTrial):
    """One rank of DDP."""

    def join(self):
        """Find the other ranks, and make the process group."""
        args, fields, where = self.args, self.fields, place(os.environ)
        fields.update(local_rank=where["local_rank"])
        fields["communication"] = {"asked": args.communication, "proxies_unset": unset_proxies(os.environ)}
        self.np, self.torch = import_torch(self.report)
        self.place = take_device(self.report, self.torch, args.gpu)
        self.dist = self.torch.distributed
        backend = choose_backend(self.torch, args.communication, self.place)

        self.report.stage("cluster")
        asked = list(filter(None, os.environ.get(INTERFACE, "").split(",")))
        found = meet(os.path.join(args.out, "cluster"), where["rank"], where["size"], args.stall, wanted=asked)
        if found["interface"] and not asked:
            os.environ[INTERFACE] = found["interface"]
        address, port = found["workers"][0].rsplit(":", 1)
        os.environ.update(MASTER_ADDR=address, MASTER_PORT=port, LOCAL_RANK=str(where["local_rank"]))
        os.environ.update(RANK=str(where["rank"]), WORLD_SIZE=str(where["size"]))
        fields["communication"].update(asked=backend, by="env://", **found)

        self.report.stage("init_process_group")
        # From here on a rank waits for the others without a limit of its own, as NCCL does.
        watchdog = Watchdog(self.report, args.stall)
        watchdog.start()
        self.progress = watchdog.beat
        self.dist.init_process_group(backend, timeout=datetime.timedelta(seconds=args.stall))
        # What the group says, not the launcher.
        self.rank, self.size = self.dist.get_rank(), self.dist.get_world_size()
        fields.update(rank=self.rank, size=self.size, local_size=found["local_size"])
        if backend == "nccl":
            fields["versions"]["nccl"] = ".".join(map(str, self.torch.cuda.nccl.version()))
        self.say(f"{self.size} ranks by {backend}, rank 0 at {address}:{port}")

    def allreduce(self, vectors, average=False):
        """Reduce by the process group; gloo has no average."""
        tensor = self.tensor(self.np.array(vectors[0]))
        self.dist.all_reduce(tensor)
        return self.array(tensor / self.size if average else tensor)

    def gather(self, value):
        """By pickles."""
        values = [None] * self.size
        self.dist.all_gather_object(values, value)
        return values

    def parallel(self, network):
        """DDP gives all ranks the weights of rank 0 here, and averages gradients in each `backward`."""
        device_ids = [self.place.index] if self.place.type == "cuda" else None
        return self.torch.nn.parallel.DistributedDataParallel(network, device_ids=device_ids)

    def finish(self):
        """A barrier: rank 0 has the store that all ranks use."""
        self.mean([1.0])
        self.dist.destroy_process_group()


if __name__ == "__main__":
    words = "the backend of torch.distributed; AUTO is NCCL on GPUs and gloo on CPUs"
    main(
        Ddp,
        "Train a small network on several ranks under DDP; one JSON report per process.",
        lambda parser: add_communication(parser, ("AUTO", "GLOO", "NCCL", "MPI"), words),
    )
