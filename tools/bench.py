#!/usr/bin/env python3
"""`make bench`: measures what the tool costs, as ratios within one run (a ratio varies less between runs than seconds).

    start-up      CPU seconds of `--version`, `--help` and completion over a bare `python3 -c pass`    at most 2.7
    explain …     CPU seconds of `provision explain` of one line, and of 10 MB of a training, over the bare one  at most 15, 30
    again         wall seconds of `provision build` of what is already built                           under 0.3 s
    from nothing  wall of `provision build` without the proof, over a plain script doing the same      at most 0.8
    cached wheel  the same with the compiled wheel in the cache                                        at most 0.2
    compile       wall of the step that compiles Horovod, over plain `pip install horovod`             at most 0.40
    allreduce     wall of 20 allreduces of 16 MB on two ranks, over the plain script's library         at most 1.1
    disk          seconds in which receipts wait for the disk, over the seconds of all steps            at most 0.05
    image …       an environment as one image, in `bench_image.py`: packing at most 10 s, at most 0.30 of the size, a mount
                  under 0.2 s, imports at most 1.05 (warm) and 1.5 (cold) of warm files, 1 MiB between ranks at most 1.053
    math onednn   wall of training with Intel's TensorFlow 1.15, in `bench_math.py`, over TensorFlow's   at most 1.0
    spack …       the backend `spack` over plain Spack, in `bench_spack.py`; only if there is a Spack    at most 1.1

It uses the stack of TensorFlow 2.15.1, because a plain `pip install horovod` does not compile with TensorFlow 2.19 or
newer. All packages are downloaded before the timing starts. The plain script is what people write by hand: venv, pip
install tensorflow-cpu, pip install horovod with the same flags. The result is one table; `--json FILE` writes the figures.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import bench_image
import bench_math
import bench_spack

REPOSITORY = Path(__file__).resolve().parents[1]
TOOL = (sys.executable, "-m", "provision")
STACK = ("--stack", "tensorflow-2.15.1")
LIBRARY = "lib/python3.*/site-packages/horovod/tensorflow/mpi_lib*.so"
INSTALLED = (str(Path(sys.executable).parent / "provision"),)

PLAIN = r"""
set -euo pipefail
cd "$1"
"$2" -m venv env
env/bin/pip install --quiet tensorflow-cpu==2.15.1 mpich==5.0.2
env/bin/pip install --quiet 'setuptools<70' wheel 'cmake<4' packaging cloudpickle psutil pyyaml
export PATH=$PWD/env/bin:$PATH
export HOROVOD_WITH_TENSORFLOW=1 HOROVOD_WITHOUT_PYTORCH=1 HOROVOD_WITHOUT_MXNET=1 HOROVOD_WITH_MPI=1
export HOROVOD_WITHOUT_GLOO=1 HOROVOD_CPU_OPERATIONS=MPI HOROVOD_BUILD_ARCH_FLAGS="$3"
began=$EPOCHREALTIME
env/bin/pip install --quiet --no-cache-dir --no-build-isolation --no-binary horovod horovod==0.28.1
printf '%s %s\n' "$began" "$EPOCHREALTIME" >compile
env/bin/python -c 'import horovod.tensorflow'
"""

# Prints the seconds of the fastest of five rounds, on rank 0.
ALLREDUCE = """
import time
import tensorflow as tf
import horovod.tensorflow as hvd
hvd.init()
values, best = tf.ones(4_000_000), 1e9
for _ in range(5):
    began = time.perf_counter()
    for _ in range(20):
        hvd.allreduce(values, name="values")
    best = min(best, time.perf_counter() - began)
if hvd.rank() == 0:
    print(best)
"""


def cpu_seconds(argv: tuple[str, ...], times: int = 20) -> float:
    """User and system seconds of the fastest of `times` runs."""
    best = float("inf")
    for _ in range(times):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(argv, stdout=subprocess.DEVNULL, check=False)  # `explain` of a failure ends with 1
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        best = min(best, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return best


def explained(folder: Path, bare: float) -> list[tuple[str, float, float, str, float]]:
    """The rows of `provision explain`: the last line of a traceback, and the steps of a training, which is healthy."""
    line, steps = folder / "line.log", folder / "steps.log"
    line.write_text("ImportError: Extension horovod.tensorflow has not been built: /env/_mpi_lib.so not found\n")
    with steps.open("w") as file:
        for step in range(160_000):
            file.write(
                f"[1,{step % 64}]<stdout>:step {step} of 160000: loss {1 / (step + 1):.6f}, {step % 997} images/s\n"
            )
    meaning = "x a bare interpreter's CPU"
    return [
        ("explain one line", cpu_seconds((*INSTALLED, "explain", str(line))), bare, meaning, 15),
        ("explain 10 MB", cpu_seconds((*INSTALLED, "explain", str(steps)), 3), bare, meaning, 30),
    ]


def wall_seconds(argv: tuple[str, ...], **environ: str) -> float:
    """Wall seconds of one run, which must succeed."""
    began = time.monotonic()
    subprocess.run(
        argv, env={**os.environ, **environ}, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    return time.monotonic() - began


def built(root: Path) -> tuple[float, float, float]:
    """Build below this root. Returns the seconds without the proof, the seconds of the compilation, the library's MB."""
    whole = wall_seconds((*TOOL, "build", *STACK), PROVISION_ROOT=str(root))
    record_file = next(root.glob("envs/*/*/*/.provision/record.json"))
    seconds = json.loads(record_file.read_text())["seconds"]
    return float(whole - seconds["proof"]), float(seconds.get("compile", 0)), megabytes(record_file.parents[1])


def waited(root: Path) -> tuple[float, float]:
    """The seconds in which the receipts of the one environment below this root waited for the disk, and those of all steps."""
    record_file = next(root.glob("envs/*/*/*/.provision/record.json"))
    receipts = [json.loads(path.read_text()) for path in record_file.parent.glob("receipts/*.json")]
    return sum(receipt.get("sync_s", 0) for receipt in receipts), sum(
        json.loads(record_file.read_text())["seconds"].values()
    )


def megabytes(prefix: Path) -> float:
    """The size of Horovod's library in an environment, in MB."""
    return next(prefix.glob(LIBRARY)).stat().st_size / 1e6


def allreduce_seconds(prefix: Path) -> float:
    """The seconds of the allreduces with an environment's Horovod, on two ranks."""
    programs = prefix / "bin"
    argv = (programs / "mpiexec", "-n", "2", programs / "python", "-c", ALLREDUCE)
    done = subprocess.run(argv, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    return float(done.stdout.split()[-1])


def shown(rows: Sequence[tuple[str, float, float, str, float]]) -> list[dict[str, object]]:
    """Print rows of the table as soon as they are measured; the rest takes minutes. Returns them for `--json`."""
    figures: list[dict[str, object]] = []
    for name, seconds, against, meaning, most in rows:
        ratio = seconds / against
        missed = "" if ratio <= most else "  MISSED"
        print(f"{name:<24} {seconds:>9.3f} {against:>9.3f} {ratio:>7.2f}   {most:g} {meaning}{missed}", flush=True)
        figures.append({"what": name, "seconds": seconds, "against": against, "ratio": ratio, "at_most": most})
    return figures


def main() -> int:
    """Measure, and print the table."""
    # With this setting every run would compile the whole tool again; an installed one has its bytecode.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    parser = argparse.ArgumentParser(description="measure what the tool costs")
    parser.add_argument("--json", metavar="FILE", help="write the figures to this file")
    parser.add_argument("--quick", action="store_true", help="measure the start-up and `explain` only")
    args = parser.parse_args()
    bare = cpu_seconds((sys.executable, "-c", "pass"))
    rows = [
        (f"start-up {' '.join(words[:2])}", cpu_seconds((*INSTALLED, *words)), bare, "x a bare interpreter's CPU", 2.7)
        for words in (("--version",), ("--help",), ("__complete", "sites"), ("__complete", "archs", "nyu-torch"))
    ]
    with tempfile.TemporaryDirectory() as folder:
        rows += explained(Path(folder), bare)
    print(f"{'what':<24} {'seconds':>9} {'against':>9} {'ratio':>7}   at most")
    figures = shown(rows)
    if not args.quick:
        figures += shown(builds())
        figures += shown(bench_math.rows())
        spack = bench_spack.find_spack()
        figures += shown(bench_spack.rows(spack)) if spack else []
    if args.json:
        Path(args.json).write_text(json.dumps(figures, indent=1) + "\n")
    return 0


def builds() -> list[tuple[str, float, float, str, float]]:
    """The rows of the builds. The first build downloads everything; then the plain script and our tool build again."""
    rows = []
    with tempfile.TemporaryDirectory(prefix="provision-bench-") as scratch:
        root = Path(scratch) / "root"
        print("downloading and building once …", file=sys.stderr)
        built(root)
        plan = json.loads(
            subprocess.run(
                (*TOOL, "plan", *STACK, "--json"),
                env={**os.environ, "PROVISION_ROOT": str(root)},
                capture_output=True,
                text=True,
                check=True,
            ).stdout
        )
        identity = plan["result"]["identity"]
        python, flags = identity["python"].split()[1], identity["target"].split("(")[1].rstrip(")")
        again = min(wall_seconds((*TOOL, "build", *STACK), PROVISION_ROOT=str(root)) for _ in range(5))
        rows.append(("again", again, 1.0, "seconds", 0.3))
        if shutil.which("squashfuse_ll") and shutil.which("mksquashfs"):
            rows += bench_image.rows(root, Path(scratch))
        script = Path(scratch) / "plain.sh"
        script.write_text(PLAIN)

        def plain(name: str) -> tuple[float, float, float]:
            folder = Path(scratch) / name
            folder.mkdir()
            seconds = wall_seconds(("bash", str(script), str(folder), python, flags))
            began, ended = map(float, (folder / "compile").read_text().split())
            return seconds, ended - began, megabytes(folder / "env")

        print("running the plain script twice: first to fill pip's cache, then timed …", file=sys.stderr)
        plain("warm")
        shutil.rmtree(Path(scratch) / "warm")
        by_hand, compiled_by_hand, size_by_hand = plain("timed")
        print("building with provision: from nothing, then with the cached wheel …", file=sys.stderr)
        sources = Path(scratch) / "fresh" / "cache"
        shutil.copytree(root / "cache", sources)
        seconds, compiled, size = built(Path(scratch) / "fresh")
        rows.append(("from nothing", seconds, by_hand, "x the plain script", 0.8))
        prefix = next((Path(scratch) / "fresh" / "envs").glob("*/*/*-*"))
        # In turn: a machine is not equally fast all the time.
        each = [[allreduce_seconds(env) for env in (prefix, Path(scratch) / "timed" / "env")] for _ in range(5)]
        ours, theirs = map(min, zip(*each, strict=True))
        rows.append(("waiting for the disk", *waited(Path(scratch) / "fresh"), "x all steps", 0.05))
        shutil.rmtree(Path(scratch) / "fresh" / "envs")
        seconds = built(Path(scratch) / "fresh")[0]
        rows.append(("with the cached wheel", seconds, by_hand, "x the plain script", 0.2))
        rows.append(("compile", compiled, compiled_by_hand, "x plain `pip install horovod`", 0.40))
        rows.append(("allreduce", ours, theirs, "x the plain script's library", 1.1))
        print(f"Horovod's library: {size:.1f} MB; with the plain script: {size_by_hand:.1f} MB", file=sys.stderr)
    return rows


if __name__ == "__main__":
    sys.exit(main())
