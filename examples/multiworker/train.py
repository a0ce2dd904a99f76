"""MultiWorkerMirroredStrategy: one worker for each GPU, on any number of nodes. For TensorFlow 2.4 and newer.

    srun python train.py --data-dir data --output-dir output

It does what the example `single` does. What it does in another way is marked `differs:`. It has a loop of its own,
because `fit` of Keras 3 fails under this strategy (keras-team/keras 20585); with Keras 2 `model.fit` works too.
"""

import argparse
import json
import os
import re
import shutil
import time

import numpy as np
import tensorflow as tf

parser = argparse.ArgumentParser()
parser.add_argument("--data-dir", default=os.environ.get("PROVISION_DATA", "data"), help="has mnist.npz or digits.npz")
parser.add_argument("--output-dir", default=os.environ.get("PROVISION_OUTPUT", "output"))
parser.add_argument("--resume-from", metavar="FOLDER", help="the checkpoints of an earlier job")
parser.add_argument("--epochs", type=int, default=6)
parser.add_argument("--batch-size", type=int, default=32, help="of each worker")
parser.add_argument("--learning-rate", type=float, default=0.001, help="of one worker")
args = parser.parse_args()

inter, intra = (int(os.environ.get(name, 0)) for name in ("NUM_INTER_THREADS", "NUM_INTRA_THREADS"))
tf.config.threading.set_inter_op_parallelism_threads(inter)  # 0: TensorFlow decides
tf.config.threading.set_intra_op_parallelism_threads(intra)
gpus = tf.config.list_physical_devices("GPU")
if gpus:
    # differs: each worker uses one GPU. Slurm may show a task only its own GPU, or all GPUs of the node.
    mine = gpus[int(os.environ["SLURM_LOCALID"]) if len(gpus) > 1 else 0]
    tf.config.set_visible_devices(mine, "GPU")
    tf.config.experimental.set_memory_growth(mine, True)

# differs: the workers find each other with the variables that srun sets. Without these arguments the resolver asks
# nvidia-smi for GPUs. Jobs that share a node need different ports.
tasks_of_node = max(map(int, re.findall(r"(\d+)(?:\(x\d+\))?", os.environ["SLURM_STEP_TASKS_PER_NODE"])))
resolver = tf.distribute.cluster_resolver.SlurmClusterResolver(
    port_base=12000 + int(os.environ["SLURM_JOB_ID"]) * 64 % 20000,
    gpus_per_node=tasks_of_node,
    gpus_per_task=1,
    auto_set_gpu=False,
)
communication = os.environ.get("PROVISION_COMMUNICATION", "AUTO")  # AUTO, RING or NCCL
options = tf.distribute.experimental.CommunicationOptions(
    implementation=getattr(tf.distribute.experimental.CommunicationImplementation, communication)
)
strategy = tf.distribute.MultiWorkerMirroredStrategy(cluster_resolver=resolver, communication_options=options)
worker, workers = resolver.task_id, strategy.num_replicas_in_sync
batch = args.batch_size * workers  # differs: a step sees the images of all workers
print(f"worker {worker} of {workers}", flush=True)

files = [os.path.join(args.data_dir, name) for name in ("mnist.npz", "digits.npz")]
with np.load(next(filter(os.path.exists, files), files[0])) as archive:
    images, labels = archive["x_train"][..., None] / np.float32(255), archive["y_train"].astype(np.int32)
    test_images, test_labels = archive["x_test"][..., None] / np.float32(255), archive["y_test"].astype(np.int32)

steps = len(images) // batch


def own_part(context):
    """differs: each worker trains on its own part. All make the same number of steps."""
    part = tf.data.Dataset.from_tensor_slices((images, labels)).shard(
        context.num_input_pipelines, context.input_pipeline_id
    )
    part = part.shuffle(len(images), seed=1).repeat()
    return part.batch(context.get_per_replica_batch_size(batch), drop_remainder=True).prefetch(1)


dataset = strategy.distribute_datasets_from_function(own_part)

with strategy.scope():  # differs: what is made here has the same value on all workers
    model = tf.keras.Sequential(
        [
            tf.keras.Input((28, 28, 1)),
            tf.keras.layers.Conv2D(16, 5, strides=2, activation="relu"),
            tf.keras.layers.Flatten(),
            tf.keras.layers.Dense(64, activation="relu"),
            tf.keras.layers.Dense(10),
        ]
    )
    # differs: a step sees as many images as all workers have, so the learning rate is larger, too.
    optimizer = tf.keras.optimizers.Adam(args.learning_rate * workers)
    losses_of = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True, reduction="none")
    epochs_done = tf.Variable(0, dtype=tf.int64)

# A checkpoint has the weights, the optimizer's moments and the number of epochs. Its files are complete before the file
# `checkpoint` names them, so a job that is stopped while it writes has lost nothing.
checkpoint = tf.train.Checkpoint(model=model, optimizer=optimizer, epochs_done=epochs_done)
# differs: all workers must save, because saving can be a common operation. Only the files of worker 0 are kept.
kept = os.path.join(args.output_dir, "checkpoints")
unused = os.path.join(args.output_dir, f"unused-of-worker-{worker}")
manager = tf.train.CheckpointManager(checkpoint, kept if worker == 0 else unused, max_to_keep=3)
newest = tf.train.latest_checkpoint(kept) or (args.resume_from and tf.train.latest_checkpoint(args.resume_from))
if newest:
    with strategy.scope():  # differs: the optimizer makes its variables while it reads them
        checkpoint.restore(newest).expect_partial()  # no warnings if no epoch is left to train
    print(f"continues from {newest}, after epoch {int(epochs_done.numpy())}", flush=True)
first = int(epochs_done.numpy())


@tf.function
def train_step(images, labels):
    def on_worker(images, labels):
        with tf.GradientTape() as tape:
            # differs: divided by the images of all workers, because the optimizer adds the gradients of all workers
            loss = tf.reduce_sum(losses_of(labels, model(images, training=True))) / batch
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables))
        return loss

    losses = strategy.run(on_worker, args=(images, labels))
    return strategy.reduce(tf.distribute.ReduceOp.SUM, losses, axis=None)


writer = None
if worker == 0 and hasattr(tf.summary, "scalar"):  # differs: only worker 0 writes; TensorFlow 2.21 has no TensorBoard
    writer = tf.summary.create_file_writer(os.path.join(args.output_dir, "tensorboard"))

batches, seconds = iter(dataset), []
for epoch in range(first, args.epochs):
    began = time.time()
    mean = float(sum(train_step(*next(batches)) for _ in range(steps)) / steps)
    seconds.append(time.time() - began)
    epochs_done.assign(epoch + 1)
    manager.save()
    if worker == 0:
        print(f"epoch {epoch + 1} of {args.epochs}: loss {mean:.4f}, {seconds[-1]:.1f} s", flush=True)
    if writer:
        with writer.as_default():
            tf.summary.scalar("loss", mean, step=epoch + 1)

if worker == 0:  # differs: one worker reports, with the images of all workers
    guesses = np.argmax(model(test_images, training=False).numpy(), axis=1)
    accuracy = float(np.mean(guesses == test_labels))
    print(f"test accuracy {accuracy:.3f} after {int(epochs_done.numpy())} epochs", flush=True)
    if seconds[1:]:  # the first epoch includes the start-up
        figures = {"seconds": sum(seconds), "accuracy": accuracy}
        figures["images_per_second"] = steps * batch * len(seconds[1:]) / sum(seconds[1:])
        figures.update(batch=args.batch_size, tensorflow=tf.__version__)
        ended = began + seconds[-1]
        clock = "%Y/%m/%d %H:%M:%S"  # as nvidia-smi writes times: GPUs count between these two
        figures["trained"] = [time.strftime(clock, time.localtime(one)) for one in (ended - sum(seconds), ended)]
        with open(os.path.join(args.output_dir, "report.json"), "w") as stream:  # for `provision scaling`
            json.dump(figures, stream)
else:
    shutil.rmtree(unused, ignore_errors=True)
