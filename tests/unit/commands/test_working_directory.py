"""The working directory is not searched: what another user put there neither runs nor is used, whatever is typed there."""

from __future__ import annotations

import json
import os
from pathlib import Path, PurePosixPath

import pytest

from golden_files import Words
from parts.cli import call, envelope
from parts.loops import for_each
from parts.records import ENVIRONMENT, put_published
from parts.users import ATTACKER, Users
from provision.errors import EXIT_USAGE
from provision.machine.configuration import shipped
from provision.machine.configuration.search_path import search_path, shipped_root
from provision.machine.root.store import Store
from provision.model.layout import Layout

Captured = pytest.CaptureFixture[str]
TEMPLATE = "{{ cycler.__init__.__globals__.os.system('touch RAN') }}echo PLANTED\n"
TYPED = [
    ("plan",),
    ("plan", "--commands"),
    ("plan", "--site", "local", "--profile"),
    ("doctor",),
    ("build", "--stack", "planted"),
    ("fetch", "--stack", "planted"),
    ("activate", str(ENVIRONMENT)),
    ("show", str(ENVIRONMENT)),
    ("list",),
    ("site", "list"),
    ("site", "show", "local"),
    ("site", "show", "planted"),
    ("site", "check", "local"),
    ("stack", "list"),
    ("lock", "planted"),
    ("job", "horovod", "--site", "nersc-perlmutter", "--arch", "gpu", "--account", "x", "--script", "train.py"),
    ("job", "single", "--site", "nersc-perlmutter", "--arch", "gpu", "--account", "x", "--script", "train.py"),
    ("job", "build", "--profile", "--site", "nersc-perlmutter", "--arch", "cpu", "--account", "x"),
    ("__complete", "sites"),
    ("__complete", "stacks"),
    ("__complete", "archs", "local"),
    ("__complete", "archs", "planted"),
    ("__complete", "environments", "local"),
]


@pytest.fixture
def hostile(users: Users) -> Path:
    """A folder of another user with everything that the tool could look for in it."""
    users.make_folder("shared", ATTACKER)
    local = shipped.read("sites/local.toml")
    planted = users.folder / "shared" / "root"
    local = local.replace('root = "${PROVISION_ROOT}"', f'root = "{planted}"')
    local = local.replace("[archs.native]\n", '[archs.native]\npython = "./evil.sh"\n')
    assert "evil.sh" in local
    assert str(planted) in local
    files = {
        "sites/local.toml": local,
        "sites/planted.toml": local.replace('name = "local"', 'name = "planted"').replace("native", "trap"),
        "stacks/planted.toml": shipped.read("stacks/tensorflow-2.21.0.toml").replace(
            'name = "tensorflow-2.21.0"', 'name = "planted"'
        ),
        "requirements/planted.in": "six\n",
        "evil.sh": "#!/bin/sh\ntouch RAN\n",
        "train.py": "import tensorflow\n",
    }
    templates = [path.relative_to(Path(shipped_root())) for path in Path(shipped_root()).glob("*/*.j2")]
    files |= {str(name): TEMPLATE for name in templates}
    for name, text in files.items():
        for parent in reversed(Path(name).parents[:-1]):
            users.make_folder(f"shared/{parent}", ATTACKER)
        users.make_file(f"shared/{name}", text, ATTACKER, 0o755)
    store = Store(Layout(PurePosixPath(planted)))
    put_published(store, modules=())
    activation = Path(store.layout.records_folder(ENVIRONMENT)) / "activate.sh"
    activation.write_text("touch RAN; echo PLANTED\n")
    for path in (planted, *planted.rglob("*")):
        os.chown(path, ATTACKER, ATTACKER, follow_symlinks=False)
    users.own(users.folder / "shared", ATTACKER, 0o777)  # so that a program of the victim could leave its mark
    return users.folder / "shared"


@for_each("words", TYPED, ids=" ".join)
def test_nothing_in_the_working_directory_runs_or_is_used(words: tuple[str, ...], hostile: Path, users: Users) -> None:
    done = users.tool(*words, cwd=hostile)
    assert "Traceback" not in done.stderr
    assert not (hostile / "RAN").exists()
    assert not {"PLANTED", "trap", "planted"} & set((done.stdout + done.stderr).replace("`", " ").split()) - set(words)
    assert str(hostile) not in done.stdout.replace(f"{hostile}/train.py", "")  # the script that was named


def test_the_search_path_has_no_folder_that_depends_on_where_one_stands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "sites").mkdir()
    monkeypatch.setenv("PROVISION_CONFIG", "/site/config")
    before = search_path()
    monkeypatch.chdir(tmp_path)
    assert search_path() == before
    for settings in ("", "relative", "."):
        monkeypatch.setenv("XDG_CONFIG_HOME", settings)
        monkeypatch.setenv("HOME", "relative")
        assert all(os.path.isabs(folder) for folder in search_path())  # noqa: PTH117
        assert str(tmp_path) not in search_path()


def test_the_folders_are_searched_from_the_nearest_to_the_user_to_the_shipped_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PROVISION_CONFIG", f"{tmp_path}/named")
    monkeypatch.setenv("XDG_CONFIG_HOME", f"{tmp_path}/mine")
    monkeypatch.setattr(
        "provision.machine.configuration.search_path.SITE_WIDE", (f"{tmp_path}/wide", f"{tmp_path}/etc")
    )
    order = [f"{tmp_path}/named", f"{tmp_path}/mine/provision", f"{tmp_path}/wide", f"{tmp_path}/etc"]
    assert search_path() == [*order, shipped_root()]
    text = shipped.read("sites/local.toml")
    for folder in reversed(order):
        (Path(folder) / "sites").mkdir(parents=True)
        (Path(folder) / "sites" / "local.toml").write_text(text, encoding="utf-8")
        assert shipped.load_site("local").origin == f"{folder}/sites/local.toml"


@pytest.mark.parametrize("kind", ["site", "stack"])
def test_a_file_that_is_only_in_the_working_directory_is_named_in_the_error(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured, words: Words
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / f"{kind}s").mkdir()
    (tmp_path / f"{kind}s" / "snowy.toml").write_text("= 1")
    assert call("plan", f"--{kind}", "snowy", "--json") == EXIT_USAGE
    error = envelope(capsys)["error"]
    assert error["kind"] == f"unknown-{kind}"
    (line,) = [line for line in error["evidence"] if f"`./{kind}s/snowy.toml`" in line]
    words("plan", line)
    assert error["hint"] == f"`provision plan --{kind} ./{kind}s/snowy.toml --json`"
    # The hint works: the file is read, and its fault is found.
    assert call("plan", f"--{kind}", f"./{kind}s/snowy.toml", "--json") == EXIT_USAGE
    assert envelope(capsys)["error"]["kind"] == "invalid-file"


@pytest.mark.parametrize("name", ["../x", "a/b", "x" * 300, "x" * 300 + ".toml", "\udcff", ""])
def test_a_name_that_cannot_be_a_site_is_unknown(name: str, capsys: Captured) -> None:
    assert call("plan", "--site", name, "--json") == EXIT_USAGE
    assert envelope(capsys)["error"]["kind"] == "unknown-site"


def test_plan_and_doctor_list_the_files_that_do_not_come_with_the_tool(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured, words: Words
) -> None:
    monkeypatch.chdir(tmp_path)
    call("plan")
    out = capsys.readouterr().out
    (line,) = [line for line in out.splitlines() if line.startswith("configuration: ")]
    words("plan", line)
    config = tmp_path / "config"
    for name in ("sites/local.toml", "jobs/user.sh.j2"):
        (config / name).parent.mkdir(parents=True)
        (config / name).write_text(shipped.read(name), encoding="utf-8")
    monkeypatch.setenv("PROVISION_CONFIG", str(config))
    (tmp_path / "sites").mkdir()
    own = [f"{config}/sites/local.toml", f"{config}/jobs/user.sh.j2"]
    listed = f"configuration: `{own[0]}`, `{own[1]}`; the other files come with the tool\n"
    call("plan", "--json")
    assert envelope(capsys)["result"]["own_files"] == own
    call("plan", "--profile")
    assert f"\n{listed}" in capsys.readouterr().out
    call("doctor")
    out = capsys.readouterr().out
    assert listed in out
    (line,) = [line for line in out.splitlines() if "`sites/`" in line]
    assert line.strip().startswith("! ")
    words("doctor", line)
    monkeypatch.setenv("PROVISION_CONFIG", str(tmp_path))
    call("doctor", "--json")
    assert "working directory" not in json.dumps(envelope(capsys))
