"""`provision compat`: which stacks work on a kind of node, why the others do not, and what each TensorFlow needs."""

from __future__ import annotations

import dataclasses
from dataclasses import replace
from typing import Any

from provision.commands.shared.environments import read_store
from provision.commands.shared.offer import offer_for
from provision.commands.shared.outcome import Args, Outcome
from provision.knowledge.combinations import Combinations
from provision.knowledge.frameworks import FRAMEWORKS
from provision.machine.configuration import shipped
from provision.machine.files.tables import read_cells, read_combinations
from provision.machine.root.entries import read_overview
from provision.planning.solver import Fit, Offer, judge_stack, newest_first, recommended
from provision.profile.arch import Arch
from provision.profile.site import Site

# What each framework needs, by the names of the columns of its table.
NEEDS = ("python", "cuda", "cudnn", "nccl", "glibc", "numpy", "protobuf", "keras", "compiler", "cxx", "abi")


def run(args: Args) -> Outcome:
    """Judge every stack."""
    site = shipped.load_site(args.site)
    arch, known, cells = site.arch(args.arch), read_combinations(), read_cells()
    offer = offer_for(site, arch)
    proved = _proved_here(site, arch)
    stacks = newest_first(shipped.stacks_with_versions())
    verdicts = [replace(judge_stack(one, offer, known, cells), proved=proved.get(one.name)) for one in stacks]
    best, default = recommended(verdicts), arch.stack or site.stack
    name = best.stack.name if best else None
    lines = [f"{site.name}, arch {arch.name}: {_describe(offer)}", ""]
    lines += _table(verdicts, name)
    if best:
        lines += ["", f"* recommended: the newest that {'works' if best.state == 'works' else 'may work'} here"]
    lines += [f"`provision build` makes `{default}` unless `--stack` is given"]
    if args.verbose:
        lines += ["", *_needs(known)]
    rows = [
        {
            "stack": verdict.stack.name,
            verdict.stack.framework.name: verdict.stack.framework.version,
            "state": verdict.state,
            "python": verdict.minor,
            "measured": verdict.measured,
            "proved": verdict.proved,
            "against": list(verdict.against),
            "doubts": list(verdict.doubts),
        }
        for verdict in verdicts
    ]
    return Outcome(
        text="\n".join(lines),
        result={
            "site": site.name,
            "arch": arch.name,
            "offer": dataclasses.asdict(offer),
            "stacks": rows,
            "recommended": name,
            "default": default,
            "known": {name: [dict(row) for row in part] for name, part in dataclasses.asdict(known).items()},
        },
    )


def _proved_here(site: Site, arch: Arch) -> dict[str, str]:
    """The day on which an environment of each stack last passed its proof on this arch, by the records below the root."""
    days: dict[str, str] = {}
    for entry in read_overview(read_store(site, lenient=True)):
        of = site.arch_built_as(entry.environment.arch)
        if entry.record and of and of.name == arch.name and entry.state in ("published", "proved"):
            passed = [proof.date for proof in entry.proofs if proof.verdict.passed]
            days[entry.record.stack] = max(days.get(entry.record.stack, ""), *passed, "")
    return {stack: day for stack, day in days.items() if day}


def _describe(offer: Offer) -> str:
    """What is offered, in one line."""
    pythons = "Pythons not known" if offer.pythons is None else f"Python {', '.join(offer.pythons) or 'none'}"
    words = [pythons, f"glibc {offer.glibc}" if offer.glibc else "glibc not known", offer.machine]
    if offer.gpus:
        words.append("CUDA not known" if offer.cuda is None else f"CUDA {' and '.join(offer.cuda) or 'none'}")
    return f"{offer.source} {'; '.join(words)}"


def _table(verdicts: list[Fit], best: str | None) -> list[str]:
    """One line for each stack, with a `*` for the one that is recommended."""
    width = max((len(verdict.stack.name) for verdict in verdicts), default=0)
    lines = []
    for verdict in verdicts:
        reasons = [*verdict.against, *verdict.doubts]
        if verdict.proved:
            reasons = [*verdict.against, f"proved here on {verdict.proved}"]
        elif not reasons:
            reasons = ["built and proved by `make matrix`" if verdict.measured else "not measured, not proved here"]
        python = verdict.minor or "-"
        mark = "*" if verdict.stack.name == best else " "
        lines.append(f"{mark} {verdict.state:<6}  {verdict.stack.name:<{width}}  {python:<4}  {'; '.join(reasons)}")
    return lines


def _needs(known: Combinations) -> list[str]:
    """What each framework needs; a `?` stands behind what was not read from the wheel or the framework's own table."""
    lines = []
    for row in (*reversed(known.tensorflow), *reversed(known.pytorch)):
        parts: list[Any] = []
        for name in NEEDS:
            value = getattr(row, name)
            text = " ".join(value) if isinstance(value, tuple) else str(value)
            parts += [f"{name} {text}{'?' if name in row.unsure else ''}"] if text else []
        lines += [
            f"{FRAMEWORKS[row.framework].title} {row.release}: {'; '.join(parts)}",
            f"  source ({row.checked}): {row.source}",
        ]
    for cuda in known.cuda:
        mark = "" if cuda.sure else "?"
        lines.append(f"CUDA {cuda.version}: driver {cuda.driver}{mark}, compute capabilities {cuda.capabilities}{mark}")
    for horovod in known.horovod:
        span = horovod.first if horovod.first == horovod.last else f"{horovod.first} to {horovod.last}"
        lines.append(f"Horovod 0.28.1 on TensorFlow {span}: {horovod.builds} ({horovod.source})")
    return lines
