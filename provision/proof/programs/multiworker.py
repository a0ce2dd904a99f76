"""The training run of several workers under MultiWorkerMirroredStrategy: Keras on MNIST-shaped digits.

It is for stacks whose users train with this strategy (`proof.program = "multiworker"`): one process for each GPU or share
of a node. The processes communicate with gRPC and, on GPUs, with NCCL; Horovod and MPI are not needed. Reports and checks
are those of ranks under Horovod (different images, different weights at first, known sums, bit-identical weights at the
end), in `provision/proof/strategies.py`.

- The cluster comes from SlurmClusterResolver under srun, otherwise from the launcher's ranks as TF_CONFIG (`cluster.py`).
- With Keras 2 and tf-keras, `fit` trains. With Keras 3 it fails under this strategy ("Attempt to convert a value
  (PerReplica", keras-team/keras 20585; seen with Keras 3.15.1), so a loop of `strategy.run` and `strategy.reduce` trains.
  The report states which one was used.
- A reduction that stalls (NCCL does on some systems) would wait for ever, so a process ends after `--stall` seconds
  without progress, and its report records that. The caller may then try `--communication RING`.
- Half-way all workers save, because saving may be a collective operation. Each one saves into a separate folder; all
  continue from the file of the chief.

Works with TensorFlow 2.2 and later.
"""

import faulthandler
import json
import os
import shutil
import socket
import sys
import threading
import time

from cluster import meet, most_tasks, place, port_base, tf_config, unset_proxies
from keras_model import (
    build_model,
    checkpoint_path,
    compile_model,
    images_per_second,
    make_epoch_callback,
    measure,
    restart_failed,
    seed,
    train_and_restart,
)
from rank import import_tensorflow, need_gpu, run, take_devices
from trial import (
    BEFORE_IMAGES,
    LARGE_ELEMENTS,
    VECTOR_LENGTH,
    argument_parser,
    load_shard,
    positive,
    weights_sha256,
)

PEER_BYTES = 256
"""The number of bytes for the name of a worker when the workers exchange their names."""


class Watchdog(threading.Thread):
    """Ends the process after `limit` seconds without progress; a new stage and a `beat` are progress."""

    def __init__(self, report, limit):
        super().__init__(name="watchdog", daemon=True)
        self.report, self.limit, self.last = report, limit, time.time()

    def beat(self):
        """Record progress."""
        self.last = time.time()

    def run(self):
        """Check every second until the report is done."""
        fields = self.report.fields
        while fields["stage"] != "done" and fields["error"] is None:
            if time.time() - max(self.last, self.report.stage_started) > self.limit:
                stage = fields["stage"]
                fields["stalled"] = {"stage": stage, "seconds": self.limit}
                fields["error"] = "Stall: nothing happened for {} s in stage `{}`".format(self.limit, stage)
                self.report.write()
                print("error: " + fields["error"] + "\n  report: " + self.report.path, file=sys.stderr, flush=True)
                faulthandler.dump_traceback(all_threads=True)
                # The main thread waits in a collective operation and cannot be interrupted.
                os._exit(1)
            time.sleep(min(1.0, self.limit / 4.0))


def slurm_workers(tf, environ, rank):
    """The addresses of the workers from TensorFlow's own resolver, and the reason why they cannot be used, or None.

    Without arguments, the resolver asks nvidia-smi for GPUs, fails if there is none, and divides the GPUs that one task
    sees among all tasks of the node; the arguments here prevent that. It sorts nodes as text (n10 before n9) and assumes
    that ranks are in that order, so the addresses are checked.
    """
    tasks = most_tasks(environ["SLURM_STEP_TASKS_PER_NODE"])
    resolver = tf.distribute.cluster_resolver.SlurmClusterResolver(
        port_base=port_base(environ.get("SLURM_JOB_ID", "0")), gpus_per_node=tasks, gpus_per_task=1, auto_set_gpu=False
    )
    workers = resolver.cluster_spec().as_dict()["worker"]
    host, node = workers[rank].rsplit(":", 1)[0], environ.get("SLURMD_NODENAME")
    if node and host != node:
        return workers, "SlurmClusterResolver puts rank {} on {}, but it is on {}".format(rank, host, node)
    try:
        for worker in workers:
            socket.gethostbyname(worker.rsplit(":", 1)[0])
    except OSError as error:
        return workers, "{} has no address: {}".format(worker.rsplit(":", 1)[0], error)
    return workers, None


def find_cluster(tf, args, environ, where):
    """The addresses of all workers, and a record of how they were found."""
    refused = None
    if where["srun"]:
        workers, refused = slurm_workers(tf, environ, where["rank"])
        # All workers must use the same addresses, so each one writes whether it can use those of the resolver.
        folder = os.path.join(args.out, "cluster", "resolved")
        os.makedirs(folder, exist_ok=True)
        with open(os.path.join(folder, "{}.part".format(where["rank"])), "w") as stream:
            json.dump(refused, stream)
        os.rename(stream.name, os.path.join(folder, "{}.json".format(where["rank"])))
        answers = [
            read_answer(os.path.join(folder, "{}.json".format(worker)), args.stall) for worker in range(where["size"])
        ]
        refused = next(filter(None, answers), None)
        if refused is None:
            return workers, {"by": "SlurmClusterResolver", "workers": workers}
    workers = meet(os.path.join(args.out, "cluster"), where["rank"], where["size"], args.stall)
    return workers, {"by": "TF_CONFIG", "workers": workers, "not_by_resolver": refused}


def read_answer(path, limit):
    """Wait for the file of another worker, and return its content."""
    end = time.time() + limit
    while not os.path.exists(path):
        if time.time() > end:
            raise RuntimeError("{} did not appear within {} s".format(path, limit))
        time.sleep(0.05)
    with open(path) as stream:
        return json.load(stream)


def make_strategy(tf, communication):
    """The strategy. Creating it waits for the other workers."""
    experimental = tf.distribute.experimental
    if hasattr(tf.distribute, "MultiWorkerMirroredStrategy"):
        implementation = getattr(experimental.CommunicationImplementation, communication)
        options = experimental.CommunicationOptions(implementation=implementation)
        return tf.distribute.MultiWorkerMirroredStrategy(communication_options=options)
    # before TensorFlow 2.4
    return experimental.MultiWorkerMirroredStrategy(getattr(experimental.CollectiveCommunication, communication))


def reducer(tf, strategy):
    """A function `reduce(array, mean=False)` that reduces over all workers and returns an array."""

    @tf.function
    def on_replica(values):
        return strategy.run(tf.identity, args=(values,))

    def reduce(array, mean=False):
        operation = tf.distribute.ReduceOp.MEAN if mean else tf.distribute.ReduceOp.SUM
        # Reduce what the replica returns: the strategy would take a plain tensor as equal on all workers.
        with strategy.scope():
            return strategy.reduce(operation, on_replica(tf.constant(array)), axis=None).numpy()

    return reduce


def known_reduction(np, reduce, rank, size):
    """The same measurements for this strategy that `trial.known_allreduce` makes for Horovod."""
    pattern = np.arange(1, VECTOR_LENGTH + 1, dtype=np.float32)
    mine, expected = (rank + 1) * pattern, size * (size + 1) // 2 * pattern
    repeats = LARGE_ELEMENTS // VECTOR_LENGTH
    large = reduce(np.tile(mine, repeats))
    return {
        "input": mine.tolist(),
        "expected": expected.tolist(),
        "sum": reduce(mine).tolist(),
        "expected_average": (expected / size).tolist(),
        "average": reduce(mine, mean=True).tolist(),
        "large_elements": LARGE_ELEMENTS,
        "large_wrong": int(np.count_nonzero(large != np.tile(expected, repeats))),
    }


def gather(np, reduce, rank, size, mine):
    """The value of every worker, as a list by rank: the sum of tables in which each worker fills one row."""
    text = json.dumps(mine).encode()
    table = np.zeros((size, PEER_BYTES), np.int32)
    table[rank, : len(text)] = np.frombuffer(text, np.uint8)
    return [json.loads(bytes(row[row > 0].astype(np.uint8).tolist()).decode()) for row in reduce(table)]


def loop(tf, strategy, model, batches, steps, batch):
    """A function that trains `model` for one epoch of an iterator, and returns mean loss and accuracy over all workers."""
    losses_of = tf.keras.losses.sparse_categorical_crossentropy

    @tf.function
    def step(images, labels):
        def mine(images, labels):
            with tf.GradientTape() as tape:
                guesses = model(images, training=True)
                # Divide by the global batch, because the optimizer sums the gradients of all workers.
                loss = tf.reduce_sum(losses_of(labels, guesses)) / batch
            gradients = tape.gradient(loss, model.trainable_variables)
            model.optimizer.apply_gradients(zip(gradients, model.trainable_variables))
            hits = tf.equal(tf.argmax(guesses, axis=1), tf.cast(labels, tf.int64))
            return loss, tf.reduce_sum(tf.cast(hits, tf.float32)) / batch

        figures = strategy.run(mine, args=(images, labels))
        return [strategy.reduce(tf.distribute.ReduceOp.SUM, figure, axis=None) for figure in figures]

    def epoch():
        by_step = [[float(figure) for figure in step(*next(batches))] for _ in range(steps)]
        return [sum(figures) / steps for figures in zip(*by_step)]

    return epoch


def train(args, report):
    """The whole run, from the imports to the finished report; returns true if the restart went wrong."""
    fields = report.fields
    where = place(os.environ)
    rank, size = where["rank"], where["size"]
    fields["communication"] = {"asked": args.communication, "proxies_unset": unset_proxies(os.environ)}
    np, tf = import_tensorflow(report)
    report.stage("devices")
    fields.update(take_devices(tf, where["local_rank"]))
    if args.gpu:
        need_gpu(tf, fields)

    report.stage("cluster")
    # From here on workers wait for each other. The imports before may be slow on a cold file system.
    watchdog = Watchdog(report, args.stall)
    watchdog.start()
    workers, account = find_cluster(tf, args, os.environ, where)
    fields["communication"].update(account)
    os.environ["TF_CONFIG"] = tf_config(workers, rank)
    strategy = make_strategy(tf, args.communication)
    # The size according to the strategy, not to the launcher: a worker that found no others is rank 0 of 1.
    size = strategy.num_replicas_in_sync
    fields.update(rank=rank if size > 1 else 0, size=size, local_rank=where["local_rank"])
    fields["local_size"] = len({worker for worker in workers if worker.split(":")[0] == workers[rank].split(":")[0]})
    if rank == 0:
        print(f"{size} workers by {account['by']}, {args.communication}: {', '.join(workers)}", flush=True)

    report.stage("allreduce")
    reduce = reducer(tf, strategy)
    fields["allreduce"] = known_reduction(np, reduce, rank, size)
    fields["peers"] = gather(np, reduce, rank, size, (rank, report.host, os.getpid()))

    report.stage("data")
    (x_train, y_train), (x_test, y_test), fields["shard"] = load_shard(np, args, rank, size)
    steps, batch = len(x_train) // args.batch_size, args.batch_size * size
    if steps == 0:
        raise RuntimeError(f"the {len(x_train)} images of a worker do not fill one batch of {args.batch_size}")
    fields.update(
        train_images=steps * args.batch_size, test_images=len(x_test), learning_rate=args.learning_rate * size
    )
    fields["batch"] = {"global": batch, "per_replica": args.batch_size}

    def shard(context):
        images = tf.data.Dataset.from_tensor_slices((x_train, y_train)).shuffle(len(x_train), seed=args.seed)
        return images.batch(args.batch_size, drop_remainder=True).repeat()

    distribute = getattr(strategy, "distribute_datasets_from_function", None)  # since TensorFlow 2.4
    images = (distribute or strategy.experimental_distribute_datasets_from_function)(shard)

    report.stage("model")
    # Different weights on every worker, on purpose: within the scope all must get those of the chief.
    seed(np, tf, args.seed * 100003 + rank)
    fields["weights_sha256_initial"] = weights_sha256(np, build_model(tf, classes=10).get_weights())
    with strategy.scope():
        model = compile_model(tf, build_model(tf, classes=10), fields["learning_rate"], args.epochs * steps)
    fields["weights_sha256_broadcast"] = weights_sha256(np, model.get_weights())
    fields["loss_before"], _ = measure(np, model, x_train[:BEFORE_IMAGES], y_train[:BEFORE_IMAGES])
    if rank == 0:
        print(f"{len(x_train)} images per worker  loss before training {fields['loss_before']:.4f}", flush=True)

    epochs = make_epoch_callback(tf, rank, args.epochs)
    alive = tf.keras.callbacks.LambdaCallback(on_batch_end=lambda batch, logs: watchdog.beat())
    # Before TensorFlow 2.4, fit does not accept a data set that a function distributes.
    by_fit = distribute is not None and not fields["versions"]["keras"].startswith("3.")
    fields["trained_by"] = "fit" if by_fit else "a loop of strategy.run and strategy.reduce, for fit fails here"

    def fit(model, first, last):
        if by_fit:
            model.fit(
                images, steps_per_epoch=steps, initial_epoch=first, epochs=last, verbose=0, callbacks=[epochs, alive]
            )
            return
        train_epoch = loop(tf, strategy, model, iter(images), steps, batch)
        for number in range(first, last):
            epochs.on_epoch_begin(number)
            with strategy.scope():  # before TensorFlow 2.4, sums find the devices of a worker only in the scope
                loss, accuracy = train_epoch()
            epochs.on_epoch_end(number, {"loss": loss, "accuracy": accuracy})
            watchdog.beat()

    checkpoints = os.path.join(args.out, "checkpoints")
    folder = os.path.join(checkpoints, "chief" if rank == 0 else f"worker-{rank}")
    os.makedirs(folder)

    def save(model):
        model.save(checkpoint_path(tf, folder))
        reduce(np.ones(1, np.float32))  # a barrier: no worker reads before the chief has written

    def load():
        with strategy.scope():
            return tf.keras.models.load_model(checkpoint_path(tf, os.path.join(checkpoints, "chief")))

    model = train_and_restart(np, report, model, args.epochs, fit, save, load)
    if rank != 0:
        shutil.rmtree(folder)  # only the file of the chief is needed
    fields["loss"] = epochs.losses
    fields["epoch_seconds"] = [round(seconds, 4) for seconds in epochs.seconds]
    fields["images_per_second"] = images_per_second(steps * batch, epochs.seconds)

    report.stage("evaluation")
    weights = model.get_weights()
    fields["weights_sha256"] = weights_sha256(np, weights)
    chiefs = [reduce(array if rank == 0 else np.zeros_like(array)) for array in weights]
    fields["weights_max_difference"] = max(float(np.abs(a - b).max()) for a, b in zip(weights, chiefs))
    _, fields["accuracy"] = measure(np, model, x_test, y_test)
    if rank == 0:
        print(f"test accuracy {fields['accuracy']:.4f}, restarted at step {fields['restart']['began_at']}", flush=True)
    reduce(np.ones(1, np.float32))  # a barrier: a worker that exits early stops its server

    report.stage("done")
    # The judge reports this in words; the exit code is for a person who runs the program by hand.
    return restart_failed(fields["restart"]) or fields["weights_max_difference"] != 0.0


def main(argv=None):
    """Run the training; the exit code is 0 or 1."""
    parser = argument_parser("Train a small Keras network on several workers; one JSON report per process.")
    parser.add_argument("--communication", choices=("AUTO", "RING", "NCCL"), default="AUTO", help="how workers reduce")
    parser.add_argument(
        "--stall", type=positive, default=180, help="seconds without progress after which a process ends"
    )
    args = parser.parse_args(argv)
    return run("the proof", args.out, lambda report: train(args, report))


if __name__ == "__main__":
    sys.exit(main())
