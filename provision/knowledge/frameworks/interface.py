"""What the tool must know about a framework: one value, which the other folders ask. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from provision.knowledge.versions import release

# What a stack or an arch can require. Eigen is what every TensorFlow has without it.
MathLibrary = Literal["onednn"]
# How the inspection of an environment reports it.
REPORTED: dict[str, str] = {"onednn": "oneDNN"}


@dataclass(frozen=True, slots=True, kw_only=True)
class FrameworkInterface:
    """A framework: its packages, its proof, its jobs, and what its wheels need. The fields with a default have usual values."""

    name: str
    """In a stack (`framework.name`) and in Horovod's metadata."""
    title: str
    """For people."""
    package: str
    """What Python imports. Reports, checks and Horovod's metadata have versions under this name or `name`."""
    distributions: tuple[str, ...]
    """The distributions that contain the package, the usual one first."""
    module_names: tuple[str, ...]
    """The names that sites give to its module, in lower case."""
    module: re.Pattern[str]
    """Finds its version, group 1, in the full name of a module."""
    homepage: str
    spack: str
    """The name of its package in Spack."""
    programs: tuple[str, ...]
    """The programs of a proof that train with it (`proof/programs/`)."""
    kinds: tuple[str, ...]
    """The kinds of jobs that its programs can run in."""
    image: str
    """An image with it in a registry, for hints. Its releases are for x86_64 and aarch64, with GPU support."""
    shadowing: tuple[str, ...]
    """Packages in a user's home that could replace those of an environment: folders or distributions, with underscores."""
    cuda: Mapping[str, str]
    """The CUDA version with which the GPU wheel of each minor version is built."""
    cpu_distributions: frozenset[str] = frozenset()
    """Those of `distributions` whose wheels have no kernels for GPUs: they never use one."""
    brings: tuple[str, ...] = ()
    """How the names of CUDA's libraries begin that come with its wheels (a node needs a driver only); none if modules do that."""
    oldest_capability: tuple[tuple[tuple[int, ...], int], ...] = ()
    """Pairs: from this version on, the wheels have no code for GPUs older than this compute capability, as Spack spells it."""
    gpu_families: Mapping[str, tuple[int, ...]] = field(default_factory=lambda: {"x86_64": ()})
    """The families of CPUs whose wheels use GPUs, each with the first version that does."""
    needs_avx: bool = False
    """Whether its wheels for x86_64 need AVX."""
    cxx17_since: tuple[int, ...]
    """The first version whose headers are C++17."""
    onednn_since: tuple[int, ...]
    """The first version whose usual distribution contains oneDNN."""
    onednn_distributions: tuple[str, ...] = ()
    """Distributions that always compute with oneDNN."""
    onednn_switch: str | None = None
    """The variable that selects oneDNN (1) or not (0) where a distribution has a choice."""
    quiet: tuple[tuple[str, str], ...] = ()
    """Variables that the modulefile sets unless the user has set them: they hide what every rank prints."""
    other_python: str | None = None
    """Finds the paths of files in its wheels that are in the language of a newer Python, and are imported there only."""
    cuda_folder: tuple[str, str] | None = None
    """The variable with which it finds the CUDA of a module, and the words in front of the folder."""

    @property
    def of_horovod(self) -> str:
        """The usual program of `programs` whose ranks are those of Horovod."""
        return next(name for name in self.programs if name.startswith("horovod"))

    def cuda_of(self, version: str) -> str | None:
        """The CUDA version that the GPU wheel of this version is built with; None if it is not known, or for `2.14.1+cpu`."""
        public, _, label = version.partition("+")
        if label.startswith("cu"):  # `2.7.1+cu118`, of an index of PyTorch
            return f"{label[2:-1]}.{label[-1]}"
        return None if label == "cpu" else self.cuda.get(".".join(public.split(".")[:2]))

    def module_of(self, modules: Iterable[str]) -> tuple[str, tuple[int, ...]] | None:
        """The first module whose name has a version of it, and that version; None if no name has one."""
        for name in modules:
            version = self.module.search(name)
            if version:
                return name, release(version[1])
        return None

    def has_onednn(self, distribution: str, version: str) -> bool:
        """Whether this distribution of it can compute with oneDNN on CPUs."""
        return distribution in self.onednn_distributions or release(version)[:2] >= self.onednn_since

    def onednn_environ(self, distribution: str, version: str) -> tuple[tuple[str, str], ...]:
        """The variable that makes this distribution compute with oneDNN on every CPU; none if it has no choice."""
        if self.onednn_switch is None or distribution in self.onednn_distributions:
            return ()
        return ((self.onednn_switch, "1"),) if self.has_onednn(distribution, version) else ()

    def cuda_environ(self, cuda_home: str) -> tuple[tuple[str, str], ...]:
        """The variable with which it finds the CUDA in this folder; none if it needs none."""
        return ((self.cuda_folder[0], f"{self.cuda_folder[1]}{cuda_home}"),) if self.cuda_folder else ()
