"""Backends: each one makes an environment from the same site and stack, in its own way. Pure: they return steps.

The planner knows no backend by name. A stack's key `backend` names one, and `backend_for` returns the function `draft` of
`backends/<name>/draft.py`. `venv` makes virtual environments, and `spack` makes Spack environments. A backend must provide:

- its name in `profile.choices.BACKENDS`; a test holds that each has a folder here;
- `draft`: what it would build from a request and the facts of a machine. The draft's `identity` has everything that decides
  its part of an environment (locks, patches, versions of its tools): the fingerprint is computed from that, so an environment
  is built again exactly if something in it changes. It also names the compiler, the MPI and Horovod, for `module help`;
- `construct`: what it makes at the prefix that follows from the fingerprint: a virtual environment, whose Python is
  `bin/python`. That is a `Construction`: the steps with their operations in order, and what a build would still have to
  download. Steps named `install` and `compile` are the only ones that may use the network.

Everything after the steps is the same for every backend, and the planner adds it: the inspection of what was installed, the
candidate modulefile, the proof, and publishing. A backend reads no files and runs nothing: what it needs to know is among the
facts and in `Existing`, and what it wants done is among the operations of `model/operation.py`.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import cast

from provision.backends.backend import Draft
from provision.model.facts import Facts
from provision.model.request import Request
from provision.profile.choices import BackendName


def backend_for(name: BackendName) -> Callable[[Request, Facts, str], Draft]:
    """The function `draft` of this backend: what it would build for a CPU target on a machine with these facts.

    It raises a PlanError if something that the backend needs is missing.
    """
    module = importlib.import_module(f"provision.backends.{name}.draft")  # only when a stack names it
    return cast("Callable[[Request, Facts, str], Draft]", module.draft)
