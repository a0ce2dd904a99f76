"""Hostile values for the property tests: texts, values of any type, and documents with some of them in a place."""

from __future__ import annotations

import contextlib
import copy
import datetime
import json
import os
import re
from collections.abc import Iterator
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from provision.errors import ErrorKind, ProvisionError

# `make fuzz` raises it: how many times as many examples, and then other ones at each run.
FACTOR = int(os.environ.get("FUZZ", "1"))
KINDS = set(ErrorKind.__args__)  # type: ignore[attr-defined]

SHORT_TEXTS = (
    *("", " ", "?", "-", "--", "-x", "=", ".", "..", "/", "//", "~", "~nosuchuser/x", "*", "[", "(", "%", "%s %(x)d"),
    *("{}", "{0.__class__}", "{{ 7*7 }}", "{% raw %}", "\\", '"', "'", "\"'\\", "`", "$", "#", "|", ";", "&", "<&>"),
    *("$HOME", "${HOME}", "${PROVISION_ROOT}", "${NO_SUCH_VARIABLE}", "${", "$(: >canary)", "`: >canary`"),
    *("'; : >canary; '", '"; : >canary; "', "x\n: >canary\n", "x\r\ny", "\t", "\0", "\x1b[31m", "\x7f", "\x85"),
    *(
        "\u2028",
        "\u202e",
        "\ufeff",
        "\ud800",
        "\udcff",
        "é",
        "e\u0301",
        "😀",
        "²",
        "٣",
        "½",
        "a/b",
        "../../x",
        "a b",
        "x:y",
    ),
    *("0", "-1", "00", "1e999", "nan", "inf", "1.5", "1" * 30, "true", "None", "3.11", "sites", "local", "native"),
    *("[exit 3]", "]] os.exit(3) --", "#SBATCH --wrap=x", "<script>", "&amp;", "]]>", "a\\\nb"),
)
LONG_TEXTS = ("a" * 300, "a" * 5000, "../" * 2000, "9" * 5000, " " * 3000, "é" * 300, "a/" * 400, "\\" * 3001)

texts = st.one_of(
    st.sampled_from(SHORT_TEXTS),
    st.sampled_from(LONG_TEXTS),
    st.text(st.characters(exclude_categories=()), max_size=40),
    st.lists(st.sampled_from(SHORT_TEXTS), min_size=2, max_size=4).map("".join),
)


def as_word(text: str) -> str:
    """The text as a word of a command line, or the value of a variable: without NUL, and any other byte is possible."""
    return os.fsdecode(text.replace("\0", "").encode("utf-8", "surrogatepass"))


words = texts.map(as_word)
numbers = st.one_of(
    st.sampled_from((0, 1, -1, 2**31, 2**63 - 1, -(2**63), 10**400, float("nan"), float("inf"), -0.0, 1e308)),
    st.integers(),
    st.floats(),
)
scalars = st.one_of(
    texts,
    numbers,
    st.booleans(),
    st.sampled_from(
        (datetime.datetime(2026, 1, 1, tzinfo=datetime.timezone.utc), datetime.date(1, 1, 1), datetime.time(0, 0))
    ),
)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)
# What a file of JSON can hold.
json_values = st.recursive(
    st.none() | st.booleans() | numbers | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)


def fuzzed(examples: int) -> settings:
    """The settings of a property test: this many examples, the same at each run; `make fuzz` has more, and new ones."""
    return settings(
        max_examples=examples * FACTOR,
        derandomize=FACTOR == 1,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        print_blob=True,
    )


def places(document: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The path of every value in a document of tables and lists, tables included."""
    entries = document.items() if isinstance(document, dict) else enumerate(document)
    for key, value in entries:
        yield (*path, key)
        if isinstance(value, dict | list):
            yield from places(value, (*path, key))


@st.composite
def damaged(draw: st.DrawFn, originals: tuple[Any, ...], foreign: st.SearchStrategy[Any] = values) -> Any:
    """A copy of one of these documents in which some values are replaced, removed, doubled, renamed or added."""
    document = copy.deepcopy(draw(st.sampled_from(originals)))
    for _ in range(draw(st.integers(1, 3))):
        every = list(places(document))
        if not every:
            break
        path = draw(st.sampled_from(every))
        table = document
        for key in path[:-1]:
            table = table[key]
        match draw(st.sampled_from(("replace", "replace", "replace", "remove", "rename", "add", "move", "wrap"))):
            case "replace":
                table[path[-1]] = draw(foreign)
            case "remove":
                del table[path[-1]]
            case "rename" if isinstance(table, dict):
                table[draw(texts)] = table.pop(path[-1])
            case "add" if isinstance(table, dict):
                table[draw(texts)] = draw(foreign)
            case "add" | "rename":
                table.append(draw(foreign))
            case "move":
                other = document
                for key in draw(st.sampled_from(every)):
                    if isinstance(other, dict | list):
                        try:
                            other = other[key]
                        except (KeyError, IndexError, TypeError):
                            break
                table[path[-1]] = copy.deepcopy(other)
            case "wrap":
                table[path[-1]] = [table[path[-1]]]
    return document


@st.composite
def garbled(draw: st.DrawFn, originals: tuple[str, ...], foreign: st.SearchStrategy[str] = texts) -> str:
    """A copy of one of these texts in which some words or lines are replaced, removed or doubled, or other text is in between."""
    text = draw(st.sampled_from(originals))
    for _ in range(draw(st.integers(1, 3))):
        start = draw(st.integers(0, len(text)))
        match draw(st.sampled_from(("insert", "cut", "double", "word", "word", "line"))):
            case "insert":
                text = text[:start] + draw(foreign) + text[start:]
            case "cut":
                text = text[:start] + text[start + draw(st.integers(1, 40)) :]
            case "double":
                text = text[:start] + 3 * text[start : start + draw(st.integers(1, 40))] + text[start:]
            case "word":
                word = re.compile(r"[\w.-]+").search(text, start)
                text = text[: word.start()] + draw(foreign) + text[word.end() :] if word else text + draw(foreign)
            case "line":
                end = text.find("\n", start)
                text = text[:start] + draw(foreign) + (text[end:] if end >= 0 else "")
    return text


@contextlib.contextmanager
def refused(*others: type[Exception]) -> Iterator[None]:
    """What runs within may succeed, or raise an error for people, whose every form can be printed; nothing else."""
    try:
        yield
    except ProvisionError as error:
        check_error(error)
    except others:
        pass


def check_error(error: ProvisionError) -> None:
    """An error has a known kind and can be printed in both forms."""
    assert error.kind in KINDS - {"bug"}
    strict_json(json.dumps(error.to_dict()))
    assert error.to_lines()[0].startswith("error: ")


def strict_json(text: str) -> Any:
    """The value in a text of JSON, without the words that only Python accepts."""

    def no_number(word: str) -> None:
        raise AssertionError(f"{word} is not JSON")

    return json.loads(text, parse_constant=no_number)
