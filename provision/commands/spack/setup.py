"""`provision spack setup`: copy one commit of Spack below the site's root, with the Python that runs it."""

from __future__ import annotations

import argparse

from provision.commands.shared.environments import read_store
from provision.commands.shared.outcome import Outcome
from provision.errors import UsageError
from provision.machine.configuration import shipped
from provision.machine.network.spack_sources import set_up
from provision.machine.programs.shell import environ


def run(args: argparse.Namespace) -> Outcome:
    """Copy, make the Python, and put both into use."""
    source = args.source or environ().get("SPACK_ROOT")
    if not source:
        raise UsageError(
            "no Spack was named",
            evidence=["$SPACK_ROOT is not set"],
            hint="`provision spack setup DIR`, where DIR is a checkout of https://github.com/spack/spack",
        )
    store = read_store(shipped.load_site(args.site))
    setup = set_up(store, source, args.commit, args.cache)
    lines = [f"Spack {setup.version}, commit {setup.commit}", f"  {setup.root}"]
    result = {"version": setup.version, "commit": setup.commit, "root": setup.root, "python": setup.python}
    return Outcome(text="\n".join(lines), result=result)
