"""The training run of several workers under MultiWorkerMirroredStrategy: Keras on MNIST-shaped digits.

It is for stacks whose users train with this strategy (`proof.program = "multiworker"`): one process for each GPU or share
of a node. The processes communicate with gRPC and, on GPUs, with NCCL; Horovod and MPI are not needed.

- The cluster comes from SlurmClusterResolver under srun, if all nodes reach each other by its names, otherwise from the
  launcher's ranks as TF_CONFIG (`cluster.py`).
- With Keras 2 and tf-keras, `fit` trains. With Keras 3 it fails under this strategy ("Attempt to convert a value
  (PerReplica", keras-team/keras 20585; seen with Keras 3.15.1), so a loop of `strategy.run` and `strategy.reduce` trains.
  The report states which one was used.
- A reduction that stalls (NCCL does on some systems) would wait for ever, so a process ends after `--stall` seconds
  without progress, and its report records that. The caller may then try `--communication RING`.
- Half-way all workers save, because saving may be a collective operation. Each one saves into a separate folder; all
  continue from the file of the chief.

Works with TensorFlow 2.2 and later.
"""

import json
import os
import shutil
import socket

from cluster import Watchdog, exchange, meet, most_tasks, place, port_base, tf_config, unset_proxies
from tensorflow_rank import DistributedTrial, import_tensorflow, take_devices
from trial import add_communication, main, weights_sha256

PEER_BYTES = 256
"""The number of bytes for the name of a worker when the workers exchange their names."""


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
    """How the workers find each other: by whose addresses, and the addresses of all."""
    rank, size, refused, resolved = where["rank"], where["size"], None, []
    if where["srun"]:
        resolved, refused = slurm_workers(tf, environ, rank)
        # All workers must use the same addresses, so each one writes whether it can use those of the resolver.
        answers = exchange(os.path.join(args.out, "cluster", "resolved"), rank, size, args.stall, refused)
        refused = next(filter(None, answers), None)
    by_name = bool(resolved) and refused is None
    name = environ.get("SLURMD_NODENAME") if by_name else None
    found = meet(os.path.join(args.out, "cluster"), rank, size, args.stall, name)
    # A name may have an address of the loopback or of another network. TensorFlow would wait for it for ever.
    if by_name and (found["interface"] == "lo" or hosts_of(found["workers"]) == hosts_of(resolved)):
        return {"by": "SlurmClusterResolver", "workers": resolved}
    if by_name:
        refused = "not all nodes are reached by the names of SlurmClusterResolver"
    return {"by": "TF_CONFIG", "workers": found["workers"], "not_by_resolver": refused}


def hosts_of(workers):
    """The hosts of addresses."""
    return [worker.rsplit(":", 1)[0] for worker in workers]


def make_strategy(tf, communication):
    """The strategy. Creating it waits for the other workers."""
    experimental = tf.distribute.experimental
    if hasattr(tf.distribute, "MultiWorkerMirroredStrategy"):
        implementation = getattr(experimental.CommunicationImplementation, communication)
        options = experimental.CommunicationOptions(implementation=implementation)
        return tf.distribute.MultiWorkerMirroredStrategy(communication_options=options)
    # before TensorFlow 2.4
    return experimental.MultiWorkerMirroredStrategy(getattr(experimental.CollectiveCommunication, communication))


def make_epoch(tf, strategy, model, batches, steps, batch):
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


class MultiWorker(DistributedTrial):
    """One worker; the strategy knows all of them."""

    def join(self):
        """Find the other workers, and make the strategy."""
        args, fields, where = self.args, self.fields, place(os.environ)
        rank, local_rank = where["rank"], where["local_rank"]
        fields["communication"] = {"asked": args.communication, "proxies_unset": unset_proxies(os.environ)}
        self.np, self.tf = import_tensorflow(self.report)
        fields["local_rank"] = local_rank
        take_devices(self.report, self.tf, args.gpu)

        self.report.stage("cluster")
        # From here on workers wait for each other. The imports before may be slow on a cold file system.
        self.watchdog = Watchdog(self.report, args.stall)
        self.watchdog.start()
        found = find_cluster(self.tf, args, os.environ, where)
        fields["communication"].update(found)
        os.environ["TF_CONFIG"] = tf_config(found["workers"], rank)
        self.strategy = make_strategy(self.tf, args.communication)
        # The size according to the strategy, not to the launcher: a worker that found no others is rank 0 of 1.
        self.size = self.strategy.num_replicas_in_sync
        self.rank = rank if self.size > 1 else 0
        hosts = hosts_of(found["workers"])
        fields.update(rank=self.rank, size=self.size, local_size=hosts.count(hosts[rank]))
        self.say(f"{self.size} workers by {found['by']}, {args.communication}: {', '.join(found['workers'])}")

        @self.tf.function
        def on_replica(values):
            return self.strategy.run(self.tf.identity, args=(values,))

        self.on_replica = on_replica

    def allreduce(self, vectors, average=False):
        """Reduce what the replica returns: the strategy would take a plain tensor as equal on all workers."""
        operation = self.tf.distribute.ReduceOp.MEAN if average else self.tf.distribute.ReduceOp.SUM
        with self.strategy.scope():
            return self.strategy.reduce(operation, self.on_replica(self.tf.constant(vectors[0])), axis=None).numpy()

    def gather(self, value):
        """The sum of tables in which each worker fills one row."""
        np, text = self.np, json.dumps(value).encode()
        table = np.zeros((self.size, PEER_BYTES), np.int32)
        table[self.rank, : len(text)] = np.frombuffer(text, np.uint8)
        rows = self.allreduce([table])
        return [json.loads(bytes(row[row > 0].astype(np.uint8).tolist()).decode()) for row in rows]

    def take(self, images, labels, full_batch=None):
        """Let the strategy ask each worker for its own shard."""
        batch = self.args.batch_size
        super().take(images, labels, full_batch=batch)
        self.fields["batch"] = {"global": batch * self.size, "per_replica": batch}
        # Before TensorFlow 2.4, fit does not accept a data set that a function distributes.
        distribute = getattr(self.strategy, "distribute_datasets_from_function", None)
        self.by_fit = distribute is not None and not self.fields["versions"]["keras"].startswith("3.")
        distribute = distribute or self.strategy.experimental_distribute_datasets_from_function
        self.dataset = distribute(lambda context: self.batches(batch).repeat())
        self.fields["trained_by"] = (
            "fit" if self.by_fit else "a loop of strategy.run and strategy.reduce, for fit fails here"
        )

    def build(self, seed):
        """Within the scope all workers must get the weights of the chief."""
        alone = self.network(seed).get_weights()
        self.fields["weights_sha256_broadcast"] = weights_sha256(self.np, super().build(seed))
        return alone

    def callbacks(self):
        """A batch is progress."""
        return [self.tf.keras.callbacks.LambdaCallback(on_batch_end=lambda batch, logs: self.watchdog.beat())]

    def fit(self, first, last):
        """Train by `fit` or by a loop."""
        began = self.state()
        if self.by_fit:
            self.fit_model(first, last, x=self.dataset, steps_per_epoch=self.steps)
            return began
        batch = self.args.batch_size * self.size
        epoch = make_epoch(self.tf, self.strategy, self.model, iter(self.dataset), self.steps, batch)
        for _ in range(first, last):
            self.begin_epoch()
            with self.strategy.scope():  # before TensorFlow 2.4, sums find the devices of a worker only in the scope
                loss, accuracy = epoch()
            self.end_epoch(loss, accuracy)
            self.watchdog.beat()
        return began

    def reload(self):
        """Save on all workers, and load the chief's file."""
        own = os.path.join(self.checkpoints, "chief" if self.rank == 0 else f"worker-{self.rank}")
        path = self.file(own)
        self.model.save(path)
        self.mean([1.0])  # a barrier: no worker reads before the chief has written
        self.load(path.replace(own, os.path.join(self.checkpoints, "chief")))
        if self.rank != 0:
            shutil.rmtree(own)  # only the file of the chief is needed

    def finish(self):
        """A barrier: a worker that exits early stops its server."""
        self.mean([1.0])


if __name__ == "__main__":
    main(
        MultiWorker,
        "Train a small Keras network on several workers; one JSON report per process.",
        lambda parser: add_communication(parser, ("AUTO", "RING", "NCCL"), "how workers reduce"),
    )
