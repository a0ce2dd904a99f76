"""`provision verify --loaded`: a shell is compared with the record of the environment that it loaded."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from golden_files import Words
from parts.records import make_record
from provision.cli import main
from provision.proof.loaded import judge_loaded

PREFIX = "/site/root/envs/knl/tensorflow/2.15.1-0123456789"
MODULES = ["gcc/12.2.0", "mpich/4.0.2", "tensorflow/2.15.1"]
IDENTITY = {"module environment": "OMP_NUM_THREADS=68 KMP_AFFINITY='granularity=fine,compact,1,0' NOTE='a b'"}
RECORD = make_record(prefix=PREFIX, modules=tuple(MODULES[:2]), identity=IDENTITY)
SHELL = {
    "LOADEDMODULES": ":".join(MODULES),
    "OMP_NUM_THREADS": "68",
    "KMP_AFFINITY": "granularity=fine,compact,1,0",
    "NOTE": "a b",
}


def failed_messages(environ: dict[str, str], python: str | None = f"{PREFIX}/bin/python") -> dict[str, str]:
    """The messages of the failed checks, by name. Each failed check must have a hint."""
    wrong = [check for check in judge_loaded(RECORD, environ, python) if not check.passed]
    assert all(check.hint for check in wrong)
    return {check.name: check.message for check in wrong}


def test_the_shell_of_the_proof_passes(words: Words) -> None:
    more = {**SHELL, "LOADEDMODULES": SHELL["LOADEDMODULES"] + ":git/2.4"}
    for shell in (SHELL, more):
        assert failed_messages(shell) == {}
        words("verify", "\n".join(check.message for check in judge_loaded(RECORD, shell, f"{PREFIX}/bin/python")))


@pytest.mark.parametrize(
    ("change", "name", "named"),
    [
        ({"LOADEDMODULES": "gcc/12.2.0:mpich/4.1.0:tensorflow/2.15.1"}, "modules", "mpich/4.0.2 (loaded: mpich/4.1.0)"),
        ({"LOADEDMODULES": "gcc/12.2.0:tensorflow/2.15.1"}, "modules", "mpich/4.0.2 (not loaded)"),
        ({"LOADEDMODULES": ""}, "modules", "gcc/12.2.0 (not loaded), mpich/4.0.2 (not loaded)"),
        ({"OMP_NUM_THREADS": "272"}, "variables", "OMP_NUM_THREADS is '272', was '68'"),
        ({"NOTE": None}, "variables", "NOTE "),
        ({"LD_PRELOAD": "/home/ada/lib.so"}, "nothing before it", "LD_PRELOAD=/home/ada/lib.so"),
    ],
)
def test_a_difference_fails_the_check_that_names_it(change: dict[str, str | None], name: str, named: str) -> None:
    shell = {variable: value for variable, value in {**SHELL, **change}.items() if value is not None}
    ((check, message),) = failed_messages(shell).items()
    assert check == name and named in message
    for python in (None, "/home/ada/conda/bin/python"):
        assert list(failed_messages(SHELL, python)) == ["python"]
    (wrong,) = (one for one in judge_loaded(RECORD, SHELL, "/tool/bin/python", tool="/tool/bin") if not one.passed)
    assert "remove `/tool/bin` from PATH" in (wrong.hint or "")


def test_a_shell_without_our_module_is_refused(capsys: pytest.CaptureFixture[str], words: Words) -> None:
    for options in (["--loaded"], []):
        assert main(["verify", *options]) == 2
        words("verify", capsys.readouterr().err)


def test_a_record_of_another_environment_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], words: Words
) -> None:
    monkeypatch.setenv("VIRTUAL_ENV", str(tmp_path))
    monkeypatch.setenv("PROVISION_ENVIRONMENT", RECORD.environment)
    assert main(["verify", "--loaded"]) == 2
    (tmp_path / ".provision").mkdir()
    (tmp_path / ".provision" / "record.json").write_text(json.dumps(make_record(environment="other").to_dict()))
    assert main(["verify", "--loaded"]) == 2
    said = capsys.readouterr().err
    assert said.count("`knl/tensorflow/2.15.1-0123456789`") == 2
    words("verify", said)
    (tmp_path / ".provision" / "record.json").write_text(json.dumps(RECORD.to_dict()))
    assert main(["verify", "--loaded"]) == 1
    assert "✗ modules" in capsys.readouterr().out
