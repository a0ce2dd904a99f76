"""A stand-in for pip in environments of the tiny stack: `pip wheel` compiles `tiny_horovod` as Horovod's setup.py does, and
`tiny_mpi4py` as that of mpi4py.

What decides a build reaches it as it reaches Horovod: compiler, flags and version by the environment, wrapper and RUNPATH by
CMake's toolchain file. An object that is newer than its source is not made again, as ninja has it.
"""

import json
import os
import re
import shlex
import subprocess
import sys
import zipfile

import tensorflow


def make(into, package, version, files):
    """A wheel of these files."""
    info = "%s-%s.dist-info/" % (package, version)
    files[info + "METADATA"] = "Metadata-Version: 2.1\nName: %s\nVersion: %s\n" % (package, version)
    files[info + "WHEEL"] = "Wheel-Version: 1.0\nGenerator: tiny\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    files[info + "RECORD"] = "".join("%s,,\n" % name for name in sorted(list(files) + [info + "RECORD"]))
    if not os.path.isdir(into):
        os.makedirs(into)
    with zipfile.ZipFile(os.path.join(into, "%s-%s-py3-none-any.whl" % (package, version)), "w") as wheel:
        for name in sorted(files):
            wheel.writestr(zipfile.ZipInfo(name), files[name])


def python_files(package, version):
    """The Python files of a package."""
    found = {}
    for place, _, names in os.walk(os.path.join(folder, package)):
        for name in names:
            path = os.path.join(place, name)
            found[os.path.relpath(path, folder)] = open(path, "rb").read().replace(b"@VERSION@", version.encode())
    return found


if sys.argv[1] != "wheel":
    sys.exit("this pip can only compile: %s" % sys.argv)
folder, into = sys.argv[-1], sys.argv[sys.argv.index("--wheel-dir") + 1]
version = open(os.path.join(folder, "version")).read().strip()
if os.path.exists(os.path.join(folder, "mpi4py")):
    module = os.path.join(folder, "MPI.so")
    flags = ["-shared", "-fPIC"] + shlex.split(os.environ["CFLAGS"]) + shlex.split(os.environ["LDFLAGS"])
    subprocess.check_call([os.environ["MPICC"]] + flags + ["-o", module, os.path.join(folder, "src", "MPI.c")])
    files = python_files("mpi4py", version)
    files["mpi4py/MPI.so"] = open(module, "rb").read()
    make(into, "mpi4py", version, files)
    sys.exit()
toolchain = open(os.environ["CMAKE_TOOLCHAIN_FILE"]).read()
wrapper = re.search(r'MPI_CXX_COMPILER "([^"]+)"', toolchain).group(1)
runpath = re.search(r'CMAKE_INSTALL_RPATH "([^"]*)"', toolchain).group(1).replace(";", ":")
flags = ["-fPIC", "-O1"] + os.environ["HOROVOD_BUILD_ARCH_FLAGS"].split()
if "MPI_CXX_SKIP_MPICXX ON" in toolchain:  # as CMake's FindMPI does
    flags += ["-DMPICH_SKIP_MPICXX=1", "-DOMPI_SKIP_MPICXX=1"]
objects = os.path.join(folder, "build", "temp.tiny")
if os.environ.get("HOROVOD_WITH_MPI") != "1":
    sys.exit("built without MPI")
if not os.path.isdir(objects):
    os.makedirs(objects)
made = []
for number, name in enumerate(sorted(os.listdir(os.path.join(folder, "src")))):
    source, target = os.path.join(folder, "src", name), os.path.join(objects, name + ".o")
    made.append(target)
    if not os.path.exists(target):
        subprocess.check_call([wrapper] + flags + ["-c", source, "-o", target + ".part"])
        os.rename(target + ".part", target)
        print("[%d] compiled %s" % (number + 1, source), flush=True)
library = os.path.join(objects, "mpi_lib.so")
subprocess.check_call([wrapper, "-shared", "-Wl,--as-needed", "-Wl,-rpath," + runpath, "-o", library] + made)
files = {
    "horovod/tensorflow/mpi_lib.so": open(library, "rb").read(),
    "horovod/metadata.json": json.dumps({"tensorflow": tensorflow.__version__}),
}
local = os.environ.get("HOROVOD_LOCAL_VERSION")
version += "+" + local if local else ""
make(into, "horovod", version, {**files, **python_files("horovod", version)})
