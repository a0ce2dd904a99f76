"""Lines of CUDA, NCCL, MPI, networks and libraries that look alike: the words of the line itself decide which entry is named."""

from __future__ import annotations

import pytest

from parts.loops import for_each
from provision.knowledge.failures.explain import explain
from provision.machine.tables import known_failures

OWN_ERROR = """
Traceback (most recent call last):
  File "train.py", line 3, in <module>
    raise ValueError("bad flux")
ValueError: bad flux"""

CUDA = {
    "what():  [enforce fail at /third_party/gloo/gloo/transport/tcp/pair.cc:456] op.preamble.length <= op.nbytes. 100 vs 52.": (
        "gloo-collective-mismatch"
    ),
    "DistStoreError: Timed out after 61 seconds waiting for clients. 2/4 clients joined.": "torch-store-timeout",
    "RuntimeError: unable to allocate shared memory(shm) for file </torch_44_39_0>: No space left on device (28)": (
        "shared-memory-full"
    ),
    "RuntimeError: [enforce fail at inline_container.cc:672] . unexpected pos 77568 vs 77496": "torch-save-cut",
    "No CUDA device visible, this model needs at least 1 GPU. Bye.": "cuda-no-device-error",
    "ConnectionResetError: [Errno 104] Connection reset by peer\nFailures:\n  exitcode  : -15 (pid: 8832)  (SIGTERM)\n"
    "Root Cause (first observed failure):\n  exitcode  : -9 (pid: 8833)  (SIGKILL)": "torchrun-rank-killed",
    "job.sh: line 9: 4711 Killed                  python prep.py\nBrokenPipeError: [Errno 32] Broken pipe": "killed-in-script",
    "(EngineCore) ERROR 07-16 14:23:18 [core.py:396] ValueError: placement group bundle index 3 is invalid.\n"
    "RuntimeError: Engine core initialization failed. See root cause above.": "reported-error",
    "RuntimeError: Found NVIDIA GeForce GTX 1070 which is too old to be supported by the triton GPU compiler": (
        "triton-gpu-too-old"
    ),
    "ResourceExhaustedError: OOM when allocating tensor with shape[9,9] on /device:GPU:0": "gpu-out-of-memory",
    "ResourceExhaustedError: /data/train.tfrecord; Too many open files": "too-many-open-files",
    "Unable to load any of {libcudnn_ops.so.9.1.0, libcudnn_ops.so.9}": "cudnn-not-found",
    "Invalid handle. Cannot load symbol cudnnCreateTensorDescriptor": "cudnn-not-found",
    "Loaded runtime CuDNN library: 8.0.5 but source was compiled with: 8.2.4.": "cudnn-mismatch",
    "RuntimeError: cuDNN error: CUDNN_STATUS_NOT_SUPPORTED": "cudnn-input-refused",
    "RuntimeError: cuDNN error: CUDNN_STATUS_BAD_PARAM": "cudnn-input-refused",
    "RuntimeError: cuDNN error: CUDNN_STATUS_ARCH_MISMATCH": "cudnn-gpu-not-supported",
    "RuntimeError: cuDNN error: CUDNN_STATUS_EXECUTION_FAILED": "cudnn-other",
    "RuntimeError: cuDNN error: CUDNN_STATUS_NOT_INITIALIZED": "cudnn-not-initialised",
    "RuntimeError: CUDA error: CUBLAS_STATUS_INVALID_VALUE when calling `cublasSgemm( handle)`": "cublas-failed",
    "RuntimeError: CUDA error: CUBLAS_STATUS_NOT_INITIALIZED when calling `cublasCreate(handle)`": "cublas-failed",
    "RuntimeError: cuFFT error: CUFFT_INTERNAL_ERROR": "cublas-failed",
    "RuntimeError: cusolver error: CUSOLVER_STATUS_EXECUTION_FAILED": "cublas-failed",
    "Failed to initialize NVML: Driver/library version mismatch": "driver-parts-differ",
    "Failed to initialize NVML: Unknown Error": "nvidia-driver-missing",
    "RuntimeError: Unexpected error from cudaGetDeviceCount(). Error 803: system has unsupported display driver / cuda driver "
    "combination": "driver-parts-differ",
    "E cuda_diagnostics.cc:313] kernel version 470.57.2 does not match DSO version 460.32.3 -- cannot find working devices": (
        "driver-parts-differ"
    ),
    "Unexpected error from cudaGetDeviceCount(). Error 804: forward compatibility was attempted on non supported HW": (
        "cuda-compat-refused"
    ),
    "CUDA driver version is insufficient for CUDA runtime version": "driver-too-old",
    "the provided PTX was compiled with an unsupported toolchain.": "driver-too-old",
    "RuntimeError: CUDA error: a PTX JIT compilation failed": "ptx-refused",
    "job.sh: line 4: nvidia-smi: command not found": "nvidia-smi-not-found",
    "job.sh: line 4: nvidia-smi: command not found" + "\nstep is done" * 90: None,
    "Unable to determine the device handle for GPU0000:41:00.0: Unknown Error": "gpu-broken",
    "AssertionError: Torch not compiled with CUDA enabled": "torch-without-cuda",
    "RuntimeError: No CUDA GPUs are available": "gpu-not-seen",
    "RuntimeError: CUDA error: all CUDA-capable devices are busy or unavailable": "gpu-busy",
    "torch.AcceleratorError: CUDA error: CUDA-capable device(s) is/are busy or unavailable": "gpu-busy",
    "RuntimeError: CUDA error: no CUDA-capable device is detected": "cuda-no-device-error",
    "nvrtc: error: invalid value for --gpu-architecture (-arch)": "ptxas-too-old",
    "RuntimeError: CUDA error: no kernel image is available for execution on the device": "no-kernel-image",
    "RuntimeError: CUDA error: device-side assert triggered": "cuda-device-assert",
    "RuntimeError: CUDA error: unknown error": "cuda-cannot-start",
    "RuntimeError: CUDA error: an illegal memory access was encountered": "cuda-illegal-access",
    "2021-05-02 10:11:12.1: W tensorflow/x/nvptx_compiler.cc:4] Failed to compile generated PTX with ptxas. Falling back to "
    "compilation by driver.": None,
    "2021-05-02 10:11:12.1: W tensorflow/x/redzone_allocator.cc:314] Internal: Couldn't invoke ptxas --version\n"
    "Relying on driver to perform ptx compilation.\nEpoch 1/2": None,
    "ptxas fatal   : Value 'sm_100' is not defined for option 'gpu-name'": "ptxas-too-old",
    "ptxas fatal   : Ptx assembly aborted due to errors": "ptxas",
    "UnknownError: JIT compilation failed. [Op:Sqrt]": "xla-jit-failed",
    "RuntimeError: CUDA error: MPS client failed to connect to the MPS control daemon or the MPS server": "cuda-mps",
    "CUDA_ERROR_NOT_PERMITTED: operation not permitted": "gpu-busy",
    "TypeError: can't convert cuda:1 device type tensor to numpy. Use Tensor.cpu() first.": "tensor-on-gpu-to-numpy",
    "TypeError: can't convert mps:0 device type tensor to numpy. Use Tensor.cpu() first.": "tensor-on-gpu-to-numpy",
    "RuntimeError: Expected all tensors to be on the same device, but found two, cuda:0 and cpu!": "device-mismatch",
    "2023-01-01 10:00:00.1: W tensorflow/x/dso_loader.cc:64] Could not load dynamic library 'libnvinfer.so.7'; dlerror: "
    "libnvinfer.so.7: cannot open shared object file": None,
    "2023-01-01 10:00:00.1: W tensorflow/x/dso_loader.cc:64] Could not load dynamic library 'libcuda.so.1'; dlerror: "
    "libcuda.so.1: cannot open shared object file": None,
    "2023-01-01 10:00:00.1: W tensorflow/x/dso_loader.cc:64] Could not load dynamic library 'libcudart.so.11.0'; dlerror: "
    "libcudart.so.11.0: cannot open shared object file": None,
}

WARN = "n1:71:92 [0] misc/x.cc:310 NCCL WARN "
NCCL = {
    WARN + "Call to ibv_modify_qp failed with error Invalid argument": "nccl-infiniband-port",
    WARN + "Call to ibv_create_qp failed with error Cannot allocate memory": "locked-memory-of-adapter",
    WARN + "Call to ibv_reg_mr failed": "nccl-infiniband",
    "mlx5.c:1  UCX  ERROR ibv_create_cq(cqe=4096) failed: Cannot allocate memory": "locked-memory-of-adapter",
    WARN + "Call to connect to 10.0.0.2<41000> failed : Connection refused": "nccl-connection",
    WARN + "Cuda failure 'system not yet initialized'": "gpu-fabric-manager",
    "RuntimeError: NCCL communicator was aborted on rank 3.\ntorch.OutOfMemoryError: CUDA out of memory.": "gpu-out-of-memory",
    "Watchdog caught collective operation timeout: WorkNCCL(OpType=ALLREDUCE)\nNCCL communicator was aborted on rank 1.": (
        "nccl-timeout"
    ),
    WARN + "NET/OFI Only EFA provider is supported\nn1:71:92 [0] NCCL INFO Using network Socket": None,
    WARN + "NET/OFI Failed to initialize sendrecv protocol": "nccl-ofi",
    "torch.distributed.elastic.multiprocessing.api.SignalException: Process 7 got signal: 1": "torchrun-hangup",
    "n1:7:9 [0] NCCL INFO connect returned Connection refused, retrying (33/34)": "nccl-connect-retries",
    "n1:7:9 [0] NCCL INFO connect returned No route to host, retrying (33/34)": "nccl-connect-retries",
    "torch.distributed.elastic.rendezvous.api.RendezvousTimeoutError": "torch-rendezvous-timeout",
    "[WARNING] The node 'n3_7_0' has failed to shutdown the rendezvous '8' due to an error of type "
    "RendezvousConnectionError.": None,
    "RendezvousConnectionError: The connection to the C10d store has failed.": "torch-rendezvous",
}

MPI = {
    "srun: error: Couldn't load specified plugin name for mpi/pmix: Dlopen of plugin file failed": "srun-mpi",
    "srun: error: Couldn't find the specified plugin name for mpi/pmix looking at all files": "srun-mpi",
    "WARNING: a request was made to bind a process. While the system\nsupports binding the process itself, at least one node "
    "does NOT\nsupport binding memory to the process location.": None,
    "A request was made to bind to that would result in binding more": "mpi-binding",
    "[PE_7]:_pmi_inet_setup:inet_connect failed": "cray-ranks-not-connected",
    "[PE_3]:inet_connect:inet_connect: connect failed after 301 attempts": "cray-ranks-not-connected",
    "[unset]:_pmi_alps_init:alps_get_placement_info returned with error -1": "mpi-on-login-node",
    "slurmstepd: error: mpi/pmix_v4: pmixp_p2p_send: n3 [0]: pmixp_utils.c:467: send failed": "slurm-pmix-plugin",
    "MPIR_pmi_init(102): PMI_Init failed": "mpi-no-pmi",
    "A call to mkdir was unable to create the desired directory:": "mpi-session-folder",
    "It appears as if there is not enough space for /tmp/ompi.n1/shared_mem (the shared-memory\nbacking file)": (
        "mpi-shared-memory"
    ),
    "WARNING: Linux kernel CMA support was requested via the\nbtl_vader_single_copy_mechanism MCA variable": None,
    "[n1][[1,1],0][btl_tcp_frag.c:237:mca_btl_tcp_frag_recv] mca_btl_tcp_frag_recv: readv failed: Connection timed out (110)": (
        "mpi-connection-lost"
    ),
    "[n1][[1,1],0][btl_tcp_endpoint.c:8:mca_btl_tcp_endpoint_complete_connect] connect() to 10.0.0.1 failed: Connection "
    "refused (111)": "mpi-tcp-connect",
    "mm_posix.c:194  UCX  ERROR Not enough memory to write total of 99 bytes. Please check that /dev/shm or the directory you "
    "specified has more available memory.": "mpi-shared-memory",
    "n1.7: PSM3 can't open nic unit: -1 (err=23)" + "\nstep is done" * 90: None,
    "n1.7: PSM3 can't open nic unit: -1 (err=23)" + OWN_ERROR: "error-in-program",
    "n1.7: PSM2 can't open hfi unit: -1 (err=23)": "psm2",
    "cxip_nic_alloc: cxil_open_device: cxi_alloc_svc failed: No such device": "cxi-device",
    "MPI startup(): Warning: I_MPI_PMI_LIBRARY will be ignored since the hydra process manager was found": None,
    "MPI startup(): PMI server not found. Please set I_MPI_PMI_LIBRARY variable if it is not a singleton case.": "intel-mpi-pmi",
    "Fatal error in PMPI_Comm_size: Invalid communicator, error stack:": "mpi-communicator-invalid",
    "xargs: gcc: exited with status 255; aborting\nflux.c:3:1: error: unknown type name 'flux'": "compile-error",
    "Exit code: 1 flux found\nall is well": None,
    "job.sh: line 3: 4711 Floating point exception(core dumped) ./flux": "floating-point-exception",
    "job.sh: line 3: 4711 Bus error               (core dumped) ./flux": "bus-error",
    "job.sh: line 3: 4711 Segmentation fault      (core dumped) ./flux": "segmentation-fault",
    "trapFpe: Floating point exception trapping enabled (FOAM_SIGFPE).\nTime = 1": None,
    "libibverbs: Warning: couldn't load driver 'libmlx5-rdmav34.so': libmlx5-rdmav34.so: cannot open\nstep 1": None,
    "No PMIx server was reachable, but a PMI1/2 was detected.\n\nIf srun is being used to launch application,  1 singletons "
    "will be started.": None,
    "No PMIx server was reachable, but a PMI1/2 was detected.\n\nIf srun is being used to launch application,  8 singletons "
    "will be started.": "mpi-singletons",
    "PMPI_Bcast(1): Negative count, value is -2147483640": "mpi-communicator-null",
    "Fatal error in PMPI_Reduce: Invalid datatype, error stack:": "mpi-communicator-invalid",
    "Fatal error in PMPI_Recv: Message truncated, error stack:": "mpi-message-truncated",
    "free(): invalid pointer": "memory-damaged",
    "corrupted size vs. prev_size": "memory-damaged",
    "terminate called after throwing an instance of 'std::bad_function_call'": "aborted",
    "Error, rank 3 is already assigned": "rankfile",
    "Some of the requested hosts are not included in the current allocation for the": "hosts-not-in-job",
    "Open RTE was unable to open the hostfile:": "hostfile",
}

NETWORK = {
    "TimeoutError: [Errno 110] Connection timed out": "connection-timeout",
    "TimeoutError: timed out": "connection-timeout",
    "playwright._impl._errors.TimeoutError: Page.click: Timeout 30000ms exceeded.": "reported-error",
    "SSLError: [SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed: certificate has expired (_ssl.c:9)": (
        "certificate-expired"
    ),
    "curl: (60) SSL certificate problem: certificate has expired": "certificate-expired",
    "curl: (60) SSL certificate problem: unable to get local issuer certificate": "certificate",
    "SSLError: [SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed: self signed certificate (_ssl.c:9)": "certificate",
    "WARNING: pip is configured with locations that require TLS/SSL, however the ssl module in Python is not available.": (
        "python-without-ssl"
    ),
    "ModuleNotFoundError: No module named '_ssl'": "python-without-ssl",
    "ImportError: urllib3 v2.0 only supports OpenSSL 1.1.1+, currently the 'ssl' module is compiled with OpenSSL 1.0.2k": (
        "openssl-too-old"
    ),
    "ssl.SSLError: [SSL: WRONG_VERSION_NUMBER] wrong version number (_ssl.c:9)": "ssl-broken",
    "HTTPSConnectionPool(host='data.example.org', port=443): Read timed out. (read timeout=10)": "server-does-not-answer",
    "curl: (56) Recv failure": "server-does-not-answer",
    "curl: (6) Could not resolve host: data.example.org": "no-network",
    "urllib.error.HTTPError: HTTP Error 404: Not Found": "http-not-found",
    "requests.exceptions.HTTPError: 401 Client Error: Unauthorized for url: https://example.org/a": "http-refused",
    "curl: (22) The requested URL returned error: 403": "http-refused",
    "urllib.error.HTTPError: HTTP Error 429: Too Many Requests": "http-too-many-requests",
    "requests.exceptions.HTTPError: 502 Server Error: Bad Gateway for url: https://example.org/a": "http-server-failed",
    "urllib.error.HTTPError: HTTP Error 416: Requested Range Not Satisfiable": "http-error",
    "fatal: unable to connect to git.example.org:": "git-connection",
    "fatal: early EOF": "git-connection",
    "error: unable to create file .git/objects/ab/cd: No space left on device": "disk-full",
    "kex_exchange_identification: read: Connection reset by peer": "ssh-failed",
    'Load key "/home/u/.ssh/key": bad permissions': "ssh-key-open-to-others",
    "u@n2: Permission denied (publickey).": "ssh-login",
    "ssh: Could not resolve hostname n9: Name or service not known": "ssh-host-unknown",
    "ssh: connect to host n9 port 22: Connection timed out": "ssh-unreachable",
    "[I 10:11:12.345 NotebookApp] The port 8888 is already in use, trying another port.\n[I] Kernel Restarting": None,
    "[C 10:11:12.345 ServerApp] Running as root is not recommended. Use --allow-root to bypass.": "jupyter-as-root",
    "Jupyter command `jupyter-notebook` not found.": "jupyter-command-missing",
    "jupyter_client.kernelspec.NoSuchKernel: No such kernel named ir": "jupyter-kernel-unknown",
    "nbclient.exceptions.DeadKernelError: Kernel died": "jupyter",
}

LIBRARIES_AND_PROGRAMS = {
    "Please verify that both the operating system and the processor support Intel(R) AVX512F instructions.": (
        "cpu-without-avx"
    ),
    "The library was compiled to use AVX2 instructions, but these aren't available on your machine.": "cpu-without-avx",
    "Error relocating /usr/lib/libflux.so: __printf_chk: symbol not found": "musl-symbol",
    "symbol lookup error: /opt/lib/libflux.so: undefined symbol: flux_init": "undefined-symbol",
    "ImportError: /env/lib/libflux.so.1: file too short": "library-damaged",
    "OSError: /env/lib/libflux.so: invalid ELF header": "library-damaged",
    "  NetCDF: yes\n-- NetCDF: TRUE\n  NetCDF: yes (4.9.2)\nconfigure is done": None,
    "-- Could NOT find Tensorflow (missing: Tensorflow_LIBRARIES)\n-- Build files have been written to: /a": None,
    "  Could NOT find Tensorflow (missing: Tensorflow_LIBRARIES)": "tensorflow-not-found",
    "horovod does not find an installed MPI.": "horovodrun-finds-no-mpi",
    "ValueError: MPI operations are not available": "horovod-no-mpi",
    "ValueError: Duplicate tensor name loss": "horovod-same-name",
    "Mismatched allreduce tensor shapes: One rank sent a tensor of shape [5], but another [6].": "horovod-shapes-differ",
    "Timed out waiting for Spark tasks to start.": "horovod-tasks-late",
    "Unable to find a set of common task-to-task communication interfaces: [(0, {})]": "horovodrun-no-common-interface",
    "SSH was not successful on one or more hosts:": "horovodrun-ssh",
    "d01 2020-01-02_00:03:00  1  points exceeded cfl=2 in domain d01"
    + "\nTiming for main: time 1 on domain 1" * 90: None,
    "d01 2020-01-02_00:03:00  9  points exceeded cfl=2 in domain d01\nmodule_ra: No space left on device": "disk-full",
    "d01 2020-01-02_00:03:00  9  points exceeded cfl=2 in domain d01" + OWN_ERROR: "error-in-program",
}

LOOK_ALIKES = {**CUDA, **NCCL, **MPI, **NETWORK, **LIBRARIES_AND_PROGRAMS}


@for_each("log", LOOK_ALIKES)
def test_the_words_of_the_line_decide_which_entry_is_named(log: str) -> None:
    explanation = explain([f"{log}\n".encode()], known_failures())
    expected = LOOK_ALIKES[log]
    if expected is None:
        assert explanation.verdict == "healthy", explanation.findings
    else:
        assert explanation.known and explanation.known.failure.id == expected, explanation.findings
        assert "…" not in explanation.known.cause


@pytest.mark.parametrize("line", ["KeyboardInterrupt", "program received signal SIGINT"])
def test_an_interrupted_program_is_not_called_terminated(line: str) -> None:
    explanation = explain([f"{line}\n".encode()], known_failures())
    assert explanation.verdict == "unknown" and explanation.findings[0].failure.id == "interrupted"
