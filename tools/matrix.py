#!/usr/bin/env python3
"""`make matrix`: builds and proves every TensorFlow x Keras x Python that this machine can, and records the results.

Each cell is one environment that `provision build` builds from nothing and `provision test --thorough` proves. Its
outcome goes to provision/knowledge/compatibility.json and docs/reference/compatibility.md at once, so that a run can be
stopped at any time and continued later. Cells that were measured with the present patches are skipped.

    tools/matrix.py [--only 2.21 --only 1.15] [--python 3.11] [--ranks 2 --ranks 4] [--first] [--again] [--list]

It needs the network (to compile the locks of the releases in matrix.toml, and to download packages), and some minutes and
3 GB for each cell.
"""

from __future__ import annotations

import argparse
import dataclasses
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

REPOSITORY = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(REPOSITORY))

from provision.backends.venv.wheelhouse import download_argv  # noqa: E402
from provision.knowledge.combinations import (  # noqa: E402
    Cell,
    Proof,
    dump_cells,
    keras_of,
)
from provision.knowledge.frameworks.tensorflow import TENSORFLOW  # noqa: E402
from provision.knowledge.versions import release  # noqa: E402
from provision.machine.configuration import shipped  # noqa: E402
from provision.machine.files.disk import sha256_of, write  # noqa: E402
from provision.machine.files.tables import CELLS_FILE, read_cells  # noqa: E402
from provision.machine.probes.probe import interpreter_of  # noqa: E402
from provision.model.lock import lock_header, normalized  # noqa: E402
from provision.model.patch import select_patches  # noqa: E402

PAGE = REPOSITORY / "docs" / "reference" / "compatibility.md"
TOOL = (sys.executable, "-m", "provision")
HOROVOD = "0.28.1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """A TensorFlow with one Keras: a shipped stack, or one that is made from matrix.toml."""

    stack: str
    version: str
    keras: str
    pythons: tuple[str, ...]
    package: str = "tensorflow-cpu"
    pins: tuple[str, ...] = ()
    shipped: bool = False


def releases() -> list[Release]:
    """Every release, the newest first."""
    rows = []
    for name in shipped.known("stacks"):
        stack = shipped.load_stack(name)
        # The matrix covers Horovod for TensorFlow on CPUs only.
        if stack.name.endswith("-gpu") or stack.horovod is None or stack.frameworks != (TENSORFLOW,):
            continue
        version = stack.framework.version
        keras = keras_of(version, stack.environ)
        rows.append(Release(stack=name, version=version, keras=keras, pythons=stack.pythons, shipped=True))
    for row in tomllib.loads((REPOSITORY / "tools" / "matrix.toml").read_text(encoding="utf-8"))["release"]:
        version, minors = row["version"], tuple(row["pythons"])
        plain = Release(
            stack=f"tensorflow-{version}",
            version=version,
            keras=keras_of(version, ()),
            pythons=minors,
            package=row.get("package", "tensorflow-cpu"),
            pins=tuple(row["pins"]),
        )
        rows.append(plain)
        if "tf_keras" in row:
            pins = (*plain.pins, f"tf-keras=={row['tf_keras']}")
            rows.append(dataclasses.replace(plain, stack=f"tensorflow-{version}-tf-keras", keras="tf-keras", pins=pins))
    return sorted(rows, key=lambda row: (release(row.version), row.keras), reverse=True)


def write_stack(row: Release, folder: Path) -> Path:
    """Write the stack and its requirements into a configuration folder of the tool; returns the requirements file."""
    template = (REPOSITORY / "stacks" / "tensorflow-2.15.1.toml").read_text(encoding="utf-8")
    text = template.replace("2.15.1", row.version).replace('"tensorflow-cpu"', f'"{row.package}"')
    text = re.sub(r"^pythons = .*$", f"pythons = {json.dumps(row.pythons)}", text, flags=re.MULTILINE)
    if row.keras == "tf-keras":
        text = text.replace(f'"tensorflow-{row.version}"', f'"{row.stack}"', 1)
        text = text.replace(f"tensorflow/{row.version}", f"tensorflow/{row.version}-tf-keras")
        text = text.replace("PYTHONNOUSERSITE = 1", "PYTHONNOUSERSITE = 1\nTF_USE_LEGACY_KERAS = 1")
    write(folder / "stacks" / f"{row.stack}.toml", text)
    setuptools = [] if any(pin.startswith("setuptools") for pin in row.pins) else ["setuptools<70"]
    wanted = [f"{row.package}=={row.version}", f"horovod=={HOROVOD}", *row.pins, *setuptools, "wheel", "packaging"]
    source = folder / "requirements" / f"{row.stack}.in"
    write(source, "\n".join(wanted) + "\n")
    return source


def write_lock(source: Path, minor: str) -> None:
    """Write the lock of these requirements for one Python, beside the requirements."""
    folder = source.parent
    target = folder / Path(shipped.lock_name(source.stem, minor)).name
    # Not `provision lock`: it records the hash of every file of a release, which some indexes make it download first.
    command = (str(Path(sys.executable).parent / "uv"), "pip", "compile", "--quiet", "--no-header", "--no-annotate")
    command += ("--no-emit-index-url", "--no-emit-find-links", "--python-version", minor, str(source))
    pins = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    with tempfile.TemporaryDirectory(dir=folder) as files:
        requirements = Path(files) / "pins.txt"
        requirements.write_text(pins, encoding="utf-8")
        wheels = Path(files) / "wheels"
        argv = download_argv(sys.executable, str(requirements), str(wheels), minor=minor, foreign=None)
        subprocess.run(
            [word for word in argv if word != "--require-hashes"], check=True, capture_output=True, text=True
        )
        hashes = {normalized(name_of(file.name)): sha256_of(file) for file in wheels.iterdir()}
    lines = [f"{pin} --hash=sha256:{hashes[normalized(pin.split('==')[0])]}" for pin in pins.split()]
    write(target, "\n".join((lock_header(source.read_text(encoding="utf-8")), *lines)) + "\n")


def name_of(file: str) -> str:
    """The name of the distribution in the file name of a wheel or a source package."""
    return file.split("-")[0] if file.endswith(".whl") else file.rpartition("-")[0]


def patch_set(version: str) -> tuple[str, int]:
    """The hash of the patches for this TensorFlow, and their number."""
    chosen = select_patches(shipped.load_patches(HOROVOD), {"tensorflow": version})
    return hashlib.sha256("".join(patch.sha256 for patch in chosen).encode()).hexdigest()[:12], len(chosen)


def run_tool(folder: Path, *words: str) -> tuple[dict[str, Any], int]:
    """Run one command of the tool; returns its JSON envelope and its wall seconds."""
    environ = {**os.environ, "PROVISION_CONFIG": str(folder / "config"), "PROVISION_ROOT": str(folder / "root")}
    environ["PYTHONPATH"] = str(REPOSITORY)
    began = time.monotonic()
    with (folder / "log").open("a", encoding="utf-8") as log:
        done = subprocess.run((*TOOL, *words, "--json"), env=environ, stdout=subprocess.PIPE, stderr=log, check=False)
    return json.loads(done.stdout), round(time.monotonic() - began)


def describe_failure(envelope: dict[str, Any]) -> str:
    """The error of a command on one line."""
    error = envelope["error"]
    return " | ".join((error["message"], *error.get("evidence", [])[:2]))[:400]


def measure(row: Release, minor: str, python: str, ranks: Sequence[int], folder: Path) -> Cell:
    """Build and prove one cell in an empty folder."""
    if not row.shipped:
        write_lock(write_stack(row, folder / "config"), minor)
    site = (REPOSITORY / "sites" / "local.toml").read_text(encoding="utf-8")
    site = site.replace('target = "native"', f'target = "native"\npython = "{python}"')
    for count in ranks:
        text = site.replace("ranks_per_node = 2", f"ranks_per_node = {count}").replace(
            "timeout_s = 600", "timeout_s = 1200"
        )
        write(folder / f"ranks{count}.toml", text.replace('name = "local"', f'name = "ranks{count}"', 1))
    digest, patches = patch_set(row.version)
    cell = Cell(
        tensorflow=row.version,
        keras=row.keras,
        python=minor,
        horovod=f"{HOROVOD}+provision.{patches}",
        patch_set=digest,
        mpi="",
        compiler="",
        date=time.strftime("%Y-%m-%d"),
        build_seconds=0,
        proofs=(),
        failed="",
    )
    chosen = ("--site", str(folder / f"ranks{ranks[0]}.toml"), "--stack", row.stack)
    planned, _ = run_tool(folder, "plan", *chosen)
    if not planned["ok"]:
        return dataclasses.replace(cell, failed=describe_failure(planned))
    identity = planned["result"]["identity"]
    cell = dataclasses.replace(
        cell, mpi=identity["mpi"].split(";")[0], compiler=" ".join(identity["compiler"].split()[:2])
    )
    built, seconds = run_tool(folder, "build", *chosen)
    cell = dataclasses.replace(cell, build_seconds=seconds)
    if not built["ok"]:
        return dataclasses.replace(cell, failed=describe_failure(built))
    proofs = []
    for count in ranks:
        site_path = str(folder / f"ranks{count}.toml")
        proved, seconds = run_tool(folder, "test", "--thorough", built["result"]["environment"], "--site", site_path)
        if not proved["ok"]:
            return dataclasses.replace(cell, proofs=tuple(proofs), failed=f"{count} ranks: {describe_failure(proved)}")
        checks = proved["result"]["verdict"]["checks"]
        skipped = tuple(check["name"] for check in checks if check["skipped"])
        worst = max((check["figure"] for check in checks if check["figure"] is not None), default=0.0)
        proofs.append(
            Proof(ranks=count, passed=len(checks) - len(skipped), skipped=skipped, worst=worst, seconds=seconds)
        )
    return dataclasses.replace(cell, proofs=tuple(proofs))


def page(cells: Sequence[Cell]) -> str:
    """docs/reference/compatibility.md: a table of verdicts, then one row for each cell."""
    minors = sorted({cell.python for cell in cells}, key=release)
    rows = sorted(
        {(cell.tensorflow, cell.keras) for cell in cells}, key=lambda row: (release(row[0]), row[1]), reverse=True
    )
    by_key = {cell.key: cell for cell in cells}

    def verdict(cell: Cell | None) -> str:
        if cell is None:
            return ""
        return "**failed**" if cell.failed else "passed"

    lines = [
        "# What was built and proved",
        "",
        "Written by `make matrix` from `provision/knowledge/compatibility.json`: each cell was built from nothing by",
        f"`provision build` with Horovod {HOROVOD} and our patches, and proved by `provision test --thorough`. An empty cell",
        "was not measured; it may work or not. All cells were measured on the CPUs of one machine, with the ranks on one node.",
        "The largest difference comes from fp16 compression, which is lossy by design; without it, gradients agree within",
        "1e-5, or the proof fails. The number behind `+provision.` is that of the patches in that build; later patches are not",
        "measured until the next `make matrix`.",
        "",
        f"| TensorFlow | Keras | {' | '.join(f'Python {minor}' for minor in minors)} |",
        f"|---|---|{'---|' * len(minors)}",
    ]
    for version, keras in rows:
        marks = " | ".join(verdict(by_key.get((version, keras, minor))) for minor in minors)
        lines.append(f"| {version} | {keras} | {marks} |")
    lines += [
        "",
        "| TensorFlow | Keras | Python | Horovod | MPI | compiler | date | build and first proof, s | numerical proof |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for cell in sorted(
        cells, key=lambda cell: (release(cell.tensorflow), cell.keras, release(cell.python)), reverse=True
    ):
        proofs = "; ".join(
            f"{proof.ranks} ranks: {proof.passed} checks, largest difference {proof.worst:.1e}, {proof.seconds} s"
            + (f", not there: {', '.join(proof.skipped)}" if proof.skipped else "")
            for proof in cell.proofs
        )
        outcome = "; ".join(filter(None, (proofs, f"failed: {cell.failed}" if cell.failed else ""))).replace("|", "/")
        lines.append(
            f"| {cell.tensorflow} | {cell.keras} | {cell.python} | {cell.horovod} | {cell.mpi} | {cell.compiler} "
            f"| {cell.date} | {cell.build_seconds} | {outcome} |"
        )
    return "\n".join(lines) + "\n"


def save_cell(cell: Cell) -> None:
    """Write one cell into the file of all cells, and rewrite the page."""
    others = [other for other in read_cells() if other.key != cell.key]
    write(CELLS_FILE, dump_cells([*others, cell]))
    write(PAGE, page([*others, cell]))


def main() -> None:
    """Measure the cells that are requested and not yet measured."""
    parser = argparse.ArgumentParser(description="build and prove TensorFlow x Keras x Python, and record the results")
    parser.add_argument(
        "--only", action="append", default=[], help="only this stack, or stacks with this TensorFlow (`2.21`)"
    )
    parser.add_argument("--python", action="append", default=[], help="only this minor version of Python (`3.11`)")
    parser.add_argument(
        "--ranks", action="append", type=int, default=[], help="ranks of the numerical proof (default: 2)"
    )
    parser.add_argument("--first", action="store_true", help="only the first Python of each release")
    parser.add_argument("--again", action="store_true", help="also measure cells that are already measured")
    parser.add_argument("--list", action="store_true", help="only list the cells that would be measured")
    args = parser.parse_args()
    done = {cell.key: cell for cell in read_cells()}
    todo: list[tuple[int, Release, str]] = []
    for row in releases():
        wanted = not args.only or any(
            f"{row.version}.".startswith(f"{only}.") or row.stack == only for only in args.only
        )
        for place, minor in enumerate(row.pythons[:1] if args.first else row.pythons):
            known = done.get((row.version, row.keras, minor))
            fresh = known is not None and not known.failed and known.patch_set == patch_set(row.version)[0]
            if wanted and (not args.python or minor in args.python) and (args.again or not fresh):
                todo.append((place, row, minor))
    todo.sort(key=lambda entry: entry[0])
    for number, (_, row, minor) in enumerate(todo, 1):
        title = f"[{number}/{len(todo)}] TensorFlow {row.version}, Keras {row.keras}, Python {minor}"
        python = interpreter_of(minor, os.environ)
        if args.list or python is None:
            print(title if python else f"{title}: this machine has no such Python", flush=True)
            continue
        folder = Path(tempfile.mkdtemp(prefix="provision-matrix-"))
        try:
            cell = measure(row, minor, python.executable, args.ranks or [2], folder)
        except subprocess.CalledProcessError as error:
            print(f"{title}: {error}\n{error.stderr}", flush=True)
            continue
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        save_cell(cell)
        print(f"{title}: {cell.failed or 'passed'} ({cell.build_seconds} s)", flush=True)


if __name__ == "__main__":
    main()
