"""What is known of an environment before its proof, in its own folder: enough to publish it without planning it again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from provision.model import stored
from provision.model.modulefile import Modulefile

SCHEMA = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Description:
    """The site and stack of an environment, its wheel, and its modulefile as data."""

    site: str
    stack: str
    wheel: str | None
    """The key of the compiled Horovod; None if the stack has none."""
    modulefile: Modulefile

    def to_dict(self) -> dict[str, Any]:
        """This description as plain JSON values."""
        return {
            "schema": SCHEMA,
            "site": self.site,
            "stack": self.stack,
            "wheel": self.wheel,
            "modulefile": self.modulefile.to_dict(),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Description:
        """Read back what `to_dict` returned.

        Raises:
            ValueError: it is damaged, or a newer version wrote it.
        """
        stored.refuse_newer(data, SCHEMA)
        return cls(
            site=stored.text(data, "site"),
            stack=stored.text(data, "stack"),
            wheel=stored.optional_text(data, "wheel"),
            modulefile=Modulefile.from_dict(stored.mapping(data, "modulefile")),
        )
