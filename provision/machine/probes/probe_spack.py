"""The site's Spack, and what loading the site's modules changes: Spack builds without a module command."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from provision.backends.spack.externals import module_changes
from provision.machine.probes.probe import unloaded
from provision.machine.root.spack_setup import read_setup
from provision.machine.root.store import Store
from provision.model.facts import SpackFacts
from provision.model.problem import ProblemKind
from provision.profile.site import Site

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
    return replace(
        module_facts(site, environ),
        cache=setup.cache,
        root=setup.root,
        version=setup.version,
        commit=setup.commit,
        python=setup.python,
    )


def module_facts(site: Site, environ: Mapping[str, str]) -> SpackFacts:
    """What the site's modules change; `environ` has them loaded. The rest is empty."""
    sets, prepends = module_changes(unloaded(site.modules), environ) if site.modules.name != "none" else ((), ())
    return SpackFacts(root="", version="", commit="", python="", sets=sets, prepends=prepends)
