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
from provision.jobs.limits import refuse
from provision.knowledge.failures import explain, telling
from provision.machine.disk import write
from provision.machine.render import render
from provision.machine.run import capture
from provision.machine.shipped import search_path, shipped_root
from provision.machine.store import Store
from provision.model.batch import Batch
from provision.model.event import Event, Listener, parse_event
from provision.model.plan import Plan, held
from provision.model.request import Request
from provision.planning.preflight import refuse_runtime
from provision.profile.arch import Arch
from provision.profile.reader import VARIABLE
from provision.profile.scheduler import SchedulerName
from provision.profile.site import Site
from provision.profile.stack import Stack
from provision.proof.shape import proof_environ, proof_shape
from provision.schedulers import TITLES, dialect
from provision.schedulers.status import JobStatus, ending

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
    """A job script, its scheduler, and the name under which its output and events stand in `jobs/`."""

    name: str
    text: str
    scheduler: SchedulerName


def build_job(request: Request, plan: Plan, store: Store, account: str | None = None) -> BuildJob:
    """The script that builds `plan` inside a job of the site's scheduler; the node holds what it finds against the plan.

    Raises:
        ConfigError: the site has no scheduler, or would not take such a job.
    """
    env = plan.environment
    return _script(
        request.site,
        request.arch,
        request.stack,
        store,
        account=account,
        environment=str(env),
        name=f"provision-{env.arch}-{env.name}-{env.version}-{env.fingerprint}",
        plan=json.dumps({"environment": str(env), "held": held(plan)}, indent=1),
    )


def profile_job(site: Site, arch: Arch, stack: Stack, store: Store, account: str | None = None) -> BuildJob:
    """The script of a build by the site's profile alone: for reading on a machine that is not there. The node plans.

    Raises:
        ConfigError: the site has no scheduler, or would not take such a job.
    """
    name, version = stack.module.split("/")
    return _script(
        site,
        arch,
        stack,
        store,
        account=account,
        environment=f"{arch.name}/{stack.module}",
        name=f"provision-{arch.name}-{name}-{version}",
        plan=None,
    )


def _script(
    site: Site,
    arch: Arch,
    stack: Stack,
    store: Store,
    *,
    account: str | None,
    environment: str,
    name: str,
    plan: str | None,
) -> BuildJob:
    if site.scheduler.name == "none":
        raise ConfigError(
            f"site `{site.name}` has no scheduler, there is no job to write",
            hint=f"`provision build --site {site.name} --arch {arch.name}` builds here",
        )
    refuse_runtime(site)
    jobs, spoken = str(store.layout.jobs), dialect(site.scheduler.name)
    arguments = ("--site", os.path.abspath(site.origin), "--arch", arch.name, "--stack", stack.name)
    profile = "" if plan else " --profile"
    text = render(
        "jobs/build.sh.j2",
        command=f"provision job build --site {site.typed} --arch {arch.name}{profile}",
        submit=spoken.SUBMIT,
        environment=environment,
        directives=spoken.directives(build_batch(site, arch, stack, name, spoken.output_path(jobs, name), account)),
        umask=site.files.umask,
        cwd=config_here(),
        environ=(*_carried(site), *_reach(site), *proof_environ(site, arch, stack)),
        job_id=spoken.JOB_ID,
        submit_folder=None if spoken.STARTS_IN_SUBMIT_FOLDER else spoken.SUBMIT_FOLDER,
        temporary=site.files.temporary,
        tool=shlex.join((sys.executable, "-I", "-m", "provision")),
        arguments=shlex.join(arguments),
        jobs=jobs,
        name=name,
        plan=plan,
    )
    return BuildJob(name=name, text=text, scheduler=site.scheduler.name)


def build_batch(site: Site, arch: Arch, stack: Stack, name: str, output: str, account: str | None = None) -> Batch:
    """What a build asks for: as many nodes, ranks and GPUs as its proof needs. `account` comes before the file's.

    Raises:
        ConfigError: the site would not take such a job; every reason is told.
    """
    job, proof = arch.job, proof_shape(arch, stack)
    batch = Batch(
        scheduler=site.scheduler,
        name=name,
        output=output,
        nodes=proof.nodes,
        ranks_per_node=proof.ranks_per_node,
        time=job.time,
        partition=job.partition,
        constraint=job.constraint,
        account=account or job.account,
        qos=job.qos,
        exclusive=job.exclusive,
        cpus_per_rank=proof.cpus_per_rank,
        gpus_per_node=proof.gpus_per_node,
        gpu_model=arch.gpu.model if arch.gpu else None,
        memory=job.memory,
        filesystems=job.filesystems,
        umask=site.files.umask,
        options=job.options,
    )
    refuse(site, arch, batch)
    return batch


def _reach(site: Site) -> tuple[tuple[str, str], ...]:
    """How the nodes of a build reach the network, and where they put what is temporary."""
    proxies = site.network.environ if site.network.compute == "proxy" else ()
    carried = {name for name, _ in _carried(site)}
    return tuple(pair for pair in proxies if pair[0] not in carried)


def _carried(site: Site) -> tuple[tuple[str, str], ...]:
    """The variables that a job needs to read the same files: sites may start jobs with an empty environment.

    Those that the arch's modules set are left to them.
    """
    used = VARIABLE.findall(Path(site.origin).read_text(encoding="utf-8"))
    set_there = {
        name
        for arch in site.archs
        if arch.gpu
        for home in (arch.gpu.cuda_home, arch.gpu.nccl_home)
        for name in VARIABLE.findall(home or "")
    }
    used = [name for name in used if name not in set_there]
    names = dict.fromkeys(("PROVISION_ROOT", "PROVISION_CONFIG", "PROVISION_INSTALLER", *used, *CARRIED))
    values = {name: os.environ[name] for name in names if os.environ.get(name)}
    # A password in an address stays out of a file that others may read: the job gets it from the environment of sbatch.
    return tuple((name, value) for name, value in values.items() if not re.search(r"://[^/\s]*@", value))


def config_here() -> str | None:
    """The working directory, where it is one of the folders that hold sites, stacks and locks."""
    here = Path.cwd()
    return str(here) if here in search_path() and here != shipped_root() else None


def queued(job: BuildJob) -> str | None:
    """The id of a job of this name that waits or runs, if the scheduler has one."""
    spoken = dialect(job.scheduler)
    done = capture(spoken.queued_argv(job.name), os.environ)
    return next(iter(spoken.parse_queued(done.stdout, job.name)), None) if done.returncode == 0 else None


def submit(job: BuildJob, store: Store) -> str:
    """Write the script to `jobs/` and submit it; returns the job id.

    Raises:
        JobError: the scheduler did not take it.
    """
    script = Path(store.layout.jobs) / f"{job.name}.sh"
    write(script, job.text, executable=True, private=True)
    spoken = dialect(job.scheduler)
    argv = spoken.submit_argv(str(script))
    done = capture(argv, os.environ)
    number = spoken.parse_job_id(done.stdout)
    if done.returncode or number is None:
        raise JobError(
            f"{TITLES[job.scheduler]} did not take the job",
            state="SUBMIT_FAILED",
            evidence=(done.stderr or done.stdout).strip().splitlines()[:6],
            hint=f"`{shlex.join(argv)}`; the job's options stand in the site's file under `job`",
        )
    return number


def status(job: str, scheduler: SchedulerName) -> JobStatus | None:
    """What the scheduler says of a job; None where it does not know it (any more).

    Raises:
        CommandError: the scheduler does not answer.
    """
    spoken = dialect(scheduler)
    done = capture(spoken.status_argv(job), os.environ)
    if done.returncode and not spoken.is_unknown(done.stderr):
        raise CommandError(f"{TITLES[scheduler]} does not answer", evidence=done.stderr.splitlines()[:3])
    return spoken.parse_status(done.stdout) if done.returncode == 0 else None


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


def follow(
    job: str,
    scheduler: SchedulerName,
    store: Store,
    listen: Listener,
    pause: Callable[[float], None] = time.sleep,
) -> JobStatus:
    """Follow a job to its end: every change of its state, every step of its build.

    Raises:
        JobError: it failed, was cancelled, ran out of time, or is not known; told as exactly that.
    """
    jobs, last, published = Path(store.layout.jobs), "", False
    first, waited = True, 0
    follower: Follower | None = None
    while True:
        try:
            now = status(job, scheduler)
        except CommandError as error:
            if first:
                raise
            # A controller that restarts is no news of the job.
            if last != error.message:
                listen(Event(kind="say", text=f"{error.message}, trying again: {' '.join(error.evidence)}"))
                last = error.message
            pause(5.0)
            continue
        found = next(iter(sorted(jobs.glob(f"*-{job}.events.jsonl"))), None)
        if follower is None and found:
            follower = Follower(found)
        first = False
        for event in follower.events() if follower else ():
            published = published or (event.kind == "finished" and event.step == "publish")
            listen(event)
        if now is None and published:
            return JobStatus(job=job, state="COMPLETED")
        if now is None:
            raise JobError(
                f"{TITLES[scheduler]} does not know job {job} (any more)",
                state="UNKNOWN",
                evidence=[f"its output: {path}" for path in sorted(jobs.glob(f"*-{job}.out"))],
                hint="`provision list` shows whether it published",
            )
        why = dialect(scheduler).waiting(now) if now.state == "PENDING" else ""
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
        waited += 1
        pause(1.0 if waited < 60 else 5.0)  # the controller has others to serve


def _ended(now: JobStatus) -> JobStatus:
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
        "TIMEOUT": "raise `job.time` in the site's file, and submit it again: what is done is kept",
        "CANCELLED": "submit it again: what is done is kept",
        "OUT_OF_MEMORY": "ask for more in `job.options` of the site's file (`--mem=…`)",
    }.get(now.state)
    raise JobError(
        ending(now) + (f": {known.cause}" if known and not told and own is None else ""),
        state=now.state,
        evidence=[*(told or telling(lines)), *([f"output: {now.output}"] if lines else [])],
        hint=own or next((line.removeprefix("hint: ") for line in lines if line.startswith("hint: ")), f"read `{log}`"),
        log=log if lines else None,
    )


def our_error(lines: Sequence[str]) -> list[str]:
    """What `provision build` itself said at the end of a job's output: its error, without the hint."""
    starts = [number for number, line in enumerate(lines) if line.startswith("error: ")]
    if not starts:
        return []
    block = list(lines[starts[-1] :])
    return block[: block.index("")] if "" in block else block
