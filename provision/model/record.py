"""The record of an environment that passed its proof, the receipts of its steps, and what they say of the next build.

A record says what was built, from what, where and when, and the proof. A receipt says that a step is done, on which host, in how
many seconds, and what it found. From the seconds in the records of earlier builds comes how long a build will take.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar

from provision.model.check import Check
from provision.model.condition import Trace
from provision.model.stored import Damage, Stored, refuse_newer
from provision.model.verdict import ProofResult
from provision.profile.choices import BackendName
from provision.profile.reader import Key, Reader


@dataclass(frozen=True, slots=True, kw_only=True)
class Record(Stored):
    """Everything that is known of one environment that passed its proof."""

    SCHEMA: ClassVar[int] = 1
    environment: str
    site: str
    stack: str
    module: str
    """`<name>/<version>`, as users load it."""
    prefix: str
    modules: tuple[str, ...]
    """The site's modules that it needs."""
    identity: Mapping[str, str]
    """Everything that decides the environment, and what its fingerprint is made of."""
    wheel: str | None
    """The key of the compiled Horovod in the cache of wheels; None if the stack has none."""
    wheels: tuple[str, ...] = ()
    """The keys of all compiled wheels in the cache."""
    versions: Mapping[str, Any] | None
    """What the inspection found installed; None if the inspection left no receipt."""
    checks: tuple[Check, ...] = ()
    """Those of the inspection. Those of the proof are in `verdict`."""
    seconds: Mapping[str, float]
    """Of each step."""
    verdict: ProofResult
    proof: str
    """The proof in one line."""
    built: str
    """When it was finished: ISO 8601 with the offset from UTC."""
    host: str
    job: str | None
    provision: str
    """The version of this tool."""
    user: str | None = None
    """Who built it; None if an older version wrote the record."""
    forced: str | None = None
    """Why an admin published it although its proof failed; None if the proof passed."""
    traces: tuple[Trace, ...] = ()
    """What of the machine it depends on; empty if an older version wrote the record."""
    advisories: Annotated[tuple[str, ...] | None, Key("known_advisories")] = None
    """Those that were known to be open when it was built; None if an older version wrote the record."""

    def add_faults(self, table: Reader) -> None:
        """Refuse a record of an environment that was not published: it was edited."""
        if not self.verdict.verdict.passed and not self.forced:
            table.fault("verdict", "is not one of a proof that passed")


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings(Stored):
    """The details of the inspection, of which the record is made."""

    checks: tuple[Check, ...] = ()
    versions: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt(Stored):
    """One step that is done. `details` are those of its operations: `wheel`, `checks`, `versions`, `summary`."""

    step: str
    seconds: float
    host: str
    details: Mapping[str, Any] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """This receipt as plain JSON values; the details stand beside the other keys."""
        return {"step": self.step, "seconds": self.seconds, "host": self.host, **self.details}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], **given: Any) -> "Receipt":
        """Read back what `to_dict` returned.

        Raises:
            ValueError: it is damaged, or a newer version wrote it.
        """
        if "schema" in data:  # none has one until receipts change
            refuse_newer(data, 1)
        Findings.from_dict(data)
        details = {key: value for key, value in data.items() if key not in ("step", "seconds", "host")}
        return Reader(data, Damage()).into(cls, details=details)


UNTIMED = ("publish",)
"""Steps that no record contains, because it is written while they run; their time is negligible."""


def backend_of(identity: object) -> BackendName:
    """What built an environment with this identity: only that of Spack has Spack's commit."""
    return "spack" if isinstance(identity, Mapping) and "spack" in identity else "venv"


def expected_seconds(records: Iterable[Record], *, stack: str, arch: str, backend: BackendName) -> dict[str, float]:
    """The seconds that each step took when this backend last built this stack: for this arch if possible, or for another.

    A record lacks the steps that its run reused, so each step comes from the newest record that has it.
    """
    expected: dict[str, float] = {}
    same_stack = [record for record in records if record.stack == stack and backend_of(record.identity) == backend]
    # Later records replace earlier ones: other archs come before this one, and older records before newer ones.
    for record in sorted(same_stack, key=lambda one: (one.environment.startswith(f"{arch}/"), one.built)):
        expected |= record.seconds
    return expected


def expected_total(steps: Collection[str], expected: Mapping[str, float]) -> float | None:
    """The seconds that these steps will take together; None while one of them has never been timed."""
    timed = [step for step in steps if step not in UNTIMED]
    if not expected or any(step not in expected for step in timed):
        return None
    return sum(expected[step] for step in timed)
