# Written by provision: `provision spack show` writes it again.
from spack.package import *


class Llvm(Package):
    """What the site provides under this name: it is an external and is never built."""

    has_code = False
    version("1")
    tags = ["compiler"]
    provides("site-compiler")
    verbose_flags = "-v"
    implicit_rpath_libs = ["libgcc"]

    @property
    def cc(self):
        return self.spec.extra_attributes["compilers"]["c"]

    @property
    def cxx(self):
        return self.spec.extra_attributes["compilers"]["cxx"]
