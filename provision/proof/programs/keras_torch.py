"""The training run of `single.py`, in which Keras 3 computes with torch.

It is for stacks that have "torch" among their `keras_backends`. It imports torch and `keras` before TensorFlow, as users of this
backend must: Keras imports triton, which ends a process that has TensorFlow 2.21 with a segmentation fault (triton 3.8.0). In the
other order, in which Keras 3.15 imports TensorFlow itself, both work.
"""

import os

from pytorch_rank import import_torch, take_device
from tensorflow_rank import KerasTrial
from trial import main


class KerasTorch(KerasTrial):
    """One process that exchanges nothing."""

    keras = None

    def join(self):
        """Take one device; Keras reads the name of its backend when it is imported."""
        self.np, torch = import_torch(self.report)
        self.report.stage("import keras")
        os.environ["KERAS_BACKEND"] = "torch"
        import keras

        self.keras = keras
        self.fields["versions"]["keras"] = keras.__version__
        self.fields.update(rank=0, size=1, local_rank=0, local_size=1)
        take_device(self.report, torch, self.args.gpu)

    def exchange(self):
        """There is nobody else."""

    def seed(self, seed):
        """Seed all generators."""
        self.keras.utils.set_random_seed(seed)

    def file(self, folder):
        """The file for a whole model, in Keras' own format."""
        os.makedirs(folder)
        return os.path.join(folder, "model.keras")


if __name__ == "__main__":
    main(KerasTorch, "Train a small network of Keras on torch in one process; write one JSON report.")
