"""Commands in hints are about the site that was typed: pasted, they do not build something else elsewhere."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from parts.cli import run
from parts.loops import for_each
from provision.commands.options import LEAVES, find_command
from provision.commands.shared.hints import PRODUCTS, complete

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


@for_each("words", [leaf.words for leaf in LEAVES if "--site" in leaf.spellings])
def test_no_hint_of_a_verb_leads_to_another_site(words: tuple[str, ...], tmp_path: Path) -> None:
    """With an environment, a job or a folder that is not there, each verb has something to say."""
    if words[0] in ("fetch", "tensorboard", "lock"):
        return  # they ask the network, or wait
    leaf = find_command(*words)
    assert leaf is not None
    given = ["cpu/nosuch/1" for argument in leaf.arguments if argument.number != "?"]
    arch = ["--arch", "gpu"] if "--arch" in leaf.spellings else []
    done = run(*words, *given, "--site", SITE, *arch)
    for command in re.findall(
        r"`provision ([a-z][^`…|]*)`", done.stderr + ("" if words[0] in PRODUCTS else done.stdout)
    ):
        typed = shlex.split(command)
        named = find_command(*typed)
        assert named is not None
        assert "--site" not in named.spellings or named.subverbs or "--help" in typed or "--site" in typed, (
            f"{' '.join(words)}: {command}"
        )


def test_a_build_or_proof_at_a_site_with_a_scheduler_is_submitted(monkeypatch: pytest.MonkeyPatch) -> None:
    typed = ("verify", "--site", SITE, "--arch", "gpu")
    hint = "`provision build --rebuild`, `provision test --all`, `provision list`, `provision build --plan x`"
    at = f"--site {SITE} --arch gpu"
    assert complete(hint, typed) == (
        f"`provision build --rebuild {at} --submit`, `provision test --all {at} --submit`, `provision list {at}`, "
        f"`provision build --plan x {at}`"
    )
    assert complete("`provision build`", ("verify", "--site", "local")) == "`provision build --site local`"
    monkeypatch.setenv("SLURM_JOB_ID", "1")
    monkeypatch.setenv("SLURMD_NODENAME", "n1")
    assert complete("`provision build`", typed) == f"`provision build {at}`"
