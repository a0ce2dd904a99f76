"""`provision tensorboard`, with a small server in place of TensorBoard; the real one is in tests/real."""

from __future__ import annotations

import signal
import socket
from pathlib import Path

import pytest

from golden_files import Words
from parts.cli import call, envelope
from parts.json_page import faults
from parts.network import free_port, served
from parts.provision import Tool, site_file
from parts.records import ENVIRONMENT
from parts.small_environment import make_small_environment, packages_of

Captured = pytest.CaptureFixture[str]

SERVER = """\
import http.server, sys
words = dict(zip(sys.argv[1::2], sys.argv[2::2]))
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(words["--logdir"].encode())
    def log_message(self, *args):
        pass
try:
    http.server.HTTPServer((words["--host"], int(words["--port"])), Handler).serve_forever()
except KeyboardInterrupt:
    pass
"""


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A root with an environment that has a TensorBoard, and the output of job 4711 below the working folder."""
    root = tmp_path / "root"
    prefix = make_small_environment(root)
    (packages_of(prefix) / "tensorboard").mkdir()
    (packages_of(prefix) / "tensorboard" / "__init__.py").write_text("")
    (packages_of(prefix) / "tensorboard" / "main.py").write_text(SERVER)
    (prefix / "bin" / "tensorboard").write_text("")
    (tmp_path / "runs" / "4711" / "tensorboard").mkdir(parents=True)
    (tmp_path / "runs" / "4712.server").mkdir()
    monkeypatch.setenv("PROVISION_ROOT", str(root))
    monkeypatch.chdir(tmp_path)
    return root


def test_the_folder_of_a_job_and_the_tunnel_are_printed(
    root: Path, tmp_path: Path, capsys: Captured, words: Words
) -> None:
    profile = site_file(tmp_path, "local")
    Path(profile).write_text(Path(profile).read_text() + '\n[network]\nhost = "login.example.org"\n')
    assert call("tensorboard", "4711", "--print", "--json", "--site", profile, "--user", "ada", "--port", "16006") == 0
    result = envelope(capsys)["result"]
    assert faults(result, "tensorboard") == []
    assert result["folder"] == str(tmp_path / "runs" / "4711" / "tensorboard")
    assert result["environment"] == str(ENVIRONMENT)
    node = socket.gethostname()
    assert result["tunnel"] == f"ssh -N -L 6006:127.0.0.1:16006 -J ada@login.example.org ada@{node}"
    assert call("tensorboard", "4712", "--print", "--arch", "knl") == 0
    printed = capsys.readouterr().out
    assert printed.endswith(" --arch knl\n")
    assert f"folder       {tmp_path}/runs/4712.server\n" in printed
    (note,) = [line for line in printed.splitlines() if f"user of {node} " in line]
    words("tensorboard", note.replace(node, "NODE"))
    assert root.is_dir()


@pytest.mark.usefixtures("root")
@pytest.mark.parametrize(
    ("command", "says"),
    [
        (("4713",), "`4713`"),
        (("./x/y",), "`./x/y`"),
        (("4711", "--port", "80"), "80 "),
        (("4711", "--user", "-oProxyCommand=x"), "`--user`"),
        (("4711", "--on", "tensorflow/9"), "`tensorflow/9`"),
    ],
)
def test_bad_input_is_refused(command: tuple[str, ...], says: str, capsys: Captured, words: Words) -> None:
    given = [f"{command[1]}={command[2]}"] if len(command) == 3 else []
    assert call("tensorboard", command[0], *given) == 2
    err = capsys.readouterr().err
    assert says in err
    words("tensorboard", err.splitlines()[0])


def test_a_site_whose_variables_are_not_set_is_another_machine(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured, words: Words
) -> None:
    monkeypatch.delenv("USERWORK", raising=False)
    assert call("tensorboard", "4713", "--site", "sigma2-saga") == 2
    err = capsys.readouterr().err
    assert "`sigma2-saga`" in err and "`$USERWORK/runs`" in err
    assert str(tmp_path) not in err.splitlines()[0]
    assert "hint: `ssh saga.sigma2.no`" in err
    words("tensorboard", err)
    monkeypatch.setenv("USERWORK", str(tmp_path))
    assert call("tensorboard", "4713", "--site", "sigma2-saga") == 2
    err = capsys.readouterr().err
    assert "`4713`" in err and f"`{tmp_path}/runs`" in err
    words("tensorboard", err)


def test_a_port_that_is_taken_and_an_environment_without_tensorboard_are_refused(
    root: Path, tmp_path: Path, capsys: Captured, words: Words
) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert call("tensorboard", "4711", "--port", str(port)) == 2
    err = capsys.readouterr().err
    assert str(port) in err
    words("tensorboard", err.splitlines()[0].replace(str(port), "PORT").replace(socket.gethostname(), "NODE"))
    next(root.glob("envs/*/*/*/bin/tensorboard")).unlink()
    assert call("tensorboard", str(tmp_path / "runs"), "--print") == 2
    assert "no published environment" in capsys.readouterr().err


def test_it_serves_on_this_node_until_ctrl_c(root: Path, tmp_path: Path) -> None:
    port = free_port()
    tool = Tool(root)
    process = tool.start("tensorboard", "4711", "--port", str(port))
    assert served(process, f"http://127.0.0.1:{port}/") == str(tmp_path / "runs" / "4711" / "tensorboard")
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert process.returncode == 0, err
    assert out == "TensorBoard has stopped\n"
    assert f"http://127.0.0.1:{port}" in err and "Traceback" not in err
    with pytest.raises(OSError, match="refused"):
        socket.create_connection(("127.0.0.1", port), timeout=5)
