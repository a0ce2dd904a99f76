"""No credential leaves the tool: real messages of pip and uv with settings of every shape, in every place where text leaves."""

from __future__ import annotations

import base64
import json
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import get_args

import pytest

from golden_files import Words
from parts.cli import call
from parts.credentials import SHAPES, Shape, files_with, leaks, pip_argv, refusing_index, try_everywhere, uv_argv
from provision.machine.programs.run import capture, stream
from provision.machine.programs.secrets_here import secrets_here
from provision.model.child_environ import Needs
from provision.model.redaction import find_secrets

Captured = pytest.CaptureFixture[str]
every_shape = pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.name)
# What pip and uv print of these, and of an index that repeats what it got (403); tests/real tries all.
CASES = (
    *((pip_argv, name, 403) for name in ("user and password", "token in the path")),
    (pip_argv, "slash in the password", 0),
    *((uv_argv, name, 403) for name in ("user and password", "token in the path", "token in the query")),
    *((uv_argv, name, 0) for name in ("slash in the password", "hash in the password", "proxy without scheme")),
)


@pytest.fixture(scope="module")
def hosts() -> Iterator[Mapping[int, str]]:
    """Servers that refuse."""
    with refusing_index() as addresses:
        yield addresses


@pytest.mark.parametrize(("argv_in", "name", "code"), CASES)
def test_no_message_of_pip_or_uv_leaks(
    argv_in: Callable[[Path], tuple[str, ...]],
    name: str,
    code: int,
    hosts: Mapping[int, str],
    tmp_path: Path,
    capsys: Captured,
) -> None:
    shape = next(shape for shape in SHAPES if shape.name == name)
    text = try_everywhere(argv_in(tmp_path), shape, hosts[code], tmp_path, capsys)
    assert leaks(text, shape) == [], text
    assert base64.b64encode(b"gul:Kanarie7fugl").decode() not in text
    if argv_in is pip_argv:
        assert "Looking in indexes: http" in text
        assert hosts[code].split(":")[0] in text
        assert ("echo /" in text) is (code == 403)


def test_a_program_gets_only_the_secrets_that_it_needs(tmp_path: Path) -> None:
    environ = {**os.environ, "HF_TOKEN": "a", "UV_INDEX_X_PASSWORD": "b", "LM_LICENSE_FILE": "1@c"}
    log, gets = tmp_path / "x.log", {"nothing": "--1@c", "index": "-b1@c", "everything": "ab1@c"}
    echo = ("bash", "-c", "echo ${HF_TOKEN--}${UV_INDEX_X_PASSWORD--}$LM_LICENSE_FILE >&2")
    assert capture(echo, environ).stderr.strip() == stream(echo, environ=environ, log=log).tail[0] == gets["nothing"]
    for needs in get_args(Needs):
        assert capture(echo, environ, needs=needs).stderr.strip() == gets[needs]
        assert stream(echo, environ=environ, log=log, needs=needs).tail == (gets[needs],)


@every_shape
def test_a_variable_printed_in_any_quotes_is_hidden(shape: Shape) -> None:
    environ = shape.environ("index.example.org:8443")
    hide = find_secrets(environ).hide
    for name, value in environ.items():
        for text in (
            value,
            repr(value),
            json.dumps(value),
            f"{name}={value}",
            f"export {name}='{value}'",
            f"({value}), ok",
        ):
            assert leaks(hide(text), shape) == []
        assert "ok" in hide(f"({value}), ok")


def test_the_host_and_the_file_stay_readable() -> None:
    environ = {"PIP_INDEX_URL": "https://gul:Kanarie7fugl@index.example.org/t0k3nT0k3n/simple"}
    hide = find_secrets(environ).hide
    line = "Downloading https://index.example.org/t0k3nT0k3n/files/six-1.0.tar.gz (3 bytes)"
    assert hide(line) == "Downloading https://index.example.org/***/files/six-1.0.tar.gz (3 bytes)"
    assert hide("Looking in indexes: https://gul:****@index.example.org/t0k3nT0k3n/simple") == (
        "Looking in indexes: https://***@index.example.org/***/simple"
    )
    for harmless in (
        "https://pypi.org/simple",
        "https://a.org/artifactory/api/pypi/root/simple/",
        "six==1.0 from x.whl",
    ):
        assert find_secrets({"PIP_INDEX_URL": harmless}).hide(harmless) == harmless
    for untouched in (
        "https://github.com/@scope/x",
        "git@github.com:a/b",
        "a@b.org",
        "12:30:01 x",
        "FI_PROVIDER=cxi:1@2",
    ):
        assert hide(untouched) == untouched


def test_addresses_of_others_lose_user_and_query() -> None:
    hide = find_secrets({}).hide
    assert hide("https://u:pw@a.org/x.whl?sig=abc&e=1#sha256=ab") == "https://***@a.org/x.whl?***#sha256=ab"
    assert hide("redirected to 'https://s3.org/k?X-Amz-Signature=1f'; (http://h/?q)") == (
        "redirected to 'https://s3.org/k?***'; (http://h/?***)"
    )
    assert hide("proxy = gul:pw@proxy.org:3128") == "proxy = ***@proxy.org:3128"


def test_a_word_as_password_does_not_destroy_messages() -> None:
    hide = find_secrets({"https_proxy": "http://a:tensorflow@h:1", "MY_PASSWORD": "a"}).hide
    assert hide("a build of tensorflow 2.15.1 needs 1 h") == "a build of tensorflow 2.15.1 needs 1 h"
    assert hide("http://a:tensorflow@h:1 a:tensorflow@h") == "http://***@h:1 ***@h"


def test_the_value_of_a_variable_named_like_a_secret_is_hidden() -> None:
    for name, shown in (("HF_TOKEN", "x *** y"), ("TOKENIZERS_PARALLELISM", "x Kanarie7fugl y")):
        assert find_secrets({name: "Kanarie7fugl"}).hide("x Kanarie7fugl y") == shown
    assert find_secrets({"HF_TOKEN": "/home/gul/.ssh/id"}).hide("/home/gul/.ssh/id") == "/home/gul/.ssh/id"


def test_the_files_of_pip_uv_and_netrc_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    (tmp_path / ".config/pip").mkdir(parents=True)
    (tmp_path / ".config/uv").mkdir()
    (tmp_path / ".config/pip/pip.conf").write_text(
        "[global]\nindex-url = https://h.org/pipT0k3n9/simple\nproxy = gul:pipPassw0rd@proxy.org:1\n"
    )
    (tmp_path / ".config/uv/uv.toml").write_text('[[index]]\nurl = "https://h.org/uvT0k3n99/simple"\n')
    (tmp_path / ".netrc").write_text("machine h.org\n  login gul\n  password netrcPassw0rd\n")
    header = base64.b64encode(b"gul:netrcPassw0rd").decode()
    text = secrets_here().hide(f"/pipT0k3n9/ uvT0k3n99 pipPassw0rd netrcPassw0rd {header}")
    assert text == "/***/ *** *** *** ***"


def test_a_fifo_as_a_configuration_file_does_not_hang(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    os.mkfifo(tmp_path / ".netrc")
    assert secrets_here().hide("x") == "x"


def test_a_secret_of_a_module_that_is_loaded_is_hidden(tmp_path: Path) -> None:
    log, environ = tmp_path / "x.log", {"PATH": os.environ["PATH"], "https_proxy": "gul:Kanarie7fugl@h:1"}
    script = ("bash", "-c", "echo using $https_proxy; echo $https_proxy >&2")
    assert stream(script, environ=environ, log=log, needs="index").tail == ("using ***@h:1", "***@h:1")
    assert log.read_text().endswith("using ***@h:1\n***@h:1\n# exit status 0 after 0 s\n")
    done = capture(script, environ, needs="index")
    assert done.stderr == "***@h:1\n"
    assert done.stdout == "using gul:Kanarie7fugl@h:1\n"  # it is data, for example an environment


def test_a_secret_in_a_command_is_hidden_in_the_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("X_TOKEN", "Kanarie7fugl")
    stream(("true", "--with", "Kanarie7fugl"), environ={}, log=tmp_path / "x.log")
    assert (tmp_path / "x.log").read_text() == "$ true --with ***\n# exit status 0 after 0 s\n"


def test_an_explained_log_shows_no_secret(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured) -> None:
    monkeypatch.setenv("PIP_INDEX_URL", "https://h.org/Kanarie7fugl/simple")
    (tmp_path / "log").write_text(f"ERROR: {'x' * 285} https://h.org/Kanarie7fugl/simple https://u:pw@h.org/?a=b\n")
    # The log has nothing but the line of a program, which is quoted.
    assert call("explain", str(tmp_path / "log")) == 1
    assert call("explain", str(tmp_path / "log"), "--json") == 1
    out, err = capsys.readouterr()
    # The line is cut to 300 letters, in the middle of the token.
    assert "Kana" not in out + err
    assert "pw" not in out + err


def test_site_new_suggests_and_takes_no_password(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PROVISION_CONFIG", str(tmp_path))
    for number, proxy in enumerate(("http://gul:k7@h:1", "gul:Kanarie7fugl@h:1", "gul:k7@h:1")):
        monkeypatch.setenv("https_proxy", proxy)
        assert call("site", "new", f"ours{number}", "--json") == 0
        text = (tmp_path / "sites" / f"ours{number}.toml").read_text() + "".join(capsys.readouterr())
        assert "gul:" not in text
        assert "k7" not in text
        monkeypatch.delenv("https_proxy")
        for words in ((), ("--json",)):
            assert call("site", "new", f"theirs{number}", "--set", f"network.proxy={proxy}", *words) == 2
            assert not (tmp_path / "sites" / f"theirs{number}.toml").exists()
            text = "".join(capsys.readouterr())
            assert "k7" not in text
            assert "Kanarie7fugl" not in text


def test_a_bug_report_shows_no_secret(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured) -> None:
    from provision.commands.shared.running import _bug

    monkeypatch.setenv("X_TOKEN", "Kanarie7fugl")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    _bug(("build",), ValueError("Kanarie7fugl and https://u:pw@h/"), True)
    written = "".join(path.read_text() for path in tmp_path.iterdir())
    text = written + "".join(capsys.readouterr())
    assert "ValueError" in written
    assert "Kanarie7fugl" not in text
    assert "pw@" not in text


@pytest.mark.parametrize("unit", ["a", "://", "x:=x:", "http://a/b ", "a@", "http://a@b?c ", "'a:b@"])
def test_hiding_takes_time_in_proportion_to_the_text(unit: str) -> None:
    hide = find_secrets({"PIP_INDEX_URL": "https://gul:Kanarie7fugl@h/t0k3nT0k3n/simple"}).hide

    def seconds(length: int) -> float:
        text, began = unit * (length // len(unit)), time.process_time()
        hide(text)
        return time.process_time() - began

    seconds(1 << 12)
    assert seconds(1 << 21) < 40 * max(seconds(1 << 18), 0.01)  # quadratic: 64 times eight times


def test_a_secret_at_the_place_where_a_long_line_is_split_is_hidden(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("X_TOKEN", "Kanarie7fugl")
    program = "import os; print(' '.join([os.environ['X_TOKEN']] * 300_000))"
    stream(
        (sys.executable, "-c", program), environ={"X_TOKEN": "Kanarie7fugl"}, log=tmp_path / "x.log", needs="everything"
    )
    words = (tmp_path / "x.log").read_text().split("\n", 1)[1].partition("\n# exit status")[0].split()
    assert set(words) == {"***"}
    assert len(words) == 300_000


def test_a_script_with_a_secret_in_it_is_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: Captured, words: Words
) -> None:
    monkeypatch.setenv("WANDB_API_KEY", "Kanarie7fugl")
    command = ("job", "single", "--site", "alcf-theta", "--arch", "knl", "--account", "me", "--runtime", "modules")
    assert call(*command) == 0
    assert call(*command, "--arguments", "lr Kanarie8fugl") == 0
    capsys.readouterr()
    for more in ((), ("--json",)):
        assert call(*command, *more, "--arguments", "key Kanarie7fugl") == 2
        out, err = capsys.readouterr()
        if not more:
            words("job", err)
        assert "key ***" in out + err
        assert "Kanarie7fugl" not in out + err


VERBS = (
    ("doctor", "--site", "local"),
    ("plan", "--site", "local"),
    ("plan", "--site", "alcf-polaris", "--account", "me", "--profile"),
    ("job", "build", "--site", "alcf-theta", "--arch", "knl", "--account", "me", "--profile"),
    ("job", "horovod", "--site", "alcf-theta", "--arch", "knl", "--account", "me", "--runtime", "modules"),
    ("job", "image", "--site", "nyu-torch", "--arch", "h200", "--account", "me"),
    ("list",),
    ("show", "nosuch"),
    ("site", "new", "mine"),
    ("site", "show", "alcf-theta"),
    ("stack", "list"),
    ("biuld",),
    ("plan", "--site", "Kanarie7fugl"),
)


@pytest.mark.parametrize("words", VERBS, ids=" ".join)
def test_no_verb_prints_or_writes_a_secret(
    words: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PROVISION_CONFIG", str(tmp_path / "config"))
    for shape in SHAPES:
        for name, value in shape.environ("index.example.org:8443").items():
            monkeypatch.setenv(name, f"{os.environ.get(name, '')} {value}".strip() if "INDEX" in name else value)
    monkeypatch.setenv("HF_TOKEN", "Kanarie7fugl")
    monkeypatch.setenv("DATABASE", "postgres://gul:Kanarie7fugl@db/x")
    for more in ((), ("--json",)):
        call(*words, *more)
        text = "".join(capsys.readouterr())
        for shape in SHAPES:
            assert [leak for leak in leaks(text, shape) if len(leak) > 4] == []
            assert not files_with(tmp_path, shape)


def test_the_name_of_the_user_stays_in_paths() -> None:
    environ = {"HOME": "/home/s1234567"}
    for proxy in ("http://s1234567@h:1", "s1234567:s1234567@h:1"):
        hide = find_secrets({**environ, "https_proxy": proxy}).hide
        assert hide("/home/s1234567/provision") == "/home/s1234567/provision"
        assert "s1234567" not in hide(f"{proxy} '{proxy}'")
