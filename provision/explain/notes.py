"""What one line of a log says: the entries that match it, tracebacks, unfinished reports, boxes, excuses, signs of an end."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import replace

from provision.explain.conclude import Evidence, FoundFailure
from provision.explain.known import LEVELS, Known, KnownFailure
from provision.explain.last_words import COMPLAINS, FEWEST_WORDS, MOST_ABOVE, is_refusal, last_words, only_failed, says
from provision.explain.lines import ERROR, INFO, STATUS, WARNING, Line, is_code, read_line, read_text, severity
from provision.explain.tracebacks import TracebackReader

# How many findings of an entry are kept, how many lines that look like errors, and how much of a line is shown.
KEPT, MOST_ERRORS, SHOWN = 8, 64, 300
# Open MPI, PRRTE and PMIx print 74 to 76 dashes around a message, some parts of Open MPI 60; other programs other numbers.
BORDER = re.compile(r"(?:-{60}|-{74,76})$")
OF_MPI = re.compile(
    r"\b(?:Open ?MPI|MPI|MPI_\w+|PMIx|PRRTE|PRTE|ORTE|mpirun|prterun|MCA|slots?|ranks?|process(?:es)?|daemons?)\b"
)
# How TensorFlow marks a line after which it ends the program.
FATAL = re.compile(r"F\d{4} \d\S{1,30} +\d{1,20} \S{1,80}\] ")
# A message in a box begins with a sentence, has so many lines at most, and may say that its program goes on.
MOST_IN_BOX = 80
GOES_ON = re.compile(
    r"\W{0,9}(?:WARNING|Warning|NOTE)\b|.*\b(?:(?:will|may) (?:now )?(?:therefore )?(?:continue|proceed|skip|try to|attempt to|"
    r"fall back|be ignored|be disabled)|(?:is|are|was|been) (?:therefore )?ignored|falling back|defaulting to|deprecated|"
    r"this warning|(?:reduc|degrad|lower|impact|affect|hurt|decreas|poor|suboptimal|slow)\w* (?:\w+ ){0,4}performance|"
    r"performance (?:degradation|may be|will be)|suppress this|support is disabled|attempted to remove a file)\b",
    re.IGNORECASE,
)
ABORTS = re.compile(
    r"\b(?:abort(?:ed|ing)?|terminal error|unrecoverable|fatal error|unable to (?:continue|proceed)|can ?not "
    r"(?:continue|proceed)|will be terminated|is being terminated|failed to start|cannot start)\b",
    re.IGNORECASE,
)
# A text that ends so continues in the next line; so many lines are waited for.
UNFINISHED, MOST_WAITED = re.compile(r"(?::|\breason(?: given)? (?:is|was)|\b(?:because|due to|was))\s*$"), 6
PATH = re.compile(
    r"""['"‘`]([\w./~][\w./~+@=,-]{0,300})['"’`]|(?<![\w/.])(\.{0,2}/[\w./+@=,-]{1,300})(?![^\s:,;'"()])"""
)
# A notice with a traceback, and a message that announces harmless lines, reach so many lines down; a probe has so many lines.
REACH, REACH_BELOW, LONGEST_PROBE = 4, 8, 2000
# So many equal lines near each other say that each rank is alone.
ALONE, NEAR = 3, 8
# Keras prints the number of the epoch, then a bar that ends with all its steps. In bytes, because logs have many such lines.
EPOCH, BAR = re.compile(rb"\bEpoch:? {0,2}\[?(\d+) ?(?:/|of) ?(\d+)\b"), re.compile(r"\W{0,9}(\d+)/(\d+)\s")
INSTALLED = "Successfully installed "
MISSED = re.compile(
    r"\W{0,4}ERROR: (?:Could not find a version that satisfies the requirement|No matching distribution found for) ([\w.-]+)"
)
# What `set -x` prints of `|| true`: the script did without the command above.
GUARDED = re.compile(r"\++ (?:true|:)$")
# What a line showed: nothing, failures or notices only, or anything else, such as the end of a traceback.
NOTHING, FOUND, OTHER = 0, 1, 2


class Notes(Evidence):
    """Takes the lines of a log that may say something, and notes what they say."""

    def __init__(
        self, known: Known, *, hide: Callable[[str], str], above: Callable[[int, int], Iterable[tuple[int, bytes]]]
    ) -> None:
        super().__init__(known=known, hide=hide)
        self._above = above
        """The nearest lines above the one with this number, the nearest first, at most so many."""
        self._tracebacks = TracebackReader()
        self._kept: Counter[str] = Counter()
        self._excused_to = self._probe_at = 0
        self._last_epoch = False
        self._alone: list[tuple[int, str, str]] = []
        self._notice_at: dict[str, int] = {}
        """The last harmless line of each rank: a traceback below it belongs to it."""
        self._waiting: dict[str, tuple[FoundFailure, int]] = {}
        """Reports of each rank whose text continues in the next lines."""
        self._opened: dict[str, int] = {}
        """The border that may begin a box, by rank."""

    @property
    def is_open(self) -> bool:
        """Whether the next lines belong to a traceback or a report."""
        return bool(self._tracebacks.is_open or self._waiting)

    def close(self, last: list[tuple[int, str]]) -> None:
        """Note what the end of the log says; `last` are its last lines, the nearest first."""
        for rank in list(self._waiting):
            self._keep_report(rank)
        found = len(self._tracebacks.found)
        self._tracebacks.close()
        if any(one.start > self.success_at for one in self._tracebacks.found[found:]):
            self.fail(self.length)  # the log ends before the exception
        self.tracebacks = self._tracebacks.found
        self.last = tuple((number, self._show(text)) for number, text in reversed(last))
        bar = next((match for _, text in last if (match := BAR.match(read_line(0, text).text))), None)
        if self._last_epoch and bar and bar[1] == bar[2]:
            self.whole_at = self.length
        words, known = last_words(self.known, last), {one.number for one in self.findings}
        self.words = words if words and is_refusal(words[-1][1]) and words[-1][0] not in known else ()

    def progress(self, line: bytes) -> None:
        """Note a line of a training that goes on, and that its rank is not dead."""
        self.went_on += 1
        self.steps += 1
        if b"Epoch" in line and (epoch := EPOCH.search(line)):
            self._last_epoch = epoch[1] == epoch[2]
        if self.dead:
            self.dead.discard(read_line(0, read_text(line)).rank)

    def look(self, number: int, raw: str) -> int:
        """Look at one line, or at a message in one line; returns what it showed."""
        if "\\n" in raw and "Traceback (" in raw:
            # A worker process sent its traceback as one text, as PyTorch's data loaders and Ray do.
            effects = [self.look(number, part) for part in raw.split("\\n")]
            return OTHER if any(effects) else NOTHING
        line = read_line(number, raw)
        if fatal := FATAL.match(line.text):
            line = replace(line, text=f"fatal: {line.text[fatal.end() :]}")
        if line.rank in self._waiting:
            self._continue_report(line)
        if BORDER.match(line.text.strip()):
            self._close_box(line)
            return OTHER
        found = len(self._tracebacks.found)
        if self._tracebacks.feed(line):
            return OTHER
        if len(self._tracebacks.found) > found and not self._raised(line):
            return OTHER
        if not line.text.strip() or (is_code(line.text) and len(self._tracebacks.found) == found):
            if GUARDED.match(line.text):
                self._excuse(number - 1)
            return NOTHING
        raised = len(self._tracebacks.found) > found
        return max(self._judge(line, raised=raised), OTHER if raised else NOTHING)

    def _raised(self, line: Line) -> bool:
        """Note the exception at the end of a traceback; returns whether it counts."""
        one = self._tracebacks.found[-1]
        record = self._notice_at.get(line.rank, -REACH)
        if one.start <= self._excused_to or (0 < one.start - record <= REACH and one.own_frame is None):
            self._tracebacks.found.pop()
            self._notice_at[line.rank] = line.number
            return False
        if not one.frames and says(self.known, line.text, "notice"):
            self._tracebacks.found.pop()
            return True
        self.fail(line.number)
        self.dead.add(line.rank)
        return True

    def _judge(self, line: Line, *, raised: bool) -> int:
        """Note what the entries say of a line; returns what it showed."""
        one = self._tracebacks.found[-1] if raised else None
        matches = self.known.matches(line.text)
        if one and one.frames:
            last, names = one.frames[-1], {entry.id for _, entry, _ in matches}
            at_place = self.known.matches(f"{line.text} [in {last.function} of {last.file}: {one.code}]")
            matches = [match for match in at_place if match[1].id not in names] + matches
        levels = {entry.level for _, entry, _ in matches}
        above = next((entry for _, entry, _ in matches if entry.level == "excuse-above"), None)
        if above:
            self._excuse(line.number - int(above.hint), above.cause)
            return OTHER
        if "probe" in levels:
            if 0 < line.number - self._probe_at <= LONGEST_PROBE:
                self._excuse(self._probe_at)
            self._probe_at = line.number
            return OTHER
        if "excuse-below" in levels:
            self._excused_to = line.number + REACH_BELOW
            return OTHER
        excused = "excuse" in levels or line.number <= self._excused_to
        serious = severity(line.text)
        if "fatal" in levels and serious == ERROR and not excused:
            self.fatal = True
        hits = self._choose([match for match in matches if match[1].strength >= 0], serious, excused=excused)
        if not any(LEVELS[level] for *_, level in hits) and levels & {"success", "installed"}:
            self._succeed(line, installed="success" not in levels)
            return OTHER
        if not hits and "end" in levels:
            self.whole_at = line.number
            return OTHER
        for hit in hits:
            if hit[3] == "repeated":
                near = [one for one in self._alone if line.number - one[0] <= NEAR]
                self._alone = [*near, (line.number, line.text, line.rank)]
                ranks = [rank for _, same, rank in self._alone if same == line.text]
                # One rank may print it again and again; without the numbers of ranks, each line may be of another one.
                if len(ranks) < ALONE or (line.rank and len(set(ranks)) < ALONE):
                    continue
            self._note(line, *hit, status=serious == STATUS)
        if any(level in ("wait", "repeated") for *_, level in hits) or line.rank in self._waiting:
            return OTHER
        return FOUND if hits else NOTHING

    def _choose(
        self, matches: list[tuple[int, KnownFailure, re.Match[str]]], serious: str, *, excused: bool
    ) -> list[tuple[int, KnownFailure, re.Match[str], str]]:
        """The matches of a line that count, with their levels."""
        chosen = []
        for number, entry, match in matches:
            level = entry.level
            if (excused or serious == INFO) and level not in ("notice", "wait") and not entry.warned:
                continue
            if serious == STATUS and entry.strength > LEVELS["symptom"]:
                level = "symptom"
            elif serious == WARNING and not entry.warned and level != "wait":
                level = "notice"
            chosen.append((number, entry, match, level))
        specific = [one for one in chosen if not one[1].quotes]
        if specific:
            notices = [self.known.specific(number) for number, entry, *_ in specific if entry.level == "notice"]
            return [
                one
                for one in specific
                if not notices
                or one[1].level == "notice"
                or (one[3] in ("cause", "error", "symptom") and self.known.specific(one[0]) >= max(notices))
            ]
        if not chosen:
            return []
        # Of the words of programs the weakest counts if it is a consequence; what the system's text means is the best cause.
        levels = [level for *_, level in chosen]
        level = "consequence" if "consequence" in levels else max(levels, key=LEVELS.__getitem__)
        return [(*max(chosen, key=lambda one: (one[3] == level, one[1].id.startswith("system-")))[:3], level)]

    def _note(
        self, line: Line, number: int, entry: KnownFailure, match: re.Match[str], level: str, *, status: bool
    ) -> None:
        """Keep a finding."""
        values = {name: self.hide(value.strip()) for name, value in match.groupdict().items() if value}
        values.setdefault("text", self.hide(line.text.strip())[:SHOWN])
        values["who"] = f"`{values['program']}`" if "program" in values else "a program"
        if "path" not in values and (path := PATH.search(line.text)):
            values["path"] = path[1] or path[2]
        text = self._show(line.raw, match[0])
        if level in ("report", "remark") and only_failed(self.known, values.get("reason", "")):
            level = "consequence"
        found = FoundFailure(
            entry=entry,
            number=line.number,
            text=text,
            level=level,
            values=values,
            specific=self.known.specific(number),
            status=status,
        )
        if level == "notice":
            self._notice_at[line.rank] = line.number
        elif level != "wait" and not status:
            self.fail(line.number)
        if level == "consequence" and not self._kept[entry.id]:
            above = ((number, read_text(raw)) for number, raw in self._above(line.number, MOST_ABOVE))
            found = replace(found, words=last_words(self.known, above))
        if entry.quotes and level != "notice":
            if len(self.errors) < MOST_ERRORS:
                self.errors.setdefault(text, (line.number, found.strength))
            if level == "report" and (not values["text"] or UNFINISHED.search(values["text"])):
                self._keep_report(line.rank)
                self._waiting[line.rank] = found, line.number
                return
        self._keep(found)

    def _keep(self, found: FoundFailure) -> None:
        """Keep a finding; of many of an entry the first ones, and any that is stronger."""
        self._kept[found.entry.id] += 1
        if found.level == "wait":  # it counts only in the last line
            self.findings[:] = [one for one in self.findings if one.entry.id != found.entry.id]
        kept = [one.strength for one in self.findings if one.entry.id == found.entry.id]
        if len(kept) < KEPT or found.strength > max(kept):
            self.findings.append(found)

    # Reports that continue, and boxes

    def _continue_report(self, line: Line) -> None:
        """Take a line as the text of the report above it."""
        found, began = self._waiting[line.rank]
        text = line.text.strip(" \t*|!#>-=│+")
        if text:
            found = replace(found, values={**found.values, "text": f"{found.values['text']} {self.hide(text)}".strip()})
            self._waiting[line.rank] = found, began
        if (text and not UNFINISHED.search(text)) or line.number - began >= MOST_WAITED:
            self._keep_report(line.rank)

    def _keep_report(self, rank: str) -> None:
        """Keep the report of a rank whose text is complete; one that says only that something failed is a consequence."""
        if rank not in self._waiting:
            return
        found, _ = self._waiting.pop(rank)
        text = found.values["text"]
        self._keep(found.weaker("consequence") if not text or only_failed(self.known, text) else found)

    def _close_box(self, line: Line) -> None:
        """Read the message that a line of dashes may end; a line that ends one does not begin another."""
        opened = self._opened.pop(line.rank, 0)
        inside: list[Line] = []
        if opened and 1 < line.number - opened <= MOST_IN_BOX:
            for number, raw in self._above(line.number, MOST_IN_BOX):
                if number <= opened:
                    break
                other = read_line(number, read_text(raw))
                if other.rank == line.rank and other.text.strip():
                    inside.insert(0, other)
        text = " ".join(other.text.strip() for other in inside)
        if not inside or max(len(other.text.split()) for other in inside) < FEWEST_WORDS:
            self._opened[line.rank] = line.number
            return
        numbers = {other.number for other in inside}
        if GOES_ON.match(text) and not ABORTS.search(text):
            self.findings[:] = [
                replace(found, level="notice") if found.number in numbers and not found.entry.warned else found
                for found in self.findings
            ]
            return
        if any(found.number in numbers and found.strength > 1 and not found.entry.quotes for found in self.findings):
            return
        joined = replace(inside[0], text=text)
        complains = COMPLAINS.search(text) and (OF_MPI.search(text) or ABORTS.search(text))
        if not self._judge(joined, raised=False) and complains:
            for match in re.finditer("(?P<text>.+)", text):
                self._note(joined, 0, self.known.entry("reported-error"), match, "report", status=False)

    # Excuses and ends

    def _excuse(self, first: int, beginning: str = "") -> None:
        """Forget what the lines from this one on showed that begin so."""

        def counts(number: int, text: str) -> bool:
            return number < first or re.match(beginning, text) is None

        self.findings[:] = [one for one in self.findings if not one.strength or counts(one.number, one.text)]
        self.errors = {text: at for text, at in self.errors.items() if counts(at[0], text)}
        self._tracebacks.found[:] = [one for one in self._tracebacks.found if counts(one.number, one.raw)]

    def fail(self, number: int) -> None:
        """Note that something failed at this line."""
        self.failed_at, self.went_on, self.well, self.installed = number, 0, False, False

    def _succeed(self, line: Line, *, installed: bool) -> None:
        """Note a line that says that something ended well; an installation can end well before a program fails."""
        self.installed, self.success_at = True, line.number
        self.well = self.well or not installed
        if line.text.lstrip().startswith(INSTALLED):
            # What pip did not find in one attempt it has found in a later one, as in a second index.
            names = {word.rpartition("-")[0].lower() for word in line.text.split()[2:]}
            missed = {id(one): found[1].lower() for one in self.findings if (found := MISSED.match(one.text))}
            self.findings[:] = [one for one in self.findings if missed.get(id(one)) not in names]
            self.fatal = self.fatal and not (missed and names.issuperset(missed.values()))

    # Words

    def _show(self, raw: str, message: str = "") -> str:
        """A line as it is shown: without secrets and another hint, and of a long one the part around the message."""
        before = raw.partition(" hint: ")[0]
        text = self.hide((before if raw.find(message) < len(before) else raw).strip())
        if len(text) <= SHOWN:
            return text
        at = max(0, text.find(message) - SHOWN // 4) if message else 0
        return text[text.find(" ", at) + 1 if at else 0 :][:SHOWN]
