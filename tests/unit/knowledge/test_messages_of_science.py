"""Messages of codes of science and of what starts them: what each log shows, and lines that only look like them."""

from __future__ import annotations

import pytest

from parts.loops import for_each
from provision.knowledge.failures.explain import explain
from provision.machine.tables import known_failures

MAPL = "pe=00035 FAIL at line={line}    {file}              <status={status}>\n"
BELOW = 'Calls: source -> file\nIn addition: Warning message:\nIn file(filename, "r", encoding = encoding) :\n'
BANNER = f" {'!' * 57}\n{' ' * 25}NOTICE{' ' * 27}\n {'!' * 57}\n"
ABACUS = f"ITER   ETOT(eV)\n{BANNER} \n psi_norm <= 0.0\n CHECK IN FILE : OUT.flux/warning.log\n \n{BANNER}"
SPADES = "== Error ==  system call for: \"['/env/bin/spades-hammer', '/scratch/ada/config.info']\" finished abnormally, {end}\n"
POOL = """\
Traceback (most recent call last):
  File "/home/ada/sampling.py", line 317, in main
    pool.map(replicate, replicates)
  File "/apps/lib/python3.7/multiprocessing/pool.py", line 657, in get
    raise self._value
RuntimeError: 'RAxML_info.tts.QS1.3' does not exist
"""
NANNY = """\
Traceback (most recent call last):
  File "/home/ada/distributed/distributed/nanny.py", line 478, in start
    raise gen.TimeoutError()
tornado.util.TimeoutError
"""
# A log, the entry that explains it, and words of the cause.
LOGS = {
    "the last line of MPAS names only the file": (
        (
            "ERROR: Could not open block decomposition file for 21 blocks.\nCRITICAL ERROR: Filename: /data/ada/graph.part.21\n"
            "Logging complete.  Closing file at 2022/09/01 23:51:22\n"
        ),
        "reported-error",
        "block decomposition file",
    ),
    "Psi4 without a file of integrals": (
        (
            "Number of variables in the x-matrix = 342\niwl_buf_init: Can't open file 33\n"
            'Traceback (most recent call last):\n  File "/home/ada/run.py", line 44, in <module>\n    energy()\n'
            "RuntimeError: \nFatal Error: PSIO Error\n"
        ),
        "psi4-scratch",
        "Can't open file 33",
    ),
    "R without its program in a batch job": (
        (
            "Error: Future (<unnamed-1>) of class BatchtoolsSlurmFuture expired, which indicates that it crashed or was killed.\n"
            "The last few lines of the logged output:\nwhich: no Rscript in (/usr/local/bin:/usr/bin)\n"
        ),
        "which-found-nothing",
        "`Rscript` is not in the PATH",
    ),
    "ESMF before the error is passed on": (
        (
            "20240618 133412.747 ERROR            PET0000 (med_time_alarmInit): unknown option 408\n"
            "20240618 133412.747 ERROR            PET0000 med.F90:2327 Failure  - Passing error in return code\n"
            "20240618 133412.747 ERROR            PET0000 MED:src/NUOPC_ModelBase.F90:2108 Failure  - Passin\n"
        ),
        "reported-error",
        "unknown option 408",
    ),
    "FESOM with another clock": (
        (
            "Reading restart: timestamps in restart and in clock files do not match for v at ./fesom.oce.restart/v.nc\n"
            " restart/ times are:   31535640.0000000        31535760.0000000\n"
        ),
        "fesom-clock",
        "restart file",
    ),
    "Spark behind Python": (
        (
            'Traceback (most recent call last):\n  File "chunk.py", line 415, in run\n    tasks.cache().count()\n'
            '  File "/mnt/py4j-0.8.2.1-src.zip/py4j/protocol.py", line 300, in get_return_value\n'
            "py4j.protocol.Py4JJavaError: An error occurred while calling o42.collect\n"
        ),
        "spark-java-error",
        "o42.collect",
    ),
    "an executor that YARN ended": (
        (
            "ExecutorLostFailure (executor 11 exited caused by one of the running tasks) Reason: Container killed by YARN for "
            "exceeding memory limits. 48.9 GB of 34 GB physical memory used. Consider boosting the overhead.\n"
        ),
        "spark-container-memory",
        "48.9 GB of 34 GB",
    ),
    "an executor that was lost": (
        "ExecutorLostFailure (executor 7 exited unrelated to the tasks) Reason: Executor heartbeat timed out after 3 ms\n",
        "spark-executor-lost",
        "heartbeat timed out",
    ),
    "Canu that gave up": (
        (
            "-- meryl failed.\n--\n"
            "Don't panic, but a mostly harmless error occurred and Canu stopped.\n\nCanu release v1.5 failed with:\n"
            "  canu iteration count too high, stopping pipeline (most likely a problem in the grid-based computes)\n"
        ),
        "canu-gave-up",
        "one step of Canu",
    ),
    "a class that a pickle needs": (
        (
            "220330-18:39:54,656 nipype.workflow CRITICAL:\n"
            "\t Can't get attribute 'ValidateImage' on <module 'flux.images' from '/opt/flux/images.py'>\n"
        ),
        "pickle-class-missing",
        "`ValidateImage` of the module `flux.images`",
    ),
    "nipype": (
        "220330-18:39:54,656 nipype.workflow CRITICAL:\n\t The flux of the node is inverted\n",
        "reported-error",
        "`nipype` reports an error: The flux of the node",
    ),
    "the calls of PETSc alone": (
        (
            "[0]PETSC ERROR: The line numbers in the error traceback are not always exact.\n[0]PETSC ERROR: #1 dmumps_c()\n"
            "[0]PETSC ERROR: #2 MatSolve_MUMPS() at /build/petsc/src/mat/impls/aij/mpi/mumps/mumps.c:1496\n"
        ),
        "petsc-stack",
        "`dmumps_c()`",
    ),
    "Molpro on a full disk": (
        (
            "Write error in iow_direct_write; fd=31, l=28490, p=7353232; write returns -1\n"
            "This may indicate a filled disk, or that a disk quota has been exceeded\n\n GLOBAL ERROR fehler on processor   0\n"
            "application called MPI_Abort(MPI_COMM_WORLD, 1) - process 0\n"
        ),
        "molpro-disk-full",
        "disk is full",
    ),
    "the calls of Charm++": (
        "[1963] Stack Traceback:\n  [1963:0] enzo-p 0xb679a5 t_()\n  [1963:1] enzo-p 0xb24594 FileHdf5::file_close()\n",
        "charm-stack",
        "`FileHdf5::file_close()` of `enzo-p`",
    ),
    "OpenMM without a GPU": (
        "3 CUDA - Error computing forces with CUDA platform\n\nCUDA platform error: No compatible CUDA device is available\n",
        "gpu-not-seen",
        "no GPU",
    ),
    "AMReX that computed an invalid number": (
        (
            "Erroneous arithmetic operation\nSee Backtrace.0 file for details\n"
            "MPI_ABORT was invoked on rank 0 in communicator MPI_COMM_WORLD\nwith errorcode 8.\n"
        ),
        "floating-point-exception",
        "divided",
    ),
    "AMReX that crashed": ("Segfault\nSee Backtrace.0 file for details\n", "segmentation-fault", "native code"),
    "Omni-Path without free requests": (
        (
            "Exhausted 1048576 MQ irecv request descriptors, which usually indicates a user program error or insufficient "
            "request descriptors (PSM2_MQ_RECVREQS_MAX=1048576)\n"
        ),
        "psm2-requests",
        "PSM2_MQ_RECVREQS_MAX=1048576",
    ),
    "STAR with a problem": (
        (
            "EXITING because of FATAL problem while generating the suffix array The number of indices read from chunks = 22 is "
            "not equal to expected nSA=53 SOLUTION: try again\n\nApr 01 09:10:49 ...... FATAL ERROR, exiting\n"
        ),
        "reported-error",
        "expected nSA=53",
    ),
    "the calls of IQ-TREE": (
        (
            "ERROR: STACK TRACE FOR DEBUGGING:\nERROR: 1   funcAbort()\nERROR: 2   ()\n"
            "ERROR: 3   double PhyloTree::computeLikelihoodBranchSIMD<Vec4d, false>(PhyloNeighbor*, PhyloNode*)\n"
        ),
        "iqtree-crashed",
        "`PhyloTree::computeLikelihoodBranchSIMD()`",
    ),
    "an exception that a pool of processes passes on": (POOL, "error-in-program", "a worker process or thread that"),
    "SPAdes after signal 9": (SPADES.format(end="err code: -9"), "killed", "signal 9"),
    "SPAdes after signal 7": (SPADES.format(end="err code: -7"), "bus-error", "bus error"),
    "SPAdes after signal 11": (SPADES.format(end="OS return value: -11"), "segmentation-fault", "crashed"),
    "SPAdes after signal 6": (SPADES.format(end="OS return value: -6"), "aborted", "stopped itself"),
    "SPAdes after signal 4": (SPADES.format(end="OS return value: -4"), "illegal-instruction", "newer CPU"),
    "SPAdes after a status": (SPADES.format(end="OS return value: 21"), "spades-program-failed", "status 21"),
    "an error below warnings of Perl": (
        (
            "Use of uninitialized value $pos in pattern match (m//) at /apps/util/call_seq.pl line 90.\n"
            "ERROR: Can not recognize this MSU position in the list!\n"
        ),
        "reported-error",
        "MSU position",
    ),
    "a job of Toil": (
        (
            "DEBUG toil.batchSystems.slurm: sacct output b'FAILED|1:0\\n'\n"
            "DEBUG toil.batchSystems.slurm: sacct job state is FAILED\n"
        ),
        "toil-slurm-state",
        "state FAILED",
    ),
    "a script in Tcl": (
        'while executing\n"system      Mumps"\n    (file "bridge.tcl" line 205)\n',
        "tcl-script-error",
        "`bridge.tcl`, line 205",
    ),
    "the calls that UCX lists": (
        (
            " 0 0x00000000000217b3 ucs_debug_print_backtrace()  /build/ucx-1.8.0/src/ucs/debug/debug.c:653\n"
            " 1 0x000000000149a085 dtrsm_iunucopy()  ???:0\n"
        ),
        "ucx-backtrace",
        "`dtrsm_iunucopy()`",
    ),
    "Fortran of LLVM": (
        "fatal Fortran runtime error(./src/fm413.f:263): FILE= is required unless STATUS='OLD' and unit is connected\n",
        "reported-error",
        "(`./src/fm413.f:263`): FILE= is required",
    ),
    "what the line above announces": (
        " The following error occured in m_config:\n CFG_read_file: io_state =  6  while reading from /home/ada/new.cfg\n",
        "reported-error",
        "io_state",
    ),
    "a file that R cannot open": (
        (
            'Error in file(filename, "r", encoding = encoding) :\n  cannot open the connection\n'
            f"{BELOW}  cannot open file '/../check.R': No such file or directory\nExecution halted\n"
        ),
        "reported-error",
        "'/../check.R': No such file",
    ),
    "MATLAB that crashed": (
        "       Segmentation violation detected at Thu Jun 25 11:00:16 2020\nConfiguration:\nFault Count: 3\n",
        "segmentation-fault",
        "native code",
    ),
    "a land model in the calls of MPT": (
        (
            "529:MPT: #8  0x0000000000503cd5 in abortutils_mp_endrun_globalindex_ ()\n529:MPT:     at /ada/abortutils.F90:77\n"
            "529:MPT: #9  0x0000000000677e2d in balancecheckmod_mp_balancecheck_ ()\n"
        ),
        "cesm-endrun",
        "`balancecheckmod_mp_balancecheck()`",
    ),
    "a land model without a message": (
        (
            "0:  ERROR: Unknown error submitted to shr_abort_abort.\n0: #1  0x234aada in __shr_abort_mod_MOD_shr_abort_abort\n"
            "0:      at /home/ada/shr_abort_mod.F90:61\n0: #2  0x66f27d in __abortutils_MOD_endrun_vanilla\n"
            "0:      at /home/ada/abortutils.F90:43\n0: #3  0x1553a50 in __ecosystembalancecheckmod_MOD_colpbalancecheck\n"
        ),
        "cesm-endrun",
        "colpbalancecheck()",
    ),
    "the place at which a land model ended itself": (
        " ENDRUN:\n ERROR in CNBalanceCheckMod.F90 at line 342    \n",
        "reported-error",
        "ERROR in CNBalanceCheckMod.F90 at line 342",
    ),
    "a balance of a land model": (
        (
            "n1.example.org 2623:  column cbalance error    =    2.94573308681112               16\n"
            "n1.example.org 2623:  begcb                    =    2324.39435916698\n"
        ),
        "clm-balance",
        "`cbalance`",
    ),
    "a component that Open MPI does not have": (
        f'{"-" * 74}\nAs of version 3.0.0, the "sm" BTL is no longer available in Open MPI.\n\nEfficient, high-speed same-node\n',
        "ompi-btl-sm",
        "`vader` replaces it",
    ),
    "MAPL with the wrappers of other ranks above": (
        MAPL.format(line="00031", file="GCHPctm.F90", status=1)
        + MAPL.format(line="00688", file="MAPL_ExtDataGridCompMod.F90", status=41)
        + MAPL.format(line="01844", file="MAPL_Generic.F90", status=1),
        "mapl-fail",
        "MAPL_ExtDataGridCompMod.F90, line 00688",
    ),
    "MAPL with wrappers alone": (
        MAPL.format(line="00031", file="GCHPctm.F90", status=1),
        "mapl-fail-passed-on",
        "only passes the error on",
    ),
    "samtools behind a pipe": (
        '[M::process] read 71586 sequences (10000277 bp)...\nsamtools sort: failed to read header from "-"\n',
        "samtools-pipe-empty",
        "program before it in the pipe",
    ),
    "samtools": (
        'samtools index: failed to create index for "flux.bam"\n',
        "reported-error",
        "`samtools` reports an error: failed to create index",
    ),
    "mpirun in mpirun": (
        (
            f"{'*' * 58}\n\nmpirun does not support recursive calls\n\n{'*' * 58}\n"
            "[n1:05140] [[44144,1],0] ORTE_ERROR_LOG: File open failure in file util/hnp_contact.c at line 91\n"
        ),
        "mpi-recursive",
        "`mpirun` started",
    ),
    "ABACUS": (ABACUS, "reported-error", "`ABACUS` reports an error: psi_norm <= 0.0"),
    "a kernel without memory": (
        ":0: : block: [163,0,0], thread: [0,123,0] Assertion `Allocation failed.` failed.\n",
        "gpu-heap-full",
        "could not allocate memory",
    ),
    "more ranks than GPUs": (
        (
            "1309/1310 Test #1307: Adelus_vector_MPI_3 .........................***Failed    1.66 sec\n"
            "Error: Requested GPU with id '2' but only 2GPU(s) available! Raised by Kokkos::initialize().\n"
        ),
        "kokkos-gpu-id",
        "sees only 2",
    ),
    "VTK without a display": (
        (
            "ERROR: In ../Rendering/OpenGL2/vtkXOpenGLRenderWindow.cxx, line 278\n"
            "vtkXOpenGLRenderWindow (0x56070874fdd0): bad X server connection. DISPLAY=Aborted (core dumped)\n"
        ),
        "no-display",
        "display",
    ),
    "VTK without OpenGL": (
        (
            "ERROR: In ../Rendering/OpenGL/vtkXOpenGLRenderWindow.cxx, line 382\n"
            "vtkXOpenGLRenderWindow (0x2e23ff0): Could not find a decent visual\n\n\nSegmentation fault\n"
        ),
        "opengl-not-started",
        "OpenGL",
    ),
    "the message below the place in VTK": (
        "ERROR: In /build/IO/XML/vtkXMLReader.cxx, line 522\nvtkXMLReader (0x4fc59e0): The flux is inverted\n",
        "reported-error",
        "The flux is inverted",
    ),
    "the newer logger of VTK": (
        "(   1.2s) [        ABCDEF]vtkXMLReader.cxx:123    ERR| vtkXMLReader (0x55aa12): The flux is inverted\n",
        "reported-error",
        "(`vtkXMLReader`): The flux is inverted",
    ),
    "PISM that saved its state": (
        (
            "PISM ERROR: Maximum diffusivity of SIA flow (100.005050 m2/s) is too high.\n"
            "            while performing a time step. (Note: Model state was saved to 'failed.nc'.)\n"
        ),
        "reported-error",
        "Maximum diffusivity",
    ),
    "PISM with a zero in its matrix": (
        (
            "first (x) equation in the SSAFD system: zero diagonal entry at a regular location: i =175,j =128\n"
            "PISM ERROR: ### Rank 35 massage ends here\n"
        ),
        "pism-zero-diagonal",
        "i =175,j =128",
    ),
    "a mark around the messages of a rank": (
        "PISM ERROR: ### Rank 35 message ends here\nERROR: the flux is inverted\n",
        "reported-error",
        "the flux is inverted",
    ),
    "WRF that ended itself": (
        (
            "    Veg fraction:     0.8360\nwrf_abort\nsrun: First task exited 180s ago\n"
            "srun: StepId=4282278.0 tasks 0-24: running\nsrun: launch/slurm: _step_signal: Terminating StepId=4282278.0\n"
            "slurmstepd: error: *** STEP 4282278.0 ON n1 CANCELLED AT 2024-05-23T16:52:18 ***\n"
        ),
        "wrf-abort",
        "ended itself",
    ),
    "ranks that ran on": (
        (
            "srun: First task exited 60s ago\nsrun: StepId=1.0 tasks 0-24: running\n"
            "slurmstepd: error: *** STEP 1.0 ON n1 CANCELLED AT 2024-05-23T16:52:18 ***\n"
        ),
        "srun-others-ran-on",
        "ended 60 s before",
    ),
    "Stata": (
        (
            "Waiting for the clusters to finish...\n"
            "cluster 0001 has finished with a connection error -601- (timeout) (see more)...\n"
        ),
        "reported-error",
        "error -601-",
    ),
    "a message that OpenFAST broke": (
        (
            "tialAverage:CalculateOutput:IfW_FlowField_GetVelAcc:Grid3DField_GetCell: Error: GF wind array was\n"
            "exhausted at 63.138 seconds (trying to access data at 72.101 seconds). IT_Lo=1443, IT_HI=1444\n\n"
            " OpenFAST encountered an error at simulation time 63.125 of 1800 seconds.\n Aborting OpenFAST.\n"
        ),
        "reported-error",
        "GF wind array was exhausted at 63.138 seconds",
    ),
}
# What failed is not known, and what followed from it is.
FOLLOWED = {
    "Julia after Ctrl-C": (
        "^Cfatal: error thrown and no exception handler available.\nInterruptException()\nwait at ./event.jl:147\n",
        "interrupted",
    ),
    "the summary of nf-core": (
        (
            "-[nf-core/eager] Pipeline completed with errors-\nError executing process > 'fastqc (D1)'\nCaused by:\n"
            "  Process `fastqc (D1)` terminated with an error exit status (1)\n"
        ),
        "workflow-step-failed",
    ),
    "a program with AMReX": ("step 7\nSee Backtrace.0 file for details\n", "amrex-backtrace"),
    "ABACUS without its words": (" CHECK IN FILE : OUT.flux/warning.log\n", "abacus-stopped"),
}
HARMLESS = (
    "which: no flux in (/usr/bin:/bin)\n" + "".join(f"copied file {n}\n" for n in range(60)),
    "Use of uninitialized value $x in concatenation (.) or string at /apps/flux.pl line 9.\n",
    f"{' ' * 25}NOTICE\n\n   This system is for authorised users.\n",
    "   NOTICE\n   All jobs are recorded.\n",
    "column cbalance    =    2.9\n",
    "Stack Traceback: off\n",
    "samtools sort: merging from 4 files and 1 in-memory blocks\n",
    "DEBUG toil.batchSystems.slurm: sacct job state is COMPLETED\n",
    "cluster 0001 has finished without any error...\n",
    "Step 3: see Backtrace.0 if it stops\n",
    '    (file "mesh.tcl" loaded)\n',
    "220330-18:39:24,347 nipype.workflow WARNING:\n\t Some nodes demand for more threads than available (4).\n",
    "timestamps in restart and in clock files match\n",
)


@for_each("name", LOGS)
def test_a_message_is_explained(name: str) -> None:
    log, failure, words = LOGS[name]
    known = explain([log.encode()], known_failures()).known
    assert known is not None and known.failure.id == failure
    assert words in known.cause


@pytest.mark.parametrize("name", FOLLOWED)
def test_what_follows_from_a_failure_is_named(name: str) -> None:
    log, failure = FOLLOWED[name]
    explanation = explain([log.encode()], known_failures())
    assert explanation.verdict == "unknown"
    assert explanation.findings[0].failure.id == failure


@for_each("lines", HARMLESS)
def test_lines_that_look_like_these_messages_accuse_no_one(lines: str) -> None:
    assert explain([f"step 1\n{lines}step 2\n".encode()], known_failures()).verdict == "healthy"


def test_an_exception_in_a_cloned_library_does_not_accuse_the_program() -> None:
    known = explain([NANNY.encode()], known_failures()).known
    assert known is None or known.failure.id != "error-in-program"


def test_the_words_of_a_program_come_before_the_ranks_that_ran_on() -> None:
    log = "the flux is too large, cannot continue with this step\nsrun: First task exited 60s ago\n"
    known = explain([log.encode()], known_failures()).known
    assert known is not None and "the flux is too large" in known.cause


def test_the_message_of_petsc_comes_before_its_calls() -> None:
    log = "[0]PETSC ERROR: the flux is inverted\n[0]PETSC ERROR: #1 Solve() at a.c:4\n"
    known = explain([log.encode()], known_failures()).known
    assert known is not None and "the flux is inverted" in known.cause


def test_an_index_out_of_range_on_a_gpu_is_no_lack_of_memory() -> None:
    log = "Indexing.cu:1308: f: block: [106,0,0], thread: [15,0,0] Assertion `srcIndex < srcSelectDimSize` failed.\n"
    known = explain([log.encode()], known_failures()).known
    assert known is not None and known.failure.id == "gpu-index-out-of-range"
