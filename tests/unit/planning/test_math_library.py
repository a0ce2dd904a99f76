"""An arch or a stack requires oneDNN: what the plan sets and expects, and what is refused before anything is built."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from golden_files import Words, facts_of, request_for, slurm_site, stack
from provision.errors import PlanError
from provision.knowledge.frameworks.tensorflow import TENSORFLOW
from provision.model.facts import Existing
from provision.model.operation import Inspect
from provision.model.plan import Plan
from provision.model.request import Request
from provision.planning.planner import make_plan
from provision.planning.preflight import library_faults


def requiring(*, of_stack: bool = False, environ: tuple[tuple[str, str], ...] = ()) -> Request:
    """A request for TensorFlow 2.15.1 in which the arch, or the stack, requires oneDNN."""
    request = request_for(slurm_site())
    arch = dataclasses.replace(request.arch, math=None if of_stack else "onednn", environ=environ)
    wanted = dataclasses.replace(request.stack, math="onednn" if of_stack else None)
    return dataclasses.replace(request, arch=arch, stack=wanted)


def of_package(request: Request, package: str, version: str) -> Request:
    """The same request for another package of TensorFlow."""
    framework = dataclasses.replace(request.stack.framework, package=package, version=version)
    return dataclasses.replace(request, stack=dataclasses.replace(request.stack, framework=framework))


def planned(request: Request) -> Plan:
    """Its plan."""
    return make_plan(request, facts_of(request.site), Existing())


def inspection_of(plan: Plan) -> Any:
    """The operation that inspects the environment."""
    return next(one for step in plan.steps for one in step.operations if isinstance(one, Inspect))


@pytest.mark.parametrize("of_stack", [False, True])
def test_onednn_is_expected_and_selected_for_users_and_the_inspection(of_stack: bool) -> None:
    plan = planned(requiring(of_stack=of_stack))
    assert inspection_of(plan).expectation.math == "onednn"
    assert inspection_of(plan).command.environ == (("TF_ENABLE_ONEDNN_OPTS", "1"),)
    assert ("TF_ENABLE_ONEDNN_OPTS", "1") in plan.modulefile.environ
    without = planned(request_for(slurm_site()))
    assert inspection_of(without).expectation.math is None and inspection_of(without).command.environ == ()
    assert plan.environment != without.environment, "the variable changes what is published"


def test_a_setting_of_the_profile_wins_and_reaches_the_inspection() -> None:
    plan = planned(requiring(environ=(("TF_ENABLE_ONEDNN_OPTS", "0"),)))
    assert inspection_of(plan).command.environ == (("TF_ENABLE_ONEDNN_OPTS", "0"),)
    assert [pair for pair in plan.modulefile.environ if pair[0] == "TF_ENABLE_ONEDNN_OPTS"] == [
        ("TF_ENABLE_ONEDNN_OPTS", "0")
    ]


def test_a_package_that_has_eigen_alone_is_refused_before_anything_is_built(words: Words) -> None:
    request = of_package(requiring(), "tensorflow", "1.15.5")
    with pytest.raises(PlanError) as refused:
        planned(request)
    words("plan", "\n".join(refused.value.to_lines()))
    assert refused.value.hint and refused.value.hint.startswith("`--stack tensorflow-1.15.2-intel`")
    (of_stack,) = library_faults(of_package(requiring(of_stack=True), "tensorflow", "1.15.5"))
    assert of_stack.message.startswith("the stack `") and of_stack.hint and "`intel-tensorflow`" in of_stack.hint
    assert library_faults(of_package(requiring(), "intel-tensorflow", "1.15.2")) == ()


def test_only_packages_with_both_libraries_have_a_choice() -> None:
    assert not TENSORFLOW.has_onednn("tensorflow-cpu", "2.4.4") and TENSORFLOW.has_onednn("tensorflow-cpu", "2.5.0")
    assert (
        TENSORFLOW.has_onednn("intel-tensorflow", "1.15.2")
        and TENSORFLOW.onednn_environ("intel-tensorflow", "1.15.2") == ()
    )
    assert TENSORFLOW.onednn_environ("tensorflow", "2.2.3") == ()
    assert stack().math is None
