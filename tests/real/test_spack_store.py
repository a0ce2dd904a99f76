"""Spack's store and build caches, with a real Spack and small packages: the tool from its plan to the published module.

The packages are those of `parts/tiny.py` in place of TensorFlow, without Horovod; Spack, pip, the generated packages, the locks,
the store and the build cache are real. What takes minutes with TensorFlow takes seconds here.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from parts.spack import RealSpack
from parts.tiny import STACK, TENSORFLOW, TinySite, make_site

pytestmark = pytest.mark.real

WORDS = ("--stack", "tiny", "--backend", "spack")


@pytest.fixture(scope="module")
def site(spack: RealSpack, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TinySite]:
    """A root with Spack set up, everything fetched, and the environment of profile `one` built."""
    folder = tmp_path_factory.mktemp("store")
    site = make_site(folder / "tiny")
    head, _, rest = STACK.partition("[horovod]")
    (site.folder / "config" / "stacks" / "tiny.toml").write_text(f"{head}[environ]{rest.partition('[environ]')[2]}")
    good(site, "spack", "setup", str(spack.checkout), *spack.words, "--site", "one", **index())
    good(site, "fetch", "--site", "one", *WORDS, **index())
    good(site, "build", "--site", "one", *WORDS)
    yield site
    shutil.rmtree(folder, ignore_errors=True)


def index() -> dict[str, str]:
    """How this machine reaches a package index."""
    return {name: value for name, value in os.environ.items() if name.startswith(("PIP_", "UV_", "SSL_", "http"))}


def good(site: TinySite, *words: str, **environ: str) -> str:
    """Run the tool; it must end well. What was said."""
    done = site.good(*words, **environ)
    return done.stdout + done.stderr


def log_of(root: Path) -> str:
    """The newest log of the step `install`."""
    return max(root.glob("logs/*/*/install.log"), key=lambda path: path.stat().st_mtime).read_text()


def other_root(site: TinySite, spack: RealSpack, root: Path, cache: Path) -> str:
    """Another root, which takes its packages from this cache: the name of its profile."""
    site.write_profile(root.name, root)
    words = ("--cache", str(cache), "--site", root.name)
    good(site, "spack", "setup", str(spack.checkout), *spack.words, *words, **index())
    return root.name


def test_what_spack_built_is_published_and_checked_like_any_other(site: TinySite) -> None:
    assert "Executing phase: 'install'" in log_of(site.root)
    rows = json.loads(good(site, "list", "--site", "one", "--json"))["result"]["environments"]
    assert [row["state"] for row in rows] == ["published"]
    good(site, "verify", f"tensorflow/{TENSORFLOW}", "--site", "one")
    assert "nothing to do" in good(site, "build", "--site", "one", *WORDS)


def test_a_second_environment_reuses_what_is_the_same(site: TinySite) -> None:
    """Another variable in the modulefile is another environment, of the same packages."""
    before = sorted(site.root.glob("envs/*/*/*"))
    good(site, "build", "--site", "two", *WORDS)
    assert "Executing phase" not in log_of(site.root)
    assert len(sorted(site.root.glob("envs/*/*/*"))) == len(before) + 1
    good(site, "verify", before[0].name.rpartition("-")[2], "--site", "one")


def test_another_root_with_a_longer_path_installs_from_the_build_cache(site: TinySite, spack: RealSpack) -> None:
    """The packages were padded, so every path in them fits; nothing points to the first root."""
    root = site.folder.parent / "a-longer-path-than-that-of-the-first-root"
    name = other_root(site, spack, root, site.root / "cache" / "spack" / "buildcache")
    assert "2 packages from file://" in good(site, "plan", "--site", name, *WORDS)
    good(site, "build", "--site", name, *WORDS)
    log = log_of(root)
    assert "Executing phase" not in log
    assert log.count("Extracting py-tensorflow") == 1  # and not py-pip, which only builds
    (prefix,) = root.glob("envs/*/*/*")
    found = subprocess.run(
        [prefix / "bin" / "python", "-c", "import sys, tensorflow; print(tensorflow.__file__)"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert str(root) in os.path.realpath(found.strip())
    # Bytecode names its sources for tracebacks; Spack does not change it.
    store = root / "spack" / "store"
    files = [
        path for path in store.rglob("*") if path.is_file() and ".spack" not in path.parts and path.suffix != ".pyc"
    ]
    assert [path for path in files if str(site.root).encode() in path.read_bytes()] == []


def test_a_build_cache_that_lacks_a_package_is_named_before_anything_is_installed(
    site: TinySite, spack: RealSpack, tmp_path: Path
) -> None:
    cache = tmp_path / "buildcache"
    shutil.copytree(site.root / "cache" / "spack" / "buildcache", cache)
    for manifest in cache.rglob("py-tensorflow-*.spec.manifest.json"):
        manifest.unlink()
    root = tmp_path / "lacking"
    done = site.run("build", "--site", other_root(site, spack, root, cache), *WORDS)
    assert done.returncode == 1
    assert "the build cache has no `py-tensorflow` for this environment" in done.stderr
    assert not list(root.rglob("py-pip-24*"))


def test_a_push_that_fails_is_a_warning_and_the_environment_is_published(site: TinySite) -> None:
    """A file is in the way of the build cache."""
    cache = site.root / "cache" / "spack" / "buildcache"
    aside = cache.rename(cache.with_name("aside"))
    cache.write_text("")
    try:
        said = good(site, "build", "--site", "one", *WORDS, "--rebuild")
    finally:
        cache.unlink(missing_ok=True)
        aside.rename(cache)
    assert "cache: warning: `spack` ended with code" in said
    assert "published" in said


def test_a_damaged_package_is_found_replaced_by_the_hint_and_pruned_at_the_end(
    site: TinySite, spack: RealSpack, tmp_path: Path
) -> None:
    """The command of the hint works when it is pasted; what no environment uses any more is uninstalled by Spack."""
    root = tmp_path / "pruned"
    name = other_root(site, spack, root, site.root / "cache" / "spack" / "buildcache")
    good(site, "build", "--site", name, *WORDS)
    (prefix,) = root.glob("envs/*/*/*")
    damaged = next(prefix.glob("lib/python*/site-packages/tensorflow/part1.py")).resolve()
    assert (root / "spack" / "store") in damaged.parents
    damaged.write_text("value = 2\n" * 50)
    done = site.run("verify", "--site", name, "--all", "--json")
    assert done.returncode == 1
    (difference,) = json.loads(done.stdout)["result"]["environments"][0]["differences"]
    assert (difference["subject"], difference["package"]) == (str(damaged), "tensorflow_cpu")
    command = difference["hint"].split("`")[1]
    pasted = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert pasted.returncode == 0, pasted.stdout + pasted.stderr
    assert not damaged.exists()
    good(site, "build", "--site", name, *WORDS)  # it is broken now, so this builds it again beside it
    packages = sorted(path.parent for path in (root / "spack" / "store").rglob(".spack/spec.json"))
    assert [path.parent.name.startswith("py-tensorflow") for path in packages] == [True]
    environment = json.loads(good(site, "list", "--site", name, "--json"))["result"]["environments"][-1]["environment"]
    good(site, "unpublish", "--site", name, environment)
    said = good(site, "prune", "--site", name, "--older", "0", "--keep", "0", "--generations", "0", "--yes")
    assert "no environment uses this package in Spack's store" in said
    assert list((root / "spack" / "store").rglob(".spack/spec.json")) == []
