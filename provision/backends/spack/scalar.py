"""One text in a file of YAML, quoted if it must be."""

from __future__ import annotations

import json
import re

# What YAML reads as itself between other words, without quotes.
PLAIN = re.compile(r"[A-Za-z0-9/_.][A-Za-z0-9/_.+@~-]*")
# What YAML would read as something that is not a text.
NOT_TEXT = re.compile(r"(true|false|yes|no|on|off|null|[0-9._+-]+(e[0-9]+)?|0x[0-9a-f]+|0o[0-7]+)", re.IGNORECASE)


def scalar(text: str) -> str:
    """A text as YAML reads it back; it is quoted if that is needed, as for a spec that ends in a colon."""
    if PLAIN.fullmatch(text) and not NOT_TEXT.fullmatch(text):
        return text
    return json.dumps(text, ensure_ascii=True)
