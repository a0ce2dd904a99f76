"""How programs and libraries of science print their errors: who is named, and which healthy lines look alike."""

from __future__ import annotations

from parts.loops import for_each
from provision.knowledge.failures.explain import explain
from provision.machine.tables import known_failures

BEFORE = "reading the input\nstep 1\n"
# The lines of a log, and the ID of the entry that explains them.
ENTRIES = {
    "    -- Number of steps\n\n Error termination via Lnk1e in /apps/g16/l502.exe at Tue .": "gaussian-stopped",
    "\n *** caught segfault ***\naddress 0x6, cause 'memory not mapped'\n\nTraceback:\n 1: dyn.load(file)": "r-crashed",
    "\n *** Break *** segmentation violation\n\n=====\nThere was a crash.\n=====": "root-crashed",
    "#3  0x00007f in TUnixSystem::DispatchSignals(ESignals) () from /root-6/lib/libCore.so\n#4  <signal handler called>": (
        "root-crashed"
    ),
    "-------- EEEE ------- G4Exception-START -------- EEEE -------\n*** G4Exception : PART70001\n"
    "      issued by : G4NuclideTable\nENSDFSTATE.dat is not found.\n*** Fatal Exception *** core dump ***\n\n"
    " *** Break *** segmentation violation": "geant4-data-missing",
    "ABNORMAL END: S/R INI_PARMS": "mitgcm-stopped",
    " error generate_databases: number of processors supposed to run on:           16\n"
    " error generate_databases: number of MPI processors actually run on:            1": "specfem-processes",
    "rms 2.870378, max 69.068245 (between atoms 1100 and 1101)\nbonds that rotated more than 30 degrees:": "gromacs-exploded",
    "  #002: H5Fsuper.c line 277 in H5F_super_read(): file signature not found\n    major: File accessibilty": "hdf5-not-hdf5",
    " At line 2825 of file solvation.f90 (unit = 8, file = 'OUTCAR')\n"
    "Fortran runtime error: Expected REAL for item 7 in formatted transfer, got LOGICAL": "fortran-format",
    "E tensorflow/cuda_driver.cc:794] failed to alloc 67108864 bytes on host: CUDA_ERROR_OUT_OF_MEMORY: out of memory": (
        "pinned-memory-refused"
    ),
    "CUDA error !!!!! <out of memory> !!!!! \nat CUDA call error code: # 2402": "gpu-out-of-memory",
    "MAIN: Abnormal termination: BLOWUP.\nREASON: KEchar = NaN": "roms-blowing-up",
    "ERROR: external program called by OrthoFinder returned an error code: -9": "killed",
    "ERROR: external program called by OrthoFinder returned an error code: -4": "illegal-instruction",
    "  '0', '2.0']' returned non-\n  zero exit status -11": "segmentation-fault",
    "0:ERROR: 0 NetCDF: Not a valid ID err_num = -33 fname = pio2/src/clib/pio_darray.c line = 261": "netcdf",
}
# The lines of a log, and words that the answer quotes.
QUOTED = {
    " ZBRENT: fatal error in bracketing\n     please rerun with smaller EDIFF": "fatal error in bracketing",
    "Error in function: pipeline: blockMesh returned: ['\n\n--> FOAM FATAL ERROR: \nbad size -2072251678": "bad size -2072251678",
    "[0]PETSC ERROR: No support for this operation on this system\n[0]PETSC ERROR: SLATE requires MPI_THREAD_MULTIPLE\n"
    "[0]PETSC ERROR: See https://petsc.org/release/faq/ for trouble shooting.": "SLATE requires MPI_THREAD_MULTIPLE",
    "   ************\n   *   SERIOUS PROBLEM IN SOSCF   *\n   *   --------   *\n   *   HUGE, UNRELIABLE STEP WAS TAKEN   *\n"
    "   *   ABORTING THE RUN   *\n   ************": "HUGE, UNRELIABLE STEP",
    "[file orca_tools/basissets.cpp, line 743]: TBasisList: Unable to read number of basis sets!": "TBasisList: Unable to read",
    "    -- Number of steps exceeded,  NStep= 126\n    -- Flag reset to prevent archiving.\n"
    "Error termination request processed by link 9999.": "Number of steps exceeded",
    '[31] ARMCI assert fail in gmr_create() [src/gmr.c:109]: "alloc_slices != NULL"\n[31] Backtrace:': "alloc_slices != NULL",
    "0:autoz bonds: too many internals:Received an Error in Communication": "autoz bonds: too many internals",
    "0:cosmo_input: solvent:Received an Error in Communication\nTraceback (most recent call last):\n"
    '  File "/env/lib/python3.7/subprocess.py", line 512, in run\n    output=stdout, stderr=stderr)\n'
    "subprocess.CalledProcessError: Command 'nwchem a.nw' returned non-zero exit status 143.": "cosmo_input: solvent",
    "------------- Processor 7 Exiting: Called CmiAbort ------------ \n"
    "Reason: Charm++ Warning: Non Charm++ Message Received.": "Non Charm++ Message Received",
    "  what():  /src/SimpleCudaMalloc_impl.hpp(42): error: out of memory": "memory of the GPU",
    "succeeded(455141), failed(3) 100% completed.\n\nWe are sorry, commands in file: [FailedCommands] failed. :-(": (
        "FailedCommands"
    ),
    "Error, cmd:\n/apps/ParaFly -c cmds -CPU 20 died with ret 256 at\n/apps/Trinity line 2811.": "ParaFly -c cmds",
    "[hmmsearch]     Error: Failed to open sequence file POG091H0041.faa.1 for reading": "Failed to open sequence file",
    "I0830 23:21:40.646003 140225598170944 run_docker.py:193] E0830 16:21:40.645383 139881951138624 hhblits.py:140] "
    "HHblits failed. HHblits stderr begin:": "search program",
    "-------- EEEE ------- G4Exception-START -------- EEEE -------\n*** G4Exception : GeomVol0002\n"
    "      issued by : G4PVPlacement\nThe volume overlaps.": "The volume overlaps",
    "FIO-F-217/namelist read/unit=10/attempt to read past end of file.\nFile name = 'tgv.case'": "attempt to read past end",
    "STOP: Numerical Instability (CHID: TM)\n[unset]: write_line error; fd=632 buf=:cmd=finalize\n:\n"
    "system msg for write_line failure : No such file or directory": "Numerical Instability",
    "ERROR: \nMlOptimiserMpi: at least 2 MPI processes are required\n"
    "application called MPI_Abort(MPI_COMM_WORLD, 1) - process 0\n[unset]: write_line error; fd=-1 buf=:cmd=abort exitcode=1\n:\n"
    "system msg for write_line failure : Bad file descriptor": "at least 2 MPI processes are required",
    "   0: ABORT: MISC: # of open nodes(1)": "MISC: # of open nodes(1)",
    "ABORT: nelt>lelt!          20          50          42": "nelt>lelt!",
    "-- Bogart failed, tried 2 times, giving up.\n--\n\nABORT: canu 2.1\n"
    "ABORT: Don't panic, but a mostly harmless error occurred and Canu stopped.": "Bogart failed, tried 2 times",
    "Failed to continue.\nCannot install a media of this type in the same directory.": "Cannot install a media",
    "Error Report: Error executing the command 'lsid'. The reason given is \n lsid: LIM is down; try later": "LIM is down",
    "Error launching Slurm job:\nMethodError(length,(:all_to_all,))": "MethodError(length",
    "RepeatMasker::createLib(): Error invoking /env/bin/makeblastdb on file /lib/is.lib.": "Error invoking /env/bin/makeblastdb",
    'Species "viridiplantae" is not known to RepeatMasker.  There may': "viridiplantae",
    "Error using parpool \n  Undefined function 'isPartOfAPool' for input arguments of type \n  'double'. ": (
        "Undefined function 'isPartOfAPool' for input arguments of type 'double'"
    ),
    "An error occurred in line <92> of file <solution_transfer.cc> in function\n    void f()\nThe violated condition was: \n"
    "    n_q_points > 0\nAdditional information: \n    There is nothing useful you can do.": "There is nothing useful",
    "java.lang.NegativeArraySizeException: -1\n        at beast.TreeLikelihood.setPartials(Unknown Source)": "NegativeArraySize",
    "BEAST has terminated with an error. Please select QUIT.\nSEVERE: Parsing error - poorly formed BEAST file, Flu.xml:\n"
    "Error parsing '<log>' element with id, 'fileLog':\nFile 'Flu.log' can not be opened for log element.\n"
    "java.lang.RuntimeException: Terminate": "File 'Flu.log' can not be opened",
    "!! CONVERGENCE HAS NOT BEEN ACHIEVED !!": "CONVERGENCE HAS NOT BEEN ACHIEVED",
    " *** WAVEWATCH III ERROR IN W3IOGR :\n     ERROR IN OPENING mod_def.points FILE\n     IOSTAT =   29": "mod_def.points",
    "./unitigger.sh: 86: ./unitigger.sh: cannot create ../run/sizes.txt: Directory nonexistent": "does not exist on this node",
    'Traceback (most recent call last):\n  File "nvt.py", line 83, in <module>\n    relax.relax()\n'
    '  File "/env/lib/python3.8/site-packages/sscha/Relax.py", line 350, in relax\n    raise ValueError(ERR_MSG)\nValueError: \n'
    "    Error, the current matrix is not positive definite.\n": "matrix is not positive definite",
    " plot_wannier: file UNK00001.1  not found\nError: examine the output/error file for details": "UNK00001.1",
    "CHO_CAS_DRV: ill-defined dens decomp for active\n--- Stop Module: dmrgscf at Wed Feb 11 23:38:38 2026 /rc=-6 ---": (
        "ill-defined dens decomp"
    ),
    "[error] Pipestance failed. Error log at:\nS5/fork0/_errors\n\nLog message:\nstage failed: entered unreachable code": (
        "entered unreachable code"
    ),
    "(exception type: ExceptionErrorE)\n\n+++ PLUMED error\n+++ assertion failed: initialized\n+++ message follows +++\n"
    'cmd("isEnergyNeeded") should be only used after plumed initialization': "isEnergyNeeded",
    "ERROR\nI cannot understand line: OPES_METAD LABEL=opes": "OPES_METAD",
    "PLUMED: ERROR in input to action ALPHABETA with label @1 : No atoms have been read in ": "No atoms have been read in",
    "ERROR in KSOLID.\n   Determinant of the Jacobian < 0 in element :      1": "Determinant of the Jacobian",
    "p=0: *** Caught standard std::exception of type 'std::runtime_error' :\n\nThrow number = 1\n\n"
    "Throw test that evaluated to true: (j)\n\nInput index j (== 1) exceeds valid range": "Input index j",
    "# The simulation has become unstable. Terminating to avoid lock-up": "has become unstable",
    "Plugin error from dada2:\nAn error was encountered while running DADA2 in R (return code 1), please inspect stdout\n"
    "Debug info has been saved to /tmp/q2cli-err.log": "running DADA2 in R",
    "--- !BUG\nsrc_file: m_paw_finegrid.F90\nsrc_line: 141\nmessage: |\n    rfgd array must be allocated!\n...": "rfgd array",
    " wrong number of MPI processes\n Error detected, aborting MPI... proc       0": "words: `wrong number of MPI processes`",
}
HARMLESS = (
    "-------- WWWW ------- G4Exception-START -------- WWWW -------\n*** This is just a warning message. ***",
    "STOP: FDS completed successfully (CHID: TM)",
    "STOP: FDS stopped by user (CHID: TM)",
    "--- Stop Module: scf at Wed Feb 11 23:38:38 2026 /rc=0 ---",
    "--- Stop Module: scf at Wed Feb 11 23:38:38 2026 /rc=_RC_ALL_IS_WELL_ ---",
    "-- Bogart finished, 2 of 2 jobs",
    "+ echo message follows",
    "Failed to load BEAGLE library: no hmsbeagle-jni in java.library.path: /usr/lib",
    "rms 0.000012, max 0.000345 (between atoms 11 and 12)",
    "errors: 0",
    "The simulation has become stable",
    "number of steps: 12, convergence has been achieved in 12 iterations",
    "I0830 23:21:40.646003 140225598170944 run_docker.py:193] I0830 16:21:40.645383 139881951138624 x.py:140] 12 were masked",
)


@for_each("lines", ENTRIES)
def test_an_entry_explains_what_a_scientific_program_prints(lines: str) -> None:
    known = explain([f"{BEFORE}{lines}\n".encode()], known_failures()).known
    assert known is not None and known.failure.id == ENTRIES[lines]


@for_each("lines", QUOTED)
def test_the_words_of_a_scientific_program_are_quoted(lines: str) -> None:
    known = explain([f"{BEFORE}{lines}\n".encode()], known_failures()).known
    assert known is not None and QUOTED[lines] in known.cause


@for_each("lines", HARMLESS)
def test_a_healthy_line_of_a_scientific_program_accuses_no_one(lines: str) -> None:
    assert explain([f"{BEFORE}{lines}\nstep 2\nstep 3\n".encode()], known_failures()).verdict == "healthy"


def test_a_rank_that_could_only_not_report_its_end_is_no_cause() -> None:
    log = (
        "application called MPI_Abort(MPI_COMM_WORLD, 1) - process 0\n"
        "[unset]: write_line error; fd=-1 buf=:cmd=abort exitcode=1\n:\nsystem msg for write_line failure : Bad file descriptor\n"
    )
    assert explain([log.encode()], known_failures()).verdict == "unknown"


def test_a_trained_model_that_is_damaged_is_still_named() -> None:
    log = "OSError: Unable to open file (file signature not found)\n"
    known = explain([log.encode()], known_failures()).known
    assert known is not None and known.failure.id == "saved-file-damaged"
