"""The solver: the newest stack that works, why newer ones were passed over, and which wishes to drop."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from golden_files import Words, gpu_site, local_site
from golden_files import stack as any_stack
from provision.errors import ConfigError, PlanError
from provision.knowledge.combinations import Cell
from provision.machine.files.tables import read_combinations
from provision.planning.solver import (
    Offer,
    choose,
    judge_stack,
    missing_in_profile,
    unconfirmed_values,
)
from provision.profile.provenance import Source
from provision.profile.stack import Framework, Stack, Wish, is_wish, read_wish

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
    verdict, passed_over = choose(wished, stacks, offer, KNOWN, cells)
    return verdict.stack.name, passed_over


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


@pytest.mark.parametrize(
    ("source", "cuda", "of_modules", "rest"),
    [
        ("modules offer", ("11.8",), (), "modules offer 11.8"),
        ("this machine offers", ("11.8",), ("11.2", "11.8"), "this machine offers 11.8; modules offer 11.2 and 11.8"),
        ("this machine offers", ("11.8",), ("11.8", "12.2"), "name one that fits in `modules` of the arch"),
    ],
)
def test_a_newer_one_that_wants_another_cuda_has_one_line(
    source: str, cuda: tuple[str, ...], of_modules: tuple[str, ...], rest: str
) -> None:
    """The oldest is not in it: what is older than the chosen one was not passed over."""
    stacks = [stack_of(version, gpu=True) for version in ("2.18.1", "2.13.1", "1.15.5")]
    offer = dataclasses.replace(GPUS, cuda=cuda, source=source, cuda_modules=of_modules)
    name, (line,) = chosen(wish(), *stacks, offer=offer)
    assert name == "tensorflow-2.13.1-gpu"
    assert line.startswith("tensorflow-2.18.1-gpu: wants CUDA 12.5, ") and line.endswith(rest)
    same_major = dataclasses.replace(GPUS, cuda=("12.2",))
    assert chosen(wish(), stacks[0], offer=same_major) == ("tensorflow-2.18.1-gpu", ())


@pytest.mark.parametrize(
    ("offer", "line"),
    [
        ({"pythons": ("3.8",)}, " 3.8"),
        ({"pythons": ()}, "Python 3.11"),
        ({"glibc": "2.17"}, " 2.17"),
        ({"machine": "ppc64le"}, " ppc64le"),
        ({"gpus": True, "cuda": ()}, "CUDA"),
        ({"pythons": None, "glibc": None}, None),  # what is not known is not held against it
        ({"gpus": True, "cuda": None}, None),
    ],
)
def test_what_is_against_a_stack(offer: dict[str, Any], line: str | None, words: Words) -> None:
    of_gpus = stack_of("2.21.0", gpu="gpus" in offer)
    against = judge_stack(of_gpus, dataclasses.replace(HERE, **offer), KNOWN, ()).against
    assert [line in one for one in against if line] == [True] * (line is not None)
    if line:
        words("compat", "\n".join(against))


@pytest.mark.parametrize(
    ("version", "offer", "state", "phrase"),
    [
        ("2.18.1", {"capabilities": ("90", "120")}, "no", "has 120"),
        ("2.18.1", {"capabilities": ("35",)}, "no", "has 35"),
        ("2.18.1", {"capabilities": ("52",)}, "no", "60 to 90"),
        ("2.15.1", {"capabilities": ("52",)}, "unsure", "proved on CPUs only"),
        ("2.15.1", {"machine": "aarch64", "capabilities": ("90",)}, "no", "aarch64"),
        ("2.11.1", {"capabilities": ("90",)}, "unsure", "has 90"),
        ("2.11.1", {"capabilities": ("89",), "cuda": ("11.8",)}, "unsure", "proved on CPUs only"),
    ],
)
def test_gpus_that_the_wheels_have_no_code_for(version: str, offer: dict[str, Any], state: str, phrase: str) -> None:
    of_gpus = dataclasses.replace(GPUS, cuda=("11.8", "12.5"))
    verdict = judge_stack(stack_of(version, gpu=True), dataclasses.replace(of_gpus, **offer), KNOWN, (cell(version),))
    assert verdict.state == state
    assert phrase in (verdict.against or verdict.doubts)[-1 if state == "no" else 0]


def test_an_arch_that_requires_onednn_passes_over_packages_that_have_eigen_alone() -> None:
    framework = Framework(name="tensorflow", package="intel-tensorflow", version="1.15.2")
    stacks = (stack_of("2.2.3"), dataclasses.replace(stack_of("1.15.2"), framework=framework))
    old = wish(tensorflow=">=1.15,<2.5")
    name, (line,) = chosen(old, *stacks, offer=dataclasses.replace(HERE, math="onednn"))
    assert (name, line.partition(":")[0]) == ("tensorflow-1.15.2", "tensorflow-2.2.3")
    assert "Eigen" in line and "oneDNN" in line
    assert chosen(old, *stacks)[0] == "tensorflow-2.2.3"


def test_a_measured_failure_is_a_doubt_and_a_measured_success_works() -> None:
    assert judge_stack(stack_of("2.15.1"), HERE, KNOWN, (cell("2.15.1"),)).state == "works"
    failed = judge_stack(stack_of("2.15.1"), HERE, KNOWN, (cell("2.15.1", failed="proof"),))
    untried = judge_stack(stack_of("2.12.1"), HERE, KNOWN, ())  # combinations.toml: Horovod on 2.12 was not tried
    for verdict, doubt in ((failed, "proof"), (untried, "not tried")):
        assert (verdict.against, verdict.state) == ((), "unsure")
        assert doubt in verdict.doubts[0]
    # The measurements are of CPUs.
    assert judge_stack(stack_of("2.15.1", gpu=True), GPUS, KNOWN, (cell("2.15.1"),)).state == "unsure"


def test_of_one_version_the_measured_stack_is_chosen() -> None:
    legacy = stack_of("2.21.0", environ=(("TF_USE_LEGACY_KERAS", "1"),))
    legacy = dataclasses.replace(legacy, name="tensorflow-2.21.0-tf-keras")
    assert chosen(wish(), legacy, stack_of("2.21.0"), cells=(cell("2.21.0"),))[0] == "tensorflow-2.21.0"
    assert chosen(wish(keras="tf-keras"), legacy, stack_of("2.21.0"))[0] == "tensorflow-2.21.0-tf-keras"


def test_the_chosen_stack_is_built_with_a_python_that_was_wished_for() -> None:
    both = stack_of("2.15.1", "3.11", "3.10")
    verdict, _ = choose(wish(python="<3.11"), [both], HERE, KNOWN, ())
    assert (verdict.minor, verdict.stack.pythons) == ("3.10", ("3.10",))


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
    words("plan", last)
    with pytest.raises(PlanError, match="even without the wishes of `w`"):
        chosen(wish(), stack_of("2.21.0"), offer=dataclasses.replace(HERE, pythons=()))


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
    words("compat", "\n".join(lines[:2]))
    full = dataclasses.replace(arch, modules=("Python/3.11", "cuda/12.2", "cuDNN/8.9"))
    assert missing_in_profile(full, stack_of("2.15.1", gpu=True)) == ()


def test_values_that_no_text_confirms_are_those_of_the_arch() -> None:
    site = local_site()
    arch = site.archs[0]
    other = dataclasses.replace(arch, name="other")
    unsure = ("network", "archs.other.node", f"archs.{arch.name}.mpi")
    sources = (
        Source(name="a", text="t", date="2026", sure=False, values=unsure),
        Source(name="b", text="t", date="2026", sure=True, values=("scheduler",)),
    )
    site = dataclasses.replace(site, archs=(arch, other), sources=sources)
    assert unconfirmed_values(site, arch) == ("network", f"archs.{arch.name}.mpi")
