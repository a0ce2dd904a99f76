"""`provision site new`: write your own profile, filling the blanks of one from this machine, `--set` and your answers."""

from __future__ import annotations

import contextlib
import re
import shlex
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import archspec.cpu

from provision.commands.shared.outcome import Args, Outcome
from provision.commands.site.browse import table
from provision.commands.site.dialogue import Dialogue, doubt
from provision.errors import ConfigError
from provision.machine.configuration import shipped
from provision.machine.configuration.permissions import parse
from provision.machine.configuration.search_path import shipped_root
from provision.machine.files.disk import exists, read_given, remove, rewrite, write
from provision.machine.files.tables import advisories_line
from provision.machine.probes.ask_scheduler import mpi_types, node_kinds
from provision.machine.probes.login_node import modules_here, path_of_new_profile, today, values_here
from provision.machine.terminal.console import can_ask, say
from provision.planning.site_proposals import SeenMachine, kinds_by_name
from provision.profile.blanks import (
    blanks,
    copy_arch,
    fill,
    keep_archs,
    own_sources,
    with_archs,
)
from provision.profile.patterns import NAME
from provision.profile.provenance import walk
from provision.profile.site import Site, read_site
from provision.wording import count, nearest, nearest_name

TEMPLATE = "generic-slurm"


def run(args: Args) -> Outcome:
    """Fill in the known values, ask for the others on a terminal, write the file, and list what is left."""
    _refuse_name(args.name)
    path = path_of_new_profile(args.name)
    again = exists(str(path))
    source = str(path) if again else args.source or TEMPLATE
    text, notes, seen = _read_existing(path, args) if again else _read_template(source, args)
    data = shipped.parse_profile(text, str(path))
    archs = table(data, "archs")
    dialogue = Dialogue(
        text=text,
        blanks=blanks(text, parse),
        gpu_archs=[arch for arch in archs if "gpu" in table(archs, arch)],
        seen=seen,
        draft=path.with_name(f"{path.name}.draft"),
        of={"from": source, "archs": [*archs]},
    )
    dialogue.answers.update(_given(args, dialogue, path, {key for key, _ in walk(data)} if again else ()))
    asks = can_ask() and not args.json
    if asks:
        for note in notes:
            say(note)
        dialogue.run()
    else:
        dialogue.take_proposals()
        notes = [] if again else notes
        notes += [f"note: {note}" for key, answer in dialogue.answers.items() if (note := doubt(key, answer))]
    answers = dialogue.answers
    left = [blank for blank in dialogue.blanks if blank.path not in answers]
    filled = fill(text, None if again else args.name, dialogue.blanks, answers)
    if dialogue.blanks and not again:
        filled = own_sources(filled, args.name, source, today())
    _refuse_faults(filled, path, args.name, source, complete=not left)
    (rewrite if again else write)(path, filled)
    remove(dialogue.draft)
    lines = [f"written: {path}", *(f"  from this machine: {key} = {answers[key]}" for key in dialogue.taken)]
    if left:
        are = "is" if len(left) == 1 else "are"
        lines.append(f"{count(len(left), 'value')} {are} still to be filled in before a build:")
        lines += [f'  {blank.path} = "?"' + (f"  # {blank.question}" if blank.question else "") for blank in left]
    lines += [] if asks else notes
    typed = shlex.quote(args.name)
    first = (
        f"`provision site new {typed}` asks for them again; then `provision site check {typed}` and " if left else ""
    )
    lines.append(f"next: {first}`provision doctor --site {typed}`")
    if not left:
        lines += _advisories(shipped.load_site(str(path)), typed)
    lines += _other_nodes(seen, table(shipped.parse_profile(filled, str(path)), "archs"), typed)
    return Outcome(
        text="\n".join(lines), result={"file": str(path), "filled": answers, "left": [blank.path for blank in left]}
    )


def _refuse_name(name: str) -> None:
    """Raise if a site cannot have this name; the hint has the nearest valid name."""
    if NAME.fullmatch(name):
        return
    valid = re.sub(r"[^A-Za-z0-9_.+-]+", "-", name).strip("-_.+")
    raise ConfigError(
        f"`{name}` cannot be the name of a site: use letters, digits and `_.+-`",
        hint=f"`provision site new {valid or 'mysite'}`",
    )


def _read_existing(path: Path, args: Args) -> tuple[str, list[str], SeenMachine]:
    """The text of the user's own profile, with the archs to add; a note, and what this machine shows.

    Raises:
        ConfigError: it has no blanks and no arch is to be added, or an option asks for more than that.
    """
    data, _ = shipped.load_profile(str(path))
    text = read_given(str(path), "profile")
    archs, asked, typed = table(data, "archs"), blanks(text, parse), shlex.quote(args.name)
    edit = f"edit it, or remove it: `rm {shlex.quote(str(path))}`"
    added = [arch for arch in dict.fromkeys(args.arch or ()) if arch not in archs]
    if args.source:
        raise ConfigError(
            f"`{path}` already exists, but `--from` is for a new profile",
            hint=f"`provision site new {typed}` fills in its blanks; or {edit}",
        )
    if not asked and not added:
        adds = f"`provision site new {typed} --arch NAME` adds an arch; or "
        raise ConfigError(f"`{path}` already exists, and has no blanks", hint=adds + edit)
    others = [arch for arch in archs if args.arch and not added and arch not in args.arch]
    if others:
        raise ConfigError(f"`{path}` already exists, with the arch `{others[0]}`", hint=f"omit `--arch`; or {edit}")
    if wrong := [arch for arch in added if not NAME.fullmatch(arch)]:
        raise ConfigError(f"{wrong[0]!r} cannot be the name of an arch", hint="letters, digits and `_.+-`")
    notes = [f"continuing with the blanks of `{path}`"] if asked else []
    if not added:
        return text, notes, surroundings([blank.path for blank in asked])
    template = read_given(str(shipped.load_profile(TEMPLATE)[1]), "profile")
    seen = surroundings([blank.path for blank in (*asked, *blanks(template, parse))])
    shown = kinds_by_name(seen.kinds, seen.targets)
    for arch in added:
        has_gpus = shown[arch].gpus > 0 if arch in shown else "gpu" in arch.lower()
        text = f"{text.rstrip()}\n\n{copy_arch(template, 'gpu' if has_gpus else 'cpu', arch).rstrip()}\n"
        notes.append(f"adding the arch `{arch}` to `{path}`, with{'' if has_gpus else 'out'} GPUs")
    return text, notes, seen


def _read_template(source: str, args: Args) -> tuple[str, list[str], SeenMachine]:
    """The text of the profile to copy, with the archs that the site has; a note on them; what this machine shows.

    Raises:
        ConfigError: there is no such profile or arch, or the new site would replace one that comes with the tool.
    """
    typed = shlex.quote(args.name)
    if args.source != args.name and exists(f"{shipped_root()}/sites/{args.name}.toml"):
        raise ConfigError(
            f"`{args.name}` is a site that comes with the tool, and every `--site {args.name}` would mean yours instead",
            hint=f"choose another name; or replace that site by a copy of it: `provision site new {typed} --from {typed}`",
        )
    data, path = shipped.load_profile(source)
    text = read_given(str(path), "profile")
    seen = surroundings([blank.path for blank in blanks(text, parse)])
    shown = kinds_by_name(seen.kinds, seen.targets) if source == TEMPLATE else {}
    patterns = {arch: arch for arch in table(data, "archs")}
    patterns |= {name: "gpu" if kind.gpus else "cpu" for name, kind in shown.items()}
    notes = []
    if shown and not args.arch:
        kinds = ", ".join(f"`{name}` (partition `{kind.partition}`)" for name, kind in shown.items())
        notes = [f"Slurm shows these kinds of nodes: {kinds}; `--arch NAME` keeps one"]
    kept = args.arch or [*shown] or [*table(data, "archs")]
    if all(patterns.get(name) == name for name in kept) or not set(kept) <= set(patterns):
        return keep_archs(text, kept), notes, seen
    return with_archs(text, {name: patterns[name] for name in kept}), notes, seen


def _other_nodes(seen: SeenMachine, archs: Mapping[str, Any], typed: str) -> list[str]:
    """A line for each kind of node that no arch of the profile has, by their partitions."""
    partitions = {table(table(archs, arch), "job").get("partition") for arch in archs}
    return [
        f"partition `{kind.partition}` has other nodes: `provision site new {typed} --arch {name}`"
        for name, kind in kinds_by_name(seen.kinds, seen.targets).items()
        if name not in archs and kind.partition not in partitions
    ]


def _advisories(site: Site, typed: str) -> list[str]:
    """A line for each stack of the archs that has open advisories, and where newer stacks are shown."""
    lines = []
    archs = {arch.stack or site.stack: arch.name for arch in reversed(site.archs)}
    for name, arch in reversed(archs.items()):
        with contextlib.suppress(ConfigError):  # a stack with ranges has no lock of its own
            lock = shipped.load_lock(name, shipped.load_stack(name).pythons[0])
            known = advisories_line((pin.name, pin.version) for pin in lock.pins).partition(";")[0]
            newer = f"`provision compat --site {typed} --arch {arch}` shows newer stacks"
            if not known.startswith("none"):
                lines.append(f"advisories of `{name}`: {known}; `provision audit --stack {name}` names them, {newer}")
    return lines


def _given(args: Args, dialogue: Dialogue, path: Path, filled: Collection[str]) -> dict[str, str]:
    """The answers in `--set`; `filled` are the keys that the user's own profile has: only its blanks get values.

    Raises:
        ConfigError: one is for a key that is not a blank of this profile, or is wrong.
    """
    listing = f"`provision site new {shlex.quote(args.name)}` asks for the blanks, or lists them"
    keys = [blank.path for blank in dialogue.blanks]
    answers: dict[str, str] = {}
    for setting in args.set:
        key, separator, value = setting.partition("=")
        if not separator or not key or not value.strip():
            raise ConfigError(f"`--set {setting}` is not KEY=VALUE", hint="`--set archs.gpu.target=zen3`")
        if key not in keys and key in filled:
            raise ConfigError(f"`{key}` already has a value in `{path}`", hint=f"edit `{path}`")
        if key not in keys:
            near = nearest_name(key, keys)
            raise ConfigError(
                f"`{key}` is not a blank of this profile{nearest(key, keys)}",
                evidence=[f"blanks: {', '.join(keys) or 'none'}"],
                hint=f"`--set {shlex.quote(f'{near}={value}')}`" if near else listing if keys else "omit `--set`",
            )
        answers[key] = dialogue.complete(key, value.strip())
    for key, answer in answers.items():
        if faults := dialogue.check(key, answers):
            raise ConfigError(
                f"`--set {key}={answer}` is not a valid answer",
                evidence=[f"{key}: {fault}" for fault in faults],
                hint=f"correct it, or omit it: {listing}",
            )
    return answers


def _refuse_faults(filled: str, path: Path, name: str, origin: object, *, complete: bool) -> None:
    """Refuse a text that is not TOML or, if it is complete, not a profile. The answers are right: the fault is in `origin`."""
    try:
        data = shipped.parse_profile(filled, str(path))
        if complete:
            read_site(data, str(path), shipped.environment(), name)
    except ConfigError as error:
        hint = f"nothing was written; correct `{origin}`, then run the same command again"
        raise ConfigError(error.message, evidence=error.evidence, hint=hint) from error


def surroundings(keys: Sequence[str]) -> SeenMachine:
    """What this machine shows of the site: its scheduler's nodes and its modules."""
    if not keys:
        return SeenMachine()
    return SeenMachine(
        values=values_here(keys),
        kinds=node_kinds(),
        modules=modules_here(),
        targets=frozenset(archspec.cpu.TARGETS),
        mpi_types=mpi_types(),
    )
