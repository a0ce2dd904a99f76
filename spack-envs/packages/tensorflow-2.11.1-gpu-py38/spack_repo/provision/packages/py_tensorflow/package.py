# Written by provision for the stack `tensorflow-2.11.1-gpu` and Python 3.8. `provision spack show` writes it again.
import hashlib
import os

from spack.package import *


class PyTensorflow(Package):
    """tensorflow 2.11.1 with the 47 packages of its lock, in a virtual environment of the site's Python."""

    homepage = "https://www.tensorflow.org"
    has_code = False
    version("2.11.1")

    depends_on("python@3.8", type=("build", "link", "run"))
    depends_on("py-pip", type="build")

    # The sha256 of the stack's lock, and of `requirements.txt`, which has its packages without Horovod.
    lock_sha256 = "ac4eef1dc7eee6906f8190ee3bac33530db3994725b962c00f5905fbd37787ec"
    requirements_sha256 = "c9c52d8ff56a1e99fe5924c93c1577a710310e1f6a21ddc63e39d87712ca9d4e"

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
