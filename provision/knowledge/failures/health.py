"""What shows that a log ends well, or that something failed although no entry of the catalogue names it."""

from __future__ import annotations

import re

from provision.knowledge.failures.words import word_set

# A program, an installation or a job ended well.
SUCCESS = re.compile(
    r"\bSuccessfully (?:installed|built|tagged|uninstalled)\b|\[100%\] Built target\b|\bBUILD SUCCESS|"
    r"\b(?:[Tt]raining|[Bb]uild|[Ii]nstallation|[Ii]nstall|[Tt]ests?|[Ee]valuation) (?:is |was |has |run )?(?:been )?"
    r"(?:complete|completed|finished|done|successful|succeeded|passed)\b(?! with (?:errors|exit|status|code [1-9]))|"
    r"\b[Ff]inished (?:training|successfully)|\b[Cc]ompleted successfully|\b[Ss]uccessfully (?:completed|"
    r"finished|trained|saved)|"
    r"\b\d+ passed\b|\b[Ee]xit(?:ed)?(?: with)? ?(?:code|status)[:= ]+0\b|\bExit_status ?= ?0\b|"
    r"\bState: COMPLETED\b|\bAll tests passed|^OK$|(?:[Tt]est|[Ff]inal|[Vv]al\w*) (?:accuracy|loss|acc|score)\b ?[:=]|"
    r"\bsaved (?:model |checkpoint )?to\b|^\[\+\] /|\bexited (?:normally|successfully)|\bsuccessfully\.?$"
)
SUCCESS_WORDS = word_set(
    "successfully built success complete completed finished done successful succeeded passed exit exited "
    "status accuracy score saved "
    "normally"
)
# A training that goes on.
PROGRESS = re.compile(
    r"\bloss[:= ]+-?\d|\baccuracy[:= ]+\d|\b\d+/\d+ \[=+[>.=]*\]|\b\d+/\d+ [━ ]+ |\bimages?/sec\b.{0,40}\d|"
    r"\bstep[:= ]+\d+.{0,80}\bloss\b|"
    r"\bImg/sec per\b|\bglobal_step/sec\b|\bIter #\d+|\bEpoch:? \[?\d+(?:/\d+)?\]?"
)
PROGRESS_WORDS = word_set("loss accuracy images img step epoch iter sec")
# A line that says that something failed. A log with such a line, and no known failure, is an unknown failure.
FAILED = re.compile(
    r"^\W{0,4}(?:\S{1,99}: )?(?:fatal |internal |runtime )?(?:error|ERROR|Error|FATAL|Fatal)\b(?: \d+)?(?: "
    r"\w+)?\s?[:!\]]|: (?:fatal )?error(?: \w+)?:|: fatal: |"
    r"\b(?:ERROR|FATAL|CRITICAL)\b|^\s{0,8}(?:[A-Za-z_]\w{0,80}\.){0,9}[A-Z]\w{0,80}(?:Error|Exception|"
    r"Interrupt): ?|\bTraceback \(most recent|"
    r"\bSegmentation fault\b|\bcore dumped\b|^\s*(?:Aborted|Killed|Terminated)\b|\bterminate called\b|"
    r"\bcommand not found\b|"
    r"\bexit(?:ed|ing)? (?:with )?(?:code|status|value)?[ :=]{0,3}[1-9]\d{0,2}\b|\b[Ff]atal error\b|"
    r"\bFAILED\b|\bundefined reference\b|"
    r"\b[Pp]ermission denied\b|\bNo such file or directory\b|\bcannot open shared object\b|\bError [1-9]\d*$|"
    r"\bfailed (?:with|to|because)\b|"
    r"\bCANCELLED\b|\bDUE TO\b|\bsignal \d+\b|\bCheck failed:|\bassert(?:ion)? .{0,80}failed|==[^=\s]+ from |"
    r"\bExpected sha256|\bGot {2,}[0-9a-f]{64}|"
    r"\b[Uu]nable to\b|\b[Cc]annot (?:allocate|open|connect|create|find|access|load|execute)|\b[Cc]ould not "
    r"(?:find|open|load|connect|create|resolve)"
)
FAILED_WORDS = word_set(
    "error errors fatal critical traceback segmentation core aborted killed terminated terminate command exit "
    "exited exiting failed undefined permission "
    "such cannot cancelled due signal check assertion assert from expected got unable could"
)
NOISE = re.compile(
    r"subprocess-exited-with-error|This error originates from|Failed building wheel|Failed to build|\bnote:|-Werror|"
    r"ninja: build stopped|returned non-zero exit status|^\s*raise |/errors?\.|error\.(?:py|h|cc)\b|"
    # pip runs setup.py with a small program, and prints that program when it fails.
    r"provides a clear error|except ImportError as error|Can not execute .setup|Rebuild target|CMakeError.log|"
    r"oneDNN|\berrors? (?:found|are found)"
)


def shows_success(text: str, words: frozenset[str]) -> bool:
    """Whether a line with these words says that something ended well."""
    return not words.isdisjoint(SUCCESS_WORDS) and SUCCESS.search(text) is not None


def shows_progress(text: str) -> bool:
    """Whether a line is from a training that goes on."""
    return PROGRESS.search(text) is not None


def shows_failure(text: str, words: frozenset[str]) -> bool:
    """Whether a line with these words says that something failed."""
    if words.isdisjoint(FAILED_WORDS) and "rror" not in text and "xception" not in text:
        return False
    return FAILED.search(text) is not None and NOISE.search(text) is None
