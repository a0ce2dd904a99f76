"""Python tracebacks in a log: where the program was, and the exception that ended it."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace

from provision.explain.lines import Line

# It may follow what was printed before on the same line, such as a progress bar; IPython puts the exception's class before it.
HEADER = re.compile(
    r"^(\s*)(?:\W{0,3}|(\w{1,80})\s{2,}|(\S.{0,400}?[\s\]%>|.:]))Traceback \(most recent call last\)(?(3):?\s*$)"
)
# The frame that Rich draws around a traceback, as Typer and PyTorch Lightning print it.
BOX = re.compile(r"^\s*[╭┌+][─-]{2,200} ?Traceback \(most recent call last\)")
BOX_SIDES = re.compile(r"^\s*[│|╭╰┌└+❱]")
BOX_FRAME = re.compile(r"^\s*[│|] ([\w/~.<]\S{0,400}?):(\d+) in (\S{1,200})\s*[│|]?$")
# HDF5 prints the places of its own code in the same form.
FRAME = re.compile(r'^(\s*)(?:\| ?)?File "(?!H5\w{0,20}\.c")([^"\n]{0,400})", line (\d+)(?:, in (\S.{0,200}))?')
# IPython: `File ~/a.py:12, in f(x)`, `Cell In[3], line 5`, `<ipython-input-3-1b2c> in f(x)`, `/home/a.py in f(x)`.
NOTEBOOK = re.compile(
    r"^\[?(?:File (\S{1,400}?):(\d+),? in (.{0,200})|(?:Input In|Cell In) ?\[(\d+)\],? (?:line (\d+)|in ).*|"
    r"(<ipython-input-[\w-]{1,80}>|(?:[A-Za-z]:\\|[~/.])[^\s:\]]{1,400}\.py[cx]?)(?:\]\(https?://[^\s)]{1,200}\))? in (.{1,200}))"
)
# The line of a place, as IPython marks it in the code below.
ARROW = re.compile(r"^\s{0,4}-{1,6}> ?(\d{1,6})\b")
IN_USER_CODE = "in user code:"
# What a mail or a web page puts before each line that it quotes, and pytest before an exception.
QUOTED = re.compile(r"^(?:> ?(?!>)|E {2,7}(?=(?:\w+\.)*\w+(?:Error|Exception)\b))")
# TensorFlow names the node of the graph in a line of the same form.
EXCEPTION = re.compile(r"^(\s*)(?:\| ?)?(?!Node: ')((?:[A-Za-z_]\w{0,80}\.){0,9}[A-Za-z_]\w{0,80})(?:: (.*)|:?\s*)$")
# Without a traceback before it, a line counts as an exception only with a name that no other text has.
BARE = re.compile(
    r"^\s{0,8}((?:[A-Za-z_]\w{0,80}\.){0,9}[A-Z]\w{0,80}(?:Error|Exception|Interrupt|Exit|Timeout|NotFound))"
    r"(?: \(see above for traceback\))?:(?: (\S.*)|\s*)$"
)
LIBRARY = re.compile(
    r"\.p(?:yx|xi|xd)$|__autograph_generated_file|(?:site|dist)-packages[/\\]|[/\\]lib(?:64|32)?[/\\]python\d|"
    r"(?:[Pp]ython[\d.]*|conda\d?|envs[/\\][^/\\]{1,60})[/\\][Ll]ib[/\\][\w/\\]+\.py$|<frozen|<pip-|<__array_function__|"
    r"<decorator-gen|<attrs|pip-(?:build|build-env|install|req-build|standalone)-|[/\\]lib[/\\]spack[/\\](?:spack|llnl|external)"
    r"[/\\]|(?:^|[/\\])spack[/\\](?:lib[/\\]|bin[/\\]spack$|var[/\\]spack[/\\]repos[/\\])|"
    r"[/\\]builtin[/\\]packages[/\\][^/\\]{1,80}[/\\]package\.py$|[/\\]spack-stage-[^/\\]{1,200}[/\\]spack-src[/\\]|"
    r"^/usr/(?:local/)?s?bin/|[/\\]bin[/\\](?![\w.-]*\.py$)[\w.-]+$|^<string>$|"
    # A library that was not installed, but cloned: `/home/u/keras/keras/models.py`; or named without its folder.
    r"[/\\](keras|tensorflow|torch|numpy|pandas|jax|flax|transformers|horovod|dask|distributed)[/\\]\1[/\\]|"
    r"^(?:tensorflow|keras|horovod|numpy|torch)[/\\](?:python|src|core|common|nn|utils|optim|autograd|distributed|_\w{1,40})[/\\]|"
    r"[/\\](?:tensorflow|tensorflow_core|keras)[/\\](?:python|src)[/\\]|"
    # The scripts with which the unpacked release of a package is built: `/tmp/scipy-1.13.0/tools/generate_f2pymod.py`.
    r"[/\\][A-Za-z]\w*-\d+(?:\.\d+){1,3}[/\\](?:tools|_?build\w*|config|cmake)[/\\]"
)
# The name of the package in a library's path.
PACKAGE = re.compile(
    r"(?:site|dist)-packages[/\\]([A-Za-z]\w{0,60})|"
    r"[/\\](keras|tensorflow|torch|numpy|pandas|jax|flax|transformers|horovod|dask|distributed)[/\\]\2[/\\]|"
    r"[/\\]lib(?:64)?[/\\]python[\d.]{1,6}[/\\](?!site-|dist-)([a-z]\w{0,60})"
)
# What Python prints between the traceback of an exception and that of another one, which followed from it.
CHAIN = re.compile(r"^\W{0,9}(?:(During handling of) the above exception|The above exception was the direct cause)")
# What Python prints before the traceback of a destructor, of a call of `logging` or of the function that was to show another
# exception: these end no program; and before the places of the caller of `logging`.
IGNORED = ("Exception ignored ", "--- Logging error ---", "Error in sys.excepthook:")
CALL_STACK = "Call stack:"
# PyTorch's main process repeats an exception of a worker, whose own traceback follows.
REPEATED, ORIGINAL = "Caught ", "Original Traceback"
# Keras says first in which layer it was, and then what happened.
CALLING, ARGUMENTS = re.compile(r"Exception encountered when calling (?:layer )?.{1,200}\.$"), "Call arguments received"
UNSHOWN = "?"
"""The class of an exception that the log does not show, because it ends before."""
SHORTEST = 4
"""No exception has a shorter name."""
MOST_FRAMES, MOST_RANKS, MOST_KEPT, PATIENCE = 64, 64, 40, 400


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """One place of a traceback."""

    file: str
    line: int
    function: str

    def __str__(self) -> str:
        return f"`{self.file}`, line {self.line}" if self.line else f"`{self.file}`"

    @property
    def is_library(self) -> bool:
        """Whether the place is in Python or an installed package, not in a program of the user."""
        return LIBRARY.search(self.file) is not None or self.function == "raise_from"  # of the package `six`

    @property
    def package(self) -> str | None:
        """The installed package, or the module of Python, that the place is in."""
        found = PACKAGE.search(self.file)
        return next(filter(None, found.groups()), None) if found else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Traceback:
    """A traceback that ended with an exception."""

    start: int
    number: int
    """The line of the exception."""
    raw: str
    exception: str
    """The class, without its module."""
    text: str
    rank: str = ""
    frames: tuple[Frame, ...] = ()
    code: str = ""
    """The line of the program that stands below the last place."""
    after: Traceback | None = None
    """The exception that this one followed from."""
    handled: bool = False
    """Whether the program handled that exception, as it does when it tries another module."""

    @property
    def message(self) -> str:
        """The exception with its text."""
        return f"{self.exception}: {self.text}" if self.text else self.exception

    @property
    def own_frame(self) -> Frame | None:
        """The last place in a program of the user."""
        return next((frame for frame in reversed(self.frames) if not frame.is_library), None)


@dataclass(slots=True)
class _Open:
    """A traceback whose exception was not read yet."""

    head: Line
    frames: list[Frame] = field(default_factory=list)
    strange: int = 0
    notebook: bool = False
    indent: int = 0
    """The blanks before it, as pip puts before the output of what it ran."""
    box: bool = False
    harmless: bool = False
    """Whether it is no traceback, but the places that called `logging`."""
    raised: str = ""
    """The exception of a function that TensorFlow compiled, whose places and message follow."""
    code: str = ""


class TracebackReader:
    """Collects the tracebacks of each rank; it needs the frames, and the lines that follow them."""

    def __init__(self) -> None:
        self.found: list[Traceback] = []
        self._open: dict[str, _Open] = {}
        self._ignored: set[str] = set()
        self._waiting: dict[str, int] = {}
        """The line of an exception whose message follows, by rank."""
        self._chains: dict[str, tuple[Traceback | None, bool]] = {}

    @property
    def is_open(self) -> bool:
        """Whether the next lines belong to a traceback."""
        return bool(self._open or self._waiting)

    def feed(self, line: Line) -> bool:
        """Read a line; returns whether it is a place or code of a traceback, so that it is no message itself."""
        text = QUOTED.sub("", line.text)
        if line.rank in self._waiting and text.strip():
            number = self._waiting.pop(line.rank)
            more = "" if text.startswith(ARGUMENTS) else f" {text.strip()}"
            self.found[:] = [replace(one, text=one.text + more) if one.number == number else one for one in self.found]
        if text.lstrip().startswith(IGNORED) or text.rstrip().endswith(IGNORED[1]):
            self._ignored.add(line.rank)
            return True
        if chain := CHAIN.match(text):
            self._chains[line.rank] = (self.found[-1] if self.found else None, chain[1] is not None)
            return True
        if header := HEADER.match(text):
            if text.lstrip().startswith(ORIGINAL) and self.found and self.found[-1].text.startswith(REPEATED):
                self._chains[line.rank] = (self.found[-1], False)
            self._begin(line, notebook=header[2] is not None, indent=len(header[1]))
            return True
        if BOX.match(text):
            self._begin(line, box=True)
            return True
        if text.strip() == CALL_STACK:
            self._begin(line, harmless=True)
            return True
        opened = self._open.get(line.rank)
        if opened and opened.box and BOX_SIDES.match(text):
            _read_box(opened, text)
            return True
        if frame := _read_frame(text):
            indent = max(0, len(text) - len(text.lstrip()) - 2)
            if opened is None:
                self._begin(line, notebook=not text.lstrip().startswith('File "'), indent=indent)
                opened = self._open.get(line.rank)
            if opened:
                opened.indent = opened.indent if opened.frames or opened.notebook else max(opened.indent, indent)
                opened.strange, opened.code = 0, ""
                opened.frames.append(frame)
                del opened.frames[1 : 1 + max(0, len(opened.frames) - MOST_FRAMES)]
            return True
        if opened is None:
            bare = BARE.match(text)
            if bare and (bare[2] or "." in bare[1]):
                self._keep(line, _Open(head=line), bare[1], bare[2] or "")
            return False
        return self._continue(line, text, opened)

    def _begin(self, line: Line, **how: bool | int) -> None:
        """Open the traceback of a rank, unless too many are open."""
        if len(self._open) < MOST_RANKS:
            self._open[line.rank] = _Open(head=line, **how)  # type: ignore[arg-type]

    def close(self) -> None:
        """Keep the tracebacks whose end is missing; a notebook names the exception at their beginning."""
        for opened in self._open.values():
            if (opened.frames or opened.notebook) and not opened.harmless:
                name = opened.raised or (QUOTED.sub("", opened.head.text).split()[0] if opened.notebook else UNSHOWN)
                self._keep(opened.head, opened, name, "")
        self._open.clear()

    def _continue(self, line: Line, text: str, opened: _Open) -> bool:
        """A line behind a place: code, or the exception."""
        found = EXCEPTION.match(text)
        code_indent = 0 if opened.notebook else 4 + opened.indent
        if found and (len(found[1]) < code_indent or opened.notebook) and _names_exception(found[2]):
            if (found[3] or "").strip() == IN_USER_CODE:
                opened.indent, opened.strange, opened.raised = opened.indent + 4, 0, found[2]
                return True  # its places and its message follow, further in
            self._open.pop(line.rank, None)
            return opened.harmless or self._keep(line, opened, found[2], found[3] or "")
        if not text.strip() or text[:1] in " \t" or opened.notebook:
            if opened.frames and opened.notebook and (arrow := ARROW.match(text)):
                opened.frames[-1] = replace(opened.frames[-1], line=opened.frames[-1].line or int(arrow[1]))
                opened.code = text[arrow.end() :].strip()  # the lines around it are not what failed
            opened.code = opened.code or text.strip()
            opened.strange += opened.notebook
            if opened.strange > PATIENCE:
                self._open.pop(line.rank, None)
            return text[:4] == "    " or opened.notebook or not text.strip()
        opened.strange += 1
        if opened.strange > 3:  # another program wrote between
            self._open.pop(line.rank, None)
        return False

    def _keep(self, line: Line, opened: _Open, name: str, text: str) -> bool:
        """Keep a traceback; returns whether Python said that it ignored the exception."""
        if line.rank in self._ignored:
            self._ignored.discard(line.rank)
            return True
        after, handled = self._chains.pop(line.rank, (None, False))
        if len(self.found) < MOST_KEPT:
            found = Traceback(
                start=opened.head.number,
                number=line.number,
                raw=line.raw,
                exception=name.rpartition(".")[2],
                text=text.strip(),
                rank=line.rank,
                frames=tuple(opened.frames),
                code=opened.code,
                after=after,
                handled=handled,
            )
            if CALLING.match(found.text):
                self._waiting[line.rank] = line.number
            if after and name == UNSHOWN:  # a worker's own traceback was cut: the exception that repeats it is above
                found = replace(found, number=after.number, exception=after.exception, text=after.text, raw=after.raw)
            self.found.append(found)
        return False


def _names_exception(name: str) -> bool:
    """Whether this can be the class of an exception: `ValueError`, `queue.Empty`, `subprocess.TimeoutExpired`."""
    last = name.rpartition(".")[2]
    return len(name) >= SHORTEST and ("." in name or last[:1].isupper() or last.endswith(("error", "timeout")))


def _read_frame(text: str) -> Frame | None:
    """The place that a line of a traceback names."""
    if found := FRAME.match(text):
        # Web pages drop names in angle brackets, such as `<stdin>`.
        return Frame(file=found[2] or "<stdin>", line=int(found[3]), function=(found[4] or "").strip())
    if found := NOTEBOOK.match(text):
        if found[1]:
            return Frame(file=found[1], line=int(found[2]), function=found[3].partition("(")[0])
        if found[4]:
            return Frame(file=f"cell {found[4]}", line=int(found[5] or 0), function="")
        return Frame(file=found[6], line=0, function=found[7].partition("(")[0])
    return None


def _read_box(opened: _Open, text: str) -> None:
    """Take the place that a line within Rich's frame names."""
    if found := BOX_FRAME.match(text):
        opened.frames.append(Frame(file=found[1], line=int(found[2]), function=found[3]))
        del opened.frames[1 : 1 + max(0, len(opened.frames) - MOST_FRAMES)]
