"""The executor carries small plans out: each step leaves its receipt, its log and its events, and a failure keeps them."""

from __future__ import annotations

import dataclasses
import json
import os
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from golden_files import Words
from parts.plans import executor_of, make_module, plan_of, sh
from parts.records import ENVIRONMENT, PROOF
from provision.errors import CommandError, ProvisionError, StoreError
from provision.machine.install.executor import Executor
from provision.machine.root.sealing import read_description
from provision.machine.root.store import Store
from provision.model.event import Event
from provision.model.operation import Command, Expectation, Inspect, Operation, Publish, Seal, Together, WriteFile
from provision.model.plan import Step
from provision.model.record import Receipt

MODULE = make_module(ENVIRONMENT, "/p", prepend=(("PATH", "/p/bin"),), facts=(("python", "3.11"),))


@dataclasses.dataclass
class Run:
    """Executes steps in one root, and keeps the events."""

    store: Store
    events: list[Event] = dataclasses.field(default_factory=list)
    interrupt_at: str | None = None

    def listen(self, event: Event) -> None:
        """Keep an event; press Ctrl-C at the kind of event that is asked for."""
        self.events.append(event)
        if event.kind == self.interrupt_at:
            os.kill(os.getpid(), signal.SIGINT)

    def __call__(self, *steps: Step, **environ: str) -> Executor:
        """Execute a plan of these steps."""
        plan = plan_of(self.store, ENVIRONMENT, steps, identity={"python": "3.11.7"}, modulefile=MODULE)
        with self.store.held(Path(self.store.layout.lock(ENVIRONMENT)), {}) as lock:
            executor = executor_of(self.store, plan, lock, self.listen, environ)
            executor.run()
        return executor

    def log(self, step: str) -> str:
        """The log of a step."""
        return Path(self.store.layout.log(ENVIRONMENT, step)).read_text()

    def step_events(self) -> list[tuple[str, str]]:
        """The kinds and steps of the events, without progress."""
        return [(event.kind, event.step) for event in self.events if event.kind != "progress"]


@pytest.fixture
def run(store: Store) -> Run:
    """What executes steps."""
    return Run(store)


def step(name: str, *operations: Operation, action: Any = "create") -> Step:
    """A step of these operations."""
    return Step(name=name, title=f"the {name}", action=action, reason="there is none", operations=operations)


def test_every_step_leaves_a_log_a_receipt_and_two_events(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "made" / "file"
    done = run(step("create", sh("echo hello")), step("write", WriteFile(path=str(file), text="x", executable=True)))
    assert "hello\n" in run.log("create")
    assert file.read_text() == "x"
    assert os.access(file, os.X_OK)
    receipts = run.store.read_receipts(ENVIRONMENT)
    assert set(receipts) == {"create", "write"}
    assert receipts["create"].seconds == done.seconds["create"]
    assert run.step_events() == [
        ("started", "create"),
        ("finished", "create"),
        ("started", "write"),
        ("finished", "write"),
    ]
    assert [event.text for event in run.events if event.kind == "progress"] == ["hello"]


@pytest.mark.parametrize("failing", ["horovod", "inspect"])
def test_the_record_has_the_seconds_of_a_step_that_an_interrupted_build_compiled(failing: str, run: Run) -> None:
    put_verdict(run.store, PROOF.to_dict())
    steps = {"compile": sh("sleep 0.2"), "horovod": sh("true"), "inspect": sh("true"), failing: sh("exit 1")}
    with pytest.raises(CommandError):
        run(*(step(name, command) for name, command in steps.items()))
    run(step("compile", action="reuse"), step("horovod"), step("inspect"), step("publish", Seal()))
    record = run.store.record(ENVIRONMENT)
    assert record is not None
    assert record.seconds["compile"] >= 0.2
    assert set(record.seconds) == {"compile", "horovod", "inspect"}


def test_the_first_step_describes_what_is_built_for_hints(run: Run) -> None:
    records = Path(run.store.layout.records_folder(ENVIRONMENT))
    with pytest.raises(CommandError):
        run(step("create", sh(f"mkdir -p {records}")), step("install", sh("exit 3")))
    assert read_description(run.store, ENVIRONMENT).stack == "tensorflow-2.15.1"


def test_a_step_that_is_kept_is_not_carried_out(run: Run) -> None:
    run(step("create", sh("echo no"), action="keep"), step("wheel", sh("echo no"), action="reuse"), step("last"))
    assert run.step_events() == [("started", "last"), ("finished", "last")]
    assert set(run.store.read_receipts(ENVIRONMENT)) == {"last"}


def test_a_command_gets_the_environment_of_the_arch_and_its_own(run: Run, tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    tool = tmp_path / "bin" / "tool"
    tool.write_text('#!/bin/sh\necho "$FROM_ARCH-$OWN"\n')
    tool.chmod(0o755)
    run(step("create", sh("tool", path=(str(tool.parent),), environ=(("OWN", "own"),))), FROM_ARCH="arch")
    assert "arch-own\n" in run.log("create")


def test_a_command_that_fails_stops_the_plan_and_keeps_what_is_done(run: Run, words: Words) -> None:
    script = "echo working; echo 'x.cc:3:7: error: no such type'; exit 3"
    with pytest.raises(CommandError) as caught:
        run(step("create"), step("compile", sh(script)), step("last"))
    assert "`compile`" in caught.value.message and caught.value.message.endswith("`x.cc:3:7`: no such type")
    words("build", caught.value.message)
    assert caught.value.log == str(run.store.layout.log(ENVIRONMENT, "compile"))
    assert run.step_events() == [
        ("started", "create"),
        ("finished", "create"),
        ("started", "compile"),
        ("failed", "compile"),
    ]
    assert run.events[-1].text == caught.value.message
    assert set(run.store.read_receipts(ENVIRONMENT)) == {"create"}


@pytest.mark.parametrize(("script", "named"), [("exit 3", "code 3"), ("kill -9 $$", "signal 9")])
def test_a_silent_failure_names_the_exit_code(run: Run, script: str, named: str, words: Words) -> None:
    with pytest.raises(CommandError, match=f"`create` .*`sh` .*{named}") as caught:
        run(step("create", sh(script)))
    words("build", caught.value.message)


def together(first: str, second: str) -> Together:
    """Two scripts that run at the same time."""
    return Together(commands=(("compile", sh(first)), ("compile-b", sh(second))))


def test_programs_run_together_each_with_its_own_log(run: Run, tmp_path: Path) -> None:
    """Each waits for a file that the other writes."""
    script = "echo {0}; touch {0}; until [ -e {1} ]; do sleep 0.02; done"
    a, b = tmp_path / "a", tmp_path / "b"
    run(step("compile", together(script.format(a, b), script.format(b, a))))
    assert str(a) in run.log("compile").splitlines() and str(b) in run.log("compile-b").splitlines()
    assert [event.text for event in run.events if event.kind == "progress"] == [str(a)], "the lines of one are shown"
    assert set(run.store.read_receipts(ENVIRONMENT)) == {"compile"}


@pytest.mark.parametrize("fails", ["compile", "compile-b"])
def test_a_program_that_fails_is_named_and_stops_the_one_beside_it(run: Run, fails: str) -> None:
    scripts = {"compile": "echo $$; exec sleep 60", "compile-b": "echo $$; exec sleep 60"} | {
        fails: "echo 'x.c:3:7: error: no such type'; exit 3"
    }
    (other,) = scripts.keys() - {fails}
    with pytest.raises(CommandError) as caught:
        run(step("compile", together(*scripts.values())), step("last"))
    assert f"step `{fails}` failed" in caught.value.message
    assert caught.value.log == str(run.store.layout.log(ENVIRONMENT, fails))
    shown, pid, end = run.log(other).splitlines()[:3]
    assert "sleep 60" in shown and end.startswith("# interrupted after")
    assert not Path("/proc", pid).exists()
    assert run.step_events() == [("started", "compile"), ("failed", "compile")]
    assert run.store.read_receipts(ENVIRONMENT) == {}


def test_an_interruption_ends_all_programs_that_run_together(run: Run) -> None:
    run.interrupt_at = "progress"
    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        run(step("compile", together("echo $$; exec sleep 60", "echo $$; exec sleep 60")))
    assert time.monotonic() - began < 30
    assert (run.events[-1].kind, run.events[-1].text) == ("failed", "interrupted")
    for log in ("compile", "compile-b"):
        _, *pids, end = run.log(log).splitlines()  # the second may end before it has printed its own
        assert end.startswith("# interrupted after") and not any(Path("/proc", pid).exists() for pid in pids)


def test_a_second_run_of_a_step_begins_a_new_log(run: Run) -> None:
    for word in ("first", "second"):
        run(step("create", sh(f"echo {word}")))
    assert "first" not in run.log("create")


def test_an_interruption_is_an_event_and_leaves_no_receipt(run: Run) -> None:
    run.interrupt_at = "progress"
    with pytest.raises(KeyboardInterrupt):
        run(step("create", sh("echo working; sleep 30")))
    assert (run.events[-1].kind, run.events[-1].text) == ("failed", "interrupted")
    assert run.store.read_receipts(ENVIRONMENT) == {}


def inspection(report: dict[str, Any] | str) -> Inspect:
    """An inspection whose program prints this."""
    text = report if isinstance(report, str) else json.dumps(report)
    command = Command(argv=("/bin/sh", "-c", 'echo talk; printf "%s\\n" "$1"', "sh", text))
    return Inspect(
        command=command, expectation=Expectation(framework="tensorflow", versions=(), mpi_libraries=(), allowed=("/",))
    )


def test_an_inspection_leaves_its_checks_and_versions_in_the_receipt(run: Run) -> None:
    run(step("inspect", inspection({"versions": {"tensorflow": "2.15.1"}, "mapped_objects": ["/lib/libc.so"]})))
    receipt = run.store.read_receipts(ENVIRONMENT)["inspect"]
    assert receipt.details["versions"] == {"tensorflow": "2.15.1"}
    assert "imports" in {check["name"] for check in receipt.details["checks"]}
    assert not [event for event in run.events if event.kind == "progress"], "a report is not for people"


def test_an_environment_that_is_not_what_was_planned_stops_the_build(run: Run, words: Words) -> None:
    with pytest.raises(ProvisionError, match="imports") as caught:
        run(step("inspect", inspection({"errors": {"import tensorflow": "no"}, "mapped_objects": ["/lib/libc.so"]})))
    assert caught.value.kind == "inspection"
    words("build", caught.value.message)
    with pytest.raises(CommandError, match="step `inspect` failed"):
        run(step("inspect", inspection("no report")))


def put_verdict(store: Store, content: dict[str, Any] | None) -> None:
    """What the proof wrote."""
    records = Path(store.layout.records_folder(ENVIRONMENT))
    records.mkdir(parents=True, exist_ok=True)
    if content is not None:
        (records / "verdict.json").write_text(json.dumps(content))


def test_publishing_writes_the_record_from_the_receipts_and_the_verdict(run: Run) -> None:
    put_verdict(run.store, PROOF.to_dict())
    run.store.write_receipt(ENVIRONMENT, Receipt(step="install", seconds=7, host="n1"))
    run(step("inspect", inspection({"versions": {"tensorflow": "2.15.1"}, "mapped_objects": ["/lib/x"]})))
    run(step("publish", Seal(), Publish()))
    record = run.store.record(ENVIRONMENT)
    assert record is not None
    assert record.verdict == PROOF
    assert record.proof == PROOF.summary
    assert record.versions == {"tensorflow": "2.15.1"}
    assert (record.seconds["install"], set(record.seconds)) == (7, {"install", "inspect"})
    assert record.built.endswith("+00:00")
    assert run.store.pointers() == {"knl/tensorflow/2.15.1": str(ENVIRONMENT)}
    modules = Path(run.store.layout.modules("knl"))
    assert PROOF.summary in (modules / "lua" / "tensorflow" / "2.15.1.lua").read_text()
    assert "publish" not in run.store.read_receipts(ENVIRONMENT), "the pointer says it"


FAILED = {"name": "reports", "passed": False, "message": "none"}


@pytest.mark.parametrize(
    "content",
    [
        None,
        {},
        {**PROOF.to_dict(), "schema": 9},
        {**PROOF.to_dict(), "checks": []},
        {**PROOF.to_dict(), "checks": [FAILED], "passed": False},
        {**PROOF.to_dict(), "checks": [FAILED], "passed": True},
    ],
    ids=["none", "empty", "other schema", "no checks", "failed", "edited"],
)
def test_nothing_is_published_without_a_verdict_that_passed(run: Run, content: dict[str, Any] | None) -> None:
    put_verdict(run.store, content)
    with pytest.raises(StoreError, match=r"verdict\.json"):
        run(step("publish", Seal(), Publish()))
    assert run.store.pointers() == {}
    assert run.store.record(ENVIRONMENT) is None
