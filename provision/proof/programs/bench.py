"""What the checks of the numerical proof share, whatever the framework: the data of all ranks, the list of figures, their course.

Every rank can compute the data of all ranks from the seed, and so knows which gradients the other ranks must have. The
reference is always the same training by one process on the concatenated batches. A check passes if the figures of this
rank agree with the reference within the tolerance. Checks that could pass by chance also measure the figure that a rank
would see without any communication (`alone`), and fail if it is not clearly different.

The rules of `rank.py` hold here too.
"""

import argparse
import contextlib
import os
import shutil
import sys
import tempfile
import time
import traceback

from rank import add_gpu_argument, run, seconds_since_start

FEATURES = 6
IMAGES = 16  # per rank and step
VOCABULARY = 11

# For a gradient. Sums over the ranks are computed in another order than sums over the batch.
GRADIENT_TOLERANCE = 1e-5
# For weights after some tens of steps, through which the rounding grows.
TRAINING_TOLERANCE = 1e-4
# A half-precision number has 11 bits: 2**-11 of the largest gradient, which is near 1, and some more for the sum.
FP16_TOLERANCE = 2e-3
# The gradient of a single rank differs from the average by far more than any tolerance here.
ALONE_AT_LEAST = 1e-2


class Skip(Exception):
    """This framework or Horovod does not have the feature that the check needs."""


class Bench:
    """The tools of the checks: the ranks, the data of all ranks, and the list of figures."""

    def __init__(self, np, hvd, seed):
        self.np, self.hvd, self.seed = np, hvd, seed
        self.rank, self.size = hvd.rank(), hvd.size()
        self.scratch = tempfile.mkdtemp(prefix="provision-thorough-")
        self.figures = []

    def prepare(self, function):
        """Called before each check."""

    def tensor(self, array):
        """An array as a tensor of the framework."""

    @contextlib.contextmanager
    def process_set(self):
        """All ranks except the last, which average among themselves, without the last: their numbers, and the set."""
        if not hasattr(self.hvd, "add_process_set"):
            raise Skip("this Horovod has no process sets (new in 0.23)")
        members = list(range(self.size - 1)) if self.size > 1 else [0]
        some = self.hvd.add_process_set(members)
        try:
            if self.rank in members:
                mean = self.hvd.allreduce(self.tensor([float(self.rank + 1)]), name="set", process_set=some)
                self.compare("average", [[sum(member + 1 for member in members) / len(members)]], [mean], 1e-6)
            yield members, some
        finally:
            self.hvd.remove_process_set(some)

    def data(self, step=0, rank=None):
        """The inputs, words and targets of one rank (by default this one) in one step; the targets differ by rank."""
        rank = self.rank if rank is None else rank
        draw = self.np.random.RandomState(self.seed * 1000003 + step * 1009 + rank)
        x = draw.normal(size=(IMAGES, FEATURES)).astype("float32")
        words = draw.randint(0, VOCABULARY, size=(IMAGES, 3)).astype("int32")
        y = (x.sum(axis=1, keepdims=True) / FEATURES + 0.5 * rank + 0.1).astype("float32")
        return x, words, y

    def everybody(self, step=0, ranks=None):
        """The concatenated batches of all ranks, or of some."""
        parts = [self.data(step, rank) for rank in (range(self.size) if ranks is None else ranks)]
        return tuple(self.np.concatenate(part) for part in zip(*parts))

    def flat(self, arrays):
        """Arrays or variables, joined into one array of double precision."""
        arrays = [array.numpy() if hasattr(array, "numpy") else array for array in arrays]
        return self.np.concatenate([self.np.asarray(array, dtype="float64").ravel() for array in arrays])

    def compare(self, what, expected, seen, tolerance, alone=None):
        """Record how far `seen` is from `expected`; `alone` is what a rank would see without communication."""
        expected, seen = self.flat(list(expected)), self.flat(list(seen))
        if expected.shape != seen.shape:
            raise AssertionError("{}: {} numbers instead of {}".format(what, seen.size, expected.size))
        differences = self.np.abs(expected - seen)
        worst = int(self.np.argmax(differences)) if differences.size else 0
        figure = {
            "what": what,
            "numbers": int(differences.size),
            "expected": float(expected[worst]) if differences.size else None,
            "seen": float(seen[worst]) if differences.size else None,
            "difference": float(differences[worst]) if differences.size else 0.0,
            "tolerance": tolerance,
        }
        # `<=`, not a negated `>`: a difference that is not a number must fail.
        passed = figure["difference"] <= tolerance
        if alone is not None and self.size > 1:
            figure["alone"] = float(self.np.max(self.np.abs(expected - self.flat(list(alone)))))
            passed = passed and figure["alone"] >= ALONE_AT_LEAST
        figure["passed"] = bool(passed)
        self.figures.append(figure)

    def holds(self, what, truth, **figures):
        """Record whether a statement is true."""
        self.figures.append(dict(figures, what=what, passed=bool(truth)))

    def refuses(self, what, action):
        """Record whether an action fails, and the message with which it fails."""
        try:
            action()
        except Exception as error:
            self.figures.append({"what": what, "passed": True, "message": "{}: {}".format(type(error).__name__, error)})
        else:
            self.figures.append({"what": what, "passed": False, "message": None})

    def across(self, what, arrays):
        """Record the largest difference of these numbers from those of rank 0, which must be exactly 0."""
        mine = self.flat(list(arrays))
        everybody = self.flat([self.hvd.allgather(self.tensor(mine))])
        self.compare(what, everybody[: mine.size], mine, 0.0)


def run_check(bench, function):
    """Run one check and return its record."""
    started = time.time()
    bench.figures = []
    record = {"proves": function.__doc__.strip(), "status": "passed", "reason": None}
    try:
        function(bench)
    except Skip as skip:
        record.update(status="skipped", reason=str(skip))
    except Exception as error:
        record.update(
            status="failed", reason="{}: {}".format(type(error).__name__, error), traceback=traceback.format_exc()
        )
    if any(not figure["passed"] for figure in bench.figures):
        record["status"] = "failed"
        wrong = [figure["what"] for figure in bench.figures if not figure["passed"]]
        record["reason"] = record["reason"] or "wrong: " + ", ".join(wrong)
    record.update(figures=bench.figures, seconds=round(time.time() - started, 3))
    return record


def prove(args, report, checks, make):
    """The whole proof with the bench of `make(args, report)`; returns the number of failed checks."""
    fields = report.fields
    fields["checks"] = {}
    os.environ.setdefault("HOROVOD_DYNAMIC_PROCESS_SETS", "1")
    # If a rank stops in the middle of a check, the others must not wait for ever.
    os.environ.setdefault("HOROVOD_STALL_CHECK_TIME_SECONDS", "10")
    os.environ.setdefault("HOROVOD_STALL_SHUTDOWN_TIME_SECONDS", "30")
    bench = make(args, report)
    fields["start_seconds"] = seconds_since_start()
    try:
        for name, function in checks:
            if args.only and name not in args.only:
                continue
            bench.prepare(function)
            report.stage("check " + name)
            record = fields["checks"][name] = run_check(bench, function)
            if bench.rank == 0:
                differences = [figure["difference"] for figure in bench.figures if "difference" in figure]
                worst = "  worst difference {:.1e}".format(max(differences)) if differences else ""
                reason = "  " + record["reason"] if record["reason"] else ""
                print("{:<16} {:<8} {:6.1f} s{}{}".format(name, record["status"], record["seconds"], worst, reason))
                sys.stdout.flush()
    finally:
        shutil.rmtree(bench.scratch, ignore_errors=True)
    failed = [name for name, record in fields["checks"].items() if record["status"] == "failed"]
    fields["failed"] = failed
    report.stage("done")
    return len(failed)


def main(checks, make):
    """Run the proof with these checks; the exit code is 0 or 1."""
    parser = argparse.ArgumentParser(
        description="Prove by numbers that Horovod averages gradients; write one JSON report per process.",
        allow_abbrev=False,
    )
    parser.add_argument("--out", required=True, metavar="DIR", help="folder for the reports; should be empty")
    parser.add_argument("--seed", type=int, default=1)
    add_gpu_argument(parser)
    parser.add_argument("--only", action="append", metavar="CHECK", help="run only this check; may be repeated")
    args = parser.parse_args()
    return run("the proof", args.out, lambda report: prove(args, report, checks, make))
