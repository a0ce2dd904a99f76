"""A failed program becomes an error in one way: the known cause and its fix, or what the caller says."""

from __future__ import annotations

from provision.errors import CommandError, ProofError
from provision.machine.programs.failed_program import diagnose, failed_program

FULL = ("writing objects", "OSError: [Errno 28] No space left on device", "1 file")
UNKNOWN = ("step 1 of 2", "Error: the flux is inverted", "bye")


def test_a_known_failure_brings_its_cause_and_its_hint() -> None:
    diagnosis = diagnose(FULL)
    assert diagnosis.known and diagnosis.known.entry.id == "disk-full"
    error = failed_program("the download failed", FULL, hint="try again", log="/l")
    assert error.message == f"the download failed: {diagnosis.cause}"
    assert error.hint == diagnosis.hint
    assert (error.kind, error.log) == ("command", "/l")
    assert error.evidence == ("OSError: [Errno 28] No space left on device",)


def test_an_unknown_failure_has_the_lines_that_look_like_errors_and_the_callers_hint() -> None:
    error = failed_program("the download failed", UNKNOWN, hint="try again")
    assert (error.message, error.hint) == ("the download failed", "try again")
    assert error.evidence == ("Error: the flux is inverted",)


def test_what_else_is_known_comes_after_a_failure_that_is_not() -> None:
    assert failed_program("step `x` failed", UNKNOWN, hint="h", otherwise="code 3").message == "step `x` failed: code 3"
    assert "code 3" not in failed_program("step `x` failed", FULL, hint="h", otherwise="code 3").message


def test_the_caller_chooses_the_class_of_the_error() -> None:
    assert type(failed_program("x", (), hint="h")) is CommandError
    assert failed_program("x", (), hint="h", error=ProofError).kind == "proof"
