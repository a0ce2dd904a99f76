"""What an environment costs as one image: `rows` for `make bench`, from an environment that is built and proved.

The image is mounted by `provision-deliver`, as in a job. Imports are the fastest of some, plain and through the image in turn, so
that the seconds of both are from the same minute. Cold is a new mount of an image that is not in the page cache.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

TOOL = (sys.executable, "-m", "provision")
EXCHANGE = Path(__file__).resolve().parents[1] / "tests" / "parts" / "exchange.c"
IMPORT = "import tensorflow, horovod.tensorflow"
TIMES = 4

Rows = list[tuple[str, float, float, str, float]]


def seconds(argv: Sequence[str | Path], environ: dict[str, str]) -> float:
    """Wall seconds of one run, which must succeed."""
    began = time.monotonic()
    subprocess.run(argv, env=environ, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return time.monotonic() - began


def exchange_seconds(argv: Sequence[str | Path], environ: dict[str, str]) -> float:
    """The seconds in which two ranks exchange 1 MiB: the fastest of some hundred."""
    done = subprocess.run(argv, env=environ, check=True, capture_output=True, text=True)
    return min(map(float, re.findall(r"seconds ([\d.]+)", done.stdout)))


def forget(image: Path) -> None:
    """Take the image out of the page cache."""
    with image.open("rb") as file:
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def rows(root: Path, scratch: Path) -> Rows:
    """The rows of the one environment below `root`."""
    prefix = next(root.glob("envs/*/*/*-*"))
    environ = {**os.environ, "PROVISION_ROOT": str(root), "TMPDIR": str(scratch), "TF_CPP_MIN_LOG_LEVEL": "3"}
    packing = seconds((*TOOL, "pack", "/".join(prefix.parts[-3:])), environ)
    image = prefix / ".provision" / "images" / "environment.squashfs"
    size = sum(path.lstat().st_size for path in prefix.rglob("*") if ".provision" not in path.parts)
    python, deliver = prefix / "bin" / "python", image.with_name("provision-deliver")
    number = 0

    def delivered(*program: str | Path) -> tuple[tuple[str | Path, ...], dict[str, str]]:
        """The words and variables that run a program with a mount of its own."""
        nonlocal number
        number += 1
        return (deliver, *program), {**environ, "SLURM_JOB_ID": f"bench-{number}"}

    mount = min(seconds(*delivered("true")) for _ in range(TIMES))
    files, warm, cold = [], [], []
    for _ in range(TIMES):
        files.append(seconds((python, "-c", IMPORT), environ))
        forget(image)
        cold.append(seconds(*delivered(python, "-c", IMPORT)))
        # The second import through one mount.
        words, job = delivered(python, "-c", IMPORT)
        with subprocess.Popen((deliver, "sh", "-c", "echo; read x"), env=job, stdin=-1, stdout=-1) as holder:
            assert holder.stdout is not None
            holder.stdout.readline()
            seconds(words, job)
            warm.append(seconds(words, job))
            holder.communicate(b"\n")
    program = scratch / "exchange"
    subprocess.run((prefix / "bin" / "mpicc", "-O2", "-o", program, EXCHANGE), env=environ, check=True)
    ranks = (prefix / "bin" / "mpiexec", "-n", "2")
    plain, shared = [], []
    for _ in range(TIMES):
        plain.append(exchange_seconds((*ranks, program), environ))
        words, job = delivered(program)
        shared.append(exchange_seconds((*ranks, *words), job))
    return [
        ("image: packing", packing, 1.0, "seconds", 10),
        ("image: size (MB)", image.stat().st_size / 1e6, size / 1e6, "x the files", 0.30),
        ("image: mount", mount, 1.0, "seconds", 0.2),
        ("image: import, warm", min(warm), min(files), "x the files, warm", 1.05),
        ("image: import, cold", min(cold), min(files), "x the files, warm", 1.5),
        ("image: 1 MiB in a node", min(shared), min(plain), "x without the image", 1 / 0.95),
    ]
