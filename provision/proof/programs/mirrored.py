"""The training run of one process on all devices of a node: Keras under MirroredStrategy on MNIST-shaped digits.

It is for stacks whose users train with this strategy (`proof.program = "mirrored"`). There are `--devices` devices: the
visible GPUs if there are any, else parts of the CPU. `provision/proof/strategies.py` judges the report:

- there are as many replicas in sync as requested; otherwise the strategy trains on one device without a warning;
- a sum over the replicas is exact;
- each replica gets its own images, `--batch-size` of them; the global batch is that times the number of replicas;
- after training all copies of the weights are equal to the last bit; after the restart they are those of the file.

The model is built, compiled and loaded within the scope of the strategy. Works with TensorFlow 2.2 and later; Horovod is
not needed.
"""

import os
import sys

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
from rank import gpu_bus_id, import_tensorflow, need_gpu, run, set_threads
from trial import BEFORE_IMAGES, LARGE_ELEMENTS, VECTOR_LENGTH, argument_parser, load_shard, positive, weights_sha256


def take_all_devices(tf, wanted):
    """Take every visible GPU, or divide the CPU into `wanted` devices; returns `gpu` of the report, and the device names."""
    gpus = tf.config.list_physical_devices("GPU")
    for gpu in gpus:
        tf.config.experimental.set_memory_growth(gpu, True)
    if gpus:
        bus_ids = [gpu_bus_id(index) for index in range(len(gpus))]
        account = {
            "visible": len(gpus),
            "used": ", ".join(gpu.name for gpu in gpus),
            "bus_id": ", ".join(filter(None, bus_ids)) or None,
        }
        return account, ["/gpu:%d" % index for index in range(len(gpus))]
    (cpu,) = tf.config.list_physical_devices("CPU")
    if hasattr(tf.config, "set_logical_device_configuration"):
        tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * wanted)
    else:  # before TensorFlow 2.4
        configuration = tf.config.experimental.VirtualDeviceConfiguration()
        tf.config.experimental.set_virtual_device_configuration(cpu, [configuration] * wanted)
    return {"visible": 0, "used": None, "bus_id": None}, ["/cpu:%d" % index for index in range(wanted)]


def known_sum(np, tf, strategy):
    """Sum over the replicas a vector that depends on the replica's number: whole numbers, exact in float32."""
    size, pattern = strategy.num_replicas_in_sync, np.arange(1, VECTOR_LENGTH + 1, dtype=np.float32)
    large = np.tile(pattern, LARGE_ELEMENTS // VECTOR_LENGTH)

    @tf.function
    def total(vector):
        def mine():
            number = tf.distribute.get_replica_context().replica_id_in_sync_group
            return tf.cast(number + 1, tf.float32) * vector

        return strategy.reduce(tf.distribute.ReduceOp.SUM, strategy.run(mine), axis=None)

    factor = size * (size + 1) // 2
    return {
        "sum": total(tf.constant(pattern)).numpy().tolist(),
        "expected": (factor * pattern).tolist(),
        "large_elements": LARGE_ELEMENTS,
        "large_wrong": int(np.count_nonzero(total(tf.constant(large)).numpy() != factor * large)),
    }


def first_batch(np, strategy, dataset):
    """The input of each replica in a step: the number of images, and a digest of them."""
    images = next(iter(strategy.experimental_distribute_dataset(dataset)))[0]
    parts = [part.numpy() for part in strategy.experimental_local_results(images)]
    return {"images": [len(part) for part in parts], "sha256": [weights_sha256(np, [part]) for part in parts]}


def copies_of_weights(strategy, model):
    """The copies of all weights, one list for each replica. Keras 3 holds the TensorFlow variable in `value`."""
    variables = [weight if callable(weight.value) else weight.value for weight in model.weights]
    copies = [strategy.experimental_local_results(variable) for variable in variables]
    return [[copy.numpy() for copy in replica] for replica in zip(*copies)]


def train(args, report):
    """The whole run, from the imports to the finished report; returns true if the restart went wrong."""
    fields = report.fields
    np, tf = import_tensorflow(report)
    fields.update(rank=0, size=1, local_rank=0, local_size=1)
    report.stage("devices")
    fields["threads"] = set_threads(tf)
    fields["gpu"], devices = take_all_devices(tf, args.devices)
    if args.gpu:
        need_gpu(tf, fields)
    strategy = tf.distribute.MirroredStrategy(devices)
    size = strategy.num_replicas_in_sync
    replicas = fields["replicas"] = {
        "asked": args.devices,
        "in_sync": size,
        "devices": list(strategy.extended.worker_devices),
    }
    print(f"{size} replicas in sync: {', '.join(devices)}", flush=True)
    if size != args.devices:
        raise RuntimeError(f"expected {args.devices} replicas in sync, but there are {size}: {', '.join(devices)}")

    report.stage("allreduce")
    replicas["reduced"] = known_sum(np, tf, strategy)

    report.stage("data")
    (x_train, y_train), (x_test, y_test), fields["shard"] = load_shard(np, args, 0, 1)
    # Keras divides each batch among the replicas, so it is given the global batch.
    batch = args.batch_size * size
    if batch > len(x_train):
        raise RuntimeError(f"{len(x_train)} training images do not fill one batch of {batch}")
    images = tf.data.Dataset.from_tensor_slices((x_train, y_train)).shuffle(len(x_train), seed=args.seed)
    images = images.batch(batch, drop_remainder=True)
    steps = len(x_train) // batch
    fields.update(train_images=steps * batch, test_images=len(x_test), learning_rate=args.learning_rate * size)
    replicas["batch"] = {"global": batch, "per_replica": args.batch_size, **first_batch(np, strategy, images)}
    checkpoints = os.path.join(args.out, "checkpoints")
    os.makedirs(checkpoints)

    report.stage("model")
    seed(np, tf, args.seed)
    with strategy.scope():
        model = compile_model(tf, build_model(tf, classes=10), fields["learning_rate"], args.epochs * steps)
    fields["weights_sha256_initial"] = weights_sha256(np, model.get_weights())
    before, _ = measure(np, model, x_train[:BEFORE_IMAGES], y_train[:BEFORE_IMAGES])
    fields["loss_before"] = before
    print(f"{batch} images per step, {args.batch_size} per replica  loss before training {before:.4f}", flush=True)

    epochs = make_epoch_callback(tf, 0, args.epochs)
    path = checkpoint_path(tf, checkpoints)

    def fit(model, first, last):
        model.fit(images, initial_epoch=first, epochs=last, verbose=0, callbacks=[epochs])

    def load():
        with strategy.scope():
            return tf.keras.models.load_model(path)

    model = train_and_restart(np, report, model, args.epochs, fit, save=lambda model: model.save(path), load=load)
    fields["loss"] = epochs.losses
    fields["epoch_seconds"] = [round(seconds, 4) for seconds in epochs.seconds]
    fields["images_per_second"] = images_per_second(steps * batch, epochs.seconds)

    report.stage("evaluation")
    replicas["weights_sha256"] = [weights_sha256(np, weights) for weights in copies_of_weights(strategy, model)]
    fields["weights_sha256"] = weights_sha256(np, model.get_weights())
    _, fields["accuracy"] = measure(np, model, x_test, y_test)
    print(f"test accuracy {fields['accuracy']:.4f}, restarted at step {fields['restart']['began_at']}", flush=True)

    report.stage("done")
    # The judge reports this in words; the exit code is for a person who runs the program by hand.
    return restart_failed(fields["restart"]) or len(set(replicas["weights_sha256"])) != 1


def main(argv=None):
    """Run the training; the exit code is 0 or 1."""
    parser = argument_parser("Train a small Keras network on several devices of one process; write one JSON report.")
    parser.add_argument("--devices", type=positive, required=True, help="replicas that there must be")
    args = parser.parse_args(argv)
    return run("the proof", args.out, lambda report: train(args, report))


if __name__ == "__main__":
    sys.exit(main())
