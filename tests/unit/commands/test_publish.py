"""The verbs that change what users load: publish, unpublish, rollback."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from golden_files import Words
from parts.cli import call, envelope
from parts.json_page import faults
from parts.published import put_proved, put_unproved
from parts.records import store_here
from provision.machine.root.store import Store
from provision.model.layout import EnvironmentId

OLD = EnvironmentId("knl", "tensorflow", "2.21.0", "0000000000")
NEW = EnvironmentId("knl", "tensorflow", "2.21.0", "1111111111")
Captured = pytest.CaptureFixture[str]


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """The root of site `local`, with two proved environments of one module."""
    made = store_here()
    for env in (OLD, NEW):
        put_proved(made, env)
    return made


def test_publishing_and_going_back_print_what_changes(store: Store, capsys: Captured, words: Words) -> None:
    assert call("publish", "0000000000") == 0
    assert capsys.readouterr().out == "tensorflow/2.21.0: 2.21.0-0000000000\n"
    assert call("publish", str(NEW), "--dry-run") == 0
    assert store.pointers() == {"knl/tensorflow/2.21.0": str(OLD)}
    capsys.readouterr()
    assert call("publish", str(NEW)) == 0
    out, err = capsys.readouterr()
    assert "keras 3.0 to 3.1\n" in out
    assert out.endswith("\ntensorflow/2.21.0: 2.21.0-0000000000 -> 2.21.0-1111111111\n")
    words("publish", out)
    assert f'+setenv("PROVISION_ENVIRONMENT", "{NEW}")' in err, "the difference of the modulefiles comes first"
    assert call("rollback") == 0
    out = capsys.readouterr().out
    assert "knl" in out and "2 to 1" in out
    words("rollback", out)
    assert out.endswith("`provision rollback --arch knl --generation 2`\n")
    assert call("rollback", "--arch", "knl", "--generation", "2") == 0
    assert call("publish", str(NEW), "--default", "--deprecate", "2027-03-01", "load it") == 0
    assert call("publish", str(NEW), "--no-default") == 0
    capsys.readouterr()
    assert call("rollback", "--list") == 0
    listed = [line.partition(": publishes ")[2] for line in capsys.readouterr().out.splitlines()]
    assert listed == [str(OLD), str(NEW), f"{NEW} as default, deprecated", f"{NEW} as no longer default"]
    assert call("rollback", "--generation", "1") == 0
    assert store.pointers() == {"knl/tensorflow/2.21.0": str(OLD)}
    capsys.readouterr()
    assert call("unpublish", str(OLD), "--dry-run") == 0
    out = capsys.readouterr().out
    assert [name for name in ("would", "`knl`", "`tensorflow/2.21.0`", str(OLD)) if name not in out] == []
    words("unpublish", out)
    assert call("unpublish", str(OLD)) == 0
    assert store.pointers() == {}
    out = capsys.readouterr().out
    assert "would" not in out and f"`provision publish {OLD}`" in out
    words("unpublish", out)
    assert call("publish", str(OLD)) == 0


def test_their_json_is_as_documented(store: Store, capsys: Captured) -> None:
    for words in (
        ("publish", str(OLD)),
        ("publish", str(NEW), "--default"),
        ("rollback", "--dry-run"),
        ("rollback",),
        ("rollback", "--list"),
        ("unpublish", str(OLD)),
    ):
        code = call(*words, "--json")
        captured = capsys.readouterr()
        body = json.loads(captured.out)
        assert (code, faults(body["result"], words[0])) == (0, []), words


@pytest.mark.parametrize(
    ("command", "kind", "message"),
    [
        (("rollback",), "no-generation", ""),
        (("rollback", "--arch", "haswell"), "no-generation", "`haswell`"),
        (("unpublish", "0000000000"), "unpublished", f"`{OLD}` is not published"),
        (("publish", "0000000000", "--deprecate", "2027-02-30", "x"), "usage", "`2027-02-30`"),
        (("publish", "0000000000", "--deprecate", "2027-02-03", " "), "config", "`--deprecate`"),
        (("publish", "0000000000", "--hidden", "--visible"), "usage", "--hidden"),
        (("publish", "0000000000", "--force", "why"), "usage", "`--force`"),
        (("publish", "tensorflow/2.21.0"), "ambiguous-environment", "`tensorflow/2.21.0`"),
        (("rollback", "--generation", "0"), "usage", "`0`"),
        (("rollback", "--list", "--generation", "1"), "usage", "`--generation`"),
    ],
)
def test_a_bad_request_is_one_clear_error_and_changes_nothing(
    command: tuple[str, ...], kind: str, message: str, store: Store, capsys: Captured, words: Words
) -> None:
    assert call(*command, "--json") == 2
    error = envelope(capsys)["error"]
    assert (error["kind"], message in error["message"]) == (kind, True), error
    words(command[0], f"{error['message']}\nhint: {error['hint']}")
    assert store.pointers() == {}


def test_what_failed_its_proof_needs_a_reason_which_record_and_help_then_show(store: Store, capsys: Captured) -> None:
    failed = EnvironmentId("knl", "tensorflow", "2.22.0", "9999999999")
    put_unproved(store, failed, passed=False)
    assert call("publish", str(failed), "--json") == 1
    error = envelope(capsys)["error"]
    assert error["kind"] == "unproved"
    assert call("publish", str(failed), "--force", " ", "--json") == 2
    capsys.readouterr()
    assert store.pointers() == {}
    assert call("publish", str(failed), "--force", "rank 1 has a slow disk") == 0
    record = store.record(failed)
    assert record is not None
    assert record.forced == "rank 1 has a slow disk"
    text = (Path(store.layout.modules("knl")) / "lua/tensorflow/2.22.0.lua").read_text()
    assert "published by force  rank 1 has a slow disk" in text
    capsys.readouterr()
    call("show", str(failed))
    assert "rank 1 has a slow disk" in capsys.readouterr().out


def test_two_archs_need_a_name(store: Store, capsys: Captured) -> None:
    other = EnvironmentId("haswell", "tensorflow", "2.21.0", "0000000000")
    put_proved(store, other)
    assert call("publish", "0000000000", "--json") == 2
    assert envelope(capsys)["error"]["kind"] == "ambiguous-environment"
    for arch in ("knl", "haswell"):
        assert call("publish", "0000000000", "--arch", arch) == 0
    capsys.readouterr()
    assert call("rollback", "--json") == 2
    assert envelope(capsys)["error"]["kind"] == "ambiguous-arch"
