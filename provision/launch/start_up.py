"""How long many ranks take to start, by each way that brings them their files: a model of a few numbers. Pure.

The seconds are those from the start of the processes to the end of the import of the slowest rank. The launcher and MPI_Init take
theirs with every way. A rank does nothing else while it waits for a look-up, so a rank that is alone needs the latency of each;
many ranks need the time in which the metadata server answers all of them. `tools/start_up/emulate.py` tries it: fitted at 1 and
4 nodes, it must predict 16 and 64.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

Numbers = Mapping[str, float]
"""A value for each name of `knowledge.start_up_numbers.NUMBERS`."""
REPEATED = 3
"""Look-ups of a process that joins the mount of its node; measured."""


def seconds_of_lookups(
    clients: float, lookups: float, latency_s: float, per_second: float, between_s: float = 0
) -> float:
    """The seconds until every client has made its look-ups, one after the other, at one server; `between_s` is its own work."""
    return max(between_s + lookups * latency_s, clients * lookups / per_second)


def from_files(nodes: int, ranks: int, of: Numbers) -> float:
    """Each rank opens the plain files."""
    clients = nodes * (1 + (ranks - 1) * (1 - of["kept"]))
    lookups = seconds_of_lookups(clients, of["lookups"], of["latency_s"], of["lookups_per_s"], of["import_s"])
    return lookups + max(nodes * of["files_bytes"] / of["read_bytes_per_s"], of["files_bytes"] / of["node_bytes_per_s"])


def from_shared_image(nodes: int, ranks: int, of: Numbers) -> float:
    """Each node mounts the image where it lies; its blocks come when they are needed."""
    asked = of["image_lookups"] + REPEATED * (ranks - 1)
    lookups = seconds_of_lookups(nodes, asked, of["latency_s"], of["lookups_per_s"], of["import_s"] + of["mount_s"])
    volume = of["image_bytes"]
    blocks = max(nodes * volume / of["one_file_bytes_per_s"], volume / of["node_bytes_per_s"])
    return lookups + blocks + volume / of["read_size"] * of["latency_s"] + of["decompress_s"]


def from_copied_image(nodes: int, ranks: int, of: Numbers) -> float:
    """The image is copied to each node by a tree of hops, compared with its hash, and mounted there."""
    return _copy_s(nodes, of) + of["mount_s"] + of["decompress_s"] + of["import_s"]


def from_memory(nodes: int, ranks: int, of: Numbers) -> float:
    """The image is copied to each node and unpacked into its memory."""
    return _copy_s(nodes, of) + of["unpack_s"] + of["import_s"]


def _copy_s(nodes: int, of: Numbers) -> float:
    size = of["image_size"]
    hops = math.ceil(math.log2(nodes + 1))
    return size / of["node_bytes_per_s"] + hops * size / of["hop_bytes_per_s"] + size / of["hash_bytes_per_s"]


WAYS: Mapping[str, Callable[[int, int, Numbers], float]] = {
    "plain files": from_files,
    "image, shared": from_shared_image,
    "image, copied": from_copied_image,
    "unpacked": from_memory,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """The seconds of one way on so many nodes, in the best and the worst case."""

    way: str
    nodes: int
    ranks: int
    """On all nodes."""
    best_s: float
    worst_s: float


def estimates(sizes: Sequence[int], ranks_per_node: int, best: Numbers, worst: Numbers) -> tuple[Estimate, ...]:
    """Every way on every number of nodes."""
    return tuple(
        Estimate(
            way=way,
            nodes=nodes,
            ranks=nodes * ranks_per_node,
            best_s=seconds(nodes, ranks_per_node, best),
            worst_s=seconds(nodes, ranks_per_node, worst),
        )
        for nodes in sizes
        for way, seconds in WAYS.items()
    )


def advice(rows: Sequence[Estimate], ranks_per_node: int, best: Numbers, worst: Numbers) -> tuple[str, ...]:
    """The way that is the fastest at its worst, for each number of nodes, and from where the image is faster in any case."""
    chosen = {
        nodes: min((row for row in rows if row.nodes == nodes), key=lambda row: row.worst_s)
        for nodes in dict.fromkeys(row.nodes for row in rows)
    }
    lines = []
    for way in dict.fromkeys(row.way for row in chosen.values()):
        sizes = ", ".join(str(nodes) for nodes, row in chosen.items() if row.way == way)
        lines.append(f"recommended on {sizes} nodes: {way}, the fastest in the worst case")
    images = (from_shared_image, from_copied_image)
    certain = (
        nodes
        for nodes in (1 << power for power in range(21))
        if min(way(nodes, ranks_per_node, worst) for way in images) < from_files(nodes, ranks_per_node, best)
    )
    nodes = next(certain, None)
    where = "on no number of nodes" if nodes is None else f"from {nodes} nodes on"
    return (*lines, f"an image at its worst is faster than plain files at their best {where}")


LEFT, RIGHT, TOP, BOTTOM = 60, 450, 20, 300
COLOURS = ("#c0392b", "#2a7ab0", "#1e8449", "#9a7d0a")


def drawing(rows: Sequence[Estimate]) -> str:
    """The range of each way over the ranks as SVG, both axes logarithmic."""
    ranks = sorted({row.ranks for row in rows})
    powers = range(
        math.floor(math.log10(min(row.best_s for row in rows))),
        math.ceil(math.log10(max(row.worst_s for row in rows))) + 1,
    )

    def place(count: int, seconds: float) -> str:
        x = math.log(count / ranks[0]) / (math.log(ranks[-1] / ranks[0]) or 1)
        y = (math.log10(seconds) - powers[0]) / (len(powers) - 1 or 1)
        return f"{LEFT + (RIGHT - LEFT) * x:.1f},{BOTTOM - (BOTTOM - TOP) * y:.1f}"

    def text(words: str, at: str, anchor: str, colour: str = "currentColor") -> str:
        x, y = at.split(",")
        return f'<text x="{x}" y="{y}" text-anchor="{anchor}" fill="{colour}">{words}</text>'

    shapes = []
    for number, way in enumerate(dict.fromkeys(row.way for row in rows)):
        of_way, colour = sorted((row for row in rows if row.way == way), key=lambda row: row.ranks), COLOURS[number]
        outline = [place(row.ranks, row.worst_s) for row in of_way] + [
            place(row.ranks, row.best_s) for row in of_way[::-1]
        ]
        shapes.append(f'<polygon points="{" ".join(outline)}" fill="{colour}" fill-opacity="0.2" stroke="{colour}"/>')
        shapes.append(text(way, f"{LEFT + 10},{TOP + 14 * (number + 1)}", "start", colour))
    sizes = [
        text(f"{count:,}", place(count, 10 ** powers[0]).replace(str(float(BOTTOM)), str(BOTTOM + 20)), "middle")
        for count in ranks
    ]
    times = [
        text(f"{10.0**power:g} s", f"{LEFT - 6},{place(ranks[0], 10.0**power).split(',')[1]}", "end")
        for power in powers
    ]
    return "\n".join(
        (
            '<svg xmlns="http://www.w3.org/2000/svg" width="480" height="340" font-family="sans-serif" font-size="12">',
            f'<path d="M{LEFT},{TOP} V{BOTTOM} H{RIGHT}" fill="none" stroke="currentColor"/>',
            *(*shapes, *sizes, *times),
            text(
                "ranks; each area is from the best case to the worst", f"{(LEFT + RIGHT) // 2},{BOTTOM + 36}", "middle"
            ),
            "</svg>\n",
        )
    )
