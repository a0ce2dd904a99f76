"""Submitting users' jobs: one that is followed, or with `--sweep 1,2,4` one of each size."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

from provision.commands.shared.following import follow_to_end
from provision.commands.shared.outcome import Args, Outcome
from provision.commands.shared.target import Target
from provision.errors import EXIT_JOB_LEFT, JobError
from provision.jobs.user_script import Script
from provision.machine.files.disk import write
from provision.machine.submission.submit import submit_script
from provision.machine.terminal.console import say
from provision.schedulers.status import ending


def submit_job(args: Args, target: Target, script: Script, text: str, result: dict[str, object]) -> Outcome:
    """Submit the script, and follow the job to its end."""
    name = target.site.scheduler.name
    number, path = submit_script(text, script.batch.name, name)
    again = f"provision job follow {number} --site {target.site.typed}"
    result = {**result, "job": number, "file": path}
    if args.no_wait:
        say(f"submitted job {number} (`{path}`); follow it: `{again}`")
        return Outcome(text=number, result=result, exit_code=EXIT_JOB_LEFT)
    say(f"submitted job {number} (`{path}`)")
    command = script.job.command
    status, _ = follow_to_end(number, again, target.site, target.store, build=False, command=command)
    return Outcome(text=ending(status), result={**result, "state": status.state, "output": status.output})


def finish_sweep(
    args: Args, target: Target, scripts: Sequence[tuple[Script, str]], result: dict[str, object]
) -> Outcome:
    """Submit the scripts, or write them to the folder; the text ends with the command that compares their runs.

    Raises:
        JobError: the scheduler refused a job; the evidence names those that are in the queue already.
        StoreError: a file cannot be written.
    """
    runs = f"{target.site.files.scratch}/runs" if target.site.files.scratch else "runs"
    jobs: list[dict[str, object]] = []
    if args.submit:
        for size, (script, text) in zip(args.sweep, scripts, strict=True):
            try:
                number, path = submit_script(text, script.batch.name, target.site.scheduler.name)
            except JobError as error:
                if jobs:
                    cancel = shlex.join(script.scheduler.cancel_argv(*(str(job["job"]) for job in jobs)))
                    error.evidence += (f"submitted before: `{cancel}` cancels them",)
                raise
            jobs.append({"size": size, "file": path, "job": number})
            say(f"submitted job {number} of size {size} (`{path}`)")
        compare = " ".join(f"{runs}/{job['job']}" for job in jobs)
        text = f"when all have ended: provision scaling {compare}"
        return Outcome(text=text, result={**result, "sweep": jobs}, exit_code=EXIT_JOB_LEFT)
    for size, (script, text) in zip(args.sweep, scripts, strict=True):
        file = Path(args.out, f"{script.batch.name}.sh")
        write(file, text, executable=True)
        jobs.append({"size": size, "file": str(file), "job": None})
    lines = [f"{scripts[0][0].scheduler.SUBMIT} {shlex.quote(str(job['file']))}" for job in jobs]
    compare = " ".join(f"{runs}/JOBID" for _ in jobs)
    lines.append(f"when all have ended: provision scaling {compare}")
    return Outcome(text="\n".join(lines), result={**result, "sweep": jobs})
