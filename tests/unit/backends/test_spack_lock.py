"""The judge of spack.lock: what Spack would install without an error."""

from __future__ import annotations

import copy
import dataclasses
import json
from typing import Any

import pytest

from golden_files import Words
from provision.backends.spack.lock_checks import judge_lock
from provision.errors import ConfigError
from provision.model.operation import CheckSpackLock

EXPECTED = CheckSpackLock(
    path="/env/spack.lock",
    root_specs=("py-horovod@0.28.1",),
    targets=(("py-pip", "x86_64"), ("py-tensorflow", "x86_64"), ("py-horovod", "haswell")),
    externals=(("python", "/usr", "x86_64"), ("mpich", "/site/mpich", "haswell")),
)


def node(name: str, target: str, **external: object) -> dict[str, Any]:
    """A package of a lock (format 6 of Spack 1.2)."""
    arch = {"platform": "linux", "platform_os": "debian12", "target": {"name": target, "vendor": "Intel"}}
    return {"name": name, "version": "1", "arch": arch, **({"external": external} if external else {})}


LOCK: dict[str, Any] = {
    "roots": [{"hash": "h3", "spec": "py-horovod@0.28.1"}],
    "concrete_specs": {
        "h1": node("py-pip", "x86_64"),
        "h2": node("py-tensorflow", "x86_64"),
        "h3": node("py-horovod", "haswell"),
        "h4": node("python", "x86_64", path="/usr", module=None),
        "h5": node("mpich", "haswell", path="/site/mpich", module=None),
        "h6": node("glibc", "haswell", path="/usr", module=None),
    },
}


def messages(lock: dict[str, Any], exists: bool = True) -> list[str]:
    """What the judge says."""
    return [fault.message for fault in judge_lock(json.dumps(lock), EXPECTED, lambda _: exists)]


def changed(spec: str, **values: object) -> dict[str, Any]:
    """The lock with another value in one package."""
    lock = copy.deepcopy(LOCK)
    lock["concrete_specs"][spec] |= values
    return lock


def test_a_lock_that_fits_has_no_problem() -> None:
    assert messages(LOCK) == []


# Traps: without a prefix MPICC is None/bin/mpicc; without a target an external has the host's; an edited spec is not noticed by
# `--only-concrete`; a compiler of the site would be built for hours.
FAULTS: dict[str, dict[str, Any]] = {
    "no prefix": changed("h5", external={"path": None}),
    "an empty prefix": changed("h5", external={"path": ""}),
    "the word for a prefix": changed("h5", external={"path": "/PREFIX-OF-MPICH"}),
    "another prefix": changed("h5", external={"path": "/usr"}),
    "the target of the host": changed("h5", arch={"target": {"name": "x86_64_v4"}}),
    "another target": changed("h3", arch={"target": "zen3"}),
    "another spec": {**LOCK, "roots": [{"hash": "h3", "spec": "py-horovod@0.27.0"}]},
    "built, not the site's": changed("h5", external=None),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_lock_with_one_fault_has_one_problem(fault: str, words: Words) -> None:
    (message,) = messages(FAULTS[fault])
    words("spack", message)


def test_a_prefix_that_does_not_exist_is_refused(words: Words) -> None:
    (message,) = [message for message in messages(LOCK, exists=False) if "`/site/mpich`" in message]
    assert "`mpich`" in message
    words("spack", message)


@pytest.mark.parametrize(
    "lock", [{}, {"roots": 1}, {"roots": [], "concrete_specs": {"a": {}}}, {"roots": [], "concrete_specs": []}]
)
def test_what_is_not_a_lock_is_an_error(lock: dict[str, Any], words: Words) -> None:
    with pytest.raises(ConfigError) as caught:
        messages(lock)
    assert "spack.lock" in caught.value.message
    words("spack", caught.value.message)


def test_a_package_that_a_build_cache_lacks_is_named_before_anything_is_installed(words: Words) -> None:
    """The others would be unpacked first, for half a minute."""
    cached = dataclasses.replace(EXPECTED, caches=("/given", "/own"))
    there = {
        "/own/v3/manifests/spec/py-tensorflow/py-tensorflow-1-h2.spec.manifest.json",
        "/usr",
        "/site/mpich",
    }
    (fault,) = judge_lock(json.dumps(LOCK), cached, there.__contains__)
    assert "`py-horovod`" in fault.message
    assert fault.evidence[:2] == ("searched: /given", "searched: /own")
    words("spack", f"{fault.message}\n{fault.hint}")
    there.add("/own/v3/manifests/spec/py-horovod/py-horovod-1-h3.spec.manifest.json")
    assert judge_lock(json.dumps(LOCK), cached, there.__contains__) == ()
