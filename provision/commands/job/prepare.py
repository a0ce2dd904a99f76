"""`provision job build`, `job image` and `job overlay`: what users' jobs need before they run: an environment, or a container."""

from __future__ import annotations

import re
from pathlib import PurePosixPath

from provision.commands.shared.outcome import Args, Outcome
from provision.commands.shared.parsers import command_line
from provision.commands.shared.target import make_target, read_target
from provision.errors import ConfigError, UsageError
from provision.jobs.build_job import build_script, profile_script
from provision.jobs.containers import pull_command
from provision.jobs.image_job import ImageJob
from provision.jobs.overlay_job import OWN_FILES, OWN_GB, OverlayJob, lock_name
from provision.knowledge.frameworks.tensorflow import TENSORFLOW
from provision.knowledge.miniforge import RELEASES, release_for
from provision.knowledge.versions import ascending
from provision.machine.configuration import shipped
from provision.machine.files.disk import read_given
from provision.machine.programs.shell import absolute
from provision.machine.submission.render_jobs import render_build_job, render_image_job, render_overlay_job
from provision.machine.submission.submit import keep_settings, remove_left_settings, submitter
from provision.machine.terminal.console import say
from provision.model.lock import Lock
from provision.model.requirements_file import Requirements, read_requirements
from provision.profile.patterns import SHELL_PATH
from provision.profile.site import Site


def run_build(args: Args) -> Outcome:
    """Write the script with the plan for this machine, or from the profile alone."""
    target = read_target(args)
    if args.profile:
        alone = profile_script(target.site, target.arch, target.stack, submitter(target.store), args.account)
        job = render_build_job(alone)
        return Outcome(text=job.text, result={"name": job.name, "script": job.text, "environment": None})
    facts = target.observe()
    request = target.request(facts)
    plan = target.plan(request, facts)
    job = render_build_job(build_script(request, plan, submitter(target.store), args.account))
    # sbatch does not make the folder of a job's output; without the folder the job fails without a message.
    target.store.make_jobs()
    remove_left_settings(target.store, job.site.scheduler.name)
    if job.settings_file:
        keep_settings(job)
        say(
            f"the job reads the settings of the package index from `{job.settings_file}` and removes this file at its end; "
            "another job of this script uses the settings of its own environment; if you do not submit the job, remove the "
            "file yourself"
        )
    return Outcome(text=job.text, result={"name": job.name, "script": job.text, "environment": str(plan.environment)})


def run_image(args: Args) -> Outcome:
    """Write the script that pulls the image, on a login node or as a job."""
    site = shipped.load_site(args.site)
    job = ImageJob(
        site=site,
        arch=site.arch(args.arch),
        command=command_line(args),
        image=args.image,
        account=args.account,
        queue=args.queue,
        **({"time": args.time} if args.time else {}),
    )
    text = render_image_job(job)
    return Outcome(text=text, result={"kind": "image", "site": site.name, "arch": job.arch.name, "script": text})


def run_overlay(args: Args) -> Outcome:
    """Write the job that fills an overlay with TensorFlow."""
    target = make_target(shipped.load_site(args.site), args.arch, args.stack)
    if target.stack.framework.name != TENSORFLOW.name:
        pull = pull_command(target.site, target.arch, target.stack.framework.interface.image)
        raise ConfigError(
            f"the job fills overlays with TensorFlow, but the stack `{target.stack.name}` is of {target.stack.framework.title}",
            hint=f"`{pull}` pulls an image that has it; or `--stack tensorflow-2.15.1`",
        )
    miniforge = release_for(target.stack.pythons)
    if miniforge is None:
        raise ConfigError(
            f"no Miniforge has a Python for the stack `{target.stack.name}`",
            evidence=[
                f"the stack is for Python {', '.join(ascending(target.stack.pythons))}",
                f"the known releases have {', '.join(release.python for release in RELEASES)}",
            ],
            hint="`--stack tensorflow-2.15.1`",
        )
    lock = shipped.load_lock(lock_name(target.stack.name), miniforge.python)
    requirements = _requirements(args, lock, miniforge.python)
    given = {name: getattr(args, name) for name in ("gb", "files", "cpus", "time") if getattr(args, name) is not None}
    job = OverlayJob(
        site=target.site,
        arch=target.arch,
        command=command_line(args),
        framework=target.stack.framework,
        lock=lock,
        miniforge=miniforge,
        account=args.account,
        queue=args.queue,
        requirements=requirements,
        path=_own_overlay(args, target.site) if requirements else None,
        **({"gb": OWN_GB, "files": OWN_FILES} if requirements else {}) | given,
    )
    text = render_overlay_job(job)
    return Outcome(
        text=text, result={"kind": "overlay", "site": target.site.name, "arch": target.arch.name, "script": text}
    )


def _requirements(args: Args, lock: Lock, minor: str) -> Requirements | None:
    """The user's packages.

    Raises:
        ConfigError: the file cannot be read or used, or `--overlay` was given without it.
    """
    if args.requirements is None:
        if args.overlay is not None:
            raise UsageError(
                "`--overlay` is for `--requirements`",
                evidence=[
                    "without it, the job makes the site's overlay at the path in the profile (`container.overlay`)"
                ],
                hint="add `--requirements FILE`, or leave `--overlay` out",
            )
        return None
    return read_requirements(
        read_given(args.requirements, "requirements file"), absolute(args.requirements), lock, minor
    )


def _own_overlay(args: Args, site: Site) -> str | None:
    """The path of the new overlay, for the node; None if the site has no overlays, which is refused later."""
    base = site.container.overlay if site.container else None
    path: str | None = args.overlay
    if path is None and base is not None:
        name = re.sub(r"[^A-Za-z0-9_-]", "-", PurePosixPath(args.requirements).stem)
        path = str(PurePosixPath(base).with_name(f"{name}.ext3"))
    elif path is not None and not path.startswith("$"):
        path = absolute(path)
    if path is not None and (not SHELL_PATH.fullmatch(path) or path == base):
        raise ConfigError(
            f"`--overlay {path!r}` is the overlay of the site"
            if path == base
            else f"`--overlay {path!r}` is not a valid path: letters, digits, `_./@%+:=-` and `$NAME`",
            hint="`--overlay /a/path.ext3`",
        )
    return path
