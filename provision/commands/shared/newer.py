"""What `verify` finds newer than the build of an environment that users load: its lock, advisories."""

from __future__ import annotations

from pathlib import Path

from provision.errors import ConfigError, StoreError
from provision.knowledge.advisories import open_advisories
from provision.machine.configuration import shipped
from provision.machine.files.tables import read_advisories
from provision.machine.probes.installed_packages import installed_versions
from provision.machine.root.store import Store
from provision.model.check import Check
from provision.model.layout import EnvironmentId
from provision.planning.upgrade_changes import newer_advisories, newer_lock


def newer_than_build(store: Store, env: EnvironmentId) -> list[Check]:
    """The differences; none for an environment that users do not load: it is kept for going back, and not to be newest."""
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
