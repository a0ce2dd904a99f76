"""How a secret is recognised from outside: by the name of its variable, or as a part of an address."""

from __future__ import annotations

import re

# `TOKENIZERS_PARALLELISM` of Hugging Face is not a token.
SECRET_NAME = re.compile(
    r"TOKEN(?!IZ)|SECRET|PASSW|PASSPHRASE|CREDENTIAL|JWT|API_?KEY|ACCESS_?KEY|_KEYS?$|_PAT$|_PASS$|_PWD$|^SSHPASS$"
    r"|CONNECTION_STRING",
    re.IGNORECASE,
)
ADDRESS_WITH_USER = re.compile(r"://[^\s/?#]*@")


def is_secret_name(name: str) -> bool:
    """Whether the name of a variable says that its value is a secret."""
    return SECRET_NAME.search(name) is not None


def has_user(text: str) -> bool:
    """Whether a text has an address with a user, who may have a password."""
    return "@" in text and ADDRESS_WITH_USER.search(text) is not None


def holds_user(address: str) -> bool:
    """Whether an address has a user, who may have a password; a file that others can read must not have it."""
    return "@" in address.rpartition("://")[2]
