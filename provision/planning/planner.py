"""Make a plan from the request and the facts. Pure: no clock, no environment, no file system.

Everything that decides an environment goes into its identity; the hash of that is the fingerprint, and a plan from a login
node is compared with the node's by their identities.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import PurePosixPath

from provision.backends import backend_for
from provision.backends.backend import Row
from provision.errors import PlanError, raise_faults
from provision.model.facts import Existing, Facts, Interpreter
from provision.model.layout import DELIVER, EnvironmentId, Layout
from provision.model.operation import Inspect, Pack, Prove, Publish, Seal, WriteCandidate
from provision.model.plan import Action, Plan, Step
from provision.model.request import Request
from provision.planning.environment_module import modulefile
from provision.planning.expectation import inspections
from provision.planning.identity import environment_id, identity
from provision.planning.preflight import gpu_faults, image_faults, library_faults
from provision.proof.proof_shape import prove_operation
from provision.wording import count


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
    arch, images = request.arch, layout.images(environment)
    pack = Pack(mount_with=arch.deliver_with, only=arch.deliver == "image-only") if arch.deliver != "files" else None
    deliver = str(images / DELIVER) if pack else None
    proof = prove_operation(site, arch, stack, request.programs_folder, prefix, deliver)
    published = existing.pointers.get(environment.pointer)
    last = last_rows(asked, proof, stack.module, construction.proved, pack=pack, publish=request.publish)
    steps = decide_steps((*construction.rows, *last), existing, environment, publish=request.publish)
    return Plan(
        site=site.name,
        stack=stack.name,
        environment=environment,
        prefix=prefix,
        identity=decided,
        modulefile=modulefile(request, facts, python, draft, environment, prefix, decided, str(images)),
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


def decide_steps(
    rows: Sequence[Row], existing: Existing, environment: EnvironmentId, *, publish: bool = True
) -> tuple[Step, ...]:
    """The rows as steps with their actions, from what exists of this environment."""
    done = set(existing.receipts.get(str(environment), ()))
    # It is sealed: nothing in it is written any more, also not by a step that an older version had not.
    done |= {row.receipt or row.name for row in rows} if "publish" in done else set()
    # A half installed environment cannot be continued: what its steps before did is done again.
    again = next((row.name for row in rows if row.starts_over and row.name not in done), None)
    before, done = (done, set[str]()) if again else (set[str](), done)
    # The record shows that it was published; only the pointer shows whether users still load it.
    if publish and existing.pointers.get(environment.pointer) != str(environment):
        done -= {"publish"}
    steps, keeping = [], True
    for row in rows:
        # It is kept if its result is in the prefix (`done` has the names of receipts) and every step before it is kept.
        keeping = keeping and (row.receipt or row.name) in done
        action: Action = "keep" if keeping else "reuse" if row.reuse else "create"
        reason = {"create": row.reason, "keep": row.kept, "reuse": row.reuse or ""}[action]
        if row.name in before and action == "create":
            reason = f"done again, because `{again}` did not finish; {reason}"
        operations = row.operations if action == "create" else ()
        steps.append(
            Step(
                name=row.name,
                title=row.title,
                action=action,
                reason=reason,
                operations=operations,
                packages=row.packages,
            )
        )
    return tuple(steps)


def last_rows(
    inspects: Sequence[Inspect],
    proof: Prove,
    module: str,
    proved: Sequence[Row] = (),
    *,
    pack: Pack | None = None,
    publish: bool,
) -> tuple[Row, ...]:
    """What follows the backend's steps: the environment is inspected, packed and proved and, if wanted, published.

    `proved` are the backend's steps for an environment that has passed its proof.
    """
    packed = Row(
        name="pack",
        title="one image of all files",
        reason="ranks mount it, and the proof does as they do",
        operations=(pack,) if pack else (),
    )
    title, reason, publication = (
        (
            f"users load {module}",
            "by one rename, when all files are hashed and the record is written",
            (Seal(), Publish()),
        )
        if publish
        else (
            "nothing yet: what users load does not change",
            "all files are hashed, and the record is written",
            (Seal(),),
        )
    )
    return (
        Row(
            name="inspect",
            title="versions and libraries of the environment",
            reason=_describe_inspection(inspects[0]),
            operations=tuple(inspects),
        ),
        *([packed] if pack else []),
        Row(
            name="candidate",
            title="candidate modulefile",
            reason="the proof loads what users will load",
            operations=(WriteCandidate(),),
        ),
        Row(
            name="proof",
            title=f"train {_describe_processes(proof)}, {proof.nodes} node{'s' * (proof.nodes > 1)}"
            + "".join(f"; then {one.title} {_describe_processes(one)}" for one in proof.others),
            reason=f"through the candidate modulefile and {proof.launcher.name}",
            operations=(proof,),
        ),
        *proved,
        Row(name="publish", title=title, reason=reason, operations=publication),
    )


def _describe_inspection(inspect: Inspect) -> str:
    if not inspect.expectation.horovod:
        return "the framework, nothing from outside"
    what_else = "NCCL and its code for each GPU, " if inspect.expectation.gpu else ""
    return f"framework and MPI built in, {what_else}the plan's libmpi, nothing from outside"


def _describe_processes(proof: Prove) -> str:
    match proof.strategy:
        case "single" | "keras_torch":
            return "in one process"
        case "mirrored":
            return f"on {proof.devices} device{'s' * (proof.devices > 1)} of one process"
        case "multiworker":
            return f"on {proof.processes} workers"
        case _:
            return f"on {count(proof.processes, 'rank')}"
