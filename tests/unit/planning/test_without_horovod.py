"""A stack without Horovod: nothing is compiled, nothing is asked of a compiler or an MPI, and nothing speaks of Horovod."""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from golden_files import (
    GPU_FACTS,
    Golden,
    Words,
    facts_of,
    gpu_request,
    gpu_site,
    local_site,
    request_for,
    slurm_site,
    without_horovod,
)
from parts.profiles import profile
from parts.provision import Tool
from provision.errors import PlanError
from provision.machine.probes.probe import interpreter_of
from provision.machine.rendering.render_modulefile import emit_modulefile
from provision.model.facts import Existing, Facts
from provision.model.operation import Inspect, Prove
from provision.model.plan import Plan
from provision.planning.outline import outline
from provision.planning.planner import make_plan
from provision.planning.preflight import gpu_faults
from provision.profile.site import Site
from provision.profile.stack import WITHOUT_HOROVOD
from provision.proof.inspection import judge_inspection

STEPS = ("create", "install", "bytecode", "inspect", "candidate", "proof", "publish")
SITES = pytest.mark.parametrize("make_site", [local_site, slurm_site])
every_program = pytest.mark.parametrize("program", WITHOUT_HOROVOD)


def bare_facts(site: Site, **changes: object) -> Facts:
    """A machine that has neither a compiler nor an MPI."""
    return facts_of(site, **{"compiler": None, "mpi": None, **changes})


def plain_plan(site: Site, program: str = "multiworker", existing: Existing | None = None) -> Plan:
    """The plan of a stack without Horovod."""
    return make_plan(without_horovod(request_for(site), program), bare_facts(site), existing or Existing())


def plain_gpu_plan() -> Plan:
    """The plan of such a stack on an arch with GPUs, where the site has a CUDA and no NCCL."""
    site = gpu_site()
    request = without_horovod(gpu_request(site), "mirrored")
    cuda = dataclasses.replace(GPU_FACTS, cuobjdump=None, nccl_home="", nccl_version="", nccl_library="")
    return make_plan(request, bare_facts(site, gpu=cuda), Existing())


def inspection(plan: Plan) -> Inspect:
    """What the inspection is asked."""
    (found,) = (one for step in plan.steps for one in step.operations if isinstance(one, Inspect))
    return found


@every_program
@SITES
def test_nothing_is_compiled_and_no_compiler_and_no_mpi_is_needed(make_site: Callable[[], Site], program: str) -> None:
    plan = plain_plan(make_site(), program)
    assert tuple(step.name for step in plan.steps) == STEPS
    assert (plan.abi_key, plan.modulefile.version) == (None, f"2.15.1-{program}")
    said = json.dumps(plan.to_dict()).replace("--without-horovod", "").replace("without Horovod", "")
    assert not [word for word in ("compiler", "mpicxx", "cmake", "patches", "orovod") if word in said]
    env = plan.environment
    pointers = {f"{env.arch}/{env.name}/{env.version}": str(env)}
    done = Existing(receipts={str(env): frozenset(STEPS)}, pointers=pointers)
    again = plain_plan(make_site(), program, existing=done)
    assert again.done and not again.asks_network, "it needs no wheel to be kept"


def test_the_plan_is_the_golden_one(golden: Golden) -> None:
    golden("slurm/multiworker.json", json.dumps(plain_plan(slurm_site()).to_dict(), indent=1) + "\n")


def test_nothing_that_compiles_decides_it_but_the_target_does() -> None:
    """Neither a compiler, nor an MPI, nor the variables of a build."""
    request = without_horovod(request_for(slurm_site()), "single")
    compiler = dataclasses.replace(request.arch.compiler, cc="cc")
    arch = dataclasses.replace(request.arch, compiler=compiler, build_environ=(("CRAYPE_LINK_TYPE", "dynamic"),))
    plan = make_plan(dataclasses.replace(request, arch=arch), facts_of(slurm_site()), Existing())
    assert plan.identity == plain_plan(slurm_site(), "single").identity
    assert not {"compiler", "horovod", "patches", "build environment"} & set(plan.identity)
    older = dataclasses.replace(request, arch=dataclasses.replace(arch, target="x86_64_v2"))
    assert make_plan(older, bare_facts(slurm_site()), Existing()).identity == {**plan.identity, "target": "x86_64_v2"}


def test_the_mpi_wheel_that_starts_the_proof_is_installed_and_shown() -> None:
    plan = plain_plan(local_site())
    assert plan.identity["mpi"] == "mpich 5.0.2 (wheel)"
    (proof,) = (one for step in plan.steps for one in step.operations if isinstance(one, Prove))
    assert proof.mpiexec == f"{plan.prefix}/bin/mpiexec"
    assert "3 locked packages by uv" in next(step.title for step in plan.steps if step.name == "install")
    assert "mpi" not in plain_plan(slurm_site()).identity


@every_program
def test_the_plan_says_who_trains(program: str, words: Words) -> None:
    words("plan", next(step.title for step in plain_plan(slurm_site(), program).steps if step.name == "proof"))


def test_horovod_still_needs_its_compiler_and_its_mpi(words: Words) -> None:
    for missing in ("compiler", "mpi"):
        with pytest.raises(PlanError) as caught:
            make_plan(request_for(slurm_site()), facts_of(slurm_site(), **{missing: None}), Existing())
        words("plan", "\n".join(caught.value.to_lines()))


@pytest.mark.parametrize("kind", ["lua", "tcl", "sh"])
def test_the_modulefile_speaks_of_no_horovod(kind: Any) -> None:
    plan = plain_plan(slurm_site())
    text = emit_modulefile(plan.modulefile, kind, "2 workers on 2 nodes trained")
    assert "orovod" not in text and "mpi " not in text and "compiler" not in text
    assert kind == "sh" or "haswell: haswell" in text


# What is inspected


def report(**changes: object) -> dict[str, Any]:
    """What `proof/programs/inspect_env.py --without-horovod` reports of a good environment."""
    return {
        "versions": {"tensorflow": "2.15.1", "python": "3.11.7"},
        "tensorflow": {"built_with_cuda": True, "build_info": {"cuda_version": "12.2"}},
        "horovod": {"metadata": None, "extensions": None, "flags": None, "check_build": None, "device_code": None},
        "cuda_driver": {"serves": None, "reason": "no libcuda.so.1"},
        "mapped_objects": ["/usr/lib/libm.so.6"],
        "enable_user_site": False,
        "errors": {},
        **changes,
    }


def judged(plan: Plan, seen: dict[str, Any]) -> dict[str, bool]:
    """Each check of the inspection, and whether it passed."""
    checks = judge_inspection(seen, inspection(plan).expectation, resolve=lambda path: path)
    return {check.name: check.passed for check in checks}


def test_the_inspection_asks_for_the_framework_and_for_nothing_of_horovod() -> None:
    plan = plain_plan(slurm_site())
    assert inspection(plan).command.argv[-1] == "--without-horovod"
    checks = judged(plan, report())
    assert all(checks.values())
    assert sorted(checks) == [
        *("imports", "links", "math backend", "no packages from a home directory", "nothing from outside"),
        *("version of python", "version of tensorflow"),
    ]


def test_a_gpu_stack_without_horovod_needs_cuda_but_no_nccl() -> None:
    plan = plain_gpu_plan()
    assert plan.identity["cuda"] == "12.4.131 /site/cuda"
    assert not {"gpu", "nccl"} & set(plan.identity)
    assert ("gpu", "CUDA 12.4.131") in plan.modulefile.facts
    assert ("XLA_FLAGS", "--xla_gpu_cuda_data_dir=/site/cuda") in plan.modulefile.environ
    assert inspection(plan).command.argv[-2:] == ("--without-horovod", "--gpu")
    checks = judged(plan, report())
    assert checks["TensorFlow with CUDA"] and checks["driver"]
    assert not {"NCCL built in", "linked NCCL", "device code", "linked MPI"} & set(checks)
    old = {"built_with_cuda": True, "build_info": {"cuda_version": "11.8"}}
    assert not judged(plan, report(tensorflow=old))["TensorFlow with CUDA"]
    assert not judged(plan, report(tensorflow={"built_with_cuda": False}))["TensorFlow with CUDA"]


def test_a_cpu_framework_on_gpus_is_refused_without_naming_horovod() -> None:
    site = gpu_site()
    (fault,) = gpu_faults(without_horovod(request_for(site), "mirrored"), bare_facts(site, gpu=GPU_FACTS))
    assert "never uses them" in fault.message
    assert "orovod" not in str(fault)


# By the profile alone, and by the verbs


def test_the_outline_has_nothing_of_what_compiles_horovod() -> None:
    site = profile("nersc-cori")
    stack = without_horovod(request_for(slurm_site()), "multiworker").stack
    sections = outline(site, site.arch("knl"), stack, ())
    assert not {"compiler", "mpi", "horovod", "compile"} & set(sections)
    assert {"modules", "fetch", "install", "prove"} <= set(sections)


SITE = """
name = "bare"
root = "${PROVISION_ROOT}"
stack = "tensorflow-2.15.1-multiworker"

[archs.node]
target = "x86_64"
compiler = { cxx = "no-such-compiler" }
mpi = { provider = "site", family = "mpich", cxx = "no-such-mpicxx" }
"""


def test_a_machine_without_mpi_and_compiler_plans_and_has_no_problems(tmp_path: Path, words: Words) -> None:
    tool, site = Tool(tmp_path / "root"), tmp_path / "bare.toml"
    site.write_text(SITE, encoding="utf-8")
    if interpreter_of("3.11", os.environ) is None:
        pytest.skip("there is no Python 3.11 here, which the stack has its lock for")
    done = tool.run("plan", "--site", str(site))
    assert done.returncode == 0, done.stderr
    assert "create  compile" not in done.stdout and "compiler " not in done.stdout and "mpi " not in done.stdout
    assert "measured" not in done.stdout, "the matrix measures Horovod"
    assert "no-such" not in tool.run("doctor", "--site", str(site)).stdout
    refused = tool.run("plan", "--site", str(site), "--stack", "tensorflow-2.15.1")
    assert refused.returncode == 1
    words("plan", "\n".join(line for line in refused.stderr.splitlines() if "`no-such-" in line))
