"""Every shape of a credential, with the real messages of pip and uv, to servers that answer 401, 403, 404, 500, and to none.

Each shape meets one of the five answers of one of the two, in turn; `make fuzz` tries all.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from parts import tiny
from parts.credentials import SHAPES, Shape, files_with, leaks, pip_argv, refusing_index, try_everywhere, uv_argv
from parts.provision import Tool
from provision.knowledge.index_settings import is_index_setting
from provision.machine.submission.job_settings import write_settings

pytestmark = pytest.mark.real

ANSWERS = (0, 401, 403, 404, 500)
PROGRAMS = {"pip": pip_argv, "uv": uv_argv}
CASES = [
    pytest.param(program, shape, code, id=f"{shape.name}-{code}-{name}")
    for number, shape in enumerate(SHAPES)
    for turn, (name, program) in enumerate(PROGRAMS.items())
    for code in (ANSWERS if "FUZZ" in os.environ else (ANSWERS[number // 2 % len(ANSWERS)],))
    if "FUZZ" in os.environ or number % 2 == turn
]


@pytest.fixture(scope="module")
def hosts() -> Iterator[Mapping[int, str]]:
    """Servers that refuse."""
    with refusing_index() as addresses:
        yield addresses


@pytest.mark.parametrize(("program", "shape", "code"), CASES)
def test_no_message_leaks(
    shape: Shape,
    program: object,
    code: int,
    hosts: Mapping[int, str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert callable(program)
    text = try_everywhere(program(tmp_path), shape, hosts[code], tmp_path, capsys)
    assert leaks(text, shape) == [], text


@pytest.mark.parametrize("installer", ["uv", "pip"])
@pytest.mark.parametrize("name", ["token in the path", "slash in the password", "proxy without scheme"])
def test_a_build_that_cannot_install_leaves_no_secret_below_its_root(
    name: str, installer: str, hosts: Mapping[int, str], tmp_path: Path
) -> None:
    shape = next(shape for shape in SHAPES if shape.name == name)
    root, cache = tmp_path / "root", str(tmp_path / "cache")
    settings, events = root / "jobs" / "x.settings", root / "jobs" / "x.events.jsonl"
    environ = {
        **dict.fromkeys((name for name in os.environ if is_index_setting(name)), ""),
        "PIP_CONFIG_FILE": os.devnull,
        "UV_CACHE_DIR": cache,
        "PROVISION_INSTALLER": installer,
    }
    write_settings(settings, shape.environ(hosts[0]))
    words = ("build", "--site", "local", "--settings", str(settings), "--events", str(events))
    done = Tool(root, environ).run(*words, "--json")
    assert json.loads(done.stdout)["error"]["message"].startswith("step `install` failed")
    assert leaks(done.stdout + done.stderr, shape) == []
    assert files_with(root, shape) == []
    assert not settings.exists()
    assert events.exists()
    assert list(root.rglob("install.log"))


def test_a_build_gives_its_compiler_and_its_proof_no_secret_and_writes_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shape = SHAPES[0]
    (canary,), seen = shape.canaries, tmp_path / "seen"
    services = ("HF_TOKEN", "GITHUB_TOKEN", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "WANDB_API_KEY", "SLURM_JWT")
    index = {**shape.environ("127.0.0.1:9"), "https_proxy": f"gul:{canary}@127.0.0.1:9", "UV_INDEX_X_PASSWORD": canary}
    secrets = {**dict.fromkeys(services, canary), **index, "DATABASE": f"postgres://gul:{canary}@db/x"}
    monkeypatch.setattr(tiny, "MPICXX", tiny.MPICXX.replace("prefix=", f"env >{seen}/compiler\nprefix=", 1))
    site = tiny.make_site(tmp_path)
    seen.mkdir()
    program = tmp_path / "programs" / "single.py"
    save = f"import os; open({str(seen / 'proof')!r}, 'w').write(str(os.environ))"
    program.write_text(f"{save}\n{program.read_text()}")
    done = site.run("build", "--site", "one", "--json", **secrets, LM_LICENSE_FILE="27000@lic.example.org")
    assert done.returncode == 0, done.stderr
    for name in ("compiler", "proof"):
        text = (seen / name).read_text()
        assert "27000@lic.example.org" in text
        assert [secret for secret in secrets if secret in text] == []
    assert leaks(done.stdout + done.stderr, shape) == []
    assert files_with(tmp_path, shape) == []
