"""Commands in hints are about the site that was typed: pasted, they do not build something else elsewhere."""

from __future__ import annotations

import functools
import re
import shlex
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from parts.cli import run
from parts.loops import for_each
from parts.published import SITE as PACKAGES
from parts.published import put_proved
from parts.records import store_here
from provision.commands.options import LEAVES, find_command
from provision.commands.shared.hints import PRODUCTS, complete
from provision.machine.root.publishing import Publisher
from provision.machine.root.store import Store
from provision.model.layout import EnvironmentId

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
        ("`provision verify --all`", "`provision verify --all --site snowy --arch cpu`"),
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


ENV = EnvironmentId("gpu", "tensorflow", "2.15.1", "0123456789")
OF_ENV = {
    "--site": SITE,
    "--arch": "gpu",
    "--stack": "tensorflow-2.15.1",
}  # the default stack of this arch is another one


def _lose(name: str, store: Store) -> None:
    path = Path(store.layout.prefix(ENV)) / name
    for folder in (path.parent, path.parent.parent):
        folder.chmod(0o755)
    shutil.rmtree(path) if path.is_dir() else path.unlink()


DAMAGES: dict[str, Callable[[Store], None]] = {
    "none": lambda store: None,
    "package": functools.partial(_lose, f"{PACKAGES}/six.py"),
    "record": functools.partial(_lose, ".provision/record.json"),
    "unpublished": lambda store: (Publisher(store).unpublish(ENV), None)[1],
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_hints_about_an_environment_name_what_its_records_say(damage: str, tmp_path: Path) -> None:
    """Neither `--arch` nor `--stack` is typed, and the stack is not the one that a build of this arch makes by default."""
    store = store_here()
    put_proved(store, ENV)
    Publisher(store).publish(ENV)
    DAMAGES[damage](store)
    verbs = [[*leaf.words, str(ENV)] for leaf in LEAVES if [one.to for one in leaf.arguments] == ["environment"]]
    more = [["verify", "--all"], ["test", "--all"], ["doctor"], ["show", str(ENV), "--diff", str(ENV)]]
    wrong, seen = [], 0
    for words in [*verbs, *more]:
        done = run(*words, "--site", SITE)
        printed = done.stderr + (done.stdout if words[0] not in PRODUCTS else "")
        printed += run(*words, "--site", SITE, "--json").stdout if words[0] == "verify" else ""
        for command in re.findall(r"`provision ([a-z][^`…|]*)`", printed):
            typed = shlex.split(command)
            named = find_command(*typed)
            if named is None or "--help" in typed or "--arch" not in named.spellings or named.name == "list":
                continue
            seen += 1
            wanted = {} if "/" in command else OF_ENV if named.name == "build" else {"--arch": "gpu"}
            given = {name: typed[typed.index(name) + 1] for name in OF_ENV if name in typed}
            if {**given, **wanted, "--site": SITE} != given:
                wrong.append(f"{' '.join(words)}: {command}")
    assert not wrong
    assert seen


def test_a_repeated_arch_is_not_passed_on() -> None:
    assert complete("`provision build`", ("build", "--arch", "a", "--arch=b")) == "`provision build`"


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
