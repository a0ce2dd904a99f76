"""Commands in hints are about the site that was typed: pasted, they do not build something else elsewhere."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from parts.cli import run
from parts.loops import for_each
from provision.commands import VERBS
from provision.commands.shared.hints import PRODUCTS, complete
from provision.commands.shared.parsers import parser_of

TYPED = ("verify", "--site", "snowy", "--arch=cpu")
SITE = "nersc-perlmutter"


@pytest.mark.parametrize(
    ("hint", "completed"),
    [
        ("`provision build --rebuild` repairs it", "`provision build --rebuild --site snowy --arch cpu` repairs it"),
        ("`provision list`, then `ls`", "`provision list --site snowy --arch cpu`, then `ls`"),
        ("`provision show cpu/a/1 | less`", "`provision show cpu/a/1 --site snowy | less`"),
        ("`provision fetch && provision build`", "`provision fetch {0} && provision build {0}`"),
        ("`provision job follow 1 --site SITE`", "`provision job follow 1 --site snowy`"),
        ("`provision list --site here`", "`provision list --site here --arch cpu`"),
        ("`provision verify --all`", "`provision verify --all --site snowy`"),
        ("`provision site show other`", "`provision site show other`"),
        ("provision build, not a command", "provision build, not a command"),
        ('`eval "$(provision activate x)"`', '`eval "$(provision activate x --site snowy --arch cpu)"`'),
    ],
)
def test_a_command_in_a_hint_gets_what_it_lacks(hint: str, completed: str) -> None:
    assert complete(hint, TYPED) == completed.format("--site snowy --arch cpu")
    assert complete(hint, ("verify",)) == hint


VERBS_AT_A_SITE = [
    leaf.prog.split()[1:]
    for verb, _ in VERBS
    for leaf in (parser_of(verb).subverbs.values() or [parser_of(verb)])
    if "--site" in leaf.options
]


@for_each("words", [(*words,) for words in VERBS_AT_A_SITE])
def test_no_hint_of_a_verb_leads_to_another_site(words: tuple[str, ...], tmp_path: Path) -> None:
    """With an environment, a job or a folder that is not there, each verb has something to say."""
    if words[0] in ("fetch", "tensorboard", "lock"):
        return  # they ask the network, or wait
    leaf = parser_of(words[0])
    leaf = leaf.subverbs[words[1]] if len(words) > 1 else leaf
    given = ["cpu/nosuch/1" for action in leaf.actions if not action.option_strings and action.nargs != "?"]
    arch = ["--arch", "gpu"] if "--arch" in leaf.options else []
    done = run(*words, *given, "--site", SITE, *arch)
    for command in re.findall(
        r"`provision ([a-z][^`…|]*)`", done.stderr + ("" if words[0] in PRODUCTS else done.stdout)
    ):
        typed = shlex.split(command)
        parser = parser_of(typed[0])
        parser = parser.subverbs.get(typed[1], parser) if parser.subverbs else parser
        assert "--site" not in parser.options or "--help" in typed or "--site" in typed, f"{' '.join(words)}: {command}"
