"""What is misspelt or belongs to another verb: nothing is ignored, and the hint is a command that works when it is pasted."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

import pytest

from golden_files import Words
from parts.cli import call, envelope

Captured = pytest.CaptureFixture[str]


def refused(capsys: Captured, *words: str) -> dict[str, object]:
    """The error of a wrong request."""
    assert call(*words, "--json") == 2
    error: dict[str, object] = envelope(capsys)["error"]
    return error


@pytest.mark.parametrize(
    ("query", "message", "hint"),
    [
        ("biuld", "`biuld`", "provision build"),
        ("ls --site local", "`ls`", "provision list --site local"),
        ("stacks", "`stacks`", "provision stack list"),
        ("sites", "`sites`", "provision site list"),
        ("job biuld", "`biuld`", "provision job build"),
        ("job horovd --nodes 2", "no sub-verb `horovd`", "provision job horovod --nodes 2"),
        ("site shw local", "no sub-verb `shw`", "provision site show local"),
        ("list --site lokal", "`lokal`", "provision list --site local"),
        ("list --site=lokal", "`lokal`", "provision list --site=local"),
        ("site show nyu-torsh", "`nyu-torsh`", "provision site show nyu-torch"),
        ("plan --stack tensorflow-2.21", "tensorflow-2.21", "provision plan --stack tensorflow-2.21.0"),
        ("plan --site nyu-torch --arch h20", "`h20`", "provision plan --site nyu-torch --arch h200"),
        ("build --acrh=knl", "`--acrh`", "provision build --arch=knl"),
        (
            "job single --runtime contaner",
            "`contaner`",
            "provision job single --runtime container",
        ),
        ("build tensorflow-2.21.0", "takes no argument", "provision build --stack tensorflow-2.21.0"),
        ("build tensorflow-2.21", "takes no argument", "provision build --stack tensorflow-2.21.0"),
        ("plan --site nyu-torch h200", "takes no argument", "provision plan --site nyu-torch --arch h200"),
        ("list nyu-torch", "takes no argument", "provision list --site nyu-torch"),
        ("build --dry-run", "`--dry-run`", "provision plan"),
        ("lock tensorflow-2.21", "tensorflow-2.21.in`", "provision lock tensorflow-2.21.0"),
    ],
)
def test_a_typo_is_answered_with_the_command_that_was_meant(
    query: str, message: str, hint: str, capsys: Captured, words: Words
) -> None:
    error = refused(capsys, *query.split())
    assert message in str(error["message"])
    words(hint.split()[1], str(error["message"]))
    last = str(error["hint"]).split("`")[-2]
    assert [word for word in shlex.split(last) if word != "--json"] == hint.split()


def test_a_name_that_was_not_typed_is_not_corrected_in_the_command(
    monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    monkeypatch.setenv("PROVISION_SITE", "lokal")
    assert refused(capsys, "list")["hint"] == "`--site local`"


@pytest.mark.parametrize(
    ("query", "option", "takers"),
    [
        ("job build --nodes 17", "--nodes", ("multiworker", "horovod")),
        ("job build --profile --site alcf-theta --gpus 3", "--gpus", ("single", "horovod")),
        ("job build --script /nope", "--script", ("single", "lint")),
        ("job build --image foo", "--image", ("image", "horovod")),
        ("job horovod --profile", "--profile", ("build",)),
        ("job single --nodes 2", "--nodes", ("horovod",)),
        ("job image --stack tensorflow-2.15.1", "--stack", ("overlay", "build")),
        ("job overlay --watch-gpus", "--watch-gpus", ("horovod",)),
        ("job cray-ml-plugin --runtime venv", "--runtime", ("horovod",)),
        ("job follow 7 --arch knl", "--arch", ("build",)),
        ("plan --submit", "--submit", ("build",)),
    ],
)
def test_an_option_of_another_verb_is_refused_with_the_verbs_that_take_it(
    query: str, option: str, takers: tuple[str, ...], capsys: Captured, words: Words
) -> None:
    error = refused(capsys, *query.split())
    assert f"does not take `{option}`" in str(error["message"])
    (line,) = error["evidence"]  # type: ignore[misc]
    assert line.startswith(f"`{option}` ")
    assert all(f" {taker}`" in line for taker in takers)
    without = str(error["hint"]).removeprefix("leave it out: ").strip("`")
    words(query.split()[0], f"{error['message']}\n{line}")
    assert option not in without


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("build --account me", "`--account`"),
        ("build --submit --plan x", "`--plan`"),
        ("build --submit --events x", "`--events`"),
        ("plan --account me", "`--account`"),
        ("plan --profile --commands", "`--commands`"),
        ("test --stack s tensorflow/2.21.0", "`--stack` needs `--provided`"),
        ("test --provided tensorflow/2.21.0", "`--provided`"),
        ("job lint x.sh --arch knl", "`--arch`"),
    ],
)
def test_an_option_that_this_mode_ignores_is_refused(query: str, message: str, capsys: Captured, words: Words) -> None:
    error = refused(capsys, *query.split())
    assert message in str(error["message"])
    words(query.split()[0], str(error["message"]))


@pytest.mark.parametrize(
    ("words", "option"),
    [
        ("--runtime modules --stack tensorflow-2.15.1", "--stack"),
        ("--runtime container --module nosuch/1.0 --no-gpu", "--module"),
        ("--runtime container --venv /x --no-gpu", "--venv"),
        ("--runtime venv --image x", "--image"),
    ],
)
def test_an_option_of_another_runtime_is_refused(words: str, option: str, capsys: Captured) -> None:
    site, arch = ("nyu-greene", "gpu") if "container" in words else ("sigma2-saga", "accel")
    error = refused(capsys, "job", "single", "--site", site, "--arch", arch, "--account", "me", *words.split())
    assert f"`{option}` is" in str(error["message"])


@pytest.mark.parametrize("words", ["job --site nyu-torch build --profile", "job build --site nyu-torch --profile"])
def test_an_option_may_stand_before_the_sub_verb(words: str, capsys: Captured) -> None:
    assert "`nyu-torch`" in str(refused(capsys, *words.split())["message"])


def test_a_value_that_looks_like_an_option_is_a_value(capsys: Captured, words: Words) -> None:
    command = ("job", "single", "--site", "sigma2-saga", "--arch", "normal", "--account", "me")
    assert call(*command, "--arguments", "--epochs 3", "--gpus", "-1") == 2
    err = capsys.readouterr().err
    assert "`-1`" in err
    words("job", err)
    assert call(*command, "--arguments", "--epochs 3") == 0
    assert "--epochs 3" in capsys.readouterr().out
    assert not Path(os.environ["PROVISION_ROOT"]).exists()
