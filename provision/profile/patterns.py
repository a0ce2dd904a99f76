"""The valid forms of names and options in profiles and stacks."""

from __future__ import annotations

import re

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.+-]*")
MODULE = re.compile(r"[A-Za-z0-9_./+][A-Za-z0-9_./+@=:-]*")
OPTION = re.compile(r"-[^\x00-\x1f]+")
TIME = re.compile(r"(\d+-)?\d+(:\d{2}){0,2}")
# A path that a shell on the site's nodes expands: it may contain `$NAME` and `${NAME}`, but nothing else special to a shell.
SHELL_PATH = re.compile(r"(?:[A-Za-z0-9_./@%+:=-]|\$[A-Za-z_][A-Za-z0-9_]*|\$\{[A-Za-z_][A-Za-z0-9_]*\})+")
MEMORY = re.compile(r"[1-9]\d*[MGT]")
