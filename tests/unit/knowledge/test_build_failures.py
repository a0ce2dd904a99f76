"""Logs of builds: compilers, CMake, pip, conda, Spack and images."""

from __future__ import annotations

from parts.loops import for_each
from provision.knowledge.failures.explain import explain
from provision.machine.tables import known_failures

FAILED: dict[str, str] = {
    "library-not-named": """\
mkdir -p build
g++ -O3 -c main.cpp -o build/main.o
g++ -o prog build/main.o -lfoo
/usr/bin/ld: build/main.o: undefined reference to symbol 'pthread_create@@GLIBC_2.2.5'
//lib/x86_64-linux-gnu/libpthread.so.0: error adding symbols: DSO missing from command line
collect2: error: ld returned 1 exit status
make: *** [Makefile:12: prog] Error 1
""",
    "reported-error": """\
mpicxx -c node.cpp
node.cpp: 在函数‘void start()’中:
node.cpp:16:4: 错误：‘MPI’未声明
    MPI::Init();
    ^
""",
    "nvcc-architecture-empty": """\
CMake Error at /usr/share/cmake-3.22/Modules/CMakeDetermineCompilerId.cmake:726 (message):
  Compiling the CUDA compiler identification source file
  "CMakeCUDACompilerId.cu" failed.

  Compiler: /usr/local/cuda/bin/nvcc

  Build flags: -arch=compute_

  nvcc fatal   : Unsupported gpu architecture 'compute_'

Call Stack (most recent call first):
  CMakeLists.txt:4 (project)
""",
    "pip-retry-bug": """\
    conn.request(method, url)
TypeError: unsupported operand type(s) for -=: 'Retry' and 'int'
""",
    "warnings-are-errors": """\
a.cc:12:9: error: unused variable 'n' [-Werror=unused-variable]
cc1plus: all warnings being treated as errors
make: *** [Makefile:7: a.o] Error 1
""",
    "c-code-for-older-python": """\
      gcc -fPIC -I/opt/python/3.11/include/python3.11 -c fast.c -o fast.o
      fast.c:438:62: error: invalid use of incomplete typedef 'PyFrameObject' {aka 'struct _frame'}
      error: command '/usr/bin/gcc' failed with exit code 1
  ERROR: Failed building wheel for fast
""",
    "no-compiler": """\
checking whether the C compiler works... no
configure: error: C compiler cannot create executables
make[3]: *** No targets specified and no makefile found.  Stop.
make[3]: *** No rule to make target 'install'.  Stop.
""",
    "conda-system": """\
Found conflicts! Looking for incompatible packages.
UnsatisfiableError: The following specifications were found to be incompatible with your system:

  - feature:/linux-64::__glibc==2.17=0
  - tensorflow[version='>=2.7',build=cuda11*] -> __cuda
""",
    "openmp-twice": """\
OMP: Error #15: Initializing libiomp5.so, but found libomp.so already initialized.
OMP: Hint This means that multiple copies of the OpenMP runtime have been linked into the program.
Aborted (core dumped)
""",
    "nvcc-other-cuda": """\
        File "/env/lib/python3.10/site-packages/torch/utils/cpp_extension.py", line 387, in _check_cuda_version
          raise RuntimeError(CUDA_MISMATCH_MESSAGE.format(cuda_str_version, torch.version.cuda))
      RuntimeError:
      The detected CUDA version (12.2) mismatches the version that was used to compile
      PyTorch (11.7). Please make sure to use the same CUDA versions.
""",
    "certificate": """\
ImportError: cannot bootstrap the "clingo" Python module from spec "clingo-bootstrap@spack+python" due to the following failures:
    'github-actions' raised FetchCacheError: Multiple errors during fetching:
        Error 1: SpackWebError: Download failed: <urlopen error [SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed>
""",
    "compiler-missing": """\
make[1]: Entering directory '/src/flux'
make[1]: g++: Command not found
make[1]: *** [Makefile:12: flux.o] Error 127
""",
    "conda-channel-priority": """\
LibMambaUnsatisfiableError: Encountered problems while solving:
  - package zlib-1.2.12-h8cc25b3_2 is excluded by strict repo priority
  - package zstd-1.5.2-h19a0ad4_0 is excluded by strict repo priority
""",
    "container-fakeroot-glibc": """\
INFO:    Running post scriptlet
/.singularity.d/libs/faked: /lib64/libc.so.6: version `GLIBC_2.33' not found (required by /.singularity.d/libs/faked)
fakeroot: error while starting the `faked' daemon.
FATAL:   While performing build: while running engine: exit status 1
""",
    "module-command-missing": """\
couldn't read file "/apps/Modules/5.0.1/libexec/modulecmd.tcl": no such file or directory
couldn't read file "/apps/Modules/5.0.1/libexec/modulecmd.tcl": no such file or directory
[n1:37763] OPAL ERROR: Unreachable in file pmix3x_client.c at line 111
The application appears to have been direct launched using "srun",
but OMPI was not built with SLURM's PMI support and therefore cannot execute.
""",
    "package-of-other-python": """\
Collecting pip
    Complete output from command python setup.py egg_info:
    Traceback (most recent call last):
      File "<string>", line 1, in <module>
      File "/tmp/pip-build-eEfG84/pip/setup.py", line 7
        def read(rel_path: str) -> str:
                         ^
    SyntaxError: invalid syntax
    ----------------------------------------
Command "python setup.py egg_info" failed with error code 1 in /tmp/pip-build-eEfG84/pip/
""",
    "nvcc-host-compiler": """\
/usr/local/cuda/bin/../include/host_config.h:82:2: error: #error -- unsupported
GNU version! gcc 4.5 and up are not supported!
Traceback (most recent call last):
  File "setup.py", line 175, in <module>
    setup(**setup_args)
""",
    "cmake-error": """\
 CMake Error at cmake/runtime.cmake:33 (MESSAGE):

  Could not retrieve location of the run-time libraries from 'gcc -lgfortran'

Call Stack (most recent call first):

  CMakeLists.txt:167 (GET_LIBRARIES)

-- Configuring incomplete, errors occurred!
""",
    "compiler-variable-empty": """\
/bin/bash: I/usr/share/R/include: No such file or directory
make: [utils.o] Error 127 (ignored)
-o flux.so utils.o -L/usr/lib/R/lib -lR
/bin/bash: line 2: -o: command not found
make: *** [flux.so] Error 127
ERROR: compilation failed for package 'flux'
""",
    "gcc-14": """\
flux.c:80:5: error: implicit declaration of function 'strcpy' [-Wimplicit-function-declaration]
   80 |     strcpy(size,argv[1]);
      |     ^~~~~~
make: *** [Makefile:7: flux.o] Error 1
""",
    "pytorch-extension-old": """\
[1/2] nvcc -c roi.cu -o roi.o
 fatal error: THC/THC.h: No such file or directory
    7 | #include <THC/THC.h>
      |          ^~~~~~~~~~~
compilation terminated.
error: command '/usr/local/cuda/bin/nvcc' failed with exit code 1
""",
    "index-answer": """\
error: Failed to fetch: `https://mirror/packages/flux-1.0-py3-none-any.whl`
  Caused by: HTTP status client error (404 Not Found) for url (https://mirror/packages/flux-1.0-py3-none-any.whl)
""",
    "library-stopped": """\
[162/1475] Generating scipy/linalg/fblas_module with a custom command
  FAILED: scipy/linalg/_fblasmodule.c
  Traceback (most recent call last):
    File "/scipy-1.13.0/tools/generate_f2pymod.py", line 299, in <module>
      main()
    File "/scipy-1.13.0/tools/generate_f2pymod.py", line 293, in main
      raise RuntimeError(f"Processing {fname_pyf} with f2py failed!\\n"
  RuntimeError: Processing scipy/linalg/fblas.pyf with f2py failed!
""",
    "container-host-libraries": """\
$ apptainer exec --nv image.sif glxgears
glxgears: /lib/x86_64-linux-gnu/libc.so.6: version `GLIBC_2.34' not found (required by /.singularity.d/libs/libGLX.so.0)
""",
    "missing-library": """\
pw.x: error while loading shared libraries: libgfortran.so.5: cannot open shared object file: No such file or directory
FATAL:   container creation failed: mount /proc/self/fd/3->/session/rootfs error: while mounting image /proc/self/fd/3: \
failed to find loop device: unexpected EOF
""",
    "python-without-part": """\
  File "/opt/python/lib/python3.9/ctypes/__init__.py", line 8, in <module>
    from _ctypes import Union, Structure, Array
ModuleNotFoundError: No module named '_ctypes'
""",
    "compiler-before-cxx11": """\
src/grid.cpp:20:3: error: 'nullptr' was not declared in this scope
make: *** [src/grid.o] Error 1
""",
    "macro-unknown": """\
src/xml.c:20:3: error: 'LIBXML_TEST_VERSION' undeclared (first use in this function)
make: *** [src/xml.o] Error 1
""",
    "mpi-fortran-not-found": """\
checking for mpif.h... no
configure: error: could not find MPI header files for Fortran
""",
}


@for_each("failure", FAILED)
def test_the_cause_of_a_failed_build_is_named(failure: str) -> None:
    found = explain([FAILED[failure].encode()], known_failures())
    assert found.verdict != "healthy"
    assert found.findings[0].failure.id == failure


HEALTHY = {
    "autoreconf that warns": """\
autoreconf: running: aclocal --force -I m4
configure.ac:7: warning: The macro `AC_PROG_CC_C99' is obsolete.
libtoolize: Consider adding '-I m4' to ACLOCAL_AMFLAGS in Makefile.am.
configure.ac:12: installing 'config/compile'
config.status: creating Makefile
""",
    "configure that looks for programs": """\
checking for aclocal-1.16... no
checking for a BSD-compatible install... /usr/bin/install -c
checking whether make supports nested variables... yes
configure: WARNING: 'makeinfo' is missing, manuals will not be made
config.status: creating config.h
""",
    "apt in an image": """\
debconf: delaying package configuration, since apt-utils is not installed
W: Download is performed unsandboxed as root as file '/home/ada/x.deb' couldn't be accessed by user '_apt'.
invoke-rc.d: could not determine current runlevel
Setting up libssl3 (3.0.11-1) ...
""",
    "Cargo that warns": """\
   Compiling tokenizers v0.13.3
warning: unused variable: `error`
warning: `tokenizers` (lib) generated 1 warning
    Finished release [optimized] target(s) in 58.21s
""",
}


def test_a_relocation_against_an_undefined_symbol_follows_from_the_symbol() -> None:
    text = b"""\
main.o:main.c:(.text+0x20): undefined reference to `gsl_rng_alloc'
main.o:main.c:(.text+0x20): relocation truncated to fit: R_X86_64_PC32 against undefined symbol `gsl_rng_alloc'
collect2: error: ld returned 1 exit status
"""
    known = explain([text], known_failures()).known
    assert known is not None
    assert known.failure.id == "undefined-reference"


@for_each("name", HEALTHY)
def test_a_build_that_only_warns_is_healthy(name: str) -> None:
    explanation = explain([HEALTHY[name].encode()], known_failures())
    assert explanation.verdict == "healthy", explanation.known or explanation.lines
