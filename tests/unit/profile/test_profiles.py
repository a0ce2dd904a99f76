"""The profiles of real sites: they have no fault, every value has a source, and they follow the site pages."""

from __future__ import annotations

import pytest

from golden_files import stack
from parts.loops import for_each
from parts.profiles import ARCHS, FILLED, PROFILES, parsed, profile
from provision.errors import ConfigError
from provision.jobs.build_job import build_batch
from provision.jobs.limits import refusals
from provision.knowledge.targets import require_known_target
from provision.launch.rank_threads import explain_too_many_threads, rank_threads
from provision.machine.configuration import shipped
from provision.profile.provenance import walk
from provision.profile.site import read_site
from provision.schedulers import scheduler_for

WANTED = {
    "nersc-cori": ["haswell", "knl"],
    "sigma2-saga": ["normal", "hugemem", "accel", "a100"],
    "generic-slurm": ["cpu", "gpu"],
    "alcf-theta": ["knl"],
    "nyu-greene": ["gpu", "cpu"],
    "nersc-perlmutter": ["cpu", "gpu"],
    "alcf-polaris": ["gpu"],
    "sigma2-olivia": ["accel", "cpu"],
    "nyu-torch": ["h200", "h100", "a100", "l40s", "rtx6000", "cpu"],
}
OUR_OWN_KEYS = ("name", "extends", "title", "root", "stack", "sources.")

every_profile = for_each("name", PROFILES)
every_arch = for_each(("name", "arch"), ARCHS)


def test_there_is_a_profile_for_each_known_site_with_its_archs() -> None:
    assert {name: list(parsed(name)["archs"]) for name in PROFILES} == WANTED


@every_profile
def test_each_profile_has_no_fault_and_a_scheduler(name: str) -> None:
    site = profile(name)
    assert site.name == name
    assert scheduler_for(site.scheduler.name).SUBMIT in ("sbatch", "qsub")
    for arch in site.archs:
        require_known_target(arch.target)
        stack = shipped.load_stack(arch.stack or site.stack)
        assert stack.name.endswith("-gpu") is (arch.gpu is not None and "venv" in site.runtimes)


@every_profile
def test_every_value_of_a_profile_has_a_source(name: str) -> None:
    site = profile(name)
    without_source = [
        path for path, _ in walk(parsed(name)) if not path.startswith(OUR_OWN_KEYS) and site.source(path) is None
    ]
    assert not without_source


@every_arch
def test_the_build_job_of_each_arch_is_accepted_and_its_threads_fit_the_nodes(name: str, arch: str) -> None:
    site = profile(name)
    kind = site.arch(arch)
    if "account" in site.scheduler.required:
        with pytest.raises(ConfigError, match="`account`"):
            build_batch(site, kind, stack(), "x", "/jobs")
    assert refusals(site, kind, build_batch(site, kind, stack(), "x", "/jobs", account="tests")) == ()
    assert kind.gpu is None or kind.proof.ranks_per_node <= kind.gpu.per_node
    assert kind.node is not None
    for ranks in {1, kind.proof.ranks_per_node, kind.node.sockets}:
        threads = rank_threads(kind, ranks)
        assert threads is not None
        assert explain_too_many_threads(kind.node, ranks, threads.inter, threads.intra) is None


def test_the_generic_profile_is_refused_until_it_is_filled_in() -> None:
    with pytest.raises(ConfigError, match="44 values") as caught:
        read_site(parsed("generic-slurm"), "sites/generic-slurm.toml", {})
    assert [line.split(":")[0] for line in caught.value.evidence] == list(FILLED)


@every_profile
def test_no_profile_contains_the_folder_of_another_person(name: str) -> None:
    data = parsed(name)
    plugin = data.get("strategies", {}).pop("cray-ml-plugin", None)
    assert plugin is None or "which the site did not maintain" in plugin["note"]
    assert not [word for word in ("mendygra", "NetID", "nnXXXXk") if word in str(data)]
