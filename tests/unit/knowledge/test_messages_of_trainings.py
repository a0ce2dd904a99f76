"""Messages of frameworks for deep learning, of their accelerators and of their networks: what each is named, and look-alikes."""

from __future__ import annotations

from parts.loops import for_each
from provision.knowledge.failures.explain import explain
from provision.machine.tables import known_failures

STUCK = (
    "2024-07-29 17:14:59.92: E external/xla/xla/service/rendezvous.cc:38] This thread has been waiting for `initialize clique "
    "for rank 6; clique=devices=[0,1]; stream=0` for 10 seconds and may be stuck. Expected 8 threads to join the rendezvous, but "
    "not all of them arrived on time."
)
TRACE = 'Traceback (most recent call last):\n  File "/home/ada/venv/lib/python3.11/site-packages/'
# The lines of a log, with the entry that explains them.
KNOWN = {
    # JAX and XLA: the header of a traceback at the end of Python is no error.
    "2024-10-09 15:47:38.568412: E external/xla/xla/tsl/distributed_runtime/coordination/coordination_service.cc:1170] "
    "/job:jax_worker/replica:0/task:0 has been set to ERROR in coordination service: UNAVAILABLE: Task "
    "/job:jax_worker/replica:0/task:0 heartbeat timeout. This indicates that the remote task has failed.": (
        "worker-not-answering"
    ),
    "E0912 23:44:51.552719 2536982 pjrt_stream_executor_client.cc:3008] Execution of replica 0 failed: INTERNAL: NCCL operation "
    "ncclAllReduce( send_buffer.opaque(), ToNcclCount(dtype, count), comm_) failed: invalid argument (run with NCCL_DEBUG=WARN "
    "for details).": "nccl-invalid-usage",
    "E0912 23:44:51.552719 2536982 pjrt_stream_executor_client.cc:3008] Execution of replica 0 failed: INTERNAL: NCCL operation "
    "ncclAllReduce(send_buffer.opaque()) failed: internal error (run with NCCL_DEBUG=WARN for details).": "nccl-internal",
    "E0912 23:44:51.552719 2536982 pjrt_stream_executor_client.cc:3008] Execution of replica 0 failed: INTERNAL: NCCL operation "
    "ncclAllReduce(send_buffer.opaque()) failed: remote process exited or there was a network error.": "nccl-connection",
    f'Building extension module fused_adam...\n{TRACE}torch/utils/cpp_extension.py", line 2105, in _run_ninja_build\n'
    "    subprocess.run(\nsubprocess.CalledProcessError: Command '['ninja', '-v']' returned non-zero exit status 1.": (
        "torch-extension-build"
    ),
    f'{TRACE}torch/distributed/distributed_c10d.py", line 1509, in _new_process_group_helper\n'
    "    backend_class = ProcessGroupGloo(store, rank, size)\n"
    "RuntimeError: Gloo connectFullMesh failed with [/x/third_party/gloo/gloo/transport/tcp/pair.cc:14] no error": "horovod-gloo",
    "gpu2:1653:1695 [0] include/socket.h:347 NCCL WARN Call to bind failed : Address already in use": "nccl-port-in-use",
    "gpu2:1653:1695 [0] include/socket.h:347 NCCL WARN Call to bind failed : Cannot assign requested address": "nccl-connection",
    "CUDA failure 35; GPU=-683076400 ; hostname=n1 ; expr=cudaStreamCreate(&_commStream)": "driver-too-old",
    "CUDA failure 2: out of memory ; GPU=0 ; hostname=n1 ; expr=cudaMalloc(&p, n)": "gpu-out-of-memory",
    "CUDA failure 100: no CUDA-capable device ; GPU=-1 ; hostname=n1 ; expr=cudaSetDevice(d)": "cuda-no-device-error",
    "CUDA failure 46 ; GPU=0 ; hostname=n1 ; expr=cudaSetDevice(d)": "gpu-busy",
    "CUDA failure 101 ; GPU=0 ; hostname=n1 ; expr=cudaSetDevice(d)": "gpu-index",
    "CUDA failure 209 ; GPU=0 ; hostname=n1 ; expr=cudaGetLastError()": "no-kernel-image",
    "CUDA failure 700 ; GPU=0 ; hostname=n1 ; expr=cudaStreamSynchronize(s)": "cuda-illegal-access",
    # Other accelerators.
    "RuntimeError: CUDA out of memory. Tried to allocate 386.00 MiB (GPU 0; 60.97 GiB total capacity)": "gpu-out-of-memory",
    "     @     0x7fa08bf26687  (unknown)\n     @     0x7fa08c5791e1  flux::Memory::~Memory()\nAborted (core dumped)": "aborted",
}
# The lines of a log, and the words of them that are quoted.
HEALTHY = (
    # The thread that was waiting went on.
    f"{STUCK}\nE external/xla/xla/service/rendezvous.cc:42] Thread is unstuck! Warning above was a false-positive.\nstep 7",
    "step 1\nI tensorflow/compiler/xla/xla_client/mesh_service.cc:234] Waiting to connect to client mesh master (30 seconds) n1",
    ":3:rocdevice.cpp            :468 : 7604630956 us: [pid:7877  tid:0x7f144104a440] Initializing HSA stack.",
    "[19:08:34.164951][GC                    ][info ][tid:44F8A] compileGraph: graph compile took 4 s",
    "[2026-01-02 lint.py:12] no errors found",
    "NCCL INFO Bootstrap : Using eno2:172.16.30.2<0>\nrun done",
    "the memory monitor prints `out of memory` if the heap is full",
    "encountered: 3 new words",
    "1 file was compiled with USE_OPENMP=1",
    "     @     0x7fa08bf26687  (unknown)",
    "the fix for exception 0xc0000006 is in this release",
)
HOOK = f"""\
Error in sys.excepthook:
{TRACE}apport_python_hook.py", line 63, in apport_excepthook
    from apport.fileutils import likely_packaged
ModuleNotFoundError: No module named 'apt_pkg'

Original exception was:
Traceback (most recent call last):
  File "train.py", line 3, in <module>
    train(3)
  File "train.py", line 2, in train
    raise ValueError("flux 3 is inverted")
ValueError: flux 3 is inverted
"""


@for_each("text", KNOWN)
def test_a_message_of_a_training_is_named(text: str) -> None:
    found = explain([f"starting on n1\n{text}\n".encode()], known_failures())
    assert found.known is not None and found.known.failure.id == KNOWN[text], found.verdict


@for_each("text", HEALTHY)
def test_what_only_looks_like_such_a_message_accuses_no_one(text: str) -> None:
    assert explain([f"starting on n1\n{text}\nstep 2\n".encode()], known_failures()).verdict == "healthy"


def test_what_fails_while_python_shows_an_exception_is_not_the_cause() -> None:
    known = explain([HOOK.encode()], known_failures()).known
    assert known is not None and "flux 3 is inverted" in known.cause
