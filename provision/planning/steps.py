"""The steps of a plan: the backend's, then those that are the same for every backend, each with its action. Pure."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from provision.backends.backend import Row
from provision.model.facts import Existing
from provision.model.layout import EnvironmentId
from provision.model.operation import Inspect, Pack, Prove, Publish, Seal, WriteCandidate
from provision.model.plan import Action, Step
from provision.wording import count


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
        action = decide(row, done, keeping=keeping)
        keeping = keeping and action == "keep"
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


def decide(row: Row, done: Collection[str], *, keeping: bool) -> Action:
    """A step is kept if its result is in the prefix (`done` has receipts' names) and every step before it is kept."""
    if keeping and (row.receipt or row.name) in done:
        return "keep"
    return "reuse" if row.reuse else "create"


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
    return (
        Row(
            name="inspect",
            title="versions and libraries of the environment",
            reason=_describe_inspection(inspects[0]),
            operations=tuple(inspects),
        ),
        *(
            [
                Row(
                    name="pack",
                    title="one image of all files",
                    reason="ranks mount it, and the proof does as they do",
                    operations=(pack,),
                )
            ]
            if pack
            else []
        ),
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
        Row(
            name="publish",
            title=f"users load {module}",
            reason="by one rename, when all files are hashed and the record is written",
            operations=(Seal(), Publish()),
        )
        if publish
        else Row(
            name="publish",
            title="nothing yet: what users load does not change",
            reason="all files are hashed, and the record is written",
            operations=(Seal(),),
        ),
    )


def _describe_inspection(inspect: Inspect) -> str:
    """What the inspection checks."""
    if not inspect.expectation.horovod:
        return "the framework, nothing from outside"
    what_else = "NCCL and its code for each GPU, " if inspect.expectation.gpu else ""
    return f"framework and MPI built in, {what_else}the plan's libmpi, nothing from outside"


def _describe_processes(proof: Prove) -> str:
    """The processes that train in the proof."""
    match proof.strategy:
        case "single" | "keras_torch":
            return "in one process"
        case "mirrored":
            return f"on {proof.devices} device{'s' * (proof.devices > 1)} of one process"
        case "multiworker":
            return f"on {proof.processes} workers"
        case _:
            return f"on {count(proof.processes, 'rank')}"
