"""The job that builds an environment on a node of its arch: the values of its script. Pure.

The template is `jobs/build.sh.j2`. A `Submitter` holds everything that the job takes from the machine that submits it, so
that the same plan gives the same script everywhere.
"""

from __future__ import annotations

import dataclasses
import os.path
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from provision.errors import ConfigError
from provision.jobs.limits import refuse
from provision.jobs.scheduler_request import batch_for
from provision.jobs.script import forget_line
from provision.knowledge.index_settings import is_index_setting
from provision.model.batch import Batch, Directive
from provision.model.plan import Plan, held
from provision.model.quoting import Code
from provision.model.request import Request
from provision.planning.preflight import refuse_runtime
from provision.profile.arch import Arch
from provision.profile.choices import BACKENDS
from provision.profile.site import Site
from provision.profile.stack import Stack
from provision.proof.proof_shape import proof_environ, proof_shape
from provision.schedulers import scheduler_for

# How long before its time limit a build ends: the files of the step that it was in may have to reach the disk.
ANNOUNCE_S = 120


@dataclass(frozen=True, slots=True, kw_only=True)
class Submitter:
    """The machine that a job is written on: how it runs this tool, and its variables.

    `jobs` is the folder of the submitting user in `jobs/` of the root. `folder` is the working directory, from which the user
    named a profile.
    """

    tool: tuple[str, ...]
    jobs: str
    environ: Mapping[str, str] = field(default_factory=dict)
    folder: str = "/"


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildScript:
    """The job of a build: what its template prints, and its `text` when that was rendered.

    `name` is the name of the job's files of output and events in `jobs/`.

    `settings` are the variables of the package index and the proxy. They can hold passwords, so they are not in the script: the
    job reads them from `settings_file`.
    """

    name: str
    site: Site
    command: str
    environment: str
    directives: tuple[Directive, ...]
    forget: Code | None
    environ: tuple[tuple[str, str], ...]
    tool: tuple[str, ...]
    arguments: tuple[str, ...]
    jobs: str
    plan: Mapping[str, Any] | None
    settings: tuple[tuple[str, str], ...] = ()
    settings_file: str | None = None
    text: str = ""


def build_script(
    request: Request, plan: Plan, submitter: Submitter, account: str | None = None, *, submitted: bool = False
) -> BuildScript:
    """The job that builds `plan`; on the node the tool plans again and compares the two plans.

    The tool submits a `submitted` job at once. Its file of settings is not the file of a script that a user submits: the end
    of one job must not take the settings of the other.

    Raises:
        ConfigError: the site has no scheduler, or would not take such a job.
    """
    env = plan.environment
    return _script(
        request.site,
        request.arch,
        request.stack,
        submitter,
        account=account,
        environment=str(env),
        name=f"provision-{env.arch}-{env.name}-{env.version}-{env.fingerprint}",
        plan={"environment": str(env), "held": held(plan)},
        options=(
            *(() if request.publish else ("--no-publish",)),
            *(("--rebuild",) if request.rebuild else ()),
            *_again(request.site, request.arch),
        ),
        submitted=submitted,
    )


def proof_script(
    site: Site, arch: Arch, stacks: Sequence[Stack], submitter: Submitter, account: str | None, env: str | None = None
) -> BuildScript:
    """The job that proves again, on a node of the arch, all published environments of these stacks, or only `env`.

    Raises:
        ConfigError: the site has no scheduler, or would not take such a job.
    """

    def size(stack: Stack) -> tuple[int, int]:
        shape = proof_shape(site, arch, stack)
        return (shape.nodes * shape.ranks_per_node, shape.cpus_per_rank)

    script = _script(
        site,
        arch,
        max(stacks, key=size),
        submitter,
        account=account,
        environment=env or f"all published environments of {arch.name}",
        name="-".join(("provision-test", *(env or arch.name).split("/"))),
        plan=None,
    )
    origin = os.path.normpath(os.path.join(submitter.folder, site.origin))
    return dataclasses.replace(
        script,
        command=f"provision test {env or '--all'} --submit --site {site.typed} --arch {arch.name}",
        arguments=(env or "--all", "--site", origin, "--arch", arch.name),
    )


def profile_script(
    site: Site, arch: Arch, stack: Stack, submitter: Submitter, account: str | None = None
) -> BuildScript:
    """The job of a build from the site's profile alone, written on another machine: the node makes the plan.

    Raises:
        ConfigError: the site has no scheduler, or would not take such a job.
    """
    name, version = stack.module.split("/")
    return _script(
        site,
        arch,
        stack,
        submitter,
        account=account,
        environment=f"{arch.name}/{stack.module}",
        name=f"provision-{arch.name}-{name}-{version}",
        plan=None,
        options=_again(site, arch),
    )


def _script(
    site: Site,
    arch: Arch,
    stack: Stack,
    submitter: Submitter,
    *,
    account: str | None,
    environment: str,
    name: str,
    plan: Mapping[str, Any] | None,
    options: tuple[str, ...] = (),
    submitted: bool = False,
) -> BuildScript:
    if site.scheduler.name == "none":
        raise ConfigError(
            f"site `{site.name}` has no scheduler, so there is no job to write",
            hint=f"`provision build --site {site.typed} --arch {arch.name}` builds here",
        )
    refuse_runtime(site)
    batch = build_batch(site, arch, stack, name, submitter.jobs, account)
    batch = dataclasses.replace(batch, announce_s=ANNOUNCE_S) if "--requeue" in options else batch
    arguments = (
        "--site",
        os.path.normpath(os.path.join(submitter.folder, site.origin)),
        "--arch",
        arch.name,
        "--stack",
        stack.name,
        *(("--backend", stack.backend) if stack.backend != BACKENDS[0] else ()),
        *options,
    )
    profile = "" if plan else " --profile"
    # A script that is made from the profile alone is for another machine, which has its own settings.
    settings = {name: value for name, value in sorted(submitter.environ.items()) if value and is_index_setting(name)}
    settings = settings if plan else {}
    directives = scheduler_for(site.scheduler.name).directives(batch)
    return BuildScript(
        name=name,
        site=site,
        command=f"provision job build --site {site.typed} --arch {arch.name}{profile}",
        environment=environment,
        directives=directives,
        forget=forget_line(site.scheduler.name, directives),
        environ=(*_carried(site, submitter.environ), *_proxies(site, settings), *proof_environ(site, arch, stack)),
        tool=submitter.tool,
        arguments=arguments,
        jobs=submitter.jobs,
        plan=plan,
        settings=tuple(settings.items()),
        settings_file=f"{submitter.jobs}/{name}{'.submitted' if submitted else ''}.settings" if settings else None,
    )


def build_batch(site: Site, arch: Arch, stack: Stack, name: str, jobs: str, account: str | None = None) -> Batch:
    """What a build asks for: as many nodes, ranks and GPUs as its proof needs. `account` replaces the profile's.

    Raises:
        ConfigError: the site would not accept such a job; the error has every reason.
    """
    batch = batch_for(site, arch, proof_shape(site, arch, stack), name=name, folder=jobs, account=account)
    refuse(site, arch, batch)
    return batch


def _again(site: Site, arch: Arch) -> tuple[str, ...]:
    """The option of a build that starts its job again at the time limit; only if the profile lets the scheduler do so."""
    can = site.scheduler.name != "none" and scheduler_for(site.scheduler.name).REQUEUE
    return ("--requeue",) if can and "--requeue" in (*site.scheduler.options, *arch.job.options) else ()


def _proxies(site: Site, settings: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """The proxy of the site's nodes, if builds reach the network through one and the submitter names no other."""
    proxies = site.network.environ if site.network.compute == "proxy" else ()
    return tuple(pair for pair in proxies if pair[0] not in settings)


def _carried(site: Site, environ: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """The variables that a job needs to read the same files: sites may start jobs with an empty environment.

    Variables that the arch's modules set are not among them.
    """
    ours = ("PROVISION_ROOT", "PROVISION_CONFIG", "PROVISION_LOCKS", "XDG_CONFIG_HOME", "PROVISION_INSTALLER")
    names = dict.fromkeys((*ours, *site.variables))
    return tuple((name, environ[name]) for name in names if environ.get(name) and not is_index_setting(name))
