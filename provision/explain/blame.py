"""What a traceback shows that no known failure explains: an error in the user's own program, or in what it calls.

The causes and hints are entries of `known/generic.txt`; this module decides which of them fits, and fills in their names.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from provision.explain.known import word_set
from provision.explain.tracebacks import UNSHOWN, Frame, Traceback

# Built-in exceptions that a mistake in a program raises, and those of TensorFlow that say that a program or its data is wrong.
MISTAKES = word_set(
    "NameError UnboundLocalError SyntaxError IndentationError TabError ZeroDivisionError KeyError "
    "IndexError TypeError AttributeError AssertionError RecursionError NotImplementedError "
    "UnicodeDecodeError UnicodeEncodeError OverflowError FloatingPointError StopIteration LookupError "
    "ArithmeticError JSONDecodeError ArgumentError ParserError"
)
# Those that something outside of the program may cause too.
ORDINARY = word_set(
    "ValueError RuntimeError Exception FileNotFoundError NotADirectoryError IsADirectoryError EOFError "
    "FileExistsError InvalidArgumentError OutOfRangeError"
)
# Not errors of the program: they are known, or a person caused them.
OTHERS = word_set(
    "KeyboardInterrupt SystemExit MemoryError ImportError ModuleNotFoundError OSError IOError PermissionError"
)
# Lines that show no error, or only what followed from one: another program or rank ended, or the program was told to end.
NO_REASON = word_set(
    "KeyboardInterrupt SystemExit GeneratorExit CalledProcessError ChildFailedError "
    "ProcessExitedException SubprocessError ProcessRaisedException BrokenProcessPool BrokenPipeError "
    "ConnectionResetError ConnectionRefusedError EOFError ProcessError HorovodInternalError RayTaskError "
    "RayActorError WorkerCrashedError CancelledError AbortedError"
)
# Names that are missing: a mistake of who wrote the last place, not of who called it.
NAMES = frozenset(("NameError", "UnboundLocalError"))
# A summary of several errors, or a number of the runtime of an accelerator, is no message.
SUMMARY = re.compile(r"root error\(s\) found|\bOPS function error: .{1,80}, error code is \d+$")
# Packages that pass on the exception of a worker.
CARRIERS = word_set("multiprocessing concurrent six joblib threading billiard queue")
# The places where Keras, TensorFlow and PyTorch read saved models and weights.
READS_SAVED = re.compile(
    r"(?:keras|tensorflow|torch|transformers|safetensors)\S{0,300}[/\\](?:[^\s/\\]{0,99}(?:saving|saved_model|serializ|checkpoint|"
    r"hdf5|model_config|safetensors|pretrained|configuration_|modeling_|tokenization_)\w*[/\\.]|models?(?:_utils)?\.py$|"
    r"load_context\.py$|module_v2\.py$)"
)
LOADS = re.compile(
    r"^_?(?:(?:legacy_)?load|restore|deserialize|revive|recreate|from_config|from_pretrained|model_from)\w*$"
)
SAVES = re.compile(r"^_?(?:save|serialize|export)\w*$")
# The folder in which pip or Spack builds a package, and the function of setuptools that runs its `setup.py`.
BUILT = re.compile(
    r"(?:pip-(?:build|install|req-build)-[^/\\]{1,40}[/\\]|[/\\]spack-stage-(?=[\w.-]{1,200}[/\\]spack-src[/\\]))"
    r"([\w.-]{1,80}?)(?:_[0-9a-f]{32}|-\d[\w.-]{0,60}-[a-z0-9]{32})?[/\\](?:[\w.-]+[/\\])*[\w.-]+$"
)
RUNS_SETUP = "run_setup"
# Syntax that Python 3.5 and older, or Python 3 as a whole, calls an error without saying more.
NEWER = re.compile(
    r"(?<![\w'\"])[rR]?[fF][rR]?['\"]|(?<![\w:]):=|^(?:match|case)\b(?! ?[=.,)]).*:$|^async (?:def|with|for)\b|\bawait \w|"
    r"^(?:async )?def .*->|^(?!else\b|try\b|finally\b)(?:self\.)?\w+ ?: ?[A-Za-z_][\w.]*(?:\[.*\])?(?: ?=[^=]|$)|\byield from\b|"
    r"\bprint\(.{0,400}\b(?:end|file|sep|flush) ?=|^except ?\*|\{\w+=\}|^nonlocal \w|^raise .* from \w"
)
OLDER = re.compile(
    r"^print(?: +[^\s(=.\[,)]| ?>>)|^exec +[^\s(=.]|^except .*[\w)], ?\w+ ?:|^raise [\w.]+, |<>|(?<![\w.])\d+[lL]\b|"
    r"(?<![\w'\"])[uU][rR]['\"]|\blambda ?\(\w+,|\basync ?=(?!=)|\bimport async\b"
)
PLAIN = re.compile(
    r"invalid syntax(?! in|\. )|invalid (?:token|decimal literal)|leading zeros|Missing parentheses in call|multiple exc"
)
LONGEST = 200

Blame = tuple[str, str, dict[str, str]]
"""The entry, its level for this traceback (empty: its own), and the names for its cause."""


def blame(traceback: Traceback) -> Blame | None:
    """What a traceback says about the user's program; None if it says nothing."""
    frames = traceback.frames
    while len(frames) > 1 and frames[-1].function in ("__getattr__", "raise_from"):
        frames = frames[:-1]  # these only raise what happened one place above
    own, last = traceback.own_frame, frames[-1] if frames else None
    package = next((frame.package for frame in reversed(frames) if frame.package), None)
    name, text = traceback.exception, shorten(traceback)
    values = {"text": text, "package": package or "a library", "place": str(own or last), "calls": "", "who": "Python"}
    imports = last is not None and _imports_library(frames)
    if name == UNSHOWN or (not traceback.text and traceback.number == traceback.start):
        cut = own is not None and not (last is not own and last is not None and last.function == "<module>")
        return ("traceback-cut", "", values) if cut else None
    if last is None:
        if name in MISTAKES:
            return "error-in-program", "report", {**values, "place": "the place is not shown"}
        says = bool(traceback.text) and name not in OTHERS | NO_REASON
        return ("reported-error", "report", values) if says else None
    if _reads_saved(frames) and name not in NO_REASON | (OTHERS if traceback.text else frozenset()):
        return "saved-model-unreadable", "", values
    if name == "SyntaxError" and (syntax := _other_python(traceback, last)):
        return syntax, "", {**values, "place": str(last)}
    in_library = last is not own
    if name in OTHERS or own is None or (in_library and (imports or (name in NAMES and package not in CARRIERS))):
        return _of_library(traceback, frames, values, imports=imports)
    if not in_library:
        clear = (
            name in MISTAKES
            and name != "AssertionError"
            and traceback.text != "invalid syntax"
            and not _misfit(traceback)
        )
        return "error-in-program", "cause" if clear else "", values
    if name in MISTAKES | ORDINARY and traceback.text and not SUMMARY.search(traceback.text):
        return "error-in-program", "", {**values, "calls": f", in a call of `{values['package']}`"}
    return _of_library(traceback, frames, values, imports=False)


def shorten(traceback: Traceback) -> str:
    """The exception with its text, shortened; a failed check without a text as it stands in the program."""
    text = traceback.message
    if not traceback.text and traceback.code.startswith("assert "):
        text = f"{traceback.exception}: {traceback.code}"
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"


def _of_library(
    traceback: Traceback, frames: tuple[Frame, ...], values: dict[str, str], *, imports: bool
) -> Blame | None:
    """What a library says itself, if nothing better explains it."""
    last = frames[-1]
    says_nothing = not traceback.text and (last.function != "<module>" or traceback.raw.rstrip().endswith(":"))
    if traceback.exception in NO_REASON or not last.is_library or SUMMARY.search(traceback.text) or says_nothing:
        return None
    built = BUILT.search(last.file)
    setup = last.file == "<string>" and any(frame.function == RUNS_SETUP for frame in frames)
    if built or setup:
        return "build-stopped", "", {**values, "package": built[1] if built else "a package"}
    if imports:
        return "library-not-imported", "", values
    own = traceback.own_frame
    return "library-stopped", "", {**values, "calls": f", which {own} calls," if own else ""}


def _imports_library(frames: tuple[Frame, ...]) -> bool:
    """Whether a library was still being imported, by the program or by none that is shown."""
    if len(frames) == 1 and "bin" in re.split(r"[/\\]", frames[0].file):
        return False  # an installed program itself
    own = max((place for place, frame in enumerate(frames) if not frame.is_library), default=-1)
    after = frames[own + 1 :] if own >= 0 else frames[-1:]
    return any(frame.function == "<module>" and frame.file != "<string>" for frame in after)


def _misfit(traceback: Traceback) -> bool:
    """Whether the called function or the class may be of another version than the program was written for."""
    signature = re.match(r"\w+\(\) (?:takes|got an unexpected|missing \d+ req)", traceback.text)
    attribute = re.match(r"'[\w.]*[A-Z][\w.]*' object has no attribute '(\w+)", traceback.text)
    return bool(
        signature or (attribute and f"self.{attribute[1]}" not in traceback.code and attribute[0][1:9] != "NoneType")
    )


def _reads_saved(frames: Iterable[Frame]) -> bool:
    """Whether the last place is in a library that reads a saved model."""
    libraries = [frame for frame in frames if frame.is_library]
    reads = any(READS_SAVED.search(frame.file) and LOADS.match(frame.function) for frame in libraries)
    ends = bool(libraries) and libraries[-1] is list(frames)[-1]
    return reads and ends and not any(SAVES.match(frame.function) for frame in libraries)


def _other_python(traceback: Traceback, last: Frame) -> str:
    """The entry for a file that is written for another version of Python; empty if it may be a mistake."""
    plain, code = PLAIN.match(traceback.text), traceback.code.strip()
    fits = plain and (NEWER.search(code) or OLDER.search(code) or "parentheses in call" in traceback.text)
    newer = "future feature annotations" in traceback.text or (
        "f-string" in traceback.text and "backslash" in traceback.text
    )
    if last.file.startswith("<") or not (fits or newer or last.is_library):
        return ""
    return "package-of-other-python" if last.package or BUILT.search(last.file) else "other-python"
