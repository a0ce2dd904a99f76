"""The example programs that come with the tool, in the folder `examples/`: what each is for. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """A program to begin from. `job` is the kind of job that runs it, `needs` a package in the oldest release for it."""

    name: str
    job: Literal["single", "mirrored", "multiworker", "horovod", "ddp", "mpi"]
    needs: str
    purpose: str
    before: str | None = None
    """The command that prepares the data once, before the job."""
    data: str = "data"
    """The folder for `--data` of the job: the one that is copied, or the one that `before` makes."""


EXAMPLES = (
    Example(
        name="single", job="single", needs="TensorFlow 1.15", purpose="Keras in one process, on one GPU or on CPUs"
    ),
    Example(name="mirrored", job="mirrored", needs="TensorFlow 2.2", purpose="Keras on all GPUs of one node"),
    Example(
        name="multiworker",
        job="multiworker",
        needs="TensorFlow 2.4",
        purpose="MultiWorkerMirroredStrategy on several nodes, with a loop",
    ),
    Example(name="horovod-keras", job="horovod", needs="TensorFlow 1.15", purpose="Horovod with Keras's `fit`"),
    Example(
        name="horovod-loop", job="horovod", needs="TensorFlow 2.2", purpose="Horovod with a loop and `tf.GradientTape`"
    ),
    Example(
        name="tfrecord",
        job="horovod",
        needs="TensorFlow 1.15",
        purpose="Horovod with Keras, input from TFRecord files",
        before="python convert.py data records",
        data="records",
    ),
    Example(name="graph", job="single", needs="TensorFlow 1.15", purpose="a graph and sessions of TensorFlow 1"),
    Example(name="graph-horovod", job="horovod", needs="TensorFlow 1.15", purpose="the same graph with Horovod"),
    Example(name="ddp", job="ddp", needs="PyTorch 1.13", purpose="PyTorch's DistributedDataParallel on several nodes"),
    Example(name="torch-horovod", job="horovod", needs="PyTorch 1.13", purpose="the same with Horovod"),
    Example(name="mpi4py", job="mpi", needs="mpi4py 3.0", purpose="nearest neighbours, shared among the ranks of MPI"),
)
