"""The judge of spack.lock: what Spack would install without a word, although it cannot be right. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from provision.backends.spack.externals import UNKNOWN_PREFIX
from provision.errors import ConfigError
from provision.model.operation import CheckSpackLock
from provision.model.problem import Problem

# Below a build cache, for each package a folder with a file for each build (`url_buildcache.py`, layout 3).
SPECS = "v3/manifests/spec"
# What is not installed from a build cache, because only building needs it.
BUILDS_ONLY = "py-pip"


def judge_lock(lock: Mapping[str, Any], expected: CheckSpackLock, exists: Callable[[str], bool]) -> tuple[Problem, ...]:
    """What is wrong with a lock; `exists` answers whether there is something at a path.

    Raises:
        ConfigError: it is not a lock of Spack.
    """
    try:
        roots = [str(root["spec"]) for root in lock["roots"]]
        nodes = {str(node["name"]): node for node in lock["concrete_specs"].values()}
        files = {
            str(node["name"]): f"{node['name']}/{node['name']}-{node['version']}-{key}.spec.manifest.json"
            for key, node in lock["concrete_specs"].items()
        }
        targets = {name: _target(node) for name, node in nodes.items()}
    except (KeyError, TypeError, AttributeError) as error:
        raise ConfigError(
            f"`{expected.path}` is not a lock of Spack", evidence=[repr(error)], hint="build again"
        ) from error
    problems = []
    if roots != [expected.root_spec]:
        problems.append(
            _problem(
                expected,
                "the lock does not belong to this spack.yaml",
                (f"spack.yaml asks for: {expected.root_spec}", f"the lock has: {', '.join(roots)}"),
            )
        )
    externals = {name: (prefix, target) for name, prefix, target in expected.externals}
    for name, node in sorted(nodes.items()):
        external = node.get("external")
        if external is None:
            wanted = dict(expected.targets).get(name)
            if wanted is None:
                problems.append(_problem(expected, f"Spack would build `{name}`, which the site should provide", ()))
            elif targets[name] != wanted:
                problems.append(
                    _problem(expected, f"`{name}` would be built for `{targets[name]}`, not for `{wanted}`", ())
                )
            elif (
                name != BUILDS_ONLY
                and expected.caches
                and not any(exists(f"{cache}/{SPECS}/{files[name]}") for cache in expected.caches)
            ):
                problems.append(_not_cached(expected, name, files[name]))
            continue
        prefix = external.get("path") if isinstance(external, Mapping) else None
        if not prefix or str(prefix).startswith(UNKNOWN_PREFIX):
            problems.append(
                _problem(
                    expected,
                    f"the external `{name}` has no prefix",
                    ("Spack would build with paths such as `None/bin/mpicc`, without an error",),
                )
            )
        elif name in externals and str(prefix) != externals[name][0]:
            problems.append(
                _problem(expected, f"the external `{name}` is at `{prefix}`, not at `{externals[name][0]}`", ())
            )
        elif not exists(str(prefix)):
            problems.append(_problem(expected, f"the prefix `{prefix}` of the external `{name}` does not exist", ()))
        if name in externals and targets[name] != externals[name][1]:
            problems.append(
                _problem(
                    expected,
                    f"the external `{name}` is for `{targets[name]}`, not for `{externals[name][1]}`",
                    ("an external without a target gets that of the machine that solves",),
                )
            )
    return tuple(problems)


def _not_cached(expected: CheckSpackLock, name: str, file: str) -> Problem:
    return Problem(
        kind="missing",
        subject="cache",
        message=f"the build cache has no `{name}` for this environment",
        evidence=(*(f"searched: {cache}" for cache in expected.caches), f"missing: {file}"),
        hint="prove the same stack and arch with the same modules at the other root first; or run `provision spack setup` "
        "again without `--cache`, then packages are built",
    )


def _target(node: Mapping[str, Any]) -> str:
    target = node["arch"]["target"]
    return str(target["name"] if isinstance(target, Mapping) else target)


def _problem(expected: CheckSpackLock, message: str, evidence: tuple[str, ...]) -> Problem:
    return Problem(
        kind="mismatch",
        subject="lock",
        message=message,
        evidence=(*evidence, f"lock: {expected.path}"),
        hint="run the same command again: it solves again",
    )
