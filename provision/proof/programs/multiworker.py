"""The training run of several workers under MultiWorkerMirroredStrategy: Keras on MNIST-shaped digits.

For stacks whose users train so (`proof.program = "multiworker"`): one process for each GPU or share of a node, which speak
gRPC and, on GPUs, NCCL; Horovod and MPI are not asked for. Reported and judged as ranks under Horovod are (different
images, different weights at first, known sums, bit-identical weights at the end), in `provision/proof/strategies.py`.

- The cluster comes from SlurmClusterResolver under srun, else from the launcher's ranks as TF_CONFIG (`cluster.py`).
- On Keras 2 and tf-keras `fit` trains. On Keras 3 it fails under this strategy ("Attempt to convert a value (PerReplica",
  keras-team/keras 20585; seen with Keras 3.15.1), so that there a loop of `strategy.run` and `strategy.reduce` does; the
  report says which.
- Reductions that stall (NCCL does on some systems) would wait for ever: `--stall` seconds without any progress end the
  process, and its report says so. The caller may then try `--communication RING`.
- Half-way all workers save, for saving may be a collective matter, each into a folder of its own; the chief's file is the
  checkpoint with which all go on.

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
"""Room for what a worker tells of itself when they tell each other who they are."""


class Watchdog(threading.Thread):
    """Ends the process where nothing has happened for `limit` seconds; a stage and a `beat` are something."""

    def __init__(self, report, limit):
        super().__init__(name="watchdog", daemon=True)
        self.report, self.limit, self.last = report, limit, time.time()

    def beat(self):
        """Something happened."""
        self.last = time.time()

    def run(self):
        """Look every second, until the report is done."""
        fields = self.report.fields
        while fields["stage"] != "done" and fields["error"] is None:
            if time.time() - max(self.last, self.report.stage_started) > self.limit:
                stage = fields["stage"]
                fields["stalled"] = {"stage": stage, "seconds": self.limit}
                fields["error"] = "Stall: nothing happened for {} s in stage `{}`".format(self.limit, stage)
                self.report.write()
                print("error: " + fields["error"] + "\n  report: " + self.report.path, file=sys.stderr, flush=True)
                faulthandler.dump_traceback(all_threads=True)
                # The main thread waits in a collective operation and hears of nothing.
                os._exit(1)
            time.sleep(min(1.0, self.limit / 4.0))


def slurm_workers(tf, environ, rank):
    """The workers' addresses by TensorFlow's own resolver, and why they cannot be used, if so.

    Called without arguments it asks nvidia-smi for GPUs, fails where there is none, and divides those that one task sees
    among all tasks of the node; what it is told here keeps it from that. It sorts nodes as text (n10 before n9) and takes
    ranks to be in that order: wrong addresses are found out.
    """
    tasks = most_tasks(environ["SLURM_STEP_TASKS_PER_NODE"])
    resolver = tf.distribute.cluster_resolver.SlurmClusterResolver(
        port_base=port_base(environ.get("SLURM_JOB_ID", "0")), gpus_per_node=tasks, gpus_per_task=1, auto_set_gpu=False
    )
    workers = resolver.cluster_spec().as_dict()["worker"]
    host, node = workers[rank].rsplit(":", 1)[0], environ.get("SLURMD_NODENAME")
    if node and host != node:
        return workers, "SlurmClusterResolver has rank {} on {}, it is on {}".format(rank, host, node)
    try:
        for worker in workers:
            socket.gethostbyname(worker.rsplit(":", 1)[0])
    except OSError as error:
        return workers, "{} has no address: {}".format(worker.rsplit(":", 1)[0], error)
    return workers, None


def find_cluster(tf, args, environ, where):
    """The addresses of all workers, and an account of how they were found."""
    refused = None
    if where["srun"]:
        workers, refused = slurm_workers(tf, environ, where["rank"])
        # All must go one way: a worker that cannot use the resolver's addresses says so to the others.
        folder = os.path.join(args.out, "cluster", "resolved")
        os.makedirs(folder, exist_ok=True)
        with open(os.path.join(folder, "{}.part".format(where["rank"])), "w") as stream:
            json.dump(refused, stream)
        os.rename(stream.name, os.path.join(folder, "{}.json".format(where["rank"])))
        said = [answer(os.path.join(folder, "{}.json".format(one)), args.stall) for one in range(where["size"])]
        refused = next(filter(None, said), None)
        if refused is None:
            return workers, {"by": "SlurmClusterResolver", "workers": workers}
    workers = meet(os.path.join(args.out, "cluster"), where["rank"], where["size"], args.stall)
    return workers, {"by": "TF_CONFIG", "workers": workers, "not_by_resolver": refused}


def answer(path, limit):
    """What another worker wrote to this file, once it is there."""
    end = time.time() + limit
    while not os.path.exists(path):
        if time.time() > end:
            raise RuntimeError("{} did not come within {} s".format(path, limit))
        time.sleep(0.05)
    with open(path) as stream:
        return json.load(stream)


def make_strategy(tf, communication):
    """The strategy, which meets the other workers now."""
    experimental = tf.distribute.experimental
    if hasattr(tf.distribute, "MultiWorkerMirroredStrategy"):
        implementation = getattr(experimental.CommunicationImplementation, communication)
        options = experimental.CommunicationOptions(implementation=implementation)
        return tf.distribute.MultiWorkerMirroredStrategy(communication_options=options)
    # before TensorFlow 2.4
    return experimental.MultiWorkerMirroredStrategy(getattr(experimental.CollectiveCommunication, communication))


def reducer(tf, strategy):
    """A function `reduce(array, mean=False)` over all workers, as an array."""

    @tf.function
    def own(values):
        return strategy.run(tf.identity, args=(values,))

    def reduce(array, mean=False):
        operation = tf.distribute.ReduceOp.MEAN if mean else tf.distribute.ReduceOp.SUM
        # What the replica returns, not the plain tensor: that one would count as equal on all workers.
        with strategy.scope():
            return strategy.reduce(operation, own(tf.constant(array)), axis=None).numpy()

    return reduce


def known_reduction(np, reduce, rank, size):
    """What `trial.known_allreduce` measures of Horovod, of this strategy."""
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
    """What every worker says, as a list by rank: a sum of tables in which each fills its own row."""
    text = json.dumps(mine).encode()
    table = np.zeros((size, PEER_BYTES), np.int32)
    table[rank, : len(text)] = np.frombuffer(text, np.uint8)
    return [json.loads(bytes(row[row > 0].astype(np.uint8).tolist()).decode()) for row in reduce(table)]


def loop(tf, strategy, model, batches, steps, batch):
    """A function that trains `model` for one epoch of a data set's iterator; mean loss and accuracy over all workers."""
    losses_of = tf.keras.losses.sparse_categorical_crossentropy

    @tf.function
    def step(images, labels):
        def mine(images, labels):
            with tf.GradientTape() as tape:
                guesses = model(images, training=True)
                # Of the global batch: the optimizer sums the gradients of all workers.
                loss = tf.reduce_sum(losses_of(labels, guesses)) / batch
            gradients = tape.gradient(loss, model.trainable_variables)
            model.optimizer.apply_gradients(zip(gradients, model.trainable_variables))
            hits = tf.equal(tf.argmax(guesses, axis=1), tf.cast(labels, tf.int64))
            return loss, tf.reduce_sum(tf.cast(hits, tf.float32)) / batch

        figures = strategy.run(mine, args=(images, labels))
        return [strategy.reduce(tf.distribute.ReduceOp.SUM, figure, axis=None) for figure in figures]

    def epoch():
        seen = [[float(figure) for figure in step(*next(batches))] for _ in range(steps)]
        return [sum(figures) / steps for figures in zip(*seen)]

    return epoch


def train(args, report):
    """The whole run, from the imports to the finished report; true where the restart went wrong."""
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
    # From here on workers wait for each other. The imports before are slow on a cold file system, and stall nobody.
    watchdog = Watchdog(report, args.stall)
    watchdog.start()
    workers, account = find_cluster(tf, args, os.environ, where)
    fields["communication"].update(account)
    os.environ["TF_CONFIG"] = tf_config(workers, rank)
    strategy = make_strategy(tf, args.communication)
    # What the strategy says, not what the launcher said: a worker that is alone is rank 0 of 1.
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
        raise RuntimeError(f"{len(x_train)} images of a worker do not fill one batch of {args.batch_size}")
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
    # Different on every worker, on purpose: within the scope all must get the chief's.
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
    # Before TensorFlow 2.4, fit does not take a data set that the strategy distributes by a function.
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
            with strategy.scope():  # before TensorFlow 2.4, sums look for a worker's devices here only
                loss, accuracy = train_epoch()
            epochs.on_epoch_end(number, {"loss": loss, "accuracy": accuracy})
            watchdog.beat()

    checkpoints = os.path.join(args.out, "checkpoints")
    own = os.path.join(checkpoints, "chief" if rank == 0 else f"worker-{rank}")
    os.makedirs(own)

    def save(model):
        model.save(checkpoint_path(tf, own))
        reduce(np.ones(1, np.float32))  # nobody reads before the chief has written

    def load():
        with strategy.scope():
            return tf.keras.models.load_model(checkpoint_path(tf, os.path.join(checkpoints, "chief")))

    model = train_and_restart(np, report, model, args.epochs, fit, save, load)
    if rank != 0:
        shutil.rmtree(own)  # the chief's is the checkpoint
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
    reduce(np.ones(1, np.float32))  # a worker that leaves early takes its server with it

    report.stage("done")
    # The judge says it in words; this is for whoever runs the program by hand.
    return restart_failed(fields["restart"]) or fields["weights_max_difference"] != 0.0


def main(argv=None):
    """Run the training; the exit code is 0 or 1."""
    parser = argument_parser("Train a small Keras network on several workers; one JSON report per process.")
    parser.add_argument("--communication", choices=("AUTO", "RING", "NCCL"), default="AUTO", help="how they reduce")
    parser.add_argument("--stall", type=positive, default=180, help="seconds without progress that end a process")
    args = parser.parse_args(argv)
    return run("the proof", args.out, lambda report: train(args, report))


if __name__ == "__main__":
    sys.exit(main())
