# Written by provision: `provision spack show` writes it again.
import hashlib
import os
import re

from spack.package import *


class PyTensorflow(Package):
    """TensorFlow with all packages of a lock, in a virtual environment of the site's Python."""

    homepage = "https://www.tensorflow.org"
    has_code = False

    version("1.15.2")
    version("2.11.1")
    version("2.13.1")
    version("2.15.1")
    version("2.21.0")

    variant(
        "lock",
        default="tensorflow-2.21.0-gpu-py311",
        values=(
            "tensorflow-1.15.2-intel-py37",
            "tensorflow-2.11.1-gpu-py310",
            "tensorflow-2.11.1-py310",
            "tensorflow-2.13.1-py311",
            "tensorflow-2.15.1-gpu-py311",
            "tensorflow-2.15.1-py311",
            "tensorflow-2.21.0-gpu-py311",
        ),
        description="the lock of a stack for a Python, in the folder `locks` of this repository",
    )
    depends_on("py-pip", type="build")

    with when("lock=tensorflow-1.15.2-intel-py37"):
        requires("@1.15.2")
        depends_on("python@3.7", type=("build", "link", "run"))

    @when("lock=tensorflow-1.15.2-intel-py37")
    def locks(self):
        return {
            "tensorflow-1.15.2-intel-py37.txt": "1cb46e755f0e79365f10ed0fbd85fa840627d521fb7d3c49ed3360e9a2bd55dc",
        }

    with when("lock=tensorflow-2.11.1-gpu-py310"):
        requires("@2.11.1")
        depends_on("python@3.10", type=("build", "link", "run"))

    @when("lock=tensorflow-2.11.1-gpu-py310")
    def locks(self):
        return {
            "tensorflow-2.11.1-gpu-py310.txt": "a3830f5c207f0a4390fc128f16c6cd5ccfffbe16e30b72909b6651e1375521fc",
        }

    with when("lock=tensorflow-2.11.1-py310"):
        requires("@2.11.1")
        depends_on("python@3.10", type=("build", "link", "run"))

    @when("lock=tensorflow-2.11.1-py310")
    def locks(self):
        return {
            "tensorflow-2.11.1-py310.txt": "bae3b4c862ce6e15406bae2af44613db77df473247f3d6333ff16eb9e3370795",
        }

    with when("lock=tensorflow-2.13.1-py311"):
        requires("@2.13.1")
        depends_on("python@3.11", type=("build", "link", "run"))

    @when("lock=tensorflow-2.13.1-py311")
    def locks(self):
        return {
            "tensorflow-2.13.1-py311.txt": "bc53036b6e2ff2c702c98638db6aa664f22ed47f23d8cd766500f3c44f884754",
        }

    with when("lock=tensorflow-2.15.1-gpu-py311"):
        requires("@2.15.1")
        depends_on("python@3.11", type=("build", "link", "run"))

    @when("lock=tensorflow-2.15.1-gpu-py311")
    def locks(self):
        return {
            "tensorflow-2.15.1-gpu-py311.txt": "100bf39a1afafd6b0b359a4fc6494aac0b9b0fe500b24935e7914381bf039d4d",
        }

    with when("lock=tensorflow-2.15.1-py311"):
        requires("@2.15.1")
        depends_on("python@3.11", type=("build", "link", "run"))

    @when("lock=tensorflow-2.15.1-py311")
    def locks(self):
        return {
            "tensorflow-2.15.1-py311.txt": "01fd6ef5ff3ad1a9e64f1c853d4e6acb0dd4524a3cca41d90edb355ed1991e8e",
        }

    with when("lock=tensorflow-2.21.0-gpu-py311"):
        requires("@2.21.0")
        depends_on("python@3.11", type=("build", "link", "run"))

    @when("lock=tensorflow-2.21.0-gpu-py311")
    def locks(self):
        return {
            "tensorflow-2.21.0-gpu-py311.txt": "cb25cccca45ab32608fa0b5c8723640216febbbd78c99a96b13086eb37b79f15",
        }

    def read_lock(self, name, sha256):
        """The packages of a lock without Horovod, which is not installed but compiled."""
        path = os.path.normpath(join_path(self.package_dir, "..", "..", "locks", name))
        with open(path, "rb") as file:
            content = file.read()
        if hashlib.sha256(content).hexdigest() != sha256:
            raise InstallError(f"{path} is not the file that this package was written with")
        return re.sub(r"^horovod[=[].*\n(?:[ \t]+.*\n)*", "", content.decode(), flags=re.MULTILINE)

    def install(self, spec, prefix):
        requirements = join_path(self.stage.path, "requirements.txt")
        with open(requirements, "w", encoding="utf-8") as file:
            file.writelines(self.read_lock(*lock) for lock in self.locks().items())
        Executable(spec["python"].extra_attributes["executable"])("-m", "venv", "--without-pip", prefix)
        python = Executable(join_path(prefix.bin, "python"))
        # pip compares every file with the hashes of the lock. Without a wheelhouse it asks the package index.
        wheelhouse = os.environ.get("PROVISION_WHEELHOUSE")
        source = ("--no-index", "--find-links", wheelhouse) if wheelhouse else ()
        pip = join_path(spec["py-pip"].prefix, "pip-24.0-py3-none-any.whl", "pip")
        options = ("--require-hashes", "--no-deps", "--no-compile", "--no-input", "--disable-pip-version-check")
        python(pip, "install", *options, *source, "-r", requirements)
        # Without bytecode every rank compiles at every start, and cannot keep the result.
        python("-m", "compileall", "-q", "-j", str(make_jobs), join_path(prefix, "lib"))
