"""The questions of `provision site new` on a terminal: each answer is checked when it is given, and kept in a draft."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from provision.errors import ConfigError
from provision.machine.files.disk import read_json, remove, write
from provision.machine.terminal.console import ask, say
from provision.planning.site_proposals import SeenMachine, also_there, propose
from provision.profile.blanks import LEAVE_OUT, decided_by, unneeded
from provision.wording import count

if TYPE_CHECKING:
    from provision.profile.blanks import Blank

BACK, HELP = "<", "?"
WIDTH = 79
KEYS = (
    "Enter takes the value in brackets, or leaves the blank for another run;",
    f"`{LEAVE_OUT}` leaves the key out; `{BACK}` goes back; `{HELP}` helps;",
    "Ctrl-C stops, and the same command continues.",
)
# So many values of one arch, each with a right proposal, are one question.
MANY = 4
# The faults of the answer for a key among these answers; it raises `ConfigError` for one with a password.
Check = Callable[[str, Mapping[str, str]], list[str]]


@dataclass(slots=True, kw_only=True)
class Dialogue:
    """The questions for the blanks that options do not answer.

    `answers` holds what is known, and gets each answer; `taken` are the keys whose proposal was taken. `check` lists what is
    wrong with the answer for a key. `complete` makes an answer of what was typed. `doubt` is a note about an answer that is taken
    all the same; empty if there is none.
    """

    blanks: Sequence[Blank]
    answers: dict[str, str]
    gpu_archs: Collection[str]
    surroundings: SeenMachine
    check: Check
    doubt: Callable[[str, str], str]
    complete: Callable[[str, str], str]
    draft: ProfileDraft
    taken: list[str] = field(default_factory=list)
    earlier: dict[str, str] = field(default_factory=dict)
    """The answers before `<`, which are proposed when the same question comes again."""
    one_by_one: set[str] = field(default_factory=set)
    """The archs whose proposals were not taken together."""

    def run(self) -> None:
        """Ask for every blank that has no answer yet.

        Raises:
            ConfigError: stdin ended; the draft stays.
        """
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
            self.draft.write(self.answers)

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
            proposal = LEAVE_OUT
            if not unneeded(blank.path, known):
                proposal = propose(blank.path, known, self.gpu_archs, self.surroundings)
            if not proposal or wrong_with(self.check, blank.path, {**known, blank.path: proposal}):
                break
            found[blank.path] = proposal
        return found

    def _ask_together(self, found: Mapping[str, str], number: str) -> int:
        """Whether these proposals are taken: their number if they are, 0 if each is asked, -1 to go back."""
        arch = str(_arch_of(next(iter(found))))
        say(f"# From this machine and your answers, for the arch `{arch}`:")
        for path, proposal in found.items():
            note = self.doubt(path, proposal) or also_there(path, proposal, self.surroundings)
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
            evidence=[f"the answers so far are in `{self.draft.path}`"],
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
            proposal = propose(blank.path, self.answers, self.gpu_archs, self.surroundings)
        for line in textwrap.wrap(blank.question, WIDTH - len("# ")):
            say(f"# {line}")
        if others := also_there(blank.path, proposal, self.surroundings):
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
            wrong = wrong_with(self.check, blank.path, {**self.answers, blank.path: answer})
            if not wrong:
                if note := self.doubt(blank.path, answer):
                    say(f"  {note}; `{BACK}` goes back")
                self.answers[blank.path] = answer
                self.taken += [blank.path] if not typed and blank.path not in self.earlier else []
                return 1
            for line in wrong:
                say(f"  {line}")


def _arch_of(path: str) -> str | None:
    """The arch of a key; None if it is not of one."""
    return path.split(".")[1] if path.startswith("archs.") else None


def wrong_with(check: Check, key: str, answers: Mapping[str, str]) -> list[str]:
    """What is wrong with the answer for this key, in lines."""
    try:
        return check(key, answers)
    except ConfigError as error:
        return [error.message, *([error.hint] if error.hint else [])]


def _say_keys() -> None:
    for line in KEYS:
        say(line)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileDraft:
    """The answers of a dialogue that has not ended, in a file beside the profile."""

    path: Path
    source: str
    archs: Sequence[str]

    def write(self, answers: Mapping[str, str]) -> None:
        """Keep the answers."""
        write(
            self.path, json.dumps({"from": self.source, "archs": list(self.archs), "answers": dict(answers)}, indent=1)
        )

    def read(self, keys: Collection[str]) -> dict[str, str]:
        """The answers for these keys of an earlier dialogue with the same template and archs; none if there was none.

        The draft can have other keys: a user may have filled in a blank with an editor since.
        """
        kept = read_json(self.path) or {}
        answers = kept.get("answers")
        if (kept.get("from"), kept.get("archs")) != (self.source, list(self.archs)) or not isinstance(answers, dict):
            return {}
        return {key: value for key, value in answers.items() if key in keys and isinstance(value, str)}

    def end(self) -> None:
        """Remove the file: the profile is written."""
        remove(self.path)
