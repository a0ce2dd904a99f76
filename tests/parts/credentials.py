"""Settings with credentials in every shape that sites have, the canaries that must be nowhere, and an index that refuses."""

from __future__ import annotations

import base64
import contextlib
import http.server
import json
import os
import socket
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote, unquote

import pytest

from parts.network import serving
from provision.commands.shared.running import report
from provision.errors import CommandError
from provision.machine.programs.failed_program import failed_program
from provision.machine.programs.run import stream
from provision.machine.root.event_file import to_file
from provision.machine.terminal.console import say
from provision.model.event import Event, error_event


@dataclass(frozen=True)
class Shape:
    """A setting with `HOST` in place of the address of a server, and the pieces of its credential."""

    name: str
    value: str
    canaries: tuple[str, ...]

    def environ(self, host: str) -> dict[str, str]:
        """The variables of pip and uv with this setting."""
        value = self.value.replace("HOST", host)
        if "proxy" in self.name:
            return {"https_proxy": value, "HTTPS_PROXY": value, "http_proxy": value, "ALL_PROXY": value}
        # The default index is set too: pip and uv must not ask the public one.
        default = {"PIP_INDEX_URL": f"http://{host}/simple", "UV_DEFAULT_INDEX": f"http://{host}/simple"}
        if "several" in self.name:
            return {**default, "PIP_EXTRA_INDEX_URL": value, "UV_INDEX": value}
        if "named" in self.name:
            return {**default, "UV_INDEX": value}
        return {"PIP_INDEX_URL": value, "UV_DEFAULT_INDEX": value}

    def forms(self) -> set[str]:
        """The canaries as they may be printed."""
        forms = set()
        for canary in self.canaries:
            forms |= {canary, unquote(canary), quote(canary), quote(canary, safe=""), json.dumps(canary)[1:-1]}
            forms |= {repr(canary)[1:-1], *(line for line in canary.splitlines() if len(line) > 3)}
        return forms


SHAPES = (
    Shape("user and password", "http://gul:Kanarie7fugl@HOST/simple", ("Kanarie7fugl",)),
    Shape("short password", "http://gul:k7@HOST/simple", ("k7@", ":k7")),
    Shape("a word as password", "http://gul:kanarie@HOST/simple", ("kanarie",)),
    Shape("user only", "http://Kanarie7fugl@HOST/simple", ("Kanarie7fugl",)),
    Shape("user and empty password", "http://Kanarie7fugl:@HOST/simple", ("Kanarie7fugl",)),
    Shape("password without user", "http://:Kanarie7fugl@HOST/simple", ("Kanarie7fugl",)),
    Shape("token in the path", "http://HOST/Kanarie7fugl/simple", ("Kanarie7fugl",)),
    Shape("token deep in the path", "http://HOST/api/v4/Kanarie7fugl/pypi/simple/", ("Kanarie7fugl",)),
    Shape("token with odd characters in the path", "http://HOST/Kana%2Frie7~fugl@x/simple", ("Kana%2Frie7", "7~fugl")),
    Shape("token in the query", "http://HOST/simple?token=Kanarie7fugl", ("Kanarie7fugl",)),
    Shape("token in the fragment", "http://HOST/simple#Kanarie7fugl", ("Kanarie7fugl",)),
    Shape("slash in the password", "http://gul:Kana7/rie7fugl@HOST/simple", ("Kana7", "rie7fugl")),
    Shape("escaped slash in the password", "http://gul:Kana7%2Frie7fugl@HOST/simple", ("Kana7", "rie7fugl")),
    Shape("at in the password", "http://gul:Kana7@rie7fugl@HOST/simple", ("Kana7", "rie7fugl")),
    Shape("colon in the password", "http://gul:Kana7:rie7fugl@HOST/simple", ("Kana7", "rie7fugl")),
    Shape("hash in the password", "http://gul:Kana7#rie7fugl@HOST/simple", ("Kana7", "rie7fugl")),
    Shape("question mark in the password", "http://gul:Kana7?rie7fugl@HOST/simple", ("Kana7", "rie7fugl")),
    Shape("percent in the password", "http://gul:Kana7%rie7fugl@HOST/simple", ("Kana7", "rie7fugl")),
    Shape("quotes in the password", "http://gul:Kana7'\"`rie7fugl@HOST/simple", ("Kana7", "rie7fugl")),
    Shape("space in the password", "http://gul:Kana7 rie7fugl@HOST/simple", ("Kana7", "rie7fugl")),
    Shape("line break in the password", "http://gul:Kana7\nrie7fugl@HOST/simple", ("Kana7", "rie7fugl")),
    Shape("letters beyond ASCII", "http://gul:Kånarie7fugl@HOST/simple", ("Kånarie7fugl", "narie7fugl")),
    Shape("bytes that are not UTF-8", "http://gul:Kana\udce5rie7fugl@HOST/simple", ("rie7fugl",)),
    Shape("backslash and dollar", "http://gul:Kana7\\$rie7fugl@HOST/simple", ("Kana7", "rie7fugl")),
    Shape(
        "several indexes", "http://gul:Kanarie7fugl@HOST/simple http://HOST/Kanari8fugl/simple", ("Kanarie7", "Kanari8")
    ),
    Shape("a named index", "mine=http://HOST/Kanarie7fugl/simple", ("Kanarie7fugl",)),
    Shape("proxy", "http://gul:Kanarie7fugl@HOST", ("Kanarie7fugl",)),
    Shape("proxy without scheme", "gul:Kanarie7fugl@HOST", ("Kanarie7fugl",)),
    Shape("proxy without scheme, short password", "gul:k7@HOST", (":k7", "k7@")),
    Shape("proxy with a slash in the password", "http://gul:Kana7/rie7fugl@HOST", ("Kana7", "rie7fugl")),
    Shape("proxy without scheme, with a hash", "gul:Kana7#rie7fugl@HOST", ("Kana7", "rie7fugl")),
    Shape("proxy without scheme, with a space", "gul:Kana7 rie7fugl@HOST", ("Kana7", "rie7fugl")),
    Shape("proxy without scheme, with an at", "gul:Kana7@rie7fugl@HOST", ("Kana7", "rie7fugl")),
    Shape("proxy with letters beyond ASCII", "gul:Kånarie7fugl@HOST", ("narie7fugl",)),
)


def leaks(text: str, shape: Shape) -> list[str]:
    """The canaries that are in a text."""
    return sorted(form for form in shape.forms() if form in text)


def files_with(folder: Path, shape: Shape) -> list[str]:
    """The files below a folder that contain a canary."""
    files = [path for path in folder.rglob("*") if path.is_file() and not path.is_symlink()]
    return [str(path) for path in files if leaks(path.read_bytes().decode("utf-8", "surrogateescape"), shape)]


class Refusing(http.server.BaseHTTPRequestHandler):
    """Answers every request with this status; 403 repeats what it got, as a hostile index does."""

    code: int

    def do_GET(self) -> None:
        """Refuse."""
        reason = None
        if self.code == 403:
            header = self.headers.get("Authorization") or self.headers.get("Proxy-Authorization") or ""
            plain = base64.b64decode(header.partition(" ")[2]).decode("latin-1")
            reason = " ".join(f"echo {self.path} {header} {plain}".split())
        self.send_response(self.code, reason)
        if self.code == 401:
            self.send_header("WWW-Authenticate", "Basic realm=x")
        self.send_header("Content-Length", "0")
        self.end_headers()

    do_CONNECT = do_HEAD = do_GET  # noqa: N815


@contextlib.contextmanager
def refusing_index() -> Iterator[Mapping[int, str]]:
    """The addresses (`host:port`) of servers on this machine, by their answer: 401, 403, 404, 500; 0: nothing listens there."""
    with contextlib.ExitStack() as servers:
        closed = servers.enter_context(socket.socket())
        closed.bind(("127.0.0.1", 0))
        ports = {0: closed.getsockname()[1]}
        for code in (401, 403, 404, 500):
            ports[code] = servers.enter_context(serving(type("Refuses", (Refusing,), {"code": code})))
        yield {code: f"127.0.0.1:{port}" for code, port in ports.items()}


def pip_argv(folder: Path) -> tuple[str, ...]:
    """A command of pip that asks the index."""
    pip = (
        sys.executable,
        "-m",
        "pip",
        "download",
        "-vv",
        "--no-input",
        "--no-deps",
        "--require-hashes",
        "--no-cache-dir",
    )
    return (*pip, "--retries", "1", "-d", f"{folder}/x", "-r", _requirements(folder))


def uv_argv(folder: Path) -> tuple[str, ...]:
    """A command of uv that asks the index."""
    uv = str(Path(sys.executable).with_name("uv"))
    return (
        uv,
        "pip",
        "install",
        "-vv",
        "--target",
        f"{folder}/x",
        "--no-deps",
        "--require-hashes",
        "-r",
        _requirements(folder),
    )


def _requirements(folder: Path) -> str:
    path = folder / "six.txt"
    path.write_text(f"six==1.0 --hash=sha256:{'0' * 64}\n")
    return str(path)


def try_everywhere(
    argv: tuple[str, ...], shape: Shape, host: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> str:
    """Run a program that fails with this setting; all that was printed or written, in one text."""
    environ = {"PATH": os.environ["PATH"], "HOME": str(folder), "UV_NO_CACHE": "1", "UV_HTTP_RETRIES": "0"}
    environ |= shape.environ(host)
    shown: list[str] = []
    log, events = folder / "install.log", folder / "x.events.jsonl"
    with pytest.MonkeyPatch.context() as patch:
        for name, value in shape.environ(host).items():
            patch.setenv(name, value)
        result = stream(argv, environ=environ, log=log, on_line=shown.append, needs="index")
        assert result.code != 0
        error: CommandError = failed_program("step `install` failed", result.tail, hint="read it", log=str(log))
        with to_file(events) as listen:
            for line in shown:
                listen(Event(kind="progress", step="install", text=line))
            listen(error_event(error))
            listen(
                error_event(CommandError(f"`{shape.environ(host)}` failed", evidence=[*shape.environ(host).values()]))
            )
        report(("build",), error, as_json=False)
        report(("build",), error, as_json=True)
        say(f"{list(environ.items())} {environ}")
    out, err = capsys.readouterr()
    assert not files_with(folder, shape)
    return "\n".join((*result.tail, *shown, out, err, log.read_text(), events.read_text()))
