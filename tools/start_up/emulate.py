#!/usr/bin/env python3
"""Measures recorded look-ups of many emulated nodes on a shared file system with chosen delays, and tries the model on them.

    emulate.py --list LOOKUPS --folder FOLDER [--nodes 1,4,16,64] [--ranks 2] [--latency-us 1000] [--rate 4000] [--image IMAGE]
    emulate.py --record PREFIX 'import tensorflow' >LOOKUPS

Each node is a FUSE mount of FOLDER (`shared_files.c`); all mounts share one metadata server. Each rank replays the list
(`replay.c`); with `--image`, a path below FOLDER, each node mounts that image and its ranks replay the list there. Latency and
rate are fitted at the first two numbers of nodes and predict the others: the same function as in
`provision startup`. A point counts only if nodes and ranks used at most half of the CPUs: they
run before all other programs of the machine. It needs root, `/dev/fuse`, gcc and libfuse3-dev.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from provision.launch.start_up import seconds_of_lookups

HERE = Path(__file__).resolve().parent
BUSY = 0.5
# Other programs of this machine delay nothing then. Nodes and ranks mostly sleep.
AHEAD = ("chrt", "--fifo", "10")


@dataclass(frozen=True, kw_only=True)
class Emulation:
    """The delays of the emulated file system, and the look-ups on it; `keep_s` is how long a node keeps answers."""

    folder: Path
    lookups: Sequence[str]
    ranks: int = 2
    latency_us: float = 1000
    rate: float = 4000
    keep_s: float = 0
    pause_us: float = 0
    image: str = ""

    @property
    def own_s(self) -> float:
        """What a rank does between its look-ups, in seconds of all of them: it sleeps."""
        return self.pause_us * len(self.lookups) / 1e6

    def clients(self, nodes: int) -> int:
        """The ranks that ask the server: one a node if a node keeps the answers for its other ranks."""
        return nodes * (1 if self.keep_s else self.ranks)


@dataclass(frozen=True, kw_only=True)
class Measured:
    """The seconds of the slowest rank, and the share of the CPUs' time that the nodes and ranks used meanwhile."""

    nodes: int
    seconds: float
    busy: float


def compile_programs(into: Path) -> None:
    """Compile the two programs."""
    flags = subprocess.run(("pkg-config", "--cflags", "--libs", "fuse3"), capture_output=True, text=True, check=True)
    for name in ("shared_files", "replay"):
        subprocess.run(
            ("gcc", "-O2", "-Wall", "-o", into / name, HERE / f"{name}.c", *flags.stdout.split()), check=True
        )


@contextlib.contextmanager
def mounted(emulation: Emulation, nodes: int, scratch: Path) -> Iterator[list[Path]]:
    """The folder as so many nodes see it."""
    places = [scratch / f"node-{number}" for number in range(nodes)]
    delays = (str(emulation.latency_us), str(emulation.rate), str(emulation.keep_s))
    argv = [(scratch / "shared_files", scratch / "clock", *delays, emulation.folder) for _ in places]
    with running_mounts(argv, places):
        yield places


@contextlib.contextmanager
def images_mounted(image: str, nodes: Sequence[Path]) -> Iterator[list[Path]]:
    """The image in the folder of each node, mounted by each node."""
    places = [node.with_name(f"image-of-{node.name}") for node in nodes]
    with running_mounts([("squashfuse_ll", "-f", node / image) for node in nodes], places):
        yield places


@contextlib.contextmanager
def running_mounts(argv: Sequence[tuple[str | Path, ...]], places: Sequence[Path]) -> Iterator[None]:
    """These programs with their mounts, until all are there; they end with the context."""
    for place in places:
        place.mkdir()
    servers = [subprocess.Popen((*AHEAD, *words, place)) for words, place in zip(argv, places, strict=True)]
    try:
        while not all(place.is_mount() for place in places):
            if any(server.poll() is not None for server in servers):
                raise RuntimeError("a node was not mounted")
            time.sleep(0.02)
        yield
    finally:
        for server in servers:
            server.terminate()
        for server in servers:
            server.wait(timeout=60)
        for place in places:
            place.rmdir()


def used_seconds() -> float:
    """The seconds of CPU that the processes have used that have ended."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def measure(emulation: Emulation, nodes: int, scratch: Path) -> Measured:
    """Replay the look-ups on so many nodes at once."""
    names, start = scratch / "lookups", scratch / "start"
    names.write_text("\n".join(emulation.lookups))
    used = used_seconds()
    with mounted(emulation, nodes, scratch) as places, contextlib.ExitStack() as stack:
        began = time.monotonic()
        if emulation.image:
            places = stack.enter_context(images_mounted(emulation.image, places))
        spent = time.monotonic() - began
        argv = [(*AHEAD, scratch / "replay", names, place, str(emulation.pause_us), start) for place in places]
        ranks = [subprocess.Popen(words, stdout=subprocess.PIPE, text=True) for words in argv * emulation.ranks]
        time.sleep(1)
        start.touch()
        seconds = spent + max(float(rank.communicate()[0]) for rank in ranks)
        start.unlink()
    return Measured(nodes=nodes, seconds=seconds, busy=(used_seconds() - used) / seconds / (os.cpu_count() or 1))


def predict_files(emulation: Emulation, points: Sequence[Measured]) -> Callable[[int], float]:
    """The model of plain files, with the latency and the limit of the server that the first two points show.

    Raises:
        ValueError: at the second point the clients did not wait for each other, so the server's limit is not known.
    """
    few, many = points[:2]
    if many.seconds < 1.1 * few.seconds:
        raise ValueError(f"{many.nodes} nodes took {many.seconds:.2f} s, hardly longer than {few.nodes}")
    count, own_s = len(emulation.lookups), emulation.own_s
    latency_s, rate = (few.seconds - own_s) / count, emulation.clients(many.nodes) * count / many.seconds
    return lambda nodes: seconds_of_lookups(emulation.clients(nodes), count, latency_s, rate, own_s)


def predict_image(points: Sequence[Measured]) -> Callable[[int], float]:
    """The model of an image, of which only the look-ups of the mount reach the server: as long on any number of nodes."""
    return lambda _: max(point.seconds for point in points[:2])


def compare(emulation: Emulation, points: Sequence[Measured]) -> list[dict[str, object]]:
    """Each point with what the model says, fitted at the first two."""
    predict = predict_image(points) if emulation.image else predict_files(emulation, points)
    rows = []
    for at, point in enumerate(points):
        predicted = predict(point.nodes)
        rows.append(
            {
                **asdict(point),
                "predicted": predicted,
                "error": point.seconds / predicted - 1,
                "fitted": at < 2,
                "counts": point.busy <= BUSY,
            }
        )
    return rows


def record(prefix: Path, code: str) -> list[str]:
    """The look-ups below a prefix of its Python that runs this code, by strace."""
    with tempfile.NamedTemporaryFile("r") as trace:
        argv = ("strace", "-f", "-qq", "-y", "-s", "0", "-e", "trace=file", "-o", trace.name)
        subprocess.run((*argv, prefix / "bin" / "python", "-c", code), check=True, cwd="/", stdout=subprocess.DEVNULL)
        found = re.findall(r'^\d+ +(\w+)\([^"\n]*"([^"\n]+)"', trace.read(), re.MULTILINE)
    below = [(call, path[len(str(prefix)) + 1 :]) for call, path in found if path.startswith(f"{prefix}/")]
    return [f"{'o' if call.startswith('open') else 's'} {path}" for call, path in below]


def main() -> int:
    """Measure, and print a row for each number of nodes."""
    parser = argparse.ArgumentParser(description="look-ups of emulated nodes, measured and predicted")
    parser.add_argument("--record", nargs=2, metavar=("PREFIX", "CODE"), help="print the look-ups of a Python, and end")
    parser.add_argument("--list", type=Path, help="the file with the look-ups")
    parser.add_argument("--folder", type=Path, help="the folder that the nodes share")
    parser.add_argument("--nodes", default="1,4,16,64")
    parser.add_argument("--every", type=int, default=1, help="replay only every so-manieth look-up")
    for name, default in (
        ("ranks", 2),
        ("latency-us", 1000),
        ("rate", 4000),
        ("keep-s", 0),
        ("pause-us", 0),
        ("image", ""),
    ):
        parser.add_argument(f"--{name}", type=type(default), default=default)
    args = parser.parse_args()
    if args.record:
        print("\n".join(record(Path(args.record[0]), args.record[1])))
        return 0
    emulation = Emulation(
        folder=args.folder,
        lookups=args.list.read_text().splitlines()[:: args.every],
        **{name: getattr(args, name) for name in ("ranks", "latency_us", "rate", "keep_s", "pause_us", "image")},
    )
    scratch = Path(tempfile.mkdtemp())
    try:
        compile_programs(scratch)
        points: list[Measured] = []
        for nodes in map(int, args.nodes.split(",")):
            points.append(measure(emulation, nodes, scratch))
            print(points[-1], file=sys.stderr)
        for row in compare(emulation, points):
            print(json.dumps(row))
    finally:
        shutil.rmtree(scratch)
    return 0


if __name__ == "__main__":
    sys.exit(main())
