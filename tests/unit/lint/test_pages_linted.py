"""The job scripts and programs of the five site pages, in our words: the linter finds exactly the faults that are known.

`pages/<page>/` holds them with the ending `.txt`, so that no other tool takes them for code of ours.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from parts.cli import call

PAGES = Path(__file__).parent / "pages"
SITES = {"cori": "nersc-cori", "saga": "sigma2-saga", "ml-dist": "local", "theta": "alcf-theta", "greene": "nyu-greene"}
MNIST = ("mnist.py:13 softmax-twice",)
TWO_GPUS = ("two_gpus.py:11 softmax-twice",)
EIGHT_GPUS = (
    "horovod.py:4 not-distributed",
    "horovod.py:14 dataset-unused",
    "horovod.py:17 softmax-twice",
    "horovod.py:19 never-called",
)
WORKERS = ("workers.py:23 arrays-in-strategy", "workers.py:23 batch-of-all", "workers.py:24 text-is-no-number")
RING = ("horovod.py:9 slurm-number-in-horovod", "horovod.py:10 input-not-split")
# What is found in each file; a program of another file after what is found in the job itself.
KNOWN: dict[str, tuple[str, ...]] = {
    "cori/before.py": ("before.py:7 horovod-not-imported", "before.py:10 node-local-output"),
    "cori/after.py": ("after.py:13 node-local-output",),
    "cori/job.sh": (
        "job.sh:8 no-module-list",
        "after.py:13 node-local-output",
        "after.py:14 threads",
    ),
    "saga/mnist.py": MNIST,
    "saga/run_mnist.sh": ("run_mnist.sh:3 blank", *MNIST),
    "saga/two_gpus.py": TWO_GPUS,
    "saga/two_gpus.sh": TWO_GPUS,
    "saga/horovod.py": EIGHT_GPUS,
    "saga/horovod.sh": (
        "horovod.sh:4 tasks-anywhere",
        "horovod.sh:17 one-cpu",
        *EIGHT_GPUS[:1],
        "horovod.py:11 gpu-by-local-rank",
        *EIGHT_GPUS[1:],
    ),
    "ml-dist/base.sh": (
        "base.sh:3 blank",
        "base.sh:6 blank",
        "base.sh:9 module-version",
        "base.sh:9 no-module-list",
        "base.sh:10 module-version",
        "base.sh:11 blank",
        "base.sh:14 blank",
    ),
    "ml-dist/workers.py": WORKERS,
    "ml-dist/workers.sh": WORKERS,
    "ml-dist/horovod.py": RING,
    "ml-dist/horovod.sh": RING,
    "theta/mnist.py": ("mnist.py:8 no-such-name",),
    "theta/plugin_py2.sh": (
        "plugin_py2.sh:9 no-module-list",
        "plugin_py2.sh:9 python-2",
        "plugin_py2.sh:10 python-2",
        "mnist.py:8 no-such-name",
    ),
    "theta/plugin_py3.sh": (
        "plugin_py3.sh:1 filesystems",
        "plugin_py3.sh:9 no-module-list",
        "plugin_py3.sh:14 one-cpu",
        "mnist.py:8 no-such-name",
    ),
    "greene/download.py": (),
    "greene/classify.py": (),
    "greene/job.slurm": ("job.slurm:12 blank", "job.slurm:12 source-then"),
}
# The programs that a job starts and that are not beside it.
UNREAD = {"ml-dist/base.sh": ["/path/to/ml-dist/training.py"]}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files of the pages under their own names."""
    place = tmp_path_factory.mktemp("pages")
    for path in PAGES.rglob("*.txt"):
        copy = place / path.relative_to(PAGES).with_suffix("")
        copy.parent.mkdir(exist_ok=True)
        copy.write_bytes(path.read_bytes())
    return place


def test_every_file_of_the_pages_is_checked(folder: Path) -> None:
    assert sorted(str(path.relative_to(folder)) for path in folder.rglob("*.*")) == sorted(KNOWN)


@pytest.mark.parametrize("name", KNOWN)
def test_exactly_the_known_faults_of_a_page_are_found(
    name: str, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PROVISION_ROOT", "/opt/provision")
    page = name.partition("/")[0]
    code = call("job", "lint", str(folder / name), "--site", SITES[page], "--json")
    body = json.loads(capsys.readouterr().out)
    findings = body["result"]["findings"] if code == 0 else body["error"]["findings"]
    assert tuple(f"{Path(one['file']).name}:{one['line']} {one['rule']}" for one in findings) == KNOWN[name]
    assert (code == 2) is any(one["weight"] == "error" for one in findings)
    checked = body["result"] if code == 0 else body["error"]["checked"]
    assert [one["path"] for one in checked["unread"]] == UNREAD.get(name, [])
    assert bool(checked["read"]) is (name not in UNREAD)
