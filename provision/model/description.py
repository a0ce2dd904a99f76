"""What is known of an environment before its proof, in its own folder: enough to publish it without planning it again."""

from dataclasses import dataclass
from typing import ClassVar

from provision.model.modulefile import Modulefile
from provision.model.stored import Stored


@dataclass(frozen=True, slots=True, kw_only=True)
class Description(Stored):
    """The site and stack of an environment, its wheels, and its modulefile as data."""

    SCHEMA: ClassVar[int] = 1
    site: str
    stack: str
    wheel: str | None
    """The key of the compiled Horovod; None if the stack has none."""
    wheels: tuple[str, ...] = ()
    """The keys of all compiled wheels."""
    modulefile: Modulefile
