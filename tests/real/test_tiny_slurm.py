"""Jobs of the light stack on a real Slurm: several archs at once, and jobs that the scheduler ends.

Slurm, its nodes (emulated), its signals, preemption and queue are real; the packages are the small ones of `parts/tiny.py`.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from parts.slurm import SlurmCluster
from parts.tiny import TAG, make_site, newer_locks
from parts.tiny_cluster import NAME, NODES, PARTITIONS, SETTINGS, TinyCluster, wait_for

pytestmark = [pytest.mark.real, pytest.mark.slurm]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TinyCluster]:
    """The site, with a stack that both archs have built and users load."""
    site = make_site(tmp_path_factory.mktemp("tiny"))
    with SlurmCluster(node_groups=NODES, partitions=PARTITIONS, settings=SETTINGS) as slurm:
        one = TinyCluster(site=site, slurm=slurm)
        one.write_profile()
        done = one.good("build", "--all-archs", "--submit", "--json")
        builds = json.loads(done.stdout)["result"]["builds"]
        assert [(build["arch"], build["state"]) for build in builds] == [("a", "published"), ("b", "published")]
        assert len({build["job"] for build in builds}) == 2
        yield one


# Whose root


@pytest.mark.parametrize("words", [("--arch", "a"), ("--all-archs",)])
def test_what_a_job_built_below_another_root_is_not_called_published(
    cluster: TinyCluster, tmp_path: Path, words: tuple[str, ...]
) -> None:
    """The login node has another folder there than the nodes: an export that was not mounted."""
    site, mine = cluster.site, tmp_path / "mine"
    if os.geteuid() != 0:
        pytest.skip("only root can mount a folder over another one")
    shutil.copytree(site.root, mine, symlinks=True)
    cluster.write_profile(value=f"elsewhere {words[0]}")
    mount = 'mount --bind "$1" "$2" && shift 2 && exec "$@"'
    before = ("unshare", "--mount", "sh", "-c", mount, "sh", str(mine), str(site.root))

    def elsewhere(*verb: str) -> subprocess.CompletedProcess[str]:
        environ = site.environ(**cluster.slurm.environ, TINY_LATE="2")
        argv = [*before, *site.argv(*verb, "--site", NAME)]
        return subprocess.run(argv, env=environ, capture_output=True, text=True, timeout=300, check=False)

    try:
        done = elsewhere("build", *words, "--submit")
        assert done.returncode == 1, done.stderr
        assert "ended well, but" in done.stderr
        assert "published by" not in done.stderr
        assert "activate" not in done.stdout
        job = re.findall(r"submitted job (\d+)", done.stderr)[0]
        followed = elsewhere("job", "follow", job)
        assert followed.returncode == 1, followed.stdout + followed.stderr
        assert cluster.run("job", "follow", job).returncode == 0
    finally:
        cluster.write_profile()


# Several archs


def test_everything_is_proved_again_in_one_job_for_each_arch_and_one_table(cluster: TinyCluster) -> None:
    done = cluster.good("test", "--all", "--submit")
    assert done.stderr.count("submitted job") == 2
    assert [line.split()[0] for line in done.stdout.splitlines()] == ["STATE", "passed", "passed", "2"]
    (cluster.site.folder / "break-b").touch()
    try:
        failed = cluster.run("test", "--all", "--submit")
    finally:
        (cluster.site.folder / "break-b").unlink()
    assert failed.returncode == 1
    assert [line.split()[0] for line in failed.stdout.splitlines()] == ["STATE", "passed", "failed", "1"]
    assert "b: error: " in failed.stderr
    assert "this arch is broken on purpose" in failed.stderr
    assert "a: error: " not in failed.stderr


def test_one_environment_is_proved_again_in_a_job_of_its_own(cluster: TinyCluster) -> None:
    env = next(name for name in cluster.site.store.pointers().values() if name.startswith("a/"))
    refused = cluster.run("test", env)
    assert f"`provision test {env} --submit --site {NAME}`" in refused.stderr, refused.stderr
    done = cluster.good("test", env, "--submit", "--json")
    (proved,) = json.loads(done.stdout)["result"]["environments"]
    assert (proved["environment"], proved["state"], proved["verdict"]["passed"]) == (env, "passed", True)
    assert done.stderr.count("submitted job") == 1


def test_an_upgrade_by_jobs_publishes_all_archs_or_none_and_is_taken_back(cluster: TinyCluster) -> None:
    site, before = cluster.site, cluster.site.store.pointers()
    lock = site.folder / "config" / "requirements" / f"tiny-{TAG}.txt"
    locked, locks = lock.read_text(), newer_locks(site, "1.1")
    (site.folder / "break-b").touch()
    failed = cluster.run("upgrade", "tiny", "--submit", "--locks", str(locks))
    (site.folder / "break-b").unlink()
    assert failed.returncode == 1
    assert failed.stderr.count("submitted job") == 2
    for text in (
        "failed on `b`, so nothing was published",
        "this arch is broken on purpose",
        "a: proved, not published",
    ):
        assert text in failed.stderr
    assert (site.store.pointers(), lock.read_text()) == (before, locked)
    done = cluster.run("upgrade", "tiny", "--submit", "--no-wait")
    assert done.returncode == 4, done.stderr
    assert done.stdout.startswith("b  submitted, job "), "what is proved is kept"
    job = done.stdout.split()[-1]
    assert cluster.slurm.wait(job) == "COMPLETED", cluster.output(job)
    assert site.store.pointers() == before
    cluster.good("upgrade", "tiny", "--submit")
    after = site.store.pointers()
    assert (sorted(after), lock.read_text()) == (sorted(before), (locks / lock.name).read_text())
    assert not set(before.values()) & set(after.values())
    cluster.good("upgrade", "tiny", "--undo")
    assert (site.store.pointers(), lock.read_text()) == (before, locked)


def test_no_wait_prints_the_job_id_and_a_second_build_is_refused_meanwhile(cluster: TinyCluster) -> None:
    """Exit 4: a job was left; the hint of the second `build` is the command that follows it to its end."""
    job, _ = cluster.held_build("no-wait")
    assert job.isdigit()
    second = cluster.run("build", "--arch", "a", "--submit")
    assert second.returncode == 1
    assert f"provision job follow {job}" in second.stderr
    (cluster.site.folder / "hold").unlink()
    follow = json.loads(cluster.good("job", "follow", job, "--json").stdout)
    assert follow["ok"], follow
    assert follow["result"]["state"] == "COMPLETED"
    assert "[10/10] publish: done" in cluster.output(job)


# Jobs that the scheduler ends


def finish(cluster: TinyCluster, job: str) -> str:
    """Let a job that was put back into the queue end well; what it printed the second time."""
    first = len(cluster.output(job))
    cluster.start_now(job)
    assert cluster.slurm.wait(job) == "COMPLETED", cluster.output(job)
    again = cluster.output(job)[first:]
    assert re.search(r"4 compile +Horovod 0\.1\.0 and mpi4py 0\.2\.0 from source  \(kept\)", again)
    assert "[10/10] publish: done" in again
    assert "[2/10] install" not in again
    assert cluster.locks() == []
    return again


def test_a_cancelled_build_ends_its_programs_frees_the_lock_and_goes_on(cluster: TinyCluster) -> None:
    job, proof = cluster.held_build("cancelled")
    assert cluster.locks() != []
    cluster.slurm.run("scancel", job)
    took = wait_for(
        "the end of the proof and of the lock", lambda: not (Path(f"/proc/{proof}").exists() or cluster.locks())
    )
    assert took < 5
    assert cluster.slurm.wait(job) == "CANCELLED"
    wait_for("the last words", lambda: "hint:" in cluster.output(job))
    said = cluster.output(job)
    assert "error: ended by a signal; finished steps are kept" in said
    assert "run the same command again: it does the steps that are not done" in said
    (cluster.site.folder / "hold").unlink()
    done = cluster.good("build", "--arch", "a", "--submit")
    assert "2 of 10 steps to do" in done.stderr
    assert "took over" not in done.stderr


def test_a_build_whose_node_an_urgent_job_takes_goes_on_after_the_requeue(cluster: TinyCluster) -> None:
    job, proof = cluster.held_build("preempted")
    follows = cluster.site.start("job", "follow", job, "--site", NAME, **cluster.slurm.environ)
    urgent = cluster.slurm.submit("#!/bin/sh\ntrue\n", "--partition=urgent", "--exclusive", "--output=/dev/null")
    wait_for("the end of the proof", lambda: not Path(f"/proc/{proof}").exists())
    assert cluster.slurm.wait(urgent) == "COMPLETED"
    assert "took over" not in finish(cluster, job), "it freed its lock"
    said = follows.communicate(timeout=60)[1]
    assert follows.returncode == 0, said
    assert "[10/10] publish: done" in said, "also what follows the job reads the events of its second run"
    assert "error" not in said


def test_a_build_goes_back_into_the_queue_before_its_time_is_over(cluster: TinyCluster) -> None:
    """Slurm announces the limit at one of its looks, every half a minute, and not earlier than it was asked to."""
    job, proof = cluster.held_build("announced")
    cluster.slurm.run("scontrol", "update", f"JobId={job}", "EndTime=now+130")
    wait_for("the end of the proof", lambda: not Path(f"/proc/{proof}").exists())
    said = f"the time of job {job} is nearly over; finished steps are kept; it goes back into the queue"
    wait_for("the last words", lambda: said in cluster.output(job))
    assert "took over" not in finish(cluster, job), "it freed its lock"


# One image of an environment


DELIVERED = """
import json, os, sys, tensorflow
kinds = [line.split(" - ")[1].split()[0] for line in open("/proc/self/mountinfo")]
print(json.dumps([kinds.count("fuse.squashfuse_ll"), os.environ.get("PROVISION_DELIVERED", "")]))
print(os.path.realpath(tensorflow.__file__), *sys.argv[1:])
"""


def test_a_job_copies_the_image_to_its_node_mounts_it_and_leaves_nothing(
    cluster: TinyCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if shutil.which("squashfuse_ll") is None or not Path("/dev/fuse").exists():
        pytest.skip("needs squashfuse and /dev/fuse")
    monkeypatch.chdir(tmp_path)
    temporary = cluster.site.folder / "tmp"
    before = set(temporary.iterdir())
    cluster.write_profile(value="image")
    profile = cluster.site.folder / "config" / "sites" / f"{NAME}.toml"
    profile.write_text(profile.read_text().replace("[archs.a]", '[archs.a]\ndeliver = "image"'))
    built = json.loads(cluster.good("build", "--arch", "a", "--submit", "--json").stdout)["result"]
    show = json.loads(cluster.good("show", built["environment"], "--json").stdout)["result"]
    assert "delivery" in {check["name"] for check in show["verdict"]["checks"]}
    (tmp_path / "train.py").write_text(DELIVERED)
    words = ("--arch", "a", "--script", str(tmp_path / "train.py"), "--no-lint", "--arguments", "'two words'")
    assert "provision-deliver" not in cluster.good("job", "single", *words, "--deliver", "files").stdout
    done = cluster.good("job", "single", *words, "--submit", "--json")
    job = json.loads(done.stdout)["result"]["job"]
    lines = next(tmp_path.glob(f"*-{job}.out")).read_text().splitlines()
    assert json.loads(lines[-3])[0] >= 1
    assert lines[-2].endswith("tensorflow/__init__.py two words")
    assert not [line for line in lines if line.startswith("provision-deliver:")]
    wait_for("nothing to be left", lambda: set(temporary.iterdir()) == before)
