"""PyTorch.

CUDA: the requirements of the wheels on the package index, read on 2026-11-29; the compute capabilities are those of the device
code in the wheels of 2.7.1 (50 to 90) and 2.14.1 (75 to 120), read there on the same day. For a version that is not in this
table nothing is checked. The wheels load the libraries of NVIDIA's wheels beside them by RUNPATH, so LD_LIBRARY_PATH wins.
"""

from __future__ import annotations

import re

from provision.knowledge.frameworks.interface import FrameworkInterface

PYTORCH = FrameworkInterface(
    name="pytorch",
    title="PyTorch",
    package="torch",
    distributions=("torch",),
    module_names=("pytorch", "py-torch", "torch"),
    homepage="https://pytorch.org",
    spack="py-torch",
    # `pytorch/2.14.1`, `PyTorch/2.1.2-foss-2022b-CUDA-11.7.0`, `py-torch/2.5.1`, `datascience/pytorch-1.7`,
    # `Horovod/0.28.1-foss-2022a-CUDA-11.7.0-PyTorch-1.12.0`.
    module=re.compile(r"(?:\b|py)torch[/-]v?(\d+\.\d+[\d.]*)", re.IGNORECASE),
    programs=("ddp", "horovod_torch"),
    kinds=("single", "ddp", "horovod", "mpi"),
    image="docker://nvcr.io/nvidia/pytorch:25.02-py3",
    shadowing=("torch", "torchvision", "triton"),
    cuda={"1.13": "11.7", "2.0": "11.7", "2.1": "12.1", "2.7": "12.6", "2.14": "13.0"},
    brings=("libcudart.so", "libcublas", "libcudnn", "libnccl.so", "libcufft.so", "libcusparse", "libnvrtc.so"),
    oldest_capability=(((2, 14), 75),),
    # Up to 2.7.1 only the wheels for x86_64 require CUDA's libraries, those of 2.14.1 for all CPUs.
    gpu_families={"x86_64": (), "aarch64": (2, 14)},
    # `torch/csrc/api` is C++17 from 2.1 on (Horovod's commit 8d34c85, "C++17 for PyTorch 2.1").
    cxx17_since=(2, 1),
    onednn_since=(1, 13),
    # Of 2.14.1: its `def f[T]` is not valid on Python 3.11.
    other_python=r"/py312_intrinsics\.py$",
)
