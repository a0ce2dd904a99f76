"""Build jobs: the script that carries a plan to a node, its submission, and following it to its end."""

from __future__ import annotations

import json
import os
import re
import shlex
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from provision.errors import CommandError, ConfigError, JobError
from provision.events import Event, Listener, parse_event
from provision.knowledge.failures import explain, telling
from provision.model.plan import Plan
from provision.model.reader import VARIABLE
from provision.render import render
from provision.request import Request
from provision.run import capture
from provision.schedulers import slurm
from provision.store import Store, write

# How to reach the package index: a mirror, a proxy, whom to trust.
CARRIED = (
    *("PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_CERT", "PIP_CONFIG_FILE", "UV_DEFAULT_INDEX", "UV_INDEX"),
    *(
        "SSL_CERT_FILE",
        "http_proxy",
        "https_proxy",
        "no_proxy",
        "HTTP_PROXY",
        "HTTPS_PROXY",
        "NO_PROXY",
        "UV_CACHE_DIR",
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildJob:
    """A job script, and the name under which its output and events stand in `jobs/`."""

    name: str
    text: str


def build_job(request: Request, plan: Plan, store: Store) -> BuildJob:
    """The script that builds `plan` inside a job of the site's scheduler.

    Raises:
        ConfigError: the site has no scheduler.
    """
    site, arch = request.site, request.arch
    if site.scheduler.name == "none":
        raise ConfigError(
            f"site `{site.name}` has no scheduler, there is no job to write",
            hint=f"`provision build --site {site.name} --arch {arch.name}` builds here",
        )
    name = f"provision-{plan.environment.arch}-{plan.environment.name}-{plan.environment.version}"
    jobs = str(store.layout.jobs)
    arguments = ("--site", site.origin, "--arch", arch.name, "--stack", request.stack.name)
    text = render(
        "jobs/build.sh.j2",
        command=f"provision job build --site {site.name} --arch {arch.name}",
        submit="sbatch",
        environment=str(plan.environment),
        directives=slurm.directives(name, f"{jobs}/{name}-%j.out", arch.job, arch.smoke, site.scheduler),
        cwd=os.getcwd(),
        environ=_carried(site.origin),
        tool=shlex.join((sys.executable, "-m", "provision")),
        arguments=shlex.join(arguments),
        jobs=jobs,
        name=name,
        plan=json.dumps({"environment": str(plan.environment), "identity": dict(plan.identity)}, indent=1),
    )
    return BuildJob(name=name, text=text)


def _carried(origin: str) -> tuple[tuple[str, str], ...]:
    """The variables that a job needs to read the same files: sites may start jobs with an empty environment."""
    used = VARIABLE.findall(Path(origin).read_text(encoding="utf-8"))
    names = dict.fromkeys(("PROVISION_ROOT", "PROVISION_CONFIG", "PROVISION_INSTALLER", *used, *CARRIED))
    return tuple((name, os.environ[name]) for name in names if os.environ.get(name))


def submit(job: BuildJob, store: Store) -> str:
    """Write the script to `jobs/` and submit it; returns the job id.

    Raises:
        JobError: the scheduler did not take it.
    """
    script = Path(store.layout.jobs) / f"{job.name}.sh"
    write(script, job.text, executable=True)
    argv = slurm.submit_argv(str(script))
    done = capture(argv, os.environ)
    number = slurm.parse_job_id(done.stdout)
    if done.returncode or number is None:
        raise JobError(
            "Slurm did not take the job",
            state="SUBMIT_FAILED",
            evidence=(done.stderr or done.stdout).strip().splitlines()[:6],
            hint=f"`{shlex.join(argv)}`; the job's options stand in the site's file under `job`",
        )
    return number


def status(job: str) -> slurm.JobStatus | None:
    """What the scheduler says of a job; None where it does not know it (any more).

    Raises:
        CommandError: the scheduler does not answer.
    """
    done = capture(slurm.status_argv(job), os.environ)
    if done.returncode and "Invalid job id" not in done.stderr:
        raise CommandError("Slurm does not answer", evidence=done.stderr.splitlines()[:3])
    return slurm.parse_status(done.stdout) if done.returncode == 0 else None


@dataclass(slots=True)
class Follower:
    """Reads what a job says of itself, from where it stopped reading."""

    path: Path
    offset: int = 0

    def events(self) -> list[Event]:
        """The events since the last call; an unfinished last line waits for its rest."""
        try:
            with self.path.open("rb") as file:
                file.seek(self.offset)
                new = file.read()
        except OSError:
            return []
        whole = new[: new.rfind(b"\n") + 1]
        self.offset += len(whole)
        return [event for event in map(parse_event, whole.decode(errors="replace").splitlines()) if event]


def follow(job: str, store: Store, listen: Listener, pause: Callable[[float], None] = time.sleep) -> slurm.JobStatus:
    """Follow a job to its end: every change of its state, every step of its build.

    Raises:
        JobError: it failed, was cancelled, ran out of time, or is not known; told as exactly that.
    """
    jobs, last = Path(store.layout.jobs), ""
    follower: Follower | None = None
    while True:
        try:
            now = status(job)
        except CommandError as error:
            # A controller that restarts is no news of the job.
            if last != error.message:
                listen(Event(kind="say", text=f"{error.message}, trying again: {' '.join(error.evidence)}"))
                last = error.message
            pause(5.0)
            continue
        found = next(iter(sorted(jobs.glob(f"*-{job}.events.jsonl"))), None)
        if follower is None and found:
            follower = Follower(found)
        for event in follower.events() if follower else ():
            listen(event)
        if now is None:
            raise JobError(
                f"Slurm does not know job {job} (any more)",
                state="UNKNOWN",
                evidence=[f"its output: {path}" for path in sorted(jobs.glob(f"*-{job}.out"))],
                hint="`provision list` shows whether it published",
            )
        why = slurm.waiting(now) if now.state == "PENDING" else ""
        word = f"job {job} is {now.state.lower()}" + (f" ({why})" if why else "")
        if now.state == "RUNNING":
            word += f" on {now.nodes}"
        if word != last and not now.ended:
            listen(Event(kind="say", text=word))
            last = word
        if now.ended:
            for event in follower.events() if follower else ():
                listen(event)
            return _ended(now)
        pause(1.0)


def _ended(now: slurm.JobStatus) -> slurm.JobStatus:
    if now.state == "COMPLETED":
        return now
    try:
        lines = Path(now.output).read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    told = our_error(lines)
    log = next((found[1] for line in told if (found := re.match(r"\s*log: (.*)", line))), now.output)
    known = explain(lines)
    own = {
        "TIMEOUT": "raise `job.time` in the site's file, and run the same command again: it goes on where it stopped",
        "CANCELLED": "run the same command again: it goes on where it stopped",
        "OUT_OF_MEMORY": "ask for more in `job.options` of the site's file (`--mem=…`)",
    }.get(now.state)
    raise JobError(
        slurm.ending(now) + (f": {known.cause}" if known and not told and own is None else ""),
        state=now.state,
        evidence=[*(told or telling(lines)), f"output: {now.output}"],
        hint=own or next((line.removeprefix("hint: ") for line in lines if line.startswith("hint: ")), f"read `{log}`"),
        log=log,
    )


def our_error(lines: Sequence[str]) -> list[str]:
    """What `provision build` itself said at the end of a job's output: its error, without the hint."""
    starts = [number for number, line in enumerate(lines) if line.startswith("error: ")]
    if not starts:
        return []
    block = list(lines[starts[-1] :])
    return block[: block.index("")] if "" in block else block
