# Written by provision: `provision spack show` writes it again.
import hashlib
import os
import re

from spack.package import *


class PyTensorflow(Package):
    """TensorFlow with all packages of a lock, in a virtual environment of the site's Python."""

    homepage = "https://www.tensorflow.org"
    has_code = False

    version("2.15.1")

    variant(
        "lock",
        default="tensorflow-2.15.1-gpu-py311-with-mpich-5.0.2-py311",
        values=(
            "tensorflow-2.15.1-gpu-py311-with-mpich-5.0.2-py311",
        ),
        description="the lock of a stack for a Python, in the folder `locks` of this repository",
    )
    depends_on("py-pip", type="build")

    with when("lock=tensorflow-2.15.1-gpu-py311-with-mpich-5.0.2-py311"):
        requires("@2.15.1")
        depends_on("python@3.11", type=("build", "link", "run"))

    @when("lock=tensorflow-2.15.1-gpu-py311-with-mpich-5.0.2-py311")
    def locks(self):
        return {
            "tensorflow-2.15.1-gpu-py311.txt": "29ef24befe60c4c079333fd1e4f14e134bae6da481286d412fae9e6dcb1debdf",
            "mpich-5.0.2-py311.txt": "8abbe19bfa7b5d9c15b2cb61a0354765d016fc315a31d56f3de2817f42d9178d",
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
