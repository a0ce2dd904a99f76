"""`provision site new`: fill in a template from options, answers and this machine; a wrong answer writes nothing."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from golden_files import Words
from parts.cli import call
from parts.profiles import FILLED, SITES
from provision import cli
from provision.commands.site import new
from provision.errors import EXIT_USAGE, ConfigError
from provision.launch.available_modules import describe
from provision.machine.configuration import shipped
from provision.planning.site_proposals import SeenMachine
from provision.profile.blanks import blanks, fill
from provision.schedulers.slurm import parse_node_kinds

TEXT = (SITES / "generic-slurm.toml").read_text(encoding="utf-8")
BLANKS = blanks(TEXT, shipped.parse)
PATHS = [blank.path for blank in BLANKS]
SET = {path: " ".join(value) if isinstance(value, list) else str(value) for path, value in FILLED.items()}
SET |= {path: str(value).lower() for path, value in FILLED.items() if isinstance(value, bool)}


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's configuration folder, without variables from which an answer could be found."""
    monkeypatch.chdir(tmp_path)
    for name in ("SCRATCH", "https_proxy", "LMOD_PKG", "MODULESHOME", "PROVISION_ROOT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("sys.stdin", io.StringIO(""))
    return tmp_path / "settings" / "provision"


Terminals = Callable[..., None]


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
    words("site", "\n".join(line for line in out.splitlines() if not line.startswith(("note: ", "advisories of "))))
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
    assert cli.main(["plan", "--site", "ours", "--arch", "gpu", "--profile"]) == 0
    out = capsys.readouterr().out
    assert "2 values left blank" in out and "\n  root, archs.gpu.job.partition\n" in out
    assert "`provision site new SITE` asks" in out and "cuda/12.2.2" in out
    assert cli.main(["plan", "--site", "generic-slurm", "--arch", "gpu", "--profile", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["result"]["blank"] == PATHS
    for verb in ("build", "plan"):
        assert cli.main([verb, "--site", "ours"]) == EXIT_USAGE
        err = capsys.readouterr().err
        assert "2 values" in err and "hint: `provision site new ours`" in err
        words(verb, err)


USUAL = {"account": "-", "qos": "-", "memory": "-", "exclusive": "false", "time": "00:30:00"}


def test_values_found_on_the_machine_are_filled_in_and_listed(
    here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "lmod/init").mkdir(parents=True)
    (here / "lmod/init/bash").write_text("module() { :; }\n")
    for name, value in {"LMOD_PKG": f"{here}/lmod", "SCRATCH": "/s/ada", "https_proxy": "http://p:1"}.items():
        monkeypatch.setenv(name, value)
    assert call("site", "new", "ours", "--json") == 0
    result = json.loads(capsys.readouterr().out)["result"]
    seen = {
        "modules.init": f"{here}/lmod/init/bash",
        "modules.path": "-",
        "network.proxy": "http://p:1",
        "files.scratch": "$SCRATCH",
    }
    usual = {
        "scheduler.memory": "-",
        "scheduler.required": "partition",
        "container.command": "-",
        "container.image": "-",
        **{f"archs.{arch}.job.{key}": value for arch in ("cpu", "gpu") for key, value in USUAL.items()},
    }
    assert result["filled"] == {**seen, **usual}
    assert len(result["left"]) == len(FILLED) - len(result["filled"])


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
    assert "1 value to fill in.\n" in capsys.readouterr().err
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


def test_blanks_of_an_own_profile_are_filled_in_and_those_of_the_tool_are_for_a_copy(
    here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], words: Words
) -> None:
    assert call("site", "new", "ours") == 0
    monkeypatch.chdir(here)
    capsys.readouterr()
    for name in ("ours", "./sites/ours.toml", "sites/../sites/ours.toml", "generic-slurm"):
        assert cli.main(["plan", "--site", name]) == EXIT_USAGE
        words("plan", capsys.readouterr().err.splitlines()[-1])


def test_the_profile_is_written_to_the_folder_of_own_settings(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PROVISION_CONFIG", str(here / "config"))
    assert call("site", "new", "ours") == 0
    assert (here / "config/sites/ours.toml").is_file()
    assert [path.name for path in here.iterdir()] == ["config"]
    assert not Path("sites").exists()


# The questions on a terminal: checked answers, the way back, and the draft that stays


class Terminal(io.StringIO):
    """Lines that a person types; then Ctrl-C instead of Ctrl-D if `ends` says so."""

    ends: type[BaseException] | None = None

    def readline(self, *_: object) -> str:  # type: ignore[override]
        line = super().readline()
        if not line and self.ends:
            raise self.ends
        return line


@pytest.fixture
def terminal(here: Path, monkeypatch: pytest.MonkeyPatch) -> Terminals:
    """A function that types these lines into the next command, on a machine that proposes nothing."""
    monkeypatch.setattr(new, "can_ask", lambda: True)
    monkeypatch.setattr(new, "surroundings", lambda keys: SeenMachine())

    def type_lines(lines: Iterable[str], ends: type[BaseException] | None = None) -> None:
        stdin = Terminal("".join(f"{line}\n" for line in lines))
        stdin.ends = ends
        monkeypatch.setattr("sys.stdin", stdin)

    return type_lines


def profile_of(tmp_path: Path, name: str = "ours") -> Path:
    return tmp_path / f"settings/provision/sites/{name}.toml"


def test_a_file_that_is_not_on_this_machine_is_taken_with_a_note(
    terminal: Terminals, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "bash").write_text("")
    monkeypatch.setenv("INIT", str(tmp_path))
    for typed, noted in (("/nofile", True), (str(tmp_path / "bash"), False), ("${INIT}/bash", False)):
        terminal([{**SET, "modules.init": typed}[path] for path in PATHS])
        assert call("site", "new", "ours") == 0
        note = f"  `{typed}`, the answer for `modules.init`, does not exist on this machine; `<` goes back\n"
        assert (note in capsys.readouterr().err) is noted
        assert f'init = "{typed}"' in profile_of(tmp_path).read_text()
        profile_of(tmp_path).unlink()


def test_a_list_can_be_typed_with_commas_or_as_in_toml(terminal: Terminals) -> None:
    lists = {"archs.cpu.modules": "gcc/12.2.0, openmpi/4.1.6", "archs.gpu.modules": '["gcc/12.2.0", "openmpi/4.1.6"]'}
    terminal([{**SET, **lists}[path] for path in PATHS])
    assert call("site", "new", "ours") == 0
    for arch in shipped.load_site("ours").archs:
        assert arch.modules == ("gcc/12.2.0", "openmpi/4.1.6")


def test_a_key_can_be_left_out_but_not_a_required_one(terminal: Terminals, capsys: pytest.CaptureFixture[str]) -> None:
    answers = {**SET, "network.compute": "no", "archs.cpu.job.constraint": "-", "files.scratch": "-"}
    lines = [*(["-"] if PATHS[0] == "root" else []), *(answers[path] for path in PATHS if path != "network.proxy")]
    terminal(lines)
    assert call("site", "new", "ours") == 0
    assert "  missing; text is required" in capsys.readouterr().err
    site = shipped.load_site("ours")
    assert (site.network.compute, site.network.proxy, site.files.scratch) == ("no", None, None)
    assert site.arch("cpu").job.constraint is None
    assert site.arch("cpu").job.partition == "normal"


def test_one_can_go_back_and_ask_for_help(terminal: Terminals, capsys: pytest.CaptureFixture[str]) -> None:
    """After going back, Enter takes the answer that was given."""
    lines = [SET[path] for path in PATHS]
    terminal(["/first", "?", "<", "/second", lines[1], "<", "<", "", *lines[1:]])
    assert call("site", "new", "ours") == 0
    out, err = capsys.readouterr()
    assert shipped.load_site("ours").root == "/second"
    assert err.count("`<` goes back") == 3  # twice in the help, once for a folder that is not here
    assert f"(1 of {len(PATHS)}) root [/second]: " in err
    assert "from this machine: root" not in out


@pytest.mark.parametrize(("ends", "code"), [(KeyboardInterrupt, 130), (None, 2)], ids=["Ctrl-C", "Ctrl-D"])
def test_the_answers_stay_when_the_dialogue_is_left(
    terminal: Terminals,
    ends: type[BaseException] | None,
    code: int,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    words: Words,
) -> None:
    terminal([SET[path] for path in PATHS[:5]], ends)
    assert call("site", "new", "ours") == code
    assert not profile_of(tmp_path).exists()
    assert "asks the remaining questions" in capsys.readouterr().err
    draft = profile_of(tmp_path).with_name("ours.toml.draft")
    assert json.loads(draft.read_text())["answers"] == {path: SET[path] for path in PATHS[:5]}
    terminal([SET[path] for path in PATHS[5:]])
    assert call("site", "new", "ours") == 0
    (line,) = [line for line in capsys.readouterr().err.splitlines() if f"`{draft}`" in line]
    words("site", line)
    assert not draft.exists()
    assert shipped.load_site("ours").root == "/shared/provision"


def test_a_damaged_draft_or_one_of_another_template_is_not_used(terminal: Terminals, tmp_path: Path) -> None:
    draft = profile_of(tmp_path).with_name("ours.toml.draft")
    draft.parent.mkdir(parents=True)
    for text in ("{", '{"from": "x", "archs": [], "answers": {"root": "/x"}}', '{"answers": [1]}'):
        draft.write_text(text)
        terminal([SET[path] for path in PATHS])
        assert call("site", "new", "ours") == 0
        assert shipped.load_site("ours").root == "/shared/provision"
        profile_of(tmp_path).unlink()


def test_only_right_answers_for_remaining_blanks_are_kept(
    terminal: Terminals, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The user has filled in a blank with an editor since Ctrl-C, and an older version has kept a wrong answer."""
    path = profile_of(tmp_path)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text((SITES / "generic-slurm.toml").read_text(encoding="utf-8").replace("generic-slurm", "ours"))
    terminal([SET[key] for key in PATHS[:7]], KeyboardInterrupt)
    assert call("site", "new", "ours") == 130
    path.write_text(path.read_text().replace('root = "?"', 'root = "/edited"'))
    draft = path.with_name("ours.toml.draft")
    kept = json.loads(draft.read_text())
    kept["answers"]["network.compute"] = "maybe"
    draft.write_text(json.dumps(kept))
    capsys.readouterr()
    terminal([SET["network.compute"], *(SET[key] for key in PATHS[7:])])
    assert call("site", "new", "ours") == 0
    assert "5 answers" in capsys.readouterr().err
    site = shipped.load_site("ours")
    assert (site.root, site.network.compute) == ("/edited", "proxy")


SINFO = """\
work*|2:32:2|262144|(null)|zen3|1|1-00:00:00|NO
new|2:48:1|524288|(null)|zen4|1|1-00:00:00|NO
accel|1:64:1|524288|gpu:a100:4|zen3|1|2-00:00:00|EXCLUSIVE
"""


MODULES = [describe(name) for name in ("gcc/12.2.0", "openmpi/4.1.6", "mpich/4.0.2", "python/3.11.2", "cmake/3.27.4")]


def test_what_the_machine_shows_of_an_arch_is_one_question(
    terminal: Terminals, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """An arch that is not right is asked one by one; the next gets what they have in common."""
    kinds = [kind for kind in parse_node_kinds(SINFO) if not kind.gpus]
    seen = SeenMachine(kinds=kinds, targets={"zen3", "zen4"}, modules=MODULES, mpi_types={"pmix"})
    monkeypatch.setattr(new, "surroundings", lambda keys: seen)
    general = [SET[path] for path in PATHS if not path.startswith("archs.")]
    one_by_one = ["", "", "", "", "", "", "proj1", "?", *[""] * 8]
    terminal([*general, "no", *one_by_one, "maybe", ""])
    assert call("site", "new", "ours") == 0
    out, err = capsys.readouterr()
    assert err.count("take these 15 values? [yes]: ") == 3  # twice for the second arch
    assert "archs.zen4.modules = gcc/12.2.0 openmpi/4.1.6 python/3.11.2 cmake/3.27.4   (also there: mpich/4.0.2)" in err
    assert "# also there: mpich/4.0.2\n" in err
    assert err.count("`archs.zen3.job.qos`: the quality of service") == 1, "`?` is about the question"
    first, second = shipped.load_site("ours").archs
    assert (first.job.account, second.job.account) == ("proj1", "proj1")
    assert (first.job.partition, second.job.partition) == ("work", "new")
    assert (second.launcher.options, second.node and second.node.cores) == (("--mpi=pmix",), 96)
    (line,) = [line for line in out.splitlines() if line.startswith("advisories of ")]
    assert "`provision audit --stack tensorflow-2.15.1`" in line and "--site ours --arch zen3`" in line


def test_one_can_go_back_into_an_arch_that_was_one_question(
    terminal: Terminals, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    kinds = [kind for kind in parse_node_kinds(SINFO) if not kind.gpus]
    seen = SeenMachine(kinds=kinds, targets={"zen3", "zen4"}, modules=MODULES, mpi_types={"pmix"})
    monkeypatch.setattr(new, "surroundings", lambda keys: seen)
    general = [SET[path] for path in PATHS if not path.startswith("archs.")]
    terminal([*general, "yes", "<", "500", "<", "", "yes"])
    assert call("site", "new", "ours") == 0, capsys.readouterr().err
    first, second = shipped.load_site("ours").archs
    assert (first.node and first.node.memory_gb, second.node and second.node.memory_gb) == (500, 512)


def test_each_kind_of_node_becomes_an_arch_with_what_the_scheduler_shows(
    here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], words: Words
) -> None:
    seen = SeenMachine(kinds=parse_node_kinds(SINFO), targets={"zen3", "zen4"})
    monkeypatch.setattr(new, "surroundings", lambda keys: seen)
    typed = {"root": "/r", "modules.init": "/m", "modules.path": "-", "network.compute": "yes", "files.scratch": "-"}
    for arch in ("zen3", "zen4", "gpu"):
        of_arch = {"modules": "gcc/12 openmpi/4 cuda/12", "mpi.family": "openmpi", "launcher.options": "-"}
        typed |= {f"archs.{arch}.{key}": value for key, value in of_arch.items()}
    typed |= {"archs.gpu.gpu.nccl_home": "-"}
    assert call("site", "new", "ours", *sets(typed)) == 0, capsys.readouterr().err
    out = capsys.readouterr().out
    (note,) = [line for line in out.splitlines() if line.startswith("Slurm shows")]
    words("site", note)
    site = shipped.load_site("ours")
    found = {arch.name: (arch.job.partition, arch.target, arch.node and arch.node.cores) for arch in site.archs}
    assert found == {"zen3": ("work", "zen3", 64), "zen4": ("new", "zen4", 96), "gpu": ("accel", "zen3", 64)}
    assert [arch.job.exclusive for arch in site.archs] == [False, False, True]
    assert site.arch("gpu").gpu is not None
    text = (here / "sites/ours.toml").read_text()
    assert text.count("#") == 1, "only the heading"
    assert (site.runtimes, site.container, site.strategy("multiworker").note) == (("venv",), None, None)
    assert "[files]" not in text and "\n\n\n" not in text


def test_a_kind_of_node_that_was_left_out_is_named_and_added_later(
    here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    seen = SeenMachine(kinds=parse_node_kinds(SINFO), targets={"zen3", "zen4"})
    monkeypatch.setattr(new, "surroundings", lambda keys: seen)
    answers = {path: value for path, value in SET.items() if not path.startswith("archs.gpu")}
    assert call("site", "new", "ours", "--arch", "cpu", *sets({**answers, "archs.cpu.job.partition": "work"})) == 0
    out = capsys.readouterr().out
    assert "`provision site new ours --arch zen4`" in out and "--arch zen3`" not in out
    before = (here / "sites/ours.toml").read_text()
    assert call("site", "new", "ours") == EXIT_USAGE
    assert "--arch NAME" in capsys.readouterr().err
    mine = {"archs.zen4.modules": "gcc/13", "archs.zen4.mpi.family": "mpich", "archs.zen4.launcher.options": "-"}
    assert call("site", "new", "ours", "--arch", "zen4", *sets(mine)) == 0, capsys.readouterr().err
    text = (here / "sites/ours.toml").read_text()
    assert text.startswith(before.rstrip()), "what was there is as it was"
    added = shipped.load_site("ours").arch("zen4")
    assert (added.job.partition, added.node and added.node.memory_gb, added.gpu) == ("new", 512, None)
    assert call("site", "new", "ours", "--arch", "my-gpus", "--set", "archs.my-gpus.target=zen3") == 0
    assert "archs.my-gpus.gpu.nccl_home" in capsys.readouterr().out


def test_a_new_profile_does_not_name_the_sources_of_its_template(
    terminal: Terminals, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    terminal([SET[path] for path in PATHS])
    assert call("site", "new", "ours") == 0
    text = profile_of(tmp_path).read_text()
    assert "ml-dist, README" not in text and "[sources" not in text
    assert text.startswith("# The profile of `ours`, written by `provision site new` from `generic-slurm` on 20")
    assert (shipped.load_site("ours").title, shipped.load_site("ours").sources) == ("ours", ())
    lines = [line for line in capsys.readouterr().err.splitlines() if line.startswith(("#", "`", "Enter", "Ctrl"))]
    assert max(map(len, lines)) < 80, "no line of a question is wider than a terminal"


def test_a_wrong_form_is_described_in_words(
    terminal: Terminals, tmp_path: Path, capsys: pytest.CaptureFixture[str], words: Words
) -> None:
    """At once, and the question comes again."""
    wrong = {
        "root": "relative/path",
        "network.compute": "perhaps",
        "network.proxy": "http://me:secret@p:1",
        "archs.cpu.job.partition": "big mem",
        "archs.cpu.target": "EPYC 7763",
        "archs.gpu.target": "zen33",
        "archs.cpu.mpi.family": "openMPI",
        "archs.cpu.node.cores": "lots",
        "archs.cpu.node.threads": "0x10",
        "archs.gpu.gpu.capabilities": "8.0",
    }
    terminal([line for path in PATHS for line in (*([wrong[path]] if path in wrong else []), SET[path])])
    assert call("site", "new", "ours") == 0
    err = capsys.readouterr().err.splitlines()
    for path in wrong:
        assert sum(f"of {len(PATHS)}) {path}" in line for line in err) == 2, path
    words("site", "\n".join(line for line in err if line.startswith("  ") and "import archspec" not in line))
    assert shipped.load_site("ours").arch("gpu").target == "zen3"
    assert [path.name for path in profile_of(tmp_path).parent.iterdir()] == ["ours.toml"]
