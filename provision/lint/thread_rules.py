"""The rules for threads: those of all ranks must fit the node, and must not be set if a module of the site sets them."""

from __future__ import annotations

import re
from collections.abc import Iterator

from provision.knowledge.whole_numbers import whole_number
from provision.launch.rank_threads import INTER, INTRA, OMP, explain_too_many_threads
from provision.lint import Finding
from provision.lint.job_script import JobScript, fault, ranks_per_node
from provision.lint.shell_lines import Line
from provision.lint.training import Training
from provision.profile.arch import Arch
from provision.profile.node import Node
from provision.profile.site import Site


def check_threads(script: JobScript, training: Training | None, site: Site, arch: Arch) -> Iterator[Finding]:
    """The threads of the ranks against those of a node."""
    values = {
        name: (number, script.variables[name][1], f"{name}={script.variables[name][0]}")
        for name in (OMP, INTER, INTRA)
        if name in script.variables and (number := whole_number(script.variables[name][0])) is not None
    }
    ranks, launched = _ranks(script)
    for launch, launcher, words in script.started():
        given = (
            re.search(r"(?:^|\s)-e OMP_NUM_THREADS=(\d{1,9})(?=\s|$)", " ".join(words)) if launcher == "aprun" else None
        )
        if given:
            values[OMP] = int(given[1]), launch.number, launch.text
    if arch.threads.owner == "module":
        yield from _owned(script, training, site, arch, ranks)
    if arch.node is None:
        return
    threads = _usable(script, arch.node)
    each = f"{ranks} rank{'s' * (ranks > 1)} ×"
    if OMP in values and values[OMP][0] * ranks > threads:
        number, line, text = values[OMP]
        yield fault(
            script,
            "threads",
            (line, text),
            f"{each} {number} threads, but the job uses {threads} threads of a node",
            f"set `{OMP}={max(1, threads // ranks)}` or less",
        )
    elif OMP not in values and arch.threads.owner == "module" and arch.threads.omp * ranks > threads:
        where = (launched.number, launched.text) if launched else script.line_of("ntasks-per-node", "ntasks")
        yield fault(
            script,
            "threads",
            where,
            f"{each} {arch.threads.omp} threads, which the modules set, but a node has {threads} threads",
            f"fewer ranks on each node, or `export {OMP}={max(1, threads // ranks)}` after the modules",
        )
    if INTER in values and INTRA in values:
        reason = explain_too_many_threads(arch.node, ranks, values[INTER][0], values[INTRA][0])
        if reason:
            yield fault(script, "threads", values[INTRA][1:], reason, f"lower `{INTER}` or `{INTRA}`")
    if training is not None and training.threads is not None:
        line, inter, intra = training.threads
        reason = explain_too_many_threads(arch.node, ranks, inter, intra)
        if reason and inter > 0 and intra > 0:
            yield Finding(
                rule="threads",
                file=training.file,
                line=line,
                message=reason,
                evidence=f"inter {inter}, intra {intra}",
                fix=f"inter × intra of at most {max(1, threads // ranks)}",
            )
    if OMP in values and INTRA in values and values[INTRA][0] not in (0, values[OMP][0]):  # 0: TensorFlow decides
        yield fault(
            script,
            "intra-omp",
            values[INTRA][1:],
            f"TensorFlow's intra pool differs from the {values[OMP][0]} threads of OpenMP",
            f"`{INTRA}={values[OMP][0]}`",
        )


def _usable(script: JobScript, node: Node) -> int:
    """The hardware threads that the launcher uses: aprun uses one of each core unless `-j` gives more (aprun(1))."""
    started = [" ".join(words) for _, launcher, words in script.started() if launcher == "aprun"]
    if not started:
        return node.threads
    given = re.search(r"(?:^|\s)-j ?(\d)(?=\s|$)", started[-1])
    return min(node.threads, node.cores * (int(given[1]) or 1)) if given else node.cores


def _ranks(script: JobScript) -> tuple[int, Line | None]:
    """The ranks on each node as the launcher or the directives give them, and the line of the launcher."""
    ranks, launched = ranks_per_node(script), None
    for line, launcher, words in script.started():
        each = re.search(r"(?:^|\s)(?:-N|--ppn)[ =](\d{1,15})(?=\s|$)", " ".join(words)) if launcher != "srun" else None
        ranks, launched = int(each[1]) if each else ranks, line
    return max(1, ranks), launched


def _owned(script: JobScript, training: Training | None, site: Site, arch: Arch, ranks: int) -> Iterator[Finding]:
    """Variables of OpenMP that the modules of the site set."""
    profile = dict(arch.threads.environ)
    for name, (value, number, _) in script.variables.items():
        if not name.startswith(("OMP_", "KMP_")) or profile.get(name) == value:
            continue
        if name == OMP and ranks > 1:
            continue  # the value of the modules is for one rank that has the whole node
        yield fault(
            script,
            "omp-owner",
            (number, f"{name}={value}"),
            f"the modules of `{site.name}` set it; another value uses too few or too many threads of the node",
            "remove this line",
        )
    if training is not None and training.sets_openmp is not None:
        line, name = training.sets_openmp
        yield Finding(
            rule="omp-owner",
            file=training.file,
            line=line,
            message=f"the modules of `{site.name}` set `{name}`; another value uses too few or too many threads of the node",
            evidence=name,
            fix="remove this line",
        )
