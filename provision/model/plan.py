"""A plan: ordered steps, each with an action, a reason, and the operations that carry it out; and what loading the module does.

`provision.machine.rendering.render_modulefile` turns a modulefile into text.
"""

import dataclasses
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any, ClassVar, Literal

from provision.knowledge.frameworks.tensorflow import TENSORFLOW
from provision.model.layout import EnvironmentId
from provision.model.operation import Operation, Prove
from provision.model.stored import Stored

Action = Literal["create", "reuse", "keep"]
# The only steps that may download, whatever the backend.
DOWNLOADING = ("install", "compile")


@dataclass(frozen=True, slots=True, kw_only=True)
class Modulefile(Stored):
    """What loading the module does: which modules it loads, which PATH entries it prepends, and which variables it sets."""

    name: str
    version: str
    summary: str
    environment: str
    prefix: str
    modules: tuple[str, ...]
    prepend: tuple[tuple[str, str], ...]
    environ: tuple[tuple[str, str], ...]
    facts: tuple[tuple[str, str], ...]
    """What `module help` shows: labels and values, including the proof."""
    unload: tuple[str, ...] = ()
    """Modules to unload before it is loaded, such as a site's default programming environment."""
    packages: tuple[tuple[str, str], ...] = ()
    """Names and versions of packages for which `module spider` finds this module."""
    defaults: tuple[tuple[str, str], ...] = TENSORFLOW.quiet
    """Variables that it sets unless the user has set them. Records without them are of environments with TensorFlow."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Description(Stored):
    """What is known of an environment before its proof, in its own folder: enough to publish it without planning it again."""

    SCHEMA: ClassVar[int] = 1
    site: str
    stack: str
    wheel: str | None
    """The key of the compiled Horovod; None if the stack has none."""
    wheels: tuple[str, ...] = ()
    """The keys of all compiled wheels."""
    modulefile: Modulefile


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One unit of a plan. `packages`: how many packages it installs, 0 if they are not to be counted."""

    name: str
    title: str
    action: Action
    reason: str
    operations: tuple[Operation, ...] = ()
    packages: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The steps to build one environment. `identity` are the values that determine it; the fingerprint is their hash.

    `not_fetched` names the locks whose packages would be downloaded from the package index; it is empty if all packages are
    in the wheelhouse. `abi_key` is the key of the compiled Horovod, or None if the stack has no Horovod. `replaces` is the
    environment that users of the module get until this one is published, or None if there is none.
    """

    site: str
    stack: str
    environment: EnvironmentId
    prefix: str
    identity: Mapping[str, str]
    modulefile: Modulefile
    abi_key: str | None
    not_fetched: tuple[str, ...]
    steps: tuple[Step, ...]
    replaces: str | None = None
    broken: str | None = None
    """Why the build before this one is broken, if this is a rebuild."""
    wheels: tuple[str, ...] = ()
    """The keys of the compiled wheels, Horovod's among them."""
    notes: tuple[str, ...] = ()
    """What the backend says of the plan before anything starts, one line each."""

    @property
    def done(self) -> bool:
        """Whether there is nothing to do."""
        return all(step.action == "keep" for step in self.steps)

    @property
    def asks_network(self) -> bool:
        """Whether a step to do downloads packages."""
        downloads = [step for step in self.steps if step.name in DOWNLOADING and step.action == "create"]
        return bool(self.not_fetched and downloads)

    def to_dict(self) -> dict[str, Any]:
        """The whole plan as plain JSON values, each operation with its kind."""
        data = dataclasses.asdict(self, dict_factory=_without_empty)
        data["environment"], data["held"] = str(self.environment), held(self)
        if self.broken is None:
            del data["broken"]
        if not self.notes:
            del data["notes"]
        if not self.modulefile.unload:  # most sites have no modules to unload
            del data["modulefile"]["unload"]
        for step, described in zip(self.steps, data["steps"], strict=True):
            described["operations"] = [
                {"kind": type(operation).__name__, **dataclasses.asdict(operation, dict_factory=_without_empty)}
                for operation in step.operations
            ]
        return data


def _without_empty(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A value as a dictionary, without the key `gpu` if the plan is for CPUs, and `math` if no library is required."""
    return {name: value for name, value in pairs if name not in ("gpu", "math") or value is not None}


def held(plan: Plan) -> dict[str, str]:
    """The values that a saved plan must share with a new one, as text: the identity, the prefix, and the shape of the proof."""
    proof = next(
        (operation for step in plan.steps for operation in step.operations if isinstance(operation, Prove)), None
    )
    shape = ""
    if proof:
        program, each = PurePosixPath(proof.program).stem, f", {proof.devices} devices each" * (proof.devices > 1)
        shape = f"{program}: {proof.nodes} nodes, {proof.ranks_per_node} ranks each{each}, {proof.launcher.name}"
    return {
        **plan.identity,
        "prefix": plan.prefix,
        "proof": " ".join((shape, *(proof.launcher.options if proof else ()))),
    }


def fingerprint(identity: Mapping[str, str]) -> str:
    """Ten hexadecimal digits of the sha256 of the canonical JSON of an environment's identity."""
    return hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()[:10]


def differences(planned: Mapping[str, str], here: Mapping[str, str]) -> list[str]:
    """The differences between a plan made elsewhere and this machine, one line for each."""
    lines = []
    for name in dict.fromkeys((*planned, *here)):
        if planned.get(name) != here.get(name):
            lines.append(f"{name}: planned {planned.get(name, 'nothing')!r}, here {here.get(name, 'nothing')!r}")
    return lines
