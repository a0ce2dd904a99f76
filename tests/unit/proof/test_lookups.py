"""The lines of strace, counted: which look-ups and bytes are the shared file system's."""

from __future__ import annotations

import pytest

from provision.model.verdict import Reads
from provision.proof.lookups import count_reads

FILES = """\
7 execve("/site/env/bin/python", [...], 0x7ffc /* 38 vars */) = 0
7 access("/etc/ld.so.preload", R_OK) = -1 ENOENT (No such file or directory)
7 openat(AT_FDCWD</>, "/site/env/lib/a \\"b\\".py", O_RDONLY|O_CLOEXEC) = 3</site/env/lib/a "b".py>
7 newfstatat(3</site/env/lib/a.py>, "", {st_mode=S_IFREG|0644, ...}, AT_EMPTY_PATH) = 0
7 read(3</site/env/lib/a.py>, ""..., 4096) = 100
7 newfstatat(4</site/env/lib>, "b.py", 0x7ffd, 0) = -1 ENOENT (No such file or directory)
8 read(3</site/env/lib/a.py>,  <unfinished ...>
7 mmap(NULL, 1000, PROT_READ, MAP_PRIVATE|MAP_DENYWRITE, 5</site/env/lib/b.so>, 0) = 0x7f00
7 mmap(0x7f00, 900, PROT_READ|PROT_EXEC, MAP_PRIVATE|MAP_FIXED, 5</site/env/lib/b.so>, 0) = 0x7f00
8 <... read resumed>""..., 4096) = 20
7 mmap(NULL, 8192, PROT_READ|PROT_WRITE, MAP_PRIVATE|MAP_ANONYMOUS, -1, 0) = 0x7f01
7 openat(AT_FDCWD</>, "/opt/mpi/lib/libmpi.so.12", O_RDONLY) = 6</opt/mpi/lib/libmpi.so.12>
7 openat(AT_FDCWD</>, "/sites/x", O_RDONLY) = -1 ENOENT (No such file or directory)
7 read(6</opt/mpi/lib/libmpi.so.12>, ""..., 832) = 832
7 +++ exited with 0 +++
"""
# The script looks up itself; a process that it starts mounts the image; the program then joins the namespace.
IMAGE = """\
7 execve("/usr/bin/env", ["env", ...], 0x7ffc /* 38 vars */) = 0
7 execve("/site/env/.provision/images/provision-deliver", [...], 0x7ffc /* 38 vars */) = 0
9 openat(AT_FDCWD</>, "/site/env/.provision/images/e.squashfs", O_RDONLY) = 3</site/env/.provision/images/e.squashfs>
9 newfstatat(AT_FDCWD</>, "/site/env", {st_mode=S_IFDIR|0755, ...}, 0) = 0
9 setns(4<user:[4026532177]>, CLONE_NEWUSER) = 0
7 setns(4<mnt:[4026532178]>, CLONE_NEWNS) = 0
7 execve("/site/env/bin/python", [...], 0x7ffc /* 38 vars */) = 0
9 pread64(3</site/env/.provision/images/e.squashfs>, ""..., 500, 96) = 500
7 openat(AT_FDCWD</>, "/site/env/lib/a.py", O_RDONLY) = 3</site/env/lib/a.py>
7 read(3</site/env/lib/a.py>, ""..., 4096) = 100
"""


@pytest.mark.parametrize(
    ("text", "reads"),
    [
        (FILES, Reads(lookups=3, bytes=1120, node_lookups=12, node_bytes=4480, elsewhere=2)),
        (IMAGE, Reads(lookups=3, bytes=500, node_lookups=6, node_bytes=500, elsewhere=0)),
        ("", None),
        ("strace: ptrace(PTRACE_TRACEME, ...): Operation not permitted\n", None),
    ],
    ids=["plain files", "image", "nothing", "refused"],
)
def test_only_what_the_shared_file_system_answers_is_counted(text: str, reads: Reads | None) -> None:
    assert count_reads(text.splitlines(keepends=True), ("/site",), 4, joins=text == IMAGE) == reads
    assert count_reads(text.splitlines(), ("/site",), 4, joins=text != IMAGE) is None, "a mount by other means"
