"""A stack that is built in a second or two: small wheels and a small source package, made here, in place of TensorFlow.

Real: the whole tool, its planner, executor, locks and store, virtualenv, uv, the bytecode, the program that inspects. Stand-ins:
the packages, the pip that compiles "Horovod" (`PIP`), and the program that trains (`SINGLE`), which writes a good report.
"""

from __future__ import annotations

import base64
import hashlib
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from parts.provision import REPOSITORY
from parts.reports import one_process
from provision.machine.root.store import Store
from provision.model.layout import Layout
from provision.model.lock import lock_header

MINOR = f"3.{sys.version_info[1]}"
TAG = f"py3{sys.version_info[1]}"
TENSORFLOW, HOROVOD, NUMPY, MPICH = "2.21.0", "0.1.0", "1.0", "5.0.2"
OBJECTS = 6

STACK = f"""
name = "tiny"
summary = "a stack of small packages"
module = "tensorflow/{TENSORFLOW}"
pythons = ["{MINOR}"]
[framework]
name = "tensorflow"
package = "tensorflow-cpu"
version = "{TENSORFLOW}"
[horovod]
version = "{HOROVOD}"
[environ]
PYTHONNOUSERSITE = 1
[proof]
program = "single"
mnist = {{ epochs = 2, batch_size = 64, learning_rate = 0.001, min_accuracy = 0.9 }}
digits = {{ epochs = 2, batch_size = 32, learning_rate = 0.001, min_accuracy = 0.9 }}
"""

SITE = """
name = "{name}"
title = "a machine of the tests"
root = "{root}"
stack = "tiny"
[archs.native]
target = "native"
environ = {{ TINY_VARIANT = "{name}" }}
mpi = {{ provider = "pypi", family = "mpich", requirements = "tinympi" }}
launcher = {{ name = "none" }}
proof = {{ nodes = 1, ranks_per_node = 1, timeout_s = 60 }}
"""

# Two archs that this machine can build; their names are those of their environments.
BOTH = """
name = "both"
title = "two archs of the tests"
root = "{root}"
stack = "tiny"
"""
ARCH = """
[archs.{name}]
target = "x86_64"
environ = {{ TINY_VARIANT = "{name}" }}
mpi = {{ provider = "pypi", family = "mpich", requirements = "tinympi" }}
launcher = {{ name = "none" }}
proof = {{ nodes = 1, ranks_per_node = 1, timeout_s = 60 }}
"""

# What `inspect_env.py` asks.
TENSORFLOW_INIT = f"""
import types, numpy
__version__ = "{TENSORFLOW}"
sysconfig = types.SimpleNamespace(CXX11_ABI_FLAG=1)
test = types.SimpleNamespace(is_built_with_cuda=lambda: False)
version = types.SimpleNamespace(COMPILER_VERSION="1")
"""
HOROVOD_TENSORFLOW = """
import ctypes, os, sys
ctypes.CDLL(os.path.join(sys.prefix, "lib", "libmpi.so"))
def mpi_built(): return True
def gloo_built(): return False
"""

# Compiles as ninja does: an object that is newer than its source is not made again.
PIP = """
import hashlib, os, sys, time, zipfile
if sys.argv[1] != "wheel":
    sys.exit("this pip can only compile: %s" % sys.argv)
folder, into = sys.argv[-1], sys.argv[sys.argv.index("--wheel-dir") + 1]
objects = os.path.join(folder, "build", "temp.tiny")
os.makedirs(objects, exist_ok=True)
files = {}
for number in range(int(open(os.path.join(folder, "objects")).read())):
    source, made = os.path.join(folder, "src", "%d.cc" % number), os.path.join(objects, "%d.o" % number)
    if not os.path.exists(made):
        time.sleep(0.03)
        with open(made + ".part", "w") as file:
            file.write(hashlib.sha256(open(source, "rb").read()).hexdigest())
        os.rename(made + ".part", made)
        print("[%d] compiled %s" % (number + 1, source), flush=True)
    files["horovod/tensorflow/%d.so" % number] = open(made).read()
for place, _, names in os.walk(os.path.join(folder, "python")):
    for name in names:
        path = os.path.join(place, name)
        files[os.path.relpath(path, os.path.join(folder, "python"))] = open(path).read()
version = open(os.path.join(folder, "version")).read().strip()
info = "horovod-%s.dist-info/" % version
files[info + "METADATA"] = "Metadata-Version: 2.1\\nName: horovod\\nVersion: %s\\n" % version
files[info + "WHEEL"] = "Wheel-Version: 1.0\\nGenerator: tiny\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n"
files[info + "RECORD"] = "".join("%s,,\\n" % name for name in sorted([*files, info + "RECORD"]))
os.makedirs(into, exist_ok=True)
with zipfile.ZipFile(os.path.join(into, "horovod-%s-py3-none-any.whl" % version), "w") as wheel:
    for name in sorted(files):
        wheel.writestr(zipfile.ZipInfo(name), files[name])
"""

SINGLE = """
import json, os, sys, time
report = json.loads(REPORT)
report["versions"]["tensorflow"], report["versions"]["python"] = VERSION, sys.version.split()[0]
time.sleep(0.05)
while os.path.exists(os.path.join(FOLDER, "hold")):
    with open(os.path.join(FOLDER, "held"), "w") as file:
        file.write(str(os.getpid()))
    time.sleep(0.05)
if os.path.exists(os.path.join(FOLDER, "break-" + os.environ["TINY_VARIANT"])):
    sys.exit("this arch is broken on purpose")
with open(os.path.join(sys.argv[sys.argv.index("--out") + 1], "report-0.json"), "w") as file:
    json.dump(report, file)
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class TinySite:
    """Profiles `one` and `two`, which differ in one variable: two environments with one module name below one root."""

    folder: Path
    root: Path

    def environ(self, **more: str) -> dict[str, str]:
        """The environment of the tool."""
        kept = {name: os.environ[name] for name in ("PATH", "HOME", "USER", "LANG") if name in os.environ}
        return {
            **kept,
            "PYTHONPATH": f"{REPOSITORY}:{REPOSITORY / 'tests'}",
            "PROVISION_CONFIG": str(self.folder / "config"),
            "TINY_FOLDER": str(self.folder),
            "UV_CACHE_DIR": str(self.folder / "uv"),
            "XDG_DATA_HOME": str(self.folder / "data"),
            "TMPDIR": str(self.folder / "tmp"),
            **more,
        }

    def argv(self, *words: str) -> list[str]:
        """The command line of the tool; see `parts/tiny_tool.py`."""
        return [sys.executable, "-m", "parts.tiny_tool", *words]

    def run(self, *words: str, timeout_s: float = 600, **environ: str) -> subprocess.CompletedProcess[str]:
        """Run the tool to its end."""
        return subprocess.run(
            self.argv(*words),
            env=self.environ(**environ),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=False,
        )

    @property
    def store(self) -> Store:
        """The store below the root."""
        return Store(Layout(PurePosixPath(self.root)))


def make_site(folder: Path) -> TinySite:
    """The packages, their locks, the profiles and the stack, and a root for which everything was fetched."""
    site, config, wheels = TinySite(folder=folder, root=folder / "root"), folder / "config", folder / "wheels"
    for path in (config / "sites", config / "stacks", config / "requirements", wheels, folder / "tmp"):
        path.mkdir(parents=True)
    (config / "stacks" / "tiny.toml").write_text(STACK)
    for name in ("one", "two"):
        (config / "sites" / f"{name}.toml").write_text(SITE.format(name=name, root=site.root))
    both = BOTH.format(root=site.root) + "".join(ARCH.format(name=name) for name in ("a", "b"))
    (config / "sites" / "both.toml").write_text(both)
    library = folder / "libmpi.so"
    subprocess.run(["gcc", "-shared", "-x", "c", "-o", str(library), "/dev/null"], check=True)
    make_wheel(wheels, "numpy", NUMPY, {"numpy/__init__.py": f'__version__ = "{NUMPY}"\n'})
    modules = {f"tensorflow/part{number}.py": f"value = {number}\n" * 50 for number in range(20)}
    make_wheel(wheels, "tensorflow_cpu", TENSORFLOW, {"tensorflow/__init__.py": TENSORFLOW_INIT, **modules})
    data = f"tinympi-{MPICH}.data"
    make_wheel(wheels, "tinympi", MPICH, {f"{data}/data/lib/libmpi.so": library.read_bytes()})
    make_wheel(wheels, "tinybuild", "1.0", {"tinybuild.py": ""})
    make_wheel(folder, "pip", "99.0", {"pip/__init__.py": '__version__ = "99.0"\n', "pip/__main__.py": PIP})
    source = make_source(folder)
    pins = {
        "tiny": {"tensorflow_cpu": TENSORFLOW, "numpy": NUMPY, "horovod": HOROVOD},
        "tinympi": {"tinympi": MPICH},
        "build": {"tinybuild": "1.0"},
    }
    fetched = site.root / "fetched"  # on the same disk
    for lock, packages in pins.items():
        text = "".join(f"{name}=={version}\n" for name, version in packages.items())
        (config / "requirements" / f"{lock}.in").write_text(text)
        lines, files = [f"# Written for the tests.\n{lock_header(text)}"], []
        for name, version in packages.items():
            file = source if name == "horovod" else wheels / f"{name}-{version}-py3-none-any.whl"
            digest = hashlib.sha256(file.read_bytes()).hexdigest()
            lines.append(f"{name.replace('_', '-')}=={version} \\\n    --hash=sha256:{digest}")
            files += [file] if name != "horovod" else []
        compiled = "\n".join(lines) + "\n"
        (config / "requirements" / f"{lock}-{TAG}.txt").write_text(compiled)
        fetched.mkdir(parents=True)
        for file in files:
            shutil.copy(file, fetched)
        site.store.downloads.make_wheelhouse()
        site.store.downloads.keep_fetched(fetched, hashlib.sha256(compiled.encode()).hexdigest(), f"{lock}-{TAG}.txt")
        fetched.rmdir()
    sources = Path(site.store.layout.sources)
    sources.mkdir(parents=True)
    shutil.copy(source, sources)
    programs = folder / "programs"
    shutil.copytree(REPOSITORY / "provision" / "proof" / "programs", programs)
    report = json.dumps({**one_process(), "pid": 1})
    text = SINGLE.replace("REPORT", repr(report)).replace("VERSION", repr(TENSORFLOW))
    (programs / "single.py").write_text(text.replace("FOLDER", repr(str(folder))))
    return site


def newer_locks(site: TinySite, numpy: str) -> Path:
    """A folder with the lock of the stack with another version of "numpy", which is fetched."""
    name = f"tiny-{TAG}.txt"
    old = (site.folder / "config" / "requirements" / name).read_text()
    wheel = make_wheel(site.folder / "wheels", "numpy", numpy, {"numpy/__init__.py": f'__version__ = "{numpy}"\n'})
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    new = re.sub(r"numpy==\S+ (\\\n    --hash=sha256:)\w+", lambda found: f"numpy=={numpy} {found[1]}{digest}", old)
    folder, fetched = site.folder / f"locks-{numpy}", site.root / "fetched"
    folder.mkdir()
    (folder / name).write_text(new)
    fetched.mkdir()
    shutil.copy(wheel, fetched)
    site.store.downloads.keep_fetched(fetched, hashlib.sha256(new.encode()).hexdigest(), name)
    fetched.rmdir()
    return folder


def make_wheel(folder: Path, name: str, version: str, files: Mapping[str, str | bytes]) -> Path:
    """A wheel of these files, without compiled code."""
    info, rows = f"{name}-{version}.dist-info", []
    content = {path: text if isinstance(text, bytes) else text.encode() for path, text in files.items()}
    content[f"{info}/METADATA"] = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n".encode()
    content[f"{info}/WHEEL"] = b"Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    for path, data in content.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        rows.append(f"{path},sha256={digest},{len(data)}\n")
    content[f"{info}/RECORD"] = "".join([*rows, f"{info}/RECORD,,\n"]).encode()
    file = folder / f"{name}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(file, "w") as wheel:
        for path, data in content.items():
            wheel.writestr(zipfile.ZipInfo(path), data)
    return file


def make_source(folder: Path) -> Path:
    """The source package of "Horovod"."""
    files = {f"src/{number}.cc": f"int f{number}();\n" for number in range(OBJECTS)}
    files |= {"objects": str(OBJECTS), "version": HOROVOD}
    files |= {
        "python/horovod/__init__.py": f'__version__ = "{HOROVOD}"\n',
        "python/horovod/metadata.json": json.dumps({"tensorflow": TENSORFLOW}),
        "python/horovod/tensorflow/__init__.py": HOROVOD_TENSORFLOW,
        "python/horovod/runner/__init__.py": "",
        "python/horovod/runner/launch.py": 'def check_build(verbose):\n    print("[X] MPI")\n',
    }
    path = folder / f"horovod-{HOROVOD}.tar.gz"
    with tarfile.open(path, "w:gz") as tar:
        for name, text in files.items():
            member = tarfile.TarInfo(f"horovod-{HOROVOD}/{name}")
            member.size = len(text.encode())
            tar.addfile(member, io.BytesIO(text.encode()))
    return path
