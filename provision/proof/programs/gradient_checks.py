"""The checks of what Horovod does with gradients and variables, by tape, by `fit` and in a custom loop."""

import os

from bench import FP16_TOLERANCE, GRADIENT_TOLERANCE, TRAINING_TOLERANCE, Skip


def check_tape(bench):
    """DistributedGradientTape gives the gradient of the concatenated batch."""
    model = bench.model(words=True)
    expected, alone = bench.gradients(model, words=True)

    def step():
        return bench.tape_gradient(model, words=True)

    for what, gradients in (("eager", step()), ("tf.function", bench.tf.function(step)())):
        bench.compare("gradient, " + what, expected, bench.dense(gradients), GRADIENT_TOLERANCE, alone)
    summed = bench.tape_gradient(model, words=True, op=bench.hvd.Sum, sparse_as_dense=True)
    expected = [bench.size * part for part in expected]
    bench.compare("gradient, sum", expected, summed, bench.size * GRADIENT_TOLERANCE)


def check_fit(bench):
    """One step of SGD with rate 1 in `fit` moves the weights by the gradient of the concatenated batch."""
    for words in (False, True):
        model = bench.model(words=words)
        expected, alone = bench.gradients(model, words)
        what = "gradient, sparse" if words else "gradient"
        bench.fit_step(what, model, bench.unit_sgd(), expected, alone=alone, words=words)


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
            expected, alone = bench.gradients(model)
            factor = bench.size if op == hvd.Sum else 1
            optimizer = hvd.DistributedOptimizer(bench.optimizer(learning_rate=1.0), op=op)

            def step():
                variables = model.trainable_variables
                with tf.GradientTape() as tape:
                    loss = bench.loss(model, bench.data())
                if wrap_tape:
                    tape = hvd.DistributedGradientTape(tape, op=op)
                optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))

            bench.compare(
                "gradient, {}, {}".format(what, "tf.function" if as_function else "eager"),
                [factor * part for part in expected],
                bench.moved(model, tf.function(step) if as_function else step),
                factor * GRADIENT_TOLERANCE,
                alone,
            )


def check_ranks(bench):
    """With different weights at first and different data, weights and optimizer state end equal to the last bit."""
    callbacks = bench.hvd_keras.callbacks
    for kind, options in (("SGD", {"learning_rate": 0.05, "momentum": 0.9}), ("Adam", {"learning_rate": 0.01})):
        model = bench.compiled(bench.model(same=False, words=True, dropout=True), kind, **options)
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
        bench.fit(alone, steps=5, epochs=4, words=True, everybody=True)
        model = bench.compiled(bench.model(words=True), kind, **options)
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


def check_process_sets(bench):
    """All ranks except the last average among themselves, without the last."""
    with bench.process_set() as (members, some):
        model = bench.model()
        mine = members if bench.rank in members else [bench.rank]
        expected = bench.gradient(model, bench.everybody(ranks=mine))
        bench.fit_step("gradient by fit", model, bench.unit_sgd(process_set=some), expected)


def check_fp16(bench):
    """With fp16 compression, the averaged gradient is correct to the last of its 11 bits."""
    compression = bench.hvd.Compression.fp16
    model = bench.model()
    expected, alone = bench.gradients(model)
    seen = bench.dense(bench.tape_gradient(model, compression=compression))
    bench.compare("gradient by tape", expected, seen, FP16_TOLERANCE, alone)
    if bench.size > 1:
        exact = float(bench.np.max(bench.np.abs(bench.flat(expected) - bench.flat(seen))))
        bench.holds("the compression changes the gradient", exact > GRADIENT_TOLERANCE / 100, difference=exact)
    bench.fit_step("gradient by fit", model, bench.unit_sgd(compression=compression), expected, FP16_TOLERANCE, alone)


def check_grouped(bench):
    """Tensors that are reduced as one group, directly and as gradients, have the same results as one by one."""
    hvd = bench.hvd
    if not hasattr(hvd, "grouped_allreduce"):
        raise Skip("this Horovod has no grouped allreduce (new in 0.21)")
    tensors = [bench.tf.fill([length], float((bench.rank + 1) * length)) for length in (1, 3, 5)]
    total = bench.size * (bench.size + 1) / 2
    seen = hvd.grouped_allreduce(tensors, op=hvd.Sum)
    bench.compare("sums", [bench.np.full(length, total * length) for length in (1, 3, 5)], seen, 1e-5)
    for what in ("two groups", "a list of variables"):
        model = bench.model()
        expected, alone = bench.gradients(model)
        before, variables = model.get_weights(), model.trainable_variables
        groups = 2 if what == "two groups" else [[variables[0], variables[2]]]
        bench.fit_step("gradient by fit, " + what, model, bench.unit_sgd(groups=groups), expected, alone=alone)
        model.set_weights(before)
        seen = bench.dense(bench.tape_gradient(model, groups=groups))
        bench.compare("gradient by tape, " + what, expected, seen, GRADIENT_TOLERANCE, alone)


def check_accumulation(bench):
    """Gradients of two batches that are accumulated before a step give the step of both batches together."""
    model = bench.model()
    parts = [bench.gradient(model, bench.everybody(step)) for step in range(2)]
    expected = [(first + second) / 2 for first, second in zip(*parts)]
    alone = bench.gradient(model, bench.data())
    if bench.keras3:
        optimizer = bench.distributed(learning_rate=1.0, gradient_accumulation_steps=2)
        bench.refuses(
            "backward_passes_per_step on Keras 3",
            lambda: bench.hvd_keras.DistributedOptimizer(bench.optimizer(), backward_passes_per_step=2),
        )
    else:
        optimizer = bench.unit_sgd(backward_passes_per_step=2, average_aggregated_gradients=True)
        if bench.version < (2, 2):
            # There `fit` computes the gradients itself; only `minimize` would accumulate them.
            model.compile(optimizer=optimizer, loss="mse")
            bench.refuses("backward_passes_per_step in fit before TensorFlow 2.2", lambda: bench.fit(model))
            return
    bench.fit_step("gradient", model, optimizer, expected, alone=alone, steps=2)


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
    together, alone = bench.gradients(model)
    expected = together[:2] + [part / bench.size for part in alone[2:]]
    optimizer = by_keras.PartialDistributedOptimizer(bench.optimizer(learning_rate=1.0), local_layers=model.layers[-1:])
    bench.fit_step("gradient", model, optimizer, expected)


def check_loss_scale(bench):
    """With a LossScaleOptimizer, all ranks skip a step if one rank has an overflow."""
    if not bench.keras3:
        raise Skip("this check is for the LossScaleOptimizer of Keras 3; that of Keras 2 averages inside it")
    scale = bench.tf.keras.optimizers.LossScaleOptimizer
    bench.refuses("a LossScaleOptimizer around a Horovod optimizer", lambda: scale(bench.distributed()))
    model = bench.model()
    inner = scale(bench.optimizer(learning_rate=1.0), initial_scale=8.0)
    optimizer = bench.hvd_keras.DistributedOptimizer(inner)
    optimizer.build(model.trainable_variables)
    expected, alone = bench.gradients(model)
    broken = [bench.tf.fill(part.shape, float("inf" if bench.rank == 0 else 1.0)) for part in alone]
    skipped = bench.moved(model, lambda: optimizer.apply(broken, model.trainable_variables))
    bench.compare("weights after an overflow on rank 0", [part * 0.0 for part in alone], skipped, 0.0)
    scaled = [bench.tf.constant(4.0 * part) for part in alone]  # the scale was halved once
    moved = bench.moved(model, lambda: optimizer.apply(scaled, model.trainable_variables))
    bench.compare("gradient", expected, moved, GRADIENT_TOLERANCE, alone)


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
        bench.refuses("an optimizer wrapped twice", lambda: wrap(bench.distributed()))
        try:
            import tf_keras
        except ImportError:
            return
        bench.refuses("an optimizer of tf-keras", lambda: wrap(tf_keras.optimizers.SGD()))
    elif os.environ.get("TF_USE_LEGACY_KERAS") == "1":
        import keras

        bench.refuses("an optimizer of Keras 3 in Horovod for tf-keras", lambda: wrap(keras.optimizers.SGD()))
