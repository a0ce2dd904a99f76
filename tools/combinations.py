"""Compare the rows of frameworks in provision/knowledge/combinations.toml with the wheels on the package index.

    .venv/bin/python tools/combinations.py              # every row, a look-up of pip for each (minutes)
    .venv/bin/python tools/combinations.py 2.15 pytorch  # these minor versions and frameworks

pip reads the metadata of the wheel and downloads nothing else. Prints each difference; the exit code is 1 if there are any.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys

from provision.knowledge.combinations import FrameworkRow
from provision.knowledge.frameworks import FRAMEWORKS
from provision.machine.files.tables import read_combinations

OLD = ("manylinux2014_x86_64", "manylinux2010_x86_64")
GLIBC = {"manylinux2010": "2.12", "manylinux2014": "2.17"}


def wheel(package: str, release: str, python: str) -> tuple[str, list[str]]:
    """The name of the wheel and its requirements, from pip's report."""
    tags = [*(f"manylinux_2_{minor}_x86_64" for minor in reversed(range(5, 40))), *OLD]
    argv = [sys.executable, "-m", "pip", "install", "--quiet", "--dry-run", "--ignore-installed", "--no-deps"]
    argv += ["--report", "-", "--python-version", python, "--implementation", "cp", "--only-binary", ":all:"]
    argv += ["--target", "unused", *(word for tag in tags for word in ("--platform", tag)), f"{package}=={release}"]
    done = subprocess.run(argv, capture_output=True, text=True, check=True)
    found = json.loads(done.stdout)["install"][0]
    return found["download_info"]["url"].rsplit("/", 1)[1], found["metadata"].get("requires_dist", [])


def requirement(requires: list[str], name: str) -> str:
    """The versions of one requirement without an extra, sorted, as text."""
    for line in requires:
        found = re.match(rf"{name} ?(?:\(([^)]*)\)|([^;\s(][^;]*))?\s*(;.*)?$", line)
        if found and "extra" not in (found[3] or "") and '< "' not in (found[3] or ""):
            return ",".join(sorted((found[1] or found[2] or "").replace("dev", "").strip().split(",")))
    return ""


def differences(row: FrameworkRow) -> list[str]:
    """What a row says and its wheels do not."""
    lines = []
    for python in (row.python[0], row.python[-1]):
        try:
            name, requires = wheel(FRAMEWORKS[row.framework].distributions[0], row.release, python)
        except subprocess.CalledProcessError as error:
            lines.append(f"no wheel for Python {python}: {error.stderr.strip().splitlines()[-1:]}")
            continue
        tag = re.search(r"manylinux_2_(\d+)|(manylinux20\d\d)", name)
        glibc = "not known" if tag is None else f"2.{tag[1]}" if tag[1] else GLIBC[tag[2]]
        seen = {"glibc": glibc} | ({part: requirement(requires, part) for part in ("numpy", "protobuf", "keras")})
        for key, value in seen.items():
            said = getattr(row, key)
            if key not in row.unsure and value and said != value and python == row.python[-1]:
                lines.append(f"{key}: the row has {said}, the wheel {value}")
    return lines


def main() -> int:
    """Compare, and print what differs."""
    wanted, wrong = set(sys.argv[1:]), 0
    for row in read_combinations().frameworks:
        if not wanted or wanted & {row.version, row.framework}:
            lines = differences(row)
            wrong += len(lines)
            print(f"{row.framework} {row.release}: {'; '.join(lines) or 'as in the row'}", flush=True)
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
