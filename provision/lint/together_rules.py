"""The rules for a program that trains alone in a job whose processes are to train together."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator

from provision.lint.arch_choice import archs_for
from provision.lint.job_script import JobScript, Start
from provision.lint.launch_rules import starts_several
from provision.lint.rule import Found, Shown, advice, error, warning
from provision.lint.training_script import TrainingProgram
from provision.profile.site import Site

WRITTEN = re.compile(
    r"# Written by `(\S*provision job (single|mirrored|multiworker|horovod|ddp|mpi|cray-ml-plugin) .*)`\. Submit it "
)
# What the program of each kind of job must use, and how it trains otherwise.
NEEDS = {
    "mirrored": ("`tf.distribute.MirroredStrategy`", "it trains on one of the GPUs"),
    "multiworker": ("`tf.distribute.MultiWorkerMirroredStrategy`", "each worker trains alone"),
    "horovod": ("Horovod", "each rank trains alone"),
    "ddp": ("`torch.distributed`", "each rank trains alone"),
    "mpi": ("MPI", "each rank does the same work"),
    "cray-ml-plugin": ("the plug-in (`ml_comm`)", "each rank trains alone"),
}
# The options that a kind of job on one node does not have.
OF_SEVERAL = {"--nodes", "--ranks-per-node", "--launcher"}
OF_SEVERAL_GPUS = {"--gpus", "--sweep", "--out"}


@error(
    "the job starts several ranks, but nothing in this script makes them work together: each trains alone",
    "use {0}, or start one task",
)
def ranks_alone(job: JobScript, program: TrainingProgram, start: Start | None) -> Found:
    """Several ranks of a program that uses nothing to train together."""
    known = program.uses_tensorflow or program.uses_torch
    seen = program.trains is not None and known and not program.uses and not program.doubts
    if start is None or not seen or _kind(job, start) or not starts_several(job, start.command):
        return
    # The command may give each rank something of its own: a number in its arguments, or another program.
    divided = re.search(r"--multi-prog|%t|RANK|PROCID|LOCALID|NODEID|TASK_PID", job.filled(start.command.line.text))
    if not divided and (not program.apart or any("horovod" in name.lower() for _, name in job.modules)):
        how = "Horovod or a strategy of `tf.distribute`"
        if program.uses_torch:
            how = "`init_process_group()`, `DistributedDataParallel` and `DistributedSampler` of `torch`"
        yield Shown(program.trains or 1, start.command.line.text), how


def _kind(job: JobScript, start: Start | None) -> tuple[str, list[str]] | None:
    """The kind of a job that `provision job` wrote for this program, and that command."""
    paths = {one.path for one in job.starts()}
    one_program = len(paths) < 2 or (start is not None and "$script" in start.command.all_words)
    match = next((match for line in job.comments if (match := WRITTEN.match(line.text))), None)
    if match is None or not one_program:
        return None
    try:
        return match[2], shlex.split(match[1])
    except ValueError:
        return match[2], ["provision", "job", match[2]]


def _other_ways(
    job: JobScript, program: TrainingProgram, start: Start | None, profile: Site | None
) -> Iterator[tuple[str, str, str | None, str]]:
    """If the program trains in another way than its kind of job: the kind, that way, the first doubt, and the right command."""
    kind, command = _kind(job, start) or ("", [])
    uses = program.uses
    if not kind or kind in uses:
        return
    others = [name for name in NEEDS if name in uses and name != "mpi"]
    libraries = [f"it uses {name}" for name in sorted(uses - set(NEEDS))]
    libraries += ["it uses `mpi4py`"] * ("mpi" in uses)  # for anything
    doubt = next(iter((*program.doubts, *libraries)), None)
    right = others[-1] if others else "mpi" if "mpi" in uses else "single"
    yield kind, others[-1] if others else "", doubt, _command(job, command, right, profile)


@error("the job is for {0}, but nothing in this program uses it: {1}", "`{2}`")
def strategy_unused(job: JobScript, program: TrainingProgram, start: Start | None, profile: Site | None) -> Found:
    """A job of `provision job` whose program does not use what the job is for: Horovod, a strategy, MPI."""
    for kind, _, doubt, command in _other_ways(job, program, start, profile):
        if kind != "single" and doubt is None:
            yield Shown(program.trains or 1, ""), *NEEDS[kind], command


@warning("the job is for {0}, but nothing in this program uses it, as far as it can be read: {1}", "`{2}`")
def kind_unseen(job: JobScript, program: TrainingProgram, start: Start | None, profile: Site | None) -> Found:
    """A program that shows no use of what its kind of job is for, but cannot be read as a whole."""
    for kind, _, doubt, command in _other_ways(job, program, start, profile):
        if kind != "single" and doubt is not None:
            yield Shown(program.trains or 1, ""), NEEDS[kind][0], doubt, command


@advice("this uses {0}, but the job starts one process", "`{1}`")
def one_process(job: JobScript, program: TrainingProgram, start: Start | None, profile: Site | None) -> Found:
    """A job of one process whose program can use several."""
    for kind, right, _, command in _other_ways(job, program, start, profile):
        if kind == "single" and right:
            yield Shown(program.trains or 1, ""), NEEDS[right][0], command


def _command(job: JobScript, command: list[str], kind: str, profile: Site | None) -> str:
    """The command that writes a job of another kind, with the options that this kind has, at the site that is named."""
    leave = {"--no-lint"} | (OF_SEVERAL if kind in ("single", "mirrored") else set())
    leave |= OF_SEVERAL_GPUS if kind == "single" else set()
    here: list[str] = []
    if profile is not None:  # the site that is named; the script may be of another one
        typed = {word.rpartition("=")[2] for word in command}
        known = (arch.name for arch in profile.archs if arch.name in typed)
        arch = next(known, archs_for(job, profile)[0].name)
        leave |= {"--site", "--arch"}
        here = ["--site", profile.typed, "--arch", arch]
    words, skips = ["provision", "job", kind], False
    for word in command[3:]:
        name, equals, _ = word.partition("=")
        if name in leave:
            skips = not equals and name != "--no-lint"
        elif not skips:
            words.append(word)
        else:
            skips = False
    return " ".join((shlex.join(words), *here))
