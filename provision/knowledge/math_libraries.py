"""The library with which frameworks compute on CPUs: oneDNN, or Eigen. `frameworks/` says which package has oneDNN."""

from __future__ import annotations

from typing import Literal, get_args

MathLibrary = Literal["onednn"]
# What a stack or an arch can require. Eigen is what every TensorFlow has without it.
MATH_LIBRARIES: tuple[MathLibrary, ...] = get_args(MathLibrary)
# How the inspection of an environment reports it.
REPORTED: dict[str, str] = {"onednn": "oneDNN"}
