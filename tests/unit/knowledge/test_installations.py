"""Logs of installations and builds: what came first is named, and an attempt that a later one makes good is no failure."""

from __future__ import annotations

import pytest

from parts.loops import for_each
from provision.knowledge.failures.explain import explain
from provision.machine.tables import known_failures

PIP = (
    "ERROR: Could not find a version that satisfies the requirement {0} (from versions: {1})\n"
    "ERROR: No matching distribution found for {0}\n"
)
CLONE = (
    "Cloning into 'solve'...\nssh: connect to host n1 port 22: Connection refused\n"
    "fatal: Could not read from remote repository.\n"
)
SETUP = (
    "Traceback (most recent call last):\n"
    '  File "/tmp/pip-build-env-ab/overlay/lib/python3.11/site-packages/setuptools/build_meta.py", line 317, in run_setup\n'
    "    exec(code, locals())\n"
    '  File "<string>", line 36, in <module>\n'
    "{0}\n      [end of output]\nERROR: Failed to build 'flux' when getting requirements to build wheel\n"
)
STACK = "  #{0:03d}: H5F{0}.c line 17 in H5F_call{0}(): {1}\n    major: File accessibility\n    minor: Unable to open file\n"
LOGS = {
    # A log, and the entry that explains it.
    "AttributeError: 'build_ext' object has no attribute 'cython_sources'\n": "cython-sources",
    "lto1: fatal error: bytecode stream in file ‘libf.a’ generated with LTO version 13.0 instead of the expected 12.0\n": (
        "lto-version"
    ),
    "a.so: symbol _ZN1a, version GLIBCXX_3.4.21 not defined in file libstdc++.so.6 with link time reference\n": "glibcxx",
    "Error processing tar file(exit status 1): there might not be enough IDs available in the namespace (requested 0:12)\n": (
        "container-subuid"
    ),
    "Loading B\n  Error: B cannot be loaded due to missing prereq.\n    HINT: the following modules must be loaded first: C\n": (
        "module-needs-others"
    ),
    "Encountered problems while solving.\nProblem: package flux-0.1.0-py37_2 requires python >=3.7,<3.8.0a0, but\n"
    "none of the providers can be installed\n": "resolver-conflict",
    "      error: pathspec 'csrc/cutlass' did not match any file(s) known to git\n"
    "      setup.py:78: UserWarning: flux was requested, but nvcc was not found.  Are you sure?\n": "nvcc-for-package-missing",
    "/src/pppm.cpp:524:24:error: 'ele2tag' not specified in enclosing 'parallel'\nmake: *** [Makefile:1: all] Error 2\n": (
        "compile-error"
    ),
    "  138 | #error -- unsupported GNU version! gcc versions later than 8 are not supported!\n"
    "error: command '/usr/local/cuda/bin/nvcc' failed with exit code 1\n": "nvcc-host-compiler",
    "429/775 Test #429: tests.flux .........................***Failed    0.18 sec\n": "ctest-one-failed",
    "/usr/bin/ld: skipping incompatible /s/libflux.a when searching for -lflux\n/usr/bin/ld: cannot find -lflux\n": (
        "link-library-other-cpu"
    ),
    "ld: warning: libflux.so.6, needed by /opt/lib/libpetsc.so, not found (try using -rpath or -rpath-link)\n"
    "ld: /opt/lib/libpetsc.so: undefined reference to `pdgssvx'\n": "library-of-library-missing",
    '"/usr/include/c++/9/cstdlib", line 75: catastrophic error: cannot open source\n          file "stdlib.h"\n'
    "  #include_next <stdlib.h>\n                          ^\nCompilation terminated.\n": "compiler-headers-missing",
    "/tmp/ccy.s:103:no such instruction: `vxorps %xmm0, %xmm0,%xmm0'\n": "assembler-too-old",
    "nvdd-Fatal-/opt/nvidia/compilers/bin/tools/nvvmd TERMINATED by signal 11\n": "internal-compiler-error",
    "/usr/bin/ld: /src/x48.c:5898: referencia a `XNextEvent' sin definir\n": "undefined-reference",
    "/usr/bin/lua: ./src/utils.lua:896: module 'flux' not found:\n": "lua-error",
    "      Could not find a recent CMake to build Horovod. Attempting to install CMake 3.13 to a temporary location via pip.\n"
    "/usr/include/linux/e.h:2147:17: error: flexible array member 'a' not at end of 'struct b'\n": "compile-error",
    "WARNING: Ignoring version 2.0.5 of omegaflux since it has invalid metadata:\nPlease use pip<24.1\n"
    + PIP.format("omegaflux==2.0.5", "1.0, 2.1"): "pip-metadata-refused",
    "job.sh: line 2: /opt/python/3.10/bin/python: No such file or directory\n"
    "job.sh: line 2: venv/bin/activate: No such file or directory\nerror: externally-managed-environment\n": (
        "interpreter-missing"
    ),
    "fatal: unable to access 'https://git.example.org/flux.git/': Could not resolve host: git.example.org\n"
    'CMake Error: The source directory "/home/ada/flux" does not exist.\n': "no-network",
}
QUOTED = {
    # A log, and words of the cause that is named.
    SETUP.format("ValueError: did not find HDF5 headers") + "ModuleNotFoundError: No module named 'flux'\n": (
        "stopped at its line 36, and says: `ValueError: did not find HDF5 headers`"
    ),
    "      /bin/sh: 1: pkg-config: not found\n      Command 'pkg-config --exists a' returned non-zero exit status 127.\n"
    + "x\n" * 20
    + SETUP.format("Exception: Can not find valid pkg-config name."): "Can not find valid pkg-config name",
    "Usage:\n  pip install [options] ...\n\n--no-use-pep517 error: It is not possible to use --no-use-pep517\n"
    "job.sh: line 5: flux: command not found\n": "It is not possible to use --no-use-pep517",
    "Proc 0: *** Parallel ERROR ***\n    VRFY (new and old nkeys equal) failed at line  104 in t_ph5basic.c\n"
    "aborting MPI processes\n": "new and old nkeys equal",
    STACK.format(0, "file create failed")
    + STACK.format(1, "open failed")
    + STACK.format(2, "can't connect to server"): ("can't connect to server"),
    "Runtime Error: /s/wrap.f90, line 10: Invalid procedure reference\n": "Invalid procedure reference",
    "error in src/paw_build.sh: file /opt/include/xc.mod in INCLUDES does not exist\nINCLUDES=/opt/a\n": (
        "file /opt/include/xc.mod in INCLUDES does not exist"
    ),
    "error: Failed to install: flux-1.0-py3-none-any.whl (flux==1.0)\n  Caused by: Failed to clone `/a` to `/b`\n"
    "  Caused by: Resource temporarily unavailable (os error 11)\n": "Resource temporarily unavailable (os error 11)",
    "CreateCondaEnvironmentException:\nYour conda installation is not configured to use strict channel priorities.\n": (
        "is not configured to use strict channel priorities"
    ),
    '"/s/mini.cpp", line 7: catastrophic error: the file is\n          too strange\n': "the file is too strange",
}
MADE_GOOD = (
    PIP.format("six==1.16.0", "none") + "Successfully installed idna-3.4 six-1.16.0\nready\n",
    CLONE + "\nPlease make sure you have the correct access rights\nCloning into 'solve'...\ndone.\nresidual 1e-9\n",
)
HARMLESS = (
    "/usr/bin/ld: skipping incompatible /usr/lib/libm.so when searching for -lm",
    "WARNING: Ignoring version 2.0.5 of omegaflux since it has invalid metadata:",
    "Warning: unable to access index for repository https://cran.example.org/src/contrib:",
    "ld: warning: libflux.so.6, needed by /opt/lib/libpetsc.so, not found (try using -rpath or -rpath-link)",
    "429/775 Test #429: tests.unit.flux .......................   Passed    0.18 sec",
    "  138 | #include <error.h>",
    "All attempts to connect succeeded",
    "error in norm: 1.2e-9",
    "test option error rate: 0.01",
)
STAYS = {
    # An attempt that no later one makes good, or a line that explains something else.
    PIP.format("six==1.16.0", "none") + "Successfully installed idna-3.4\n": "no-versions-at-all",
    CLONE + "Cloning into 'other'...\ndone.\n": "ssh-unreachable",
    CLONE * 2: "ssh-unreachable",
    "WARNING: Ignoring version 2.0.5 of omegaflux since it has invalid metadata:\n" + PIP.format("other==1.0", "2.1"): (
        "not-on-index-python"
    ),
    "ld: skipping incompatible /usr/lib/libm.so when searching for -lm\nld: cannot find -lflux\n": "link-library-missing",
}


@for_each("log", LOGS)
def test_the_first_cause_of_an_installation_is_named(log: str) -> None:
    known = explain([log.encode()], known_failures()).known
    assert known is not None and known.failure.id == LOGS[log]


@for_each("log", QUOTED)
def test_the_words_of_an_installer_or_compiler_are_quoted(log: str) -> None:
    known = explain([log.encode()], known_failures()).known
    assert known is not None and QUOTED[log] in known.cause


@pytest.mark.parametrize("log", MADE_GOOD)
def test_an_attempt_that_a_later_one_makes_good_is_no_failure(log: str) -> None:
    assert explain([log.encode()], known_failures()).verdict == "healthy"


@for_each("log", STAYS)
def test_what_no_later_line_makes_good_stays_the_cause(log: str) -> None:
    known = explain([log.encode()], known_failures()).known
    assert known is not None and known.failure.id == STAYS[log]


@for_each("line", HARMLESS)
def test_a_line_of_an_installation_that_went_on_accuses_no_one(line: str) -> None:
    assert explain([f"step 1\n{line}\nstep 2\n".encode()], known_failures()).verdict == "healthy"
