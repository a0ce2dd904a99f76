"""A lock of packages that only another index has, as those of PyTorch without CUDA: compiled and installed by real programs."""

from __future__ import annotations

import functools
import hashlib
import http.server
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from parts.provision import Tool
from parts.tiny import make_wheel
from provision.backends.venv.installer import Installer
from provision.machine.programs.installer_environ import installer_environ

pytestmark = pytest.mark.real
VERSION = "2.14.1+cpu"


@dataclass(frozen=True, slots=True)
class Index:
    """An index with a wheel of "torch" for this machine and one for another; `asked` are the paths that were requested."""

    address: str
    wheels: tuple[Path, Path]
    asked: list[str] = field(default_factory=list)


@pytest.fixture
def index(tmp_path: Path) -> Iterator[Index]:
    page = tmp_path / "served/simple/torch"
    page.mkdir(parents=True)
    here = make_wheel(page, "torch", VERSION, {"torch/__init__.py": f'__version__ = "{VERSION}"\n'})
    other = page / here.name.replace("-any", "-manylinux_2_28_aarch64")
    other.write_bytes(here.read_bytes() + b"\0")
    digests = {one.name: hashlib.sha256(one.read_bytes()).hexdigest() for one in (here, other)}
    links = (f'<a href="{name.replace("+", "%2B")}#sha256={digest}">{name}</a>' for name, digest in digests.items())
    (page / "index.html").write_text("\n".join(links))
    asked: list[str] = []

    class Handler(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            asked.append(self.path)

    handler = functools.partial(Handler, directory=str(tmp_path / "served"))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield Index(f"http://127.0.0.1:{server.server_port}/simple", (here, other), asked)
        server.shutdown()


def test_a_lock_keeps_the_index_of_its_input_and_uv_and_pip_install_from_there(index: Index, tmp_path: Path) -> None:
    """pip-tools takes the hash of the wheel for another machine from the index's page, and does not download it."""
    requirements = tmp_path / "configuration/requirements"
    requirements.mkdir(parents=True)
    (requirements / "own.in").write_text(f"--extra-index-url {index.address}\ntorch=={VERSION}\n")
    minor = f"{sys.version_info.major}.{sys.version_info.minor}"
    tool = Tool(tmp_path / "root", {"PROVISION_CONFIG": str(tmp_path / "configuration")})
    tool.good("lock", "own", "--python", minor)
    lock = requirements / f"own-py{minor.replace('.', '')}.txt"
    text = lock.read_text()
    assert f"\n--extra-index-url {index.address}\ntorch=={VERSION} \\\n" in text
    for wheel in index.wheels:
        assert f"--hash=sha256:{hashlib.sha256(wheel.read_bytes()).hexdigest()}" in text
    assert not [path for path in index.asked if "aarch64" in path]
    uv = str(Path(sys.executable).parent / "uv")
    for program in (uv, None) if Path(uv).is_file() else (None,):
        installer = Installer(
            python=sys.executable, own_venv=False, tool_python=sys.executable, uv=program, wheelhouse=None
        )
        place = tmp_path / installer.name
        subprocess.run(installer.environment_argv(str(place), pip=False), check=True, capture_output=True)
        python = str(place / "bin/python")
        argv = installer.lock_argv(python, str(lock))
        done = subprocess.run(argv, env=installer_environ(tool.env()), capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        said = subprocess.run([python, "-c", "import torch; print(torch.__version__)"], capture_output=True, text=True)
        assert said.stdout == f"{VERSION}\n", said.stderr
