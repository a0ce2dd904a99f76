"""What the checks of the numerical proof share: a small network, the data of all ranks, and the list of figures.

Every rank can compute the data of all ranks from the seed, and so knows which gradients the other ranks must have. The
reference is always the same training by one process on the concatenated batches. A check passes if the figures of this
rank agree with the reference within the tolerance. Checks that could pass by chance also measure the figure that a rank
would see without any communication (`alone`), and fail if it is not clearly different.
"""

import tempfile

from tensorflow_rank import keras_version, minor_version, session_config, take_devices

FEATURES = 6
IMAGES = 16  # per rank and step
VOCABULARY = 11

# For a gradient. Sums over the ranks are computed in another order than sums over the batch.
GRADIENT_TOLERANCE = 1e-5
# For weights after some tens of steps, through which the rounding grows.
TRAINING_TOLERANCE = 1e-4
# A half-precision number has 11 bits: 2**-11 of the largest gradient, which is near 1, and some more for the sum.
FP16_TOLERANCE = 2e-3
# The gradient of a single rank differs from the average by far more than any tolerance here.
ALONE_AT_LEAST = 1e-2


class Skip(Exception):
    """This TensorFlow or Horovod does not have the feature that the check needs."""


class Bench:
    """The tools of the checks: the libraries, the ranks, the data of all ranks, and the list of figures."""

    def __init__(self, np, tf, hvd, hvd_keras, seed, report):
        self.np, self.tf, self.hvd, self.hvd_keras, self.seed, self.report = np, tf, hvd, hvd_keras, seed, report
        self.config = session_config(tf, report.fields)
        self.rank, self.size = hvd.rank(), hvd.size()
        self.version = minor_version(tf)
        self.keras3 = int(keras_version(tf).split(".")[0]) >= 3
        self.scratch = tempfile.mkdtemp(prefix="provision-thorough-")
        self.figures = []

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

    def data(self, step=0, rank=None):
        """The inputs, words and targets of one rank (by default this one) in one step; the targets differ by rank."""
        rank = self.rank if rank is None else rank
        draw = self.np.random.RandomState(self.seed * 1000003 + step * 1009 + rank)
        x = draw.normal(size=(IMAGES, FEATURES)).astype("float32")
        words = draw.randint(0, VOCABULARY, size=(IMAGES, 3)).astype("int32")
        y = (x.sum(axis=1, keepdims=True) / FEATURES + 0.5 * rank + 0.1).astype("float32")
        return x, words, y

    def everybody(self, step=0, ranks=None):
        """The concatenated batches of all ranks, or of some."""
        parts = [self.data(step, rank) for rank in (range(self.size) if ranks is None else ranks)]
        return tuple(self.np.concatenate(part) for part in zip(*parts))

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

    def flat(self, arrays):
        """Arrays or variables, joined into one array of double precision."""
        arrays = [array.numpy() if hasattr(array, "numpy") else array for array in arrays]
        return self.np.concatenate([self.np.asarray(array, dtype="float64").ravel() for array in arrays])

    def compare(self, what, expected, seen, tolerance, alone=None):
        """Record how far `seen` is from `expected`; `alone` is what a rank would see without communication."""
        expected, seen = self.flat(list(expected)), self.flat(list(seen))
        if expected.shape != seen.shape:
            raise AssertionError("{}: {} numbers instead of {}".format(what, seen.size, expected.size))
        differences = self.np.abs(expected - seen)
        worst = int(self.np.argmax(differences)) if differences.size else 0
        figure = {
            "what": what,
            "numbers": int(differences.size),
            "expected": float(expected[worst]) if differences.size else None,
            "seen": float(seen[worst]) if differences.size else None,
            "difference": float(differences[worst]) if differences.size else 0.0,
            "tolerance": tolerance,
        }
        # `<=`, not a negated `>`: a difference that is not a number must fail.
        passed = figure["difference"] <= tolerance
        if alone is not None and self.size > 1:
            figure["alone"] = float(self.np.max(self.np.abs(expected - self.flat(list(alone)))))
            passed = passed and figure["alone"] >= ALONE_AT_LEAST
        figure["passed"] = bool(passed)
        self.figures.append(figure)

    def holds(self, what, truth, **figures):
        """Record whether a statement is true."""
        self.figures.append(dict(figures, what=what, passed=bool(truth)))

    def refuses(self, what, action):
        """Record whether an action fails, and the message with which it fails."""
        try:
            action()
        except Exception as error:
            self.figures.append({"what": what, "passed": True, "message": "{}: {}".format(type(error).__name__, error)})
        else:
            self.figures.append({"what": what, "passed": False, "message": None})

    def across(self, what, arrays):
        """Record the largest difference of these numbers from those of rank 0, which must be exactly 0."""
        mine = self.flat(list(arrays))
        everyone = self.hvd.allgather(self.tf.constant(mine[self.np.newaxis])).numpy()
        self.compare(what, everyone[0], mine, 0.0)

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

    def fit(self, model, steps=1, callbacks=(), epochs=1, words=False, first=0):
        """Train with `fit` on the batches of this rank for some steps, in order."""
        parts = [self.data(step) for step in range(first, first + steps)]
        x, w, y = (self.np.concatenate(part) for part in zip(*parts))
        return model.fit(
            [x, w] if words else x,
            y,
            batch_size=IMAGES,
            epochs=epochs,
            shuffle=False,
            verbose=0,
            callbacks=list(callbacks),
        )

    def fit_alone(self, model, steps=1, epochs=1, words=False):
        """The same training by one process, on the concatenated batches of all ranks."""
        parts = [self.everybody(step) for step in range(steps)]
        x, w, y = (self.np.concatenate(part) for part in zip(*parts))
        model.fit([x, w] if words else x, y, batch_size=IMAGES * self.size, epochs=epochs, shuffle=False, verbose=0)
