"""The reader of typed data: parsed TOML and JSON become dataclasses, whose fields are the only declaration of the keys.

The name of a field is its key, its default is the default, and its annotation says what the value must be: `str`, `int`,
`float`, `bool`, a `Literal`, `X | None`, `tuple[X, ...]`, `tuple[X, Y]`, `frozenset[X]`, `Mapping[str, X]`, a dataclass (a
table), or a class that has `parse` (text). `Annotated` adds what is below: a pattern, `AtLeast`, `FormRule`, and so on. A method
`add_faults(table)` of a dataclass records the faults of values that do not fit each other. Modules of such dataclasses do not
import annotations from `__future__`: to evaluate them as texts would take three times as long as to read a profile.

In a file of a person, every fault is collected with its key path; unknown keys, empty texts and control characters are faults,
and a value that is safe to continue with stands for each value with a fault. For files that the tool wrote, which may be of
another version, see `model/stored.py`: unknown keys are passed over, and the first fault is an error.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
import re
import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, TypeVar, Union, cast, get_args, get_origin

from provision.errors import ConfigError
from provision.knowledge.container_options import VARIABLES, is_no
from provision.knowledge.secret_names import holds_user, is_secret_name
from provision.profile.patterns import CONTROL, Form, show_controls
from provision.wording import count, nearest

T = TypeVar("T")
NO_CONTROLS = "must not contain a line break or another control character"
VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
LARGEST = 1e15
"""Seconds, ranks, images per second: nothing that we store comes near it, and it is a number in every language."""
NUMBERS: dict[type, tuple[Any, str]] = {
    int: (int, "a whole number"),
    float: ((int, float), "a number"),
    bool: (bool, "true or false"),
}
# In the place of a default that does not exist, and of a value with a fault.
REQUIRED, BAD = object(), object()


class Mark(enum.Enum):
    """What `Annotated` adds to a type without a value of its own."""

    EXPAND = "each `${VARIABLE}` of the text is replaced from the environment"
    NOT_EMPTY = "the list has at least one item"
    ENVIRON = "the pairs are a table of variables of the environment"
    BESIDE = "the keys of this dataclass are beside those of the other fields"


# Nobody compares the following marks; without methods for that, every start of the tool is 3 ms shorter.
@dataclass(eq=False)
class AtLeast:
    """The smallest valid whole number."""

    number: int


@dataclass(eq=False)
class FormRule:
    """What is wrong with a value, or None. `of_variable`: the variable with which the text begins causes the fault."""

    wrong: Callable[[Any], str | None]
    of_variable: bool = False


@dataclass(eq=False)
class Choices:
    """The valid texts, which depend on the whole document; the first one is the default."""

    of: Callable[[Mapping[str, Any]], Sequence[str]]


@dataclass(eq=False)
class Via:
    """The value is read as another type, from which a function makes it."""

    kind: Any
    make: Callable[[Any], Any]


@dataclass(eq=False)
class Named:
    """A table of tables, whose keys are the names of the items: of this form, or some of the known ones."""

    what: str
    form: Form | None = None
    known: tuple[str, ...] = ()


@dataclass(eq=False)
class Key:
    """The key, if it is not the name of the field."""

    name: str


Count = Annotated[int, AtLeast(0)]
Positive = Annotated[int, AtLeast(1)]
Environ = Annotated[tuple[tuple[str, str], ...], Mark.ENVIRON]
Expanded = Annotated[str, Mark.EXPAND]


@dataclass
class Faults:
    """The faults found in one file of a person; `document` is the whole file."""

    origin: str
    document: Mapping[str, Any] = field(default_factory=dict)
    environ: Mapping[str, str] = field(default_factory=dict)
    by_hand: bool = True
    found: list[tuple[str, str, str | None]] = field(default_factory=list)
    """Of each fault the key path, what is wrong, and the variable of the environment that causes it (None: the file does)."""

    def add(self, path: str, what: str, cause: str | None = None) -> None:
        """Record what is wrong with the value at `path`; `cause` is the variable to set instead of editing the file."""
        self.found.append((path, what, cause))

    @property
    def lines(self) -> list[str]:
        """The faults as text."""
        return [f"{show_controls(path)}: {what}" for path, what, _ in self.found]

    def at(self, path: str) -> list[str]:
        """What is wrong with the value at `path`, and with the items of that list."""
        return [what for place, what, _ in self.found if place == path or place.startswith(f"{path}[")]

    def check(self, hint: str | None = None) -> None:
        """Raise one `ConfigError` that lists all faults, if there are any.

        Raises:
            ConfigError: there is at least one fault.
        """
        if not self.found:
            return
        names = list(dict.fromkeys(cause for _, _, cause in self.found if cause))
        if all(cause for _, _, cause in self.found):  # the file is right, and the environment is not
            hint = f"{', '.join(f'`export {name}=/PATH`' for name in names)}; or edit `{self.origin}`"
            if names == ["PROVISION_ROOT"]:  # the only one with a default; the profile may be one of the tool
                hint = "`unset PROVISION_ROOT` for the default folder, or `export PROVISION_ROOT=/PATH`"
        message = f"{count(len(self.found), 'fault')} in `{self.origin}`"
        raise ConfigError(message, evidence=self.lines, hint=hint, kind="invalid-file")


@functools.cache
def parts_of(annotation: Any) -> tuple[Any, dict[Any, Any], bool]:
    """The type of an annotation; its marks, by their types, and its rules; and whether None is valid."""
    if get_origin(annotation) is Annotated:
        kind, *added = get_args(annotation)
        inner, marks, optional = parts_of(kind)
        rules = [*marks.get(FormRule, ()), *(one for one in added if isinstance(one, FormRule))]
        more = {one if isinstance(one, Mark) else type(one): one for one in added}
        return inner, {**marks, **more, FormRule: rules}, optional
    if get_origin(annotation) in (Union, types.UnionType):
        (only,) = (kind for kind in get_args(annotation) if kind is not type(None))
        return (*parts_of(only)[:2], True)
    return annotation, {}, False


@functools.cache
def fields_of(cls: Any) -> tuple[tuple[str, str, Any, Any], ...]:
    """Name, key, annotation and default of each field of a dataclass; the default BAD is made for each value."""
    rows = []
    for one in dataclasses.fields(cls):
        assert not isinstance(one.type, str), (
            f"the module of {cls.__name__} must not import annotations from __future__"
        )
        key = parts_of(cast("Any", one.type))[1].get(Key)
        default = REQUIRED if one.default_factory is dataclasses.MISSING else BAD
        default = default if one.default is dataclasses.MISSING else one.default
        rows.append((one.name, key.name if key else one.name, one.type, default))
    return tuple(rows)


def _raw(kind: Any, marks: Mapping[Any, Any]) -> tuple[Any, str]:
    """The type that a parsed document has for an annotation, and the word for it."""
    if kind in NUMBERS:
        return NUMBERS[kind]
    if kind is str or get_origin(kind) is Literal or hasattr(kind, "parse"):
        return str, "text"
    if get_origin(kind) in (tuple, frozenset) and Mark.ENVIRON not in marks and Named not in marks:
        return (list, tuple), "a list of texts" if _raw(*parts_of(get_args(kind)[0])[:2])[0] is str else "a list"
    return Mapping, "a table"


class Reader:
    """One table of a document; each fault is recorded under the full key path."""

    def __init__(self, data: Mapping[str, Any], faults: Faults, path: str = "") -> None:
        self.data, self.faults = data, faults
        self._path = path
        self._seen: list[str] = []

    def _at(self, key: str) -> str:
        return f"{self._path}.{key}" if self._path else key

    def fault(self, key: str, what: str) -> None:
        """Record a fault of the value under `key`."""
        self.faults.add(self._at(key), what)

    def missing(self, key: str, what: str) -> None:
        """Record that the value under `key` is missing; not if it is there, but has a fault."""
        if not self.has_fault(key):
            self.fault(key, f"missing; {what}")

    def has_fault(self, key: str) -> bool:
        """Whether the value under `key` has a fault: what stands for it must not cause another one."""
        return any(place == self._at(key) for place, _, _ in self.faults.found)

    def into(self, cls: type[T], **given: Any) -> T:
        """The dataclass of which this is the table, with these values for fields that are not in it."""
        for name, key, annotation, default in fields_of(cast("Any", cls)):
            if name not in given:
                value = self.get(key, annotation, default)
                given |= {} if value is BAD else {name: value}
        made = cls(**given)
        if hasattr(made, "add_faults"):
            made.add_faults(self)
        self.done(getattr(cls, "MEANT", None))
        return made

    def get(self, key: str, annotation: Any, default: Any = REQUIRED) -> Any:
        """The value under `key`; the default if it is missing or has a fault."""
        kind, marks, optional = parts_of(annotation)
        if Mark.BESIDE in marks:
            return self.into(kind)
        self._seen.append(key)
        value, choices = self.data.get(key), self._choices(kind, marks)
        found = BAD if value is None else self._convert(key, value, annotation)
        if found is not BAD or default is not REQUIRED:
            return default if found is BAD else found
        if value is None and optional:
            return None
        if value is None and dataclasses.is_dataclass(kind) and self.faults.by_hand:
            return self._inner(key, {}).into(kind)  # type: ignore[arg-type]
        if value is None and Choices not in marks:
            self.fault(key, f"missing; {_raw(kind, marks)[1]} is required")
        if dataclasses.is_dataclass(kind):
            return Reader({}, Faults("")).into(kind)  # type: ignore[arg-type]
        if choices:
            return choices[0]
        return marks[AtLeast].number if AtLeast in marks else (get_origin(kind) or kind)()

    def table(self, key: str, *, required: bool = False) -> Reader:
        """A table; an empty one if it is missing."""
        return self._inner(key, self.get(key, dict[str, Any], REQUIRED if required else {}))

    def _inner(self, place: str, data: Mapping[str, Any]) -> Reader:
        return Reader(data, self.faults, self._at(place))

    def _choices(self, kind: Any, marks: Mapping[Any, Any]) -> Sequence[str]:
        if Choices in marks:
            return marks[Choices].of(self.faults.document)  # type: ignore[no-any-return]
        return get_args(kind) if get_origin(kind) is Literal else ()

    def _convert(self, place: str, value: Any, annotation: Any) -> Any:
        """A value that is there as its annotation says, or BAD."""
        kind, marks, optional = parts_of(annotation)
        if Via in marks:
            found = self._convert(place, value, marks[Via].kind)
            return found if found is BAD else marks[Via].make(found)
        raw, word = _raw(kind, marks)
        if kind is not Any and (not isinstance(value, raw) or (isinstance(value, bool) and kind is not bool)):
            self.fault(place, f"must be {word}, but is {value!r}")
            return BAD
        if hasattr(kind, "parse"):
            try:
                return kind.parse(value)
            except ValueError:
                self.fault(place, f"{value!r} cannot be read")
                return BAD
        if raw is Mapping and kind is not Any:
            return None if optional and not value else self._table(place, value, kind, marks)
        if raw == (list, tuple):
            return self._list(place, value, kind, marks)
        cause = None
        if raw is str:
            first = VARIABLE.match(value)
            value, cause = self._text(place, value, kind, marks), first[1] if first and Mark.EXPAND in marks else None
        elif AtLeast in marks and value < marks[AtLeast].number:
            self.fault(place, f"must be at least {marks[AtLeast].number}, but is {value}")
            return marks[AtLeast].number
        elif kind in NUMBERS and not (self.faults.by_hand or -LARGEST <= value <= LARGEST):
            self.fault(place, f"must be {word}, but is {value!r}")
        value = float(value) if kind is float else value
        for rule in marks.get(FormRule, ()):  # of a value with a fault, nothing else is said
            if not self.has_fault(place) and (what := rule.wrong(value)):
                of = f" (from `${{{cause}}}`)" if cause and rule.of_variable else ""
                self.faults.add(self._at(place), f"{what}{of}", cause if rule.of_variable else None)
        return value

    def _text(self, place: str, value: str, kind: Any, marks: Mapping[Any, Any]) -> str:
        choices, form = self._choices(kind, marks), marks.get(Form)
        if Mark.EXPAND in marks:
            value = self._expanded(place, value)
            if self.has_fault(place):
                return value  # only the unset variable is a fault, not the text without it
        if self.faults.by_hand and (control := CONTROL.search(value)):
            self.fault(place, f"{NO_CONTROLS}, but contains {control[0]!r}")
        elif self.faults.by_hand and not value:
            self.fault(place, "is empty")
        elif choices and value not in choices:
            self.fault(place, f"must be one of {', '.join(choices)}, but is {value!r}{nearest(value, choices)}")
        elif form and not form.fullmatch(value):
            self.fault(place, f"{value!r} does not have the form {form.words}")
        return choices[0] if choices and self.has_fault(place) else value

    def _expanded(self, key: str, value: str) -> str:
        environ = self.faults.environ
        for name in VARIABLE.findall(value):
            if is_secret_name(name):
                self.fault(key, f"`${{{name}}}` holds a secret, but others can read what is written from a profile")
            elif not environ.get(name):
                what = "is empty" if name in environ else "is not set"
                self.faults.add(self._at(key), f"`${{{name}}}` {what} in the environment", name)
        return VARIABLE.sub(lambda match: environ.get(match[1], ""), value)

    def _list(self, place: str, values: Sequence[Any], kind: Any, marks: Mapping[Any, Any]) -> Any:
        """A list, without the items that have another type."""
        if Mark.NOT_EMPTY in marks and not values:
            self.fault(place, "is empty; at least one is required")
        kinds = get_args(kind)
        if Ellipsis in kinds or get_origin(kind) is frozenset:
            kinds = (kinds[0],) * len(values)
        if len(kinds) != len(values):
            self.fault(place, f"must be a list of {len(kinds)}, but is {values!r}")
            return BAD
        items = [self._convert(f"{place}[{i}]", *pair) for i, pair in enumerate(zip(values, kinds, strict=True))]
        return cast("type", get_origin(kind))(item for item in items if item is not BAD)

    def _table(self, place: str, value: Mapping[str, Any], kind: Any, marks: Mapping[Any, Any]) -> Any:
        table = self._inner(place, value)
        if Mark.ENVIRON in marks:
            return table._variables()
        if Named in marks:
            return tuple(table._named(get_args(kind)[0], marks[Named]))
        if dataclasses.is_dataclass(kind):
            return table.into(kind)  # type: ignore[arg-type]
        of = get_args(kind)[1]
        found = value if of is Any else {name: table.get(name, of, BAD) for name in value}
        return {name: one for name, one in found.items() if one is not BAD}

    def _named(self, kind: Any, named: Named) -> list[Any]:
        """The tables of this table as values, each with its key as its name, in the file's order."""
        items = []
        for name, value in self.data.items():
            if named.known and name not in named.known:
                near = nearest(name, named.known)
                self.fault(name, f"is not a known {named.what}{near}; known: {', '.join(named.known)}")
            elif named.form and not named.form.fullmatch(name):
                self.fault(name, f"is not a valid name of {named.what}: use letters, digits and `_.+-`")
            elif not isinstance(value, Mapping):
                self.fault(name, f"must be a table, but is {value!r}")
            else:
                items.append(self._inner(name, value).into(kind, name=name))
        return items

    def _variables(self) -> tuple[tuple[str, str], ...]:
        """The variables of the environment in this table, in the file's order."""
        variables = []
        for name, value in self.data.items():
            if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
                self.fault(name, "is not the name of an environment variable")
            elif is_secret_name(name) or (isinstance(value, str) and "://" in value and holds_user(value)):
                self.fault(name, "holds a secret, but all users can read profiles and modulefiles")
            elif isinstance(value, bool) or not isinstance(value, (str, int)):
                self.fault(name, f"must be text or a whole number, but is {value!r}")
            elif control := CONTROL.search(str(value)):
                self.fault(name, f"{NO_CONTROLS}, but contains {control[0]!r}")
            elif name in VARIABLES and not is_no(str(value)):
                self.fault(
                    name,
                    "hides the launcher's variables in containers, so every rank would be rank 0 of 1; leave it out",
                )
            else:
                variables.append((name, str(value)))
        return tuple(variables)

    def done(self, meant: Mapping[str, str] | None = None) -> None:
        """Record a fault for every key that was not read; `meant` are the keys for words that are not misspelt."""
        for key in self.data if self.faults.by_hand else ():
            if key not in self._seen:
                other = (meant or {}).get(key)
                near = f" (did you mean `{other}`?)" if other else nearest(key, self._seen)
                self.fault(key, f"is not a known key{near}")
