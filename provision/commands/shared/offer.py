"""What a kind of node offers to a stack, the stack that is chosen by it, and whether a stack works there."""

from __future__ import annotations

from provision.knowledge.cuda import gpu_obstacle
from provision.machine.configuration import shipped
from provision.machine.files.disk import is_file
from provision.machine.files.tables import read_cells, read_combinations
from provision.machine.probes.offer import offer_here, offer_of_profile
from provision.planning.solver import Fit, Offer, choose, judge_stack, missing_in_profile
from provision.profile.arch import Arch
from provision.profile.site import Site
from provision.profile.stack import Stack, Wish

CANNOT_WORK = "cannot work"


def offer_for(site: Site, arch: Arch) -> Offer:
    """What an arch offers to a stack: this machine if it may be one of the site's, or else the profile alone."""
    if site.modules.name != "none" and not is_file(site.modules.init or ""):
        return offer_of_profile(arch)
    minors = dict.fromkeys(minor for stack in shipped.stacks_with_versions() for minor in stack.pythons)
    return offer_here(site, arch, tuple(minors))


def choose_stack(site: Site, arch: Arch, wish: Wish) -> tuple[Fit, tuple[str, ...]]:
    """The stack that a stack with ranges means on this arch.

    Raises:
        PlanError: none works.
    """
    stacks = shipped.stacks_with_versions()
    return choose(wish, stacks, offer_for(site, arch), read_combinations(), read_cells())


def judge_profile(site: Site, arch: Arch, stack: Stack) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """From the profile alone: why a stack cannot work on an arch, and what is to be checked."""
    offer = offer_of_profile(arch)
    if "venv" not in site.runtimes:
        # The container has Python and CUDA: of the nodes only their GPUs matter, to the wheels that an overlay has.
        wheels = arch.gpu is not None and site.container is not None and site.container.overlay is not None
        of, sees = stack.framework, (offer.machine, offer.capabilities)
        obstacle = gpu_obstacle(of.interface, of.version, *sees) if wheels else None
        against, doubts = ((obstacle[0],) if obstacle and obstacle[1] is sure else () for sure in (True, False))
        return against, doubts
    verdict = judge_stack(stack, offer, read_combinations(), read_cells())
    return verdict.against, (*verdict.doubts, *missing_in_profile(arch, stack))


def cannot_work(site: Site) -> str:
    """How a stack fails that cannot work: at all, or not as a virtual environment if the site has containers too."""
    return f"{CANNOT_WORK} as a virtual environment" if {"container", "venv"} <= set(site.runtimes) else CANNOT_WORK
