"""From where packages come, and how they are laid down: settings of pip and uv of a user who has no variable of them."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from parts.own_index import OwnIndex, own_index
from parts.tiny import TinySite, make_site
from parts.users import VICTIM, Users

pytestmark = pytest.mark.real


@dataclass(frozen=True)
class Person:
    """A user with a home, who has the small stack and a root, and no file that was fetched."""

    users: Users
    site: TinySite
    index: OwnIndex
    python: str

    def write(self, name: str, text: str) -> None:
        """A file in the home, with the index and its certificate where the text has them in braces."""
        file = self.users.home / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(self.fill(text))
        subprocess.run(["chown", "-R", f"{VICTIM}:{VICTIM}", str(self.users.home)], check=True)

    def fill(self, text: str) -> str:
        """The text with the values for its braces."""
        index = self.index
        return text.format(address=index.address, certificate=index.certificate, home=self.users.home)

    def run(self, *words: str, **environ: str) -> subprocess.CompletedProcess[str]:
        """The tool, with no variable of pip, uv, a proxy or certificates but these."""
        ours = ("PYTHONPATH", "PROVISION_CONFIG", "TINY_FOLDER", "TMPDIR")
        kept = {name: value for name, value in self.site.environ().items() if name in ours}
        given = {name: self.fill(value) for name, value in environ.items()}
        return self.users.run(VICTIM, self.python, *self.site.argv(*words)[1:], **kept, **given)


@pytest.fixture
def person(users: Users) -> Iterator[Person]:
    site = make_site(users.folder / "site")
    sources = users.folder / "sources"
    shutil.copytree(site.store.layout.sources, sources)
    shutil.rmtree(site.store.layout.wheelhouse)
    subprocess.run(["chown", "-R", f"{VICTIM}:{VICTIM}", str(users.folder / "site")], check=True)
    with own_index(users.folder / "index", site.folder / "wheels", sources) as index:
        yield Person(users, site, index, users.python())


NOT_THERE = "[global]\nindex-url = file:///nonexistent/simple\n"
UV_TRUST = """[pip]\nallow-insecure-host = ["127.0.0.1"]\n"""
TRUST = "cert = {certificate}\n"
# What else pip and uv read is in `tests/unit/model/test_installer_settings.py`.
FILES = {
    "the user's": (".config/pip/pip.conf", "[global]\nindex-url = {address}\n" + TRUST),
    "the named file": ("x.conf", "[download]\nindex-url: {address}\n[global]\n" + TRUST),
    "the system's": ("etc/pip/pip.conf", NOT_THERE + "extra-index-url =\n  {address}\ntrusted-host = 127.0.0.1\n"),
    "uv's": (".config/uv/uv.toml", '[[index]]\nurl = "{address}"\ndefault = true\n' + UV_TRUST),
}
VARIABLES = {
    "the named file": {"PIP_CONFIG_FILE": "{home}/x.conf"},
    "the system's": {"XDG_CONFIG_DIRS": "{home}/etc"},
}
INSTALLERS = {"uv": {}, "pip": {"PROVISION_INSTALLER": "pip"}}
both = pytest.mark.parametrize("installer", ["uv", pytest.param("pip", marks=pytest.mark.long)])


@both
@pytest.mark.parametrize("kind", FILES)
def test_the_first_command_finds_the_index_of_the_users_files(person: Person, kind: str, installer: str) -> None:
    name, text = FILES[kind]
    person.write(name, text)
    done = person.run("build", "--site", "one", **INSTALLERS[installer], **VARIABLES.get(kind, {}))
    assert done.returncode == 0, done.stderr
    assert any(path.startswith("/files/tensorflow") for path in person.index.asked)


def test_everything_is_fetched_by_the_users_files(person: Person) -> None:
    shutil.rmtree(person.site.store.layout.sources)
    person.write(*FILES["the user's"])
    done = person.run("fetch", "--site", "one")
    assert done.returncode == 0, done.stderr
    assert any(path.startswith("/files/horovod") for path in person.index.asked)
    person.index.status = 500
    assert person.run("build", "--site", "one").returncode == 0


@both
def test_an_index_that_refuses_is_named_as_such(person: Person, installer: str) -> None:
    """By the doctor before, and by the build."""
    person.write(*FILES["the user's"])
    assert person.run("doctor", "--site", "one", **INSTALLERS[installer]).returncode == 0
    person.index.status = 401
    for verb in ("doctor", "build"):
        done = person.run(verb, "--site", "one", **INSTALLERS[installer])
        assert done.returncode == 1
        assert "refuses: 401" in done.stdout + done.stderr


def test_the_doctor_finds_a_certificate_that_is_not_trusted(person: Person) -> None:
    person.write(".config/pip/pip.conf", "[global]\nindex-url = {address}\n")
    done = person.run("doctor", "--site", "one", "--json")
    assert done.returncode == 1
    seen = [one for one in json.loads(done.stdout)["result"]["observations"] if one["group"] == "index"]
    assert [one["state"] for one in seen] == ["bad"]
    assert "certificate" in seen[0]["message"]


ELSEWHERE = "/nonexistent"
LAYING = {
    "uv.toml": (".config/uv/uv.toml", 'link-mode = "symlink"\nno-binary = true\n[pip]\nprefix = "/nonexistent"\n', {}),
    "pip.conf": (".pip/pip.conf", "[global]\ntarget = /nonexistent\nno-binary = :all:\n[install]\nuser = true\n", {}),
    "virtualenv.ini": (".config/virtualenv/virtualenv.ini", "[virtualenv]\nsystem-site-packages = true\n", {}),
    "variables": (
        *("empty", ""),
        {"UV_LINK_MODE": "symlink", "UV_SYSTEM_PYTHON": "1", "UV_TARGET": ELSEWHERE, "PIP_TARGET": ELSEWHERE},
    ),
}


@both
@pytest.mark.parametrize("kind", LAYING)
def test_no_setting_of_a_user_decides_how_packages_are_laid_down(person: Person, kind: str, installer: str) -> None:
    """Only files below the prefix, none of them shared with a cache, and no link that leaves it but that of Python."""
    name, text, variables = LAYING[kind]
    person.write(name, text)
    person.write(*FILES["the user's"])
    done = person.run("build", "--site", "one", **INSTALLERS[installer], **variables)
    assert done.returncode == 0, done.stderr
    (prefix,) = person.site.root.glob("envs/*/*/*")
    assert "include-system-site-packages = false" in (prefix / "pyvenv.cfg").read_text()
    for file in prefix.rglob("*"):
        if file.is_symlink():
            inside = os.path.realpath(file).startswith(f"{prefix}/")
            assert inside or file.name.startswith("python"), file
        elif file.is_file():
            assert file.stat().st_nlink == 1, file
    assert (prefix / "lib").is_dir()
    assert list(prefix.glob("lib/python3*/site-packages/horovod/tensorflow/*.so"))
