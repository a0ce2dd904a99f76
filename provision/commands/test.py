"""`provision test ENV`: run the proof of a published environment again, for example after an upgrade of the site.

`--all` proves all of them, with `--submit` in one job for each arch; `--provided` the framework of the site's own modules.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from provision.commands.shared.environments import find_environment, read_store
from provision.commands.shared.outcome import Outcome
from provision.commands.shared.prove_all import prove_all
from provision.commands.shared.proving import judged, ranks_of, refuse_outside_job
from provision.commands.shared.target import make_target
from provision.commands.shared.typos import refuse_other_than_one, refuse_submit, refuse_unused
from provision.errors import EXIT_FAILED, EXIT_OK, ConfigError, PlanError
from provision.knowledge.frameworks import TITLES
from provision.machine.configuration import shipped
from provision.machine.install.ranks import Ranks
from provision.machine.probes.provided import provided_environment
from provision.machine.programs.shell import which
from provision.machine.root.entries import read_proofs
from provision.machine.terminal.progress_lines import listener, shown_as_step
from provision.model.event import Listener
from provision.model.layout import EnvironmentId
from provision.model.proof_result import ProofResult
from provision.profile.site import Site
from provision.proof.proof_shape import prove_operation
from provision.wording import count


def run(args: argparse.Namespace) -> Outcome:
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


def _provided(args: argparse.Namespace, site: Site, listen: Listener) -> tuple[str, Ranks]:
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
