"""Spack's store below the root: what is installed there, what of it no environment uses, and how Spack uninstalls that.

An environment uses every package of its `spack.lock`. Spack's own garbage collection does not know our environments, because
they are folders and not named environments of its checkout.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from provision.backends.spack import program
from provision.errors import StoreError
from provision.machine.files.disk import write
from provision.machine.programs.run import capture
from provision.machine.root.spack_setup import SpackSetup, read_setup
from provision.machine.root.store import Store
from provision.model.facts import SpackFacts
from provision.model.layout import EnvironmentId

UNINSTALL_LIMIT_S = 600
# The end of a package's folder: `py-pip-24.0-e6cjrpeqzy6ahxvpw3thoa6y76t4l6qj`.
HASH = re.compile(r"-([a-z2-7]{32})$")


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredPackage:
    """A package that Spack installed: its hash, and its folder in the store."""

    hash: str
    path: str


def stored_packages(store: Store) -> tuple[StoredPackage, ...]:
    """What Spack installed below the root, from its database; nothing if there is no store."""
    folder = Path(store.layout.spack_store)
    while not (folder / ".spack-db").is_dir():
        # The padding of paths: `__spack_path_placeholder__`, the last one cut to length.
        inner = next((path for path in folder.glob("_*") if path.is_dir()), None)
        if inner is None:
            return ()
        folder = inner
    index = store.shared.read_json(folder / ".spack-db" / "index.json") or {}
    found = []
    database = index.get("database")
    rows = database.get("installs") if isinstance(database, Mapping) else None
    for key, row in rows.items() if isinstance(rows, Mapping) else ():
        path = row.get("path") if isinstance(row, Mapping) and row.get("installed") else None
        if isinstance(path, str) and path.startswith(f"{folder}/"):  # externals are elsewhere
            found.append(StoredPackage(hash=str(key), path=path))
    return tuple(sorted(found, key=lambda package: package.path))


def unused_packages(store: Store, stay: Iterable[EnvironmentId]) -> tuple[StoredPackage, ...]:
    """The packages that none of these environments uses; nothing if that is not known, because a lock cannot be read."""
    used: set[str] = set()
    try:
        for env in stay:
            found = _used_by(store, env)
            if found is None:
                return ()
            used |= found
        return tuple(package for package in stored_packages(store) if package.hash not in used)
    except StoreError:
        return ()


def _used_by(store: Store, env: EnvironmentId) -> set[str] | None:
    """The hashes in the lock of a Spack environment; None if it should have one, but that cannot be read."""
    prefix = Path(store.layout.prefix(env))
    lock = prefix / "spack.lock"
    if not os.path.lexists(lock):
        finished = (Path(store.layout.records_folder(env)) / "record.json").is_file()
        return None if finished and (prefix / "spack.yaml").is_file() else set()
    packages = (store.shared.read_json(lock) or {}).get("concrete_specs")
    return set(packages) if isinstance(packages, Mapping) else None


def uninstall(store: Store, paths: Sequence[str]) -> dict[str, str]:
    """Let Spack uninstall the packages in these folders; returns why, for each that stays.

    Raises:
        StoreError: the configuration for Spack cannot be written.
    """
    known = {package.path: package.hash for package in stored_packages(store)}
    hashes = [known[path] for path in paths if path in known]
    setup = read_setup(store)
    if setup is None:
        return dict.fromkeys(paths, "no Spack is set up, which removes it: `provision spack setup`")
    if not hashes:
        return {}
    folder = Path(store.layout.spack_cache) / "uninstall"
    write(folder / "config.yaml", program.configuration(store.layout, str(folder / "stage"), 1))
    write(folder / "repos.yaml", "# Written by provision: no package is needed to remove one.\nrepos:: {}\n")
    (Path(store.layout.spack_cache) / "home").mkdir(parents=True, exist_ok=True)
    spack, words = _facts(setup), ("uninstall", "--yes-to-all", "--force", *(f"/{key}" for key in hashes))
    argv = program.argv(spack, str(folder), "", *words)
    done = capture(argv, dict(program.environ(store.layout, spack)), UNINSTALL_LIMIT_S)
    why = next((line for line in done.stderr.splitlines() if "Error" in line), f"`spack` ended with {done.returncode}")
    return {path: why for path in paths if os.path.lexists(path)}


def uninstall_command(store: Store, prefix: str, path: str) -> str | None:
    """The command with which a person removes the package that this file of an environment belongs to; None if none can."""
    setup = read_setup(store)
    folders = [str(folder) for folder in Path(path).parents if HASH.search(folder.name)]
    found = HASH.search(folders[-1]) if folders else None
    if setup is None or found is None:
        return None
    spack = _facts(setup)
    variables = [f"{name}={value}" for name, value in program.environ(store.layout, spack)]
    argv = program.argv(spack, f"{prefix}/.provision/spack", prefix, "uninstall", "-y", "-f", f"/{found[1]}")
    return shlex.join(("env", "-i", *variables, *argv[argv.index("spack") + 1 :]))


def _facts(setup: SpackSetup) -> SpackFacts:
    return SpackFacts(root=setup.root, version=setup.version, commit=setup.commit, python=setup.python)
