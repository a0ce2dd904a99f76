"""The reports of LSF in a file to which several jobs wrote: `bsub -o FILE` appends, and the last job is the one that matters."""

from __future__ import annotations

import re

# What the lines of a report mean. Source: IBM Spectrum LSF, `bsub -o`, and LSB_STDOUT_DIRECT, with which the output is above it.
NEXT_JOB, JOB_ENDED = "next job", "job ended"
BEGINS = re.compile(r"Sender: LSF System <")
OUTPUT = re.compile(r"The output \(if any\) (follows:|is above this job summary)")
# How such lines begin, in small letters.
FORMS = (b"sender: lsf system <", b"the output (if any) ")


class LsfReports:
    """Finds where the output of one job ends and that of the next one begins."""

    def __init__(self) -> None:
        self._follows = False  # whether the output of the last job stands below its report

    def feed(self, text: str) -> str:
        """`NEXT_JOB` if the lines above belong to other jobs, `JOB_ENDED` if those below may do so, or nothing."""
        if BEGINS.match(text):
            follows, self._follows = self._follows, False
            return NEXT_JOB if follows else ""
        found = OUTPUT.match(text)
        if not found:
            return ""
        self._follows = found[1] == "follows:"
        return "" if self._follows else JOB_ENDED
