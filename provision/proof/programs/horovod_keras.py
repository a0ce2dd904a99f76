"""The training run that a candidate environment must pass: Keras under Horovod on MNIST-shaped digits.

This file runs *inside* the candidate environment, as N ranks that the launcher of the site starts. It imports TensorFlow
and Horovod, never `provision`, and parses on Python 3.6. The parts that other programs use too are in `rank.py`, `trial.py`
and `keras_model.py`. It measures and reports; it does not judge. The judge (`provision/proof/strategies.py`) reads the reports
of all processes together, because a single process cannot see the faults that matter: a process that never found the
others believes that it is a correct rank 0 of 1.

Why the measurements prove something:

- every rank starts from *different* weights, so only a working broadcast can make them equal;
- every rank trains on *different* images, so only a working allreduce of the gradients can keep them equal;
- nothing in the model is local to a rank by design (no batch normalisation), so equal means equal to the last bit;
- the report is rewritten at each stage, so if a process hangs or dies of an illegal instruction, its report still
  names the stage.

Works with TensorFlow 2.2 to 2.15 (Keras 2) and Horovod 0.19 or later, and with TensorFlow 2.16 to 2.21 (Keras 3, or tf-keras
with TF_USE_LEGACY_KERAS=1) and the Horovod 0.28.1 of `patches/`.
"""

import os
import sys

from keras_model import build_model, make_epoch_callback, seed
from rank import import_libraries, join, run
from trial import (
    BEFORE_IMAGES,
    argument_parser,
    known_allreduce,
    load_shard,
    weights_difference,
    weights_sha256,
)


def evaluate(tensor):
    """The value of a tensor. This program runs eagerly, so the tensor already has one."""
    return tensor.numpy()


def train(args, report):
    """The whole run, from the imports to the finished report."""
    fields = report.fields
    np, tf, hvd = import_libraries(report)
    import horovod.tensorflow.keras as hvd_keras

    join(report, tf, hvd, args.gpu)
    rank, size = hvd.rank(), hvd.size()

    report.stage("allreduce")
    fields["allreduce"] = known_allreduce(np, tf, hvd, evaluate)
    fields["peers"] = hvd.allgather_object((rank, report.host, os.getpid()), name="proof.peers")

    report.stage("data")
    (x_train, y_train), (x_test, y_test), fields["shard"] = load_shard(np, args, rank, size)
    fields["train_images"] = len(x_train)

    report.stage("model")
    # Different on every rank, on purpose: if they were equal, a missing broadcast would not be noticed.
    seed(np, tf, args.seed * 100003 + rank)
    model = build_model(tf, classes=10)
    # Horovod's own warm-up callback is not used: it fails in TensorFlow 2.15 for SGD with momentum, and Adam does not
    # need it on a network this small. The rate falls to zero so that a short run ends steadily: with four ranks and a
    # constant rate the test accuracy was between 0.926 and 0.980, depending on the seed; with the falling rate it is
    # between 0.946 and 0.966. The check of the accuracy must not depend on chance.
    learning_rate = args.learning_rate * size
    steps = args.epochs * -(-len(x_train) // args.batch_size)
    schedule = tf.keras.optimizers.schedules.PolynomialDecay(learning_rate, steps, end_learning_rate=0.0)
    model.compile(
        optimizer=hvd_keras.DistributedOptimizer(tf.keras.optimizers.Adam(schedule)),
        loss="sparse_categorical_crossentropy",
        metrics=["accuracy"],
    )
    fields["learning_rate"] = learning_rate
    fields["weights_sha256_initial"] = weights_sha256(np, model.get_weights())
    before = model.evaluate(x_train[:BEFORE_IMAGES], y_train[:BEFORE_IMAGES], batch_size=256, verbose=0)[0]
    fields["loss_before"] = float(hvd.allreduce(tf.constant(before), op=hvd.Average, name="proof.before").numpy())
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
            # Must come before `epochs`, which records the loss averaged over the ranks.
            hvd_keras.callbacks.MetricAverageCallback(),
            epochs,
        ],
    )
    fields["loss"] = epochs.losses
    # The first epoch includes tracing and the start of the slowest rank, so it is not counted; a run of one epoch has no figure.
    timed = epochs.seconds[1:]
    fields["epoch_seconds"] = [round(seconds, 4) for seconds in epochs.seconds]
    # Of all ranks together: this rank's images times `size`, for the shards are of equal length.
    fields["images_per_second"] = len(x_train) * size * len(timed) / sum(timed) if timed else None

    report.stage("evaluation")
    fields["weights_sha256"] = weights_sha256(np, model.get_weights())
    fields["weights_max_difference"] = weights_difference(np, tf, hvd, model.get_weights(), evaluate)
    # Each rank measures the whole test set by itself, without a word to the others.
    fields["accuracy"] = float(model.evaluate(x_test, y_test, batch_size=256, verbose=0)[1])
    fields["test_images"] = len(x_test)
    if rank == 0:
        speed = f"  {fields['images_per_second']:.0f} images/s over all ranks" if timed else ""
        print(f"test accuracy {fields['accuracy']:.4f}{speed}", flush=True)

    report.stage("done")


def main(argv=None):
    """Run the training; the exit code is 0 or 1."""
    args = argument_parser("Train a small Keras network under Horovod; write one JSON report per process.").parse_args(
        argv
    )
    return run("the proof", args.out, lambda report: train(args, report))


if __name__ == "__main__":
    sys.exit(main())
