"""A verdict: the checks of a proof with their results, the figures that the run measured, and in which circumstances."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar

from provision.model.check import Check
from provision.model.stored import Stored, refuse_newer
from provision.profile.reader import Mark, Reader
from provision.wording import count


@dataclass(frozen=True, slots=True, kw_only=True)
class Reads(Stored):
    """What the import of the framework looked up and read below the root, and below the base Python if that is shared too.

    The first process of a node has `lookups` and `bytes`; all processes of a node have `node_lookups` and `node_bytes`, if the
    file system keeps nothing for the next process. Bytes are those that were read, and all of each library that was mapped.
    """

    lookups: int
    bytes: int
    node_lookups: int
    node_bytes: int
    elsewhere: int
    """Look-ups of one process outside those folders and the system's: libraries of modules, the home folder."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures(Stored):
    """What the run measured, for records and for users; no figure alone decides whether the proof passes.

    If ranks report different figures, the worst is given: lowest accuracy, lowest speed, highest loss. A figure is None
    if no finished report contains a usable number.
    """

    ranks: int
    """Processes that finished, whether or not they were connected."""
    hosts: tuple[str, ...]
    """Distinct host names, sorted. On an emulated cluster all nodes have the same name."""
    gpus: int
    """Processes that used a GPU."""
    accuracy: float | None
    """Share of test images recognised, 0..1."""
    loss_before: float | None
    loss_last: float | None
    images_per_second: float | None
    """The speed of all ranks together, over all epochs except the first."""
    seconds: float | None
    """From the start of the slowest process to its end, imports included."""
    versions: Mapping[str, str]
    """The versions that the first rank reports: python, numpy, tensorflow, keras, horovod, mpi."""
    start_seconds: float | None = None
    """From the start of the slowest process until it had imported everything and knew the other ranks (`hvd.init`)."""
    reads_files: Reads | None = None
    """What the import costs from the plain files; None if it was not measured: it needs `strace` on the node."""
    reads_image: Reads | None = None
    """The same through the image of the environment, if it has one."""
    weights_sha256: str | None
    """Digest of the trained weights, if it is the same on all ranks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict(Stored):
    """The outcome of a proof: passed only if there are checks and every one of them passed."""

    SCHEMA: ClassVar[int] = 1
    checks: tuple[Check, ...]
    figures: Figures

    @property
    def passed(self) -> bool:
        """Whether the environment is proved."""
        return bool(self.checks) and all(check.passed for check in self.checks)

    @property
    def failures(self) -> tuple[Check, ...]:
        """The checks that failed, the likeliest cause first."""
        return tuple(check for check in self.checks if not check.passed)

    def join(self, title: str, later: "Verdict") -> "Verdict":
        """With the checks of a later run, under its title. The figures stay those of this run, except the lower accuracy."""
        figures, others = self.figures, later.figures
        accuracies = [one.accuracy for one in (figures, others) if one.accuracy is not None]
        return Verdict(
            checks=(*self.checks, *(replace(check, name=f"{title}: {check.name}") for check in later.checks)),
            figures=replace(
                figures,
                accuracy=min(accuracies, default=None),
                versions={**others.versions, **figures.versions},
            ),
        )

    def to_dict(self) -> dict[str, Any]:
        """The verdict as plain JSON values, for the record of the environment."""
        return {"schema": self.SCHEMA, "passed": self.passed, **Stored.to_dict(self)}

    def add_faults(self, table: Reader) -> None:
        """Refuse an outcome that is not the one of the checks: another version wrote it, or it was edited."""
        refuse_newer(table.data, self.SCHEMA)
        if self.passed is not table.data.get("passed"):
            table.fault("passed", f"is {table.data.get('passed')!r}, but its checks say {self.passed!r}")


@dataclass(frozen=True, slots=True, kw_only=True)
class ProofResult(Stored):
    """A verdict with what it was given on."""

    SCHEMA: ClassVar[int] = Verdict.SCHEMA
    verdict: Annotated[Verdict, Mark.BESIDE]
    data: str
    """The data set that was trained on."""
    trained_by: str = ""
    """Who trained, in words; a build that was continued after an upgrade has none."""
    command: tuple[str, ...]
    modules: tuple[str, ...]
    """The modules that were loaded."""
    seconds: float
    date: str
    """The day, in UTC: `2026-11-22`."""
    findings: tuple[str, ...] = ()
    """What was worse than in the earlier proofs of the environment, by more than its site tolerates."""

    def __post_init__(self) -> None:
        """Without words for who trained, it was the ranks."""
        object.__setattr__(self, "trained_by", self.trained_by or count(self.verdict.figures.ranks, "rank"))

    def join(self, title: str, later: "ProofResult") -> "ProofResult":
        """With what was proved later in the same environment, with a framework or backend of this title."""
        return replace(
            self,
            verdict=self.verdict.join(title, later.verdict),
            trained_by=f"{self.trained_by} and, with {title}, {later.trained_by}",
            seconds=self.seconds + later.seconds,
        )

    def to_dict(self) -> dict[str, Any]:
        """The verdict's JSON, with the circumstances."""
        return {**Stored.to_dict(self), "seconds": round(self.seconds, 1)}

    @property
    def summary(self) -> str:
        """The line that `module help` and `list` show of a proof that passed."""
        figures = self.verdict.figures
        nodes, speed = len(figures.hosts), figures.images_per_second
        agreed = ", weights identical" if any(check.name == "weights" for check in self.verdict.checks) else ""
        accuracy = "an unknown accuracy" if figures.accuracy is None else f"{figures.accuracy:.1%}"
        return (
            f"{self.trained_by} on {nodes} node{'s' * (nodes != 1)} trained {self.data} to "
            f"{accuracy}{f' at {speed:.0f} images/s' if speed else ''}{agreed} ({self.date})"
        )
