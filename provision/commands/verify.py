"""`provision verify`: check that environments and the machine are as they were when the environments were proved.

With `--loaded`, users and job scripts compare what their shell has loaded.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
from collections.abc import Callable
from pathlib import Path, PurePosixPath

from provision.commands.shared.environments import (
    arch_below,
    describe_arch,
    find_environment,
    of_other_archs,
    set_by_module,
    site_and_store,
)
from provision.commands.shared.ground import check_venv
from provision.commands.shared.hints import complete_result, complete_with
from provision.commands.shared.outcome import Args, Outcome
from provision.commands.shared.typos import refuse_other_than_one, refuse_unused
from provision.errors import EXIT_FAILED, EXIT_OK, ConfigError, PlanError, StoreError
from provision.knowledge.advisories import open_advisories
from provision.machine.configuration import shipped
from provision.machine.files.tables import read_advisories
from provision.machine.install.make_own_venv import read_venv
from provision.machine.probes.installed_packages import installed_versions, shadows_on
from provision.machine.probes.look_around import tool_on_path
from provision.machine.programs.shell import environ, which
from provision.machine.root.checking import examine, glance, remember
from provision.machine.root.completing import hint_to_complete, needed_subject
from provision.machine.root.store import Store
from provision.machine.root.usable import unusable
from provision.machine.sharing.shared_root import SharedRoot
from provision.model.check import Check
from provision.model.condition import Examination, describe, totals
from provision.model.layout import EnvironmentId, Layout
from provision.model.own_venv import Beneath
from provision.model.record import Record
from provision.planning.upgrade_changes import newer_advisories, newer_lock
from provision.proof.loaded import judge_loaded


def run(args: Args) -> Outcome:
    """Compare; exit 1 if something differs."""
    hint = "`provision verify ENVIRONMENT`, `provision verify --all`, or in a shell with a module `--loaded`"
    refuse_other_than_one(args, "--all", "--loaded", hint=hint)
    if args.loaded:
        refuse_unused(args, "`--loaded` reads no files", "--hashes", "--arch")
        return _loaded()
    return _examine(args)


def _examine(args: Args) -> Outcome:
    """Compare environments with their manifests, and with the machine of now."""
    site, store = site_and_store(args)
    arch, only = arch_below(site, args.arch) if args.all else None, None
    loaded = set(store.pointers().values())
    if args.all:
        proved = [env for env in store.environments() if glance(store, env, loaded=str(env) in loaded).finished]
        envs = [env for env in proved if arch in (None, env.arch)]
        if args.arch and not envs and arch not in store.generations.archs():
            raise ConfigError(
                f"no environment of arch {describe_arch(site, args.arch)} below `{store.root}` has passed its proof",
                evidence=of_other_archs(proved),
                hint=f"`provision list --site {site.typed}` lists all of them",
                kind="unknown-environment",
            )
    else:
        only = find_environment(store, args.environment, args.arch, site=site)
        envs, arch = [only], only.arch
        if not glance(store, only, loaded=str(only) in loaded).finished:
            raise PlanError(
                f"`{only}` has not passed its proof, so there is nothing to compare it with",
                hint=hint_to_complete(store, only, site),
                kind="unproved",
            )
    found: list[Examination] = []
    lines: list[str] = []

    def completed(name: str | None) -> Callable[[str], str]:  # of several environments, each has its own arch and stack
        return functools.partial(complete_with, given=needed_subject(store, name, site))

    for env in envs:
        examination, newer = examine(store, env, hashes=args.hashes), _newer_than_build(store, env)
        examination = dataclasses.replace(examination, differences=(*examination.differences, *newer))
        remember(store, env, examination)
        found.append(examination)
        lines += map(completed(str(env)), describe(examination))
    broken = {examination.environment for examination in found if examination.condition == "broken"}
    lost = [
        completed(module.group or None)(f"{module.name}: {module.message}; {module.hint}")
        for module in unusable(store, arch, only)
        if module.group not in broken
    ]
    lines += [f"broken   {line}" for line in lost]
    bad = bool(lost) or any(examination.condition != "fresh" for examination in found)
    return Outcome(
        text="\n".join([*lines, *([totals(found)] if found or not lost else [])]),
        result={
            "environments": [complete_result(one.to_dict(), completed(one.environment)) for one in found],
            "lost": lost,
            "condition": "broken" if lost or broken else "drifted" if bad else "fresh",
        },
        exit_code=EXIT_FAILED if bad else EXIT_OK,
    )


def _loaded() -> Outcome:
    """Compare the module that is loaded with the record of its proof."""
    name, prefix = set_by_module("PROVISION_ENVIRONMENT"), set_by_module("VIRTUAL_ENV")
    own: Beneath | None = None
    with contextlib.suppress(ConfigError):  # it is another folder, such as the environment itself
        own = read_venv(Path(prefix))
    below = Path(own.prefix if own else prefix)
    record = _record(below / ".provision" / "record.json", name)
    env = EnvironmentId.parse(name)
    store = Store(Layout(PurePosixPath(str(below).removesuffix(f"/envs/{env}"))))
    examination = examine(store, env, hashes=False)
    checks = [
        *judge_loaded(
            record,
            environ(),
            which("python"),
            venv=prefix if own else None,
            damage=glance(store, env, loaded=True).why
            or (examination.why if examination.condition == "broken" else None),
            shadows=shadows_on(environ().get("PYTHONPATH", ""), below),
            tool=tool_on_path(environ()),
        ),
        *(check_venv(Path(prefix))[1] if own else ()),
    ]
    wrong = [check for check in checks if not check.passed]
    return Outcome(
        text="\n".join((f"environment  {name}", *(line for one in checks for line in one.to_lines(named=True)))),
        result={"environment": name, "checks": [check.to_dict() for check in checks]},
        exit_code=EXIT_FAILED if wrong else EXIT_OK,
    )


def _record(path: Path, name: str) -> Record:
    """The record of the environment that is loaded.

    Raises:
        ConfigError: it is missing, damaged, or of another environment.
    """
    try:
        prefix = PurePosixPath(path.parent.parent)
        record = Record.from_dict(SharedRoot(Layout(prefix)).read_json(path) or {})
        if record.environment != name:
            raise ValueError(f"it is the record of {record.environment}")
    except ValueError as error:
        raise ConfigError(
            f"`{path}` is not the record of `{name}`",
            evidence=[str(error), "the environment was removed or damaged, or another one was activated after it"],
            hint="load the module in a new shell",
            kind="damaged-record",
        ) from error
    return record


def _newer_than_build(store: Store, env: EnvironmentId) -> list[Check]:
    """What is newer than the build of an environment: its lock, advisories.

    Nothing is for an environment that users do not load: it is kept for going back, and not to be newest.
    """
    if store.pointers().get(env.pointer) != str(env):
        return []
    try:
        record = store.record(env)
    except StoreError:
        return []  # the examination reports it
    if record is None:
        return []
    installed = installed_versions(Path(store.layout.prefix(env)))
    open_now = {one.advisory.id: one.package for one in open_advisories(installed, read_advisories())}
    found = newer_advisories(record, open_now, record.stack)
    minor = ".".join(record.identity.get("python", "").partition(" ")[0].split(".")[:2])
    try:
        lock = shipped.load_lock(record.stack, minor)
    except ConfigError:
        return found  # the configuration has no such stack any more, or another user's
    return [*newer_lock(record, lock, dict(installed), record.stack), *found]
