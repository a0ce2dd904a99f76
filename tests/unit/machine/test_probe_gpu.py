"""GPUs in a profile, and the probes of CUDA and NCCL. The tests with a real nvcc are in test_build_gpu.py."""

from __future__ import annotations

from pathlib import Path

import pytest

from golden_files import Words, gpu_site, local_site
from provision.errors import ConfigError
from provision.machine.probes.probe import Probes
from provision.machine.probes.probe_gpu import parse_nccl_header, parse_nvcc_version, parse_toolkit
from provision.model.facts import CompilerFacts, GpuFacts
from provision.model.problem import Problem

# The site's file


def test_a_gpu_table_is_read_with_sorted_capabilities() -> None:
    gpu = gpu_site().archs[0].gpu
    assert gpu is not None
    assert (gpu.per_node, gpu.model, gpu.capabilities) == (4, "a100", ("80", "90"))
    assert (gpu.cuda_home, gpu.nccl_home, gpu.nccl_link) == ("${CUDA_HOME}", None, "SHARED")
    assert local_site().archs[0].gpu is None


@pytest.mark.parametrize(
    ("gpu", "fault"),
    [
        ({"per_node": 0}, "archs.a100.gpu.per_node: "),
        (
            {"per_node": 1},
            "archs.a100.proof.ranks_per_node: ",
        ),
        ({"capabilities": []}, "archs.a100.gpu.capabilities: "),
        ({"capabilities": ["8.0"]}, "archs.a100.gpu.capabilities[0]: "),
        ({"capabilities": [80]}, "archs.a100.gpu.capabilities[0]: "),
        ({"nccl_link": "shared"}, "archs.a100.gpu.nccl_link: "),
        ({"cuda_home": "cuda"}, "archs.a100.gpu.cuda_home: "),
        ({"nccl": "/opt/nccl"}, "archs.a100.gpu.nccl: "),
    ],
)
def test_a_fault_in_a_gpu_table_is_reported_with_its_key_path(gpu: dict[str, object], fault: str, words: Words) -> None:
    with pytest.raises(ConfigError) as caught:
        gpu_site(**gpu)
    assert any(line.startswith(fault) for line in caught.value.evidence), caught.value.evidence
    words("site", "\n".join(caught.value.to_lines()))


# The probes, on folders made by hand


NVCC = r"""#!/bin/bash
case "$*" in
  *--version*) echo 'Cuda compilation tools, release 12.4, V12.4.131' ;;
  *--list-gpu-code*) printf 'sm_80\nsm_90\n' ;;
  *--dryrun*) echo "#\$ _HERE_=@HOME@/bin" >&2 ;;
  *-E*) @TRY@ ;;
esac
"""


def toolkit(home: Path, trial: str = "exit 0") -> Path:
    """A folder with a stand-in for nvcc that prints what nvcc 12.4 prints."""
    nvcc = home / "bin" / "nvcc"
    nvcc.parent.mkdir(parents=True)
    nvcc.write_text(NVCC.replace("@HOME@", str(home)).replace("@TRY@", trial))
    nvcc.chmod(0o755)
    (home / "lib64").mkdir()
    (home / "lib64" / "libcudart.so").touch()
    return home


def nccl(home: Path, *libraries: str) -> Path:
    """A folder with NCCL's header and empty files for its libraries."""
    (home / "include").mkdir(parents=True)
    (home / "lib").mkdir()
    text = '#define NCCL_MAJOR 2\n#define NCCL_MINOR 22\n#define NCCL_PATCH 3\n#define NCCL_SUFFIX ""\n'
    (home / "include" / "nccl.h").write_text(text)
    for name in libraries:
        (home / "lib" / name).touch()
    return home


def probe(environ: dict[str, str], **gpu: object) -> tuple[GpuFacts | None, list[Problem]]:
    """The facts that the probes find with these environment variables, and their problems."""
    site = gpu_site(**gpu)
    probes = Probes(site, site.archs[0])
    compiler = CompilerFacts(family="gcc", version="12.2.0", cxx="/usr/bin/g++")
    return probes.gpu({"PATH": "/usr/bin:/bin", **environ}, compiler), probes.problems


def test_cuda_and_nccl_are_found_in_the_folders_of_the_modules(tmp_path: Path) -> None:
    home, other = toolkit(tmp_path / "cuda"), nccl(tmp_path / "nccl", "libnccl.so.2")
    facts, problems = probe({"CUDA_HOME": str(home), "EBROOTNCCL": str(other)}, nccl_home="${EBROOTNCCL}")
    assert problems == []
    assert facts == GpuFacts(
        cuda_home=str(home),
        cuda_version="12.4.131",
        cuobjdump=None,
        nccl_home=str(other),
        nccl_version="2.22.3",
        nccl_library=str(other / "lib" / "libnccl.so.2"),
    )


def test_only_cuda_is_probed_if_nothing_is_compiled(tmp_path: Path) -> None:
    home = toolkit(tmp_path / "cuda", trial="exit 1")
    for path in (home / "lib64").iterdir():
        path.unlink()  # a run-time CUDA has no libcudart.so for CMake
    site = gpu_site()
    probes = Probes(site, site.archs[0])
    for path, folder in (("/usr/bin:/bin", None), (f"{home}/bin:/usr/bin:/bin", home)):
        facts = probes.gpu({"PATH": path, "CUDA_HOME": str(folder or tmp_path)}, None, compiles=False)
        assert facts == (GpuFacts(cuda_home=str(home), cuda_version="12.4.131") if folder else None)
    assert [problem.subject for problem in probes.problems] == ["cuda"]


def test_cuda_is_found_with_usual_variables_and_nvcc_on_path(tmp_path: Path) -> None:
    home = toolkit(tmp_path / "cuda")
    nccl(home / "x", "libnccl.so.2")
    for part in ("include", "lib"):
        (home / "x" / part).rename(home / part)
    # A script before the real one, as a site puts it into /usr/local/bin.
    script = tmp_path / "bin" / "nvcc"
    script.parent.mkdir()
    script.write_text(f'#!/bin/sh\nexec {home}/bin/nvcc "$@"\n')
    script.chmod(0o755)
    facts, problems = probe({"PATH": f"{script.parent}:/usr/bin:/bin"}, cuda_home=None)
    assert problems == []
    assert facts is not None and (facts.cuda_home, facts.nccl_home) == (str(home), str(home))
    named, _ = probe({"CUDA_PATH": str(home)}, cuda_home=None)
    assert named == facts


def test_cuobjdump_is_found_if_the_toolkit_has_it(tmp_path: Path) -> None:
    home, other = toolkit(tmp_path / "cuda"), nccl(tmp_path / "nccl", "libnccl.so.2")
    (home / "bin" / "cuobjdump").write_text("")
    (home / "bin" / "cuobjdump").chmod(0o755)
    facts, _ = probe({"CUDA_HOME": str(home)}, nccl_home=str(other))
    assert facts is not None and facts.cuobjdump == f"{home}/bin/cuobjdump"


def only(problems: list[Problem]) -> Problem:
    """The only problem."""
    assert len(problems) == 1, problems
    return problems[0]


def test_a_variable_that_no_module_sets_is_one_problem(tmp_path: Path, words: Words) -> None:
    facts, problems = probe({}, nccl_home=str(nccl(tmp_path / "nccl", "libnccl.so.2")))
    assert facts is None
    problem = only(problems)
    assert "`${CUDA_HOME}`" in problem.message and "`a100`" in problem.message
    words("doctor", problem.message)


def test_a_folder_without_nvcc_is_one_problem(tmp_path: Path, words: Words) -> None:
    facts, problems = probe({"CUDA_HOME": str(tmp_path)}, nccl_home=str(nccl(tmp_path / "nccl", "libnccl.so.2")))
    assert facts is None
    assert "`bin/nvcc`" in only(problems).message and f"`{tmp_path}`" in only(problems).message
    words("doctor", only(problems).message)
    assert only(problems).evidence == ("from: ${CUDA_HOME}",)


def test_missing_cuda_is_reported_with_the_searched_folders(tmp_path: Path) -> None:
    facts, problems = probe(
        {"PATH": str(tmp_path)}, cuda_home=None, nccl_home=str(nccl(tmp_path / "nccl", "libnccl.so.2"))
    )
    assert facts is None
    assert only(problems).subject == "cuda"
    assert "CUDA_HOME" in only(problems).evidence[1]


def test_all_missing_parts_are_reported_at_once(tmp_path: Path) -> None:
    _, problems = probe({"PATH": str(tmp_path)}, cuda_home=None, nccl_home="/nowhere")
    assert [problem.subject for problem in problems] == ["cuda", "nccl"]
    assert all(problem.hint for problem in problems)


def test_a_capability_that_nvcc_does_not_know_is_one_problem(tmp_path: Path, words: Words) -> None:
    home, other = toolkit(tmp_path / "cuda"), nccl(tmp_path / "nccl", "libnccl.so.2")
    facts, problems = probe({"CUDA_HOME": str(home)}, nccl_home=str(other), capabilities=["60", "80"])
    assert facts is None
    problem = only(problems)
    assert "12.4.131" in problem.message and " 60" in problem.message
    assert problem.evidence[0].endswith(" 80 90")
    words("doctor", "\n".join([problem.message, *problem.evidence]))


def test_a_toolkit_that_cmake_would_refuse_is_one_problem(tmp_path: Path, words: Words) -> None:
    home, other = toolkit(tmp_path / "cuda"), nccl(tmp_path / "nccl", "libnccl.so.2")
    (home / "lib64" / "libcudart.so").rename(home / "lib64" / "libcudart.so.12")
    facts, problems = probe({"CUDA_HOME": str(home)}, nccl_home=str(other))
    assert facts is None
    problem = only(problems)
    assert "12.4.131" in problem.message and f"`{home}`" in problem.message and "`libcudart.so`" in problem.message
    words("doctor", problem.message)


def test_a_compiler_that_cuda_refuses_is_one_problem(tmp_path: Path, words: Words) -> None:
    script = "echo 'host_config.h:143:2: error: #error -- unsupported GNU version! gcc later than 13' >&2; exit 1"
    home, other = toolkit(tmp_path / "cuda", script), nccl(tmp_path / "nccl", "libnccl.so.2")
    facts, problems = probe({"CUDA_HOME": str(home)}, nccl_home=str(other))
    assert facts is None
    assert "12.4.131" in only(problems).message and "`/usr/bin/g++`" in only(problems).message
    words("doctor", only(problems).message)
    assert "unsupported GNU version" in only(problems).evidence[0]


@pytest.mark.parametrize(
    ("libraries", "link", "hint"),
    [((), "SHARED", "change `archs"), (("libnccl_static.a",), "SHARED", '`nccl_link = "STATIC"`')],
)
def test_an_nccl_without_its_library_is_one_problem(
    tmp_path: Path, libraries: tuple[str, ...], link: str, hint: str, words: Words
) -> None:
    home, other = toolkit(tmp_path / "cuda"), nccl(tmp_path / "nccl", *libraries)
    facts, problems = probe({"CUDA_HOME": str(home)}, nccl_home=str(other), nccl_link=link)
    assert facts is None
    problem = only(problems)
    assert [part for part in ("2.22.3", f"`{other}`", "`libnccl.so.2`") if part not in problem.message] == []
    words("doctor", f"{problem.message}\n{problem.hint}")
    assert hint in str(only(problems).hint)


def test_the_versions_of_nvcc_and_nccl_are_parsed() -> None:
    assert parse_nvcc_version("Cuda compilation tools, release 13.0, V13.0.88\n") == "13.0.88"
    assert parse_nvcc_version("gcc (Debian 12.2.0-14) 12.2.0") is None
    assert parse_toolkit("#$ _SPACE_= \n#$ _HERE_=/opt/cuda/bin\n#$ TOP=/opt/cuda/bin/..\n") == "/opt/cuda"
    assert parse_toolkit("nvcc fatal   : Unknown option") is None
    assert parse_nccl_header("#define NCCL_MAJOR 2\n#define NCCL_MINOR 5\n") is None
