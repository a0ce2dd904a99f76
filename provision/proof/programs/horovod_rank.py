"""Ranks of Horovod, whatever the framework: how they join, and how they exchange arrays.

The rules of `rank.py` hold here too: it is imported by path, parses on Python 3.6, and imports Horovod late.
"""

import importlib
import importlib.util
import json
import os
import sys

from cluster import RANKS
from rank import mpi_library_version
from trial import Trial


def init_horovod(report, framework):
    """Import Horovod for a framework, and join the other ranks; returns the module."""
    fields = report.fields
    report.stage("import horovod")
    one_thread = os.environ.get("HOROVOD_MPI_THREADS_DISABLE", "0") not in ("", "0")
    # If mpi4py came first on some ranks, these would have several threads and sum, and wait for the others for ever.
    first = import_mpi4py() if comes_first(os.environ) and not one_thread else None
    import horovod

    hvd = importlib.import_module("horovod." + framework)
    fields["versions"]["horovod"] = horovod.__version__
    report.stage("hvd.init")
    hvd.init()
    fields.update(rank=hvd.rank(), size=hvd.size(), local_rank=hvd.local_rank(), local_size=hvd.local_size())
    mpi = mpi_library_version()
    if mpi:
        fields["versions"]["mpi"] = mpi
    try_mpi4py(report, first, one_thread)
    return hvd


def import_mpi4py():
    """mpi4py's module `MPI`, which initialises MPI unless Horovod has done so; None if the environment does not have it."""
    if importlib.util.find_spec("mpi4py") is None:
        return None
    from mpi4py import MPI

    return MPI


def comes_first(environ):
    """Whether this rank imports mpi4py before Horovod initialises MPI: odd ones do, so that both orders are tried."""
    number = next((environ[name] for name, _ in RANKS if name in environ), "0")
    return number.isdigit() and int(number) % 2 == 1


def try_mpi4py(report, first, one_thread):
    """Compare mpi4py's world with Horovod's: rank, size, and a sum over all ranks, unless only one thread may call MPI.

    `first`: the module, if this rank imported it before Horovod. `one_thread`: only Horovod's own thread may call MPI.
    """
    mpi = first or import_mpi4py()
    if mpi is None:
        return
    import numpy as np

    report.stage("mpi4py")
    world, mine = mpi.COMM_WORLD, np.arange(1, 9, dtype=np.float64)
    level = mpi.Query_thread()
    fields = {"rank": world.Get_rank(), "size": world.Get_size(), "first": first is not None, "one_thread": one_thread}
    report.fields["mpi4py"] = dict(fields, threads=level == mpi.THREAD_MULTIPLE, sum=None)
    report.fields["versions"]["mpi4py"] = sys.modules["mpi4py"].__version__
    if level == mpi.THREAD_MULTIPLE and not one_thread:  # Horovod's own thread calls MPI at the same time
        total = np.zeros_like(mine)
        world.Allreduce(mine * (world.Get_rank() + 1), total, op=mpi.SUM)
        report.fields["mpi4py"]["sum"] = total.tolist()


class HorovodRanks(Trial):
    """How ranks of Horovod exchange arrays; `join` sets `hvd`, and `tensor` makes a tensor of an array."""

    exchanged = 0

    def evaluate(self, make):
        """The array of the tensor that `make()` returns; a program in graphs needs a session for it."""
        return make().numpy()

    def allreduce(self, vectors, average=False):
        """Reduce by Horovod."""

        def make():
            operation = self.hvd.Average if average else self.hvd.Sum
            tensor = self.hvd.allreduce(self.tensor(vectors[0]), op=operation, name=self.name())
            self.device = tensor.device
            return tensor

        return self.evaluate(make)

    def gather(self, value):
        """`hvd.allgather_object` needs cloudpickle and a newer TensorFlow than the oldest here."""
        text = self.np.frombuffer(json.dumps(value).encode(), self.np.uint8)
        lengths = self.evaluate(lambda: self.hvd.allgather(self.tensor([len(text)]), name=self.name()))
        joined = self.evaluate(lambda: self.hvd.allgather(self.tensor(text), name=self.name()))
        ends = self.np.cumsum(lengths)
        return [json.loads(joined[end - length : end].tobytes().decode()) for end, length in zip(ends, lengths)]

    def name(self):
        """The name of the next exchange, the same on all ranks."""
        self.exchanged += 1
        return "proof.{}".format(self.exchanged)
