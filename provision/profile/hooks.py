"""Commands of a site that run after something was done (`[hooks]`)."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Hooks:
    """Commands for bash. `after_publish` runs when users can load something else: it can refresh the cache of Lmod."""

    after_publish: str | None = None
