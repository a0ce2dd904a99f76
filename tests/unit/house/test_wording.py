"""Small words of messages."""

from __future__ import annotations

import pytest

from provision.wording import about, count, duration


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 s"),
        (8.4, "8 s"),
        (59.4, "59 s"),
        (59.6, "1 min"),
        (110, "1 min 50 s"),
        (120, "2 min"),
        (599, "9 min 59 s"),
        (700, "12 min"),
        (3599, "1 h"),
        (7500, "2 h 5 min"),
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
