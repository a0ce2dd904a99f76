"""Make a plan from the request and the facts. Pure: no clock, no environment, no file system.

Everything that decides an environment goes into its identity; the hash of that is the fingerprint, and a plan from a login
node is compared with the node's by their identities.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import PurePosixPath

from provision.backends import backend_for
from provision.errors import PlanError, StoreError
from provision.model.facts import Existing, Facts, Interpreter
from provision.model.layout import EnvironmentId, Layout
from provision.model.plan import InstallWheel, Plan, Step
from provision.model.problem import raise_problems
from provision.model.request import Request
from provision.planning.environment_module import modulefile
from provision.planning.expectation import inspection
from provision.planning.identity import environment_id, identity, target_of
from provision.planning.preflight import gpu_problems
from provision.planning.steps import decide_steps, last_rows
from provision.proof.proof_shape import prove_operation


def make_plan(request: Request, facts: Facts, existing: Existing) -> Plan:
    """The plan for a request, on a machine with these facts, given what exists.

    Raises:
        PlanError: something that the environment needs is missing; everything that is missing is listed.
    """
    site, stack, python = request.site, request.stack, _refuse_missing(request, facts)
    draft = backend_for(stack.backend).draft(request, facts, target_of(request, facts))
    decided = identity(request, facts, python, draft)
    environment, layout = environment_id(decided), Layout(PurePosixPath(site.root))
    prefix = str(layout.prefix(environment))
    construction = draft.construct(layout, environment, existing, json.dumps(decided, indent=1) + "\n")
    inspect = inspection(request, facts, python, construction, prefix)
    proof = prove_operation(site, request.arch, stack, request.programs_folder, prefix)
    published = existing.pointers.get(environment.pointer)
    last = last_rows(inspect, proof, stack.module, construction.proved, publish=request.publish)
    rows = (*construction.rows, *last)
    steps = decide_steps(rows, existing, environment, publish=request.publish)
    refuse_untrusted(existing, layout, environment, steps)
    return Plan(
        site=site.name,
        stack=stack.name,
        environment=environment,
        prefix=prefix,
        identity=decided,
        modulefile=modulefile(request, facts, python, draft, construction, environment, prefix, decided),
        abi_key=draft.abi_key,
        not_fetched=construction.not_fetched,
        steps=steps,
        replaces=published if request.publish and published != str(environment) else None,
    )


def _refuse_missing(request: Request, facts: Facts) -> Interpreter:
    """Raise for everything that this machine lacks; return the Python that was found."""
    raise_problems(facts.problems)
    if facts.python is None:
        raise PlanError("the probes did not find Python, and gave no reason")
    if facts.gpu is None and request.arch.gpu is not None:
        raise PlanError("the probes did not find CUDA and NCCL, and gave no reason")
    raise_problems(gpu_problems(request, facts))
    return facts.python


def refuse_untrusted(existing: Existing, layout: Layout, environment: EnvironmentId, steps: Sequence[Step]) -> None:
    """Raise if a user who is not an admin wrote what the plan would use: the prefix, the pointer of the arch, a wheel.

    Raises:
        StoreError: of kind `untrusted`.
    """
    operations = [operation for step in steps for operation in step.operations]
    wheels = [layout.wheel(operation.key) for operation in operations if isinstance(operation, InstallWheel)]
    used = [str(path) for path in (layout.prefix(environment), layout.modules(environment.arch), *wheels)]
    raise_problems([existing.untrusted[path] for path in used if path in existing.untrusted], StoreError, "untrusted")
