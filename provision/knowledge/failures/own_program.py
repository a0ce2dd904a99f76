"""What a traceback shows that no entry of the catalogue explains: an error in the user's own program, or in what it calls."""

from __future__ import annotations

import re
from dataclasses import replace

from provision.knowledge.failures.catalogue import WEIGHTS, KnownFailure
from provision.knowledge.failures.gone_paths import gone_path
from provision.knowledge.failures.python_syntax import interpreter, is_for_older, needs_newer
from provision.knowledge.failures.tracebacks import UNSHOWN, Frame, Traceback
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
# Those of TensorFlow that say that a program or its data is wrong; a summary of several is no message.
TENSORFLOWS = word_set("InvalidArgumentError OutOfRangeError")
SUMMARY = "root error(s) found"
# Not errors of the program: they are in the catalogue, or a person caused them.
OTHERS = word_set(
    "KeyboardInterrupt SystemExit MemoryError ImportError ModuleNotFoundError OSError IOError PermissionError"
)
# No errors at all, or only what follows from one: another program ended, a lower level failed, time was over.
NO_REASON = word_set(
    "KeyboardInterrupt SystemExit GeneratorExit CalledProcessError ChildFailedError ProcessExitedException "
    "ProcessRaisedException BrokenProcessPool BrokenPipeError ConnectionResetError ConnectionRefusedError EOFError "
    "ModuleNotFoundError ProcessError"
)
# The places where Keras, TensorFlow and PyTorch read saved models and weights.
READS_SAVED = re.compile(
    r"(?:keras|tensorflow|torch|transformers|safetensors)\S{0,300}[/\\](?:[^\s/\\]{0,99}(?:saving|saved_model|serializ|checkpoint|hdf5|model_config|safetensors|"
    r"pretrained|configuration_|modeling_|tokenization_)\w*[/\\.]|models?(?:_utils)?\.py$|load_context\.py$|module_v2\.py$)"
)
LOADS = re.compile(
    r"^_?(?:(?:legacy_)?load|restore|deserialize|revive|recreate|from_config|from_pretrained|model_from|compile_args)\w*$"
)
# Where pickled objects are read, how a program reads them, and the exceptions that say that the class of an object is not there.
UNPICKLES = re.compile(
    r"(?:torch[/\\]serialization|(?:^|[/\\])_?(?:pickle|compat_pickle|dill|cloudpickle|numpy_pickle|joblib|unpickler)\w*)\.py$"
)
LOADS_PICKLE = re.compile(r"[pP]ickle\.loads?\(|\bpkl\.load\(|_pickle_load\(|\bjoblib\.load\(")
CLASS_MISSING = word_set("ModuleNotFoundError AttributeError")
SAVES = re.compile(r"^_?(?:save|serialize|export)\w*$")
# The folder in which pip or Spack builds a package.
BUILT = re.compile(
    r"(?:pip-(?:build|install|req-build)-[^/\\]{1,40}[/\\]|[/\\]spack-stage-(?=[\w.-]{1,200}[/\\]spack-src[/\\]))"
    r"([\w.-]{1,80}?)(?:_[0-9a-f]{32}|-\d[\w.-]{0,60}-[a-z0-9]{32})?[/\\](?:[\w.-]+[/\\])*[\w.-]+$"
)
# The function of setuptools that runs the `setup.py` of a package, whose file is `<string>` then.
RUNS_SETUP = "run_setup"
# Packages that programs give their data to, and exceptions that say that something in the data was not found.
DATA_PACKAGES = word_set("pandas numpy sklearn scipy keras h5py matplotlib")
NOT_IN_DATA = word_set("KeyError IndexError")
# Exceptions that are almost always a mistake in a program, no matter which program prints them.
CLEAR = word_set(
    "NameError UnboundLocalError IndentationError TabError ZeroDivisionError KeyError IndexError AssertionError TypeError"
)
# Of these alone it is said that the environment is not the cause.
NEVER_OF_THE_ENVIRONMENT = word_set(
    "NameError UnboundLocalError ZeroDivisionError IndentationError TabError RecursionError"
)
# Names that are missing: a mistake of who wrote the last place, not of who called it.
NAMES = word_set("NameError UnboundLocalError")
# Packages that pass on the exception of a worker.
CARRIERS = word_set("multiprocessing concurrent six joblib threading billiard queue")
# The code with which they do.
PASSES_ON = frozenset(("raise self._value", "raise self._exception"))
# What Python says when a program and a package do not fit each other, or the program has a mistake: the caller and the called one
# differ; the attribute of an object, unless the object is of a type of Python's own or the program's own `self`.
SIGNATURE = re.compile(
    r"\w+\(\) (?:takes (?:exactly |at least |at most |from |no )?[\w ]{1,40}arguments?\b|missing \d+ required)|"
    r"Can't instantiate abstract class"
)
ATTRIBUTE = re.compile(
    r"'(?!(?:NoneType|str|bytes|int|float|bool|complex|list|dict|tuple|set|frozenset|range|function|method|generator|"
    r"builtin_function_or_method|type|module|property|slice)')(?P<type>[\w.]{1,80})' object has no attribute '(?P<name>\w{1,80})"
)
# An operation of an accelerator failed, and the message is only a number, as torch_npu prints it of CANN.
CODE_ONLY = re.compile(r"\bOPS function error: .{1,80}, error code is \d+$")
LONGEST = 200


def program_failure(traceback: Traceback) -> KnownFailure | None:
    """What a traceback says about the user's program; None if the program need not be the cause."""
    if traceback.exception == UNSHOWN:
        return _cut_failure(traceback)
    while len(traceback.frames) > 1 and traceback.frames[-1].function in ("__getattr__", "raise_from"):
        traceback = replace(traceback, frames=traceback.frames[:-1])  # these only raise what happened one place above
    frame, last = traceback.own_frame, traceback.frames[-1] if traceback.frames else None
    if last is None:
        return None if traceback.exception in OTHERS else _bare_failure(traceback)
    if gone := gone_path(traceback):
        name, cause, hint = gone
        return _failure(cause, hint, WEIGHTS["error"], name=name)
    if cannot_unpickle(traceback):
        return _unpickling_failure(traceback)
    if _reads_saved_model(traceback):
        return _saved_model_failure(traceback)
    if traceback.exception in OTHERS:
        return _library_failure(traceback)
    if traceback.exception == "SyntaxError" and (found := _syntax_failure(traceback)):
        return found
    if frame is None:
        return _data_failure(traceback) or _library_failure(traceback)
    if last is not frame and (
        _imports_library(traceback) or (traceback.exception in NAMES and last.package not in CARRIERS)
    ):
        return _library_failure(traceback)  # the program only imports a library, which fails itself, or has a mistake
    if traceback.handled and traceback.after is None and traceback.exception in NAMES:
        cause = f"the program made an error while it handled another one, which this log does not show: `{_message(traceback)}`"
        return _failure(cause, "look for the first traceback, above the beginning of this log", WEIGHTS["consequence"])
    where = "look at {place}, or at the values that reach it"
    hint = f"{where}; the environment is not the cause" if traceback.exception in NEVER_OF_THE_ENVIRONMENT else where
    if traceback.exception == "SyntaxError":
        hint = "look at {place}; if nothing is wrong there, it is written for another version of Python: `python --version`"
    elif "NoneType" in traceback.text:
        hint = (
            f"{where}; a value is None there: a file that was not found or read, a search without a result, "
            "a function without `return`"
        )
    elif traceback.exception == "AttributeError" or last is not frame:
        package = f"`{last.package}`" if last.package else "the packages"
        hint = f"{where}; if they are right, compare the version of {package} with the one the program was written for"
    what = _message(traceback)
    place = place_of(frame)
    if (misfit := _misfit(traceback)) and (last is frame or traceback.exception == "TypeError"):
        weight = WEIGHTS["error"]
        cause = f"an error in your program, or a package of another version than it was written for: {place}: `{what}`"
        hint = (
            f"compare the installed version of the package that {misfit} (`python -m pip list`) with the one that the program "
            "asks for (requirements.txt, README, its date); if they are the same, look at {place}"
        )
    elif last is frame and traceback.exception == "AssertionError" and traceback.text:
        weight = WEIGHTS["error"]
        cause = f"an error in your program or in its call: a check of the program at {place} fails: `{what}`"
        hint = "the message says what the program needs: change its call, its data or what the job requests, or look at {place}"
    elif last is frame:
        unclear = traceback.exception not in MISTAKES or traceback.text == "invalid syntax"
        weight = WEIGHTS["error" if unclear else "cause"]
        cause = f"an error in your program: {place}: `{what}`"
    elif traceback.exception == "StopIteration":
        weight = WEIGHTS["error"]
        cause = f"an error in your program or its data: the generator that {place} reads gives no data, or no more"
        hint = "look at the paths and patterns from which {place} gets its data; a generator for Keras is a loop without end"
    elif last.package in CARRIERS and traceback.code in PASSES_ON and traceback.exception in ORDINARY:
        weight = WEIGHTS["error"]
        cause = f"a worker process or thread that {place} waits for failed: `{what}`"
    elif last.package in CARRIERS and traceback.exception in MISTAKES:
        weight = WEIGHTS["error"]
        cause = f"an error in your program, in a worker process or thread that {place} waits for: `{what}`"
        hint = "run it with no workers to see the place in the program: `workers=0`, `num_workers=0`"
    elif _refuses(traceback):
        weight = WEIGHTS["error"]
        cause = f"an error in your program: {place} calls `{last.package or 'a library'}`, which refuses what it got: `{what}`"
    else:
        return _library_failure(traceback)
    return _failure(cause, hint.replace("{place}", place), weight)


def _syntax_failure(traceback: Traceback) -> KnownFailure | None:
    """A file that is written for another version of Python than the one that runs; None if it may be a mistake."""
    last = traceback.frames[-1]
    runs = interpreter(frame.file for frame in traceback.frames)
    newer = needs_newer(traceback.code, traceback.text, runs)
    older = None if newer else is_for_older(traceback.code, traceback.text, runs)
    if last.file.startswith("<") or (not newer and not older and not last.is_library):
        return None
    built = BUILT.search(last.file)
    package = built[1] if built else last.package
    since = "3" if newer == (3, 0) else ".".join(map(str, newer)) if newer else ""
    is_for = f"Python {since} or newer" if since else older or "another version of Python"
    reads = f"Python {runs[0]}.{runs[1]}" if runs else "an older one" if newer else "another one"
    cause = f"{place_of(last)} is written for {is_for}, and {reads} reads it: `{_message(traceback)}`"
    if package:
        hint = (
            f"compare `python --version` with the versions that `{package}` supports (its page on the index); use "
            + ("a newer Python, or an older" if newer else "another Python, or another")
            + " release of the package; under Python 2.7 `python -m pip install 'pip<21' 'setuptools<45'` comes first"
        )
    elif newer:
        hint = "run it with a newer Python (`module avail python`; `python --version` shows the one that runs)"
    else:
        hint = (
            "run it with the Python that it was written for, or convert it: Python 3.12 and older have `2to3 -w FILE`"
        )
    weight = WEIGHTS["cause" if runs and (newer or older) else "error"]
    name = "package-of-other-python" if package else "other-python"
    return _failure(cause, hint, weight, name=name, phase=("build", "import", "run"))


def _misfit(traceback: Traceback) -> str | None:
    """What the package does whose version may not fit the program; None if the message says nothing of the kind."""
    if traceback.exception == "TypeError" and SIGNATURE.match(traceback.text):
        return "has the called function, or calls it"
    found = (
        ATTRIBUTE.match(traceback.text) if traceback.exception in ("AttributeError", "ModuleAttributeError") else None
    )
    if found is None or f"self.{found['name']}" in traceback.code:
        return None
    return f"has the class `{found['type']}`"


def _imports_library(traceback: Traceback) -> bool:
    """Whether a library was still being imported, by the program or by none that is shown."""
    if len(traceback.frames) == 1 and "bin" in re.split(r"[/\\]", traceback.frames[0].file):
        return False  # an installed program itself
    own = max((place for place, frame in enumerate(traceback.frames) if not frame.is_library), default=-1)
    after = traceback.frames[own + 1 :] if own >= 0 else traceback.frames[-1:]
    return any(frame.function == "<module>" and frame.file != "<string>" for frame in after)


def _refuses(traceback: Traceback) -> bool:
    """Whether a library says with its exception that what the program gave it is wrong."""
    if traceback.exception in TENSORFLOWS:
        return bool(traceback.text) and SUMMARY not in traceback.text
    return traceback.exception in MISTAKES | ORDINARY and not (traceback.exception == "Exception" and traceback.module)


def cannot_unpickle(traceback: Traceback) -> bool:
    """Whether a file with pickled objects needs a module or class that is not there, or was written by Python 2."""
    if not traceback.frames:
        return False
    if traceback.exception == "UnicodeDecodeError":
        return LOADS_PICKLE.search(traceback.code) is not None
    last = traceback.frames[-1]
    reads = last.is_library and last.function != "<module>" and UNPICKLES.search(last.file) is not None
    return reads and traceback.exception in CLASS_MISSING


def _unpickling_failure(traceback: Traceback) -> KnownFailure:
    """A pickled object whose class is not there, or of Python 2."""
    if traceback.exception == "UnicodeDecodeError":
        return _failure(
            f"a file with saved Python objects was written by Python 2: `{_message(traceback)}`",
            "read it with `encoding='latin1'`: `pickle.load(f,encoding='latin1')`, `torch.load(f,encoding='latin1')`",
            WEIGHTS["error"],
            name="saved-by-another-version",
        )
    return _failure(
        "a file with saved Python objects was written by another program or another version of a package: it needs a "
        f"module or class that is not here: `{_message(traceback)}`",
        "remove the file if the program writes it again (a cache of processed data); else install the version of the package "
        "that wrote it, or define the class in the same module as the program that wrote it; save only weights (`state_dict`)",
        WEIGHTS["cause"],
        name="saved-by-another-version",
    )


def _reads_saved_model(traceback: Traceback) -> bool:
    """Whether the exception comes from a library that reads a saved model; not the environment's, such as a full disk."""
    libraries = [frame for frame in traceback.frames if frame.is_library]
    if traceback.exception in (NO_REASON | OTHERS if traceback.text else NO_REASON):
        return False
    if not libraries or libraries[-1] is not traceback.frames[-1]:
        return False
    reads = [frame for frame in libraries if READS_SAVED.search(frame.file) and LOADS.match(frame.function)]
    return bool(reads) and not any(SAVES.match(frame.function) for frame in libraries)


def _saved_model_failure(traceback: Traceback) -> KnownFailure:
    """A saved model that a library cannot read."""
    package = traceback.frames[-1].package or "a library"
    return _failure(
        f"a saved model or its weights cannot be read by the installed `{package}`: `{_message(traceback)}`",
        "read it with the versions of Keras and Python that wrote it; give own layers and functions as `custom_objects`; "
        "build the model in the program and load only the weights; check that the file is whole",
        WEIGHTS["error"],
        name="saved-model-unreadable",
    )


def _library_failure(traceback: Traceback) -> KnownFailure | None:
    """What a library says itself, if nothing better explains it."""
    last, frame = traceback.frames[-1], traceback.own_frame
    if traceback.exception in NO_REASON or last is frame or SUMMARY in traceback.text:
        return None
    if not traceback.text and (last.function != "<module>" or traceback.raw.rstrip().endswith(":")):
        return None  # it says nothing, or says it in the lines below
    if CODE_ONLY.search(traceback.text):
        return None  # the runtime of the accelerator says below what the code means
    package = f"`{last.package}`" if last.package else "a library"
    what = _message(traceback)
    built = BUILT.search(last.file)
    if built:
        cause = f"the build of `{built[1]}` stopped, and says: `{what}`"
        hint = "install or load what the message names, then run the same command again"
        if "spack-stage" not in last.file:
            hint += "; a version with a wheel for this Python needs no build: `python -m pip install --only-binary :all: PACKAGE`"
    elif last.file == "<string>" and any(frame.function == RUNS_SETUP for frame in traceback.frames):
        cause = f"the `setup.py` of a package that pip builds stopped at its line {last.line}, and says: `{what}`"
        hint = (
            "its name is in the lines of pip around this one; a mistake in it: correct it, or use the Python it was written for; "
            "otherwise install or load what the message names; `python -m pip install --only-binary :all: PACKAGE` needs no build"
        )
    elif _imports_library(traceback):
        cause = f"{package} fails while it is imported: `{what}`"
        hint = (
            "its version does not fit Python or another package: `python -m pip check` lists conflicts; compare "
            "`python -m pip list` with the versions that it asks for"
        )
    elif frame is None:
        cause = f"{package} stopped the program, and says: `{what}`"
        hint = (
            f"look for the place in your program that calls {package}, and compare the installed version "
            "(`python -m pip list`) with the one the program was written for"
        )
    else:
        place = place_of(frame)
        cause = f"your program calls {package} at {place}, which stopped it, and says: `{what}`"
        hint = (
            f"look at {place} and at the values there; if they are right, compare the installed version of {package} "
            "with the one the program was written for"
        )
    return _failure(cause, hint, WEIGHTS["report"], name="library-stopped", phase=("build", "import", "run"))


def place_of(frame: Frame) -> str:
    """A place in the user's program."""
    return f"`{frame.file}`, line {frame.line}" if frame.line else f"`{frame.file}`"


def _cut_failure(traceback: Traceback) -> KnownFailure | None:
    """Where the program was when the log ends before the message of its exception."""
    frame, last = traceback.own_frame, traceback.frames[-1]
    if frame is None or (last is not frame and last.function == "<module>"):
        return None
    calls = f", which calls `{last.package}`" if last is not frame and last.package else ""
    return _failure(
        f"the program failed at {place_of(frame)}{calls}, but the log ends before the message of the error",
        "look for the last line of the traceback at the end of the whole log, or in the output of another rank: it says "
        "what is wrong",
        WEIGHTS["consequence"],
        name="traceback-cut",
    )


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
    """The exception with its text, shortened; with its module if its class says nothing: `cv2.error`."""
    if not traceback.text and traceback.after and traceback.after.text:
        traceback = traceback.after
    name = traceback.exception
    if name == "AssertionError" and not traceback.text and traceback.code.startswith("assert "):
        return f"{name}: {traceback.code}"
    if name == "error" and traceback.module:
        name = f"{traceback.module}.{name}"
    what = f"{name}: {traceback.text}" if traceback.text else name
    return what if len(what) <= LONGEST else f"{what[:LONGEST]}…"


def _failure(
    cause: str, hint: str, weight: int, *, name: str = "error-in-program", phase: tuple[str, ...] = ("run",)
) -> KnownFailure:
    """A failure that a traceback shows; of the user's program unless it has an ID of its own."""
    return KnownFailure(
        id=name,
        message="",
        match=(),
        cause=cause,
        hint=hint,
        source="the traceback in the log",
        weight=weight,
        phase=phase,
        program=name == "error-in-program",
    )
