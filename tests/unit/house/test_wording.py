"""Small words of messages."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from golden_files import FOLDER, read_parts
from provision.wording import about, count, duration, nearest_name


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        *((0, "0 s"), (8.4, "8 s"), (59.4, "59 s"), (59.6, "1 min"), (110, "1 min 50 s"), (120, "2 min")),
        *((599, "9 min 59 s"), (700, "12 min"), (3599, "1 h"), (7500, "2 h 5 min")),
    ],
)
def test_a_duration_is_read_at_a_glance(seconds: float, text: str) -> None:
    assert duration(seconds) == text


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.2, "about 5 s"), (43, "about 45 s"), (108, "about 1 min 50 s"), (161, "about 2 min 40 s")]
)
def test_an_estimate_is_rounded(seconds: float, text: str) -> None:
    assert about(seconds) == text


def test_a_count_has_the_plural_of_its_noun() -> None:
    assert (count(1, "step"), count(2, "step"), count(0, "step")) == ("1 step", "2 steps", "0 steps")
    assert count(3, "patch", "patches") == "3 patches"


STACKS = (
    *("tensorflow-2.2.3", "tensorflow-2.15.1", "tensorflow-2.15.1-gpu", "tensorflow-2.20.0", "tensorflow-2.21.0"),
    *("tensorflow-2.21.0-gpu", "tensorflow-2.21.0-mirrored-gpu", "tensorflow-1.15.5", "other"),
)


@pytest.mark.parametrize(
    ("word", "meant"),
    [
        ("tensorflow", "tensorflow-2.21.0"),
        ("tensorflow-2", "tensorflow-2.21.0"),
        ("tensorflow-2.22", "tensorflow-2.21.0"),
        ("tensorflow-2.22.0-gpu", "tensorflow-2.21.0-gpu"),
        ("tensorflow-2.15", "tensorflow-2.15.1"),
        ("tensorflow-2.14.0", "tensorflow-2.15.1"),
        ("tensorflow-2.3", "tensorflow-2.2.3"),
        ("tensorflow-2.151", "tensorflow-2.15.1"),
        ("tensorflow-1.14", "tensorflow-1.15.5"),
        ("tensorfow-2.21.0", "tensorflow-2.21.0"),
        ("tensorflow-2.21.0-mirored-gpu", "tensorflow-2.21.0-mirrored-gpu"),
        ("othre", "other"),
        ("tensorflow-3.0-gpu", "tensorflow-2.21.0-gpu"),
        ("numpy-1.26", None),
    ],
)
def test_the_nearest_name_of_a_release_has_the_nearest_version(word: str, meant: str | None) -> None:
    """Versions are compared as numbers, part by part."""
    assert nearest_name(word, STACKS) == meant
    assert nearest_name("tensorflow", ("tensorflow-9", "tensorflow-10")) == "tensorflow-10"
    assert nearest_name("a-1.2", ("a-1", "a-3.1")) == "a-1"
    assert nearest_name("instal", ("install", "publish")) == "install"


def test_every_part_of_the_words_is_of_a_test_that_exists() -> None:
    tests = {path.stem: path.read_text(encoding="utf-8") for path in Path(__file__).parents[1].rglob("test_*.py")}
    for path in (FOLDER / "words").glob("*.txt"):
        names = [re.split(r": |\[| #", name)[:2] for name in read_parts(path)]
        assert [name for file, name in names if f"def {name}(" not in tests.get(file, "")] == [], path
