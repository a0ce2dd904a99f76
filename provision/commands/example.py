"""`provision example [NAME [DIR]]`: list the example programs, or copy one with a small data set to a new folder."""

from __future__ import annotations

import contextlib
import shlex

from provision.commands.shared.outcome import Args, Outcome
from provision.errors import ProvisionError
from provision.knowledge.examples import EXAMPLES
from provision.machine.configuration import shipped
from provision.machine.programs.shell import absolute, default_site
from provision.wording import columns


def run(args: Args) -> Outcome:
    """List the examples, or copy one."""
    if args.name is None:
        rows = [{"name": one.name, "job": one.job, "needs": one.needs, "purpose": one.purpose} for one in EXAMPLES]
        lines = columns([(one.name, f"{one.purpose}; job `{one.job}`, {one.needs} and newer") for one in EXAMPLES])
        lines += ["", "to copy one: `provision example NAME DIR`"]
        return Outcome(text="\n".join(lines), result={"examples": rows, "folder": None, "files": []})
    example, folder = next(one for one in EXAMPLES if one.name == args.name), args.folder or args.name
    files = shipped.copy_example(example.name, absolute(folder))
    site, archs = default_site(otherwise="SITE"), []
    with contextlib.suppress(ProvisionError):
        archs = [arch.name for arch in shipped.load_site(site).archs]
    arch = "" if len(archs) == 1 else " --arch ARCH"
    job = f"provision job {example.job} --site {shlex.quote(site)}{arch} --script train.py"
    steps = [f"cd {shlex.quote(folder)}"]
    if example.before:
        steps.append(f"{example.before}   # once, with the environment loaded")
        job += f" --data {example.data}"
    steps.append(f"{job} > job.sh" + (f"   # ARCH: {', '.join(archs)}" if len(archs) > 1 else ""))
    text = "\n".join([f"copied {', '.join(files)} to `{folder}`", "next:", *(f"  {step}" for step in steps)])
    return Outcome(text=text, result={"examples": [], "folder": absolute(folder), "files": list(files)})
