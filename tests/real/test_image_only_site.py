"""An environment without plain files, built and used by ordinary users: everything in its bin/ runs from the image."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from parts.images import prefix_of, site_with_image, temporary, without
from parts.tiny import TinySite
from parts.users import stranger

pytestmark = pytest.mark.real

MODULE = "tensorflow/2.21.0"
SEEN = "import sys, tensorflow; print(tensorflow.__file__, sys.prefix, sys.argv[1:])"


@pytest.fixture(scope="module")
def site() -> Iterator[TinySite]:
    """A site that keeps images only."""
    with site_with_image("image-only") as made:
        yield made


def run(site: TinySite, *argv: str, path: str | None = None, **more: str) -> subprocess.CompletedProcess[str]:
    """Run a program as a user who has loaded the module."""
    environ = {"PATH": f"{prefix_of(site)}/bin:{path or os.environ['PATH']}", **more}
    environ["TMPDIR"] = str(temporary(site))
    return subprocess.run(
        stranger(1).argv(*argv), env=environ, cwd="/var", capture_output=True, text=True, check=False, timeout=60
    )


def test_every_verb_copes_without_the_files(site: TinySite) -> None:
    prefix = prefix_of(site)
    assert {path.name for path in prefix.iterdir()} == {".provision", "bin"}
    verdict = json.loads((prefix / ".provision/verdict.json").read_text())
    assert {"delivery"} <= {check["name"] for check in verdict["checks"]}
    for words in (
        ("list",),
        ("show", MODULE),
        ("test", MODULE),
        ("pack", MODULE),
        ("verify", "--all"),
        ("build",),
        ("publish", MODULE),
        ("startup", MODULE),
    ):
        site.good(*words, "--site", "one")
    assert "nothing to do" in site.good("build", "--site", "one").stderr
    audited = site.run("audit", "--all", "--site", "one", "--json")
    assert "horovod" in audited.stdout
    assert {path.name for path in prefix.iterdir()} == {".provision", "bin"}


def test_the_programs_of_a_user_run_from_the_image_without_a_word_in_front(site: TinySite, tmp_path: Path) -> None:
    prefix = prefix_of(site)
    program = (prefix / ".provision/images/provision-deliver").read_text()
    fingerprint = re.findall(r"PROVISION_DELIVERED=([\w-]+)-", program)[0]
    script = site.folder.parent / "script.py"
    script.write_text(f"#!{prefix}/bin/python\n{SEEN}\n")
    script.chmod(0o755)
    for argv, more in (
        (("python", "-c", SEEN, "it's $x"), {}),
        (
            ("python3", "-c", SEEN, "it's $x"),
            {"PROVISION_DELIVERED": fingerprint},
        ),  # of the job that submitted this one
        ((str(script), "it's $x"), {}),
        ((str(prefix / ".provision/images/provision-deliver"), "python", "-c", SEEN, "it's $x"), {}),
    ):
        done = run(site, *argv, **more)
        assert (done.returncode, done.stderr) == (0, ""), argv
        assert done.stdout.startswith(f"{prefix}/lib/"), argv
        assert done.stdout.endswith(f"""{prefix} ["it's $x"]\n"""), argv


def test_a_virtual_environment_on_top_is_made_and_runs_in_the_image(site: TinySite) -> None:
    own, deliver = temporary(site) / "own", str(prefix_of(site) / ".provision/images/provision-deliver")
    words = ("venv", "create", str(own), "--on", MODULE, "--site", "one")
    refused = site.run(*words)
    assert (refused.returncode, own.exists()) == (2, False)
    assert f"{deliver} provision venv create {own}" in refused.stderr
    made = subprocess.run(
        (deliver, *site.argv(*words)), env=site.environ(), capture_output=True, text=True, check=False
    )
    assert made.returncode == 0, made.stderr
    done = run(site, str(own / "bin/python"), "-c", "import sys, tensorflow; print(sys.prefix, tensorflow.__file__)")
    assert done.stderr == ""
    assert done.stdout.startswith(f"{own} {prefix_of(site)}/lib/")


def test_programs_that_follow_each_other_closely_all_run(site: TinySite) -> None:
    """Each begins while the folder of the one before is removed."""
    for _ in range(25):
        done = run(site, "python", "-c", "")
        assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("words", [("python",), ("provision-deliver", "python")])
def test_where_no_image_can_be_mounted_a_program_says_so_and_ends(
    site: TinySite, words: tuple[str, ...], tmp_path: Path
) -> None:
    path = without(site.folder.parent / f"no-namespaces-{len(words)}", "unshare")
    deliver = str(prefix_of(site) / ".provision/images")
    done = run(site, *words, "-c", "print('ran')", path=f"{path}:{deliver}")
    assert (done.returncode, done.stdout) == (1, "")
    assert "no plain files" in done.stderr
    assert "unshare" in done.stderr
