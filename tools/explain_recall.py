#!/usr/bin/env python3
"""Measure how many labelled logs `provision explain` answers rightly, by one judge for every engine and catalogue.

The logs are those of the tests at commit 8341fc1, when the catalogue was largest, with what these tests expect of each; and the
example of each entry of that catalogue. `tools/explain_recall.py --save FILE` measures the present tree;
`tools/explain_recall.py --compare OLD NEW` lists the answers that differ between two saved runs.
"""

from __future__ import annotations

import argparse
import ast
import importlib
import json
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parents[1]
COMMIT = "8341fc1"
TESTS = "tests/unit/knowledge"
# Entries that only quote the log: an answer with one of these shows the right line, and knows no cause.
GENERIC = frozenset(
    (
        *("reported-error", "reported-complaint", "last-words", "last-retry", "error-with-hint"),
        *("library-stopped", "library-not-imported", "build-stopped"),
    )
)
# Tests of the inside of the old engine, not of its answers.
LEFT_OUT = ("test_advisories.py", "test_compatibility.py", "test_hints.py", "test_hostile_lines.py")


def main() -> int:
    """Measure the present tree, or compare two saved measurements."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--save", metavar="FILE", help="write the answers to this file, for --compare")
    parser.add_argument("--compare", nargs=2, metavar=("OLD", "NEW"), help="list the answers that differ")
    parser.add_argument("--show", metavar="KIND", help="print the logs of this kind, as `wrong`, with their answers")
    parser.add_argument("--collect", metavar="FOLDER", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.collect:
        json.dump(collect(Path(args.collect)), sys.stdout)
    elif args.compare:
        compare(*(json.loads(Path(name).read_text()) for name in args.compare))
    else:
        answers = measure(read_labels())
        if args.save:
            Path(args.save).write_text(json.dumps(answers, indent=1))
        for answer in answers:
            if answer["kind"] == args.show:
                print(f"{answer['tests'][0]}\n  wanted: {answer['wanted']}\n  answer: {answer['answer']}")
                print(f"{answer['text'][-1500:]}\n")
        summarise(answers)
    return 0


def read_labels() -> list[dict[str, Any]]:
    """The logs of the tests at COMMIT with what they expect, from a process of its own: its package has the same name."""
    with tempfile.TemporaryDirectory() as folder:
        archive = subprocess.run(["git", "-C", REPOSITORY, "archive", COMMIT], capture_output=True, check=True).stdout
        subprocess.run(["tar", "-x", "-C", folder], input=archive, check=True)
        output = subprocess.run(
            [sys.executable, __file__, "--collect", folder], stdout=subprocess.PIPE, check=True, cwd=folder
        ).stdout
    return list(json.loads(output))


# What the tests of the old commit expect: they run with an `explain` that notes each comparison, and agrees.


class Noted:
    """Part of an answer: it remembers what a test compares it with, and agrees."""

    def __init__(self, notes: list[list[Any]], path: str) -> None:
        self._notes, self._path = notes, path

    def __getattr__(self, name: str) -> Noted:
        return Noted(self._notes, f"{self._path}.{name}")

    def __getitem__(self, index: object) -> Noted:
        return Noted(self._notes, f"{self._path}[{index}]")

    def __iter__(self) -> Any:
        return iter([Noted(self._notes, f"{self._path}[*]")])

    def __call__(self, *_: object) -> Noted:
        return self

    def _note(self, how: str, other: object) -> bool:
        if isinstance(other, (str, int, type(None))):
            self._notes.append([self._path, how, other])
        return True

    def __eq__(self, other: object) -> bool:
        return self._note("is", other)

    def __ne__(self, other: object) -> bool:
        return self._note("is not", other)

    def __contains__(self, other: object) -> bool:
        return self._note("has", other)

    def __hash__(self) -> int:
        return id(self)


class Rewrite(ast.NodeTransformer):
    """Makes functions of the comparisons that no object can answer: `x is None` and `a not in b`."""

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        """One comparison."""
        self.generic_visit(node)
        names = {ast.Is: "_is_none", ast.NotIn: "_lacks"}
        name = names.get(type(node.ops[0])) if len(node.ops) == 1 else None
        if not name:
            return node
        return ast.Call(func=ast.Name(id=name, ctx=ast.Load()), args=[node.left, node.comparators[0]], keywords=[])


def _is_none(value: object, other: object) -> bool:
    return value._note("is", other) if isinstance(value, Noted) else value is other


def _lacks(value: object, other: Any) -> bool:
    return other._note("lacks", value) if isinstance(other, Noted) else value not in other


def collect(folder: Path) -> list[dict[str, Any]]:
    """Run the tests in this folder with an `explain` that notes what they expect."""
    sys.path[:0] = [str(folder), str(folder / "tests")]
    explain = importlib.import_module("provision.knowledge.failures.explain")
    pytest = importlib.import_module("pytest")
    catalogue = importlib.import_module("provision.machine.tables").known_failures()
    old = {entry.id: entry for entry in catalogue.failures}
    labels: list[dict[str, Any]] = []
    current = ""

    def note(blocks: Iterable[bytes], _: object = None, *, failed: bool = False, **__: object) -> Noted:
        label = {"test": current, "text": b"".join(blocks).decode("utf-8", "replace"), "failed": failed, "notes": []}
        labels.append(label)
        return Noted(label["notes"], "")

    def rows(names: Any, entries: Iterable[Any], **_: object) -> Callable[[Any], Any]:
        def decorate(test: Any) -> Any:
            arguments = [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)
            table = [entry if len(arguments) > 1 else (entry,) for entry in entries]
            values = [dict(zip(arguments, getattr(entry, "values", entry), strict=True)) for entry in table]
            test.rows = [{**row, **value} for row in getattr(test, "rows", [{}]) for value in values]
            return test

        return decorate

    explain.explain = note
    pytest.mark.parametrize = rows
    for path in sorted((folder / TESTS).glob("test_*.py")):
        if path.name in LEFT_OUT:
            continue
        space: dict[str, Any] = {"__name__": path.stem, "__file__": str(path), "_is_none": _is_none, "_lacks": _lacks}
        tree = ast.fix_missing_locations(Rewrite().visit(ast.parse(path.read_text())))
        exec(compile(tree, str(path), "exec"), space)
        for name, test in list(space.items()):
            if name.startswith("test_") and callable(test) and "_around_its_message" not in name:
                for row in getattr(test, "rows", [{}]):
                    current = f"{path.stem}::{name}[{', '.join(map(str, row.values()))[:60]}]"
                    try:
                        test(**row)
                    except Exception as error:
                        print(current, error, file=sys.stderr)
    for entry in old.values():
        weight = {0: "healthy", 1: "unknown"}.get(entry.weight, "known")
        for place, before in (("alone", ""), ("below a line", "starting on n1\n")):
            notes = [[".verdict", "is", weight], [".findings[0].failure.id", "is", entry.id]]
            text = f"{before}{entry.message}\n"
            labels.append({"test": f"example[{entry.id}] {place}", "text": text, "failed": False, "notes": notes})
    return list(merged(labels, old))


def merged(labels: list[dict[str, Any]], old: dict[str, Any]) -> Iterable[dict[str, Any]]:
    """Each log once, with all that tests expect of it; those of which no verdict and no entry is expected are left out."""
    by_log: dict[tuple[str, bool], dict[str, Any]] = {}
    for label in labels:
        log = by_log.setdefault((label["text"], label["failed"]), {**label, "tests": [], "wanted": {}})
        log["tests"].append(label["test"])
        for path, how, value in label["notes"]:
            if path == ".verdict":
                log["wanted"].setdefault(f"verdict {how}", value)
            elif path in (".known.failure.id", ".findings[0].failure.id", ".findings[*].failure.id") and how == "is":
                log["wanted"].setdefault("id", value)
            elif path == ".known" and how == "is":
                log["wanted"].setdefault("id", None)
    for log in by_log.values():
        if log["wanted"] and len(log["text"]) < 2_000_000:
            name = log["wanted"].get("id")
            entry = (
                {"match": old[name].match, "example": old[name].message}
                if name in old
                else {"match": (), "example": ""}
            )
            yield {key: log[key] for key in ("tests", "text", "failed", "wanted")} | entry


# The judge


def measure(labels: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What the present tree answers to each log, and how good that is."""
    sys.path.insert(0, str(REPOSITORY))
    program = importlib.import_module("provision.machine.programs.failed_program")
    explain, known = program.explain_log, program.known_failures()
    answers = []
    for label in labels:
        shown = explain([label["text"].encode()], failed=label["failed"])
        first = shown.findings[0] if shown.findings else None
        answer = {
            "verdict": shown.verdict,
            "id": first.entry.id if first else None,
            "line": first.text if first else "",
            "cause": first.cause if first else "",
            "sureness": first.sureness if first else "",
            "lines": [text for _, text in shown.lines],
        }
        answers.append({**label, "answer": answer, "kind": judge(label, answer, successors(label, known))})
    return answers


def successors(label: dict[str, Any], known: Any) -> set[str]:
    """The entries that stand today for the one that is wanted: itself, or those it was merged into."""
    name = label["wanted"].get("id")
    if not label["match"] or name in known.names:
        return {name}
    found = [entry for line in label["example"].splitlines() for _, entry, _ in known.matches(line)]
    return {entry.id for entry in found if not entry.quotes and entry.strength >= 0}


def judge(label: dict[str, Any], answer: dict[str, Any], fitting: set[str]) -> str:
    """How good an answer is."""
    wanted, verdict, name = label["wanted"], answer["verdict"], label["wanted"].get("id")
    if not fitting:
        return "out of scope"
    if wanted.get("verdict is") == "healthy":
        return "healthy, right" if verdict == "healthy" else "healthy, accused"
    if name is None:
        fails = wanted.get("verdict is") in ("known", "unknown") or "verdict is not" in wanted
        return "failed, seen" if verdict != "healthy" else "failed, missed" if fails else "healthy, right"
    if answer["id"] in fitting and verdict in ("known", wanted.get("verdict is")):
        return "right"
    quotes = answer["id"] in GENERIC or (answer["id"] or "").startswith("system-")
    if verdict == "known" and name in GENERIC and quotes:
        return "right"
    if verdict == "healthy":
        return "nothing"
    shown = [answer["line"]] if verdict == "known" else answer["lines"]
    sees_line = any(re.search(pattern, line) for pattern in label["match"] for line in shown)
    if sees_line and (verdict == "unknown" or quotes):
        return "weak"
    return "wrong" if verdict == "known" else "nothing"


def summarise(answers: list[dict[str, Any]]) -> None:
    """Print how many answers are of each kind, for the logs of the tests and for the examples of the entries."""
    for title, examples in (("logs of tests", False), ("examples of entries", True)):
        kinds = Counter(one["kind"] for one in answers if one["tests"][0].startswith("example") == examples)
        print(f"{title}: {sum(kinds.values())}; " + ", ".join(f"{kind} {kinds[kind]}" for kind in sorted(kinds)))


def compare(old: list[dict[str, Any]], new: list[dict[str, Any]]) -> None:
    """Print the logs whose answers differ, and how many are of each kind, of those that both runs have in their scope."""
    out = {(one["text"], one["failed"]) for one in (*old, *new) if one["kind"] == "out of scope"}
    old, new = ([one for one in run if (one["text"], one["failed"]) not in out] for run in (old, new))
    before = {(one["text"], one["failed"]): one for one in old}
    changes = [(before[one["text"], one["failed"]], one) for one in new if (one["text"], one["failed"]) in before]
    for was, one in sorted(changes, key=lambda pair: pair[1]["kind"]):
        if was["kind"] != one["kind"]:
            print(f"{was['kind']} -> {one['kind']}: {one['tests'][0]}: {was['answer']['id']} -> {one['answer']['id']}")
    summarise(old)
    summarise(new)


if __name__ == "__main__":
    sys.exit(main())
