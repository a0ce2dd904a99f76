"""A stack with ranges (`[choose]` in `stacks/<stack>.toml`): of the stacks with locks that fit, the newest that works."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

from provision.profile.patterns import NAME
from provision.profile.reader import Faults, Reader

RANGE = re.compile(r"(?:(?:>=|<=|==|!=|<|>|~=)\s*[0-9]{1,6}(?:\.[0-9]{1,6}){0,3}(?:\.\*)?\s*,?\s*){1,8}")
KerasName = Literal["2", "3", "tf-keras"]
TABLE = "choose"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What is wished for; None: anything. `program` is a training program of the proof, which also says how users train."""

    name: str
    summary: str
    tensorflow: str
    python: str | None
    keras: KerasName | None
    horovod: bool
    program: str | None

    @property
    def parts(self) -> tuple[str, ...]:
        """The wishes that can be dropped, by the names of their keys."""
        given = {"tensorflow": self.tensorflow, "python": self.python, "keras": self.keras, "program": self.program}
        return (*(name for name, value in given.items() if value), "horovod")


def is_wish(data: Mapping[str, Any]) -> bool:
    """Whether the parsed file of a stack has ranges instead of versions."""
    return TABLE in data


def _is_range(text: str) -> bool:
    """Whether pip would read the text as a range: `~=2` and `>=2.*` look like one, but are not."""
    from packaging.specifiers import InvalidSpecifier, SpecifierSet

    try:
        SpecifierSet(text)
    except InvalidSpecifier:
        return False
    return True


def read_wish(data: Mapping[str, Any], origin: str) -> Wish:
    """Read a parsed `stacks/<stack>.toml` with the table `[choose]`.

    Raises:
        ConfigError: the file has faults; the error lists each with its key path.
    """
    faults = Faults(origin)
    top = Reader(data, faults)
    table = top.table(TABLE, required=True)
    keras = table.optional("keras")
    if keras is not None and keras not in get_args(KerasName):
        table.fault("keras", f"must be one of {', '.join(get_args(KerasName))}, but is `{keras}`")
    wish = Wish(
        name=top.text("name", pattern=NAME),
        summary=top.text("summary"),
        tensorflow=table.text("tensorflow", pattern=RANGE),
        python=table.optional("python", pattern=RANGE),
        keras=keras,  # type: ignore[arg-type]
        horovod=table.flag("horovod", True),
        program=table.optional("program", pattern=NAME),
    )
    for key, text in (("tensorflow", wish.tensorflow), ("python", wish.python)):
        if text and not _is_range(text):
            table.fault(key, f"{text!r} is not a range of versions, such as `>=2.13,<2.16`")
    table.done()
    top.done()
    faults.check(hint=f"edit `{origin}`")
    return wish
