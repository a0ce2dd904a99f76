"""Lines that look alike and mean different things, by the file of the catalogue, and healthy lines that look like a failure."""

from __future__ import annotations

from parts.loops import for_each
from provision.knowledge.failures.explain import explain
from provision.machine.tables import known_failures

# A log, and the entry that explains it; only logs with the words of several entries, since each entry alone is found by its
# message in test_failures.py.
BUILD = {
    "-- Could NOT find GSL (missing: GSL_LIBRARY)\nflux.c:3:10: fatal error: hdf5.h: No such file or directory": (
        "header-missing"
    ),
    "-- Could NOT find GSL (missing: GSL_LIBRARY)\n-- Configuring incomplete, errors occurred!": "cmake-package-optional",
    "CMake Error at /x/Find.cmake:9 (message):\n  Could NOT find MPI (missing: MPI_C_FOUND MPI_CXX_FOUND)": "mpi-not-found",
    "CMake Error at /x/Find.cmake:9 (message):\n  Could NOT find MPI (missing: MPI_Fortran_FOUND)": "mpi-fortran-not-found",
    "CMake Error at /x/Find.cmake:9 (message):\n  Could NOT find GSL (missing: GSL_INCLUDE_DIR GSL_LIBRARY)": (
        "cmake-package-missing"
    ),
    'CMake Error at /x/Find.cmake:9 (message):\n  Could NOT find GSL: Found unsuitable version "1.15", but '
    'required is at least "2.1"': "cmake-package-version",
    'CMake Error at /x/Find.cmake:9 (message):\n  Could NOT find CUDA: Found unsuitable version "9.2", but '
    'required is at least "11"': "cmake-package-version",
    "configure: error: Package requirements (flux >= 2) were not met:\n\nNo package 'flux' found": "pkg-config-package-missing",
    "RuntimeError: CMake >= 3.18 must be installed to build flux": "cmake-too-old",
    "configure: error: C compiler cannot create executables": "no-compiler",
    "configure: error: cannot run C compiled programs.": "compiled-program-does-not-run",
    "/bin/sh: 1: nvcc: not found": "nvcc-missing",
    "run.sh: line 4: make: command not found": "build-program-missing",
    "-- The CXX compiler identification is unknown\nCMake Error: No CMAKE_CXX_COMPILER could be found.": "cmake-no-compiler",
    "CMake Error: Error: generator : Ninja": "cmake-cache",
    "flux.cc:2:10: fatal error: absl/strings/string_view.h: No such file or directory": "header-missing",
    "flux.cc:2:10: fatal error: llvm/ADT/StringRef.h: No such file or directory": "header-missing",
    "flux.cc:2:10: fatal error: tensorflow/core/framework/op.h: No such file or directory": "tensorflow-headers",
    "a_generated.h:9:1: error: static assertion failed: Non-compatible flatbuffers version included": "flatbuffers-version",
    "aes.cpp:20:14: error: invalid conversion from 'const void*' to 'void*' [-fpermissive]": "cxx-permissive",
    "src/mpi_ops.cc:20:14: error: invalid conversion from 'const void*' to 'void*' [-fpermissive]": "conda-headers-mpi",
    "/env/compiler_compat/ld: cannot find -lcudart: No such file or directory": "conda-linker-library",
    "clang: error: unknown argument: '-qopenmp'": "compiler-flag-unknown",
    "clang: error: unable to execute command: Segmentation fault (core dumped)": "internal-compiler-error",
    "Please submit a full bug report, with preprocessed source.": "internal-compiler-error",
    "/usr/bin/ld: unrecognized option '-plugin'": "assembler-too-old",
    "can't find file to patch at input line 5": "patch-failed",
    "make: *** No rule to make target 'install'.  Stop.": "makefile-missing",
    "nvcc error   : 'cudafe++' died due to signal 11 (Invalid memory reference)": "internal-compiler-error",
    "  CMAKE_CUDA_ARCHITECTURES must be valid if set.": "nvcc-architecture-empty",
    "/bin/bash: line 2: -o: command not found": "compiler-variable-empty",
    "/bin/sh: 1: -c: not found": "compiler-variable-empty",
    'kernel.cu(12): error: identifier "state" is undefined': "compile-error",
    "==> Warning: https://ftp.x.org/a-1.tar.gz: DetailedHTTPError: GET https://ftp.x.org/a-1.tar.gz returned 404: "
    "Not Found\n==> Fetching https://y.org/a-1.tar.gz\na.c:3:1: error: unknown type name 'flux'": "compile-error",
    "/usr/include/c++/12/cstdlib:75:15: fatal error: stdlib.h: No such file or directory": "cxx-headers-in-wrong-order",
    "/usr/include/c++/12/cmath:41:10: fatal error: bits/c++config.h: No such file or directory": "compiler-headers-missing",
    "flux.cpp:3:10: fatal error: features.h: No such file or directory": "header-missing",
    "flux.cpp:3:10: fatal error: fluxmath.h: No such file or directory": "header-missing",
    "flux.cpp:1:10: fatal error: 'cmath' file not found": "compiler-headers-missing",
    "flux.cpp:1:10: fatal error: vector: No such file or directory": "compiler-headers-missing",
    "flux.c:1:10: fatal error: math.h: No such file or directory": "compiler-headers-missing",
    "/src/pppm.cpp:524:24:error: 'ele2tag' not specified in enclosing 'parallel'\nmake: *** [Makefile:1: all] "
    "Error 2": "compile-error",
    "  138 | #error -- unsupported GNU version! gcc versions later than 8 are not supported!\nerror: command "
    "'/usr/local/cuda/bin/nvcc' failed with exit code 1": "nvcc-host-compiler",
    "/usr/bin/ld: skipping incompatible /s/libflux.a when searching for -lflux\n/usr/bin/ld: cannot find -lflux": (
        "link-library-other-cpu"
    ),
    "ld: warning: libflux.so.6, needed by /opt/lib/libpetsc.so, not found (try using -rpath or -rpath-link)\nld: "
    "/opt/lib/libpetsc.so: undefined reference to `pdgssvx'": "library-of-library-missing",
    '"/usr/include/c++/9/cstdlib", line 75: catastrophic error: cannot open source\n          file "stdlib.h"\n  '
    "#include_next <stdlib.h>\n                          ^\nCompilation terminated.": "compiler-headers-missing",
    "/tmp/ccy.s:103:no such instruction: `vxorps %xmm0, %xmm0,%xmm0'": "assembler-too-old",
    "nvdd-Fatal-/opt/nvidia/compilers/bin/tools/nvvmd TERMINATED by signal 11": "internal-compiler-error",
    "/usr/bin/ld: /src/x48.c:5898: referencia a `XNextEvent' sin definir": "undefined-reference",
    "ld: skipping incompatible /usr/lib/libm.so when searching for -lm\nld: cannot find -lflux": "link-library-missing",
    "make: *** No rule to make target `../reduce.cpp', needed by `a.o'.  Stop.\n+/home/ada/submit.zsh:61> grep "
    "'salloc: error: Failed to allocate resources: More processors requested than permitted' x": "make-no-rule",
    "main.f90:(.text+0x10): undefined reference to `openrb_'\nmain.f90:(.text+0x20): relocation truncated to fit: "
    "R_X86_64_PC32 against symbol `grid_' defined in COMMON section": "undefined-reference",
}
CONTAINER = {
    "FATAL:   could not open image /a/flux.sif: image format not recognized": "image-not-an-image",
    "FATAL:   could not open image /a/flux.sif: failed to retrieve path for /a/f: lstat /a: no such file": "overlay-missing",
    "docker: Error response from daemon: unknown runtime specified nvidia.": "container-no-nv",
    "FATAL:   While making image from oci registry: unpack layer: write /tmp/build-temp-1/a: no space left on "
    "device": "container-build-space",
    "Error: reading manifest 9 in docker.io/flux: manifest unknown": "image-tag-unknown",
    "FATAL:   You must be the root user, however you can use --remote or --fakeroot": "container-needs-root",
    "ERROR  : Failed to create user namespace: user namespace disabled": "container-user-namespaces",
    'docker: Error response from daemon: OCI runtime create failed: runc create failed: exec: "flux": executable '
    "file not found in $PATH: unknown.": "container-program-missing",
    "docker: Error response from daemon: OCI runtime create failed: runc create failed: unable to start container "
    'process: exec: "/run.sh": permission denied: unknown.': "container-program-not-executable",
    "fusermount: mount failed: Operation not permitted": "container-mount",
    "FATAL:   while creating squashfs: /opt/bin/mksquashfs command failed: exit status 1: x": "squashfs-not-packed",
    "FATAL:   while creating squashfs: /opt/bin/mksquashfs command failed: exit status 1: No space left on device": (
        "container-build-space"
    ),
    "FATAL:   container creation failed: mount hook function failure: mount overlay->/a/final error: while "
    "mounting overlay: can't mount overlay filesystem to /a/final: operation not permitted": "container-overlay-refused",
    "FATAL:   container creation failed: mount hook function failure: mount overlay->/a/final error: while "
    "mounting overlay: can't mount overlay filesystem to /a/final: invalid argument": "container-overlay-refused",
    "FATAL:   container creation failed: mount hook function failure: mount "
    "/proc/self/fd/8->/a/session/overlay-images/0 error: while mounting overlay image: can't mount ext3 "
    "filesystem: invalid argument": "overlay-image-not-mounted",
    "FATAL:   container creation failed: mount hook function failure: mount "
    "/proc/self/fd/8->/a/session/overlay-images/0 error: while mounting image /proc/self/fd/8: failed to mount "
    "ext3 filesystem: read-only file system": "overlay-image-not-mounted",
    "Error processing tar file(exit status 1): there might not be enough IDs available in the namespace (requested "
    "0:12)": "container-subuid",
    "unshare: unshare failed: No space left on device": "container-user-namespaces",
    "bwrap: Creating new namespace failed: No space left on device": "container-user-namespaces",
    "ERROR  : 'newgidmap' execution failed. Check that 'newgidmap' is setuid root, or has required capabilities.": (
        "container-map-helper"
    ),
    "newgidmap: gid range [0-1) -> [1000-1001) not allowed": "container-subuid",
}
CRASHES = {
    "ConnectionResetError: [Errno 104] Connection reset by peer\nFailures:\n  exitcode  : -15 (pid: 8832)  "
    "(SIGTERM)\nRoot Cause (first observed failure):\n  exitcode  : -9 (pid: 8833)  (SIGKILL)": "torchrun-rank-killed",
    "job.sh: line 9: 4711 Killed                  python prep.py\nBrokenPipeError: [Errno 32] Broken pipe": "killed-in-script",
    "job.sh: line 3: 4711 Segmentation fault      (core dumped) ./flux": "segmentation-fault",
    "free(): invalid pointer": "memory-damaged",
    "corrupted size vs. prev_size": "memory-damaged",
    "parsl.executors.high_throughput.errors.WorkerLost: Task failure due to loss of worker 0 on host n1": "worker-process-died",
    "mpirun ended with 124": "ended-by-timeout",
    "ERROR    failed (exitcode: -7) local_rank: 0 (pid:      api.py:672": "bus-error",
    "launch.py:321:sigkill_handler] ['python', 'train.py'] exits with return code = -9": "killed",
    "     @     0x7fa08bf26687  (unknown)\n     @     0x7fa08c5791e1  flux::Memory::~Memory()\nAborted (core "
    "dumped)": "aborted",
}
CUDA = {
    "nvidia-container-cli: requirement error: unsatisfied condition: cuda>=12.4": "driver-too-old",
    "docker: Error response from daemon: OCI runtime create failed: runc create failed: nvidia-container-cli: "
    "initialization error: load library failed: unknown.": "nvidia-driver-missing",
    "No CUDA device visible, this model needs at least 1 GPU. Bye.": "cuda-no-device-error",
    "Invalid handle. Cannot load symbol cudnnCreateTensorDescriptor": "cudnn-not-found",
    "RuntimeError: cuDNN error: CUDNN_STATUS_NOT_INITIALIZED": "cudnn-not-initialised",
    "RuntimeError: CUDA error: CUBLAS_STATUS_INVALID_VALUE when calling `cublasSgemm( handle)`": "cublas-failed",
    "RuntimeError: CUDA error: CUBLAS_STATUS_NOT_INITIALIZED when calling `cublasCreate(handle)`": "cublas-failed",
    "RuntimeError: cuFFT error: CUFFT_INTERNAL_ERROR": "cublas-failed",
    "RuntimeError: cusolver error: CUSOLVER_STATUS_EXECUTION_FAILED": "cublas-failed",
    "Failed to initialize NVML: Unknown Error": "nvidia-driver-missing",
    "RuntimeError: Unexpected error from cudaGetDeviceCount(). Error 803: system has unsupported display driver / "
    "cuda driver combination": "driver-parts-differ",
    "E cuda_diagnostics.cc:313] kernel version 470.57.2 does not match DSO version 460.32.3 -- cannot find working "
    "devices": "driver-parts-differ",
    "Unexpected error from cudaGetDeviceCount(). Error 804: forward compatibility was attempted on non supported HW": (
        "cuda-compat-refused"
    ),
    "the provided PTX was compiled with an unsupported toolchain.": "driver-too-old",
    "RuntimeError: CUDA error: a PTX JIT compilation failed": "ptx-refused",
    "Unable to determine the device handle for GPU0000:41:00.0: Unknown Error": "gpu-broken",
    "RuntimeError: No CUDA GPUs are available": "gpu-not-seen",
    "RuntimeError: CUDA error: all CUDA-capable devices are busy or unavailable": "gpu-busy",
    "torch.AcceleratorError: CUDA error: CUDA-capable device(s) is/are busy or unavailable": "gpu-busy",
    "RuntimeError: CUDA error: no CUDA-capable device is detected": "cuda-no-device-error",
    "nvrtc: error: invalid value for --gpu-architecture (-arch)": "ptxas-too-old",
    "RuntimeError: CUDA error: no kernel image is available for execution on the device": "no-kernel-image",
    "RuntimeError: CUDA error: device-side assert triggered": "cuda-device-assert",
    "RuntimeError: CUDA error: unknown error": "cuda-cannot-start",
    "RuntimeError: CUDA error: an illegal memory access was encountered": "cuda-illegal-access",
    "ptxas fatal   : Value 'sm_100' is not defined for option 'gpu-name'": "ptxas-too-old",
    "ptxas fatal   : Ptx assembly aborted due to errors": "ptxas",
    "UnknownError: JIT compilation failed. [Op:Sqrt]": "xla-jit-failed",
    "RuntimeError: CUDA error: MPS client failed to connect to the MPS control daemon or the MPS server": "cuda-mps",
    "CUDA_ERROR_NOT_PERMITTED: operation not permitted": "gpu-busy",
    "RuntimeError: NCCL communicator was aborted on rank 3.\ntorch.OutOfMemoryError: CUDA out of memory.": "gpu-out-of-memory",
    "NvmlException: NVML_ERROR_LIB_RM_VERSION_MISMATCH": "driver-parts-differ",
    "Last error:\nCuda failure 'unspecified launch failure'\ntorch.OutOfMemoryError: CUDA out of memory.": "gpu-out-of-memory",
    "Cuda failure 'an illegal memory access was encountered'": "cuda-illegal-access",
    "n1: Test CUDA failure common.cu:941 'out of memory'": "gpu-out-of-memory",
    "RuntimeError: ran out of device memory": "gpu-out-of-memory",
    "std::bad_alloc: out_of_memory: RMM failure at: cuda_memory_resource.hpp": "gpu-out-of-memory",
    "CUDA failure 35; GPU=-683076400 ; hostname=n1 ; expr=cudaStreamCreate(&_commStream)": "driver-too-old",
    "CUDA failure 2: out of memory ; GPU=0 ; hostname=n1 ; expr=cudaMalloc(&p, n)": "gpu-out-of-memory",
    "CUDA failure 100: no CUDA-capable device ; GPU=-1 ; hostname=n1 ; expr=cudaSetDevice(d)": "cuda-no-device-error",
    "CUDA failure 46 ; GPU=0 ; hostname=n1 ; expr=cudaSetDevice(d)": "gpu-busy",
    "CUDA failure 101 ; GPU=0 ; hostname=n1 ; expr=cudaSetDevice(d)": "gpu-index",
    "CUDA failure 209 ; GPU=0 ; hostname=n1 ; expr=cudaGetLastError()": "no-kernel-image",
    "CUDA failure 700 ; GPU=0 ; hostname=n1 ; expr=cudaStreamSynchronize(s)": "cuda-illegal-access",
    "RuntimeError: CUDA out of memory. Tried to allocate 386.00 MiB (GPU 0; 60.97 GiB total capacity)": "gpu-out-of-memory",
}
HOROVOD = {
    "  Could NOT find Tensorflow (missing: Tensorflow_LIBRARIES)": "tensorflow-not-found",
    "ValueError: Duplicate tensor name loss": "horovod-same-name",
    "Available Frameworks:\n    [ ] TensorFlow\n    [ ] PyTorch\n    [ ] MXNet\n\nAvailable Controllers:\n    [X] "
    "MPI": "horovod-nothing-built",
    'Traceback (most recent call last):\n  File "/e/site-packages/torch/distributed/distributed_c10d.py", line '
    "1509, in _new_process_group_helper\n    backend_class = ProcessGroupGloo(store, rank, size)\nRuntimeError: "
    "Gloo connectFullMesh failed with [/x/third_party/gloo/gloo/transport/tcp/pair.cc:14] no error": "horovod-gloo",
}
LIMITS = {
    "clang++: error: unable to execute command: Killed": "compiler-out-of-memory",
    "libflux.so: failed to map segment from shared object: Cannot allocate memory": "library-not-mapped-memory",
    "PermissionError: [Errno 1] Operation not permitted: '/a/b' -> '/c/d'": "hard-links",
    "LustreError: 167-0: flux-MDT0000: This client was evicted by flux-MDT0000": "file-system-not-responding",
    "RuntimeError: unable to allocate shared memory(shm) for file </torch_44_39_0>: No space left on device (28)": (
        "shared-memory-full"
    ),
    "n1 spank-epilog[3]: error: pyxis:     mkdir: cannot create directory '/run/enroot': Read-only file system": (
        "read-only-file-system"
    ),
    "tar: a: Wrote only 512 of 10240 bytes": "disk-full",
    "[n1:42] *** An error occurred in MPI_File_write\n[n1:42] *** reported by process [3517775873,0]\n[n1:42] *** "
    "on communicator MPI_COMM_WORLD\n[n1:42] *** MPI_ERR_NO_SPACE: no space left on device\n[n1:42] *** "
    "MPI_ERRORS_ARE_FATAL (processes in this communicator will now abort,\n[n1:42] ***    and potentially your MPI "
    "job)": "disk-full",
    "FATAL:   container creation failed: mount hook function failure: mount overlay->/a/final error: while "
    "mounting overlay: can't mount overlay filesystem to /a/final: stale file handle": "stale-file-handle",
    "what():  std::bad_alloc": "out-of-memory",
}
LOADER = {
    "Please verify that both the operating system and the processor support Intel(R) AVX512F instructions.": "cpu-without-avx",
    "OSError: /env/lib/libflux.so: invalid ELF header": "library-damaged",
    "symbol cublasLtCreate version libcublasLt.so.11 not defined in file libcublasLt.so.11 with link time reference": (
        "undefined-symbol"
    ),
    "a.so: symbol _ZN1a, version GLIBCXX_3.4.21 not defined in file libstdc++.so.6 with link time reference": "glibcxx",
}
MODULES = {
    "ModuleCmd_Load.c(213):ERROR:150: Module 'flux/2' conflicts with the currently loaded module(s) 'flux/1'": "module-family",
    "ModuleCmd_Load.c(213):ERROR:151: Module 'flux/2' depends on one of the module(s) 'gcc/9'": "module-needs-others",
    "ModuleCmd_Load.c(244):ERROR:105: Unable to locate a modulefile for 'flux/3'": "module-unknown",
    "  /modules/flux.lua: /usr/share/lmod/lmod/libexec/ModuleA.lua:676: Did not find mpath in mA": "module-cache",
    "  ERROR: Conflicting flux is loaded": "module-family",
    "Lmod has detected the following error: flux: you are not in the group flux6; ask the help desk": "module-message",
    "/usr/share/lmod/lmod/init/bash: line 109: /apps/lmod/8.7/libexec/lmod: No such file or directory": (
        "module-command-missing"
    ),
    "  ERROR: Conflicting 'mpi' is loading\n\nLoading mpi/2021\n  ERROR: Load of requirement '/opt/mpi' failed": (
        "module-conflict-loading"
    ),
    "/opt/libexec/modulefiles/foo.lua:3: attempt to call global 'prepnd_path' (a nil value)": "modulefile-broken",
    "/opt/lmod/lmod/libexec/SitePackage.lua:12: attempt to index a nil value (global 'x')": "modulefile-broken",
    "Loading B\n  Error: B cannot be loaded due to missing prereq.\n    HINT: the following modules must be loaded "
    "first: C": "module-needs-others",
    "/usr/bin/lua: ./src/utils.lua:896: module 'flux' not found:": "lua-error",
    "Lmod Warning: MODULEPATH is undefined.\nLmod has detected the following error: The following module(s) are "
    'unknown: "frameworks/2026.1.0"\npython: command not found': "modulepath-undefined",
}
MPI = {
    "While computing bindings, we found no available cpus on": "mpi-binding",
    "srun: error: Couldn't load specified plugin name for mpi/pmix: Dlopen of plugin file failed": "srun-mpi",
    "srun: error: Couldn't find the specified plugin name for mpi/pmix looking at all files": "srun-mpi",
    "A request was made to bind to that would result in binding more": "mpi-binding",
    "[PE_3]:inet_connect:inet_connect: connect failed after 301 attempts": "cray-ranks-not-connected",
    "slurmstepd: error: mpi/pmix_v4: pmixp_p2p_send: n3 [0]: pmixp_utils.c:467: send failed": "slurm-pmix-plugin",
    "It appears as if there is not enough space for /tmp/ompi.n1/shared_mem (the shared-memory\nbacking file)": (
        "mpi-shared-memory"
    ),
    "[n1][[1,1],0][btl_tcp_frag.c:237:mca_btl_tcp_frag_recv] mca_btl_tcp_frag_recv: readv failed: Connection timed "
    "out (110)": "mpi-connection-lost",
    "[n1][[1,1],0][btl_tcp_endpoint.c:8:mca_btl_tcp_endpoint_complete_connect] connect() to 10.0.0.1 failed: "
    "Connection refused (111)": "mpi-tcp-connect",
    "mm_posix.c:194  UCX  ERROR Not enough memory to write total of 99 bytes. Please check that /dev/shm or the "
    "directory you specified has more available memory.": "mpi-shared-memory",
    "No PMIx server was reachable, but a PMI1/2 was detected.\n\nIf srun is being used to launch application,  8 "
    "singletons will be started.": "mpi-singletons",
    "Fatal error in PMPI_Reduce: Invalid datatype, error stack:": "mpi-communicator-invalid",
    "Error, rank 3 is already assigned": "rankfile",
    "Some of the requested hosts are not included in the current allocation for the": "hosts-not-in-job",
    "Open RTE was unable to open the hostfile:": "hostfile",
    "[mpiexec@n1] HYDT_bscd_pbs_wait_for_completion (pbs_wait.c:67): tm_poll(obit_event) failed with TM error 17002": (
        "mpi-outside-of-pbs"
    ),
    "[mpiexec@n1] HYDT_bsci_launcher_pbs_init (pbs_init.c:33): tm_init() failed with TM error 17002": "mpi-outside-of-pbs",
    "MPI_File_open(112): open failed on a remote node": "mpi-io-file-system",
    "[n1:6] PMIX ERROR: OUT-OF-RESOURCE in file ../src/mca/common/dstore/dstore_segment.c at line 208": "mpi-session-folder",
    'mpirun: Error: unknown option "-np"': "mpi-own-program-missing",
    "mpirun has exited due to process rank 1 on\nnode node01 exiting improperly. There are three reasons this "
    'could occur:\n\n1. this process did not call "init" before exiting': "mpi-exit-without-finalize",
    "  Function:    ibv_create_cq()\n  Error:       Device or resource busy (errno=16)": "ib-completion-queue",
    "mlx5_core 0000:61:00.0: mlx5_cmd_check:795:(pid 5): ALLOC_UAR(0x802) op_mod(0x0) failed, status limits "
    "exceeded(0x8)": "ib-completion-queue",
    "ib_iface.c:1138 UCX  ERROR ibv_create_cq(cqe=256) failed: Connection timed out": "ucx-adapter",
    "Fatal error in PMPI_Comm_size: Invalid communicator, error stack:\nPMPI_Comm_size(124): "
    "MPI_Comm_size(comm=0x0, size=0x7ffc4c1) failed": "mpi-communicator-unset",
    "[n1:42] *** An error occurred in MPI_File_open\n[n1:42] *** reported by process [3517775873,0]\n[n1:42] *** "
    "on communicator MPI_COMM_WORLD\n[n1:42] *** MPI_ERR_NO_SUCH_FILE: no such file or directory\n[n1:42] *** "
    "MPI_ERRORS_ARE_FATAL (processes in this communicator will now abort,\n[n1:42] ***    and potentially your MPI "
    "job)": "ompio-file",
    "[n1:42] *** An error occurred in MPI_File_open\n[n1:42] *** reported by process [3517775873,0]\n[n1:42] *** "
    "on communicator MPI_COMM_WORLD\n[n1:42] *** MPI_ERR_ACCESS: invalid access to file\n[n1:42] *** "
    "MPI_ERRORS_ARE_FATAL (processes in this communicator will now abort,\n[n1:42] ***    and potentially your MPI "
    "job)": "ompio-file",
    "[n1:42] *** An error occurred in MPI_File_write_all\n[n1:42] *** reported by process [3517775873,0]\n[n1:42] "
    "*** on communicator MPI_COMM_WORLD\n[n1:42] *** MPI_ERR_IO: input/output error\n[n1:42] *** "
    "MPI_ERRORS_ARE_FATAL (processes in this communicator will now abort,\n[n1:42] ***    and potentially your MPI "
    "job)": "ompio-file",
    "[n1:42] *** An error occurred in MPI_Comm_spawn\n[n1:42] *** reported by process [3517775873,0]\n[n1:42] *** "
    "on communicator MPI_COMM_WORLD\n[n1:42] *** MPI_ERR_SPAWN: could not spawn processes\n[n1:42] *** "
    "MPI_ERRORS_ARE_FATAL (processes in this communicator will now abort,\n[n1:42] ***    and potentially your MPI "
    "job)": "mpi-programs-not-connected",
    "[n1:42] *** An error occurred in MPI_Comm_connect\n[n1:42] *** reported by process [3517775873,0]\n[n1:42] "
    "*** on communicator MPI_COMM_WORLD\n[n1:42] *** MPI_ERR_PORT: invalid port\n[n1:42] *** MPI_ERRORS_ARE_FATAL "
    "(processes in this communicator will now abort,\n[n1:42] ***    and potentially your MPI job)": (
        "mpi-programs-not-connected"
    ),
    "[n1:42] *** An error occurred in MPI_Info_set\n[n1:42] *** reported by process [3517775873,0]\n[n1:42] *** on "
    "communicator MPI_COMM_WORLD\n[n1:42] *** MPI_ERR_INFO: invalid info object\n[n1:42] *** MPI_ERRORS_ARE_FATAL "
    "(processes in this communicator will now abort,\n[n1:42] ***    and potentially your MPI job)": "mpi-message-truncated",
    "[n1:42] *** An error occurred in MPI_Win_fence\n[n1:42] *** reported by process [3517775873,0]\n[n1:42] *** "
    "on communicator MPI_COMM_WORLD\n[n1:42] *** MPI_ERR_WIN: invalid window\n[n1:42] *** MPI_ERRORS_ARE_FATAL "
    "(processes in this communicator will now abort,\n[n1:42] ***    and potentially your MPI job)": "mpi-message-truncated",
    "--------------------------------------------------------------------------\nThe system has exhausted its "
    "available ranks - terminating\n--------------------------------------------------------------------------": (
        "mpi-mapping-refused"
    ),
    "--------------------------------------------------------------------------\nmpirun was unable to find the "
    "specified executable file, and therefore\ndid not launch the job.  This error was first reported for process\n"
    "rank 0; it may have occurred for other processes as well.\n\nNode:       n1\nExecutable: -genv\n"
    "--------------------------------------------------------------------------": "mpi-program-is-option",
    "Attempting to use an MPI routine (internal_Comm_size) before initializing or after finalizing MPICH": "mpi-before-init",
    " orte_ess_set_name failed\n --> Returned value A system-required executable either could not be found\nor was "
    "not executable by this user (-127) instead of ORTE_SUCCESS\nIt looks like MPI_INIT failed for some reason; "
    "your parallel process is": "mpi-own-program-missing",
    "**********************************************************\n\nmpirun does not support recursive calls\n\n"
    "**********************************************************\n[n1:05140] [[44144,1],0] ORTE_ERROR_LOG: File "
    "open failure in file util/hnp_contact.c at line 91": "mpi-recursive",
}
NCCL = {
    "n1:71:92 [0] misc/x.cc:310 NCCL WARN Call to ibv_modify_qp failed with error Invalid argument": "nccl-infiniband-port",
    "n1:71:92 [0] misc/x.cc:310 NCCL WARN Call to ibv_create_qp failed with error Cannot allocate memory": (
        "locked-memory-of-adapter"
    ),
    "n1:71:92 [0] misc/x.cc:310 NCCL WARN Call to ibv_reg_mr failed": "nccl-infiniband",
    "mlx5.c:1  UCX  ERROR ibv_create_cq(cqe=4096) failed: Cannot allocate memory": "locked-memory-of-adapter",
    "n1:71:92 [0] misc/x.cc:310 NCCL WARN Call to connect to 10.0.0.2<41000> failed : Connection refused": "nccl-connection",
    "n1:71:92 [0] misc/x.cc:310 NCCL WARN Cuda failure 'system not yet initialized'": "gpu-fabric-manager",
    "Watchdog caught collective operation timeout: WorkNCCL(OpType=ALLREDUCE)\nNCCL communicator was aborted on "
    "rank 1.": "nccl-timeout",
    "n1:71:92 [0] misc/x.cc:310 NCCL WARN NET/OFI Failed to initialize sendrecv protocol": "nccl-ofi",
    "n1:7:9 [0] NCCL INFO connect returned Connection refused, retrying (33/34)": "nccl-connect-retries",
    "n1:7:9 [0] NCCL INFO connect returned No route to host, retrying (33/34)": "nccl-connect-retries",
    "n1:26923:27059 [2] NCCL INFO misc/socket.cc:505 -> 2 (Operation now in progress)": "nccl-connect-retries",
    "n1:123:456 [0] transport/nvls.cc:244 NCCL WARN Cuda failure 1 'invalid argument'": "nccl-nvls",
    "Cuda failure 1 'invalid argument'": "nccl-cuda-error",
    "Cuda failure 'initialization error'": "nccl-cuda-says",
    "n1:71:92 [0] enqueue.cc:100 NCCL WARN Cuda failure 3 'initialization error'": "nccl-cuda-says",
    "Cuda failure 2 'out of memory'": "nccl-gpu-memory",
    "Cuda failure 802 'system not yet initialized'": "gpu-fabric-manager",
    "libibverbs: ibv_create_qp failed: Input/output error": "nccl-infiniband",
    "E0912 23:44:51.552719 2536982 pjrt_stream_executor_client.cc:3008] Execution of replica 0 failed: INTERNAL: "
    "NCCL operation ncclAllReduce( send_buffer.opaque(), ToNcclCount(dtype, count), comm_) failed: invalid "
    "argument (run with NCCL_DEBUG=WARN for details).": "nccl-invalid-usage",
    "E0912 23:44:51.552719 2536982 pjrt_stream_executor_client.cc:3008] Execution of replica 0 failed: INTERNAL: "
    "NCCL operation ncclAllReduce(send_buffer.opaque()) failed: internal error (run with NCCL_DEBUG=WARN for "
    "details).": "nccl-internal",
    "E0912 23:44:51.552719 2536982 pjrt_stream_executor_client.cc:3008] Execution of replica 0 failed: INTERNAL: "
    "NCCL operation ncclAllReduce(send_buffer.opaque()) failed: remote process exited or there was a network error.": (
        "nccl-connection"
    ),
    "gpu2:1653:1695 [0] include/socket.h:347 NCCL WARN Call to bind failed : Address already in use": "nccl-port-in-use",
    "gpu2:1653:1695 [0] include/socket.h:347 NCCL WARN Call to bind failed : Cannot assign requested address": (
        "nccl-connection"
    ),
}
NETWORK = {
    "fatal: No url found for submodule path 'lib/flux' in .gitmodules": "git-submodule-outside",
    "SSLError: [SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed: certificate has expired (_ssl.c:9)": (
        "certificate-expired"
    ),
    "curl: (60) SSL certificate problem: certificate has expired": "certificate-expired",
    "curl: (60) SSL certificate problem: unable to get local issuer certificate": "certificate",
    "SSLError: [SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed: self signed certificate (_ssl.c:9)": "certificate",
    "ModuleNotFoundError: No module named '_ssl'": "python-without-ssl",
    "curl: (56) Recv failure": "server-does-not-answer",
    "requests.exceptions.HTTPError: 401 Client Error: Unauthorized for url: https://example.org/a": "http-refused",
    "curl: (22) The requested URL returned error: 403": "http-refused",
    "urllib.error.HTTPError: HTTP Error 429: Too Many Requests": "http-too-many-requests",
    "requests.exceptions.HTTPError: 502 Server Error: Bad Gateway for url: https://example.org/a": "http-server-failed",
    "fatal: unable to connect to git.example.org:": "git-connection",
    "fatal: early EOF": "git-connection",
    "kex_exchange_identification: read: Connection reset by peer": "ssh-failed",
    "u@n2: Permission denied (publickey).": "ssh-login",
    "ssh: Could not resolve hostname n9: Name or service not known": "ssh-host-unknown",
    "ssh: connect to host n9 port 22: Connection timed out": "ssh-unreachable",
    "requests.exceptions.InvalidProxyURL: Please check proxy URL. It is malformed": "address-malformed",
    "fatal: unable to access 'https://git.example.org/flux.git/': Could not resolve host: git.example.org\nCMake "
    'Error: The source directory "/home/ada/flux" does not exist.': "no-network",
    "Cloning into 'solve'...\nssh: connect to host n1 port 22: Connection refused\nfatal: Could not read from "
    "remote repository.\nCloning into 'other'...\ndone.": "ssh-unreachable",
    "Cloning into 'solve'...\nssh: connect to host n1 port 22: Connection refused\nfatal: Could not read from "
    "remote repository.\nCloning into 'solve'...\nssh: connect to host n1 port 22: Connection refused\nfatal: "
    "Could not read from remote repository.": "ssh-unreachable",
    "curl: (7) Failed to connect to localhost port 8080 after 0 ms: Couldn't connect to server": "connection-refused",
    "ada@n2: Permission denied (publickey,password).": "ssh-login",
}
PROGRAM = {
    "/var/spool/slurmd/job1/slurm_script: line 14: -np: command not found": "line-not-continued",
    "./run.sh: 14: -np: not found": "line-not-continued",
    "run.sh: line 2: --seed: command not found": "line-not-continued",
    'run_job.sh: 5: Syntax error: "(" unexpected': "sh-instead-of-bash",
    '/bin/sh: 1: Syntax error: "(" unexpected': "make-command-syntax",
    "NewRandomAccessFile failed to Create/Open: /data/train : Is a directory": "folder-instead-of-file",
    "NotFoundError: NewRandomAccessFile failed to Create/Open: /data/a : No such process": "file-not-found",
    "run.sh: 3: DATA_DIR: parameter not set": "shell-variable-unset",
    "run.sh: line 3: $OUT: ambiguous redirect": "shell-test-of-empty-variable",
    "run.sh: 3: Bad substitution": "sh-instead-of-bash",
    "run.sh: line 3: unexpected EOF while looking for matching `\"'": "shell-syntax",
    "run.sh: line 3: ./flurble: Permission denied": "program-without-rights",
    "AttributeError: 'NoneType' object has no attribute 'dtype'": "value-is-none",
    "nbclient.exceptions.DeadKernelError: Kernel died": "jupyter",
    "Command not found: flurble": "command-not-found",
    "job.sh: line 3: setenv: command not found": "script-of-other-shell",
    "train.py: line 1: import: command not found": "script-of-python",
    "a.sh: line 3: cd: $'/tmp\\r': No such file or directory": "core-file-crlf",
    "Traceback (most recent call last):\n  File \"a.py\", line 3, in <module>\n    subprocess.run(['sbatch', "
    "'a.sh'])\n  File \"/usr/lib/python3.11/subprocess.py\", line 548, in run\n    with Popen(*popenargs, "
    "**kwargs) as process:\nFileNotFoundError: [Errno 2] No such file or directory: b'sbatch'": "command-not-found",
    "job.sh: line 2: /opt/python/3.10/bin/python: No such file or directory\njob.sh: line 2: venv/bin/activate: No "
    "such file or directory\nerror: externally-managed-environment": "interpreter-missing",
}
PYTHON = {
    "ERROR: Could not find a version that satisfies the requirement requirements.txt (from versions: none)": (
        "requirements-without-r"
    ),
    "error: linker `cc` not found": "rust-error",
    "error: failed to get `flux` as a dependency of package `solver v0.1.0`": "rust-error",
    "error[E0308]: mismatched types": "rust-error",
    "ModuleNotFoundError: No module named 'tensorflow'": "tensorflow-not-installed",
    "ModuleNotFoundError: No module named 'tensorflow.compat'": "tensorflow-incomplete",
    "ModuleNotFoundError: No module named 'tensorflow.python'": "tensorflow-incomplete",
    "AttributeError: 'MessageFactory' object has no attribute 'GetPrototype'": "protobuf-descriptors",
    "ImportError: cannot import name 'builder' from 'google.protobuf.internal' "
    "(/e/google/protobuf/internal/__init__.py)": "protobuf-too-old",
    "AttributeError: module 'google.protobuf.descriptor' has no attribute '_internal_create_key'": "protobuf-too-old",
    "TypeError: __new__() got an unexpected keyword argument 'serialized_options'": "protobuf-too-old",
    "TypeError: __new__() got an unexpected keyword argument 'file'": "protobuf-too-old",
    "VersionError: Detected mismatched Protobuf Gencode/Runtime major versions when loading a.proto: gencode "
    "5.27.2 runtime 6.30.0. Same major version is required.": "protobuf-gencode",
    "ImportError: cannot import name 'descriptor' from 'google.protobuf' (/e/google/protobuf/__init__.py)": "protobuf-missing",
    "[libprotobuf ERROR descriptor_database.cc:58] File already exists in database: flux.proto": "protobuf-twice",
    "ValueError: numpy.dtype size changed, may indicate binary incompatibility. Expected 96 from C header, got 88 "
    "from PyObject": "numpy-2-abi",
    "ValueError: numpy.ndarray size changed, may indicate binary incompatibility. Expected 88 from C header, got "
    "80 from PyObject": "numpy-older-than-build",
    "ValueError: numpy.ufunc size changed, may indicate binary incompatibility. Expected 232 from C header, got "
    "216 from PyObject": "numpy-older-than-build",
    "ValueError: numpy.ndarray size changed, may indicate binary incompatibility. Expected 80 from C header, got "
    "96 from PyObject": "numpy-abi",
    "AttributeError: _ARRAY_API not found": "numpy-2-abi",
    "ImportError: No module named 'numpy.core._multiarray_umath'": "numpy-damaged",
    "RuntimeError: module compiled against ABI version 0x1000009 but this version of numpy is 0x2000000": "numpy-2-abi",
    "AttributeError: module 'numpy' has no attribute 'object'.": "numpy-removed-names",
    "AttributeError: module 'numpy' has no attribute 'Inf'": "numpy-removed-names",
    "AttributeError: module 'numpy' has no attribute 'dtypes'": "numpy-name-missing",
    "AttributeError: module 'numpy' has no attribute 'array'": "numpy-name-missing",
    "ImportError: /e/h5py/_errors.cpython-39-x86_64-linux-gnu.so: undefined symbol: H5Pset_fapl_ros3": "h5py-broken",
    "ImportError: `save_model` requires h5py.": "h5py-missing",
    "AttributeError: 'str' object has no attribute 'decode'": "text-decoded-again",
    "ERROR: Could not install packages due to an OSError: [Errno 2] No such file or directory: "
    "'/croot/flux_1670/work'": "pip-path-of-another-machine",
    "ERROR: Could not install packages due to an OSError: [Errno 2] No such file or directory: "
    "'/env/lib/python3.9/site-packages/numpy/METADATA'": "pip-files-changed",
    "ERROR: Cannot uninstall blinker 1.4, RECORD file not found.": "pip-cannot-uninstall",
    "ModuleNotFoundError: No module named 'pkg_resources'": "pkg-resources-missing",
    "ModuleNotFoundError: No module named 'pkg_resources.extern'": "submodule-missing",
    "ModuleNotFoundError: No module named 'setuptools'": "build-needs-module",
    "ModuleNotFoundError: No module named 'imp'": "python-without-distutils",
    "ModuleNotFoundError: No module named 'distutils.util'": "python-without-distutils",
    "ModuleNotFoundError: No module named 'numpy.distutils'": "python-without-distutils",
    "TypeError: canonicalize_version() got an unexpected keyword argument 'strip_trailing_zero'": "setuptools-mixed",
    "CondaSSLError: OpenSSL appears to be unavailable on this machine. OpenSSL is required to": "conda-openssl",
    "PackagesNotFoundError: The following packages are missing from the target environment:": "conda-package-not-installed",
    "importlib.metadata.PackageNotFoundError: No package metadata was found for flux": "requirement-unmet",
    "ERROR: file:///src does not appear to be a Python project: neither 'setup.py' nor 'pyproject.toml' found.": (
        "pip-folder-wrong"
    ),
    "a.c:3:5: error: implicit declaration of function 'PyObject_CallNoArgs'": "c-code-for-older-python",
    "a.c:3:5: error: implicit declaration of function '_PyUnicode_Ready'": "c-code-for-older-python",
    "AttributeError: module 'typing' has no attribute '_ClassVar'": "dataclasses-backport",
    "AttributeError: module 'typing' has no attribute 'Literal'": "python-too-old",
    "AttributeError: 'build_ext' object has no attribute 'cython_sources'": "cython-sources",
    "Encountered problems while solving.\nProblem: package flux-0.1.0-py37_2 requires python >=3.7,<3.8.0a0, but\n"
    "none of the providers can be installed": "resolver-conflict",
    "      error: pathspec 'csrc/cutlass' did not match any file(s) known to git\n      setup.py:78: UserWarning: "
    "flux was requested, but nvcc was not found.  Are you sure?": "nvcc-for-package-missing",
    "WARNING: Ignoring version 2.0.5 of omegaflux since it has invalid metadata:\nPlease use pip<24.1\nERROR: "
    "Could not find a version that satisfies the requirement omegaflux==2.0.5 (from versions: 1.0, 2.1)\nERROR: No "
    "matching distribution found for omegaflux==2.0.5": "pip-metadata-refused",
    "ERROR: Could not find a version that satisfies the requirement six==1.16.0 (from versions: none)\nERROR: No "
    "matching distribution found for six==1.16.0\nSuccessfully installed idna-3.4": "no-versions-at-all",
    "WARNING: Ignoring version 2.0.5 of omegaflux since it has invalid metadata:\nERROR: Could not find a version "
    "that satisfies the requirement other==1.0 (from versions: 2.1)\nERROR: No matching distribution found for "
    "other==1.0": "not-on-index-python",
    "/var/spool/slurmd/job42/slurm_script: line 13: activate: No such file or directory\nModuleNotFoundError: No "
    "module named 'torch'": "conda-not-initialised",
}
PYTORCH = {
    "ImportError: /env/lib/python3.9/site-packages/torch/lib/libtorch.so: undefined symbol: iJIT_Flux": "mkl-too-new-for-torch",
    'kernel.cu(12): error: identifier "THCCeilDiv" is undefined': "pytorch-extension-old",
    "ERROR: Could not find a version that satisfies the requirement torch==1.12.1+cu116 (from versions: none)": (
        "torch-index-needed"
    ),
    "KeyError: \"Override 'local-rank' not found in: ['seed']\"": "torch-local-rank",
    "RuntimeError: a leaf Variable that requires grad is being used in an in-place operation.": "tensor-changed-in-place",
    "KeyError: 'WORLD_SIZE'": "torch-distributed-not-started",
    "Waiting in store based barrier to initialize process group for rank: 0 (world_size=4, worker_count=16, "
    "timeout=0:01:00)": "torch-store-of-other-run",
    "train.py: error: unrecognized arguments: --local-rank 1": "torch-local-rank",
    "train.py: error: unrecognized arguments: --local_rank=1": "torch-local-rank",
    "Building extension module fused_adam...\nTraceback (most recent call last):\n  File "
    '"/e/site-packages/torch/utils/cpp_extension.py", line 2105, in _run_ninja_build\n    subprocess.run(\n'
    "subprocess.CalledProcessError: Command '['ninja', '-v']' returned non-zero exit status 1.": "torch-extension-build",
}
QUOTED = {
    'flux.cu (58) : error : identifier " flux_as_float " is undefined': "reported-error",
    "elasticsearch.ConflictError: ConflictError(409, 'flux')": "reported-error",
    "ERROR STOP init: bad time step": "reported-error",
    "sed: -e expression #1, char 26: unknown option to `s'\ncp: cannot stat 'a': No such file or directory": "reported-error",
    "(EngineCore) ERROR 07-16 14:23:18 [core.py:396] ValueError: placement group bundle index 3 is invalid.\n"
    "RuntimeError: Engine core initialization failed. See root cause above.": "reported-error",
    'n1.7: PSM3 can\'t open nic unit: -1 (err=23)\nTraceback (most recent call last):\n  File "train.py", line 3, '
    'in <module>\n    raise ValueError("bad flux")\nValueError: bad flux': "error-in-program",
    "playwright._impl._errors.TimeoutError: Page.click: Timeout 30000ms exceeded.": "reported-error",
    "d01 2020-01-02_00:03:00  9  points exceeded cfl=2 in domain d01\nTraceback (most recent call last):\n  File "
    '"train.py", line 3, in <module>\n    raise ValueError("bad flux")\nValueError: bad flux': "error-in-program",
    "fatal: the case is for 2 processes": "reported-error",
    "flux-broker: init: The directory '/g/.flux' does not exist.  Have you run \"flux keygen\"?": "reported-error",
    "slurmctld[25]: error: chdir(/cluster/var/slurm): No such file or directory\nslurmctld is stopped": "reported-error",
    "0.022s: job.exception type=alloc-check severity=0 resources already allocated\n0.024s: job.finish": "reported-error",
    "[2024-05-26 11:26:16,798 E 177479 178526] gcs_rpc_client.h:554: Failed to connect to GCS within 60 s": "reported-error",
    "EXITING: because of fatal EXECUTION error: something went wrong with forking readFilesCommand": "reported-error",
    "FATAL ERROR: Unable to open extended system file.\n[Partition 0][Node 0] End of program": "reported-error",
    "  165028 [F0D43740] 0x01 -> osm_vendor_bind: ERR 5426: Unable to register class 129 version 1": "reported-error",
    "Jan 26 13:14:57.552748 job-ingest.err[16639]: fluid_init failed": "reported-error",
    'audit: type=1400 audit(1772288942.112:254): apparmor="DENIED" operation="open" class="file" '
    'profile="/usr/sbin/cups-browsed" name="/a"\nTraceback (most recent call last):\n  File "train.py", line 3, in '
    '<module>\n    raise ValueError("bad flux")\nValueError: bad flux': "error-in-program",
    'audit: type=1400 audit(1772288942.112:254): apparmor="DENIED" operation="open" class="file" '
    'profile="/opt/flux/bin/flux" name="/a"\nTraceback (most recent call last):\n  File "train.py", line 3, in '
    '<module>\n    raise ValueError("bad flux")\nValueError: bad flux': "error-in-program",
    'Traceback (most recent call last):\n  File "/home/ada/sampling.py", line 317, in main\n    '
    'pool.map(replicate, replicates)\n  File "/apps/lib/python3.7/multiprocessing/pool.py", line 657, in get\n    '
    "raise self._value\nRuntimeError: 'RAxML_info.tts.QS1.3' does not exist": "error-in-program",
}
SCHEDULER = {
    "TERM_PREEMPT: job killed after preemption.": "preempted",
    "sbatch: error: You must specify an account (-A)": "account-not-given",
    "sbatch: error: Batch job submission failed: Invalid account or account/partition combination specified": "invalid-account",
    "comment = Can Never Run: Insufficient amount of resource: ngpus (R: 9 A: 4 T: 4)": "node-configuration",
    "             4711       gpu    train    ada PD       0:00      4 (AssocGrpCPUMinutesLimit)": "allocation-used-up",
    "             4711       gpu    train    ada PD       0:00      4 (QOSMaxGRESPerUser)": "pending-by-limit",
    "sbatch: error: QOSMaxSubmitJobPerUserLimit": "job-count-limit",
    "sbatch: error: AssocMaxSubmitJobLimit": "job-count-limit",
    "sbatch: error: QOSMaxWallDurationPerJobLimit": "job-time-too-long",
    "sbatch: error: Batch job submission failed: Requested time limit is invalid (missing or exceeds some limit)": (
        "job-time-too-long"
    ),
    "sbatch: error: Batch job submission failed: Job violates accounting/QOS policy (job submit limit, user's size "
    "and/or time limits)": "job-limits",
    "             4711       gpu    train    ada PD       0:00      4 (ReqNodeNotAvail, Reserved for maintenance)": (
        "nodes-reserved"
    ),
    "sbatch: error: Memory specification can not be satisfied": "node-memory-too-small",
    "sbatch: error: CPU count per node can not be satisfied": "node-cpus-too-few",
    "sbatch: error: Batch job submission failed: Requested node configuration is not available": "node-configuration",
    "srun: error: Unable to create step for job 42: Memory required by task is not available": "step-cannot-start",
    "srun: fatal: SLURM_MEM_PER_CPU and SLURM_MEM_PER_NODE are mutually exclusive.": "scheduler-options-exclude",
    "slurmstepd: error: execve(): ./flurble: Exec format error": "script-not-executable",
    "slurmstepd: error: execve(): ./flurble: Permission denied": "script-not-executable",
    "slurmstepd: error: execve(): ./flurble: No such file or directory": "script-missing-on-node",
    "slurm_load_jobs error: Unable to contact slurm controller (connect failure)": "scheduler-down",
    "sbatch: error: Batch job submission failed: System submissions disabled": "submissions-disabled",
    'sbatch: error: Munge encode failed: Failed to access "/run/munge/munge.socket.2": No such file': "munge",
    "sbatch: error: Batch job submission failed: Job dependency problem": "job-dependency",
    "sbatch: error: Batch job submission failed: Requested partition configuration not available now": "partition-down",
    "sbatch: error: Batch job submission failed: Required partition not available (inactive or drain)": "partition-down",
    "srun: error: Task launch for 42.0 failed on node n1: Job credential revoked": "job-credential-revoked",
    "srun: error: Task launch for 42.0 failed on node n1: Job credential expired": "slurm-credential",
    "Process terminated by User defined signal 2(12)": "scheduler-limit-signal",
    "slurmstepd: error: pyxis: couldn't mount the squashfs file": "pyxis",
    "slurmstepd: error: '/sys/fs/cgroup/cpuset/slurm/tasks' failed: No space left on device": "cgroups-used-up",
    "runc: failed to write 3: write /sys/fs/cgroup/cpuset/a/cgroup.procs: no space left on device": "cgroups-used-up",
    "slurmstepd: error: unable to create cgroup '/sys/fs/cgroup/memory/slurm/uid_1' : No space left on device": (
        "cgroups-used-up"
    ),
    "mkdir /sys/fs/cgroup/memory/docker/1f: no space left on device": "cgroups-used-up",
    "inotify_add_watch /sys/fs/cgroup/system.slice: no space left on device": "file-watches-used-up",
    "OSError: [Errno 28] inotify watch limit reached": "file-watches-used-up",
    "srun: error: Unable to allocate resources: Zero Bytes were transmitted or received": "scheduler-down",
    "sbatch: error: Batch job submission failed: Zero Bytes were transmitted or received": "scheduler-down",
    "srun: error: slurm_send_node_msg: Zero Bytes were transmitted or received": "scheduler-down",
    "srun: error: Unable to allocate resources: Requested GPUs not available": "gpu-count-of-job",
    "srun: error: Application launch failed: Socket timed out on send/recv operation": "launch-not-answered",
    "srun: error: Task launch for 8.0 failed on node n4: Socket timed out on send/recv operation\nsrun: error: "
    "Application launch failed: Socket timed out on send/recv operation": "node-does-not-answer",
    "slurmstepd: error: execve(): module: No such file or directory": "srun-shell-word",
    "slurmstepd: error: execve(): conda: No such file or directory": "script-missing-on-node",
    "slurmstepd: error: Could not open stdout file: Permission denied": "slurm-output-not-opened",
    "slurmstepd: error: Could not open stdout file /home/u/my logs/a: No such file or directory": "slurm-output-not-opened",
    "qsub: cannot connect to server cluster (errno=15008) trqauthd unable to authenticate. User or PID": "torque-authorization",
    "qsub: cannot connect to server cluster (errno=111) Connection refused": "scheduler-down",
    "[80.batch] JobId=80 completed with slurm_rc = 0, job_rc = 4021": "slurm-output-not-opened",
    "298.ba+      batch              flux          1  CANCELLED      0:9": "job-cancelled",
    "157490                         1          node19    TIMEOUT      0:0             0:0": "time-limit",
    "salloc: Prolog failure on node k003\nsalloc: error: Job allocation 23 has been revoked": "slurm-node-setup",
    'sinfo: error: Unable to resolve "login": Host name lookup failure\nsinfo: error: Unable to establish control '
    "machine address": "slurm-address-unresolved",
    "sinfo: error: get_addr_info: getaddrinfo() failed: Name or service not known: No error, attempt number 5\n"
    'sinfo: error: slurm_set_addr: Unable to resolve "n1"\nsinfo: error: Unable to establish control machine '
    "address": "slurm-address-unresolved",
    "srun: First task exited 60s ago\nsrun: StepId=1.0 tasks 0-24: running\nslurmstepd: error: *** STEP 1.0 ON n1 "
    "CANCELLED AT 2024-05-23T16:52:18 ***": "srun-others-ran-on",
}
SPACK = {
    "==> Error: Package 'fluxx' not found.": "spack-unknown-package",
    "==> Error: No such variant {'cudda'} for spec: 'flux+cudda'": "spack-unknown-variant",
    "==> Error: All fetchers failed for spack-stage-a-1\n    https://ftp.x.org/a-1.tar.gz: DetailedHTTPError: GET "
    "https://ftp.x.org/a-1.tar.gz returned 404: Not Found": "source-moved",
}
TENSORFLOW = {
    "ValueError: Received incompatible tensor with shape (16,) when attempting to restore variable with shape "
    "(10,) and name b": "checkpoint-of-other-model",
    "InvalidArgumentError: Expected begin[1] in [0, 40], but got 655561818": "index-out-of-range",
    "ValueError: mmap length is greater than file size": "saved-file-damaged",
    "_pickle.UnpicklingError: invalid load key, 'v'.": "lfs-pointer-read",
    "_pickle.UnpicklingError: invalid load key, '<'.": "web-page-instead-of-file",
    "_pickle.UnpicklingError: invalid load key, 'H'.": "data-file-damaged",
    "UnimplementedError: File system scheme 'gs' not implemented (file: 'gs://a/b')": "file-scheme-unknown",
    "RuntimeError: Calculated padded input size per channel: (1 x 1). Kernel size: (3 x 3).": "input-too-small",
    "RuntimeError: grad can be implicitly created only for scalar outputs": "no-gradients",
    "InvalidArgumentError: You must feed a value for placeholder tensor 'x' with dtype float": "placeholder-not-fed",
    "FailedPreconditionError: Attempting to use uninitialized value dense/bias": "variable-not-initialised",
    "ModuleNotFoundError: No module named 'tf_keras'": "tf-keras-missing",
    "InvalidArgumentError: Default MaxPoolingOp only supports NHWC on device type CPU": "data-format-of-gpus",
    "InvalidArgumentError: No OpKernel was registered to support Op 'CudnnRNN' used by node a": "op-not-supported",
    "RuntimeError: Visible devices cannot be modified after being initialized": "devices-configured-late",
    "UnavailableError: Task /job:worker/replica:0/task:1 heartbeat timeout.": "worker-not-answering",
    "ValueError: Could not interpret optimizer identifier: adam_v2": "keras-3",
    "ValueError: Only instances of `keras.Layer` can be added to a Sequential model. Received: "
    "<tf_keras.src.layers.core.dense.Dense object at 0x1>": "keras-mixed",
    "ValueError: Only instances of `keras.Layer` can be added to a Sequential model. Received: "
    "<tensorflow_hub.keras_layer.KerasLayer object at 0x7f>": "keras-mixed",
    "OSError: Unable to open file (file signature not found)": "saved-file-damaged",
}
HEALTHY = (
    (
        "configure:4555: $? = 0\nconfigure:4544: mpicc -V >&5\ngcc: error: unrecognized command line option '-V'\n"
        "configure:4555: $? = 4\nconfigure:4544: mpicc -qversion >&5\ngcc: error: unrecognized command line option '-qversion'"
    ),
    "-- Could NOT find MPI (missing: MPI_C_FOUND MPI_CXX_FOUND)\n-- Configuring done\n-- Generating done\n",
    "-- Could NOT find MPI_Fortran (missing: MPI_Fortran_LIB_NAMES)\n-- Configuring done\n",
    "-- Could NOT find Doxygen (missing: DOXYGEN_EXECUTABLE)\n-- Configuring done\n-- Generating done\n",
    "-- Could NOT find CUDA (missing: CUDA_TOOLKIT_ROOT_DIR CUDA_NVCC_EXECUTABLE)\n-- Configuring done\n",
    "-- Could NOT find PkgConfig (missing: PKG_CONFIG_EXECUTABLE)\n-- Configuring done\n",
    "cc1plus: warning: unrecognized command line option '-Wno-unused-but-set'\n",
    "/usr/bin/ld: warning: a.o: corrupt GNU_PROPERTY_TYPE (5) size: 0x10\n[100%] Built target flux\n",
    (
        "checking for gcc... gcc\n./configure: line 7437: /usr/bin/file: No such file or directory\nconfigure: "
        "creating ./config.status\nconfig.status: creating Makefile\n"
    ),
    (
        "checking for gcc... gcc\n./configure: line 15327: 2.6: command not found\nconfigure: creating "
        "./config.status\nconfig.status: creating Makefile\n"
    ),
    "Rust not found, installing into a temporary directory\nSuccessfully installed flux-1.0\n",
    "fusermount: failed to unmount /tmp/.mount_x: Invalid argument\nAll done\n",
    "fusermount: failed to unmount /tmp/.mount_x: Device or resource busy\nAll done\n",
    (
        "LustreError: 11-0: flux-OST0001: operation ost_connect to node 10.0.0.1@o2ib failed: rc = -114\nstep 1\nstep "
        "2\n"
    ),
    (
        "INFO: task kworker:42 blocked for more than 120 seconds.\ncell is computed\ncell is computed\ncell is "
        "computed\ncell is computed\ncell is computed\ncell is computed\ncell is computed\ncell is computed\ncell is "
        "computed\ncell is computed\ncell is computed\ncell is computed\ncell is computed\ncell is computed\ncell is "
        "computed\ncell is computed\ncell is computed\ncell is computed\ncell is computed\ncell is computed\ncell is "
        "computed\ncell is computed\ncell is computed\ncell is computed\ncell is computed\ncell is computed\ncell is "
        "computed\ncell is computed\ncell is computed\ncell is computed\ncell is computed\ncell is computed\ncell is "
        "computed\ncell is computed\ncell is computed\ncell is computed\ncell is computed\ncell is computed\ncell is "
        "computed\ncell is computed\ncell is computed\ncell is computed\ncell is computed\ncell is computed\ncell is "
        "computed\ncell is computed\ncell is computed\ncell is computed\ncell is computed\ncell is computed\ncell is "
        "computed\ncell is computed\ncell is computed\ncell is computed\ncell is computed\ncell is computed\ncell is "
        "computed\ncell is computed\ncell is computed\ncell is computed\n\n"
    ),
    (
        "a.py:1: RuntimeWarning: numpy.ufunc size changed, may indicate binary incompatibility. Expected 192 from C "
        "header, got 216 from PyObject\n"
    ),
    "warning: flux/_tree.pyx:12:4: Unreachable code\n",
    "performance hint: flux/_tree.pyx:20:5: Exception check on 'f' will always require the GIL to be acquired.\n",
    "/bin/bash: warning: setlocale: LC_ALL: cannot change locale (en_US.UTF-8)\n",
    "comment = Not Running: Insufficient amount of resource: ngpus\n",
    "slurm_load_jobs error: Invalid job id specified\n",
    "slurmstepd: error: Unable to create TMPDIR [/scratch/1]: Permission denied\n",
    (
        "job.sh: line 4: nvidia-smi: command not found\nstep is done\nstep is done\nstep is done\nstep is done\nstep "
        "is done\nstep is done\nstep is done\nstep is done\nstep is done\nstep is done\nstep is done\nstep is done\n"
        "step is done\nstep is done\nstep is done\nstep is done\nstep is done\nstep is done\nstep is done\nstep is "
        "done\nstep is done\nstep is done\nstep is done\nstep is done\nstep is done\nstep is done\nstep is done\nstep "
        "is done\nstep is done\nstep is done\nstep is done\nstep is done\nstep is done\nstep is done\nstep is done\n"
        "step is done\nstep is done\nstep is done\nstep is done\nstep is done\nstep is done\nstep is done\nstep is "
        "done\nstep is done\nstep is done\nstep is done\nstep is done\nstep is done\nstep is done\nstep is done\nstep "
        "is done\nstep is done\nstep is done\nstep is done\nstep is done\nstep is done\nstep is done\nstep is done\n"
        "step is done\nstep is done\nstep is done\nstep is done\nstep is done\nstep is done\nstep is done\nstep is "
        "done\nstep is done\nstep is done\nstep is done\nstep is done\nstep is done\nstep is done\nstep is done\nstep "
        "is done\nstep is done\nstep is done\nstep is done\nstep is done\nstep is done\nstep is done\nstep is done\n"
        "step is done\nstep is done\nstep is done\nstep is done\nstep is done\nstep is done\nstep is done\nstep is "
        "done\nstep is done\n"
    ),
    (
        "2021-05-02 10:11:12.1: W tensorflow/x/nvptx_compiler.cc:4] Failed to compile generated PTX with ptxas. "
        "Falling back to compilation by driver.\n"
    ),
    (
        "2021-05-02 10:11:12.1: W tensorflow/x/redzone_allocator.cc:314] Internal: Couldn't invoke ptxas --version\n"
        "Relying on driver to perform ptx compilation.\nEpoch 1/2\n"
    ),
    (
        "2023-01-01 10:00:00.1: W tensorflow/x/dso_loader.cc:64] Could not load dynamic library 'libnvinfer.so.7'; "
        "dlerror: libnvinfer.so.7: cannot open shared object file\n"
    ),
    (
        "2023-01-01 10:00:00.1: W tensorflow/x/dso_loader.cc:64] Could not load dynamic library 'libcuda.so.1'; "
        "dlerror: libcuda.so.1: cannot open shared object file\n"
    ),
    (
        "2023-01-01 10:00:00.1: W tensorflow/x/dso_loader.cc:64] Could not load dynamic library 'libcudart.so.11.0'; "
        "dlerror: libcudart.so.11.0: cannot open shared object file\n"
    ),
    (
        "n1:71:92 [0] misc/x.cc:310 NCCL WARN NET/OFI Only EFA provider is supported\nn1:71:92 [0] NCCL INFO Using "
        "network Socket\n"
    ),
    (
        "[WARNING] The node 'n3_7_0' has failed to shutdown the rendezvous '8' due to an error of type "
        "RendezvousConnectionError.\n"
    ),
    (
        "WARNING: a request was made to bind a process. While the system\nsupports binding the process itself, at "
        "least one node does NOT\nsupport binding memory to the process location.\n"
    ),
    "WARNING: Linux kernel CMA support was requested via the\nbtl_vader_single_copy_mechanism MCA variable\n",
    (
        "n1.7: PSM3 can't open nic unit: -1 (err=23)\nstep is done\nstep is done\nstep is done\nstep is done\nstep is "
        "done\nstep is done\nstep is done\nstep is done\nstep is done\nstep is done\nstep is done\nstep is done\nstep "
        "is done\nstep is done\nstep is done\nstep is done\nstep is done\nstep is done\nstep is done\nstep is done\n"
        "step is done\nstep is done\nstep is done\nstep is done\nstep is done\nstep is done\nstep is done\nstep is "
        "done\nstep is done\nstep is done\nstep is done\nstep is done\nstep is done\nstep is done\nstep is done\nstep "
        "is done\nstep is done\nstep is done\nstep is done\nstep is done\nstep is done\nstep is done\nstep is done\n"
        "step is done\nstep is done\nstep is done\nstep is done\nstep is done\nstep is done\nstep is done\nstep is "
        "done\nstep is done\nstep is done\nstep is done\nstep is done\nstep is done\nstep is done\nstep is done\nstep "
        "is done\nstep is done\nstep is done\nstep is done\nstep is done\nstep is done\nstep is done\nstep is done\n"
        "step is done\nstep is done\nstep is done\nstep is done\nstep is done\nstep is done\nstep is done\nstep is "
        "done\nstep is done\nstep is done\nstep is done\nstep is done\nstep is done\nstep is done\nstep is done\nstep "
        "is done\nstep is done\nstep is done\nstep is done\nstep is done\nstep is done\nstep is done\nstep is done\n"
        "step is done\n"
    ),
    "MPI startup(): Warning: I_MPI_PMI_LIBRARY will be ignored since the hydra process manager was found\n",
    "Exit code: 1 flux found\nall is well\n",
    "trapFpe: Floating point exception trapping enabled (FOAM_SIGFPE).\nTime = 1\n",
    "libibverbs: Warning: couldn't load driver 'libmlx5-rdmav34.so': libmlx5-rdmav34.so: cannot open\nstep 1\n",
    (
        "No PMIx server was reachable, but a PMI1/2 was detected.\n\nIf srun is being used to launch application,  1 "
        "singletons will be started.\n"
    ),
    "[I 10:11:12.345 NotebookApp] The port 8888 is already in use, trying another port.\n[I] Kernel Restarting\n",
    "  NetCDF: yes\n-- NetCDF: TRUE\n  NetCDF: yes (4.9.2)\nconfigure is done\n",
    "-- Could NOT find Tensorflow (missing: Tensorflow_LIBRARIES)\n-- Build files have been written to: /a\n",
    (
        "d01 2020-01-02_00:03:00  1  points exceeded cfl=2 in domain d01\nTiming for main: time 1 on domain 1\nTiming "
        "for main: time 1 on domain 1\nTiming for main: time 1 on domain 1\nTiming for main: time 1 on domain 1\n"
        "Timing for main: time 1 on domain 1\nTiming for main: time 1 on domain 1\nTiming for main: time 1 on domain "
        "1\nTiming for main: time 1 on domain 1\nTiming for main: time 1 on domain 1\nTiming for main: time 1 on "
        "domain 1\nTiming for main: time 1 on domain 1\nTiming for main: time 1 on domain 1\nTiming for main: time 1 "
        "on domain 1\nTiming for main: time 1 on domain 1\nTiming for main: time 1 on domain 1\nTiming for main: time "
        "1 on domain 1\nTiming for main: time 1 on domain 1\nTiming for main: time 1 on domain 1\nTiming for main: "
        "time 1 on domain 1\nTiming for main: time 1 on domain 1\nTiming for main: time 1 on domain 1\nTiming for "
        "main: time 1 on domain 1\nTiming for main: time 1 on domain 1\nTiming for main: time 1 on domain 1\nTiming "
        "for main: time 1 on domain 1\nTiming for main: time 1 on domain 1\nTiming for main: time 1 on domain 1\n"
        "Timing for main: time 1 on domain 1\nTiming for main: time 1 on domain 1\nTiming for main: time 1 on domain "
        "1\nTiming for main: time 1 on domain 1\nTiming for main: time 1 on domain 1\nTiming for main: time 1 on "
        "domain 1\nTiming for main: time 1 on domain 1\nTiming for main: time 1 on domain 1\nTiming for main: time 1 "
        "on domain 1\nTiming for main: time 1 on domain 1\nTiming for main: time 1 on domain 1\nTiming for main: time "
        "1 on domain 1\nTiming for main: time 1 on domain 1\nTiming for main: time 1 on domain 1\nTiming for main: "
        "time 1 on domain 1\nTiming for main: time 1 on domain 1\nTiming for main: time 1 on domain 1\nTiming for "
        "main: time 1 on domain 1\nTiming for main: time 1 on domain 1\nTiming for main: time 1 on domain 1\nTiming "
        "for main: time 1 on domain 1\nTiming for main: time 1 on domain 1\nTiming for main: time 1 on domain 1\n"
        "Timing for main: time 1 on domain 1\nTiming for main: time 1 on domain 1\nTiming for main: time 1 on domain "
        "1\nTiming for main: time 1 on domain 1\nTiming for main: time 1 on domain 1\nTiming for main: time 1 on "
        "domain 1\nTiming for main: time 1 on domain 1\nTiming for main: time 1 on domain 1\nTiming for main: time 1 "
        "on domain 1\nTiming for main: time 1 on domain 1\nTiming for main: time 1 on domain 1\nTiming for main: time "
        "1 on domain 1\nTiming for main: time 1 on domain 1\nTiming for main: time 1 on domain 1\nTiming for main: "
        "time 1 on domain 1\nTiming for main: time 1 on domain 1\nTiming for main: time 1 on domain 1\nTiming for "
        "main: time 1 on domain 1\nTiming for main: time 1 on domain 1\nTiming for main: time 1 on domain 1\nTiming "
        "for main: time 1 on domain 1\nTiming for main: time 1 on domain 1\nTiming for main: time 1 on domain 1\n"
        "Timing for main: time 1 on domain 1\nTiming for main: time 1 on domain 1\nTiming for main: time 1 on domain "
        "1\nTiming for main: time 1 on domain 1\nTiming for main: time 1 on domain 1\nTiming for main: time 1 on "
        "domain 1\nTiming for main: time 1 on domain 1\nTiming for main: time 1 on domain 1\nTiming for main: time 1 "
        "on domain 1\nTiming for main: time 1 on domain 1\nTiming for main: time 1 on domain 1\nTiming for main: time "
        "1 on domain 1\nTiming for main: time 1 on domain 1\nTiming for main: time 1 on domain 1\nTiming for main: "
        "time 1 on domain 1\nTiming for main: time 1 on domain 1\nTiming for main: time 1 on domain 1\n"
    ),
    (
        'audit: type=1400 audit(1772288942.112:254): apparmor="DENIED" operation="open" class="file" '
        'profile="/usr/sbin/rsyslogd" name="/a"\n'
    ),
    (
        'type=AVC msg=audit(13.53:184): avc:  denied  { read } for  pid=2029 comm="flux" name="a" dev="dm-0" '
        "tclass=file permissive=1\n"
    ),
    "Resources unavailable: GPU: avail 2 requested 4, the job waits in the queue\nstep 1\n",
    "Executable: HPGMG_FV\nRanks: 4\n",
    "Executable: 4\nRanks: 4\n",
    (
        "[n1:6] btl: tcp: Match incoming connection from [[2,1],1] 44.1.0.4 with locally known IP 2.2.2.77 failed "
        "(iface 0/4)!\ncell is computed\ncell is computed\ncell is computed\ncell is computed\ncell is computed\ncell "
        "is computed\ncell is computed\ncell is computed\ncell is computed\ncell is computed\ncell is computed\ncell "
        "is computed\ncell is computed\ncell is computed\ncell is computed\ncell is computed\ncell is computed\ncell "
        "is computed\ncell is computed\ncell is computed\ncell is computed\ncell is computed\ncell is computed\ncell "
        "is computed\ncell is computed\ncell is computed\ncell is computed\ncell is computed\ncell is computed\ncell "
        "is computed\ncell is computed\ncell is computed\ncell is computed\ncell is computed\ncell is computed\ncell "
        "is computed\ncell is computed\ncell is computed\ncell is computed\ncell is computed\ncell is computed\ncell "
        "is computed\ncell is computed\ncell is computed\ncell is computed\ncell is computed\ncell is computed\ncell "
        "is computed\ncell is computed\ncell is computed\ncell is computed\ncell is computed\ncell is computed\ncell "
        "is computed\ncell is computed\ncell is computed\ncell is computed\ncell is computed\ncell is computed\ncell "
        "is computed\n"
    ),
    "GET https://example.org/images/1234.jpg returned 404\n5999 of 6000 images\n",
    "flurble: 12 files, 0 errors, 3 warnings\n",
    "error summary: 0 failures\n",
    "wrote 100 items of 6000\nwrote 200 items of 6000\n",
    "benchmark: short write latency 12.4 us\n",
    "short write: (groupid=0, jobs=1): err= 0: pid=1\n",
    (
        "Available Frameworks:\n    [ ] TensorFlow\n    [ ] PyTorch\n    [X] MXNet\n\nAvailable Controllers:\n    [X] "
        "MPI\n\n"
    ),
    (
        " WARNING: Sub-Space-Matrix is not hermitian in DAV           16   1.5817296032709554\n reached required "
        "accuracy - stopping structural energy minimisation\n writing wavefunctions\n"
    ),
    "step 1\n1/1 flux EXPECTEDFAIL    0.02s   exit status 1\nstep 2\n",
    "step 1\n[n18:821321] PMIX ERROR: OUT-OF-RESOURCE in file base/bfrop_base_unpack.c at line 750\nstep 2\n",
    (
        "step 1\n[n1:13] [[27891,0],0] ORTE_ERROR_LOG: Data unpack would read past end of buffer in file "
        "orte/util/show_help.c at line 501\nstep 2\n"
    ),
    "step 1\n[n1:00272] [[8707,0],1] orted_cmd: received tree_spawn\nstep 2\n",
    (
        "step 1\n[2018-01-08T07:25:06.072] error: Could not open node state file /var/spool/slurm/node_state: No such "
        "file or directory\nstep 2\n"
    ),
    "step 1\n34e6de8 fix error: segfault in solver\nstep 2\n",
    (
        "step 1\nerror: gres_device_major: stat(/dev/nvidia2): No such file or directory\n[2020-10-08] Running as "
        "primary controller\nstep 2\n"
    ),
    (
        "step 1\nCould NOT find PkgConfig (missing:  PKG_CONFIG_EXECUTABLE)\nWill not provide a pkg-config file.\n"
        "Configuring done\nstep 2\n"
    ),
    "step 1\nL_2 Error: [0.0523783, < 1.0e-11]\nstep 2\n",
    'step 1\nopenat(AT_FDCWD, "/lib/libz.so", O_RDONLY|O_CLOEXEC) = -1 ENOENT (No such file or directory)\nstep 2\n',
    "step 1\n#       error handling: buffer (zcopy), remote access, peer failure\nstep 2\n",
    "step 1\nlibfabric:2833295:verbs:core:ofi_check_ep_type():629<info> unsupported endpoint type\nstep 2\n",
    "step 1\n[80.batch] JobId=80 completed with slurm_rc = 0, job_rc = 0\nstep 2\n",
    "step 1\n   Requeue=1 Restarts=0 BatchFlag=1 Reboot=0 ExitCode=0:0\nstep 2\n",
    "step 1\n298.ba+      batch              flux          1  COMPLETED      0:0\nstep 2\n",
    "step 1\nmmremote: GPFS is not ready to handle commands yet.\nstep 2\n",
    "step 1\nstarting daemons                                                   [ OK ]\nstep 2\n",
    (
        "step 1\n==> Installing libsigsegv\n==> Trying to fetch from file:///mirror/libsigsegv-2.10.tar.gz\ncurl: (37) "
        "Couldn't open file /mirror/libsigsegv-2.10.tar.gz\n==> Fetching from file:///mirror/libsigsegv-2.10.tar.gz "
        "failed.\n==> Trying to fetch from ftp://ftp.gnu.org/libsigsegv\nstep 2\n"
    ),
    (
        "step 1\n[n1:25837] pml_ucx.c:285  Error: UCP worker does not support MPI_THREAD_MULTIPLE\nHello, World! I am "
        "process 4 of 5 on n1.\nstep 2\n"
    ),
    "step 1\nslurmd: debug3: Couldn't find sym 'slurm_spank_slurmd_init' in the plugin\nslurmd: started\nstep 2\n",
    (
        "step 1\nattempt 0: [Errno 5] Input/output error: 'shared.lock'; retry in 0.1 s\nchecksum 3 expected 3 -> OK\n"
        "all steps completed\nstep 2\n"
    ),
    (
        'step 1\nrsync: [sender] change_dir "/archive" failed: No such file or directory (2)\nusing the copy in '
        "$SCRATCH\nfinished ok\nstep 2\n"
    ),
    (
        'step 1\nLmod has detected the following error: The following module(s) are unknown:\n"craype-network-ofi"\n\n'
        "check passed: no NaN found\nEnd: Mon Nov 23 22:17:21 UTC 2026, status 0\nstep 2\n"
    ),
    (
        "step 1\nwhich: no flux in (/usr/bin:/bin)\ncopied file 0\ncopied file 1\ncopied file 2\ncopied file 3\ncopied "
        "file 4\ncopied file 5\ncopied file 6\ncopied file 7\ncopied file 8\ncopied file 9\ncopied file 10\ncopied "
        "file 11\ncopied file 12\ncopied file 13\ncopied file 14\ncopied file 15\ncopied file 16\ncopied file 17\n"
        "copied file 18\ncopied file 19\ncopied file 20\ncopied file 21\ncopied file 22\ncopied file 23\ncopied file "
        "24\ncopied file 25\ncopied file 26\ncopied file 27\ncopied file 28\ncopied file 29\ncopied file 30\ncopied "
        "file 31\ncopied file 32\ncopied file 33\ncopied file 34\ncopied file 35\ncopied file 36\ncopied file 37\n"
        "copied file 38\ncopied file 39\ncopied file 40\ncopied file 41\ncopied file 42\ncopied file 43\ncopied file "
        "44\ncopied file 45\ncopied file 46\ncopied file 47\ncopied file 48\ncopied file 49\ncopied file 50\ncopied "
        "file 51\ncopied file 52\ncopied file 53\ncopied file 54\ncopied file 55\ncopied file 56\ncopied file 57\n"
        "copied file 58\ncopied file 59\n\nstep 2\n"
    ),
    "step 1\n   NOTICE\n   All jobs are recorded.\nstep 2\n",
    (
        "step 1\nmount.nfs: timeout set for Mon Nov 23 22:34:23 2026\nmount.nfs: trying text-based options "
        "'vers=4.2,addr=10.0.0.1'\nstep 2\n"
    ),
    "step 1\n/usr/bin/ld: skipping incompatible /usr/lib/libm.so when searching for -lm\nstep 2\n",
    "step 1\nWARNING: Ignoring version 2.0.5 of omegaflux since it has invalid metadata:\nstep 2\n",
    "step 1\nWarning: unable to access index for repository https://cran.example.org/src/contrib:\nstep 2\n",
    (
        "step 1\nld: warning: libflux.so.6, needed by /opt/lib/libpetsc.so, not found (try using -rpath or "
        "-rpath-link)\nstep 2\n"
    ),
    "step 1\n429/775 Test #429: tests.unit.flux .......................   Passed    0.18 sec\nstep 2\n",
    "step 1\n  138 | #include <error.h>\nstep 2\n",
    "step 1\nAll attempts to connect succeeded\nstep 2\n",
    "step 1\nerror in norm: 1.2e-9\nstep 2\n",
    "step 1\ntest option error rate: 0.01\nstep 2\n",
    (
        "starting on n1\nE external/xla/xla/service/rendezvous.cc:38] This thread has been waiting for `initialize "
        "clique for rank 6; clique=devices=[0,1]; stream=0` for 10 seconds and may be stuck. Expected 8 threads to "
        "join the rendezvous, but not all of them arrived on time.\nE external/xla/xla/service/rendezvous.cc:42] "
        "Thread is unstuck! Warning above was a false-positive.\nstep 7\nstep 2\n"
    ),
    (
        "starting on n1\nstep 1\nI tensorflow/compiler/xla/xla_client/mesh_service.cc:234] Waiting to connect to "
        "client mesh master (30 seconds) n1\nstep 2\n"
    ),
    (
        "starting on n1\n:3:rocdevice.cpp            :468 : 7604630956 us: [pid:7877  tid:0x7f144104a440] Initializing "
        "HSA stack.\nstep 2\n"
    ),
    (
        "starting on n1\n[19:08:34.164951][GC                    ][info ][tid:44F8A] compileGraph: graph compile took "
        "4 s\nstep 2\n"
    ),
    "starting on n1\n[2026-01-02 lint.py:12] no errors found\nstep 2\n",
    "starting on n1\nNCCL INFO Bootstrap : Using eno2:172.16.30.2<0>\nrun done\nstep 2\n",
    "starting on n1\nthe memory monitor prints `out of memory` if the heap is full\nstep 2\n",
    "starting on n1\nencountered: 3 new words\nstep 2\n",
    "starting on n1\n1 file was compiled with USE_OPENMP=1\nstep 2\n",
    "starting on n1\n     @     0x7fa08bf26687  (unknown)\nstep 2\n",
    "starting on n1\nthe fix for exception 0xc0000006 is in this release\nstep 2\n",
)
LOOK_ALIKES = {
    **BUILD,
    **CONTAINER,
    **CRASHES,
    **CUDA,
    **HOROVOD,
    **LIMITS,
    **LOADER,
    **MODULES,
    **MPI,
    **NCCL,
    **NETWORK,
    **PROGRAM,
    **PYTHON,
    **PYTORCH,
    **QUOTED,
    **SCHEDULER,
    **SPACK,
    **TENSORFLOW,
}


@for_each("log", LOOK_ALIKES)
def test_the_words_of_a_log_decide_between_look_alikes(log: str) -> None:
    explanation = explain([f"{log}\n".encode()], known_failures())
    assert explanation.known and explanation.known.failure.id == LOOK_ALIKES[log], explanation.findings
    assert "…" not in explanation.known.cause


@for_each("log", HEALTHY)
def test_a_line_that_only_looks_like_a_failure_accuses_no_one(log: str) -> None:
    explanation = explain([f"{log}\n".encode()], known_failures())
    assert explanation.verdict == "healthy", explanation.findings
