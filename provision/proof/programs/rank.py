"""The common parts of all programs that run as ranks: the report, and the rank's share of the node.

The programs are started by path inside the candidate environment, so their folder comes first in `sys.path` and they
import this file as `rank`. Like them it parses on Python 3.6 and never imports `provision`; nothing in it is of a framework.
What is TensorFlow's own is in `tensorflow_rank.py`. The whole folder can be copied to any node, and its programs started by hand.
"""

import ctypes
import faulthandler
import glob
import json
import os
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


def add_gpu_argument(parser):
    """Add the option with which the caller requires that every rank uses a GPU."""
    parser.add_argument("--gpu", action="store_true", help="every rank must use a GPU; without a GPU the proof fails")


def take_gpu(fields, visible, required, built_with_cuda):
    """The index of this rank's GPU among the `visible` ones, for the report and the framework; None if there is none.

    It is the GPU with its local rank, or the only one that the launcher lets it see. With `required`, there must be one; if
    there is none, the report contains what the machine lacks.
    """
    local_rank = fields["local_rank"]
    fields["gpu"] = {"visible": visible, "used": None, "bus_id": None}
    if not visible and required:
        fields["gpu"]["missing"] = why_no_gpu(built_with_cuda)
        raise RuntimeError("this rank has no GPU: {}".format("; ".join(fields["gpu"]["missing"])))
    if not visible:
        return None
    if 1 < visible <= local_rank:
        raise RuntimeError(
            f"there is no GPU for local rank {local_rank}: {visible} GPUs are visible; "
            f"start at most {visible} ranks per node"
        )
    index = local_rank if visible > 1 else 0
    fields["gpu"]["bus_id"] = gpu_bus_id(index)
    return index


def thread_counts():
    """NUM_INTER_THREADS and NUM_INTRA_THREADS, which divide a node among its ranks; 0 is automatic."""
    return [int(os.environ.get(name) or 0) for name in ("NUM_INTER_THREADS", "NUM_INTRA_THREADS")]


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


def why_no_gpu(built_with_cuda):
    """The reasons why the framework sees no GPU, one line each: every part that was looked for, and its state."""
    reasons = [] if built_with_cuda else ["this framework is built without CUDA"]
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
