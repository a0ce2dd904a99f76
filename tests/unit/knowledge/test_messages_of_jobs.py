"""Messages of jobs and services on clusters: what each is named, and what looks like one and is none."""

from __future__ import annotations

import pytest

from provision.knowledge.failures.explain import explain
from provision.machine.tables import known_failures

NAMED = {
    "ERROR (unhandled task failure): Version read failed. Connection closed by peer.\n in process_hdr(::TCPSocket)": (
        "reported-error",
        "Version read failed",
    ),
    "ERROR: LoadError: TaskFailedException\n\n    nested task error: IOError: connect: connection refused (ECONNREFUSED)\n"
    "    Stacktrace:": ("reported-error", "IOError: connect"),
    'error: commlib error: got read error (closing "n1/shepherd_ijs/1")\nORTE has lost communication with its daemon\n'
    "located on node n1": ("mpi-daemon-lost", ""),
    'Traceback (most recent call last):\n  File "train_mnist.py", line 132, in <module>\n    fit(args)\n'
    '  File "/home/ada/mxnet/python/mxnet/base.py", line 77, in check_call\n    raise MXNetError(text)\n'
    "mxnet.base.MXNetError: src/kvstore/kvstore.cc:41: compile with USE_DIST_KVSTORE=1 to use dist_sync": (
        "library-stopped",
        "USE_DIST_KVSTORE",
    ),
    "Lmod Warning: MODULEPATH is undefined.\nLmod has detected the following error: The following module(s) are unknown: "
    '"frameworks/2026.1.0"\npython: command not found': ("modulepath-undefined", ""),
}
HEALTHY = (
    "attempt 0: [Errno 5] Input/output error: 'shared.lock'; retry in 0.1 s\nchecksum 3 expected 3 -> OK\nall steps completed",
    'rsync: [sender] change_dir "/archive" failed: No such file or directory (2)\nusing the copy in $SCRATCH\nfinished ok',
    (
        'Lmod has detected the following error: The following module(s) are unknown:\n"craype-network-ofi"\n\n'
        "check passed: no NaN found\nEnd: Mon Nov 23 22:17:21 UTC 2026, status 0"
    ),
)


@pytest.mark.parametrize("text", list(NAMED))
def test_a_message_of_a_job_is_named(text: str) -> None:
    found = explain([f"starting on n1\n{text}\n".encode()], known_failures())
    name, says = NAMED[text]
    assert found.verdict == "known" and found.known
    assert found.known.failure.id == name, found.known.cause
    assert says in found.known.cause


@pytest.mark.parametrize("text", HEALTHY)
def test_a_job_that_ended_well_is_not_accused(text: str) -> None:
    assert explain([f"starting on n1\n{text}\n".encode()], known_failures()).verdict == "healthy"
