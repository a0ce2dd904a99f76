"""The solver: the newest stack that works, why newer ones were passed over, and which wishes to drop."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from golden_files import Words, gpu_site, local_site
from golden_files import stack as any_stack
from provision.errors import ConfigError, PlanError
from provision.knowledge.compatibility import Cell
from provision.machine.tables import read_combinations
from provision.planning.solver import (
    Offer,
    choose,
    judge_stack,
    missing_in_profile,
    unconfirmed_values,
)
from provision.profile.provenance import Source
from provision.profile.stack import Framework, Stack
from provision.profile.wish import Wish, is_wish, read_wish

KNOWN = read_combinations()
HERE = Offer(
    pythons=("3.10", "3.11"), cuda=None, gpus=False, glibc="2.36", machine="x86_64", source="this machine offers"
)
GPUS = dataclasses.replace(HERE, gpus=True, cuda=("11.8", "12.2"), source="modules offer")


def stack_of(version: str, *pythons: str, gpu: bool = False, **changes: Any) -> Stack:
    """A stack of this TensorFlow."""
    framework = Framework(name="tensorflow", package="tensorflow" if gpu else "tensorflow-cpu", version=version)
    name = f"tensorflow-{version}{'-gpu' if gpu else ''}"
    values = {"name": name, "pythons": pythons or ("3.11",), "framework": framework, **changes}
    return dataclasses.replace(any_stack(), **values)


def wish(**changes: Any) -> Wish:
    """A wish for any TensorFlow 2 with Horovod."""
    values = {"name": "w", "summary": "", "tensorflow": ">=2.0", "python": None, "keras": None, "program": None}
    return Wish(**{**values, "horovod": True, **changes})


def chosen(
    wished: Wish, *stacks: Stack, offer: Offer = HERE, cells: tuple[Cell, ...] = ()
) -> tuple[str, tuple[str, ...]]:
    """The name of the chosen stack, and the lines about those that were passed over."""
    choice = choose(wished, stacks, offer, KNOWN, cells)
    return choice.verdict.stack.name, choice.passed_over


def cell(version: str, failed: str = "") -> Cell:
    """A measurement of this TensorFlow with Python 3.11."""
    return Cell(
        tensorflow=version,
        keras="2" if version < "2.16" else "3",
        python="3.11",
        horovod="0.28.1",
        patch_set="x",
        mpi="mpich",
        compiler="gcc",
        date="2026-11-21",
        build_seconds=1,
        proofs=(),
        failed=failed,
    )


def test_the_newest_that_fulfils_the_wish_is_chosen() -> None:
    stacks = [stack_of(version) for version in ("2.11.1", "2.21.0", "2.15.1")]
    assert chosen(wish(), *stacks) == ("tensorflow-2.21.0", ())
    assert chosen(wish(tensorflow=">=2.13,<2.16"), *stacks) == ("tensorflow-2.15.1", ())
    assert chosen(wish(keras="2"), *stacks) == ("tensorflow-2.15.1", ())


def test_each_newer_one_that_does_not_work_has_one_line(words: Words) -> None:
    stacks = [stack_of(version, gpu=True) for version in ("2.18.1", "2.13.1", "1.15.5")]
    offer = dataclasses.replace(GPUS, cuda=("11.8",))
    name, passed = chosen(wish(), *stacks, offer=offer)
    (line,) = passed
    assert (name, line.partition(":")[0]) == ("tensorflow-2.13.1-gpu", "tensorflow-2.18.1-gpu")
    assert "CUDA 12.5" in line and "11.8" in line
    words("compat", line)


def test_a_newer_one_that_wants_another_cuda_names_those_that_modules_offer() -> None:
    stacks = [stack_of(version, gpu=True) for version in ("2.18.1", "2.13.1")]
    loaded = dataclasses.replace(GPUS, cuda=("11.8",), source="this machine offers")
    old = dataclasses.replace(loaded, cuda_modules=("11.2", "11.8"))
    line = "tensorflow-2.18.1-gpu: wants CUDA 12.5, this machine offers 11.8; modules offer 11.2 and 11.8"
    assert chosen(wish(), *stacks, offer=old) == ("tensorflow-2.13.1-gpu", (line,))
    both = dataclasses.replace(loaded, cuda_modules=("11.8", "12.2"))
    line = (
        "tensorflow-2.18.1-gpu: wants CUDA 12.5, this machine offers 11.8; modules offer 11.8 and 12.2: name one that "
        "fits in `modules` of the arch"
    )
    assert chosen(wish(), *stacks, offer=both) == ("tensorflow-2.13.1-gpu", (line,))


def test_cuda_of_the_same_major_version_will_do(words: Words) -> None:
    assert chosen(wish(), stack_of("2.18.1", gpu=True), offer=GPUS) == ("tensorflow-2.18.1-gpu", ())
    none = dataclasses.replace(GPUS, cuda=())
    with pytest.raises(PlanError) as refused:
        chosen(wish(), stack_of("2.18.1", gpu=True), offer=none)
    assert "CUDA 12.5" in str(refused.value.evidence)
    words("compat", "\n".join(refused.value.to_lines()))


@pytest.mark.parametrize(
    ("offer", "line"),
    [
        ({"pythons": ("3.8",)}, " 3.8"),
        ({"pythons": ()}, "Python 3.11"),
        ({"glibc": "2.17"}, " 2.17"),
        ({"machine": "ppc64le"}, " ppc64le"),
    ],
)
def test_what_is_against_a_stack(offer: dict[str, Any], line: str, words: Words) -> None:
    verdict = judge_stack(stack_of("2.21.0"), dataclasses.replace(HERE, **offer), KNOWN, ())
    (against,) = verdict.against
    assert verdict.state == "no" and line in against
    words("compat", against)


def test_what_is_not_known_is_not_held_against_a_stack() -> None:
    unknown = Offer(pythons=None, cuda=None, gpus=True, glibc=None, machine="x86_64", source="the modules offer")
    assert judge_stack(stack_of("2.21.0", gpu=True), unknown, KNOWN, ()).against == ()


def test_a_row_that_is_not_sure_is_a_doubt() -> None:
    # combinations.toml: Horovod on 2.12 was not tried.
    verdict = judge_stack(stack_of("2.12.1"), HERE, KNOWN, ())
    assert (verdict.against, verdict.state) == ((), "unsure")
    assert "not tried" in verdict.doubts[0]


def test_a_measured_failure_is_a_doubt_and_a_measured_success_works() -> None:
    assert judge_stack(stack_of("2.15.1"), HERE, KNOWN, (cell("2.15.1"),)).state == "works"
    failed = judge_stack(stack_of("2.15.1"), HERE, KNOWN, (cell("2.15.1", failed="proof"),))
    assert (failed.state, "proof" in failed.doubts[0]) == ("unsure", True)
    # The measurements are of CPUs.
    assert judge_stack(stack_of("2.15.1", gpu=True), GPUS, KNOWN, (cell("2.15.1"),)).state == "unsure"


def test_of_one_version_the_measured_stack_is_chosen() -> None:
    legacy = stack_of("2.21.0", environ=(("TF_USE_LEGACY_KERAS", "1"),))
    legacy = dataclasses.replace(legacy, name="tensorflow-2.21.0-tf-keras")
    assert chosen(wish(), legacy, stack_of("2.21.0"), cells=(cell("2.21.0"),))[0] == "tensorflow-2.21.0"
    assert chosen(wish(keras="tf-keras"), legacy, stack_of("2.21.0"))[0] == "tensorflow-2.21.0-tf-keras"


def test_stacks_for_another_kind_of_arch_are_not_passed_over() -> None:
    assert chosen(wish(), stack_of("2.21.0", gpu=True), stack_of("2.15.1")) == ("tensorflow-2.15.1", ())


def test_an_impossible_wish_names_the_fewest_wishes_to_drop(words: Words) -> None:
    stacks = [stack_of("2.21.0", "3.11"), stack_of("2.11.1", "3.10")]
    with pytest.raises(PlanError) as refused:
        chosen(wish(tensorflow=">=2.13", python="==3.10"), *stacks)
    assert list(refused.value.evidence[-2:]) == [
        "without `tensorflow`: `tensorflow-2.11.1` works",
        "without `python`: `tensorflow-2.21.0` works",
    ]
    hint = str(refused.value.hint)
    assert "`tensorflow`" in hint and "`--stack tensorflow-2.11.1`" in hint
    words("plan", "\n".join(refused.value.to_lines()))


def test_two_wishes_are_dropped_only_if_one_does_not_suffice(words: Words) -> None:
    with pytest.raises(PlanError) as refused:
        chosen(wish(tensorflow=">=3", keras="2"), stack_of("2.21.0"))
    last = refused.value.evidence[-1]
    assert [name for name in ("`tensorflow`", "`keras`", "`tensorflow-2.21.0`") if name not in last] == []
    words("plan", last)


def test_without_any_stack_that_works_no_wish_is_to_blame() -> None:
    with pytest.raises(PlanError, match="even without the wishes of `w`") as refused:
        chosen(wish(), stack_of("2.21.0"), offer=dataclasses.replace(HERE, pythons=()))
    assert "has locks for Python" in str(refused.value.evidence)


# The file


GOOD = {"name": "w", "summary": "s", "choose": {"tensorflow": ">=2.13,<2.16", "python": ">=3.10", "keras": "2"}}


def test_a_stack_with_ranges_is_read() -> None:
    assert is_wish(GOOD)
    assert read_wish(GOOD, "x.toml") == wish(tensorflow=">=2.13,<2.16", python=">=3.10", keras="2", summary="s")


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"tensorflow": "2.13"}, "choose.tensorflow"),
        ({"tensorflow": ">= "}, "choose.tensorflow"),
        ({"tensorflow": "~=2"}, "choose.tensorflow"),
        ({"tensorflow": ">=2.13 <2.16"}, "choose.tensorflow"),
        ({"python": ">=3.*"}, "choose.python"),
        ({"keras": "4"}, "choose.keras"),
        ({"horovod": "yes"}, "choose.horovod"),
        ({"numpy": "<2"}, "choose.numpy"),
    ],
)
def test_faults_of_a_stack_with_ranges_are_named(changes: dict[str, Any], fault: str) -> None:
    with pytest.raises(ConfigError) as refused:
        read_wish({**GOOD, "choose": {**GOOD["choose"], **changes}}, "x.toml")  # type: ignore[dict-item]
    assert fault in " ".join([refused.value.message, *refused.value.evidence])


# A profile alone


def test_what_no_module_of_a_profile_is_named_after(words: Words) -> None:
    arch = dataclasses.replace(gpu_site().archs[0], modules=("gcc/12",), python=None)
    lines = missing_in_profile(arch, stack_of("2.15.1", gpu=True))
    assert "Python" in lines[0] and "cuDNN" in lines[1]
    words("compat", "\n".join(lines[:2]))
    full = dataclasses.replace(arch, modules=("Python/3.11", "cuda/12.2", "cuDNN/8.9"))
    assert missing_in_profile(full, stack_of("2.15.1", gpu=True)) == ()


def test_values_that_no_text_confirms_are_those_of_the_arch() -> None:
    site = local_site()
    arch = site.archs[0]
    other = dataclasses.replace(arch, name="other")
    sources = (
        Source(
            name="a",
            text="t",
            date="2026",
            sure=False,
            values=("network", "archs.other.node", f"archs.{arch.name}.mpi"),
        ),
        Source(name="b", text="t", date="2026", sure=True, values=("scheduler",)),
    )
    site = dataclasses.replace(site, archs=(arch, other), sources=sources)
    assert unconfirmed_values(site, arch) == ("network", f"archs.{arch.name}.mpi")


def test_an_arch_that_requires_onednn_passes_over_packages_that_have_eigen_alone(words: Words) -> None:
    offer = dataclasses.replace(HERE, math="onednn")
    intel = stack_of("1.15.2")
    intel = dataclasses.replace(
        intel, framework=Framework(name="tensorflow", package="intel-tensorflow", version="1.15.2")
    )
    old = wish(tensorflow=">=1.15,<2.5")
    name, passed_over = chosen(old, stack_of("2.2.3"), intel, offer=offer)
    assert name == intel.name
    (line,) = passed_over
    assert line.startswith("tensorflow-2.2.3: ") and "Eigen" in line and "oneDNN" in line
    words("compat", line)
    assert chosen(old, stack_of("2.2.3"), intel)[0] == "tensorflow-2.2.3"
