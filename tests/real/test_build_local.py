"""The newest TensorFlow for real on a bare machine: from the index, Horovod compiled, MPI from a wheel, ranks that train."""

from __future__ import annotations

import contextlib
import json
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from _pytest.mark.structures import ParameterSet

from parts.examples import SRUN, place_of, site_with_module
from parts.fetched_data import found_by
from parts.fixtures import share
from parts.modules import LMOD, needed
from parts.network import free_port, served, why_not, without_network
from parts.notebook import run_notebook
from parts.notebook import why_not as no_notebook
from parts.provision import Tool, messages_of
from parts.slurm import SlurmCluster
from parts.tiny import make_wheel

pytestmark = pytest.mark.real
Activated = Callable[[str], subprocess.CompletedProcess[str]]


def long(*values: str) -> ParameterSet:
    """A case of `make test-all` alone."""
    return pytest.param(*values, marks=pytest.mark.long)


@pytest.fixture(scope="module")
def tool(shared_cache: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tool]:
    """A root for which everything was fetched, and in which `provision build` was run once, from nothing, cut off.

    It is gone when this file's tests are done: environments are large.
    """
    tool = Tool(tmp_path_factory.mktemp("local") / "root")
    share(tool.root, shared_cache)
    tool.good("fetch")
    argv = tool.argv("build") if why_not() else without_network(*tool.argv("build"))
    # An empty cache: what an earlier build left in the installer's would hide that something was not fetched.
    installers = tmp_path_factory.mktemp("cache")
    environ = tool.env(UV_CACHE_DIR=str(installers))
    done = subprocess.run(argv, env=environ, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    yield tool
    for folder in (tool.root, installers):
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="module")
def environment(tool: Tool) -> str:
    """The name of the environment that was built."""
    rows = json.loads(tool.good("list", "--json"))["result"]["environments"]
    published = [row["environment"] for row in rows if row["state"] == "published"]
    assert published
    return str(published[0])


@pytest.fixture(scope="module")
def prefix(tool: Tool, environment: str) -> Path:
    """The folder of the environment."""
    return Path(json.loads(tool.good("show", environment, "--json"))["result"]["prefix"])


def test_a_build_is_proved_by_ranks_that_agree_and_leaves_all_its_records(tool: Tool, environment: str) -> None:
    """The record says what was built, from what, and how it was proved."""
    record = json.loads(tool.good("show", environment, "--json"))["result"]
    verdict = record["verdict"]
    assert verdict["passed"] and all(check["passed"] for check in verdict["checks"])
    assert {"ranks", "allreduce", "mpi4py", "weights", "loss", "accuracy"} <= {
        check["name"] for check in verdict["checks"]
    }
    assert verdict["figures"]["ranks"] == 2
    assert verdict["figures"]["images_per_second"] > 0
    assert verdict["figures"]["versions"]["horovod"] == "0.28.1"
    assert {check["name"] for check in record["checks"]} >= {"framework built in", "MPI built in", "linked MPI"}
    (said,) = [check["message"] for check in record["checks"] if check["name"] == "math backend"]
    assert said.startswith(("oneDNN on CPUs", "Eigen on CPUs"))
    records = Path(record["prefix"]) / ".provision"
    assert (records / "plan.json").is_file()
    assert not any((tool.root / "envs").glob("*/*/*/.provision/candidate"))
    assert not any((tool.root / "build").glob("*/*"))


def test_what_is_linked_is_the_mpi_of_the_plan_and_points_to_no_build_folder(tool: Tool, prefix: Path) -> None:
    """The library's RUNPATH is relative, so that the cached wheel serves every prefix."""
    for place, runpath in (
        ("horovod/tensorflow/mpi_lib*.so", "[$ORIGIN/../../tensorflow:$ORIGIN/../../../..]"),
        ("mpi4py/MPI*.so", "$ORIGIN/../../..]"),  # before it, a Python may write its own folder
    ):
        library = next(prefix.glob(f"lib/python3.*/site-packages/{place}"))
        dynamic = subprocess.run(["readelf", "-d", library], capture_output=True, text=True, check=True).stdout
        assert runpath in dynamic
        assert "libmpi.so.12" in dynamic
        assert str(tool.root) not in dynamic


def log_of(tool: Tool, prefix: Path, step: str) -> Path:
    """The log of a step of the build."""
    arch, name, version = prefix.parts[-3:]
    return tool.root / "logs" / arch / f"{name}-{version}" / f"{step}.log"


def test_horovods_sources_are_compiled_as_few_files(tool: Tool, prefix: Path) -> None:
    """26 sources in 3 files: the headers that they share are read once a file."""
    log = log_of(tool, prefix, "compile")
    if not log.exists():
        pytest.skip("an earlier run compiled the wheel, from the same sources, with the same flags and patches")
    built = re.findall(r"Building CXX object \S*/(\S+)\.o", log.read_text(encoding="utf-8"))
    assert sorted(built) == ["mpi_ops.cc", *(f"unity_{number}_cxx.cxx" for number in range(2))]


def test_a_users_venv_imports_the_stack_and_pip_adds_to_it(
    tool: Tool, environment: str, prefix: Path, tmp_path: Path
) -> None:
    """TensorFlow, and Horovod with its MPI, in a venv of a user; pip adds a wheel and refuses another NumPy."""
    venv = tmp_path / "my-venv"
    tool.good("venv", "create", str(venv), "--on", environment)
    program = "import tensorflow, horovod.tensorflow as h; h.init(); print(tensorflow.__file__, h.size())"
    mine = make_wheel(tmp_path, "mine", "1.0", {"mine.py": program})
    numpy = make_wheel(tmp_path, "numpy", "1.0", {"numpy/__init__.py": ""})
    pip = [str(venv / "bin" / "pip"), "install", "--no-index", "--quiet"]
    subprocess.run([*pip, str(mine)], check=True)
    refused = subprocess.run([*pip, str(numpy)], capture_output=True, text=True, check=False)
    assert refused.returncode == 1
    assert "ResolutionImpossible" in refused.stderr
    argv = [str(venv / "bin" / "python"), "-c", "import mine"]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    path, size = done.stdout.split()
    assert (Path(path).is_relative_to(prefix), size) == (True, "1")
    checks = tool.json("venv", "check", str(venv))["result"]["checks"]
    assert all(check["passed"] for check in checks), checks


def test_what_was_fetched_is_all_that_a_node_without_network_needs(tool: Tool, prefix: Path) -> None:
    """The build of this session's root was cut off from every network; fetching again finds all of it here."""
    if reason := why_not():
        pytest.skip(f"no process can be cut off from the network here: {reason}")
    assert "--no-index --find-links" in log_of(tool, prefix, "install").read_text(encoding="utf-8")
    again = tool.json("fetch")["result"]
    assert again["fetched"] == []
    assert len(again["here"]) == 5


def test_an_activated_shell_trains_under_mpiexec_and_deactivation_leaves_nothing(tool: Tool, environment: str) -> None:
    """What a user of a machine without modules types."""
    script = f"""
    set -euo pipefail
    env | sort >"$1/before"
    eval "$({" ".join(tool.argv("activate", environment))})"
    mpiexec -n 2 python -c 'if True:
        import os
        from mpi4py import MPI
        import horovod.tensorflow.keras as hvd
        hvd.init()
        world = MPI.COMM_WORLD
        assert (world.Get_rank(), world.Get_size()) == (hvd.rank(), hvd.size())
        os.write(1, f"{{hvd.rank()}} of {{hvd.size()}}\\n".encode())'
    provision_deactivate
    env | sort >"$1/after"
    diff "$1/before" "$1/after"
    """
    done = subprocess.run(
        ["bash", "-c", script, "bash", str(tool.root)], env=tool.env(), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    # Some machines' network libraries talk on stdout too.
    assert sorted(line for line in done.stdout.splitlines() if line.endswith(" of 2")) == ["0 of 2", "1 of 2"]


@pytest.fixture
def activated(tool: Tool, environment: str, tmp_path: Path) -> Activated:
    """Runs a script in bash, in a shell in which the environment is activated, in the folder of the test."""

    def run(script: str) -> subprocess.CompletedProcess[str]:
        text = f'set -euo pipefail\neval "$({" ".join(tool.argv("activate", environment))})"\n{script}'
        argv, environ = ["bash", "-c", text], tool.env()
        return subprocess.run(argv, env=environ, cwd=tmp_path, capture_output=True, text=True, check=False)

    return run


def test_horovodrun_refuses_and_the_command_of_its_hint_starts_the_program(
    activated: Activated, tmp_path: Path
) -> None:
    """What the user typed is in the hint: the program, its words, the number of ranks, the settings."""
    (tmp_path / "my train.py").write_text(
        "import os, sys, horovod.tensorflow as hvd\nhvd.init()\n"
        'line = (hvd.rank(), hvd.size(), sys.argv[1:], os.environ["HOROVOD_CYCLE_TIME"])\n'
        'os.write(1, f"{line}\\n".encode())\n'
    )
    typed = "horovodrun -np 2 -H localhost:2 --cycle-time-ms 3 python 'my train.py' \"it's\""
    done = activated(typed)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith("error: `horovodrun` is switched off in this environment\n")
    assert "Traceback" not in done.stderr
    mpiexec, provision = done.stderr.partition("hint: ")[2].split("`")[1::2]
    assert provision == "provision job horovod --help"
    done = activated(mpiexec)
    assert done.returncode == 0, done.stdout + done.stderr
    lines = sorted(line for line in done.stdout.splitlines() if line.startswith("("))
    assert lines == [f"""({rank}, 2, ["it's"], '3.0')""" for rank in (0, 1)]


def test_horovodrun_still_shows_its_version_and_what_is_built_in(activated: Activated) -> None:
    """Both start nothing. What is built in is read from the library, so the answer comes without an import of TensorFlow."""
    asked = "horovodrun --version; time -p horovodrun --check-build"
    done = activated(asked)
    assert done.returncode == 0, done.stderr
    seconds = sum(float(line.split()[1]) for line in done.stderr.splitlines() if line.startswith(("user ", "sys ")))
    assert seconds < 3, "one import of TensorFlow takes 3 s and more; six were needed"
    assert "oneDNN" not in done.stderr
    assert "[ ] PyTorch" in done.stdout
    assert done.stdout.startswith("0.28.1\n")
    assert "[X] TensorFlow" in done.stdout and "[X] MPI" in done.stdout and "[ ] Gloo" in done.stdout


def test_a_notebook_imports_horovod_through_the_kernel(
    tool: Tool, environment: str, prefix: Path, tmp_path: Path
) -> None:
    """Jupyter's own client starts the kernel; `ipykernel` comes from the package index into a venv of the kernel."""
    if reason := no_notebook():
        pytest.skip(reason)
    tool.good("kernel", "install", environment, "--name", "mine", JUPYTER_DATA_DIR=str(tmp_path))
    code = "import horovod.tensorflow.keras as hvd; hvd.init(); print(hvd.__file__, hvd.size())"
    path, size = run_notebook("mine", code, tmp_path).splitlines()[-1].split()
    assert (Path(path).is_relative_to(prefix), size) == (True, "1")


def test_tensorboard_of_the_environment_serves_a_run(
    tool: Tool, environment: str, prefix: Path, tmp_path: Path
) -> None:
    """The real TensorBoard, until Ctrl-C."""
    summaries = tmp_path / "runs" / "4711" / "tensorboard"
    writer = f"import tensorflow as tf; w = tf.summary.create_file_writer({str(summaries)!r}); w.close()"
    subprocess.run([prefix / "bin" / "python", "-c", writer], check=True, capture_output=True)
    port = free_port()
    argv = tool.argv("tensorboard", "4711", "--on", environment, "--port", str(port))
    process = subprocess.Popen(argv, env=tool.env(), cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    assert json.loads(served(process, f"http://127.0.0.1:{port}/data/logdir"))["logdir"] == str(summaries)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 0, said
    assert "Traceback" not in said


# Everything in Horovod's Python code that would listen, or that would unpickle what a server sends.
SERVERS = """
import os, socket
import horovod, horovod.runner
import horovod.tensorflow.elastic, horovod.tensorflow.keras.elastic
from horovod.runner.common.service.compute_service import ComputeService
from horovod.runner.common.util.network import BasicService
from horovod.runner.driver.driver_service import HorovodRunDriverService
from horovod.runner.elastic.worker import WorkerNotificationManager
from horovod.runner.http.http_client import put_data_into_kvstore, read_data_from_kvstore
from horovod.runner.http.http_server import KVStoreServer, RendezvousServer
from horovod.runner.task.task_service import HorovodRunTaskService

key = bytes(32)
for name, call in {
    "horovod.run": lambda: horovod.run(lambda: 1, np=2),
    "horovod.runner.run": lambda: horovod.runner.run(lambda: 1, num_proc=2, min_num_proc=1, hosts="localhost:2"),
    "KVStoreServer": lambda: KVStoreServer(verbose=0).start_server(),
    "RendezvousServer": lambda: RendezvousServer().start(),
    "BasicService": lambda: BasicService("x", key, None),
    "HorovodRunDriverService": lambda: HorovodRunDriverService(2, key, None),
    "HorovodRunTaskService": lambda: HorovodRunTaskService(0, key, None),
    "ComputeService": lambda: ComputeService(1, 1, key),
    "WorkerNotificationManager": lambda: WorkerNotificationManager().init("127.0.0.1", 9, "lo", "localhost", 0),
    "read_data_from_kvstore": lambda: read_data_from_kvstore("127.0.0.1", 9, "runfunc", "func"),
    "put_data_into_kvstore": lambda: put_data_into_kvstore("127.0.0.1", 9, "runfunc", "func", 1),
}.items():
    try:
        call()
        print(name, "was not refused")
    except horovod.runner.refusal.RunnerRefused as error:
        assert str(error).splitlines()[0].endswith(" is switched off in this environment"), error
    except Exception as error:
        print(name, repr(error))
for number in os.listdir("/proc/self/fd"):
    try:
        with socket.socket(fileno=os.dup(int(number))) as one:
            if one.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
                print("listens", one.getsockname())
    except OSError:  # not a socket
        pass
"""


def test_no_part_of_horovods_runner_opens_a_server_or_reads_from_one(activated: Activated, tmp_path: Path) -> None:
    """Elastic drivers, Spark and Ray use these classes. `import horovod.tensorflow.elastic` works."""
    (tmp_path / "servers.py").write_text(SERVERS)
    done = activated("python servers.py")
    assert done.returncode == 0, done.stderr
    assert done.stdout == ""


def test_a_program_of_elastic_horovod_trains_with_a_fixed_number_of_ranks(activated: Activated, tmp_path: Path) -> None:
    """Started by mpiexec, `hvd.elastic.run` only synchronises the state."""
    (tmp_path / "train.py").write_text(
        "import os, horovod.tensorflow as hvd, tensorflow as tf\n"
        "hvd.init()\n"
        "weight = tf.Variable(float(hvd.rank() + 5))\n"
        "@hvd.elastic.run\n"
        "def train(state):\n"
        "    state.batch += 1\n"
        "    state.commit()\n"
        "    return weight.numpy()\n"
        "value = train(hvd.elastic.TensorFlowState([weight], batch=hvd.rank()))\n"
        'os.write(1, f"weight {value} of rank {hvd.rank()} of {hvd.size()}\\n".encode())\n'
    )
    done = activated("mpiexec -n 2 python train.py")
    assert done.returncode == 0, done.stdout + done.stderr
    lines = sorted(line for line in done.stdout.splitlines() if line.startswith("weight"))
    assert lines == [f"weight 5.0 of rank {rank} of 2" for rank in (0, 1)]


def open_ports(*argv: str | Path, environ: dict[str, str]) -> set[str]:
    """Where a program, and all that it starts, listen for other machines, as far as that is seen every 0.05 s.

    It has a network of its own, so that the kernel's tables have no other ports.
    """
    process, ports, ours = (
        subprocess.Popen(without_network(*map(str, argv)), env=environ),
        set(),
        Path("/proc/self/ns/net"),
    )
    while process.poll() is None:
        with contextlib.suppress(OSError):
            there = Path(f"/proc/{process.pid}")
            if (there / "ns/net").readlink() != ours.readlink():
                lines = (there / "net/tcp").read_text().splitlines() + (there / "net/tcp6").read_text().splitlines()
                ports |= {words[1] for words in map(str.split, lines) if words[3] == "0A"}
        time.sleep(0.05)
    assert process.returncode in (
        0,
        1,
    )  # a proof that is slower than earlier ones, for who looks takes time, is a finding
    return {port for port in ports if not port.startswith(("0100007F:", "00000000000000000000000001000000:"))}


def test_no_rank_of_a_proof_listens_for_other_machines(tool: Tool, environment: str, prefix: Path) -> None:
    """Horovod and TensorFlow open no port, and an MPI on shared memory none but that of MPICH's mpiexec for its helpers."""
    if reason := why_not():
        pytest.skip(f"no process can have a network of its own here: {reason}")
    programs = prefix / "bin"
    listens = "import socket, time; one = socket.create_server(('0.0.0.0', 0)); time.sleep(1)"
    ranks = (programs / "mpiexec", "-n", "2", programs / "python", "-c", listens)
    assert len(open_ports(*ranks, environ=tool.env())) == 3, "what listens is seen"
    # mpiexec starts twice: the ranks, and one process whose look-ups are counted.
    assert len(open_ports(*tool.argv("test", environment), environ=tool.env(UCX_TLS="self,sm"))) == 2


@pytest.mark.slurm
@pytest.mark.parametrize(
    ("name", "again"),
    [
        *(("single", ""), ("horovod-keras", "requeue"), ("graph-horovod", "")),
        *(long("mirrored", "resume"), long("graph", "resume"), long("tfrecord", "")),
        *(long("horovod-loop", "resume"), long("graph-horovod", "requeue")),
    ],
)
def test_every_example_trains_and_continues_by_jobs_on_the_newest_tensorflow(
    prefix: Path, slurm_cluster: SlurmCluster, tmp_path: Path, name: str, again: str
) -> None:
    """TensorFlow 2.21 with Keras 3 is behind a module of the site's own; `mpiexec` starts the ranks of its MPI."""
    site = site_with_module(tmp_path, prefix, needed(LMOD).init, (SRUN, 'launcher = { name = "mpiexec" }'))
    place_of(slurm_cluster, tmp_path, site, prefix).check(name, again=again)


def test_keras_3_finds_what_was_fetched_with_and_without_a_folder_of_its_own(prefix: Path, tmp_path: Path) -> None:
    python = prefix / "bin" / "python"
    assert found_by(python, tmp_path / "one") == ["digits", "batch", "weights"]
    assert found_by(python, tmp_path / "two", keras_home=True) == ["digits", "batch", "weights"]


@pytest.mark.slurm
def test_the_example_of_several_workers_trains_and_continues_by_jobs_on_the_newest_tensorflow(
    prefix: Path, cluster_of_hosts: SlurmCluster, tmp_path: Path
) -> None:
    """On two hosts, which find each other by TensorFlow's own resolver."""
    site = site_with_module(tmp_path, prefix, needed(LMOD).init, (SRUN, 'launcher = { name = "srun" }'))
    place_of(cluster_of_hosts, tmp_path, site, prefix).check("multiworker", again="resume")


@pytest.mark.long
def test_the_newest_tensorflow_is_built_from_a_patched_source_and_proved_by_numbers(
    tool: Tool, environment: str
) -> None:
    """TensorFlow 2.21 with Keras 3, where Horovod as released does not compile, and would not average a gradient."""
    assert "/tensorflow/2.21.0-" in environment
    # By the module: other tests built variants of it since, and the newest is the one that users load.
    said = messages_of(tool.json("test", "tensorflow/2.21.0", "--thorough"))
    assert {"tape", "fit", "loop", "training", "broadcast", "metrics", "warmup", "load_model", "resume"} <= set(said)
    for name in ("tape", "fit", "training"):
        assert said[name].startswith("passed on 2 ranks, worst difference")
