"""The training run in the style of TensorFlow 1: a graph, sessions and checkpoints under Horovod, on MNIST-shaped digits.

It is for stacks whose users still write `tf.Session` (`proof.program = "horovod_graph"`): on TensorFlow 1.15 without
version 2 behaviour, and on 2.x with `tf.compat.v1`. It reports what `horovod_keras.py` reports, by the same rules, so the
same judge reads it. It does not use Keras, which cannot build a model in a graph from TensorFlow 2.16 on; the network is
made of variables and `matmul`.

It does what such programs do on a cluster: input sharded by rank through placeholders, `DistributedOptimizer` with the
rate scaled by the number of ranks, `MonitoredTrainingSession` with `BroadcastGlobalVariablesHook(0)` and `StopAtStepHook`,
threads set in `ConfigProto`. Half-way the session ends and a second one continues: only rank 0 has the checkpoint, the
other ranks start from new random weights, and after the broadcast all must have the weights of the first session.
"""

import json
import os
import sys
import time

from rank import import_libraries, join, run, session_config
from trial import (
    BEFORE_IMAGES,
    argument_parser,
    known_allreduce,
    load_shard,
    weights_difference,
    weights_sha256,
)

PIXELS, HIDDEN, CLASSES = 28 * 28, 128, 10


def parse_args(argv=None):
    """Read the command line. By default the checkpoints are written below the reports."""
    parser = argument_parser(
        "Train a small network in a TensorFlow 1 graph under Horovod; one JSON report per process."
    )
    parser.add_argument(
        "--checkpoints", metavar="DIR", help="folder for the checkpoints of rank 0; default: `checkpoints` in --out"
    )
    return parser.parse_args(argv)


def initial_weights(np, seed):
    """Weights and biases of both layers, drawn by NumPy, because the seeds of a graph depend on its number of operations."""
    draw = np.random.RandomState(seed)
    arrays = []
    for inputs, outputs in ((PIXELS, HIDDEN), (HIDDEN, CLASSES)):
        arrays.append((draw.normal(size=(inputs, outputs)) * np.sqrt(2.0 / inputs)).astype(np.float32))
        arrays.append(np.zeros(outputs, np.float32))
    return arrays


class Network:
    """The network in the present graph: placeholders for images and labels, variables, mean loss and accuracy."""

    def __init__(self, tf, arrays):
        v1 = tf.compat.v1
        self.images = v1.placeholder(tf.float32, [None, PIXELS])
        self.labels = v1.placeholder(tf.int32, [None])
        names = ("hidden/weights", "hidden/biases", "output/weights", "output/biases")
        self.variables = [v1.get_variable(name, initializer=array) for name, array in zip(names, arrays)]
        weights, biases, out_weights, out_biases = self.variables
        hidden = tf.nn.relu(tf.matmul(self.images, weights) + biases)
        logits = tf.matmul(hidden, out_weights) + out_biases
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=self.labels, logits=logits)
        self.loss = tf.reduce_mean(losses)
        hits = tf.equal(tf.argmax(logits, axis=1), tf.cast(self.labels, tf.int64))
        self.accuracy = tf.reduce_mean(tf.cast(hits, tf.float32))

    def feed(self, images, labels):
        """The values with which a session is fed for these images."""
        return {self.images: images.reshape(len(images), PIXELS), self.labels: labels}


class Trial:
    """The data of both sessions: the libraries, the shard of this rank, the length of the run."""

    def __init__(self, args, np, tf, hvd, config, train):
        self.args, self.np, self.tf, self.hvd, self.config = args, np, tf, hvd, config
        self.images, self.labels = train
        self.steps_per_epoch = -(-len(self.images) // args.batch_size)
        self.steps = args.epochs * self.steps_per_epoch
        self.learning_rate = args.learning_rate * hvd.size()
        self.losses = []  # of each epoch, on this rank
        self.seconds = []  # of each epoch
        self.sums = []  # losses of the steps of the present epoch
        self.began = time.time()

    def batch(self, step):
        """The images of a step on this rank: its whole shard once per epoch, in an order that depends on the epoch."""
        epoch, place = divmod(step, self.steps_per_epoch)
        order = self.np.random.RandomState(self.args.seed + epoch).permutation(len(self.images))
        mine = order[place * self.args.batch_size : (place + 1) * self.args.batch_size]
        return self.images[mine], self.labels[mine]

    def session(self, steps, last, arrays, checkpoints):
        """Train `steps` steps up to step `last`, from `arrays` or, if there is one, from rank 0's checkpoint.

        Returns the step at which it began, the weights at that step (after the broadcast), and the weights at the end.
        """
        tf, hvd = self.tf, self.hvd
        v1 = tf.compat.v1
        with tf.Graph().as_default():
            network = Network(tf, arrays)
            step = v1.train.get_or_create_global_step()
            # Falls to zero, as in horovod_keras.py, so that a short run ends steadily.
            rate = v1.train.polynomial_decay(self.learning_rate, step, self.steps, end_learning_rate=0.0)
            optimizer = hvd.DistributedOptimizer(v1.train.AdamOptimizer(rate))
            train = optimizer.minimize(network.loss, global_step=step)
            saver = v1.train.Saver()

            root, trained = hvd.rank() == 0, []

            class End(v1.train.SessionRunHook):
                # Not the saver of the session: it also writes the graph as text, which fails in TensorFlow with
                # protobuf 7 (`MessageToString() got an unexpected keyword argument 'float_format'`).
                def end(self, session):
                    trained.extend(session.run(network.variables))
                    if root:
                        saver.save(session, os.path.join(checkpoints, "model"), last, write_meta_graph=False)

            with v1.train.MonitoredTrainingSession(
                scaffold=v1.train.Scaffold(saver=saver),
                hooks=[hvd.BroadcastGlobalVariablesHook(0), v1.train.StopAtStepHook(last_step=last), End()],
                checkpoint_dir=checkpoints if root else None,
                config=self.config,
                save_checkpoint_steps=None,
                save_checkpoint_secs=None,
                save_summaries_steps=None,
                save_summaries_secs=None,
                log_step_count_steps=None,
            ) as session:
                now = first = int(session.run(step))
                after_broadcast = session.run(network.variables)
                # Counted as well: were the broadcast missing, a rank that began earlier would wait for the others for ever.
                while not session.should_stop() and now < first + steps:
                    _, loss = session.run([train, network.loss], network.feed(*self.batch(now)))
                    now += 1
                    self.note(now, loss)
        return first, after_broadcast, trained

    def note(self, done, loss):
        """Keep the loss of a step, and the account of an epoch when it is complete."""
        self.sums.append(float(loss))
        if done % self.steps_per_epoch:
            return
        now = time.time()
        self.losses.append(sum(self.sums) / len(self.sums))
        self.seconds.append(now - self.began)
        self.sums, self.began = [], now
        if self.hvd.rank() == 0:
            print(
                f"epoch {len(self.losses)}/{self.args.epochs}  loss of rank 0 {self.losses[-1]:.4f}  "
                f"{self.seconds[-1]:.2f} s",
                flush=True,
            )

    def measure(self, arrays, question):
        """Answer `question(network, evaluate)` in a separate graph and session, with these weights."""
        tf = self.tf
        with tf.Graph().as_default(), tf.compat.v1.Session(config=self.config) as session:
            network = Network(tf, arrays)
            session.run(tf.compat.v1.global_variables_initializer())
            return question(network, session.run)


def train(args, report):
    """The whole run, from the imports to the finished report; returns true if the restart went wrong."""
    fields = report.fields
    np, tf, hvd = import_libraries(report)
    join(report, tf, hvd, args.gpu)
    rank, size = hvd.rank(), hvd.size()
    fields["eager"] = bool(tf.executing_eagerly())
    config = session_config(tf, fields)

    report.stage("allreduce")
    with tf.Graph().as_default(), tf.compat.v1.Session(config=config) as session:
        fields["allreduce"] = known_allreduce(np, tf, hvd, session.run)
        fields["peers"] = gather(np, tf, hvd, (rank, report.host, os.getpid()), session.run)

    report.stage("data")
    mine, (x_test, y_test), fields["shard"] = load_shard(np, args, rank, size)
    trial = Trial(args, np, tf, hvd, config, mine)
    fields.update(train_images=len(trial.images), test_images=len(x_test), learning_rate=trial.learning_rate)
    checkpoints = args.checkpoints or os.path.join(args.out, "checkpoints")
    if rank == 0:
        os.makedirs(checkpoints)  # fails if the folder exists: the run would continue from an old checkpoint

    report.stage("model")
    # Different on every rank, on purpose: if they were equal, a missing broadcast would not be noticed.
    arrays = initial_weights(np, args.seed * 100003 + rank)
    fields["weights_sha256_initial"] = weights_sha256(np, arrays)
    few = (trial.images[:BEFORE_IMAGES], trial.labels[:BEFORE_IMAGES])

    def loss_before(network, evaluate):
        loss = evaluate(network.loss, network.feed(*few))
        return float(evaluate(hvd.allreduce(tf.constant(loss), op=hvd.Average, name="proof.before")))

    fields["loss_before"] = trial.measure(arrays, loss_before)
    if rank == 0:
        print(
            f"rank 0 of {size}  {len(trial.images)} images per rank  loss before training {fields['loss_before']:.4f}",
            flush=True,
        )

    report.stage("training")
    half = max(1, trial.steps // 2)
    trial.began = time.time()
    _, _, at_half = trial.session(half, half, arrays, checkpoints)
    report.stage("restart")
    # New weights, different on each rank: only the checkpoint of rank 0 can restore the old ones.
    arrays = initial_weights(np, args.seed * 100003 + size + rank)
    began_at, again, trained = trial.session(trial.steps - half, trial.steps, arrays, checkpoints)
    fields["restart"] = {
        "saved_at": half,
        "saved_sha256": weights_sha256(np, at_half),
        "began_at": began_at,
        "began_sha256": weights_sha256(np, again),
    }

    report.stage("evaluation")
    fields["weights_sha256"] = weights_sha256(np, trained)

    def results(network, evaluate):
        losses = evaluate(hvd.allreduce(tf.constant(trial.losses), op=hvd.Average, name="proof.losses"))
        difference = weights_difference(np, tf, hvd, trained, evaluate)
        return losses.tolist(), difference, float(evaluate(network.accuracy, network.feed(x_test, y_test)))

    fields["loss"], fields["weights_max_difference"], fields["accuracy"] = trial.measure(trained, results)
    # The first epoch includes the start of the slowest rank, so it is not counted.
    timed = trial.seconds[1:]
    fields["epoch_seconds"] = [round(seconds, 4) for seconds in trial.seconds]
    fields["images_per_second"] = len(trial.images) * size * len(timed) / sum(timed) if timed else None
    if rank == 0:
        speed = f"  {fields['images_per_second']:.0f} images/s over all ranks" if timed else ""
        print(
            f"test accuracy {fields['accuracy']:.4f}, restarted at step {began_at} of {trial.steps}{speed}", flush=True
        )

    report.stage("done")
    # The judge reports this in words; the exit code is for a person who runs the program by hand.
    return began_at != half or fields["restart"]["began_sha256"] != fields["restart"]["saved_sha256"]


def gather(np, tf, hvd, mine, evaluate):
    """The value of every rank, as a list by rank. `hvd.allgather_object` needs cloudpickle and a newer TensorFlow."""
    text = np.frombuffer(json.dumps(mine).encode(), np.uint8)
    lengths = evaluate(hvd.allgather(tf.constant([len(text)]), name="proof.lengths"))
    joined = evaluate(hvd.allgather(tf.constant(text), name="proof.peers"))
    ends = np.cumsum(lengths)
    return [json.loads(joined[end - length : end].tobytes().decode()) for end, length in zip(ends, lengths)]


def main(argv=None):
    """Run the training; the exit code is 0 or 1."""
    args = parse_args(argv)
    return run("the proof", args.out, lambda report: train(args, report))


if __name__ == "__main__":
    sys.exit(main())
