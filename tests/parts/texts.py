"""Changes of a text that fail if the text is not what the test believes."""

from __future__ import annotations


def replace_once(text: str, old: str, new: str) -> str:
    """The text with `old`, which must stand in it exactly once, replaced."""
    assert text.count(old) == 1, f"{old!r} stands {text.count(old)} times in the text"
    return text.replace(old, new)
