"""Ranks of Horovod, whatever the framework: how they join, and how they exchange arrays.

The rules of `rank.py` hold here too: it is imported by path, parses on Python 3.6, and imports Horovod late.
"""

import importlib
import json

from rank import mpi_library_version
from trial import Trial


def init_horovod(report, framework):
    """Import Horovod for a framework, and join the other ranks; returns the module."""
    fields = report.fields
    report.stage("import horovod")
    import horovod

    hvd = importlib.import_module("horovod." + framework)
    fields["versions"]["horovod"] = horovod.__version__
    report.stage("hvd.init")
    hvd.init()
    fields.update(rank=hvd.rank(), size=hvd.size(), local_rank=hvd.local_rank(), local_size=hvd.local_size())
    mpi = mpi_library_version()
    if mpi:
        fields["versions"]["mpi"] = mpi
    return hvd


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
