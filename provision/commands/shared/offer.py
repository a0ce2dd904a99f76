"""What a kind of node offers to a stack, and the stack that is chosen by it."""

from __future__ import annotations

from provision.machine.configuration import shipped
from provision.machine.files.disk import is_file
from provision.machine.files.tables import read_cells, read_combinations
from provision.machine.probes.offer import offer_here, offer_of_profile
from provision.planning.solver import Choice, Offer, choose
from provision.profile.arch import Arch
from provision.profile.site import Site
from provision.profile.wish import Wish


def offer_for(site: Site, arch: Arch) -> Offer:
    """What an arch offers to a stack: this machine if it may be one of the site's, or else the profile alone."""
    if site.modules.name != "none" and not is_file(site.modules.init or ""):
        return offer_of_profile(arch)
    minors = dict.fromkeys(minor for stack in shipped.stacks_with_versions() for minor in stack.pythons)
    return offer_here(site, arch, tuple(minors))


def choose_stack(site: Site, arch: Arch, wish: Wish) -> Choice:
    """The stack that a stack with ranges means on this arch.

    Raises:
        PlanError: none works.
    """
    stacks = shipped.stacks_with_versions()
    return choose(wish, stacks, offer_for(site, arch), read_combinations(), read_cells())
