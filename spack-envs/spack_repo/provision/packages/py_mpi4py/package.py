# Written by provision: `provision spack show` writes it again.
import os

from spack.package import *

# A folder with the files that `sources/` names, for a Spack that has no mirror with them.
SOURCES = os.environ.get("PROVISION_SOURCES", "/PROVISION_SOURCES-is-not-set")


class PyMpi4py(Package):
    """mpi4py, compiled against MPI from its source package."""

    version(
        "3.1.6",
        sha256="c8fa625e0f92b082ef955bfb52f19fa6691d29273d7d71135d295aa143dee6cb",
        url=f"file://{SOURCES}/mpi4py-3.1.6.tar.gz",
    )
    version(
        "4.1.2",
        sha256="56860286dc45f20e8821e93cb06669e30462348bf866f685553fa4b712d58d02",
        url=f"file://{SOURCES}/mpi4py-4.1.2.tar.gz",
    )

    variant("mpi", default="site", values=("site", "wheel"), description="the site's MPI, or one from a wheel of the lock")

    depends_on("site-compiler", type="build")
    depends_on("py-pip", type="build")
    with default_args(type=("build", "link", "run")):
        depends_on("python")
        depends_on("py-tensorflow")
        depends_on("mpi", when="mpi=site")

    @when("^python@3.10")
    def tools(self):
        return "build-py310.txt", "82ae38092e999d70326b3a8a303170563cab8319f9907ccd7e270af32d318a33"

    @when("^python@3.11")
    def tools(self):
        return "build-py311.txt", "7ae73bc99979631cd1461fabf4482d6d45c3dc724a49c22cfc8c324c1978403b"

    @when("^python@3.7")
    def tools(self):
        return "build-py37.txt", "28e2c34e308a332c0fe9c7589c266ec303cb6e92406f52ca3d3cfecdfd3b300a"

    def install(self, spec, prefix):
        tensorflow, stage = spec["py-tensorflow"].prefix, self.stage.path
        mpicc, folders = join_path(tensorflow.bin, "mpicc"), [tensorflow.lib]
        if "mpi" in spec:
            mpicc = spec["mpi"].extra_attributes["compilers"]["c"]
            folders = [os.path.dirname(path) for path in spec["mpi"].extra_attributes["libraries"].split(":")]
        options = join_path(stage, "link.txt")
        with open(options, "w", encoding="utf-8") as file:
            file.writelines(f'-rpath="{folder}"\n' for folder in dict.fromkeys(folders))
        minor = spec["python"].version.up_to(2)
        environ = {name: text.replace("{mpicc}", mpicc) for name, text in {"MPICC": "{mpicc}"}.items()}
        environ.update(
            CFLAGS=os.environ.get("HOROVOD_BUILD_ARCH_FLAGS", "") + " -Og -g0",
            # Before the Python's own folders, which may have another MPI.
            LDFLAGS=" ".join((*(f"'-L{folder}'" for folder in folders), f"'-Wl,@{options}'")),
            # Build tools such as Cython are imported, not started.
            PYTHONPATH=join_path(stage, "tools", "lib", f"python{minor}", "site-packages"),
        )
        spec["py-tensorflow"].package.compile(self, self.tools(), environ)
