"""The training run in the style of TensorFlow 1: a graph, sessions and checkpoints under Horovod, on MNIST-shaped digits.

It is for stacks whose users still write `tf.Session` (`proof.program = "horovod_graph"`): on TensorFlow 1.15 without
version 2 behaviour, and on 2.x with `tf.compat.v1`. It does not use Keras, which cannot build a model in a graph from
TensorFlow 2.16 on; the network is made of variables and `matmul`.

It does what such programs do on a cluster: input sharded by rank through placeholders, `DistributedOptimizer` with the
rate scaled by the number of ranks, `MonitoredTrainingSession` with `BroadcastGlobalVariablesHook(0)` and `StopAtStepHook`,
threads set in `ConfigProto`. Half-way the session ends and a second one continues: only rank 0 has the checkpoint, the
other ranks start from new random weights, and after the broadcast all must have the weights of the first session.
"""

import os

from tensorflow_rank import HorovodTrial, session_config
from trial import main

PIXELS, HIDDEN, CLASSES = 28 * 28, 128, 10


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


class HorovodGraph(HorovodTrial):
    """Ranks that average the gradients of an optimizer in a graph; between sessions, `arrays` are the weights."""

    def join(self):
        """Join, and keep the devices for sessions."""
        super().join()
        self.fields["eager"] = bool(self.tf.executing_eagerly())
        self.config = session_config(self.tf, self.fields)
        self.step = 0
        if self.rank == 0:
            os.makedirs(self.checkpoints)  # fails if the folder exists: the run would continue from an old checkpoint

    def evaluate(self, make):
        """Run a session on a graph with this tensor alone."""
        with self.tf.Graph().as_default(), self.tf.compat.v1.Session(config=self.config) as session:
            return session.run(make())

    def build(self, seed):
        """Weights and biases of both layers, drawn by NumPy, because the seeds of a graph depend on its number of operations."""
        np = self.np
        draw = np.random.RandomState(seed)
        self.arrays = []
        for inputs, outputs in ((PIXELS, HIDDEN), (HIDDEN, CLASSES)):
            self.arrays.append((draw.normal(size=(inputs, outputs)) * np.sqrt(2.0 / inputs)).astype(np.float32))
            self.arrays.append(np.zeros(outputs, np.float32))
        return self.arrays

    def reload(self):
        """New weights, different on each rank: only the checkpoint of rank 0 can restore the old ones."""
        self.build(self.args.seed * 100003 + self.size + self.rank)

    def state(self):
        """The step and the weights with which the last session ended."""
        return self.step, self.arrays

    def batch(self, step):
        """The images of a step on this rank: its whole shard once per epoch, in an order that depends on the epoch."""
        epoch, place = divmod(step, self.steps)
        order = self.np.random.RandomState(self.args.seed + epoch).permutation(self.images)
        mine = order[place * self.args.batch_size : (place + 1) * self.args.batch_size]
        return [part[mine] for part in self.shard]

    def fit(self, first, last):
        """One session, from `arrays` or, if there is one, from rank 0's checkpoint."""
        tf, hvd, root = self.tf, self.hvd, self.rank == 0
        v1, end, trained = tf.compat.v1, last * self.steps, []
        path = os.path.join(self.checkpoints, "model")
        with tf.Graph().as_default():
            network = Network(tf, self.arrays)
            step = v1.train.get_or_create_global_step()
            # Falls to zero, as for Keras, so that a short run ends steadily.
            whole = self.args.epochs * self.steps
            rate = v1.train.polynomial_decay(self.learning_rate, step, whole, end_learning_rate=0.0)
            train = hvd.DistributedOptimizer(v1.train.AdamOptimizer(rate)).minimize(network.loss, global_step=step)
            saver = v1.train.Saver()

            class End(v1.train.SessionRunHook):
                # Not the saver of the session: it also writes the graph as text, which fails in TensorFlow with
                # protobuf 7 (`MessageToString() got an unexpected keyword argument 'float_format'`).
                def end(self, session):
                    trained.extend(session.run(network.variables))
                    if root:
                        saver.save(session, path, end, write_meta_graph=False)

            with v1.train.MonitoredTrainingSession(
                scaffold=v1.train.Scaffold(saver=saver),
                hooks=[hvd.BroadcastGlobalVariablesHook(0), v1.train.StopAtStepHook(last_step=end), End()],
                checkpoint_dir=self.checkpoints if root else None,
                config=self.config,
                save_checkpoint_steps=None,
                save_checkpoint_secs=None,
                save_summaries_steps=None,
                save_summaries_secs=None,
                log_step_count_steps=None,
            ) as session:
                began_at, began = int(session.run(step)), session.run(network.variables)
                # Counted as well: were the broadcast missing, a rank that began earlier would wait for the others for ever.
                numbers = iter(range(began_at, began_at + (last - first) * self.steps))
                for _ in range(first, last):
                    self.begin_epoch()
                    losses = []
                    while len(losses) < self.steps and not session.should_stop():
                        feed = network.feed(*self.batch(next(numbers)))
                        losses.append(float(session.run([train, network.loss], feed)[1]))
                    self.end_epoch(sum(losses) / max(1, len(losses)))
        self.step, self.arrays = end, trained
        return began_at, began

    def measure(self, images, labels):
        """In a graph and a session of its own."""
        with self.tf.Graph().as_default(), self.tf.compat.v1.Session(config=self.config) as session:
            network = Network(self.tf, self.arrays)
            session.run(self.tf.compat.v1.global_variables_initializer())
            return tuple(map(float, session.run([network.loss, network.accuracy], network.feed(images, labels))))


if __name__ == "__main__":
    main(HorovodGraph, "Train a small network in a TensorFlow 1 graph under Horovod; one JSON report per process.")
