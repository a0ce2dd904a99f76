"""What a build is asked for, and what is printed of it: its plan, its proof, its advisories, and how to load it."""

from __future__ import annotations

import dataclasses
import shlex
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from provision.commands.shared.outcome import Outcome
from provision.commands.shared.target import Target, make_target
from provision.machine.configuration import shipped
from provision.machine.files.disk import is_file
from provision.machine.files.tables import advisories_line
from provision.machine.probes.installed_packages import installed_versions
from provision.machine.programs.shell import absolute, which
from provision.machine.root.store import Store
from provision.machine.terminal.console import say
from provision.model.layout import EnvironmentId, modulefile_path
from provision.model.plan import Plan
from provision.planning.plan_text import plan_lines
from provision.profile.choices import BackendName
from provision.profile.site import Site


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """What `build` and `upgrade` build: the names of the site, arch, stack and backend, and how."""

    site: str
    arch: str | None
    stack: str | None
    backend: BackendName | None = None
    account: str | None = None
    publish: bool = True
    rebuild: bool = False
    wait: bool = True
    """Whether to follow a job to its end, and to wait for another process that builds the same."""
    verbose: bool = False

    @property
    def nothing_to_do(self) -> str:
        """The sentence of a build that finds everything done."""
        return f"nothing to do: {'built, proved and published' if self.publish else 'built and proved'}"

    def subject(self, arch: str) -> dict[str, str]:
        """The options with which a command in a hint is about the build for one arch, as words of a command line."""
        return {"--arch": shlex.quote(arch), **({"--stack": shlex.quote(self.stack)} if self.stack else {})}

    def read_target(self) -> Target:
        """What the names mean.

        Raises:
            ConfigError: one of them does not exist, or its file has faults.
        """
        target = make_target(shipped.load_site(self.site), self.arch, self.stack, self.backend)
        return dataclasses.replace(target, publish=self.publish, rebuild=self.rebuild)


def is_installed(plan: Plan) -> bool:
    """Whether the packages, the largest part of the environment, are installed already."""
    return any(step.name == "install" and step.action == "keep" for step in plan.steps)


def command_to_use(target: Target, plan: Plan) -> str | None:
    """The command that loads what the plan builds; None as of `load_command`."""
    return load_command(target.site, target.store, plan.environment, publish=target.publish)


def show_plan(plan: Plan, expected: Mapping[str, float], *, verbose: bool, replaced: str | None = None) -> None:
    """Show the plan on stderr, before anything happens."""
    for line in plan_lines(plan, expected=expected, verbose=verbose, replaced=replaced):
        say(line)


def built_outcome(site: Site, store: Store, env: EnvironmentId, what: str, *, publish: bool) -> Outcome:
    """Print on stderr what was done and how the proof went; the text is the command that loads the environment."""
    record, use, advisories = store.record(env), load_command(site, store, env, publish=publish), None
    say(f"{what}: {env}")
    if record:
        advisories = advisories_line(installed_versions(Path(record.prefix)))
        say(f"  proof: {record.proof}")
        say(f"  advisories: {advisories}")
    if use is None:
        say(f"  users no longer load it; `{_tool()} publish --site {site.typed} {env}` publishes it again")
    result = {
        "environment": str(env),
        "done": what,
        "published": is_loaded_by_users(store, env),
        "use": use,
        "record": record.to_dict() if record else None,
        "advisories": advisories,
    }
    return Outcome(text=use or "", result=result)


def load_command(site: Site, store: Store, env: EnvironmentId, *, publish: bool) -> str | None:
    """The command that loads an environment: as users do, or, without `publish` and if they do not, from its own module path.

    None if that path is gone: it is removed when the environment is published, and it was unpublished since then.
    """
    if site.modules.name == "none":
        return f'eval "$({_tool()} activate --site {site.typed} {env})"'
    kind = site.modules.module_kind
    modulepath = store.layout.modules(env.arch) / kind
    if not publish and not is_loaded_by_users(store, env):
        modulepath = store.layout.candidate(env, kind)
        there = is_file(str(modulefile_path(modulepath, kind, env.name, env.version)))
        if not there and store.record(env) is not None:
            return None
    return site.modules.load_command(str(modulepath), f"{env.name}/{env.version}")


def is_loaded_by_users(store: Store, env: EnvironmentId) -> bool:
    """Whether the pointer points to this environment."""
    return store.pointers().get(env.pointer) == str(env)


def _tool() -> str:
    """The name to type for this tool: `make build` runs one that is not on PATH."""
    mine = Path(sys.argv[0])
    found = which("provision")
    on_path = found is not None and absolute(found) == absolute(str(mine))
    return "provision" if on_path or mine.name != "provision" else str(mine)
