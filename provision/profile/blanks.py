"""The blanks `"?"` of a profile: what they ask, and the profile's text with answers in their places. Pure.

The text keeps its comments: they are the questions. An answer is checked where the whole file is read.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from provision.errors import ConfigError
from provision.profile.provenance import walk
from provision.profile.site import BLANK
from provision.wording import nearest

MARK = f'"{BLANK}"'


@dataclass(frozen=True, slots=True, kw_only=True)
class Blank:
    """A value to be filled in: its key path, the comment behind it, and whether it is a list."""

    path: str
    question: str
    many: bool


def blanks(text: str, data: Mapping[str, Any]) -> tuple[Blank, ...]:
    """The blanks of a profile, in the order of its text; `data` is that text, parsed.

    Raises:
        ConfigError: text and data do not have the same ones (a table that is opened twice, say).
    """
    found = [(path, isinstance(value, list)) for path, value in walk(data) if value in (BLANK, [BLANK])]
    questions = [comment for code, comment in map(_split, text.splitlines()) for _ in range(code.count(MARK))]
    if len(found) != len(questions):
        raise ConfigError(
            f"{len(questions)} blanks in the text and {len(found)} values that are one",
            hint=f"a blank is a whole value: `key = {MARK}` or `key = [{MARK}]`",
        )
    return tuple(
        Blank(path=path, question=question, many=many) for (path, many), question in zip(found, questions, strict=True)
    )


def keep_archs(text: str, archs: Sequence[str]) -> str:
    """The text of a profile with these of its archs alone; what its sources say of the others goes with them.

    Raises:
        ConfigError: an arch that the profile does not have.
    """
    sections = re.split(r"^(?=\[)", text, flags=re.MULTILINE)
    named = {section: match[1] for section in sections if (match := re.match(r"\[archs\.([^].]+)", section))}
    there = tuple(dict.fromkeys(named.values()))
    for arch in archs:
        if arch not in there:
            raise ConfigError(
                f"this profile has no arch `{arch}`{nearest(arch, there)}",
                evidence=[f"it has: {', '.join(there)}"],
                hint=f"`--arch {there[0]}`" if there else "leave `--arch` out",
            )
    kept = "".join(section for section in sections if section not in named or named[section] in archs)
    gone = "|".join(re.escape(arch) for arch in there if arch not in archs)
    return re.sub(rf'"archs\.({gone})(\.[^"]*)?",?[ ]?', "", kept) if gone else kept


def fill(text: str, name: str, asked: tuple[Blank, ...], answers: Mapping[str, str]) -> str:
    """The text with these answers (key path to what somebody typed) in place of its blanks, and its name.

    A whole number becomes one, the words of an answer to a list its texts.

    Raises:
        ConfigError: an answer to what was not asked.
    """
    known = [one.path for one in asked]
    for path in answers:
        if path not in known:
            raise ConfigError(
                f"`{path}` is no blank of this profile{nearest(path, known)}",
                evidence=[f"blanks: {', '.join(known)}"],
                hint=f"`--set {known[0]}=VALUE`" if known else "this profile has no blank: `--site NAME`",
            )
    rest = iter(asked)
    lines = []
    for line in text.splitlines():
        code, _ = _split(line)
        parts = code.split(MARK)
        whole = parts[0]
        for part in parts[1:]:
            one = next(rest)
            whole += _toml(answers[one.path], one) if one.path in answers else MARK
            whole += part
        lines.append(whole + line[len(code) :])
    return re.sub(r"^name = .*$", f"name = {json.dumps(name)}", "\n".join(lines) + "\n", count=1, flags=re.MULTILINE)


def _toml(answer: str, blank: Blank) -> str:
    if blank.many:
        return ", ".join(json.dumps(word) for word in answer.split())
    return answer if re.fullmatch(r"0|[1-9]\d*", answer) else json.dumps(answer)


def _split(line: str) -> tuple[str, str]:
    """A line of TOML without its comment, and the comment's text."""
    quoted = re.match(r'(?:[^"#]|"(?:[^"\\]|\\.)*")*', line)
    code = quoted[0] if quoted else line
    return code, line[len(code) :].lstrip("# ").strip()
