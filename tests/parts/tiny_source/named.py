"""What pip asks of a source package that it downloads: its name and version."""

from pathlib import Path


def prepare_metadata_for_build_wheel(folder, config_settings=None):
    """Write the metadata into this folder."""
    name, version = Path("name").read_text(), Path("version").read_text()
    info = Path(folder, f"{name}-{version}.dist-info")
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    (info / "WHEEL").write_text("Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
    return info.name
