"""`provision job`: a job's script on stdout (a build's, or a user's), a job followed to its end, or a script checked.

A user's job is one of `single`, `mirrored`, `multiworker` and `horovod`, or of a plug-in that the site's own modules bring;
`image` and `overlay` prepare its container; `build` and `follow` are the admin's.
"""

from __future__ import annotations

import argparse
import os
import re
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from provision.commands.shared.following import stopped_following
from provision.commands.shared.outcome import Outcome
from provision.commands.shared.target import add_target, make_target, read_store, read_target
from provision.errors import ConfigError
from provision.machine.console import listener, say

if TYPE_CHECKING:
    from provision.lint.job_script import JobScript
    from provision.profile.arch import Arch
    from provision.profile.site import Site

ADMIN = ("build", "follow")
KINDS = ("single", "mirrored", "multiworker", "horovod", "cray-ml-plugin")
# What prepares containers for them, and the options that it takes.
PREPARING = {
    "image": ("image", "time", "account", "queue"),
    "overlay": ("gb", "files", "cpus", "time", "account", "queue", "stack"),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The kind of job, and what it is about."""
    parser.add_argument(
        "kind",
        nargs="?",
        choices=(*ADMIN, *PREPARING, *KINDS),
        help="a build's job, following one, what prepares a container (the image, its overlay), or a user's",
    )
    parser.add_argument("job", nargs="?", help="with follow: the job's id")
    add_target(parser)
    parser.add_argument("--lint", metavar="FILE", help="check a script that somebody wrote; exit 2 where it has faults")
    parser.add_argument("--account", help="who pays, where the site's file does not say")
    parser.add_argument(
        "--profile", action="store_true", help="with build: by the site's file alone, without looking at this machine"
    )
    user = parser.add_argument_group("a user's job", "what is left out is by the site's file")
    user.add_argument("--script", metavar="FILE", help="the training script (default: train.py where it is submitted)")
    user.add_argument("--arguments", metavar="TEXT", default="", help="the script's own arguments, quoted as one word")
    user.add_argument("--nodes", type=int)
    user.add_argument("--gpus", type=int, help="GPUs on each node")
    user.add_argument("--no-gpu", action="store_true", help="CPUs only, for a quick start in the queue")
    user.add_argument("--ranks-per-node", type=int)
    user.add_argument("--cpus", type=int, help="CPUs of each rank")
    user.add_argument("--runtime", choices=("venv", "modules", "container"), help="how TensorFlow is run")
    user.add_argument("--module", help="the module of our environment (default: the stack's)")
    user.add_argument("--venv", metavar="DIR", help="a virtual environment of yours, on top of the modules")
    user.add_argument("--image", help="with --runtime container, or `job image`: another image")
    user.add_argument("--time", help="HH:MM:SS")
    user.add_argument("--queue", help="the partition, queue or QOS")
    user.add_argument("--data", metavar="PATH", help="the data; the job stops where they are not there")
    user.add_argument("--stage-in", metavar="PATH", help="copy the data to the burst buffer before the job")
    user.add_argument("--watch-gpus", action="store_true", help="write the GPUs' use to gpu.csv beside the output")
    user.add_argument("--record", action="store_true", help="leave what `provision scaling` reads beside the output")
    user.add_argument("--resume-from", metavar="JOBID", help="go on from the checkpoints of this job")
    room = parser.add_argument_group("room of an overlay", "the smallest of the site's templates that has it is taken")
    room.add_argument("--gb", type=int, help="gigabytes (default: what TensorFlow needs)")
    room.add_argument("--files", type=int, help="files (default: what TensorFlow needs)")


def run(args: argparse.Namespace) -> Outcome:
    """Write the script, check one, or follow a job."""
    if args.lint is not None:
        return _lint(args)
    if args.kind is None:
        kinds = "|".join((*ADMIN, *PREPARING, *KINDS))
        raise ConfigError("which job? none is named", hint=f"`provision job {kinds}`, or `--lint FILE`")
    if args.kind == "follow":
        return _follow(args)
    if args.job:
        raise ConfigError(f"`job {args.kind}` takes no job id, and was given `{args.job}`")
    _refuse_options(args)
    _refuse_numbers(args)
    match args.kind:
        case "build":
            return _build(args)
        case "image":
            return _image(args)
        case "overlay":
            return _overlay(args)
        case _:
            return _user(args)


def _refuse_options(args: argparse.Namespace) -> None:
    """Raise for an option that this kind of job would not heed."""
    known = ("kind", "job", "lint", "json", "site", "arch", *PREPARING.get(args.kind, ()))
    for name, value in vars(args).items():
        given = value is not None and value is not False and value != ""
        foreign = name in ("gb", "files") if args.kind not in PREPARING else name not in known
        if given and foreign:
            option = f"--{name.replace('_', '-')}"
            takes = ", ".join(f"`--{one}`" for one in PREPARING.get(args.kind, ()))
            raise ConfigError(
                f"`job {args.kind}` does not take `{option}`",
                evidence=[f"it takes {takes}"] if takes else ["an overlay has room; it is made by `job overlay`"],
                hint=f"leave `{option}` out",
            )


def _refuse_numbers(args: argparse.Namespace) -> None:
    for name in ("nodes", "gpus", "cpus", "ranks_per_node", "gb", "files"):
        number, option = getattr(args, name), name.replace("_", "-")
        if number is not None and number < 1:
            raise ConfigError(f"`--{option} {number}` must be at least 1", hint=f"`--{option} 1`, or leave it out")


def _image(args: argparse.Namespace) -> Outcome:
    from provision.jobs.image_job import ImageJob
    from provision.machine import shipped
    from provision.machine.render_jobs import render_image_job

    site = shipped.load_site(args.site)
    job = ImageJob(
        site=site,
        arch=site.arch(args.arch),
        command=_command(args),
        image=args.image,
        account=args.account,
        queue=args.queue,
        **({"time": args.time} if args.time else {}),
    )
    return _prepared(args, site, job.arch, render_image_job(job))


def _overlay(args: argparse.Namespace) -> Outcome:
    from provision.jobs.overlay_job import OverlayJob, lock_name
    from provision.knowledge.miniforge import RELEASES, release_for
    from provision.machine import shipped
    from provision.machine.render_jobs import render_overlay_job

    target = make_target(shipped.load_site(args.site), args.arch, args.stack)
    miniforge = release_for(target.stack.pythons)
    if miniforge is None:
        raise ConfigError(
            f"no Miniforge brings a Python for the stack `{target.stack.name}`",
            evidence=[
                f"the stack is for Python {', '.join(target.stack.pythons)}",
                f"known releases bring {', '.join(one.python for one in RELEASES)}",
            ],
            hint="`--stack tensorflow-2.15.1`",
        )
    asked = {name: getattr(args, name) for name in ("gb", "files", "cpus", "time") if getattr(args, name) is not None}
    job = OverlayJob(
        site=target.site,
        arch=target.arch,
        command=_command(args),
        framework=target.stack.framework,
        lock=shipped.load_lock(lock_name(target.stack.name), miniforge.python),
        miniforge=miniforge,
        account=args.account,
        queue=args.queue,
        **asked,
    )
    return _prepared(args, target.site, target.arch, render_overlay_job(job))


def _prepared(args: argparse.Namespace, site: Site, arch: Arch, text: str) -> Outcome:
    return Outcome(text=text, result={"kind": args.kind, "site": site.name, "arch": arch.name, "script": text})


def _build(args: argparse.Namespace) -> Outcome:
    from provision.jobs.build_job import build_script, profile_script
    from provision.machine.submission import render_build_job, submitter
    from provision.planning.planner import make_plan

    target = read_target(args)
    if args.profile:
        alone = profile_script(target.site, target.arch, target.stack, submitter(target.store), args.account)
        job = render_build_job(alone)
        return Outcome(text=job.text, result={"name": job.name, "script": job.text, "environment": None})
    facts = target.observe()
    request = target.request(facts)
    plan = make_plan(request, facts, target.store.existing())
    job = render_build_job(build_script(request, plan, submitter(target.store), args.account))
    # sbatch does not make the folder of a job's output, and a job without one vanishes without a word.
    target.store.make_jobs()
    return Outcome(text=job.text, result={"name": job.name, "script": job.text, "environment": str(plan.environment)})


def _user(args: argparse.Namespace) -> Outcome:
    from provision.jobs.user_job import UserJob, shape_of, unstaged
    from provision.machine import shipped
    from provision.machine.render_jobs import render_user_job

    if args.script is not None and not Path(args.script).is_file():
        raise ConfigError(
            f"there is no training script `{args.script}`",
            evidence=[f"looked for: {os.path.abspath(args.script)}"],
            hint=f"`ls {shlex.quote(os.path.dirname(args.script) or '.')}`, then `--script FILE`",
        )
    try:
        arguments = tuple(shlex.split(args.arguments))
    except ValueError as error:
        raise ConfigError(
            f"`--arguments` cannot be split into words: {error}", hint="`--arguments '--epochs 3'`"
        ) from error
    target = make_target(shipped.load_site(args.site), args.arch, args.stack)
    module = args.module or target.stack.module
    kind = "lua" if target.site.modules.name == "lmod" else "tcl"
    modules = target.store.layout.modules(target.arch.name)
    job = UserJob(
        kind=args.kind,
        site=target.site,
        arch=target.arch,
        command=_command(args),
        module=module,
        modulepath=str(modules / kind),
        script=os.path.abspath(args.script) if args.script else target.site.strategy(args.kind).example or "train.py",
        arguments=arguments,
        nodes=args.nodes,
        gpus=args.gpus,
        ranks_per_node=args.ranks_per_node,
        cpus=args.cpus,
        use_gpu=not args.no_gpu,
        runtime=args.runtime,
        image=args.image,
        venv=os.path.abspath(args.venv) if args.venv else None,
        time=args.time,
        account=args.account,
        queue=args.queue,
        data=os.path.abspath(args.data) if args.data else None,
        resume=args.resume_from,
        stage_in=os.path.abspath(args.stage_in) if args.stage_in else None,
        watch_gpus=args.watch_gpus or (args.record and target.arch.gpu is not None and not args.no_gpu),
        record=args.record,
    )
    text = render_user_job(job)
    due = unstaged(job, shape_of(job))
    if due:
        say(f"note: {due}")
    if f"module load {module}" in text and f"{target.arch.name}/{module}" not in target.store.pointers():
        say(f"note: `{module}` is not published below `{modules}` yet; `provision build` does that")
    return Outcome(
        text=text, result={"kind": args.kind, "site": target.site.name, "arch": target.arch.name, "script": text}
    )


def _lint(args: argparse.Namespace) -> Outcome:
    from dataclasses import asdict

    from provision.errors import LintError
    from provision.lint.job_rules import lint_job
    from provision.lint.job_script import read_script
    from provision.lint.training import read_training
    from provision.machine import shipped

    if args.kind is not None:
        raise ConfigError(f"`--lint` checks a script and writes none; `{args.kind}` is too much", hint="leave it out")
    script = read_script(_text(args.lint, "job script"), args.lint)
    site = shipped.load_site(args.site)
    known = None if site.scheduler.name == "none" else site
    arch = _arch_of(script, known, args.arch)
    program = args.script or script.program()
    if program is not None and args.script is None:
        path = Path(args.lint).parent / program
        program = str(path) if "$" not in program and path.is_file() else None
    training = None if program is None else read_training(_text(program, "training script"), program)
    findings = [*lint_job(script, training, known, arch), *(training.findings if training else ())]
    if findings:
        count = f"{len(findings)} fault{'s' * (len(findings) != 1)}"
        raise LintError(
            f"{count} in `{args.lint}`",
            findings=[asdict(one) for one in findings],
            evidence=[line for one in findings for line in (str(one), f"  fix: {one.fix}")],
            hint="`provision job KIND --site SITE` writes one without",
        )
    read = [f"`{args.lint}`", *([f"`{program}`"] if program else [])]
    against = f", against site `{known.name}`" if known else "; with `--site SITE` its limits are checked too"
    text = f"no fault in {' and '.join(read)}{against}"
    return Outcome(text=text, result={"findings": [], "script": args.lint, "training": program})


def _arch_of(script: JobScript, site: Site | None, name: str | None) -> Arch | None:
    """The arch that a script is for: the named one, the only one, or the one whose partition or constraint it asks for."""
    if site is None or name is not None or len(site.archs) == 1:
        return None if site is None else site.arch(name)
    for key in ("constraint", "partition"):
        option = script.options.get(key)
        for arch in site.archs:
            if option is not None and getattr(arch.job, key) == option.value:
                return arch
    known = ", ".join(f"`{arch.name}`" for arch in site.archs)
    say(f"note: it does not tell for which arch of `{site.name}` it is ({known}); `--arch ARCH` checks more")
    return None


def _text(name: str, what: str) -> str:
    try:
        return Path(name).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(
            f"the {what} `{name}` cannot be read", evidence=[str(error)], hint=f"`ls -l {shlex.quote(name)}`"
        ) from error


def _command(args: argparse.Namespace) -> str:
    """The command line again, for the script to say how it was made."""
    words = ["provision", "job", args.kind, "--site", args.site]
    for name, value in vars(args).items():
        if name in ("kind", "job", "site", "json") or value is None or value is False or value == "":
            continue
        option = f"--{name.replace('_', '-')}"
        words += [option] if value is True else [option, str(value)]
    return re.sub(r"[\x00-\x1f]+", " ", shlex.join(words))  # it stands in a comment


def _follow(args: argparse.Namespace) -> Outcome:
    from provision.machine import shipped
    from provision.machine.follow import follow
    from provision.schedulers import scheduler_for

    site = shipped.load_site(args.site)
    if site.scheduler.name == "none":
        raise ConfigError(f"site `{site.name}` has no scheduler, there is no job to follow", hint="add `--site SITE`")
    scheduler = scheduler_for(site.scheduler.name)
    if not args.job or not scheduler.is_job_id(args.job):
        raise ConfigError(
            "`job follow` needs the id of a job", hint=f"`{scheduler.QUEUE}`, then `provision job follow ID`"
        )
    store = read_store(site)
    try:
        with listener() as listen:
            status = follow(args.job, site.scheduler.name, store, listen)
    except KeyboardInterrupt:
        raise stopped_following(args.job, f"provision job follow {args.job} --site {args.site}", site) from None
    return Outcome(
        text=f"job {args.job} finished after {status.run_time}", result={"job": args.job, "state": status.state}
    )
