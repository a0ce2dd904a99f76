"""`provision test ENV`: run the proof of a published environment again, for example after an upgrade of the site.

`--all` proves all of them, with `--submit` in one job for each arch; `--provided` the framework of the site's own modules.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from provision.commands.shared.environments import arch_of, find_environment, published_record, read_store
from provision.commands.shared.following import follow_jobs
from provision.commands.shared.hints import complete_error
from provision.commands.shared.outcome import Args, Outcome
from provision.commands.shared.target import make_target
from provision.commands.shared.typos import refuse_other_than_one, refuse_submit, refuse_unused
from provision.errors import EXIT_FAILED, EXIT_JOB_LEFT, EXIT_OK, ConfigError, PlanError, ProvisionError, UsageError
from provision.jobs.build_job import proof_script
from provision.knowledge.frameworks import TITLES
from provision.machine.configuration import shipped
from provision.machine.files.disk import exists, write
from provision.machine.install.ranks import Ranks, loaded_environment
from provision.machine.probes.provided import provided_environment
from provision.machine.programs.shell import environ, which
from provision.machine.root.completing import needed_subject
from provision.machine.root.entries import read_proofs
from provision.machine.root.event_file import to_all, to_file
from provision.machine.root.store import Store
from provision.machine.submission.render_jobs import render_build_job
from provision.machine.submission.submit import submit, submitter
from provision.machine.terminal.console import say, say_error
from provision.machine.terminal.progress_lines import listener, shown_as_step, shown_step
from provision.model.event import Event, Listener, error_event
from provision.model.layout import DELIVER, EnvironmentId
from provision.model.verdict import ProofResult
from provision.profile.site import Site
from provision.proof.history import judge_history, proof_table
from provision.proof.proof_shape import prove_operation
from provision.schedulers import scheduler_for
from provision.wording import add_arch, count


@dataclass(slots=True, kw_only=True)
class Again:
    """One environment that is proved again: its arch in the profile, the proofs before, the new one or why there is none."""

    environment: EnvironmentId
    arch: str
    earlier: tuple[ProofResult, ...]
    proof: ProofResult | None = None
    error: ProvisionError | None = None
    job: str | None = None

    @property
    def state(self) -> str:
        """What became of it, in a word."""
        if self.proof is not None and self.proof.verdict.passed:
            return "worse" if self.proof.findings else "passed"
        return "submitted" if self.job and not self.error and self.proof is None else "failed"

    def to_dict(self) -> dict[str, Any]:
        """This proof as plain JSON values."""
        return {
            "environment": str(self.environment),
            "arch": self.arch,
            "state": self.state,
            "verdict": self.proof.to_dict() if self.proof else None,
            "error": self.error.to_dict() if self.error else None,
            "job": self.job,
        }


def run(args: Args) -> Outcome:
    """Load the module, train and judge; the verdict is written to the environment's `.provision/tests/`."""
    hint = (
        "`provision list` lists the environments; `--all` proves all that users load; "
        "`--provided --arch ARCH` tests the site's own modules"
    )
    refuse_other_than_one(args, "--all", "--provided", hint=hint)
    if args.stack and not args.provided:
        raise ConfigError(
            "`--stack` needs `--provided`: an environment has its own stack",
            hint=f"`provision test {args.environment or '--all'}`",
        )
    if args.provided:
        refuse_unused(args, "`--provided` is given", "--submit", "--no-wait", "--events")
    if not args.submit:
        refuse_unused(args, "`--submit` is not given", "--no-wait", "--account")
    site = shipped.load_site(args.site)
    refuse_submit(args, site)
    if args.all or args.submit or args.events:
        return prove_all(args, site)
    env: EnvironmentId | None = None
    earlier: tuple[ProofResult, ...] = ()
    with listener() as listen:
        if args.provided:
            what, ranks = _provided(args, site, listen)
        else:
            store = read_store(site)
            env = find_environment(store, args.environment, args.arch, site=site)
            what, ranks, earlier = str(env), ranks_of(site, store, env, listen), read_proofs(store, env)
        title = f"the {'numerical ' * args.thorough}proof of {what}"
        with shown_as_step(listen, "proof", title):
            proof = ranks.prove_numbers() if args.thorough else ranks.prove()
    if env is not None:
        proof = judged(site, env, ranks, proof, earlier)
    if args.thorough:
        checks = proof.verdict.checks
        skipped = sum(check.skipped for check in checks)
        summary = (
            f"{count(len(checks) - skipped, 'check')} on {count(ranks.proof.processes, 'rank')}, {skipped} skipped, "
        )
        summary += f"in {proof.seconds:.0f} s\n"
        summary += "\n".join(f"  {check.name}: {check.message}" for check in checks)
    else:
        summary = proof.summary
    lines = [f"passed: {summary}", *(f"finding: {finding}" for finding in proof.findings)]
    result = {"environment": what, "verdict": proof.to_dict(), "folder": str(ranks.into)}
    return Outcome(text="\n".join(lines), result=result, exit_code=EXIT_FAILED if proof.findings else EXIT_OK)


def _provided(args: Args, site: Site, listen: Listener) -> tuple[str, Ranks]:
    target = make_target(site, args.arch, args.stack)
    arch, store = target.arch, target.store
    if not arch.provided:
        raise ConfigError(
            f"site `{site.name}` does not provide {TITLES} for arch `{arch.name}`",
            evidence=[f"`archs.{arch.name}.provided` in `{site.origin}` is empty"],
            hint=f"list the modules there, or run `provision build --site {site.typed} --arch {arch.name}`",
        )
    refuse_outside_job(site, None)
    environ = provided_environment(site, arch)
    python = which("python", path=environ.get("PATH")) or which("python3", path=environ.get("PATH"))
    if python is None:
        raise PlanError(
            f"there is no python on PATH with {' '.join(arch.provided)}",
            hint="add the module that provides Python to `provided`",
        )
    proof = prove_operation(site, arch, target.stack, str(shipped.PACKAGE / "proof" / "programs"), "")
    into = store.make_test_folder(Path(store.layout.provided(arch.name)))
    # Our modulefile would set the variables of the arch; the site's modules do not.
    return " ".join(arch.provided), Ranks(
        store=store,
        python=python,
        proof=proof,
        environ={**environ, **dict(arch.environ)},
        log=into / "proof.log",
        listen=listen,
        into=into,
    )


def prove_all(args: Args, site: Site) -> Outcome:
    """Prove every environment that users load, of all archs or of one, or the one that was named.

    Raises:
        ConfigError: users load none, or several archs would have to be proved on this node.
        PlanError: this is not a job, or the environment is not published.
    """
    store = read_store(site)
    if args.environment:
        env = find_environment(store, args.environment, args.arch, site=site)
        published_record(store, env, site, "provision test %s")
        archs = {env: arch_of(site, env).name}
    else:
        arch = site.arch(args.arch).name if args.arch else None
        loaded = map(EnvironmentId.parse, sorted(set(store.pointers().values())))
        known = {env: of.name for env in loaded if (of := site.arch_built_as(env.arch))}  # of another, its arch is gone
        archs = {env: name for env, name in known.items() if arch in (None, name)}
    wanted = [Again(environment=env, arch=name, earlier=read_proofs(store, env)) for env, name in archs.items()]
    if not wanted:
        raise ConfigError(
            "users load no environment" + (f" of arch `{args.arch}`" if args.arch else "") + f" below `{store.root}`",
            hint="`provision list` shows what is there",
            kind="unpublished",
        )
    if args.submit:
        return _in_jobs(args, site, store, wanted)
    refuse_outside_job(site, args.environment or "--all")
    several = list(dict.fromkeys(archs.values()))
    if len(several) > 1 and site.scheduler.name != "none":
        raise ConfigError(
            f"users load environments of several archs: {', '.join(several)}",
            hint=f"{add_arch(several)}, or `--submit`: one job for each arch",
            kind="ambiguous-arch",
        )
    with listener() as listen, to_file(Path(args.events)) if args.events else contextlib.nullcontext() as write_event:
        _prove_here(args, site, store, wanted, to_all(listen, write_event) if write_event else listen)
    return _outcome(wanted)


def _prove_here(args: Args, site: Site, store: Store, wanted: Sequence[Again], listen: Listener) -> None:
    """Prove one after the other; one that fails stops no other."""
    steps = tuple((str(one.environment), f"the proof of {one.environment}", "create") for one in wanted)
    listen(Event(kind="plan", steps=steps))
    for one, (name, title, _) in zip(wanted, steps, strict=True):
        try:
            with shown_step(listen, name, title):
                ranks = ranks_of(site, store, one.environment, listen)
                proof = ranks.prove_numbers() if args.thorough else ranks.prove()
            one.proof = judged(site, one.environment, ranks, proof, one.earlier)
        except ProvisionError as error:
            if error.kind == "interrupted":
                raise
            one.error = complete_error(error, needed_subject(store, str(one.environment), site))
    failed = next((one.error for one in wanted if one.error), None)
    if failed is not None:
        listen(error_event(failed))


def _in_jobs(args: Args, site: Site, store: Store, wanted: Sequence[Again]) -> Outcome:
    """Submit one job for each arch, follow all of them, and read what they proved."""
    if args.thorough:
        raise UsageError("a job of `--submit` runs the same proof as a build", hint="leave `--thorough` out")
    jobs: dict[str, str] = {}
    for arch in dict.fromkeys(one.arch for one in wanted):
        ours = [one for one in wanted if one.arch == arch]
        try:
            records = [store.record(one.environment) for one in ours]
            stacks = [shipped.load_stack(record.stack) for record in records if record]
            only = str(ours[0].environment) if args.environment else None
            script = proof_script(site, site.arch(arch), stacks, submitter(store), args.account, only)
            jobs[arch] = submit(render_build_job(script, "test"), store)
            say(f"{arch}: submitted job {jobs[arch]} for {only or f'{len(ours)} of the environments'}")
        except ProvisionError as error:
            for one in ours:
                one.error = complete_error(error, needed_subject(store, str(one.environment), site))
            continue
        for one in ours:
            one.job = jobs[arch]
    if not jobs or args.no_wait:
        return _outcome(wanted)
    errors = follow_jobs(site, dict.fromkeys(jobs, store), jobs)
    for one in wanted:
        proofs = read_proofs(store, one.environment)
        if len(proofs) > len(one.earlier):
            one.proof = proofs[-1]
        if one.proof is None or not one.proof.verdict.passed:
            one.error = errors.get(one.arch) or one.error
    return _outcome(wanted)


def _outcome(wanted: Sequence[Again]) -> Outcome:
    """One table, and the errors whole, on stderr."""
    shown: list[str] = []
    for one in wanted:
        if one.error and one.error.message not in shown:
            shown.append(one.error.message)
            say("")
            say_error(one.error, one.arch)
    rows = [(one.arch, str(one.environment), one.state, one.proof, one.earlier) for one in wanted]
    bad = any(one.state in ("worse", "failed") for one in wanted)
    waiting = any(one.state == "submitted" for one in wanted)
    return Outcome(
        text="\n".join(proof_table(rows)),
        result={"environments": [one.to_dict() for one in wanted]},
        exit_code=EXIT_FAILED if bad else EXIT_JOB_LEFT if waiting else EXIT_OK,
    )


def refuse_outside_job(site: Site, what: str | None) -> None:
    """Raise a `PlanError` if ranks need a job, and this is not one. `provision test` proves `what` in a job; None: it cannot."""
    if site.scheduler.name == "none":
        return
    scheduler = scheduler_for(site.scheduler.name)
    if not environ().get(scheduler.JOB_ID):
        hint = f"`provision test {what} --submit` runs it in one"
        raise PlanError(
            "run this inside a batch job",
            hint=hint if what else f"start one with `{scheduler.INTERACTIVE}`, then run the same command in it",
        )


def ranks_of(site: Site, store: Store, env: EnvironmentId, listen: Listener) -> Ranks:
    """The ranks that prove an environment, with the module loaded that users load.

    Raises:
        PlanError: it is not published, or this is not a job.
        ConfigError: its arch or its stack is gone.
    """
    record = published_record(store, env, site, "provision test %s")
    refuse_outside_job(site, str(env))
    stack = shipped.load_stack(record.stack)
    deliver = store.layout.images(env) / DELIVER
    proof = prove_operation(
        *(site, arch_of(site, env), stack, str(shipped.PACKAGE / "proof" / "programs"), record.prefix),
        deliver=str(deliver) if exists(str(deliver)) else None,
    )
    records = Path(store.layout.records_folder(env))
    into = store.make_test_folder(records / "tests", below=records)
    log, kind = into / "proof.log", site.modules.module_kind
    modulepath = Path(store.layout.modules(env.arch)) / kind
    loaded = loaded_environment(site.modules, modulepath, record.module, records / "activate.sh", log)
    python = str(store.layout.prefix(env) / "bin" / "python")
    return Ranks(store=store, python=python, proof=proof, environ=loaded, log=log, listen=listen, into=into)


def judged(
    site: Site, env: EnvironmentId, ranks: Ranks, proof: ProofResult, earlier: tuple[ProofResult, ...]
) -> ProofResult:
    """The proof with what is worse than before; it is written to its verdict, where `list` and `report` read it.

    Raises:
        StoreError: the verdict cannot be written.
    """
    findings = judge_history(earlier, proof, arch_of(site, env).proof)
    if findings:
        proof = dataclasses.replace(proof, findings=findings)
        write(ranks.into / "verdict.json", json.dumps(proof.to_dict(), indent=1) + "\n")
    return proof
