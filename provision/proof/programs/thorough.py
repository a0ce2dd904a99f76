"""The numerical proof that Horovod trains correctly in a candidate environment, as named checks with figures.

This file runs *inside* the candidate environment, as N ranks that the launcher of the site starts, like `horovod_keras.py`.
It imports TensorFlow and Horovod, never `provision`, parses on Python 3.6, and writes one JSON report per process, which
it rewrites at each stage. It needs no data. `bench.py` says how a check compares, and is the course of the proof; the checks
are in `gradient_checks.py`, `keras_checks.py` and `graph_checks.py`. For PyTorch there is `thorough_torch.py`.

A check that this TensorFlow or Horovod cannot run is reported as skipped, with the reason. All ranks run the checks in
the same order. If a rank stops in the middle of a check, the others wait until the time limit of the launcher.

Works with TensorFlow 1.15 to 2.21, with Keras 2, tf-keras and Keras 3. On TensorFlow 1.15 the checks in graphs run
without version 2 behaviour, the others after `tf.compat.v1.enable_v2_behavior()`.
"""

import sys

import gradient_checks as gradients
import graph_checks as graphs
import keras_checks as keras
from bench import FEATURES, GRADIENT_TOLERANCE, IMAGES, VOCABULARY, Bench, main
from tensorflow_rank import join_horovod, keras_version, minor_version, session_config, take_devices


class TensorFlowBench(Bench):
    """The tools of the checks with TensorFlow: a small network, and its gradients in all ways."""

    def __init__(self, np, tf, hvd, hvd_keras, seed, report):
        super().__init__(np, hvd, seed)
        self.tf, self.hvd_keras, self.report = tf, hvd_keras, report
        self.config = session_config(tf, report.fields)
        self.version = minor_version(tf)
        self.keras3 = int(keras_version(tf).split(".")[0]) >= 3

    def tensor(self, array):
        """A constant."""
        return self.tf.constant(array)

    def prepare(self, function):
        """Enable version 2 behaviour after the checks in graphs."""
        if function.__module__ != "graph_checks":
            self.behave_as_2()

    def behave_as_2(self):
        """Enable version 2 behaviour on TensorFlow 1.15: eager execution, tf.function, and tf.keras with both."""
        if self.version >= (2, 0) or self.tf.executing_eagerly():
            return
        # TensorFlow expects this call at the start of a process. Later, the context that the graphs created is in the
        # way: variables would be put into a graph. TensorFlow 1 has no public function for it, and will not change.
        from tensorflow.python.eager import context

        context._context = None
        self.tf.compat.v1.enable_v2_behavior()
        take_devices(self.report, self.tf, False)

    def model(self, same=True, words=False, dropout=False):
        """A small network, with the same weights on all ranks or with different ones."""
        keras = self.tf.keras
        keras.backend.clear_session()
        draw = self.np.random.RandomState(self.seed + (0 if same else 1 + self.rank))
        x = keras.Input((FEATURES,))
        inputs, inner = x, x
        if words:
            w = keras.Input((3,), dtype="int32")
            inputs = [x, w]
            embedded = keras.layers.Flatten()(keras.layers.Embedding(VOCABULARY, 4)(w))
            inner = keras.layers.Concatenate()([x, embedded])
        inner = keras.layers.Dense(8, activation="tanh")(inner)
        if dropout:
            inner = keras.layers.Dropout(0.2)(inner)
        model = keras.Model(inputs, keras.layers.Dense(1)(inner))
        model.set_weights([0.3 * draw.normal(size=w.shape).astype("float32") for w in model.get_weights()])
        return model

    def loss(self, model, batch, words=False):
        """The mean squared error."""
        x, w, y = batch
        return self.tf.reduce_mean(self.tf.square(model([x, w] if words else x, training=True) - y))

    def gradient(self, model, batch, words=False):
        """The gradient that one process computes for a batch without Horovod."""
        with self.tf.GradientTape() as tape:
            loss = self.loss(model, batch, words)
        return self.dense(tape.gradient(loss, model.trainable_variables))

    def gradients(self, model, words=False):
        """The gradient of the concatenated batch of all ranks, and that of this rank alone."""
        return self.gradient(model, self.everybody(), words), self.gradient(model, self.data(), words)

    def tape_gradient(self, model, words=False, **options):
        """The gradient of this rank's batch by Horovod's tape with these options."""
        with self.tf.GradientTape() as tape:
            loss = self.loss(model, self.data(), words)
        return self.hvd.DistributedGradientTape(tape, **options).gradient(loss, model.trainable_variables)

    def dense(self, tensors):
        """Gradients as arrays; sparse ones become dense."""
        return [self.tf.convert_to_tensor(tensor).numpy() for tensor in tensors]

    def optimizer(self, kind="SGD", **options):
        """An optimizer of the Keras in use, without Horovod."""
        return getattr(self.tf.keras.optimizers, kind)(**options)

    def distributed(self, kind="SGD", **options):
        """An optimizer of the Keras in use, wrapped by Horovod."""
        return self.hvd_keras.DistributedOptimizer(self.optimizer(kind, **options))

    def compiled(self, model, kind="SGD", **options):
        """The model, compiled with an optimizer of Horovod."""
        model.compile(optimizer=self.distributed(kind, **options), loss="mse")
        return model

    def unit_sgd(self, **options):
        """SGD of Horovod with rate 1, which moves the weights by the gradient, and with these options of Horovod."""
        return self.hvd_keras.DistributedOptimizer(self.optimizer(learning_rate=1.0), **options)

    def moved(self, model, train):
        """How far `train()` moves the weights."""
        before = model.get_weights()
        train()
        return [old - new for old, new in zip(before, model.get_weights())]

    def fit_step(self, what, model, optimizer, expected, tolerance=GRADIENT_TOLERANCE, alone=None, **options):
        """Record how far `fit` with an optimizer of rate 1 moves the weights, instead of by the `expected` gradient."""
        model.compile(optimizer=optimizer, loss="mse")
        moved = self.moved(model, lambda: self.fit(model, **options))
        self.compare(what, expected, moved, tolerance, alone)

    def state(self, optimizer):
        """The variables of an optimizer: a property in Keras 3, a method before."""
        variables = optimizer.variables
        return variables() if callable(variables) else variables

    def learning_rate(self, model):
        """The present learning rate."""
        return float(self.np.asarray(self.tf.convert_to_tensor(model.optimizer.learning_rate)))

    def fit(self, model, steps=1, callbacks=(), epochs=1, words=False, first=0, everybody=False):
        """Train with `fit` on the batches of this rank, or the concatenated ones of all, for some steps, in order."""
        read, batch = (self.everybody, IMAGES * self.size) if everybody else (self.data, IMAGES)
        x, w, y = (self.np.concatenate(part) for part in zip(*map(read, range(first, first + steps))))
        options = {"batch_size": batch, "epochs": epochs, "callbacks": list(callbacks)}
        return model.fit([x, w] if words else x, y, shuffle=False, verbose=0, **options)


# The checks in graphs come first: after a process has enabled version 2 behaviour, it no longer behaves like 1.15.
CHECKS = (
    ("graph", graphs.check_graph),
    ("keras_graph", graphs.check_keras_graph),
    ("tape", gradients.check_tape),
    ("fit", gradients.check_fit),
    ("loop", gradients.check_loop),
    ("ranks", gradients.check_ranks),
    ("training", gradients.check_training),
    ("broadcast", gradients.check_broadcast),
    ("metrics", keras.check_metrics),
    ("warmup", keras.check_warmup),
    ("schedule", keras.check_schedule),
    ("sync_batch_norm", keras.check_sync_batch_norm),
    ("load_model", keras.check_load_model),
    ("resume", keras.check_resume),
    ("checkpoint", keras.check_checkpoint),
    ("process_sets", gradients.check_process_sets),
    ("fp16", gradients.check_fp16),
    ("grouped", gradients.check_grouped),
    ("accumulation", gradients.check_accumulation),
    ("local_layers", gradients.check_local_layers),
    ("elastic", keras.check_elastic),
    ("loss_scale", gradients.check_loss_scale),
    ("refusals", gradients.check_refusals),
)


def make_bench(args, report):
    """Join the ranks of Horovod."""
    np, tf, hvd = join_horovod(report, args.gpu)
    import horovod.tensorflow.keras as hvd_keras

    return TensorFlowBench(np, tf, hvd, hvd_keras, args.seed, report)


if __name__ == "__main__":
    sys.exit(main(CHECKS, make_bench))
