"""Runs the proof: ranks train in the environment of the modulefile that users will load, and a judge reads their reports."""

from __future__ import annotations

import dataclasses
import os
import shlex
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from provision.errors import CommandError, ConfigError, ProofError
from provision.knowledge.whole_numbers import whole_number
from provision.launch.launchers import launch_argv, select_rank_environ
from provision.launch.modules import activate_script, load_script
from provision.machine.files.disk import read_json, write_json
from provision.machine.install.packing import shared_python
from provision.machine.network.data_files import choose_data
from provision.machine.probes.loaded_modules import environment_after, unloaded
from provision.machine.programs.failed_program import diagnose, failed_program
from provision.machine.programs.run import Result, capture, stream
from provision.machine.root.image_only import is_image_only
from provision.machine.root.store import Store
from provision.model.event import Event, Listener
from provision.model.operation import Prove
from provision.model.quoting import bash
from provision.model.verdict import ProofResult, Reads, Verdict
from provision.profile.module_system import ModuleSystem
from provision.proof.lookups import TRACED, count_reads
from provision.proof.strategies import STRATEGIES, imported_by, judge, name_trainers, retry_arguments, stall_of

# An import under strace takes 5 to 10 s, and ten times that on slow cores; a job must not lose its proof by waiting for it.
LONGEST_COUNT_S = 180


def loaded_environment(
    system: ModuleSystem, modulepath: Path, module: str, activate: Path, log: Path
) -> dict[str, str]:
    """The environment of a user who loads `module` from `modulepath`, or sources `activate` if the site has no modules.

    Raises:
        ProofError: it cannot be loaded; the evidence is the output of the module system.
    """
    script: str = activate_script(str(activate))
    by_hand: str = bash(". %s", str(activate))
    if system.name != "none":
        script = load_script(system, (module,), extra_path=(str(modulepath),))
        by_hand = system.load_command(str(modulepath), module)
    try:
        return environment_after(script, unloaded(system))
    except CommandError as error:
        failure = f"the candidate of `{module}` cannot be loaded"
        raise ProofError(failure, evidence=error.evidence[:8], hint=f"`{by_hand}`", log=str(log)) from error


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranks:
    """Starts the ranks of a proof in an environment; their reports and log are written to `into` and `log`."""

    store: Store
    python: str
    """The interpreter that has the framework."""
    proof: Prove
    environ: Mapping[str, str]
    log: Path
    listen: Listener
    into: Path

    def prove(self) -> ProofResult:
        """Train and judge. The verdict is written to `into`, passed or failed.

        Raises:
            ProofError: no rank reported, or the proof failed.
        """
        data = choose_data(Path(self.store.layout.data), self.proof.program)
        training = next(training for training in self.proof.training if training.data == data.name)
        arguments = (
            *("--data", str(data.path), "--epochs", str(training.epochs), "--batch-size", str(training.batch_size)),
            *("--learning-rate", str(training.learning_rate)),
        )
        return self._all((self.proof, *self.proof.others), arguments, data.name, training.min_accuracy)

    def prove_numbers(self) -> ProofResult:
        """The numerical proof: gradients, weights, optimizers and callbacks compared with one process on the whole batch.

        Raises:
            ConfigError: the stack's program has no ranks of Horovod, whose numbers can be compared.
            ProofError: no rank reported, or the proof failed.
        """
        programs = [(one, STRATEGIES[one.strategy].numbers) for one in (self.proof, *self.proof.others)]
        if programs[0][1] is None:
            raise ConfigError(
                f"the numerical proof needs ranks of Horovod, but this stack's proof is `{self.proof.strategy}`",
                hint="leave `--thorough` out",
            )
        proofs = [
            dataclasses.replace(one, program=str(Path(one.program).with_name(f"{numbers}.py")))
            for one, numbers in programs
            if numbers
        ]
        return self._all(proofs, (), "generated numbers", 0.0)

    def _all(self, proofs: Sequence[Prove], arguments: tuple[str, ...], data: str, min_accuracy: float) -> ProofResult:
        """One after the other, for one verdict, which is written after each."""
        proved: ProofResult | None = None
        for proof in proofs:
            proved = self._run(proof, arguments, data, min_accuracy, proved)
        assert proved is not None
        return proved

    def _run(
        self, proof: Prove, arguments: tuple[str, ...], data: str, min_accuracy: float, before: ProofResult | None
    ) -> ProofResult:
        """One program, judged, and joined to what was proved `before`."""
        arguments = (*arguments, *STRATEGIES[proof.strategy].arguments(proof))
        began = time.monotonic()
        out = self.into / (f"proof-{proof.strategy}" if before else "proof")
        argv, result, reports = self._start(proof, arguments, proof.timeout_s, out)
        retry = retry_arguments(proof)
        stalled = stall_of(reports) if retry else None
        if stalled:
            self.listen(Event(kind="progress", step="proof", text=f"{stalled}; once more with {retry[-1]}"))
            set_aside = out.with_name(f"{out.name}-stalled")
            self.store.remove(str(set_aside))
            out.rename(set_aside)
            left_s = max(1, proof.timeout_s - int(time.monotonic() - began))
            argv, result, reports = self._start(proof, (*arguments, *retry), left_s, out)
        if not reports:
            raise no_report_error(result, proof, str(self.log))
        verdict = judge(proof, reports, min_accuracy, stalled)
        proved = ProofResult(
            verdict=verdict,
            data=data,
            trained_by=name_trainers(proof, verdict.figures.gpus, stalled),
            command=argv,
            modules=tuple(filter(None, self.environ.get("LOADEDMODULES", "").split(":"))),
            seconds=time.monotonic() - began,
            date=time.strftime("%Y-%m-%d", time.gmtime()),
        )
        if verdict.passed and not result.code and before is None:
            files = None if is_image_only(Path(self.python).parent.parent) else self._reads(proof, ())
            image = (
                self._reads(proof, ("env", f"SLURM_JOB_ID=lookups-{os.getpid()}", proof.deliver))
                if proof.deliver
                else None
            )
            figures = dataclasses.replace(verdict.figures, reads_files=files, reads_image=image)
            proved = dataclasses.replace(proved, verdict=dataclasses.replace(verdict, figures=figures))
        # A numerical proof has the title of the program whose numbers it is about.
        titles = {STRATEGIES[one.strategy].numbers: one.title for one in self.proof.others}
        proved = before.join(titles.get(proof.strategy, proof.title), proved) if before else proved
        write_json(self.into / "verdict.json", proved.to_dict())
        if not verdict.passed or result.code:
            raise failed_proof_error(verdict, result, proof, str(self.log))
        return proved

    def _reads(self, proof: Prove, before: tuple[str, ...]) -> Reads | None:
        """What one process looks up and reads when it imports the packages; `before` are the words that start it.

        It has a mount of its own: `provision-deliver` shares one among the processes of a job, and the proof may still use it.
        None if a node has no `strace`, or may not use it.
        """
        prefix, trace = Path(self.python).parent.parent, self.into / "lookups.strace"
        program = (*before, self.python, "-c", f"import {', '.join(imported_by(proof))}")
        traced = ("-f", "-qq", "-y", "-s", "0", "-e", f"trace={TRACED}", "-o", str(trace), *program)
        shape = dataclasses.replace(proof, nodes=1, ranks_per_node=1)
        shared = [str(path) for path in (self.store.root, self.store.root.resolve(), shared_python(prefix)) if path]
        try:
            limit_s = min(proof.timeout_s, LONGEST_COUNT_S)
            # The kernel then stops at these calls only. strace has it from 5.3 on.
            done = capture(self._argv(shape, "strace", "--seccomp-bpf", *traced), self.environ, limit_s)
            if done.returncode:
                done = capture(self._argv(shape, "strace", *traced), self.environ, limit_s)
            with trace.open(errors="replace") as lines:
                reads = count_reads(lines, shared, proof.ranks_per_node, joins=bool(before))
            return None if done.returncode else reads
        except (CommandError, OSError) as error:
            self.listen(Event(kind="progress", step="proof", text=f"look-ups were not measured: {error}"))
            return None
        finally:
            trace.unlink(missing_ok=True)

    def _cpus(self, proof: Prove) -> int:
        """The CPUs of a rank: the plan's, or a share of what this job has on a node if a person asked for fewer; 0: not given.

        Slurm's srun refuses a step that is larger than its job.
        """
        here = whole_number(self.environ.get("SLURM_CPUS_ON_NODE", "")) or 0
        fits = not here or proof.cpus_per_task * proof.ranks_per_node <= here
        return proof.cpus_per_task if fits else max(1, here // proof.ranks_per_node)

    def _argv(self, proof: Prove, *program: str) -> tuple[str, ...]:
        """The command that runs a program in the shape of the proof."""
        return launch_argv(
            proof.launcher,
            program,
            nodes=proof.nodes,
            ranks_per_node=proof.ranks_per_node,
            cpus=self._cpus(proof),
            environ=select_rank_environ(self.environ),
            mpiexec=proof.mpiexec,
        )

    def _start(
        self, proof: Prove, arguments: tuple[str, ...], timeout_s: int, out: Path
    ) -> tuple[tuple[str, ...], Result, list[dict[str, Any]]]:
        """Run the program as the proof's processes; the command, how it ended, and their reports in `out`."""
        self.store.remove(str(out))
        out.mkdir(parents=True)
        argv = self._argv(
            proof,
            *([proof.deliver] if proof.deliver else []),
            *(self.python, "-u", proof.program, "--out", str(out)),
            *(("--gpu",) if proof.gpu else ()),
            *arguments,
        )
        result = stream(
            argv,
            environ=self.environ,
            log=self.log,
            timeout_s=timeout_s,
            on_line=lambda line: self.listen(Event(kind="progress", step="proof", text=line)),
        )
        return argv, result, read_reports(out)


def read_reports(folder: Path) -> list[dict[str, Any]]:
    """The reports that ranks wrote to a folder; damaged ones are omitted."""
    return [report for report in map(read_json, sorted(folder.glob("report-*.json"))) if report is not None]


def no_report_error(result: Result, proof: Prove, log: str) -> ProofError:
    """The error for a proof without a single report."""
    time_limit = f" in {proof.timeout_s} s" if result.timed_out else ""
    return failed_program(
        f"no rank reported{time_limit}: `{result.argv[0]}` ended with code {result.code}",
        result.tail,
        hint=f"run it yourself: `{shlex.join(result.argv)}`",
        log=log,
        error=ProofError,
    )


def failed_proof_error(verdict: Verdict, result: Result, proof: Prove, log: str) -> ProofError:
    """The error for a failed proof; its first failed check is the likeliest cause.

    If ranks died without a report of an error, the log may contain the cause.
    """
    failures, diagnosis = verdict.failures, diagnose(result.tail)
    died = bool(failures) and failures[0].name == "reports"
    cause, hint = (diagnosis.cause, diagnosis.hint) if died else (None, None)
    evidence = [f"{check.name}: {check.message}" for check in failures]
    if result.timed_out:
        evidence.insert(0, f"stalled: ended after {proof.timeout_s} s")
    elif result.code and not failures:
        evidence += [f"every check passed, but the launcher ended with code {result.code}", *diagnosis.evidence]
    elif result.code:
        evidence += list(diagnosis.evidence)
    what = cause or (failures[0].name if failures else "launcher")
    hint = hint or next((check.hint for check in failures if check.hint), None)
    return ProofError(
        f"the ranks did not prove the environment, nothing is published: {what}",
        evidence=evidence,
        hint=hint or f"read `{log}`",
        log=log,
    )
