"""The Slurm profiles of `sites/`, each from `fetch` through `build --submit` to a published module, and a user's job with it.

Slurm is real, with the sites' partitions, features, CPUs, memory, licences and GPUs emulated; so are both module systems,
MPICH and Open MPI. Each site's modules have the names of its profile and this machine's parts behind them
(`parts/site_modules.py`). The changes to a copy of a profile stand here, one by one; nothing else differs.

Each test runs with the small packages of `parts/tiny.py`, whose Horovod is a real extension of the site's MPI, in half a minute;
and, marked `long`, with TensorFlow and Horovod themselves.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from parts import site_nodes
from parts.examples import Place as Examples
from parts.fixtures import share
from parts.modules import ENVIRONMENT_MODULES, LMOD, ModuleSystem, ModuleTree, bash, needed
from parts.provision import Tool, messages_of, module_init, site_file
from parts.site_modules import SiteModules
from parts.slurm import SlurmCluster
from parts.tiny import add_stack, make_site
from provision.machine.files.who_may_write import user_name

pytestmark = [pytest.mark.real, pytest.mark.slurm]

# No test machine is a KNL, and few are the others; every x86 machine that builds here is this one.
TARGET = 'target = "x86_64_v3"'
TRAIN = """\
import os
import horovod.tensorflow as hvd
import tensorflow as tf

hvd.init()
assert hvd.size() > 1, "one rank alone"
name = os.path.join(os.environ["PROVISION_OUTPUT"], "rank-{}.txt".format(hvd.rank()))
with open(name, "w") as file:
    words = (hvd.size(), hvd.local_size(), tf.__version__, os.environ["SLURMD_NODENAME"], os.environ["OMP_NUM_THREADS"])
    file.write(" ".join(map(str, words)))
"""


@dataclass(frozen=True)
class Place:
    """A site under test: its modules, the copy of its profile, and the tool with the variables of a login shell there."""

    slurm: SlurmCluster
    modules: SiteModules
    tool: Tool
    folder: Path
    site: str
    small: bool
    """Whether the packages are the small ones."""

    def build(self, arch: str, *options: str) -> str:
        """Fetch, then build by `--submit`, and return what was said; the module is published."""
        self.tool.good("fetch", "--site", self.site, "--arch", arch)
        done = self.tool.run("build", "--site", self.site, "--arch", arch, "--submit", *options)
        assert done.returncode == 0, done.stderr
        assert "publish: done" in done.stderr
        assert "on 2 nodes" in done.stderr
        return done.stderr

    def record(self, arch: str, module: str) -> dict[str, object]:
        """What is kept of the published environment."""
        record: dict[str, object] = self.tool.json("show", f"{arch}/{module}", "--site", self.site)["result"]
        return record

    def verified(self, arch: str, module: str) -> str:
        """Load the module in a fresh shell as users do; returns what `verify --loaded` says of it."""
        kind = "lua" if self.modules.system.name == "lmod" else "tcl"
        verify = shlex.join(Tool(self.tool.root).argv("verify", "--loaded"))
        done = bash(
            f"set -e\nsource {self.modules.init}\n{self.reset(arch)}\n"
            f"module use {self.tool.root}/modules/{arch}/{kind}\nmodule load {module}\n{verify}\n",
            self.modules.system,
            self.modules.path,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def reset(self, arch: str) -> str:
        """What stands before `module use` in a job of this site."""
        lines = self.job("single", arch).splitlines()
        first = next(number for number, line in enumerate(lines) if line == "fi" and "module" in lines[number + 1])
        last = next(number for number, line in enumerate(lines) if line.startswith("module use"))
        return "\n".join(lines[first + 1 : last])

    def job(self, kind: str, arch: str) -> str:
        """The script of a user's job with our module."""
        words = ("--site", self.site, "--arch", arch, "--account", "tests", "--runtime", "venv")
        return self.tool.good("job", kind, *words)

    def submitted(self, script: str, *options: str) -> tuple[str, str]:
        """Submit a script and see it end well; its number and what it printed."""
        out = self.folder / f"{time.monotonic_ns()}.out"
        words = ("sbatch", "--parsable", f"--output={out}", *options)
        job = self.slurm.run(*words, stdin=script, cwd=self.folder, environ=self.tool.env()).stdout.strip()
        assert self.slurm.wait(job, timeout_s=600) == "COMPLETED", out.read_text()
        return job, out.read_text()

    def examples(self, arch: str, module: str) -> Examples:
        """The example programs by `provision job`, with our module."""
        words = ("--site", self.site, "--arch", arch, "--account", "tests", "--runtime", "venv")
        python = Path(str(self.record(arch, module)["prefix"])) / "bin" / "python"
        return Examples(slurm=self.slurm, tool=self.tool, folder=self.folder, job_options=words, python=python)

    def users_job(self, arch: str) -> list[list[str]]:
        """A user's Horovod job, by `provision job`, under sbatch: what each rank wrote down, in their order."""
        (self.folder / "train.py").write_text(TRAIN)
        job, _ = self.submitted(self.job("horovod", arch))
        found = sorted(self.folder.glob(f"scratch/runs/{job}/rank-*.txt"), key=lambda path: int(path.stem[5:]))
        return [path.read_text().split() for path in found]

    def whole(self, arch: str, module: str, ranks: int, *options: str, named: tuple[str, ...] = ()) -> list[list[str]]:
        """Build, look at the record, load the module and run a user's job with it; what each of its ranks wrote down."""
        assert f"{ranks} ranks on 2 nodes" in self.build(arch, *options)
        record = json.dumps(self.record(arch, module))
        assert [name for name in named if name not in record] == []
        assert "as in the proof" in self.verified(arch, module)
        rows = self.users_job(arch)
        assert {row[0] for row in rows} == {str(len(rows))}
        assert len({row[3] for row in rows}) == 2, "on two nodes"
        return rows


Make = Callable[..., Place]
PLACES: list[Place] = []
REAL = pytest.param(False, id="tensorflow", marks=pytest.mark.long)


@pytest.fixture(scope="module", params=[pytest.param(True, id="tiny"), REAL])
def small_packages(request: pytest.FixtureRequest) -> bool:
    """Whether the packages are small ones in place of TensorFlow and Horovod."""
    return bool(request.param)


@pytest.fixture(scope="module")
def slurm() -> Iterator[SlurmCluster]:
    """Two nodes of each kind that is built for here."""
    with site_nodes.cluster("hsw", "knl", "milan", "a100", "c", "gpu", "cm") as one:
        yield one


@pytest.fixture(autouse=True)
def little_space(request: pytest.FixtureRequest) -> Iterator[None]:
    """A site's environments are gone when no test needs them any more: each takes a gigabyte and more."""
    yield
    if "cori" not in request.fixturenames:
        for folder in {place.tool.root / "envs" for place in PLACES}:
            shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="module")
def make(
    slurm: SlurmCluster, shared_cache: Path, small_packages: bool, tmp_path_factory: pytest.TempPathFactory
) -> Make:
    """Makes a place of a site's modules, of the Python that they have, and of changes to its profile."""

    def place(profile: str, modules: SiteModules, minor: str, *changes: tuple[str, str]) -> Place:
        folder = tmp_path_factory.mktemp(profile)
        scratch = str(folder / "scratch")
        environ = {**slurm.environ, "SCRATCH": scratch, "USERWORK": scratch}
        site = site_file(folder, profile, *changes)
        if small_packages:
            tiny = make_site(folder / "tiny")
            stacks = re.findall('^stack = "(.+?)"', Path(site).read_text(), re.MULTILINE)
            add_stack(tiny, stacks[0], f"py{minor.replace('.', '')}")
            tool = tiny.tool(**environ)
        else:
            root = folder / "root"
            tool = Tool(root, {**share(root, shared_cache), **environ})
        PLACES.append(Place(slurm=slurm, modules=modules, tool=tool, folder=folder, site=site, small=small_packages))
        return PLACES[-1]

    return place


def with_parts(system: ModuleSystem | None, tree: ModuleTree, *parts: str) -> ModuleSystem:
    """The module system; the test is skipped where it, or a part of the site's modules, cannot be had."""
    for part in tree.missing.keys() & set(parts):
        pytest.skip(f"{part}: {tree.missing[part]}")
    return needed(system)


# Cori

# The module of the profile's stack, and that with TensorFlow's own package.
CORI = {True: "tensorflow/1.15.2-intel", False: "tensorflow/1.15.5"}


@pytest.fixture(scope="module")
def cori(make: Make, module_tree: ModuleTree, small_packages: bool, tmp_path_factory: pytest.TempPathFactory) -> Place:
    """A Cray XC: what a login shell has loaded is another compiler's, and taken away by name."""
    system = with_parts(ENVIRONMENT_MODULES, module_tree, "python/3.7")
    loaded = ("PrgEnv-intel/6.0.5", "craype-haswell", "craype-hugepages2M", "atp/2.1.3")
    modules = SiteModules(tmp_path_factory.mktemp("cori-modules"), module_tree, system, loaded=loaded)
    modules.add("PrgEnv-intel/6.0.5", CC="icc", MPICH_CXX="icpc")
    modules.add("atp/2.1.3", ATP_ENABLED="1")
    modules.add("craype-hugepages2M", HUGETLB_MORECORE="yes")
    modules.add("craype-haswell", CRAY_CPU_TARGET="haswell")
    modules.add("craype-mic-knl", CRAY_CPU_TARGET="mic-knl")
    modules.add_cray_compilers("PrgEnv-gnu/6.0.5")
    modules.add("python/3.7-anaconda-2019.07", "python/3.7")
    changes = [
        module_init(modules.init),
        ('target = "haswell"', TARGET),
        ('target = "mic_knl"', TARGET),
    ]
    if not small_packages:  # with TensorFlow's own package, which has Eigen alone
        changes += [
            ('stack = "tensorflow-1.15.2-intel"', 'stack = "tensorflow-1.15.5"'),
            ('math = "onednn"  ', '# math = "onednn"  '),
            (' "archs.*.math",', ""),
        ]
    return make("nersc-cori", modules, "3.7", *changes)


@pytest.mark.parametrize(("arch", "ranks", "omp"), [("haswell", 4, "32"), ("knl", 2, "66")])
def test_cori_with_tensorflow_1_15_on_both_kinds_of_node(cori: Place, arch: str, ranks: int, omp: str) -> None:
    module = CORI[cori.small]
    version = module.split("/")[1].removesuffix("-intel")
    library = "oneDNN on CPUs" if cori.small else "Eigen on CPUs, chosen by TensorFlow"
    named = ("PrgEnv-gnu/6.0.5", "python/3.7-anaconda-2019.07", library)
    rows = cori.whole(arch, module, ranks, "--account", "tests", named=named)
    assert '"PrgEnv-intel' not in json.dumps(cori.record(arch, module))
    node = {"haswell": "hsw", "knl": "knl"}[arch]
    assert [row[:3] for row in rows] == [[str(ranks), str(ranks // 2), version]] * ranks
    assert {row[3] for row in rows} == {f"{node}1", f"{node}2"}
    assert {row[4] for row in rows} == {omp}, "the module owns OMP_NUM_THREADS there"
    if arch == "knl" and not cori.small:
        cori.examples(arch, module).check("graph")
        cori.examples(arch, module).check("graph-horovod", again="requeue")
        cori.examples(arch, module).check("tfrecord", again="requeue")


@pytest.mark.parametrize("small_packages", [REAL], indirect=True, scope="module")
def test_the_oldest_tensorflow_is_proved_by_numbers_on_coris_knl(cori: Place) -> None:
    """TensorFlow 1.15, natively graph-style, on a Python that virtualenv serves no more."""
    if not (cori.tool.root / "modules" / "knl").exists():  # this test alone was asked for
        cori.build("knl", "--account", "tests")
    found = cori.folder / "numbers.json"
    test = shlex.join(cori.tool.argv("test", "knl/tensorflow/1.15.5", "--site", cori.site, "--thorough", "--json"))
    cori.submitted(f"#!/bin/bash\n{test} >{found}\n", "--nodes=2", "--ntasks-per-node=1", "--constraint=knl")
    said = messages_of(json.loads(found.read_text()))
    assert any(message.startswith("passed on 2 ranks, worst difference") for message in said.values())
    assert said["graph"].startswith("passed"), said


def test_coris_own_module_is_proved_where_nothing_of_ours_is_loaded(cori: Place) -> None:
    """Behind its name is what we built for haswell: the site's own cannot be had."""
    if not (cori.tool.root / "modules" / "haswell").exists():  # this test alone was asked for
        cori.build("haswell", "--account", "tests")
    prefix = str(cori.record("haswell", CORI[cori.small])["prefix"])
    (cori.modules.path / "tensorflow").mkdir()
    (cori.modules.path / "tensorflow" / "intel-1.15.0-py37").write_text(f"#%Module\nprepend-path PATH {prefix}/bin\n")
    test = shlex.join(cori.tool.argv("test", "--provided", "--site", cori.site, "--arch", "haswell"))
    _, said = cori.submitted(f"#!/bin/bash\n{test}\n", "--nodes=2", "--ntasks-per-node=2", "--constraint=haswell")
    assert "passed: 4 ranks on 2 nodes trained" in said
    (verdict,) = cori.tool.root.glob("provided/haswell/*/verdict.json")
    assert json.loads(verdict.read_text())["modules"][-1] == "tensorflow/intel-1.15.0-py37"


# Saga


@pytest.fixture(scope="module")
def saga_modules(module_tree: ModuleTree, tmp_path_factory: pytest.TempPathFactory) -> SiteModules:
    """EasyBuild's names, one toolchain generation, and the sticky StdEnv."""
    system = with_parts(LMOD, module_tree, "python/3.10", "openmpi")
    modules = SiteModules(tmp_path_factory.mktemp("saga-modules"), module_tree, system, loaded=["StdEnv"])
    modules.add_sticky("StdEnv")
    modules.add_openmpi("OpenMPI/4.1.4-GCC-11.3.0", "gcc")
    modules.add("Python/3.10.4-GCCcore-11.3.0", "python/3.10")
    modules.add("CMake/3.23.1-GCCcore-11.3.0")
    return modules


# Debian's Open MPI cannot be started by Debian's srun (no PMIx in either's build for the other), and two emulated nodes
# share one /dev/shm, on which its ranks would meet.
SAGA = (
    ('target = "skylake_avx512"', TARGET),
    ("[archs.normal]\n", '[archs.normal]\nlauncher = { name = "mpirun" }\n'),
    ("[archs.accel]\n", '[archs.accel]\nlauncher = { name = "mpirun" }\n'),
    ('OMPI_MCA_btl = "^openib"', 'OMPI_MCA_btl = "tcp,self"'),
)


def test_saga_with_tensorflow_2_11_and_open_mpi(make: Make, saga_modules: SiteModules) -> None:
    init = ("/cluster/installations/lmod/lmod/init/bash", str(saga_modules.init))
    saga = make("sigma2-saga", saga_modules, "3.10", init, *SAGA)
    named = ("OpenMPI/4.1.4-GCC-11.3.0", "libmpi.so.40")
    rows = saga.whole("normal", "tensorflow/2.11.1", 4, "--account", "tests", named=named)
    assert {row[2] for row in rows} == {"2.11.1"}
    assert {row[3] for row in rows} == {"c1", "c2"}
    for name, again in () if saga.small else (("single", ""), ("horovod-keras", "resume"), ("horovod-loop", "")):
        saga.examples("normal", "tensorflow/2.11.1").check(name, again=again)


def test_saga_with_gpus_goes_as_far_as_the_proof(
    make: Make,
    module_tree: ModuleTree,
    saga_modules: SiteModules,
    small_packages: bool,
    cuda: tuple[str, str],
    nccl: str,
) -> None:
    """A job with fake GPUs from the scheduler, on nodes without a driver: nothing is published because there is no GPU.

    Where the nvcc that is here is not of the CUDA that this TensorFlow is built with, the job says so and builds nothing.
    """
    saga_modules.add("CUDA/11.7.0", EBROOTCUDA=cuda[0])
    saga_modules.add("cuDNN/8.4.1.50-CUDA-11.7.0")
    saga_modules.add("NCCL/2.12.12-GCCcore-11.3.0-CUDA-11.7.0", EBROOTNCCL=nccl)
    init = ("/cluster/installations/lmod/lmod/init/bash", str(saga_modules.init))
    if small_packages and cuda[1].startswith("11."):
        pytest.skip(f"nvcc here is {cuda[1]}, which the small packages do not have; `make test-all` goes on")
    # Not every NCCL that can be had has code for Pascal's 60: 80 is in all of them.
    saga = make("sigma2-saga", saga_modules, "3.10", init, *SAGA, ('capabilities = ["60"]', 'capabilities = ["80"]'))
    if cuda[1].startswith("11."):
        saga.tool.good("fetch", "--site", saga.site, "--arch", "accel")
    # A script by the profile alone, made on another machine, cannot have made this folder.
    (saga.tool.root / "jobs" / user_name(os.geteuid())).mkdir(parents=True)
    script = saga.tool.good("job", "build", "--site", saga.site, "--arch", "accel", "--profile", "--account", "tests")
    job = saga.slurm.run("sbatch", "--parsable", stdin=script, environ=saga.tool.env()).stdout.strip()
    assert "gpu" in saga.slurm.show_job(job)
    assert saga.slurm.wait(job, timeout_s=1200) == "FAILED"
    said = next((saga.tool.root / "jobs").glob(f"*/*-{job}.out")).read_text()
    if cuda[1].startswith("11."):
        assert "processes found no GPU" in said
        assert "compile: done" in said or "compile: reuse" in said
    else:
        assert f"this machine has CUDA {cuda[1]}: the major versions must be the same" in said
    assert not (saga.tool.root / "modules").exists()


# The sites whose proof is of TensorFlow 2.15.1 on MPICH: Perlmutter by Cray's wrappers, Greene and a filled-in generic one


def test_perlmutter_by_crays_wrappers_and_module_reset(
    make: Make, module_tree: ModuleTree, tmp_path_factory: pytest.TempPathFactory
) -> None:
    system = needed(LMOD)
    modules = SiteModules(tmp_path_factory.mktemp("perlmutter-modules"), module_tree, system)
    modules.add_cray_compilers("PrgEnv-gnu/8.5.0")
    modules.add("gcc-native/12.3", "gcc")
    modules.add("craype-x86-milan", CRAY_CPU_TARGET="x86-milan")
    modules.add("cray-mpich/8.1.28", "mpich", CRAY_MPICH_VERSION="8.1.28")
    perlmutter = make(
        "nersc-perlmutter",
        modules,
        "3.11",
        module_init(modules.init),
        ('target = "zen3"', TARGET),
        ("cores = 128, threads = 256", "cores = 4, threads = 8"),  # 64 threads a rank on two real cores take minutes
    )
    rows = perlmutter.whole("cpu", "tensorflow/2.15.1", 4, "--account", "tests", named=("cray-mpich/8.1.28",))
    assert {row[3] for row in rows} == {"milan1", "milan2"}


def test_greene_beside_its_container(
    make: Make, module_tree: ModuleTree, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """The job's form of the page: memory of the node, no partition. Behind the name of its Open MPI is MPICH."""
    system = needed(LMOD)
    modules = SiteModules(tmp_path_factory.mktemp("greene-modules"), module_tree, system)
    modules.add("gcc/10.2.0", "gcc")
    modules.add("openmpi/gcc/4.1.6", "mpich")
    modules.add("anaconda3/2024.02", "python/3.11")
    greene = make(
        "nyu-greene",
        modules,
        "3.11",
        ("/share/apps/lmod/lmod/init/bash", str(modules.init)),
        ('family = "openmpi"', 'family = "mpich"'),
        ('target = "cascadelake"', TARGET),
        ('scratch = "/scratch/$USER"', 'scratch = "$SCRATCH"'),
    )
    greene.whole("cpu", "tensorflow/2.15.1", 4, named=("anaconda3/2024.02",))


def test_a_cluster_of_ones_own_from_the_generic_profile(
    make: Make, module_tree: ModuleTree, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """By `provision site new`, every blank filled in, and its proxy never asked: everything was fetched."""
    system = needed(LMOD)
    modules = SiteModules(tmp_path_factory.mktemp("own-modules"), module_tree, system)
    modules.add("gcc/12.2.0", "gcc")
    modules.add("mpich/4.0.2", "mpich")
    modules.add("python/3.11.2", "python/3.11")
    place = make("generic-slurm", modules, "3.11")
    answers = {
        "root": str(place.tool.root),
        "modules.init": str(modules.init),
        "modules.path": "-",
        "network.compute": "proxy",
        "network.proxy": "http://127.0.0.1:9",
        "files.scratch": "$SCRATCH",
        "archs.cpu.target": "x86_64_v3",
        "archs.cpu.modules": "gcc/12.2.0 mpich/4.0.2 python/3.11.2",
        "archs.cpu.mpi.family": "mpich",
        "archs.cpu.node.cores": "4",
        "archs.cpu.node.threads": "4",
        "archs.cpu.node.memory_gb": "192",
        "archs.cpu.job.partition": "compute",
        "archs.cpu.job.constraint": "cascade",
    }
    sets = [word for key, value in answers.items() for word in ("--set", f"{key}={value}")]
    place.tool.good("site", "new", "ours", "--arch", "cpu", *sets, PROVISION_CONFIG=str(place.folder))
    ours = replace(place, site=str(place.folder / "sites" / "ours.toml"))
    assert {row[3] for row in ours.whole("cpu", "tensorflow/2.15.1", 4)} == {"cm1", "cm2"}
