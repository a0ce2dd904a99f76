"""The command line: data on stdout and nothing else there, words on stderr, one envelope, exit codes that mean something."""

from __future__ import annotations

import importlib
import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from golden_files import Words
from parts.cli import call, envelope, run
from parts.json_page import faults
from parts.loops import for_each
from provision import __version__, cli
from provision.commands import PAGES, VERBS
from provision.commands.options import LEAVES
from provision.commands.options.declare import CommandOptions
from provision.commands.shared.parsers import parse
from provision.errors import EXIT_INTERRUPTED

Captured = pytest.CaptureFixture[str]
SRC = Path(cli.__file__).resolve().parent


# What is said of an example that is right, where what it names is not.
NOT_HERE = "there is no |users load no |no module of|nothing was published|cannot be read|is not the output folder"
# Verbs whose examples are not tried: they build, or ask the network.
TRY_NOTHING = ("build", "fetch", "lock", "upgrade", "spack", "data", "tensorboard", "example", "site")


def test_help_lists_every_verb_with_its_purpose(capsys: Captured) -> None:
    assert call("--help") == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert len(out.splitlines()) <= 40
    assert max(map(len, out.splitlines())) <= 80
    for page in PAGES:
        assert f"`provision help {page}`" in out
        assert call("help", page) == 0
        out += capsys.readouterr().out
    for verb, purpose in VERBS:
        assert len(re.findall(rf"^  {verb} +{re.escape(purpose)}$", out, re.MULTILINE)) == 1


@for_each("leaf", LEAVES, ids=lambda leaf: leaf.name)
def test_help_ends_with_examples_that_can_be_typed(
    leaf: CommandOptions, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What they name is not here, but no word of theirs is wrong."""
    (tmp_path / "train.py").write_text("import horovod.tensorflow as hvd\n")
    monkeypatch.chdir(tmp_path)
    assert 1 <= len(leaf.examples) <= 2
    shown = "".join(f"  {line}\n" for line in leaf.typed_examples)
    assert f"examples:\n{shown}" in run(*leaf.words, "--help").stdout
    for line in leaf.examples:
        typed = shlex.split(
            line.partition(" > ")[0].rpartition("(provision ")[2].rstrip(')"').replace("~", str(tmp_path))
        )
        args = parse(typed[0], typed[1:])
        if typed[0] not in TRY_NOTHING:
            done = run(*typed, *([] if args.json else ["--json"]))
            if done.returncode == 2:
                assert re.search(NOT_HERE, json.loads(done.stdout)["error"]["message"]), done.stdout


@pytest.mark.parametrize("words", ["job single", "job mirrored", "job multiworker", "job horovod", "build", "test"])
def test_help_leaves_what_few_need_to_help_all(words: str) -> None:
    first, whole = (
        re.findall(r"^  (-[\w-]+)", run(*words.split(), option).stdout, re.MULTILINE)
        for option in ("--help", "--help-all")
    )
    assert len(first) <= 25
    assert set(first) < set(whole)
    assert not {"--events", "--overlay"} & set(first)


@pytest.mark.parametrize("width", [40, 60, 200])
def test_help_fits_the_terminal_and_breaks_no_word(
    width: int, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    assert call("--help") == 0
    narrow = capsys.readouterr().out
    monkeypatch.setenv("COLUMNS", "80")
    assert call("--help") == 0
    assert narrow.split() == capsys.readouterr().out.split()
    assert max(map(len, narrow.splitlines())) <= width


def test_without_a_verb_the_help_is_talk(capsys: Captured) -> None:
    assert call() == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert "build and prove:" in err


def test_a_verb_is_not_abbreviated(capsys: Captured) -> None:
    assert call("li") == 2
    assert call("list", "--si", "local") == 2
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("words", [("--json", "list"), ("--site", "local", "list", "--json"), ("list", "--json")])
def test_an_option_may_stand_before_the_verb(words: tuple[str, ...], capsys: Captured) -> None:
    assert call(*words) == 0
    assert envelope(capsys)["verb"] == "list"


@pytest.mark.parametrize("words", [("-V",), ("--version",), ("version",), ("--version", "--nosuch")])
def test_the_version_is_asked_for_in_every_common_way(words: tuple[str, ...], capsys: Captured) -> None:
    assert call(*words) == 0
    assert capsys.readouterr() == (f"provision {__version__}\n", "")


@pytest.mark.parametrize(("words", "same"), [(("help",), ("--help",)), (("help", "build"), ("build", "--help"))])
def test_help_is_a_verb_too(words: tuple[str, ...], same: tuple[str, ...], capsys: Captured) -> None:
    assert call(*words) == 0
    out = capsys.readouterr().out
    assert call(*same) == 0
    assert capsys.readouterr().out == out


@pytest.mark.parametrize(("name", "value"), [("PROVISION_CONFIG", "/nosuch/folder"), ("PROVISION_INSTALLER", "pipp")])
def test_a_mistyped_variable_is_refused_and_not_passed_over(
    name: str, value: str, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    monkeypatch.setenv(name, value)
    assert call("list") == 2
    err = capsys.readouterr().err
    assert f"`{name}`" in err and f"`{value}`" in err


@pytest.mark.parametrize(
    ("typed", "hint"),
    [
        ("test --all --submit", "test --all"),
        ("test x --submit --no-wait --account=a", "test x"),
        ("upgrade tensorflow-2.21.0 --submit --account a", "upgrade tensorflow-2.21.0"),
        ("build --all-archs --submit --stack tensorflow-2.20.0", "build --stack tensorflow-2.20.0"),
    ],
)
def test_without_a_scheduler_the_hint_of_submit_is_the_command_that_runs_here(
    typed: str, hint: str, capsys: Captured
) -> None:
    assert call(*typed.split()) == 2
    err = capsys.readouterr().err
    assert "no scheduler" in err and err.endswith(f"\nhint: `provision {hint}`\n")


def test_without_a_site_where_slurm_answers_a_build_is_refused_and_a_look_noted(
    monkeypatch: pytest.MonkeyPatch, capsys: Captured, words: Words
) -> None:
    """A test with a real Slurm is in tests/real/test_build_slurm.py."""
    monkeypatch.delenv("PROVISION_SITE", raising=False)
    monkeypatch.setattr("provision.machine.probes.ask_scheduler.is_login_node", lambda: True)
    for looks in ("plan --profile", "compat"):
        assert call(*looks.split()) == 0
        note, *_ = capsys.readouterr().err.splitlines()
        assert note.startswith("note: ") and "`local`" in note and "`provision site list`" in note
        assert call(*looks.split(), "--site", "local") == 0
        assert "no site was named" not in capsys.readouterr().err
    assert call("upgrade", "tensorflow-2.21.0") == 2
    assert "no site was named" in capsys.readouterr().err
    assert call("build", "--json") == 2
    assert "no site was named" in json.loads(capsys.readouterr().out)["error"]["message"]
    assert call("build") == 2
    words("build", capsys.readouterr().err)


@pytest.mark.parametrize("words", [("help",), ("--help",), ("help", "list"), ("help", "users"), ("--version",)])
def test_help_and_version_are_the_same_with_json(words: tuple[str, ...], capsys: Captured) -> None:
    assert call(*words) == 0
    plain = capsys.readouterr().out
    assert [call(*words, "--json"), call("--json", *words)] == [0, 0]
    assert capsys.readouterr().out == 2 * plain
    assert call("--json") == 2
    assert "no verb is given" in json.loads(capsys.readouterr().out)["error"]["message"]


@for_each("leaf", LEAVES, ids=lambda leaf: leaf.name)
def test_every_verb_has_help_that_fits_and_takes_json(leaf: CommandOptions, capsys: Captured) -> None:
    for option in ("--help", "--help-all"):
        assert call(*leaf.words, option) == 0
        out, err = capsys.readouterr()
        assert out.startswith(f"usage: provision {leaf.name}")
        assert "--json" in out
        assert err == ""
        assert max(map(len, out.splitlines())) <= 80


@for_each("leaf", LEAVES, ids=lambda leaf: leaf.name)
def test_every_command_has_its_function(leaf: CommandOptions) -> None:
    module, _, name = leaf.run.partition(":")
    assert callable(getattr(importlib.import_module(f"provision.commands.{module}"), name))


def test_help_all_of_the_tool_and_of_a_verb_with_sub_verbs_is_help(capsys: Captured) -> None:
    assert call("--help-all") == 0
    out = capsys.readouterr().out
    assert [verb for verb, _ in VERBS if not re.search(rf"^  {verb} ", out, re.MULTILINE)] == []
    assert call("job", "--help-all") == 0
    assert "SUB-VERB" in capsys.readouterr().out


@for_each("leaf", LEAVES, ids=lambda leaf: leaf.name)
def test_an_unknown_option_is_a_wrong_request(leaf: CommandOptions, capsys: Captured, words: Words) -> None:
    assert call(*leaf.words, "--nosuch") == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert f"`provision {leaf.name}`" in err and "`--nosuch`" in err
    words(leaf.words[0], err.splitlines()[0])


@pytest.mark.parametrize("verb", sorted({leaf.words[0] for leaf in LEAVES if len(leaf.words) > 1}))
def test_a_verb_with_sub_verbs_lists_them(verb: str, capsys: Captured, words: Words) -> None:
    assert call(verb) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert f"`provision {verb}`" in err and "\n  one of: " in err
    words(verb, err)
    assert call(verb, "--help") == 0
    assert "SUB-VERB" in capsys.readouterr().out


def test_an_empty_root_is_listed_as_data(capsys: Captured, words: Words) -> None:
    assert call("list") == 0
    out, err = capsys.readouterr()
    assert os.environ["PROVISION_ROOT"] in out and "`provision build`" in out
    words("list", out)
    assert err == ""


def test_list_shows_unfinished_environments(capsys: Captured, words: Words) -> None:
    receipts = Path(os.environ["PROVISION_ROOT"]) / "envs/knl/tensorflow/2.15.1-0123456789/.provision/receipts"
    receipts.mkdir(parents=True)
    (receipts / "create.json").write_text('{"step": "create", "seconds": 1, "host": "n1"}')
    assert call("list", "--json") == 0
    (row,) = envelope(capsys)["result"]["environments"]
    assert (row["environment"], row["state"], row["steps"]) == (
        "knl/tensorflow/2.15.1-0123456789",
        "unfinished",
        ["create"],
    )
    assert call("show", "0123", "--json") == 0
    assert envelope(capsys)["result"]["state"] == "unfinished"
    assert call("show", "tensorflow/2.15.1") == 0
    assert "unfinished; done: create" in capsys.readouterr().out
    assert call("activate", "0123", "--json") == 1
    error = envelope(capsys)["error"]
    assert error["kind"] == "plan" and "`knl/tensorflow/2.15.1-0123456789`" in error["message"]
    words("activate", error["message"])


@pytest.mark.parametrize("verb", ["list", "plan", "show x", "activate x", "build", "job build", "job follow 1"])
def test_a_site_that_is_not_there_is_a_wrong_request_of_every_verb(verb: str, capsys: Captured, words: Words) -> None:
    assert call(*verb.split(), "--site", "lokal", "--json") == 2
    body = envelope(capsys)
    assert body["ok"] is False
    assert body["verb"] == verb.split()[0]
    assert body["error"]["kind"] == "unknown-site"
    assert "`lokal`" in body["error"]["message"] and "`local`" in body["error"]["message"]
    words(body["verb"], body["error"]["message"])
    assert body["error"]["exit_code"] == 2


def test_an_error_has_evidence_and_hint_on_stderr(capsys: Captured, words: Words) -> None:
    assert call("list", "--site", "lokal") == 2
    out, err = capsys.readouterr()
    assert out == ""
    first, second, *_ = err.splitlines()
    assert first.startswith("error: ") and "`lokal`" in first and "`local`" in first
    assert second.startswith("  known: ")
    words("list", first)
    assert "\n\nhint: " in err
    assert "\033" not in err


def test_faults_in_a_file_are_in_the_envelope(tmp_path: Path, capsys: Captured, words: Words) -> None:
    (tmp_path / "s.toml").write_text('name = "s"\nrooot = "/x"\n')
    assert call("list", "--site", str(tmp_path / "s.toml"), "--json") == 2
    error = envelope(capsys)["error"]
    assert any(line.startswith("root: ") for line in error["evidence"])
    assert any("did you mean `root`" in line for line in error["evidence"])
    words("site", "\n".join(error["evidence"]))


def test_a_log_is_explained(tmp_path: Path, capsys: Captured, words: Words) -> None:
    (tmp_path / "log").write_bytes(b"gcc \xff\nerror: write: No space left on device\n")
    assert call("explain", str(tmp_path / "log"), "--json") == 1
    result = envelope(capsys)["result"]
    assert faults(result, "explain") == []
    assert (result["verdict"], result["failure"]) == ("known", "disk-full")
    words("explain", result["cause"])
    assert result["line"] == {"number": 2, "text": "error: write: No space left on device"}
    assert result["source"] and result["hint"] and result["sureness"] == "sure"
    assert call("explain", str(tmp_path / "log")) == 1
    out = capsys.readouterr().out
    assert out.startswith("sure: ") and "\n  line 2: error: write: No space left on device\nhint: " in out


def test_an_unknown_failure_shows_its_lines_and_has_an_exit_code_of_its_own(
    tmp_path: Path, capsys: Captured, words: Words
) -> None:
    (tmp_path / "log").write_text("step 1\nError: see the log of rank 3\nbye\n")
    assert call("explain", str(tmp_path / "log")) == 3
    out = capsys.readouterr().out
    second = out.splitlines()[1]
    assert second == "  line 2: Error: see the log of rank 3"
    words("explain", out)


def test_what_followed_from_an_unknown_failure_is_shown_as_that(tmp_path: Path, capsys: Captured, words: Words) -> None:
    (tmp_path / "log").write_text("make: *** [all] Error 2\n")
    assert call("explain", str(tmp_path / "log")) == 3
    out = capsys.readouterr().out
    _, second, *rest = out.splitlines()
    assert second == "  line 1: make: *** [all] Error 2"
    words("explain", out)
    assert [line.split(":")[0] for line in rest] == ["hint"], "no heading without lines"
    assert call("explain", str(tmp_path / "log"), "--json") == 3
    result = envelope(capsys)["result"]
    assert (result["verdict"], result["failure"]) == ("unknown", None)
    assert [other["failure"] for other in result["others"]] == ["make-failed"]


def test_a_folder_or_the_number_of_a_job_stands_for_its_logs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PROVISION_ROOT", str(tmp_path / "root"))
    assert call("explain", ".", "--site", "local", "--json") == 2
    assert "no log of `.`" in envelope(capsys)["error"]["message"]
    (tmp_path / "slurm-4711.out").write_text(
        "slurmstepd: error: *** JOB 4711 ON n1 CANCELLED AT X DUE TO TIME LIMIT ***\n"
    )
    (tmp_path / "slurm-47110.out").write_text("OSError: [Errno 28] No space left on device\n")
    assert call("explain", "4711", "--site", "local", "--json") == 1
    result = envelope(capsys)["result"]
    assert (result["log"], result["failure"]) == ("slurm-4711.out", "time-limit")
    (tmp_path / "runs" / "4711").mkdir(parents=True)
    for folder in (str(tmp_path), "runs/4711"):
        assert call("explain", folder, "--site", "local", "--json") == 1
    assert call("explain", "4712", "--site", "local", "--json") == 2


def test_a_file_that_is_not_a_text_is_refused(tmp_path: Path, capsys: Captured) -> None:
    (tmp_path / "log").write_bytes(b"\x7fELF\x02\x01" + bytes(range(256)) * 40)
    assert call("explain", str(tmp_path / "log")) == 2
    assert "is not a text" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("command", "kind"),
    [
        ("audit", "usage"),
        ("audit --all --stack tensorflow-2.15.1", "usage"),
        ("audit x --all", "usage"),
        ("job build 7", "usage"),
        ("job follow", "usage"),
        ("job follow 7;reboot", "config"),
        ("job follow 1 --site local", "config"),
        ("test --all", "unpublished"),
        ("upgrade nothing", "unknown-stack"),
        ("upgrade tensorflow-2.21.0", "unpublished"),
        ("upgrade tensorflow-2.21.0 --undo", "no-generation"),
        ("upgrade tensorflow-2.21.0 --undo --submit", "usage"),
        ("upgrade tensorflow-2.21.0 --no-wait", "usage"),
        ("upgrade tensorflow-2.21.0 --locks x --recompile", "usage"),
        ("verify", "usage"),
        ("verify --all --loaded", "usage"),
        ("verify knl --all", "usage"),
        ("verify --loaded --hashes", "usage"),
    ],
)
def test_a_bad_request_is_one_clear_error_and_writes_nothing(
    command: str, kind: str, capsys: Captured, words: Words
) -> None:
    assert call(*command.split(), "--json") == 2
    error = envelope(capsys)["error"]
    assert error["kind"] == kind
    words(command.split()[0], error["message"])
    assert not Path(os.environ["PROVISION_ROOT"], "upgrades").exists()


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"identity": 3, "environment": ""}', "no json"])
def test_a_file_that_is_not_a_plan_is_a_wrong_request(text: str, tmp_path: Path, capsys: Captured) -> None:
    (tmp_path / "plan").write_text(text)
    assert call("build", "--plan", str(tmp_path / "plan"), "--json") == 2
    assert "is not a plan" in envelope(capsys)["error"]["message"]
    assert not Path(os.environ["PROVISION_ROOT"]).exists()


def test_a_plan_is_data_and_touches_nothing(capsys: Captured) -> None:
    code = call("plan", "--json")
    body = envelope(capsys)
    if code == 1:
        pytest.skip(f"this machine cannot plan: {body['error']['message']}")
    assert code == 0
    assert body["result"]["steps"][0]["name"] == "create"
    assert call("plan", "--commands") == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert body["result"]["prefix"] in out
    assert "--require-hashes" in out
    assert not Path(os.environ["PROVISION_ROOT"]).exists()


@pytest.mark.parametrize(
    "command",
    [("list",), ("site", "new", "ours"), ("test", "tensorflow/2.15.1"), ("build",), ("fetch",)],
    ids=lambda value: value[0],
)
def test_an_interruption_says_what_is_kept_and_what_to_do(
    command: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, capsys: Captured, words: Words
) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    for name in ("load_site", "load_profile"):
        monkeypatch.setattr(f"provision.machine.configuration.shipped.{name}", interrupted)
    assert call(*command, "--json") == EXIT_INTERRUPTED
    error = envelope(capsys)["error"]
    assert error["kind"] == "interrupted"
    words(command[0], f"{error['message']}\nhint: {error['hint']}")


def test_a_bug_is_reported_with_the_traceback_in_a_file(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: Captured, words: Words
) -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError("by nought")

    monkeypatch.setattr("provision.machine.configuration.shipped.load_site", broken)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert call("list", "--json") == 1
    error = envelope(capsys)["error"]
    assert error["kind"] == "bug"
    assert error["message"].endswith("ZeroDivisionError: by nought")
    words("list", error["message"])
    assert "Traceback" in Path(error["log"]).read_text()


def test_a_removed_working_directory_is_not_a_bug(tmp_path: Path) -> None:
    (tmp_path / "gone").mkdir()
    script = f'cd "{tmp_path}/gone"; rmdir "{tmp_path}/gone"; exec "{sys.executable}" -m provision list'
    environ = {**os.environ, "PYTHONPATH": str(SRC.parent)}
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=False, env=environ)
    assert "a bug in provision" not in done.stderr


def test_a_log_on_stdin_that_is_not_text_is_explained() -> None:
    argv, environ = [sys.executable, "-m", "provision", "explain", "-"], {**os.environ, "PYTHONUTF8": "1"}
    # PYTHONIOENCODING: what a UTF-8 locale gives; the C locale of containers hides it.
    environ["PYTHONIOENCODING"] = "utf-8:strict"
    done = subprocess.run(
        argv, input=b"gcc \xff\nNo space left on device\n", capture_output=True, check=False, env=environ
    )
    assert done.returncode == 1, done.stderr.decode()


def test_a_plan_that_plan_wrote_is_taken_by_build(
    tmp_path: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also one of an older version, with an operation that no version has any more: only what decides is compared."""
    from provision.commands import build

    steps = [{"name": "compile", "operations": [{"kind": "ResumeCompile", "folder": "/site/root/build/x", "key": "k"}]}]
    body = {"held": {"a": "1", "prefix": "/site/root/envs/x"}, "environment": "knl/t/1-0123456789", "steps": steps}
    (tmp_path / "plan.json").write_text(json.dumps({"schema": 1, "verb": "plan", "ok": True, "result": body}))
    assert build._expected(str(tmp_path / "plan.json")) == body["held"]
