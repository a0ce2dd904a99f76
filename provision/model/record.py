"""The record of an environment that passed its proof: what was built, from what, where and when, and the proof."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from provision.model import stored
from provision.model.proof_result import ProofResult
from provision.model.trace import Trace
from provision.model.verdict import Check

SCHEMA = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """Everything that is known of one environment that passed its proof."""

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
    versions: Mapping[str, Any] | None
    """What the inspection found installed; None if the inspection left no receipt."""
    checks: tuple[Check, ...]
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
    advisories: tuple[str, ...] | None = None
    """Those that were known to be open when it was built; None if an older version wrote the record."""

    def to_dict(self) -> dict[str, Any]:
        """Return this record as plain JSON values."""
        return {
            "schema": SCHEMA,
            "environment": self.environment,
            "site": self.site,
            "stack": self.stack,
            "module": self.module,
            "prefix": self.prefix,
            "modules": list(self.modules),
            "identity": dict(self.identity),
            "wheel": self.wheel,
            "versions": None if self.versions is None else dict(self.versions),
            "checks": [check.to_dict() for check in self.checks],
            "seconds": dict(self.seconds),
            "verdict": self.verdict.to_dict(),
            "proof": self.proof,
            "built": self.built,
            "host": self.host,
            "job": self.job,
            "provision": self.provision,
            "user": self.user,
            "forced": self.forced,
            "traces": [trace.to_dict() for trace in self.traces],
            "known_advisories": None if self.advisories is None else list(self.advisories),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Record:
        """Read back what `to_dict` returned.

        Raises:
            ValueError: the schema is another one, a value is missing or of another type, or the verdict is not one of
                a proof that passed. Such a record was damaged or edited.
        """
        stored.refuse_newer(data, SCHEMA)
        verdict, forced = ProofResult.from_dict(stored.mapping(data, "verdict")), stored.optional_text(data, "forced")
        if not verdict.verdict.passed and not forced:
            raise ValueError("`verdict` is not one of a proof that passed")
        seconds, identity = stored.mapping(data, "seconds"), stored.mapping(data, "identity")
        checks = () if data.get("checks") is None else stored.sequence(data, "checks")
        return cls(
            environment=stored.text(data, "environment"),
            site=stored.text(data, "site"),
            stack=stored.text(data, "stack"),
            module=stored.text(data, "module"),
            prefix=stored.text(data, "prefix"),
            modules=stored.texts(data, "modules"),
            identity={key: stored.text(identity, key) for key in identity},
            wheel=stored.optional_text(data, "wheel"),
            versions=None if data.get("versions") is None else dict(stored.mapping(data, "versions")),
            checks=tuple(Check.from_dict(check) for check in checks),
            seconds={key: stored.number(seconds, key) for key in seconds if seconds[key] is not None},
            verdict=verdict,
            proof=stored.text(data, "proof"),
            built=stored.text(data, "built"),
            host=stored.text(data, "host"),
            job=stored.optional_text(data, "job"),
            provision=stored.text(data, "provision"),
            user=stored.optional_text(data, "user"),
            forced=forced,
            advisories=stored.texts(data, "known_advisories") if data.get("known_advisories") is not None else None,
            traces=tuple(map(Trace.from_dict, stored.sequence(data, "traces") if "traces" in data else ())),
        )
