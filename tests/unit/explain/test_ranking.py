"""Of several failures in one log the one that is named, and which of them count: see the docstring of `conclude`."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest

from provision.explain.conclude import AFTER_COMPLAINT, AFTER_ERROR, WENT_ON_AFTER_TRACEBACK, Explanation, conclude
from provision.explain.explain import MOST, explain
from provision.explain.known import Known, sure_words
from provision.explain.log_reader import LogReader

KNOWN = Known(
    [
        f"[{level}]\nlevel: {level}\nmatch: the {level} is here\ncause: the {level}\nhint: none\n"
        for level in (
            "cause",
            "error",
            "complaint",
            "symptom",
            "report",
            "remark",
            "wait",
            "consequence",
            "notice",
            "repeated",
        )
    ]
    + [
        "[long]\nmatch: the cause is here and elsewhere\ncause: the longer one\nhint: none\n",
        "[gone]\nlevel: complaint\nmatch: no file (?P<path>\\S+)\ncause: no {path}\nhint: `ls {path}`\n",
        "[time-limit]\nmatch: the time is over\ncause: time\nhint: none\n",
        (Path(__file__).parents[3] / "provision/explain/known/generic.txt").read_text(encoding="utf-8"),
        (Path(__file__).parents[3] / "provision/explain/known/signs.txt").read_text(encoding="utf-8"),
    ]
)
ORDER = ("cause", "error", "symptom", "report", "remark")


def shown(text: str, *, failed: bool = False) -> Explanation:
    """What a log shows, with the few entries of this page."""
    return explain([text.encode()], KNOWN, failed=failed)


def line(level: str) -> str:
    """A line that shows the entry of a level."""
    return f"the {level} is here\n"


def first(text: str) -> str:
    """The entry that leads, or the verdict."""
    explanation = shown(text)
    return explanation.known.entry.id if explanation.known else explanation.verdict


@pytest.mark.parametrize(("stronger", "weaker"), list(pairwise(ORDER)))
def test_the_stronger_level_leads_wherever_it_stands(stronger: str, weaker: str) -> None:
    assert first(line(weaker) + line(stronger)) == first(line(stronger) + line(weaker)) == stronger


def test_of_equal_levels_the_first_in_the_log_leads_and_of_one_line_the_longer_pattern() -> None:
    assert first("the time is over\n" + line("cause")) == "time-limit"
    both = shown("the cause is here and elsewhere\n")
    assert both.known is not None and both.known.entry.id == "long"
    assert both.known.sureness == "likely", "another entry calls the same line a cause"
    alone = shown(line("cause")).known
    assert alone is not None and alone.sureness == "sure"


def test_what_only_follows_from_a_failure_leaves_it_unknown_or_quotes_the_last_words() -> None:
    assert first(line("consequence")) == "unknown"
    words = shown("the grid must not be negative\n" + line("consequence")).known
    assert words is not None and words.entry.id == "last-words" and "negative" in words.cause


def test_a_complaint_follows_from_a_failure_above_it_unless_it_names_an_absolute_path() -> None:
    assert first(line("symptom") + "no file a.txt\n") == "symptom"
    assert first(line("symptom") + "no file /a.txt\n") == "gone"
    assert first("no file a.txt\n" + line("symptom")) == "gone"
    assert first("no file a.txt\n" + "page\n" * 20 + line("symptom")) == "symptom", "it went on for many lines"


def test_a_wait_counts_only_in_the_last_line_and_a_notice_never() -> None:
    assert first("step\n" + line("wait")) == "wait"
    assert first(line("wait") + "step\n") == first(line("notice")) == "healthy"
    assert first(line("notice") + line("remark")) == "remark"


def test_a_line_that_comes_three_times_shows_what_once_does_not() -> None:
    assert first(line("repeated") * 2) == "healthy"
    assert first(line("repeated") * 3) == "repeated"


def test_what_is_below_the_end_of_a_job_follows_from_it() -> None:
    assert first("the time is over\n" + line("error")) == "time-limit"


@pytest.mark.parametrize(
    ("failure", "after"),
    [
        ("error", "page\n" * (AFTER_ERROR + 1)),
        ("complaint", "page\n" * (AFTER_COMPLAINT + 1)),
        ("cause", "step 1 loss: 0.5\nstep 2 loss: 0.4\n"),
        ("cause", "Training complete\n"),
        ("cause", "Successfully installed a-1.0\n"),
    ],
)
def test_a_failure_that_was_overcome_accuses_no_one(failure: str, after: str) -> None:
    assert first(line(failure) + after) == "healthy"
    assert first(after + line(failure)) == failure
    assert first(f"{line(failure)}srun: error: n1: task 0: Exited with exit code 1\n{after}") == failure
    assert shown(line(failure) + after, failed=True).known is not None


@pytest.mark.parametrize("excuse", ["ignored", "falling back to the CPU", "will retry"])
def test_a_line_that_excuses_itself_or_only_warns_is_no_failure(excuse: str) -> None:
    assert first(f"{line('cause').strip()}, {excuse}\n") == "healthy"
    assert first(f"WARNING: {line('cause')}") == "healthy"


def test_a_line_that_excuses_others_reaches_a_few_lines() -> None:
    assert first(line("cause") + "you can ignore the above error\n") == "healthy"
    assert first(line("cause") + "page\n" * 9 + "you can ignore the above error\n") == "cause"
    assert first("the following errors can be safely ignored\n" + line("cause")) == "healthy"


def test_a_name_from_a_log_stands_in_a_command_only_if_a_shell_takes_it_as_one_word() -> None:
    known = shown("no file a;reboot\n").known
    assert known is not None
    assert "a;reboot" in known.cause and "reboot" not in known.hint


# Several runs in one file

HEAD = "loaded module python\nloaded module cuda 11.0\nloading the data now\n"


@pytest.mark.parametrize("blocks", [4, 9])
def test_of_several_runs_the_last_one_leads(blocks: int) -> None:
    text = f"{HEAD}{line('cause')}{HEAD.replace('11.0', '12.4')}step\nthe time is over\n"
    lines = text.splitlines(keepends=True)
    explanation = explain(("".join(lines[at : at + blocks]).encode() for at in range(0, len(lines), blocks)), KNOWN)
    assert explanation.known is not None and explanation.known.entry.id == "time-limit"
    assert explanation.begins == 5
    assert lines[explanation.known.number - 1] == "the time is over\n"


def test_a_run_that_says_less_does_not_lead() -> None:
    assert first(HEAD + line("cause") + HEAD + line("remark")) == "cause", "a step that failed after the first one"
    assert first(HEAD + line("cause") + HEAD + "step\n") == "cause", "a rank that started late"
    assert first(HEAD + line("cause") + HEAD + "Training complete\n") == "healthy"


def test_ranks_and_steps_that_begin_alike_are_one_run() -> None:
    ranks = "".join(f"{rank}: {text}\n" for rank in range(2) for text in (HEAD + line("cause")).splitlines())
    assert shown(ranks).begins == 1
    assert shown(HEAD + line("cause") + HEAD * (MOST + 2) + "the time is over\n").known is not None


# Tracebacks

PROGRAM = """\
Traceback (most recent call last):
  File "/home/u/train.py", line 41, in <module>
    main()
  File "/home/u/train.py", line 30, in main
    print(hvd_rank)
NameError: name 'hvd_rank' is not defined
"""
LIBRARY = PROGRAM.replace(
    '"/home/u/train.py", line 30, in main', '"/env/lib/python3.11/site-packages/flux/io.py", line 3, in read'
)
LIBRARY = LIBRARY.replace("NameError: name 'hvd_rank' is not defined", "flux.FluxError: the flux is inverted")
RICH = """\
╭───────────────────── Traceback (most recent call last) ──────────────────────╮
│ /home/u/train.py:53 in <module>                                              │
│   53     main()                                                              │
╰──────────────────────────────────────────────────────────────────────────────╯
KeyError: 'lr'
"""
NOTEBOOK = """\
KeyError                                  Traceback (most recent call last)
Cell In[3], line 5
----> 5 cfg['lr']

KeyError: 'lr'
"""


@pytest.mark.parametrize(
    ("text", "entry", "place"),
    [
        (PROGRAM, "error-in-program", "`/home/u/train.py`, line 30"),
        ("".join(f"[1,3]<stderr>:{text}\n" for text in PROGRAM.splitlines()), "error-in-program", "line 30"),
        ("".join(f"      {text}\n" for text in PROGRAM.splitlines()), "error-in-program", "line 30"),
        (f"RuntimeError: '{PROGRAM}'\n".replace("\n", "\\n"), "error-in-program", "line 30"),
        (RICH, "error-in-program", "`/home/u/train.py`, line 53"),
        (NOTEBOOK, "error-in-program", "`cell 3`, line 5"),
        (LIBRARY, "library-stopped", "`flux`"),
        (LIBRARY.replace("in read", "in <module>"), "library-not-imported", "`flux`"),
        (PROGRAM.rpartition("NameError")[0], "unknown", ""),
        (f"Exception ignored in: <function f at 0x1>\n{PROGRAM}", "healthy", ""),
        (PROGRAM.replace("NameError: name 'hvd_rank' is not defined", f"ValueError: {line('cause')}"), "cause", ""),
        (PROGRAM + "step 1 loss: 0.5\n" * WENT_ON_AFTER_TRACEBACK, "healthy", ""),
        (PROGRAM.replace("NameError: name 'hvd_rank' is not defined", "SystemExit: 2"), "unknown", ""),
    ],
)
def test_a_traceback_names_the_program_or_the_library(text: str, entry: str, place: str) -> None:
    explanation = shown(text)
    assert first(text) == entry
    if place:
        assert explanation.known is not None and place in explanation.known.cause


def test_an_entry_at_the_end_of_a_traceback_has_the_place_in_the_program() -> None:
    known = shown(PROGRAM.replace("NameError: name 'hvd_rank' is not defined", f"ValueError: {line('cause')}")).known
    assert known is not None and known.place == "`/home/u/train.py`, line 30"


def test_of_exceptions_that_followed_from_each_other_the_last_speaks_for_the_program() -> None:
    during = "\nDuring handling of the above exception, another exception occurred:\n\n"
    known = shown(PROGRAM.replace("NameError: name", "KeyError:") + during + PROGRAM).known
    assert known is not None and "NameError" in known.cause


# Boxes of Open MPI

BOX = "-" * 74 + "\n{}\n" + "-" * 74 + "\n"


def test_a_box_is_read_as_a_whole() -> None:
    failed = BOX.format("MPI cannot start the processes on this node, because the flux\nof the daemon is inverted.")
    known = shown(failed).known
    assert known is not None and "of the daemon is inverted" in known.cause
    assert first(BOX.format(f"WARNING: this job will continue without it.\n{line('cause')}")) == "healthy"
    assert first(BOX.format("Welcome to the cluster. Please report problems.")) == "healthy"


# How patterns are found


@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        ("disk quota exceeded", {"disk", "quota"}),
        (".disk quota", {"quota*"}),
        ("x (and|or) yes ", {"yes"}),
        ("x and? or yes ", {"yes"}),
        (r"version (?P<v>GLIBC_[0-9.]+)' not found", {"version", "glibc", "not"}),
        (r"^one .*\btwo$", {"one", "two"}),
        (r"[Uu]nable to (?:find|open) it", {"unable"}),
        (r"(?i)The (?P<name>big) one(?: here)?", {"the", "big"}),
        (r"QOSMax\w+", {"qosma*"}),
    ],
)
def test_the_words_of_each_line_that_a_pattern_matches_are_known(pattern: str, words: set[str]) -> None:
    assert sure_words([pattern]) == [words]


def test_a_pattern_without_a_whole_word_and_an_entry_with_a_wrong_key_are_refused() -> None:
    with pytest.raises(ValueError, match="no whole word"):
        sure_words([r"^one.*two$"])
    for lines in ("matches: a", "level: high\nmatch: a", "match:"):
        with pytest.raises(ValueError, match="`x`"):
            Known([f"[x]\n{lines}\n"]).entry("x")
    with pytest.raises(ValueError, match="twice"):
        Known(["[x]\nmatch: the one\n", "[x]\nmatch: the two\n"])


# Logs of any length and kind


def test_lines_that_differ_in_numbers_only_are_still_found_and_counted() -> None:
    text = "".join(f"reading part {number} of 900\n" for number in range(900)) + line("cause")
    known = shown(text).known
    assert known is not None and known.number == 901


def test_a_failure_is_found_anywhere_in_a_very_long_line_and_in_a_progress_bar() -> None:
    for at in (0, 8000, 8190, 200_000):
        assert first("x " * (at // 2) + line("cause")) == "cause"
    assert first("".join(f"\r{number}%|###" for number in range(100)) + "\r" + line("cause")) == "cause"
    assert first('{"data": "' + "x " * 2000 + f'{line("cause").strip()}"}}\n') == "healthy", "a document is no message"


def test_the_memory_does_not_depend_on_the_length_of_the_log() -> None:
    reader = LogReader(KNOWN)
    for block in range(50):
        reader.feed("".join(f"{block}-{number} {line('error')}" for number in range(500)).encode())
    evidence = reader.conclude()
    assert len(evidence.findings) < 20 and evidence.length == 25_000
    assert conclude(evidence).verdict == "known"
