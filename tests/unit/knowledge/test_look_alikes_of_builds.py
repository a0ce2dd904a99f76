"""Lines of builds, packages, containers, files and modules that look alike: the words of the line decide the entry."""

from __future__ import annotations

from parts.loops import for_each
from provision.knowledge.failures.explain import explain
from provision.machine.tables import known_failures

NO_FILE = "No such file or directory"
LD = "/usr/bin/ld"
CONDA_LD = "/env/compiler_compat/ld"
AT_CMAKE = "CMake Error at /opt/cmake/share/Modules/FindPackageHandleStandardArgs.cmake:230 (message):\n  "
BUILDS = {
    "/usr/bin/ld: cannot find -lCUDA_cublas_device_LIBRARY-NOTFOUND": "cmake-library-notfound",
    "ERROR: Could not find a version that satisfies the requirement requirements.txt (from versions: none)": (
        "requirements-without-r"
    ),
    "  is not able to compile a simple test program.": "compiler-test-failed",
    "ImportError: /env/lib/python3.9/site-packages/torch/lib/libtorch.so: undefined symbol: iJIT_Flux": "mkl-too-new-for-torch",
    "When using ADD with more than one source file, the destination must end with a /": "image-copy-of-several",
    "ERROR:102: Tcl command execution failed: couldn't create error file for command: denied": (
        "modules-no-temporary-file"
    ),
    'flux.cu (58) : error : identifier " flux_as_float " is undefined': "reported-error",
    "-- Could NOT find MPI (missing: MPI_C_FOUND MPI_CXX_FOUND)\n-- Configuring done\n-- Generating done": None,
    "-- Could NOT find MPI_Fortran (missing: MPI_Fortran_LIB_NAMES)\n-- Configuring done": None,
    "-- Could NOT find Doxygen (missing: DOXYGEN_EXECUTABLE)\n-- Configuring done\n-- Generating done": None,
    "-- Could NOT find CUDA (missing: CUDA_TOOLKIT_ROOT_DIR CUDA_NVCC_EXECUTABLE)\n-- Configuring done": None,
    "-- Could NOT find PkgConfig (missing: PKG_CONFIG_EXECUTABLE)\n-- Configuring done": None,
    f"-- Could NOT find GSL (missing: GSL_LIBRARY)\nflux.c:3:10: fatal error: hdf5.h: {NO_FILE}": "header-missing",
    "-- Could NOT find GSL (missing: GSL_LIBRARY)\n-- Configuring incomplete, errors occurred!": "cmake-package-optional",
    f"{AT_CMAKE}Could NOT find MPI (missing: MPI_C_FOUND MPI_CXX_FOUND)": "mpi-not-found",
    f"{AT_CMAKE}Could NOT find MPI (missing: MPI_Fortran_FOUND)": "mpi-fortran-not-found",
    f"{AT_CMAKE}Could NOT find GSL (missing: GSL_INCLUDE_DIR GSL_LIBRARY)": "cmake-package-missing",
    f'{AT_CMAKE}Could NOT find GSL: Found unsuitable version "1.15", but required is at least "2.1"': "cmake-package-version",
    f'{AT_CMAKE}Could NOT find CUDA: Found unsuitable version "9.2", but required is at least "11"': "cmake-package-version",
    "configure: error: Package requirements (flux >= 2) were not met:\n\nNo package 'flux' found": "pkg-config-package-missing",
    "nvc++-Error-CUDA version 10.0 is not available in this installation.": "nvc-cuda-version",
    "RuntimeError: CMake must be installed to build the following extensions: flux": "cmake-missing",
    "RuntimeError: CMake >= 3.18 must be installed to build flux": "cmake-too-old",
    "configure: error: C compiler cannot create executables": "no-compiler",
    "  No CMAKE_C_COMPILER could be found.": "cmake-no-compiler",
    "configure: error: cannot run C compiled programs.": "compiled-program-does-not-run",
    "error: command 'gcc' failed: No such file or directory": "compiler-missing",
    "/bin/sh: 1: nvcc: not found": "nvcc-missing",
    "OSError: CUDA_HOME environment variable is not set. Please set it": "nvcc-missing",
    "run.sh: line 4: make: command not found": "build-program-missing",
    'CMake was unable to find a build program corresponding to "Unix Makefiles".': "build-program-missing",
    "-- The CXX compiler identification is unknown\nCMake Error: No CMAKE_CXX_COMPILER could be found.": "cmake-no-compiler",
    "CMake Error: Error: generator : Ninja": "cmake-cache",
    f"flux.cc:2:10: fatal error: absl/strings/string_view.h: {NO_FILE}": "header-missing",
    f"flux.cc:2:10: fatal error: llvm/ADT/StringRef.h: {NO_FILE}": "header-missing",
    f"flux.cc:2:10: fatal error: tensorflow/core/framework/op.h: {NO_FILE}": "tensorflow-headers",
    "a_generated.h:9:1: error: static assertion failed: Non-compatible flatbuffers version included": "flatbuffers-version",
    "aes.cpp:20:14: error: invalid conversion from 'const void*' to 'void*' [-fpermissive]": "cxx-permissive",
    "src/mpi_ops.cc:20:14: error: invalid conversion from 'const void*' to 'void*' [-fpermissive]": "conda-headers-mpi",
    f"{LD}: a.o: relocation R_X86_64_32 against `.text' can not be used when making a shared object": "object-without-pic",
    f"{LD}: attempted static link of dynamic object `libflux.so'": "static-link",
    f"{CONDA_LD}: cannot find -lcudart: {NO_FILE}": "conda-linker-library",
    f"{CONDA_LD}: flux.o: undefined reference to `flux_init'": "undefined-reference",
    f"{CONDA_LD}: cannot find /lib64/libm.so.6 inside /": "old-linker-of-conda",
    "cc1plus: warning: unrecognized command line option '-Wno-unused-but-set'": None,
    "train.py: error: unknown argument: '--gpu'": "argument-error",
    "clang: error: unknown argument: '-qopenmp'": "compiler-flag-unknown",
    "gcc: error: unrecognized command-line option '-xHost'": "compiler-flag-unknown",
    "cc1: error: bad value 'znver5' for '-march=' switch": "compiler-cpu-unknown",
    "clang++: error: unable to execute command: Killed": "compiler-out-of-memory",
    "clang: error: unable to execute command: Segmentation fault (core dumped)": "internal-compiler-error",
    "Please submit a full bug report, with preprocessed source.": "internal-compiler-error",
    f"{LD}: warning: a.o: corrupt GNU_PROPERTY_TYPE (5) size: 0x10\n[100%] Built target flux": None,
    f"{LD}: unrecognized option '-plugin'": "assembler-too-old",
    "Reversed (or previously applied) patch detected!  Skipping patch.": "patch-failed",
    "can't find file to patch at input line 5": "patch-failed",
    "Hunk #1 FAILED at 12.\n1 out of 1 hunk FAILED -- saving rejects to file a.c.rej": "patch-failed",
    f"{LD}: flux.o: file not recognized: File truncated": "object-file-cut-off",
    f"{LD}: flux.o: file not recognized: file format not recognized": "object-other-kind",
    "lto1: fatal error: bytecode stream in file 'a.o' generated with LTO version 11.3 instead of 12.0": "lto-version",
    "Makefile:7: *** missing separator.  Stop.": "makefile-broken",
    "make: *** No rule to make target 'install'.  Stop.": "makefile-missing",
    "nvlink error   : Undefined reference to 'flux' in 'a.o'": "cuda-device-link",
    "nvlink fatal   : Input file 'a.o' newer than toolkit (124 vs 118)": "cuda-object-of-newer-toolkit",
    "nvcc error   : 'cudafe++' died due to signal 11 (Invalid memory reference)": "internal-compiler-error",
    "  CMAKE_CUDA_ARCHITECTURES must be valid if set.": "nvcc-architecture-empty",
    "icc: error #10052: could not checkout FLEXlm license": "compiler-license",
    "/bin/bash: line 2: -o: command not found": "compiler-variable-empty",
    "/bin/sh: 1: -c: not found": "compiler-variable-empty",
    "/var/spool/slurmd/job1/slurm_script: line 14: -np: command not found": "line-not-continued",
    "./run.sh: 14: -np: not found": "line-not-continued",
    "run.sh: line 2: --seed: command not found": "line-not-continued",
    'run_job.sh: 5: Syntax error: "(" unexpected': "sh-instead-of-bash",
    '/bin/sh: 1: Syntax error: "(" unexpected': "make-command-syntax",
    'kernel.cu(12): error: identifier "state" is undefined': "compile-error",
    'kernel.cu(12): error: identifier "THCCeilDiv" is undefined': "pytorch-extension-old",
}

CONFIGURED = "checking for gcc... gcc\n{}\nconfigure: creating ./config.status\nconfig.status: creating Makefile"
AUTOTOOLS_BAZEL_AND_LANGUAGES = {
    CONFIGURED.format(f"./configure: line 7437: /usr/bin/file: {NO_FILE}"): None,
    CONFIGURED.format("./configure: line 15327: 2.6: command not found"): None,
    "Rust not found, installing into a temporary directory\nSuccessfully installed flux-1.0": None,
    "error: can't find Rust compiler": "rust-missing",
    "error: linker `cc` not found": "rust-error",
    "error: failed to get `flux` as a dependency of package `solver v0.1.0`": "rust-error",
    "error[E0308]: mismatched types": "rust-error",
    "==> Error: Package 'fluxx' not found.": "spack-unknown-package",
    "==> Error: No such variant {'cudda'} for spec: 'flux+cudda'": "spack-unknown-variant",
}

OCI = "docker: Error response from daemon: OCI runtime create failed: runc create failed: "
UNMOUNT = "fusermount: failed to unmount /tmp/.mount_x: {}\nAll done"
FULL = "no space left on device"
LUSTRE = "LustreError: 11-0: flux-OST0001: operation ost_connect to node 10.0.0.1@o2ib failed: rc = -114"
BLOCKED = "INFO: task kworker:42 blocked for more than 120 seconds."
LOADED = "ModuleCmd_Load.c(213):ERROR:150: Module 'flux/2' conflicts with the currently loaded module(s) 'flux/1'"
CONTAINERS_AND_FILES = {
    "FATAL:   could not open image /a/flux.sif: image format not recognized": "image-not-an-image",
    "FATAL:   could not open image /a/flux.sif: failed to retrieve path for /a/f: lstat /a: no such file": "overlay-missing",
    "nvidia-container-cli: requirement error: unsatisfied condition: cuda>=12.4": "driver-too-old",
    "docker: Error response from daemon: unknown runtime specified nvidia.": "container-no-nv",
    f"level=error msg=write /data/wal/1: {FULL}": "disk-full",
    f"FATAL:   While making image from oci registry: unpack layer: write /tmp/build-temp-1/a: {FULL}": "container-build-space",
    "Error: reading manifest 9 in docker.io/flux: manifest unknown": "image-tag-unknown",
    "docker: invalid reference format: repository name must be lowercase.": "image-reference-malformed",
    "Error response from daemon: pull access denied for flux, repository does not exist": "container-registry",
    "FATAL:   You must be the root user, however you can use --remote or --fakeroot": "container-needs-root",
    "ERROR  : Failed to create user namespace: user namespace disabled": "container-user-namespaces",
    f'{OCI}exec: "flux": executable file not found in $PATH: unknown.': "container-program-missing",
    f'{OCI}unable to start container process: exec: "/run.sh": permission denied: unknown.': "container-program-not-executable",
    f"{OCI}unable to apply cgroup configuration: the flux is inverted: unknown.": "container-runtime-failed",
    f"{OCI}nvidia-container-cli: initialization error: load library failed: unknown.": "nvidia-driver-missing",
    UNMOUNT.format("Invalid argument"): None,
    UNMOUNT.format("Device or resource busy"): None,
    "fusermount: mount failed: Operation not permitted": "container-mount",
    'Get "https://example.org/v2/": proxyconnect tcp: EOF': "registry-proxy",
    'Get "https://example.org/v2/": dial tcp: lookup example.org: no such host': "registry-network",
    "ls: cannot open /cvmfs/flux: Transport endpoint is not connected": "fuse-mount-gone",
    "cp: error writing 'a': Input/output error": "io-error",
    "libflux.so: failed to map segment from shared object: Operation not permitted": "tmp-noexec",
    "libflux.so: failed to map segment from shared object: Cannot allocate memory": "library-not-mapped-memory",
    "OSError: [Errno 18] Invalid cross-device link: '/a/b' -> '/c/d'": "cross-device-link",
    "PermissionError: [Errno 1] Operation not permitted: '/a/b' -> '/c/d'": "hard-links",
    "OSError: AF_UNIX path too long": "socket-path-too-long",
    "OSError: [Errno 36] File name too long: '/a'": "file-name-too-long",
    f"{LUSTRE}\nstep 1\nstep 2": None,
    f"{BLOCKED}\n" + "cell is computed\n" * 60: None,
    "LustreError: 167-0: flux-MDT0000: This client was evicted by flux-MDT0000": "file-system-not-responding",
    "Status: out_of_memory": "onednn-out-of-memory",
    LOADED: "module-family",
    "ModuleCmd_Load.c(213):ERROR:151: Module 'flux/2' depends on one of the module(s) 'gcc/9'": "module-needs-others",
    "ModuleCmd_Load.c(244):ERROR:105: Unable to locate a modulefile for 'flux/3'": "module-unknown",
}

LOOK_ALIKES = {**BUILDS, **AUTOTOOLS_BAZEL_AND_LANGUAGES, **CONTAINERS_AND_FILES}


@for_each("log", LOOK_ALIKES)
def test_the_words_of_a_line_decide_between_look_alikes(log: str) -> None:
    explanation = explain([f"{log}\n".encode()], known_failures())
    if LOOK_ALIKES[log] is None:
        assert explanation.verdict == "healthy", explanation.findings
    else:
        assert explanation.known and explanation.known.failure.id == LOOK_ALIKES[log], explanation.findings
        assert "…" not in explanation.known.cause
