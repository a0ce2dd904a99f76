"""`provision modules`: what the site's module system offers for these stacks, by subject and version."""

from __future__ import annotations

from dataclasses import asdict

from provision.commands.shared.outcome import Args, Outcome
from provision.errors import ConfigError
from provision.launch.available_modules import SUBJECTS, matching, newest_first
from provision.machine.configuration import shipped
from provision.machine.probes.loaded_modules import available_modules


def run(args: Args) -> Outcome:
    """List the modules."""
    site = shipped.load_site(args.site)
    if site.modules.name == "none":
        raise ConfigError(
            f"site `{site.name}` has no module system",
            hint=f"`provision doctor --site {site.typed}` shows what is used",
        )
    offered = available_modules(site.modules, site.origin)
    chosen = matching(offered, args.name) if args.name else [module for module in offered if module.subject]
    users = {name: arch.name for arch in reversed(site.archs) for name in (*arch.modules, *arch.provided)}
    lines = []
    for subject in (*SUBJECTS, None):
        of_subject = newest_first([module for module in chosen if module.subject == subject])
        for at, module in enumerate(of_subject):
            used = f"  (arch {users[module.name]})" if module.name in users else ""
            lines.append(f"{(subject or 'other') if not at else '':<11} {module.name}{used}")
        if not of_subject and subject and not args.name:
            lines.append(f"{subject:<11} none")
    if not lines:
        raise ConfigError(
            f"none of {len(offered)} modules of site `{site.name}` matches `{args.name}`",
            hint=f"`provision modules --site {site.typed}` lists what it offers for these stacks",
        )
    modules = [asdict(module) for subject in (*SUBJECTS, None) for module in chosen if module.subject == subject]
    return Outcome(text="\n".join(lines), result={"site": site.name, "modules": modules})
