"""The judge of spack.lock: what Spack would install without a word, although it cannot be right. Pure."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from provision.backends.spack.externals import UNKNOWN_PREFIX
from provision.errors import ConfigError, Fault
from provision.model.operation import CheckSpackLock

# Below a build cache, for each package a folder with a file for each build (`url_buildcache.py`, layout 3).
SPECS = "v3/manifests/spec"
# What is not installed from a build cache, because only building needs it.
BUILDS_ONLY = "py-pip"


def judge_lock(text: str, expected: CheckSpackLock, exists: Callable[[str], bool]) -> tuple[Fault, ...]:
    """What is wrong with the text of a lock; `exists` answers whether there is something at a path.

    Raises:
        ConfigError: it is not a lock of Spack.
    """
    try:
        lock = json.loads(text)
        roots = [str(root["spec"]) for root in lock["roots"]]
        nodes = {str(node["name"]): node for node in lock["concrete_specs"].values()}
        files = {
            str(node["name"]): f"{node['name']}/{node['name']}-{node['version']}-{key}.spec.manifest.json"
            for key, node in lock["concrete_specs"].items()
        }
        targets = {name: _target(node) for name, node in nodes.items()}
    except (ValueError, RecursionError, KeyError, TypeError, AttributeError) as error:
        raise ConfigError(
            f"`{expected.path}` is not a lock of Spack", evidence=[repr(error)], hint="build again", kind="invalid-file"
        ) from error
    found = [
        Fault(
            "mismatch",
            "lock",
            message,
            evidence=(*evidence, f"lock: {expected.path}"),
            hint="run the same command again: it solves again",
        )
        for message, *evidence in _faults(expected, roots, nodes, targets, exists)
    ]
    fitting = [name for name, target in expected.targets if target == targets.get(name) and name != BUILDS_ONLY]
    for name in sorted(fitting if expected.caches else ()):
        built = nodes[name].get("external") is None
        if built and not any(exists(f"{cache}/{SPECS}/{files[name]}") for cache in expected.caches):
            found.append(
                Fault(
                    "missing",
                    "cache",
                    f"the build cache has no `{name}` for this environment",
                    evidence=(*(f"searched: {cache}" for cache in expected.caches), f"missing: {files[name]}"),
                    hint="prove the same stack and arch with the same modules at the other root first; or run "
                    "`provision spack setup` again without `--cache`, then packages are built",
                )
            )
    return tuple(found)


def _faults(
    expected: CheckSpackLock,
    roots: list[str],
    nodes: Mapping[str, Mapping[str, Any]],
    targets: Mapping[str, str],
    exists: Callable[[str], bool],
) -> Iterator[tuple[str, ...]]:
    """The message of each fault, with its evidence."""
    if sorted(roots) != sorted(expected.root_specs):
        asked = f"spack.yaml asks for: {', '.join(expected.root_specs)}"
        yield "the lock does not belong to this spack.yaml", asked, f"the lock has: {', '.join(roots)}"
    externals = {name: (prefix, target) for name, prefix, target in expected.externals}
    for name, node in sorted(nodes.items()):
        external, target = node.get("external"), targets[name]
        if external is None:
            wanted = dict(expected.targets).get(name)
            if wanted is None:
                yield (f"Spack would build `{name}`, which the site should provide",)
            elif target != wanted:
                yield (f"`{name}` would be built for `{target}`, not for `{wanted}`",)
            continue
        prefix = str(external.get("path") or "") if isinstance(external, Mapping) else ""
        known_prefix, known_target = externals.get(name, (prefix, target))
        if not prefix or prefix.startswith(UNKNOWN_PREFIX):
            why = "Spack would build with paths such as `None/bin/mpicc`, without an error"
            yield f"the external `{name}` has no prefix", why
        elif prefix != known_prefix:
            yield (f"the external `{name}` is at `{prefix}`, not at `{known_prefix}`",)
        elif not exists(prefix):
            yield (f"the prefix `{prefix}` of the external `{name}` does not exist",)
        if target != known_target:
            why = "an external without a target gets that of the machine that solves"
            yield f"the external `{name}` is for `{target}`, not for `{known_target}`", why


def _target(node: Mapping[str, Any]) -> str:
    target = node["arch"]["target"]
    return str(target["name"] if isinstance(target, Mapping) else target)
