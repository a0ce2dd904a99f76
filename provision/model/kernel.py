"""A Jupyter kernel that starts in an environment: its name, and its `kernel.json`. Pure.

A kernel is a folder that Jupyter finds: `kernel.json`, and here a script `python` beside it, which loads the environment and
then becomes its Python. That is the form in which New York University's page "Open OnDemand with Conda/Singularity" has it.
Source of the file's keys: jupyter_client's page "Making kernels for Jupyter", 2024.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

from provision.errors import ConfigError

# jupyter_client refuses other names (`_kernel_name_pat` in kernelspec.py of 8.6).
NAME = re.compile(r"[A-Za-z0-9._-]+", re.ASCII)
# The key in `metadata` by which we know our own kernels.
OURS = "provision"


@dataclass(frozen=True, slots=True, kw_only=True)
class Kernel:
    """What is known of a kernel of ours: what it starts in, for which site, and its own venv if it has one.

    `environment` is the name of an environment, or the path of an image.
    """

    name: str
    display_name: str
    environment: str
    site: str
    venv: str | None = None


def kernel_name(text: str) -> str:
    """A name for Jupyter from other text, such as `tensorflow/2.21.0`."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", text).strip("-.") or "provision"


def refuse_kernel_name(name: str) -> None:
    """Raise for a name that Jupyter does not accept.

    Raises:
        ConfigError: it has other characters than letters, digits and `._-`.
    """
    if not NAME.fullmatch(name) or name in (".", ".."):
        raise ConfigError(
            f"{name!r} is not a valid name of a kernel: letters, digits and `._-`",
            hint=f"`--name {kernel_name(name)}`",
        )


def kernel_json(kernel: Kernel, python: str) -> str:
    """The text of `kernel.json`; `python` is the path of the script that starts Python."""
    data = {
        "argv": [python, "-m", "ipykernel_launcher", "-f", "{connection_file}"],
        "display_name": kernel.display_name,
        "language": "python",
        "metadata": {
            "debugger": True,
            OURS: {"environment": kernel.environment, "site": kernel.site, "venv": kernel.venv},
        },
    }
    return json.dumps(data, indent=1, ensure_ascii=False) + "\n"


def read_kernel(name: str, data: dict[str, Any]) -> Kernel | None:
    """The kernel that a `kernel.json` describes; None if it is not one of ours."""
    metadata = data.get("metadata")
    ours = metadata.get(OURS) if isinstance(metadata, dict) else None
    if not isinstance(ours, dict):
        return None
    return Kernel(
        name=name,
        display_name=str(data.get("display_name", name)),
        environment=str(ours.get("environment")),
        site=str(ours.get("site")),
        venv=str(ours["venv"]) if ours.get("venv") else None,
    )
