# Written by provision: `provision spack show` writes it again.
import os

from spack.package import *

# A folder with the files that `sources/` names, for a Spack that has no mirror with them.
SOURCES = os.environ.get("PROVISION_SOURCES", "/PROVISION_SOURCES-is-not-set")


class PyPip(Package):
    """pip as its wheel, which Python runs without installing it."""

    homepage = "https://pip.pypa.io"
    version(
        "24.0",
        sha256="ba0d021a166865d2265246961bec0152ff124de910c5cc39f1156ce3fa7c69dc",
        url=f"file://{SOURCES}/pip-24.0-py3-none-any.whl",
        expand=False,
    )

    def install(self, spec, prefix):
        install(self.stage.archive_file, join_path(prefix, "pip-24.0-py3-none-any.whl"))
