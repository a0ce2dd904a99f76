"""What there is to do for a line of a log, from its text without digits: most lines are dull."""

from __future__ import annotations

from collections.abc import Collection

from provision.knowledge.failures import health
from provision.knowledge.failures.boxes import DASHES
from provision.knowledge.failures.catalogue import Catalogue
from provision.knowledge.failures.lines import BELOW_WORDS
from provision.knowledge.failures.lsf_reports import FORMS as LSF_FORMS
from provision.knowledge.failures.report_forms import ERROR_ELSEWHERE, FORM_WORDS
from provision.knowledge.failures.singletons import may_be_lone
from provision.knowledge.failures.words import line_words

# A line is looked at, is one of a training that goes on, or may end a message between two lines of dashes.
DULL, LOOK, PROGRESS, EDGE = 0, 1, 2, 4
# Lines with these words are looked at even if no entry of the catalogue has them.
STRUCTURE = (
    frozenset(
        (
            "cell",
            "ipython",
            "traceback",
            "ignored",
            "checking",
            "importing",
            "already",
            "suppress",
            "extraction",
            "accepted",
        )
    )
    | health.FAILED_WORDS
    | health.SUCCESS_WORDS
    | FORM_WORDS
    | BELOW_WORDS
)
# Git prints it again if it tries again.
CLONES = b"cloning into '"
# Parts of lines that are looked at for their form: exceptions, the places of tracebacks, fatal lines of TensorFlow.
FORMS = (
    b"error",
    b"exception",
    b'file "',
    b"file ~",
    b"file /",
    b"input in ",
    b"call stack:",
    b".py in ",
    b": f ",
    b"f0000 00:",
    b"not ok ",
    b"[ run      ]",
    b'kind: "try_',
    b"+ true",
    b"[e::",
    CLONES,
    b"[file ",
    b"--- !bug",
    b"+++ message follows",
    b"log message:",
    b"not known to repeatmasker",
    b": non-zero status: ",
    b": null value ",
    b"; gpu=",
    b"encountered:",
    *LSF_FORMS,
    b"[       ok ]",
    *(f": {word}".lower().encode() for word in ERROR_ELSEWHERE),
)


def line_kind(template: bytes, known_words: Collection[str], catalogue: Catalogue) -> int:
    """What there is to do for the lines with this text, in small letters and with `0` for each digit."""
    text = template.decode("utf-8", "replace")
    words = line_words(text)
    kind = LOOK if template[:2] == b"ok" or any(form in template for form in FORMS) else DULL
    if kind == DULL and not words.isdisjoint(known_words):
        kind = LOOK if words & STRUCTURE or catalogue.candidates(words) else DULL
    if kind == DULL and may_be_lone(text, words):
        kind = LOOK
    if not words.isdisjoint(health.PROGRESS_WORDS) and health.shows_progress(text):
        kind |= PROGRESS
    if DASHES in template:
        kind |= EDGE
    return kind
