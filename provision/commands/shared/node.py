"""The checks of this node, which `doctor`, `plan` and `build` share."""

from __future__ import annotations

from provision.commands.shared.target import Target
from provision.errors import Fault
from provision.knowledge.targets import is_foreign, missing_features
from provision.machine.files.tables import read_combinations
from provision.machine.probes.look_around import look_around
from provision.model.check import Check
from provision.model.facts import Facts
from provision.planning.node_checks import check_node


def observe_node(target: Target, facts: Facts) -> tuple[Check, ...]:
    """What was seen on this node for a build of the target."""
    wanted = facts.target_of(target.arch.target)
    runs_here = not is_foreign(wanted, facts.cpu.target) and not missing_features(wanted, facts.cpu.features)
    around = look_around(facts, target.store.root)
    return check_node(target.arch, target.stack, facts, around, read_combinations(), runs_here=runs_here)


def faults_of(checks: tuple[Check, ...]) -> tuple[Fault, ...]:
    """Those that stop a build, as faults."""
    return tuple(
        Fault("broken", seen.name.split("-")[0], seen.message, evidence=seen.evidence, hint=seen.hint)
        for seen in checks
        if not seen.passed
    )
