"""The library with which packages of TensorFlow compute on CPUs: oneDNN (called MKL-DNN before 2020), or Eigen.

The packages `tensorflow` and `tensorflow-cpu` compute with Eigen alone up to 2.4, and contain both from 2.5 on, of which
TF_ENABLE_ONEDNN_OPTS selects one; from 2.9 on, TensorFlow selects oneDNN itself on CPUs with instructions for neural networks
(AVX512_VNNI and newer), which Haswell and Knights Landing do not have (TensorFlow's release notes of 2.5 and 2.9). Intel's
package always computes with oneDNN, whatever the variable. Read on 2026-11-22 in the wheels with `IsMklEnabled()`:
intel-tensorflow 1.15.2 and 2.11.0 True; tensorflow 1.15.5 and 2.2.3 False; 2.11.1, 2.15.1 and 2.21.0 True, or False if the
variable is 0.
"""

from __future__ import annotations

from typing import Literal, get_args

from provision.knowledge.versions import release

MathLibrary = Literal["onednn"]
# What a stack or an arch can require. Eigen is what every TensorFlow has without it.
MATH_LIBRARIES: tuple[MathLibrary, ...] = get_args(MathLibrary)
# How `IsMklEnabled()` is reported by the inspection of an environment.
REPORTED: dict[str, str] = {"onednn": "oneDNN"}
# Set to 1 it selects oneDNN, to 0 Eigen, in packages that contain both.
SELECTS = "TF_ENABLE_ONEDNN_OPTS"
OF_INTEL = ("intel-tensorflow", "intel-tensorflow-avx512")
# The first version of TensorFlow's own packages that contains oneDNN.
SINCE = (2, 5)


def has_onednn(package: str, version: str) -> bool:
    """Whether this package of TensorFlow can compute with oneDNN."""
    return package in OF_INTEL or release(version)[:2] >= SINCE


def selecting_environ(package: str, version: str) -> tuple[tuple[str, str], ...]:
    """The variable that makes this package compute with oneDNN on every CPU; none for a package that has no choice."""
    return ((SELECTS, "1"),) if package not in OF_INTEL and has_onednn(package, version) else ()
