"""The training run that a candidate environment must pass: Keras under Horovod on MNIST-shaped digits.

This file runs *inside* the environment that is on trial, as N ranks started by the site's launcher. It imports
TensorFlow and Horovod, never `provision`, and parses on Python 3.7. What it has in common with the programs beside it
stands in `rank.py`. It measures and reports; it does not judge. The judge (`provision/verdict.py`) reads the
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
import hashlib
import os
import random
import sys
import time

from rank import add_gpu_argument, import_libraries, join, run

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
    add_gpu_argument(parser)
    return parser.parse_args(argv)


def positive(text):
    """Parse a whole number of at least 1."""
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"expected a whole number of at least 1, not {text!r}")
    return value


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
    reduced = hvd.allreduce(tf.constant(mine), op=hvd.Sum, name="smoke.sum")
    summed = reduced.numpy()
    average = hvd.allreduce(tf.constant(mine), op=hvd.Average, name="smoke.average").numpy()
    repeats = LARGE_ELEMENTS // VECTOR_LENGTH
    large = hvd.allreduce(tf.constant(np.tile(mine, repeats)), op=hvd.Sum, name="smoke.large").numpy()
    wrong = int(np.count_nonzero(large != np.tile(expected, repeats)))
    return {
        "input": mine.tolist(),
        "expected": expected.tolist(),
        "device": reduced.device,
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
    np, tf, hvd = import_libraries(report)
    import horovod.tensorflow.keras as hvd_keras

    join(report, tf, hvd, args.gpu)
    rank, size = hvd.rank(), hvd.size()

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
    """Run the training; the exit code is 0 or 1."""
    args = parse_args(argv)
    return run("the smoke test", args.out, lambda report: train(args, report))


if __name__ == "__main__":
    sys.exit(main())
