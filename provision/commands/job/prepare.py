"""`provision job image` and `job overlay`: what users' jobs in containers need before they run."""

from __future__ import annotations

import argparse

from provision.commands.shared.command_line import command_line
from provision.commands.shared.options import add_account, add_arch, add_queue, add_site, add_target, positive
from provision.commands.shared.outcome import Outcome
from provision.commands.shared.parsers import SubVerb
from provision.commands.shared.target import make_target
from provision.errors import ConfigError


def add_image_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the image and of the job that pulls it."""
    add_site(parser)
    add_arch(parser)
    parser.add_argument("--image", metavar="IMAGE", help="image in a registry, docker://NAME (default: the site's)")
    add_account(parser)
    add_queue(parser)


def add_overlay_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the overlay and of the job that fills it."""
    add_target(parser)
    parser.add_argument("--cpus", type=positive, metavar="N", help="CPUs of the job")
    add_account(parser)
    add_queue(parser)
    size = parser.add_argument_group("size", "The job takes the smallest of the site's templates that is large enough.")
    size.add_argument("--gb", type=positive, metavar="N", help="gigabytes (default: what TensorFlow needs)")
    size.add_argument("--files", type=positive, metavar="N", help="files (default: what TensorFlow needs)")


def run_image(args: argparse.Namespace) -> Outcome:
    """Write the script that pulls the image, on a login node or as a job."""
    from provision.jobs.image_job import ImageJob
    from provision.machine.configuration import shipped
    from provision.machine.rendering.render_jobs import render_image_job

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


def run_overlay(args: argparse.Namespace) -> Outcome:
    """Write the job that fills an overlay with TensorFlow."""
    from provision.jobs.overlay_job import OverlayJob, lock_name
    from provision.knowledge.miniforge import RELEASES, release_for
    from provision.machine.configuration import shipped
    from provision.machine.rendering.render_jobs import render_overlay_job

    target = make_target(shipped.load_site(args.site), args.arch, args.stack)
    miniforge = release_for(target.stack.pythons)
    if miniforge is None:
        raise ConfigError(
            f"no Miniforge has a Python for the stack `{target.stack.name}`",
            evidence=[
                f"the stack is for Python {', '.join(target.stack.pythons)}",
                f"the known releases have {', '.join(release.python for release in RELEASES)}",
            ],
            hint="`--stack tensorflow-2.15.1`",
        )
    given = {name: getattr(args, name) for name in ("gb", "files", "cpus", "time") if getattr(args, name) is not None}
    job = OverlayJob(
        site=target.site,
        arch=target.arch,
        command=command_line(args),
        framework=target.stack.framework,
        lock=shipped.load_lock(lock_name(target.stack.name), miniforge.python),
        miniforge=miniforge,
        account=args.account,
        queue=args.queue,
        **given,
    )
    text = render_overlay_job(job)
    return Outcome(
        text=text, result={"kind": "overlay", "site": target.site.name, "arch": target.arch.name, "script": text}
    )


SUBVERBS = (
    SubVerb(
        name="image",
        purpose="write the script that pulls a container image by digest",
        add_arguments=add_image_arguments,
        run=run_image,
    ),
    SubVerb(
        name="overlay",
        purpose="write the job that puts TensorFlow into an overlay",
        add_arguments=add_overlay_arguments,
        run=run_overlay,
    ),
)
