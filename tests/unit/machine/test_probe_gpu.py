"""GPUs in a profile, and the probes of CUDA and NCCL. The tests with a real nvcc are in test_build_gpu.py."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from golden_files import Words, gpu_site, local_site
from provision.errors import ConfigError, Fault
from provision.machine.probes.probe import Probes
from provision.model.facts import CompilerFacts, GpuFacts

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


def probe(environ: dict[str, str], **gpu: object) -> tuple[GpuFacts | None, list[Fault]]:
    """The facts that the probes find with these environment variables, and their problems."""
    site = gpu_site(**gpu)
    probes = Probes(site, site.archs[0])
    compiler = CompilerFacts(family="gcc", version="12.2.0", cxx="/usr/bin/g++")
    return probes.gpu({"PATH": "/usr/bin:/bin", **environ}, compiler), probes.faults


@pytest.fixture
def parts(tmp_path: Path) -> tuple[Path, Path]:
    """CUDA and NCCL, each in a folder of its own."""
    return toolkit(tmp_path / "cuda"), nccl(tmp_path / "nccl", "libnccl.so.2")


def test_cuda_and_nccl_are_found_in_the_folders_of_the_modules(parts: tuple[Path, Path]) -> None:
    home, other = parts
    (home / "bin" / "cuobjdump").touch(0o755)
    facts, faults = probe({"CUDA_HOME": str(home), "EBROOTNCCL": str(other)}, nccl_home="${EBROOTNCCL}")
    assert faults == []
    assert facts == GpuFacts(
        cuda_home=str(home),
        cuda_version="12.4.131",
        cuobjdump=f"{home}/bin/cuobjdump",
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
    assert [fault.subject for fault in probes.faults] == ["cuda"]


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
    facts, faults = probe({"PATH": f"{script.parent}:/usr/bin:/bin"}, cuda_home=None)
    assert faults == []
    assert facts is not None and (facts.cuda_home, facts.nccl_home) == (str(home), str(home))
    named, _ = probe({"CUDA_PATH": str(home)}, cuda_home=None)
    assert named == facts


def test_all_missing_parts_are_reported_at_once(tmp_path: Path) -> None:
    facts, faults = probe({"PATH": str(tmp_path)}, cuda_home=None, nccl_home="/nowhere")
    assert facts is None
    assert [fault.subject for fault in faults] == ["cuda", "nccl"]
    assert all(fault.hint for fault in faults)
    assert "CUDA_HOME" in faults[0].evidence[1], "the searched folders"


REFUSES = "echo 'host_config.h:143:2: error: #error -- unsupported GNU version! gcc later than 13' >&2; exit 1"
FAULTS: dict[str, tuple[Callable[[Path, Path], object], dict[str, object], tuple[str, ...]]] = {
    "no module sets the variable": (lambda cuda, nccl: None, {"cuda_home": "${NOT_SET}"}, ("`${NOT_SET}`", "`a100`")),
    "no nvcc": (
        lambda cuda, nccl: (cuda / "bin/nvcc").unlink(),
        {},
        ("`bin/nvcc`", "`CUDA`", "from: ${CUDA_HOME}"),
    ),
    "nvcc does not know a capability": (
        lambda cuda, nccl: None,
        {"capabilities": ["60", "80"]},
        ("12.4.131", " 60", " 80 90"),
    ),
    "cmake would refuse it": (
        lambda cuda, nccl: (cuda / "lib64/libcudart.so").unlink(),
        {},
        ("12.4.131", "`CUDA`", "`libcudart.so`"),
    ),
    "cuda refuses the compiler": (
        lambda cuda, nccl: (cuda / "bin/nvcc").write_text(NVCC.replace("@HOME@", str(cuda)).replace("@TRY@", REFUSES)),
        {},
        ("12.4.131", "`/usr/bin/g++`", "unsupported GNU version"),
    ),
    "no library of NCCL": (
        lambda cuda, nccl: (nccl / "lib/libnccl.so.2").unlink(),
        {},
        ("2.22.3", "`NCCL`", "`libnccl.so.2`", "change `archs"),
    ),
    "another library of NCCL": (
        lambda cuda, nccl: (nccl / "lib/libnccl.so.2").rename(nccl / "lib/libnccl_static.a"),
        {"nccl_link": "SHARED"},
        ("2.22.3", "`libnccl.so.2`", '`nccl_link = "STATIC"`'),
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_what_is_wrong_with_cuda_or_nccl_is_one_problem(fault: str, parts: tuple[Path, Path], words: Words) -> None:
    (home, other), (spoil, gpu, named) = parts, FAULTS[fault]
    spoil(home, other)
    facts, faults = probe({"CUDA_HOME": str(home)}, nccl_home=str(other), **gpu)
    assert facts is None
    (fault,) = faults
    text = "\n".join((fault.message, *fault.evidence, f"hint: {fault.hint}"))
    text = text.replace(str(home), "CUDA").replace(str(other), "NCCL")
    assert [part for part in named if part not in text] == []
    words("doctor", text)
