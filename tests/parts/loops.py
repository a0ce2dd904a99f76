"""A loop over a table in one test, which names every entry that fails."""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest

Test = Callable[..., None]
LONGEST_ID = 100
"""Characters of an ID that is made of a value; a log may have thousands."""


def for_each(
    names: str | Sequence[str], entries: Iterable[Any], ids: Callable[[Any], object] | Iterable[object] | None = None
) -> Callable[[Test], Test]:
    """Run a test for each entry of a table as one case, which reports all entries that fail, by their IDs.

    It is written like `pytest.mark.parametrize`, which makes a case of each entry: use that if each entry is a behaviour
    of its own, and this if one behaviour holds for all entries. An entry has a folder of its own in `tmp_path`, what it
    sets with `monkeypatch` is undone behind it, and `capsys` has only its output; other fixtures are shared.

    Raises:
        ValueError: the table is empty, so that the test would hold for nothing.
    """
    arguments = [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)
    table = list(entries)
    if not table:
        raise ValueError(f"a loop over {', '.join(arguments)} has no entry")
    rows = [(entry,) if len(arguments) == 1 else tuple(entry) for entry in table]
    titles = [name_row(row) for row in rows] if ids is None else made_ids(ids, rows)

    def decorate(test: Test) -> Test:
        signature = inspect.signature(test)

        @functools.wraps(test)
        def test_each(**fixtures: Any) -> None:
            wrong: dict[str, BaseException] = {}
            skipped: dict[str, BaseException] = {}
            for number, (title, values) in enumerate(zip(titles, rows, strict=True)):
                with pytest.MonkeyPatch.context() as own:
                    try:
                        test(
                            **dict(zip(arguments, values, strict=True)),
                            **{name: own_fixture(name, one, number, own) for name, one in fixtures.items()},
                        )
                    except pytest.skip.Exception as reason:
                        skipped[title] = reason
                    # What `pytest.fail` and `pytest.raises` raise is no Exception.
                    except (Exception, pytest.fail.Exception) as error:
                        wrong[title if title not in wrong else f"{title} ({number})"] = error
            if wrong:
                reasons = [f"{title}: {describe(error)}" for title, error in wrong.items()]
                message = f"{len(wrong)} of {len(table)} entries fail: {', '.join(wrong)}\n" + "\n".join(reasons)
                raise AssertionError(message) from next(iter(wrong.values()))
            if skipped:
                pytest.skip(f"{len(skipped)} of {len(table)} entries: {next(iter(skipped.values()))}")

        kept = [parameter for name, parameter in signature.parameters.items() if name not in arguments]
        test_each.__signature__ = signature.replace(parameters=kept)  # type: ignore[attr-defined]
        return test_each

    return decorate


def name_row(values: tuple[Any, ...]) -> str:
    """The ID of an entry: its value or values, as one short line."""
    texts = [one if isinstance(one, str) and one.strip() else repr(one) for one in values]
    return re.sub(r"\s+", " ", "-".join(texts)).strip()[:LONGEST_ID]


def made_ids(ids: Callable[[Any], object] | Iterable[object], rows: list[tuple[Any, ...]]) -> list[str]:
    """The IDs that a test gives its entries, as many as there are entries; a function gets each value of an entry."""
    if callable(ids):
        return ["-".join(str(ids(value)) for value in row) for row in rows]
    given = [str(one) for one in ids]
    if len(given) != len(rows):
        raise ValueError(f"{len(given)} IDs for {len(rows)} entries")
    return given


def own_fixture(name: str, value: object, number: int, own: pytest.MonkeyPatch) -> object:
    """What an entry gets of a fixture: a folder and a `monkeypatch` of its own, no output of others; else what all share."""
    if name == "monkeypatch":
        return own
    if name == "tmp_path" and isinstance(value, Path):
        folder = value / f"entry-{number}"
        folder.mkdir()
        return folder
    if name in ("capsys", "capfd"):
        value.readouterr()  # type: ignore[attr-defined]
    return value


def describe(error: BaseException) -> str:
    """The first lines of an error, behind the place in the test where it was raised."""
    trace, place = error.__traceback__, ""
    while trace is not None:
        name = Path(trace.tb_frame.f_code.co_filename).name
        if name.startswith("test_"):
            place = f"{name}:{trace.tb_lineno}: "
        trace = trace.tb_next
    lines = str(error).splitlines()[:6]
    return f"{place}{type(error).__name__}: " + "\n    ".join(lines)
