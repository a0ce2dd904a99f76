"""An environment as one image: built and proved through it, mounted by ordinary users, all of it real."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from parts.images import prefix_of, site_with_image, temporary, without
from parts.tiny import TinySite
from parts.tiny_cluster import wait_for
from parts.users import User, stranger

pytestmark = pytest.mark.real

# Where a process reads the environment from, and what else decides how it works.
LOOK = """
import json, os, sys
prefix = sys.argv[1]
mounts = [line.split() for line in open("/proc/self/mountinfo")]
kinds = [words[words.index("-") + 1] for words in mounts if words[4] == prefix]
print(json.dumps({
    "kind": kinds[-1] if kinds else "files", "words": sys.argv[2:], "cwd": os.getcwd(), "uid": os.getuid(),
    "space": os.readlink("/proc/self/ns/mnt"), "delivered": os.environ.get("PROVISION_DELIVERED"), "umask": oct(os.umask(0)),
    "records": os.path.exists(prefix + "/.provision/record.json"),
    "modules": sorted(os.listdir(prefix + "/lib/%s/site-packages" % sys.argv[3])) if len(sys.argv) > 3 else None,
}), flush=True)
sys.stdin.read()
"""


@pytest.fixture(scope="module")
def packed() -> Iterator[TinySite]:
    """A site whose environment is built with an image beside its files."""
    with site_with_image("image") as site:
        yield site


class Process:
    """A process of a job of another user, with the image; it lives until its input ends."""

    def __init__(
        self, site: TinySite, user: User, *words: str, path: str | None = None, job: str = "7", **more: str
    ) -> None:
        self.prefix = prefix_of(site)
        environ = {"PATH": path or os.environ["PATH"], "TMPDIR": str(temporary(site)), "SLURM_JOB_ID": job, **more}
        program = self.prefix / ".provision/images/provision-deliver"
        self.running = subprocess.Popen(
            user.argv(str(program), "/usr/bin/python3", "-c", LOOK, str(self.prefix), *words),
            env=environ,
            cwd="/var",
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self.running.stdout is not None
        line = self.running.stdout.readline()
        assert line, self.end()
        self.seen = json.loads(line)

    def end(self) -> str:
        """End it; what it said on stderr."""
        return self.running.communicate(timeout=30)[1]


def copy_of(site: TinySite, user: User) -> Path:
    """Where `--broadcast` puts the image on a node, for job 7 of a user."""
    program = (prefix_of(site) / ".provision/images/provision-deliver").read_text()
    (fingerprint,) = re.findall(r"^copies=.*-\$job-(\S+)$", program, re.MULTILINE)
    return temporary(site) / f"provision-{user.uid}-7-{fingerprint}.1"


def is_clean(site: TinySite) -> bool:
    """Whether nothing is left on the node: no folder, and no process of FUSE."""
    fuse = subprocess.run(["pgrep", "-f", f"squashfuse_ll.*{temporary(site)}"], capture_output=True, check=False)
    return not any(temporary(site).iterdir()) and fuse.returncode != 0


def test_the_proof_goes_through_the_image_and_verify_knows_it(packed: TinySite) -> None:
    prefix = prefix_of(packed)
    records = prefix / ".provision"
    verdict = json.loads((records / "verdict.json").read_text())
    assert verdict["command"][0] == str(records / "images/provision-deliver")
    files, image = (verdict["figures"][way] for way in ("reads_files", "reads_image"))
    assert files["lookups"] > 20
    assert (0 < image["node_lookups"] <= 100, image["bytes"] > 0) == (True, True), image
    assert "look-ups" in packed.good("show", "tensorflow/2.21.0", "--site", "one").stdout
    (image,) = json.loads((records / "images/images.json").read_text())["images"]
    assert image["folder"] == str(prefix)
    packed.good("verify", "--all", "--site", "one")
    first = Path(image["file"]).read_bytes()
    packed.good("pack", "tensorflow/2.21.0", "--site", "one")
    assert Path(image["file"]).read_bytes() == first, "equal files give equal bytes"
    described = records / "images/images.json"
    program = json.loads(described.read_text())["program"]
    text = described.read_text()
    described.write_text(text.replace(program["template"], "of another version"))
    done = packed.good("verify", "--all", "--site", "one")
    assert "`provision pack" in done.stdout + done.stderr
    described.write_text(text.replace(program["sha256"], "0" * 64))
    done = packed.run("verify", "--all", "--site", "one")
    assert (done.returncode, "images/provision-deliver: damaged" in done.stdout) == (1, True)
    described.write_text(text)
    try:
        Path(image["file"]).chmod(0o644)
        Path(image["file"]).write_bytes(first[:-9] + b"x" + first[-8:])
        done = packed.run("verify", "--all", "--site", "one")
        assert (done.returncode, "images/environment.squashfs: damaged" in done.stdout) == (1, True)
    finally:
        Path(image["file"]).write_bytes(first)


@pytest.mark.parametrize(
    "stand_in",
    [None, '#!/bin/sh\necho half >"$2"\nexit 1\n', '#!/bin/sh\necho half >"$2"\nkill -9 $PPID\n'],
    ids=["there is none", "it fails", "the tool is killed"],
)
def test_packing_that_fails_keeps_the_image_that_was_there(
    packed: TinySite, tmp_path: Path, stand_in: str | None
) -> None:
    images = prefix_of(packed) / ".provision/images"
    before = {path.name: path.read_bytes() for path in images.iterdir()}
    path = Path(without(tmp_path / "bin", "mksquashfs"))
    if stand_in is not None:
        (path / "mksquashfs").write_text(stand_in)
        (path / "mksquashfs").chmod(0o755)
    done = packed.run("pack", "tensorflow/2.21.0", "--site", "one", PATH=str(path))
    assert done.returncode not in (0, 2)
    assert "squashfs" in done.stderr or done.returncode == -signal.SIGKILL
    after = {path.name: path.read_bytes() for path in images.iterdir() if path.suffix != ".part"}
    assert after == before
    packed.good("pack", "tensorflow/2.21.0", "--site", "one")
    assert {path.name: path.read_bytes() for path in images.iterdir()} == before
    packed.good("verify", "--all", "--site", "one")


def test_all_processes_of_a_job_on_a_node_share_one_mount_and_nothing_stays(packed: TinySite) -> None:
    user = stranger(1)
    (packages,) = prefix_of(packed).glob("lib/python3*")
    one, two = (Process(packed, user, "it's $x", packages.name) for _ in range(2))
    assert one.seen == two.seen
    assert (one.seen["kind"], one.seen["words"][0], one.seen["cwd"]) == ("fuse.squashfuse_ll", "it's $x", "/var")
    assert (one.seen["uid"], one.seen["records"]) == (user.uid, True)
    assert "tensorflow" in one.seen["modules"]
    assert one.seen["space"] != str(Path("/proc/self/ns/mnt").readlink())
    other = Process(packed, stranger(2))
    assert other.seen["space"] != one.seen["space"]
    assert [process.end() for process in (one, two, other)] == [""] * 3
    wait_for("nothing to be left", lambda: is_clean(packed))


@pytest.mark.parametrize("what", ["the processes", "the keeper"])
def test_after_a_kill_nothing_stays_mounted_and_the_next_job_works(packed: TinySite, what: str) -> None:
    process = Process(packed, stranger(1))
    if what == "the processes":
        process.running.kill()
    else:
        (keeper,) = temporary(packed).glob("*/keeper")
        os.kill(int(keeper.read_text()), signal.SIGKILL)
        time.sleep(0.5)
        again = Process(packed, stranger(1))
        assert again.seen["kind"] == "fuse.squashfuse_ll"
        again.end()
        process.running.kill()
    process.end()
    wait_for("nothing to be left", lambda: is_clean(packed))


@pytest.mark.parametrize(
    ("family", "options"),
    [
        ("mpich", ()),  # Debian's is on UCX
        ("openmpi", ("--mca", "pml", "ob1", "--mca", "btl", "self,vader")),
        ("openmpi", ("--mca", "pml", "ucx", "--mca", "pml_ucx_tls", "any", "--mca", "pml_ucx_devices", "any")),
    ],
    ids=["mpich", "openmpi", "openmpi ucx"],
)
def test_two_ranks_of_a_node_share_memory_in_the_namespace(
    packed: TinySite, family: str, options: tuple[str, ...]
) -> None:
    compiler, program = shutil.which(f"mpicc.{family}"), packed.folder.parent / f"exchange.{family}"
    if compiler is None:
        pytest.skip(f"there is no mpicc.{family}")
    subprocess.run((compiler, "-O2", "-o", program, Path(__file__).parents[1] / "parts/exchange.c"), check=True)
    deliver = prefix_of(packed) / ".provision/images/provision-deliver"
    argv = ("timeout", "-k", "1", "60", f"mpirun.{family}", *options, "-n", "2", str(deliver), str(program))
    environ = {
        "PATH": os.environ["PATH"],
        "TMPDIR": str(temporary(packed)),
        "SLURM_JOB_ID": "8",
        "HOME": "/nonexistent",
    }
    # Two busy cores are enough: ranks give way while they wait. Slurm's variables would make Open MPI look for a job.
    environ |= {"OMPI_MCA_mpi_yield_when_idle": "1", "OMPI_MCA_ras": "^slurm", "OMPI_MCA_plm": "isolated"}
    environ |= {"OMPI_MCA_rmaps_base_oversubscribe": "1"}
    done = subprocess.run(stranger(1).argv(*argv), env=environ, cwd="/", capture_output=True, text=True, check=False)
    assert done.stdout.startswith("wrong 0, cma works, "), done.stderr
    wait_for("nothing to be left", lambda: not any(temporary(packed).glob("provision-*")))


def test_programs_that_follow_each_other_closely_all_have_the_image(packed: TinySite) -> None:
    """Each begins while the folder of the one before is removed."""
    deliver = str(prefix_of(packed) / ".provision/images/provision-deliver")
    environ = {"PATH": os.environ["PATH"], "TMPDIR": str(temporary(packed)), "SLURM_JOB_ID": "9"}
    words = stranger(1).argv(deliver, "/usr/bin/python3", "-c", LOOK, str(prefix_of(packed)))
    for _ in range(25):
        done = subprocess.run(words, env=environ, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (0, "")
        assert json.loads(done.stdout)["kind"] == "fuse.squashfuse_ll"


def test_what_a_killed_job_left_is_removed_by_the_next_one(packed: TinySite) -> None:
    living, killed, other = (
        Process(packed, user, job=job) for user, job in ((stranger(1), "6"), (stranger(1), "7"), (stranger(2), "7"))
    )
    (keeper,) = temporary(packed).glob(f"provision-{stranger(1).uid}-7-*/keeper")
    os.kill(int(keeper.read_text()), signal.SIGKILL)
    killed.running.kill()
    killed.end()
    assert keeper.parent.exists()
    old, new, foreign = (
        temporary(packed) / f"provision-{user.uid}-{job}-abc.1"
        for user, job in ((stranger(1), "4"), (stranger(1), "5"), (stranger(2), "4"))
    )
    for copy, user, age_s in ((old, stranger(1), 4000), (new, stranger(1), 1000), (foreign, stranger(2), 4000)):
        copy.write_bytes(b"x")
        os.chown(copy, user.uid, user.gid)
        os.utime(copy, (time.time() - age_s,) * 2)
    next_job = Process(packed, stranger(1), job="8")
    assert not keeper.parent.exists()
    assert [copy.exists() for copy in (old, new, foreign)] == [False, True, True]
    new.unlink()
    foreign.unlink()
    again = Process(packed, stranger(1), job="6")
    assert again.seen == living.seen, "a job that runs keeps what it has"
    assert [process.end() for process in (living, again, next_job, other)] == [""] * 4
    wait_for("nothing to be left", lambda: is_clean(packed))


def test_without_fuse_the_image_is_unpacked_into_memory(packed: TinySite, tmp_path: Path) -> None:
    path = without(packed.folder.parent / "no-fuse", "squashfuse_ll")
    process = Process(packed, stranger(1), path=path)
    assert (process.seen["kind"], process.seen["records"]) == ("tmpfs", True)
    process.end()
    wait_for("nothing to be left", lambda: is_clean(packed))


def test_a_node_whose_fuse_is_for_root_alone_unpacks_the_image_too(packed: TinySite) -> None:
    Path("/dev/fuse").chmod(0o600)
    try:
        process = Process(packed, stranger(1))
    finally:
        Path("/dev/fuse").chmod(0o666)
    assert (process.seen["kind"], process.end()) == ("tmpfs", "")
    wait_for("nothing to be left", lambda: is_clean(packed))


def test_an_image_that_is_larger_than_the_memory_is_not_unpacked(packed: TinySite) -> None:
    path = Path(without(packed.folder.parent / "huge", "squashfuse_ll", "unsquashfs"))
    (path / "unsquashfs").write_text(
        "#!/bin/sh\necho -r--r--r-- 0/0 1000000000000000 2026-11-29 00:00 squashfs-root/a\n"
    )
    (path / "unsquashfs").chmod(0o755)
    process = Process(packed, stranger(1), path=str(path))
    assert process.seen["kind"] == "files"
    assert "KiB of memory" in process.end()
    wait_for("nothing to be left", lambda: is_clean(packed))


@pytest.mark.parametrize("limit", ["size=4k", "nr_inodes=1", "ro"])
def test_without_room_for_a_folder_of_the_node_the_plain_files_are_read(packed: TinySite, limit: str) -> None:
    subprocess.run(("mount", "-t", "tmpfs", "-o", f"mode=1777,{limit}", "tmpfs", temporary(packed)), check=True)
    try:
        if limit.startswith("size"):
            (temporary(packed) / "full").write_bytes(b"x" * 4096)
        process = Process(packed, stranger(1))
        assert process.seen["kind"] == "files"
        said = process.end()
        assert (said.count("\n"), " the plain files" in said) == (1, True), said
    finally:
        subprocess.run(("umount", "-l", temporary(packed)), check=True)


def test_a_folder_for_temporary_files_without_the_right_to_execute_is_enough(packed: TinySite) -> None:
    subprocess.run(
        ("mount", "-t", "tmpfs", "-o", "mode=1777,noexec,nodev,nosuid", "tmpfs", temporary(packed)), check=True
    )
    try:
        process = Process(packed, stranger(1))
        assert (process.seen["kind"], process.end()) == ("fuse.squashfuse_ll", "")
        wait_for("nothing to be left", lambda: is_clean(packed))
    finally:
        subprocess.run(("umount", "-l", temporary(packed)), check=True)


def test_two_jobs_of_one_user_on_a_node_have_a_mount_each(packed: TinySite) -> None:
    one = Process(packed, stranger(1), job="7")
    # The second job was submitted from a process that has the image of the first one.
    two = Process(packed, stranger(1), job="8", PROVISION_DELIVERED=one.seen["delivered"])
    assert two.seen["kind"] == "fuse.squashfuse_ll"
    assert one.seen["space"] != two.seen["space"]
    one.end()
    again = Process(packed, stranger(1), job="8")
    assert again.seen == two.seen, "the end of another job takes nothing away"
    assert (two.end(), again.end()) == ("", "")
    wait_for("nothing to be left", lambda: is_clean(packed))


@pytest.mark.parametrize("damage", ["cut short", "one bit", "of another user"])
def test_a_copy_that_is_not_the_image_is_not_mounted(packed: TinySite, damage: str) -> None:
    user, content = stranger(1), bytearray((prefix_of(packed) / ".provision/images/environment.squashfs").read_bytes())
    content[len(content) // 2] ^= damage == "one bit"
    copy = copy_of(packed, user)
    copy.write_bytes(content[:-1] if damage == "cut short" else content)
    if damage != "of another user":
        os.chown(copy, user.uid, user.gid)
    process = Process(packed, user)
    assert process.seen["kind"] == "fuse.squashfuse_ll"
    assert process.end() == ""
    assert copy.exists() == (damage == "of another user")
    copy.unlink(missing_ok=True)
    wait_for("nothing to be left", lambda: is_clean(packed))


def test_nodes_that_share_a_folder_for_temporary_files_share_no_copy(packed: TinySite) -> None:
    """One takes it. The others read the image of the environment, and none finds that a copy which it saw is gone."""
    user = stranger(1)
    copy = copy_of(packed, user)
    for _ in range(5):
        shutil.copyfile(prefix_of(packed) / ".provision/images/environment.squashfs", copy)
        os.chown(copy, user.uid, user.gid)
        with ThreadPoolExecutor(6) as threads:
            nodes = list(threads.map(lambda number: Process(packed, user, SLURMD_NODENAME=f"n{number}"), range(6)))
        assert [node.seen["kind"] for node in nodes] == ["fuse.squashfuse_ll"] * 6
        assert [node.end() for node in nodes] == [""] * 6
        wait_for("nothing to be left", lambda: is_clean(packed))


def test_without_namespaces_the_plain_files_are_read_and_one_line_says_why(packed: TinySite) -> None:
    path = without(packed.folder.parent / "no-namespaces", "unshare")
    process = Process(packed, stranger(1), path=path)
    assert process.seen["kind"] == "files"
    said = process.end()
    assert said.startswith("provision-deliver: the processes of this job read the plain files on this node: ")
    assert said.count("\n") == 1
    wait_for("nothing to be left", lambda: is_clean(packed))


def test_where_the_image_cannot_be_mounted_one_process_of_a_node_says_so(packed: TinySite) -> None:
    path = without(packed.folder.parent / "no-namespaces-2", "unshare")
    one, two = (Process(packed, stranger(1), path=path) for _ in range(2))
    assert (one.seen["kind"], two.seen["kind"]) == ("files", "files")
    assert (one.end().count("\n"), two.end()) == (1, "")
    wait_for("nothing to be left", lambda: is_clean(packed))


def test_an_image_that_is_cut_short_is_not_mounted(packed: TinySite) -> None:
    image = prefix_of(packed) / ".provision/images/environment.squashfs"
    whole = image.read_bytes()
    image.chmod(0o644)
    try:
        image.write_bytes(whole[:-100])
        process = Process(packed, stranger(1))
        assert process.seen["kind"] == "files"
        assert f"has {len(whole) - 100} bytes instead of {len(whole)}" in process.end()
    finally:
        image.write_bytes(whole)
