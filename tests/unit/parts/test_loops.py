"""A loop over a table in one test: all entries run, and every one that fails is named."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from parts.loops import for_each

NUMBERS = {"one": 1, "two": 2, "three": 3}


def test_every_entry_that_fails_is_named_with_its_reason() -> None:
    @for_each("name", NUMBERS)
    def odd(name: str) -> None:
        assert NUMBERS[name] == 2, f"{name} is not 2"

    with pytest.raises(AssertionError) as failed:
        odd()
    first, *reasons = str(failed.value).splitlines()
    assert first == "2 of 3 entries fail: one, three"
    assert [line for line in reasons if "test_loops.py:" in line and "one is not 2" in line]
    assert [line for line in reasons if "three is not 2" in line]


def test_an_exception_that_does_not_come_fails_its_entry() -> None:
    @for_each(("text", "number"), [("1", 1), ("x", 2)])
    def refused(text: str, number: int) -> None:
        with pytest.raises(ValueError):
            int(text)

    with pytest.raises(AssertionError, match="1 of 2 entries fail: 1-1\n"):
        refused()


def test_a_loop_over_nothing_is_an_error_of_the_test() -> None:
    with pytest.raises(ValueError, match="has no entry"):
        for_each("name", [])


@for_each("number", [1, 2])
def test_each_entry_has_its_own_folder_and_settings(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not list(tmp_path.iterdir()) and "OF_AN_ENTRY" not in os.environ
    (tmp_path / "file").touch()
    monkeypatch.setenv("OF_AN_ENTRY", str(number))


def test_an_entry_that_cannot_run_here_hides_no_failure_of_others() -> None:
    def skips(name: str) -> None:
        if name == "one":
            pytest.skip("there is no one")
        assert name != "three"

    with pytest.raises(AssertionError, match="1 of 3 entries fail: three\n"):
        for_each("name", NUMBERS)(skips)()
    with pytest.raises(pytest.skip.Exception, match="1 of 2 entries: there is no one"):
        for_each("name", ["one", "two"])(skips)()
