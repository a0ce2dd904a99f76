"""The Keras network of the training programs, and the callback that keeps the account of its epochs.

Beside `rank.py`, and by the same rules: imported by path, Python 3.7, nothing of TensorFlow at the top.
"""

import time


def build_model(tf, classes):
    """A network of about 56,000 weights: strided convolutions, so that a rank needs seconds on one core."""
    layers = tf.keras.layers
    return tf.keras.Sequential(
        [
            tf.keras.Input((28, 28, 1)),
            layers.Conv2D(16, 5, strides=2, activation="relu"),
            layers.Conv2D(32, 3, strides=2, activation="relu"),
            layers.Flatten(),
            layers.Dense(64, activation="relu"),
            layers.Dense(classes, activation="softmax"),
        ]
    )


def make_epoch_callback(tf, rank, epochs):
    """A Keras callback that keeps the averaged loss and the seconds of each epoch, and lets rank 0 say them."""

    class Epochs(tf.keras.callbacks.Callback):
        def __init__(self):
            super().__init__()
            self.losses = []
            self.seconds = []
            self.started = 0.0

        def on_epoch_begin(self, epoch, logs=None):
            self.started = time.time()

        def on_epoch_end(self, epoch, logs=None):
            self.seconds.append(time.time() - self.started)
            self.losses.append(float(logs["loss"]))
            if rank == 0:
                print(
                    f"epoch {epoch + 1}/{epochs}  loss {logs['loss']:.4f}  "
                    f"train accuracy {logs['accuracy']:.3f}  {self.seconds[-1]:.2f} s",
                    flush=True,
                )

    return Epochs()
