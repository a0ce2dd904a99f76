"""What a program printed last before a launcher or a scheduler says that it ended."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import islice

from provision.knowledge.failures.catalogue import WEIGHTS, KnownFailure
from provision.knowledge.failures.findings import Finding
from provision.knowledge.failures.health import shows_progress
from provision.knowledge.failures.line_parts import read_text
from provision.knowledge.failures.lines import INFO, Line, level, read_line

# So many lines of the program are shown, each up to this length; they are looked for in so many lines.
MOST_LINES, LONGEST, REACH = 3, 160, 40
# The border of a message of Open MPI or Hydra.
BORDER = re.compile(r"\W{0,9}[-=*]{20,}\W{0,9}$")
# Lines of a stack of calls, of launchers and schedulers, and what was typed: not the program's own words.
FOREIGN = re.compile(
    r"\W{0,4}\[\S{1,80}:\d+\] (?:\[ ?\d+\]|\*\*\*)|#\d+ |\s*\[bt\]|\[(?:mpiexec|proxy)[@:]|(?:srun|slurmstepd\S*|mpirun|sbatch):|"
    r"\S{1,80} +[0-9A-Fa-f]{16} |[$%>#+] ?\S|\w+@\S{1,80}[:$#]|\[\w+@[^\]]{1,80}\]|cat: |\W*$"
)

# What `srun` prints of the ranks that Slurm ended after the first one had ended.
ENDED = re.compile(r"srun: error: \S{1,200} tasks? [\d,-]+: (?:Killed|Terminated)\b")


def last_words(above: Iterable[str]) -> tuple[str, ...]:
    """The last lines of a program, in their order, from the lines above the one that says that it ended: the nearest first."""
    words: list[str] = []
    borders = 0  # of the message that says that the program ended, and of others above it
    for raw in islice(above, REACH):
        text = read_line(0, raw).text.strip()
        if BORDER.match(text):
            if words:
                break
            borders += 1
        elif borders > 1 and borders % 2 == 0:
            continue  # within another message of the launcher
        elif text and not FOREIGN.match(text) and level(text) != INFO and not shows_progress(text):
            words.append(text[:LONGEST])
            if len(words) == MOST_LINES:
                break
        elif words and text:
            break
    return tuple(reversed(words))


class LastWords:
    """Keeps the last lines of the program before the first line which says only that a launcher ended the ranks."""

    def __init__(self, hide: Callable[[str], str]) -> None:
        self._hide = hide
        self._ended_at = 0
        self._words: tuple[str, ...] = ()

    def note(self, failure: KnownFailure, number: int) -> None:
        """Note that this line shows a failure of the catalogue."""
        if not self._ended_at and failure.elsewhere and failure.weight == WEIGHTS["consequence"]:
            self._ended_at = number

    def ended(self, line: Line) -> bool:
        """Whether a line says that a rank was ended because the launcher ends all of them, as a line above it says."""
        return 0 < self._ended_at < line.number and ENDED.match(line.text) is not None

    def read(self, number: int, before: Iterable[tuple[int, str]], lines: Sequence[bytes], index: int) -> None:
        """Keep the lines above this one if it says that the ranks were ended: of its block, and the last ones before that."""
        if number == self._ended_at:
            above = map(read_text, lines[max(0, index - REACH) : index])
            self._words = last_words(reversed([*(text for _, text in before), *above]))

    def quote(self, found: Finding) -> Finding:
        """A finding, with the last lines of the program if it says only that the ranks were ended; no secret is quoted."""
        if not self._words or found.hit.number != self._ended_at or found.hit.weight != WEIGHTS["consequence"]:
            return found
        quoted = self._hide(", ".join(f"`{word}`" for word in self._words))
        cause = f"{found.failure.cause}; the last lines before that: {quoted}"
        return replace(found, failure=replace(found.failure, cause=cause))
