"""`provision plan`: show every step, its reason, and what it would reuse. Changes nothing."""

from __future__ import annotations

import textwrap

from provision.commands.shared.outcome import Args, Outcome
from provision.commands.shared.target import Target, describe_own_files, read_target
from provision.commands.shared.typos import refuse_unused
from provision.errors import EXIT_FAILED, EXIT_OK, ConfigError, PlanError, lines_of
from provision.knowledge.combinations import describe_cell, find_cell, keras_of
from provision.knowledge.frameworks.tensorflow import TENSORFLOW
from provision.machine.configuration import shipped
from provision.machine.files.tables import read_cells
from provision.planning.node_checks import faults_of
from provision.planning.plan_text import plan_lines
from provision.planning.preflight import blockers, network_faults
from provision.profile.site import blank_paths
from provision.schedulers import scheduler_for
from provision.wording import count


def run(args: Args) -> Outcome:
    """Make the plan and show it."""
    target = read_target(args, unfinished=args.profile)
    alone = args.profile or not target.is_here
    if alone:
        refuse_unused(args, "a plan from the profile alone has no commands", "--commands")
        return _outline(target, args)
    refuse_unused(args, "only a job has an account", "--account")
    facts = target.observe()
    try:
        request = target.request(facts)
    except PlanError as error:
        by_profile = f"provision plan --site {args.site} --arch {target.arch.name} --profile"
        error.evidence += (f"to plan from the profile alone: `{by_profile}`",)
        raise
    plan = target.plan(request, facts)
    notes = (*blockers(request, facts), *network_faults(request, plan), *faults_of(target.check_node(facts)))
    stack, minor = target.stack, request.minor
    expected = target.expected_seconds(plan)
    lines = [
        *plan_lines(
            plan,
            expected=expected,
            verbose=args.verbose,
            commands=args.commands,
            replaced=target.replaced_line(plan, request),
        ),
        "",
    ]
    if stack.horovod and stack.frameworks == (TENSORFLOW,):  # what is measured is Horovod on a TensorFlow
        key = (stack.framework.version, keras_of(stack.framework.version, stack.environ), minor)
        lines.append(f"measured: {describe_cell(*key, find_cell(read_cells(), *key))}")
    own = target.own_files(args.stack)
    lines += [f"passed over: {line}" for line in target.passed_over]
    lines.append(f"configuration: {describe_own_files(own)}")
    for fault in notes:
        kind = "note" if fault.kind == "outside-job" else "problem on this machine"  # a login node is not at fault
        lines += lines_of(kind, fault)
    result = {
        **plan.to_dict(),
        "own_files": own,
        "passed_over": list(target.passed_over),
        "expected_seconds": expected,
        "not_here": [fault.message for fault in notes],
    }
    return Outcome(text="\n".join(lines), result=result)


def _outline(target: Target, args: Args) -> Outcome:
    """Describe a build from the profile alone."""
    # A plan for this machine needs none of these.
    from provision.commands.shared.offer import CANNOT_WORK, cannot_work, judge_profile
    from provision.jobs.build_job import build_batch
    from provision.planning.outline import outline
    from provision.planning.solver import unconfirmed_values

    site, arch, stack, own = target.site, target.arch, target.stack, target.own_files(args.stack)
    directives: tuple[str, ...] = ()
    refused = None
    blank = blank_paths(shipped.load_profile(site.origin)[0])
    if site.scheduler.name != "none" and not blank:
        scheduler, jobs = scheduler_for(site.scheduler.name), str(target.store.jobs)
        try:
            batch = build_batch(site, arch, stack, f"provision-{arch.name}", jobs, args.account)
            directives = tuple(map(str, scheduler.directives(batch)))
        except ConfigError as error:
            refused = error
    parts = outline(site, arch, stack, directives)
    why = "" if args.profile else f": `{site.modules.init}` is not on this machine"
    lines = [f"from the profile `{site.origin}` alone{why}"]
    if blank:
        lines += [
            f"{count(len(blank), 'value')} left blank, for which `?`, `native` or the least value stands below:",
            *textwrap.wrap(", ".join(blank), 118, initial_indent="  ", subsequent_indent="  ", break_on_hyphens=False),
            "  `provision site new SITE` asks for them",
            "",
        ]
    for title, values in parts.items():
        lines += [f"{title:<12} {value}" if index == 0 else f"{'':<12} {value}" for index, value in enumerate(values)]
    against, doubts = judge_profile(site, arch, stack)
    unconfirmed, cannot = unconfirmed_values(site, arch), cannot_work(site)
    lines += ["", *(f"passed over: {line}" for line in target.passed_over)]
    lines += [f"{cannot}: {stack.name} {line}" for line in against]
    lines += [f"to check: {line}" for line in doubts]
    if unconfirmed:
        lines.append(f"nobody confirmed: {', '.join(unconfirmed)}")
    lines.append(f"configuration: {describe_own_files(own)}")
    if refused:
        lines += ["", *lines_of("no job yet", refused)]
    result = {
        "profile": site.origin,
        "arch": arch.name,
        "own_files": own,
        "outline": {title.replace(" ", "_"): list(values) for title, values in parts.items()},
        "refused": refused.to_dict() if refused else None,
        "passed_over": list(target.passed_over),
        "cannot_work": list(against),
        "to_check": list(doubts),
        "unconfirmed": list(unconfirmed),
        "blank": blank,
    }
    # `build` can be given an account; all else is wrong in the profile.
    blocked = refused and {(fault.kind, fault.subject) for fault in refused.faults} != {("missing", "account")}
    # Where a site has other ways, its default stack need not work as an environment of ours; one that was asked for must.
    fails = blocked or (against and (args.stack or cannot == CANNOT_WORK))
    return Outcome(text="\n".join(lines), result=result, exit_code=EXIT_FAILED if fails else EXIT_OK)
