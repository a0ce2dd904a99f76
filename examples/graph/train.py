"""A graph of TensorFlow 1 in one process, as it was before Horovod. For TensorFlow 1.15, and 2.x by `tf.compat.v1`.

    python train.py --data-dir data --output-dir output

The example `graph-horovod` is this program with Horovod. If the output folder has a checkpoint, the program continues
from it: a requeued job keeps its output folder.
"""

import argparse
import json
import os
import time

import numpy as np
import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()
tf.logging.set_verbosity(tf.logging.ERROR)

parser = argparse.ArgumentParser()
parser.add_argument("--data-dir", default=os.environ.get("PROVISION_DATA", "data"), help="has mnist.npz or digits.npz")
parser.add_argument("--output-dir", default=os.environ.get("PROVISION_OUTPUT", "output"))
parser.add_argument("--resume-from", metavar="FOLDER", help="the checkpoints of an earlier job")
parser.add_argument("--epochs", type=int, default=6)
parser.add_argument("--batch-size", type=int, default=32)
parser.add_argument("--learning-rate", type=float, default=0.001)
parser.add_argument("--soft-placement", action="store_true", help="what has no kernel for GPUs runs on the CPU")
args = parser.parse_args()

config = tf.ConfigProto(
    inter_op_parallelism_threads=int(os.environ.get("NUM_INTER_THREADS", 0)),  # 0: TensorFlow decides
    intra_op_parallelism_threads=int(os.environ.get("NUM_INTRA_THREADS", 0)),
    allow_soft_placement=args.soft_placement,
)
config.gpu_options.allow_growth = True

files = [os.path.join(args.data_dir, name) for name in ("mnist.npz", "digits.npz")]
with np.load(next(filter(os.path.exists, files), files[0])) as archive:
    images, labels = archive["x_train"].reshape(-1, 784) / np.float32(255), archive["y_train"].astype(np.int32)
    test_images, test_labels = archive["x_test"].reshape(-1, 784) / np.float32(255), archive["y_test"].astype(np.int32)

steps = len(images) // args.batch_size  # of an epoch

# Everything that is run is in the graph before the session, which finalizes it.
x, y = tf.placeholder(tf.float32, [None, 784]), tf.placeholder(tf.int32, [None])
weights = tf.get_variable("weights", [784, 64])
hidden = tf.nn.relu(tf.matmul(x, weights) + tf.get_variable("biases", [64], initializer=tf.zeros_initializer()))
logits = tf.matmul(hidden, tf.get_variable("output", [64, 10]))
loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits))
correct = tf.equal(tf.argmax(logits, axis=1), tf.cast(y, tf.int64))
accuracy = tf.reduce_mean(tf.cast(correct, tf.float32))
step = tf.train.get_or_create_global_step()
train = tf.train.AdamOptimizer(args.learning_rate).minimize(loss, global_step=step)

# MonitoredTrainingSession continues from the newest checkpoint in this folder, which has the weights, the optimizer's
# moments and the step.
folder = os.path.join(args.output_dir, "checkpoints")
saver = tf.train.Saver(max_to_keep=3)
tf.summary.scalar("loss", loss)
earlier = None
tf.gfile.MakeDirs(folder)
if not tf.train.latest_checkpoint(folder) and args.resume_from:
    earlier = tf.train.latest_checkpoint(args.resume_from)


class Progress(tf.train.SessionRunHook):
    """Counts the steps, and saves after each epoch.

    Not CheckpointSaverHook: it also writes the graph as text, which fails in TensorFlow 2.20 with protobuf 7
    (`MessageToString() got an unexpected keyword argument 'float_format'`).
    """

    def after_create_session(self, session, coord):
        if earlier:
            saver.restore(session, earlier)
        self.done = int(session.run(step))

    def after_run(self, context, values):
        before, self.done = self.done, int(context.session.run(step))
        if self.done > before and self.done % steps == 0:
            saver.save(context.session, os.path.join(folder, "model"), self.done, write_meta_graph=False)


progress = Progress()
with tf.train.MonitoredTrainingSession(
    checkpoint_dir=folder,
    summary_dir=os.path.join(args.output_dir, "tensorboard"),
    scaffold=tf.train.Scaffold(saver=saver),
    hooks=[progress],
    config=config,
    save_checkpoint_secs=None,
    save_checkpoint_steps=None,
    save_summaries_steps=steps,
    log_step_count_steps=None,
) as session:
    if progress.done:
        print(f"continues after epoch {progress.done // steps}", flush=True)
    seconds = []
    for epoch in range(progress.done // steps, args.epochs):
        began, losses = time.time(), []
        order = np.random.RandomState(epoch).permutation(len(images))
        for number in range(steps):
            mine = order[number * args.batch_size :][: args.batch_size]
            losses.append(session.run([train, loss], {x: images[mine], y: labels[mine]})[1])
        seconds.append(time.time() - began)
        mean = np.mean(losses)
        print(f"epoch {epoch + 1} of {args.epochs}: loss {mean:.4f}, {seconds[-1]:.1f} s", flush=True)
    measured = float(session.run(accuracy, {x: test_images, y: test_labels}))
    print(f"test accuracy {measured:.3f} after {progress.done // steps} epochs", flush=True)

if seconds[1:]:  # the first epoch includes the start-up
    figures = {"seconds": sum(seconds), "accuracy": measured}
    figures["images_per_second"] = steps * args.batch_size * len(seconds[1:]) / sum(seconds[1:])
    figures.update(batch=args.batch_size, tensorflow=tf.__version__)
    ended = began + seconds[-1]
    clock = "%Y/%m/%d %H:%M:%S"  # as nvidia-smi writes times: GPUs count between these two
    figures["trained"] = [time.strftime(clock, time.localtime(one)) for one in (ended - sum(seconds), ended)]
    with open(os.path.join(args.output_dir, "report.json"), "w") as stream:  # for `provision scaling`
        json.dump(figures, stream)
