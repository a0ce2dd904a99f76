"""The course of a training run, which the programs of all strategies share, and its parts: shards, known sums, digests.

Nothing here is of a framework. A program is a subclass of `Trial` that adds what its strategy does in its own way; what passes
between the two are arrays of NumPy and numbers. The rules of `rank.py` hold here too: this file is imported by path and parses
on Python 3.6.

Why the measurements prove something:

- every rank starts from *different* weights, so only a working broadcast can make them equal;
- every rank trains on *different* images, so only a working allreduce of the gradients can keep them equal;
- nothing in the model is local to a rank by design (no batch normalisation), so equal means equal to the last bit;
- half-way the model is saved and loaded, and must have the saved weights and the saved step before the training continues;
- the report is rewritten at each stage, so if a process hangs or dies of an illegal instruction, its report still
  names the stage.

A program measures and reports; it does not judge. The judge (`provision/proof/strategies.py`) reads the reports of all
processes together, because a single process cannot see the faults that matter: a process that never found the others
believes that it is a correct rank 0 of 1.
"""

import argparse
import hashlib
import os
import sys
import time

from rank import add_gpu_argument, run, seconds_since_start

# Long enough (4 MiB of float32) that MPI and NCCL use their rendezvous and segmented protocols, with which a broken
# fabric shows. The short vector fits into the first packet.
LARGE_ELEMENTS = 1 << 20
VECTOR_LENGTH = 8

# The number of images for the loss before training: the same on all ranks, and enough for a loss near ln(10) = 2.30.
BEFORE_IMAGES = 1024


class Trial:
    """The training run of one process: `train` is its course; the methods without a body are what a program adds."""

    restarts = True
    """Whether the program saves half-way and continues from the file."""

    def __init__(self, args, report):
        self.args, self.report, self.fields = args, report, report.fields
        self.rank, self.size = 0, 1
        self.checkpoints = os.path.join(args.out, "checkpoints")
        self.device, self.whole = None, None
        self.losses, self.seconds, self.began = [], [], 0.0

    def join(self):
        """Import the libraries into `np` and others, take threads and GPU, join the other processes: `rank`, `size`."""

    def allreduce(self, vectors, average=False):
        """Sum or average, over all replicas, of vectors: one for each replica of this process."""

    def gather(self, value):
        """The values of all processes, as a list by rank; a value is one for JSON."""
        return [value]

    def build(self, seed):
        """Make the model, compiled for `steps` of each epoch and `learning_rate`; return its weights, drawn with the seed."""

    def fit(self, first, last):
        """Train from epoch `first` up to `last`, with `begin_epoch` and `end_epoch`; return the `state` at the first step."""

    def state(self):
        """The number of steps that the model has been trained, and its weights."""

    def reload(self):
        """Save the model and continue with another one, loaded from the file."""

    def measure(self, images, labels):
        """Mean loss and accuracy of the model on these images, by this process alone."""

    def finish(self):
        """Do what is left when all is measured; return true if that went wrong."""

    @property
    def replicas(self):
        """The number of copies of the model on all processes."""
        return self.size

    @property
    def learning_rate(self):
        """The rate for one replica, times their number."""
        return self.args.learning_rate * self.replicas

    def train(self):
        """The whole run, from the imports to the finished report; returns true if weights or restart went wrong."""
        args, report, fields = self.args, self.report, self.fields
        self.join()
        fields["start_seconds"] = seconds_since_start()
        np = self.np

        report.stage("allreduce")
        self.exchange()

        report.stage("data")
        self.whole, (test_images, test_labels) = load_images(np, args.data)
        test = scaled(np, test_images), test_labels
        mine, fields["shard"] = self.share(len(self.whole[0]))
        images = scaled(np, self.whole[0][mine]), self.whole[1][mine]
        self.take(*images)
        fields.update(train_images=self.images, test_images=len(test[0]), learning_rate=self.learning_rate)

        report.stage("model")
        # Different on every rank, on purpose: if they were equal, a missing broadcast would not be noticed.
        fields["weights_sha256_initial"] = weights_sha256(np, self.build(args.seed * 100003 + self.rank))
        before = self.measure(images[0][:BEFORE_IMAGES], images[1][:BEFORE_IMAGES])[0]
        (fields["loss_before"],) = self.mean([before])
        self.say(
            f"rank 0 of {self.size}  {self.images} images per rank  loss before training {fields['loss_before']:.4f}"
        )

        report.stage("training")
        half = max(1, args.epochs // 2) if self.restarts else args.epochs
        self.fit(0, half)
        if self.restarts:
            saved_at, saved = self.state()
            fields["restart"] = {"saved_at": saved_at, "saved_sha256": weights_sha256(np, saved)}
            report.stage("restart")
            self.reload()
            report.stage("second training")
            began_at, began = self.fit(half, args.epochs)
            fields["restart"].update(began_at=began_at, began_sha256=weights_sha256(np, began))
        fields["loss"] = self.mean(self.losses)
        fields["epoch_seconds"] = [round(seconds, 4) for seconds in self.seconds]
        # The first epoch includes tracing and the start of the slowest rank, and the first one after the restart too.
        timed = [seconds for number, seconds in enumerate(self.seconds) if number not in (0, half)] or self.seconds[1:]
        fields["images_per_second"] = self.images * self.size * len(timed) / sum(timed) if timed else None

        report.stage("evaluation")
        weights = self.state()[1]
        fields["weights_sha256"] = weights_sha256(np, weights)
        if self.size > 1:
            # About 1e-7 if rounding caused a difference from rank 0, 0.1 without communication.
            roots = [self.allreduce([array if self.rank == 0 else np.zeros_like(array)]) for array in weights]
            fields["weights_max_difference"] = max(float(np.abs(a - b).max()) for a, b in zip(weights, roots))
        # Each rank measures the whole test set by itself, without a word to the others.
        fields["accuracy"] = self.measure(*test)[1]
        speed = f"  {fields['images_per_second']:.0f} images/s over all ranks" if timed else ""
        self.say(f"test accuracy {fields['accuracy']:.4f}{speed}")
        wrong = self.finish()

        report.stage("done")
        # The judge reports this in words; the exit code is for a person who runs the program by hand.
        restart = fields.get("restart") or {}
        lost = [restart.get("began_" + part) != restart.get("saved_" + part) for part in ("at", "sha256")]
        return wrong or any(lost) or fields.get("weights_max_difference")

    def exchange(self):
        """Reduce vectors whose sum is known in advance, and gather the names of all processes.

        The values are small whole numbers, so the sum is exact in float32 up to about two thousand ranks. The average is not
        exact (Horovod multiplies by 1/size), so it must be compared with a tolerance.
        """
        np, count = self.np, self.replicas
        pattern = np.arange(1, VECTOR_LENGTH + 1, dtype=np.float32)
        numbers = [self.rank] if self.size > 1 else range(count)
        mine = [(number + 1) * pattern for number in numbers]
        expected = count * (count + 1) // 2 * pattern
        repeats = LARGE_ELEMENTS // VECTOR_LENGTH
        large = self.allreduce([np.tile(vector, repeats) for vector in mine])
        self.fields["allreduce"] = {
            "inputs": [vector.tolist() for vector in mine],
            "expected": expected.tolist(),
            "sum": self.allreduce(mine).tolist(),
            "average": self.allreduce(mine, average=True).tolist(),
            "large_elements": LARGE_ELEMENTS,
            "large_wrong": int(np.count_nonzero(large != np.tile(expected, repeats))),
            "device": self.device,
        }
        self.fields["peers"] = self.gather((self.rank, self.report.host, os.getpid()))

    def share(self, count):
        """The numbers of this rank's training images among `count`, and a record of this shard.

        All ranks shuffle in the same way, then each takes its own slice. The slices have equal length (if the division is
        uneven, the last images are left out), so that all ranks make the same number of steps and none waits at the end.
        """
        length = count // self.size
        if length == 0:
            raise RuntimeError(f"{count} training images cannot be shared among {self.size} ranks")
        start = self.rank * length
        mine = self.np.random.RandomState(self.args.seed).permutation(count)[start : start + length]
        return mine, {"start": start, "stop": start + length, "sha256": numbers_sha256(self.np, self.np.sort(mine))}

    def take(self, images, labels, full_batch=None):
        """Keep the shard: `steps` of an epoch, and the `images` that it trains on; all in full batches if their size is given."""
        self.shard = (images, labels)
        batch = full_batch or self.args.batch_size
        self.steps = len(images) // batch if full_batch else -(-len(images) // batch)
        self.images = self.steps * batch if full_batch else len(images)
        if self.steps == 0:
            raise RuntimeError(f"{len(images)} training images do not fill one batch of {batch}")

    def mean(self, values):
        """The averages of numbers over all processes."""
        if self.size == 1 or not values:
            return [float(value) for value in values]
        return self.allreduce([self.np.array(values, self.np.float32)], average=True).tolist()

    def begin_epoch(self):
        """Start the clock of an epoch."""
        self.began = time.time()

    def end_epoch(self, loss, accuracy=None):
        """Keep the loss and the seconds of an epoch."""
        self.seconds.append(time.time() - self.began)
        self.losses.append(float(loss))
        self.say(
            f"epoch {len(self.losses)}/{self.args.epochs}  loss {loss:.4f}  "
            + ("" if accuracy is None else f"train accuracy {accuracy:.3f}  ")
            + f"{self.seconds[-1]:.2f} s"
        )

    def say(self, line):
        """Print a line on rank 0."""
        if self.rank == 0:
            print(line, flush=True)


def main(trial, description, add_arguments=None):
    """Run the training of a program as `trial(args, report)`; the exit code is 0 or 1. The defaults suit our `digits.npz`."""
    parser = argparse.ArgumentParser(description=description, allow_abbrev=False)
    parser.add_argument("--data", required=True, metavar="FILE.npz", help="images in the layout of mnist.npz")
    parser.add_argument("--out", required=True, metavar="DIR", help="folder for the reports; should be empty")
    parser.add_argument("--epochs", type=positive, default=8)
    parser.add_argument("--batch-size", type=positive, default=32, help="images per step and rank")
    parser.add_argument(
        "--learning-rate", type=float, default=0.001, help="for one rank; multiplied by the number of ranks"
    )
    parser.add_argument("--seed", type=int, default=1, help="seed of the shards and, with the rank, of the weights")
    add_gpu_argument(parser)
    if add_arguments:
        add_arguments(parser)
    args = parser.parse_args()
    sys.exit(run("the proof", args.out, lambda report: trial(args, report).train()))


def add_communication(parser, choices, words):
    """Add the options of programs whose processes find each other, and that nobody ends if one of them waits for ever."""
    parser.add_argument("--communication", choices=choices, default="AUTO", help=words)
    parser.add_argument(
        "--stall", type=positive, default=180, help="seconds without progress after which a process ends"
    )


def positive(text):
    """Parse a whole number of at least 1."""
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of at least 1")
    return value


def load_images(np, path):
    """Read the training images and their labels, and those of the test set."""
    with np.load(path, allow_pickle=False) as archive:
        return tuple((archive["x_" + part], archive["y_" + part].astype("int32")) for part in ("train", "test"))


def numbers_sha256(np, numbers):
    """A digest of the numbers of images, in their order."""
    return hashlib.sha256(np.asarray(numbers).astype("<i8").tobytes()).hexdigest()


def scaled(np, images):
    """Turn images of 0..255 into float32 of 0..1, with the channel axis that convolutions need."""
    return (images.astype(np.float32) / np.float32(255.0))[..., np.newaxis]


def weights_sha256(np, weights):
    """A digest of the bytes of all weights: it is equal on two ranks only if every bit is equal."""
    digest = hashlib.sha256()
    for array in weights:
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()
