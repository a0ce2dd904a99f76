"""`provision job KIND --sweep 1,2,4`: write or submit the job of each size, and print the command that compares them."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Sequence
from pathlib import Path

from provision.commands.shared.outcome import Outcome
from provision.commands.shared.target import Target
from provision.errors import EXIT_JOB_LEFT, ConfigError, JobError
from provision.jobs.user_script import Script
from provision.machine.files.disk import write
from provision.machine.submission.submit import submit_script
from provision.machine.terminal.console import say


def check_sweep(args: argparse.Namespace) -> None:
    """Raise for options of a sweep that do not go together.

    Raises:
        ConfigError: a sweep is neither submitted nor written, or both; or `--out` without a sweep.
    """
    if args.sweep is None:
        if args.out is not None:
            raise ConfigError("`--out` is for `--sweep`", hint="write one script with `> FILE`", kind="usage")
    elif bool(args.out) == args.submit:
        given = "both were given" if args.submit else "neither was given"
        raise ConfigError(
            "`--sweep` needs either `--submit` or `--out DIR`",
            evidence=[given],
            hint="`--submit` submits the jobs; `--out DIR` writes their scripts to a folder",
            kind="usage",
        )


def finish_sweep(
    args: argparse.Namespace, target: Target, scripts: Sequence[tuple[Script, str]], result: dict[str, object]
) -> Outcome:
    """Submit the scripts, or write them to the folder; the text ends with the command that compares their runs.

    Raises:
        JobError: the scheduler refused a job; the evidence names those that are in the queue already.
        StoreError: a file cannot be written.
    """
    runs = f"{target.site.files.scratch}/runs" if target.site.files.scratch else "runs"
    jobs: list[dict[str, object]] = []
    if args.submit:
        _submit(target, scripts, jobs, args.sweep)
        compare = " ".join(f"{runs}/{job['job']}" for job in jobs)
        text = f"when all have ended: provision scaling {compare}"
        return Outcome(text=text, result={**result, "sweep": jobs}, exit_code=EXIT_JOB_LEFT)
    for size, (script, text) in zip(args.sweep, scripts, strict=True):
        path = Path(args.out, f"{script.name}.sh")
        write(path, text, executable=True)
        jobs.append({"size": size, "file": str(path), "job": None})
    lines = [f"{scripts[0][0].scheduler.SUBMIT} {shlex.quote(str(job['file']))}" for job in jobs]
    compare = " ".join(f"{runs}/JOBID" for _ in jobs)
    lines.append(f"when all have ended: provision scaling {compare}")
    return Outcome(text="\n".join(lines), result={**result, "sweep": jobs})


def _submit(
    target: Target, scripts: Sequence[tuple[Script, str]], jobs: list[dict[str, object]], numbers: Sequence[int]
) -> None:
    for size, (script, text) in zip(numbers, scripts, strict=True):
        try:
            number, path = submit_script(text, script.name, target.site.scheduler.name)
        except JobError as error:
            if jobs:
                cancel = shlex.join(script.scheduler.cancel_argv(*(str(job["job"]) for job in jobs)))
                error.evidence += (f"submitted before: `{cancel}` cancels them",)
            raise
        jobs.append({"size": size, "file": path, "job": number})
        say(f"submitted job {number} of size {size} (`{path}`)")
