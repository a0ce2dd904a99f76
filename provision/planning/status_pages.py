"""The pages about what a site has built: the values of their templates. Pure.

The templates are in `pages/`: HTML that needs no server, no script and no file from elsewhere, and Markdown for a wiki.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from provision.model.overview import Entry, proof_words, size_words
from provision.model.plot import line_plot
from provision.model.proof_result import ProofResult
from provision.model.quoting import Code
from provision.wording import duration


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """An environment in a few words: its state, its proof, its date and size, and the name of its page."""

    name: str
    page: str
    state: str
    proof: str
    built: str
    size: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Index:
    """The first page: a row for each module, a column for each arch, and the environments that no module loads."""

    title: str
    site: str
    written: str
    archs: tuple[str, ...]
    rows: tuple[tuple[str, str, tuple[tuple[Cell, ...], ...]], ...]
    """The module, its stack, and the environments of each arch."""
    others: tuple[Cell, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """The page of one environment."""

    cell: Cell
    module: str
    use: str
    facts: tuple[tuple[str, str], ...]
    made_of: tuple[tuple[str, str], ...]
    checks: tuple[tuple[str, str, str], ...]
    """State (passed, failed or skipped), name and message of each."""
    seconds: tuple[tuple[str, str, int], ...]
    """Each step with its time in words and its share of the longest, in percent."""
    plots: tuple[tuple[str, Code], ...]
    proofs: tuple[tuple[str, str, str], ...]
    """Date, outcome and summary of each."""


def index(title: str, site: str, entries: Sequence[Entry], archs: Sequence[str], written: str) -> Index:
    """The values of the first page. `archs` are those of the profile; archs that only the root has come after them."""
    shown = tuple(dict.fromkeys((*archs, *(entry.environment.arch for entry in entries))))
    modules = sorted({entry.module for entry in entries if entry.module}, reverse=True)
    rows = []
    for module in modules:
        of_module = [entry for entry in entries if entry.module == module]
        stacks = sorted({entry.record.stack for entry in of_module if entry.record})
        columns = tuple(tuple(cell(entry) for entry in of_module if entry.environment.arch == arch) for arch in shown)
        rows.append((module, ", ".join(stacks), columns))
    return Index(
        title=title,
        site=site,
        written=written,
        archs=shown,
        rows=tuple(rows),
        others=tuple(cell(entry) for entry in entries if not entry.module),
    )


def cell(entry: Entry) -> Cell:
    """An environment in a few words."""
    name = str(entry.environment)
    return Cell(
        name=name,
        page=name.replace("/", "-"),
        state=entry.state,
        proof=proof_words(entry),
        built=f"built {entry.record.built[:10]}" if entry.record else "",
        size=size_words(entry),
    )


def page(entry: Entry, use: str) -> Page:
    """The values of the page of one environment; `use` is what a user types to load it."""
    record = entry.record
    facts: list[tuple[str, str]] = [("state", entry.state)]
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
    checks = (*record.checks, *record.verdict.verdict.checks) if record else ()
    longest = max(record.seconds.values(), default=0.0) if record else 0.0
    return Page(
        cell=cell(entry),
        module=entry.module or "",
        use=use,
        facts=tuple(fact for fact in facts if fact[1]),
        made_of=tuple((name, value) for name, value in record.identity.items() if value) if record else (),
        checks=tuple(
            ("skipped" if check.skipped else "passed" if check.passed else "failed", check.name, check.message)
            for check in checks
        ),
        seconds=tuple(
            (name, duration(seconds), round(100 * seconds / longest) if longest else 0)
            for name, seconds in (record.seconds.items() if record else ())
        ),
        plots=tuple(plots(entry)),
        proofs=tuple(
            (
                proof.date,
                "passed" if proof.verdict.passed else "failed",
                "; ".join((proof.summary, *proof.findings)) if proof.verdict.passed else _failures(proof),
            )
            for proof in entry.proofs
        ),
    )


def plots(entry: Entry) -> list[tuple[str, Code]]:
    """The history of throughput and accuracy, if there was more than one proof; and throughput by ranks, if they differ."""
    passed = [proof for proof in entry.proofs if proof.verdict.passed]
    speeds = [(p.date, p.verdict.figures.images_per_second) for p in passed if p.verdict.figures.images_per_second]
    accuracies = [(p.date, 100 * p.verdict.figures.accuracy) for p in passed if p.verdict.figures.accuracy is not None]
    drawn = []
    if len(speeds) > 1:
        drawn.append(("Images per second of each proof", line_plot(speeds, "images per second by date")))
    if len(accuracies) > 1:
        drawn.append(("Accuracy of each proof, %", line_plot(accuracies, "accuracy in percent by date")))
    best: dict[int, float] = {}
    for proof in passed:
        ranks, speed = proof.verdict.figures.ranks, proof.verdict.figures.images_per_second
        if speed:
            best[ranks] = max(speed, best.get(ranks, 0.0))
    if len(best) > 1:
        points = [(f"{ranks} rank{'s' * (ranks != 1)}", speed) for ranks, speed in sorted(best.items())]
        drawn.append(("Images per second by ranks", line_plot(points, "images per second by ranks")))
    return drawn


def _failures(proof: ProofResult) -> str:

    return "; ".join(f"{check.name}: {check.message}" for check in proof.verdict.failures)
