"""Carries a plan out, step by step, with a receipt after each. The one interpreter of operations."""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

from provision import __version__
from provision.errors import CommandError, ProofError, ProvisionError, StoreError
from provision.launch.launchers import node_argv
from provision.machine.disk import disk_error, read_json, write
from provision.machine.failed_program import failed_program
from provision.machine.installed_packages import PackageCounter
from provision.machine.ranks import Ranks, loaded_environment, summary
from provision.machine.render_modulefile import emit_modulefile
from provision.machine.run import Result, stream
from provision.machine.source_tree import apply_patches, unpack
from provision.machine.store import Store
from provision.model.event import Event, Listener
from provision.model.layout import KINDS, modulefile_path
from provision.model.plan import (
    Command,
    FetchSource,
    Inspect,
    InstallWheel,
    KeepWheel,
    MakeReadable,
    Operation,
    Plan,
    Prove,
    Publish,
    Remove,
    Step,
    Unpack,
    WriteCandidate,
    WriteFile,
)
from provision.profile.site import Site
from provision.proof.inspection import judge_inspection
from provision.schedulers import job_here

COMPILER_ERROR = re.compile(r"^\s*\S+:\d+:\d+: (fatal )?error: ")
UNPROVED = "none yet: this is a candidate"


@dataclass(slots=True)
class Executor:
    """One run of one plan. `environ` has the arch's modules loaded; `lock` is handed on to every process started."""

    plan: Plan
    site: Site
    store: Store
    environ: Mapping[str, str]
    listen: Listener
    lock: int
    seconds: dict[str, float] = field(default_factory=dict)
    findings: dict[str, Any] = field(default_factory=dict)
    step: Step | None = None
    counter: PackageCounter | None = None

    def run(self) -> dict[str, Any]:
        """Carry out every step that is to be created; returns the record of the environment.

        Raises:
            ProvisionError: the first step that failed; what is done is kept, and nothing is published.
        """
        self.store.sweep(self.plan.prefix)
        for step in self.plan.steps:
            if step.action == "create":
                self._step(step)
        return self.store.record(self.plan.environment) or {}

    def _step(self, step: Step) -> None:
        self.step, self.findings, began = step, {}, time.monotonic()
        self.counter = self._count_packages(step)
        self.listen(Event(kind="started", step=step.name, text=step.title))
        try:
            self.log.parent.mkdir(parents=True, exist_ok=True)
            self.log.unlink(missing_ok=True)
            for operation in step.operations:
                self._operation(operation)
        except OSError as error:
            self._failed(step, began, disk_error(error, self.store.root))
            raise disk_error(error, self.store.root) from error
        except ProvisionError as error:
            self._failed(step, began, error)
            raise
        except KeyboardInterrupt:
            self.listen(Event(kind="failed", step=step.name, text="interrupted", seconds=time.monotonic() - began))
            raise
        spent = time.monotonic() - began
        self.seconds[step.name] = round(spent, 1)
        if step.name not in ("publish", "compile"):  # their proof is the pointer, and the wheel in the cache
            content = {"step": step.name, "seconds": round(spent, 1), "host": socket.gethostname(), **self.findings}
            self.store.receipt(self.plan.environment, step.name, content)
        size = f"{self.findings['bytes'] / 1e9:.1f} GB" if "bytes" in self.findings else ""
        self.listen(Event(kind="finished", step=step.name, text=size, seconds=spent))

    def _count_packages(self, step: Step) -> PackageCounter | None:
        """What counts the packages that the step installs: of several commands together."""

        def report(line: str) -> None:
            self.listen(Event(kind="progress", step=step.name, text=line))

        prefix = Path(self.plan.prefix)
        return PackageCounter(prefix=prefix, total=step.packages, report=report) if step.packages else None

    def _failed(self, step: Step, began: float, error: ProvisionError) -> None:
        self.listen(Event(kind="failed", step=step.name, text=error.message, seconds=time.monotonic() - began))

    @property
    def log(self) -> Path:
        """The log of the step at hand."""
        assert self.step is not None
        return Path(self.store.layout.log(self.plan.environment, self.step.name))

    def _operation(self, operation: Operation) -> None:
        match operation:
            case Command():
                self._command(operation)
            case WriteFile():
                write(Path(operation.path), operation.text, executable=operation.executable)
            case Remove():
                self.store.remove(operation.path)
            case FetchSource():
                self._fetch(operation)
            case Unpack():
                folder = Path(operation.folder)
                unpack(Path(operation.path), folder)
                apply_patches(folder, operation.patches, self.log)
            case KeepWheel():
                self.store.keep_wheel(operation.folder, operation.key, operation.abi)
            case InstallWheel():
                wheel = self.store.wheel(operation.key)
                self.findings["wheel"] = {"key": operation.key, "file": wheel.name}
                self._command(Command(argv=(*operation.command.argv, str(wheel))))
            case MakeReadable():
                self.findings["bytes"] = self.store.make_readable(operation.path)
            case Inspect():
                self._inspect(operation)
            case WriteCandidate():
                self._write_candidate()
            case Prove():
                self._prove(operation)
            case Publish():
                self._publish()

    def _command(self, command: Command) -> Result:
        result = self._run(command)
        if result.code:
            raise self._command_error(result)
        return result

    def _run(self, command: Command, *, quiet: bool = False) -> Result:
        environ = {**self.environ, **dict(command.environ)}
        environ["PATH"] = os.pathsep.join((*command.path, self.environ.get("PATH", "")))
        argv = command.argv if command.launcher is None else node_argv(command.launcher, command.argv, environ)
        assert self.step is not None
        name = self.step.name

        def progress(line: str) -> None:
            self.listen(Event(kind="progress", step=name, text=line))

        return stream(
            argv,
            environ=environ,
            log=self.log,
            keep_open=(self.lock,),
            on_line=None if quiet else progress,
            on_second=self.counter.look if self.counter else None,
            shown=argv[:1] + command.argv if command.launcher else None,
        )

    def _command_error(self, result: Result) -> CommandError:
        compiler = next((line.strip() for line in result.tail if COMPILER_ERROR.search(line)), None)
        what = f"`{Path(result.argv[0]).name}`" if result.argv[1:2] != ("-m",) else f"`{result.argv[2]}`"
        end = f"was ended by signal {-result.code}" if result.code < 0 else f"ended with code {result.code}"
        assert self.step is not None
        return failed_program(
            f"step `{self.step.name}` failed",
            result.tail,
            otherwise=compiler or f"{what} {end}",
            hint=f"read `{self.log}`, fix the cause, then run the same command again",
            log=str(self.log),
        )

    def _fetch(self, source: FetchSource) -> None:
        if self.store.downloads.has_source(source.path, source.hashes):
            return
        self._command(source.download)
        self.store.downloads.keep_source(source.folder, source.path, source.hashes)

    def _inspect(self, inspect: Inspect) -> None:
        result = self._command_or_report(inspect.command)
        try:
            report = json.loads(result.tail[-1])
        except (IndexError, ValueError) as error:
            raise self._command_error(result) from error
        checks = judge_inspection(report, inspect.expectation, os.path.realpath)
        self.findings.update(checks=[check.to_dict() for check in checks], versions=report.get("versions"))
        wrong = [check for check in checks if not check.passed]
        if wrong:
            raise ProvisionError(
                f"the environment is not what was planned: {wrong[0].name}",
                evidence=[f"{check.name}: {check.message}" for check in wrong],
                hint=next((check.hint for check in wrong if check.hint), f"read `{self.log}`"),
                log=str(self.log),
                kind="inspection",
            )

    def _command_or_report(self, command: Command) -> Result:
        """Run the inspection: it ends with an error when an import fails, and its report then says which and why."""
        return self._run(command, quiet=True)

    def _write_candidate(self) -> None:
        env, module = self.plan.environment, self.plan.modulefile
        for kind in KINDS:
            path = modulefile_path(self.store.layout.candidate(env, kind), kind, module.name, module.version)
            write(Path(path), emit_modulefile(module, kind, UNPROVED))
        write(Path(self.store.layout.story(env)) / "activate.sh", emit_modulefile(module, "sh", UNPROVED))

    def _prove(self, proof: Prove) -> None:
        env, module = self.plan.environment, self.plan.modulefile
        kind = "lua" if self.site.modules.name == "lmod" else "tcl"
        environ = loaded_environment(
            self.site.modules,
            Path(self.store.layout.candidate(env, kind)),
            f"{module.name}/{module.version}",
            Path(self.store.layout.story(env)) / "activate.sh",
            self.log,
        )
        ranks = Ranks(
            store=self.store,
            python=str(self.store.layout.prefix(env) / "bin" / "python"),
            proof=proof,
            environ=environ,
            log=self.log,
            listen=self.listen,
            into=Path(self.store.layout.story(env)),
            keep_open=(self.lock,),
        )
        result = ranks.prove()
        loaded = [name for name in result.modules if not name.startswith(f"{module.name}/")]
        if self.site.modules.name != "none" and not set(module.modules) <= set(loaded):
            missing = ", ".join(sorted(set(module.modules) - set(loaded)))
            raise ProofError(
                f"the modulefile does not load what the build did: {missing}", evidence=[f"loaded: {' '.join(loaded)}"]
            )
        self.findings["summary"] = summary(result.to_dict())

    def _publish(self) -> None:
        env, module, story = (
            self.plan.environment,
            self.plan.modulefile,
            Path(self.store.layout.story(self.plan.environment)),
        )
        verdict = read_json(story / "verdict.json")
        if verdict is None or not verdict["passed"]:
            raise StoreError(f"`{story / 'verdict.json'}` is missing or not a pass", hint="build again")
        proof = summary(verdict)
        receipts = {
            step: read_json(story / "receipts" / f"{step}.json") or {} for step in sorted(self.store.receipts(env))
        }
        record = {
            "schema": 1,
            "environment": str(env),
            "site": self.plan.site,
            "stack": self.plan.stack,
            "module": f"{module.name}/{module.version}",
            "prefix": self.plan.prefix,
            "modules": list(module.modules),
            "identity": dict(self.plan.identity),
            "wheel": self.plan.abi_key,
            "versions": receipts.get("inspect", {}).get("versions"),
            "checks": receipts.get("inspect", {}).get("checks"),
            "seconds": {**{name: content.get("seconds") for name, content in receipts.items()}, **self.seconds},
            "verdict": verdict,
            "proof": proof,
            "built": time.strftime("%Y-%m-%d %H:%M:%S"),
            "host": socket.gethostname(),
            "job": job_here(os.environ),
            "provision": __version__,
        }
        logs = Path(self.store.layout.log(env, "any")).parent
        shutil.copytree(logs, story / "logs", dirs_exist_ok=True)
        files = {
            str(modulefile_path(PurePosixPath(kind), kind, module.name, module.version)): emit_modulefile(
                module, kind, proof
            )
            for kind in KINDS
        }
        write(story / "activate.sh", emit_modulefile(module, "sh", proof))
        write(story / "record.json", json.dumps(record, indent=1) + "\n")
        self.store.publish(env, files)
        self.store.remove(str(Path(self.store.layout.candidate(env, "lua")).parent))
