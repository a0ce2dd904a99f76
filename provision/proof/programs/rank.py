"""The common parts of all programs that run as ranks: the report, joining the other ranks, taking a share of the node.

The programs are started by path inside the candidate environment, so their folder comes first in `sys.path` and they
import this file as `rank`. Like them it parses on Python 3.6, imports TensorFlow and Horovod late, and never `provision`.
The whole folder can be copied to any node, and its programs started by hand.
"""

import ctypes
import faulthandler
import glob
import json
import os
import platform
import re
import socket
import sys
import time
import traceback

SCHEMA = 1


class Report:
    """The report of this process: it is on disk from the start, and is rewritten at each stage.

    The name of the file contains the host and the process id, never the rank: in the classic failure every process
    believes that it is rank 0 of 1. Reports named by rank would then overwrite each other and hide the failure.
    """

    def __init__(self, directory):
        self.host = socket.gethostname()
        self.path = os.path.join(directory, f"report-{self.host}-{os.getpid()}.json")
        self.started = time.time()
        self.stage_started = self.started
        self.fields = {
            "schema": SCHEMA,
            "host": self.host,
            # Slurm's name of the node: if several slurmd run on one machine, the host names are all the same.
            "node": os.environ.get("SLURMD_NODENAME"),
            "pid": os.getpid(),
            "stage": "start",
            "error": None,
            "seconds_by_stage": {},
            # Set by provision-deliver in the namespace that has the image.
            "delivered": os.environ.get("PROVISION_DELIVERED"),
            "loaded_modules": [name for name in os.environ.get("LOADEDMODULES", "").split(":") if name],
        }
        os.makedirs(directory, exist_ok=True)
        self.write()

    def stage(self, name):
        """End the present stage, record its seconds, and begin the next stage."""
        now = time.time()
        self.fields["seconds_by_stage"][self.fields["stage"]] = round(now - self.stage_started, 3)
        self.fields["stage"] = name
        self.fields["seconds"] = round(now - self.started, 3)
        self.stage_started = now
        self.write()

    def write(self):
        """Replace the file in one step, so that a reader never sees an incomplete report."""
        temporary = f"{self.path}.part"
        with open(temporary, "w") as stream:
            json.dump(plain(self.fields), stream, indent=1, sort_keys=True, allow_nan=False)
            stream.write("\n")
        os.replace(temporary, self.path)


def seconds_since_start():
    """The seconds since this process was started, also as another program that became this one; None if they are not known."""
    try:
        with open("/proc/self/stat") as stream:
            ticks = int(stream.read().rsplit(")", 1)[1].split()[19])
        with open("/proc/uptime") as stream:
            return round(float(stream.read().split()[0]) - ticks / os.sysconf("SC_CLK_TCK"), 2)
    except (OSError, ValueError, IndexError):
        return None


def plain(value):
    """Convert a value for strict JSON: numbers that are not finite become null, NumPy scalars become Python numbers."""
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if hasattr(value, "item"):
        value = value.item()
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        return None
    return value


def run(title, out, work):
    """Call `work(report)` and leave a report in `out`, even after an error; returns the exit code, 0 or 1.

    The exit code is 1 after an exception, which the report then contains, and if `work` returns a true value.
    """
    faulthandler.enable()
    report = Report(out)
    try:
        return 1 if work(report) else 0
    except BaseException as error:
        report.fields["error"] = f"{type(error).__name__}: {error}"
        report.fields["traceback"] = traceback.format_exc()
        report.write()
        print(
            f"error: {title} stopped in stage `{report.fields['stage']}` on {report.host}\n"
            f"  report: {report.path}\n{report.fields['traceback']}",
            file=sys.stderr,
            flush=True,
        )
        return 1


def import_tensorflow(report):
    """Import NumPy and TensorFlow, in a separate stage, because an illegal instruction fails here."""
    fields = report.fields
    fields["versions"] = {"python": platform.python_version()}

    report.stage("import tensorflow")
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    import numpy as np
    import tensorflow as tf

    # Hides Keras' warning about slow callbacks: broadcast and metric average must wait for all ranks.
    tf.get_logger().setLevel("ERROR")
    fields["versions"].update(numpy=np.__version__, tensorflow=tf.__version__)
    fields["versions"]["keras"] = keras_version(tf)
    fields["start_seconds"] = seconds_since_start()
    return np, tf


def import_libraries(report):
    """Import NumPy, TensorFlow and Horovod, in separate stages."""
    np, tf = import_tensorflow(report)
    report.stage("import horovod")
    import horovod
    import horovod.tensorflow as hvd

    report.fields["versions"]["horovod"] = horovod.__version__
    return np, tf, hvd


def add_gpu_argument(parser):
    """Add the option with which the caller requires that every rank uses a GPU."""
    parser.add_argument("--gpu", action="store_true", help="every rank must use a GPU; without a GPU the proof fails")


def join(report, tf, hvd, gpu=False):
    """Join the other ranks, then take the threads and the GPU of this rank; with `gpu`, there must be one."""
    fields = report.fields
    report.stage("hvd.init")
    hvd.init()
    fields["start_seconds"] = seconds_since_start()
    fields.update(rank=hvd.rank(), size=hvd.size(), local_rank=hvd.local_rank(), local_size=hvd.local_size())
    mpi = mpi_library_version()
    if mpi:
        fields["versions"]["mpi"] = mpi

    report.stage("devices")
    fields.update(take_devices(tf, hvd.local_rank()))
    if gpu:
        need_gpu(tf, fields)


def need_gpu(tf, fields):
    """Fail if this process has no GPU; the report then contains what the machine lacks."""
    if not fields["gpu"]["used"]:
        fields["gpu"]["missing"] = why_no_gpu(tf)
        raise RuntimeError("this rank has no GPU: {}".format("; ".join(fields["gpu"]["missing"])))


def take_devices(tf, local_rank):
    """Take the threads and the GPU of this rank, and return what was taken."""
    return {"threads": set_threads(tf), "gpu": pin_gpu(tf, local_rank)}


def keras_version(tf):
    """The version of the Keras behind `tf.keras`, which is a separate package from TensorFlow 2.6 on."""
    root = sys.modules[tf.keras.Model.__module__.split(".")[0]]
    return str(getattr(tf.keras, "__version__", root.__version__))


def mpi_library_version():
    """The name and version of the MPI library that Horovod loaded into this process; None if they are not known.

    MPI allows `MPI_Get_library_version` at any time. Horovod loads its library privately, so this function looks up the
    path under which it is mapped; opening it again returns the copy that is already in use.
    """
    try:
        with open("/proc/self/maps") as stream:
            paths = {line.split(None, 5)[5].strip() for line in stream if "/" in line}
        for path in sorted(paths):
            if not re.match(r"libmpi[^/]*\.so", os.path.basename(path)):
                continue
            library = ctypes.CDLL(path)
            if not hasattr(library, "MPI_Get_library_version"):
                continue
            text = ctypes.create_string_buffer(65536)  # MPICH and Open MPI ask for 8192 and 256 at most
            length = ctypes.c_int(0)
            if library.MPI_Get_library_version(text, ctypes.byref(length)) == 0:
                lines = text.value.decode("utf-8", "replace").splitlines()
                return "; ".join(" ".join(line.split()) for line in lines[:2])
    except Exception:
        return None  # only information for the reader of the report: never a reason to fail
    return None


def gpu_bus_id(index):
    """The PCI bus id of CUDA device `index` of this process, or None. It shows whether two ranks share one GPU."""
    try:
        cuda = ctypes.CDLL("libcuda.so.1")
        device = ctypes.c_int(0)
        text = ctypes.create_string_buffer(64)
        if cuda.cuInit(0) or cuda.cuDeviceGet(ctypes.byref(device), index):
            return None
        if cuda.cuDeviceGetPCIBusId(text, len(text), device):
            return None
        return text.value.decode("ascii", "replace")
    except Exception:
        return None


def set_threads(tf):
    """Apply NUM_INTER_THREADS and NUM_INTRA_THREADS, which divide a node among its ranks; 0 is automatic."""
    inter = os.environ.get("NUM_INTER_THREADS")
    intra = os.environ.get("NUM_INTRA_THREADS")
    if inter:
        tf.config.threading.set_inter_op_parallelism_threads(int(inter))
    if intra:
        tf.config.threading.set_intra_op_parallelism_threads(int(intra))
    return {
        "inter": tf.config.threading.get_inter_op_parallelism_threads(),
        "intra": tf.config.threading.get_intra_op_parallelism_threads(),
    }


def why_no_gpu(tf):
    """The reasons why TensorFlow sees no GPU, one line each: every part that was looked for, and its state."""
    reasons = []
    if not tf.test.is_built_with_cuda():
        reasons.append("this TensorFlow is built without CUDA")
    try:
        code = ctypes.CDLL("libcuda.so.1").cuInit(0)
        reasons.append("the driver is present, but cuInit returned {}".format(code) if code else "the driver works")
    except OSError as error:
        reasons.append("no driver ({})".format(error))
    devices = sorted(glob.glob("/dev/nvidia[0-9]*"))
    reasons.append(
        "device files: {}".format(" ".join(devices)) if devices else "no device files /dev/nvidia0 and so on"
    )
    for name in ("CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES"):
        if name in os.environ:
            reasons.append("{}={!r}".format(name, os.environ[name]))
    return reasons


def pin_gpu(tf, local_rank):
    """Give this rank one GPU: the one with its local rank, or the only one that the launcher lets it see."""
    config = tf.config if hasattr(tf.config, "set_visible_devices") else tf.config.experimental  # before 2.1
    gpus = config.list_physical_devices("GPU")
    if not gpus:
        return {"visible": 0, "used": None, "bus_id": None}
    if len(gpus) > 1 and local_rank >= len(gpus):
        raise RuntimeError(
            f"there is no GPU for local rank {local_rank}: {len(gpus)} GPUs are visible; "
            f"start at most {len(gpus)} ranks per node"
        )
    index = local_rank if len(gpus) > 1 else 0
    for gpu in gpus:
        tf.config.experimental.set_memory_growth(gpu, True)
    config.set_visible_devices(gpus[index], "GPU")
    return {"visible": len(gpus), "used": gpus[index].name, "bus_id": gpu_bus_id(index)}


def session_config(tf, devices):
    """The ConfigProto with the devices from `take_devices`, which a session of TensorFlow 1 does not use by itself."""
    config = tf.compat.v1.ConfigProto()
    config.inter_op_parallelism_threads = devices["threads"]["inter"]
    config.intra_op_parallelism_threads = devices["threads"]["intra"]
    config.gpu_options.allow_growth = True
    if devices["gpu"]["used"]:
        config.gpu_options.visible_device_list = devices["gpu"]["used"].rsplit(":", 1)[-1]
    return config
