"""`provision audit`: which advisories are open in the packages of environments, or in the locks of a stack."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from provision.commands.shared.environments import find_environment, read_store
from provision.commands.shared.outcome import Args, Outcome
from provision.commands.shared.typos import refuse_other_than_one
from provision.errors import EXIT_FAILED, EXIT_OK, ConfigError
from provision.knowledge.advisories import Open, open_advisories
from provision.knowledge.versions import release
from provision.machine.configuration import shipped
from provision.machine.files.tables import given_advisories, read_advisories
from provision.machine.probes.installed_packages import installed_versions
from provision.wording import count, nearest

MOST_NAMED = 6


# What is audited: the name of an environment or a lock, and its packages with their exact versions.
Subject = tuple[str, tuple[tuple[str, str], ...]]


def run(args: Args) -> Outcome:
    """Report the advisories that are open; the exit code is 1 if there are any that `--ignore` does not name."""
    refuse_other_than_one(args, "--all", "--stack", hint="`provision audit --all`")
    subjects = _stack(args.stack) if args.stack else _environments(args.site, args.environment)
    packages = {name for _, packages in subjects for name, _ in packages}
    advisories = given_advisories(args.advisories, packages) if args.advisories else read_advisories()
    ignored = {name.upper() for name in args.ignore}
    lines, results, counted = [], [], 0
    for subject, installed in subjects:
        found = open_advisories(installed, advisories)
        counted += sum(not {name.upper() for name in one.advisory.names} & ignored for one in found)
        lines += [*_lines(subject, len(installed), found, verbose=args.verbose), ""]
        opened = [_result(one, ignored) for one in found]
        results.append({"subject": subject, "packages": len(installed), "open": opened})
    known = [name for advisory in advisories.rows for name in advisory.names]
    lines += [
        f"`--ignore {name}` names no advisory{nearest(name.upper(), known)}"
        for name in args.ignore
        if name.upper() not in {one.upper() for one in known}
    ]
    lines.append(f"advisories: {advisories.taken}")
    if not args.advisories:
        lines.append("newer ones are not known here; `provision audit --advisories FILE` reads them")
    return Outcome(
        text="\n".join(lines),
        result={
            "audited": results,
            "sources": [{"name": name, "date": date} for name, date in advisories.sources],
            "counted": counted,
        },
        exit_code=EXIT_FAILED if counted else EXIT_OK,
    )


def _environments(site: str, environment: str | None) -> list[Subject]:
    """The environments that are named, with the packages that are installed in them."""
    store = read_store(shipped.load_site(site))
    chosen = [find_environment(store, environment)] if environment else store.environments()
    if not chosen:
        raise ConfigError(
            f"there is no environment below `{store.root}`",
            hint="`provision build` builds one; `provision audit --stack STACK` looks at the locks of a stack",
        )
    return [(str(env), installed_versions(Path(store.layout.prefix(env)))) for env in chosen]


def _stack(name: str) -> list[Subject]:
    """The locks of a stack, one for each Python, with what compiles its packages."""
    stack, subjects = shipped.load_stack(name), list[Subject]()
    for minor in stack.pythons:
        locks = [shipped.load_lock(stack.name, minor)]
        locks += [shipped.load_lock("build", minor)] if stack.from_source else []
        pins = tuple((pin.name, pin.version) for lock in locks for pin in lock.pins)
        subjects.append((f"{stack.name}, Python {minor}", pins))
    return subjects


def _lines(subject: str, total: int, found: Sequence[Open], *, verbose: bool) -> list[str]:
    """One subject with so many packages as text: a line for each package, those with most open advisories first."""
    by_package: dict[tuple[str, str], list[Open]] = {}
    for one in found:
        by_package.setdefault((one.package, one.version), []).append(one)
    if not total:
        return [f"{subject}: no package is installed"]
    if not found:
        return [f"{subject}: none of {total} packages has an advisory that is known to be open"]
    lines = [f"{subject}: {len(found)} open in {len(by_package)} of {count(total, 'package')}"]
    for (name, version), ones in sorted(by_package.items(), key=lambda item: (-len(item[1]), item[0])):
        fixed = "; ".join(dict.fromkeys(_fixed(one) for one in ones)) if len(ones) <= MOST_NAMED else _last_fix(ones)
        lines.append(f"  {name} {version}: {len(ones)} open, {fixed}")
        if verbose or len(ones) <= MOST_NAMED:
            lines.append(f"    {' '.join(one.advisory.id for one in ones)}")
        else:
            lines.append("    --verbose names them")
        lines += [f"    {note}" for note in dict.fromkeys(one.advisory.note for one in ones) if note]
    return lines


def _fixed(one: Open) -> str:
    return f"fixed in {one.fixed_in}" if one.fixed_in else "no fixed release is known"


def _last_fix(ones: Sequence[Open]) -> str:
    """The release in which all of them are fixed."""
    fixes = [one.fixed_in for one in ones if one.fixed_in]
    rest = len(ones) - len(fixes)
    words = [f"the last of them fixed in {max(fixes, key=release)}"] if fixes else []
    return "; ".join([*words, *([f"{rest} without a fixed release that is known"] if rest else [])])


def _result(one: Open, ignored: set[str]) -> dict[str, Any]:
    return {
        "package": one.package,
        "version": one.version,
        "id": one.advisory.id,
        "aliases": list(one.advisory.aliases),
        "fixed_in": one.fixed_in,
        "note": one.advisory.note or None,
        "source": one.advisory.source,
        "ignored": bool({name.upper() for name in one.advisory.names} & ignored),
    }
