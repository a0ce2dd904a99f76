"""The questions of `site new` on a terminal: checked answers, the way back, and the draft that stays."""

from __future__ import annotations

import io
import json
from collections.abc import Iterable
from pathlib import Path

import pytest

from golden_files import Words
from parts.cli import call
from parts.profiles import FILLED, SITES
from provision.commands.site import new
from provision.machine.configuration import shipped
from provision.planning.site_proposals import Surroundings
from provision.profile.blanks import blanks
from provision.schedulers.slurm import parse_node_kinds

BLANKS = [blank.path for blank in blanks((SITES / "generic-slurm.toml").read_text(encoding="utf-8"), shipped.parse)]
RIGHT = {path: " ".join(value) if isinstance(value, list) else str(value) for path, value in FILLED.items()}
Captured = pytest.CaptureFixture[str]


class Terminal(io.StringIO):
    """Lines that a person types; then Ctrl-C instead of Ctrl-D if `ends` says so."""

    ends: type[BaseException] | None = None

    def readline(self, *_: object) -> str:  # type: ignore[override]
        line = super().readline()
        if not line and self.ends:
            raise self.ends
        return line


@pytest.fixture
def terminal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterable[object]:
    """A function that types these lines into the next command."""
    for name in ("SCRATCH", "https_proxy", "LMOD_PKG", "MODULESHOME", "PROVISION_ROOT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(new, "can_ask", lambda: True)
    monkeypatch.setattr(new, "surroundings", lambda keys: Surroundings())

    def type_lines(lines: Iterable[str], ends: type[BaseException] | None = None) -> None:
        stdin = Terminal("".join(f"{line}\n" for line in lines))
        stdin.ends = ends
        monkeypatch.setattr("sys.stdin", stdin)

    return type_lines  # type: ignore[return-value]


def profile_of(tmp_path: Path, name: str = "ours") -> Path:
    return tmp_path / f"settings/provision/sites/{name}.toml"


def test_a_file_that_is_not_on_this_machine_is_taken_with_a_note(  # type: ignore[no-untyped-def]
    terminal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    (tmp_path / "bash").write_text("")
    monkeypatch.setenv("INIT", str(tmp_path))
    for typed, noted in (("/nofile", True), (str(tmp_path / "bash"), False), ("${INIT}/bash", False)):
        terminal([{**RIGHT, "modules.init": typed}[path] for path in BLANKS])
        assert call("site", "new", "ours") == 0
        note = f"  `{typed}`, the answer for `modules.init`, does not exist on this machine; `<` goes back\n"
        assert (note in capsys.readouterr().err) is noted
        assert f'init = "{typed}"' in profile_of(tmp_path).read_text()
        profile_of(tmp_path).unlink()


def test_the_mpi_type_of_srun_is_a_question_with_a_proposal(  # type: ignore[no-untyped-def]
    terminal, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    seen = Surroundings(mpi_types=("pmix", "pmi2"))
    monkeypatch.setattr(new, "surroundings", lambda keys: seen)
    answers = {
        **RIGHT,
        "archs.cpu.mpi.family": "mpich",
        "archs.cpu.launcher.options": "",
        "archs.gpu.launcher.options": "-",
    }
    terminal([answers[path] for path in BLANKS])
    assert call("site", "new", "ours") == 0
    assert "archs.cpu.launcher.options [--mpi=pmi2]: " in capsys.readouterr().err
    site = shipped.load_site("ours")
    assert [arch.launcher.options for arch in site.archs] == [("--mpi=pmi2",), ()]


def test_a_list_can_be_typed_with_commas_or_as_in_toml(terminal) -> None:  # type: ignore[no-untyped-def]
    lists = {"archs.cpu.modules": "gcc/12.2.0, openmpi/4.1.6", "archs.gpu.modules": '["gcc/12.2.0", "openmpi/4.1.6"]'}
    terminal([{**RIGHT, **lists}[path] for path in BLANKS])
    assert call("site", "new", "ours") == 0
    for arch in shipped.load_site("ours").archs:
        assert arch.modules == ("gcc/12.2.0", "openmpi/4.1.6")


def test_a_key_can_be_left_out_but_not_a_required_one(terminal, capsys: Captured) -> None:  # type: ignore[no-untyped-def]
    answers = {**RIGHT, "network.compute": "no", "archs.cpu.job.constraint": "-", "files.scratch": "-"}
    lines = [*(["-"] if BLANKS[0] == "root" else []), *(answers[path] for path in BLANKS if path != "network.proxy")]
    terminal(lines)
    assert call("site", "new", "ours") == 0
    assert "  missing; text is required" in capsys.readouterr().err
    site = shipped.load_site("ours")
    assert (site.network.compute, site.network.proxy, site.files.scratch) == ("no", None, None)
    assert site.arch("cpu").job.constraint is None
    assert site.arch("cpu").job.partition == "normal"


def test_one_can_go_back_and_ask_for_help(terminal, capsys: Captured) -> None:  # type: ignore[no-untyped-def]
    """After going back, Enter takes the answer that was given."""
    lines = [RIGHT[path] for path in BLANKS]
    terminal(["/first", "?", "<", "/second", lines[1], "<", "<", "", *lines[1:]])
    assert call("site", "new", "ours") == 0
    out, err = capsys.readouterr()
    assert shipped.load_site("ours").root == "/second"
    assert err.count("`<` goes back") == 3  # twice in the help, once for a folder that is not here
    assert f"(1 of {len(BLANKS)}) root [/second]: " in err
    assert "from this machine: root" not in out


@pytest.mark.parametrize(("ends", "code"), [(KeyboardInterrupt, 130), (None, 2)], ids=["Ctrl-C", "Ctrl-D"])
def test_the_answers_stay_when_the_dialogue_is_left(  # type: ignore[no-untyped-def]
    terminal, ends: type[BaseException] | None, code: int, tmp_path: Path, capsys: Captured, words: Words
) -> None:
    terminal([RIGHT[path] for path in BLANKS[:5]], ends)
    assert call("site", "new", "ours") == code
    assert not profile_of(tmp_path).exists()
    assert "asks the remaining questions" in capsys.readouterr().err
    draft = profile_of(tmp_path).with_name("ours.toml.draft")
    assert json.loads(draft.read_text())["answers"] == {path: RIGHT[path] for path in BLANKS[:5]}
    terminal([RIGHT[path] for path in BLANKS[5:]])
    assert call("site", "new", "ours") == 0
    (line,) = [line for line in capsys.readouterr().err.splitlines() if f"`{draft}`" in line]
    words("site", line)
    assert not draft.exists()
    assert shipped.load_site("ours").root == "/shared/provision"


def test_a_damaged_draft_or_one_of_another_template_is_not_used(terminal, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    draft = profile_of(tmp_path).with_name("ours.toml.draft")
    draft.parent.mkdir(parents=True)
    for text in ("{", '{"from": "x", "archs": [], "answers": {"root": "/x"}}', '{"answers": [1]}'):
        draft.write_text(text)
        terminal([RIGHT[path] for path in BLANKS])
        assert call("site", "new", "ours") == 0
        assert shipped.load_site("ours").root == "/shared/provision"
        profile_of(tmp_path).unlink()


def test_only_right_answers_for_remaining_blanks_are_kept(terminal, tmp_path: Path, capsys: Captured) -> None:  # type: ignore[no-untyped-def]
    """The user has filled in a blank with an editor since Ctrl-C, and an older version has kept a wrong answer."""
    path = profile_of(tmp_path)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text((SITES / "generic-slurm.toml").read_text(encoding="utf-8").replace("generic-slurm", "ours"))
    terminal([RIGHT[key] for key in BLANKS[:5]], KeyboardInterrupt)
    assert call("site", "new", "ours") == 130
    path.write_text(path.read_text().replace('root = "?"', 'root = "/edited"'))
    draft = path.with_name("ours.toml.draft")
    kept = json.loads(draft.read_text())
    kept["answers"]["network.compute"] = "maybe"
    draft.write_text(json.dumps(kept))
    capsys.readouterr()
    terminal([RIGHT["network.compute"], *(RIGHT[key] for key in BLANKS[5:])])
    assert call("site", "new", "ours") == 0
    assert "3 answers" in capsys.readouterr().err
    site = shipped.load_site("ours")
    assert (site.root, site.network.compute) == ("/edited", "proxy")


def test_nodes_of_the_scheduler_are_proposed_and_absent_archs_left_out(  # type: ignore[no-untyped-def]
    terminal, monkeypatch: pytest.MonkeyPatch, capsys: Captured, words: Words
) -> None:
    seen = Surroundings(kinds=parse_node_kinds("work*|2:32:2|262144|(null)|zen3\n"), targets={"zen3"})
    monkeypatch.setattr(new, "surroundings", lambda keys: seen)
    taken = (
        "job.partition",
        "job.constraint",
        "target",
        *(f"node.{key}" for key in ("sockets", "cores", "threads", "memory_gb")),
    )
    mine = {path: RIGHT[path] for path in BLANKS if not path.startswith("archs.gpu")}
    terminal(["" if path.removeprefix("archs.cpu.") in taken else answer for path, answer in mine.items()])
    assert call("site", "new", "ours") == 0
    out, err = capsys.readouterr()
    (note,) = [line for line in err.splitlines() if "`--arch gpu`" in line]
    words("site", note)
    (arch,) = shipped.load_site("ours").archs
    assert (arch.job.partition, arch.job.constraint, arch.target) == ("work", "zen3", "zen3")
    assert arch.node is not None
    assert (arch.node.sockets, arch.node.cores, arch.node.threads, arch.node.memory_gb) == (2, 64, 128, 256)
    assert "archs.cpu.node.cores = 64" in out
    assert "from this machine: root" not in out


def test_a_new_profile_does_not_name_the_sources_of_its_template(terminal, tmp_path: Path, capsys: Captured) -> None:  # type: ignore[no-untyped-def]
    terminal([RIGHT[path] for path in BLANKS])
    assert call("site", "new", "ours") == 0
    text = profile_of(tmp_path).read_text()
    assert "ml-dist, README" not in text and "[sources" not in text
    assert text.startswith("# The profile of `ours`, written by `provision site new` from `generic-slurm` on 20")
    assert (shipped.load_site("ours").title, shipped.load_site("ours").sources) == ("ours", ())
    lines = [line for line in capsys.readouterr().err.splitlines() if line.startswith(("#", "`", "Enter", "Ctrl"))]
    assert max(map(len, lines)) < 80, "no line of a question is wider than a terminal"


def test_a_wrong_form_is_described_in_words(terminal, tmp_path: Path, capsys: Captured, words: Words) -> None:  # type: ignore[no-untyped-def]
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
    terminal([line for path in BLANKS for line in (*([wrong[path]] if path in wrong else []), RIGHT[path])])
    assert call("site", "new", "ours") == 0
    err = capsys.readouterr().err.splitlines()
    for path in wrong:
        assert sum(f"of {len(BLANKS)}) {path}" in line for line in err) == 2, path
    words("site", "\n".join(line for line in err if line.startswith("  ") and "import archspec" not in line))
    assert shipped.load_site("ours").arch("gpu").target == "zen3"
    assert [path.name for path in profile_of(tmp_path).parent.iterdir()] == ["ours.toml"]
