"""docs/reference/json.md as a judge: where a JSON object differs from the table under one of its headings."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from parts.paths import REPOSITORY

PAGE = (REPOSITORY / "docs" / "reference" / "json.md").read_text(encoding="utf-8")
ROW = re.compile(r"^\| `([\w-]+)` \| (\w+)(\??) \| (.*) \|$", re.MULTILINE)
TYPES = {"string": str, "number": (int, float), "boolean": bool, "list": list, "object": dict}


def section(title: str) -> str:
    """The text under a heading of the page (`one` or `one, another`), up to the next heading."""
    for heading, text in re.findall(r"^#+ (.+)\n((?:(?!#).*\n)*)", PAGE, re.MULTILINE):
        if title in heading.split(", "):
            return str(text)
    raise AssertionError(f"the page has no heading `{title}`")


def faults(data: dict[str, Any], title: str) -> list[str]:
    """Where this JSON differs from the table under a heading."""
    rows = {name: (kind, null, meaning) for name, kind, null, meaning in ROW.findall(section(title)) if kind in TYPES}
    assert rows, f"there is no table under `{title}`"
    found = [f"`{key}` is not in the table" for key in data if key not in rows]
    for name, (kind, null, meaning) in rows.items():
        if name not in data:
            found += [] if "*(optional)*" in meaning else [f"`{name}` is missing"]
        elif data[name] is None:
            found += [] if null else [f"`{name}` is null"]
        elif not isinstance(data[name], TYPES[kind]) or (kind == "number" and isinstance(data[name], bool)):
            found.append(f"`{name}` is {data[name]!r}, not a {kind}")
    return found


def result_faults(words: Sequence[str], result: dict[str, Any]) -> list[str]:
    """Where the result of the verb in these words differs from its tables."""
    verb = " ".join(words[: 2 if words[0] in ("job", "site", "spack", "stack", "data", "venv", "kernel") else 1])
    if verb == "list":
        return [fault for row in result["environments"] for fault in faults(row, "list")]
    if verb == "show" and "--diff" in words:
        return faults(result, "show by difference")
    if verb == "show":
        beside = {key: value for key, value in result.items() if key in ("state", "marks", "advisories")}
        missing = [] if result["state"] == "unfinished" else faults(beside, "show")
        return missing + faults({key: value for key, value in result.items() if key not in beside}, "Record")
    return faults(result, verb)
