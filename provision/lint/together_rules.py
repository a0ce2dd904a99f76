"""The rules for a program that trains alone in a job whose processes are to train together."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator

from provision.lint import Finding
from provision.lint.job_script import JobScript, Start
from provision.lint.launch_rules import starts_several
from provision.lint.training import Training

WRITTEN = re.compile(
    r"# Written by `(\S*provision job (single|mirrored|multiworker|horovod|cray-ml-plugin) .*)`\. Submit it "
)
# What the program of each kind of job must use.
NEEDS = {
    "mirrored": "`tf.distribute.MirroredStrategy`",
    "multiworker": "`tf.distribute.MultiWorkerMirroredStrategy`",
    "horovod": "Horovod",
    "cray-ml-plugin": "the plug-in (`ml_comm`)",
}
ALONE = {
    "mirrored": "it trains on one of the GPUs",
    "multiworker": "each worker trains alone",
    "horovod": "each rank trains alone",
    "cray-ml-plugin": "each rank trains alone",
}
# The options that a kind of job on one node does not have.
OF_SEVERAL = ("--nodes", "--ranks-per-node", "--launcher")
OF_SEVERAL_GPUS = ("--gpus", "--sweep", "--out")


def written_as(script: JobScript) -> tuple[str | None, list[str]]:
    """The kind of a job that `provision job` wrote, and that command; None for a script of another origin."""
    for line in script.comments:
        match = WRITTEN.match(line.text)
        if match:
            try:
                return match[2], shlex.split(match[1])
            except ValueError:
                return match[2], ["provision", "job", match[2]]
    return None, []


def check_together(script: JobScript, training: Training, start: Start | None) -> Iterator[Finding]:
    """A program must train in the way of its job, and several ranks of it must train together."""
    kind, command = written_as(script)
    together = training.together
    paths = {start.path for start in script.starts()}
    if kind is not None and (len(paths) < 2 or (start is not None and "$script" in start.command.all_words)):
        yield from _of_kind(training, kind, command)
    elif (
        training.trains is not None
        and training.uses_tensorflow
        and not together.uses
        and not together.doubts
        and start is not None
        and starts_several(script, start.command)
        and not _divided(script, start)
    ):
        loaded = next((line for line, name in script.modules() if "horovod" in name.lower()), None)
        if loaded is not None or not together.apart:
            yield Finding(
                rule="ranks-alone",
                file=training.file,
                line=training.trains,
                message="the job starts several ranks, but nothing in this script makes them work together: each trains alone",
                evidence=start.command.line.text[:300].replace("\n", " "),
                fix="use Horovod or a strategy of `tf.distribute`, or start one task",
            )


def _of_kind(training: Training, kind: str, command: list[str]) -> Iterator[Finding]:
    together, rule = training.together, "horovod-unused" if kind == "horovod" else "strategy-unused"
    others = [name for name in NEEDS if name in together.uses]
    if kind == "single":
        if others:
            yield _finding(
                training,
                "one-process",
                f"this uses {NEEDS[others[-1]]}, but the job starts one process",
                command,
                others[-1],
            )
        return
    if kind in together.uses:
        return
    libraries = sorted(name for name in together.uses if name not in NEEDS)
    doubts = [*together.doubts, *(f"it uses {name}" for name in libraries)]
    right = others[-1] if others else "single"
    message = f"the job is for {NEEDS[kind]}, but nothing in this program uses it"
    if doubts:
        yield _finding(training, "kind-unseen", f"{message}, as far as it can be read: {doubts[0]}", command, right)
    else:
        yield _finding(training, rule, f"{message}: {ALONE[kind]}", command, right)


def _finding(training: Training, rule: str, message: str, command: list[str], right: str) -> Finding:
    return Finding(
        rule=rule,
        file=training.file,
        line=training.trains or 1,
        message=message,
        evidence="",
        fix=f"`{_command(command, right)}`",
    )


def _command(command: list[str], kind: str) -> str:
    """The command that writes a job of another kind, with the options that this kind has."""
    leave = {"--no-lint"} | (set(OF_SEVERAL) if kind in ("single", "mirrored") else set())
    leave |= set(OF_SEVERAL_GPUS) if kind == "single" else set()
    words, skips = ["provision", "job", kind], False
    for word in command[3:]:
        name, equals, _ = word.partition("=")
        if name in leave:
            skips = not equals and name != "--no-lint"
        elif not skips:
            words.append(word)
        else:
            skips = False
    return shlex.join(words)


def _divided(script: JobScript, start: Start | None) -> bool:
    """Whether the command gives each rank something of its own: a number in its arguments, or another program."""
    text = start.command.line.text if start is not None else ""
    return re.search(r"--multi-prog|%t|RANK|PROCID|LOCALID|NODEID|TASK_PID", script.filled(text)) is not None
