"""TensorFlow.

CUDA: `cuda_version` in the wheels' own `tf.sysconfig.get_build_info()` for 2.15.1 (12.2), 2.18.1 and 2.21.0 (12.5.1), read on
2026-11-21; for the others the table "Tested build configurations, GPU, Linux" of TensorFlow's installation page
(`site/en/install/source.md`, 2026-03-11). For a version that is not in this table nothing is checked.

oneDNN (called MKL-DNN before 2020): the packages `tensorflow` and `tensorflow-cpu` compute with Eigen alone up to 2.4, and
contain both from 2.5 on, of which TF_ENABLE_ONEDNN_OPTS selects one; from 2.9 on, TensorFlow selects oneDNN itself on CPUs with
instructions for neural networks (AVX512_VNNI and newer), which Haswell and Knights Landing do not have (TensorFlow's release
notes of 2.5 and 2.9). Intel's package always computes with oneDNN, whatever the variable. Read on 2026-11-22 in the wheels with
`IsMklEnabled()`: intel-tensorflow 1.15.2 and 2.11.0 True; tensorflow 1.15.5 and 2.2.3 False; 2.11.1, 2.15.1 and 2.21.0 True, or
False if the variable is 0.
"""

from __future__ import annotations

import re

from provision.knowledge.frameworks.interface import FrameworkInterface

# Without kernels for GPUs, a Horovod that is built for GPUs cannot be loaded together with them (`undefined symbol:
# …DenseUpdate<Eigen::GpuDevice, …>`).
INTEL = ("intel-tensorflow", "intel-tensorflow-avx512")

TENSORFLOW = FrameworkInterface(
    name="tensorflow",
    title="TensorFlow",
    package="tensorflow",
    distributions=("tensorflow", "tensorflow-cpu", "tensorflow-gpu", *INTEL),
    cpu_distributions=frozenset({"tensorflow-cpu", *INTEL}),
    module_names=("tensorflow", "py-tensorflow", "tensorflow-gpu"),
    homepage="https://www.tensorflow.org",
    spack="py-tensorflow",
    # `tensorflow/2.15.1`, `TensorFlow/2.2.0-fosscuda-2019b`, `tensorflow/intel-1.15.0-py37`, `datascience/tensorflow-1.10`,
    # `Horovod/0.28.1-foss-2022a-CUDA-11.7.0-TensorFlow-2.11.0`.
    module=re.compile(r"tensorflow[/-](?:intel-)?(\d+\.\d+[\d.]*)", re.IGNORECASE),
    programs=("horovod_keras", "horovod_graph", "single", "mirrored", "multiworker"),
    kinds=("single", "mirrored", "multiworker", "horovod", "mpi", "cray-ml-plugin"),
    image="docker://nvcr.io/nvidia/tensorflow:25.02-tf2-py3",
    shadowing=("tensorflow", "tensorflow_cpu", "keras", "tf_keras", "protobuf"),
    cuda={
        "1.15": "10.0",
        "2.0": "10.0",
        **dict.fromkeys(("2.1", "2.2", "2.3"), "10.1"),
        "2.4": "11.0",
        **dict.fromkeys(("2.5", "2.6", "2.7", "2.8", "2.9", "2.10", "2.11"), "11.2"),
        **dict.fromkeys(("2.12", "2.13", "2.14"), "11.8"),
        "2.15": "12.2",
        **dict.fromkeys(("2.16", "2.17"), "12.3"),
        **dict.fromkeys(("2.18", "2.19", "2.20", "2.21"), "12.5"),
    },
    # The announcement of 2.17.
    oldest_capability=(((2, 17), 60),),
    # The wheels for other CPUs compute on CPUs only (tensorflow/tensorflow issue 121157).
    gpu_families={"x86_64": ()},
    # TensorFlow's page of pip: wheels for x86_64 need AVX.
    needs_avx=True,
    # Horovod 0.28 asks for g++ 8 or newer from TensorFlow 2.10 on.
    cxx17_since=(2, 10),
    onednn_since=(2, 5),
    onednn_distributions=INTEL,
    onednn_switch="TF_ENABLE_ONEDNN_OPTS",
    # TensorFlow prints two lines about the CPU in each rank. Level 1 keeps its warnings and errors.
    quiet=(("TF_CPP_MIN_LOG_LEVEL", "1"),),
    # XLA looks for CUDA's device library in /usr/local/cuda only.
    cuda_folder=("XLA_FLAGS", "--xla_gpu_cuda_data_dir="),
)
