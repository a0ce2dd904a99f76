"""The training run that a candidate environment must pass: Keras under Horovod on MNIST-shaped digits.

This file runs *inside* the environment that is on trial, as N ranks started by the site's launcher. It imports
TensorFlow and Horovod, never `provision`, and stays one file that parses on Python 3.7, so that it can be copied to
any node and started by hand. It measures and reports; it does not judge. The judge (`provision/verdict.py`) reads the
reports of all processes together, because the faults that matter cannot be seen from inside one process: a process
that never found its peers is, by its own lights, a flawless rank 0 of 1.

How the measurements are made to mean something:

- every rank starts from *different* weights, so only a working broadcast can make them equal;
- every rank trains on *different* images, so only a working allreduce of the gradients can keep them equal;
- nothing in the model is rank-local by design (no batch normalisation), so equal means equal to the last bit;
- the report is rewritten at each stage, so a process that hangs or dies of an illegal instruction leaves behind
  the name of the stage it was in.

Works with TensorFlow 2.2 to 2.15 (Keras 2) and Horovod 0.19 or later, and with TensorFlow 2.16 to 2.21 (Keras 3, or tf-keras
by TF_USE_LEGACY_KERAS=1) and the Horovod 0.28.1 of `patches/`.
"""

import argparse
import ctypes
import faulthandler
import hashlib
import json
import os
import platform
import random
import re
import socket
import sys
import time
import traceback

SCHEMA = 1

# Long enough that MPI and NCCL leave their eager paths for rendezvous and segmented ones (4 MiB of float32), which is
# where a broken fabric set-up shows; the short vector alone would travel inside the first packet.
LARGE_ELEMENTS = 1 << 20
VECTOR_LENGTH = 8

# Images used for the loss before training; the same number on all ranks, and enough for a figure near ln(10) = 2.30.
BEFORE_IMAGES = 1024


def parse_args(argv=None):
    """Read the command line; defaults suit the shipped `digits.npz`."""
    parser = argparse.ArgumentParser(
        description="Train a small network under Horovod and write one JSON report per process.",
        allow_abbrev=False,
    )
    parser.add_argument("--data", required=True, metavar="FILE.npz", help="images in the layout of mnist.npz")
    parser.add_argument("--out", required=True, metavar="DIR", help="directory for the reports; best empty")
    parser.add_argument("--epochs", type=positive, default=8)
    parser.add_argument("--batch-size", type=positive, default=32, help="images per step and rank")
    parser.add_argument(
        "--learning-rate", type=float, default=0.001, help="for one rank; multiplied by the number of ranks"
    )
    parser.add_argument("--seed", type=int, default=1, help="decides the shards, and with the rank the weights")
    parser.add_argument("--samples", type=int, default=0, help="use only so many training images; 0 means all")
    return parser.parse_args(argv)


def positive(text):
    """Parse a whole number of at least 1."""
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"expected a whole number of at least 1, not {text!r}")
    return value


class Report:
    """The report of this process, on disk from the first moment and rewritten whole at each stage.

    The file's name is made of host and process id, never of the rank: the classic failure is that every process
    believes it is rank 0 of 1, and reports named by rank would then overwrite each other and hide it.
    """

    def __init__(self, directory):
        self.host = socket.gethostname()
        self.path = os.path.join(directory, f"report-{self.host}-{os.getpid()}.json")
        self.started = time.time()
        self.stage_started = self.started
        self.fields = {
            "schema": SCHEMA,
            "host": self.host,
            # Slurm's own name of the node: with several slurmd on one machine the hosts are all the same.
            "node": os.environ.get("SLURMD_NODENAME"),
            "pid": os.getpid(),
            "stage": "start",
            "error": None,
            "seconds_by_stage": {},
            "loaded_modules": [name for name in os.environ.get("LOADEDMODULES", "").split(":") if name],
        }
        os.makedirs(directory, exist_ok=True)
        self.write()

    def stage(self, name):
        """Close the present stage, noting its seconds, and enter the next one."""
        now = time.time()
        self.fields["seconds_by_stage"][self.fields["stage"]] = round(now - self.stage_started, 3)
        self.fields["stage"] = name
        self.fields["seconds"] = round(now - self.started, 3)
        self.stage_started = now
        self.write()

    def write(self):
        """Replace the file in one step, so that a reader never sees half a report."""
        temporary = f"{self.path}.part"
        with open(temporary, "w") as stream:
            json.dump(plain(self.fields), stream, indent=1, sort_keys=True, allow_nan=False)
            stream.write("\n")
        os.replace(temporary, self.path)


def plain(value):
    """Make a value fit for strict JSON: numbers that are not finite become null, NumPy scalars become Python's."""
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if hasattr(value, "item"):
        value = value.item()
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        return None
    return value


def keras_version(tf):
    """Version of the Keras behind `tf.keras`, which from TensorFlow 2.6 on is a package of its own."""
    root = sys.modules[tf.keras.Model.__module__.split(".")[0]]
    return str(getattr(tf.keras, "__version__", root.__version__))


def mpi_library_version():
    """Ask the MPI library that Horovod really pulled into this process what it is; None when that is not known.

    MPI allows `MPI_Get_library_version` at any time. Horovod loads its library privately, so the library is looked
    up by the path under which it is mapped; opening it again returns the copy already in use.
    """
    try:
        with open("/proc/self/maps") as stream:
            paths = {line.split(None, 5)[5].strip() for line in stream if "/" in line}
        for path in sorted(paths):
            if not re.match(r"libmpi[^/]*\.so", os.path.basename(path)):
                continue
            library = ctypes.CDLL(path)
            if not hasattr(library, "MPI_Get_library_version"):
                continue
            text = ctypes.create_string_buffer(65536)  # MPICH and Open MPI ask for 8192 and 256 at most
            length = ctypes.c_int(0)
            if library.MPI_Get_library_version(text, ctypes.byref(length)) == 0:
                lines = text.value.decode("utf-8", "replace").splitlines()
                return "; ".join(" ".join(line.split()) for line in lines[:2])
    except Exception:
        return None  # a nicety for the reader of the report: never a reason to fail the environment
    return None


def gpu_bus_id(index):
    """PCI bus id of CUDA device `index` as this process counts, or None: tells two ranks on one GPU from two GPUs."""
    try:
        cuda = ctypes.CDLL("libcuda.so.1")
        device = ctypes.c_int(0)
        text = ctypes.create_string_buffer(64)
        if cuda.cuInit(0) or cuda.cuDeviceGet(ctypes.byref(device), index):
            return None
        if cuda.cuDeviceGetPCIBusId(text, len(text), device):
            return None
        return text.value.decode("ascii", "replace")
    except Exception:
        return None


def set_threads(tf):
    """Apply NUM_INTER_THREADS and NUM_INTRA_THREADS, by which a site shares a node among ranks; 0 is automatic."""
    inter = os.environ.get("NUM_INTER_THREADS")
    intra = os.environ.get("NUM_INTRA_THREADS")
    if inter:
        tf.config.threading.set_inter_op_parallelism_threads(int(inter))
    if intra:
        tf.config.threading.set_intra_op_parallelism_threads(int(intra))
    return {
        "inter": tf.config.threading.get_inter_op_parallelism_threads(),
        "intra": tf.config.threading.get_intra_op_parallelism_threads(),
    }


def pin_gpu(tf, local_rank):
    """Give this rank one GPU: the one at its local rank, or the only one that the launcher lets it see."""
    gpus = tf.config.list_physical_devices("GPU")
    if not gpus:
        return {"visible": 0, "used": None, "bus_id": None}
    if len(gpus) > 1 and local_rank >= len(gpus):
        raise RuntimeError(
            f"local rank {local_rank} has no GPU of its own: {len(gpus)} GPUs are visible; "
            f"start at most {len(gpus)} ranks per node"
        )
    index = local_rank if len(gpus) > 1 else 0
    for gpu in gpus:
        tf.config.experimental.set_memory_growth(gpu, True)
    tf.config.set_visible_devices(gpus[index], "GPU")
    return {"visible": len(gpus), "used": gpus[index].name, "bus_id": gpu_bus_id(index)}


def load_shard(np, args, rank, size):
    """Read the images and return this rank's share of the training set, all of the test set, and the share's account.

    All ranks shuffle alike, then each takes its own slice. The slices have equal length (the last few images of an
    uneven division are left out), so that all ranks make the same number of steps and none waits at the end.
    """
    with np.load(args.data, allow_pickle=False) as archive:
        x_train, y_train = archive["x_train"], archive["y_train"]
        x_test, y_test = archive["x_test"], archive["y_test"]
    order = np.random.RandomState(args.seed).permutation(len(x_train)).astype("<i8")
    if args.samples > 0:
        order = order[: args.samples]
    length = len(order) // size
    if length == 0:
        raise RuntimeError(f"{len(order)} training images cannot be shared among {size} ranks")
    start = rank * length
    mine = order[start : start + length]
    account = {"start": start, "stop": start + length, "sha256": hashlib.sha256(np.sort(mine).tobytes()).hexdigest()}
    return (
        (scaled(np, x_train[mine]), y_train[mine].astype("int32")),
        (scaled(np, x_test), y_test.astype("int32")),
        account,
    )


def scaled(np, images):
    """Turn images of 0..255 into float32 of 0..1 with the channel axis that convolutions want."""
    return (images.astype(np.float32) / np.float32(255.0))[..., np.newaxis]


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


def weights_sha256(np, model):
    """Digest of all weights' bytes in order: equal on two ranks only if every bit is."""
    digest = hashlib.sha256()
    for weights in model.get_weights():
        digest.update(np.ascontiguousarray(weights).tobytes())
    return digest.hexdigest()


def weights_difference(np, hvd, model):
    """Largest distance of any weight from rank 0's: tells rounding (1e-7) from ranks that never spoke (0.1)."""
    worst = 0.0
    for number, weights in enumerate(model.get_weights()):
        root = hvd.broadcast(weights, root_rank=0, name=f"smoke.weights.{number}").numpy()
        worst = max(worst, float(np.max(np.abs(weights - root))))
    return worst


def known_allreduce(np, hvd, tf, rank, size):
    """Reduce vectors whose sum is known beforehand.

    The values are small whole numbers, so the sum is exact in float32 up to some two thousand ranks; the average is
    not (Horovod multiplies by 1/size), and is to be compared with a tolerance.
    """
    pattern = np.arange(1, VECTOR_LENGTH + 1, dtype=np.float32)
    mine = (rank + 1) * pattern
    expected = size * (size + 1) // 2 * pattern
    summed = hvd.allreduce(tf.constant(mine), op=hvd.Sum, name="smoke.sum").numpy()
    average = hvd.allreduce(tf.constant(mine), op=hvd.Average, name="smoke.average").numpy()
    repeats = LARGE_ELEMENTS // VECTOR_LENGTH
    large = hvd.allreduce(tf.constant(np.tile(mine, repeats)), op=hvd.Sum, name="smoke.large").numpy()
    wrong = int(np.count_nonzero(large != np.tile(expected, repeats)))
    return {
        "input": mine.tolist(),
        "expected": expected.tolist(),
        "sum": summed.tolist(),
        "expected_average": (expected / size).tolist(),
        "average": average.tolist(),
        "large_elements": LARGE_ELEMENTS,
        "large_wrong": wrong,
    }


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


def train(args, report):
    """The whole run, from the imports to the finished report."""
    fields = report.fields
    fields["versions"] = {"python": platform.python_version()}

    report.stage("import tensorflow")
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    import numpy as np
    import tensorflow as tf

    # Keras warns of slow callbacks because broadcast and metric average wait for all ranks, as they must.
    tf.get_logger().setLevel("ERROR")
    fields["versions"].update(numpy=np.__version__, tensorflow=tf.__version__)
    fields["versions"]["keras"] = keras_version(tf)

    report.stage("import horovod")
    import horovod
    import horovod.tensorflow as hvd
    import horovod.tensorflow.keras as hvd_keras

    fields["versions"]["horovod"] = horovod.__version__

    report.stage("hvd.init")
    hvd.init()
    rank, size, local_rank = hvd.rank(), hvd.size(), hvd.local_rank()
    fields.update(rank=rank, size=size, local_rank=local_rank, local_size=hvd.local_size())
    mpi = mpi_library_version()
    if mpi:
        fields["versions"]["mpi"] = mpi

    report.stage("devices")
    fields["threads"] = set_threads(tf)
    fields["gpu"] = pin_gpu(tf, local_rank)

    report.stage("allreduce")
    fields["allreduce"] = known_allreduce(np, hvd, tf, rank, size)
    fields["peers"] = hvd.allgather_object((rank, report.host, os.getpid()), name="smoke.peers")

    report.stage("data")
    (x_train, y_train), (x_test, y_test), fields["shard"] = load_shard(np, args, rank, size)
    fields["train_images"] = len(x_train)

    report.stage("model")
    # Different on every rank, on purpose: were they alike, a missing broadcast would go unseen.
    own_seed = args.seed * 100003 + rank
    random.seed(own_seed)
    np.random.seed(own_seed)
    tf.random.set_seed(own_seed)
    model = build_model(tf, classes=10)
    # Horovod's own warm-up callback is left out: it fails in TensorFlow 2.15 for SGD with momentum, and Adam on a
    # network this small does not need it. The fall to zero steadies the end of a short run: with four ranks and
    # a constant rate the test accuracy lay between 0.926 and 0.980 from seed to seed, with this between 0.946 and
    # 0.966, and the bar must not be flaky.
    learning_rate = args.learning_rate * size
    steps = args.epochs * -(-len(x_train) // args.batch_size)
    schedule = tf.keras.optimizers.schedules.PolynomialDecay(learning_rate, steps, end_learning_rate=0.0)
    model.compile(
        optimizer=hvd_keras.DistributedOptimizer(tf.keras.optimizers.Adam(schedule)),
        loss="sparse_categorical_crossentropy",
        metrics=["accuracy"],
    )
    fields["learning_rate"] = learning_rate
    fields["weights_sha256_initial"] = weights_sha256(np, model)
    before = model.evaluate(x_train[:BEFORE_IMAGES], y_train[:BEFORE_IMAGES], batch_size=256, verbose=0)[0]
    fields["loss_before"] = float(hvd.allreduce(tf.constant(before), op=hvd.Average, name="smoke.before").numpy())
    if rank == 0:
        print(
            f"rank 0 of {size}  {len(x_train)} images per rank  loss before training {fields['loss_before']:.4f}",
            flush=True,
        )

    report.stage("training")
    epochs = make_epoch_callback(tf, rank, args.epochs)
    model.fit(
        x_train,
        y_train,
        batch_size=args.batch_size,
        epochs=args.epochs,
        verbose=0,
        callbacks=[
            hvd_keras.callbacks.BroadcastGlobalVariablesCallback(0),
            # Before `epochs`, which is to see the loss averaged over the ranks.
            hvd_keras.callbacks.MetricAverageCallback(),
            epochs,
        ],
    )
    fields["loss"] = epochs.losses
    # The first epoch pays for tracing and for the slowest rank's start; of a single epoch there is no fair figure.
    timed = epochs.seconds[1:]
    fields["epoch_seconds"] = [round(seconds, 4) for seconds in epochs.seconds]
    # Of all ranks together: this rank's images times `size`, for the shards are of equal length.
    fields["images_per_second"] = len(x_train) * size * len(timed) / sum(timed) if timed else None

    report.stage("evaluation")
    fields["weights_sha256"] = weights_sha256(np, model)
    fields["weights_max_difference"] = weights_difference(np, hvd, model)
    # Each rank measures the whole test set by itself, without a word to the others.
    fields["accuracy"] = float(model.evaluate(x_test, y_test, batch_size=256, verbose=0)[1])
    fields["test_images"] = len(x_test)
    if rank == 0:
        speed = f"  {fields['images_per_second']:.0f} images/s over all ranks" if timed else ""
        print(f"test accuracy {fields['accuracy']:.4f}{speed}", flush=True)

    report.stage("done")


def main(argv=None):
    """Run the training and see that a report is left behind whatever happens; the exit code is 0 or 1."""
    args = parse_args(argv)
    faulthandler.enable()
    report = Report(args.out)
    try:
        train(args, report)
    except BaseException as error:
        report.fields["error"] = f"{type(error).__name__}: {error}"
        report.fields["traceback"] = traceback.format_exc()
        report.write()
        print(
            f"error: the smoke test stopped in stage `{report.fields['stage']}` on {report.host}\n"
            f"  report: {report.path}\n{report.fields['traceback']}",
            file=sys.stderr,
            flush=True,
        )
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
