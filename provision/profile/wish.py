"""A stack with ranges (`[choose]` in `stacks/<stack>.toml`): of the stacks with locks that fit, the newest that works."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from provision.profile.patterns import Form, Name
from provision.profile.reader import Faults, FormRule, Reader

RANGE = Form(r"(?:(?:>=|<=|==|!=|<|>|~=)\s*[0-9]{1,6}(?:\.[0-9]{1,6}){0,3}(?:\.\*)?\s*,?\s*){1,8}")
KerasName = Literal["2", "3", "tf-keras"]
TABLE = "choose"


def not_a_range(text: str) -> str | None:
    """What is wrong with a range that pip would not read: `~=2` and `>=2.*` have the form of one."""
    from packaging.specifiers import InvalidSpecifier, SpecifierSet

    try:
        SpecifierSet(text)
    except InvalidSpecifier:
        return f"{text!r} is not a range of versions, such as `>=2.13,<2.16`"
    return None


Range = Annotated[str, RANGE, FormRule(not_a_range)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What is wished for; None: anything. `program` is a training program of the proof, which also says how users train."""

    name: str
    summary: str
    tensorflow: Range | None = None
    pytorch: Range | None = None
    python: Range | None = None
    keras: KerasName | None = None
    horovod: bool = True
    program: Name | None = None

    @property
    def framework(self) -> tuple[str, str]:
        """The framework that is wished for, and the range of its versions."""
        return ("pytorch", self.pytorch) if self.pytorch else ("tensorflow", self.tensorflow or "")

    @property
    def parts(self) -> tuple[str, ...]:
        """The wishes that can be dropped, by the names of their keys."""
        given = {**dict([self.framework]), "python": self.python, "keras": self.keras, "program": self.program}
        return (*(name for name, value in given.items() if value), "horovod")


def is_wish(data: Mapping[str, Any]) -> bool:
    """Whether the parsed file of a stack has ranges instead of versions."""
    return TABLE in data


def read_wish(data: Mapping[str, Any], origin: str) -> Wish:
    """Read a parsed `stacks/<stack>.toml` with the table `[choose]`.

    Raises:
        ConfigError: the file has faults; the error lists each with its key path.
    """
    faults = Faults(origin, data)
    top = Reader(data, faults)
    table = top.table(TABLE, required=True)
    wish = table.into(Wish, name=top.get("name", Name), summary=top.get("summary", str))
    if (wish.tensorflow is None) == (wish.pytorch is None) and not (
        table.has_fault("tensorflow") or table.has_fault("pytorch")
    ):
        table.fault("tensorflow", "missing" if wish.tensorflow is None else "and `pytorch` are both given: choose one")
    top.done()
    faults.check(hint=f"edit `{origin}`")
    return wish
