"""The measurements of `make matrix`: how they are read and written, and how the page and a plan show them."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

from parts.paths import REPOSITORY
from provision.knowledge.combinations import (
    Cell,
    Proof,
    describe_cell,
    dump_cells,
    find_cell,
    keras_of,
    parse_cells,
)
from provision.machine.files.tables import read_cells


@pytest.fixture(scope="module")
def matrix() -> ModuleType:
    """tools/matrix.py, loaded by its path because it is not in a package."""
    spec = importlib.util.spec_from_file_location("matrix", REPOSITORY / "tools" / "matrix.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["matrix"] = module
    spec.loader.exec_module(module)
    return module


def cell(tensorflow: str = "2.9.3", python: str = "3.10", **changes: object) -> Cell:
    """A cell that passed."""
    proof = Proof(ranks=2, passed=20, skipped=("fp16",), worst=4.8e-7, seconds=61)
    values: dict[str, object] = {
        "tensorflow": tensorflow,
        "keras": "2",
        "python": python,
        "horovod": "0.28.1+provision.9",
        "patch_set": "abc",
        "mpi": "mpich 5.0.2 (wheel)",
        "compiler": "gcc 12.2.0",
        "date": "2026-11-21",
        "build_seconds": 120,
        "proofs": (proof,),
        "failed": "",
        **changes,
    }
    return Cell(**values)  # type: ignore[arg-type]


def test_cells_are_written_one_per_line_sorted_by_version() -> None:
    cells = [cell("2.10.1", "3.10"), cell("2.9.3", "3.10"), cell("2.9.3", "3.9")]
    text = dump_cells(cells)
    assert len(text.splitlines()) == len(cells) + 2
    assert [parsed.key for parsed in parse_cells(text)] == [
        ("2.9.3", "2", "3.9"),
        ("2.9.3", "2", "3.10"),
        ("2.10.1", "2", "3.10"),
    ]
    assert parse_cells(dump_cells(parse_cells(text))) == parse_cells(text)


def test_the_keras_version_follows_from_tensorflow_and_its_environ() -> None:
    assert keras_of("2.15.1", ()) == "2"
    assert keras_of("2.16.2", ()) == "3"
    assert keras_of("2.16.2", (("TF_USE_LEGACY_KERAS", "1"),)) == "tf-keras"
    assert keras_of("2.16.2", (("TF_USE_LEGACY_KERAS", "0"),)) == "3"


def test_a_plan_describes_a_cell_as_it_was_measured() -> None:
    assert describe_cell("2.9.3", "2", "3.10", cell()) == (
        "TensorFlow 2.9.3, Keras 2, Python 3.10 passed 20 checks on 2 ranks (2026-11-21, gcc 12.2.0, mpich 5.0.2 (wheel))"
    )
    assert "never measured" in describe_cell("2.9.3", "2", "3.8", None)
    failed = describe_cell("2.9.3", "2", "3.10", cell(failed="step `compile` failed", proofs=()))
    assert "passed" not in failed
    assert "step `compile` failed" in failed


def test_the_page_shows_the_measured_cells(matrix: ModuleType) -> None:
    cells = read_cells()
    assert cells
    assert (REPOSITORY / "docs" / "reference" / "compatibility.md").read_text(encoding="utf-8") == matrix.page(cells)
    first = cells[0]
    assert find_cell(cells, *first.key) == first
    assert find_cell(cells, "0.1.0", "2", "3.10") is None


def test_the_page_marks_a_failed_cell_as_failed(matrix: ModuleType) -> None:
    page = matrix.page([cell(), cell("2.10.1", failed="the ranks | did not agree", proofs=())])
    assert "| 2.9.3 | 2 | passed |" in page
    assert "| 2.10.1 | 2 | **failed** |" in page
    assert "the ranks / did not agree" in page


def test_every_shipped_stack_and_minor_version_is_in_the_matrix_once(matrix: ModuleType) -> None:
    rows = matrix.releases()
    assert len({(row.version, row.keras) for row in rows}) == len(rows)
    minors = {tuple(map(int, row.version.split(".")[:2])) for row in rows}
    assert minors == {(1, 15), *((2, minor) for minor in range(22))}
    assert {row.stack for row in rows if row.shipped} >= {"tensorflow-2.15.1", "tensorflow-2.21.0"}


def test_the_tool_reads_a_stack_that_the_matrix_writes(
    matrix: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from provision.machine.configuration import shipped

    release = next(row for row in matrix.releases() if row.stack == "tensorflow-2.17.1-tf-keras")
    matrix.write_stack(release, tmp_path)
    monkeypatch.setenv("PROVISION_CONFIG", str(tmp_path))
    stack = shipped.load_stack(release.stack)
    assert (stack.module, stack.framework.version) == ("tensorflow/2.17.1-tf-keras", "2.17.1")
    assert dict(stack.environ)["TF_USE_LEGACY_KERAS"] == "1"
    wanted = (tmp_path / "requirements" / f"{release.stack}.in").read_text().split()
    assert {"tensorflow-cpu==2.17.1", "tf-keras==2.17.0", "horovod==0.28.1", "setuptools<70"} <= set(wanted)
