"""Make a plan from the request and the facts. Pure: no clock, no environment, no file system.

Everything that decides an environment goes into its identity; the hash of that is the fingerprint, and a plan from a login
node is compared with the node's by their identities.
"""

from __future__ import annotations

import json
from pathlib import PurePosixPath

from provision.backends import backend_for
from provision.errors import PlanError, raise_faults
from provision.model.facts import Existing, Facts, Interpreter
from provision.model.layout import DELIVER, EnvironmentId, Layout
from provision.model.operation import Pack
from provision.model.plan import Plan
from provision.model.request import Request
from provision.planning.environment_module import modulefile
from provision.planning.expectation import inspections
from provision.planning.identity import environment_id, identity
from provision.planning.math_library import library_faults
from provision.planning.preflight import gpu_faults, image_faults
from provision.planning.steps import decide_steps, last_rows
from provision.proof.proof_shape import prove_operation


def make_plan(request: Request, facts: Facts, existing: Existing) -> Plan:
    """The plan for a request, on a machine with these facts, given what exists.

    Raises:
        PlanError: something that the environment needs is missing; everything that is missing is listed.
    """
    site, stack, python = request.site, request.stack, _refuse_missing(request, facts)
    draft = backend_for(stack.backend)(request, facts, facts.target_of(request.arch.target))
    decided = identity(request, facts, python, draft)
    layout = Layout(PurePosixPath(site.root))
    environment = choose_build(environment_id(decided), existing, rebuild=request.rebuild)
    prefix = str(layout.prefix(environment))
    construction = draft.construct(layout, environment, existing, json.dumps(decided, indent=1) + "\n")
    asked = inspections(request, facts, python, construction, prefix)
    arch = request.arch
    only = arch.deliver == "image-only"
    pack = Pack(mount_with=arch.deliver_with, only=only) if arch.deliver != "files" else None
    deliver = str(layout.images(environment) / DELIVER) if pack else None
    proof = prove_operation(site, request.arch, stack, request.programs_folder, prefix, deliver)
    published = existing.pointers.get(environment.pointer)
    last = last_rows(asked, proof, stack.module, construction.proved, pack=pack, publish=request.publish)
    rows = (*construction.rows, *last)
    steps = decide_steps(rows, existing, environment, publish=request.publish)
    return Plan(
        site=site.name,
        stack=stack.name,
        environment=environment,
        prefix=prefix,
        identity=decided,
        modulefile=modulefile(
            request, facts, python, draft, environment, prefix, decided, str(layout.images(environment))
        ),
        abi_key=draft.wheels.get("horovod"),
        wheels=tuple(draft.wheels.values()),
        not_fetched=construction.not_fetched,
        notes=() if all(step.action == "keep" for step in steps) else construction.notes,
        steps=steps,
        replaces=published if request.publish and published != str(environment) else None,
        broken=existing.broken.get(str(environment.rebuilt(environment.number - 1)))
        if environment.number > 1
        else None,
    )


def choose_build(first: EnvironmentId, existing: Existing, *, rebuild: bool) -> EnvironmentId:
    """Which build of this identity is meant: the newest, or the next if that is broken, or another one is wanted.

    A rebuild has a prefix of its own, because users may have the broken one loaded. One that was interrupted is continued.
    """
    found = [env for env in map(EnvironmentId.parse, existing.receipts) if env.rebuilt(1) == first]
    newest = max(found, key=lambda env: env.number, default=first)
    finished = "publish" in existing.receipts.get(str(newest), ())
    if finished and (rebuild or str(newest) in existing.broken):
        return first.rebuilt(newest.number + 1)
    return newest


def _refuse_missing(request: Request, facts: Facts) -> Interpreter:
    """Raise for everything that this machine lacks; return the Python that was found."""
    raise_faults(facts.faults)
    if facts.python is None:
        raise PlanError("the probes did not find Python, and gave no reason")
    if facts.gpu is None and request.arch.gpu is not None and request.stack.uses_cuda_of_site:
        raise PlanError("the probes did not find CUDA and NCCL, and gave no reason")
    raise_faults((*gpu_faults(request, facts), *library_faults(request), *image_faults(request)))
    return facts.python
