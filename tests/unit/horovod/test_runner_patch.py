"""What users read who start Horovod's runner in an environment of ours: the code that our patch adds, run.

That it is called, and that nothing listens, is tested with a built Horovod: tests/real/test_build_local.py.
"""

from __future__ import annotations

import ast
from pathlib import Path
from types import ModuleType

import pytest

from golden_files import Words
from provision.machine.configuration import shipped
from provision.machine.install.source_tree import apply_patches
from provision.machine.programs.failed_program import explain_log
from provision.model.operation import PatchFile

NAME = "0022-runner-refuses.patch"
ADDED = "horovod/runner/refusal.py"


@pytest.fixture
def source(tmp_path: Path) -> str:
    """The text of the module that the patch adds to Horovod, as the patch writes it."""
    (patch,) = (patch for patch in shipped.load_patches("0.28.1") if patch.name == NAME)
    assert (patch.applies_to, patch.gpu_only) == ({"tensorflow": ">=1.15", "pytorch": ">=1.13"}, False), (
        "for every TensorFlow, on CPUs and GPUs"
    )
    _, _, added = patch.text.partition("--- /dev/null\n")
    alone = PatchFile(name=NAME, subject="alone", text="--- /dev/null\n" + added.partition("\n--- ")[0] + "\n")
    (tmp_path / ADDED).parent.mkdir(parents=True)
    apply_patches(tmp_path, [alone], tmp_path / "log")
    return (tmp_path / ADDED).read_text(encoding="utf-8")


@pytest.fixture
def refusal(source: str) -> ModuleType:
    """That module, imported."""
    module = ModuleType("refusal")
    exec(compile(source, ADDED, "exec"), module.__dict__)
    return module


def hints(message: str) -> list[str]:
    """The commands in the hint of a message, without backticks."""
    return message.partition("hint: ")[2].split("`")[1::2]


def test_the_hint_has_the_launcher_of_the_site_with_its_options(
    refusal: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The modulefile sets it."""
    monkeypatch.setenv("PROVISION_LAUNCHER", "srun --mpi=pmi2")
    launched, provision = hints(refusal.describe("horovodrun", 4, ["python", "my train.py"]))
    assert launched == "srun --mpi=pmi2 -n 4 python 'my train.py'"
    assert provision == "provision job horovod --help"


def test_the_message_gives_the_reason_before_the_hint(refusal: ModuleType, words: Words) -> None:
    """Without a number or a program the hint shows an example."""
    message = refusal.describe("horovod.run")
    assert "CVE-2024-10190, CVE-2026-31234" in message and hints(message)[0] == "srun -n 2 python train.py"
    words("job", message)


@pytest.mark.parametrize("what", ["horovodrun", "horovod.run", "horovod.runner"])
def test_a_log_with_the_refusal_is_explained(refusal: ModuleType, what: str) -> None:
    with pytest.raises(refusal.RunnerRefused) as caught:
        refusal.refuse(what, 2)
    known = explain_log([f"RunnerRefused: {caught.value}".encode()]).known
    assert known is not None
    assert known.entry.id == "horovods-runner"


def test_the_added_module_runs_on_the_oldest_python_of_an_environment(source: str) -> None:
    """TensorFlow 1.15 has Python 3.6: no newer syntax. Only the standard library is imported."""
    tree = ast.parse(source, feature_version=(3, 6))
    assert {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)} == {"os", "shlex"}
    assert not any(isinstance(node, ast.Import) for node in ast.walk(tree))
