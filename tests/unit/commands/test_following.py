"""What is said of a build that runs elsewhere: how to follow it, resume, or cancel."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from golden_files import Words, facts_of, request_for, slurm_site
from parts.cli import call
from parts.json_page import faults
from parts.paths import REPOSITORY
from parts.records import ENVIRONMENT, PROOF, put_published
from provision.commands.shared import following
from provision.commands.shared.carry_out import waiting_text
from provision.commands.shared.environments import read_store
from provision.commands.shared.following import stopped_following
from provision.machine.configuration.shipped import load_site
from provision.machine.root.publishing import Publisher
from provision.machine.root.store import Store
from provision.machine.submission import follow
from provision.machine.submission import submit as submission
from provision.model.event import Event, emit_event
from provision.model.facts import Existing
from provision.model.layout import modulefile_path
from provision.planning.planner import make_plan
from provision.schedulers.status import JobStatus

PLAN = make_plan(request_for(slurm_site()), facts_of(slurm_site()), Existing())
HOLDER = {"user": "alice", "host": "n1", "pid": 7, "since": "noon"}


def test_waiting_for_a_job_shows_how_to_follow_it(words: Words) -> None:
    text = waiting_text(PLAN, dict(HOLDER), "cluster")
    assert [name for name in (str(PLAN.environment), "alice", "n1", "process 7", "noon") if name not in text] == []
    assert "job" not in text
    words("build", text.replace(str(PLAN.environment), "ENVIRONMENT"))
    text = waiting_text(PLAN, {**HOLDER, "job": "42"}, "cluster")
    assert "job 42" in text and "`provision job follow 42 --site cluster`" in text
    words("build", text.replace(str(PLAN.environment), "ENVIRONMENT"))


def test_stopping_to_follow_shows_how_to_resume_or_cancel(words: Words) -> None:
    error = stopped_following("42", "provision job follow 42 --site cluster", slurm_site())
    assert "`provision job follow 42 --site cluster`" in str(error.hint) and "`scancel 42`" in str(error.hint)
    words("job", "\n".join(error.to_lines()))
    assert error.exit_code == 130


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    """The root of the site `cluster` with Slurm and Lmod, at which job 7 has ended."""
    monkeypatch.setenv("PROVISION_ROOT", str(tmp_path))
    config = tmp_path / "config" / "sites"
    config.mkdir(parents=True)
    text = (REPOSITORY / "sites" / "local.toml").read_text().replace('target = "native"', 'target = "zen3"')
    text = text.replace('name = "local"', 'name = "cluster"') + '\n[scheduler]\nsystem = "slurm"\n'
    (config / "cluster.toml").write_text(text)
    (config / "lmod.toml").write_text(
        text.replace('"cluster"', '"lmod"') + '[modules]\nsystem = "lmod"\ninit = "/i"\npath = ["/site/modules"]\n'
    )
    monkeypatch.setenv("PROVISION_CONFIG", str(config.parent))
    store = read_store(load_site("cluster"))
    status = JobStatus(job="7", state="COMPLETED", run_time="00:02:54")
    monkeypatch.setattr(follow, "status", lambda *_: status)
    monkeypatch.setattr(submission, "status", lambda *_: status)
    store.make_jobs()
    return store


def put_events(store: Store, environment: str = str(ENVIRONMENT)) -> None:
    """The events of job 7, which built this environment."""
    events = [
        Event(kind="plan", environment=environment, steps=(("proof", "train", "create"), ("publish", "x", "create"))),
        Event(kind="finished", step="proof", seconds=170.0),
        Event(kind="finished", step="publish", seconds=4.0),
    ]
    (store.jobs / "x-7.events.jsonl").write_text("".join(map(emit_event, events)))


@pytest.mark.parametrize("build", [True, False])
def test_a_followed_build_ends_with_the_proof_and_the_command_that_loads_it(
    build: bool, cluster: Store, capsys: pytest.CaptureFixture[str], words: Words
) -> None:
    put_published(cluster)
    if build:
        put_events(cluster)
    assert call("job", "follow", "7", "--site", "cluster") == 0
    out, err = capsys.readouterr()
    assert "job 7" in out and "00:02:54" in out
    words("job", out.splitlines()[0])
    if build:
        assert [name for name in ("2 min 54 s", "job 7", str(ENVIRONMENT), PROOF.summary) if name not in err] == []
        words("job", "\n".join(line for line in err.splitlines() if "advisories" not in line))
        assert out.splitlines()[1:] == [f'eval "$(provision activate --site cluster {ENVIRONMENT})"']
    assert call("job", "follow", "7", "--site", "cluster", "--json") == 0
    result = json.loads(capsys.readouterr().out)["result"]
    assert faults(result, "job follow") == []
    assert (result["environment"], result["published"]) == ((str(ENVIRONMENT), True) if build else (None, None))


def test_a_followed_build_that_was_unpublished_names_the_command_that_publishes_it(
    cluster: Store, capsys: pytest.CaptureFixture[str], words: Words
) -> None:
    put_published(cluster)
    put_events(cluster)
    modules = cluster.layout.modules(ENVIRONMENT.arch) / "lua"
    candidate = cluster.layout.candidate(ENVIRONMENT, "lua")
    module = f"{ENVIRONMENT.name}/{ENVIRONMENT.version}"
    follow = ("job", "follow", "7", "--site", "lmod")
    assert call(*follow) == 0
    out, err = capsys.readouterr()
    line = f"module use /site/modules; module use {modules}; module load {module}"
    assert out.splitlines()[1] == line
    assert call("report", str(cluster.root / "pages"), "--site", "lmod", "--markdown") == 0
    assert any(line in page.read_text() for page in (cluster.root / "pages").rglob("*.md"))
    assert call("activate", str(ENVIRONMENT), "--site", "lmod") != 0
    assert f"`{line}`" in capsys.readouterr().err
    Publisher(cluster).unpublish(ENVIRONMENT)
    assert call(*follow) == 0
    out, err = capsys.readouterr()
    assert len(out.splitlines()) == 1 and "job 7" in out
    assert f"`provision publish --site lmod {ENVIRONMENT}`" in err
    words("job", "\n".join(line for line in err.splitlines() if "advisories" not in line))
    assert call(*follow, "--json") == 0
    result = json.loads(capsys.readouterr().out)["result"]
    assert faults(result, "job follow") == []
    assert (result["environment"], result["published"], result["use"]) == (str(ENVIRONMENT), False, None)
    # Before it is published, it has a module of its own.
    path = Path(modulefile_path(candidate, "lua", ENVIRONMENT.name, ENVIRONMENT.version))
    path.parent.mkdir(parents=True)
    path.write_text("-- a modulefile\n")
    assert call(*follow) == 0
    assert f"module use {candidate}; module load {module}\n" in capsys.readouterr().out


@pytest.mark.parametrize("name", ["../x", "a/b/c-d", "../../x/y-0"])
def test_events_that_name_no_environment_below_the_root_do_no_harm(
    name: str, cluster: Store, capsys: pytest.CaptureFixture[str], words: Words
) -> None:
    put_events(cluster, name)
    assert call("job", "follow", "7", "--site", "cluster") == 0
    out = capsys.readouterr().out
    assert len(out.splitlines()) == 1 and "job 7" in out
    words("job", out)


def test_a_result_that_this_machine_sees_late_is_waited_for(
    cluster: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_published(cluster)
    put_events(cluster)
    records = Path(cluster.layout.records_folder(ENVIRONMENT))
    hidden = tmp_path / "hidden"
    records.rename(hidden)
    waits: list[float] = []

    def later(seconds: float) -> None:
        waits.append(seconds)
        if len(waits) == 3:
            hidden.rename(records)

    waited = follow.wait_until_seen
    monkeypatch.setattr(following, "wait_until_seen", lambda *given: waited(*given, pause=later))
    assert call("job", "follow", "7", "--site", "cluster") == 0
    assert len(waits) == 3


def test_a_result_that_never_comes_is_an_error_that_names_where_it_should_be(
    cluster: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(follow, "LATE_S", 0.0)
    put_events(cluster)
    assert call("job", "follow", "7", "--site", "cluster") == 1
    assert str(cluster.layout.records_folder(ENVIRONMENT)) in capsys.readouterr().err


def test_the_output_of_a_build_that_is_not_here_is_an_error_without_its_events(
    cluster: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(follow, "LATE_S", 0.0)
    output = f"{cluster.layout.jobs}/x/build-7.out"
    status = JobStatus(job="7", state="COMPLETED", run_time="00:02:54", output=output)
    monkeypatch.setattr(follow, "status", lambda *_: status)
    assert call("job", "follow", "7", "--site", "cluster") == 1
    Path(output).parent.mkdir(exist_ok=True)
    Path(output).touch()
    assert call("job", "follow", "7", "--site", "cluster") == 0
