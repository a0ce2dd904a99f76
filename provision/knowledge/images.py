"""Container images: how an image is named in a registry, and which images have no GPU support.

Sources: the page of hub.docker.com/r/tensorflow/tensorflow, and L-Lamont/ml-dist, whose readers met the fault. The
names follow the OCI distribution specification; if no registry is named, it is Docker Hub.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

DOCKER = "docker://"
# Unless its tag contains `gpu`, this image has no CUDA.
CPU_IMAGE = re.compile(r"(?:docker://)?(?:docker\.io/)?tensorflow/tensorflow(?::(?P<tag>[^@]*))?(?:@.*)?")
REFERENCE = re.compile(
    r"(?:(?P<registry>[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+(?::[0-9]+)?|localhost(?::[0-9]+)?)/)?"
    r"(?P<repository>[a-z0-9]+(?:[._-]+[a-z0-9]+)*(?:/[a-z0-9]+(?:[._-]+[a-z0-9]+)*)*)"
    r"(?::(?P<tag>[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}))?(?:@(?P<digest>sha256:[0-9a-f]{64}))?"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """An image in a registry. `registry` is a host that answers to https; `digest` is None if the reference has none."""

    registry: str
    repository: str
    tag: str
    digest: str | None
    plain: str
    """The reference without tag and digest, as `docker://` takes it."""

    @property
    def stem(self) -> str:
        """The name of the image's file, as far as it is known before the registry is asked."""
        name = self.repository.rsplit("/", 1)[-1]
        return f"{name}-{self.digest[7:19]}" if self.digest else f"{name}-{self.tag}"


def parse_reference(image: str) -> Reference | None:
    """The reference in `docker://…`; None if the text is anything else."""
    match = REFERENCE.fullmatch(image.removeprefix(DOCKER)) if image.startswith(DOCKER) else None
    if match is None:
        return None
    registry, repository = match["registry"], match["repository"]
    plain = f"{registry}/{repository}" if registry else repository
    if registry in (None, "docker.io"):
        registry = "registry-1.docker.io"
        repository = repository if "/" in repository else f"library/{repository}"
    return Reference(
        registry=registry, repository=repository, tag=match["tag"] or "latest", digest=match["digest"], plain=plain
    )


def sees_no_gpu(image: str) -> bool:
    """Whether this is an official image of TensorFlow that is built for CPUs only."""
    match = CPU_IMAGE.fullmatch(image)
    return match is not None and "gpu" not in (match["tag"] or "")
