"""What `build` and `job follow` print of an environment that was built: its proof, its advisories, and how to load it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from provision.commands.shared.open_advisories import advisories_line
from provision.machine.files.disk import is_file
from provision.machine.probes.installed_packages import installed_versions
from provision.machine.programs.shell import absolute, which
from provision.machine.root.store import Store
from provision.machine.terminal.console import say
from provision.model.layout import EnvironmentId, modulefile_path
from provision.profile.site import Site


def describe_built(
    site: Site, store: Store, env: EnvironmentId, what: str, *, use: str | None, published: bool
) -> dict[str, Any]:
    """Print on stderr what was done and how the proof went; the same as JSON. `use` is the command that loads it."""
    record = store.record(env)
    say(f"{what}: {env}")
    advisories = None
    if record:
        advisories = advisories_line(installed_versions(Path(record.prefix)))
        say(f"  proof: {record.proof}")
        say(f"  advisories: {advisories}")
    if use is None:
        say(f"  users no longer load it; `{_tool()} publish --site {site.typed} {env}` publishes it again")
    return {
        "environment": str(env),
        "done": what,
        "published": published,
        "use": use,
        "record": record.to_dict() if record else None,
        "advisories": advisories,
    }


def load_command(site: Site, store: Store, env: EnvironmentId, *, candidate: bool) -> str | None:
    """The command that loads an environment; of a `candidate` from its own module path.

    None if that path is gone: it is removed when the environment is published, and it was unpublished since then.
    """
    if site.modules.name == "none":
        return f'eval "$({_tool()} activate --site {site.typed} {env})"'
    kind = site.modules.module_kind
    ours = store.layout.candidate(env, kind) if candidate else store.layout.modules(env.arch) / kind
    built = candidate and store.record(env) is not None
    if built and not is_file(str(modulefile_path(ours, kind, env.name, env.version))):
        return None
    return site.modules.load_command(str(ours), f"{env.name}/{env.version}")


def is_loaded_by_users(store: Store, env: EnvironmentId) -> bool:
    """Whether the pointer points to this environment."""
    return store.pointers().get(env.pointer) == str(env)


def _tool() -> str:
    """The name to type for this tool: `make build` runs one that is not on PATH."""
    mine = Path(sys.argv[0])
    found = which("provision")
    on_path = found is not None and absolute(found) == absolute(str(mine))
    return "provision" if on_path or mine.name != "provision" else str(mine)
