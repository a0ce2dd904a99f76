"""The library with which frameworks compute on CPUs: oneDNN, or Eigen. `frameworks/` says which package has oneDNN."""

from __future__ import annotations

from typing import Literal

# What a stack or an arch can require. Eigen is what every TensorFlow has without it.
MathLibrary = Literal["onednn"]
# How the inspection of an environment reports it.
REPORTED: dict[str, str] = {"onednn": "oneDNN"}
