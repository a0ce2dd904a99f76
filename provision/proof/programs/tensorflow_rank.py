"""What is TensorFlow's own in the programs of a proof: imports, threads and GPUs, its build, ranks of Horovod, a Keras network.

The rules of `rank.py` hold here too: it is imported by path, parses on Python 3.6, and imports TensorFlow and Horovod late. For
another framework there is such a file beside it, with a subclass of `trial.Trial`.

Works with TensorFlow 1.15 to 2.21, with Keras 2, tf-keras and Keras 3; the Keras network with TensorFlow 2.2 and later.
"""

import contextlib
import importlib
import os
import platform
import random
import sys

from horovod_rank import HorovodRanks, init_horovod
from rank import take_gpu, thread_counts
from trial import Trial


def import_tensorflow(report):
    """Import NumPy and TensorFlow, in a separate stage, because an illegal instruction fails here."""
    fields = report.fields
    fields["versions"] = {"python": platform.python_version()}

    report.stage("import tensorflow")
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    import numpy as np
    import tensorflow as tf

    # Hides Keras' warning about slow callbacks: broadcast and metric average must wait for all ranks.
    tf.get_logger().setLevel("ERROR")
    fields["versions"].update(numpy=np.__version__, tensorflow=tf.__version__)
    fields["versions"]["keras"] = keras_version(tf)
    return np, tf


def keras_version(tf):
    """The version of the Keras behind `tf.keras`, which is a separate package from TensorFlow 2.6 on."""
    root = sys.modules[tf.keras.Model.__module__.split(".")[0]]
    return str(getattr(tf.keras, "__version__", root.__version__))


def minor_version(tf):
    """The version of TensorFlow without its patch level, as a tuple of numbers."""
    return tuple(int(part) for part in tf.__version__.split(".")[:2])


def join_horovod(report, gpu):
    """Import NumPy, TensorFlow and Horovod, join the other ranks, take threads and GPU; with `gpu`, there must be one."""
    np, tf = import_tensorflow(report)
    hvd = init_horovod(report, "tensorflow")
    take_devices(report, tf, gpu)
    return np, tf, hvd


def take_devices(report, tf, gpu):
    """Take the threads and the GPU of this rank; with `gpu`, there must be one."""
    report.stage("devices")
    set_threads(report.fields, tf)
    visible = visible_gpus(tf)
    index = take_gpu(report.fields, len(visible), gpu, tf.test.is_built_with_cuda())
    if index is not None:
        # before TensorFlow 2.1 in `experimental`
        config = tf.config if hasattr(tf.config, "set_visible_devices") else tf.config.experimental
        config.set_visible_devices(visible[index], "GPU")
        report.fields["gpu"]["used"] = visible[index].name


def set_threads(fields, tf):
    """Apply the numbers of threads of this rank, and report those that are in force."""
    threading = tf.config.threading
    inter, intra = thread_counts()
    if inter:
        threading.set_inter_op_parallelism_threads(inter)
    if intra:
        threading.set_intra_op_parallelism_threads(intra)
    fields["threads"] = {
        "inter": threading.get_inter_op_parallelism_threads(),
        "intra": threading.get_intra_op_parallelism_threads(),
    }


def visible_gpus(tf):
    """The GPUs that TensorFlow sees; it takes their memory as it is needed."""
    config = tf.config if hasattr(tf.config, "list_physical_devices") else tf.config.experimental  # before 2.1
    gpus = config.list_physical_devices("GPU")
    for gpu in gpus:
        tf.config.experimental.set_memory_growth(gpu, True)
    return gpus


def session_config(tf, fields):
    """The ConfigProto with the devices from `take_devices`, which a session of TensorFlow 1 does not use by itself."""
    config = tf.compat.v1.ConfigProto()
    config.inter_op_parallelism_threads = fields["threads"]["inter"]
    config.intra_op_parallelism_threads = fields["threads"]["intra"]
    config.gpu_options.allow_growth = True
    if fields["gpu"]["used"]:
        config.gpu_options.visible_device_list = fields["gpu"]["used"].rsplit(":", 1)[-1]
    return config


def tensorflow_facts(tf):
    """How TensorFlow was built: CUDA and cuDNN versions if any, and the compiler and ABI that an extension must match."""
    info = getattr(tf.sysconfig, "get_build_info", dict)()  # since TensorFlow 2.3
    return {
        "build_info": {
            str(key): value if isinstance(value, (bool, int)) else str(value) for key, value in info.items()
        },
        "built_with_cuda": bool(tf.test.is_built_with_cuda()),
        "compiler_version": str(tf.version.COMPILER_VERSION),
        "cxx11_abi": int(tf.sysconfig.CXX11_ABI_FLAG),
    }


def math_backend(tf):
    """The library that computes on CPUs, according to TensorFlow: "oneDNN" or "Eigen".

    Newer packages have both, and TF_ENABLE_ONEDNN_OPTS selects one. The function is in one of three modules, for
    TensorFlow 2.11 to 2.21, 2.2, and 1.15. Of the packages on PyPI, 1.15.5 and 2.2.3 use Eigen; 2.11.1, 2.15.1 and 2.21.0
    use oneDNN, or Eigen if the variable is 0.
    """
    for name in ("tensorflow.python.util._pywrap_util_port", "tensorflow.python._pywrap_util_port"):
        try:
            module = importlib.import_module(name)
            break
        except ImportError:
            continue
    else:  # TensorFlow 1
        module = importlib.import_module("tensorflow.python.pywrap_tensorflow")
    return {
        "backend": "oneDNN" if module.IsMklEnabled() else "Eigen",
        "TF_ENABLE_ONEDNN_OPTS": os.environ.get("TF_ENABLE_ONEDNN_OPTS"),
    }


class HorovodTrial(HorovodRanks):
    """Ranks of Horovod with TensorFlow."""

    def join(self):
        """Join the ranks of Horovod."""
        self.np, self.tf, self.hvd = join_horovod(self.report, self.args.gpu)
        self.rank, self.size = self.hvd.rank(), self.hvd.size()

    def tensor(self, array):
        """A constant."""
        return self.tf.constant(array)


class KerasTrial(Trial):
    """A Keras network of about 56,000 weights, with strided convolutions, so that a rank needs only seconds on one core."""

    @property
    def keras(self):
        """Keras, as TensorFlow has it."""
        return self.tf.keras

    def scope(self):
        """Where models are built and loaded: the scope of the strategy, if there is one."""
        return contextlib.ExitStack()

    def optimizer(self, optimizer):
        """The optimizer as the strategy wraps it."""
        return optimizer

    def callbacks(self):
        """The callbacks of the strategy, which come before the one that records epochs."""
        return []

    def seed(self, seed):
        """Seed all generators."""
        random.seed(seed)
        self.np.random.seed(seed)
        self.tf.random.set_seed(seed)

    def network(self, seed):
        """The network; all generators are seeded, so that its weights are those of this seed."""
        self.seed(seed)
        layers = self.keras.layers
        return self.keras.Sequential(
            [
                self.keras.Input((28, 28, 1)),
                layers.Conv2D(16, 5, strides=2, activation="relu"),
                layers.Conv2D(32, 3, strides=2, activation="relu"),
                layers.Flatten(),
                layers.Dense(64, activation="relu"),
                layers.Dense(10, activation="softmax"),
            ]
        )

    def build(self, seed):
        """The rate falls to zero, so that a short run ends steadily.

        With four ranks of Horovod and a constant rate the test accuracy was between 0.926 and 0.980, depending on the seed; with
        the falling rate it is between 0.946 and 0.966. The check of the accuracy must not depend on chance.
        """
        with self.scope():
            self.model = self.network(seed)
            schedule = self.keras.optimizers.schedules.PolynomialDecay(
                self.learning_rate, self.args.epochs * self.steps, end_learning_rate=0.0
            )
            self.model.compile(
                optimizer=self.optimizer(self.keras.optimizers.Adam(schedule)),
                loss="sparse_categorical_crossentropy",
                metrics=["accuracy"],
            )
        return self.model.get_weights()

    def state(self):
        """The optimizer's step, and the weights."""
        return int(self.model.optimizer.iterations.numpy()), self.model.get_weights()

    def fit(self, first, last):
        """Train on the arrays of the shard."""
        began = self.state()
        images, labels = self.shard
        self.fit_model(first, last, x=images, y=labels, batch_size=self.args.batch_size)
        return began

    def fit_model(self, first, last, **data):
        """Let Keras train on the data."""
        callbacks = [*self.callbacks(), self.epoch_callback()]
        self.model.fit(initial_epoch=first, epochs=last, verbose=0, callbacks=callbacks, **data)

    def epoch_callback(self):
        """A Keras callback that records the epochs."""
        trial = self

        class Epochs(self.keras.callbacks.Callback):
            def on_epoch_begin(self, epoch, logs=None):
                trial.begin_epoch()

            def on_epoch_end(self, epoch, logs=None):
                trial.end_epoch(logs["loss"], logs["accuracy"])

        return Epochs()

    def reload(self):
        """In one file."""
        path = self.file(self.checkpoints)
        self.model.save(path)
        self.load(path)

    def file(self, folder):
        """The file for a whole model, optimizer included: in Keras' own format if this TensorFlow has it, else HDF5."""
        os.makedirs(folder)
        return os.path.join(folder, "model" + (".keras" if minor_version(self.tf) >= (2, 13) else ".h5"))

    def load(self, path):
        """Continue with the model of a file."""
        with self.scope():
            self.model = self.keras.models.load_model(path)

    def measure(self, images, labels):
        """By `evaluate`."""
        loss, accuracy = self.model.evaluate(images, labels, batch_size=256, verbose=0)
        return float(loss), float(accuracy)


class DistributedTrial(KerasTrial):
    """The network under a strategy of TensorFlow, whose data sets have full batches only."""

    def scope(self):
        """The scope of the strategy."""
        return self.strategy.scope()

    def batches(self, batch):
        """The shard in full batches, in another order in each epoch."""
        images = self.tf.data.Dataset.from_tensor_slices(self.shard).shuffle(
            self.shard[0].shape[0], seed=self.args.seed
        )
        return images.batch(batch, drop_remainder=True)

    def measure(self, images, labels):
        """By this process alone, without its strategy.

        `evaluate` of Keras 3 fails under MultiWorkerMirroredStrategy, and under MirroredStrategy if a batch does not divide
        evenly (256 by 3: "Inputs to operation AddN ... must have the same size and shape"; seen with Keras 3.15.1).
        """
        np = self.np
        guesses = np.concatenate(
            [self.model(images[at : at + 256], training=False).numpy() for at in range(0, len(images), 256)]
        )
        losses = -np.log(np.maximum(guesses[np.arange(len(labels)), labels], 1e-7))
        return float(losses.mean()), float((guesses.argmax(axis=1) == labels).mean())
