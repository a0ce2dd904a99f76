"""Builds through Slurm: a plan that travels, a job that builds, two nodes that train, modules that load; and what goes wrong.

The cluster is emulated (several slurmd on one machine); Slurm, munge, MPICH, Lmod and Environment Modules are the real ones, and
the packages are those of `parts/tiny.py`. knl goes through Lmod and `--submit`, haswell through Environment Modules and `sbatch`.
TensorFlow and Horovod themselves are in `test_tensorflow_slurm.py`.
"""

from __future__ import annotations

import dataclasses
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from parts.modules import ENVIRONMENT_MODULES, LMOD, ModuleSystem, ModuleTree, bash, needed
from parts.provision import Tool, real_modules, site_file
from parts.slurm import SlurmCluster
from parts.tiny import add_stack, make_site

pytestmark = [pytest.mark.real, pytest.mark.slurm]

MODULE = "tensorflow/2.15.1"


@dataclass(frozen=True)
class Cluster:
    """The site under test: its Slurm, its modules, and the tool with the variables of a login shell there."""

    slurm: SlurmCluster
    tree: ModuleTree
    tool: Tool
    folder: Path

    def site(self, name: str, *replacements: tuple[str, str], system: ModuleSystem | None = LMOD) -> str:
        """The shipped example site with this machine's module names, and these changes."""
        system = needed(system)
        init = ("/usr/share/lmod/lmod/init/bash", str(system.init))
        chosen = (('system = "lmod"', f'system = "{system.name}"'), init)
        return site_file(
            self.folder, "example-slurm", *real_modules(self.tree), *chosen, *replacements, name=f"site-{name}"
        )


@pytest.fixture(scope="module")
def cluster(slurm_cluster: SlurmCluster, module_tree: ModuleTree, tmp_path_factory: pytest.TempPathFactory) -> Cluster:
    """One root for all tests of this file."""
    needed(LMOD)
    needed(ENVIRONMENT_MODULES)
    tiny = make_site(tmp_path_factory.mktemp("cluster") / "tiny")
    add_stack(tiny, "tensorflow-2.15.1", "py311")
    tool = tiny.tool(**slurm_cluster.environ, EXAMPLE_SITE=str(module_tree.root))
    return Cluster(slurm=slurm_cluster, tree=module_tree, tool=tool, folder=tiny.folder)


@pytest.fixture(scope="module")
def knl(cluster: Cluster) -> str:
    """knl, built by `--submit`; returns what it said."""
    done = cluster.tool.run("build", "--site", cluster.site("lmod"), "--arch", "knl", "--submit")
    assert done.returncode == 0, done.stderr
    assert "module load tensorflow/2.15.1" in done.stdout
    return done.stderr


@pytest.fixture(scope="module")
def haswell(cluster: Cluster, knl: str) -> str:
    """haswell, built by a script that was written to a file and given to sbatch; returns the job's output."""
    site = cluster.site("em", system=ENVIRONMENT_MODULES)
    script = cluster.tool.good("job", "build", "--site", site, "--arch", "haswell")
    job = cluster.slurm.submit(script)
    assert cluster.slurm.wait(job, timeout_s=900) == "COMPLETED", cluster.slurm.show_job(job)
    said = next((cluster.tool.root / "jobs").glob(f"*/*-{job}.out")).read_text()
    assert "publish: done" in said and "2 ranks on 2 nodes" in said, "plain lines in the job's output"
    return said


def load(cluster: Cluster, system: ModuleSystem | None, arch: str, script: str) -> subprocess.CompletedProcess[str]:
    """Run a script in a user's shell where the published modules are in use."""
    system = needed(system)
    kind = "lua" if system.name == "lmod" else "tcl"
    path = f"{cluster.tool.root}/modules/{arch}/{kind}"
    return bash(f"set -e\nmodule use {path}\n{script}\n", system, cluster.tree.modulepath)


def test_submit_follows_the_job_through_every_step_to_the_published_module(cluster: Cluster, knl: str) -> None:
    """Queued, running, each step, finished."""
    lines = [line for line in knl.splitlines() if line]
    assert any(line.startswith("submitted job ") for line in lines)
    assert any("is running on knl[1-2]" in line for line in lines)
    for step in ("create", "install", "bytecode", "compile", "horovod", "inspect", "candidate", "proof", "publish"):
        assert any(f"{step}: done in" in line for line in lines), step
    assert any(line.startswith("published by job ") for line in lines)
    proof, advisories = lines[-2:]
    assert "2 ranks on 2 nodes" in proof
    assert advisories.startswith("  advisories: ")


def test_the_record_names_the_job_the_modules_and_the_mpi_of_the_site(cluster: Cluster, knl: str) -> None:
    """What was linked is the vendor's MPI, in the folder that the wrapper names."""
    record = cluster.tool.json("show", "knl/" + MODULE, "--site", cluster.site("lmod"))["result"]
    assert record["modules"] == [cluster.tree.gcc, cluster.tree.mpich, cluster.tree.python]
    assert record["job"]
    assert [name for name in record["verdict"]["modules"] if name != MODULE] == record["modules"]
    linked = next(check for check in record["checks"] if check["name"] == "linked MPI")
    assert "libmpich.so.12" in linked["message"]
    assert len(record["verdict"]["figures"]["hosts"]) == 2


@pytest.mark.parametrize("system", [LMOD, ENVIRONMENT_MODULES], ids=["lmod", "environment-modules"])
@pytest.mark.parametrize("arch", ["knl", "haswell"])
def test_load_help_and_unload_in_both_module_systems(
    cluster: Cluster, haswell: str, arch: str, system: ModuleSystem | None
) -> None:
    """The same module, whichever system its site has: loading brings the build's modules, unloading leaves nothing."""
    threads = {"knl": "68", "haswell": "32"}[arch]
    done = load(
        cluster,
        system,
        arch,
        f"""
        before=$(env | grep -vE '^(_|_LMFILES_|LOADEDMODULES|_ModuleTable.*|__.*|MODULES_.*|LMOD_.*|SHLVL)=' | sort)
        module load {MODULE}
        echo "loaded: $LOADEDMODULES"
        echo "python: $(command -v python)"
        echo "environ: $OMP_NUM_THREADS $PYTHONNOUSERSITE $PROVISION_ENVIRONMENT"
        {sys.executable} -m provision verify --loaded && echo verified
        OMP_NUM_THREADS=7 {sys.executable} -m provision verify --loaded || echo "differs: $?"
        module help {MODULE} 2>&1
        module unload {MODULE}
        echo "left: ${{LOADEDMODULES:-}}"
        after=$(env | grep -vE '^(_|_LMFILES_|LOADEDMODULES|_ModuleTable.*|__.*|MODULES_.*|LMOD_.*|SHLVL)=' | sort)
        diff <(echo "$before") <(echo "$after") && echo nothing-left
        """,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert set(done.stdout.split("loaded: ")[1].splitlines()[0].split(":")) == {*cluster_modules(cluster), MODULE}
    assert f"python: {cluster.tool.root}/envs/{arch}/tensorflow/2.15.1-" in done.stdout
    assert f"environ: {threads} 1 {arch}/tensorflow/2.15.1-" in done.stdout
    assert "4 modules as in the proof" in done.stdout and "verified" in done.stdout
    assert f"OMP_NUM_THREADS is '7', was '{threads}'" in done.stdout and "differs: 1" in done.stdout
    assert "2 ranks on 2 nodes trained digits" in done.stdout
    assert "left: \n" in done.stdout
    assert "nothing-left" in done.stdout


def cluster_modules(cluster: Cluster) -> tuple[str, ...]:
    """The site modules that an environment of the example needs."""
    return (cluster.tree.gcc, cluster.tree.mpich, cluster.tree.python)


@pytest.mark.parametrize("system", [LMOD, ENVIRONMENT_MODULES], ids=["lmod", "environment-modules"])
def test_another_version_of_the_same_name_never_loads_beside_it(
    cluster: Cluster, haswell: str, tmp_path: Path, system: ModuleSystem | None
) -> None:
    """`module swap` works in both; a second load swaps in Lmod and is refused by Environment Modules."""
    system = needed(system)
    kind, suffix = ("lua", ".lua") if system.name == "lmod" else ("tcl", "")
    other = tmp_path / "tensorflow" / f"9.9{suffix}"
    other.parent.mkdir()
    text = Path(f"{cluster.tool.root}/modules/knl/{kind}/tensorflow/2.15.1{suffix}").read_text()
    gone = re.compile(r"(?<=/envs/knl/tensorflow/)9\.9(?=-)")  # its files are those of the published one
    other.write_text(gone.sub("2.15.1", text.replace("2.15.1", "9.9")))
    done = load(
        cluster,
        system,
        "knl",
        f"""
        module use {tmp_path}
        module load {MODULE}
        module swap {MODULE} tensorflow/9.9
        echo "swapped: $LOADEDMODULES"
        module load {MODULE} || echo refused
        echo "then: $LOADEDMODULES"
        """,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    swapped, then = (done.stdout.split(f"{word}: ")[1].splitlines()[0] for word in ("swapped", "then"))
    assert "tensorflow/9.9" in swapped and MODULE not in swapped
    assert then.count("tensorflow/") == 1
    assert ("refused" in done.stdout) is (system.name != "lmod")


def test_ranks_that_do_not_see_each_other_are_never_published(cluster: Cluster, knl: str) -> None:
    """srun without `--mpi=pmi2` starts every rank as rank 0 of 1, and exits with 0: the classic silent failure."""
    site = cluster.site(
        "no-pmi", ('options = ["--mpi=pmi2"]', 'options = ["--mpi=none"]'), ("= 68 }", "= 68, VARIANT = 1 }")
    )
    done = cluster.tool.run("build", "--site", site, "--arch", "knl", "--submit")
    assert done.returncode == 1
    assert "reports rank 0 of 1" in done.stderr
    doctor = cluster.tool.run("doctor", "--site", site, "--arch", "knl")
    assert "`srun --mpi=none`, which this Slurm does not have" in doctor.stdout
    assert "the ranks did not prove the environment, nothing is published: ranks" in done.stderr
    assert "--mpi=pmi2" in done.stderr.split("hint: ")[1]
    rows = cluster.tool.json("list", "--site", site)["result"]["environments"]
    assert [row["state"] for row in rows if row["environment"].startswith("knl/")].count("published") == 1
    assert "unfinished" in {row["state"] for row in rows}


def test_a_plan_that_does_not_fit_the_node_stops_the_job_with_the_difference(cluster: Cluster, knl: str) -> None:
    """The script was made when the site had another MPI; nothing is built, and the follower shows why."""
    site = cluster.site("drift", ("= 68 }", "= 68, VARIANT = 2 }"))
    script = cluster.tool.good("job", "build", "--site", site, "--arch", "knl")
    assert '"mpich 4.' in script
    job = cluster.slurm.submit(script.replace('"mpi": "mpich 4.', '"mpi": "mpich 3.'))
    cluster.slurm.wait(job, timeout_s=120)
    done = cluster.tool.run("job", "follow", job, "--site", site)
    assert done.returncode == 1
    assert f"job {job} failed with exit code 1" in done.stderr
    assert "differs from the machine of the plan; nothing was built" in done.stderr
    assert "mpi: planned 'mpich 3." in done.stderr


def test_a_node_whose_cpu_cannot_run_the_target_builds_nothing(cluster: Cluster, knl: str) -> None:
    """No machine that runs these tests is a Knights Landing."""
    site = cluster.site("mic", ('target = "x86_64_v3"', 'target = "mic_knl"'))
    plan = cluster.tool.good("plan", "--site", site, "--arch", "knl")
    assert "-march=knl" in plan
    assert "note: site `" in plan  # on a login node it is not a fault that builds run in a job
    assert "problem on this machine: site" not in plan
    done = cluster.tool.run("build", "--site", site, "--arch", "knl", "--submit")
    assert done.returncode == 1
    assert "cannot run what is built for `mic_knl`" in done.stderr
    assert "missing instruction sets: avx512er avx512pf" in done.stderr.replace("avx512cd ", "").replace("avx512f ", "")


def test_without_a_site_nothing_is_built_on_the_login_node_and_a_plan_notes_it(cluster: Cluster) -> None:
    done = cluster.tool.run("build")
    assert done.returncode == 2
    assert "no site was named" in done.stderr and "`provision build --site local`" in done.stderr
    done = cluster.tool.run("plan", "--profile")
    assert done.returncode == 0
    assert "no site was named" in done.stderr


def test_what_the_modules_do_not_bring_is_reported_before_anything_is_built(cluster: Cluster) -> None:
    """A module that does not exist, and no MPI: no wrapper on PATH."""
    mpich = cluster.tree.mpich
    for name, changes, said in (
        ("typo", [(f'"{mpich}"', '"mpich/99.9"')], "module `mpich/99.9` of arch `knl` cannot be loaded"),
        ("no-mpi", [(f', "{mpich}"', ""), ('cxx = "mpicxx"', 'cxx = "mpicxx-nowhere"')], "there is no MPI"),
    ):
        done = cluster.tool.run("plan", "--site", cluster.site(name, *changes), "--arch", "knl")
        assert done.returncode == 1
        assert said in done.stderr
        assert (mpich if name == "typo" else "`") in done.stderr.split("hint: ")[1]


def test_what_the_caller_has_loaded_does_not_reach_the_plan(cluster: Cluster) -> None:
    """An admin with MPICH loaded, and a site that forgot to name it: the plan is that of a clean shell."""
    # What is left is the machine's own MPI, of whichever family its `mpicxx` is.
    own = "openmpi" if os.path.realpath("/usr/bin/mpicxx").endswith("opal_wrapper") else "mpich"
    site = cluster.site("forgot", (f', "{cluster.tree.mpich}"', ""), ('family = "mpich"', f'family = "{own}"'))
    tool = " ".join(cluster.tool.argv("plan", "--site", site, "--arch", "knl", "--json"))
    outputs = []
    for load_first in ("true", f"module load {cluster.tree.mpich}"):
        environ = {name: value for name, value in cluster.tool.env().items() if name != "MODULEPATH"}
        outputs.append(bash(f"{load_first}\n{tool}", needed(LMOD), cluster.tree.modulepath, environ=environ).stdout)
    assert json.loads(outputs[0])["ok"]
    assert outputs[0] == outputs[1]
    assert str(cluster.tree.modules[cluster.tree.mpich]) not in outputs[0]


def sleeping(cluster: Cluster, *options: str) -> str:
    """A job that only sleeps."""
    return cluster.slurm.submit(
        "#!/bin/bash\nsleep 600\n", "--partition=haswell", f"--chdir={cluster.folder}", *options
    )


def followed(cluster: Cluster, job: str, then: Callable[[subprocess.Popen[str]], None]) -> tuple[int, str]:
    """Follow a job, do something to it once it runs, and return how the follower ended and what it said."""
    with cluster.tool.start("job", "follow", job, "--site", cluster.site("lmod")) as process:
        assert process.stderr is not None
        said = []
        for line in process.stderr:
            said.append(line)
            if "is running" in line:
                then(process)
        return process.wait(timeout=120), "".join(said)


@pytest.mark.parametrize(
    ("option", "ends", "said"),
    [
        ("--time=2", "scancel", "was cancelled"),
        ("--time=1", "expire", "reached its time limit of 00:01:00"),
    ],
)
def test_a_job_that_is_ended_while_it_is_followed_is_reported_with_the_reason(
    cluster: Cluster, option: str, ends: str, said: str
) -> None:
    """By another user, or by its time limit: with what to change."""
    job = sleeping(cluster, option)

    def end(_: subprocess.Popen[str]) -> None:
        if ends == "scancel":
            cluster.slurm.run("scancel", job)
        else:
            cluster.slurm.expire(job)

    code, shown = followed(cluster, job, end)
    assert code == 1
    assert f"error: job {job} {said}" in shown
    assert ends == "scancel" or f"--resume-from {job}` continues from its checkpoints; `--time`" in shown


def test_ctrl_c_leaves_the_job_and_says_how_to_look_again(cluster: Cluster) -> None:
    """The job goes on; the hint is the command."""
    job = sleeping(cluster)
    code, said = followed(cluster, job, lambda process: process.send_signal(signal.SIGINT))
    assert code == 130
    assert f"stopped following job {job}, which keeps running" in said
    assert f"provision job follow {job}" in said
    assert "JobState=RUNNING" in cluster.slurm.show_job(job)
    cluster.slurm.run("scancel", job)


def test_a_job_that_slurm_does_not_take_is_reported_with_slurms_words(cluster: Cluster) -> None:
    """A partition that is not there."""
    site = cluster.site("partition", ('partition = "knl"', 'partition = "nowhere"'), ("= 68 }", "= 68, VARIANT = 3 }"))
    done = cluster.tool.run("build", "--site", site, "--arch", "knl", "--submit")
    assert done.returncode == 1
    assert "Slurm refused the job" in done.stderr
    assert "nvalid partition" in done.stderr
    doctor = cluster.tool.run("doctor", "--site", site, "--arch", "knl")
    assert doctor.returncode == 1
    assert "Slurm has no partition `nowhere`" in doctor.stdout


def test_a_job_with_an_empty_environment_reads_its_settings_from_a_private_file(
    cluster: Cluster, tmp_path: Path
) -> None:
    """The job asks the index of the shell that wrote it; afterwards the file is gone, also if the job was cancelled.

    Without the file the script can be submitted again; a job of `--submit` does not take the file of a script that waits.
    """
    site = cluster.site("settings", ("= 68 }", "= 68, VARIANT = 5 }"))
    tool = dataclasses.replace(cluster.tool, root=tmp_path / "root")  # nothing was fetched for it
    index, jobs = "http://gul:Kanarie7fugl@127.0.0.1:9/t0k3nT0k3n/simple", tool.root / "jobs"
    settings = {"UV_DEFAULT_INDEX": index, "PIP_INDEX_URL": index, "UV_CACHE_DIR": str(tmp_path), "PIP_FIND_LINKS": ""}
    settings |= {"UV_HTTP_RETRIES": "0"}
    words = ("--site", site, "--arch", "knl")
    script = tool.good("job", "build", *words, **settings)
    (file,) = jobs.rglob("*.settings")
    assert file.stat().st_mode & 0o777 == 0o600
    assert "t0k3n" in file.read_text()
    job = cluster.slurm.submit(script, "--export=NONE")
    assert cluster.slurm.wait(job, timeout_s=240) == "FAILED"
    output = next(jobs.rglob(f"*-{job}.out")).read_text()
    assert "127.0.0.1:9/***/simple" in output
    assert not file.exists()
    # The same script once more: without the file the build uses the variables of its job.
    again = cluster.slurm.submit(script, f"--export=PIP_INDEX_URL={index},UV_DEFAULT_INDEX={index}")
    assert cluster.slurm.wait(again, timeout_s=240) == "FAILED"
    second = next(jobs.rglob(f"*-{again}.out")).read_text()
    assert "this build uses those of the job's environment: PIP_INDEX_URL" in second
    assert "/***/simple" in second
    tool.good("job", "build", *words, **settings)
    done = tool.run("build", *words, "--submit", "--no-wait", **settings)
    assert done.returncode == 4, done.stderr
    assert len(list(jobs.rglob("*.settings"))) == 2
    cluster.slurm.run("scancel", done.stdout.strip())
    assert len(list(jobs.rglob("*.settings"))) == 2
    assert "cancelled" in tool.run("job", "follow", done.stdout.strip(), "--site", site).stderr
    assert list(jobs.rglob("*.settings")) == [file]
    shown = script + output + second + done.stderr
    for path in (path for path in tool.root.rglob("*") if path.is_file() and path.suffix in (".log", ".jsonl", ".sh")):
        shown += path.read_text(errors="replace")
    assert "Kanarie" not in shown
    assert "t0k3n" not in shown


SEEN = """
import json, os
import horovod.tensorflow as hvd
hvd.init()
kinds = [line.split(" - ")[1].split()[0] for line in open("/proc/self/mountinfo") if f" {os.environ['VIRTUAL_ENV']} " in line]
print("rank", json.dumps([hvd.rank(), hvd.size(), os.environ.get("SLURMD_NODENAME"), kinds]), flush=True)
"""


def test_an_image_is_proved_on_two_nodes_and_a_horovod_job_of_a_user_runs_from_it(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if shutil.which("squashfuse_ll") is None or not Path("/dev/fuse").exists():
        pytest.skip("needs squashfuse and /dev/fuse")
    monkeypatch.chdir(tmp_path)
    # The emulated nodes have a namespace each, but one host name: UCX would share memory between them.
    tcp = ("OMP_NUM_THREADS = 68 }", 'OMP_NUM_THREADS = 68, UCX_TLS = "tcp,self" }')
    site = cluster.site("image", ("[archs.knl]", '[archs.knl]\ndeliver = "image"'), tcp)
    cluster.tool.good("build", "--site", site, "--arch", "knl", "--submit")
    verdict = cluster.tool.json("show", "knl/" + MODULE, "--site", site)["result"]["verdict"]
    assert {"delivery", "weights"} <= {check["name"] for check in verdict["checks"]}
    figures = verdict["figures"]
    assert len(figures["hosts"]) == 2
    assert figures["reads_image"]["node_lookups"] <= 100
    assert figures["reads_files"]["node_lookups"] > 20
    (tmp_path / "train.py").write_text(SEEN)
    words = ("--site", site, "--arch", "knl", "--nodes", "2", "--script", str(tmp_path / "train.py"), "--no-lint")
    done = cluster.tool.good("job", "horovod", *words, "--deliver", "image", "--submit", "--json")
    job = json.loads(done)["result"]["job"]
    said = next(tmp_path.glob(f"*-{job}.out")).read_text()
    ranks = sorted(json.loads(line) for line in re.findall(r"^rank (\[.*\])$", said, re.MULTILINE))
    size = len(ranks)
    assert size >= 2 and [rank[:2] for rank in ranks] == [[number, size] for number in range(size)], said
    assert len({rank[2] for rank in ranks}) == 2
    assert {tuple(rank[3]) for rank in ranks} == {("fuse.squashfuse_ll",)}, said
