"""What `site new` proposes, from the nodes of a scheduler and the modules of a site."""

from __future__ import annotations

import pytest

from provision.launch.available_modules import describe
from provision.planning.site_proposals import SeenMachine, kinds_by_name, propose, with_versions
from provision.schedulers.slurm import parse_node_kinds

# What Slurm 22.05 printed for three partitions over two kinds of nodes.
SINFO = """\
normal*|8:1:1|16384|(null)|zen3,ib|1|infinite|NO
accel|4:1:1|8192|gpu:a100:4|zen3|1|10:00|EXCLUSIVE
all|8:1:1|16384|(null)|zen3,ib
all|4:1:1|8192|gpu:a100:4|zen3
"""
KINDS = parse_node_kinds(SINFO)
MODULES = tuple(map(describe, ("gcc/12.2.0", "openmpi/4.1.6", "mpich/4.0.2", "cuda/12.2.2", "python/3.11.2", "vim/9")))
TYPES = ("pmix", "cray_shasta", "pmi2")
SEEN = SeenMachine(values={"root": "/r"}, kinds=KINDS, modules=MODULES, targets={"zen3", "haswell"}, mpi_types=TYPES)


def test_the_kinds_of_nodes_of_slurm_are_read() -> None:
    assert len(KINDS) == 4
    normal, accel = KINDS[:2]
    assert (normal.partition, normal.default, normal.cores, normal.memory_gib, normal.gpus) == (
        "normal",
        True,
        8,
        16,
        0,
    )
    assert (accel.default, accel.gpus, accel.gpu_type, accel.features) == (False, 4, "a100", ("zen3",))
    (kind,) = parse_node_kinds("p|2:64:2|524288|gpu:4(S:0-1),nic:2|(null)")
    assert (kind.gpus, kind.gpu_type, kind.cores, kind.threads, kind.features) == (4, "", 128, 256, ())
    (kind,) = parse_node_kinds("p|48:1:1|192000|(null)|(null)")
    assert (kind.sockets, kind.cores, kind.threads) == (1, 48, 48), "without a topology"


@pytest.mark.parametrize(
    "line", ["", "x", "a|b|c|d|e", "p|2:4:1|16+|(null)|(null)", "p|2:4|16|(null)|x", "p|²:1:1|1|x|y"]
)
def test_a_line_that_is_not_of_that_form_is_left_out(line: str) -> None:
    assert parse_node_kinds(line) == ()


@pytest.mark.parametrize(
    ("key", "answers", "proposal"),
    [
        ("root", {}, "/r"),
        ("modules.init", {}, ""),
        ("archs.cpu.job.partition", {}, "normal"),
        ("archs.gpu.job.partition", {}, "accel"),
        ("archs.cpu.target", {}, "zen3"),
        ("archs.cpu.job.constraint", {}, "-"),  # a partition of one kind of node
        ("archs.cpu.job.constraint", {"archs.cpu.job.partition": "all"}, "zen3"),
        ("archs.cpu.job.account", {}, "-"),
        ("archs.cpu.job.time", {}, "00:30:00"),
        ("archs.gpu.job.time", {}, "00:10:00"),
        ("archs.cpu.job.memory", {}, "2G"),
        ("archs.cpu.job.exclusive", {}, "false"),
        ("archs.gpu.job.exclusive", {}, "true"),
        ("scheduler.required", {}, "partition"),
        ("archs.cpu.node.cores", {"archs.cpu.job.partition": "all"}, "8"),
        ("archs.gpu.node.cores", {"archs.gpu.job.partition": "all"}, "4"),
        ("archs.gpu.node.cores", {"archs.gpu.job.partition": "normal"}, ""),
        ("archs.cpu.node.memory_gb", {}, "16"),
        ("archs.gpu.gpu.per_node", {}, "4"),
        ("archs.gpu.gpu.capabilities", {}, "80"),
        ("archs.gpu.proof.ranks_per_node", {}, "4"),
        ("archs.cpu.modules", {}, "gcc/12.2.0 openmpi/4.1.6 python/3.11.2"),
        ("archs.gpu.modules", {}, "gcc/12.2.0 openmpi/4.1.6 cuda/12.2.2 python/3.11.2"),
        ("archs.cpu.mpi.family", {"archs.cpu.modules": "gcc/12.2.0 mpich/4.0.2"}, "mpich"),
        ("archs.cpu.mpi.family", {"archs.cpu.modules": "GCC/12 OpenMPI/4.1.5-GCC-12.3.0"}, "openmpi"),
        ("archs.cpu.mpi.family", {"archs.cpu.modules": "gcc/12.2.0"}, ""),
        ("archs.cpu.launcher.options", {"archs.cpu.mpi.family": "openmpi"}, "--mpi=pmix"),
        ("archs.cpu.launcher.options", {"archs.cpu.mpi.family": "mpich"}, "--mpi=pmi2"),
        (
            "archs.cpu.launcher.options",
            {"archs.cpu.mpi.family": "mpich", "archs.cpu.modules": "PrgEnv-gnu/8.5.0 cray-mpich/8.1.28"},
            "--mpi=cray_shasta",
        ),
        ("archs.cpu.launcher.options", {}, ""),
        ("archs.gpu.gpu.nccl_home", {}, ""),
    ],
)
def test_a_blank_is_proposed_from_what_the_machine_shows(key: str, answers: dict[str, str], proposal: str) -> None:
    assert propose(key, answers, ["gpu"], SEEN) == proposal


def test_nothing_is_proposed_without_a_scheduler_and_modules() -> None:
    assert propose("archs.cpu.node.cores", {}, ["gpu"], SeenMachine()) == ""
    assert propose("archs.cpu.modules", {}, ["gpu"], SeenMachine()) == ""
    assert propose("archs.cpu.launcher.options", {"archs.cpu.mpi.family": "mpich"}, ["gpu"], SeenMachine()) == ""


OTHERS = """\
work*|2:32:1|262144|(null)|haswell|1|1-00:00:00|NO
work*|2:32:1|258048|(null)|haswell|1|1-00:00:00|NO
new|2:32:1|262144|(null)|zen3|1|1-00:00:00|NO
debug|2:32:1|262144|(null)|haswell|1|10:00|NO
"""


@pytest.mark.parametrize(
    ("sinfo", "names"),
    [
        (SINFO, {"cpu": "normal", "gpu": "accel"}),
        (OTHERS, {"haswell": "work", "zen3": "new"}),
        (OTHERS.replace("zen3", "x"), {"work": "work", "new": "new"}),
        ("a|4:1:1|8192|gpu:a100:4|x\na|8:1:1|8192|gpu:h100:8|x\n", {"a100": "a", "h100": "a"}),
        ("a|4:1:1|8192|gpu:4|x\na|8:1:1|8192|gpu:8|x\n", {"gpu1": "a", "gpu2": "a"}),
        ("", {}),
    ],
)
def test_each_kind_of_node_has_a_name(sinfo: str, names: dict[str, str]) -> None:
    kinds = kinds_by_name(parse_node_kinds(sinfo), {"zen3", "haswell"})
    assert {name: kind.partition for name, kind in kinds.items()} == names


def test_a_module_without_a_version_gets_the_newest_one_that_the_site_has() -> None:
    modules = tuple(map(describe, ("gcc/12.2.0", "gcc/9.4", "openmpi", "x/gcc/13")))
    assert with_versions("gcc, openmpi cmake gcc/9.4", modules) == "gcc/12.2.0 openmpi cmake gcc/9.4"
