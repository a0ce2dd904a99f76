"""What users can load after a publication, or after something was taken back. Pure."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from provision.errors import ConfigError
from provision.horovod.flags import local_version
from provision.model.generation import Deprecation, Generation
from provision.model.layout import EnvironmentId
from provision.model.lock import Pin, normalized


@dataclass(frozen=True, slots=True, kw_only=True)
class Marks:
    """How a module is to be shown; None keeps what it is."""

    default: bool | None = None
    hidden: bool | None = None
    deprecation: Deprecation | None = None
    no_deprecation: bool = False


def publish(now: Generation, env: EnvironmentId, marks: Marks) -> Generation:
    """The generation in which users who load this environment's module get this environment."""
    module = f"{env.name}/{env.version}"
    defaults, deprecated = dict(now.defaults), dict(now.deprecated)
    if marks.default:
        defaults[env.name] = env.version
    elif marks.default is False and now.is_default(module):
        del defaults[env.name]
    if marks.deprecation:
        deprecated[module] = marks.deprecation
    elif marks.no_deprecation:
        deprecated.pop(module, None)
    hidden = now.hidden if marks.hidden is None else now.hidden - {module} | ({module} if marks.hidden else set())
    return dataclasses.replace(
        now,
        modules={**now.modules, module: str(env)},
        defaults=defaults,
        hidden=frozenset(hidden),
        deprecated=deprecated,
        does=f"publishes {env}{_marked(marks)}",
    )


def _marked(marks: Marks) -> str:
    """What a publication changes beside the module, as a phrase."""
    chosen = {"default": marks.default, "hidden": marks.hidden, "deprecated": True if marks.deprecation else None}
    chosen["deprecated"] = False if marks.no_deprecation else chosen["deprecated"]
    words = [name if is_so else f"no longer {name}" for name, is_so in chosen.items() if is_so is not None]
    return f" as {', '.join(words)}" if words else ""


def unpublish(now: Generation, env: EnvironmentId) -> Generation:
    """The generation without the module of this environment.

    Raises:
        ConfigError: the module does not load this environment.
    """
    module = f"{env.name}/{env.version}"
    loads = now.modules.get(module)
    if loads != str(env):
        raise ConfigError(
            f"`{env}` is not published",
            evidence=[f"module `{module}` of arch `{env.arch}` loads {loads or 'nothing: there is no such module'}"],
            hint="`provision list` shows what is published",
            kind="unpublished",
        )
    return dataclasses.replace(
        now,
        modules={name: value for name, value in now.modules.items() if name != module},
        defaults={name: version for name, version in now.defaults.items() if f"{name}/{version}" != module},
        hidden=now.hidden - {module},
        deprecated={name: value for name, value in now.deprecated.items() if name != module},
        does=f"unpublishes {env}",
    )


def rollback_target(
    current: int | None, generations: Mapping[int, Generation], usable: Collection[str], to: int | None, arch: str
) -> int:
    """The number of the generation to go back to: `to`, or the one that the current one replaced.

    `generations` are all that can be read, by their number; `usable` are the environments that are whole.

    Raises:
        ConfigError: there is none, or environments of it are gone or broken.
    """
    refuse = partial(ConfigError, kind="no-generation")
    listing = [describe_generation(number, found) for number, found in sorted(generations.items())][-5:]
    hint = f"`provision rollback --arch {arch} --list` shows all generations"
    if to is not None:
        target: int | None = to
    elif current is not None and current in generations and generations[current].before is not None:
        target = generations[current].before
    else:
        # One that an older version wrote has no note of what it replaced, and one that vanished cannot say it.
        target = max((number for number in generations if current is None or number < current), default=None)
    if target is None or target not in generations:
        what = f"there is no generation {to}" if to is not None else "there is no earlier generation to go back to"
        raise refuse(f"{what} of arch `{arch}`", evidence=listing or ["nothing was published for it"], hint=hint)
    if target == current:
        raise refuse(f"generation {target} of arch `{arch}` is what users load now", evidence=listing, hint=hint)
    lost = {
        module: environment for module, environment in generations[target].modules.items() if environment not in usable
    }
    if lost:
        whole = [
            number
            for number, found in generations.items()
            if number not in (target, current) and set(found.modules.values()) <= set(usable)
        ]
        again = f"`provision rollback --arch {arch} --generation {max(whole)}`" if whole else ""
        raise refuse(
            f"generation {target} of arch `{arch}` has environments that are missing or broken",
            evidence=[f"module `{module}` loads {environment}" for module, environment in lost.items()],
            hint=again or "`provision build` builds it again",
        )
    return target


def describe_generation(number: int, generation: Generation) -> str:
    """A generation in one line."""
    modules = ", ".join(generation.modules) or "no modules"
    when = f"  {generation.since}  {generation.user}: {generation.does}" if generation.since else ""
    return f"{number}  {modules}{when}"


def changes(before: Generation, after: Generation) -> list[str]:
    """What changes for users, one line for each module."""
    lines = []
    for module in dict.fromkeys((*before.modules, *after.modules)):
        old, new = before.modules.get(module), after.modules.get(module)
        if old != new:
            what = f"{short(old)} -> {short(new)}" if old and new else short(new) if new else "no longer there"
            lines.append(f"{module}: {what}")
        for note, was, is_now in (
            ("default", before.is_default(module), after.is_default(module)),
            ("hidden", module in before.hidden, module in after.hidden),
            ("deprecated", before.deprecated.get(module), after.deprecated.get(module)),
        ):
            if was != is_now and new:
                lines.append(f"{module}: {'' if is_now else 'no longer '}{note}")
    return lines


def short(environment: str) -> str:
    """An environment by the last part of its name: `2.15.1-0123456789`."""
    return environment.rpartition("/")[2]


def differences(
    old: Mapping[str, Any] | None, new: Mapping[str, Any] | None, identities: Sequence[Mapping[str, str]] = ()
) -> list[str]:
    """What differs between two environments, as phrases: `keras 3.14.0 to 3.15.1`.

    `old` and `new` are the installed versions by package; `identities` are their two identities, for the rest.
    """
    before, after = dict(old or {}), dict(new or {})
    lines = []
    for name in sorted({*before, *after}):
        was, now = before.get(name), after.get(name)
        if was != now:
            lines.append(f"{name} {was} to {now}" if was and now else f"{name} {now} comes" if now else f"{name} goes")
    if identities:
        first, second = identities
        for name in dict.fromkeys((*first, *second)):
            if first.get(name) != second.get(name) and name not in before | after:
                lines.append(f"other {name}")
    return lines


def planned_versions(pins: Iterable[Pin], identity: Mapping[str, str]) -> dict[str, str]:
    """The versions of these pins as they are installed: that of Horovod has the number of the identity's patches."""
    patches = len(identity.get("patches", "").split())
    versions = {normalized(pin.name): pin.version for pin in pins}
    return {name: local_version(text, patches) if name == "horovod" else text for name, text in versions.items()}


def in_short(lines: Sequence[str], most: int = 4) -> str:
    """Some differences in one line."""
    return ", ".join(lines[:most]) + (f" and {len(lines) - most} more" if len(lines) > most else "")
