"""The training run of one process on one device: Keras on MNIST-shaped digits, saved half-way and continued.

It is for stacks whose users train without any strategy (`proof.program = "single"`). It reports and measures like the
programs of several ranks, as rank 0 of 1; `provision/proof/strategies.py` judges the report. On a node with several GPUs
the job lets it see one (`CUDA_VISIBLE_DEVICES=0`); if it sees several, it takes the first.

Half-way the whole model is saved, optimizer included. A second model is loaded from the file, and must have the saved
weights and the saved step before the training continues. Works with TensorFlow 2.2 and later; Horovod is not needed.
"""

import os
import sys

from keras_model import (
    build_model,
    checkpoint_path,
    compile_model,
    images_per_second,
    make_epoch_callback,
    restart_failed,
    seed,
    train_and_restart,
)
from rank import import_tensorflow, need_gpu, run, take_devices
from trial import BEFORE_IMAGES, argument_parser, load_shard, weights_sha256


def train(args, report):
    """The whole run, from the imports to the finished report; returns true if the restart went wrong."""
    fields = report.fields
    np, tf = import_tensorflow(report)
    fields.update(rank=0, size=1, local_rank=0, local_size=1)
    report.stage("devices")
    fields.update(take_devices(tf, 0))
    if args.gpu:
        need_gpu(tf, fields)

    report.stage("data")
    (x_train, y_train), (x_test, y_test), fields["shard"] = load_shard(np, args, 0, 1)
    fields.update(train_images=len(x_train), test_images=len(x_test), learning_rate=args.learning_rate)
    checkpoints = os.path.join(args.out, "checkpoints")
    os.makedirs(checkpoints)

    report.stage("model")
    seed(np, tf, args.seed)
    steps = args.epochs * -(-len(x_train) // args.batch_size)
    model = compile_model(tf, build_model(tf, classes=10), args.learning_rate, steps)
    fields["weights_sha256_initial"] = weights_sha256(np, model.get_weights())
    before = model.evaluate(x_train[:BEFORE_IMAGES], y_train[:BEFORE_IMAGES], batch_size=256, verbose=0)[0]
    fields["loss_before"] = float(before)
    print(f"{len(x_train)} images  loss before training {before:.4f}", flush=True)

    epochs = make_epoch_callback(tf, 0, args.epochs)
    path = checkpoint_path(tf, checkpoints)

    def fit(model, first, last):
        model.fit(
            x_train,
            y_train,
            batch_size=args.batch_size,
            initial_epoch=first,
            epochs=last,
            verbose=0,
            callbacks=[epochs],
        )

    model = train_and_restart(
        np,
        report,
        model,
        args.epochs,
        fit,
        save=lambda model: model.save(path),
        load=lambda: tf.keras.models.load_model(path),
    )
    fields["loss"] = epochs.losses
    fields["epoch_seconds"] = [round(seconds, 4) for seconds in epochs.seconds]
    fields["images_per_second"] = images_per_second(len(x_train), epochs.seconds)

    report.stage("evaluation")
    fields["weights_sha256"] = weights_sha256(np, model.get_weights())
    fields["accuracy"] = float(model.evaluate(x_test, y_test, batch_size=256, verbose=0)[1])
    print(f"test accuracy {fields['accuracy']:.4f}, restarted at step {fields['restart']['began_at']}", flush=True)

    report.stage("done")
    # The judge reports this in words; the exit code is for a person who runs the program by hand.
    return restart_failed(fields["restart"])


def main(argv=None):
    """Run the training; the exit code is 0 or 1."""
    args = argument_parser("Train a small Keras network in one process; write one JSON report.").parse_args(argv)
    return run("the proof", args.out, lambda report: train(args, report))


if __name__ == "__main__":
    sys.exit(main())
