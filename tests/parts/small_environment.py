"""A published environment with two small packages in place of TensorFlow and NumPy, and the real pip."""

from __future__ import annotations

import sys
from pathlib import Path, PurePosixPath

import pip

from parts.records import ENVIRONMENT, put_published
from provision.machine.root.store import Store
from provision.model.layout import Layout


def make_small_environment(root: Path) -> Path:
    """Publish it below this root; returns its prefix."""
    store = Store(Layout(PurePosixPath(root)))
    prefix = Path(put_published(store, modules=()).prefix)
    activate = Path(store.layout.records_folder(ENVIRONMENT)) / "activate.sh"
    activate.write_text(f"export PROVISION_ENVIRONMENT={ENVIRONMENT}\n")
    # What `python -m venv --without-pip` makes.
    packages = prefix / "lib" / f"python3.{sys.version_info[1]}" / "site-packages"
    for folder in (packages, prefix / "bin"):
        folder.mkdir(parents=True)
    python = Path(sys.executable).resolve()
    for name in ("python", "python3"):
        (prefix / "bin" / name).symlink_to(python)
    (prefix / "pyvenv.cfg").write_text(f"home = {python.parent}\ninclude-system-site-packages = false\n")
    add_packages(packages, tensorflow="2.15.1", numpy="1.26.4")
    add_pip(packages)
    return prefix


def add_packages(folder: Path, **versions: str) -> None:
    """Empty packages with these versions."""
    for name, version in versions.items():
        info = folder / f"{name}-{version}.dist-info"
        for new in (folder / name, info):
            new.mkdir(parents=True)
        (folder / name / "__init__.py").write_text(f"__version__ = '{version}'\n")
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")


def add_pip(folder: Path) -> None:
    """The pip of this Python."""
    source = Path(pip.__file__).parent
    (folder / "pip").symlink_to(source)
    (folder / f"pip-{pip.__version__}.dist-info").symlink_to(source.with_name(f"pip-{pip.__version__}.dist-info"))


def packages_of(prefix: Path) -> Path:
    """The folder of its packages."""
    (packages,) = prefix.glob("lib/python3*/site-packages")
    return packages
