"""The questions of `provision site new` on a terminal: each answer is checked when it is given, and kept in a draft."""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from provision.errors import ConfigError
from provision.knowledge.targets import require_known_target
from provision.machine.configuration import shipped
from provision.machine.files.disk import exists, read_json, write
from provision.machine.terminal.console import ask, say
from provision.planning.site_proposals import SeenMachine, also_there, propose, with_versions
from provision.profile.blanks import LEAVE_OUT, Blank, decided_by, faults_of_answer, unneeded, words_of
from provision.profile.reader import VARIABLE
from provision.wording import count

BACK, HELP = "<", "?"
WIDTH = 79
KEYS = (
    "Enter takes the value in brackets, or leaves the blank for another run;",
    f"`{LEAVE_OUT}` leaves the key out; `{BACK}` goes back; `{HELP}` helps;",
    "Ctrl-C stops, and the same command continues.",
)
# So many values of one arch, each with a right proposal, are one question.
MANY = 4


@dataclass(slots=True, kw_only=True)
class Dialogue:
    """The blanks of the text of a profile, and their answers: of options, of this machine, or of questions.

    `answers` holds what is known, and gets each answer; `taken` are the keys whose proposal was taken. The file `draft`, beside
    the profile, has the answers of a dialogue that has not ended; `of` is what it is about, the template and the archs.
    """

    text: str
    blanks: tuple[Blank, ...]
    gpu_archs: Collection[str]
    seen: SeenMachine
    draft: Path
    of: Mapping[str, object]
    answers: dict[str, str] = field(default_factory=dict)
    taken: list[str] = field(default_factory=list)
    earlier: dict[str, str] = field(default_factory=dict)
    """The answers before `<`, which are proposed when the same question comes again."""
    one_by_one: set[str] = field(default_factory=set)
    """The archs whose proposals were not taken together."""

    def complete(self, key: str, typed: str) -> str:
        """The answer that was meant by what was typed: modules get their versions."""
        return with_versions(typed, self.seen.modules) if key.endswith(".modules") else typed

    def check(self, key: str, answers: Mapping[str, str]) -> list[str]:
        """The faults of the answer for a key among these answers.

        Raises:
            ConfigError: it has a password, or is a CPU that is not known.
        """
        faults = faults_of_answer(self.text, self.blanks, answers, key, shipped.parse_profile, shipped.environment())
        if not faults and key.endswith(".target"):
            require_known_target(answers[key])
        return faults

    def _wrong(self, key: str, answers: Mapping[str, str]) -> list[str]:
        """What is wrong with the answer for this key, in lines."""
        try:
            return self.check(key, answers)
        except ConfigError as error:
            return [error.message, *([error.hint] if error.hint else [])]

    def _proposal(self, key: str, known: Mapping[str, str]) -> str:
        """What this machine shows for a key, if it is right; empty if there is nothing."""
        proposal = LEAVE_OUT if unneeded(key, known) else propose(key, known, self.gpu_archs, self.seen)
        return proposal if proposal and not self._wrong(key, {**known, key: proposal}) else ""

    def take_proposals(self) -> None:
        """Take what this machine shows, without questions."""
        for key in (blank.path for blank in self.blanks if blank.path not in self.answers):
            if proposal := self._proposal(key, self.answers):
                self.answers[key] = proposal
                self.taken += [] if proposal == LEAVE_OUT else [key]

    def run(self) -> None:
        """Ask for every blank that has no answer yet, also in the draft.

        Raises:
            ConfigError: stdin ended; the draft stays.
        """
        kept = self._read_draft()
        kept = {key: kept[key] for key in kept if not self._wrong(key, {**kept, **self.answers})}
        if kept:
            say(f"continuing with {count(len(kept), 'answer')} of `{self.draft}`")
            self.answers = {**kept, **self.answers}
        asked = [blank for blank in self.blanks if blank.path not in self.answers]
        if asked:
            say(f"{count(len(asked), 'value')} to fill in.")
            _say_keys()
        at = 0
        while at < len(asked):
            blank = asked[at]
            if unneeded(blank.path, self.answers):
                self.answers[blank.path] = LEAVE_OUT
            if self._waits(blank.path) or blank.path in self.answers:
                at += 1
                continue
            found = self._proposals(asked[at:])
            if len(found) >= MANY:
                step = self._ask_together(found, f"({at + 1} to {at + len(found)} of {len(asked)}) ")
            else:
                step = self._ask(blank, f"({at + 1} of {len(asked)}) ")
            at = max(0, at + step)
            while step < 0 and at > 0 and (self._waits(asked[at].path) or unneeded(asked[at].path, self.answers)):
                at -= 1
            if step < 0:
                self._take_back(asked[at].path)
            write(self.draft, json.dumps({**self.of, "answers": self.answers}, indent=1))

    def _read_draft(self) -> dict[str, str]:
        """The answers of an earlier dialogue about the same, for blanks that have none; none if there was none.

        The draft can have other keys: a user may have filled in a blank with an editor since.
        """
        kept = read_json(self.draft) or {}
        answers = kept.pop("answers", None)
        if kept != self.of or not isinstance(answers, dict):
            return {}
        keys = {blank.path for blank in self.blanks} - self.answers.keys()
        return {key: value for key, value in answers.items() if key in keys and isinstance(value, str)}

    def _waits(self, path: str) -> bool:
        """Whether the blank that decides whether this one has a meaning was left for another run."""
        decides = decided_by(path)
        return decides not in self.answers and any(blank.path == decides for blank in self.blanks)

    def _proposals(self, asked: Sequence[Blank]) -> dict[str, str]:
        """What is proposed for these blanks, up to the first that is of another arch, or has no right proposal."""
        arch, found = _arch_of(asked[0].path), dict[str, str]()
        if arch is None or arch in self.one_by_one:
            return {}
        for blank in asked:
            known = {**self.answers, **found}
            if (
                _arch_of(blank.path) != arch
                or blank.path in {**self.answers, **self.earlier}
                or self._waits(blank.path)
            ):
                break
            proposal = self._proposal(blank.path, known)
            if not proposal:
                break
            found[blank.path] = proposal
        return found

    def _ask_together(self, found: Mapping[str, str], number: str) -> int:
        """Whether these proposals are taken: their number if they are, 0 if each is asked, -1 to go back."""
        arch = str(_arch_of(next(iter(found))))
        say(f"# From this machine and your answers, for the arch `{arch}`:")
        for path, proposal in found.items():
            note = doubt(path, proposal) or also_there(path, proposal, self.seen)
            say(f"  {path} = {proposal}" + (f"   ({note})" if note else ""))
        while True:
            typed = ask(f"{number}take these {len(found)} values? [yes]: ")
            if typed is None:
                raise self._ended(next(iter(found)))
            if typed == BACK:
                return -1
            if typed.lower() in ("", "y", "yes"):
                self.answers.update(found)
                self.taken += found
                return len(found)
            if typed.lower() in ("n", "no"):
                self.one_by_one.add(arch)
                return 0
            say("  `yes`, or `no`: then each is asked")

    def _ended(self, path: str) -> ConfigError:
        """The error of a dialogue whose stdin ended at this blank."""
        return ConfigError(
            f"the answers ended at `{path}`",
            evidence=[f"the answers so far are in `{self.draft}`"],
            hint="run the same command again: it asks the remaining questions",
        )

    def _take_back(self, path: str) -> None:
        """Remove an answer. One that the user typed is proposed when the question comes again."""
        answer = self.answers.pop(path, None)
        if path in self.taken:
            self.taken.remove(path)
        elif answer is not None:
            self.earlier[path] = answer

    def _ask(self, blank: Blank, number: str) -> int:
        """Ask until the answer is right; 1 to continue, -1 to go back."""
        proposal = self.earlier.get(blank.path)
        if proposal is None:
            proposal = propose(blank.path, self.answers, self.gpu_archs, self.seen)
        for line in textwrap.wrap(blank.question, WIDTH - len("# ")):
            say(f"# {line}")
        if others := also_there(blank.path, proposal, self.seen):
            say(f"# {others}")
        while True:
            typed = ask(f"{number}{blank.path}{f' [{proposal}]' if proposal else ''}: ")
            if typed is None:
                raise self._ended(blank.path)
            if typed == BACK:
                return -1
            if typed == HELP:
                say(f"  `{blank.path}`: {blank.question or 'a value of the profile'}")
                say("  Every key is described in docs/reference/profile.md.")
                _say_keys()
                continue
            answer = self.complete(blank.path, typed) if typed else proposal
            if not answer:
                return 1
            if typed and answer != typed and answer != LEAVE_OUT:
                say(f"  {answer}")
            wrong = self._wrong(blank.path, {**self.answers, blank.path: answer})
            if not wrong:
                if note := doubt(blank.path, answer):
                    say(f"  {note}; `{BACK}` goes back")
                self.answers[blank.path] = answer
                self.taken += [blank.path] if not typed and blank.path not in self.earlier else []
                return 1
            for line in wrong:
                say(f"  {line}")


def _arch_of(path: str) -> str | None:
    """The arch of a key; None if it is not of one."""
    return path.split(".")[1] if path.startswith("archs.") else None


def _say_keys() -> None:
    for line in KEYS:
        say(line)


def doubt(key: str, answer: str) -> str:
    """What may be wrong with an answer although a profile can have it: a file that is not here, a module without version."""
    if key.endswith(".modules") and (plain := [word for word in words_of(answer) if not re.search("/.*[0-9]", word)]):
        return f"`{plain[0]}` has no version: when the site changes its default, what was built does not load any more"
    if key not in ("modules.init", "modules.path") or answer == LEAVE_OUT:
        return ""
    paths = words_of(answer) if key == "modules.path" else [answer]
    missing = [
        path for path in paths if not exists(VARIABLE.sub(lambda match: shipped.environment().get(match[1], ""), path))
    ]
    return f"`{missing[0]}`, the answer for `{key}`, does not exist on this machine" if missing else ""
