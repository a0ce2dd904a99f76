"""docs/reference/json.md is true: what the verbs print, and what lies on the disk, has the keys and types of its tables."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, get_args

import pytest

from parts.cli import answer
from parts.json_page import PAGE, faults, section
from parts.records import ENVIRONMENT, PROOF, make_record, put_published, store_here
from provision.commands.options import LEAVES
from provision.errors import ErrorKind, Fault, FaultKind, JobError, LintError, ProvisionError, StoreError
from provision.machine.root.store import Store
from provision.model.event import Event, emit_event, error_event
from provision.model.record import Receipt

Captured = pytest.CaptureFixture[str]


def test_a_difference_from_a_table_is_a_fault() -> None:
    good = make_record().to_dict()
    assert faults(good, "Record") == []
    assert faults({**good, "more": 1}, "Record") == ["`more` is not in the table"]
    assert faults({**good, "prefix": None}, "Record") == ["`prefix` is null"]
    assert faults({**good, "prefix": 1}, "Record") == ["`prefix` is 1, not a string"]
    del good["prefix"]
    assert faults(good, "Record") == ["`prefix` is missing"]


def test_every_kind_of_error_is_in_the_table() -> None:
    listed = re.findall(r"^\| `([\w-]+)` \| (?!string|list|number|object|boolean)", section("Errors"), re.MULTILINE)
    assert sorted(listed) == sorted(get_args(ErrorKind))


def test_every_kind_of_problem_is_listed() -> None:
    assert all(f"`{kind}`" in section("Problems") for kind in get_args(FaultKind))


def test_what_lies_on_the_disk_is_as_documented() -> None:
    assert faults(PROOF.to_dict(), "Verdict") == []
    assert all(faults(check.to_dict(), "Check") == [] for check in PROOF.verdict.checks)
    details = {"wheel": {}, "bytes": 1, "checks": [], "versions": None, "summary": "x"}
    assert faults(Receipt(step="x", seconds=1, host="n", details=details).to_dict(), "Receipt") == []


def test_errors_and_problems_are_as_documented() -> None:
    fault = Fault("limit", "nodes", "too many")
    errors: list[ProvisionError] = [
        StoreError("x", faults=[fault]),
        JobError("x", state="FAILED", cause=StoreError("y").to_dict()),
        JobError("x", state="FAILED"),
        LintError("x", findings=[{}]),
    ]
    assert [faults(error.to_dict(), "Errors") for error in errors] == [[], [], [], []]
    assert faults(fault.to_dict(), "Problems") == []


def test_events_are_as_documented() -> None:
    events = [
        Event(kind="plan", environment="x", steps=(("a", "b", "create"),), expected=(("a", 1.0),)),
        Event(kind="failed", step="a", text="b", seconds=1.5),
        error_event(StoreError("x")),
    ]
    assert [faults(json.loads(emit_event(event)), "Events") for event in events] == [[], [], []]


def printed(capsys: Captured, *words: str) -> tuple[int, dict[str, Any]]:
    """The exit code and the envelope of a verb."""
    code, body = answer(capsys, *words)
    assert faults(body, "The envelope") == []
    return code, body


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """The root of site `local`, with one published environment."""
    store = store_here()
    put_published(store, modules=())
    return store


def test_list_is_as_documented(store: Store, capsys: Captured) -> None:
    code, body = printed(capsys, "list")
    (row,) = body["result"]["environments"]
    assert (code, row["environment"], row["state"]) == (0, str(ENVIRONMENT), "published")
    assert faults(row, "list") == []
    (Path(store.layout.records_folder(ENVIRONMENT)) / "record.json").write_text('{"schema": 1}')
    (row,) = printed(capsys, "list")[1]["result"]["environments"]
    assert row["state"] == "broken"
    assert faults(row, "list") == []


@pytest.mark.usefixtures("store")
def test_show_and_activate_are_as_documented(capsys: Captured) -> None:
    _, body = printed(capsys, "show", str(ENVIRONMENT))
    assert body["result"].pop("state") == "published"
    assert body["result"].pop("marks") == {}
    assert body["result"].pop("advisories").startswith("none known")
    assert faults(body["result"], "Record") == []
    _, body = printed(capsys, "activate", str(ENVIRONMENT))
    assert faults(body["result"], "activate") == []


def test_a_difference_that_verify_finds_is_a_result(
    store: Store, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PROVISION_ENVIRONMENT", str(ENVIRONMENT))
    monkeypatch.setenv("VIRTUAL_ENV", str(store.layout.prefix(ENVIRONMENT)))
    code, body = printed(capsys, "verify", "--loaded")
    assert (code, body["ok"]) == (1, False)
    assert faults(body["result"], "verify") == []
    assert all(faults(check, "Check") == [] for check in body["result"]["checks"])


@pytest.mark.parametrize(
    ("words", "kind"),
    [
        (("list", "--site", "nosuch"), "unknown-site"),
        (("list", "--nosuch"), "usage"),
        (("plan", "--arch", "nosuch"), "unknown-arch"),
        (("plan", "--stack", "nosuch"), "unknown-stack"),
        (("show", "nosuch"), "unknown-environment"),
        (("verify", "--loaded"), "config"),
    ],
)
@pytest.mark.usefixtures("store")
def test_a_wrong_request_has_a_stable_kind(words: tuple[str, ...], kind: str, capsys: Captured) -> None:
    code, body = printed(capsys, *words)
    assert (code, body["ok"], body["error"]["kind"]) == (2, False, kind)
    assert faults(body["error"], "Errors") == []


def test_every_verb_has_a_heading() -> None:
    headings = set(", ".join(re.findall(r"^### (.+)$", PAGE, re.MULTILINE)).split(", "))
    assert {command.name for command in LEAVES} <= headings


IMAGE = ("--image", "docker://tensorflow/tensorflow:2.15.0-gpu")
SITE = ("--site", "nersc-perlmutter", "--arch", "gpu", "--account", "m1")


@pytest.mark.parametrize(
    ("title", "words"),
    [
        ("plan by profile", ("plan", "--profile", "--site", "alcf-polaris", "--account", "me")),
        ("stack list", ("stack", "list")),
        ("site list", ("site", "list")),
        ("site show", ("site", "show", "nersc-perlmutter")),
        ("site check", ("site", "check", "nersc-perlmutter")),
        ("completion", ("completion", "bash")),
        ("job build", ("job", "build", "--profile", "--site", "alcf-theta", "--arch", "knl", "--account", "me")),
        ("job single", ("job", "single", *SITE)),
        ("job mirrored", ("job", "mirrored", *SITE)),
        ("job multiworker", ("job", "multiworker", *SITE)),
        ("job horovod", ("job", "horovod", *SITE)),
        ("job overlay", ("job", "overlay", "--site", "nyu-greene", "--arch", "gpu", "--account", "me")),
        ("job image", ("job", "image", "--site", "nyu-torch", "--arch", "h200", "--account", "me", *IMAGE)),
    ],
)
@pytest.mark.usefixtures("store")
def test_what_a_verb_prints_is_as_documented(title: str, words: tuple[str, ...], capsys: Captured) -> None:
    code, body = printed(capsys, *words)
    assert code == 0, body
    assert faults(body["result"], title) == []


@pytest.mark.usefixtures("store")
def test_a_plan_and_the_doctors_observations_are_as_documented(capsys: Captured) -> None:
    assert faults(printed(capsys, "plan")[1]["result"], "plan") == []
    result = printed(capsys, "doctor")[1]["result"]
    assert faults(result, "doctor") == []
    assert result["observations"]
    assert all(faults(one, "Doctor's observations") == [] for one in result["observations"])


@pytest.mark.usefixtures("store")
def test_what_the_linter_finds_is_as_documented(tmp_path: Path, capsys: Captured) -> None:
    script = tmp_path / "job.sh"
    script.write_text("#!/bin/bash\n#SBATCH --nodes=1\nset -euo pipefail\necho\n")
    assert faults(printed(capsys, "job", "lint", str(script))[1]["result"], "job lint") == []
    script.write_text("#!/bin/bash\necho\n#SBATCH --nodes=1\n")
    error = printed(capsys, "job", "lint", str(script))[1]["error"]
    assert error["kind"] == "lint"
    assert all(faults(finding, "Lint findings") == [] for finding in error["findings"])


def test_a_pushed_data_set_and_a_new_profile_are_as_documented(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    (tmp_path / "x").write_text("data")
    body = printed(capsys, "data", "push", str(tmp_path / "x"), "--site", "sigma2-saga")[1]
    assert faults(body["result"], "data push") == []
    body = printed(capsys, "data", "pull", "runs/4711", "--site", "sigma2-saga")[1]
    assert faults(body["result"], "data pull") == []
    monkeypatch.setenv("PROVISION_CONFIG", str(tmp_path))
    assert faults(printed(capsys, "site", "new", "ours")[1]["result"], "site new") == []


def test_a_scaling_table_is_as_documented(tmp_path: Path, capsys: Captured) -> None:
    record = {"kind": "mirrored", "program": "train.py", "nodes": 1, "tasks": 1, "cpus": 8, "gpus": 1, "seconds": 9}
    (tmp_path / "run.json").write_text(json.dumps(record))
    assert faults(printed(capsys, "scaling", str(tmp_path))[1]["result"], "scaling") == []
