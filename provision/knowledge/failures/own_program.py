"""An error in the user's own program, concluded from a traceback that no entry of the catalogue explains."""

from __future__ import annotations

from provision.knowledge.failures.catalogue import WEIGHTS, KnownFailure
from provision.knowledge.failures.tracebacks import UNSHOWN, Traceback
from provision.knowledge.failures.words import word_set

# Built-in exceptions that a mistake in a program raises.
MISTAKES = word_set(
    "NameError UnboundLocalError SyntaxError IndentationError TabError ZeroDivisionError KeyError IndexError "
    "TypeError AttributeError "
    "AssertionError RecursionError NotImplementedError UnicodeDecodeError UnicodeEncodeError OverflowError "
    "FloatingPointError "
    "StopIteration LookupError ArithmeticError JSONDecodeError ArgumentError ParserError"
)
# Those that something outside of the program may cause too.
ORDINARY = word_set(
    "ValueError RuntimeError Exception FileNotFoundError NotADirectoryError IsADirectoryError EOFError FileExistsError"
)
# Not errors of the program: they are in the catalogue, or a person caused them.
OTHERS = word_set(
    "KeyboardInterrupt SystemExit MemoryError ImportError ModuleNotFoundError OSError IOError PermissionError"
)
# Packages that programs give their data to, and exceptions that say that something in the data was not found.
DATA_PACKAGES = word_set("pandas numpy sklearn scipy keras h5py matplotlib")
NOT_IN_DATA = word_set("KeyError IndexError")
# Exceptions that are almost always a mistake in a program, whoever prints them.
CLEAR = word_set("NameError UnboundLocalError IndentationError TabError ZeroDivisionError KeyError IndexError")
LONGEST = 200


def program_failure(traceback: Traceback) -> KnownFailure | None:
    """What a traceback says about the user's program; None if the program need not be the cause."""
    frame, last = traceback.own_frame, traceback.frames[-1] if traceback.frames else None
    if traceback.exception in OTHERS or traceback.exception == UNSHOWN:
        return None
    if last is None:
        return _bare_failure(traceback)
    if frame is None:
        return _data_failure(traceback)
    if last is not frame and last.function == "<module>":
        return None  # the program only imports a library, which fails itself
    where = "look at {place}, or at the values that reach it"
    hint = f"{where}; the environment is not the cause"
    if traceback.exception == "AttributeError" or last is not frame:
        package = last.package or "a package"
        hint = (
            f"{where}; if they are right, compare the version of `{package}` with the one the program was written for"
        )
    what = _message(traceback)
    place = f"`{frame.file}`, line {frame.line}" if frame.line else f"`{frame.file}`"
    if last is frame:
        weight = WEIGHTS["cause" if traceback.exception in MISTAKES else "error"]
        cause = f"an error in your program: {place}: `{what}`"
    elif traceback.exception in MISTAKES | ORDINARY and not (traceback.exception == "Exception" and traceback.module):
        weight = WEIGHTS["error"]
        cause = f"an error in your program: {place} calls `{last.package or 'a library'}`, which refuses what it got: `{what}`"
    else:
        return None
    return _failure(cause, hint.replace("{place}", place), weight)


def _bare_failure(traceback: Traceback) -> KnownFailure | None:
    """What an exception without a traceback says: some are almost always a mistake in a program."""
    if traceback.exception not in CLEAR:
        return None
    cause = f"an error in a program, probably yours: `{_message(traceback)}`"
    return _failure(
        cause, "run the program so that it prints the whole traceback: the place is in it", WEIGHTS["report"]
    )


def _data_failure(traceback: Traceback) -> KnownFailure | None:
    """What a traceback without any place in the user's program says: something was not found in the data."""
    package = next((frame.package for frame in reversed(traceback.frames) if frame.package), None)
    imports = any(frame.function == "<module>" for frame in traceback.frames)
    if imports or package not in DATA_PACKAGES or traceback.exception not in NOT_IN_DATA:
        return None
    cause = (
        f"an error in your program or its data: `{package}` does not find what it is asked for: `{_message(traceback)}`"
    )
    hint = "compare the names of columns and keys in the data with those that the program asks for"
    return _failure(cause, hint, WEIGHTS["report"])


def _message(traceback: Traceback) -> str:
    """The exception with its text, shortened."""
    what = f"{traceback.exception}: {traceback.text}" if traceback.text else traceback.exception
    return what if len(what) <= LONGEST else f"{what[:LONGEST]}…"


def _failure(cause: str, hint: str, weight: int) -> KnownFailure:
    """A failure of the user's program."""
    return KnownFailure(
        id="error-in-program",
        message="",
        match="",
        cause=cause,
        hint=hint,
        source="the traceback in the log",
        weight=weight,
        program=True,
    )
