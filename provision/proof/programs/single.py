"""The training run of one process on one device: Keras on MNIST-shaped digits, saved half-way and continued.

It is for stacks whose users train without any strategy (`proof.program = "single"`). It reports and measures like the
programs of several ranks, as rank 0 of 1. On a node with several GPUs the job lets it see one (`CUDA_VISIBLE_DEVICES=0`); if it
sees several, it takes the first.

Works with TensorFlow 2.2 and later; Horovod is not needed.
"""

from tensorflow_rank import KerasTrial, import_tensorflow, take_devices
from trial import main


class Single(KerasTrial):
    """One process that exchanges nothing."""

    def join(self):
        """Take one device."""
        self.np, self.tf = import_tensorflow(self.report)
        self.fields.update(rank=0, size=1, local_rank=0, local_size=1)
        take_devices(self.report, self.tf, self.args.gpu)

    def exchange(self):
        """There is nobody else."""


if __name__ == "__main__":
    main(Single, "Train a small Keras network in one process; write one JSON report.")
