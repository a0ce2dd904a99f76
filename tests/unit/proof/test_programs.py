"""The programs that run inside a built environment: these tests read their text and do not import them.

The integration tests start real ranks; these tests hold on any machine, with or without TensorFlow.
"""

from __future__ import annotations

import ast
import hashlib
import json
import math
import re
import struct
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

from golden_files import Words
from parts.loops import for_each
from parts.paths import PROGRAMS as FOLDER
from provision.profile.stack import KERAS_PROGRAMS
from provision.profile.stack import PROGRAMS as PROGRAMS_OF_A_STACK

HOROVOD = ("horovod_keras.py", "horovod_graph.py", "horovod_torch.py")
ONE_PROCESS_PROGRAMS = ("single.py", "mirrored.py", "keras_torch.py")
STRATEGIES = (*ONE_PROCESS_PROGRAMS, "multiworker.py", "ddp.py")
TRAINING = (*HOROVOD, *STRATEGIES)
PROGRAMS = (*TRAINING, "inspect_env.py", "thorough.py", "thorough_torch.py")
CHECKS = ("bench.py", "gradient_checks.py", "graph_checks.py", "keras_checks.py")
SHARED = (*CHECKS, "cluster.py", "horovod_rank.py", "pytorch_rank.py", "rank.py", "tensorflow_rank.py", "trial.py")
OF_NO_FRAMEWORK = ("bench.py", "cluster.py", "horovod_rank.py", "rank.py", "trial.py")
FILES = tuple(sorted(path.name for path in FOLDER.glob("*.py") if path.name != "__init__.py"))
SIBLINGS = {name[: -len(".py")] for name in SHARED}

# The fields of a report that the judge reads; `provision/proof/reports.py` and the programs share no code, only these words.
REPORT_FIELDS = {
    *("schema", "rank", "size", "local_rank", "local_size", "host", "pid", "stage", "error", "versions", "loss_before"),
    *("loss", "accuracy", "allreduce", "peers", "weights_sha256_initial", "weights_sha256", "weights_max_difference"),
    *("images_per_second", "train_images", "shard", "seconds", "seconds_by_stage", "threads", "gpu", "loaded_modules"),
}
FIELDS_BETWEEN_RANKS = {"allreduce", "peers", "weights_max_difference"}
RESTART = {"restart", "saved_at", "saved_sha256", "began_at", "began_sha256"}


def parse(name: str) -> ast.Module:
    """Parse a program with the grammar of the oldest Python that a stack may have."""
    return ast.parse((FOLDER / name).read_text(encoding="utf-8"), filename=name, feature_version=(3, 6))


def imported_roots(tree: ast.Module) -> set[str]:
    """Top-level packages that a program imports anywhere; a relative import counts as ``provision``."""
    roots = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            roots |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            roots.add("provision" if node.level else str(node.module).split(".")[0])
    return roots


@for_each("name", FILES)
def test_a_program_imports_only_its_siblings_and_the_environment(name: str) -> None:
    """An environment does not have `provision`, and a program is not in a package for relative imports.

    The report must exist before the framework is imported, because an illegal instruction fails there: heavy imports are
    inside of functions.
    """
    heavy = {"tensorflow", "horovod", "mpi4py", "numpy", "keras", "tf_keras", "torch"}
    tree = parse(name)
    assert imported_roots(tree) <= heavy | SIBLINGS | sys.stdlib_module_names
    top = ast.Module(body=[n for n in tree.body if isinstance(n, (ast.Import, ast.ImportFrom))], type_ignores=[])
    assert not imported_roots(top) & heavy


@for_each("name", OF_NO_FRAMEWORK)
def test_what_all_frameworks_share_names_none_of_them(name: str) -> None:
    """What is of TensorFlow or of PyTorch is in a file for each, so that another framework is one more."""
    roots, named = (
        imported_roots(parse(name)),
        {node.id for node in ast.walk(parse(name)) if isinstance(node, ast.Name)},
    )
    assert not (roots | named) & {
        *("tensorflow", "tensorflow_rank", "keras", "tf", "torch", "pytorch_rank"),
    }


def run_work(work: str, out: Path) -> tuple[subprocess.CompletedProcess[str], dict[str, Any]]:
    """Run `work(report)` as a program does, in a separate process; returns the process and the report that it left."""
    program = f"import rank, sys\ndef work(report):\n    {work}\nsys.exit(rank.run('the trial', sys.argv[1], work))"
    argv = [sys.executable, "-c", program, str(out)]
    done = subprocess.run(argv, cwd=FOLDER, capture_output=True, text=True, check=False)
    (path,) = out.iterdir()
    return done, json.loads(path.read_text(encoding="utf-8"))


def test_a_program_that_fails_leaves_a_report(tmp_path: Path, words: Words) -> None:
    work = "report.fields['loss'] = [float('nan'), 2.5]; report.stage('training'); raise MemoryError('too large')"
    done, report = run_work(work, tmp_path / "out")

    assert done.returncode == 1
    assert (report["stage"], report["error"], report["loss"]) == ("training", "MemoryError: too large", [None, 2.5])
    assert "in work" in report["traceback"]
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
    words("test", line.partition(" on ")[0])


@pytest.mark.parametrize(("returned", "code"), [("None", 0), ("0", 0), ("3", 1)])
def test_the_exit_code_follows_from_the_returned_value(tmp_path: Path, returned: str, code: int) -> None:
    done, report = run_work(f"return {returned}", tmp_path / "out")

    assert (done.returncode, report["error"]) == (code, None)


def take_gpu(visible: int, local_rank: int, *, required: bool = False) -> tuple[str, dict[str, Any]]:
    """What `rank.take_gpu` returns or raises, and what it reports."""
    program = (
        "import json, rank, sys\n"
        f"fields = {{'local_rank': {local_rank}}}\n"
        f"try: taken = repr(rank.take_gpu(fields, {visible}, {required}, True))\n"
        "except RuntimeError as error: taken = str(error)\n"
        "print(json.dumps([taken, fields['gpu']]))"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=FOLDER, capture_output=True, text=True, check=True)
    taken, gpu = json.loads(done.stdout)
    return taken, gpu


@pytest.mark.parametrize(("visible", "local_rank", "index"), [(4, 3, "3"), (1, 3, "0"), (4, 0, "0"), (0, 0, "None")])
def test_a_rank_takes_its_own_gpu_or_the_only_one_that_it_sees(visible: int, local_rank: int, index: str) -> None:
    taken, gpu = take_gpu(visible, local_rank)
    assert (taken, gpu["visible"], "missing" in gpu) == (index, visible, False)


def test_more_ranks_than_gpus_and_a_missing_gpu_are_refused_with_the_reasons() -> None:
    taken, _ = take_gpu(2, 2)
    assert "local rank 2" in taken and "at most 2 ranks" in taken
    taken, gpu = take_gpu(0, 0, required=True)
    assert gpu["missing"] and all(reason in taken for reason in gpu["missing"])


def words_of(*names: str) -> set[str]:
    """All strings and keyword names in programs."""
    nodes = [node for name in names for node in ast.walk(parse(name))]
    words = {node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    calls = [node for node in nodes if isinstance(node, ast.Call)]
    return words | {keyword.arg for call in calls for keyword in call.keywords if keyword.arg}


@pytest.mark.parametrize("name", TRAINING)
def test_a_report_has_the_fields_that_the_judge_reads(name: str) -> None:
    """One process has none of those between ranks; all programs but one continue from a checkpoint, and report it."""
    fields = REPORT_FIELDS - FIELDS_BETWEEN_RANKS if name in ONE_PROCESS_PROGRAMS else REPORT_FIELDS
    fields |= RESTART if name != "horovod_keras.py" else set()
    assert words_of(name, *SHARED) >= fields


def test_a_stack_can_choose_each_training_program_and_no_other() -> None:
    assert sorted(PROGRAMS + SHARED) == list(FILES)
    assert {f"{name}.py" for name in (*PROGRAMS_OF_A_STACK, *KERAS_PROGRAMS.values())} == set(TRAINING)


def read_npy(archive: zipfile.ZipFile, name: str) -> tuple[str, tuple[int, ...], bytes]:
    """Read one array without NumPy: type, shape and raw values (NEP 1, version 1.0)."""
    content = archive.read(f"{name}.npy")
    assert content[:8] == b"\x93NUMPY\x01\x00"
    (length,) = struct.unpack("<H", content[8:10])
    header = ast.literal_eval(content[10 : 10 + length].decode("latin1"))
    assert header["fortran_order"] is False
    return header["descr"], header["shape"], content[10 + length :]


@pytest.mark.parametrize(("part", "count"), [("train", 1500), ("test", 297)])
def test_digits_have_the_layout_of_mnist_and_are_those_of_the_readme(part: str, count: int) -> None:
    data = FOLDER / "data" / "digits.npz"
    with zipfile.ZipFile(data) as archive:
        assert sorted(archive.namelist()) == ["x_test.npy", "x_train.npy", "y_test.npy", "y_train.npy"]
        images_type, images_shape, images = read_npy(archive, f"x_{part}")
        labels_type, labels_shape, labels = read_npy(archive, f"y_{part}")
    assert (images_type, images_shape) == ("|u1", (count, 28, 28))
    assert (labels_type, labels_shape) == ("|u1", (count,))
    assert len(images) == math.prod(images_shape)
    assert (min(images), max(images), set(labels)) == (0, 255, set(range(10)))
    readme = data.with_name("README.md").read_text(encoding="utf-8")
    assert re.findall(r"\b[0-9a-f]{64}\b", readme) == [hashlib.sha256(data.read_bytes()).hexdigest()]
