"""Plans for archs with GPUs: flags, what decides them, and what is refused before anything is built."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import pytest

from golden_files import GPU_FACTS, Golden, Words, facts_of, gpu_request, gpu_site, request_for
from provision.errors import PlanError
from provision.knowledge.frameworks.tensorflow import TENSORFLOW
from provision.model.facts import Existing, GpuFacts
from provision.model.operation import Command, Inspect, WriteFile
from provision.model.plan import Plan, differences
from provision.model.request import Request
from provision.planning.planner import make_plan
from provision.planning.preflight import gpu_faults


def gpu_plan(gpu: GpuFacts = GPU_FACTS, request: Request | None = None) -> Plan:
    """The plan of the machine with GPUs."""
    request = request or gpu_request(gpu_site())
    return make_plan(request, facts_of(request.site, gpu=gpu), Existing())


def operations(plan: Plan, name: str) -> tuple[Any, ...]:
    """The operations of the step called `name`."""
    return next(step.operations for step in plan.steps if step.name == name)


def compile_environ(plan: Plan) -> dict[str, str]:
    """The variables that Horovod is compiled with."""
    commands = [one for one in operations(plan, "compile") if isinstance(one, Command) and one.environ]
    return dict(commands[-1].environ)


# The plan


def test_the_plan_of_a_machine_with_gpus_is_the_golden_one(golden: Golden) -> None:
    golden("gpu/plan.json", json.dumps(gpu_plan().to_dict(), indent=1) + "\n")


def test_a_static_nccl_is_linked_and_not_searched_at_run_time() -> None:
    static = dataclasses.replace(GPU_FACTS, nccl_library="/site/nccl/lib/libnccl_static.a")
    plan = gpu_plan(static, gpu_request(gpu_site(nccl_link="STATIC")))
    assert compile_environ(plan)["HOROVOD_NCCL_LIB"] == "/site/nccl/lib"
    assert compile_environ(plan)["HOROVOD_NCCL_LINK"] == "STATIC"
    written = {
        one.path.rsplit("/", 1)[1]: one.text for one in operations(plan, "compile") if isinstance(one, WriteFile)
    }
    assert "libnccl.so" not in written
    assert "/site/nccl" not in written["toolchain.cmake"]
    (inspect,) = [one for one in operations(plan, "inspect") if isinstance(one, Inspect)]
    assert inspect.expectation.gpu is not None and inspect.expectation.gpu.nccl_library is None


@pytest.mark.parametrize(
    ("change", "key"),
    [
        ({"cuda_version": "12.5.40"}, "cuda"),
        ({"cuda_home": "/opt/cuda"}, "cuda"),
        ({"nccl_version": "2.23.4"}, "nccl"),
        ({"nccl_library": "/opt/nccl/lib/libnccl.so.2"}, "nccl"),
    ],
)
def test_cuda_and_nccl_decide_the_environment_and_its_wheel(change: dict[str, str], key: str) -> None:
    one, two = gpu_plan(), gpu_plan(dataclasses.replace(GPU_FACTS, **change))
    assert one.environment != two.environment
    assert one.abi_key != two.abi_key
    assert any(line.startswith(f"{key}: planned ") for line in differences(one.identity, two.identity))


def test_capabilities_decide_the_environment_but_not_the_number_of_gpus() -> None:
    plan = gpu_plan()
    other = gpu_plan(request=gpu_request(gpu_site(capabilities=["80"])))
    assert (plan.environment, plan.abi_key) != (other.environment, other.abi_key)
    assert plan.environment == gpu_plan(request=gpu_request(gpu_site(per_node=8, model="a100-80"))).environment


def test_the_module_tells_xla_where_cuda_is_unless_the_site_does() -> None:
    assert ("XLA_FLAGS", "--xla_gpu_cuda_data_dir=/site/cuda") in gpu_plan().modulefile.environ
    request = gpu_request(gpu_site())
    arch = dataclasses.replace(request.arch, environ=(("XLA_FLAGS", "--own"),))
    own = gpu_plan(request=dataclasses.replace(request, arch=arch)).modulefile.environ
    assert [value for name, value in own if name == "XLA_FLAGS"] == ["--own"]


def test_a_framework_without_gpus_is_refused_on_an_arch_with_them(words: Words) -> None:
    with pytest.raises(PlanError, match="`tensorflow-cpu`") as caught:
        gpu_plan(request=request_for(gpu_site()))
    words("plan", "\n".join(caught.value.to_lines()))


def test_a_cuda_of_another_major_version_is_refused(words: Words) -> None:
    thirteen = dataclasses.replace(GPU_FACTS, cuda_version="13.0.88")
    with pytest.raises(PlanError, match=r"2\.15\.1 .*12\.2.* 13\.0\.88") as caught:
        gpu_plan(thirteen)
    words("plan", "\n".join(caught.value.to_lines()))
    assert gpu_plan(dataclasses.replace(GPU_FACTS, cuda_version="12.9.86")).steps


def test_an_unknown_version_of_tensorflow_is_not_refused() -> None:
    assert TENSORFLOW.cuda_of("2.99.0") is None
    request = gpu_request(gpu_site())
    framework = dataclasses.replace(request.stack.framework, version="2.99.0")
    request = dataclasses.replace(request, stack=dataclasses.replace(request.stack, framework=framework))
    facts = facts_of(request.site, gpu=dataclasses.replace(GPU_FACTS, cuda_version="99.0"))
    assert gpu_faults(request, facts) == ()


@pytest.mark.parametrize(
    ("target", "capability", "named"),
    [("haswell", "120", "120"), ("haswell", "35", "35"), ("neoverse_v2", "90", "aarch64")],
)
def test_gpus_that_the_wheels_have_no_code_for_are_refused(
    target: str, capability: str, named: str, words: Words
) -> None:
    request = gpu_request(gpu_site(capabilities=[capability]))
    request = dataclasses.replace(request, arch=dataclasses.replace(request.arch, target=target))
    with pytest.raises(PlanError) as caught:
        gpu_plan(request=request)
    assert named in caught.value.message
    words("plan", "\n".join(caught.value.to_lines()))
