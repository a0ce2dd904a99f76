# Written by provision for the stack `tensorflow-1.15.2-intel` and Python 3.7. `provision spack show` writes it again.
import hashlib
import os

from spack.package import *


class PyTensorflow(Package):
    """intel-tensorflow 1.15.2 with the 31 packages of its lock, in a virtual environment of the site's Python."""

    homepage = "https://www.tensorflow.org"
    has_code = False
    version("1.15.2")

    depends_on("python@3.7", type=("build", "link", "run"))
    depends_on("py-pip", type="build")

    # The sha256 of the stack's lock, and of `requirements.txt`, which has its packages without Horovod.
    lock_sha256 = "1cb46e755f0e79365f10ed0fbd85fa840627d521fb7d3c49ed3360e9a2bd55dc"
    requirements_sha256 = "bfecf6d48b1a965b7c865bb62cde4794a6421ff82779738c8901d5febb3d3959"

    def install(self, spec, prefix):
        requirements = join_path(self.package_dir, "requirements.txt")
        with open(requirements, "rb") as file:
            if hashlib.sha256(file.read()).hexdigest() != self.requirements_sha256:
                raise InstallError(f"{requirements} is not the file that this package was written with")
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
