"""The numerical proof that Horovod trains correctly in a candidate environment, as named checks with figures.

This file runs *inside* the candidate environment, as N ranks that the launcher of the site starts, like `horovod_keras.py`.
It imports TensorFlow and Horovod, never `provision`, parses on Python 3.6, and writes one JSON report per process, which
it rewrites at each stage. It needs no data: every rank can compute the data of all ranks from the seed, and so knows
which gradients the other ranks must have.

The reference is always the same training by one process on the concatenated batches. A check passes if the figures of
this rank agree with the reference within the tolerance. Checks that could pass by chance also measure the figure that a
rank would see without any communication (`alone`), and fail if it is not clearly different.

A check that this TensorFlow or Horovod cannot run is reported as skipped, with the reason. All ranks run the checks in
the same order. If a rank stops in the middle of a check, the others wait until the time limit of the launcher.

Works with TensorFlow 1.15 to 2.21, with Keras 2, tf-keras and Keras 3. On TensorFlow 1.15 the checks in graphs run
without version 2 behaviour, the others after `tf.compat.v1.enable_v2_behavior()`.
"""

import argparse
import os
import shutil
import sys
import tempfile
import time
import traceback

from rank import add_gpu_argument, import_libraries, join, keras_version, run, session_config, take_devices

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


def parse_args(argv=None):
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description="Prove by numbers that Horovod averages gradients; write one JSON report per process.",
        allow_abbrev=False,
    )
    parser.add_argument("--out", required=True, metavar="DIR", help="folder for the reports; should be empty")
    parser.add_argument("--seed", type=int, default=1)
    add_gpu_argument(parser)
    parser.add_argument("--only", action="append", metavar="CHECK", help="run only this check; may be repeated")
    return parser.parse_args(argv)


class Bench:
    """The tools of the checks: the libraries, the ranks, the data of all ranks, and the list of figures."""

    def __init__(self, np, tf, hvd, hvd_keras, seed, devices):
        self.np, self.tf, self.hvd, self.hvd_keras, self.seed = np, tf, hvd, hvd_keras, seed
        self.config = session_config(tf, devices)
        self.rank, self.size = hvd.rank(), hvd.size()
        self.version = tuple(int(part) for part in tf.__version__.split(".")[:2])
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
        take_devices(self.tf, self.hvd.local_rank())

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
        """An optimizer of the Keras in use."""
        return getattr(self.tf.keras.optimizers, kind)(**options)

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


def check_tape(bench):
    """DistributedGradientTape gives the gradient of the concatenated batch."""
    model = bench.model(words=True)
    variables = model.trainable_variables
    expected = bench.gradient(model, bench.everybody(), words=True)
    alone = bench.gradient(model, bench.data(), words=True)
    for what, as_function in (("eager", False), ("tf.function", True)):

        def step():
            with bench.tf.GradientTape() as tape:
                loss = bench.loss(model, bench.data(), words=True)
            return bench.hvd.DistributedGradientTape(tape).gradient(loss, variables)

        gradients = bench.tf.function(step)() if as_function else step()
        bench.compare("gradient, " + what, expected, bench.dense(gradients), GRADIENT_TOLERANCE, alone)
    with bench.tf.GradientTape() as tape:
        loss = bench.loss(model, bench.data(), words=True)
    tape = bench.hvd.DistributedGradientTape(tape, op=bench.hvd.Sum, sparse_as_dense=True)
    bench.compare(
        "gradient, sum",
        [bench.size * part for part in expected],
        tape.gradient(loss, variables),
        bench.size * GRADIENT_TOLERANCE,
    )


def check_fit(bench):
    """One step of SGD with rate 1 in `fit` moves the weights by the gradient of the concatenated batch."""
    for words in (False, True):
        model = bench.model(words=words)
        before = model.get_weights()
        expected = bench.gradient(model, bench.everybody(), words)
        alone = bench.gradient(model, bench.data(), words)
        optimizer = bench.hvd_keras.DistributedOptimizer(bench.optimizer(learning_rate=1.0))
        model.compile(optimizer=optimizer, loss="mse")
        bench.fit(model, words=words)
        moved = [old - new for old, new in zip(before, model.get_weights())]
        bench.compare("gradient, sparse" if words else "gradient", expected, moved, GRADIENT_TOLERANCE, alone)


def check_loop(bench):
    """DistributedOptimizer in a custom loop averages the gradients that it gets, exactly once."""
    hvd, tf = bench.hvd, bench.tf
    for what, wrap_tape, op in (
        ("plain tape", False, hvd.Average),
        ("plain tape, sum", False, hvd.Sum),
        ("distributed tape", True, hvd.Average),
        ("distributed tape, sum", True, hvd.Sum),
    ):
        for as_function in (False, True) if op == hvd.Average else (True,):
            model = bench.model()
            before = model.get_weights()
            expected = bench.gradient(model, bench.everybody())
            alone = bench.gradient(model, bench.data())
            factor = bench.size if op == hvd.Sum else 1
            optimizer = hvd.DistributedOptimizer(bench.optimizer(learning_rate=1.0), op=op)

            def step():
                variables = model.trainable_variables
                with tf.GradientTape() as tape:
                    loss = bench.loss(model, bench.data())
                if wrap_tape:
                    tape = hvd.DistributedGradientTape(tape, op=op)
                optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))

            tf.function(step)() if as_function else step()
            moved = [old - new for old, new in zip(before, model.get_weights())]
            bench.compare(
                "gradient, {}, {}".format(what, "tf.function" if as_function else "eager"),
                [factor * part for part in expected],
                moved,
                factor * GRADIENT_TOLERANCE,
                alone,
            )


def check_ranks(bench):
    """With different weights at first and different data, weights and optimizer state end equal to the last bit."""
    callbacks = bench.hvd_keras.callbacks
    for kind, options in (("SGD", {"learning_rate": 0.05, "momentum": 0.9}), ("Adam", {"learning_rate": 0.01})):
        model = bench.model(same=False, words=True, dropout=True)
        model.compile(optimizer=bench.hvd_keras.DistributedOptimizer(bench.optimizer(kind, **options)), loss="mse")
        history = bench.fit(
            model, steps=4, epochs=5, words=True, callbacks=[callbacks.BroadcastGlobalVariablesCallback(0)]
        )
        losses = history.history["loss"]
        bench.across("weights, " + kind, model.get_weights())
        bench.across("optimizer state, " + kind, bench.state(model.optimizer))
        total = float(bench.hvd.allreduce(bench.tf.constant(losses[-1] / losses[0]), name="ranks." + kind))
        bench.holds("loss falls, " + kind, total < 1.0, ratio=total)


def check_training(bench):
    """Training on N ranks equals training by one process on the same global batches."""
    for kind, options in (
        ("SGD", {"learning_rate": 0.05, "momentum": 0.9}),
        # For a tiny gradient, Adam's step depends on rounding unless epsilon is larger than the rounding.
        ("Adam", {"learning_rate": 0.01, "epsilon": 1e-3}),
    ):
        alone = bench.model(words=True)
        alone.compile(optimizer=bench.optimizer(kind, **options), loss="mse")
        bench.fit_alone(alone, steps=5, epochs=4, words=True)
        model = bench.model(words=True)
        model.compile(optimizer=bench.hvd_keras.DistributedOptimizer(bench.optimizer(kind, **options)), loss="mse")
        bench.fit(model, steps=5, epochs=4, words=True)
        bench.compare("weights after 20 steps, " + kind, alone.get_weights(), model.get_weights(), TRAINING_TOLERANCE)


def check_broadcast(bench):
    """Variables and objects of rank 0 arrive on all ranks."""
    root = bench.np.random.RandomState(bench.seed + 1).normal(size=5).astype("float32")
    values = bench.np.random.RandomState(bench.seed + 1 + bench.rank).normal(size=5).astype("float32")
    variable = bench.tf.Variable(values)
    bench.hvd.broadcast_variables([variable], root_rank=0)
    bench.compare("variable", root, [variable], 0.0)
    model = bench.model(same=False)
    bench.hvd.broadcast_variables(model.variables, root_rank=0)
    bench.across("variables of a model", model.get_weights())
    received = bench.hvd.broadcast_object({"rank": bench.rank, "text": "x" * (1 + bench.rank)}, root_rank=0)
    bench.holds("object", received == {"rank": 0, "text": "x"}, seen=str(received))


def check_metrics(bench):
    """MetricAverageCallback averages the metrics over the ranks, for the callbacks that come after it."""

    class Note(bench.tf.keras.callbacks.Callback):
        def __init__(self):
            super().__init__()
            self.losses = []

        def on_epoch_end(self, epoch, logs=None):
            self.losses.append(float(logs["loss"]))

    before, after = Note(), Note()
    model = bench.model()
    model.compile(optimizer=bench.hvd_keras.DistributedOptimizer(bench.optimizer(learning_rate=0.05)), loss="mse")
    bench.fit(model, steps=2, epochs=3, callbacks=[before, bench.hvd_keras.callbacks.MetricAverageCallback(), after])
    gathered = bench.hvd.allgather(bench.tf.constant([before.losses])).numpy()
    bench.compare("loss of each epoch", gathered.mean(axis=0), after.losses, 1e-6, before.losses)


def rates_of(bench, callback, optimizer, epochs, steps):
    """The learning rate at the start of each batch, and the one in the logs of each epoch."""
    rates = []

    class Note(bench.tf.keras.callbacks.Callback):
        def on_train_batch_begin(self, batch, logs=None):
            rates.append(bench.learning_rate(self.model))

    model = bench.model()
    model.compile(optimizer=bench.hvd_keras.DistributedOptimizer(optimizer), loss="mse")
    history = bench.fit(model, steps=steps, epochs=epochs, callbacks=[callback, Note()])
    return rates, history.history["lr"]


def check_warmup(bench):
    """LearningRateWarmupCallback raises the rate from rate/size to rate, also for SGD with momentum."""
    rate, warmup, epochs, steps = 0.08, 2, 3, 4
    expected = []
    for batch in range(epochs * steps):
        done = min((batch + 1) / steps, warmup)
        expected.append(rate / bench.size * (done * (bench.size - 1) / warmup + 1))
    for what, options in (("SGD", {}), ("SGD with momentum", {"momentum": 0.9})):
        callback = bench.hvd_keras.callbacks.LearningRateWarmupCallback(initial_lr=rate, warmup_epochs=warmup)
        seen, logged = rates_of(bench, callback, bench.optimizer(learning_rate=rate, **options), epochs, steps)
        bench.compare("rate of each batch, " + what, expected, seen, 1e-7)
        bench.compare("rate in the logs, " + what, expected[steps - 1 :: steps], logged, 1e-7)


def check_schedule(bench):
    """LearningRateScheduleCallback multiplies the rate from its first epoch to its last."""
    rate, steps = 0.08, 2
    callback = bench.hvd_keras.callbacks.LearningRateScheduleCallback(
        initial_lr=rate, multiplier=lambda epoch: 0.5**epoch, start_epoch=1, end_epoch=3
    )
    seen, logged = rates_of(bench, callback, bench.optimizer(learning_rate=rate), 4, steps)
    by_epoch = [rate, rate * 0.5, rate * 0.25, rate * 0.25]
    bench.compare("rate of each batch", [rate for rate in by_epoch for _ in range(steps)], seen, 1e-7)
    bench.compare("rate in the logs", by_epoch, logged, 1e-7)


def check_sync_batch_norm(bench):
    """SyncBatchNormalization uses the mean and variance of the images of all ranks."""
    np = bench.np
    layer = bench.hvd.SyncBatchNormalization(momentum=0.5, epsilon=1e-3)
    mine = bench.data()[0] + np.float32(bench.rank)
    everyone = np.concatenate([bench.data(rank=rank)[0] + np.float32(rank) for rank in range(bench.size)])
    everyone = everyone.astype("float64")
    mean, variance = everyone.mean(axis=0), everyone.var(axis=0)
    own_mean, own_variance = mine.mean(axis=0), mine.var(axis=0)
    seen = layer(bench.tf.constant(mine), training=True)
    bench.compare(
        "output",
        (mine - mean) / np.sqrt(variance + 1e-3),
        [seen],
        GRADIENT_TOLERANCE,
        (mine - own_mean) / np.sqrt(own_variance + 1e-3),
    )
    bench.compare("moving mean", 0.5 * mean, [layer.moving_mean], GRADIENT_TOLERANCE)
    bench.compare("moving variance", 0.5 + 0.5 * variance, [layer.moving_variance], GRADIENT_TOLERANCE)

    keras = bench.tf.keras
    model = keras.Sequential(
        [keras.Input((FEATURES,)), keras.layers.Dense(4), bench.hvd.SyncBatchNormalization(), keras.layers.Dense(1)]
    )
    model.compile(optimizer=bench.hvd_keras.DistributedOptimizer(bench.optimizer(learning_rate=0.05)), loss="mse")
    bench.fit(model, steps=3, epochs=2, callbacks=[bench.hvd_keras.callbacks.BroadcastGlobalVariablesCallback(0)])
    bench.across("weights and moving statistics after fit", model.get_weights())


def saved_name(bench, name):
    """The path for a saved model, in the newest format that this Keras has."""
    return os.path.join(bench.scratch, name + (".keras" if bench.version >= (2, 13) else ".h5"))


def check_load_model(bench):
    """A model that is saved and loaded keeps its state, and its optimizer averages; without Horovod it loads too."""
    for kind, options in (("SGD", {"learning_rate": 1.0, "momentum": 0.5}), ("Adam", {"learning_rate": 0.01})):
        model = bench.model()
        model.compile(optimizer=bench.hvd_keras.DistributedOptimizer(bench.optimizer(kind, **options)), loss="mse")
        bench.fit(model, steps=3)
        path = saved_name(bench, kind)
        model.save(path)
        loaded = bench.hvd_keras.load_model(path)
        bench.compare("weights, " + kind, model.get_weights(), loaded.get_weights(), 0.0)
        bench.compare("optimizer state, " + kind, bench.state(model.optimizer), bench.state(loaded.optimizer), 0.0)
        bench.fit(model, first=3)
        bench.fit(loaded, first=3)
        bench.compare("weights one step later, " + kind, model.get_weights(), loaded.get_weights(), 1e-6)
        bench.across("weights one step later, between ranks, " + kind, loaded.get_weights())
        if path.endswith(".keras"):
            import zipfile

            with zipfile.ZipFile(path) as archive:
                text = archive.read("config.json").decode()
            bench.holds("no word of Horovod in the file, " + kind, "horovod" not in text.lower())
            plain_model = bench.tf.keras.models.load_model(path)
            bench.compare(
                "optimizer state without Horovod, " + kind,
                bench.state(loaded.optimizer)[:1],
                [bench.state(plain_model.optimizer)[0].numpy() + 1],
                0.0,
            )


def check_resume(bench):
    """Training that is saved, loaded and continued ends with the same weights as uninterrupted training."""

    def fresh():
        model = bench.model()
        optimizer = bench.optimizer("Adam", learning_rate=0.01)
        model.compile(optimizer=bench.hvd_keras.DistributedOptimizer(optimizer), loss="mse")
        return model

    through = fresh()
    bench.fit(through, steps=4, epochs=4)
    half = fresh()
    bench.fit(half, steps=4, epochs=2)
    path = saved_name(bench, "resume")
    half.save(path)
    again = bench.hvd_keras.load_model(path)
    bench.fit(again, steps=4, epochs=2)
    bench.compare("weights", through.get_weights(), again.get_weights(), 1e-6)
    bench.compare("optimizer state", bench.state(through.optimizer), bench.state(again.optimizer), 1e-6)


def check_checkpoint(bench):
    """A checkpoint of rank 0 restores weights and optimizer, and the broadcast sends them to all ranks."""
    model = bench.model()
    optimizer = bench.optimizer("Adam", learning_rate=0.01)
    model.compile(optimizer=bench.hvd_keras.DistributedOptimizer(optimizer), loss="mse")
    bench.fit(model, steps=3)
    weights = model.get_weights()
    state = [variable.numpy() for variable in bench.state(model.optimizer)]
    checkpoint = bench.tf.train.Checkpoint(model=model, optimizer=model.optimizer)
    path = checkpoint.write(os.path.join(bench.scratch, "checkpoint")) if bench.rank == 0 else None
    for variable in list(model.trainable_variables) + list(bench.state(model.optimizer)):
        variable.assign(bench.tf.zeros_like(variable))
    if bench.rank == 0:
        getattr(checkpoint, "read", checkpoint.restore)(path)  # `read` came with 2.4
    bench.hvd.broadcast_variables(list(model.trainable_variables) + list(bench.state(model.optimizer)), root_rank=0)
    bench.compare("weights", weights, model.get_weights(), 0.0)
    bench.compare("optimizer state", state, bench.state(model.optimizer), 0.0)


def check_process_sets(bench):
    """All ranks except the last average among themselves, without the last."""
    if not hasattr(bench.hvd, "add_process_set"):
        raise Skip("this Horovod has no process sets (new in 0.23)")
    members = list(range(bench.size - 1)) if bench.size > 1 else [0]
    some = bench.hvd.add_process_set(members)
    try:
        if bench.rank in members:
            mean = bench.hvd.allreduce(bench.tf.constant([float(bench.rank + 1)]), process_set=some, name="set")
            bench.compare("average", [[sum(member + 1 for member in members) / len(members)]], [mean], 1e-6)
        model = bench.model()
        before = model.get_weights()
        mine = members if bench.rank in members else [bench.rank]
        expected = bench.gradient(model, bench.everybody(ranks=mine))
        optimizer = bench.hvd_keras.DistributedOptimizer(bench.optimizer(learning_rate=1.0), process_set=some)
        model.compile(optimizer=optimizer, loss="mse")
        bench.fit(model)
        moved = [old - new for old, new in zip(before, model.get_weights())]
        bench.compare("gradient by fit", expected, moved, GRADIENT_TOLERANCE)
    finally:
        bench.hvd.remove_process_set(some)


def check_fp16(bench):
    """With fp16 compression, the averaged gradient is correct to the last of its 11 bits."""
    compression = bench.hvd.Compression.fp16
    model = bench.model()
    before = model.get_weights()
    expected = bench.gradient(model, bench.everybody())
    alone = bench.gradient(model, bench.data())
    with bench.tf.GradientTape() as tape:
        loss = bench.loss(model, bench.data())
    tape = bench.hvd.DistributedGradientTape(tape, compression=compression)
    seen = bench.dense(tape.gradient(loss, model.trainable_variables))
    bench.compare("gradient by tape", expected, seen, FP16_TOLERANCE, alone)
    if bench.size > 1:
        exact = float(bench.np.max(bench.np.abs(bench.flat(expected) - bench.flat(seen))))
        bench.holds("the compression changes the gradient", exact > GRADIENT_TOLERANCE / 100, difference=exact)
    optimizer = bench.hvd_keras.DistributedOptimizer(bench.optimizer(learning_rate=1.0), compression=compression)
    model.compile(optimizer=optimizer, loss="mse")
    bench.fit(model)
    moved = [old - new for old, new in zip(before, model.get_weights())]
    bench.compare("gradient by fit", expected, moved, FP16_TOLERANCE, alone)


def check_grouped(bench):
    """Tensors that are reduced as one group, directly and as gradients, have the same results as one by one."""
    hvd = bench.hvd
    if not hasattr(hvd, "grouped_allreduce"):
        raise Skip("this Horovod has no grouped allreduce (new in 0.21)")
    tensors = [bench.tf.fill([length], float((bench.rank + 1) * length)) for length in (1, 3, 5)]
    total = bench.size * (bench.size + 1) / 2
    seen = hvd.grouped_allreduce(tensors, op=hvd.Sum)
    bench.compare("sums", [bench.np.full(length, total * length) for length in (1, 3, 5)], seen, 1e-5)
    reference = bench.model()
    expected = bench.gradient(reference, bench.everybody())
    alone = bench.gradient(reference, bench.data())
    for what in ("two groups", "a list of variables"):
        model = bench.model()
        before = model.get_weights()
        variables = model.trainable_variables
        groups = 2 if what == "two groups" else [[variables[0], variables[2]]]
        optimizer = bench.hvd_keras.DistributedOptimizer(bench.optimizer(learning_rate=1.0), groups=groups)
        model.compile(optimizer=optimizer, loss="mse")
        bench.fit(model)
        moved = [old - new for old, new in zip(before, model.get_weights())]
        bench.compare("gradient by fit, " + what, expected, moved, GRADIENT_TOLERANCE, alone)
        model.set_weights(before)
        with bench.tf.GradientTape() as tape:
            loss = bench.loss(model, bench.data())
        tape = hvd.DistributedGradientTape(tape, groups=groups)
        seen = tape.gradient(loss, variables)
        bench.compare("gradient by tape, " + what, expected, bench.dense(seen), GRADIENT_TOLERANCE, alone)


def check_accumulation(bench):
    """Gradients of two batches that are accumulated before a step give the step of both batches together."""
    model = bench.model()
    before = model.get_weights()
    parts = [bench.gradient(model, bench.everybody(step)) for step in range(2)]
    expected = [(first + second) / 2 for first, second in zip(*parts)]
    alone = bench.gradient(model, bench.data())
    if bench.keras3:
        optimizer = bench.optimizer(learning_rate=1.0, gradient_accumulation_steps=2)
        optimizer = bench.hvd_keras.DistributedOptimizer(optimizer)
        bench.refuses(
            "backward_passes_per_step on Keras 3",
            lambda: bench.hvd_keras.DistributedOptimizer(bench.optimizer(), backward_passes_per_step=2),
        )
    else:
        optimizer = bench.hvd_keras.DistributedOptimizer(
            bench.optimizer(learning_rate=1.0), backward_passes_per_step=2, average_aggregated_gradients=True
        )
        if bench.version < (2, 2):
            # There `fit` computes the gradients itself; only `minimize` would accumulate them.
            model.compile(optimizer=optimizer, loss="mse")
            bench.refuses("backward_passes_per_step in fit before TensorFlow 2.2", lambda: bench.fit(model))
            return
    model.compile(optimizer=optimizer, loss="mse")
    bench.fit(model, steps=2)
    moved = [old - new for old, new in zip(before, model.get_weights())]
    bench.compare("gradient", expected, moved, GRADIENT_TOLERANCE, alone)


def check_local_layers(bench):
    """PartialDistributedOptimizer does not average the gradients of chosen layers, but divides them by the size."""
    by_keras = bench.hvd_keras
    if not hasattr(by_keras, "PartialDistributedOptimizer"):  # without our patches, and before TensorFlow 2.16
        if os.environ.get("TF_USE_LEGACY_KERAS") == "1":
            raise Skip("horovod.keras uses the package `keras`, which is Keras 3 here, but tf.keras is tf-keras")
        try:
            import horovod.keras as by_keras
        except ImportError as error:
            raise Skip("horovod.keras needs the package `keras`, which TensorFlow installs since 2.6") from error
    if not hasattr(by_keras, "PartialDistributedOptimizer"):
        raise Skip("this Horovod has no PartialDistributedOptimizer (new in 0.27)")
    model = bench.model()
    before = model.get_weights()
    expected = bench.gradient(model, bench.everybody())[:2]
    expected += [part / bench.size for part in bench.gradient(model, bench.data())[2:]]
    optimizer = by_keras.PartialDistributedOptimizer(bench.optimizer(learning_rate=1.0), local_layers=model.layers[-1:])
    model.compile(optimizer=optimizer, loss="mse")
    bench.fit(model)
    moved = [old - new for old, new in zip(before, model.get_weights())]
    bench.compare("gradient", expected, moved, GRADIENT_TOLERANCE)


def check_elastic(bench):
    """An elastic state sends the model of rank 0 to all ranks, and restores the committed state."""
    model = bench.model(same=False)
    optimizer = bench.hvd_keras.DistributedOptimizer(bench.optimizer("Adam", learning_rate=0.01))
    model.compile(optimizer=optimizer, loss="mse")
    bench.fit(model, steps=2)
    state = bench.hvd_keras.elastic.KerasState(model, batch=bench.rank)
    state.sync()
    bench.across("weights", model.get_weights())
    bench.across("optimizer state", bench.state(model.optimizer))
    bench.holds("an attribute", state.batch == 0, seen=state.batch)
    weights = model.get_weights()
    kept = [variable.numpy() for variable in bench.state(model.optimizer)]
    bench.fit(model, steps=1)
    state.restore()
    bench.compare("weights, restored", weights, model.get_weights(), 0.0)
    bench.compare("optimizer state, restored", kept, bench.state(model.optimizer), 0.0)


def check_loss_scale(bench):
    """With a LossScaleOptimizer, all ranks skip a step if one rank has an overflow."""
    if not bench.keras3:
        raise Skip("this check is for the LossScaleOptimizer of Keras 3; that of Keras 2 averages inside it")
    keras, np = bench.tf.keras, bench.np
    bench.refuses(
        "a LossScaleOptimizer around a Horovod optimizer",
        lambda: keras.optimizers.LossScaleOptimizer(bench.hvd_keras.DistributedOptimizer(bench.optimizer())),
    )
    model = bench.model()
    inner = bench.optimizer(learning_rate=1.0)
    optimizer = bench.hvd_keras.DistributedOptimizer(keras.optimizers.LossScaleOptimizer(inner, initial_scale=8.0))
    optimizer.build(model.trainable_variables)
    before = model.get_weights()
    gradients = bench.gradient(model, bench.data())
    broken = [np.full_like(part, np.inf if bench.rank == 0 else 1.0) for part in gradients]
    optimizer.apply([bench.tf.constant(part) for part in broken], model.trainable_variables)
    bench.compare("weights after an overflow on rank 0", before, model.get_weights(), 0.0)
    expected = bench.gradient(model, bench.everybody())
    scale = 4.0  # halved once
    optimizer.apply([bench.tf.constant(scale * part) for part in gradients], model.trainable_variables)
    moved = [old - new for old, new in zip(before, model.get_weights())]
    bench.compare("gradient", expected, moved, GRADIENT_TOLERANCE, gradients)


def check_refusals(bench):
    """An optimizer that cannot average gradients is refused with a message, before any training."""
    wrap = bench.hvd_keras.DistributedOptimizer
    bench.refuses("a name instead of an optimizer", lambda: wrap("adam"))

    class Foreign:
        def get_config(self):
            return {}

        @classmethod
        def from_config(cls, config):
            return cls()

    bench.refuses("a class that is not from Keras", lambda: wrap(Foreign()))
    if bench.keras3:
        bench.refuses("an optimizer wrapped twice", lambda: wrap(wrap(bench.optimizer())))
        try:
            import tf_keras
        except ImportError:
            return
        bench.refuses("an optimizer of tf-keras", lambda: wrap(tf_keras.optimizers.SGD()))
    elif os.environ.get("TF_USE_LEGACY_KERAS") == "1":
        import keras

        bench.refuses("an optimizer of Keras 3 in Horovod for tf-keras", lambda: wrap(keras.optimizers.SGD()))


def check_graph(bench):
    """Training in the style of TensorFlow 1: a graph, an optimizer of compat.v1, a session, a checkpoint."""
    np, tf, hvd = bench.np, bench.tf, bench.hvd
    v1 = tf.compat.v1
    if not hasattr(hvd, "BroadcastGlobalVariablesHook"):
        raise Skip("this Horovod has no BroadcastGlobalVariablesHook")
    steps, rate = 6, 0.1
    draw = np.random.RandomState(bench.seed + bench.rank)  # different on each rank: the hook must make them equal
    root = np.random.RandomState(bench.seed)
    start = draw.normal(size=(FEATURES, 1)).astype("float32")
    root_start = root.normal(size=(FEATURES, 1)).astype("float64")

    def run(steps, checkpoint, resume, compression):
        with tf.Graph().as_default():
            x = v1.placeholder(tf.float32, [None, FEATURES])
            y = v1.placeholder(tf.float32, [None, 1])
            weights = v1.get_variable("weights", initializer=start)
            loss = tf.reduce_mean(tf.square(tf.matmul(x, weights) - y))
            step = v1.train.get_or_create_global_step()
            optimizer = hvd.DistributedOptimizer(v1.train.MomentumOptimizer(rate, 0.5), compression=compression)
            pairs = optimizer.compute_gradients(loss)
            train = optimizer.apply_gradients(pairs, global_step=step)
            gradients = []
            saver = v1.train.Saver()

            class Save(v1.train.SessionRunHook):
                # Not with `checkpoint_dir`: that also writes the graph as text, which fails in TensorFlow 2.20 with
                # protobuf 7 (`MessageToString() got an unexpected keyword argument 'float_format'`).
                def end(self, session):
                    if checkpoint and bench.rank == 0:
                        saver.save(session, checkpoint, write_meta_graph=False, write_state=False)

            def restore(scaffold, session):
                if resume and bench.rank == 0:
                    saver.restore(session, checkpoint)

            with v1.train.MonitoredTrainingSession(
                scaffold=v1.train.Scaffold(init_fn=restore, saver=saver),
                hooks=[hvd.BroadcastGlobalVariablesHook(0), v1.train.StopAtStepHook(last_step=steps), Save()],
                config=bench.config,
            ) as session:
                while not session.should_stop():
                    # The first step is `resume`: 0, or the step at which the checkpoint was written.
                    inputs, _, targets = bench.data(resume + len(gradients))
                    gradients.append(session.run([train, pairs[0][0]], {x: inputs, y: targets})[1])
            return gradients

    def alone(steps):
        weights, momentum, gradients = root_start.copy(), 0.0, []
        for step in range(steps):
            x, _, y = bench.everybody(step)
            gradient = 2.0 / len(x) * x.astype("float64").T.dot(x.dot(weights) - y)
            momentum = 0.5 * momentum + gradient
            weights = weights - rate * momentum
            gradients.append(gradient)
        return gradients

    checkpoint = os.path.join(bench.scratch, "graph")
    gradients = run(steps, checkpoint, 0, hvd.Compression.none)
    expected = alone(2 * steps)
    x, _, y = bench.data(0)
    first_alone = 2.0 / len(x) * x.astype("float64").T.dot(x.dot(root_start) - y)
    bench.compare("gradient of the first step", [expected[0]], [gradients[0]], GRADIENT_TOLERANCE, [first_alone])
    bench.compare("gradients of all steps", expected[:steps], gradients, TRAINING_TOLERANCE)
    # Again, from the checkpoint of rank 0. The other ranks have none and get its weights from the broadcast.
    gradients = run(2 * steps, checkpoint, steps, hvd.Compression.none)
    bench.holds("continues where it stopped", len(gradients) == steps, steps=len(gradients))
    bench.compare("gradients after the checkpoint", expected[steps:], gradients, TRAINING_TOLERANCE)
    gradients = run(1, None, 0, hvd.Compression.fp16)
    bench.compare("gradient of the first step, fp16", [expected[0]], [gradients[0]], 10 * FP16_TOLERANCE, [first_alone])


def check_keras_graph(bench):
    """tf.keras of TensorFlow 1 in a graph: `fit` averages, and the callback broadcasts."""
    np, tf, hvd = bench.np, bench.tf, bench.hvd
    if bench.version >= (2, 0):
        raise Skip("tf.keras of TensorFlow 2 runs eagerly; see the checks `fit` and `ranks`")
    keras, draw = tf.keras, np.random.RandomState(bench.seed + bench.rank)
    different = [draw.normal(size=(FEATURES, 1)), draw.normal(size=1)]
    same = [0.1 * np.ones((FEATURES, 1)), np.zeros(1)]

    def gradient(batch):
        x, _, y = batch
        error = 2.0 / len(x) * (x.astype("float64").dot(same[0]) + same[1] - y)
        return [x.T.dot(error), error.sum(axis=0)]

    with tf.Graph().as_default(), tf.compat.v1.Session(config=bench.config) as session:
        keras.backend.set_session(session)
        model = keras.Sequential([keras.layers.Dense(1, input_shape=(FEATURES,))])
        model.compile(optimizer=bench.hvd_keras.DistributedOptimizer(bench.optimizer(learning_rate=1.0)), loss="mse")
        model.set_weights(same)
        bench.fit(model)
        moved = [old - new for old, new in zip(same, model.get_weights())]
        bench.compare("gradient", gradient(bench.everybody()), moved, GRADIENT_TOLERANCE, gradient(bench.data()))
        optimizer = bench.optimizer("Adam", learning_rate=0.05)
        model.compile(optimizer=bench.hvd_keras.DistributedOptimizer(optimizer), loss="mse")
        model.set_weights(different)
        bench.fit(model, steps=4, callbacks=[bench.hvd_keras.callbacks.BroadcastGlobalVariablesCallback(0)])
        weights = bench.flat(model.get_weights())
        everyone = session.run(hvd.allgather(tf.constant(weights[np.newaxis])))
        bench.compare("weights", everyone[0], weights, 0.0)
    keras.backend.set_session(None)


# The checks in graphs come first: after a process has enabled version 2 behaviour, it no longer behaves like 1.15.
CHECKS = (
    ("graph", check_graph),
    ("keras_graph", check_keras_graph),
    ("tape", check_tape),
    ("fit", check_fit),
    ("loop", check_loop),
    ("ranks", check_ranks),
    ("training", check_training),
    ("broadcast", check_broadcast),
    ("metrics", check_metrics),
    ("warmup", check_warmup),
    ("schedule", check_schedule),
    ("sync_batch_norm", check_sync_batch_norm),
    ("load_model", check_load_model),
    ("resume", check_resume),
    ("checkpoint", check_checkpoint),
    ("process_sets", check_process_sets),
    ("fp16", check_fp16),
    ("grouped", check_grouped),
    ("accumulation", check_accumulation),
    ("local_layers", check_local_layers),
    ("elastic", check_elastic),
    ("loss_scale", check_loss_scale),
    ("refusals", check_refusals),
)

IN_GRAPHS = (check_graph, check_keras_graph)


def run_check(bench, function):
    """Run one check and return its record."""
    started = time.time()
    bench.figures = []
    record = {"proves": function.__doc__.strip(), "status": "passed", "reason": None}
    try:
        function(bench)
    except Skip as skip:
        record.update(status="skipped", reason=str(skip))
    except Exception as error:
        record.update(
            status="failed", reason="{}: {}".format(type(error).__name__, error), traceback=traceback.format_exc()
        )
    if any(not figure["passed"] for figure in bench.figures):
        record["status"] = "failed"
        wrong = [figure["what"] for figure in bench.figures if not figure["passed"]]
        record["reason"] = record["reason"] or "wrong: " + ", ".join(wrong)
    record.update(figures=bench.figures, seconds=round(time.time() - started, 3))
    return record


def prove(args, report):
    """The whole proof, from the imports to the finished report; returns the number of failed checks."""
    fields = report.fields
    fields["checks"] = {}
    os.environ.setdefault("HOROVOD_DYNAMIC_PROCESS_SETS", "1")
    # If a rank stops in the middle of a check, the others must not wait for ever.
    os.environ.setdefault("HOROVOD_STALL_CHECK_TIME_SECONDS", "10")
    os.environ.setdefault("HOROVOD_STALL_SHUTDOWN_TIME_SECONDS", "30")
    np, tf, hvd = import_libraries(report)
    import horovod.tensorflow.keras as hvd_keras

    join(report, tf, hvd, args.gpu)

    bench = Bench(np, tf, hvd, hvd_keras, args.seed, fields)
    try:
        for name, function in CHECKS:
            if args.only and name not in args.only:
                continue
            report.stage("check " + name)
            if function not in IN_GRAPHS:
                bench.behave_as_2()
            record = fields["checks"][name] = run_check(bench, function)
            if bench.rank == 0:
                differences = [figure["difference"] for figure in bench.figures if "difference" in figure]
                worst = "  worst difference {:.1e}".format(max(differences)) if differences else ""
                reason = "  " + record["reason"] if record["reason"] else ""
                print("{:<16} {:<8} {:6.1f} s{}{}".format(name, record["status"], record["seconds"], worst, reason))
                sys.stdout.flush()
    finally:
        shutil.rmtree(bench.scratch, ignore_errors=True)
    failed = [name for name, record in fields["checks"].items() if record["status"] == "failed"]
    fields["failed"] = failed
    report.stage("done")
    return len(failed)


def main(argv=None):
    """Run the proof; the exit code is 0 or 1."""
    args = parse_args(argv)
    return run("the proof", args.out, lambda report: prove(args, report))


if __name__ == "__main__":
    sys.exit(main())
