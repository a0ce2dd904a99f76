"""`provision data fetch`: from an HTTP server on this machine, to where each Keras looks.

The addresses of Keras's own files cannot be reached by the tests: a table with the server's addresses and the hashes of the
test's files stands in for `keras_files.json`. How Keras looks for the files is in `knowledge/keras_files.py`, with sources.
"""

from __future__ import annotations

import hashlib
import io
import json
import re
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from golden_files import Words
from parts.containers import container_program, no_namespaces
from parts.json_page import result_faults
from parts.network import files_in, serving
from parts.provision import site_file
from provision.cli import main
from provision.knowledge.keras_files import KerasFile

MNIST = b"the digits"
WEIGHTS = b"weights"


def archive() -> bytes:
    """A tar.gz in the layout of CIFAR-10."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as tar:
        member = tarfile.TarInfo("cifar-10-batches-py/data_batch_1")
        member.size = 5
        tar.addfile(member, io.BytesIO(b"batch"))
    return packed.getvalue()


@pytest.fixture
def server(tmp_path: Path) -> Iterator[str]:
    """The address of a server with the files."""
    files = tmp_path / "served"
    files.mkdir()
    for name, content in (("mnist.npz", MNIST), ("net.h5", WEIGHTS), ("cifar.tar.gz", archive())):
        (files / name).write_bytes(content)
    with serving(files_in(files)) as port:
        yield f"http://127.0.0.1:{port}"


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, server: str) -> str:
    """A site whose scratch is here, whose compute nodes have no network, and a table with this server's files."""
    (tmp_path / "home").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("USERWORK", str(tmp_path / "scratch"))
    monkeypatch.delenv("KERAS_HOME", raising=False)

    def row(file: str, name: str, content: bytes, folder: str = "datasets") -> KerasFile:
        digest = hashlib.sha256(content).hexdigest() if folder == "datasets" else hashlib.md5(content).hexdigest()
        return KerasFile(url=f"{server}/{name}", hash=digest, folder=folder, file=file)

    table = {
        "mnist": (row("mnist.npz", "mnist.npz", MNIST),),
        "cifar10": (
            row("cifar-10-batches-py.tar.gz", "cifar.tar.gz", (tmp_path / "served/cifar.tar.gz").read_bytes()),
        ),
        "imagenet-weights:ResNet50": (row("resnet50.h5", "net.h5", WEIGHTS, "models"),),
        "imdb": (row("imdb.npz", "mnist.npz", b"other"),),
    }
    for user in ("provision.commands.data", "provision.commands.job.check_program"):
        monkeypatch.setattr(f"{user}.read_keras_files", lambda: table)
    return site_file(tmp_path, "sigma2-saga", ('compute = "proxy"', 'compute = "no"'))


def fetch(capsys: pytest.CaptureFixture[str], *words: str, code: int = 0) -> tuple[dict[str, object], str]:
    """The result, or the error, and what was printed for people."""
    assert main(["data", "fetch", *words, "--json"]) == code
    page = json.loads(capsys.readouterr().out)
    if code:
        return page["error"], page["error"]["message"]
    assert result_faults(["data", "fetch"], page["result"]) == []
    return page["result"], ""


def test_a_data_set_is_on_scratch_and_every_keras_finds_it(
    site: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    result, _ = fetch(capsys, "mnist", "--site", site)
    file, linked = tmp_path / "scratch/keras/datasets/mnist.npz", tmp_path / "home/.keras/datasets/mnist.npz"
    assert result["files"] == [str(file)]
    assert result["links"] == [str(linked)]
    assert not file.is_symlink() and linked.is_symlink()
    assert linked.read_bytes() == MNIST
    fetch(capsys, "imagenet-weights:ResNet50", "--site", site)
    assert (tmp_path / "home/.keras/models/resnet50.h5").read_bytes() == WEIGHTS
    assert main(["data", "fetch", "mnist", "--site", site]) == 0
    assert f"for jobs: --data {file.parent}" in capsys.readouterr().out


def test_an_archive_has_the_names_of_both_generations(
    site: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Keras 2 takes the folder if it is there; Keras 3 unpacks its own file into its own folder each time."""
    fetch(capsys, "cifar10", "--site", site)
    home = tmp_path / "home/.keras/datasets"
    assert (home / "cifar-10-batches-py/data_batch_1").read_bytes() == b"batch"
    assert (home / "cifar-10-batches-py.tar.gz").read_bytes() == (
        home / "cifar-10-batches-py-target_archive"
    ).read_bytes()
    assert (
        home / "cifar-10-batches-py-target"
    ).resolve() == tmp_path / "scratch/keras/datasets/cifar-10-batches-py-target"
    fetch(capsys, "cifar10", "--site", site)


def test_what_the_user_has_is_used_or_reported_and_never_replaced(
    site: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    own = tmp_path / "home/.keras/datasets/mnist.npz"
    own.parent.mkdir(parents=True)
    own.write_bytes(MNIST)
    fetch(capsys, "mnist", "--site", site)
    assert not own.is_symlink()
    own.write_bytes(b"mine")
    error, message = fetch(capsys, "mnist", "--site", site, code=2)
    assert "was not replaced" in message
    assert f"mv {own} {own}.old" in str(error["hint"])
    assert own.read_bytes() == b"mine"


def test_a_link_to_what_the_site_has_removed_is_made_again(
    site: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fetch(capsys, "mnist", "--site", site)
    own = tmp_path / "home/.keras/datasets/mnist.npz"
    own.unlink()
    own.symlink_to(tmp_path / "scratch/gone")
    fetch(capsys, "mnist", "--site", site)
    assert own.read_bytes() == MNIST


def test_a_file_with_another_hash_is_not_kept(
    site: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], words: Words
) -> None:
    _, message = fetch(capsys, "imdb", "--site", site, code=1)
    assert "imdb.npz" in message or "mnist.npz" in message
    words("data", re.sub(r"127\.0\.0\.1:\d+", "SERVER", message))
    assert list((tmp_path / "scratch/keras/datasets").iterdir()) == []
    assert not (tmp_path / "home/.keras").exists()


def test_an_address_needs_its_hash_and_goes_to_the_data(
    site: str, server: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    digest = hashlib.sha256(MNIST).hexdigest()
    result, _ = fetch(capsys, f"{server}/mnist.npz", "--sha256", digest, "--site", site)
    assert result["files"] == [str(tmp_path / "scratch/data/mnist.npz")]
    result, _ = fetch(capsys, f"{server}/mnist.npz", "--sha256", digest.upper(), "--name", "m.npz", "--site", site)
    assert (tmp_path / "scratch/data/m.npz").read_bytes() == MNIST
    for words, said in (
        ([f"{server}/mnist.npz"], "`--sha256` must be"),
        ([f"{server}/mnist.npz", "--sha256", "00"], "`--sha256` must be"),
        (["ftp://x/y", "--sha256", digest], "not an address of http"),
        ([f"{server}/", "--sha256", digest], "cannot be the name"),
        (["mnist", "--sha256", digest], "`--sha256`"),
        (["mnits"], "did you mean `mnist`?"),
        (["tfds:../x"], "not a name of TensorFlow Datasets"),
    ):
        assert said in fetch(capsys, *words, "--site", site, code=2)[1]
    assert "could not be downloaded" in fetch(capsys, f"{server}/no", "--sha256", digest, "--site", site, code=1)[1]


def test_a_machine_that_does_not_see_the_site_fetches_nothing(
    site: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, words: Words
) -> None:
    monkeypatch.delenv("USERWORK")
    error, message = fetch(capsys, "mnist", "--site", site, code=2)
    words("data", message)
    assert "ssh saga.sigma2.no" in str(error["hint"])


def test_tensorflow_datasets_of_the_users_python_prepare_a_set_where_jobs_look(
    site: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A package with the two functions that are called stands in for tensorflow-datasets (builder.py of 4.9.9)."""
    package = tmp_path / "packages/tensorflow_datasets.py"
    package.parent.mkdir()
    package.write_text(
        "import os\nclass builder:\n    def __init__(self, name, *, data_dir=None): self.path = data_dir + '/' + name\n"
        "    def download_and_prepare(self): os.makedirs(self.path)\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(package.parent))
    result, _ = fetch(capsys, "tfds:mnist", "--site", site)
    assert result["folder"] == str(tmp_path / "scratch/tensorflow_datasets")
    assert (tmp_path / "scratch/tensorflow_datasets/mnist").is_dir()
    monkeypatch.chdir(tmp_path)
    result, _ = fetch(capsys, "tfds:mnist", "--data-dir", "here", "--site", site)
    assert (result["folder"], (tmp_path / "here/mnist").is_dir()) == (str(tmp_path / "here"), True)
    package.unlink()
    assert "has no TensorFlow Datasets" in fetch(capsys, "tfds:mnist", "--site", site, code=2)[1]


PROGRAM = """\
import tensorflow as tf
import tensorflow_datasets as tfds
from tensorflow.keras.datasets import mnist
mnist.load_data()
tf.keras.applications.ResNet50(weights="imagenet")
tf.keras.applications.ResNet50(weights=None)
tfds.load("mnist", split="train")
"""


def test_a_job_that_would_download_without_network_is_refused_until_it_is_fetched(
    site: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, words: Words
) -> None:
    train = tmp_path / "train.py"
    train.write_text(PROGRAM)
    job = ["job", "single", "--site", site, "--arch", "accel", "--account", "x", "--script", str(train)]
    assert main(job) == 2
    said = capsys.readouterr()
    assert said.out == ""
    for name, line in (("mnist", 4), ("imagenet-weights:ResNet50", 5), ("tfds:mnist", 7)):
        assert f"line {line}: {name} " in said.err
        assert f"`provision data fetch {name} --site {site}`" in said.err
    words("job", said.err)
    for name in ("mnist", "imagenet-weights:ResNet50"):
        fetch(capsys, name, "--site", site)
    (tmp_path / "scratch/tensorflow_datasets/mnist").mkdir(parents=True)
    assert main(job) == 0
    capsys.readouterr()
    monkeypatch.delenv("USERWORK")
    assert main(job) == 0
    err = capsys.readouterr().err
    assert "`provision data fetch mnist" in err
    words("job", err.splitlines()[0])


def test_a_program_that_downloads_runs_in_the_container_in_the_folder_of_the_job(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, words: Words
) -> None:
    """The script of NYU's page, `download_data_and_weights.py`: by a stand-in for singularity with a root of its own."""
    if reason := no_namespaces():
        pytest.skip(reason)
    image, setup, overlay = tmp_path / "image.sif", tmp_path / "env.sh", tmp_path / "my.ext3"
    image.write_text("")
    overlay.write_bytes(bytes(1080) + b"\x53\xef")  # where an ext3 file system has its mark
    setup.write_text(f"export PATH={Path(sys.executable).parent}:$PATH\n")
    greene = site_file(
        tmp_path,
        "nyu-greene",
        ("/scratch/work/public/singularity/cuda12.1.1-cudnn8.9.0-devel-ubuntu22.04.2.sif", str(image)),
        ("/scratch/$USER/tensorflow-example/tensorflow.ext3", str(overlay)),
        ('setup = "/ext3/env.sh"', f'setup = "{setup}"\nbind = ["{tmp_path}", "{Path(sys.executable).parent}"]'),
        ('scratch = "/scratch/$USER"', f'scratch = "{tmp_path}"'),
    )
    program, job = tmp_path / "my programs" / "download.py", tmp_path / "job"
    program.parent.mkdir()
    job.mkdir()
    program.write_text("import os; print(os.getcwd(), os.path.isdir('/ext3'), file=open('cassava', 'w'))\n")
    assert main(["data", "fetch", str(program), "--site", greene]) == 0
    script, note = capsys.readouterr()
    words("data", note)
    path = f"{container_program('singularity', tmp_path)}:/usr/bin:/bin"
    done = subprocess.run(
        ["bash"],
        input=script,
        cwd=job,
        env={"PATH": path, "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert (job / "cassava").read_text() == f"{job} True\n"
    assert main(["data", "fetch", str(program.with_name("none.py")), "--site", greene]) == 2
    capsys.readouterr()
    monkeypatch.chdir(program.parent)
    assert main(["data", "fetch", program.name, "--site", "alcf-polaris"]) == 2
    words("data", capsys.readouterr().err)
    assert main(["data", "fetch", "mnist", "--data-dir", ".", "--site", greene]) == 2
