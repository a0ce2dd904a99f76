"""What prepares containers: the overlay's and the image's scripts, golden for every site that has them; what cannot work.

The scripts are run here too, with the stand-in of `parts/containers.py` for apptainer and singularity. The registry is a
server of this machine that speaks the protocol of the OCI distribution specification, by TLS, with tokens.
"""

from __future__ import annotations

import dataclasses
import gzip
import http.server
import os
import shutil
import subprocess
import sys
import urllib.parse
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import pytest

import provision
from golden_files import Golden, Words, lock_of
from parts.cli import call, envelope
from parts.containers import container_program, no_namespaces, template
from parts.jobs import render_user_job
from parts.network import serving
from parts.paths import RECORDED
from parts.profiles import profile
from provision.errors import ConfigError
from provision.jobs.image_job import ImageJob
from provision.jobs.overlay_job import OWN_FILES, OWN_GB, OverlayJob, lock_name, make_overlay_script
from provision.jobs.user_job import UserJob
from provision.knowledge.images import parse_reference
from provision.knowledge.miniforge import RELEASES, Miniforge, release_for
from provision.lint.job_script import read_script
from provision.lint.rules import lint_job
from provision.machine.configuration.shipped import load_lock, load_stack
from provision.machine.submission.render_jobs import render_image_job, render_overlay_job
from provision.model.requirements_file import Requirements
from provision.profile.container import Template
from provision.profile.site import Network, Site

ROOT = Path(provision.__file__).resolve().parents[1]
WITH_OVERLAY = (
    ("nyu-greene", "gpu"),
    ("nyu-greene", "cpu"),
    ("nyu-torch", "h200"),
    ("nyu-torch", "l40s"),
    ("nyu-torch", "cpu"),
)
GPU_IMAGE = "docker://tensorflow/tensorflow:2.15.0-gpu"
IMAGES = (
    ("sigma2-olivia", "accel", None),
    ("generic-slurm", "gpu", None),
    ("nyu-torch", "h200", GPU_IMAGE),
    ("nyu-torch", "cpu", "docker://tensorflow/tensorflow@sha256:" + "a" * 64),
)
OWN: dict[str, Any] = {
    "requirements": Requirements(path="/home/ada/requirements.txt", sha256="b" * 64),
    "path": "$SCRATCH/own.ext3",
    "gb": OWN_GB,
    "files": OWN_FILES,
}
SITES_OVERLAY = "/scratch/$USER/tensorflow-example/tensorflow.ext3"
LOCK = lock_of("overlay-tensorflow-2.15.1", "numpy==1.26.4", "tensorflow==2.15.1")


def overlay(name: str, arch: str, **changes: Any) -> OverlayJob:
    """What `provision job overlay --site NAME --arch ARCH --account tests` asks for."""
    site = profile(name)
    stack = load_stack(site.stack)
    miniforge = release_for(stack.pythons)
    assert miniforge is not None
    asked = OverlayJob(
        site=site,
        arch=site.arch(arch),
        command=f"provision job overlay --site {name} --arch {arch} --account tests",
        framework=stack.framework,
        lock=LOCK,
        miniforge=miniforge,
        account="tests",
    )
    return dataclasses.replace(asked, **changes)


def image(name: str, arch: str, image: str | None = None, **changes: Any) -> ImageJob:
    """What `provision job image --site NAME --arch ARCH --account tests` asks for."""
    site = profile(name)
    other = f" --image {image}" if image else ""
    asked = ImageJob(
        site=site,
        arch=site.arch(arch),
        command=f"provision job image --site {name} --arch {arch}{other} --account tests",
        image=image,
        account="tests",
    )
    return dataclasses.replace(asked, **changes)


def reaching(site: Site, **network: Any) -> Site:
    """The site with another network."""
    plain = {"login": "yes", "compute": "yes", "proxy": None, "download_node": None}
    return dataclasses.replace(site, network=Network(**{**plain, **network}))


def contained(site: Site, **changes: Any) -> Site:
    """The site with other containers."""
    assert site.container is not None
    return dataclasses.replace(site, container=dataclasses.replace(site.container, **changes))


@pytest.mark.parametrize(("name", "arch"), [("nyu-greene", "gpu"), ("nyu-torch", "h200")])
def test_the_overlay_script_equals_the_golden_file(name: str, arch: str, golden: Golden) -> None:
    golden(f"jobs/{name}/{arch}/overlay.sh", render_overlay_job(overlay(name, arch)))


@pytest.mark.parametrize(("name", "arch"), [("nyu-greene", "gpu"), ("nyu-torch", "cpu")])
def test_the_script_of_own_packages_equals_the_golden_file(name: str, arch: str, golden: Golden) -> None:
    golden(f"jobs/{name}/{arch}/own-overlay.sh", render_overlay_job(overlay(name, arch, **OWN)))


@pytest.mark.parametrize(("name", "arch", "other"), IMAGES)
def test_the_image_script_equals_the_golden_file(name: str, arch: str, other: str | None, golden: Golden) -> None:
    golden(f"jobs/{name}/{arch}/image.sh", render_image_job(image(name, arch, other)))


def test_bash_shellcheck_and_lint_find_no_fault(shellcheck: str, tmp_path: Path) -> None:
    greene = profile("nyu-greene")
    by_proxy = reaching(greene, compute="proxy", proxy="http://p:3128")
    everywhere = reaching(greene, login="proxy", compute="proxy", proxy="http://p:3128")
    texts = [render_overlay_job(overlay(*one)) for one in WITH_OVERLAY]
    texts += [render_overlay_job(overlay("nyu-greene", "gpu", site=site)) for site in (by_proxy, everywhere)]
    texts.append(
        render_overlay_job(overlay("nyu-greene", "gpu", site=contained(greene, image=GPU_IMAGE, module="x/1")))
    )
    texts.append(render_overlay_job(overlay("nyu-greene", "gpu", site=reaching(greene, compute="no"))))
    texts += [
        render_overlay_job(overlay("nyu-greene", "gpu", **OWN)),
        render_overlay_job(overlay("nyu-torch", "cpu", **OWN)),
    ]
    texts += [render_image_job(image(*one)) for one in IMAGES]
    texts.append(
        render_image_job(image("sigma2-olivia", "accel", site=reaching(profile("sigma2-olivia"), compute="no")))
    )
    paths = []
    for number, text in enumerate(texts):
        path = tmp_path / f"{number}.sh"
        path.write_text(text)
        paths.append(str(path))
        subprocess.run(["bash", "-n", str(path)], check=True)
        assert lint_job(read_script(text, str(number)), None, None, None) == ()
    done = subprocess.run([shellcheck, "--shell=bash", *paths], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


# What is in them


@pytest.mark.parametrize("path", sorted((ROOT / "requirements").glob("overlay-*.in")), ids=lambda path: path.stem)
def test_the_lock_of_an_overlay_is_for_the_python_of_miniforge(path: Path) -> None:
    stack = load_stack(path.stem.removeprefix("overlay-"))
    assert lock_name(stack.name) == lock_name(f"{stack.name}-gpu") == path.stem
    miniforge = release_for(stack.pythons)
    assert miniforge is not None
    lock = load_lock(path.stem, miniforge.python)
    pins = {pin.name: pin.version for pin in lock.pins}
    assert pins["tensorflow"] == stack.framework.version
    assert "horovod" not in pins
    assert any(name.startswith("nvidia-cudnn") for name in pins), "CUDA comes as packages"
    assert "tensorflow-datasets" in pins


@pytest.mark.parametrize(
    ("gb", "files", "size"),
    [
        (1, 1, "2GB-100K"),
        (2, 100_001, "5GB-200K"),
        (5, 200_000, "5GB-200K"),
        (5, 200_001, "10GB-400K"),
        (8, 100_000, "10GB-400K"),
        (11, 1, "15GB-500K"),
        (16, 1, "25GB-500K"),
        (1, 600_000, "50G-10M"),
        (50, 10_000_000, "50G-10M"),
    ],
)
def test_the_smallest_sufficient_overlay_template_is_used(gb: int, files: int, size: str) -> None:
    text = render_overlay_job(overlay("nyu-greene", "gpu", gb=gb, files=files))
    assert f'template="/scratch/work/public/overlay-fs-ext3/overlay-{size}.ext3.gz"' in text


def test_only_the_download_needs_a_network_and_the_script_names_the_host() -> None:
    site = reaching(profile("nyu-greene"), compute="no", download_node="gdtn")
    text = render_overlay_job(overlay("nyu-greene", "gpu", site=site))
    assert "after `bash FILE fetch` on gdtn (`ssh gdtn`): compute nodes have no network" in text
    assert "and this node has no network; first run on gdtn (ssh gdtn): bash FILE fetch" in text
    assert "(fetch)" not in text
    asked = render_overlay_job(overlay("nyu-greene", "gpu"))
    assert "run `bash FILE fetch` on gdtn (`ssh gdtn`)" in asked
    assert "(fetch)" in asked


def test_an_overlay_is_made_on_a_node_without_gpus_if_possible() -> None:
    text = render_overlay_job(overlay("nyu-torch", "h200"))
    assert "--constraint" not in text
    olivia = contained(profile("sigma2-olivia"), overlay="/o", setup="/ext3/env.sh", overlay_templates=TEMPLATES)
    cpus = dataclasses.replace(olivia.arch("accel"), gpu=None)  # no wheel for aarch64 uses a GPU
    asked = dataclasses.replace(overlay("sigma2-olivia", "accel", site=olivia, miniforge=RELEASES[0]), arch=cpus)
    assert "#SBATCH --partition=accel " in render_overlay_job(asked)
    assert "Linux-aarch64.sh" in render_overlay_job(asked)


TEMPLATES = (Template(gb=10, files=400_000, path="/t.gz"),)


@pytest.mark.parametrize(
    ("text", "registry", "repository", "tag", "stem"),
    [
        ("tensorflow/tensorflow", "registry-1.docker.io", "tensorflow/tensorflow", "latest", "tensorflow-latest"),
        ("ubuntu:22.04", "registry-1.docker.io", "library/ubuntu", "22.04", "ubuntu-22.04"),
        ("docker.io/a/b:c", "registry-1.docker.io", "a/b", "c", "b-c"),
        ("nvcr.io/nvidia/tensorflow:25.02", "nvcr.io", "nvidia/tensorflow", "25.02", "tensorflow-25.02"),
        ("localhost:5000/x/y:1", "localhost:5000", "x/y", "1", "y-1"),
        (f"a/b@sha256:{'c' * 64}", "registry-1.docker.io", "a/b", "latest", f"b-{'c' * 12}"),
    ],
)
def test_an_image_reference_is_parsed_as_registries_do_it(
    text: str, registry: str, repository: str, tag: str, stem: str
) -> None:
    found = parse_reference(f"docker://{text}")
    assert found is not None
    assert (found.registry, found.repository, found.tag, found.stem) == (registry, repository, tag, stem)
    assert parse_reference(text) is None


def test_the_verb_writes_the_script_of_the_site_and_that_of_own_packages(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("overlay", "--site", "nyu-greene", "--arch", "gpu")
    assert call("job", *words, "--gb", "12", "--json") == 0
    assert "overlay-15GB-500K" in envelope(capsys)["result"]["script"]
    (tmp_path / "my list.txt").write_text("pandas>=2 # tables\n")
    words = (*words, "--requirements", str(tmp_path / "my list.txt"))
    assert call("job", *words) == 0
    text = capsys.readouterr().out
    assert 'overlay="/scratch/$USER/tensorflow-example/my-list.ext3"' in text
    assert 'base="/scratch/$USER/tensorflow-example/tensorflow.ext3"' in text
    assert "overlay-2GB-100K" in text
    assert call("job", *words, "--overlay", "$SCRATCH/x.ext3", "--gb", "4") == 0
    text = capsys.readouterr().out
    assert 'overlay="$SCRATCH/x.ext3"' in text
    assert "overlay-5GB-200K" in text


# What cannot work


@pytest.mark.parametrize(
    "asked",
    [
        overlay("nyu-greene", "gpu", gb=60),
        overlay("nyu-greene", "gpu", files=20_000_000),
        overlay("nyu-greene", "gpu", time="soon"),
        overlay("nyu-greene", "gpu", cpus=64),
        overlay("nyu-greene", "gpu", miniforge=Miniforge(version="1", python="3.10", sha256={})),
        overlay("nyu-greene", "gpu", site=contained(profile("nyu-greene"), overlay_templates=())),
        overlay("nyu-greene", "gpu", site=reaching(profile("nyu-greene"), login="no", compute="no")),
        overlay("nyu-torch", "h200", account=None),
        overlay("alcf-polaris", "gpu"),
        overlay("sigma2-olivia", "accel"),
        image("nyu-torch", "h200"),
        image("alcf-polaris", "gpu"),
        image("nyu-torch", "h200", "docker://tensorflow/tensorflow:2.15.0"),
        image("nyu-torch", "cpu", "docker://Not A Name"),
        image("nyu-torch", "cpu", "docker://x/$(id)"),
        image("sigma2-olivia", "accel", site=reaching(profile("sigma2-olivia"), login="no", compute="no")),
        image("sigma2-olivia", "accel", site=contained(profile("sigma2-olivia"), command="shifter")),
    ],
)
def test_a_job_that_cannot_work_is_refused_with_a_hint(asked: OverlayJob | ImageJob, words: Words) -> None:
    with pytest.raises(ConfigError) as caught:
        render_overlay_job(asked) if isinstance(asked, OverlayJob) else render_image_job(asked)
    words("job", "\n".join(caught.value.to_lines()))


# Horovod in a container


HOROVOD = """\
import ctypes
{load}
mpi_built = lambda: {mpi}
nccl_built = lambda: {nccl}
"""
MPI = {"openmpi": "libmpi.so.40", "mpich": "libmpich.so.12"}


def asked_of(tmp_path: Path, text: str | None) -> subprocess.CompletedProcess[str]:
    """What Greene's job asks of the container's Horovod, of a stand-in with this text; None: there is none."""
    site = profile("nyu-greene")
    asked = UserJob(
        kind="horovod",
        site=site,
        arch=site.arch("gpu"),
        command="x",
        module="m/1",
        modulepath="/m",
        runtime="container",
        overlays=("/own.ext3",),
    )
    script = render_user_job(asked)
    program = script.partition("<<'PYTHON' || exit 2\n")[2].partition("\nPYTHON\n")[0]
    assert "hvd.mpi_built()" in program
    assert script.index("PYTHON") < script.index("srun ")
    if text is not None:
        (tmp_path / "horovod/tensorflow").mkdir(parents=True)
        (tmp_path / "horovod/__init__.py").write_text("")
        (tmp_path / "horovod/tensorflow/__init__.py").write_text(text)
    environ = {**os.environ, "PYTHONPATH": str(tmp_path)}
    words = [sys.executable, "-"]
    return subprocess.run(words, input=program, env=environ, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (None, "Horovod"),
        (HOROVOD.format(load="", mpi=0, nccl=0), "without MPI"),
        (HOROVOD.format(load="", mpi=1, nccl=0), "MPI"),
    ],
)
def test_a_job_stops_if_horovod_in_the_container_has_no_mpi(
    tmp_path: Path, text: str | None, said: str, words: Words
) -> None:
    done = asked_of(tmp_path, text)
    assert done.returncode == 1
    assert done.stderr.startswith("error: ")
    assert said in done.stderr
    words("job", done.stderr.splitlines()[0])


@pytest.mark.parametrize("family", ["openmpi", "mpich"])
def test_a_job_stops_if_the_mpi_of_the_container_is_not_the_launchers(tmp_path: Path, family: str) -> None:
    load = [sys.executable, "-c", f"import ctypes; ctypes.CDLL('{MPI[family]}')"]
    if subprocess.run(load, capture_output=True, check=False).returncode:
        pytest.skip(f"there is no {MPI[family]} here (`.ci/install` brings it)")
    done = asked_of(tmp_path, HOROVOD.format(load=f"ctypes.CDLL('{MPI[family]}')", mpi=1, nccl=0))
    if family == "openmpi":
        assert done.returncode == 0, done.stderr
        assert "Open MPI v" in done.stdout
        assert "without NCCL" in done.stderr
    else:
        assert done.returncode == 1
        assert "mpich (MPICH Version:" in done.stderr
        assert " openmpi" in done.stderr


# The image's script, run


class Registry(http.server.BaseHTTPRequestHandler):
    """A registry that gives a token to anybody and, with it, the digest of what `digests` names."""

    digests: ClassVar[dict[str, str]] = {}

    def do_HEAD(self) -> None:
        tag = self.path.rsplit("/", 1)[-1]
        if self.headers.get("Authorization") != "Bearer s3cret=":
            self.send_response(401)
            realm = 'Bearer realm="https://auth.test/token",service="registry.test",scope="repository:x:pull"'
            self.send_header("WWW-Authenticate", realm)
        elif "oci.image.index" not in str(self.headers.get("Accept")) or tag not in self.digests:
            self.send_response(404)
        else:
            self.send_response(200)
            self.send_header("Docker-Content-Digest", self.digests[tag])
        self.end_headers()

    def do_GET(self) -> None:
        asked = urllib.parse.parse_qs(urllib.parse.urlsplit(self.path).query)
        known = {"service": ["registry.test"], "scope": ["repository:tensorflow/tensorflow:pull"]}
        self.send_response(200 if asked == known else 403)
        self.end_headers()
        self.wfile.write(b'{"token":"s3cret=","access_token":"s3cret=","expires_in":300}')


@pytest.fixture
def registry(tmp_path: Path) -> Iterator[dict[str, str]]:
    """The digests of a registry by TLS, and a `.curlrc` by which curl takes it for every host."""
    if shutil.which("openssl") is None or shutil.which("curl") is None:
        pytest.skip("there is no openssl or no curl here (`.ci/install` brings them)")
    key, certificate = tmp_path / "key.pem", tmp_path / "cert.pem"
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"),
            *("-subj", "/CN=registry-1.docker.io"),
            *("-addext", "subjectAltName=DNS:registry-1.docker.io,DNS:auth.test"),
            *("-keyout", str(key), "-out", str(certificate)),
        ],
        check=True,
        capture_output=True,
    )
    Registry.digests = {}
    with serving(Registry, certificate, key) as port:
        (tmp_path / ".curlrc").write_text(
            f'connect-to = "::127.0.0.1:{port}"\ncacert = "{certificate}"\nnoproxy = "*"\n'
        )
        yield Registry.digests


TENSORFLOW = ("tensorflow", "class test:\n  is_built_with_cuda = lambda: {}\n")
PYTORCH = ("torch", "class backends:\n  class cuda:\n    is_built = lambda: {}\n")


def pulled(tmp_path: Path, built: str, framework: tuple[str, str] = TENSORFLOW) -> subprocess.CompletedProcess[str]:
    """Run the image's script of Torch with the stand-in, in whose image the framework is this."""
    site = profile("nyu-torch")
    site = dataclasses.replace(site, files=dataclasses.replace(site.files, scratch="$SCRATCH"))
    place = container_program("apptainer", tmp_path)
    # The stand-in's image is this machine: its `python` is put where an image has it.
    home = tmp_path / "home"
    home.mkdir(exist_ok=True)
    (tmp_path / f"{framework[0]}.py").write_text(framework[1].format(built))
    text = render_image_job(image("nyu-torch", "h200", GPU_IMAGE, site=site))
    text = text.replace(" python - ", f" {sys.executable} - ")
    (tmp_path / "image.sh").write_text(text)
    environ = {
        "PATH": f"{place}:{os.environ['PATH']}",
        "HOME": str(home),
        "SCRATCH": str(tmp_path / "scratch"),
        "CURL_HOME": str(tmp_path),
        "PYTHONPATH": str(tmp_path),
    }
    return subprocess.run(["bash", "image.sh"], cwd=tmp_path, env=environ, capture_output=True, text=True, check=False)


def test_an_image_is_pulled_once_by_its_digest_without_caches_in_home(registry: dict[str, str], tmp_path: Path) -> None:
    if reason := no_namespaces():
        pytest.skip(reason)
    first, second = "sha256:" + "1" * 64, "sha256:" + "2" * 64
    registry["2.15.0-gpu"] = first
    done = pulled(tmp_path, "True")
    assert done.returncode == 0, done.stderr
    images = tmp_path / "scratch/images"
    file, link = images / "tensorflow-2.15.0-gpu-111111111111.sif", images / "tensorflow-2.15.0-gpu.sif"
    assert file.read_text() == f"docker://tensorflow/tensorflow@{first} amd64\n"
    assert link.resolve() == file
    assert Path(f"{file}.txt").read_text().startswith(f"docker://tensorflow/tensorflow@{first}\n# was :2.15.0-gpu\n")
    assert (images / "cache/cache").is_dir()
    assert list((tmp_path / "home").iterdir()) == []
    before = file.stat().st_mtime_ns
    assert "already pulled" in pulled(tmp_path, "True").stdout
    assert file.stat().st_mtime_ns == before
    registry["2.15.0-gpu"] = second
    assert pulled(tmp_path, "True").returncode == 0
    assert link.resolve().name == "tensorflow-2.15.0-gpu-222222222222.sif"
    assert file.is_file(), "jobs may be running on it"


@pytest.mark.parametrize("framework", [TENSORFLOW, PYTORCH], ids=lambda one: one[0])
def test_a_pulled_image_without_gpu_support_is_refused_and_removed(
    framework: tuple[str, str], registry: dict[str, str], tmp_path: Path, words: Words
) -> None:
    if reason := no_namespaces():
        pytest.skip(reason)
    registry["2.15.0-gpu"] = "sha256:" + "1" * 64
    done = pulled(tmp_path, "False", framework)
    assert done.returncode == 2
    assert "GPU" in done.stderr
    words("job", "\n".join(line for line in done.stderr.splitlines() if line.startswith("error: ")))
    assert list((tmp_path / "scratch/images").glob("*.sif*")) == []
    assert pulled(tmp_path, "True", framework).returncode == 0


def test_a_tag_that_the_registry_does_not_have_is_reported(registry: dict[str, str], tmp_path: Path) -> None:
    done = pulled(tmp_path, "True")
    assert done.returncode != 0
    assert "404" in done.stderr
    assert not (tmp_path / "scratch/images/tensorflow-2.15.0-gpu.sif").exists()


GREENE = ("--site", "nyu-greene", "--arch", "gpu", "--account", "a", "--runtime", "container")


def test_an_overlay_that_a_site_has_ready_may_have_horovod() -> None:
    site = contained(profile("nyu-greene"), overlay_templates=())
    asked = UserJob(kind="horovod", site=site, arch=site.arch("gpu"), command="x", module="m/1", modulepath="/m")
    assert 'overlay="/scratch/' in render_user_job(asked)


def test_own_overlays_are_mounted_over_the_sites(capsys: pytest.CaptureFixture[str]) -> None:
    assert call("job", "single", *GREENE, "--overlay", "$SCRATCH/own.ext3", "--overlay", "/two.ext3") == 0
    text = capsys.readouterr().out
    assert '--overlay "$overlay:ro" --overlay "$own_overlay_1:ro" --overlay "$own_overlay_2:ro"' in text
    assert 'own_overlay_1="$SCRATCH/own.ext3"' in text
    assert '[ -f "$own_overlay_2" ] || stop "there is no overlay $own_overlay_2"' in text


def test_an_image_with_its_own_packages_needs_no_overlay(capsys: pytest.CaptureFixture[str]) -> None:
    image = ("--image", "docker://horovod/horovod:0.28.1", "--no-overlay")
    assert call("job", "horovod", *GREENE, *image) == 0
    text = capsys.readouterr().out
    assert "overlay" not in text.partition("set -euo pipefail")[2]
    assert "env.sh" not in text
    assert call("job", "horovod", *GREENE, *image, "--overlay", "/own.ext3") == 0
    text = capsys.readouterr().out
    assert '--overlay "$own_overlay_1:ro"' in text
    assert "env.sh" in text


REFUSED = {
    "bind-missing": ("exec", "--bind", "/nosuch", "image.sif", "true"),
    "exec-no-image": ("exec", "nosuch.sif", "true"),
    "no-arguments": ("exec",),
    "overlay-missing": ("exec", "--overlay", "nosuch.img", "image.sif", "true"),
    "overlay-not-an-image": ("exec", "--overlay", "notimage.img", "image.sif", "true"),
    "pull-exists": ("pull", "notimage.sif", "docker://debian:12"),
    "two-writable": ("exec", "--overlay", "a.img", "--overlay", "b.img", "image.sif", "true"),
    "unknown-flag": ("exec", "--nosuch", "image.sif", "true"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_the_stand_in_refuses_what_apptainer_refuses_in_its_words(name: str, tmp_path: Path) -> None:
    """Recorded from the real program, 1.4.5."""
    place = container_program("apptainer", tmp_path)
    for file in ("image.sif", "notimage.img", "notimage.sif"):
        (tmp_path / file).write_text("hello\n")
    for file in ("a.img", "b.img"):
        template(tmp_path / f"{file}.gz")
        (tmp_path / file).write_bytes(gzip.decompress((tmp_path / f"{file}.gz").read_bytes()))
    done = subprocess.run(
        [str(place / "apptainer"), *REFUSED[name]], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    answer = (RECORDED / "apptainer-1.4.5" / f"{name}.txt").read_text(encoding="utf-8")
    (said,) = [line for line in answer.splitlines() if line.startswith(("FATAL", "Error"))]
    assert done.stderr.strip() == said
    assert f"exit {done.returncode}" in answer


@pytest.mark.parametrize(("target", "capability"), [("neoverse_v2", "90"), ("sapphirerapids", "120")])
def test_an_overlay_for_gpus_that_the_wheels_have_no_code_for_is_refused(
    target: str, capability: str, words: Words
) -> None:
    asked = overlay("nyu-torch", "h200")
    assert asked.arch.gpu is not None
    gpu = dataclasses.replace(asked.arch.gpu, capabilities=(capability,))
    arch = dataclasses.replace(asked.arch, target=target, gpu=gpu)
    with pytest.raises(ConfigError) as caught:
        make_overlay_script(dataclasses.replace(asked, arch=arch, miniforge=RELEASES[0]), "x86_64")
    words("job", "\n".join(caught.value.to_lines()))
