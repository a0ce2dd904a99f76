"""The forms that names and options have in site and stack files."""

from __future__ import annotations

import re

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.+-]*")
MODULE = re.compile(r"[A-Za-z0-9_./+][A-Za-z0-9_./+@=:-]*")
OPTION = re.compile(r"-[^\x00-\x1f]+")
TIME = re.compile(r"(\d+-)?\d+(:\d{2}){0,2}")
# A path on the site's nodes, expanded there: `$NAME` and `${NAME}` and nothing else that a shell would act on.
SHELL_PATH = re.compile(r"(?:[A-Za-z0-9_./@%+:=-]|\$[A-Za-z_][A-Za-z0-9_]*|\$\{[A-Za-z_][A-Za-z0-9_]*\})+")
MEMORY = re.compile(r"[1-9]\d*[MGT]")
