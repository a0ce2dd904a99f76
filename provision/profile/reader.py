"""Read a parsed TOML document into values, and collect every fault with its key path instead of stopping at the first.

A `Reader` wraps one table. Each accessor returns a value that is safe to continue with, also when it records a fault,
so that one pass checks a whole file; `Faults.check` then raises all faults together.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar, cast

from provision.errors import ConfigError
from provision.knowledge.container_options import VARIABLES, is_no
from provision.knowledge.secret_names import holds_user, is_secret_name
from provision.profile.patterns import CONTROL, describe, show_controls
from provision.wording import nearest

Choice = TypeVar("Choice", bound=str)
NO_CONTROLS = "must not contain a line break or another control character"
VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")


class Faults:
    """The faults found in one file."""

    def __init__(self, origin: str) -> None:
        self.origin = origin
        self.lines: list[str] = []
        self.paths: list[str] = []
        """The key path of each line."""
        self.causes: list[str | None] = []
        """The variable of the environment that causes each line; None if the file does."""
        self.variables: dict[str, str] = {}
        """The variable with which the value at a key path begins."""

    def add(self, path: str, what: str, cause: str | None = None) -> None:
        """Record what is wrong with the value at `path`; `cause` is the variable to set instead of editing the file."""
        self.lines.append(f"{show_controls(path)}: {what}")
        self.paths.append(path)
        self.causes.append(cause)

    def at(self, path: str) -> list[str]:
        """What is wrong with the value at `path`, and with the items of that list."""
        return [
            line.partition(": ")[2]
            for line, place in zip(self.lines, self.paths, strict=True)
            if place == path or place.startswith(f"{path}[")
        ]

    def check(self, hint: str | None = None) -> None:
        """Raise one `ConfigError` that lists all faults, if there are any.

        Raises:
            ConfigError: there is at least one fault.
        """
        if self.lines:
            if all(self.causes):  # the file is right, and the environment is not
                names = dict.fromkeys(name for name in self.causes if name)
                hint = f"{', '.join(f'`export {name}=/PATH`' for name in names)}; or edit `{self.origin}`"
                if [*names] == ["PROVISION_ROOT"]:  # the only one with a default; the profile may be one of the tool
                    hint = "`unset PROVISION_ROOT` for the default folder, or `export PROVISION_ROOT=/PATH`"
            count = "1 fault" if len(self.lines) == 1 else f"{len(self.lines)} faults"
            raise ConfigError(f"{count} in `{self.origin}`", evidence=self.lines, hint=hint, kind="invalid-file")


class Reader:
    """One table of a document: typed access, with the faults recorded under the full key path."""

    def __init__(
        self, data: Mapping[str, Any], faults: Faults, path: str = "", environ: Mapping[str, str] | None = None
    ):
        self._data = data
        self._faults = faults
        self._path = path
        self._environ = environ or {}
        self._seen: list[str] = []

    def _at(self, key: str) -> str:
        return f"{self._path}.{key}" if self._path else key

    def fault(self, key: str, what: str) -> None:
        """Record a fault of the value under `key`."""
        self._faults.add(self._at(key), what)

    def missing(self, key: str, what: str) -> None:
        """Record that the value under `key` is missing; not if it is there, but has a fault."""
        if not self.has_fault(key):
            self.fault(key, f"missing; {what}")

    def has_fault(self, key: str) -> bool:
        """Whether the value under `key` has a fault: what stands for it must not cause another one."""
        return self._at(key) in self._faults.paths

    def _value(self, key: str, kind: type, word: str, required: bool) -> Any:
        self._seen.append(key)
        if key not in self._data:
            if required:
                self.fault(key, f"missing; {word} is required")
            return None
        value = self._data[key]
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            self.fault(key, f"must be {word}, but is {value!r}")
            return None
        return value

    def text(
        self,
        key: str,
        default: str | None = None,
        *,
        choices: Sequence[str] = (),
        pattern: re.Pattern[str] | None = None,
        expand: bool = False,
    ) -> str:
        """Text; required when there is no default. `expand` replaces `${VARIABLE}` from the environment."""
        value = self._value(key, str, "text", default is None)
        if value is None:
            return default or ""
        return self._checked(key, value, choices, pattern, expand)

    def optional(self, key: str, *, pattern: re.Pattern[str] | None = None, expand: bool = False) -> str | None:
        """Optional text."""
        value = self._value(key, str, "text", False)
        return None if value is None else self._checked(key, value, (), pattern, expand)

    def _checked(
        self, key: str, value: str, choices: Sequence[str], pattern: re.Pattern[str] | None, expand: bool
    ) -> str:
        if expand:
            before = len(self._faults.lines)
            value = self._expanded(key, value)
            if len(self._faults.lines) > before:
                return value  # only the unset variable is a fault, not the text without it
        control = CONTROL.search(value)
        if control:
            self.fault(key, f"{NO_CONTROLS}, but contains {control[0]!r}")
            return choices[0] if choices else value
        if not value:
            self.fault(key, "is empty")
        elif choices and value not in choices:
            self.fault(key, f"must be one of {', '.join(choices)}, but is {value!r}{nearest(value, choices)}")
            return choices[0]
        elif pattern and not pattern.fullmatch(value):
            self.fault(key, f"{value!r} does not have the form {describe(pattern)}")
        return value

    def _expanded(self, key: str, value: str) -> str:
        first = VARIABLE.match(value)
        if first:
            self._faults.variables[self._at(key)] = first[1]
        for name in VARIABLE.findall(value):
            if is_secret_name(name):
                self.fault(key, f"`${{{name}}}` holds a secret, but others can read what is written from a profile")
            elif not self._environ.get(name):
                what = "is empty" if name in self._environ else "is not set"
                self._faults.add(self._at(key), f"`${{{name}}}` {what} in the environment", name)
        return VARIABLE.sub(lambda match: self._environ.get(match[1], ""), value)

    def choice(self, key: str, choices: Sequence[Choice], default: Choice | None = None) -> Choice:
        """One of these texts, which is also what a type checker takes it for; required when there is no default."""
        text = self.text(key, default, choices=choices)
        return cast("Choice", text) if text in choices else choices[0]

    def optional_choice(self, key: str, choices: Sequence[Choice]) -> Choice | None:
        """One of these texts, or nothing."""
        value = self._value(key, str, "text", False)
        if value is None:
            return None
        text = self._checked(key, value, choices, None, False)
        return cast("Choice", text) if text in choices else choices[0]

    def texts(
        self,
        key: str,
        *,
        required: bool = False,
        choices: Sequence[str] = (),
        pattern: re.Pattern[str] | None = None,
        expand: bool = False,
    ) -> tuple[str, ...]:
        """A list of texts."""
        values = self._value(key, list, "a list of texts", required)
        if required and values is not None and not values:
            self.fault(key, "is empty; at least one is required")
        texts = []
        for index, value in enumerate(values or ()):
            place = f"{key}[{index}]"
            if not isinstance(value, str):
                self.fault(place, f"must be text, but is {value!r}")
            else:
                texts.append(self._checked(place, value, choices, pattern, expand))
        return tuple(texts)

    def choices(self, key: str, choices: Sequence[Choice]) -> tuple[Choice, ...]:
        """A list of some of these texts."""
        given = self.texts(key, choices=choices)
        return tuple(choice for text in given for choice in choices if choice == text)

    def integer(self, key: str, default: int | None = None, *, least: int = 0) -> int:
        """A whole number of at least `least`; required when there is no default."""
        value = self._value(key, int, "a whole number", default is None)
        if value is None:
            return default if default is not None else least
        if value < least:
            self.fault(key, f"must be at least {least}, but is {value}")
            return least
        return int(value)

    def flag(self, key: str, default: bool) -> bool:
        """True or false."""
        value = self._value(key, bool, "true or false", False)
        return default if value is None else bool(value)

    def number(self, key: str, default: float) -> float:
        """A number."""
        self._seen.append(key)
        value = self._data.get(key, default)
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            self.fault(key, f"must be a number, but is {value!r}")
            return default
        return float(value)

    def table(self, key: str, *, required: bool = False) -> Reader:
        """A table; an empty one if it is missing."""
        value = self._value(key, dict, "a table", required)
        return Reader(value or {}, self._faults, self._at(key), self._environ)

    def names(self, *, pattern: re.Pattern[str] | None = None, what: str = "") -> tuple[str, ...]:
        """The keys of this table, in the file's order; with `pattern` those that are a valid name of `what`."""
        valid = []
        for name in self._data:
            if pattern is None or pattern.fullmatch(name):
                valid.append(name)
            else:
                self._seen.append(name)
                self.fault(name, f"is not a valid name of {what}: use letters, digits and `_.+-`")
        return tuple(valid)

    def environment(self, key: str) -> tuple[tuple[str, str], ...]:
        """A table of environment variables, in the file's order."""
        inner = self.table(key)
        variables = []
        for name, value in inner._data.items():
            inner._seen.append(name)
            if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
                inner.fault(name, "is not the name of an environment variable")
            elif is_secret_name(name) or (isinstance(value, str) and "://" in value and holds_user(value)):
                inner.fault(name, "holds a secret, but all users can read profiles and modulefiles")
            elif isinstance(value, bool) or not isinstance(value, (str, int)):
                inner.fault(name, f"must be text or a whole number, but is {value!r}")
            elif control := CONTROL.search(str(value)):
                inner.fault(name, f"{NO_CONTROLS}, but contains {control[0]!r}")
            elif name in VARIABLES and not is_no(str(value)):
                inner.fault(
                    name,
                    "hides the launcher's variables in containers, so every rank would be rank 0 of 1; leave it out",
                )
            else:
                variables.append((name, str(value)))
        return tuple(variables)

    def done(self, meant: Mapping[str, str] | None = None) -> None:
        """Record a fault for every key that no accessor read; `meant` are the keys for words that are not misspelt."""
        for key in self._data:
            if key not in self._seen:
                other = (meant or {}).get(key)
                near = f" (did you mean `{other}`?)" if other else nearest(key, self._seen)
                self.fault(key, f"is not a known key{near}")
