"""The site's Spack, and what loading the site's modules changes: Spack builds without a module command."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from provision.backends.spack.externals import module_changes
from provision.machine.files.disk import exists
from provision.machine.probes.loaded_modules import unloaded
from provision.machine.root.spack_setup import read_setup, setup_file
from provision.machine.root.store import Store
from provision.model.estimate import expected_seconds
from provision.model.facts import SpackFacts
from provision.model.problem import ProblemKind
from provision.model.quoting import quote_sh
from provision.profile.site import Site
from provision.profile.stack import Stack

# The steps of a build that differ between the routes.
TIMED = ("concretize", "install", "view")
Report = Callable[[ProblemKind, str, str, str, Sequence[str]], None]


def find_spack(site: Site, store: Store, environ: Mapping[str, str], report: Report) -> SpackFacts | None:
    """The Spack that was set up for the site; if there is none, that is a problem."""
    setup = read_setup(store)
    if setup is None:
        report(
            "missing",
            "spack",
            f"site `{site.name}` has no Spack, which the backend `spack` needs",
            f"`provision spack setup DIR --commit COMMIT --site {site.typed}`, with a checkout of Spack",
            [f"searched: {store.layout.spack}"],
        )
        return None
    again = f"`provision spack setup {quote_sh(setup.source)} --commit {setup.commit} --site {site.typed}`"
    folder = Path(setup.python).parent.parent
    if not any(folder.glob("lib*/python*/site-packages/clingo")):
        report(
            "broken",
            "spack",
            "the Python of Spack has no clingo, without which Spack cannot solve",
            f"{again} installs it",
            [f"searched: {folder}/lib/python*/site-packages/clingo"],
        )
        return None
    if setup.cache.startswith("file://") and not exists(setup.cache.removeprefix("file://")):
        report(
            "missing",
            "spack",
            f"the build cache `{setup.cache}`, from which all packages are to come, is not there",
            f"{again} builds without it; add `--cache DIR` for another one",
            [f"named in: {setup_file(store)}"],
        )
        return None
    return replace(
        module_facts(site, environ),
        cache=setup.cache,
        closed=_closed(store),
        root=setup.root,
        version=setup.version,
        commit=setup.commit,
        python=setup.python,
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
