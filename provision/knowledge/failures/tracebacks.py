"""Python tracebacks in a log: where the program was, and the exception that ended it."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace

from provision.knowledge.failures.lines import Line

HEADER = re.compile(r"^(\s*)(?:\W{0,3}|\w{1,80}\s{2,})Traceback \(most recent call last\)")
FRAME = re.compile(r'^(\s*)(?:\| ?)?File "([^"\n]{1,400})", line (\d+)(?:, in (\S.{0,200}))?')
# IPython: `File ~/a.py:12, in f(x)`, `Cell In[3], line 5`, `<ipython-input-3-1b2c> in f(x)`, `/home/a.py in f(x)`.
NOTEBOOK = re.compile(
    r"^(?:File (\S{1,400}?):(\d+),? in (.{0,200})|(?:Input In|Cell In) ?\[(\d+)\],? (?:line (\d+)|in ).*|"
    r"(<ipython-input-[\w-]{1,80}>|(?:[A-Za-z]:\\|[~/.])[^\s:]{1,400}\.py[cx]?) in (.{1,200}))"
)
EXCEPTION = re.compile(r"^(\s*)(?:\| ?)?((?:[A-Za-z_]\w{0,80}\.){0,9}[A-Za-z_]\w{0,80})(?:: (.*)|:?\s*)$")
# Without a traceback before it, a line counts as an exception only with a name that no other text has.
BARE = re.compile(
    r"^\s{0,8}((?:[A-Za-z_]\w{0,80}\.){0,9}[A-Z]\w{0,80}(?:Error|Exception|Interrupt|Exit|Timeout|NotFound))"
    r"(?: \(see above for traceback\))?: (\S.*)$"
)
LIBRARY = re.compile(
    r"\.p(?:yx|xi|xd)$|__autograph_generated_file|(?:site|dist)-packages[/\\]|[/\\]lib(?:64|32)?[/\\]python\d|[/\\][Ll]ib[/\\][\w/\\]+\.py$|<frozen|<__array_function__|<decorator-gen|"
    r"pip-(?:build-env|install|req-build|standalone)|[/\\]spack[/\\]lib[/\\]|^/usr/(?:local/)?s?bin/|[/\\]bin[/\\][\w.-]+$|<attrs|"
    r"^(?:tensorflow|keras|horovod|numpy|torch)[/\\](?:python|src|core|common)[/\\]|[/\\](?:tensorflow|keras)[/\\](?:python|src)[/\\]|bazel-out"
)
# The name of the package in a library's path.
PACKAGE = re.compile(
    r"(?:site|dist)-packages[/\\]([A-Za-z]\w{0,60})|[/\\]lib(?:64)?[/\\]python[\d.]{1,6}[/\\](?!site-|dist-)([a-z]\w{0,60})"
)
# What Python prints between the traceback of an exception and that of another one, which followed from it.
CHAIN = re.compile(r"^\W{0,9}(?:(During handling of) the above exception|The above exception was the direct cause)")
# What Python prints before the traceback of a destructor, which ends no program.
IGNORED = "Exception ignored "
# The class of an exception that the log does not show, because it ends before.
UNSHOWN = "?"
MOST_FRAMES, MOST_RANKS, MOST_KEPT, PATIENCE = 64, 64, 40, 400


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """One place of a traceback."""

    file: str
    line: int
    function: str

    @property
    def is_library(self) -> bool:
        """Whether the place is in Python or an installed package, not in a program of the user."""
        return LIBRARY.search(self.file) is not None

    @property
    def package(self) -> str | None:
        """The installed package, or the module of Python, that the place is in."""
        found = PACKAGE.search(self.file)
        return (found[1] or found[2]) if found else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Traceback:
    """A traceback that ended with an exception."""

    start: int
    number: int
    """The line of the exception."""
    raw: str
    exception: str
    """The class, without its module."""
    module: str
    """The module of the class; empty for Python's own exceptions."""
    text: str
    frames: tuple[Frame, ...]
    after: Traceback | None = None
    """The exception that this one followed from."""
    handled: bool = False
    """Whether the program handled that exception, as it does when it tries another module."""

    @property
    def own_frame(self) -> Frame | None:
        """The last place in a program of the user."""
        return next((frame for frame in reversed(self.frames) if not frame.is_library), None)


@dataclass(slots=True)
class _Open:
    """A traceback whose exception was not read yet."""

    start: int
    head: Line
    frames: list[Frame] = field(default_factory=list)
    strange: int = 0
    notebook: bool = False
    indent: int = 0
    """The blanks before it, as pip puts before the output of what it ran."""


class TracebackReader:
    """Collects the tracebacks of each rank; it needs the frames, and the lines that follow them."""

    def __init__(self) -> None:
        self.found: list[Traceback] = []
        self._open: dict[str, _Open] = {}
        self._ignored: set[str] = set()
        self._chains: dict[str, tuple[Traceback, bool]] = {}

    @property
    def is_open(self) -> bool:
        """Whether the next lines belong to a traceback."""
        return bool(self._open)

    def feed(self, line: Line) -> bool:
        """Read a line; returns whether it is a place or code of a traceback, so that it is not evidence itself."""
        text = line.text
        if text.lstrip().startswith(IGNORED):
            self._ignored.add(line.rank)
            return True
        if (chain := CHAIN.match(text)) and self.found:
            self._chains[line.rank] = (self.found[-1], chain[1] is not None)
            return True
        if header := HEADER.match(text):
            if len(self._open) < MOST_RANKS:
                notebook = text.lstrip()[:9] != "Traceback"
                self._open[line.rank] = _Open(start=line.number, head=line, notebook=notebook, indent=len(header[1]))
            return True
        frame = _read_frame(text)
        opened = self._open.get(line.rank)
        if frame:
            if opened is None and len(self._open) < MOST_RANKS:
                opened = self._open[line.rank] = _Open(
                    start=line.number,
                    head=line,
                    notebook=not text.lstrip().startswith('File "'),
                    indent=max(0, len(text) - len(text.lstrip()) - 2),
                )
            if opened:
                opened.strange = 0
                opened.frames.append(frame)
                if len(opened.frames) > MOST_FRAMES:
                    del opened.frames[1]
            return True
        if opened is None:
            bare = BARE.match(text)
            if bare:
                self._keep(line, _Open(start=line.number, head=line), bare[1], bare[2])
            return False
        return self._continue(line, opened)

    def close(self) -> None:
        """Keep the tracebacks whose end is missing; a notebook names the exception at their beginning."""
        for opened in self._open.values():
            if opened.frames or opened.notebook:
                name = opened.head.text.split()[0] if opened.notebook else UNSHOWN
                self._keep(opened.head, opened, name, "")
        self._open.clear()

    def _continue(self, line: Line, opened: _Open) -> bool:
        """A line behind a place: code, or the exception."""
        text = line.text
        found = EXCEPTION.match(text)
        code_indent = 0 if opened.notebook else 4 + opened.indent
        if found and (len(found[1]) < code_indent or opened.notebook) and _names_exception(found[2]):
            self._open.pop(line.rank, None)
            return self._keep(line, opened, found[2], found[3] or "")
        if not text.strip() or text[:1] in " \t" or opened.notebook:
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
                start=opened.start,
                number=line.number,
                raw=line.raw,
                exception=name.rpartition(".")[2],
                module=name.rpartition(".")[0],
                text=text.strip(),
                frames=tuple(opened.frames),
                after=after,
                handled=handled,
            )
            self.found.append(_complete(found, after) if after and found.exception == UNSHOWN else found)
        return False


def _complete(cut: Traceback, after: Traceback) -> Traceback:
    """A traceback without its end, with that of the exception that it followed from."""
    return replace(
        after, start=cut.start, frames=cut.frames + after.frames, after=after, handled=False, number=after.number
    )


def _names_exception(name: str) -> bool:
    """Whether this can be the class of an exception: `ValueError`, `queue.Empty`, `subprocess.TimeoutExpired`."""
    last = name.rpartition(".")[2]
    return "." in name or last[:1].isupper() or last.endswith(("error", "timeout", "Error"))


def _read_frame(text: str) -> Frame | None:
    """The place that a line of a traceback names."""
    if found := FRAME.match(text):
        return Frame(file=found[2], line=int(found[3]), function=(found[4] or "").strip())
    if found := NOTEBOOK.match(text):
        if found[1]:
            return Frame(file=found[1], line=int(found[2]), function=found[3])
        if found[4]:
            return Frame(file=f"cell {found[4]}", line=int(found[5] or 0), function="")
        return Frame(file=found[6], line=0, function=found[7])
    return None
