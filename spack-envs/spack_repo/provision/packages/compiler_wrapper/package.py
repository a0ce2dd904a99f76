# Written by provision: `provision spack show` writes it again.
from spack.package import *


class CompilerWrapper(Package):
    """What the site provides under this name: it is an external and is never built."""

    has_code = False
    version("1")
    tags = ["runtime"]
