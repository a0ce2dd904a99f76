"""What programs report in forms that many share: it is quoted with the program, the class of problem and a hint that leads on."""

from __future__ import annotations

import time

from parts.loops import for_each
from provision.knowledge.failures.catalogue import Catalogue
from provision.knowledge.failures.error_texts import MEANINGS, find_error_text
from provision.knowledge.failures.explain import explain
from provision.knowledge.failures.findings import Explanation
from provision.knowledge.failures.report_forms import ERROR_ELSEWHERE, report_forms
from provision.knowledge.failures.reported_errors import ID
from provision.machine.tables import known_failures

HOSTILE = 8192


# Two entries stand for the catalogue, so that no new entry answers instead of the mechanism.
FEW = Catalogue([failure for failure in known_failures().failures if failure.id in ("disk-full", "make-failed")])


def shown(text: str) -> Explanation:
    """What a log shows."""
    return explain([text.encode()], FEW)


# A log, and what has to be in the cause.
REPORTS = {
    "a program and its error": (
        "flurble: error: the flux is inverted\nmake: *** [all] Error 1\n",
        "`flurble` reports an error",
    ),
    "git and the system": (
        "Cloning\nfatal: could not create work tree dir 'x/a': Function not implemented\n",
        "that means: the file system, the kernel or the container does not offer this operation",
    ),
    "a program and the system": (
        "flurble: /data/x.bin: Text file busy\n",
        "`flurble` reports an error: /data/x.bin",
    ),
    "the loader of libraries": (
        "ls: error while loading shared libraries: __vdso_time: invalid mode for dlopen(): Invalid argument\n",
        "`ls` reports an error: __vdso_time",
    ),
    "a fixture of pytest": (
        (
            "==== ERRORS ====\n____ ERROR at setup of test_a ____\nfile test_a.py, line 1\n  def test_a(comm):\n"
            "E       fixture 'comm' not found\n>       available fixtures: cache\n==== 1 error in 0.02s ====\n"
        ),
        "fixture 'comm' not found",
    ),
    "a script": ("/home/u/run.sh: line 12: /opt/x/bin/solve: Text file busy\n", "(`/home/u/run.sh: line 12`)"),
    "the last line of MPICH's stack": (
        (
            "Fatal error in flurble_init: Other error, error stack:\nflurble_init(204).........: init(request=0x7ff) failed\n"
            "flurble_open(13): the flux is inverted\n\n"
        ),
        "the flux is inverted",
    ),
    "an exception without a traceback": (
        "dask.StrangeError: the flux is inverted\n",
        "StrangeError: the flux is inverted",
    ),
    "the root errors of TensorFlow": (
        "StrangeError: 2 root error(s) found.\n  (0) Internal: the flux is inverted\n  (1) Internal: another\n",
        "the flux is inverted",
    ),
}


@for_each("name", REPORTS)
def test_an_error_in_a_common_form_is_quoted(name: str) -> None:
    text, cause = REPORTS[name]
    known = shown(text).known
    assert known is not None
    assert known.failure.id == ID
    assert known.sureness == "guess"
    assert cause in known.cause, known.cause


def test_the_first_error_that_ends_a_program_is_quoted_and_no_consequence() -> None:
    known = shown(
        "ERROR: 3 samples were dropped\n"
        "solve: fatal error: the flux is inverted\n"
        "solve: fatal error: everything else is lost\n"
        "error: command 'solve' failed with exit status 1\n"
        "make: *** [Makefile:3: all] Error 1\n"
    ).known
    assert known is not None and known.cause.endswith("the flux is inverted") and known.hit.number == 2


def test_an_error_after_which_a_training_went_on_gives_way_to_a_later_one() -> None:
    steps = "".join(f"step {number} loss: 0.{number}\n" for number in range(5))
    known = shown(f"ERROR: sample 7 is dropped\n{steps}ERROR: the flux is inverted\n").known
    assert known is not None and known.cause.endswith("the flux is inverted")


def test_an_entry_of_the_catalogue_is_named_before_what_a_program_reports() -> None:
    known = shown("flurble: error: the flux is inverted\nOSError: [Errno 28] No space left on device\n").known
    assert known is not None and known.failure.id == "disk-full"


def test_a_command_that_only_failed_is_no_cause() -> None:
    explanation = shown("ERROR: process 3 exited with code 1\nerror: see the log above\n")
    assert explanation.verdict == "unknown" and explanation.lines


def test_what_a_path_brings_into_a_hint_cannot_be_more_than_a_path() -> None:
    found = find_error_text("cannot open '/x/$(rm -rf ~)': No such file or directory")
    assert found is not None and found[1] == "PATH"
    found = find_error_text("cannot open '/x/a.csv': No such file or directory")
    assert found is not None and found[1] == "/x/a.csv"


@for_each("meaning", MEANINGS, ids=lambda meaning: meaning.texts[:30])
def test_each_text_of_the_system_is_found_with_its_meaning(meaning: object) -> None:
    for text in meaning.texts.split("|"):  # type: ignore[attr-defined]
        found = find_error_text(f"x: {text.removeprefix(': ')}" if text[0] != ":" else f"x{text}")
        assert found is not None and found[0] is meaning, text


@for_each("seed", ["a", "a: ", "[a] ", "error ", "-", " ", "a/", "a:1:", "(0) ", "\\", "ERROR|"])
def test_the_forms_take_linear_time_for_hostile_lines(seed: str) -> None:
    line = (seed * HOSTILE)[:HOSTILE]
    began = time.process_time()
    for _, pattern in report_forms():
        pattern.match(line)
    assert time.process_time() - began < 1


@for_each("word", ERROR_ELSEWHERE)
def test_the_errors_of_gcc_are_read_in_other_languages(word: str) -> None:
    colon = "：" if word in ("错误", "致命错误", "錯誤", "嚴重錯誤") else ": "
    known = shown(f"gcc -c flux.c\nflux.c:3:5: {word}{colon}'flux'\n").known
    assert known is not None and known.failure.id == ID and "'flux'" in known.cause


def test_an_installed_program_that_stops_itself_fails_in_no_import() -> None:
    known = shown(
        'Traceback (most recent call last):\n  File "/usr/bin/psi4", line 211, in <module>\n'
        "    raise KeyError(\"The file %s does not exist.\" % name)\nKeyError: 'The file water.in does not exist.'\n"
    ).known
    assert known is not None and "stopped the program, and says: `KeyError: 'The file water.in" in known.cause
