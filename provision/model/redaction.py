"""Texts without secrets: what must not be printed is found in the settings of a run, and hidden in every text. Pure.

What is hidden:

- the value of a variable whose name says that it is a secret, and the user and password of every address;
- of the addresses that a person set for pip, uv and proxies also the query, and every part of the path that is not the same
  everywhere (`simple`, `pypi`), because some indexes expect a token there. Host and file name stay readable;
- in the output of programs, the user, password and query of every address.

A secret is found in the forms in which programs print it: quoted for a URL, JSON, Python or bash. A secret that is a short
number or a plain word (`tensorflow`) would make every message unreadable, so it is only hidden inside addresses.
"""

from __future__ import annotations

import binascii
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, quote_plus, unquote_to_bytes

from provision.knowledge.index_settings import PROXIES, is_index_setting
from provision.knowledge.secret_names import is_secret_name

HIDDEN = "***"
# Parts of the path of an index that many sites have.
HARMLESS = frozenset(
    (
        *(
            "simple",
            "+simple",
            "pypi",
            "pypi.org",
            "pypi-proxy",
            "root",
            "index",
            "python",
            "pip",
            "dist",
            "wheels",
            "whl",
        ),
        *(
            "repository",
            "repositories",
            "repo",
            "repos",
            "packages",
            "package",
            "projects",
            "project",
            "groups",
            "group",
        ),
        *("artifactory", "nexus", "api", "v1", "v2", "v3", "v4", "public", "mirror", "mirrors", "web", "cpu"),
    )
)
# In a plain word or a short number nobody recognises a secret, but it stands in many messages.
PLAIN = re.compile(r".{0,5}|[A-Za-z]?[a-z]{0,10}|[A-Z]{0,11}|\d{0,7}", re.DOTALL)
FOLDER = re.compile(r"~?(/[\w.+-]+){2,}/?")

# An address in the output of a program: its user and password, and its query. Neither pattern takes quadratic time.
ADDRESS = re.compile(r"""://(?:[^\s/?#'"<>`]*@)?([^\s?#'"<>`]*)(\?[^\s#'"<>`)]+)?""")
WITH_USER = re.compile(r"""://[^\s/?#'"<>`]*@""")
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
        text = self.hide_known(text)
        if "://" in text:
            text = ADDRESS.sub(_without_query, text)
        if "@" in text:
            text = WITHOUT_SCHEME.sub(f"{HIDDEN}@", text)
        return text

    def hide_in(self, value: Any, *, known: bool = False) -> Any:
        """JSON data with every text hidden (`known`: only these secrets); keys stay."""
        hide = self.hide_known if known else self.hide
        return _map_texts(value, hide)


def _map_texts(value: Any, change: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return change(value)
    if isinstance(value, Mapping):
        return {key: _map_texts(inner, change) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_map_texts(inner, change) for inner in value]
    return value


def _without_query(match: re.Match[str]) -> str:
    user = f"{HIDDEN}@" if WITH_USER.match(match[0]) else ""
    return f"://{user}{match[1]}{f'?{HIDDEN}' if match[2] else ''}"


def find_secrets(environ: Mapping[str, str], texts: Sequence[str] = ()) -> Secrets:
    """The secrets in these variables, and in the texts of configuration files of pip, uv and netrc."""
    home = environ.get("HOME", "").rpartition("/")[2]
    found = _Found(own=frozenset(filter(None, (environ.get("USER"), environ.get("LOGNAME"), home))))
    for name, value in environ.items():
        if is_secret_name(name) and value:
            found.add_secret(value)
            found.add(f"{name}=", [value, f"'{value}'", f'"{value}"'], "")
        if is_index_setting(name):
            for address in _addresses(value, without_scheme=name in PROXIES):
                found.add_address(address)
        elif "://" in value and "@" in value:
            for address in re.findall(r"(?<!\S)\S+://\S+", value):
                found.add_users(address.partition("://")[2])
    for text in texts:
        for address in re.findall(r"""(?<![\w+.-])[\w+.-]+://[^\s"',]+""", text):
            found.add_address(address)
        for address in re.findall(
            r"""^[ \t]*(?:https?-)?proxy\s*[=:]\s*["']?([^\s"']+@[^\s"']+)""", text, re.MULTILINE
        ):
            found.add_address(address)
        for password in re.findall(r"""\bpassword\s+(\S+)""", text):
            found.add_secret(password)
    return found.secrets()


def _addresses(value: str, *, without_scheme: bool) -> list[str]:
    """The addresses in a setting: one, in which anything may stand, or several with white space or commas between them."""
    number = value.count("://")
    if number > 1:
        return [word for word in re.split(r"[\s,]+", value) if "://" in word]
    return [value] if number or (without_scheme and "@" in value) else []


@dataclass(slots=True)
class _Found:
    """What is hidden as a secret, and, after that, as a part of an index's path.

    `own` are the names of the user: they can look like a token (`s1234567`), but stand in half of all paths.
    """

    own: frozenset[str]
    words: dict[str, str] = field(default_factory=dict)
    paths: dict[str, str] = field(default_factory=dict)

    def secrets(self) -> Secrets:
        """What was found, in the order in which it is to be replaced."""
        longest_first = [
            sorted(found.items(), key=lambda pair: (-len(pair[0]), pair[0])) for found in (self.words, self.paths)
        ]
        return Secrets(tuple(longest_first[0] + longest_first[1]))

    def add(self, before: str, texts: Iterable[str], after: str) -> None:
        """Hide each of these texts between `before` and `after`."""
        self.words |= {f"{before}{text}{after}": f"{before}{HIDDEN}{after}" for text in texts}

    def add_address(self, address: str) -> None:
        """Hide what is secret of an address that a person set; its scheme can be missing."""
        scheme, mark, rest = address.partition("://")
        if not mark:
            self.add_users(address)
        elif not scheme.endswith("file"):
            self.add_users(rest)
            # What follows a user or password with a slash in it is not what RFC 3986 takes for the host.
            self.add_path(rest)
            self.add_path(rest.rpartition("@")[2])

    def add_users(self, rest: str) -> None:
        """Hide the user and password of an address without its scheme; each of its @ may be the one that ends them."""
        for match in re.finditer("@", rest):
            both = rest[: match.start()]
            user, _, password = both.partition(":")
            if password:
                self.add_secret(password)
                self.add(":", _forms(password), "@")
                self.add("", _forms(both), "@")
                self.add(
                    "", (binascii.b2a_base64(_bytes(form), newline=False).decode() for form in _plain_forms(both)), ""
                )
            if user and "/" not in user:
                self.add("//", _forms(user), "@")
                self.add("", _forms(user) if self.is_token(user) else (), "")

    def add_path(self, tail: str) -> None:
        """Hide the unusual parts of the path, the query and the fragment of an address; `tail` begins with its host."""
        match = re.fullmatch(r"([^/?#]*)([^?#]*)(\?[^#]*)?(#.*)?", tail, re.DOTALL)
        assert match is not None  # every part is optional
        host, parts = match[1], match[2].rstrip("/").split("/")[1:]
        shown, masked = "", ""
        for part in parts:
            odd = bool(part) and part.lower() not in HARMLESS
            shown, masked = f"{shown}/{part}", f"{masked}/{HIDDEN if odd else part}"
            if odd:
                self.paths |= {f"{host}{form}": f"{host}{masked}" for form in _forms(shown)}
                self.paths |= dict.fromkeys(_forms(part) if self.is_token(part) else (), HIDDEN)
        if shown != masked:  # pip also prints the path without the host; a path of one part can be a folder (`/home`)
            before = "" if len(parts) > 1 else ": "
            self.paths |= {f"{before}{form}": f"{before}{masked}" for form in _forms(shown)}
        for mark, extra in ((text[0], text[1:]) for text in match.groups()[2:] if text):
            if re.match(r"(egg|sha\d+|md5)=", extra):
                continue
            self.paths |= dict.fromkeys((f"{mark}{form}" for form in _forms(extra)), f"{mark}{HIDDEN}")
            for pair in extra.split("&"):
                key, _, word = pair.rpartition("=")
                if is_secret_name(key) and word:
                    self.add_secret(word)
                elif self.is_token(word):
                    self.paths |= dict.fromkeys(_forms(word), HIDDEN)

    def add_secret(self, secret: str) -> None:
        """Hide a password or token: the whole, its lines, and the parts at which a program may cut an address."""
        if FOLDER.fullmatch(secret) and not is_random(secret):
            return  # a file with a key is named, not the key
        for part in {secret, *secret.splitlines(), *re.split(r"[/?#@\s]", secret)}:
            if not PLAIN.fullmatch(part) and part not in self.own:
                self.add("", _forms(part), "")
            elif part:  # pip: `Port could not be cast to integer value as 'PART'`
                for mark in "'\"`":
                    self.add(mark, [part], mark)

    def is_token(self, word: str) -> bool:
        """Whether a part of an address is hidden wherever it stands."""
        return is_random(word) and word not in self.own


def is_random(text: str) -> bool:
    """Whether a word looks like a token: it has a long run of letters with digits between them, or a very long one."""
    return any(
        len(run) >= 20 or (len(run) >= 8 and not run.isalpha() and not run.isdigit())
        for run in re.findall(r"[A-Za-z0-9]+", text)
    )


def _forms(secret: str) -> set[str]:
    """A text as programs print it: quoted for a URL in several ways, for JSON, Python and bash."""
    forms: set[str] = set()
    for text in _plain_forms(secret):
        forms |= {text, *_quoted(text), quote_plus(_bytes(text)), repr(text)[1:-1]}
        forms |= {json.dumps(text)[1:-1], json.dumps(text, ensure_ascii=False)[1:-1]}
        forms |= {text.replace("'", "'\"'\"'"), re.sub(r"([^\w@%+=:,./-])", r"\\\1", text)}
        forms.add(_bytes(text).decode("utf-8", "replace"))
    return {form for form in forms if form.strip()}


def _plain_forms(secret: str) -> set[str]:
    return {secret, unquote_to_bytes(_bytes(secret)).decode("utf-8", "surrogateescape")}


def _quoted(text: str) -> Iterator[str]:
    for safe in ("", "/", "/:", "!$&'()*+,", "!$&'()*+,;=:@/%"):
        form = quote(_bytes(text), safe=safe)
        yield form
        yield re.sub(r"%[0-9A-F]{2}", lambda match: match[0].lower(), form)


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")
