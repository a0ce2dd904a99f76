"""The record of an environment that passed its proof: what was built, from what, where and when, and the proof."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from provision.model.check import Check
from provision.model.proof_result import ProofResult
from provision.model.stored import Stored
from provision.model.trace import Trace
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
