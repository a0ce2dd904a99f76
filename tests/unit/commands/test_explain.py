"""`provision explain` on what a person names: an environment whose build failed or was good, and a folder with its logs."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from golden_files import Words
from parts.cli import run
from parts.tiny import TinySite, make_site


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> TinySite:
    """An environment of the light stack; the program that trains ends with an error."""
    site = make_site(tmp_path_factory.mktemp("explain"))
    (site.folder / "break-b").touch()
    done = site.run("build", "--site", "both", "--arch", "b")
    assert done.returncode == 1, done.stderr
    return site


def explain(log: Path) -> subprocess.CompletedProcess[str]:
    """`provision explain` on a file."""
    return run("explain", str(log))


def explained(done: subprocess.CompletedProcess[str], code: int) -> dict[str, Any]:
    """The result of `provision explain … --json`."""
    assert done.returncode == code, done.stdout + done.stderr
    result: dict[str, Any] = json.loads(done.stdout)["result"]
    return result


@pytest.mark.real
def test_the_failed_step_of_an_environment_is_explained(site: TinySite) -> None:
    folder = next((site.root / "logs" / "b").iterdir())
    prefix = next((site.root / "envs" / "b" / "tensorflow").iterdir())
    for named in (f"b/tensorflow/{prefix.name}", str(folder)):
        result = explained(site.run("explain", named, "--site", "both", "--json"), 1)
        assert Path(result["log"]).name == "proof.log"
        assert result["cause"].startswith("no rank reported"), result["cause"]
        assert "this arch is broken on purpose" in json.dumps(result)
        assert result["hint"].startswith("run it yourself: `")


@pytest.mark.real
def test_a_misspelt_environment_is_not_read_as_a_file(site: TinySite) -> None:
    prefix = next((site.root / "envs" / "b" / "tensorflow").iterdir())
    done = site.run("explain", f"b/tensorflow/{prefix.name[:-1]}x", "--site", "both", "--json")
    assert done.returncode == 2
    error = json.loads(done.stdout)["error"]
    assert "no job or environment" in error["message"] and error["hint"], error


@pytest.mark.real
def test_logs_without_a_failure_name_the_command_that_compares(site: TinySite, words: Words) -> None:
    prefix = next((site.root / "envs" / "b" / "tensorflow").iterdir())
    for log in (site.root / "logs" / "b").rglob("*.log"):
        log.write_text("all is well\n")
    name = f"b/tensorflow/{prefix.name}"
    done = site.run("explain", name, "--site", "both")
    assert done.returncode == 0, done.stderr
    assert f"`provision verify {name} --site both`" in done.stdout
    words(
        "explain",
        "\n".join(line for line in done.stdout.splitlines() if str(site.root) not in line and name not in line),
    )


@pytest.mark.parametrize("end", ["", "Training complete\n"])
def test_a_notice_that_may_matter_stands_in_the_headline_if_no_end_is_shown(
    tmp_path: Path, end: str, words: Words
) -> None:
    log = tmp_path / "run.log"
    log.write_text(
        "2023-01-01 10:00:00.1: W tensorflow/stream_executor/platform/default/dso_loader.cc:64] Could not load dynamic library "
        f"'libcusolver.so.11'; dlerror: libcusolver.so.11: cannot open shared object file\n{end}"
    )
    done = explain(log)
    assert done.returncode == 0, done.stderr
    words("explain", done.stdout)


def test_of_several_runs_the_last_one_is_named_as_that(tmp_path: Path, words: Words) -> None:
    log = tmp_path / "a.log"
    head = "step one of the run\nstep two of the run\nloading the data now\n"
    log.write_text(f"{head}flux: error: no such key\n{head}solve: error: bad value\n")
    text = explain(log).stdout
    assert "`solve` reports" in text and "several runs" in text and "line 5 " in text
    words("explain", text)
    log.write_text(f"{head}flux: error: no such key\n")
    assert "several runs" not in explain(log).stdout


def test_the_last_lines_are_not_called_errors(tmp_path: Path, words: Words) -> None:
    log = tmp_path / "a.log"
    log.write_text(
        "making profiles\nCommand '['solve', 'a']' returned non-zero exit status 1.\nall profiles are made\n"
    )
    done = explain(log)
    assert done.returncode == 3
    assert "  line 1: making profiles\n" in done.stdout
    words("explain", done.stdout)
    heading = done.stdout.splitlines()[0]
    log.write_text("Command '['solve', 'a']' returned non-zero exit status 1.\nflux: error: no such key\n")
    assert heading not in explain(log).stdout


@pytest.mark.parametrize(
    ("end", "code"),
    [
        ("# exit status 0 after 3 s", 0),
        ("# exit status 1 after 3 s", 3),
        ("# ended by signal 9 after 3 s", 1),
        ("# ended by signal 11 after 3 s", 1),
        ("# ended by the time limit after 3 s", 1),
        ("# could not be started after 0 s", 1),
        ("# could not be started after 0 s\n\nerror: `pip` cannot be run", 1),
        ("# stopped: [Errno 28] No space left on device after 3 s", 1),
        ("# stopped: list index out of range after 3 s", 1),
        ("# interrupted after 3 s", 1),
        ("# interrupted after 3 s\n$ make\n# exit status 0 after 9 s", 0),
    ],
)
def test_the_last_line_of_a_step_says_how_it_ended(tmp_path: Path, end: str, code: int, words: Words) -> None:
    log = tmp_path / "compile.log"
    log.write_text(f"$ make\ncompiling\n{end}\n")
    done = explain(log)
    assert done.returncode == code, done.stdout
    words("explain", done.stdout)


def test_a_name_that_is_nothing_is_called_a_missing_file(tmp_path: Path, words: Words) -> None:
    for name in (str(tmp_path / "nosuch.log"), "no/such/environment"):
        done = run("explain", name, "--json")
        assert done.returncode == 2
        error = json.loads(done.stdout)["error"]
        assert f"no file `{name}`" in error["message"] and error["hint"].startswith("`ls -l "), error
        assert error["kind"] == "config"
        words("explain", error["message"])


def test_the_known_failures_with_some_words_are_listed() -> None:
    listed = run("explain", "--list", "quota exceeded", "--json")
    assert listed.returncode == 0 and "quota" in {
        row["failure"] for row in json.loads(listed.stdout)["result"]["failures"]
    }
    assert "no known failure" in run("explain", "--list", "quuxquux").stdout


def test_no_line_of_an_answer_is_wider_than_needed_and_no_command_is_broken(tmp_path: Path) -> None:
    log = tmp_path / "a.log"
    log.write_text("OSError: [Errno 28] No space left on device\n")
    lines = explain(log).stdout.splitlines()
    assert lines[0].startswith("sure: ") and max(map(len, lines)) <= 100
    assert all(line.count("`") % 2 == 0 for line in lines)
