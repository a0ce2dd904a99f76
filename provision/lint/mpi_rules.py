"""The rules for mpi4py: how a program starts and ends MPI, and what happens to the others if one of its ranks fails."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from provision.lint.job_script import JobScript, Start
from provision.lint.launch_rules import starts_several
from provision.lint.rule import Found, error, warning
from provision.lint.syntax import Syntax, dotted, given, value_of
from provision.lint.training_script import TrainingProgram
from provision.profile.site import Site

# Calls with which a rank waits for others.
WAITS = {
    *("bcast", "Bcast", "scatter", "Scatter", "Scatterv", "gather", "Gather", "Gatherv", "allgather", "Allgather"),
    *("reduce", "Reduce", "allreduce", "Allreduce", "alltoall", "Alltoall", "barrier", "Barrier", "recv", "Recv"),
    *("sendrecv", "Sendrecv"),
}
STARTS_MPI = {"Init", "Init_thread"}


@warning(
    "if rank {0} ends here, the others wait for it until the time of the job is over",
    "`python -m mpi4py {1}`, which ends all ranks when one fails",
)
def rank_dies(job: JobScript, program: TrainingProgram, script: Syntax, start: Start | None) -> Found:
    """A rank that may fail while the others wait for it, without `-m mpi4py`."""
    if start is None or "mpi" not in program.uses or not starts_several(job, start.command):
        return
    # The processes of PyTorch and Horovod have limits of their own, and Horovod ends all of them.
    ends_all = {"Abort", "excepthook", "set_errhandler"} & program.names or program.uses - {"mpi"}
    if "mpi4py" in start.command.all_words or ends_all or not program.called & WAITS:
        return
    for node in _failures(script):
        condition = _condition(script, node)
        if condition and script.class_of(node) is None:
            yield node, "0" if "== 0" in condition else "of this branch", start.path
            return


def _failures(script: Syntax) -> Iterator[ast.stmt | ast.expr]:
    """Where a rank ends with an error by itself, or reads a file that may not be there; not within `try`."""
    failing: list[ast.stmt | ast.expr] = [*script.of(ast.Raise), *script.of(ast.Assert)]
    failing += [call for call in script.calls_of("open") if value_of(given(call, "mode", 1)) in (None, "r", "rb")]
    failing += script.calls_of("exit", "_exit", "loadtxt", "genfromtxt", "read_csv", "imread", "File")
    failing += [call for call in script.calls if dotted(call.func) in ("np.load", "numpy.load")]
    for node in sorted(failing, key=lambda node: node.lineno):
        if not script.is_inside(node, ast.Try):
            yield node


def _condition(script: Syntax, node: ast.AST) -> str:
    """The nearest condition of a rank around a node that is true there; empty if there is none."""
    for inner, outer in script.steps(node):
        if isinstance(outer, ast.If) and inner is not outer.test and script.by_rank(outer.test):
            return ast.unparse(outer.test) if inner in outer.body else "else"
    return ""


def _settings(script: Syntax) -> dict[str, tuple[ast.stmt | ast.expr, object]]:
    """The settings of `mpi4py.rc` in a script, each with its place and value."""
    found: dict[str, tuple[ast.stmt | ast.expr, object]] = {}
    for node in script.of(ast.Assign):
        for target in node.targets:
            if isinstance(target, ast.Attribute) and dotted(target.value) in ("mpi4py.rc", "rc"):
                found[target.attr] = node, value_of(node.value)
    for call in script.calls:
        if dotted(call.func) in ("mpi4py.rc", "rc"):
            found.update({word.arg: (call, value_of(word.value)) for word in call.keywords if word.arg})
    return found


@error("{0}", "{1}")
def mpi_settings(program: TrainingProgram, script: Syntax) -> Found:
    """Settings of `mpi4py.rc` that come too late, that nobody makes good, or with which Horovod crashes."""
    settings = _settings(script) if "mpi" in program.uses else {}
    imported = min((one.line for one in script.imports if "mpi4py.MPI" in one.modules), default=None)
    for name, (place, value) in settings.items():
        level = name == "thread_level" and value in ("single", "funneled", "serialized")
        if imported is not None and imported < place.lineno:
            yield (
                place,
                f"MPI starts where `mpi4py.MPI` is imported, line {imported}, so this has no effect",
                ("move it before that import"),
            )
        elif name in ("initialize", "autoinit") and value is False and not (program.called & STARTS_MPI):
            if not program.horovod:
                yield place, "nothing starts MPI: the first call of it ends the program", "`MPI.Init()`, or remove it"
        elif program.horovod and (level or (name in ("threads", "threaded") and value is False)):
            yield (
                place,
                "Horovod calls MPI from a thread of its own, and crashes if MPI does not allow several",
                ('`mpi4py.rc.thread_level = "multiple"`, or remove it'),
            )
        elif name == "finalize" and value is False and "Finalize" not in program.called and not program.horovod:
            yield (
                place,
                "nothing ends MPI, which launchers report as a failure of the job",
                "`MPI.Finalize()` at the end",
            )


@error(
    "MPI of `{0}` is built for GPUs and takes one when it starts, in line {1}: it does not see this variable",
    "set it before `from mpi4py import MPI`, or by a script that starts each rank",
)
def gpu_after_mpi(script: Syntax, site: Site) -> Found:
    """CUDA_VISIBLE_DEVICES that is set after MPI has started, where MPI uses the GPUs."""
    aware = any(
        str(dict((*arch.environ, *arch.build_environ)).get("MPICH_GPU_SUPPORT_ENABLED")) == "1" for arch in site.archs
    )
    starts = [one.line for one in script.imports if "mpi4py.MPI" in one.modules]
    if not aware or not starts or _settings(script).get("initialize"):
        return
    late = [node for name, node, _ in script.exported if name == "CUDA_VISIBLE_DEVICES" and node.lineno > min(starts)]
    yield from ((node, site.name, min(starts)) for node in late[:1])
