"""What is known of container images: how one is named in a registry, and which see no GPU.

Sources: the page of hub.docker.com/r/tensorflow/tensorflow, and L-Lamont/ml-dist, whose readers ran into it; the names are
those of the OCI distribution specification, with Docker Hub where no registry is named.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

DOCKER = "docker://"
# Without a tag, or with one that does not say so, the image has no CUDA.
CPU_IMAGE = re.compile(r"(?:docker://)?(?:docker\.io/)?tensorflow/tensorflow(?::(?P<tag>[^@]*))?(?:@.*)?")
REFERENCE = re.compile(
    r"(?:(?P<registry>[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+(?::\d+)?|localhost(?::\d+)?)/)?"
    r"(?P<repository>[a-z0-9]+(?:[._-]+[a-z0-9]+)*(?:/[a-z0-9]+(?:[._-]+[a-z0-9]+)*)*)"
    r"(?::(?P<tag>\w[\w.-]{0,127}))?(?:@(?P<digest>sha256:[0-9a-f]{64}))?"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """An image in a registry. `registry` answers to https; `digest` is that of the reference, None where it has none."""

    registry: str
    repository: str
    tag: str
    digest: str | None
    plain: str
    """The reference without tag and digest, as `docker://` takes it."""

    @property
    def stem(self) -> str:
        """The name of its file, as far as it is known before the registry is asked."""
        name = self.repository.rsplit("/", 1)[-1]
        return f"{name}-{self.digest[7:19]}" if self.digest else f"{name}-{self.tag}"


def parse_reference(image: str) -> Reference | None:
    """The reference that `docker://…` is, None for anything else."""
    found = REFERENCE.fullmatch(image.removeprefix(DOCKER)) if image.startswith(DOCKER) else None
    if found is None:
        return None
    registry, repository = found["registry"], found["repository"]
    plain = f"{registry}/{repository}" if registry else repository
    if registry in (None, "docker.io"):
        registry = "registry-1.docker.io"
        repository = repository if "/" in repository else f"library/{repository}"
    return Reference(
        registry=registry, repository=repository, tag=found["tag"] or "latest", digest=found["digest"], plain=plain
    )


def sees_no_gpu(image: str) -> bool:
    """Whether this is an image of TensorFlow's own that is built for CPUs."""
    found = CPU_IMAGE.fullmatch(image)
    return found is not None and "gpu" not in (found["tag"] or "")
