"""The training run of one process on all devices of a node: Keras under MirroredStrategy on MNIST-shaped digits.

It is for stacks whose users train with this strategy (`proof.program = "mirrored"`). There are `--devices` devices: the
visible GPUs if there are any, else parts of the CPU. Besides what all programs report:

- there are as many replicas in sync as requested; otherwise the strategy trains on one device without a warning;
- each replica gets its own images, `--batch-size` of them; the global batch is that times the number of replicas;
- after training all copies of the weights are equal to the last bit.

Works with TensorFlow 2.2 and later; Horovod is not needed.
"""

from rank import gpu_bus_id, take_gpu
from tensorflow_rank import DistributedTrial, import_tensorflow, set_threads, visible_gpus
from trial import main, positive, weights_sha256


class Mirrored(DistributedTrial):
    """One process with a replica of the model on each device."""

    def join(self):
        """Take all devices, and make the strategy."""
        self.np, self.tf = import_tensorflow(self.report)
        self.fields.update(rank=0, size=1, local_rank=0, local_size=1)
        self.report.stage("devices")
        set_threads(self.fields, self.tf)
        devices, wanted = self.take_all_devices(), self.args.devices
        self.strategy = self.tf.distribute.MirroredStrategy(devices)
        seen = self.replicas
        self.fields["replicas"] = {
            "asked": wanted,
            "in_sync": seen,
            "devices": list(self.strategy.extended.worker_devices),
        }
        self.say(f"{seen} replicas in sync: {', '.join(devices)}")
        if seen != wanted:
            raise RuntimeError(f"expected {wanted} replicas in sync, but there are {seen}: {', '.join(devices)}")

    @property
    def replicas(self):
        """One replica on each device."""
        return self.strategy.num_replicas_in_sync

    def take_all_devices(self):
        """Take every visible GPU, or divide the CPU into `--devices` devices; returns their names."""
        config, gpus, wanted = self.tf.config, visible_gpus(self.tf), self.args.devices
        take_gpu(self.fields, len(gpus), self.args.gpu, self.tf.test.is_built_with_cuda())
        if gpus:
            bus_ids = filter(None, map(gpu_bus_id, range(len(gpus))))
            self.fields["gpu"].update(used=", ".join(gpu.name for gpu in gpus), bus_id=", ".join(bus_ids) or None)
            return ["/gpu:%d" % index for index in range(len(gpus))]
        (cpu,) = config.list_physical_devices("CPU")
        if hasattr(config, "set_logical_device_configuration"):
            config.set_logical_device_configuration(cpu, [config.LogicalDeviceConfiguration()] * wanted)
        else:  # before TensorFlow 2.4
            part = config.experimental.VirtualDeviceConfiguration()
            config.experimental.set_virtual_device_configuration(cpu, [part] * wanted)
        return ["/cpu:%d" % index for index in range(wanted)]

    def allreduce(self, vectors, average=False):
        """Let each replica give its row of a table to `reduce`."""
        operation = self.tf.distribute.ReduceOp.MEAN if average else self.tf.distribute.ReduceOp.SUM

        @self.tf.function
        def reduced(rows):
            def mine():
                return rows[self.tf.distribute.get_replica_context().replica_id_in_sync_group]

            return self.strategy.reduce(operation, self.strategy.run(mine), axis=None)

        return reduced(self.tf.constant(self.np.stack(vectors))).numpy()

    def take(self, images, labels, full_batch=None):
        """Keras divides each batch among the replicas, so it is given the global batch."""
        np, strategy, batch = self.np, self.strategy, self.args.batch_size * self.replicas
        super().take(images, labels, full_batch=batch)
        self.dataset = self.batches(batch)
        first = next(iter(strategy.experimental_distribute_dataset(self.dataset)))[0]
        parts = [part.numpy() for part in strategy.experimental_local_results(first)]
        self.fields["replicas"]["batch"] = {
            "global": batch,
            "per_replica": self.args.batch_size,
            "images": [len(part) for part in parts],
            "sha256": [weights_sha256(np, [part]) for part in parts],
        }

    def fit(self, first, last):
        """Train on the whole data set."""
        began = self.state()
        self.fit_model(first, last, x=self.dataset)
        return began

    def finish(self):
        """Compare the copies of all weights. Keras 3 holds the TensorFlow variable in `value`."""
        variables = [weight if callable(weight.value) else weight.value for weight in self.model.weights]
        copies = zip(*map(self.strategy.experimental_local_results, variables))
        digests = [weights_sha256(self.np, [copy.numpy() for copy in replica]) for replica in copies]
        self.fields["replicas"]["weights_sha256"] = digests
        return len(set(digests)) != 1


if __name__ == "__main__":
    main(
        Mirrored,
        "Train a small Keras network on several devices of one process; write one JSON report.",
        lambda parser: parser.add_argument(
            "--devices", type=positive, required=True, help="replicas that there must be"
        ),
    )
