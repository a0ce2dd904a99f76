"""Horovod for PyTorch: the same build as for TensorFlow, with other switches, another folder of libraries and other patches."""

from __future__ import annotations

import dataclasses
import re

import pytest

from golden_files import Words, facts_of, lock_of, request_for, slurm_site
from provision.errors import PlanError
from provision.horovod import flags
from provision.horovod.wheel import make_builds
from provision.machine.configuration import shipped
from provision.model.facts import GpuFacts
from provision.model.patch import select_patches

VERSION = "0.28.1"


@pytest.mark.parametrize(("framework", "other"), [("tensorflow", "pytorch"), ("pytorch", "tensorflow")])
def test_a_build_is_for_one_framework_and_says_so_of_each(framework: str, other: str) -> None:
    environ = flags.build_environ(frameworks=[framework], cxx="/usr/bin/g++", arch_flags="-mavx2")
    assert environ[f"HOROVOD_WITH_{framework.upper()}"] == environ[f"HOROVOD_WITHOUT_{other.upper()}"] == "1"
    assert f"HOROVOD_WITHOUT_{framework.upper()}" not in environ and f"HOROVOD_WITH_{other.upper()}" not in environ
    text = flags.toolchain_file([framework], "/usr/bin/mpicxx", flags.runpath([framework], ("/mpi/lib/libmpi.so",)))
    assert f"if(TARGET {framework})" in text and other not in text and "@" not in text


def test_the_library_searches_torch_then_the_mpi() -> None:
    assert flags.runpath(["pytorch"], ("/mpi/lib/libmpi.so",)) == ("$ORIGIN/../../torch/lib", "/mpi/lib")
    assert flags.runpath(["pytorch"], ())[1] == flags.runpath(["tensorflow"], ())[1] == "$ORIGIN/../../../.."


def test_the_patches_for_pytorch_are_those_that_its_version_needs() -> None:
    every = shipped.load_patches(VERSION)

    def chosen(**versions: str) -> set[str]:
        return {patch.name[:4] for patch in select_patches(every, versions)}

    common = {"0002", "0022", "0023", "0026", "0028"}
    assert chosen(pytorch="1.13.1") == common
    assert chosen(pytorch="2.7.1") == common | {"0025"}
    assert chosen(pytorch="2.14.1") == common | {"0025", "0027"}
    assert not chosen(tensorflow="2.21.0") & {"0025", "0026", "0027", "0028"}


def test_upstreams_commits_keep_their_author_and_licence() -> None:
    for patch in shipped.load_patches(VERSION):
        if patch.name[:4] in ("0025", "0026"):
            head = patch.text.partition("\n--- ")[0]
            assert "Licence: Apache License 2.0" in head and "@" in head and "commit" in head.lower()


def test_on_gpus_it_is_refused_because_it_was_not_tried(words: Words) -> None:
    request = request_for(slurm_site())
    framework = dataclasses.replace(request.stack.framework, name="pytorch", package="torch", version="2.14.1")
    request = dataclasses.replace(
        request,
        stack=dataclasses.replace(request.stack, framework=framework),
        lock=lock_of("pytorch-2.14.1", "horovod==0.28.1", "torch==2.14.1"),
    )
    (build,) = make_builds(request, facts_of(slurm_site()), None, "haswell")
    assert build.abi["framework"][:2] == ["torch", "2.14.1"]  # type: ignore[index]
    with pytest.raises(PlanError) as caught:
        make_builds(request, facts_of(slurm_site()), GpuFacts(cuda_home="/cuda", cuda_version="13.0"), "haswell")
    words("plan", "\n".join(caught.value.to_lines()))


BOTH = ("tensorflow", "pytorch")


def test_one_build_for_both_joins_the_sources_of_each_and_finds_the_libraries_of_each() -> None:
    environ = flags.build_environ(frameworks=BOTH, cxx="/usr/bin/g++", arch_flags="-mavx2")
    assert environ["HOROVOD_WITH_TENSORFLOW"] == environ["HOROVOD_WITH_PYTORCH"] == "1"
    assert not {"HOROVOD_WITHOUT_TENSORFLOW", "HOROVOD_WITHOUT_PYTORCH"} & set(environ)
    folders = flags.runpath(BOTH, ("/mpi/lib/libmpi.so",))
    assert folders == ("$ORIGIN/../../tensorflow", "$ORIGIN/../../torch/lib", "/mpi/lib")
    text = flags.toolchain_file(BOTH, "/usr/bin/mpicxx", folders)
    names = re.findall(r"^function\((\w+)\)$", text, re.MULTILINE)
    assert len(set(names)) == 3 and re.findall(r"DEFER CALL (\w+)\)", text) == names, "CMake keeps the last of one name"
    assert "if(TARGET tensorflow)" in text and "/horovod/torch/[^/]*$" in text and "@" not in text


def test_a_horovod_for_both_has_the_patches_of_both_and_a_wheel_of_its_own() -> None:
    request = request_for(slurm_site())
    pins = ("horovod==0.28.1", "torch==2.7.1", f"{request.stack.framework.package}=={request.stack.framework.version}")
    request = dataclasses.replace(
        request, patches=shipped.load_patches(VERSION), lock=lock_of(request.stack.name, *pins)
    )
    (alone,) = make_builds(request, facts_of(slurm_site()), None, "haswell")
    both = dataclasses.replace(request, stack=dataclasses.replace(request.stack, beside=("pytorch",)))
    (build,) = make_builds(both, facts_of(slurm_site()), None, "haswell")
    assert {patch.name[:4] for patch in build.patches} - {patch.name[:4] for patch in alone.patches} == {
        *("0025", "0026", "0028")
    }
    assert build.key != alone.key and build.abi["framework"][3:5] == ["torch", "2.7.1"]  # type: ignore[index]
    with pytest.raises(PlanError) as caught:
        make_builds(
            dataclasses.replace(both, lock=lock_of("x", pins[0], pins[2])), facts_of(slurm_site()), None, "haswell"
        )
    assert "does not pin PyTorch" in caught.value.message and "torch==VERSION" in str(caught.value.hint)
