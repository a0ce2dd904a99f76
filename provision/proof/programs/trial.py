"""The common parts of the training programs: arguments, shards of the images, known sums, digests of weights.

The rules of `rank.py` hold here too: it is imported by path, parses on Python 3.6, and does not import TensorFlow at the top.
Functions that need values take `evaluate`, which turns a tensor into an array: `.numpy()` if TensorFlow runs eagerly,
`session.run` in a graph.
"""

import argparse
import hashlib

from rank import add_gpu_argument

# Long enough (4 MiB of float32) that MPI and NCCL use their rendezvous and segmented protocols, with which a broken
# fabric shows. The short vector fits into the first packet.
LARGE_ELEMENTS = 1 << 20
VECTOR_LENGTH = 8

# The number of images for the loss before training: the same on all ranks, and enough for a loss near ln(10) = 2.30.
BEFORE_IMAGES = 1024


def positive(text):
    """Parse a whole number of at least 1."""
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of at least 1")
    return value


def argument_parser(description):
    """The arguments of every training program; the defaults suit the shipped `digits.npz`."""
    parser = argparse.ArgumentParser(description=description, allow_abbrev=False)
    parser.add_argument("--data", required=True, metavar="FILE.npz", help="images in the layout of mnist.npz")
    parser.add_argument("--out", required=True, metavar="DIR", help="folder for the reports; should be empty")
    parser.add_argument("--epochs", type=positive, default=8)
    parser.add_argument("--batch-size", type=positive, default=32, help="images per step and rank")
    parser.add_argument(
        "--learning-rate", type=float, default=0.001, help="for one rank; multiplied by the number of ranks"
    )
    parser.add_argument("--seed", type=int, default=1, help="seed of the shards and, with the rank, of the weights")
    parser.add_argument("--samples", type=int, default=0, help="number of training images to use; 0 means all")
    add_gpu_argument(parser)
    return parser


def load_shard(np, args, rank, size):
    """Read the images; returns this rank's shard of the training set, the whole test set, and a record of the shard.

    All ranks shuffle in the same way, then each takes its own slice. The slices have equal length (if the division is
    uneven, the last images are left out), so that all ranks make the same number of steps and none waits at the end.
    """
    with np.load(args.data, allow_pickle=False) as archive:
        x_train, y_train = archive["x_train"], archive["y_train"]
        x_test, y_test = archive["x_test"], archive["y_test"]
    order = np.random.RandomState(args.seed).permutation(len(x_train)).astype("<i8")
    if args.samples > 0:
        order = order[: args.samples]
    length = len(order) // size
    if length == 0:
        raise RuntimeError(f"{len(order)} training images cannot be shared among {size} ranks")
    start = rank * length
    mine = order[start : start + length]
    account = {"start": start, "stop": start + length, "sha256": hashlib.sha256(np.sort(mine).tobytes()).hexdigest()}
    return (
        (scaled(np, x_train[mine]), y_train[mine].astype("int32")),
        (scaled(np, x_test), y_test.astype("int32")),
        account,
    )


def scaled(np, images):
    """Turn images of 0..255 into float32 of 0..1, with the channel axis that convolutions need."""
    return (images.astype(np.float32) / np.float32(255.0))[..., np.newaxis]


def known_allreduce(np, tf, hvd, evaluate):
    """Reduce vectors whose sum is known in advance.

    The values are small whole numbers, so the sum is exact in float32 up to about two thousand ranks. The average is not
    exact (Horovod multiplies by 1/size), so it must be compared with a tolerance.
    """
    rank, size = hvd.rank(), hvd.size()
    pattern = np.arange(1, VECTOR_LENGTH + 1, dtype=np.float32)
    mine = (rank + 1) * pattern
    expected = size * (size + 1) // 2 * pattern
    reduced = hvd.allreduce(tf.constant(mine), op=hvd.Sum, name="proof.sum")
    summed = evaluate(reduced)
    average = evaluate(hvd.allreduce(tf.constant(mine), op=hvd.Average, name="proof.average"))
    repeats = LARGE_ELEMENTS // VECTOR_LENGTH
    large = evaluate(hvd.allreduce(tf.constant(np.tile(mine, repeats)), op=hvd.Sum, name="proof.large"))
    wrong = int(np.count_nonzero(large != np.tile(expected, repeats)))
    return {
        "input": mine.tolist(),
        "expected": expected.tolist(),
        "device": reduced.device,
        "sum": summed.tolist(),
        "expected_average": (expected / size).tolist(),
        "average": average.tolist(),
        "large_elements": LARGE_ELEMENTS,
        "large_wrong": wrong,
    }


def weights_sha256(np, weights):
    """A digest of the bytes of all weights: it is equal on two ranks only if every bit is equal."""
    digest = hashlib.sha256()
    for array in weights:
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


def weights_difference(np, tf, hvd, weights, evaluate):
    """The largest difference of any weight from rank 0's: about 1e-7 if rounding caused it, 0.1 without communication."""
    worst = 0.0
    for number, array in enumerate(weights):
        root = evaluate(hvd.broadcast(tf.constant(array), root_rank=0, name=f"proof.weights.{number}"))
        worst = max(worst, float(np.max(np.abs(array - root))))
    return worst
