"""The pages for people: links lead somewhere, commands parse, and the files, folders and make targets that they name exist."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import provision
from parts.loops import for_each
from provision.commands import VERBS
from provision.commands.options import COMMANDS as BY_VERB
from provision.commands.shared.parsers import find_leaf, parse
from provision.machine.configuration.search_path import known

ROOT = Path(provision.__file__).resolve().parents[1]
PAGES = {
    str(path.relative_to(ROOT)): path.read_text(encoding="utf-8")
    for path in (
        *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md")),
        *sorted((ROOT / "docs").rglob("*.md")),
    )
}
FOLDERS = sorted(path.name for path in ROOT.iterdir() if path.is_dir() and not path.name.startswith("."))
INSIDE = sorted(path.name for path in (ROOT / "provision").iterdir() if path.is_dir())

every_page = for_each("page", PAGES)


def without_code(text: str) -> str:
    """A page without its blocks of code."""
    return re.sub(r"^```.*?^```$", "", text, flags=re.DOTALL | re.MULTILINE)


def anchors(text: str) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    titles = re.findall(r"^#+ (.+)$", without_code(text), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@every_page
def test_every_link_leads_to_a_file_and_a_heading(page: str) -> None:
    for link in re.findall(r"\]\(([^)\s]+)\)", without_code(PAGES[page])):
        if re.match(r"https?:", link):
            continue
        name, _, anchor = link.partition("#")
        path = (ROOT / page).parent / name if name else ROOT / page
        assert path.exists(), f"{page}: {link}"
        if anchor:
            assert anchor in anchors(path.read_text(encoding="utf-8")), f"{page}: {link}"


def test_every_page_of_docs_is_reached_from_the_index() -> None:
    index = PAGES["docs/README.md"]
    linked = {str((ROOT / "docs" / link).resolve().relative_to(ROOT)) for link in re.findall(r"\]\(([\w./-]+)", index)}
    assert {page for page in PAGES if page.startswith("docs/")} - {"docs/README.md"} <= linked


@every_page
def test_every_file_of_the_repository_that_is_named_exists(page: str) -> None:
    for name in re.findall(r"`([\w./-]+/[\w./-]*)`", without_code(PAGES[page])):
        top = name.split("/")[0]
        if top in FOLDERS and top != "jobs" and not name.endswith((".py", ".j2")):
            assert (ROOT / name).exists() or re.search(r"NNNN|vision-", name), f"{page}: {name}"
        elif name.endswith(".py") and (top in FOLDERS or top in INSIDE):
            assert (ROOT / name).is_file() or (ROOT / "provision" / name).is_file(), f"{page}: {name}"


@every_page
def test_every_make_target_that_is_named_exists(page: str) -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    named = re.findall(r"^ {4}make ([a-z][a-z-]*)", PAGES[page], re.MULTILINE) + re.findall(
        r"`make ([a-z][a-z-]*)", PAGES[page]
    )
    assert set(named) <= targets


def test_the_readme_is_short() -> None:
    assert len(PAGES["README.md"].splitlines()) <= 120


def test_the_map_of_the_architecture_is_the_order_of_the_folders() -> None:
    from test_house import LAYERS

    table = PAGES["docs/dev/architecture.md"].split("|---|---|---|")[1].split("\n\n")[0]
    listed = re.findall(r"`(\w+)(?:/|\.py)`", "".join(re.findall(r"^\| (.*?) \|", table, re.MULTILINE)))
    assert listed == [name for names in LAYERS for name in names if name != "__main__"]


def blocks(text: str) -> list[str]:
    """The lines of the blocks of a page: those between fences, and those that stand four spaces in."""
    fenced = "".join(re.findall(r"^ *```\w*\n(.*?)^ *```", text, re.DOTALL | re.MULTILINE)).splitlines()
    return fenced + re.findall(r"^(?: {4}| {7})(?! )(.+)$", text, re.MULTILINE)


def commands_of(text: str) -> list[list[str]]:
    """The words of each `provision` command in the blocks of a page, without what belongs to the shell."""
    found = []
    for line in blocks(text):
        for start in re.finditer(r"(?:^\$ |^|\$\()(?:\.venv/bin/)?(?:python3 -m )?provision (?=[a-z-])", line):
            rest = re.sub(r" +#.*$", "", line[start.end() :])
            inside = rest.split(")")[0] if start[0].startswith("$(") else rest
            lexer = shlex.shlex(inside, posix=True, punctuation_chars=True)
            lexer.whitespace_split = True
            words = list(lexer)
            end = next((at for at, word in enumerate(words) if set(word) <= set("|&;<>()")), len(words))
            found.append(words[:end])
    return found


COMMANDS = [(page, words) for page, text in PAGES.items() for words in commands_of(text)]


def test_the_commands_of_the_pages_are_found() -> None:
    assert len(COMMANDS) > 60
    assert ["activate", "tensorflow/2.21.0"] in commands_of(PAGES["docs/howto/load.md"])
    assert ["build", "--site", "SITE", "--arch", "ARCH", "--submit"] in commands_of(PAGES["README.md"])


@for_each(("page", "words"), COMMANDS, ids=lambda one: one if isinstance(one, str) else " ".join(one))
def test_a_command_is_one_that_the_tool_takes(page: str, words: list[str]) -> None:
    if words == ["--version"]:
        return
    args = parse(words[0], words[1:])
    site = getattr(args, "site", None)
    assert site is None or site in (*known("sites"), "SITE", "snowy"), f"{page}: {words}"
    stack = getattr(args, "stack", None)
    assert stack is None or stack in (*known("stacks"), "STACK", "vision-2.15.1"), f"{page}: {words}"


@every_page
def test_a_command_within_a_sentence_has_a_verb_and_options_that_exist(page: str) -> None:
    for text in re.findall(r"`provision ([a-z][^`]*)`", without_code(PAGES[page])):
        words = text.split()
        assert words[0] in dict(VERBS), f"{page}: {text}"
        leaf, rest = BY_VERB[words[0]], words[1:]
        if leaf.subverbs and rest and rest[0] != "KIND":
            leaf, rest = find_leaf(leaf, rest)
        options = {name for one in leaf.leaves for name in one.spellings}
        assert {word for word in rest if word.startswith("--")} <= options, f"{page}: {text}"
