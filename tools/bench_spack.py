#!/usr/bin/env python3
"""The rows of `make bench` for the backend `spack`: each step of a build over the same commands of plain Spack, by hand.

    spack concretize  wall of the step that solves, over plain `spack concretize`                       at most 1.1
    spack install     wall of installing wheels and compiling Horovod, over plain `spack install`       at most 1.1
    spack cache       wall of installing from the build cache, over plain `spack install --cache-only`  at most 1.1

By hand means: the same Spack, its Python with clingo, the spack.yaml and the packages that `provision spack show` writes, the
same wheels and sources on the disk, a store and caches of its own. All is downloaded before the timing starts. Run alone it
prints its rows: `tools/bench_spack.py [--stack STACK]`; without Horovod, nothing is compiled, and it takes a fifth of the time.
It needs an archive of Spack in PROVISION_TEST_SPACK, or a checkout in SPACK_ROOT.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(REPOSITORY / "tests"))
from parts.spack import MISSING, RealSpack, find_spack, plain_spack  # noqa: E402

TOOL = (sys.executable, "-m", "provision")
STACK = "tensorflow-2.15.1"
MOST = 1.1
Row = tuple[str, float, float, str, float]


def tool(root: Path, *words: str) -> str:
    """Run the tool below a root; it must end well."""
    done = subprocess.run(
        (*TOOL, *words), env={**os.environ, "PROVISION_ROOT": str(root)}, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise SystemExit(f"{' '.join(words)} failed:\n{done.stdout}{done.stderr}")
    return done.stdout


def built(root: Path, stack: str) -> dict[str, float]:
    """Build below this root with Spack; the seconds of each step."""
    tool(root, "build", "--stack", stack, "--backend", "spack")
    record = next(root.glob("envs/*/*/*/.provision/record.json"))
    seconds: dict[str, float] = json.loads(record.read_text())["seconds"]
    return seconds


@dataclass(frozen=True)
class ByHand:
    """Plain Spack with the files that the tool writes for a stack; `sources` is a root whose downloads it uses."""

    spack: Path
    python: Path
    folder: Path
    sources: Path
    stack: str

    def environment(self, name: str) -> Path:
        """A folder with spack.yaml and its packages."""
        tool(self.sources, "spack", "show", "--stack", self.stack, "--into", str(self.folder / name))
        return next((self.folder / name).glob("local/*/*/spack.yaml")).parent

    def seconds(self, environment: Path, *words: str) -> float:
        """Wall seconds of one command of Spack."""
        home = environment / "home"
        places = [f"config:install_tree:root:{home / 'store'}", f"config:build_stage:[{home / 'stage'}]"]
        places += [f"config:source_cache:{home / 'sources'}", f"config:misc_cache:{home / 'misc'}"]
        settings = [word for place in places for word in ("-c", place)]
        began = time.monotonic()
        done = plain_spack(
            self.spack,
            self.python,
            home,
            environment,
            *settings,
            *words,
            PROVISION_WHEELHOUSE=str(self.sources / "cache" / "wheelhouse"),
            PROVISION_SOURCES=str(self.sources / "cache" / "sources"),
        )
        if done.returncode:
            raise SystemExit(f"spack {' '.join(words)} failed:\n{done.stdout}{done.stderr}")
        return time.monotonic() - began


def rows(spack: RealSpack, stack: str = STACK) -> list[Row]:
    """Build with the tool and by hand, in this order: solve, install, install from the build cache."""
    with tempfile.TemporaryDirectory(prefix="provision-bench-spack-") as scratch:
        root, other = Path(scratch) / "root", Path(scratch) / "other"
        tool(root, "spack", "setup", str(spack.checkout), *spack.words)
        tool(root, "fetch", "--stack", stack, "--backend", "spack")
        (checkout,) = (root / "spack" / "checkout").iterdir()  # the same files: Spack compiles itself to bytecode once
        hand = ByHand(checkout, root / "spack" / "python" / "bin" / "python", Path(scratch), root, stack)
        hand.seconds(hand.environment("warm"), "concretize")
        print("building with Spack: with the tool, then by hand …", file=sys.stderr)
        ours = built(root, stack)
        first = hand.environment("hand")
        solved, installed = hand.seconds(first, "concretize"), hand.seconds(first, "install")
        print("installing from the build cache: with the tool, then by hand …", file=sys.stderr)
        cache = root / "cache" / "spack" / "buildcache"
        tool(other, "spack", "setup", str(spack.checkout), *spack.words, "--cache", str(cache))
        cached = built(other, stack)
        second = hand.environment("cached")
        hand.seconds(second, "mirror", "add", "--unsigned", "given", f"file://{cache}")
        hand.seconds(second, "concretize")
        unpacked = hand.seconds(second, "install", "--cache-only", "--no-check-signature")
        return [
            ("spack concretize", ours["concretize"], solved, "x plain `spack concretize`", MOST),
            ("spack install", ours["install"] + ours["view"], installed, "x plain `spack install`", MOST),
            ("spack cache", cached["install"] + cached["view"], unpacked, "x `spack install --cache-only`", MOST),
        ]


def main() -> int:
    """Print the rows."""
    parser = argparse.ArgumentParser(description="measures builds by Spack against plain Spack")
    parser.add_argument("--stack", default=STACK, help=f"what is built (default: {STACK})")
    stack = parser.parse_args().stack
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    spack = find_spack()
    if spack is None:
        print(MISSING, file=sys.stderr)
        return 1
    for name, seconds, against, meaning, most in rows(spack, stack):
        print(f"{name:<20} {seconds:>8.1f} {against:>8.1f} {seconds / against:>6.2f}   {most:g} {meaning}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
