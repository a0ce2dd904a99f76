"""What a probe of configure or CMake printed: it counts only if they stopped there; they print it and go on.

The same is true of what Git printed before it clones into the same folder again.
"""

from __future__ import annotations

import re

from provision.knowledge.failures.lines import ANY

# Autoconf's `config.log`; CMake's `CMakeError.log` and `CMakeConfigureLog.yaml` hold nothing but probes. CMake stops if its
# compiler does not work.
PROBE = re.compile(
    r"configure:\d+: (checking |error: )|"
    # It asks each compiler for its version with options that only some of them know.
    r"(?P<version>configure:\d+: \S.{0,200} -(?:V|v|qversion|-?version) >&5$)|"
    r"(?P<broken>(?:Determining if|Compiling) the \S{1,20} compiler (?:works|identification source file).{0,60} failed\b)|"
    r"(?:Performing \S{1,9} SOURCE FILE Test|Determining (?:if|whether|size)|Detecting).{1,120} "
    r"(?:failed|passed) with the following output:|"
    r"\s{1,6}kind: \"try_(?:compile|run)-v1\"$"
)
# How Git begins to clone into a folder, and what Git and ssh print when they cannot; an attempt has so many lines, and so many
# are known.
CLONES = re.compile(r"Cloning into '([^']{1,300})'\.\.\.")
OF_GIT = re.compile(r"\s*(?:fatal|error|remote|ssh|kex_\w+|Connection |Permission denied|Host key|\S+@\S+: )")
ATTEMPT, MOST_CLONES = 16, 64
STOPS, TRIES = "error: ", "tries"
# What a probe prints has at most so many lines; a file of CMake's probes begins with one.
LONGEST, FIRST = 2000, 8


class ProbeReader:
    """Finds the lines that probes printed."""

    def __init__(self) -> None:
        self._began = 0
        self._clones: dict[str, int] = {}
        self._asks_version = False
        self._nothing_else = False  # whether the log is a file in which CMake wrote down its probes

    def feed(self, number: int, text: str) -> tuple[int, re.Pattern[str]] | None:
        """The first line of a probe that ends with this line, as another one begins, and how its lines begin; or None."""
        if found := CLONES.match(text):
            began = self._clones.get(found[1], 0)
            if began or len(self._clones) < MOST_CLONES:
                self._clones[found[1]] = number
            return (began, OF_GIT) if 0 < number - began <= ATTEMPT and began else None
        first = self._feed_probe(number, text)
        return (first, ANY) if first else None

    def _feed_probe(self, number: int, text: str) -> int:
        """The first line of a probe of configure or CMake that ends with this line; 0 if none does."""
        found = PROBE.match(text)
        if not found:
            return 0
        kind = found[1] or TRIES
        began, self._began = self._began, 0 if kind == STOPS else number
        self._asks_version = found["version"] is not None
        self._nothing_else = self._nothing_else or (kind == TRIES and number <= FIRST)
        if found["broken"]:
            self._began = 0  # CMake stops there
        return began if number - began <= LONGEST and kind != STOPS else 0

    def close(self) -> int:
        """The first line of a probe that ends with the log; 0 if that does not end with one for sure."""
        return self._began if self._nothing_else or self._asks_version else 0
