"""`provision test --all`: everything that users load is proved again, here or in jobs, and compared with its history."""

from __future__ import annotations

import dataclasses
import json
import subprocess
from pathlib import Path, PurePosixPath

import pytest

from golden_files import Words, slurm_site
from parts.cli import call, envelope
from parts.json_page import faults
from parts.published import put_proved
from parts.records import PROOF
from parts.tiny import make_site
from provision.commands import test as verb_test
from provision.commands.shared import following
from provision.errors import JobError
from provision.jobs.build_job import BuildScript, Submitter, proof_script
from provision.machine.configuration import shipped
from provision.machine.configuration.search_path import shipped_root
from provision.machine.root.publishing import Publisher
from provision.machine.root.store import Store
from provision.machine.submission.render_jobs import render_build_job
from provision.model.layout import EnvironmentId, Layout

Captured = pytest.CaptureFixture[str]


@pytest.mark.real
def test_a_proof_that_is_slower_than_the_history_is_a_finding_that_stays(tmp_path: Path) -> None:
    site = make_site(tmp_path)
    site.good("build", "--site", "one")
    (name,) = site.store.pointers().values()
    records = Path(site.store.layout.records_folder(EnvironmentId.parse(name)))
    first = json.loads((records / "verdict.json").read_text())
    for day in ("1", "2"):  # the machine was twice as fast then
        first["figures"]["images_per_second"] = 2000.0 + int(day)
        folder = records / "tests" / f"2026010{day}T000000-1"
        folder.mkdir(parents=True)
        (folder / "verdict.json").write_text(json.dumps(first))
    again = site.run("test", "--all", "--site", "one", "--json", "--events", str(tmp_path / "events"))
    assert again.returncode == 1
    result = json.loads(again.stdout)["result"]
    assert faults(result, "test") == []
    (row,) = result["environments"]
    assert row["state"] == "worse"
    assert row["verdict"]["findings"][0].startswith("1,000 images/s are ")
    assert '"kind": "finished"' in (tmp_path / "events").read_text()
    assert "worse than before" in site.run("list", "--site", "one").stdout


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    """Two archs of a cluster with a published environment each."""
    monkeypatch.setenv("PROVISION_ROOT", str(tmp_path))
    monkeypatch.setenv("EXAMPLE_SITE", "/site")
    text = (Path(shipped_root()) / "sites" / "example-slurm.toml").read_text()
    (tmp_path / "sites").mkdir()
    (tmp_path / "sites" / "ours.toml").write_text(text.replace('name = "example-slurm"', 'name = "ours"'))
    monkeypatch.setenv("PROVISION_CONFIG", str(tmp_path))
    site = shipped.load_site("ours")
    made = Store(Layout(PurePosixPath(site.root)))
    for arch in site.archs[:2]:
        env = EnvironmentId(arch.name, "tensorflow", "2.15.1", "0000000000")
        put_proved(made, env)
        Publisher(made).publish(env)
    return made


def test_each_arch_gets_one_job_and_what_it_proved_is_in_one_table(
    store: Store, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    scripts: list[str] = []

    def submit(job: BuildScript, store: Store) -> str:
        scripts.append(job.text)
        return str(len(scripts))

    def ended(jobs: object) -> dict[str, object]:
        """The first job proves, the second is killed."""
        env = EnvironmentId.parse(sorted(store.pointers().values())[0])
        folder = store.make_test_folder(Path(store.layout.records_folder(env)) / "tests")
        (folder / "verdict.json").write_text(json.dumps(dataclasses.replace(PROOF, date="2027-01-01").to_dict()))
        return {"1": None, "2": JobError("job 2 ran out of time", state="TIMEOUT")}

    monkeypatch.setattr(verb_test, "submit", submit)
    monkeypatch.setattr(following, "follow_all", ended)
    assert call("test", "--all", "--submit", "--site", "ours", "--json") == 1
    body = json.loads(capsys.readouterr().out)
    states = [(row["state"], row["job"]) for row in body["result"]["environments"]]
    assert states == [("passed", "1"), ("failed", "2")]
    assert body["result"]["environments"][1]["error"]["message"] == "job 2 ran out of time"
    assert len(scripts) == 2
    for text in scripts:
        subprocess.run(["bash", "-n"], input=text, text=True, check=True)
        assert " test --all --site " in text
    assert call("test", "--all", "--submit", "--no-wait", "--site", "ours") == 4


def test_the_job_has_the_shape_of_the_largest_proof() -> None:
    site = slurm_site()
    arch = site.arch(None)
    small = shipped.load_stack("tensorflow-2.15.1")
    one = dataclasses.replace(small, proof_program="single", horovod=None)
    submitter = Submitter(tool=("provision",), jobs="/site/root/jobs/x")
    script = proof_script(site, arch, [one, small], submitter, None)
    assert script.directives == proof_script(site, arch, [small], submitter, None).directives
    assert script.directives != proof_script(site, arch, [one], submitter, None).directives
    text = render_build_job(script, "test").text
    assert f"exec provision test --all --site {site.origin} --arch {arch.name} \\\n  --events " in text


@pytest.mark.parametrize(
    ("command", "kind", "message"),
    [
        (("--all", "x"), "usage", "`x` and `--all`"),
        (("--provided", "--arch", "haswell", "--submit"), "usage", "`--submit`"),
        (("--all", "--no-wait"), "usage", "`--no-wait`"),
        (("--all", "--arch", "gone"), "unknown-arch", "`gone`"),
        (("--all",), "plan", "job"),
        (("--all", "--submit", "--thorough"), "usage", "`--submit`"),
    ],
)
def test_a_bad_request_is_one_clear_error(
    command: tuple[str, ...], kind: str, message: str, store: Store, capsys: Captured, words: Words
) -> None:
    assert call("test", *command, "--site", "ours", "--json") in (1, 2)
    error = envelope(capsys)["error"]
    assert (error["kind"], message in error["message"]) == (kind, True), error
    words("test", error["message"])
