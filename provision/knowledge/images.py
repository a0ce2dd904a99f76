"""What is known of container images: which see no GPU.

Source: the page of hub.docker.com/r/tensorflow/tensorflow, and L-Lamont/ml-dist, whose readers ran into it.
"""

from __future__ import annotations

import re

# Without a tag, or with one that does not say so, the image has no CUDA.
CPU_IMAGE = re.compile(r"(?:docker://)?(?:docker\.io/)?tensorflow/tensorflow(?::(?P<tag>[^@]*))?(?:@.*)?")


def sees_no_gpu(image: str) -> bool:
    """Whether this is an image of TensorFlow's own that is built for CPUs."""
    found = CPU_IMAGE.fullmatch(image)
    return found is not None and "gpu" not in (found["tag"] or "")
