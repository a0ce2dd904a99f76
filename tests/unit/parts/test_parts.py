"""The real parts do what the other tests take for granted: checked against the programs themselves."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from parts.hosts import why_not as why_not_hosts
from parts.modules import (
    ENVIRONMENT_MODULES,
    LMOD,
    ModuleSystem,
    ModuleTree,
    bash,
    build_module_tree,
    find_interpreter,
)
from parts.paths import REPOSITORY
from parts.slurm import ClusterError, NodeGroup, Partition, SlurmCluster, missing_programs

MPI_PROGRAM = """\
#include <mpi.h>
#include <stdio.h>
int main(int argc, char **argv) {
    int rank, size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    printf("rank %d of %d\\n", rank, size);
    MPI_Finalize();
    return 0;
}
"""

# What a module system keeps for itself; everything else must be as it was after an unload.
_BOOKKEEPING = ("_ModuleTable", "__LMOD", "LMOD", "__MODULES", "LOADEDMODULES", "_LMFILES_")
_DUMP = f"""{shlex.quote(sys.executable)} -I -c 'import json, os; print(json.dumps(dict(os.environ)))'"""

needs_slurm = pytest.mark.skipif(
    bool(missing_programs()), reason=f"Slurm is not installed here, missing: {', '.join(missing_programs())}"
)


def _system_params() -> list[object]:
    both = (("lmod", LMOD), ("environment-modules", ENVIRONMENT_MODULES))
    return [
        pytest.param(
            system,
            id=name,
            marks=pytest.mark.skipif(system is None, reason=f"{name} is not installed here (`.ci/install` brings it)"),
        )
        for name, system in both
    ]


@pytest.fixture(params=_system_params())
def module_system(request: pytest.FixtureRequest) -> ModuleSystem:
    system = request.param
    assert isinstance(system, ModuleSystem)
    return system


def _need(tree: ModuleTree, *packages: str) -> str:
    """The full names of modules, for a `module load` line; skips where this machine cannot have one of them."""
    try:
        return " ".join(tree.name(package) for package in packages)
    except LookupError as error:
        pytest.skip(str(error))


# -- modules -----------------------------------------------------------------------------------------------------------


def test_modules_load_and_unload_leave_the_environment_as_before(
    module_system: ModuleSystem, module_tree: ModuleTree
) -> None:
    names = _need(module_tree, "gcc", "mpich", "python")
    # `exit` at the end, for bash runs a last command in its own place (and SHLVL tells).
    script = f"{_DUMP}\nmodule load {names} || exit 3\n{_DUMP}\nmodule unload {names} || exit 4\n{_DUMP}\nexit $?\n"
    result = bash(script, module_system, module_tree.modulepath, environ={"CPATH": "/opt/site/include"})
    assert result.returncode == 0, result.stderr
    before, loaded, after = (
        {name: value for name, value in json.loads(line).items() if not name.startswith(_BOOKKEEPING)}
        for line in result.stdout.splitlines()
    )
    assert after == before
    gcc, mpich, python = (module_tree.modules[name] for name in names.split())
    assert loaded["GCC_ROOT"] == str(gcc)
    assert loaded["PATH"].split(":")[:3] == [f"{folder}/bin" for folder in (python, mpich, gcc)]
    assert loaded["LD_LIBRARY_PATH"] == f"{mpich}/lib"
    assert loaded["CPATH"] == f"{mpich}/include:/opt/site/include"


def test_a_bare_name_loads_the_default_and_not_the_broken_one(
    module_system: ModuleSystem, module_tree: ModuleTree
) -> None:
    gcc = _need(module_tree, "gcc")
    result = bash('module load gcc && echo "$LOADEDMODULES"', module_system, module_tree.modulepath)
    assert result.stdout.strip() == gcc, result.stderr


def test_the_broken_compiler_tells_its_version_and_compiles_nothing(
    module_system: ModuleSystem, module_tree: ModuleTree
) -> None:
    script = f"module load {module_tree.broken_gcc} && g++ -dumpversion && g++ -c nothing.cc"
    result = bash(script, module_system, module_tree.modulepath)
    assert (result.returncode, result.stdout.strip()) == (1, "0.0.1")
    assert "cannot execute 'cc1plus'" in result.stderr


def test_mpich_of_the_tree_compiles_links_and_starts_ranks(
    module_system: ModuleSystem, module_tree: ModuleTree, tmp_path: Path
) -> None:
    names = _need(module_tree, "gcc", "mpich")
    (tmp_path / "ranks.c").write_text(MPI_PROGRAM)
    (tmp_path / "ranks.cc").write_text(MPI_PROGRAM)
    script = f"""
    set -e
    module load {names}
    mpicxx ranks.cc -o ranks++
    mpicc ranks.c -o ranks
    ldd ranks | grep libmpi
    mpiexec -n 2 ./ranks
    """
    result = bash(script, module_system, module_tree.modulepath, cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    linked, *ranks = result.stdout.splitlines()
    assert str(module_tree.modules[names.split()[1]] / "lib") in linked
    assert sorted(ranks) == ["rank 0 of 2", "rank 1 of 2"]


def test_python_through_a_link_in_the_tree_finds_its_own_library_and_headers(
    module_tree: ModuleTree, tmp_path: Path
) -> None:
    python = module_tree.modules[_need(module_tree, "python")] / "bin/python3.11"
    subprocess.run([python, "-m", "venv", "--without-pip", tmp_path / "venv"], check=True, timeout=60)
    ask = (
        "import os, ssl, sys, sysconfig, zlib\n"
        "print(sys.version_info[:2] == (3, 11), os.path.exists(sysconfig.get_paths()['include'] + '/Python.h'),"
        " sys.prefix != sys.base_prefix)"
    )
    for program, in_venv in ((python, False), (tmp_path / "venv/bin/python", True)):
        answer = subprocess.run([program, "-I", "-c", ask], capture_output=True, text=True, check=True, timeout=60)
        assert answer.stdout.split() == ["True", "True", str(in_venv)]
    # The environment remembers the site's folder, not where this machine keeps the interpreter.
    assert f"home = {python.parent}" in (tmp_path / "venv/pyvenv.cfg").read_text().splitlines()


def test_a_python_that_is_not_there_is_named_as_missing(tmp_path: Path) -> None:
    assert find_interpreter("2.99") is None
    tree = build_module_tree(tmp_path, pythons=["2.99"])
    assert "2.99" in tree.missing["python/2.99"]
    with pytest.raises(LookupError, match=r"2\.99"):
        _ = tree.python


def test_a_tree_refuses_a_path_with_white_space(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="white space"):
        build_module_tree(tmp_path / "a site")


# -- Slurm -------------------------------------------------------------------------------------------------------------


@needs_slurm
@pytest.mark.slurm
def test_a_job_compiles_with_the_modules_and_only_pmi2_makes_two_ranks(
    slurm_cluster: SlurmCluster, module_tree: ModuleTree, tmp_path: Path
) -> None:
    """The classic silent failure beside the right way: both exit 0, only one of them is a parallel program."""
    names = _need(module_tree, "gcc", "mpich")
    system = LMOD or ENVIRONMENT_MODULES
    if system is None:
        pytest.skip("no module system is installed here (`.ci/install` brings two)")
    (tmp_path / "ranks.c").write_text(MPI_PROGRAM)
    script = f"""#!/bin/bash
    . {system.init}
    export MODULEPATH={module_tree.modulepath}
    module load {names} || exit 3
    mpicc ranks.c -o ranks || exit 4
    srun --mpi=pmi2 ./ranks > pmi2.txt || exit 5
    srun ./ranks > plain.txt || exit 6
    """
    job_id = slurm_cluster.submit(
        script, "--nodes=2", "--ntasks-per-node=1", "--partition=knl", "--output=job.log", cwd=tmp_path
    )
    state = slurm_cluster.wait(job_id)
    assert state == "COMPLETED", (tmp_path / "job.log").read_text()
    assert sorted((tmp_path / "pmi2.txt").read_text().splitlines()) == ["rank 0 of 2", "rank 1 of 2"]
    assert (tmp_path / "plain.txt").read_text().splitlines() == ["rank 0 of 1", "rank 0 of 1"]


@needs_slurm
@pytest.mark.slurm
def test_features_choose_nodes_and_failures_are_reported(slurm_cluster: SlurmCluster, tmp_path: Path) -> None:
    submit = ("sbatch", "--wait", "--output=out.txt")
    body = "#!/bin/bash\necho $SLURMD_NODENAME\nexit 3\n"
    result = slurm_cluster.run(
        *submit, "--partition=short", "--constraint=haswell", check=False, cwd=tmp_path, stdin=body
    )
    assert result.returncode == 3
    assert (tmp_path / "out.txt").read_text().strip() in ("hsw1", "hsw2")
    with pytest.raises(ClusterError, match="Invalid feature specification"):
        slurm_cluster.submit(body, "--constraint=milan", cwd=tmp_path)


@needs_slurm
@pytest.mark.slurm
def test_two_clusters_at_once_and_nothing_is_left(slurm_cluster: SlurmCluster, tmp_path: Path) -> None:
    groups = [NodeGroup(name="gpu", count=1, cpus=4, features=("a100",), gres={"gpu:a100:2": "/dev/tty[1-2]"})]
    other = SlurmCluster(node_groups=groups, partitions=[Partition(name="gpu", groups=("gpu",))])
    with other:
        root = other.root
        script = "#!/bin/bash\necho $CUDA_VISIBLE_DEVICES\nsleep 600\n"
        other.submit(script, "--gres=gpu:2", f"--output={tmp_path / 'gpus.txt'}")
        assert other.run("sinfo", "--noheader", "--format=%N %f %G").stdout.split() == ["gpu1", "a100", "gpu:a100:2"]
        assert len(slurm_cluster.run("sinfo", "--noheader", "--Node", "--format=%N").stdout.split()) >= 4
        for _ in range(50):
            if (tmp_path / "gpus.txt").exists() and (tmp_path / "gpus.txt").read_text():
                break
            other.run("sleep", "0.1")
        assert (tmp_path / "gpus.txt").read_text().strip() == "0,1"
    # Zombies have no command line: one that is not reaped yet has ended.
    commands = [path.read_bytes() for path in Path("/proc").glob("[0-9]*/cmdline") if path.exists()]
    assert not [command for command in commands if str(root).encode() in command]
    assert not root.exists()


@needs_slurm
@pytest.mark.slurm
def test_a_cluster_that_cannot_start_quotes_the_log_and_stops(tmp_path: Path) -> None:
    with pytest.raises(ClusterError, match="no/such/plugin"):
        SlurmCluster(settings={"SelectType": "no/such/plugin"}).start(timeout_s=10)


# A program of two tasks: both listen on one port of their node's address, and the first one speaks to the second by name.
TALK = """
import os, socket, sys
rank, names = int(os.environ["SLURM_PROCID"]), ("knl1", "knl2")
assert socket.gethostname() == os.environ["SLURMD_NODENAME"] == names[rank], socket.gethostname()
with socket.create_server(("0.0.0.0", 12345)) as server:
    open(f"listens-{rank}", "w").close()
    while not os.path.exists(f"listens-{1 - rank}"):
        pass
    with socket.create_connection((names[1 - rank], 12345), timeout=20) as mine:
        there, (address, _) = server.accept()
        mine.sendall(f"from {names[rank]}".encode())
        mine.shutdown(socket.SHUT_WR)
        print(names[rank], "heard", there.makefile().read(), "at", address, flush=True)
"""


@needs_slurm
@pytest.mark.slurm
def test_nodes_that_are_hosts_have_the_same_port_each_and_find_each_other_by_name(
    cluster_of_hosts: SlurmCluster, tmp_path: Path
) -> None:
    (tmp_path / "talk.py").write_text(TALK)
    script = f"#!/bin/bash\nsrun --nodes=2 --ntasks=2 {sys.executable} talk.py\n"
    job = cluster_of_hosts.submit(script, "--nodes=2", "--ntasks-per-node=1", "--output=out.txt", cwd=tmp_path)
    state = cluster_of_hosts.wait(job)
    said = (tmp_path / "out.txt").read_text()
    assert state == "COMPLETED", said
    network = cluster_of_hosts.network
    assert network is not None
    assert sorted(said.splitlines()) == [
        f"knl1 heard from knl2 at {network.address('knl2')}",
        f"knl2 heard from knl1 at {network.address('knl1')}",
    ]


START = """
import sys, time
sys.path.insert(0, sys.argv[1])
from pathlib import Path
from parts.slurm import NodeGroup, Partition, SlurmCluster
groups, partitions = (NodeGroup(name="n"),), (Partition(name="n", groups=("n",)),)
cluster = SlurmCluster(Path(sys.argv[2]), node_groups=groups, partitions=partitions, networks=True)
cluster.start()
job = cluster.submit("#!/bin/bash\\nsrun --nodes=2 --ntasks=2 sleep 600\\n", "--nodes=2", "--output=/dev/null")
while cluster.run("squeue", "--steps", "--noheader").stdout.count("sleep") < 1:
    time.sleep(0.1)
print(cluster.network.link, flush=True)
time.sleep(600)
"""


def _alive(mark: str) -> list[str]:
    """The command lines of processes that have this in their environment."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if mark.encode() in (folder / "environ").read_bytes() and (folder / "cmdline").read_bytes():
                found.append((folder / "cmdline").read_text().replace("\0", " "))
        except OSError:
            continue
    return found


@needs_slurm
@pytest.mark.slurm
def test_hosts_go_with_whoever_started_them_and_with_them_the_jobs_and_the_network(tmp_path: Path) -> None:
    """kill -9, while a job runs on both."""
    if reason := why_not_hosts():
        pytest.skip(f"there can be no hosts with networks of their own here: {reason}")
    with tempfile.TemporaryDirectory(prefix="s-", dir="/tmp") as root:
        argv = [sys.executable, "-c", START, str(REPOSITORY / "tests"), root]
        with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            link = process.stdout.readline().strip()
            try:
                assert (Path("/sys/class/net") / link).exists(), link
                assert len(_alive(root)) > 4
            finally:
                process.kill()
        left, end = ["?"], time.monotonic() + 20
        while left and time.monotonic() < end:
            left = [*_alive(root), *([link] if (Path("/sys/class/net") / link).exists() else [])]
            time.sleep(0.1)
        assert not left
