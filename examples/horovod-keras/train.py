"""Horovod with Keras: one process for each GPU, on any number of nodes. For TensorFlow 1.15, 2.2 and newer.

    mpiexec -n 2 python train.py --data-dir data --output-dir output

It does what the example `single` does. What it does in another way is marked `differs:`.
"""

import argparse
import importlib.util
import json
import os
import time

import horovod.tensorflow.keras as hvd
import numpy as np
import tensorflow as tf
from horovod.tensorflow import broadcast_object

WARM_UP = 3  # epochs
OLD = tf.__version__.startswith("1.")
if OLD:
    tf.compat.v1.enable_v2_behavior()  # Keras of 1.15 as that of 2.x

parser = argparse.ArgumentParser()
parser.add_argument("--data-dir", default=os.environ.get("PROVISION_DATA", "data"), help="has mnist.npz or digits.npz")
parser.add_argument("--output-dir", default=os.environ.get("PROVISION_OUTPUT", "output"))
parser.add_argument("--resume-from", metavar="FOLDER", help="the checkpoints of an earlier job")
parser.add_argument("--epochs", type=int, default=6)
parser.add_argument("--batch-size", type=int, default=32, help="of each rank")
parser.add_argument("--learning-rate", type=float, default=0.001, help="of one rank")
args = parser.parse_args()

hvd.init()  # differs: before TensorFlow uses a device

inter, intra = (int(os.environ.get(name, 0)) for name in ("NUM_INTER_THREADS", "NUM_INTRA_THREADS"))
tf.config.threading.set_inter_op_parallelism_threads(inter)  # 0: TensorFlow decides
tf.config.threading.set_intra_op_parallelism_threads(intra)
gpus = tf.config.experimental.list_physical_devices("GPU")
if gpus:
    # differs: each rank uses one GPU. Some schedulers show a task only its own GPU, others all GPUs of the node.
    mine = gpus[hvd.local_rank() if len(gpus) > 1 else 0]
    tf.config.experimental.set_visible_devices(mine, "GPU")
    tf.config.experimental.set_memory_growth(mine, True)
    print(f"rank {hvd.rank()} of {hvd.size()} uses {mine.name}", flush=True)

files = [os.path.join(args.data_dir, name) for name in ("mnist.npz", "digits.npz")]
with np.load(next(filter(os.path.exists, files), files[0])) as archive:
    images, labels = archive["x_train"][..., None] / np.float32(255), archive["y_train"].astype(np.int32)
    test_images, test_labels = archive["x_test"][..., None] / np.float32(255), archive["y_test"].astype(np.int32)

# differs: each rank trains on its own part. All ranks make the same number of steps, otherwise some wait for ever: with
# `repeat` and `steps_per_epoch` they do.
steps = len(images) // (args.batch_size * hvd.size())
dataset = tf.data.Dataset.from_tensor_slices((images, labels)).shard(hvd.size(), hvd.rank())
dataset = dataset.shuffle(len(images), seed=1).repeat()
dataset = dataset.batch(args.batch_size, drop_remainder=True).prefetch(1)

model = tf.keras.Sequential(
    [
        tf.keras.Input((28, 28, 1)),
        tf.keras.layers.Conv2D(16, 5, strides=2, activation="relu"),
        tf.keras.layers.Flatten(),
        tf.keras.layers.Dense(64, activation="relu"),
        tf.keras.layers.Dense(10),
    ]
)
# differs: a step sees as many images as all ranks have, so the learning rate is that of one rank times their number.
rate = args.learning_rate * hvd.size()
optimizer = hvd.DistributedOptimizer(tf.keras.optimizers.Adam(rate))  # differs: it averages the gradients of all ranks
loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
model.compile(optimizer=optimizer, loss=loss, metrics=["accuracy"])

# A checkpoint has the weights, the optimizer's moments and the number of epochs. Its files are complete before the file
# `checkpoint` names them, so a job that is stopped while it writes has lost nothing.
epochs_done = tf.Variable(0, dtype=tf.int64)
checkpoint = tf.train.Checkpoint(model=model, optimizer=model.optimizer, epochs_done=epochs_done)
newest = None
if hvd.rank() == 0:  # differs: only rank 0 reads and writes checkpoints; the broadcast below sends what it read
    manager = tf.train.CheckpointManager(checkpoint, os.path.join(args.output_dir, "checkpoints"), max_to_keep=3)
    newest = manager.latest_checkpoint or (args.resume_from and tf.train.latest_checkpoint(args.resume_from))
    if newest:
        checkpoint.restore(newest).expect_partial()  # no warnings if no epoch is left to train
        print(f"continues from {newest}, after epoch {int(epochs_done)}", flush=True)
    else:
        manager.save()  # the first weights
if OLD:  # TensorFlow 1.15 makes the optimizer's variables while it reads, and all ranks must have the same
    newest = broadcast_object(newest, 0)
    if newest and hvd.rank():
        checkpoint.restore(newest).expect_partial()
first = int(hvd.broadcast(tf.constant(int(epochs_done)), 0, name="first"))  # differs: all begin with the same epoch


class AfterEpoch(tf.keras.callbacks.Callback):
    """Saves a checkpoint, and keeps the seconds of each epoch."""

    def on_train_begin(self, logs=None):
        self.seconds = []

    def on_epoch_begin(self, epoch, logs=None):
        self.began = time.time()

    def on_epoch_end(self, epoch, logs=None):
        self.seconds.append(time.time() - self.began)
        epochs_done.assign(epoch + 1)
        if hvd.rank() == 0:
            manager.save()


def warmed(epoch, _):
    """The scaled learning rate is too large for the first steps, so it grows (arXiv 1706.02677)."""
    return rate * min(1.0, (1 + epoch) / WARM_UP)


after = AfterEpoch()
callbacks = [
    hvd.callbacks.BroadcastGlobalVariablesCallback(0),  # differs: all ranks begin with the weights of rank 0
    hvd.callbacks.MetricAverageCallback(),  # differs: the metrics are averages over all ranks
    tf.keras.callbacks.LearningRateScheduler(warmed),
    after,
]
if hvd.rank() == 0 and importlib.util.find_spec("tensorboard"):  # differs: only rank 0 writes summaries
    callbacks.append(tf.keras.callbacks.TensorBoard(os.path.join(args.output_dir, "tensorboard"), histogram_freq=1))
model.fit(
    dataset,
    steps_per_epoch=steps,
    initial_epoch=first,
    epochs=args.epochs,
    callbacks=callbacks,
    shuffle=False,  # the data set is shuffled above
    verbose=2 if hvd.rank() == 0 else 0,  # differs: one rank prints
)

if hvd.rank() == 0:  # differs: one rank measures and reports, with the images of all ranks
    _, accuracy = model.evaluate(test_images, test_labels, batch_size=256, verbose=0)
    print(f"test accuracy {accuracy:.3f} after {int(epochs_done)} epochs", flush=True)
    if after.seconds[1:]:  # the first epoch includes the start-up
        figures = {"seconds": sum(after.seconds), "accuracy": float(accuracy)}
        images_of_all = steps * args.batch_size * hvd.size()
        figures["images_per_second"] = images_of_all * len(after.seconds[1:]) / sum(after.seconds[1:])
        figures.update(batch=args.batch_size, tensorflow=tf.__version__)
        ended = after.began + after.seconds[-1]
        clock = "%Y/%m/%d %H:%M:%S"  # as nvidia-smi writes times: GPUs count between these two
        figures["trained"] = [time.strftime(clock, time.localtime(one)) for one in (ended - sum(after.seconds), ended)]
        with open(os.path.join(args.output_dir, "report.json"), "w") as stream:  # for `provision scaling`
            json.dump(figures, stream)
