"""The Keras network of the training programs, and the callback that records its epochs.

The rules of `rank.py` hold here too: it is imported by path, parses on Python 3.6, and does not import TensorFlow at the top.
"""

import os
import random
import time

from trial import weights_sha256


def seed(np, tf, number):
    """Seed all random generators: a model that is built after this has the weights of this number."""
    random.seed(number)
    np.random.seed(number)
    tf.random.set_seed(number)


def build_model(tf, classes):
    """A network of about 56,000 weights, with strided convolutions, so that a rank needs only seconds on one core."""
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
    """A Keras callback that records the averaged loss and the seconds of each epoch, and prints them on rank 0."""

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


def measure(np, model, images, labels):
    """Mean loss and accuracy, computed by this process alone, without its strategy.

    `evaluate` of Keras 3 fails under MultiWorkerMirroredStrategy, and under MirroredStrategy if a batch does not divide
    evenly (256 by 3: "Inputs to operation AddN ... must have the same size and shape"; seen with Keras 3.15.1).
    """
    guesses = np.concatenate(
        [model(images[at : at + 256], training=False).numpy() for at in range(0, len(images), 256)]
    )
    losses = -np.log(np.maximum(guesses[np.arange(len(labels)), labels], 1e-7))
    return float(losses.mean()), float((guesses.argmax(axis=1) == labels).mean())


def compile_model(tf, model, learning_rate, steps):
    """Compile for these steps. The rate falls to zero, which makes a short run end steadily (see `horovod_keras.py`)."""
    schedule = tf.keras.optimizers.schedules.PolynomialDecay(learning_rate, steps, end_learning_rate=0.0)
    model.compile(
        optimizer=tf.keras.optimizers.Adam(schedule), loss="sparse_categorical_crossentropy", metrics=["accuracy"]
    )
    return model


def checkpoint_path(tf, folder, name="model"):
    """The file for a whole model, optimizer included: in Keras' own format if this TensorFlow has it, else HDF5."""
    version = tuple(int(part) for part in tf.__version__.split(".")[:2])
    return os.path.join(folder, name + (".keras" if version >= (2, 13) else ".h5"))


def train_and_restart(np, report, model, epochs, fit, save, load):
    """Train half of the epochs with `fit(model, first, last)`, save, and train the rest with the model from `load()`.

    The report gets the step and the weights that were saved, and those with which the second half began. Returns the
    trained model.
    """
    half = first_half(epochs)
    report.stage("training")
    fit(model, 0, half)
    report.stage("restart")
    restart = {"saved_at": steps_done(model), "saved_sha256": weights_sha256(np, model.get_weights())}
    save(model)
    model = load()
    restart.update(began_at=steps_done(model), began_sha256=weights_sha256(np, model.get_weights()))
    report.fields["restart"] = restart
    report.stage("second training")
    fit(model, half, epochs)
    return model


def steps_done(model):
    """The number of steps that the optimizer of the model has made."""
    return int(model.optimizer.iterations.numpy())


def restart_failed(restart):
    """Whether the second half began with another step or other weights than the first half ended with."""
    return (restart["began_at"], restart["began_sha256"]) != (restart["saved_at"], restart["saved_sha256"])


def images_per_second(images, seconds):
    """Images per second, over all epochs except those that began with a new model; None if no epoch is left."""
    timed = [duration for number, duration in enumerate(seconds) if number not in (0, first_half(len(seconds)))]
    return images * len(timed) / sum(timed) if timed else None


def first_half(epochs):
    """The number of epochs before the restart."""
    return max(1, epochs // 2)
