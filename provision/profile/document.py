"""The limits of a parsed file of TOML, whatever it describes: how deep it is, and how large its numbers and texts are.

TOML has no such limits. Without them a file could make any function fail that repeats, prints or divides its values.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from provision.profile.reader import Faults

MOST_TABLES = 16
LARGEST = 10**15
LONGEST = 4096


def refuse_extremes(data: Mapping[str, Any], origin: str) -> None:
    """Refuse a document with a value that no profile and no stack needs.

    Raises:
        ConfigError: tables are too deep in each other, a number is too large or not a number, or a text is too long; the
            error lists each with its key path.
    """
    faults = Faults(origin)
    left: list[tuple[str, object, int]] = [("", data, 0)]
    while left:
        path, value, depth = left.pop()
        if isinstance(value, dict | list):
            if depth == MOST_TABLES:
                faults.add(path, f"has more than {MOST_TABLES} tables or lists in each other")
                continue
            entries = value.items() if isinstance(value, dict) else enumerate(value)
            for key, inner in entries:
                if isinstance(key, str) and len(key) > LONGEST:
                    faults.add(path, f"has a key of {len(key)} characters; at most {LONGEST} are allowed")
                    continue
                at = f"[{key}]" if isinstance(key, int) else f".{key}" if path else key
                left.append((f"{path}{at}", inner, depth + 1))
        elif isinstance(value, int) and abs(value) > LARGEST:
            faults.add(path, f"is a number of {value.bit_length()} bits; at most {LARGEST} is allowed")
        elif isinstance(value, float) and not (math.isfinite(value) and abs(value) <= LARGEST):
            faults.add(path, f"must be a number of at most {LARGEST}, but is {value}")
        elif isinstance(value, str) and len(value) > LONGEST:
            faults.add(path, f"has {len(value)} characters; at most {LONGEST} are allowed")
    faults.check(hint=f"edit `{origin}`")
