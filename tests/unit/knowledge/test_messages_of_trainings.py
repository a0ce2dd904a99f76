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
    f'Error in atexit._run_exitfuncs:\n{TRACE}jax/_src/distributed.py", line 168, in shutdown\n    global_state.shutdown()\n'
    "jaxlib.xla_extension.XlaRuntimeError: DEADLINE_EXCEEDED: Deadline Exceeded": "jax-reports",
    "2023-02-17 06:08:24.084633: E external/org_tensorflow/tensorflow/tsl/distributed_runtime/coordination/"
    "coordination_service_agent.cc:481] Failed to disconnect from coordination service with status: DEADLINE_EXCEEDED: Deadline "
    "Exceeded": "jax-shutdown-barrier",
    "2024-10-09 15:47:38.568412: E external/xla/xla/tsl/distributed_runtime/coordination/coordination_service.cc:1170] "
    "/job:jax_worker/replica:0/task:0 has been set to ERROR in coordination service: UNAVAILABLE: Task "
    "/job:jax_worker/replica:0/task:0 heartbeat timeout. This indicates that the remote task has failed.": (
        "worker-not-answering"
    ),
    STUCK: "xla-ranks-do-not-meet",
    "2024-07-29 17:15:29.9: F external/xla/xla/service/rendezvous.cc:87] Termination timeout for `initialize clique for rank 6` "
    "of 30 seconds exceeded. Exiting to ensure a consistent program state. Expected 8 threads to join the rendezvous, but not "
    "all of them arrived on time.\nAborted (core dumped)": "xla-ranks-did-not-meet",
    "E0912 23:44:51.552719 2536982 pjrt_stream_executor_client.cc:3008] Execution of replica 0 failed: INTERNAL: NCCL operation "
    "ncclAllReduce( send_buffer.opaque(), ToNcclCount(dtype, count), comm_) failed: invalid argument (run with NCCL_DEBUG=WARN "
    "for details).": "nccl-invalid-usage",
    "E0912 23:44:51.552719 2536982 pjrt_stream_executor_client.cc:3008] Execution of replica 0 failed: INTERNAL: NCCL operation "
    "ncclAllReduce(send_buffer.opaque()) failed: internal error (run with NCCL_DEBUG=WARN for details).": "nccl-internal",
    "E0912 23:44:51.552719 2536982 pjrt_stream_executor_client.cc:3008] Execution of replica 0 failed: INTERNAL: NCCL operation "
    "ncclAllReduce(send_buffer.opaque()) failed: remote process exited or there was a network error.": "nccl-connection",
    "*** End stack trace ***\nFailed to connect to client mesh master: n1.example.org:52997\n"
    f'{TRACE}torch/multiprocessing/spawn.py", line 160, in join\n    exit_code=exitcode\n'
    "torch.multiprocessing.spawn.ProcessExitedException: process 2 terminated with exit code 17": "torch-xla-master",
    # PyTorch: its extensions and networks.
    f'Building extension module fused_adam...\n{TRACE}torch/utils/cpp_extension.py", line 2105, in _run_ninja_build\n'
    "    subprocess.run(\nsubprocess.CalledProcessError: Command '['ninja', '-v']' returned non-zero exit status 1.": (
        "torch-extension-build"
    ),
    f'{TRACE}torch/distributed/distributed_c10d.py", line 1509, in _new_process_group_helper\n'
    "    backend_class = ProcessGroupGloo(store, rank, size)\n"
    "RuntimeError: Gloo connectFullMesh failed with [/x/third_party/gloo/gloo/transport/tcp/pair.cc:14] no error": "horovod-gloo",
    "gpu2:1653:1695 [0] include/socket.h:347 NCCL WARN Call to bind failed : Address already in use": "nccl-port-in-use",
    "gpu2:1653:1695 [0] include/socket.h:347 NCCL WARN Call to bind failed : Cannot assign requested address": "nccl-connection",
    "[14:49:15] /opt/dgl/src/rpc/network/tcp_socket.cc:76: Failed bind on 10.0.0.2:34567 , error: Success": "port-in-use",
    "2024:01:15-03:36:29:(198) |CCL_ERROR| global.cpp:150 getenv_local_coord: condition global_data::env().ze_ipc_exchange == "
    "ccl::ze::ipc_exchange_mode::sockets failed\nto get local_idx/count from ATL, set CCL_ZE_IPC_EXCHANGE=sockets explicitly": (
        "oneccl-without-launcher"
    ),
    # GPUs of AMD and NVIDIA: the number of the error decides.
    ":3:rocdevice.cpp            :468 : 7604630956 us: [pid:7877  tid:0x7f144104a440] Initializing HSA stack.\n"
    ":1:rocdevice.cpp            :478 : 7604630996 us: [pid:77  tid:0x7f144104a4] hsa_init failed with 1008": "rocm-not-started",
    "2023-07-19 22:08:36.875173: F ./tensorflow/core/util/gpu_launch_config.h:174] Check failed: err == hipSuccess (98 vs. 0)": (
        "hip-no-kernel-image"
    ),
    "F ./flux.h:174] Check failed: err == hipSuccess (2 vs. 0)": "gpu-out-of-memory",
    "F ./flux.h:174] Check failed: err == hipSuccess (100 vs. 0)": "rocm-not-started",
    "F ./flux.h:174] Check failed: err == hipSuccess (101 vs. 0)": "gpu-index",
    "F ./flux.h:174] Check failed: err == hipSuccess (700 vs. 0)": "cuda-illegal-access",
    "F ./flux.h:174] Check failed: err == hipSuccess (1 vs. 0)": "check-failed",
    "CUDA failure 35; GPU=-683076400 ; hostname=n1 ; expr=cudaStreamCreate(&_commStream)": "driver-too-old",
    "CUDA failure 2: out of memory ; GPU=0 ; hostname=n1 ; expr=cudaMalloc(&p, n)": "gpu-out-of-memory",
    "CUDA failure 100: no CUDA-capable device ; GPU=-1 ; hostname=n1 ; expr=cudaSetDevice(d)": "cuda-no-device-error",
    "CUDA failure 46 ; GPU=0 ; hostname=n1 ; expr=cudaSetDevice(d)": "gpu-busy",
    "CUDA failure 101 ; GPU=0 ; hostname=n1 ; expr=cudaSetDevice(d)": "gpu-index",
    "CUDA failure 209 ; GPU=0 ; hostname=n1 ; expr=cudaGetLastError()": "no-kernel-image",
    "CUDA failure 700 ; GPU=0 ; hostname=n1 ; expr=cudaStreamSynchronize(s)": "cuda-illegal-access",
    # Other accelerators.
    f'{TRACE}accelerate/utils/modeling.py", line 400, in set_module_tensor_to_device\n    new_value = value.to(device)\n'
    "RuntimeError: NPU out of memory. Tried to allocate 386.00 MiB (NPU 2; 60.97 GiB capacity)": "accelerator-out-of-memory",
    "RuntimeError: MPS backend out of memory (MPS allocated: 9.05 GB, other allocations: 1 KB, max allowed: 9.07 GB).": (
        "accelerator-out-of-memory"
    ),
    "RuntimeError: CUDA out of memory. Tried to allocate 386.00 MiB (GPU 0; 60.97 GiB total capacity)": "gpu-out-of-memory",
    "[19:08:34.164951][GC                    ][error][tid:44F8A] Failed to load tpc kernel for node: TPC634, GUID: constant_bf16."
    " Got error: GLUE_FAILED": "habana-graph-compile",
    "[rank6]: RuntimeError: [Rank:6] FATAL ERROR :: MODULE:PT_BRIDGE Exception in Launch thread...\n"
    "[rank6]: Check $HABANA_LOGS/ for detailsGraph compile failed. synStatus=synStatus 26 [Generic failure].": (
        "habana-graph-compile"
    ),
    "RuntimeError: synStatus=8 [Device not found] Device acquire failed.": "habana-device",
    f'{TRACE}torch/distributed/distributed_c10d.py", line 2501, in all_reduce\n    work = group.allreduce([tensor], opts)\n'
    "RuntimeError: InnerRunOpApi:torch_npu/csrc/framework/OpMaker.cpp:281 OPS function error: HcclAllreduce, error code is 6\n"
    "[ERROR] 2025-04-08-18:07:20 (PID:1292363, Device:1, RankID:1) ERR01100 OPS call acl api failed.\n"
    "EI0006: [PID: 1292363] 2025-04-08-18:07:20.444.436 Getting socket times out. Reason: Remote Rank did not send the data in "
    "time. Please check the reason for the rank being stuck": "hccl-rank-missing",
    "EI0002: [PID: 12] 2025-04-08-18:07:20.444.436 The wait execution of the Notify register times out. Reason: The Notify "
    "register has not received the Notify record from remote rank [2].": "hccl-rank-missing",
    # Other frameworks.
    f'{TRACE}mxnet/base.py", line 77, in check_call\n    raise MXNetError(text)\n'
    "mxnet.base.MXNetError: [22:00:27] src/kvstore/kvstore.cc:41: compile with USE_DIST_KVSTORE=1 to use dist_sync": (
        "mxnet-built-without"
    ),
    "2024-07-28 01:12:55.971411: using pin_memory on device 0 Exception in background worker 3: local variable 'region_labels' "
    "referenced before assignment\nRuntimeError: One or more background workers are no longer alive.": "batchgenerators-worker",
    "CNTK: Caught Win32 exception 0xc0000005: Access violation.\njob aborted:\n[ranks] message\n[0] terminated": (
        "windows-access-violation"
    ),
    "     @     0x7fa08bf26687  (unknown)\n     @     0x7fa08c5791e1  flux::Memory::~Memory()\nAborted (core dumped)": "aborted",
}
# The lines of a log, and the words of them that are quoted.
QUOTED = {
    "Critical error in pipeline:\nError in CPU operator 'nvidia.dali.fn.decoders.image',\nwhich was used in the pipeline "
    'definition with the following traceback:\n\n  File "/home/ada/loader.py", line 36, in create_pipeline\n'
    "    images = fn.decoders.image(images, device='cpu')\n\nencountered:\n\n"
    "Error in thread 0: CUDA runtime API error cudaErrorInvalidValue (1):\ninvalid argument\n"
    "Current pipeline object is no longer valid.": ("`DALI`", "cudaErrorInvalidValue (1): invalid argument"),
    "Error when constructing operator: readers__Webdataset encountered:\n"
    '[/opt/dali/dali/operators/reader/loader/loader.h:223] Assert on "num_shards_ < size" failed: empty shard': (
        "`DALI`",
        "empty shard",
    ),
    "[19:08:34.164951][SYN_RECIPE    ][critical][tid:44F8A] the flux of the recipe is inverted": (
        "`SynapseAI`",
        "is inverted",
    ),
    ":1:hip_code_object.cpp      :478 : 7604630996 us: [pid:7877  tid:0x7f144104a440] Code object failed to parse": (
        "`ROCm`",
        "failed to parse",
    ),
    "/x/main_nvshmem/src/modules/transport/ibgda/ibgda.cpp:2234: NULL value Unable to create ah.\n"
    "WARN: Failed to initialize all selected devices. Perf may be limited.": ("`NVSHMEM`", "Unable to create ah"),
    "/x/nvshmem_src/src/host/init/init.cu:1029: non-zero status: 7 flux of the heap is inverted": (
        "`NVSHMEM`",
        "of the heap",
    ),
    "[14:49:15] /opt/dgl/src/rpc/network/tcp_socket.cc:60: Failed listen on socket , error: Bad file descriptor": (
        "`DGL`",
        "Failed listen",
    ),
    "CUBLAS failure 7; GPU=0 ; hostname=n1 ; expr=cublasSgemm(h)": ("CNTK or ONNX Runtime", "CUBLAS failure 7"),
    "EL9999: Inner Error!\nEL9999  [drv api] halQueueQueryInfo failed: deviceId=0, qid=1, drvRetCode=7.[FUNC:MemQueueQueryInfo]"
    "[FILE:npu_driver.cc][LINE:3238]\n        TraceBack (most recent call last):": (
        "Ascend CANN",
        "halQueueQueryInfo failed",
    ),
    "2024:01:15-03:36:29:(19) |CCL_ERROR| flux.cpp:150 flux: condition a == b failed\nthe flux of the ranks differs": (
        "`oneCCL`",
        "the flux of the ranks differs",
    ),
}
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
WORKER = f"""\
Exception in background worker 3:
 local variable 'region_labels' referenced before assignment
{TRACE}batchgenerators/dataloading/nondet_multi_threaded_augmenter.py", line 53, in producer
    item = next(data_loader)
UnboundLocalError: local variable 'region_labels' referenced before assignment
{TRACE}nnunetv2/training/nnUNetTrainer.py", line 1, in run_training
    train_outputs.append(self.train_step(next(self.dataloader_train)))
RuntimeError: One or more background workers are no longer alive. Exiting. Please check the print statements above.
"""
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
NVSHMEM = """\
/x/nvshmem_src/src/host/init/init.cu:1029: non-zero status: 7 nvshmem setup heap failed
/x/nvshmem_src/src/host/init/init.cu:nvshmemi_check_state_and_init:930: nvshmem initialization failed, exiting
"""
NO_ROCM = (
    "E tensorflow/stream_executor/rocm/rocm_driver.cc:975] could not retrieve ROCM device count: HIP_ERROR_NoDevice"
)
RESTORE = """\
ValueError                                Traceback (most recent call last)
File ~/venv/lib/python3.10/site-packages/orbax/checkpoint/type_handlers.py:136, in _deserialize_sharding(sharding_string)
    131   axis_names = list(deserialized_dict[_MESH_AXES])
    134   sharding = NamedSharding(
    135       jax.sharding.Mesh(
--> 136           np.array(jax.devices()).reshape(shape), axis_names=axis_names
    137       ),
    140   return sharding

ValueError: cannot reshape array of size 2 into shape (1,64)
"""


@for_each("text", KNOWN)
def test_a_message_of_a_training_is_named(text: str) -> None:
    found = explain([f"starting on n1\n{text}\n".encode()], known_failures())
    assert found.known is not None and found.known.failure.id == KNOWN[text], found.verdict


@for_each("text", QUOTED)
def test_the_words_that_say_why_are_quoted(text: str) -> None:
    found = explain([f"starting on n1\n{text}\n".encode()], known_failures())
    assert found.known is not None and found.known.failure.id == "reported-error", found.verdict
    for words in QUOTED[text]:
        assert words in found.known.cause


@for_each("text", HEALTHY)
def test_what_only_looks_like_such_a_message_accuses_no_one(text: str) -> None:
    assert explain([f"starting on n1\n{text}\nstep 2\n".encode()], known_failures()).verdict == "healthy"


def test_a_gpu_of_amd_that_tensorflow_does_not_find_is_named_as_a_notice() -> None:
    found = explain([f"{NO_ROCM}\nstep 1\n".encode()], known_failures())
    assert found.verdict == "healthy"
    assert [finding.failure.id for finding in found.findings] == ["no-rocm-device"]


def test_an_array_of_devices_that_does_not_fit_its_mesh_is_no_wrong_data() -> None:
    known = explain([RESTORE.encode()], known_failures()).known
    assert known is not None and "devices than the program arranges in a mesh" in known.cause


def test_the_marked_line_of_a_notebook_is_the_code_that_failed() -> None:
    log = RESTORE.replace("np.array(jax.devices())", "data").replace("NamedSharding(", "len(jax.devices())")
    known = explain([log.encode()], known_failures()).known
    assert known is not None and "devices" not in known.cause


def test_the_message_of_a_worker_that_prepares_data_is_in_the_next_line() -> None:
    known = explain([WORKER.encode()], known_failures()).known
    assert known is not None and known.failure.id == "batchgenerators-worker-failed"
    assert "region_labels" in known.cause


def test_what_fails_while_python_shows_an_exception_is_not_the_cause() -> None:
    known = explain([HOOK.encode()], known_failures()).known
    assert known is not None and "flux 3 is inverted" in known.cause


def test_the_first_error_of_nvshmem_is_named_if_it_ends_the_rank() -> None:
    known = explain([NVSHMEM.encode()], known_failures()).known
    assert known is not None and "setup heap failed" in known.cause
