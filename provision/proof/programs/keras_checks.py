"""The checks of Horovod's callbacks and layers for Keras, and of models that are saved, loaded and continued."""

import os

from bench import FEATURES, GRADIENT_TOLERANCE


def check_metrics(bench):
    """MetricAverageCallback averages the metrics over the ranks, for the callbacks that come after it."""

    class Note(bench.tf.keras.callbacks.Callback):
        def __init__(self):
            super().__init__()
            self.losses = []

        def on_epoch_end(self, epoch, logs=None):
            self.losses.append(float(logs["loss"]))

    before, after = Note(), Note()
    model = bench.compiled(bench.model(), learning_rate=0.05)
    bench.fit(model, steps=2, epochs=3, callbacks=[before, bench.hvd_keras.callbacks.MetricAverageCallback(), after])
    gathered = bench.hvd.allgather(bench.tf.constant([before.losses])).numpy()
    bench.compare("loss of each epoch", gathered.mean(axis=0), after.losses, 1e-6, before.losses)


def rates_of(bench, callback, epochs, steps, **options):
    """The learning rate at the start of each batch, and the one in the logs of each epoch, of SGD with these options."""
    rates = []

    class Note(bench.tf.keras.callbacks.Callback):
        def on_train_batch_begin(self, batch, logs=None):
            rates.append(bench.learning_rate(self.model))

    model = bench.compiled(bench.model(), **options)
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
        seen, logged = rates_of(bench, callback, epochs, steps, learning_rate=rate, **options)
        bench.compare("rate of each batch, " + what, expected, seen, 1e-7)
        bench.compare("rate in the logs, " + what, expected[steps - 1 :: steps], logged, 1e-7)


def check_schedule(bench):
    """LearningRateScheduleCallback multiplies the rate from its first epoch to its last."""
    rate, steps = 0.08, 2
    callback = bench.hvd_keras.callbacks.LearningRateScheduleCallback(
        initial_lr=rate, multiplier=lambda epoch: 0.5**epoch, start_epoch=1, end_epoch=3
    )
    seen, logged = rates_of(bench, callback, 4, steps, learning_rate=rate)
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
    bench.compiled(model, learning_rate=0.05)
    bench.fit(model, steps=3, epochs=2, callbacks=[bench.hvd_keras.callbacks.BroadcastGlobalVariablesCallback(0)])
    bench.across("weights and moving statistics after fit", model.get_weights())


def saved_name(bench, name):
    """The path for a saved model, in the newest format that this Keras has."""
    return os.path.join(bench.scratch, name + (".keras" if bench.version >= (2, 13) else ".h5"))


def check_load_model(bench):
    """A model that is saved and loaded keeps its state, and its optimizer averages; without Horovod it loads too."""
    for kind, options in (("SGD", {"learning_rate": 1.0, "momentum": 0.5}), ("Adam", {"learning_rate": 0.01})):
        model = bench.compiled(bench.model(), kind, **options)
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
    through = bench.compiled(bench.model(), "Adam", learning_rate=0.01)
    bench.fit(through, steps=4, epochs=4)
    half = bench.compiled(bench.model(), "Adam", learning_rate=0.01)
    bench.fit(half, steps=4, epochs=2)
    path = saved_name(bench, "resume")
    half.save(path)
    again = bench.hvd_keras.load_model(path)
    bench.fit(again, steps=4, epochs=2)
    bench.compare("weights", through.get_weights(), again.get_weights(), 1e-6)
    bench.compare("optimizer state", bench.state(through.optimizer), bench.state(again.optimizer), 1e-6)


def check_checkpoint(bench):
    """A checkpoint of rank 0 restores weights and optimizer, and the broadcast sends them to all ranks."""
    model = bench.compiled(bench.model(), "Adam", learning_rate=0.01)
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


def check_elastic(bench):
    """An elastic state sends the model of rank 0 to all ranks, and restores the committed state."""
    model = bench.compiled(bench.model(same=False), "Adam", learning_rate=0.01)
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
