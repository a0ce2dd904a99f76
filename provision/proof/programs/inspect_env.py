"""Inspects a built environment: versions, how Horovod was built, and which shared objects are really loaded.

`--framework` names the package of the framework. With `--without-horovod` it inspects that only, for environments without
Horovod.

Like the training programs it runs *inside* the candidate environment, imports the framework and Horovod but never
`provision`, and parses on Python 3.6. It starts no ranks and never calls `hvd.init()`: on several systems MPI refuses to
start outside a job step, and this program only looks at what was linked, not at what works.

The last line on standard output is one JSON object; anything that libraries print comes before it. A value that could not
be determined is null, with the reason under `errors`. The exit code is 0 if the libraries could be imported, else 1.

The list of mapped objects comes from the kernel, after the imports: what a library records about its needs (`ldd`, RUNPATH)
is only a guess about the loader, but `/proc/self/maps` shows what the loader did.
"""

import argparse
import contextlib
import ctypes
import faulthandler
import glob
import importlib
import importlib.util
import io
import json
import os
import platform
import re
import site
import subprocess
import sys

SCHEMA = 1


def mapped_objects():
    """The sorted paths of all shared objects in this process, as the kernel names them (links resolved)."""
    paths = set()
    with open("/proc/self/maps") as stream:
        for line in stream:
            fields = line.rstrip("\n").split(None, 5)
            if len(fields) == 6 and fields[5].startswith("/") and ".so" in os.path.basename(fields[5]):
                paths.add(fields[5])
    return sorted(paths)


def horovod_metadata(horovod):
    """The frameworks and versions that Horovod was built against; None before 0.24, which does not write this file."""
    path = os.path.join(os.path.dirname(horovod.__file__), "metadata.json")
    if not os.path.exists(path):
        return None
    with open(path) as stream:
        return json.load(stream)


def horovod_extensions(horovod, framework):
    """The paths of Horovod's compiled extension for the framework: one, or two if the build is for GPU and CPU."""
    return sorted(glob.glob(os.path.join(os.path.dirname(horovod.__file__), framework, "*.so")))


def compiled_module(name):
    """The file of a compiled module, whose libraries are now in this process.

    It is loaded as a library and not imported: mpi4py would initialise MPI.
    """
    path = importlib.util.find_spec(name).origin
    ctypes.CDLL(path)
    return path


def build_flags(hvd):
    """What the compiled extension contains: `nccl_built` is a version number, `mpi_built` and others are 0 or 1."""
    return {name: int(getattr(hvd, name)()) for name in dir(hvd) if name.endswith("_built")}


def cuda_driver():
    """The CUDA version that the driver of this machine supports (`12.8`), or why it is not known: a build needs no driver."""
    version = ctypes.c_int(0)
    try:
        code = ctypes.CDLL("libcuda.so.1").cuDriverGetVersion(ctypes.byref(version))
    except OSError as error:
        return {"serves": None, "reason": str(error)}
    if code:
        return {"serves": None, "reason": "cuDriverGetVersion returned {}".format(code)}
    return {"serves": "{}.{}".format(version.value // 1000, version.value % 1000 // 10), "reason": None}


def device_code(cuobjdump, libraries):
    """The compute capabilities that the libraries contain device code for (`80`), according to cuobjdump."""
    capabilities = set()
    for library in libraries:
        text = subprocess.run(
            [cuobjdump, "--list-elf", library], check=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        ).stdout.decode("utf-8", "replace")
        capabilities |= set(re.findall(r"\.sm_(\d+)[a-z]?\.cubin", text))
    return sorted(capabilities, key=int)


def check_build_text():
    """The output of `horovodrun --check-build`, without a second import of TensorFlow.

    A Horovod without our patches forks a child for each question. The children inherit the TensorFlow that is already imported
    here, so this takes 0.1 s; the command takes 31 s, because it imports TensorFlow for six of its questions. For that Horovod
    the answer `[X] PyTorch` means nothing, because `horovod.torch` can be imported without its extension; use `extensions` and
    `flags`.
    """
    from horovod.runner.launch import check_build

    captured = io.StringIO()
    # check_build ends the process after it has printed.
    with contextlib.redirect_stdout(captured), contextlib.suppress(SystemExit):
        check_build(False)
    return captured.getvalue()


def ask_tensorflow(facts, ask):
    """What only TensorFlow can answer."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    tf = ask("import tensorflow", importlib.import_module, "tensorflow")
    if tf is not None:
        from tensorflow_rank import keras_version, math_backend, tensorflow_facts

        facts["versions"]["tensorflow"] = tf.__version__
        facts["versions"]["keras"] = ask("keras", keras_version, tf)
        facts["versions"]["numpy"] = sys.modules["numpy"].__version__
        facts["tensorflow"] = ask("tensorflow", tensorflow_facts, tf)
        facts["math"] = ask("math", math_backend, tf)
    return tf


def ask_torch(facts, ask):
    """What only PyTorch can answer."""
    torch = ask("import torch", importlib.import_module, "torch")
    if torch is not None:
        facts["versions"]["torch"] = str(torch.__version__)
        numpy = ask("numpy", importlib.import_module, "numpy")
        facts["versions"]["numpy"] = numpy and numpy.__version__
        facts["torch"] = ask("torch", torch_facts, torch)
        facts["math"] = {"backend": "oneDNN" if torch.backends.mkldnn.is_available() else "its own kernels"}
    return torch


def torch_facts(torch):
    """How PyTorch was built: CUDA and cuDNN versions if any, code for which GPUs, and how its processes can communicate."""
    distributed = torch.distributed
    kinds = ("gloo", "nccl", "mpi") if distributed.is_available() else ()
    return {
        "build_info": {
            "cuda_version": torch.version.cuda,
            "cudnn_version": torch.backends.cudnn.version() if torch.version.cuda else None,
            "capabilities": torch._C._cuda_getArchFlags() if torch.version.cuda else None,
        },
        "built_with_cuda": torch.version.cuda is not None,
        "cxx11_abi": int(torch._C._GLIBCXX_USE_CXX11_ABI),
        "distributed": [kind for kind in kinds if getattr(distributed, "is_{}_available".format(kind), bool)()],
    }


# The question to each framework, by the name of its package: it fills the facts and returns the imported package, or None.
FRAMEWORKS = {"tensorflow": ask_tensorflow, "torch": ask_torch}


def inspect(framework, gpu=False, cuobjdump=None, with_horovod=True, compiled=()):
    """Gather all facts; `compiled` are modules that were compiled beside Horovod.

    If a question fails, its value is null, the reason is recorded, and the next one follows.
    """
    facts = {
        "schema": SCHEMA,
        "versions": {"python": platform.python_version()},
        "path": sys.path,
        "enable_user_site": site.ENABLE_USER_SITE,
        framework: None,
        "math": None,
        "horovod": {"metadata": None, "extensions": None, "flags": None, "check_build": None, "device_code": None},
        "compiled": {},
        "cuda_driver": None,
        "mapped_objects": None,
        "errors": {},
    }

    def ask(name, question, *args):
        try:
            return question(*args)
        except Exception as error:
            facts["errors"][name] = f"{type(error).__name__}: {error}"
            return None

    package = FRAMEWORKS[framework](facts, ask)
    # The package without its extension: this distinguishes a Horovod that cannot be loaded from one that is missing.
    horovod = ask("import horovod", importlib.import_module, "horovod") if with_horovod else None
    if horovod is not None:
        facts["versions"]["horovod"] = getattr(horovod, "__version__", None)  # None: an empty folder
        facts["horovod"]["metadata"] = ask("metadata", horovod_metadata, horovod)
        facts["horovod"]["extensions"] = ask("extensions", horovod_extensions, horovod, framework)
        if cuobjdump:
            facts["horovod"]["device_code"] = ask("device_code", device_code, cuobjdump, facts["horovod"]["extensions"])
    # The compiled extension: a bad build fails here.
    name, wanted = "horovod." + framework, package is not None and with_horovod
    hvd = ask("import " + name, importlib.import_module, name) if wanted else None
    for module in compiled:
        package = module.partition(".")[0]
        facts["compiled"][package] = ask("import " + module, compiled_module, module)
        facts["versions"][package] = getattr(sys.modules.get(package), "__version__", None)
    facts["mapped_objects"] = ask("mapped_objects", mapped_objects)
    if gpu:  # after reading the mapping, which would otherwise contain the driver's library
        facts["cuda_driver"] = ask("cuda_driver", cuda_driver)
    if hvd is not None:
        facts["horovod"]["flags"] = ask("flags", build_flags, hvd)
        facts["horovod"]["check_build"] = ask("check_build", check_build_text)
    return facts, (hvd if with_horovod else package) is not None


def main(argv=None):
    """Print the facts as the last line; the exit code is 0 if the imports worked."""
    parser = argparse.ArgumentParser(description="Print the facts about this environment as JSON.", allow_abbrev=False)
    parser.add_argument("--framework", choices=sorted(FRAMEWORKS), default="tensorflow", help="its package")
    parser.add_argument("--gpu", action="store_true", help="the build is for GPUs: report the driver of this machine")
    parser.add_argument("--cuobjdump", metavar="FILE", help="the CUDA toolkit's program that lists device code")
    parser.add_argument(
        "--without-horovod", action="store_true", help="the environment has no Horovod: inspect the framework only"
    )
    parser.add_argument(
        "--compiled", action="append", default=[], metavar="MODULE", help="a module that was compiled against MPI"
    )
    args = parser.parse_args(argv)
    faulthandler.enable()
    facts, imported = inspect(args.framework, args.gpu, args.cuobjdump, not args.without_horovod, args.compiled)
    sys.stdout.flush()
    print("\n" + json.dumps(facts, sort_keys=True), flush=True)
    return 0 if imported else 1


if __name__ == "__main__":
    sys.exit(main())
