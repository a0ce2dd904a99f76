"""Texts without secrets: they are found in the settings of a run, and hidden in every text. Pure.

Programs do not get the secrets of other services (`child_environ.py`). What remains are the addresses of the package index and
of proxies, which installers print, and what a person types. Host and file name of an address stay readable.
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, unquote_to_bytes

from provision.knowledge.index_settings import PROXIES, is_index_setting
from provision.knowledge.secret_names import has_user, is_secret_name

HIDDEN = "***"
# A short text, a word or a number: nobody recognises a secret in it, but it stands in many messages.
PLAIN = re.compile(r".{0,4}|[A-Za-z]?[a-z]{0,10}|[A-Z]{0,11}|\d{0,7}", re.DOTALL)
# A part of an address that can be a token: letters with digits between them, a very long run, or a character of no usual name.
TOKEN = re.compile(r"(?=[A-Za-z]*\d)(?=\d*[A-Za-z])[A-Za-z0-9]{8}|[A-Za-z0-9]{20}|[^\w.+-]")
# The value of a variable with the name of a secret can be the path of a file with the secret.
FILE = re.compile(r"~?(/[\w.+-]+){2,}/?")

# An address in the output of a program: its user and password, and its query. Neither pattern takes quadratic time.
ADDRESS = re.compile(r"""://([^\s/?#'"<>`]*@)?([^\s?#'"<>`]*)(\?[^\s#'"<>`)]+)?""")
WITHOUT_SCHEME = re.compile(r"""(?<![^\s'"`=(,])[^\s/:@'"`=(,]+:[^\s/@'"`=(,]+@(?=[\w.-]+:\d|\[)""")


@dataclass(frozen=True, slots=True)
class Secrets:
    """What must not be printed, and what is printed instead, in this order."""

    replacements: tuple[tuple[str, str], ...] = ()

    def hide_known(self, text: str) -> str:
        """The text without these secrets."""
        # Looking for each of them with `in` is ten times faster than one regular expression of all.
        for secret, instead in self.replacements:
            if secret in text:
                text = text.replace(secret, instead)
        return text

    def hide(self, text: str) -> str:
        """The output of a program without these secrets, and without users, passwords and queries in addresses."""
        text = ADDRESS.sub(
            lambda found: f"://{HIDDEN + '@' if found[1] else ''}{found[2]}{'?' + HIDDEN if found[3] else ''}",
            self.hide_known(text),
        )
        return WITHOUT_SCHEME.sub(f"{HIDDEN}@", text) if "@" in text else text

    def hide_in(self, value: Any, *, known: bool = False) -> Any:
        """JSON data with every text hidden (`known`: only these secrets); keys stay."""
        if isinstance(value, str):
            return self.hide_known(value) if known else self.hide(value)
        if isinstance(value, Mapping):
            return {key: self.hide_in(inner, known=known) for key, inner in value.items()}
        return [self.hide_in(inner, known=known) for inner in value] if isinstance(value, (list, tuple)) else value


def find_secrets(environ: Mapping[str, str], texts: Sequence[str] = ()) -> Secrets:
    """The secrets in these variables, and in the texts of configuration files of pip, uv and netrc."""
    found: dict[str, str] = {}
    for name, value in environ.items():
        if is_secret_name(name) and not (FILE.fullmatch(value) and not TOKEN.search(value.replace("/", ""))):
            found |= _hidden((value, *value.splitlines()))
        if is_index_setting(name):
            # One address, in which anything may stand, or several.
            for address in re.split(r"[\s,]+(?=\S*://)", value):
                found |= _of_address(address) if "://" in address or name in PROXIES else {}
        elif has_user(value):
            found |= {key: text for user in re.findall(r"://(\S+)@", value) for key, text in _of_user(user).items()}
    for text in texts:
        for address in re.findall(r"""([\w+.-]+://[^\s"',]+|(?<=proxy)\s*[=:]\s*["']?[^\s"']+@[^\s"']+)""", text):
            found |= _of_address(address.lstrip(" \t=:\"'"))
        for login, password in re.findall(r"(?:\blogin\s+(\S+)\s+)?\bpassword\s+(\S+)", text):
            found |= _of_user(f"{login}:{password}")
    # The name of the user can look like a token (`s1234567`), but stands in half of all paths.
    own = {environ.get("USER"), environ.get("LOGNAME"), environ.get("HOME", "").rpartition("/")[2]}
    return Secrets(
        tuple(sorted((pair for pair in found.items() if pair[0] not in own), key=lambda pair: -len(pair[0])))
    )


def _of_address(address: str) -> dict[str, str]:
    """What is secret of an address of an index or a proxy, whose scheme can be missing."""
    scheme, _, rest = address.rpartition("://")
    if scheme.endswith("file"):
        return {}
    user, at, host_and_path = rest.rpartition("@")
    found = _of_user(user) if at else {}
    # A slash in a password ends what programs take for the host, and a path can have an @.
    for part in (part for text in (user, host_and_path) for part in re.split(r"[/?#&]", text)[1:]):
        key, _, word = part.rpartition("=")
        found |= _hidden([word]) if TOKEN.search(word) or is_secret_name(key) else {}
    return found


def _of_user(user: str) -> dict[str, str]:
    """What is secret of the `user:password` of an address. Programs cut and quote a password at its odd characters."""
    name, _, password = user.partition(":")
    header = b64encode(_unquoted(user)).decode()
    words = re.findall(r"[A-Za-z0-9]+", _unquoted(password).decode("ascii", "replace"))
    token = [name] if TOKEN.search(name) else []
    whole = {f"{form}@": f"{HIDDEN}@" for form in _forms(user)}
    return {**whole, **_hidden([password, *words, *token, header] if password else token)}


def _hidden(secrets: Iterable[str]) -> dict[str, str]:
    return {form: HIDDEN for secret in secrets if not PLAIN.fullmatch(secret) for form in _forms(secret)}


def _forms(secret: str) -> set[str]:
    """A text as it was given, and as addresses have it."""
    plain = _unquoted(secret)
    return {secret, plain.decode("utf-8", "surrogateescape"), quote(plain, safe=""), quote(plain)}


def _unquoted(text: str) -> bytes:
    return unquote_to_bytes(text.encode("utf-8", "surrogateescape"))
