"""The rules for threads: those of all ranks must fit the node, and must not be set if a module of the site sets them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from provision.knowledge.frameworks import framework_module
from provision.knowledge.whole_numbers import whole_number
from provision.launch.rank_threads import INTER, INTRA, OMP, explain_too_many_threads
from provision.lint.job_script import JobScript
from provision.lint.rule import Found, Shown, error, warning
from provision.lint.shell_lines import ShellLine
from provision.lint.syntax import given, number_of
from provision.lint.training_script import TrainingProgram
from provision.profile.arch import Arch
from provision.profile.site import Site
from provision.wording import count


def _openmp(job: JobScript) -> tuple[int, ShellLine] | None:
    """The threads of OpenMP that the script gives to its ranks, and the line."""
    for launch in reversed(job.launches):
        threads = launch.number("-e OMP_NUM_THREADS", "=") if launch.launcher == "aprun" else None
        if threads is not None:
            return threads, launch.line
    number = whole_number(job.set_to(OMP))
    return None if number is None else (number, job.variables[OMP])


def _node(job: JobScript, arch: Arch) -> tuple[int, int]:
    """The ranks on each node as the launcher or the directives give them, and the threads of a node that they can use."""
    ranks, threads = job.ranks_per_node, arch.node.threads if arch.node else 0
    for launch in job.launches:
        total = whole_number(launch.ranks) if launch.launcher == "srun" else None
        if total is not None:
            ranks = -(-total // (launch.nodes or job.nodes))
        ranks = launch.ranks_per_node or ranks
        if launch.launcher == "aprun" and arch.node:
            # aprun uses one thread of each core unless `-j` gives more (aprun(1)).
            threads = min(arch.node.threads, arch.node.cores * (launch.number("-j", " ?") or 1))
    return max(1, ranks), threads


@error("{0} × {1} threads{2}, but a node has {3} threads", "{4}", name="threads")
def too_many_threads(job: JobScript, site: Site, arch: Arch) -> Found:
    """More threads than a node has."""
    (ranks, threads), openmp = _node(job, arch), _openmp(job)
    loads = any(name in arch.provided or framework_module((name,)) for _, name in job.modules)
    number = openmp[0] if openmp else arch.threads.omp if arch.threads.owner == "module" and loads else 0
    if arch.node is None or number * ranks <= threads:
        return
    each, most = count(ranks, "rank"), max(1, threads // ranks)
    if openmp:
        yield openmp[1], each, number, "", threads, f"set `{OMP}={most}` or less"
    else:
        place = job.launches[-1].line if job.launches else job.line_of("ntasks-per-node", "ntasks")
        fix = f"fewer ranks on each node, or `export {OMP}={most}` after the modules"
        yield place, each, number, " of the modules", threads, fix


@error("{0}", "inter × intra of at most {1}", name="threads")
def too_many_in_pools(job: JobScript, site: Site, arch: Arch, training: TrainingProgram | None) -> Found:
    """More threads than a node has, in the pools of TensorFlow."""
    ranks, threads = _node(job, arch)
    for place, inter, intra, _ in _pools(job, training):
        if arch.node and inter is not None and intra is not None:
            reason = explain_too_many_threads(arch.node, ranks, inter, intra)
            yield from [(place, reason, max(1, threads // ranks))] if reason else []


@error("{0}", "inter × intra of at most {1}", name="threads")
def too_many_in_program_alone(
    program: TrainingProgram, site: Site, named: Arch | None, job_script: JobScript | None
) -> Found:
    """More threads than a node of the named arch has, in a training job_script without a job."""
    if job_script is None and named:
        yield from too_many_in_pools(JobScript(name=program.file, text=""), site, named, program)


def _pools(job: JobScript, training: TrainingProgram | None) -> Iterator[tuple[Any, int | None, int | None, str]]:
    """The sizes of TensorFlow's pools in variables of the job, and as plain numbers of the program: place, inter, intra, fix."""
    if INTRA in job.variables:
        yield job.variables[INTRA], whole_number(job.set_to(INTER)), whole_number(job.set_to(INTRA)), f"{INTRA}={{}}"
    if training is None:
        return
    script, names = training.script, ("inter_op_parallelism_threads", "intra_op_parallelism_threads")
    sizes = [(call.lineno, [number_of(given(call, name)) for name in names]) for call in script.calls]
    setters = [call for name in names for call in script.calls_of(f"set_{name}")[-1:]]
    sizes += [(call.lineno, [number_of(given(one, "num_threads", 0)) for one in setters]) for call in setters[1:]]
    for line, (inter, intra) in [one for one in sizes if one[1] != [None, None]][:1]:
        yield Shown(line, f"inter {inter}, intra {intra}"), inter, intra, f'int(os.environ["{OMP}"])'


@warning("TensorFlow's intra pool differs from the {0} threads of OpenMP", "{1}")
def intra_omp(job: JobScript, site: Site, arch: Arch, training: TrainingProgram | None) -> Found:
    """A thread pool of TensorFlow that differs from the threads of OpenMP."""
    openmp = _openmp(job)
    for place, _, intra, fix in _pools(job, training) if openmp and arch.node else ():
        if openmp and intra not in (None, 0, openmp[0]):  # 0: TensorFlow decides
            yield place, openmp[0], f"`{fix.format(openmp[0])}` instead of {intra}"


@warning(
    "the modules of `{0}` set `{1}`; another value uses too few or too many threads of the node", "remove this line"
)
def omp_owner(job: JobScript, site: Site, arch: Arch, training: TrainingProgram | None) -> Found:
    """A variable of OpenMP that the modules of the site set."""
    profile = dict(arch.threads.environ)
    if arch.threads.owner != "module":
        return
    for name, line in job.variables.items():
        # The value of the modules is for one rank that has the whole node.
        shared = name == OMP and _node(job, arch)[0] > 1
        if name.startswith(("OMP_", "KMP_")) and profile.get(name) != line.value and not shared:
            yield line, site.name, name
    own = (
        [(node, name) for name, node, _ in training.script.exported if name.startswith(("OMP_", "KMP_"))]
        if training
        else []
    )
    yield from ((Shown(node, name), site.name, name) for node, name in own[:1])
