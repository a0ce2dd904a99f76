"""How much space an environment needs on the file system of the root. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from provision.profile.stack import Stack


@dataclass(frozen=True, slots=True, kw_only=True)
class Space:
    """Bytes and files that a build needs. `source` says, as a phrase, what they were estimated from."""

    size: int
    files: int
    source: str


# If nothing is known, by framework, with a reserve. TensorFlow with its build folder and its wheel (measured: 1.7 GB and 29,000
# files); PyTorch with CUDA's libraries (measured: 5.8 GB and 25,600 files).
USUAL = {
    "tensorflow": Space(size=3_000_000_000, files=40_000, source="what environments of TensorFlow usually need"),
    "pytorch": Space(size=8_000_000_000, files=35_000, source="what environments of PyTorch usually need"),
}


def usual_space(stack: Stack) -> Space:
    """What environments of a stack usually need: the sum over its frameworks."""
    parts, titles = [USUAL[one.name] for one in stack.frameworks], [one.title for one in stack.frameworks]
    return Space(
        size=sum(part.size for part in parts),
        files=sum(part.files for part in parts),
        source=f"what environments of {' and '.join(titles)} usually need",
    )


# The source of Horovod 0.28.1 has 24 MB in 3,726 files; the objects, the library and the wheel are the rest.
COMPILATION = (150_000_000, 5_000)
# What was unpacked elsewhere, blocks that are not full, records and logs.
MARGIN = 1.1
# The bytecode of 3,519 modules of Python 3.11 was 1.23 times as large as their source.
BYTECODE = 1.25


def space_of_wheels(wheels: int, size: int, files: int, modules: int, modules_size: int, *, compiles: bool) -> Space:
    """What unpacked wheels need: `files` with `size` bytes, of which `modules` get bytecode."""
    more = COMPILATION if compiles else (0, 0)
    return Space(
        size=int((size + modules_size * BYTECODE + more[0]) * MARGIN),
        files=int((files + modules + more[1]) * MARGIN),
        source=f"the content of {wheels} fetched wheels",
    )


def space_of_earlier(environment: str, size: int, files: int, *, compiles: bool) -> Space:
    """What another environment of the same stack takes, with a build folder: its tools are wheels with some hundred files."""
    more = (COMPILATION[0] * 2, COMPILATION[1] * 2) if compiles else (0, 0)
    return Space(
        size=int((size + more[0]) * MARGIN),
        files=int((files + more[1]) * MARGIN),
        source=f"the size of `{environment}`",
    )


def size_text(size: float) -> str:
    """Bytes for people: `2.1 GB`, `40 MB`."""
    return f"{size / 1e9:.1f} GB" if size >= 1e9 else f"{size / 1e6:.0f} MB"
