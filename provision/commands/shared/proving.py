"""Proving a published environment again: its ranks, its history, and what is worse than in that history."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

from provision.errors import ConfigError, PlanError
from provision.machine.configuration import shipped
from provision.machine.files.disk import exists, write
from provision.machine.install.ranks import Ranks, loaded_environment
from provision.machine.programs.shell import environ
from provision.machine.root.store import Store
from provision.model.event import Listener
from provision.model.layout import DELIVER, EnvironmentId
from provision.model.proof_result import ProofResult
from provision.model.record import Record
from provision.profile.arch import Arch
from provision.profile.site import Site
from provision.proof.history import judge_history
from provision.proof.proof_shape import prove_operation
from provision.schedulers import scheduler_for


def refuse_outside_job(site: Site, what: str | None) -> None:
    """Raise if ranks can only be started in a job, and this is not one. `provision test` proves `what` in a job; None: it cannot.

    Raises:
        PlanError: so it is.
    """
    if site.scheduler.name == "none":
        return
    scheduler = scheduler_for(site.scheduler.name)
    if not environ().get(scheduler.JOB_ID):
        hint = f"`provision test {what} --submit` runs it in one"
        raise PlanError(
            "run this inside a batch job",
            hint=hint if what else f"start one with `{scheduler.INTERACTIVE}`, then run the same command in it",
        )


def arch_of(site: Site, env: EnvironmentId) -> Arch:
    """The arch of the site that an environment is for.

    Raises:
        ConfigError: the profile has no such arch any more.
    """
    arch = site.arch_built_as(env.arch)
    if arch is None:
        raise ConfigError(f"site `{site.name}` no longer has the arch `{env.arch}`", hint=f"edit `{site.origin}`")
    return arch


def ranks_of(site: Site, store: Store, env: EnvironmentId, listen: Listener) -> Ranks:
    """The ranks that prove an environment, with the module loaded that users load.

    Raises:
        PlanError: it is not published, or this is not a job.
        ConfigError: its arch or its stack is gone.
    """
    record = published_record(store, env)
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


def published_record(store: Store, env: EnvironmentId) -> Record:
    """The record of an environment that users load.

    Raises:
        PlanError: it is not published.
    """
    record = store.record(env)
    if record is None or store.pointers().get(env.pointer) != str(env):
        raise PlanError(
            f"`{env}` is not published, so no module loads it", hint="`provision build` proves it and publishes it"
        )
    return record


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
