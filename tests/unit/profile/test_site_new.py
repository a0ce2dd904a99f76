"""`provision site new`: fill in a template from options, answers and this machine; a wrong answer writes nothing."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from golden_files import Words
from parts.cli import call
from parts.profiles import FILLED, SITES
from provision import cli
from provision.errors import EXIT_USAGE, ConfigError
from provision.machine.configuration import shipped
from provision.profile.blanks import blanks, fill

TEXT = (SITES / "generic-slurm.toml").read_text(encoding="utf-8")
BLANKS = blanks(TEXT, shipped.parse)
SET = {path: " ".join(value) if isinstance(value, list) else str(value) for path, value in FILLED.items()}


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's configuration folder, without variables from which an answer could be found."""
    monkeypatch.chdir(tmp_path)
    for name in ("SCRATCH", "https_proxy", "LMOD_PKG", "MODULESHOME", "PROVISION_ROOT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("sys.stdin", io.StringIO(""))
    return tmp_path / "settings" / "provision"


def sets(answers: dict[str, str]) -> list[str]:
    """The options that give these answers."""
    return [word for path, value in answers.items() for word in ("--set", f"{path}={value}")]


def test_blanks_have_questions_in_the_order_of_the_text(words: Words) -> None:
    assert [blank.path for blank in BLANKS] == list(FILLED)
    assert [blank.path for blank in BLANKS if blank.many] == [
        path for path, value in FILLED.items() if isinstance(value, list)
    ]
    words("site", "\n".join(f"{blank.path}: {blank.question}" for blank in BLANKS))


def test_answers_replace_blanks_and_comments_stay() -> None:
    text = fill(TEXT, "ours", BLANKS, {**SET, "root": 'a "b" \\ # c'})
    assert shipped.parse(text, "x") == shipped.parse(
        fill(TEXT, "ours", BLANKS, SET).replace('"/shared/provision"', '"a \\"b\\" \\\\ # c"'), "x"
    )
    assert text.count("#") == TEXT.count("#") + 1
    assert fill(TEXT, "generic-slurm", BLANKS, {}) == TEXT
    left = fill(TEXT, "ours", BLANKS, {path: "-" for path in SET if path.endswith("launcher.options")})
    assert "srun --mpi=list" not in left, "no comment on a key that is left out stays"
    assert shipped.parse(left, "x")["archs"]["cpu"]["launcher"] == {"name": "srun"}


@pytest.mark.parametrize(
    "text",
    [
        *('a = 1\nb="?"\n', 'a = 1\nb = [ "?" ]\n', 'a = 1\nb = ["?"] # why\n'),
        *('{ a = 1, b = "?" }', '{ a = 1, b = ["?"] }', '{ a = 1, b = "?", c = "?" }', '{ b = "?", a = 1 }'),
    ],
)
def test_a_key_can_be_left_out_however_it_is_spaced_also_of_an_inline_table(text: str) -> None:
    text = f"x = {text}\n" if text.startswith("{") else f"[x]\n{text}"
    asked = blanks(text, shipped.parse)
    assert shipped.parse(fill(text, "x", asked, {blank.path: "-" for blank in asked}), "x") == {"x": {"a": 1}}


def test_a_blank_that_is_only_part_of_a_value_is_refused(words: Words) -> None:
    with pytest.raises(ConfigError, match=r"2 .* 1 ") as caught:
        blanks('a = "?"\nb = ["x", "?"]\n', shipped.parse)
    words("site", caught.value.message)


EDITED = """\
# edited \u2028 by a person
name="ours"
[archs.cpu]
target = '# no comment'  # the CPU of the nodes
[archs.cpu.launcher]
name = "srun"
[files]
scratch = "?"  # for jobs
[archs.cpu.node]
cores = "?"  # of one node
"""


def test_only_the_blanks_of_an_edited_profile_change() -> None:
    """Its tables are in any order, a table has a `name` too, and a comment has a line separator of Unicode."""
    asked = blanks(EDITED, shipped.parse)
    assert [(blank.path, blank.question) for blank in asked] == [
        ("files.scratch", "for jobs"),
        ("archs.cpu.node.cores", "of one node"),
    ]
    answers = {"archs.cpu.node.cores": "4", "files.scratch": "/s"}
    expected = EDITED.replace('scratch = "?"', 'scratch = "/s"').replace('cores = "?"', "cores = 4")
    assert fill(EDITED, None, asked, answers) == expected
    assert fill(EDITED, "new", asked, answers) == expected.replace('name="ours"', 'name = "new"')
    assert fill(EDITED.replace('name="ours"\n', ""), "new", asked, answers).count('"srun"') == 1


def test_a_list_of_several_lines_is_not_left_out_by_halves(words: Words) -> None:
    text = 'a = [\n  "?",\n]\n'
    with pytest.raises(ConfigError) as caught:
        fill(text, None, blanks(text, shipped.parse), {"a": "-"})
    words("site", "\n".join(caught.value.to_lines()))


def test_a_profile_with_all_answers_can_be_planned(
    here: Path, capsys: pytest.CaptureFixture[str], words: Words
) -> None:
    assert call("site", "new", "ours", *sets(SET)) == 0
    out = capsys.readouterr().out
    words("site", "\n".join(line for line in out.splitlines() if not line.startswith("note: ")))
    before = (here / "sites/ours.toml").read_bytes()
    assert call("site", "new", "ours", *sets(SET)) == EXIT_USAGE
    assert "already exists" in capsys.readouterr().err
    assert (here / "sites/ours.toml").read_bytes() == before
    words_of_plan = ("plan", "--site", "ours", "--arch", "gpu", "--profile")
    assert call(*words_of_plan) == 0
    (here / "sites/ours.toml").write_bytes(before.replace(b'target = "zen3"', b'target = "zen9"'))
    assert call(*words_of_plan) == EXIT_USAGE
    assert "`zen9`" in capsys.readouterr().err


@pytest.mark.parametrize(("kept", "gone"), [("cpu", "gpu"), ("gpu", "cpu")])
def test_an_omitted_arch_is_removed_with_its_blanks_and_sources(kept: str, gone: str, here: Path) -> None:
    mine = {path: value for path, value in SET.items() if not path.startswith(f"archs.{gone}.")}
    assert call("site", "new", "ours", "--arch", kept, *sets(mine)) == 0
    text = (here / "sites/ours.toml").read_text()
    assert f"archs.{gone}" not in text.replace(f"`site new --arch {gone}`", "")
    assert [arch.name for arch in shipped.load_site("ours").archs] == [kept]
    assert call("site", "new", "both", "--arch", kept, "--arch", gone) == 0


def test_remaining_blanks_are_listed_and_refused_by_other_verbs(
    here: Path, capsys: pytest.CaptureFixture[str], words: Words
) -> None:
    some = {path: value for path, value in SET.items() if path not in ("root", "archs.gpu.job.partition")}
    assert call("site", "new", "ours", *sets(some)) == 0
    out = capsys.readouterr().out
    assert '  root = "?"' in out and '  archs.gpu.job.partition = "?"' in out
    words("site", next(line for line in out.splitlines() if "2 values" in line))
    for verb in ("build", "plan"):
        assert cli.main([verb, "--site", "ours"]) == EXIT_USAGE
        err = capsys.readouterr().err
        assert "2 values" in err and "hint: `provision site new ours`" in err
        words(verb, err)


def test_values_found_on_the_machine_are_filled_in_and_listed(
    here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "lmod/init").mkdir(parents=True)
    (here / "lmod/init/bash").write_text("")
    for name, value in {"LMOD_PKG": f"{here}/lmod", "SCRATCH": "/s/ada", "https_proxy": "http://p:1"}.items():
        monkeypatch.setenv(name, value)
    assert call("site", "new", "ours", "--json") == 0
    result = json.loads(capsys.readouterr().out)["result"]
    assert result["filled"] == {
        "modules.init": f"{here}/lmod/init/bash",
        "modules.path": "-",
        "network.proxy": "http://p:1",
        "files.scratch": "$SCRATCH",
    }
    assert len(result["left"]) == len(FILLED) - 4


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (("new", "../x"), "`../x`"),
        (("new", "ours", "--from", "nosuch"), "`nosuch`"),
        (("new", "local"), "`local`"),
        (("new", "ours", "--arch", "gpus"), "`gpus`"),
        (("new", "ours", "--set", "root"), "`--set root`"),
        (
            ("new", "ours", "--set", "archs.gpu.targt=zen3"),
            "`archs.gpu.target`",
        ),
        (("new", "a b"), "hint: `provision site new a-b`"),
        (("new", "generic-slurm"), "`generic-slurm`"),
        (("new", "ours", "--set", "foo=1"), "hint: `provision site new ours`"),
        (("new", "ours", "--set", "archs.gpu.targt=a b"), "hint: `--set 'archs.gpu.target=a b'`"),
        (("new", "ours", "--from", "local", "--set", "foo=1"), "hint: omit `--set`"),
        (("new", "ours", "--set", "archs.gpu.target=a b"), "archs.gpu.target: "),
        (("new", "ours", "--set", "archs.gpu.node.cores=many"), "archs.gpu.node.cores: "),
        (("new", "ours", "--set", "network.compute=maybe"), "`--set network.compute=maybe`"),
        (("new", "ours", "--set", "archs.cpu.target=zen9"), "`zen9`"),
        (("new", "ours", "--set", "network.proxy=http://me:secret@p:1"), "password"),
        (("new", "ours", "--set", "root=-"), "root: "),
    ],
)
def test_a_wrong_answer_writes_nothing(
    command: tuple[str, ...], message: str, here: Path, capsys: pytest.CaptureFixture[str], words: Words
) -> None:
    assert call("site", *command) == EXIT_USAGE
    err = capsys.readouterr().err
    assert message in err
    words("site", "\n".join(line for line in err.splitlines() if "import archspec" not in line))
    assert not here.exists()


def test_an_answer_can_be_given_alone(here: Path) -> None:
    some = [*SET.items()][::4]
    for path, value in some:
        assert call("site", "new", f"with-{path}", "--set", f"{path}={value}") == 0, path
    assert len([*here.glob("sites/*.toml")]) == len(some)


def test_a_wrong_proposal_of_this_machine_is_not_taken(
    here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PROVISION_ROOT", "relative/root")
    assert call("site", "new", "ours", "--json") == 0
    assert "root" in json.loads(capsys.readouterr().out)["result"]["left"]


def test_a_site_of_the_tool_is_replaced_only_by_its_copy(here: Path) -> None:
    assert call("site", "new", "local", "--from", "local") == 0
    assert shipped.load_site("local").origin == str(here / "sites/local.toml")


def test_the_same_command_asks_for_the_blanks_again(
    here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, words: Words
) -> None:
    some = {path: value for path, value in SET.items() if path not in ("root", "archs.gpu.job.partition")}
    assert call("site", "new", "ours", *sets(some)) == 0
    path = here / "sites/ours.toml"
    path.write_text(
        path.read_text().replace('title = "ours"', 'title = "ours"  # my comment').replace("name = ", "name=")
    )
    for option, given, named in (
        ("--arch", "cpu", "`gpu`"),
        ("--from", "generic-slurm", "`--from`"),
        ("--set", "archs.gpu.target=zen4", f"hint: edit `{path}`"),
    ):
        capsys.readouterr()
        assert call("site", "new", "ours", option, given) == EXIT_USAGE
        err = capsys.readouterr().err
        assert named in err
        words("site", err)
    assert call("site", "new", "ours", "--set", f"root={SET['root']}", "--json") == 0
    assert json.loads(capsys.readouterr().out)["result"]["left"] == ["archs.gpu.job.partition"]
    monkeypatch.setattr("sys.stdin", io.StringIO("work\n"))
    monkeypatch.setattr("provision.commands.site.new.can_ask", lambda: True)
    assert call("site", "new", "ours") == 0
    assert "1 question.\n" in capsys.readouterr().err
    assert shipped.load_site("ours").arch("gpu").job.partition == "work"
    assert "# my comment" in path.read_text()
    assert 'name="ours"' in path.read_text()


def test_a_fault_outside_the_blanks_of_an_existing_profile_is_corrected_in_it(
    here: Path, capsys: pytest.CaptureFixture[str], words: Words
) -> None:
    assert call("site", "new", "ours", *sets({path: value for path, value in SET.items() if path != "root"})) == 0
    path = here / "sites/ours.toml"
    path.write_text(path.read_text().replace('system = "lmod"', 'system = "lmodd"'))
    assert call("site", "new", "ours", "--set", "root=/r") == EXIT_USAGE
    err = capsys.readouterr().err
    words("site", err)


def test_a_private_profile_behind_a_link_stays_private_and_linked(here: Path) -> None:
    assert call("site", "new", "ours", *sets({path: value for path, value in SET.items() if path != "root"})) == 0
    path, kept = here / "sites/ours.toml", here / "kept.toml"
    path.rename(kept)
    kept.chmod(0o600)
    path.symlink_to(kept)
    assert call("site", "new", "ours", "--set", "root=/r") == 0
    assert (path.is_symlink(), kept.stat().st_mode & 0o777) == (True, 0o600)
    assert shipped.load_site("ours").root == "/r"


def test_blanks_of_a_profile_that_comes_with_the_tool_are_for_a_copy(
    capsys: pytest.CaptureFixture[str], words: Words
) -> None:
    assert cli.main(["plan", "--site", "generic-slurm"]) == EXIT_USAGE
    err = capsys.readouterr().err
    assert "hint: `provision site new SITE --from generic-slurm`" in err
    words("plan", err.splitlines()[-1])


def test_blanks_of_an_own_profile_are_filled_in_by_any_path(
    here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], words: Words
) -> None:
    assert call("site", "new", "ours") == 0
    monkeypatch.chdir(here)
    for name in ("ours", "./sites/ours.toml", "sites/../sites/ours.toml"):
        capsys.readouterr()
        assert cli.main(["plan", "--site", name]) == EXIT_USAGE
        err = capsys.readouterr().err
        assert "hint: `provision site new ours`" in err, name
        words("plan", err.splitlines()[-1])


def test_the_profile_is_written_to_the_folder_of_own_settings(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PROVISION_CONFIG", str(here / "config"))
    assert call("site", "new", "ours") == 0
    assert (here / "config/sites/ours.toml").is_file()
    assert [path.name for path in here.iterdir()] == ["config"]
    assert not Path("sites").exists()
