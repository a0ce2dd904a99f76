"""Locks as versions of November 2026 and before see them: a chain of files. It goes when nobody runs those versions any more."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from provision.machine.files.disk import JSON
from provision.machine.sharing.claims import Claim, read_claim, write_claim
from provision.machine.sharing.shared_root import SharedRoot


@dataclass(frozen=True, slots=True)
class Older:
    """The lock as those versions see it: the last of `NAME.lock`, `NAME.lock.KEY` …, KEY being the key of the one before.

    Who takes over from a dead claim there makes the next file, and then renames it to `NAME.lock`. To be called by the
    holder of the folder only, so all that can happen meanwhile is done by older versions.
    """

    path: Path

    def claims(self) -> list[Claim]:
        """All claims; the last one holds."""
        found, place = [], self.path
        while (claim := read_claim(place)) is not None:
            found.append(claim)
            place = place.with_name(f"{place.name}.{claim.key}")
        return found

    def claim(self) -> Claim | None:
        """The claim that holds."""
        return next(reversed(self.claims()), None)

    def put(self, says: JSON, dead: Mapping[str, str], shared: SharedRoot) -> bool:
        """Put a claim there, if nothing is there but claims with these dead keys; whether it holds."""
        before = self.claims()
        if not before:
            return write_claim(self.path, says)
        last = before[-1]
        place = last.place.with_name(f"{last.place.name}.{last.key}")
        if last.key not in dead or not write_claim(place, says):
            return False
        now = self.claim()
        if now is None or now.place != place:  # another process was faster, and has renamed its claim
            place.unlink(missing_ok=True)
            return False
        # One step after the other, so that at each moment the last claim is this one, and nothing is left beside the chain.
        with contextlib.suppress(OSError):  # in a sticky folder what another admin left stays, and this claim behind it
            for claim in reversed(before):
                if claim.place.is_dir():
                    shared.remove(claim.place)
                place = place.replace(claim.place)
        return True

    def remove(self, token: object) -> None:
        """Remove the claim with this token, if it holds.

        Raises:
            OSError: it cannot be removed.
        """
        claim = self.claim()
        if claim is not None and claim.key == token:
            claim.place.unlink()
