"""docs/dev/requirements.md says where each requirement lives: every number is there once, and what it names exists."""

from __future__ import annotations

import re
from pathlib import Path

import provision
from provision.lint.rules import RULES

ROOT = Path(provision.__file__).resolve().parents[1]
TEXT = (ROOT / "docs" / "dev" / "requirements.md").read_text(encoding="utf-8")
ROWS = re.findall(r"^\| (S\d\.\d+) \| (.+?) \| (.+) \|$", TEXT, re.MULTILINE)
# How many requirements each page has.
NUMBERS = {"S0": 38, "S1": 48, "S2": 38, "S3": 22, "S4": 35}
KEYS = "".join(
    (ROOT / "docs" / "reference" / f"{page}.md").read_text(encoding="utf-8") for page in ("profile", "stacks")
)
SOURCES = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "provision").rglob("*.py"))
TEST_FILES = {path.name: path for path in (ROOT / "tests").rglob("test_*.py")}
TESTS = "".join(path.read_text(encoding="utf-8") for path in TEST_FILES.values())


def rules_named(text: str) -> set[str]:
    """The rules of the linter that a row of a table names."""
    groups = re.findall(r"lint ((?:`[a-z0-9-]+`(?:, )?)+)", text)
    return {name for group in groups for name in re.findall(r"`([a-z0-9-]+)`", group)}


def test_every_rule_in_the_table_is_reported_by_a_file() -> None:
    """A rule is a function with its name; the keys of `[archs.<arch>.job]` are reported by their names."""
    folder = ROOT / "provision" / "lint"
    source = "".join(path.read_text(encoding="utf-8") for path in folder.glob("*.py") if path.name != "rules.py")
    functions = {name for name in RULES if f"def {name.replace('-', '_')}(" in source}
    assert [name for name in RULES if name not in functions and f'"{name}"' not in source] == []


def test_every_requirement_of_the_pages_is_listed_once() -> None:
    wanted = [f"{page}.{number}" for page, count in NUMBERS.items() for number in range(1, count + 1)]
    assert [number for number, _, _ in ROWS] == wanted


def test_every_rule_that_is_named_exists_and_every_rule_is_named() -> None:
    named = {name for _, _, where in ROWS for name in rules_named(where)}
    known = set(RULES)
    assert not named - known
    # Those that no page asks for by a number: they come with every scheduler, or with any script.
    assert known - named == {
        *(
            "scheduler",
            "folder",
            "directive-value",
            "export-none",
            "arch-partition",
            "srun-cpus",
            "on-service-node",
            "mirrored-nodes",
            "line-ends",
        ),
        *("no-interpreter", "lost-directive", "no-wait", "minutes"),
        *("first-node-only", "other-launcher", "cpus", "nodes", "gpus"),
        *("time", "partition", "qos", "constraint", "memory", "filesystems"),
        # PyTorch and mpi4py, of which the pages speak in one sentence each.
        *("torchrun-tasks", "torchrun-one-node", "master-here", "no-set-epoch"),
        *("torchrun-apart", "number-of-shell", "processes-per-gpu", "world-size", "rank-as-gpu", "collective-on-one"),
        *("no-process-group", "gloo-on-gpus"),
        *("rank-dies", "mpi-settings", "gpu-after-mpi"),
    }


def test_every_file_test_and_name_in_the_table_exists() -> None:
    for number, _, where in ROWS:
        for name in re.findall(r"`([^`]+)`", where):
            if re.fullmatch(r"test_\w+", name):
                assert f"def {name}(" in TESTS, f"{number}: {name}"
            elif re.fullmatch(r"test_\w+\.py", name):
                assert name in TEST_FILES, f"{number}: {name}"
            elif re.fullmatch(r"jobs/[a-z0-9-]+/\S+\.sh", name):
                assert (ROOT / "tests" / "golden" / name).is_file(), f"{number}: {name}"
            elif re.fullmatch(
                r"(sites/[\w.-]+\.toml|(jobs|modulefiles|pages)/[\w.-]+\.j2|tools/[\w.-]+|examples/[\w/-]+\.py)", name
            ):
                assert (ROOT / name).is_file(), f"{number}: {name}"
            elif re.fullmatch(r"[\w/]+\.py", name):
                assert (ROOT / "provision" / name).is_file(), f"{number}: {name}"
            elif re.fullmatch(r"\w+\.\w+", name) and not name.endswith((".json", ".cfg")) and name != "model.save":
                assert is_defined(*name.split(".")), f"{number}: {name}"


def is_defined(where: str, name: str) -> bool:
    """Whether a module, a class, or a table of a profile or stack of this name has what is named."""
    if re.search(rf"^#.*\[[\w.<>]*{where}\b", KEYS, re.MULTILINE) and f"| `{name}` |" in KEYS:
        return True
    texts = [path.read_text(encoding="utf-8") for path in (ROOT / "provision").rglob(f"{where}.py")]
    texts += re.findall(rf"^class {where}\b.*?(?=^\S)", SOURCES, re.MULTILINE | re.DOTALL)
    return any(re.search(rf"\b(?:def|class) {name}\b|^ *{name}\b.*[:=]", text, re.MULTILINE) for text in texts)


def test_the_glossary_has_every_word_once() -> None:
    text = (ROOT / "docs" / "dev" / "architecture.md").read_text(encoding="utf-8").partition("## Glossary")[2]
    words = re.findall(r"^\| ([^|]+?) \|", text, re.MULTILINE)
    assert len(words) > 30
    assert [word for word in words if words.count(word) > 1] == []


def test_every_row_of_the_audit_has_a_test_that_exists_or_a_reason() -> None:
    text = (ROOT / "docs" / "dev" / "audit-rows.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (S\d [\d.]+) \| (wrong|missing|partial) \| .+? \| (.+) \|$", text, re.MULTILINE)
    assert len({number for number, _, _ in rows}) == len(rows) == 108
    for word, wanted in (("wrong", 21), ("missing", 27), ("partial", 60)):
        assert sum(was == word for _, was, _ in rows) == wanted
    assert [name for name in re.findall(r"`(test_\w+)`", text) if f"def {name}(" not in TESTS] == []
    for number, _, why in rows:
        assert rules_named(why) <= set(RULES), number
        assert re.search(r"`test_|lint `|example|declined|^as |^the same|`provision |profile", why), number
