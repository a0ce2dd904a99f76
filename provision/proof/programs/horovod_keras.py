"""The training run that a candidate environment must pass: Keras under Horovod on MNIST-shaped digits.

This file runs *inside* the candidate environment, as N ranks that the launcher of the site starts. `trial.py` is the course
of the run, and says why its measurements prove something.

Works with TensorFlow 2.2 to 2.15 (Keras 2) and Horovod 0.19 or later, and with TensorFlow 2.16 to 2.21 (Keras 3, or tf-keras
with TF_USE_LEGACY_KERAS=1) and the Horovod 0.28.1 of `patches/`.
"""

from tensorflow_rank import HorovodTrial, KerasTrial
from trial import main


class HorovodKeras(HorovodTrial, KerasTrial):
    """Ranks that average the gradients of a Keras optimizer.

    Horovod's own warm-up callback is not used: it fails in TensorFlow 2.15 for SGD with momentum, and Adam does not need it on
    a network this small. Models that are saved and continued under Horovod are in `keras_checks.py`.
    """

    restarts = False

    def join(self):
        """Join, then import the part of Horovod for Keras."""
        super().join()
        import horovod.tensorflow.keras as hvd_keras

        self.hvd_keras = hvd_keras

    def optimizer(self, optimizer):
        """The optimizer that averages gradients."""
        return self.hvd_keras.DistributedOptimizer(optimizer)

    def callbacks(self):
        """The broadcast of rank 0's weights, and the average of losses."""
        callbacks = self.hvd_keras.callbacks
        return [callbacks.BroadcastGlobalVariablesCallback(0), callbacks.MetricAverageCallback()]


if __name__ == "__main__":
    main(HorovodKeras, "Train a small Keras network under Horovod; write one JSON report per process.")
