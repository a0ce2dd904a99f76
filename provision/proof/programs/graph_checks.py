"""The checks in graphs, as programs for TensorFlow 1 are written."""

import os

from bench import FEATURES, FP16_TOLERANCE, GRADIENT_TOLERANCE, TRAINING_TOLERANCE, Skip


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
