"""`provision show`: one environment: its parts, when and how fast it was built, and its proof."""

from __future__ import annotations

import textwrap
from pathlib import Path

from provision.commands.shared.environments import find_environment, named_environment
from provision.commands.shared.outcome import Args, Outcome
from provision.errors import PlanError
from provision.machine.files.tables import advisories_line
from provision.machine.probes.installed_packages import installed_versions
from provision.machine.root.checking import glance
from provision.machine.root.completing import command_to_complete, hint_to_complete
from provision.machine.root.entries import building, marks_of
from provision.machine.root.store import Store
from provision.model.layout import EnvironmentId
from provision.planning.overview import mark_words
from provision.planning.upgrade_changes import record_diff
from provision.proof.reports import start_lines
from provision.wording import columns


def run(args: Args) -> Outcome:
    """Show the environment."""
    site, store, env = named_environment(args)
    if args.diff is not None:
        return _diff(store, find_environment(store, args.diff), env)
    pointer = store.pointers().get(env.pointer)
    seen = glance(store, env, loaded=pointer == str(env))
    if seen.newer:
        raise seen.newer
    record, why = seen.record, seen.why
    if record is None:
        done, by = sorted(store.receipts(env)), None if why else building(store, env)
        state = f"broken: {why}" if why else "building" if by else "unfinished"
        shown = state if why else f"{by or state}; done: {', '.join(done) or 'nothing'}"
        text = f"environment  {env}\nstate        {shown}"
        if why:
            text += f"\n\nhint: `{command_to_complete(store, env, site)}` builds it again, beside this one"
        elif not by:
            text += f"\n\nhint: {hint_to_complete(store, env, site)}"
        return Outcome(text=text, result={"environment": str(env), "state": state, "steps": done})
    state = "proved, but the module loads another environment" if pointer else "proved"
    if pointer == str(env):
        state = "published"
    if why:
        state = f"broken: {why}"
    marks = marks_of(store, env, store.generations.look(store.generations.pointer(env.arch))[0])
    advisories = advisories_line(installed_versions(Path(store.layout.prefix(env))))
    lines = [
        f"environment  {env}",
        f"state        {state}",
        *([f"marks        {mark_words(marks)}"] if marks else []),
        f"module       {record.module}",
        f"prefix       {record.prefix}",
        f"built        {record.built} on {record.host}"
        + (f", job {record.job}" if record.job else "")
        + (f", by {record.user}" if record.user else ""),
        f"proof        {record.proof}",
        f"advisories   {advisories}",
        *([f"forced       {record.forced}"] if record.forced else []),
        "",
        "from",
        *(line for name, value in record.identity.items() for line in _part(name, value)),
        "",
        "checked",
        *(f"  {check.name}: {check.message}" for check in (*record.checks, *record.verdict.verdict.checks)),
        "",
        "start",
        *start_lines(record.verdict.verdict.figures),
        "",
        "seconds",
        *(f"  {name:<18} {seconds}" for name, seconds in record.seconds.items()),
        "",
        f"logs         {store.layout.log(env, 'x').parent}",
    ]
    return Outcome(
        text="\n".join(lines), result={"state": state, "marks": marks, "advisories": advisories, **record.to_dict()}
    )


def _part(name: str, value: str) -> list[str]:
    """A part of the identity as lines; the hashes of patches are left to `--json`."""
    if name == "patches" and value:
        names = [one.partition(".patch:")[0] for one in value.split()]
        value = f"{len(names)}, whose hashes are in `--json`: {', '.join(names)}"
    return textwrap.wrap(
        value,
        118,
        initial_indent=f"  {name:<18} ",
        subsequent_indent=" " * 21,
        break_long_words=False,
        break_on_hyphens=False,
    )


def _diff(store: Store, first: EnvironmentId, second: EnvironmentId) -> Outcome:
    """What differs between two environments that passed their proof: packages, identity, figures, machine."""
    before, after = (store.record(env) for env in (first, second))
    if before is None or after is None:
        raise PlanError(
            f"`{first if before is None else second}` has not passed its proof, so it has no record",
            hint="`provision list` shows the state of each",
            kind="unproved",
        )
    rows = record_diff(
        before, after, *(dict(installed_versions(Path(store.layout.prefix(env)))) for env in (first, second))
    )
    lines = [f"- {first}", f"+ {second}"]
    lines += columns(
        [(f"{one.group} {one.name}", f"{one.before or '(none)'} -> {one.after or '(none)'}") for one in rows]
    )
    return Outcome(
        text="\n".join(lines if rows else [*lines, "no difference"]),
        result={"before": str(first), "after": str(second), "differences": [one.to_dict() for one in rows]},
    )
