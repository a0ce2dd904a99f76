"""A stack that is built in a second or two: small wheels and a small source package, made here, in place of TensorFlow.

Real: the whole tool, its planner, executor, locks and store, virtualenv, uv, the bytecode, the program that inspects, and the
compiler. "Horovod" and "mpi4py" are small extensions over MPI (`tiny_horovod/`, `tiny_mpi4py/`), compiled with the wrappers of
the site. Stand-ins: the packages, pip (`tiny_pip.py`), the MPI of sites without one (`tiny_mpi.c`), and the program that trains:
`SINGLE` writes a good report, `tiny_train.py` trains for real on the ranks of a real MPI.
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
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from parts.provision import REPOSITORY, Tool
from parts.reports import one_process
from provision.machine.configuration import shipped
from provision.machine.root.store import Store
from provision.model.layout import Layout
from provision.model.lock import lock_header

HERE = Path(__file__).parent
SOURCES = {"horovod": HERE / "tiny_horovod", "mpi4py": HERE / "tiny_mpi4py"}
MINOR = f"3.{sys.version_info[1]}"
TAG = f"py3{sys.version_info[1]}"
TENSORFLOW, HOROVOD, MPI4PY, NUMPY, MPICH = "2.21.0", "0.1.0", "0.2.0", "1.0", "5.0.2"
PATCH = """\
Subject: a word of its start
Applies-To: tensorflow>=1.15
Breaks-Without: error: nothing
Proved-By: the build of a site profile with the tiny stack

--- a/src/start.cc
+++ b/src/start.cc
@@ -1,2 +1,2 @@
-// The beginning and the end of a process.
+// How a process begins, and how it ends.
 #include <mpi.h>
"""
# The wrappers of `tiny_mpi.c`, which are in the prefix.
MPICXX = """\
#!/bin/sh
prefix=$(cd "$(dirname "$0")/.." && pwd)
exec "${CXX:-g++}" -I"$prefix/include" "$@" -L"$prefix/lib" -lmpi
"""

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
"""
ARCH = """
[archs.{name}]
target = "{target}"
environ.TINY_VARIANT = "{variant}"
mpi = {{ provider = "pypi", family = "mpich", requirements = "tinympi" }}
launcher = {{ name = "none" }}
proof = {{ nodes = 1, ranks_per_node = 1, timeout_s = 60 }}
"""

# What `inspect_env.py` asks.
TENSORFLOW_INIT = """
import types, numpy
__version__ = "@VERSION@"
sysconfig = types.SimpleNamespace(CXX11_ABI_FLAG=1)
test = types.SimpleNamespace(is_built_with_cuda=lambda: False)
version = types.SimpleNamespace(COMPILER_VERSION="1")
"""

SINGLE = """
import json, os, sys, time
report = json.loads(REPORT)
report["versions"]["tensorflow"], report["versions"]["python"] = VERSION, sys.version.split()[0]
report["delivered"] = os.environ.get("PROVISION_DELIVERED")
time.sleep(0.05)
while os.path.exists(os.path.join(FOLDER, "hold")):
    with open(os.path.join(FOLDER, "held.new"), "w") as file:
        file.write(str(os.getpid()))
    os.rename(file.name, os.path.join(FOLDER, "held"))
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

    def write_profile(self, name: str, root: Path, more: str = "") -> None:
        """Write the profile of a machine of one arch, with this text at its end."""
        text = SITE.format(name=name, root=root) + ARCH.format(name="native", target="native", variant=name)
        (self.folder / "config" / "sites" / f"{name}.toml").write_text(text + more)

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

    def good(self, *words: str, **environ: str) -> subprocess.CompletedProcess[str]:
        """Run the tool; it must end well."""
        done = self.run(*words, **environ)
        assert done.returncode == 0, f"{words}\n{done.stdout}\n{done.stderr}"
        return done

    def start(self, *words: str, **environ: str) -> subprocess.Popen[str]:
        """Start the tool and go on; Python starts in a folder that is not this repository."""
        return subprocess.Popen(
            self.argv(*words),
            env=self.environ(**environ),
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def tool(self, **more: str) -> Tool:
        """The tool for profiles that have the root by `PROVISION_ROOT`, as the shipped ones do."""
        return Tool(self.root, self.environ(**more), module="parts.tiny_tool")

    @property
    def store(self) -> Store:
        """The store below the root."""
        return Store(Layout(PurePosixPath(self.root)))


def make_site(folder: Path, *, compiled: Mapping[str, str] | None = None) -> TinySite:
    """The packages, their locks, the profiles and the stack, and a root for which everything was fetched.

    `compiled` are the packages beside Horovod that are compiled; older tools know none.
    """
    compiled = {"mpi4py": MPI4PY} if compiled is None else compiled
    site, config, wheels = TinySite(folder=folder, root=folder / "root"), folder / "config", folder / "wheels"
    for path in (config / "sites", config / "stacks", config / "requirements", wheels, folder / "tmp"):
        path.mkdir(parents=True)
    table = "".join(f'{name} = "{version}"\n' for name, version in compiled.items())
    (config / "stacks" / "tiny.toml").write_text(STACK + (f"[compiled]\n{table}" if table else ""))
    for name in ("one", "two"):
        site.write_profile(name, site.root)
    # Two archs that this machine can build; their names are those of their environments.
    archs = (ARCH.format(name=name, target="x86_64", variant=name) for name in ("a", "b"))
    (config / "sites" / "both.toml").write_text(SITE.format(name="both", root=site.root) + "".join(archs))
    library, header = folder / "libmpi.so", (HERE / "tiny_mpi.h").read_text()
    subprocess.run(
        ["gcc", "-shared", "-fPIC", "-Wl,-soname,libmpi.so", "-o", str(library), str(HERE / "tiny_mpi.c")], check=True
    )
    data = f"tinympi-{MPICH}.data"
    files = {f"{data}/data/lib/libmpi.so": library.read_bytes(), f"{data}/data/include/mpi.h": header}
    scripts = {f"{data}/scripts/mpicxx": MPICXX, f"{data}/scripts/mpicc": MPICXX.replace("${CXX:-g++}", "${CC:-gcc}")}
    make_wheel(wheels, "tinympi", MPICH, {**files, **scripts})
    make_wheel(wheels, "tinybuild", "1.0", {"tinybuild.py": ""})
    program = (HERE / "tiny_pip.py").read_text()
    version = f"99.{zlib.crc32(program.encode())}"  # virtualenv keeps what it unpacks by name and version
    (folder / "old" / "pip").mkdir(parents=True)  # for Pythons that virtualenv serves no more
    (folder / "old" / "pip" / "__init__.py").touch()
    (folder / "old" / "pip" / "__main__.py").write_text(program)
    make_wheel(folder, "pip", version, {"pip/__init__.py": f'__version__ = "{version}"\n', "pip/__main__.py": program})
    site.store.shared.make(site.store.downloads.wheelhouse)
    add_lock(
        site,
        "tiny",
        TAG,
        {**framework(site, "tensorflow_cpu", TENSORFLOW), **sources(site, horovod=HOROVOD, **compiled)},
    )
    add_lock(site, "tinympi", TAG, {"tinympi": MPICH})
    add_lock(site, "build", TAG, {"tinybuild": "1.0"})
    programs = folder / "programs"
    shutil.copytree(REPOSITORY / "provision" / "proof" / "programs", programs)
    report = json.dumps({**one_process(), "pid": 1})
    text = SINGLE.replace("REPORT", repr(report)).replace("VERSION", repr(TENSORFLOW))
    (programs / "single.py").write_text(text.replace("FOLDER", repr(str(folder))))
    for name in ("horovod_keras", "horovod_graph"):
        shutil.copy(HERE / "tiny_train.py", programs / f"{name}.py")
    return site


def framework(site: TinySite, package: str, version: str) -> dict[str, str]:
    """The pins of a "TensorFlow" under this name, whose wheel is made, and of its "NumPy"."""
    wheels, name = site.folder / "wheels", package.replace("-", "_")
    make_wheel(wheels, "numpy", NUMPY, {"numpy/__init__.py": f'__version__ = "{NUMPY}"\n'})
    modules = {f"tensorflow/part{number}.py": f"value = {number}\n" * 50 for number in range(20)}
    modules |= {f"tensorflow/python/{file}": "" for file in ("__init__.py", "util/__init__.py")}
    modules["tensorflow/python/util/_pywrap_util_port.py"] = "def IsMklEnabled(): return True\n"
    make_wheel(
        wheels, name, version, {"tensorflow/__init__.py": TENSORFLOW_INIT.replace("@VERSION@", version), **modules}
    )
    return {name: version, "numpy": NUMPY}


def sources(site: TinySite, **versions: str) -> dict[str, str]:
    """The pins of packages that are compiled, whose source packages are made and fetched."""
    into = Path(site.store.layout.sources)
    into.mkdir(parents=True, exist_ok=True)
    for package, version in versions.items():
        with tarfile.open(into / f"{package}-{version}.tar.gz", "w:gz") as tar:
            files = {
                str(path.relative_to(folder)): path.read_bytes()
                for folder in (HERE / "tiny_source", SOURCES[package])
                for path in sorted(folder.rglob("*.*"))
            }
            for name, content in {**files, "name": package.encode(), "version": version.encode()}.items():
                member = tarfile.TarInfo(f"{package}-{version}/{name}")
                member.size = len(content)
                tar.addfile(member, io.BytesIO(content))
    return versions


def add_lock(site: TinySite, name: str, tag: str, packages: Mapping[str, str]) -> None:
    """A lock of these packages for a Python, for which everything was fetched."""
    config, wheels, fetched = site.folder / "config", site.folder / "wheels", site.root / "fetched"  # on the same disk
    text = "".join(f"{package}=={version}\n" for package, version in packages.items())
    (config / "requirements" / f"{name}.in").write_text(text)
    lines, files = [f"# Written for the tests.\n{lock_header(text)}"], []
    for package, version in packages.items():
        file = wheels / f"{package}-{version}-py3-none-any.whl"
        if package in SOURCES:
            file = Path(site.store.layout.sources) / f"{package}-{version}.tar.gz"
        else:
            files.append(file)
        digest = hashlib.sha256(file.read_bytes()).hexdigest()
        lines.append(f"{package.replace('_', '-')}=={version} \\\n    --hash=sha256:{digest}")
    compiled = "\n".join(lines) + "\n"
    (config / "requirements" / f"{name}-{tag}.txt").write_text(compiled)
    fetched.mkdir(parents=True)
    for file in files:
        shutil.copy(file, fetched)
    site.store.downloads.keep_fetched(fetched, hashlib.sha256(compiled.encode()).hexdigest(), f"{name}-{tag}.txt")
    fetched.rmdir()


def add_stack(site: TinySite, name: str, *tags: str) -> None:
    """A shipped stack as it is, with small packages of the same names and versions, for these Pythons."""
    stack = shipped.load_stack(name)
    assert stack.horovod is not None
    shutil.copy(REPOSITORY / "stacks" / f"{name}.toml", site.folder / "config" / "stacks")
    patches = site.folder / "config" / "patches" / f"horovod-{stack.horovod}"
    patches.mkdir(parents=True, exist_ok=True)
    (patches / "0001-start.patch").write_text(PATCH)
    pins = {**framework(site, stack.framework.package, stack.framework.version), **sources(site, **stack.from_source)}
    for tag in tags:
        add_lock(site, name, tag, pins)
        add_lock(site, "build", tag, {"tinybuild": "1.0"})


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


def make_wheel(folder: Path, name: str, version: str, files: Mapping[str, str | bytes], *needs: str) -> Path:
    """A wheel of these files, which requires other packages; without compiled code."""
    info, rows = f"{name}-{version}.dist-info", []
    content = {path: text if isinstance(text, bytes) else text.encode() for path, text in files.items()}
    metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
    content[f"{info}/METADATA"] = (metadata + "".join(f"Requires-Dist: {one}\n" for one in needs)).encode()
    content[f"{info}/WHEEL"] = b"Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    for path, data in content.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        rows.append(f"{path},sha256={digest},{len(data)}\n")
    content[f"{info}/RECORD"] = "".join([*rows, f"{info}/RECORD,,\n"]).encode()
    file = folder / f"{name}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(file, "w") as wheel:
        for path, data in content.items():
            member = zipfile.ZipInfo(path)
            member.external_attr = (0o100755 if ".data/scripts/" in path else 0o100644) << 16  # pip keeps it
            wheel.writestr(member, data)
    return file
