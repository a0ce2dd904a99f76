"""Commands of a site that run after something was done (`[hooks]`)."""

from __future__ import annotations

from dataclasses import dataclass

from provision.profile.reader import Reader


@dataclass(frozen=True, slots=True, kw_only=True)
class Hooks:
    """Commands for bash. `after_publish` runs when users can load something else: it can refresh the cache of Lmod."""

    after_publish: str | None = None


def read_hooks(table: Reader) -> Hooks:
    """Read `[hooks]`."""
    hooks = Hooks(after_publish=table.optional("after_publish"))
    table.done()
    return hooks
