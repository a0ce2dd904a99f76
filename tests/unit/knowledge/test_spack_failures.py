"""Outputs of Spack 1.2.0.dev0 (commit 9cf6633), as it printed them when it failed, and what the catalogue makes of them."""

from __future__ import annotations

from parts.loops import for_each
from provision.knowledge.failures.explain import explain
from provision.machine.tables import known_failures

NOT_CACHED = """\
==> Warning: Skipping build of py-horovod-0.28.1-zjdihbfh542f3u22ld2wyxyu4gspgazb since \
py-tensorflow-2.15.1-qzuvwqhirvgn3obnbdfkyq2rk7gijvdm failed
==> Error: Failed to install py-tensorflow due to InstallError: No binary found when cache-only was specified
==> Error: py-horovod-0.28.1-zjdihbfh542f3u22ld2wyxyu4gspgazb: Package was not installed
==> Error: Installation request failed.  Refer to reported errors for failing package(s).
[+] /site/mpich (external mpich-4.0.2-7qwkhemwtpringjlksdgaarc66swo5pc)
==> Installing py-tensorflow-2.15.1-qzuvwqhirvgn3obnbdfkyq2rk7gijvdm [3/4]
"""
NO_CLINGO = """\
==> Error: cannot bootstrap the "clingo" Python module from spec "clingo-bootstrap@spack+python platform=linux \
target=x86_64" due to the following failures:

	github-actions-v2 raised FetchCacheError: FetchIndexError: Could not fetch manifest from \
https://ghcr.io/v2/spack/bootstrap-buildcache-v2.2/manifests/index.spack, due to: GET \
https://ghcr.io/v2/spack/bootstrap-buildcache-v2.2/manifests/index.spack errored with: [Errno -2] Name or service not known

	spack-install raised RuntimeError: Cannot find any version of gcc to bootstrap clingo from sources

Run `spack --backtrace ...` for more detailed errors
"""
NO_SOURCES = """\
==> Error: All fetchers failed for spack-stage-py-horovod-0.28.1-zjdihbfh542f3u22ld2wyxyu4gspgazb
    https://mirror.spack.io/_source-cache/archive/92/92a43f5a94c43907a56805bad15f19700c62ffc83b7ca483f9e104e229f67ef0.tar.gz: \
DetailedURLError: GET https://mirror.spack.io/_source-cache/archive/92/92a43f5a94.tar.gz errored with: [Errno -2] Name or \
service not known
    file:///PROVISION_SOURCES-is-not-set/horovod-0.28.1.tar.gz: URLError: <urlopen error [Errno 2] No such file or \
directory: '/PROVISION_SOURCES-is-not-set/horovod-0.28.1.tar.gz'>
"""
EDITED = """\
         24        with open(requirements, "rb") as file:
         25            if hashlib.sha256(file.read()).hexdigest() != self.requirements:
  >>     26                raise InstallError(f"{requirements} is not the file that this package was written with")

See build log for details:
  /scratch/ada/spack-stage-py-tensorflow-2.15.1-s2pq5omh6mwfd7cdewyklimz6wpkcg3k/spack-build-out.txt

==> Warning: Skipping build of py-horovod-0.28.1-hho3bwxehmiwcayvoijwyxjdatat5ktp since py-tensorflow failed
==> Error: Terminating after first install failure: InstallError: /env/spack_repo/provision/packages/py_tensorflow/\
requirements.txt is not the file that this package was written with
"""
LONG = """\
==> Error: Failed to install py-tensorflow due to SbangPathError: Install tree root is too long. Spack cannot patch shebang \
lines when script path length (157) exceeds limit (127).
==> Error: Terminating after first install failure: Install tree root is too long. Spack cannot patch shebang lines when \
script path length (157) exceeds limit (127).
"""
NO_PREFIX = """\
[+] None (external mpich-4.0.2-7qwkhemwtpringjlksdgaarc66swo5pc)
==> Installing py-horovod-0.28.1-zjdihbfh542f3u22ld2wyxyu4gspgazb [6/6]
"""
UNSATISFIED = """\
==> Error: failed to concretize `py-horovod@0.28.1` for the following reasons:
     1. Cannot build mpich, since it is configured `buildable:false` and no externals satisfy the request
"""
OTHER_TARGET = """\
==> Error: failed to concretize `py-horovod@0.28.1` for the following reasons:
     1. 'python target=mic_knl' is not compatible with this machine
"""


@for_each(
    ("log", "failure"),
    [
        (NOT_CACHED, "spack-not-cached"),
        (NO_CLINGO, "spack-clingo"),
        (NO_SOURCES, "spack-sources"),
        (EDITED, "spack-edited-package"),
        (NO_PREFIX, "spack-no-prefix"),
        (LONG, "spack-long-store"),
        (UNSATISFIED, "spack-external-unsatisfied"),
        (OTHER_TARGET, "spack-target"),
        ("==> Error: [Errno 1] Operation not permitted\n", "spack-stdin"),
        (
            "==> Error: /e/spack.yaml:3: 'py-horovod:' is not valid under any of the given schemas\n",
            "spack-configuration",
        ),
        (
            "CannotGrowString: Cannot replace '/old' with '/longer/new' because the new prefix is longer.\n",
            "spack-prefix",
        ),
    ],
)
def test_what_spack_prints_is_translated(log: str, failure: str) -> None:
    """Also among the consequences that Spack prints after it."""
    known = explain([log.encode()], known_failures()).known
    assert known is not None
    assert known.failure.id == failure


EXCERPT = """\
  >> 957    make[3]: *** [flurble.o] Error 2
     956    NVC++-S-0000-Internal compiler error. BAD sptr in var_refsym       0  (flurble.cpp)
  >> 958    make: *** [all] Error 2
"""


def test_the_lines_around_an_error_that_spack_numbers_are_read() -> None:
    known = explain([EXCERPT.encode()], known_failures()).known
    assert known is not None and known.failure.id == "internal-compiler-error"


def test_a_command_of_a_package_that_failed_is_no_error_of_the_user() -> None:
    """The traceback of Spack itself: its own places and those of its packages are no program of the user."""
    log = """\
==> [2023-01-01-10:00:00.123] 'make' '-j20' 'install'
Traceback (most recent call last):
  File "/home/ada/spack/lib/spack/spack/installer.py", line 1800, in build_process
    return installer.run()
  File "/home/ada/spack/var/spack/repos/builtin/packages/ncurses/package.py", line 166, in install
    make("install")
  File "/home/ada/spack/lib/spack/spack/util/executable.py", line 335, in __call__
    raise ProcessError("Command exited with status %d:" % proc.returncode, long_msg)
spack.util.executable.ProcessError: Command exited with status 2:
    'make' '-j20' 'install'
"""
    shown = explain([log.encode()], known_failures())
    assert shown.verdict == "unknown"
    assert shown.findings[0].failure.id == "spack-install-failed"
