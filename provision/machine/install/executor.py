"""Carries a plan out, step by step, with a receipt after each. The one interpreter of operations."""

from __future__ import annotations

import contextlib
import os
import re
import socket
import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from provision.errors import CommandError, ProofError, ProvisionError
from provision.knowledge.frameworks import FRAMEWORKS
from provision.launch.launchers import node_argv
from provision.machine.files.archives import unpack
from provision.machine.files.disk import disk_errors, json_object, sync_file_system, write, write_json
from provision.machine.files.file_tree import links_of, links_out
from provision.machine.install.packing import pack
from provision.machine.install.ranks import Ranks, loaded_environment
from provision.machine.install.read_objects import inspect_objects
from provision.machine.install.source_tree import apply_patches, place_data
from provision.machine.install.spack_steps import check_lock, run_spack, try_mpi
from provision.machine.network.ask_index import hidden_answers
from provision.machine.network.fetching import fetch_packages
from provision.machine.probes.installed_packages import PackageCounter
from provision.machine.programs.failed_program import failed_program
from provision.machine.programs.installer_environ import installer_environ
from provision.machine.programs.run import Result, stream
from provision.machine.programs.secrets_here import secrets_here
from provision.machine.root.publishing import Publisher
from provision.machine.root.sealing import seal, write_candidate
from provision.machine.root.store import Store
from provision.machine.sharing.locks import HeldLock
from provision.model import operation as op
from provision.model.child_environ import Needs
from provision.model.event import Event, Listener
from provision.model.plan import Description, Plan, Step
from provision.model.record import Receipt
from provision.profile.site import Site
from provision.proof.inspection import judge_inspection

COMPILER_ERROR = re.compile(r"^\s*\S+:\d+:\d+: (fatal )?error: ")
# Operations whose programs write to the prefix; a proof and an inspection only read it.
BY_PROGRAMS = (op.Command, op.Together, op.InstallWheel, op.RunSpack, op.Pack, op.Prove)
UNPROVED = "none yet: this module is a candidate"


@dataclass(frozen=True, slots=True, kw_only=True)
class StepRun:
    """One step while it is carried out: its log, and what its operations find out for the receipt."""

    step: Step
    log: Path
    listen: Listener
    counter: PackageCounter | None = None
    """Of the packages that the step installs, over all its commands."""
    details: dict[str, Any] = field(default_factory=dict)
    stop: threading.Event = field(default_factory=threading.Event)
    """Set when the programs of the step are to end, because one that ran beside them failed."""

    def each_second(self) -> None:
        """Count the packages, and end the program that runs if it is to end.

        Raises:
            KeyboardInterrupt: it is to end.
        """
        if self.stop.is_set():
            raise KeyboardInterrupt
        if self.counter:
            self.counter.look()

    def progress(self, line: str) -> None:
        """Report a line of a program."""
        self.listen(Event(kind="progress", step=self.step.name, text=line))


@dataclass(slots=True)
class Executor:
    """One run of one plan. `environ` has the arch's modules loaded; every process started is marked by the `lock`."""

    plan: Plan
    site: Site
    store: Store
    environ: Mapping[str, str]
    listen: Listener
    lock: HeldLock
    seconds: dict[str, float] = field(default_factory=dict)

    def run(self) -> None:
        """Carry out every step that is to be created.

        Raises:
            ProvisionError: the first step that failed; finished steps are kept, and nothing is published.
        """
        env, layout = self.plan.environment, self.store.layout
        for path in (layout.prefix(env), layout.build(env)):
            self.store.shared.make(Path(path.parent))
        self.store.sweep(env)
        for step in self.plan.steps:
            if step.action == "create":
                self.lock.refuse_lost()
                self._step(step)

    def _step(self, step: Step) -> None:
        began = time.monotonic()
        log = Path(self.store.layout.log(self.plan.environment, step.name))
        run = StepRun(step=step, log=log, listen=self.listen)
        if step.packages:
            counter = PackageCounter(prefix=Path(self.plan.prefix), total=step.packages, report=run.progress)
            run = replace(run, counter=counter)
        self.listen(Event(kind="started", step=step.name, text=step.title))
        try:
            with disk_errors(self.store.root):
                self.store.shared.make(log.parent)
                self.store.remove(str(log))
                for operation in step.operations:
                    self._operation(run, operation)
                if step.name != "publish":  # it is done if the record and the pointer exist
                    self._write_receipt(run, began)
        except ProvisionError as error:
            _note_error(log, error)
            self._failed(step, began, error.message)
            raise
        except KeyboardInterrupt:
            self._failed(step, began, "interrupted")
            raise
        spent = time.monotonic() - began
        self.seconds.setdefault(step.name, round(spent, 1))
        size = f"{run.details['bytes'] / 1e9:.1f} GB" if "bytes" in run.details else ""
        self.listen(Event(kind="finished", step=step.name, text=size, seconds=spent))

    def _write_receipt(self, run: StepRun, began: float) -> None:
        """Write the receipt of a step when everything that the step wrote is on the disk.

        What we write ourselves is there already, see `disk.write`; what programs wrote is not.
        """
        began_sync, prefix = time.monotonic(), Path(self.plan.prefix)
        operations = run.step.operations
        # A step that keeps a wheel wrote to the cache, which is on the disk.
        keeps = any(isinstance(operation, op.KeepWheel) for operation in operations)
        if not keeps and any(isinstance(operation, BY_PROGRAMS) for operation in operations):
            sync_file_system(prefix if prefix.is_dir() else self.store.root)
            run.details["sync_s"] = round(time.monotonic() - began_sync, 3)
        now = time.monotonic()
        receipt = Receipt(
            step=run.step.name, seconds=round(now - began, 1), host=socket.gethostname(), details=run.details
        )
        self.seconds[run.step.name] = receipt.seconds
        self.store.write_receipt(self.plan.environment, receipt)
        self._describe(again=False)

    def _failed(self, step: Step, began: float, text: str) -> None:
        self.listen(Event(kind="failed", step=step.name, text=text, seconds=time.monotonic() - began))

    def _say(self, text: str) -> None:
        self.listen(Event(kind="say", text=text))

    def _operation(self, run: StepRun, operation: op.Operation) -> None:
        match operation:
            case op.Command():
                self._command(run, operation)
            case op.Together():
                self._together(run, operation.commands)
            case op.WriteFile():
                write(Path(operation.path), operation.text, executable=operation.executable)
            case op.Remove():
                self.store.remove(operation.path)
            case op.FetchSource():
                self._fetch(run, operation)
            case op.Unpack():
                unpack(Path(operation.path), Path(operation.folder), without_top=True)
                apply_patches(Path(operation.folder), operation.patches, run.log)
            case op.KeepWheel():
                self.store.wheels.keep(operation.folder, operation.key, operation.abi)
            case op.InstallWheel():
                wheel = self.store.wheels.find(operation.key)
                run.details["wheel"] = {"key": operation.key, "file": wheel.name}
                self._command(run, op.Command(argv=(*operation.command.argv, str(wheel))))
            case op.MakeReadable():
                run.details["bytes"] = self.store.make_readable(operation.path)
            case op.PlaceData():
                place_data(Path(operation.site_packages))
            case op.FetchLock():
                if operation.sha256 not in self.store.downloads.fetched():
                    run.progress(f"fetching {Path(operation.path).name}")
                    fetch_packages(self.store, operation)
            case op.RunSpack():
                run_spack(operation, run.step.name, self.environ, self.lock.environ, run.log, self.listen)
            case op.CheckSpackLock():
                check_lock(operation)
            case op.TryMpi():
                try_mpi(operation, {**self.environ, **self.lock.environ}, run.log)
            case op.Inspect():
                self._inspect(run, operation)
            case op.Pack():
                environ, env = self._environ(op.Command(argv=())), self.plan.environment
                run.details.update(pack(self.store, env, operation, environ, run.log, run.progress))
            case op.WriteCandidate():
                write_candidate(self.store, self.plan.environment, self.plan.modulefile, UNPROVED, UNPROVED)
                self._describe()
            case op.Prove():
                self._prove(run, operation)
            case op.Seal():
                self._seal()
            case op.Publish():
                self._publish()

    def _command(self, run: StepRun, command: op.Command) -> None:
        # Horovod's build is one of those that ask no index: code of a package runs there.
        result = self._run(run, command, needs="nothing" if "--no-index" in command.argv else "index")
        if result.code:
            tail = (*result.tail, *hidden_answers(result.argv, self._environ(command), result.tail))
            raise command_error(run, replace(result, tail=tail))

    def _together(self, run: StepRun, commands: Sequence[tuple[str, op.Command]]) -> None:
        """Run commands at the same time, each in a thread. Signals reach only this one, which then stops the others."""
        runs = [run]
        for name, _ in commands[1:]:
            log = run.log.with_name(f"{name}.log")
            self.store.remove(str(log))
            runs.append(replace(run, step=replace(run.step, name=name), log=log, listen=lambda event: None))
        with ThreadPoolExecutor(len(runs)) as pool:
            try:
                left = {pool.submit(self._command, one, named[1]) for one, named in zip(runs, commands, strict=True)}
                while left:
                    # A wait without an end can miss a signal that comes as it begins.
                    ended, left = wait(left, timeout=0.5, return_when=FIRST_COMPLETED)
                    for one in ended:
                        one.result()
            except BaseException:
                run.stop.set()
                raise

    def _environ(self, command: op.Command) -> dict[str, str]:
        environ = {**self.store.installer_caches(), **self.environ, **dict(command.environ), **self.lock.environ}
        environ["PATH"] = os.pathsep.join((*command.path, self.environ.get("PATH", "")))
        return installer_environ(environ)

    def _run(self, run: StepRun, command: op.Command, *, quiet: bool = False, needs: Needs = "nothing") -> Result:
        environ = self._environ(command)
        argv = command.argv if command.launcher is None else node_argv(command.launcher, command.argv, environ)
        return stream(
            argv,
            environ=environ,
            log=run.log,
            needs=needs,
            on_line=None if quiet else run.progress,
            on_second=run.each_second,
            shown=argv[:1] + command.argv if command.launcher else None,
        )

    def _fetch(self, run: StepRun, source: op.FetchSource) -> None:
        if self.store.downloads.has_source(source.path, source.hashes):
            return
        self._command(run, source.download)
        self.store.downloads.keep_source(source.folder, source.path, source.hashes)

    def _inspect(self, run: StepRun, inspect: op.Inspect) -> None:
        # The program fails if an import fails; its report then contains the import and the reason.
        result = self._run(run, inspect.command, quiet=True)
        try:
            report = json_object(result.tail[-1].encode())
        except (IndexError, ValueError) as error:
            raise command_error(run, result) from error
        prefix = Path(self.plan.prefix)
        links = list(links_out(prefix, links_of(prefix), str(self.store.layout.spack_store)))
        checks = judge_inspection(report, inspect.expectation, os.path.realpath, links)
        checks = (*checks, *inspect_objects(report, self.plan, inspect, self.environ))
        mapped = [path for path in report.get("mapped_objects") or () if isinstance(path, str) and path.startswith("/")]
        outside = sorted({path for path in mapped if not path.startswith(f"{self.plan.prefix}/")})
        if before := run.details.get("checks", []):
            title = FRAMEWORKS[inspect.expectation.framework].title
            checks = tuple(replace(check, name=f"{title}: {check.name}") for check in checks)
            outside = sorted({*run.details["libraries"], *outside})
        run.details.update(
            checks=[*before, *(check.to_dict() for check in checks)],
            versions={**(report.get("versions") or {}), **(run.details.get("versions") or {})},
            libraries=outside,
        )
        wrong = [check for check in checks if not check.passed]
        if wrong:
            raise ProvisionError(
                f"the environment differs from the plan: {wrong[0].name}",
                evidence=[f"{check.name}: {check.message}" for check in wrong],
                hint=next((check.hint for check in wrong if check.hint), f"read `{run.log}`"),
                log=str(run.log),
                kind="inspection",
            )

    def _describe(self, *, again: bool = True) -> None:
        """Write what `publish`, and hints before it, need to know of the environment; without `again` only if it is missing."""
        path = Path(self.store.layout.records_folder(self.plan.environment)) / "description.json"
        if self._is_mine() and (again or not path.exists()):
            plan = self.plan
            description = Description(
                site=plan.site, stack=plan.stack, wheel=plan.abi_key, wheels=plan.wheels, modulefile=plan.modulefile
            )
            write_json(path, description.to_dict())

    def _prove(self, run: StepRun, proof: op.Prove) -> None:
        env, module = self.plan.environment, self.plan.modulefile
        kind = self.site.modules.module_kind
        environ = loaded_environment(
            self.site.modules,
            Path(self.store.layout.candidate(env, kind)),
            f"{module.name}/{module.version}",
            Path(self.store.layout.records_folder(env)) / "activate.sh",
            run.log,
        )
        ranks = Ranks(
            store=self.store,
            python=str(self.store.layout.prefix(env) / "bin" / "python"),
            proof=proof,
            environ={**environ, **self.lock.environ},
            log=run.log,
            listen=self.listen,
            into=Path(self.store.layout.records_folder(env)),
        )
        result = ranks.prove()
        loaded = [name for name in result.modules if not name.startswith(f"{module.name}/")]
        if self.site.modules.name != "none" and not set(module.modules) <= set(loaded):
            missing = ", ".join(sorted(set(module.modules) - set(loaded)))
            raise ProofError(
                f"the modulefile does not load all modules of the build: {missing}",
                evidence=[f"loaded: {' '.join(loaded)}"],
            )
        run.details["summary"] = result.summary

    def _seal(self) -> None:
        if self.store.record(self.plan.environment) is None:
            self._describe()
            path = Path(self.store.layout.records_folder(self.plan.environment)) / "plan.json"
            write_json(path, dict(self.plan.identity))  # the record is made of it
            seal(self.store, self.plan.environment, seconds=self.seconds, environ=self.environ, say=self._say)

    def _publish(self) -> None:
        env, publisher = self.plan.environment, Publisher(self.store)
        _, _, lines = publisher.preview(env)
        for line in lines:
            self._say(line)
        publisher.publish(env)
        if self._is_mine():
            self.store.remove(str(Path(self.store.layout.candidate(env, "lua")).parent))

    def _is_mine(self) -> bool:
        """Whether the records of the environment can be written: if another admin built it, they stay as they are."""
        return os.access(self.store.layout.records_folder(self.plan.environment), os.W_OK)


def _note_error(log: Path, error: ProvisionError) -> None:
    """Write the error of a step to its log, so that `provision explain ENVIRONMENT` finds what no program printed there."""
    with contextlib.suppress(OSError), log.open("a", encoding="utf-8") as file:
        file.write(secrets_here().hide("\n".join(("", *error.to_lines(), ""))))


def command_error(run: StepRun, result: Result) -> CommandError:
    """The error of a step one of whose programs failed."""
    compiler = next((line.strip() for line in result.tail if COMPILER_ERROR.search(line)), None)
    what = f"`{Path(result.argv[0]).name}`" if result.argv[1:2] != ("-m",) else f"`{result.argv[2]}`"
    end = f"was ended by signal {-result.code}" if result.code < 0 else f"ended with code {result.code}"
    return failed_program(
        f"step `{run.step.name}` failed",
        result.tail,
        otherwise=compiler or f"{what} {end}",
        hint=f"read `{run.log}`, fix the cause, then run the same command again",
        log=str(run.log),
    )
