"""How a root is shared, from `[files]` of the profile."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Sharing:
    """Who writes and reads below a root, as the profile `origin` says: whoever may write there is an admin.

    `group` is the Unix group of the admins, `readers` the one whose members may enter besides them (None: every user).
    With `lenient` the owner of the root may go on although others may write there: to take something from users must always be
    possible.
    """

    group: str | None = None
    readers: str | None = None
    origin: str = "the site profile"
    lenient: bool = False
