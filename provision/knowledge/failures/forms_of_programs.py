"""How libraries, scientific programs, services and tools report errors in forms of their own."""

from __future__ import annotations

from provision.knowledge.failures.forms import ENDS, ERRS, FOLLOWS, NAME, NAMED, form

PROGRAMS = (
    # Libraries and programs of science.
    form(ENDS, r"-+> FOAM FATAL (?:IO )?ERROR ?:?(?P<text>.*)", "OpenFOAM"),
    form(
        ENDS,
        r"\[\d+\]PETSC ERROR: (?P<text>(?!-|The line numbers in |See http|Petsc |Configure |#\d|Options |Unknown Name|\[\d)\S.*)",
        "PETSc",
    ),
    form(ERRS, r"\s*#\d{3}: \S{1,200} line \d+ in \w{1,80}\(\): (?P<text>.+)", "HDF5"),
    form(ENDS, r"[%\s]*Error in routine +(?P<place>\w{1,60}) \(-?\d+\):(?P<text>)", "Quantum ESPRESSO"),
    form(ENDS, r"\s*from (?P<place>\w{1,60}) : error #\s+\d+(?P<text>)$", "Quantum ESPRESSO"),
    form(ENDS, r"(?:Error in user input|Inconsistency in user input|File input/output error):(?P<text>)", "GROMACS"),
    form(ENDS, r"\W{0,40}FATAL CALLED\W{0,40}(?P<text>)$", "WRF"),
    form(ENDS, r"ERROR \d{1,4} \[file (?P<place>[^\]]{1,200})\]:(?P<text>)$", "GROMACS"),
    form(ENDS, r"--- !(?:ERROR|BUG)(?P<text>)$", "ABINIT"),
    form(ENDS, r"cdo {1,9}\w{1,40}(?: \(Abort\): |: (?=Open failed))(?P<text>.+)", "CDO"),
    form(ERRS, r"cdo \(Abort\): (?P<text>.+)", "CDO"),
    form(ENDS, r"\s{2,80}\^ (?P<text>(?:Operator|Too|Missing|Invalid|Unexpected|Unknown|Syntax)\b.{3,80})", "CDO"),
    form(ENDS, r"(?P<program>BLAST\w{0,6}) (?:[\w/]{1,20} ){1,2}error: (?P<text>.+)"),
    form(ENDS, r"\s*\*\*\* ERROR ABORT in subroutine (?P<place>\w{1,60}).{0,40}?(?P<text>)$", "I/O API"),
    form(
        ENDS,
        r"\s*(?:Proc \d{1,6}: )?VRFY \((?P<text>.{3,200})\) failed at line {1,9}\d+ in \S{1,200}",
        "a test of HDF5",
    ),
    form(ERRS, r"E {3,9}(?P<text>(?:fixture|assert|[A-Z]\w{2,60}(?:Error|Exception|Exit)\b).{2,300})", "pytest"),
    form(
        ENDS,
        r"nox > (?P<text>(?:Program|Sessions?|Error|Python interpreter|Invalid|Failed|No|Unknown)\b.{0,300}"
        r"(?:not found|failed|missing|invalid|must|cannot).{0,100})",
        "nox",
    ),
    form(ERRS, r"nox > (?P<text>Command .{1,300} failed with exit code \d+.*)", "nox"),
    form(ENDS, r"[\w.-]{1,40}: failed with (?P<text>(?!exit|code|status|error).{4,300})", "tox"),
    form(
        ENDS,
        r"E[A-Z]\d{4}: (?:\[PID: \d+\] )?(?:\d{4}-[\d.:-]{10,40} )?(?P<text>(?!Inner Error!?$)[A-Z].+)",
        "Ascend CANN",
    ),
    # The class of these is `Inner Error!`; the layer that failed and its words are in the next line.
    form(ENDS, r"E[A-Z]9999 {1,4}(?P<text>\S.{3,300}?)(?:\[FUNC:.*)?$", "Ascend CANN"),
    # DALI: the operator and its place in the pipeline, then the cause; a failed assertion names its source.
    form(FOLLOWS, r"(?P<text>Critical error (?:in|when building) pipeline):$", "DALI"),
    form(FOLLOWS, r"(?P<text>Error in (?:CPU|GPU|MIXED) operator `?'.{1,200}?),$", "DALI"),
    form(ENDS, r"encountered:(?P<text>)$", "DALI"),
    form(ENDS, r"(?P<text>Error when constructing operator: .{1,120} encountered:)$", "DALI"),
    # Sources: SynapseAI's logger, ROCm's clr with AMD_LOG_LEVEL=1, NVSHMEM's macros of errors, DGL's rpc/network.
    form(ERRS, r"\[[A-Z_]{2,40} *\]\[(?:error|critical) *\]\[tid:\w{1,16}\] (?P<text>.+)", "SynapseAI"),
    form(
        ERRS,
        r":1:(?P<place>\w{1,60}\.\w{1,4} *:\d+) *: {1,4}\d+ us: {1,4}(?:\[[^\]]{1,60}\] {0,4})?(?P<text>.+)",
        "ROCm",
    ),
    form(
        ERRS,
        r"\S{0,200}nvshmem\S{0,200}?(?P<place>\w{1,80}\.\w{1,4}:\d+): (?:\w{1,80}: )?"
        r"(?:non-zero status: -?\d+|NULL value):? (?P<text>.+)",
        "NVSHMEM",
    ),
    form(ERRS, r"\S{1,200}/(?P<place>tcp_socket\.cc:\d+): (?P<text>Failed .+)", "DGL"),
    form(ENDS, r"(?P<text>\w{2,12} failure \d+.{0,200}; GPU=.+)", "CNTK or ONNX Runtime"),
    form(ENDS, r".{0,60}\|CCL_ERROR\| \S{1,80}:\d+ \w{1,80}: (?P<text>.+)", "oneCCL"),
    form(ENDS, r"╭─+ Error ─+╮?(?P<text>)$"),  # Typer, with Rich
    form(ENDS, r"Command line argument error: (?P<text>.+)", "BLAST"),
    form(ENDS, r"\(ERR\): (?P<text>.+)", "Bowtie 2 or HISAT2"),
    form(ENDS, r"Node: '[^']{1,300}'(?P<text>)$", "TensorFlow"),
    form(ENDS, r"\s+\(0\) (?P<text>[A-Z].+)", "TensorFlow"),
    form(ENDS, r"W \S{1,200}:\d+\] OP_REQUIRES failed at \S{1,100} : (?P<text>.+)", "TensorFlow"),
    form(ERRS, r"\[[EF]\d{0,4} [^\]]{0,80}\.(?:cpp|cc|h):\d+\] (?:\[Rank \d+\] )?(?P<text>(?!\[PG ID).+)", "PyTorch"),
    form(ERRS, r".{0,80}\bUCX +(?:ERROR|FATAL) +(?P<text>.+)", "UCX"),
    form(ENDS, r"\s*\|\s+E{7}\s+R {5}R  R {5}R .*#\s+\|(?P<text>)$", "VASP"),
    form(ENDS, r"-{4,20} (?:Partition \d+ )?Processor \d+ Exiting: Called CmiAbort -+(?P<text>)$", "Charm++"),
    form(ENDS, r"(?:\S{1,80}: )?Rank \d+:\d+: (?P<place>MPI_\w+): (?P<text>.+)", "Platform MPI"),
    # Services. Sources: logfmt of Go's programs and capnslog, sssd's util/debug.c, haproxy's errors.c, nginx's ngx_log.c,
    # redis' config.c, chrony's logging.c.
    form(
        ENDS,
        r"(?:\w{1,20}=(?:\"[^\"]{0,200}\"|\S{1,99}) ){0,4}(?:level|lvl)=\"?(?:fatal|panic|crit)\w{0,5}\"? .{0,200}?"
        r"(?P<text>\b(?:msg|err(?:or)?)=.+)",
    ),
    form(
        ERRS,
        r"(?:\w{1,20}=(?:\"[^\"]{0,200}\"|\S{1,99}) ){0,4}(?:level|lvl)=\"?err?o?r\w{0,2}\"? .{0,200}?"
        r"(?P<text>\b(?:msg|err(?:or)?)=.+)",
    ),
    form(ENDS, r"C \| (?P<program>[\w/-]{1,40}): (?P<text>.+)"),
    form(ERRS, r"E \| (?P<program>[\w/-]{1,40}): (?P<text>.+)"),
    form(ENDS, r"\[(?P<program>\w{2,40})(?:\[[^\]]{1,80}\])?\] \[(?P<place>\w{2,80})\] \(0x0010\): (?P<text>.+)"),
    form(ERRS, r"\[(?P<program>\w{2,40})(?:\[[^\]]{1,80}\])?\] \[(?P<place>\w{2,80})\] \(0x0020\): (?P<text>.+)"),
    form(ENDS, r"\[ALERT\] {1,9}(?:\d+/\d+ )?\(\d+\) : (?P<text>.+)", "haproxy"),
    form(ENDS, r"(?:nginx: )?\[emerg\] (?:\d+#\d+: )?(?P<text>.+)", "nginx"),
    form(ENDS, r"\*\*\* FATAL CONFIG FILE ERROR\b.{0,40}\*\*\*(?P<text>)$", "redis-server"),
    form(ENDS, rf"(?P<program>{NAME}): (?P<text>.+?) -- exiting\.?$"),
    form(ENDS, r"TLS: (?P<text>could not use .+)", "slapd"),
    form(ENDS, r"Fatal error : (?P<text>.+)"),
    form(ENDS, r"(?P<program>mount\.nfs4?): (?P<text>(?!timeout set|trying |mount\(2\)|Either |prog ).+)"),
    form(
        ENDS,
        r"(?P<program>kinit|kadmin(?:\.local)?|kvno|krb5kdc|kprop|mke2fs|mkfs\.ext\d|e2fsck|tune2fs|resize2fs): "
        r"(?P<text>.{3,200} while \w{3,20}ing\b.*)",
    ),
    form(ENDS, r"(?P<program>ch-\w{2,20})\[\d+\]: error: (?P<text>.+)"),
    # Codes that print their errors in a form of their own.
    form(ENDS, r"== Error == +(?P<text>(?!system call for)\S.+)", "SPAdes"),
    form(ENDS, r"\w{1,60}\.cpp:\d+:\w{1,60} EXITING because of FATAL ERROR.{0,60}?: (?P<text>.+)", "STAR"),
    form(
        ENDS,
        r"(?:\w{1,60}\.cpp:\d+:\w{1,60}: ?)?(?i:exiting):? because of (?:fatal )?[*A-Z ]{4,40} error: (?P<text>.+)",
        "STAR",
    ),
    form(ENDS, r"\W{0,9}EXITING:? because of FATAL (?P<text>problem .+?)(?: SOLUTION: .*)?$", "STAR"),
    form(ERRS, r"\s*(?P<text>ERROR in \S{1,80}\.[fF]\d{0,2} at line \d+)\s*$", "a model of CESM or E3SM"),
    form(ERRS, r"(?:ERROR|Error): In (?P<place>\S{1,300}, line \d+)(?P<text>)$", "VTK"),
    form(ERRS, r".{0,120}\bERR\| +(?P<place>\w{1,80}) \(0x[0-9a-f]{4,16}\): (?P<text>.+)", "VTK"),
    form(ERRS, r"\s{25,26}NOTICE(?P<text>)$", "ABACUS"),
    form(
        ENDS,
        r"(?P<program>samtools) \w{2,20}: (?P<text>(?i:failed|couldn't|could not|cannot|can't|error|truncated|invalid) .+)",
    ),
    # OpenFAST breaks its messages after 98 characters: the names of the routines may begin in the line above.
    form(ERRS, r"(?:[A-Za-z]\w{1,60}:){3,30} ?(?:FATAL )?Error: (?P<text>.+)", "OpenFAST"),
    form(
        ENDS,
        r"(?P<text>cluster \d{1,6} has (?:finished|exited|aborted) with an? (?:connection )?error -?\d+-?.*)",
        "the package `parallel` of Stata",
    ),
    # The format of nipype's logs: the message is in the next line, behind a tabulator.
    form(ERRS, r"\d{6}-[\d:,]{8,14} (?P<program>nipype)\.\w{1,40} (?:ERROR|CRITICAL):(?P<text>)$"),
    form(ERRS, r"[ECF] \d{1,9} \d{1,9}\] (?:\(\w{1,40}\) )?\S{1,80}:\d+: (?P<text>.+)", "Ray"),
    form(
        ERRS,
        r"\d{8} \d{6}\.\d{3} ERROR +PET\d+ (?:(?P<place>\S{1,80}:\d+|\(\w{1,80}\)) )?"
        r"(?P<text>(?!.{0,200}(?:Internal subroutine call returned|Passing error in|Failure +- ))\S.+)",
        "ESMF",
    ),
    form(ENDS, r"\s*\d{1,9} \[[0-9A-F]{6,16}\] 0x\w{2} -> \w{1,60}: ERR \w{4}: (?P<text>.+)", "OpenSM"),
    form(ENDS, r"Exception : \[(?P<text>.+)\]$", "salmon"),
    form(ENDS, r"Charmrun> error (?P<place>[^:]{3,80}?)(?::|--)(?P<text>)$", "charmrun"),
    form(ENDS, r"(?P<text>The resource file >>.{1,200}<< could not be opened.*)", "jsrun"),
    form(ENDS, r"(?P<text>\S{1,40} requires \S.{2,80}, but spec asked for .+)", "Spack"),
    form(ENDS, r"(?P<text>FAILED to (?!setup (?:image|user-requested mounts)).{5,300})", "Shifter"),
    form(ENDS, r"! (?P<text>(?:Timed out|Couldn't find|Can't|Failed|No such).{2,200})", "cpanm"),
    form(ENDS, r"(?P<text>\S.{1,80} not found\. exiting\.{2,3})$"),
    form(ENDS, r"\S{1,200}:\d{1,6}: (?P<text>parse error near .+)", "zsh"),
    form(ENDS, r"\s*-E- (?P<text>.+)", "a script of Mellanox"),
    form(ENDS, r"RPM build errors:(?P<text>)$", "rpmbuild"),
    form(
        ENDS,
        r"(?P<program>\w{1,12}): (?P<text>(?:Expression Syntax|Badly placed \(\)'s|Missing [})]|Variable syntax))\.$",
    ),
    form(ENDS, r"<PSP:r\d{4,9}:(?P<text>.{3,300}?)>?$", "ParaStation MPI"),
    form(ENDS, r".{0,40}\w{3,60} execute failed, reason=\[(?P<text>[^\]]{3,200})\]", "Ascend CANN"),
    form(ENDS, r"(?P<program>gfal-\w{2,12}) error: \d{1,4} \([^)]{2,60}\) - (?P<text>.+)"),
    form(ENDS, r"qmgr obj=(?P<place>\S{0,80}) svr=\S{1,80}: (?P<text>.+)", "qmgr"),
    form(
        ENDS,
        r".{0,60};PBS_Server[^;]{0,20};\w{3};\w{3,40};(?P<text>(?:token \".+ in error|Hosts do not match).+)",
        "Torque",
    ),
    form(ERRS, r".{0,30}\[jobs?-\w{3,10} err\] (?P<text>(?!\d{4}-).+)", "Cylc"),
    form(ENDS, r"\(EE\) (?P<text>(?!Server terminated|Please|Fatal|$).+)", "the X server"),
    form(ENDS, r".{0,80}\bNET/OFI (?P<text>.{3,200} RC: -\d{1,5}, ERROR: .+)", "the plugin of NCCL for libfabric"),
    form(ENDS, r"(?:AUTHENTICATE|SECMAN|DAEMON|CEDAR|SCHEDD|DC|FTP|TOOL):\d{1,5}:(?P<text>.+)", "HTCondor"),
    form(ENDS, r"ERROR \"(?P<text>.{3,300})\" at line \d+ in file (?P<place>\S+)", "HTCondor"),
    form(
        ENDS,
        r"\[\S{1,80}:(?:mpirun_rsh|mpispawn_\d+)\]\[\w{1,60}\] (?P<text>(?:[Cc]ould not|[Uu]nable|[Ff]ail).+)",
        "mpirun_rsh",
    ),
    form(ENDS, r"\s+reason: (?P<text>(?:slave|master|worker)\b.{0,60}\bfail.+)", "GASNet"),
    form(ENDS, r"\w{2,30} parsing error: (?P<text>(?!\d).{3,300})"),
    form(ENDS, r"ERROR - \[(?P<place>[^\]\s]{1,200}:\d+)\] (?P<text>.+)", "LIKWID"),
    form(ENDS, r"\s*\*ERROR (?:reading|in) \*?(?P<place>\w[\w ]{1,40}?): (?P<text>(?!Card image).+)", "CalculiX"),
    form(ENDS, r"(?P<program>ECCODES|GRIB_API) ERROR +: +(?P<text>.+)"),
    form(ENDS, r"\s*Error line number (?P<place>\d+, in file \S{1,200}), (?P<text>before +token .+)", "FreeFem++"),
    form(ENDS, r"Error initializing output stream \S{1,9} -- (?P<text>.+)", "FFmpeg"),
    form(
        ENDS,
        r"(?P<program>[\w.+-]{1,40}): (?P<text>.{3,300}?) @ (?:error|fatal)/(?P<place>\w{1,40}\.c/\w{1,80}/\d+)\.?$",
    ),
    form(ENDS, r"(?:Alignment|Sequence|HMM) (?:input|file) (?:open|parse|read) failed\.(?P<text>)$", "HMMER"),
    form(ENDS, r"\s*\*{3} +_?[\w/*+^-]{1,40}: (?P<text>(?:impossible|invalid|unknown|missing|error).+)", "PARI/GP"),
    # Tools. Snakemake prints the class of an exception alone, and its text in the next line.
    form(
        ENDS,
        r"(?P<text>(?:Create\w{1,40}|Missing\w{1,30}|Protected\w{1,30}|Incomplete\w{1,30})Exception:)$",
        "Snakemake",
    ),
    form(ENDS, r"\s*(?P<program>[A-Z]{2,12}): (?P<text>fatal (?:internal )?error (?:in|while|during) .+)"),
    form(
        ENDS,
        r"(?:\d{1,7}:)?(?P<text>\S.{0,300}?):? ?Received an Error in Communication",
        "a program with Global Arrays",
    ),
    form(ENDS, r"(?P<text>(?:\w{1,20} )?(?i:assert(?:ion)?) fail(?:ed|ure)? in .{1,100}: .+)"),
    form(ENDS, r"\[file (?P<place>\S{1,200}\.\w{1,4}, line \d+)(?:, Process \d+)?\]: (?P<text>.+)", "ORCA"),
    form(ENDS, r"\s*\*\s+SERIOUS PROBLEM IN (?P<place>\w{1,20})\s+\*(?P<text>)$", "ORCA"),
    form(ENDS, r"-{4,20} EEEE -{4,20} G4Exception-START\b.{0,40}?(?P<text>)$", "Geant4"),
    form(ENDS, r"(?:\w{1,20}: )?(?P<text>[Aa]bnormal termination: .+)"),
    form(ENDS, r"STOP: (?P<text>(?!FDS (?:completed|stopped by|was|performed)).{3,100}) \(CHID: .{1,100}\)$", "FDS"),
    # Canu prints its own words of comfort so, and the end of another log.
    form(
        ENDS,
        r"\s{0,8}ABORT: {1,2}(?P<text>(?!(?i:canu) |Don't panic|Try restarting|Disk space|Last \d+ lines|Aborting with)\S.+)",
    ),
    form(ENDS, r"-- (?P<text>.{3,80} failed, tried \d+ times, giving up)\.", "Canu"),
    form(ENDS, r"(?P<text>We are sorry, commands in file: \[.{1,300}\] failed)", "ParaFly"),
    form(ERRS, r"(?:.{1,80}\.\.\. )?Error, cmd: ?(?P<text>.*)", "a program in Perl"),
    form(
        ENDS,
        r"(?P<program>\w{2,40}::\w[\w:]{1,80})\(\): (?P<text>Error (?:invok|execut|runn|open|creat|read|writ)ing .+)",
    ),
    form(ERRS, r"(?P<text>Error (?:launch|invok)ing \S.{1,300})"),
    form(ENDS, r"(?P<text>Species \".{1,80}\" is not known to RepeatMasker\b.*)", "RepeatMasker"),
    form(ENDS, r"\+{3} message follows \+{3}(?P<text>)$", "PLUMED"),
    form(ENDS, r"(?P<text>I cannot understand line: .+)", "PLUMED"),
    form(ENDS, r"PLUMED: ERROR in input to action (?P<place>\S{1,80}) with label \S{1,80} : (?P<text>.+)", "PLUMED"),
    form(ENDS, r"\W{0,4}(?P<text>The simulation has become unstable\..*)"),
    form(ERRS, r"ERROR in (?P<place>[A-Z]\w{2,20})\.?(?P<text>)$"),
    form(ERRS, r"\s*Throw test that evaluated to true: .{1,300}?(?P<text>)$", "Trilinos"),
    form(ENDS, r"Plugin error from (?P<place>\S{1,40}):(?P<text>)$", "QIIME 2"),
    # An exception that a program in Java prints with its calls, without the name of a thread.
    form(
        NAMED,
        r"(?P<text>(?:java|javax|scala)\.[\w.]{1,80}(?:Exception|Error)(?:: .+)?)$",
        "a program in Java",
    ),
    form(ENDS, r"The violated condition was: *(?P<text>.*)$", "deal.II"),
    form(ENDS, r"\s*\*{3} WAVEWATCH[ -]III (?:FATAL )?ERROR IN (?P<place>\w{1,20}) ?:(?P<text>.*)", "WAVEWATCH III"),
    form(ENDS, r"Log message:(?P<text>)$", "a pipeline of Martian"),
    form(ERRS, r"\W{0,9}(?P<text>(?i:convergence (?:has )?not (?:been )?achieved)\b.*)"),
)
