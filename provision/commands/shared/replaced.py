"""What a publication replaces, in one line: `2.21.0-c99040e8f8: keras 3.14.0 to 3.15.1`."""

from __future__ import annotations

from pathlib import Path

from provision.commands.shared.target import Target
from provision.errors import StoreError
from provision.machine.probes.installed_packages import installed_versions
from provision.model.layout import EnvironmentId
from provision.model.plan import Plan
from provision.model.request import Request
from provision.planning.publication import differences, in_short, planned_versions, short


def replaced_line(target: Target, plan: Plan, request: Request) -> str | None:
    """What users of the module get now, and which versions differ from the locks of the plan; None if nothing is replaced."""
    if plan.replaces is None:
        return None
    try:
        old = EnvironmentId.parse(plan.replaces)
        record = target.store.record(old)
    except (StoreError, ValueError):
        record = None
    if record is None:
        return f"{short(plan.replaces)}, whose record cannot be read"
    wanted = planned_versions(request.pins, plan.identity)
    common = {name: version for name, version in installed_versions(Path(record.prefix)) if name in wanted}
    lines = differences(common, wanted, (record.identity, plan.identity))
    return f"{short(plan.replaces)}: {in_short(lines) or 'the same versions'}"
