"""Horovod with a loop of your own: one process for each GPU, on any number of nodes. For TensorFlow 2.2 and newer.

    mpiexec -n 2 python train.py --data-dir data --output-dir output

It does what the example `single` does, with `tf.GradientTape` in place of `fit`. What Horovod needs is marked
`differs:`.
"""

import argparse
import json
import os
import time

import horovod.tensorflow as hvd
import numpy as np
import tensorflow as tf

WARM_UP = 3  # epochs

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
gpus = tf.config.list_physical_devices("GPU")
if gpus:
    # differs: each rank uses one GPU. Some schedulers show a task only its own GPU, others all GPUs of the node.
    mine = gpus[hvd.local_rank() if len(gpus) > 1 else 0]
    tf.config.set_visible_devices(mine, "GPU")
    tf.config.experimental.set_memory_growth(mine, True)
    print(f"rank {hvd.rank()} of {hvd.size()} uses {mine.name}", flush=True)

files = [os.path.join(args.data_dir, name) for name in ("mnist.npz", "digits.npz")]
with np.load(next(filter(os.path.exists, files), files[0])) as archive:
    images, labels = archive["x_train"][..., None] / np.float32(255), archive["y_train"].astype(np.int32)
    test_images, test_labels = archive["x_test"][..., None] / np.float32(255), archive["y_test"].astype(np.int32)

# differs: each rank trains on its own part. All ranks make the same number of steps, otherwise some wait for ever: with
# `repeat` and a fixed number of steps they do.
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
optimizer = tf.keras.optimizers.Adam(rate)
loss_of = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)

# A checkpoint has the weights, the optimizer's moments and the number of epochs. Its files are complete before the file
# `checkpoint` names them, so a job that is stopped while it writes has lost nothing.
epochs_done = tf.Variable(0, dtype=tf.int64)
checkpoint = tf.train.Checkpoint(model=model, optimizer=optimizer, epochs_done=epochs_done)
if hvd.rank() == 0:  # differs: only rank 0 reads and writes checkpoints; the broadcast below sends what it read
    manager = tf.train.CheckpointManager(checkpoint, os.path.join(args.output_dir, "checkpoints"), max_to_keep=3)
    newest = manager.latest_checkpoint or (args.resume_from and tf.train.latest_checkpoint(args.resume_from))
    if newest:
        checkpoint.restore(newest).expect_partial()  # no warnings if no epoch is left to train
        print(f"continues from {newest}, after epoch {int(epochs_done)}", flush=True)
    writer = tf.summary.create_file_writer(os.path.join(args.output_dir, "tensorboard"))  # differs: on rank 0 only
first = int(hvd.broadcast(tf.constant(int(epochs_done)), 0, name="first"))  # differs: all begin with the same epoch


@tf.function
def train_step(images, labels):
    with tf.GradientTape() as tape:
        loss = loss_of(labels, model(images, training=True))
    tape = hvd.DistributedGradientTape(tape)  # differs: it averages the gradients of all ranks
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))
    return loss


def summarize(name, value, step):
    """Write a number for TensorBoard, which TensorFlow 2.21 does not install."""
    if hasattr(tf.summary, "scalar"):
        with writer.as_default():
            tf.summary.scalar(name, value, step=step)


batches, seconds = iter(dataset), []
for epoch in range(first, args.epochs):
    began = time.time()
    # The scaled learning rate is too large for the first steps, so it grows over three epochs (arXiv 1706.02677).
    optimizer.learning_rate = rate * min(1.0, (1 + epoch) / WARM_UP)
    losses = []
    for step in range(steps):
        losses.append(train_step(*next(batches)))
        if epoch == first and step == 0:
            # differs: all ranks take the weights and the moments of rank 0. The first step has made the moments.
            hvd.broadcast_variables(model.variables, root_rank=0)
            moments = optimizer.variables
            hvd.broadcast_variables(moments() if callable(moments) else moments, root_rank=0)
    # differs: the loss is an average over all ranks
    mean = float(hvd.allreduce(tf.reduce_mean(losses), name="loss"))
    seconds.append(time.time() - began)
    epochs_done.assign(epoch + 1)
    if hvd.rank() == 0:  # differs: one rank prints and writes
        print(f"epoch {epoch + 1} of {args.epochs}: loss {mean:.4f}, {seconds[-1]:.1f} s", flush=True)
        manager.save()
        summarize("loss", mean, epoch + 1)

if hvd.rank() == 0:  # differs: one rank measures and reports, with the images of all ranks
    guesses = np.argmax(model(test_images, training=False).numpy(), axis=1)
    accuracy = float(np.mean(guesses == test_labels))
    print(f"test accuracy {accuracy:.3f} after {int(epochs_done)} epochs", flush=True)
    if seconds[1:]:  # the first epoch includes the start-up
        images_of_all = steps * args.batch_size * hvd.size()
        figures = {"seconds": sum(seconds), "accuracy": accuracy}
        figures["images_per_second"] = images_of_all * len(seconds[1:]) / sum(seconds[1:])
        figures.update(batch=args.batch_size, tensorflow=tf.__version__)
        ended = began + seconds[-1]
        clock = "%Y/%m/%d %H:%M:%S"  # as nvidia-smi writes times: GPUs count between these two
        figures["trained"] = [time.strftime(clock, time.localtime(one)) for one in (ended - sum(seconds), ended)]
        with open(os.path.join(args.output_dir, "report.json"), "w") as stream:  # for `provision scaling`
            json.dump(figures, stream)
