"""Which stack works on a machine: the newest one that fulfils a wish, and why each newer one was passed over. Pure."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from provision.errors import PlanError
from provision.knowledge.combinations import Cell, Combinations, find_cell, keras_of
from provision.knowledge.cuda import gpu_obstacle, same_major
from provision.knowledge.frameworks import FRAMEWORKS
from provision.knowledge.frameworks.interface import REPORTED, MathLibrary
from provision.knowledge.frameworks.tensorflow import TENSORFLOW
from provision.knowledge.versions import ascending, release
from provision.profile.arch import Arch
from provision.profile.site import Site
from provision.profile.stack import Stack, Wish


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """What a machine, or the profile of one, offers. None: it is not known. `source`: who offers it, with the verb."""

    pythons: tuple[str, ...] | None
    cuda: tuple[str, ...] | None
    """The CUDA versions of an arch with GPUs; empty if it has GPUs but no CUDA. None on an arch without GPUs."""
    gpus: bool
    glibc: str | None
    machine: str
    """The family of the CPU: `x86_64`."""
    source: str
    cuda_modules: tuple[str, ...] = ()
    """The CUDA versions of all modules that the site's module system lists, loaded or not."""
    capabilities: tuple[str, ...] = ()
    """The compute capabilities of the GPUs."""
    math: MathLibrary | None = None
    """The library with which the framework must compute on the CPUs of the arch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """Whether a stack works with an offer: the Python that it would have, and what is against it.

    `against`: reasons of which we are sure; `doubts`: the others; `measured`: whether `make matrix` proved it.
    """

    stack: Stack
    minor: str | None
    against: tuple[str, ...]
    doubts: tuple[str, ...]
    measured: bool
    proved: str | None = None
    """The day on which an environment of it last passed its proof on this arch below the root of the site; None if none did."""

    @property
    def state(self) -> str:
        """`works`, `unsure` (nothing sure is against it, but it has doubts or was neither measured nor proved), or `no`.

        What was proved here is better evidence than a doubt.
        """
        works = self.proved or (self.measured and not self.doubts)
        return "no" if self.against else "works" if works else "unsure"


def judge_stack(stack: Stack, offer: Offer, known: Combinations, cells: Sequence[Cell]) -> Fit:
    """What speaks for and against a stack on what is offered."""
    version = stack.framework.version
    minor = next((minor for minor in stack.pythons if offer.pythons is None or minor in offer.pythons), None)
    measured = minor if stack.horovod and stack.frameworks == (TENSORFLOW,) else None
    cell = find_cell(cells, version, keras_of(version, stack.environ), measured) if measured else None
    reasons = list(_reasons(stack, offer, known, minor))
    if cell and cell.failed:
        reasons.append((f"failed when it was measured ({cell.date}): {cell.failed}", False))
    elif cell and offer.gpus:  # the measurements are of `tensorflow-cpu`
        reasons.append(("proved on CPUs only", False))
    return Fit(
        stack=stack,
        minor=minor,
        against=tuple(reason for reason, sure in reasons if sure),
        doubts=tuple(reason for reason, sure in reasons if not sure),
        measured=cell is not None and not cell.failed and not offer.gpus,
    )


def _reasons(stack: Stack, offer: Offer, known: Combinations, minor: str | None) -> Iterator[tuple[str, bool]]:
    """What is known against a stack on what is offered, and whether it is sure."""
    version, framework = stack.framework.version, stack.framework.interface
    if minor is None:
        there = ", ".join(offer.pythons or ()) or "none"
        yield f"has locks for Python {', '.join(ascending(stack.pythons))}, {offer.source} {there}", True
    row = known.of_framework(framework.name, version)
    if row and offer.glibc and release(offer.glibc) < release(row.glibc):
        yield f"needs glibc {row.glibc}, {offer.source} {offer.glibc}", "glibc" not in row.unsure
    if row and offer.machine not in row.machines:
        yield f"has wheels for {' and '.join(row.machines)}, {offer.source} {offer.machine}", True
    wanted, other = framework.cuda_of(version), other_kind(stack, offer)
    if other:
        yield other, True
    elif offer.gpus and stack.uses_cuda_of_site and offer.cuda is not None and wanted and not _fits(wanted, offer.cuda):
        there = " and ".join(offer.cuda) or "none"
        yield f"wants CUDA {wanted}, {offer.source} {there}{_other_cuda(wanted, offer)}", True
    obstacle = gpu_obstacle(framework, version, offer.machine, offer.capabilities) if offer.gpus and not other else None
    if obstacle:
        yield obstacle
    if offer.math and not framework.has_onednn(stack.framework.package, version):
        yield f"computes with Eigen on CPUs, the arch requires {REPORTED[offer.math]}", True
    horovod = known.of_horovod(version) if stack.horovod else None
    if horovod and not horovod.sure:
        yield f"Horovod {stack.horovod} on it was {horovod.builds}", False


def other_kind(stack: Stack, offer: Offer) -> str | None:
    """Why the stack is for another kind of arch: one with GPUs, or one without. None if it is not."""
    if offer.gpus:
        if stack.cpus_only:
            return "was tried on CPUs only"
        of_cpus = stack.framework.for_cpus
        return f"installs `{stack.framework.package}` {stack.framework.version}, which uses no GPU" if of_cpus else None
    # The package with GPU support runs on CPUs too, and is the only one of TensorFlow 1.15.
    return "is for archs with GPUs" if stack.name.endswith("-gpu") else None


def _fits(wanted: str, versions: Sequence[str]) -> bool:
    return any(same_major(wanted, version) for version in versions)


def _other_cuda(wanted: str, offer: Offer) -> str:
    """What the site's modules offer beside the CUDA that the arch loads."""
    if not offer.cuda_modules or offer.cuda_modules == offer.cuda:
        return ""
    others = f"; modules offer {' and '.join(offer.cuda_modules)}"
    return f"{others}: name one that fits in `modules` of the arch" if _fits(wanted, offer.cuda_modules) else others


def fit(stack: Stack, wish: Wish, without: Sequence[str] = ()) -> Stack | None:
    """The stack with the Pythons that are wished for, or None if it does not fulfil the wish.

    The parts of the wish in `without` do not count.
    """
    from packaging.specifiers import SpecifierSet

    pythons = SpecifierSet("" if "python" in without else wish.python or "")
    stack = replace(stack, pythons=tuple(filter(pythons.contains, stack.pythons)))
    name, versions = wish.framework
    if [one.name for one in stack.frameworks] != [name]:
        return None
    fulfilled = {
        name: SpecifierSet(versions).contains(stack.framework.version, prereleases=True),
        "python": bool(stack.pythons),
        "keras": wish.keras in (None, keras_of(stack.framework.version, stack.environ)),
        "program": wish.program in (None, stack.proof_program),
        "horovod": wish.horovod == (stack.horovod is not None),
    }
    return stack if all(fulfilled[part] or part in without for part in fulfilled) else None


def newest_first(stacks: Iterable[Stack]) -> list[Stack]:
    """The stacks by their framework, the newest first; of one version by name, so that the plain one comes first."""
    by_name = sorted(stacks, key=lambda stack: stack.name)
    by_version = sorted(by_name, key=lambda stack: release(stack.framework.version), reverse=True)
    return sorted(by_version, key=lambda stack: list(FRAMEWORKS).index(stack.framework.name))


def recommended(verdicts: Sequence[Fit]) -> Fit | None:
    """Of these, which are the newest first, one for who has no other wish: the newest that works, or else may work."""
    good = [verdict for verdict in verdicts if not verdict.against]
    return min(good, key=lambda verdict: verdict.state != "works", default=None)


def choose(
    wish: Wish, stacks: Sequence[Stack], offer: Offer, known: Combinations, cells: Sequence[Cell]
) -> tuple[Fit, tuple[str, ...]]:
    """The newest stack that fulfils the wish and works on the offer, and a line for each newer one that was passed over.

    Of stacks of one version it is the one that was measured.

    Raises:
        PlanError: there is none; the error names what is against each, and the fewest wishes to drop.
    """
    of_kind = [stack for stack in stacks if other_kind(stack, offer) is None]
    ordered = newest_first(of_kind)

    def judged(*without: str) -> list[Fit]:
        fitting = (fit(stack, wish, without) for stack in ordered)
        return [judge_stack(stack, offer, known, cells) for stack in fitting if stack]

    verdicts = judged()
    good = [verdict for verdict in verdicts if not verdict.against]
    if not good:
        raise _impossible(wish, judged)
    newest = release(good[0].stack.framework.version)
    same = [verdict for verdict in good if release(verdict.stack.framework.version) == newest]
    chosen = min(same, key=lambda verdict: (not verdict.measured, bool(verdict.doubts), len(verdict.stack.name)))
    # Of the same version, those that were not chosen are as good, or have something against them.
    newer = [verdict for verdict in verdicts if verdict.against and release(verdict.stack.framework.version) >= newest]
    return chosen, tuple(_line(verdict) for verdict in newer)


def _line(verdict: Fit) -> str:
    return f"{verdict.stack.name}: {'; '.join(verdict.against)}"


def _impossible(wish: Wish, judged: Callable[..., list[Fit]]) -> PlanError:
    """The error for a wish that no stack fulfils here, with the smallest set of its parts whose loss would help."""
    evidence = [_line(verdict) for verdict in judged()] or [f"no stack has all of: {', '.join(wish.parts)}"]
    for number in range(1, len(wish.parts) + 1):
        ways = []
        for dropped in itertools.combinations(wish.parts, number):
            works = next((verdict.stack.name for verdict in judged(*dropped) if not verdict.against), None)
            ways += [(dropped, works)] if works else []
        if ways:
            evidence += [f"without {' and '.join(f'`{part}`' for part in way)}: `{name}` works" for way, name in ways]
            return PlanError(
                f"no stack fulfils the wishes of `{wish.name}` here",
                evidence=evidence,
                hint=f"drop {' and '.join(f'`{part}`' for part in ways[0][0])} from its `[choose]`, or "
                f"`--stack {ways[0][1]}`",
            )
    return PlanError(
        f"no stack works here, even without the wishes of `{wish.name}`",
        evidence=[_line(verdict) for verdict in judged(*wish.parts)],
        hint="`provision compat` shows why not",
    )


def missing_in_profile(arch: Arch, stack: Stack) -> tuple[str, ...]:
    """What no module of a profile is named after, although a build needs it; the node may have it all the same."""
    names = " ".join(arch.modules).lower()
    missing = []
    if arch.python is None and "python" not in names and "conda" not in names:
        missing.append(
            f"no module is named after Python: the node itself needs Python {' or '.join(ascending(stack.pythons))}"
        )
    if arch.gpu and not stack.uses_cuda_of_site:
        return tuple(missing)
    if arch.gpu and "cudnn" not in names and not stack.framework.for_cpus:
        missing.append(
            f"no module is named after cuDNN: the CUDA module must contain it, or {stack.framework.interface.title} uses no GPU"
        )
    if arch.gpu and "cuda" not in names and arch.gpu.cuda_home is None:
        missing.append("no module is named after CUDA, and `gpu.cuda_home` is not set")
    return tuple(missing)


def unconfirmed_values(site: Site, arch: Arch) -> tuple[str, ...]:
    """The key paths of a profile that concern this arch and that no text confirms (`sure = false` in `[sources]`)."""
    others = tuple(f"archs.{other.name}." for other in site.archs if other.name != arch.name)
    paths = (path for source in site.sources if not source.sure for path in source.values)
    return tuple(dict.fromkeys(path for path in paths if not path.startswith(others)))
