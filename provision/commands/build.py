"""`provision build`: build on this machine, or with `--submit` in a job of the site's scheduler."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path

from provision.commands.shared.after_publish import after_publish
from provision.commands.shared.order import Order, built_outcome, is_installed
from provision.commands.shared.outcome import Args, Outcome
from provision.commands.shared.typos import refuse_submit, refuse_unused
from provision.errors import ConfigError, DriftError, Interruption, ProvisionError, raise_faults
from provision.machine.configuration import shipped
from provision.machine.files.disk import read_given
from provision.machine.programs.run import OutOfTime, interrupted_at_time_limit
from provision.machine.programs.shell import environ
from provision.machine.root.event_file import to_all, to_file
from provision.machine.sharing.locks import is_left
from provision.machine.submission.job_settings import settings_from
from provision.machine.submission.submit import requeue
from provision.machine.terminal.console import say
from provision.machine.terminal.progress_lines import listener
from provision.model.event import Event, Listener, error_event
from provision.model.facts import Facts
from provision.model.plan import Plan, differences, held
from provision.planning.node_checks import faults_of
from provision.planning.preflight import blockers, network_faults
from provision.profile.site import Site
from provision.schedulers import job_here, restarts_here
from provision.wording import add_arch

# A step that needs more time than the job has would go on for ever: only finished steps are kept.
MOST_RESTARTS = 5


def run(args: Args) -> Outcome:
    """Build on this machine, or submit a job that builds."""
    if args.submit:
        refuse_unused(args, "`--submit` makes its own plan", "--plan", "--settings", "--events", "--requeue")
    else:
        refuse_unused(args, "only a job has an account", "--account")
    archs = _archs(args)
    order = Order(
        site=args.site,
        arch=archs[0] if archs else None,
        stack=args.stack,
        backend=args.backend,
        account=args.account,
        publish=not args.no_publish,
        rebuild=args.rebuild,
        wait=not args.no_wait,
        verbose=args.verbose,
    )
    if args.submit:
        refuse_submit(args, shipped.load_site(args.site))
        # Jobs need other rooms than a build on this machine.
        from provision.commands.shared.submitting import submit_one, submit_several

        if len(archs) > 1:
            return submit_several(order, archs)
        return submit_one(order)
    with contextlib.ExitStack() as stack:
        if args.requeue:
            stack.enter_context(watched_time(shipped.load_site(args.site)))
        # `job follow` shows what is written there.
        write_event = stack.enter_context(to_file(Path(args.events))) if args.events else None
        try:
            expected = _expected(args.plan)
            without = stack.enter_context(settings_from(Path(args.settings))) if args.settings else None
            if without:
                say(f"note: {without}")
                if write_event:
                    write_event(Event(kind="say", text=f"note: {without}"))
            return plan_and_build(order, write_event, expected)
        except ProvisionError as error:
            if write_event:
                write_event(error_event(error))
            raise


def plan_and_build(
    order: Order, write_event: Listener | None = None, expected: dict[str, str] | None = None
) -> Outcome:
    """Build on this machine; `write_event` also gets every event. The plan must be as `expected`, if that is given."""
    target = order.read_target()
    facts = target.observe()
    request = target.request(facts)
    plan = target.plan(request, facts)
    if expected is not None:
        _refuse_drift(expected, plan, facts)
    # A build that was killed after its last step left its lock, and maybe programs that it had started.
    left = is_left(Path(target.store.layout.lock(plan.environment)))
    if plan.done and not left:
        return built_outcome(target.site, target.store, plan.environment, order.nothing_to_do, publish=order.publish)
    if not plan.done:
        installed = is_installed(plan)
        seen = target.check_node(facts)
        raise_faults(
            (
                *blockers(request, facts, target.needed(request), installed=installed),
                *network_faults(request, plan),
                *faults_of(seen),
            )
        )
        for one in seen:
            if one.state == "note":
                say(f"note: {one.message}" + (f" (hint: {one.hint})" if one.hint else ""))
    with listener() as listen:
        events = listen
        if write_event:
            events = to_all(listen, write_event)
        # Most of what a build loads is for its steps; often there are none to do.
        from provision.commands.shared.carry_out import carry_out

        plan = carry_out(order, target, request, facts, plan, events)
        if not plan.done and order.publish:
            after_publish(target.site, target.store, "build", plan.environment.arch, str(plan.environment))
    if plan.done:
        done = order.nothing_to_do if left else "nothing to do: another process built it meanwhile"
    else:
        done = "published" if order.publish else "proved, not published"
    return built_outcome(target.site, target.store, plan.environment, done, publish=order.publish)


def _expected(source: str | None) -> dict[str, str] | None:
    if source is None:
        return None
    text = read_given(source, "plan", stdin=True)
    try:
        data = json.loads(text)
        data = data.get("result", data)  # the envelope of `plan --json`, or the plan in a job script
        return {str(name): str(value) for name, value in data["held"].items()}
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ConfigError(
            f"`{source}` is not a plan",
            evidence=[str(error)],
            hint="`provision plan --json >FILE` writes one",
        ) from error


def _refuse_drift(expected: dict[str, str], plan: Plan, facts: Facts) -> None:
    """Stop if the plan that was made elsewhere differs from the plan that this machine gives."""
    here = held(plan)
    # If the proof is done already, no step of this plan describes it.
    lines = differences(expected, here if here["proof"] else {**here, "proof": expected.get("proof", "")})
    if lines:
        raise DriftError(
            f"`{facts.host}` differs from the machine of the plan; nothing was built",
            evidence=lines,
            hint="make a new plan on the machine that submits the job (`provision plan`), or fix the node",
        )


def _archs(args: Args) -> list[str]:
    """The archs to build; none if the site has only one and none is named.

    Raises:
        ConfigError: several archs are to be built, but not in jobs.
    """
    archs = list(dict.fromkeys(args.archs or ()))
    if args.all_archs:
        archs = [arch.name for arch in shipped.load_site(args.site).archs]
    elif not archs and len(known := shipped.load_site(args.site).archs) > 1:
        hint = f"{add_arch([arch.name for arch in known])}; or `--all-archs --submit`: a job for each"
        raise ConfigError(f"site `{args.site}` has several archs", hint=hint, kind="ambiguous-arch")
    if len(archs) > 1 and not args.submit:
        raise ConfigError(
            f"{len(archs)} archs cannot be built on this machine at once: {', '.join(archs)}",
            hint="add `--submit`: each arch is built in a job of its own",
        )
    return archs


@contextlib.contextmanager
def watched_time(site: Site) -> Iterator[None]:
    """End what runs inside when the scheduler announces the end of the job's time, and let the job start again.

    Raises:
        Interruption: it came.
    """
    try:
        with interrupted_at_time_limit():
            yield
    except OutOfTime:
        job, restarts = job_here(environ()), restarts_here(environ())
        what = f"the time of job {job} is nearly over; finished steps are kept"
        if job is None or restarts >= MOST_RESTARTS:
            hint = "raise `job.time` in the profile, then submit it again: it continues with the first unfinished step"
            raise Interruption(f"{what}; it was started again {restarts} times before", hint=hint) from None
        say(f"{what}; it goes back into the queue, and continues with the first unfinished step")
        refused = requeue(job, site.scheduler.name)  # the scheduler ends this process now
        if refused is None:
            raise Interruption(f"{what}; job {job} is in the queue again") from None
        hint = "submit it again: it continues with the first unfinished step"
        message = f"{what}; Slurm does not start job {job} again"
        raise Interruption(message, hint=hint, evidence=[refused]) from None
