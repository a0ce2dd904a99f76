"""The modules that a site offers: by subject, by version, and those that go together."""

from __future__ import annotations

import pytest

from provision.launch.available_modules import describe, matching, newest_together, parse_available

# The forms of `module -t spider` (Lmod 8.6) and `module -t avail` (Environment Modules 5.2), as they were printed.
LMOD = "TensorFlow/\nTensorFlow/2.11.0-foss-2022a-CUDA-11.7.0\ngcc/\ngcc/9.3.0\ngcc/12.2.0\n"
ENVIRONMENT_MODULES = "/site/modulefiles:\ndatascience/tensorflow-1.10\ngcc/9.3.0(default)\ngcc/12.2.0\nopenmpi <L>\n"


def test_names_are_read_without_folders_and_marks() -> None:
    assert parse_available(LMOD) == ("TensorFlow/2.11.0-foss-2022a-CUDA-11.7.0", "gcc/9.3.0", "gcc/12.2.0")
    assert parse_available(ENVIRONMENT_MODULES) == ("datascience/tensorflow-1.10", "gcc/9.3.0", "gcc/12.2.0", "openmpi")


@pytest.mark.parametrize(
    ("name", "subject", "version"),
    [
        ("TensorFlow/2.11.0-foss-2022a-CUDA-11.7.0", "tensorflow", "2.11.0-foss-2022a-CUDA-11.7.0"),
        (
            "Horovod/0.28.1-foss-2022a-CUDA-11.7.0-TensorFlow-2.11.0",
            "horovod",
            "0.28.1-foss-2022a-CUDA-11.7.0-TensorFlow-2.11.0",
        ),
        ("tensorflow/intel-1.15.0-py37", "tensorflow", "intel-1.15.0-py37"),
        ("datascience/tensorflow-1.10", "tensorflow", "1.10"),
        ("datascience/horovod-0.19", "horovod", "0.19"),
        ("Core/CUDA/11.7.0", "cuda", "11.7.0"),
        ("cudatoolkit/12.2", "cuda", "12.2"),
        ("cuDNN/8.4.1.50-CUDA-11.7.0", "cudnn", "8.4.1.50-CUDA-11.7.0"),
        ("NCCL/2.12.12-GCCcore-11.3.0-CUDA-11.7.0", "nccl", "2.12.12-GCCcore-11.3.0-CUDA-11.7.0"),
        ("cray-mpich/8.1.28", "mpi", "8.1.28"),
        ("PrgEnv-gnu/8.5.0", "compiler", "8.5.0"),
        ("cmake", "cmake", ""),
        ("python/3.11", "python", "3.11"),
        ("tensorboard/2.15", None, "2.15"),
        ("gccmakedep/1.0.3", None, "1.0.3"),
        ("x", None, "x"),
    ],
)
def test_the_subject_of_a_module_is_read_from_its_name(name: str, subject: str | None, version: str) -> None:
    module = describe(name)
    assert (module.subject, module.version) == (subject, version)


def test_modules_match_by_subject_or_by_a_part_of_the_name() -> None:
    modules = [describe(name) for name in ("CUDA/11.7.0", "cuDNN/8.4.1.50-CUDA-11.7.0", "gcc/9.3.0")]
    assert [module.name for module in matching(modules, "cuda")] == ["CUDA/11.7.0"]
    assert [module.name for module in matching(modules, "11.7")] == ["CUDA/11.7.0", "cuDNN/8.4.1.50-CUDA-11.7.0"]


@pytest.mark.parametrize(
    ("names", "chosen"),
    [
        (
            "GCC/11.3.0 GCC/12.3.0 OpenMPI/4.1.4-GCC-11.3.0 OpenMPI/4.1.5-GCC-12.3.0 CMake/3.26.3-GCCcore-12.3.0",
            "GCC/12.3.0 OpenMPI/4.1.5-GCC-12.3.0 CMake/3.26.3-GCCcore-12.3.0",
        ),
        ("gcc/9.3.0 gcc/12.2.0 openmpi/4.1.4 python/3.11 python/3.9", "gcc/12.2.0 openmpi/4.1.4 python/3.11"),
    ],
)
def test_the_newest_modules_of_one_generation_are_proposed(names: str, chosen: str) -> None:
    found = newest_together(list(map(describe, names.split())), ("compiler", "mpi", "python", "cmake", "cuda"))
    assert " ".join(found) == chosen
