"""Stacks of PyTorch, whose wheels bring CUDA: what a site must have for them, what is refused, and what is inspected."""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from golden_files import facts_of, gpu_site, local_site, lock_of, request_for, slurm_site
from parts.cli import run
from parts.paths import PROGRAMS as FOLDER
from parts.paths import REPOSITORY
from parts.profiles import PROFILES, profile, tomllib
from provision.backends.spack.repository import refuse_compiling
from provision.commands.shared.offer import judge_profile
from provision.errors import ConfigError, PlanError
from provision.knowledge.cuda import gpu_obstacle
from provision.knowledge.frameworks import FRAMEWORKS, framework_module
from provision.knowledge.frameworks.pytorch import PYTORCH
from provision.machine.configuration import shipped
from provision.machine.files.tables import read_cells, read_combinations
from provision.model.facts import Existing, GpuFacts
from provision.model.operation import Inspect, Prove
from provision.model.plan import Plan
from provision.model.request import Request
from provision.planning.planner import make_plan
from provision.planning.solver import Offer, choose, judge_stack
from provision.profile.site import Site
from provision.profile.stack import PROGRAMS, read_stack, read_wish
from provision.profile.strategy import Strategy
from provision.proof.inspection import judge_inspection

INSPECT = FOLDER / "inspect_env.py"
NEWEST, OLDER = "pytorch-2.14.1", "pytorch-2.7.1"
BOTH = "tensorflow-2.21.0-pytorch-2.7.1"


def request_of(site: Site, *pins: str, name: str = NEWEST) -> Request:
    """The request for a stack of PyTorch; the lock has these packages too."""
    stack = shipped.load_stack(name)
    lock = lock_of(name, f"torch=={stack.framework.version}", "numpy==2.4.6", *pins)
    return dataclasses.replace(request_for(site), stack=stack, lock=lock, build_lock=None, patches=())


def plan_of(site: Site, *pins: str, name: str = NEWEST) -> Plan:
    """The plan on a machine without compiler, MPI and CUDA."""
    return make_plan(request_of(site, *pins, name=name), facts_of(site, compiler=None, mpi=None, gpu=None), Existing())


def inspection(plan: Plan) -> Inspect:
    """What the inspection is asked."""
    (found,) = (one for step in plan.steps for one in step.operations if isinstance(one, Inspect))
    return found


def test_every_program_of_a_proof_is_of_a_framework() -> None:
    assert {program for one in FRAMEWORKS.values() for program in one.programs} == set(PROGRAMS)


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("pytorch/2.14.1", ("PyTorch", (2, 14, 1))),
        ("PyTorch/2.1.2-foss-2022b-CUDA-11.7.0", ("PyTorch", (2, 1, 2))),
        ("py-torch/2.5.1", ("PyTorch", (2, 5, 1))),
        ("datascience/pytorch-1.7", ("PyTorch", (1, 7))),
        ("Horovod/0.28.1-foss-2022a-CUDA-11.7.0-PyTorch-1.12.0", ("PyTorch", (1, 12, 0))),
        ("tensorflow/2.15.1", ("TensorFlow", (2, 15, 1))),
        ("torchvision/0.15.2", None),
        ("conda/2025-09-25", None),
    ],
)
def test_the_framework_of_a_module_is_read_from_its_name(name: str, found: tuple[str, tuple[int, ...]] | None) -> None:
    module = framework_module(("gcc/12.2", name))
    assert (module and (module[0].title, module[2])) == found


def test_an_arch_with_gpus_needs_no_cuda_for_wheels_that_bring_it() -> None:
    plan = plan_of(gpu_site())
    assert not {"cuda", "nccl", "gpu"} & set(plan.identity)
    assert dict(plan.modulefile.facts)["gpu"] == "CUDA 13.0 of its own wheels"
    assert "XLA_FLAGS" not in dict(plan.modulefile.environ) and plan.modulefile.defaults == ()
    asked = inspection(plan)
    assert asked.command.argv[2:] == ("--framework", "torch", "--without-horovod", "--gpu")
    assert asked.expectation.gpu and asked.expectation.gpu.cuda_version == "13.0"


def test_gpus_for_which_the_wheels_have_no_code_are_refused() -> None:
    site = gpu_site(capabilities=["60"])
    with pytest.raises(PlanError) as caught:
        plan_of(site)
    assert "capability 75 to 121 (CUDA 13.0), but the arch has 60" in caught.value.message
    assert plan_of(site, name=OLDER).environment.version == "2.7.1"


@pytest.mark.parametrize(("version", "refused"), [("2.7.1", True), ("2.14.1", False)])
def test_the_newer_wheels_use_gpus_beside_arm_too(version: str, *, refused: bool) -> None:
    assert bool(gpu_obstacle(PYTORCH, version, "aarch64", ("90",))) == refused


def test_wheels_without_cuda_are_for_archs_without_gpus() -> None:
    name = "pytorch-2.14.1-cpu"
    assert plan_of(local_site(), name=name).environment.version == "2.14.1-cpu"
    with pytest.raises(PlanError) as caught:
        plan_of(gpu_site(), name=name)
    assert "installs `torch` 2.14.1+cpu, which never uses them" in caught.value.message
    assert str(caught.value.hint).startswith("`--stack pytorch-2.14.1`")
    offer = Offer(pythons=("3.11",), cuda=(), gpus=True, glibc="2.36", machine="x86_64", source="x offers")
    verdict = judge_stack(shipped.load_stack(name), offer, read_combinations(), read_cells())
    assert verdict.against == ("installs `torch` 2.14.1+cpu, which uses no GPU",)


@pytest.mark.parametrize(
    ("version", "cuda"), [("2.7.1+cu118", "11.8"), ("2.7.1+cu126", "12.6"), ("2.14.1", "13.0"), ("2.14.1+cpu", None)]
)
def test_the_label_of_a_wheel_names_its_cuda(version: str, cuda: str | None) -> None:
    assert PYTORCH.cuda_of(version) == cuda


@pytest.mark.parametrize(
    ("site", "other", "refused"),
    [
        (gpu_site(), "tensorflow==2.21.0", True),
        (local_site(), "tensorflow==2.21.0", True),
        (local_site(), "tensorflow-cpu==2.20.0", False),
        (local_site(), "tensorflow==2.99.0", False),
    ],
)
def test_two_frameworks_for_two_cudas_are_refused_in_one_environment(site: Site, other: str, *, refused: bool) -> None:
    if not refused:
        assert plan_of(site, other)
        return
    with pytest.raises(PlanError) as caught:
        plan_of(site, other)
    assert caught.value.message.startswith("TensorFlow 2.21.0 and PyTorch 2.14.1 need two versions of CUDA")


def test_a_pair_that_crashes_in_one_process_is_refused_and_the_older_one_is_not() -> None:
    with pytest.raises(PlanError) as caught:
        plan_of(local_site(), "tensorflow-cpu==2.21.0")
    assert caught.value.message.startswith("TensorFlow 2.21.0 and PyTorch 2.14.1 cannot be in one environment")
    assert any("segmentation fault" in line for line in caught.value.evidence) and BOTH in str(caught.value.hint)
    assert plan_of(local_site(), "tensorflow-cpu==2.21.0", name=OLDER).environment.version == "2.7.1"


def plan_of_both(site: Site, **changes: Any) -> Plan:
    """The plan of the stack with both frameworks, on a machine with a compiler and an MPI."""
    request = request_for(site)
    pins = ("tensorflow-cpu==2.21.0", "torch==2.7.1", "keras==3.15.1", "horovod==0.28.1", "mpi4py==4.1.2")
    stack = dataclasses.replace(shipped.load_stack(BOTH), compiled=(), **changes)
    facts = facts_of(site, gpu=GpuFacts(cuda_home="/cuda", cuda_version="12.5") if site.archs[0].gpu else None)
    return make_plan(dataclasses.replace(request, stack=stack, lock=lock_of(BOTH, *pins)), facts, Existing())


def test_both_frameworks_are_inspected_and_proved_each_in_processes_of_its_own() -> None:
    plan = plan_of_both(slurm_site())
    first, second = (one for step in plan.steps for one in step.operations if isinstance(one, Inspect))
    assert [one.command.argv[3] for one in (first, second)] == ["tensorflow", "torch"]
    assert "--without-horovod" not in {*first.command.argv, *second.command.argv}
    assert dict(second.expectation.versions)["torch"] == "2.7.1" and second.expectation.mpi_libraries
    (proof,) = (one for step in plan.steps for one in step.operations if isinstance(one, Prove))
    ranks, keras = proof.others
    assert (ranks.strategy, ranks.processes, ranks.title) == ("horovod_torch", proof.processes, "PyTorch")
    assert (keras.strategy, keras.processes, keras.title) == ("keras_torch", 1, "Keras on torch")
    # A torch for Keras alone has no Horovod to inspect, and no ranks.
    plan = plan_of_both(slurm_site(), beside=())
    _, second = (one for step in plan.steps for one in step.operations if isinstance(one, Inspect))
    assert "--without-horovod" in second.command.argv and not second.expectation.mpi_libraries
    (proof,) = (one for step in plan.steps for one in step.operations if isinstance(one, Prove))
    assert [one.strategy for one in proof.others] == ["keras_torch"]


def test_both_frameworks_are_refused_where_they_were_not_tried() -> None:
    with pytest.raises(PlanError) as caught:
        plan_of_both(gpu_site())
    assert "were tried on CPUs only" in caught.value.message
    with pytest.raises(PlanError) as caught:
        refuse_compiling(shipped.load_stack(BOTH))
    assert "only for TensorFlow" in caught.value.message and "and PyTorch" in caught.value.evidence[0]


def test_no_stack_that_was_tried_on_cpus_only_is_offered_to_an_arch_with_gpus() -> None:
    offer = Offer(pythons=None, cuda=("12.6",), gpus=True, glibc="2.36", machine="x86_64", source="x offers")
    for name, refused in (
        (BOTH, True),
        ("pytorch-2.14.1-horovod", True),
        (OLDER, False),
        ("tensorflow-2.21.0-gpu", False),
    ):
        fit = judge_stack(shipped.load_stack(name), offer, read_combinations(), read_cells())
        assert ("was tried on CPUs only" in fit.against) == refused, name
    on_cpus = dataclasses.replace(offer, gpus=False, cuda=None)
    fit = judge_stack(shipped.load_stack(BOTH), on_cpus, read_combinations(), read_cells())
    assert not fit.against and not fit.measured, "what was measured is TensorFlow alone"


@pytest.mark.parametrize(
    ("table", "key", "value", "path"),
    [
        ("horovod", "frameworks", ["pytorch"], "horovod.frameworks"),
        ("horovod", "frameworks", ["tensorflow", "jax"], "horovod.frameworks[1]"),
        (None, "keras_backends", ["jax"], "keras_backends[0]"),
        ("framework", "version", "2.15.1", "keras_backends"),
    ],
)
def test_a_fault_in_what_a_stack_says_of_both_has_its_place(table: str | None, key: str, value: Any, path: str) -> None:
    data = tomllib.loads((REPOSITORY / "stacks" / f"{BOTH}.toml").read_text(encoding="utf-8"))
    (data[table] if table else data)[key] = value
    with pytest.raises(ConfigError) as caught:
        read_stack(data, "x.toml")
    assert path in [line.partition(": ")[0] for line in caught.value.evidence]


def test_a_program_of_another_framework_is_a_fault() -> None:
    data = tomllib.loads((REPOSITORY / "stacks" / f"{NEWEST}.toml").read_text(encoding="utf-8"))
    data["proof"]["program"] = "multiworker"
    with pytest.raises(ConfigError) as caught:
        read_stack(data, "x.toml")
    assert any("`multiworker` does not train PyTorch" in line for line in caught.value.evidence)
    data["framework"]["name"] = "torch"
    with pytest.raises(ConfigError) as caught:
        read_stack(data, "x.toml")
    assert len(caught.value.evidence) == 1, "what a framework that is not known trains is not known either"


def test_an_overlay_is_of_tensorflow() -> None:
    done = run("job", "overlay", "--site", "nyu-greene", "--arch", "gpu", "--stack", OLDER)
    assert done.returncode == 2 and "the stack `pytorch-2.7.1` is of PyTorch 2.7.1" in done.stderr


def test_a_range_of_pytorch_chooses_the_newest_that_works() -> None:
    offer = Offer(
        pythons=("3.11",), cuda=(), gpus=True, glibc="2.36", machine="x86_64", source="x offers", capabilities=("60",)
    )
    wish = {"name": "mine", "summary": "s", "choose": {"pytorch": ">=2", "horovod": False}}
    stacks, known, cells = shipped.stacks_with_versions(), read_combinations(), read_cells()
    chosen, passed_over = choose(read_wish(wish, "x.toml"), stacks, offer, known, cells)
    assert chosen.stack.name == OLDER
    assert [line.partition(":")[0] for line in passed_over] == [NEWEST]
    newest = judge_stack(shipped.load_stack(NEWEST), dataclasses.replace(offer, capabilities=("90",)), known, cells)
    assert not newest.against, "the wheels bring CUDA"
    for given in ({"horovod": False}, {"pytorch": ">=2", "tensorflow": ">=2"}):
        with pytest.raises(ConfigError):
            read_wish({**wish, "choose": given}, "x.toml")


ADVISED = [(site, one) for site in PROFILES for one in profile(site).strategies if one.stack]


def test_the_profiles_that_have_a_stack_of_pytorch() -> None:
    assert {site for site, _ in ADVISED} == {"sigma2-saga", "nersc-perlmutter", "alcf-polaris", "nyu-greene"}


@pytest.mark.parametrize(("site", "strategy"), ADVISED, ids=[site for site, _ in ADVISED])
def test_a_stack_that_a_profile_names_for_a_kind_of_job_works_on_its_archs(site: str, strategy: Strategy) -> None:
    stack = shipped.load_stack(str(strategy.stack))
    assert strategy.name in stack.framework.interface.kinds
    for arch in profile(site).archs:
        against, _ = judge_profile(profile(site), arch, stack)
        assert not against or arch.name == "hugemem", (arch.name, against)


def test_a_job_of_ddp_loads_the_stack_of_the_profile() -> None:
    words = ("--site", "sigma2-saga", "--arch", "accel", "--account", "x")
    done = run("job", "ddp", *words)
    assert done.returncode == 0 and "module load pytorch/2.7.1" in done.stdout
    assert "`provision build --site sigma2-saga --arch accel --stack pytorch-2.7.1 --submit`" in done.stderr
    assert "module load TensorFlow" in run("job", "horovod", *words).stdout


# The inspection

TORCH = """
import sys, types
__version__ = "2.14.1+cu130"
version = types.SimpleNamespace(cuda="13.0")
mkldnn, cudnn = types.SimpleNamespace(is_available=lambda: True), types.SimpleNamespace(version=lambda: 92400)
backends = types.SimpleNamespace(mkldnn=mkldnn, cudnn=cudnn)
distributed = types.SimpleNamespace(is_available=lambda: True, is_nccl_available=lambda: True, is_mpi_available=lambda: False)
_C = types.SimpleNamespace(_cuda_getArchFlags=lambda: "sm_75", _GLIBCXX_USE_CXX11_ABI=True)
sys.modules["numpy"] = types.SimpleNamespace(__version__="2.4.6")
"""


def inspected(tmp_path: Path) -> dict[str, Any]:
    """The report of the inspection of a package that answers as torch does."""
    (tmp_path / "torch.py").write_text(TORCH)
    argv = [sys.executable, str(INSPECT), "--framework", "torch", "--without-horovod", "--gpu"]
    environ = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run(argv, env=environ, capture_output=True, text=True, check=True)
    report: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return report


def failed(report: dict[str, Any]) -> set[str]:
    """The checks that fail, of those about the framework."""
    expectation = dataclasses.replace(inspection(plan_of(gpu_site())).expectation, allowed=("/envs/x", "/"))
    names = {"imports", "version of torch", "math backend", "CUDA of the wheels", "PyTorch with CUDA", "driver"}
    checks = [one for one in judge_inspection(report, expectation, resolve=lambda path: path) if one.name in names]
    assert len(checks) == len(names)
    return {one.name for one in checks if not one.passed}


def test_the_inspection_asks_pytorch_and_finds_libraries_of_another_cuda(tmp_path: Path) -> None:
    report = inspected(tmp_path)
    assert failed(report) == set()
    assert report["torch"]["distributed"] == ["nccl"]
    report["mapped_objects"] += ["/envs/x/nvidia/nccl/lib/libnccl.so.2"]
    assert failed(report) == set()
    report["mapped_objects"] += ["/site/cudnn/lib/libcudnn.so.9"]
    assert failed(report) == {"CUDA of the wheels"}
    report["torch"]["build_info"]["cuda_version"] = "12.6"
    assert failed(report) == {"CUDA of the wheels", "PyTorch with CUDA"}
    report["torch"]["built_with_cuda"], report["versions"]["torch"] = False, "2.13.0+cpu"
    assert failed(report) == {"CUDA of the wheels", "PyTorch with CUDA", "version of torch"}
