"""What decides how long many ranks take to start: numbers of an environment and of a site, best and worst, each with its source.

"Guess" is in the source of a number that nobody has published or measured. `docs/explanation/start-up.md` uses them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Number:
    """A number between its best and its worst case, and where both come from."""

    best: float
    worst: float
    source: str


HERE = "TensorFlow 2.21 with Horovod on two cores"
NUMBERS: Mapping[str, Number] = {
    "lookups": Number(16_441, 16_441, f"path look-ups of one rank's import; {HERE}, strace"),
    "image_lookups": Number(28, 28, f"the same of a node that mounts the image; {HERE}, strace"),
    "import_s": Number(
        3.9, 7.8, f"the import from warm memory; {HERE}; worst: twice, a guess for 64 ranks of a node at once"
    ),
    "files_bytes": Number(
        3.2e8, 9.7e8, f"bytes of the files that a node reads; {HERE}: a third of what is mapped, or all"
    ),
    "image_size": Number(3.85e8, 3.85e8, f"bytes of the image; {HERE}"),
    "image_bytes": Number(2.37e8, 2.37e8, f"bytes of it that one import reads; {HERE}, strace"),
    "latency_s": Number(0.0002, 0.001, "one look-up of an idle parallel file system over the network; a guess"),
    "lookups_per_s": Number(
        200_000, 50_000, "what one metadata server answers; a common range, without a source of its own"
    ),
    "kept": Number(1, 0, "the share of a node's repeated look-ups that the node answers itself; both extremes"),
    "read_bytes_per_s": Number(200e9, 20e9, "what the file system reads in all, from many files; a guess"),
    "one_file_bytes_per_s": Number(50e9, 5e9, "what it reads of one file, striped or not, on all nodes; a guess"),
    "node_bytes_per_s": Number(10e9, 1e9, "what one node reads; a guess"),
    "read_size": Number(1 << 20, 20_000, f"bytes of a read through the mount: read ahead, or as without it; {HERE}"),
    "hop_bytes_per_s": Number(
        2e9, 0.5e9, "one hop of a broadcast; 8 ranks had 12.4 GiB in 2.0 s on one node (ALCF); a guess"
    ),
    "hash_bytes_per_s": Number(
        1.5e9, 0.28e9, "sha256sum on slow cores; best: a guess for CPUs with instructions for it"
    ),
    "mount_s": Number(0.05, 0.2, HERE),
    "decompress_s": Number(
        1.0, 2.2, f"what the first import through a mount takes longer than the second; {HERE}; best: a guess"
    ),
    "unpack_s": Number(6, 39, f"unsquashfs; {HERE}; worst: OLCF's sbcast_conda unpacks for 39 of its 77 s"),
    "launcher_s": Number(1, 10, "srun; OLCF: 10 s on Frontier, 10 min with torchrun"),
    "mpi_init_s": Number(1, 22, "MVAPICH: under 22 s for 229,376 ranks on 3,584 nodes with KNL, nearly constant"),
}
