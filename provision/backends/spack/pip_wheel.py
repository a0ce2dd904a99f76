"""The pip with which Spack installs the wheels of a lock, and which Pythons it serves. Pure."""

from __future__ import annotations

from provision.errors import Fault, raise_faults
from provision.model.request import Request

# The last pip that serves Python 3.7; it serves Python 3.13 too. Python 3.6, which two stacks allow, is refused.
PIP_VERSION = "24.0"
OLDEST_PYTHON = (3, 7)
PIP_SHA256 = "ba0d021a166865d2265246961bec0152ff124de910c5cc39f1156ce3fa7c69dc"
PIP_WHEEL = f"pip-{PIP_VERSION}-py3-none-any.whl"


def refuse_old_python(request: Request) -> None:
    """Refuse a Python that the pip of the generated packages does not serve, before anything is downloaded or solved.

    Raises:
        PlanError: the Python is too old.
    """
    if tuple(int(part) for part in request.minor.split(".")) >= OLDEST_PYTHON:
        return
    oldest = ".".join(map(str, OLDEST_PYTHON))
    site, arch, stack = request.site, request.arch, request.stack
    newer = [minor for minor in stack.pythons if tuple(map(int, minor.split("."))) >= OLDEST_PYTHON]
    venv = f"`provision build --site {site.typed} --arch {arch.name} --stack {stack.name} --backend venv`"
    other = [f"`archs.{arch.name}.python` in `{site.origin}` can name a Python {newer[0]}"] if newer else []
    raise_faults(
        [
            Fault(
                "mismatch",
                "python",
                f"the backend `spack` needs Python {oldest} or newer, but arch `{arch.name}` has Python {request.minor}",
                evidence=(f"pip {PIP_VERSION}, with which Spack installs the wheels, does not run on it",),
                hint="; ".join([f"{venv} builds with this Python", *other]),
            )
        ]
    )
