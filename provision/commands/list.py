"""`provision list`: the environments of a site, and the state of each."""

from __future__ import annotations

import argparse
from typing import Any

from provision.commands.shared.options import add_site
from provision.commands.shared.outcome import Outcome
from provision.commands.shared.target import read_store
from provision.errors import StoreError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the option that names the site."""
    add_site(parser)


def run(args: argparse.Namespace) -> Outcome:
    """List the environments."""
    from provision.machine.configuration import shipped

    store = read_store(shipped.load_site(args.site))
    pointers = {env: name for name, env in store.pointers().items()}
    rows: list[dict[str, Any]] = []
    for env in store.environments():
        try:
            record = store.record(env)
            state = "published" if str(env) in pointers else "proved" if record else "unfinished"
        except StoreError as error:
            record, state = None, "untrusted" if error.kind == "untrusted" else "damaged"
        rows.append(
            {
                "environment": str(env),
                "state": state,
                "module": pointers.get(str(env), "").split("/", 1)[-1] or None,
                "built": record.built if record else None,
                "proof": record.proof if record else None,
                "steps": sorted(store.receipts(env)),
            }
        )
    if not rows:
        return Outcome(
            text=f"there is no environment below {store.root}; `provision build` builds one",
            result={"environments": []},
        )
    width = max(len(row["environment"]) for row in rows)
    lines = [f"{row['state']:<10}  {row['environment']:<{width}}  {row['proof'] or 'no proof'}" for row in rows]
    return Outcome(text="\n".join(lines), result={"environments": rows})
