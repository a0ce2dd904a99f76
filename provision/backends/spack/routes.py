"""How much each route would build, and about how long: what `plan` says before anything starts. Pure."""

from __future__ import annotations

from provision.wording import about, count

# Counted with Spack 1.2.0.dev0 and spack-packages 1e8cf05, externals left out: 154 for arch haswell of `example-slurm` with the
# pins of `source_route.py`, 155 without them.
SOURCE_PACKAGES = 155
# Of those, the ones that take as long as all others together.
LARGE = ("py-tensorflow with bazel", "llvm", "rust", "openjdk")
# Guesses from a few runs on 2 cores: solving and installing wheels, and the CPU seconds of compiling Horovod, which runs on all
# cores; installing from a cache. Not measured on a quiet machine.
WHEELS_S = 60.0
HOROVOD_CPU_S = 170.0
CACHE_S = 45.0


def describe_routes(packages: int, *, cores: int, compiles: bool, cache: str, took_s: float = 0.0) -> tuple[str, ...]:
    """One line for each route: the one that is taken first. `packages` is the number of those that it builds.

    `took_s` are the seconds of the last build of the stack; if there was none (0), they are estimated.
    """
    before = f"{about(took_s)} as the last time" if took_s else ""
    if cache:
        took = before or about(CACHE_S)
        taken = f"route wheels: {count(packages, 'package')} from {cache}, {took}; nothing is compiled"
    else:
        seconds = WHEELS_S + (HOROVOD_CPU_S / max(cores, 1) if compiles else 0.0)
        what = "only Horovod is compiled" if compiles else "nothing is compiled"
        took = before or f"{about(seconds)} with {count(cores, 'core')}"
        taken = f"route wheels: builds {count(packages, 'package')}, {took}; {what}"
    other = f"route source: would build about {SOURCE_PACKAGES} packages in hours, among them {', '.join(LARGE)}"
    return (taken, f"{other}; only `provision spack show --route source` writes it")
