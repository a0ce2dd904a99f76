"""The blanks (`"?"`) of a profile: the question of each, and the profile's text with the answers filled in. Pure.

The text keeps its comments, which are the questions. Answers are checked when the filled-in profile is read.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from provision.errors import ConfigError
from provision.knowledge.secret_names import holds_user
from provision.profile.provenance import walk
from provision.profile.site import BLANK, find_faults
from provision.wording import nearest

MARK = f'"{BLANK}"'
# Stands for the value of a key to remove; no profile can contain it.
REMOVED = "\x00"
# The beginning of the value that stands for a blank while the blanks are counted, as TOML.
NUMBERED = r"\u0000"
Parse = Callable[[str, str], Mapping[str, Any]]
# The answer that leaves a key out of the profile.
LEAVE_OUT = "-"


@dataclass(frozen=True, slots=True, kw_only=True)
class Blank:
    """A value to fill in: its key path, the comment after it, and whether it is a list."""

    path: str
    question: str
    many: bool


def blanks(text: str, parse: Parse) -> tuple[Blank, ...]:
    """The blanks of a profile, in the order of its text.

    Each blank of the text gets a number before the text is parsed: tables can stand in any order.

    Raises:
        ConfigError: a value contains a blank, but is not one as a whole.
    """
    questions: list[str] = []
    lines = []
    for line in text.split("\n"):
        code, comment = _split(line)
        first, *parts = code.split(MARK)
        for part in parts:
            first += f'"{NUMBERED}{len(questions)}"{part}'
            questions.append(comment)
        lines.append(first + line[len(code) :])
    places = {}
    for path, value in walk(parse("\n".join(lines), "profile")):
        only = value[0] if isinstance(value, list) and len(value) == 1 else value
        if isinstance(only, str) and re.fullmatch(rf"{REMOVED}[0-9]+", only, re.ASCII):
            places[int(only[1:])] = (path, isinstance(value, list))
    blank = [path for path, value in walk(parse(text, "profile")) if value in (BLANK, [BLANK])]
    if not len(places) == len(blank) == len(questions):
        raise ConfigError(
            f"the text has {len(questions)} blanks, but {len(blank)} values are blank",
            hint=f"a blank must be a whole value: `key = {MARK}` or `key = [{MARK}]`",
        )
    return tuple(
        Blank(path=path, question=question, many=many)
        for question, (_, (path, many)) in zip(questions, sorted(places.items()), strict=True)
    )


def copy_arch(text: str, pattern: str, name: str) -> str:
    """The tables of the arch `pattern` in this text, as those of an arch `name`."""
    sections = [part for part in _sections(text) if re.match(rf"\[archs\.{re.escape(pattern)}[].]", part)]
    behind = len(f"[archs.{pattern}")
    return "".join(f"[archs.{name}{part[behind:].rstrip()}\n\n" for part in sections)


def with_archs(text: str, patterns: Mapping[str, str]) -> str:
    """The text of a profile whose archs are these, each a copy of one that it has (`patterns`: name to name)."""
    parts = _sections(text)
    first = next((index for index, part in enumerate(parts) if part.startswith("[archs.")), len(parts))
    others = [part for part in parts[first:] if not part.startswith("[archs.")]
    return "".join((*parts[:first], *(copy_arch(text, old, new) for new, old in patterns.items()), *others))


def _sections(text: str) -> list[str]:
    """The text before the first table, and each table with its heading."""
    return re.split(r"^(?=\[)", text, flags=re.MULTILINE)


def keep_archs(text: str, archs: Sequence[str]) -> str:
    """The text of a profile with only these archs; paths in its sources that name other archs are removed too.

    Raises:
        ConfigError: the profile does not have one of these archs.
    """
    sections = _sections(text)
    named = {section: match[1] for section in sections if (match := re.match(r"\[archs\.([^].]+)", section))}
    known = tuple(dict.fromkeys(named.values()))
    for arch in archs:
        if arch not in known:
            raise ConfigError(
                f"this profile has no arch `{arch}`{nearest(arch, known)}",
                evidence=[f"it has: {', '.join(known)}"],
                hint=f"`--arch {known[0]}`" if known else "omit `--arch`",
            )
    kept = "".join(section for section in sections if section not in named or named[section] in archs)
    removed = "|".join(re.escape(arch) for arch in known if arch not in archs)
    return re.sub(rf'"archs\.({removed})(\.[^"]*)?",?[ ]?', "", kept) if removed else kept


def fill(text: str, name: str | None, blank_values: tuple[Blank, ...], answers: Mapping[str, str]) -> str:
    """The text with these answers (key path to the typed text) in place of its blanks.

    A new profile gets its `name`; None leaves that of a profile that exists. A typed whole number becomes a number,
    `true` and `false` are no texts, and the words of an answer become the texts of a list. The answer `-` removes the key.

    Raises:
        ConfigError: an answer has a password, or removes a value of several lines.
    """
    for path in answers:
        if holds_user(answers[path]) and ("://" in answers[path] or path == "network.proxy"):
            raise ConfigError(
                f"the address for `{path}` has a user or a password, but all users can read a profile",
                hint="give it without them, and set the whole address in `https_proxy` of your shell",
            )
    remaining = iter(blank_values)
    lines = []
    for line in text.split("\n"):
        code, _ = _split(line)
        parts = code.split(MARK)
        whole = parts[0]
        for part in parts[1:]:
            blank = next(remaining)
            answer = answers.get(blank.path)
            whole += MARK if answer is None else REMOVED if answer == LEAVE_OUT else _toml(answer, blank)
            whole += part
        if re.fullmatch(rf"\s*[\w.-]+ *= *\[? *{REMOVED} *,?\]?\s*", whole):
            continue
        if REMOVED in whole:  # an inline table: no comma may stand behind its last key
            whole = re.sub(rf"[\w.-]+ *= *\[? *{REMOVED} *\]? *(, *)?", "", whole)
            whole = re.sub(r", *\}", " }", whole)
        lines.append(whole + line[len(code) :])
    filled = "\n".join(lines)
    if REMOVED in filled:
        raise ConfigError(
            f"`{LEAVE_OUT}` cannot leave out a key whose value has several lines",
            hint="remove the key from the profile with an editor",
        )
    if answers.get("container.command") == LEAVE_OUT:  # no program for containers: no containers
        filled = "".join(part for part in _sections(filled) if not part.startswith("[container"))
        filled = re.sub(r'^(runtimes = .*), "container"', r"\1", filled, flags=re.MULTILINE)
    return filled if name is None else _with(filled, "name", name)


def words_of(answer: str) -> list[str]:
    """The texts of a list, which is typed as words, with commas or without, or as in TOML."""
    return re.findall(r"[^\s,\"'\[\]]+", answer)


def decided_by(path: str) -> str | None:
    """The blank whose answer decides whether this one has a meaning."""
    if re.fullmatch(r"archs\.[^.]+\.job\.memory", path):
        return "scheduler.memory"
    return {"network.proxy": "network.compute", "container.image": "container.command"}.get(path)


def unneeded(path: str, answers: Mapping[str, str]) -> bool:
    """Whether a blank has no meaning after these answers: the address of a proxy that the nodes do not use."""
    return answers.get(decided_by(path) or "") in (("yes", "no") if path == "network.proxy" else (LEAVE_OUT,))


def faults_of_answer(
    text: str,
    blank_values: tuple[Blank, ...],
    answers: Mapping[str, str],
    path: str,
    parse: Parse,
    environ: Mapping[str, str],
) -> list[str]:
    """What is wrong with the answer for the blank at `path`, if `text` is filled in with these answers.

    Faults of other keys are not listed: most of them are still blank.

    Raises:
        ConfigError: the answer has a password.
    """
    return find_faults(parse(fill(text, None, blank_values, answers), "answers"), "answers", environ).at(path)


def own_sources(text: str, name: str, source: str, day: str) -> str:
    """The text of a filled-in template without what is the template's: sources, heading, questions, and tables without keys.

    Its values are now those of a person. The comments of blanks stay.
    """
    lines = (line if MARK in _split(line)[0] else _split(line)[0].rstrip() for line in text.split("\n"))
    kept = [part for part in _sections("\n".join(lines)) if not part.startswith("[sources.")]
    kept = [re.sub(r"\n{3,}", "\n\n", part) for part in kept if not re.fullmatch(r"\[[^\n]*\]\s*", part)]
    kept[0] = kept[0].lstrip("\n")
    head = f"# The profile of `{name}`, written by `provision site new` from `{source}` on {day}.\n"
    return head + _with("".join(kept).rstrip("\n") + "\n", "title", name)


def _with(text: str, key: str, value: str) -> str:
    """The text with another value for a key before its first table: tables can have the same key."""
    first, *tables = re.split(r"^(?=\[)", text, flags=re.MULTILINE)
    line = f"{key} = {_quoted(value)}"
    return re.sub(rf"^{key} *=.*$", lambda match: line, first, count=1, flags=re.MULTILINE) + "".join(tables)


def _toml(answer: str, blank: Blank) -> str:
    if blank.many:
        return ", ".join(map(_quoted, words_of(answer)))
    return answer if re.fullmatch(r"0|[1-9][0-9]*|true|false", answer) else _quoted(answer)


def _quoted(text: str) -> str:
    """A TOML string: as in JSON, but TOML has no pairs of surrogates, and DEL is an escape sequence."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _split(line: str) -> tuple[str, str]:
    """A line of TOML split into the code and the text of its comment."""
    quoted = re.match(r"""(?:[^"'#]|"(?:[^"\\]|\\.)*"|'[^']*')*""", line)
    code = quoted[0] if quoted else line
    return code, line[len(code) :].lstrip("# ").strip()
