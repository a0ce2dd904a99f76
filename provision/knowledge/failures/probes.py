"""What a probe of configure or CMake printed: it counts only if they stopped there; they print it and go on."""

from __future__ import annotations

import re

# Autoconf's `config.log`; CMake's `CMakeError.log` and `CMakeConfigureLog.yaml` hold nothing but probes. CMake stops if its
# compiler does not work.
PROBE = re.compile(
    r"configure:\d+: (checking |error: )|"
    r"(?P<broken>(?:Determining if|Compiling) the \S{1,20} compiler (?:works|identification source file).{0,60} failed\b)|"
    r"(?:Performing \S{1,9} SOURCE FILE Test|Determining (?:if|whether|size)|Detecting).{1,120} "
    r"(?:failed|passed) with the following output:|"
    r"\s{1,6}kind: \"try_(?:compile|run)-v1\"$"
)
STOPS, TRIES = "error: ", "tries"
# What a probe prints has at most so many lines; a file of CMake's probes begins with one.
LONGEST, FIRST = 2000, 8


class ProbeReader:
    """Finds the lines that probes printed."""

    def __init__(self) -> None:
        self._began = 0
        self._nothing_else = False  # whether the log is a file in which CMake wrote down its probes

    def feed(self, number: int, text: str) -> int:
        """The first line of a probe that ends with this line, as another one begins; 0 if none does."""
        found = PROBE.match(text)
        if not found:
            return 0
        kind = found[1] or TRIES
        began, self._began = self._began, 0 if kind == STOPS else number
        self._nothing_else = self._nothing_else or (kind == TRIES and number <= FIRST)
        if found["broken"]:
            self._began = 0  # CMake stops there
        return began if number - began <= LONGEST and kind != STOPS else 0

    def close(self) -> int:
        """The first line of a probe that ends with the log; 0 if that does not end with one for sure."""
        return self._began if self._nothing_else else 0
