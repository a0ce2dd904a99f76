"""`provision list`: the environments of a site, and the state of each."""

from __future__ import annotations

from provision.commands.shared.environments import arch_below, site_and_store
from provision.commands.shared.outcome import Args, Outcome
from provision.errors import EXIT_FAILED, EXIT_OK
from provision.machine.root.entries import lost_modules, read_overview
from provision.machine.root.store import Store
from provision.machine.terminal.console import width_of_output
from provision.planning.overview import Entry, select, table
from provision.wording import count


def run(args: Args) -> Outcome:
    """List the environments; the exit code is 1 if users can load what is not whole. Columns that do not fit are left out."""
    site, store = site_and_store(args)
    entries = read_overview(store)
    chosen = select(entries, arch=arch_below(site, args.arch), stack=args.stack, state=args.state, sort=args.sort)
    lost = lost_modules(store, entries)
    rows = [row(entry, store) for entry in chosen]
    if not entries:
        lines = [f"there is no environment below {store.root}; `provision build` builds one"]
    elif not chosen:
        which = f"all {len(entries)}" if len(entries) > 1 else "the only one"
        lines = [f"no environment below {store.root} matches; `provision list --site {site.typed}` lists {which}"]
    else:
        lines = table(chosen, width_of_output())
    if lost:
        modules = count(len(lost), "module")
        lines.append(f"{modules} of users cannot be relied on: `provision verify --all --site {site.typed}` says why")
    return Outcome(
        text="\n".join(lines),
        result={"environments": rows, "lost": lost},
        exit_code=EXIT_FAILED if lost else EXIT_OK,
    )


def row(entry: Entry, store: Store) -> dict[str, object]:
    """An environment as JSON."""
    record = entry.record
    done = (*record.seconds, "publish") if record else store.receipts(entry.environment)
    return {
        "environment": str(entry.environment),
        "arch": entry.environment.arch,
        "state": entry.state,
        "module": entry.module,
        "stack": record.stack if record else None,
        "prefix": record.prefix if record else None,
        "bytes": entry.size_bytes,
        "built": record.built if record else None,
        "proof": record.proof if record else None,
        "why": entry.why,
        "marks": dict(entry.marks),
        "steps": sorted(done),
    }
