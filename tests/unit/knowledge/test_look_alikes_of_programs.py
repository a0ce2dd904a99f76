"""Lines that look alike and mean different things: Python and its packages, TensorFlow, saved models, and schedulers."""

from __future__ import annotations

from parts.loops import for_each
from provision.knowledge.failures.explain import explain
from provision.machine.tables import known_failures

VERSION = "ERROR: Could not find a version that satisfies the requirement"
INSTALL = "ERROR: Could not install packages due to an OSError: [Errno 2] No such file or directory:"
SIZE = "size changed, may indicate binary incompatibility. Expected"

PYTHON: dict[str, str | None] = {
    "ModuleNotFoundError: No module named 'tensorflow'": "tensorflow-not-installed",
    "ModuleNotFoundError: No module named 'tensorflow.compat'": "tensorflow-incomplete",
    "ModuleNotFoundError: No module named 'tensorflow.python'": "tensorflow-incomplete",
    "TypeError: Descriptors cannot be created directly.": "protobuf-descriptors",
    "AttributeError: 'MessageFactory' object has no attribute 'GetPrototype'": "protobuf-descriptors",
    "ImportError: cannot import name 'builder' from 'google.protobuf.internal' (/e/google/protobuf/internal/__init__.py)": (
        "protobuf-too-old"
    ),
    "AttributeError: module 'google.protobuf.descriptor' has no attribute '_internal_create_key'": "protobuf-too-old",
    "TypeError: __new__() got an unexpected keyword argument 'serialized_options'": "protobuf-too-old",
    "TypeError: __new__() got an unexpected keyword argument 'file'": "protobuf-too-old",
    "TypeError: __init__() got an unexpected keyword argument 'file'": "arguments-unknown",
    "VersionError: Detected mismatched Protobuf Gencode/Runtime major versions when loading a.proto: gencode 5.27.2 "
    "runtime 6.30.0. Same major version is required.": "protobuf-gencode",
    "ImportError: cannot import name 'descriptor' from 'google.protobuf' (/e/google/protobuf/__init__.py)": "protobuf-missing",
    "[libprotobuf ERROR descriptor_database.cc:58] File already exists in database: flux.proto": "protobuf-twice",
    f"ValueError: numpy.dtype {SIZE} 96 from C header, got 88 from PyObject": "numpy-2-abi",
    f"ValueError: numpy.ndarray {SIZE} 88 from C header, got 80 from PyObject": "numpy-older-than-build",
    f"ValueError: numpy.ufunc {SIZE} 232 from C header, got 216 from PyObject": "numpy-older-than-build",
    f"ValueError: numpy.ndarray {SIZE} 80 from C header, got 96 from PyObject": "numpy-abi",
    f"a.py:1: RuntimeWarning: numpy.ufunc {SIZE} 192 from C header, got 216 from PyObject": None,
    "AttributeError: _ARRAY_API not found": "numpy-2-abi",
    "RuntimeError: Numpy is not available": "torch-without-numpy",
    "ImportError: No module named 'numpy.core._multiarray_umath'": "numpy-damaged",
    "RuntimeError: module compiled against ABI version 0x1000009 but this version of numpy is 0x2000000": "numpy-2-abi",
    "AttributeError: module 'numpy' has no attribute 'object'.": "numpy-removed-names",
    "AttributeError: module 'numpy' has no attribute 'Inf'": "numpy-removed-names",
    "AttributeError: module 'numpy' has no attribute 'dtypes'": "numpy-name-missing",
    "AttributeError: module 'numpy' has no attribute 'array'": "numpy-name-missing",
    "Warning! ***HDF5 library version mismatched error***": "hdf5-two-releases",
    "ImportError: /e/h5py/_errors.cpython-39-x86_64-linux-gnu.so: undefined symbol: H5Pset_fapl_ros3": "h5py-broken",
    "ImportError: `save_model` requires h5py.": "h5py-missing",
    "AttributeError: 'str' object has no attribute 'decode'": "text-decoded-again",
    r"SyntaxError: Non-ASCII character '\xe2' in file flux.py on line 7, but no encoding declared": "python-2-runs",
    f"{VERSION} torch==1.12.1+cu116 (from versions: 2.0.0, 2.0.1)": "torch-index-needed",
    f"{VERSION} torch==1.12.1+cu116 (from versions: none)": "torch-index-needed",
    f"{VERSION} torch==1.12.1 (from versions: 2.0.0, 2.0.1)": "not-on-index-python",
    "elasticsearch.ConflictError: ConflictError(409, 'flux')": "reported-error",
    "  - nothing provides libflurble 2.* needed by flux-1.0-0": "conda-dependency-missing",
    f"{INSTALL} '/croot/flux_1670/work'": "pip-path-of-another-machine",
    f"{INSTALL} '/env/lib/python3.9/site-packages/numpy/METADATA'": "pip-files-changed",
    "ERROR: Cannot uninstall 'PyYAML'. It is a distutils installed project and thus": "pip-cannot-uninstall",
    "ERROR: Cannot uninstall blinker 1.4, RECORD file not found.": "pip-cannot-uninstall",
    "ModuleNotFoundError: No module named 'pkg_resources'": "pkg-resources-missing",
    "ModuleNotFoundError: No module named 'pkg_resources.extern'": "submodule-missing",
    "ModuleNotFoundError: No module named 'setuptools'": "build-needs-module",
    "ModuleNotFoundError: No module named 'imp'": "python-without-distutils",
    "ModuleNotFoundError: No module named 'distutils.util'": "python-without-distutils",
    "ModuleNotFoundError: No module named 'numpy.distutils'": "python-without-distutils",
    "AttributeError: install_layout. Did you mean: 'install_platlib'?": "setuptools-mixed",
    "TypeError: canonicalize_version() got an unexpected keyword argument 'strip_trailing_zero'": "setuptools-mixed",
    "pkg_resources.extern.packaging.version.InvalidVersion: Invalid version: '2.0-flux'": "version-not-accepted",
    "run.sh: line 4: conda: command not found": "conda-command-missing",
    "CommandNotFoundError: Your shell has not been properly configured to use 'conda activate'.": "conda-not-initialised",
    "CondaSSLError: OpenSSL appears to be unavailable on this machine. OpenSSL is required to": "conda-openssl",
    "PackagesNotFoundError: The following packages are missing from the target environment:": "conda-package-not-installed",
    "PackagesNotFoundError: The following packages are not available from current channels:": "conda-package-missing",
    "importlib.metadata.PackageNotFoundError: No package metadata was found for flux": "requirement-unmet",
    "ERROR: Invalid requirement: 'numpy=1.19.2=py38_0' (from line 3 of requirements.txt)": "invalid-requirement",
    "ERROR: Could not open requirements file: [Errno 2] No such file or directory: 'requirements.txt'": "pip-folder-wrong",
    "ERROR: file:///src does not appear to be a Python project: neither 'setup.py' nor 'pyproject.toml' found.": (
        "pip-folder-wrong"
    ),
    "warning: flux/_tree.pyx:12:4: Unreachable code": None,
    "performance hint: flux/_tree.pyx:20:5: Exception check on 'f' will always require the GIL to be acquired.": None,
    "flux/_tree.pyx:20:5: Cannot assign type 'double' to 'int'": "cython-error",
    "a.c:3:5: error: implicit declaration of function 'PyObject_CallNoArgs'": "c-code-for-older-python",
    "a.c:3:5: error: implicit declaration of function '_PyUnicode_Ready'": "c-code-for-older-python",
    "AttributeError: module 'typing' has no attribute '_ClassVar'": "dataclasses-backport",
    "AttributeError: module 'typing' has no attribute 'Literal'": "python-too-old",
}

PROGRAMS: dict[str, str | None] = {
    "ValueError: Received incompatible tensor with shape (16,) when attempting to restore variable with shape (10,) and name b": (
        "checkpoint-of-other-model"
    ),
    "InvalidArgumentError: Expected begin[1] in [0, 40], but got 655561818": "index-out-of-range",
    "KeyError: \"Override 'local-rank' not found in: ['seed']\"": "torch-local-rank",
    "ValueError: mmap length is greater than file size": "saved-file-damaged",
    "      17      main    main.sh  ada PD       0:00      1 (DependencyNeverSatisfied)": "dependency-never-satisfied",
    "While computing bindings, we found no available cpus on": "mpi-binding",
    "ERROR STOP init: bad time step": "reported-error",
    "sed: -e expression #1, char 26: unknown option to `s'\ncp: cannot stat 'a': No such file or directory": "reported-error",
    "INFO:tensorflow:An error was raised while a session was being created. This may be due to a preemption of a connected "
    "worker or parameter server. A new session will be created.": "tf-session-recreated",
    "IsADirectoryError: [Errno 21] Is a directory: '/data/train'": "folder-instead-of-file",
    "NewRandomAccessFile failed to Create/Open: /data/train : Is a directory": "folder-instead-of-file",
    "PermissionDeniedError: NewRandomAccessFile failed to Create/Open: /data/a; Permission denied": "permission-denied",
    "NotFoundError: NewRandomAccessFile failed to Create/Open: /data/a : No such process": "file-not-found",
    "run.sh: line 3: DATA_DIR: unbound variable": "shell-variable-unset",
    "run.sh: line 3: FILES[@]: unbound variable": "shell-variable-unset",
    "run.sh: 3: DATA_DIR: parameter not set": "shell-variable-unset",
    "run.sh: line 3: [: -gt: unary operator expected": "shell-test-of-empty-variable",
    "run.sh: line 3: $OUT: ambiguous redirect": "shell-test-of-empty-variable",
    "/var/spool/slurmd/job00042/slurm_script: 12: Syntax error: word unexpected": "sh-instead-of-bash",
    "run.sh: 3: Bad substitution": "sh-instead-of-bash",
    "run.sh: line 3: unexpected EOF while looking for matching `\"'": "shell-syntax",
    "run.sh: line 3: ./flurble: Permission denied": "program-without-rights",
    "run.sh: line 3: cd: /scratch/a: No such file or directory": "program-not-executable",
    "/bin/bash: warning: setlocale: LC_ALL: cannot change locale (en_US.UTF-8)": None,
    "UnicodeDecodeError: 'ascii' codec can't decode byte 0xc3 in position 3: ordinal not in range(128)": "unicode-locale",
    "AttributeError: 'NoneType' object has no attribute 'dtype'": "value-is-none",
}

MODELS: dict[str, str | None] = {
    "ValueError: Requested the deserialization of a Python lambda.": "keras-lambda-not-trusted",
    "ValueError: bad marshal data (unknown type code)": "bytecode-of-other-python",
    "ValueError: NodeDef mentions attr 'flux' not in Op<name=Flux; signature= -> >": "saved-by-newer-version",
    "_pickle.UnpicklingError: invalid load key, 'v'.": "lfs-pointer-read",
    "_pickle.UnpicklingError: invalid load key, '<'.": "web-page-instead-of-file",
    "_pickle.UnpicklingError: invalid load key, 'H'.": "data-file-damaged",
    "UnimplementedError: File system scheme 'gs' not implemented (file: 'gs://a/b')": "file-scheme-unknown",
    "ValueError: Negative dimension size caused by subtracting 5 from 3 for 'conv2d/Conv2D'": "input-too-small",
    "RuntimeError: Calculated padded input size per channel: (1 x 1). Kernel size: (3 x 3).": "input-too-small",
    "ValueError: Expected more than 1 value per channel when training, got input size [1, 8]": "batch-of-one-sample",
    "ValueError: setting an array element with a sequence.": "ragged-data",
    "TypeError: Input 'y' of 'Mul' Op has type float32 that does not match type int64 of argument 'x'.": "dtype-mismatch",
    "RuntimeError: a leaf Variable that requires grad is being used in an in-place operation.": "tensor-changed-in-place",
    "RuntimeError: grad can be implicitly created only for scalar outputs": "no-gradients",
    "ValueError: A KerasTensor cannot be used as input to a TensorFlow function.": "keras-tensor-in-function",
    "InvalidArgumentError: You must feed a value for placeholder tensor 'x' with dtype float": "placeholder-not-fed",
    "FailedPreconditionError: Attempting to use uninitialized value dense/bias": "variable-not-initialised",
    "RuntimeError: The Session graph is empty.  Add operations to the graph before calling run().": "graph-or-session",
    "ModuleNotFoundError: No module named 'tf_keras'": "tf-keras-missing",
    "ImportError: Keras cannot be imported. Check that it is installed.": "keras-3",
    "NotFoundError: Op type not registered 'FluxOp' in binary running on n1.": "op-not-registered",
    "InvalidArgumentError: Default MaxPoolingOp only supports NHWC on device type CPU": "data-format-of-gpus",
    "InvalidArgumentError: No OpKernel was registered to support Op 'CudnnRNN' used by node a": "op-not-supported",
    "RuntimeError: Visible devices cannot be modified after being initialized": "devices-configured-late",
    "RuntimeError: Collective ops must be configured at program startup": "distribution-strategy",
    "UnavailableError: Task /job:worker/replica:0/task:1 heartbeat timeout.": "worker-not-answering",
    "E0102 03:04:05.678 1 http_proxy.cc:75] 'https' scheme not supported in proxy URI": "grpc-proxy-scheme",
    "UnavailableError: failed to connect to all addresses": "grpc-connection",
}

SUBMIT = "sbatch: error: Batch job submission failed:"
STEP = "srun: error: Unable to create step for job 42:"
QUEUED = "             4711       gpu    train    ada PD       0:00      4"
SCHEDULERS: dict[str, str | None] = {
    "TERM_PREEMPT: job killed after preemption.": "preempted",
    "sbatch: error: You must specify an account (-A)": "account-not-given",
    f"{SUBMIT} Invalid account or account/partition combination specified": "invalid-account",
    "job killed due to exceeding memory": "job-exceeded-limit",
    "comment = Not Running: Insufficient amount of resource: ngpus": None,
    "comment = Can Never Run: Insufficient amount of resource: ngpus (R: 9 A: 4 T: 4)": "node-configuration",
    "Project flux is overdrawn": "allocation-used-up",
    f"{QUEUED} (AssocGrpCPUMinutesLimit)": "allocation-used-up",
    f"{QUEUED} (AssocGrpGRES)": "pending-by-limit",
    f"{QUEUED} (QOSMaxGRESPerUser)": "pending-by-limit",
    "sbatch: error: QOSMaxSubmitJobPerUserLimit": "job-count-limit",
    "sbatch: error: AssocMaxSubmitJobLimit": "job-count-limit",
    "sbatch: error: QOSMaxWallDurationPerJobLimit": "job-time-too-long",
    f"{SUBMIT} Requested time limit is invalid (missing or exceeds some limit)": "job-time-too-long",
    f"{SUBMIT} Job violates accounting/QOS policy (job submit limit, user's size and/or time limits)": "job-limits",
    f"{QUEUED} (ReqNodeNotAvail, Reserved for maintenance)": "nodes-reserved",
    "sbatch: error: Memory specification can not be satisfied": "node-memory-too-small",
    "sbatch: error: CPU count per node can not be satisfied": "node-cpus-too-few",
    f"{SUBMIT} Requested node configuration is not available": "node-configuration",
    f"{STEP} Memory required by task is not available": "step-cannot-start",
    f"{STEP} Job/step already completing or completed": "step-of-ended-job",
    "srun: fatal: SLURM_MEM_PER_CPU and SLURM_MEM_PER_NODE are mutually exclusive.": "scheduler-options-exclude",
    "sbatch: unrecognized option '--gpu-per-node=4'": "scheduler-options",
    "slurmstepd: error: execve(): ./flurble: Exec format error": "script-not-executable",
    "slurmstepd: error: execve(): ./flurble: Permission denied": "script-not-executable",
    "slurmstepd: error: execve(): ./flurble: No such file or directory": "script-missing-on-node",
    "slurm_load_jobs error: Invalid job id specified": None,
    "slurm_load_jobs error: Unable to contact slurm controller (connect failure)": "scheduler-down",
    f"{SUBMIT} System submissions disabled": "submissions-disabled",
    'sbatch: error: Munge encode failed: Failed to access "/run/munge/munge.socket.2": No such file': "munge",
    "slurmctld: error: Munge decode failed: Invalid credential": "munge",
    f"{QUEUED} (DependencyNeverSatisfied)": "dependency-never-satisfied",
    f"{SUBMIT} Job dependency problem": "job-dependency",
    f"{SUBMIT} Requested partition configuration not available now": "partition-down",
    f"{SUBMIT} Required partition not available (inactive or drain)": "partition-down",
    "srun: error: Task launch for 42.0 failed on node n1: Job credential revoked": "job-credential-revoked",
    "srun: error: Task launch for 42.0 failed on node n1: Job credential expired": "slurm-credential",
    "run.sh: line 4: 4711 File size limit exceeded ./flurble": "file-size-limit",
    "run.sh: line 4: 4711 CPU time limit exceeded ./flurble": "cpu-time-limit",
    "Process terminated by User defined signal 2(12)": "scheduler-limit-signal",
    "Post job file processing error; job 42.pbs on host n1/5": "pbs-output-not-copied",
    "Job cannot be executed": "pbs-node-setup",
    "slurmstepd: error: Unable to create TMPDIR [/scratch/1]: Permission denied": None,
}

SERVICES: dict[str, str | None] = {
    "fatal: detected dubious ownership in repository at '/src/flux'": "git-dubious-ownership",
    "fatal: not a git repository (or any of the parent directories): .git": "git-without-repository",
    "fatal: No url found for submodule path 'lib/flux' in .gitmodules": "git-submodule-outside",
    "RuntimeError: trying to initialize the default process group twice!": "process-group-twice",
    "RuntimeError: Default process group has not been initialized": "process-group-not-initialised",
    "KeyError: 'WORLD_SIZE'": "torch-distributed-not-started",
}

LOOK_ALIKES = {**PYTHON, **PROGRAMS, **MODELS, **SCHEDULERS, **SERVICES}


@for_each("line", LOOK_ALIKES)
def test_a_line_is_explained_by_the_entry_for_its_own_words(line: str) -> None:
    explanation = explain([f"{line}\n".encode()], known_failures())
    if LOOK_ALIKES[line] is None:
        assert explanation.verdict == "healthy", explanation.findings
    else:
        assert explanation.known and explanation.known.failure.id == LOOK_ALIKES[line], explanation.findings
        assert "…" not in explanation.known.cause
