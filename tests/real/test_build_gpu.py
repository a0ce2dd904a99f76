"""A build for GPUs with a real nvcc, on a machine without a GPU: it goes as far as the proof, which refuses.

What a GPU does is not proved here: these tests are skipped where there is one.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from parts.fixtures import CXX
from parts.provision import Tool, site_file
from provision.knowledge.cuda import same_major
from provision.machine.configuration import shipped

pytestmark = pytest.mark.real

# The first that is built with the CUDA that is here: 12, or 11 (PROVISION_TEST_CUDA names a toolkit that is not on PATH).
STACKS = ("tensorflow-2.21.0-gpu", "tensorflow-2.18.1-gpu", "tensorflow-2.15.1-gpu", "tensorflow-2.11.1-gpu")


def gpu_site_file(folder: Path, cuda_home: str, nccl_home: str) -> str:
    """The site `local` with GPUs that are not there; a variable of the caller's names CUDA, as a module's would."""
    gpu = (
        '[archs.native.gpu]\nper_node = 2\ncapabilities = ["80", "90"]\n'
        f'cuda_home = "{cuda_home}"\nnccl_home = "{nccl_home}"\n'
    )
    if CXX:
        gpu += f'\n[archs.native.compiler]\ncxx = "{CXX}"\ncc = "{CXX.replace("g++", "gcc")}"\n'
    return site_file(folder, "local", ("timeout_s = 600 }", f"timeout_s = 600 }}\n\n{gpu}"))


@pytest.mark.long
def test_a_build_without_a_gpu_goes_as_far_as_the_proof_which_refuses_for_want_of_one(
    cuda: tuple[str, str], nccl: str, tmp_path: Path
) -> None:
    """NCCL and device code are built in, nothing is published, and the same command goes on at the proof."""
    frameworks = {one: shipped.load_stack(one).framework for one in STACKS}
    fitting = [one for one, of in frameworks.items() if same_major(str(of.interface.cuda_of(of.version)), cuda[1])]
    if not fitting:
        pytest.skip(f"nvcc here is {cuda[1]}, and no stack's TensorFlow is built with that major version of CUDA")
    tool = Tool(tmp_path / "root", {"CUDA_HOME": cuda[0]})
    site = gpu_site_file(tmp_path, "${CUDA_HOME}", nccl)
    done = tool.run("build", "--site", site, "--stack", fitting[0], timeout_s=2400)
    assert done.returncode == 1, done.stderr
    assert "processes found no GPU" in done.stderr
    assert "no driver (libcuda.so.1" in done.stderr and "no device files /dev/nvidia0" in done.stderr
    assert "hint: run the same command on a node of this arch" in done.stderr
    assert not (tool.root / "modules").exists()

    (row,) = json.loads(tool.good("list", "--json", "--site", site))["result"]["environments"]
    assert row["state"] != "published"
    prefix = tool.root / "envs" / row["environment"]
    receipt = json.loads((prefix / ".provision" / "receipts" / "inspect.json").read_text())
    checks = {check["name"]: check for check in receipt["checks"]}
    for name in ("TensorFlow with CUDA", "NCCL built in", "linked NCCL", "device code", "driver"):
        assert checks[name]["passed"], checks[name]
    assert f"{nccl}/lib/libnccl.so.2" in checks["linked NCCL"]["message"]
    if os.access(f"{cuda[0]}/bin/cuobjdump", os.X_OK):
        assert checks["device code"]["message"] == "planned for 80 90, in the library: 80 90"
    verdict = json.loads((prefix / ".provision" / "verdict.json").read_text())
    assert verdict["passed"] is False
    assert verdict["checks"][0]["name"] == "gpus"

    again = {
        step["name"]: step["action"]
        for step in tool.json("plan", "--site", site, "--stack", fitting[0])["result"]["steps"]
    }
    assert again["inspect"] == "keep"
    assert again["proof"] == again["publish"] == "create"
