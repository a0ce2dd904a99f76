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
        ("build -v --stack x", "`-v`", "provision build --verbose --stack x"),
        ("publish x -n", "`-n`", "provision publish x --dry-run"),
        ("remove -f x", "`-f`", "provision remove --yes x"),
        ("build -n", "`-n`", "provision plan"),
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


OTHER_VERBS = (
    *("job build --nodes 17", "job build --profile --site alcf-theta --gpus 3", "job build --script /nope"),
    *("job build --image foo", "job horovod --profile", "job single --nodes 2", "job image --stack tensorflow-2.15.1"),
    *("job overlay --watch-gpus", "job cray-ml-plugin --runtime venv", "job follow 7 --arch knl", "plan --submit"),
)
OTHER_MODES = (
    *("build --account me", "build --submit --plan x", "build --submit --events x", "plan --account me"),
    *("plan --profile --commands", "test --stack s tensorflow/2.21.0", "test --provided tensorflow/2.21.0"),
    "job lint x.sh --arch knl",
)
GPU_JOBS = {
    "job single --site sigma2-saga --arch accel --account me": (
        "--runtime modules --stack tensorflow-2.15.1",
        "--runtime venv --image x",
    ),
    "job single --site nyu-greene --arch gpu --account me": (
        "--runtime container --module nosuch/1.0 --no-gpu",
        "--runtime container --venv /x --no-gpu",
    ),
}
OTHER_RUNTIMES = tuple(f"{job} {more}" for job, options in GPU_JOBS.items() for more in options)


@pytest.mark.parametrize(
    "words",
    [
        "plan --arch cpu --arch gpu",
        "doctor --site local --site=nersc-cori",
        "job horovod --nodes 2 --nodes 3",
        "publish x --deprecate 2027-03-01 a --deprecate 2027-03-01 b",
    ],
)
def test_an_option_with_one_value_refuses_a_second(words: str, capsys: Captured) -> None:
    error = refused(capsys, *words.split())
    option = next(word for word in words.split() if word.startswith("--"))
    assert error["kind"] == "usage" and str(error["message"]).startswith(f"`{option}` has two values: ")


def test_the_same_value_twice_is_that_value(capsys: Captured) -> None:
    assert call("site", "show", "local", "--json", "--json") == 0
    assert call("plan", "--profile", "--site", "local", "--site=local") == 0


def test_each_arch_that_could_be_meant_is_named(capsys: Captured) -> None:
    site = ("--site", "nersc-cori")
    assert refused(capsys, "build", *site)["hint"] == (
        "add `--arch haswell` or `--arch knl`; or `--all-archs --submit`: a job for each"
    )
    assert refused(capsys, "plan", *site)["hint"] == "add `--arch haswell` or `--arch knl`"


@pytest.mark.parametrize("query", (*OTHER_VERBS, *OTHER_MODES, *OTHER_RUNTIMES))
def test_an_option_that_would_be_ignored_is_refused_with_what_takes_it(
    query: str, capsys: Captured, words: Words
) -> None:
    assert call(*query.split()) == 2
    out, err = capsys.readouterr()
    assert out == ""
    words(query.split()[0], err)


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
