"""The pages about what a site has built: the values of their templates. Pure.

The templates are in `pages/`: HTML that needs no server, no script and no file from elsewhere, and Markdown for a wiki.
"""

from __future__ import annotations

from collections.abc import Sequence
from xml.etree import ElementTree

from provision.knowledge.frameworks import FRAMEWORKS
from provision.model.quoting import Code, write_xml
from provision.model.verdict import ProofResult
from provision.planning.overview import Entry, mark_words, proof_words, size_words
from provision.wording import count, duration

WIDTH, HEIGHT = 480, 160
LEFT, RIGHT, TOP, BOTTOM = 56, 470, 14, 130


def index(title: str, site: str, entries: Sequence[Entry], archs: Sequence[str], written: str) -> dict[str, object]:
    """The values of the first page: a row for each module, a column for each arch, and what no module loads.

    `archs` are those of the profile; archs that only the root has come after them. A row has the module, its stacks, and the
    cells of each arch.
    """
    shown = tuple(dict.fromkeys((*archs, *(entry.environment.arch for entry in entries))))
    modules = sorted({entry.module for entry in entries if entry.module}, reverse=True)
    rows = []
    for module in modules:
        of_module = [entry for entry in entries if entry.module == module]
        stacks = sorted({entry.record.stack for entry in of_module if entry.record})
        columns = tuple(tuple(cell(entry) for entry in of_module if entry.environment.arch == arch) for arch in shown)
        rows.append((module, ", ".join(stacks), columns))
    others = [cell(entry) for entry in entries if not entry.module]
    return {"title": title, "site": site, "written": written, "archs": shown, "rows": rows, "others": others}


def frameworks_of(entries: Sequence[Entry]) -> str:
    """The titles of the frameworks of these environments: `TensorFlow and PyTorch`."""
    built = {entry.record.identity.get("framework", "").split(" ")[0] for entry in entries if entry.record}
    titles = [one.title for one in FRAMEWORKS.values() if built & set(one.distributions)]
    return " and ".join(titles) or "Environments"


def cell(entry: Entry) -> dict[str, str]:
    """An environment in a few words, and the name of its page."""
    name = str(entry.environment)
    return {
        "name": name,
        "page": name.replace("/", "-"),
        "state": entry.state,
        "proof": proof_words(entry),
        "built": f"built {entry.record.built[:10]}" if entry.record else "",
        "size": size_words(entry),
        "marks": mark_words(entry.marks),
    }


def page(entry: Entry, use: str) -> dict[str, object]:
    """The values of the page of one environment; `use` is what a user types to load it.

    A check has its state, name and message; a step its time in words and its share of the longest, in percent; a proof its
    date, outcome and summary.
    """
    record = entry.record
    facts: list[tuple[str, str]] = [("state", entry.state), ("marks", mark_words(entry.marks))]
    if record is not None:
        facts += [
            ("module", record.module),
            ("stack", record.stack),
            ("prefix", record.prefix),
            ("built", f"{record.built} on {record.host}" + (f", job {record.job}" if record.job else "")),
            ("modules of the site", " ".join(record.modules) or "none"),
            ("versions", ", ".join(f"{name} {value}" for name, value in sorted((record.versions or {}).items()))),
            ("proof", record.proof),
            ("made by", f"provision {record.provision}"),
        ]
    longest = max(record.seconds.values(), default=0.0) if record else 0.0
    return {
        "cell": cell(entry),
        "module": entry.module,
        "use": use,
        "facts": [fact for fact in facts if fact[1]],
        "made_of": [(name, value) for name, value in record.identity.items() if value] if record else (),
        "checks": [
            ("skipped" if check.skipped else "passed" if check.passed else "failed", check.name, check.message)
            for check in ((*record.checks, *record.verdict.verdict.checks) if record else ())
        ],
        "seconds": [
            (name, duration(seconds), round(100 * seconds / longest) if longest else 0)
            for name, seconds in (record.seconds.items() if record else ())
        ],
        "plots": plots(entry),
        "proofs": [_proof(proof) for proof in entry.proofs],
    }


def plots(entry: Entry) -> list[tuple[str, Code]]:
    """The history of throughput and accuracy, if there was more than one proof; and throughput by ranks, if they differ."""
    passed = [proof for proof in entry.proofs if proof.verdict.passed]
    figures = [(proof.date, proof.verdict.figures) for proof in passed]
    speeds = [(date, one.images_per_second) for date, one in figures if one.images_per_second]
    accuracies = [(date, 100 * one.accuracy) for date, one in figures if one.accuracy is not None]
    best: dict[int, float] = {}
    for _, one in figures:
        best[one.ranks] = max(one.images_per_second or 0.0, best.get(one.ranks, 0.0))
    by_ranks = [(count(ranks, "rank"), speed) for ranks, speed in sorted(best.items()) if speed]
    plotted = (
        ("Images per second of each proof", "images per second by date", speeds),
        ("Accuracy of each proof, %", "accuracy in percent by date", accuracies),
        ("Images per second by ranks", "images per second by ranks", by_ranks),
    )
    return [(title, line_plot(points, label)) for title, label, points in plotted if len(points) > 1]


def _proof(proof: ProofResult) -> tuple[str, str, str]:
    if proof.verdict.passed:
        return proof.date, "passed", "; ".join((proof.summary, *proof.findings))
    return proof.date, "failed", "; ".join(f"{check.name}: {check.message}" for check in proof.verdict.failures)


def line_plot(points: Sequence[tuple[str, float]], title: str) -> Code:
    """A line through some points as SVG, in the colour of the text around it; at least one point is needed.

    The values are in their order, from 0; the label of the first and the last stands below.
    """
    top = max((value for _, value in points), default=0) or 1
    svg = ElementTree.Element(
        "svg", {"xmlns": "http://www.w3.org/2000/svg", "viewBox": f"0 0 {WIDTH} {HEIGHT}", "role": "img"}
    )
    ElementTree.SubElement(svg, "title").text = title

    def place(index: int, value: float) -> tuple[float, float]:
        share = index / (len(points) - 1) if len(points) > 1 else 0.5
        return LEFT + (RIGHT - LEFT) * share, BOTTOM - (BOTTOM - TOP) * value / top

    def text(words: str, x: float, y: float, anchor: str) -> None:
        look = {"x": f"{x:.0f}", "y": f"{y:.0f}", "text-anchor": anchor, "font-size": "11", "fill": "currentColor"}
        ElementTree.SubElement(svg, "text", look).text = words

    axes = {"d": f"M{LEFT},{TOP} V{BOTTOM} H{RIGHT}", "fill": "none", "stroke": "currentColor", "opacity": "0.4"}
    ElementTree.SubElement(svg, "path", axes)
    places = [place(index, value) for index, (_, value) in enumerate(points)]
    line = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
    ElementTree.SubElement(svg, "polyline", {"points": line, "fill": "none", "stroke": "#2a7ab0", "stroke-width": "2"})
    for (x, y), (label, value) in zip(places, points, strict=True):
        dot = ElementTree.SubElement(svg, "circle", {"cx": f"{x:.1f}", "cy": f"{y:.1f}", "r": "4", "fill": "#2a7ab0"})
        ElementTree.SubElement(dot, "title").text = f"{label}: {value:g}"
    text(f"{top:g}", LEFT - 6, TOP + 4, "end")
    text("0", LEFT - 6, BOTTOM + 4, "end")
    text(points[0][0], LEFT, BOTTOM + 18, "start")
    if len(points) > 1:
        text(points[-1][0], RIGHT, BOTTOM + 18, "end")
    return write_xml(svg)
