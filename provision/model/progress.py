"""Read the progress of a long-running program from its output. Pure.

Other lines change nothing: a compiler's warning between two files, for example, or the log of TensorFlow.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace

ANSI = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Doing:
    """How far a step is: `done` of `total` (0: not known) of what `noun` names, and what it does now."""

    noun: str = ""
    done: int = 0
    total: int = 0
    now: str = ""

    def __str__(self) -> str:
        if not self.noun:
            return self.now
        counted = f"{self.noun} {self.done}" + (f" of {self.total}" if self.total else "")
        return f"{counted}, {self.now}" if self.now else counted


def read_progress(line: str, before: Doing) -> Doing:
    """The progress after a program has printed this line; `before` is the progress until then."""
    text = " ".join(ANSI.sub("", line).split())
    for pattern, read in READERS:
        match = pattern.search(text)
        if match:
            return read(match, before)
    return before


def package_line(done: int, total: int) -> str:
    """The line with the number of installed packages, in the form that `read_progress` reads."""
    return f"package {done} of {total}"


def _package(match: re.Match[str], before: Doing) -> Doing:
    return replace(before, noun="package", done=int(match[1]), total=int(match[2]))


def _file(match: re.Match[str], before: Doing) -> Doing:
    name = match[3].rpartition("/")[2].removesuffix(".o")
    return Doing(noun="file", done=int(match[1]), total=int(match[2]), now=name)


def _epoch(match: re.Match[str], before: Doing) -> Doing:
    loss = f"loss {match[3]}" if match[3] else ""
    return Doing(noun="epoch", done=int(match[1]), total=int(match[2]), now=loss)


def _check(match: re.Match[str], before: Doing) -> Doing:
    done = before.done + 1 if before.noun == "check" else 1
    return Doing(noun="check", done=done, now=f"{match[1]} {match[2]}")


def _downloaded(match: re.Match[str], before: Doing) -> Doing:
    return replace(before, now="") if before.now.startswith(f"downloading {match[1]} ") else before


def _now(words: str) -> Callable[[re.Match[str], Doing], Doing]:
    """A reader that changes `now`, and keeps the count of packages."""

    def read(match: re.Match[str], before: Doing) -> Doing:
        now = words.format(*match.groups(""))
        return replace(before, now=now) if before.noun == "package" else Doing(now=now)

    return read


READERS: tuple[tuple[re.Pattern[str], Callable[[re.Match[str], Doing], Doing]], ...] = (
    (re.compile(r"^package (\d{1,15}) of (\d{1,15})$"), _package),
    # ninja: `[3/27] Building CXX object a/b.cc.o`; a launcher may put a rank in front.
    (re.compile(r"\[(\d{1,15})/(\d{1,15})\] (?:Building|Linking) .*?([^ ]+)$"), _file),
    (re.compile(r"^-- (?:Configuring|Generating) done"), _now("configuring")),
    # uv prints what it downloads, but not each package that it installs.
    (re.compile(r"^Downloading (\S+ \([\d.]+[KMG]iB\))$"), _now("downloading {}")),
    (re.compile(r"^Downloaded (\S+)$"), _downloaded),
    (re.compile(r"^Prepared \d+ packages?\b"), _now("installing")),
    (re.compile(r"^Installed \d+ packages?\b"), _now("")),
    # pip
    (
        re.compile(r"^Downloading (?:\S*/)?([^\s/]+?)-(?:py|cp)\d\S*\.whl( \([\d.]+ [kMG]B\))?$"),
        _now("downloading {}{}"),
    ),
    (re.compile(r"^(?:Collecting|Processing) (?:\S*/)?([^\s/]+?)(?:-(?:py|cp)\d\S*\.whl)?(?: |$)"), _now("reading {}")),
    (re.compile(r"^Installing collected packages: "), _now("installing")),
    (re.compile(r"^Successfully installed "), _now("")),
    # the programs of a proof; Keras writes `Epoch 1/3`
    (re.compile(r"\b[Ee]poch (\d{1,15})/(\d{1,15})\b(?:.*?\bloss(?: of rank 0)? ([\d.]+))?"), _epoch),
    (re.compile(r"\bloss before training\b"), _now("training")),
    (re.compile(r"\b(test accuracy [\d.]+)"), _now("{}")),
    (re.compile(r"^(?:\[?\d+[\]:] )?([a-z][\w -]*?) (passed|failed|skipped) [\d.]+ s\b"), _check),
    (re.compile(r"^(.*); once more with RING$"), _now("{}; once more with RING")),
)
