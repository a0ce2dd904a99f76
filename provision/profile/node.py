"""The hardware of an arch's nodes (`[archs.<arch>.node]`)."""

from dataclasses import dataclass

from provision.profile.reader import Count, Positive, Reader


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """One node: its sockets, and the physical cores and hardware threads of all sockets (0: not known).

    `memory_gb` is in GiB (2³⁰ bytes), as schedulers count `G`, although the pages of sites and the key call it GB.
    """

    sockets: Positive = 1
    cores: Positive
    threads: Positive = 0
    memory_gb: Count = 0

    def __post_init__(self) -> None:
        """Without hyper-threading, each core is one thread."""
        object.__setattr__(self, "threads", self.threads or self.cores)

    def add_faults(self, table: Reader) -> None:
        """Record cores and threads that do not fit sockets and cores."""
        if self.cores > 1 and self.cores % self.sockets:  # 1 replaces a value that is already a fault
            table.fault(
                "cores", f"is for the whole node, but {self.cores} is not a multiple of its {self.sockets} sockets"
            )
        if self.threads % self.cores:
            table.fault(
                "threads", f"is for the whole node, but {self.threads} is not a multiple of its {self.cores} cores"
            )
