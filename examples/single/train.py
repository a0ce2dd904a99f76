"""One process on one GPU, or on the CPUs of one node: Keras on images of digits. For TensorFlow 1.15, 2.2 and newer.

    python train.py --data-dir data --output-dir output

The other examples train the same model on several devices. Their comments `differs:` mark what they do in another way.
If the output folder has a checkpoint, the program continues from it: a requeued job keeps its output folder.
"""

import argparse
import importlib.util
import json
import os
import time

import numpy as np
import tensorflow as tf

if tf.__version__.startswith("1."):
    tf.compat.v1.enable_v2_behavior()  # Keras of 1.15 as that of 2.x

parser = argparse.ArgumentParser()
parser.add_argument("--data-dir", default=os.environ.get("PROVISION_DATA", "data"), help="has mnist.npz or digits.npz")
parser.add_argument("--output-dir", default=os.environ.get("PROVISION_OUTPUT", "output"))
parser.add_argument("--resume-from", metavar="FOLDER", help="the checkpoints of an earlier job")
parser.add_argument("--epochs", type=int, default=6)
parser.add_argument("--batch-size", type=int, default=32)
parser.add_argument("--learning-rate", type=float, default=0.001)
args = parser.parse_args()

inter, intra = (int(os.environ.get(name, 0)) for name in ("NUM_INTER_THREADS", "NUM_INTRA_THREADS"))
tf.config.threading.set_inter_op_parallelism_threads(inter)  # 0: TensorFlow decides
tf.config.threading.set_intra_op_parallelism_threads(intra)
for gpu in tf.config.experimental.list_physical_devices("GPU"):
    tf.config.experimental.set_memory_growth(gpu, True)

files = [os.path.join(args.data_dir, name) for name in ("mnist.npz", "digits.npz")]
with np.load(next(filter(os.path.exists, files), files[0])) as archive:
    images, labels = archive["x_train"][..., None] / np.float32(255), archive["y_train"].astype(np.int32)
    test_images, test_labels = archive["x_test"][..., None] / np.float32(255), archive["y_test"].astype(np.int32)

steps = len(images) // args.batch_size
dataset = tf.data.Dataset.from_tensor_slices((images, labels)).shuffle(len(images), seed=1).repeat()
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
optimizer = tf.keras.optimizers.Adam(args.learning_rate)
loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
model.compile(optimizer=optimizer, loss=loss, metrics=["accuracy"])

# A checkpoint has the weights, the optimizer's moments and the number of epochs. Its files are complete before the file
# `checkpoint` names them, so a job that is stopped while it writes has lost nothing.
epochs_done = tf.Variable(0, dtype=tf.int64)
checkpoint = tf.train.Checkpoint(model=model, optimizer=model.optimizer, epochs_done=epochs_done)
manager = tf.train.CheckpointManager(checkpoint, os.path.join(args.output_dir, "checkpoints"), max_to_keep=3)
newest = manager.latest_checkpoint or (args.resume_from and tf.train.latest_checkpoint(args.resume_from))
if newest:
    checkpoint.restore(newest).expect_partial()  # no warnings if no epoch is left to train
    print(f"continues from {newest}, after epoch {int(epochs_done)}", flush=True)
else:
    manager.save()  # the first weights
first = int(epochs_done)


class AfterEpoch(tf.keras.callbacks.Callback):
    """Saves a checkpoint, and keeps the seconds of each epoch."""

    def on_train_begin(self, logs=None):
        self.seconds = []

    def on_epoch_begin(self, epoch, logs=None):
        self.began = time.time()

    def on_epoch_end(self, epoch, logs=None):
        self.seconds.append(time.time() - self.began)
        epochs_done.assign(epoch + 1)
        manager.save()


after = AfterEpoch()
callbacks = [after]
if importlib.util.find_spec("tensorboard"):
    callbacks.append(tf.keras.callbacks.TensorBoard(os.path.join(args.output_dir, "tensorboard"), histogram_freq=1))
model.fit(
    dataset,
    steps_per_epoch=steps,
    initial_epoch=first,
    epochs=args.epochs,
    callbacks=callbacks,
    shuffle=False,  # the data set is shuffled above
    verbose=2,
)

_, accuracy = model.evaluate(test_images, test_labels, batch_size=256, verbose=0)
print(f"test accuracy {accuracy:.3f} after {int(epochs_done)} epochs", flush=True)
if after.seconds[1:]:  # the first epoch includes the start-up
    figures = {"seconds": sum(after.seconds), "accuracy": float(accuracy)}
    figures["images_per_second"] = steps * args.batch_size * len(after.seconds[1:]) / sum(after.seconds[1:])
    figures.update(batch=args.batch_size, tensorflow=tf.__version__)
    ended = after.began + after.seconds[-1]
    clock = "%Y/%m/%d %H:%M:%S"  # as nvidia-smi writes times: GPUs count between these two
    figures["trained"] = [time.strftime(clock, time.localtime(one)) for one in (ended - sum(after.seconds), ended)]
    with open(os.path.join(args.output_dir, "report.json"), "w") as stream:  # for `provision scaling`
        json.dump(figures, stream)
