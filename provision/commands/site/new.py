"""`provision site new`: write your own profile, filling the blanks of one from this machine, `--set` and your answers."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from provision.commands.shared.outcome import Outcome
from provision.errors import ConfigError
from provision.machine.terminal.console import can_ask, say

if TYPE_CHECKING:
    from provision.planning.site_proposals import Surroundings
    from provision.profile.blanks import Blank


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options that name the profile and the known values."""
    parser.add_argument(
        "name",
        metavar="NAME",
        help="name of the new site: sites/NAME.toml below $PROVISION_CONFIG, or else below ~/.config/provision; "
        "if that exists, its blanks are filled in",
    )
    parser.add_argument(
        "--from",
        dest="source",
        metavar="SITE",
        default="generic-slurm",
        help="the profile to fill in (default: generic-slurm)",
    )
    parser.add_argument(
        "--arch",
        action="append",
        metavar="ARCH",
        help="keep this arch of the profile and leave out the others; can be repeated",
    )
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="the value of a blank (`-`: leave the key out); can be repeated",
    )


def run(args: argparse.Namespace) -> Outcome:
    """Fill in the known values, ask for the others on a terminal, write the file, and list what is left."""
    from provision.commands.site.dialogue import Dialogue, Draft
    from provision.knowledge.targets import require_known_target
    from provision.machine.configuration import shipped
    from provision.machine.disk import exists, read_given, rewrite, write
    from provision.machine.probes.login_node import path_of_new_profile, today
    from provision.planning.site_proposals import archs_without_nodes, propose
    from provision.profile.blanks import blanks, faults_of_answer, fill, keep_archs, own_sources, unneeded
    from provision.profile.patterns import NAME
    from provision.profile.site import read_site
    from provision.wording import count

    if not NAME.fullmatch(args.name):
        raise ConfigError(f"`{args.name}` cannot be the name of a site: use letters, digits and `_.+-`")
    path = path_of_new_profile(args.name)
    again = exists(str(path))
    typed = shlex.quote(args.name)
    if not again and args.source != args.name and exists(str(shipped.shipped_root() / "sites" / f"{args.name}.toml")):
        raise ConfigError(
            f"`{args.name}` is a site that comes with the tool, and every `--site {args.name}` would mean yours instead",
            hint=f"choose another name; or replace that site by a copy of it: `provision site new {typed} --from {typed}`",
        )
    data, source = shipped.load_profile(str(path) if again else args.source)
    text = read_given(str(source), "profile")
    if again:
        _refuse_complete(path, blanks(text, shipped.parse), args.arch, data)
    seen = surroundings([blank.path for blank in blanks(text, shipped.parse)])
    gpu_archs = [arch for arch, values in data.get("archs", {}).items() if "gpu" in values]
    cpu_archs = [arch for arch in data.get("archs", {}) if arch not in gpu_archs]
    notes = []
    if args.arch and not again:
        text = keep_archs(text, args.arch)
    elif (
        not again and blanks(text, shipped.parse) and (absent := archs_without_nodes(gpu_archs, cpu_archs, seen.kinds))
    ):
        text = keep_archs(text, [arch for arch in (*cpu_archs, *gpu_archs) if arch not in absent])
        notes = [
            f"Slurm has no nodes for arch `{arch}`, which is left out; `--arch {arch}` keeps it" for arch in absent
        ]
    data = shipped.parse(text, str(source))
    asked = blanks(text, shipped.parse)
    answers = dict(_typed(setting) for setting in args.set)
    fill(text, None, asked, answers)  # refuse a wrong key before asking anything
    draft = Draft(path=path.with_name(f"{path.name}.draft"), source=args.source, archs=list(data.get("archs", {})))
    if can_ask() and not args.json:
        for note in [f"continuing with the blanks of `{path}`"] if again else notes:
            say(note)
        kept = {key: value for key, value in draft.read().items() if key not in answers}
        if kept:
            say(f"continuing with {count(len(kept), 'answer')} of `{draft.path}`")

        def check(key: str, given: Mapping[str, str]) -> list[str]:
            faults = faults_of_answer(text, asked, given, key, shipped.parse, shipped.environment())
            if not faults and key.endswith(".target"):
                require_known_target(given[key])
            return faults

        dialogue = Dialogue(
            blanks=asked,
            answers={**kept, **answers},
            gpu_archs=gpu_archs,
            surroundings=seen,
            check=check,
            doubt=doubt,
            draft=draft,
        )
        dialogue.run()
        answers, taken = dialogue.answers, dialogue.taken
    else:
        taken = []
        for blank in asked:
            proposal = "-" if unneeded(blank.path, answers) else propose(blank.path, answers, gpu_archs, seen)
            if blank.path not in answers and proposal:
                answers[blank.path] = proposal
                taken += [] if proposal == "-" else [blank.path]
        notes += [f"note: {note}" for key, answer in answers.items() if (note := doubt(key, answer))]
    left = [blank for blank in asked if blank.path not in answers]
    filled = fill(text, None if again else args.name, asked, answers)
    if asked and not again:
        filled = own_sources(filled, args.name, args.source, today())
    filled_data = shipped.parse(filled, str(path))
    if not left:
        try:
            read_site(filled_data, str(path), shipped.environment(), args.name)
        except ConfigError as error:
            hint = "nothing was written; run the same command again, with `--set KEY=VALUE` for the wrong value"
            raise ConfigError(error.message, evidence=error.evidence, hint=hint) from error
    (rewrite if again else write)(path, filled)
    draft.end()
    lines = [f"written: {path}", *(f"  from this machine: {key} = {answers[key]}" for key in taken)]
    if left:
        lines += [
            f"{count(len(left), 'value')} {'is' if len(left) == 1 else 'are'} still to be filled in before a build:"
        ]
        lines += [f'  {blank.path} = "?"' + (f"  # {blank.question}" if blank.question else "") for blank in left]
    lines += [] if can_ask() and not args.json else notes
    first = (
        f"`provision site new {typed}` asks for them again; then `provision site check {typed}` and " if left else ""
    )
    lines.append(f"next: {first}`provision doctor --site {typed}`")
    return Outcome(
        text="\n".join(lines), result={"file": str(path), "filled": answers, "left": [blank.path for blank in left]}
    )


def doubt(key: str, answer: str) -> str:
    """What may be wrong with an answer although a profile can have it: the nodes may have a file that this machine lacks."""
    from provision.machine.configuration import shipped
    from provision.machine.disk import exists
    from provision.profile.blanks import LEAVE_OUT, words_of
    from provision.profile.reader import VARIABLE

    if key not in ("modules.init", "modules.path") or answer == LEAVE_OUT:
        return ""
    paths = words_of(answer) if key == "modules.path" else [answer]
    missing = [
        path for path in paths if not exists(VARIABLE.sub(lambda match: shipped.environment().get(match[1], ""), path))
    ]
    return f"`{missing[0]}`, the answer for `{key}`, does not exist on this machine" if missing else ""


def _refuse_complete(path: Path, blank: Sequence[Blank], archs: Sequence[str] | None, data: Mapping[str, Any]) -> None:
    """Raise if the user's own profile has no blanks, or if archs are to be left out of it: only a copy is changed.

    Raises:
        ConfigError: the profile exists.
    """
    edit = f"edit it, or remove it: `rm {shlex.quote(str(path))}`"
    if not blank:
        raise ConfigError(f"`{path}` already exists, and has no blanks", hint=edit)
    others = [arch for arch in data.get("archs", {}) if archs and arch not in archs]
    if others:
        raise ConfigError(f"`{path}` already exists, with the arch `{others[0]}`", hint=f"omit `--arch`; or {edit}")


def surroundings(keys: Sequence[str]) -> Surroundings:
    """What this machine shows of the site: its scheduler's nodes and its modules."""
    import archspec.cpu

    from provision.machine.probes.login_node import modules_here, values_here
    from provision.machine.probes.queues import mpi_types_here, node_kinds
    from provision.planning.site_proposals import Surroundings

    if not keys:
        return Surroundings()
    return Surroundings(
        values=values_here(keys),
        kinds=node_kinds(),
        modules=modules_here(),
        targets=frozenset(archspec.cpu.TARGETS),
        mpi_types=mpi_types_here(),
    )


def _typed(text: str) -> tuple[str, str]:
    key, separator, value = text.partition("=")
    if not separator or not key or not value.strip():
        raise ConfigError(f"`--set {text}` is not KEY=VALUE", hint="`--set archs.gpu.target=zen3`")
    return key, value.strip()
