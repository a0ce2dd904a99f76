"""docs/reference/ against the code: keys with types, defaults and examples, exit codes, files below the root, variables."""

from __future__ import annotations

import inspect
import re
from pathlib import Path, PurePosixPath
from typing import Any

import pytest

import provision
from parts.reader_keys import Key, assemble, keys_of, rows_of
from provision import errors
from provision.knowledge.index_settings import is_index_setting
from provision.machine.configuration import shipped
from provision.model.layout import EnvironmentId, Layout
from provision.profile.choices import LAUNCHERS

ROOT = Path(provision.__file__).resolve().parents[1]
REFERENCE = ROOT / "docs" / "reference"
SOURCES = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "provision").rglob("*.py"))
# The files that read variables of the tests.
TEST_FILES = ("parts/fixtures.py", "unit/lint/test_training_examples.py")
TESTS = "".join((ROOT / "tests" / name).read_text(encoding="utf-8") for name in TEST_FILES)
# What a reader computes, in the words of the page: (type, default).
COMPUTED = {
    ("", "runtimes"): (None, '`["venv"]`'),
    ("archs.<arch>.launcher", "name"): ("by scheduler, see below", "the first of these"),
    ("archs.<arch>.node", "threads"): (None, "the value of `cores`"),
    ("horovod", "version"): (None, None),
}


def parsed(line: str) -> dict[str, Any]:
    """One line of TOML."""
    return dict(shipped.parse(line, line))


def words(key: Key) -> tuple[str, str]:
    """The type and the default of a key as a page spells them."""
    kind, default = COMPUTED.get((key.table, key.name), (None, None))
    choices = ", ".join(f'`"{choice}"`' for choice in key.choices)
    written = key.type if not choices else f"list of {choices}" if key.type == "list of texts" else choices
    shown = "required" if key.default is None else f"`{key.default}`" if key.default else "—"
    return kind or written, default or shown


@pytest.mark.parametrize("reader", ["site", "stack"])
def test_a_page_has_every_key_with_its_type_and_default(reader: str, monkeypatch: pytest.MonkeyPatch) -> None:
    page = {"site": "profile.md", "stack": "stacks.md"}[reader]
    rows = rows_of((REFERENCE / page).read_text(encoding="utf-8"))
    examples = [(table, cells[2].strip("`")) for (table, _), cells in rows.items()]
    for (table, name), (_, example) in zip(rows, examples, strict=True):
        assert name == "<size>" or example.startswith(f"{name} = "), f"[{table}] {name}: {example}"
    keys = {(key.table, key.name): key for key in keys_of(reader, assemble(examples, parsed), monkeypatch)}
    assert set(rows) == set(keys)
    for place, key in keys.items():
        assert rows[place][:2] == words(key), f"[{key.table}] {key.name}"
        assert rows[place][3]


def test_the_launchers_of_each_scheduler_are_those_of_the_reader() -> None:
    text = (REFERENCE / "profile.md").read_text(encoding="utf-8")
    for scheduler, launchers in LAUNCHERS.items():
        assert f"| `{scheduler}` | {', '.join(f'`{name}`' for name in launchers)} |" in text


def test_the_readme_says_of_every_shipped_profile_where_it_ran() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    rows = "".join(re.findall(r"^\| (.*?) \|", text, re.MULTILINE))
    assert set(re.findall(r"`([\w-]+)`", rows)) == {path.stem for path in (ROOT / "sites").glob("*.toml")}


def test_the_exit_codes_are_those_of_the_code() -> None:
    codes = {value for name, value in vars(errors).items() if name.startswith("EXIT_")}
    text = (REFERENCE / "exit-codes.md").read_text(encoding="utf-8")
    assert set(map(int, re.findall(r"^\| (\d+) \|", text, re.MULTILINE))) == codes


def test_the_files_below_the_root_are_those_of_the_layout() -> None:
    layout = Layout(PurePosixPath("/root"))
    words = {"arch": "<arch>", "kind": "<kind>", "step": "<step>", "abi_key": "<key>", "user": "<user>"}
    words |= {"token": "<token>", "stack": "<stack>"}
    environment = EnvironmentId("<arch>", "<name>", "<version>", "<fingerprint>")
    paths = set()
    for name, member in vars(Layout).items():
        if isinstance(member, property):
            paths.add(getattr(layout, name))
        elif inspect.isfunction(member) and not name.startswith("_"):
            names = list(inspect.signature(member).parameters)[1:]
            paths.add(member(layout, *(environment if one == "env" else words[one] for one in names)))
    text = (REFERENCE / "files.md").read_text(encoding="utf-8").split("## In `.provision`")[0]
    shown = re.findall(r"^\| `([^`]+)` \|", text, re.MULTILINE)
    assert sorted(shown) == sorted(str(path.relative_to("/root")) for path in paths)


def test_the_files_of_an_environment_are_in_the_code() -> None:
    text = (REFERENCE / "files.md").read_text(encoding="utf-8").split("## In `.provision`")[1]
    names = [name.split("/")[0] for name in re.findall(r"^\| `([\w./-]+)", text, re.MULTILINE)]
    assert len(names) > 5
    for name in names:
        assert f'"{name}"' in SOURCES, name


def test_every_variable_of_ours_is_on_its_page_and_in_the_code() -> None:
    page = set(re.findall(r"`([A-Z][A-Z_]+)`", (REFERENCE / "environment.md").read_text(encoding="utf-8")))
    templates = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "jobs").glob("*.j2"))
    read = set(re.findall(r"\bPROVISION_[A-Z_]+", SOURCES + templates)) - {
        "PROVISION_PLAN"
    }  # the mark of a here-document
    read |= set(re.findall(r"(?:environ\.get\(|environ\[)\"((?:PROVISION|TENSORFLOW)_[A-Z_]+)\"", TESTS))
    ours = {name for name in page if name.startswith(("PROVISION_", "TENSORFLOW_"))}
    assert {name for name in read if not name.endswith("_")} == ours
    for name in page - ours:
        assert name in SOURCES + templates or is_index_setting(name), name
