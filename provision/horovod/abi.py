"""The key of a compiled wheel: it covers everything that decides whether the wheel may be reused, and nothing else."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence

from provision.model.facts import GpuFacts
from provision.model.lock import Pin
from provision.model.patch import Patch


def abi(
    *,
    source: Pin,
    python_tag: str,
    compiler: str,
    mpi: str,
    environ: Mapping[str, str],
    toolchain: str,
    frameworks: Sequence[Pin] = (),
    patches: Sequence[Patch] = (),
    gpu: GpuFacts | None = None,
) -> dict[str, object]:
    """Everything that decides a wheel's ABI, as data: it is stored beside the wheel and hashed for its key.

    The exact version of a framework counts, not only its minor version: with another patch level Horovod only warns,
    and loads. `frameworks` is empty for a package that is not compiled against one.
    """
    return {
        "source": [source.name, source.version, *source.hashes],
        **(
            {"framework": [word for one in frameworks for word in (one.name, one.version, *one.hashes)]}
            if frameworks
            else {}
        ),
        "python": python_tag,
        "compiler": compiler,
        "mpi": mpi,
        "environ": dict(sorted(environ.items())),
        "toolchain": toolchain,
        "patches": [f"{patch.name} sha256:{patch.sha256}" for patch in patches],
        # `environ` already holds the compute capabilities and how NCCL is linked.
        **({"cuda": gpu.cuda_version, "nccl": f"{gpu.nccl_version} {gpu.nccl_library}"} if gpu else {}),
    }


def key(decisive: Mapping[str, object]) -> str:
    """The key: 16 hexadecimal digits of the sha256 over the canonical JSON."""
    return hashlib.sha256(json.dumps(decisive, sort_keys=True).encode()).hexdigest()[:16]
