"""The profiles of real sites: without fault, every value with its source, and what the site pages say of them."""

from __future__ import annotations

import pytest

from golden_files import stack
from parts.profiles import ARCHS, FILLED, PROFILES, parsed, profile
from provision.errors import ConfigError
from provision.jobs.limits import refusals
from provision.knowledge.targets import require_known_target
from provision.launch.rank_threads import explain_too_many_threads, rank_threads
from provision.machine import shipped
from provision.profile.provenance import walk
from provision.profile.site import read_site
from provision.schedulers import scheduler_for

WANTED = {
    "nersc-cori": ["haswell", "knl"],
    "sigma2-saga": ["normal", "accel", "a100"],
    "generic-slurm": ["cpu", "gpu"],
    "alcf-theta": ["knl"],
    "nyu-greene": ["gpu", "cpu"],
    "nersc-perlmutter": ["cpu", "gpu"],
    "alcf-polaris": ["gpu"],
    "sigma2-olivia": ["accel"],
    "nyu-torch": ["h200", "l40s", "cpu"],
}
SAID_BY_US = ("name", "title", "root", "stack", "sources.")

every_profile = pytest.mark.parametrize("name", PROFILES)
every_arch = pytest.mark.parametrize(("name", "arch"), ARCHS)


def test_the_sites_of_the_pages_and_their_successors_are_there_with_their_archs() -> None:
    assert {name: list(parsed(name)["archs"]) for name in PROFILES} == WANTED


@every_profile
def test_a_profile_is_without_fault_and_has_a_scheduler(name: str) -> None:
    site = profile(name)
    assert site.name == name
    assert scheduler_for(site.scheduler.name).SUBMIT in ("sbatch", "qsub")
    for arch in site.archs:
        require_known_target(arch.target)
        stack = shipped.load_stack(arch.stack or site.stack)
        assert stack.name.endswith("-gpu") is (arch.gpu is not None and "venv" in site.runtimes)


@every_profile
def test_every_value_of_a_profile_says_where_it_came_from(name: str) -> None:
    site = profile(name)
    unsaid = [path for path, _ in walk(parsed(name)) if not path.startswith(SAID_BY_US) and site.source(path) is None]
    assert not unsaid


@every_arch
def test_the_threads_of_an_arch_are_within_its_nodes(name: str, arch: str) -> None:
    found = profile(name).arch(arch)
    assert found.node is not None
    for ranks in {1, found.proof.ranks_per_node, found.node.sockets}:
        threads = rank_threads(found, ranks)
        assert threads is not None
        assert explain_too_many_threads(found.node, ranks, threads.inter, threads.intra) is None


@every_arch
def test_the_build_of_an_arch_is_a_job_that_the_site_takes_once_it_has_an_account(name: str, arch: str) -> None:
    from provision.jobs.build_job import build_batch

    site = profile(name)
    found = site.arch(arch)
    if "account" in site.scheduler.required:
        with pytest.raises(ConfigError, match="wants `account` of every job"):
            build_batch(site, found, stack(), "x", "/o")
    batch = build_batch(site, found, stack(), "x", "/o", account="tests")
    assert refusals(site, found, batch) == ()
    if found.gpu:
        assert found.proof.ranks_per_node <= found.gpu.per_node


def test_the_generic_profile_is_refused_until_every_blank_is_filled_in() -> None:
    with pytest.raises(ConfigError, match="leaves 24 values to be filled in") as caught:
        read_site(parsed("generic-slurm"), "sites/generic-slurm.toml", {})
    assert [line.split(":")[0] for line in caught.value.evidence] == list(FILLED)


def test_theta_has_62_threads_in_the_job_and_cori_its_own_in_the_module() -> None:
    theta = profile("alcf-theta").arch("knl")
    assert (theta.threads.owner, theta.threads.omp, theta.node and theta.node.threads) == ("job", 62, 256)
    assert dict(theta.threads.environ) == {"KMP_BLOCKTIME": "0", "KMP_AFFINITY": "granularity=fine,compact,1,0"}
    cori = profile("nersc-cori")
    assert {arch.threads.owner for arch in cori.archs} == {"module"}
    assert [arch.node and arch.node.threads for arch in cori.archs] == [64, 272]


def test_a_foreign_folder_is_in_no_profile_but_of_the_plug_in_whose_note_says_so() -> None:
    for name in PROFILES:
        data = parsed(name)
        plugin = data.get("strategies", {}).pop("cray-ml-plugin", None)
        assert plugin is None or "which is not the site's and is gone" in plugin["note"]
        text = str(data)
        assert "mendygra" not in text
        assert "NetID" not in text
        assert "nnXXXXk" not in text
