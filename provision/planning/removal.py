"""What may be removed below a root, and what must stay. Pure: what is there comes in as values."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from provision.errors import ConfigError
from provision.wording import count

DAY_S = 86400.0
# A line of a log that a site's module system writes counts if it has both; whatever else it contains. Other lines are passed
# over: the log may be the site's own, with all modules.
LOADED = re.compile(r"(?<!\S)environment=([^\s/]{1,100}/[^\s/]{1,100}/[^\s/]{1,100})(?!\S)")
AT = re.compile(r"(?<!\S)time=(\d{1,12})(?:\.\d*)?(?!\S)")
LeftoverKind = Literal["trash", "build", "log", "generation", "wheel", "package", "cache", "lock"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Resident:
    """An environment on the disk. Sizes are in bytes, ages in seconds."""

    environment: str
    arch: str
    name: str
    size: int
    files: int
    finished: bool
    """Whether it has a record."""
    age_s: float
    """Since it was finished, or since its folder was changed."""
    module: str | None = None
    """The module with which users load it; None if it is not published."""
    default: bool = False
    pinned: str | None = None
    """Why an admin wants to keep it."""
    holder: str | None = None
    """Who builds or tests it now."""
    used_by: tuple[str, ...] = ()
    """Jobs and processes that use it, or may use it."""
    unloaded_s: float | None = None
    """Since a user loaded it for the last time; None if that is not known."""
    newer: str | None = None
    """The record, or what users of its arch load, that only a newer version of the tool can read, as a phrase."""
    wheels: frozenset[str] = frozenset()
    """The keys of the compiled wheels that it was built with."""
    foreign: str | None = None
    """The other admin who owns its files: only this admin and root can free their space."""

    @property
    def protection(self) -> tuple[str, str] | None:
        """Why it must not be removed, and what to do about that; None if it may be removed."""
        free = "wait until it is free, then run the same command again"
        if self.module:
            hint = f"`provision unpublish {self.environment}`; what users loaded keeps working until it is removed"
            return f"users load it as {self.module}{' (the default)' if self.default else ''}", hint
        if self.newer:
            return self.newer, "update this installation; until then it changes nothing that a newer version wrote"
        if self.pinned is not None:
            return f"pinned: {self.pinned}", f"`provision pin --off {self.environment}`"
        if self.holder:
            return f"in use by {self.holder}", free
        if self.used_by:
            more = f" and {len(self.used_by) - 1} more" if len(self.used_by) > 1 else ""
            return f"{self.used_by[0]}{more}", free
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """The last load of each environment, and the time of the first line, before which nothing is known. Seconds since 1970."""

    since: int
    last: Mapping[str, int] = field(default_factory=dict)

    def unloaded_s(self, environment: str, now: float) -> float:
        """For how long an environment was not loaded, at least."""
        return max(0.0, now - self.last.get(environment, self.since))


def read_usage(text: str) -> Usage | None:
    """The loads that a log lists; None if no line is about an environment."""
    last: dict[str, int] = {}
    since: int | None = None
    for line in text.splitlines():
        loaded, at = LOADED.search(line), AT.search(line)
        if loaded and at:
            time = int(at[1])
            since = time if since is None else min(since, time)
            last[loaded[1]] = max(time, last.get(loaded[1], 0))
    return None if since is None else Usage(since=since, last=last)


@dataclass(frozen=True, slots=True, kw_only=True)
class Leftover:
    """Something that no environment needs."""

    kind: LeftoverKind
    path: str
    size: int
    files: int
    age_s: float
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """What prune keeps: `keep` environments of each module name and arch that are not published, and all that are young."""

    keep: int = 2
    older_s: float = 30 * DAY_S
    unloaded_s: float | None = None
    """If it is set, only what no user loaded for so long goes, as far as that is known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RemovalDecision:
    """What is to be done with one environment, and why."""

    resident: Resident
    removes: bool
    why: str


def decide(residents: Sequence[Resident], rules: Rules) -> tuple[RemovalDecision, ...]:
    """Which environments go, by the rules; the newest of each module name come first."""
    decisions: list[RemovalDecision] = []
    kept: dict[tuple[str, str], int] = {}
    for resident in sorted(residents, key=lambda one: (one.arch, one.name, one.age_s, one.environment)):
        reason = resident.protection[0] if resident.protection else None
        if reason is None and resident.finished:
            family = (resident.arch, resident.name)
            if kept.get(family, 0) < rules.keep:
                kept[family] = kept.get(family, 0) + 1
                reason = f"one of the newest {rules.keep} that are not published"
        if reason is None and resident.age_s < rules.older_s:
            reason = f"younger than {count(int(rules.older_s // DAY_S), 'day')}"
        if reason is None and rules.unloaded_s is not None and (resident.unloaded_s or 0) < rules.unloaded_s:
            known = resident.unloaded_s is not None
            unloaded = f"known to be not loaded for {days(resident.unloaded_s or 0)} only"
            reason = unloaded if known else "nothing is known of its last load"
        why = f"{'not published' if resident.finished else 'unfinished'}, {days(resident.age_s)} old"
        if resident.unloaded_s is not None:
            why += f", not loaded for {days(resident.unloaded_s)}"
        decisions.append(RemovalDecision(resident=resident, removes=reason is None, why=reason or why))
    return tuple(decisions)


def refuse_protected(resident: Resident) -> None:
    """Raise if this environment must not be removed.

    Raises:
        ConfigError: it is published, pinned, locked, in use, or of a newer version.
    """
    if found := resident.protection:
        reason, hint = found
        raise ConfigError(
            f"`{resident.environment}` must not be removed", evidence=[reason], hint=hint, kind="protected"
        )


def days(seconds: float) -> str:
    """A duration in days, or in hours if it is less than two days."""
    return count(int(seconds // DAY_S), "day") if seconds >= 2 * DAY_S else count(int(seconds // 3600), "hour")


def freed(things: Sequence[Resident | Leftover]) -> str:
    """How much goes, in words: `3.4 GB in 46,780 files`."""
    size, files = sum(one.size for one in things), sum(one.files for one in things)
    return f"{size / 1e9:.1f} GB in {files:,} files" if size >= 1e8 else f"{size / 1e6:.1f} MB in {files:,} files"


def describe(decisions: Sequence[RemovalDecision], leftovers: Sequence[Leftover]) -> list[str]:
    """The plan as lines: what goes, and what stays for which reason."""
    going = [decision.resident for decision in decisions if decision.removes]
    lines = []
    for decision in decisions:
        one, sign = decision.resident, "-" if decision.removes else " "
        lines.append(f"{sign} {one.environment}  {one.size / 1e9:.2f} GB, {one.files:,} files  {decision.why}")
    lines += [f"- {one.path}  {one.size / 1e6:.1f} MB, {one.files:,} files  {one.why}" for one in leftovers]
    total = freed([*going, *leftovers])
    return [*lines, f"{count(len(going), 'environment')} and {count(len(leftovers), 'leftover')}: {total}"]


def to_dict(one: Resident | Leftover, why: str) -> dict[str, Any]:
    """What a program reads of it."""
    shared = {"bytes": one.size, "files": one.files, "age_s": round(one.age_s), "why": why}
    if isinstance(one, Resident):
        return {"environment": one.environment, **shared}
    return {"kind": one.kind, "path": one.path, **shared}
