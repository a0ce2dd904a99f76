"""The forms in which programs report their errors, from the most particular to the most general."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

from provision.knowledge.failures.words import word_set

# How sure a report is the error that ended a program: it says so; it calls itself an error; it only complains, with or without
# its name; it follows from an error elsewhere.
ENDS, ERRS, NAMED, COMPLAINS, FOLLOWS = 4, 3, 2, 1, 0


@dataclass(frozen=True, slots=True)
class Form:
    """One form of a line."""

    strength: int
    pattern: str
    """Its group `text` is the message, which continues in the next line if it is empty or ends with a colon; `program` is who
    prints it, and `place` the place in a source or a script."""
    program: str = ""
    """Who prints it, if the line need not say so."""
    only_system: bool = False
    """Whether the message has to contain a text of the system, such as `Permission denied`."""


# Words of the forms and of the system's texts, apart from those that each sign of a failure has.
FORM_WORDS = word_set(
    "eeeeeee cmiabort err alert emerg impossible "
    "panic panicked severe caused halted stop busy refused denied implemented stale ioctl permitted temporarily unreachable "
    "timed broken reset invalid unrecognized unsupported missing petsc exist crash "
    "fio received violated evaluated unstable plugin chid nonexistent wavewatch giving"
)
# `error` and `fatal error` of GCC in other languages: Chinese, Japanese, French, German, Russian, Ukrainian, Swedish, Dutch,
# Danish, Finnish, Turkish and Spanish. Source: the message catalogues of GCC 12, gcc-12.mo in Debian's gcc-12-locales.
ERROR_ELSEWHERE = (
    *("错误", "致命错误", "錯誤", "嚴重錯誤", "エラー", "致命的エラー", "erreur", "erreur fatale"),
    *("Fehler", "schwerwiegender Fehler", "ошибка", "фатальная ошибка", "помилка", "критична помилка"),
    *("fel", "ödesdigert fel", "fout", "fatale fout", "fejl", "fatal fejl", "virhe", "vakava virhe"),
    *("hata", "ölümcül hata", "error fatal"),
)
# What names a program, and what else stands before the word `error`.
_NAME = r"[A-Za-z/~.][\w.+/-]{0,200}"
_HEAD = r"\W{0,9}(?:\[[^\]\n]{1,80}\]:? {0,8}){0,3}"
_WHERE = r"(?:(?: in| at| on| from| while| when| during) [^:]{1,80})?"


def _form(strength: int, pattern: str, program: str = "", *, only_system: bool = False) -> Form:
    return Form(strength, pattern, program, only_system)


_FORMS = (
    # The runtimes of languages. Sources: Go's `panic`, Rust's `std::panicking`, Java's `Thread.dispatchUncaughtException`,
    # libgfortran, Intel's `forrtl`, NVIDIA's PGFIO, libstdc++, glibc's `assert`, abseil's `CHECK`, R, Julia, MATLAB, Ruby, Perl.
    _form(ENDS, r"(?:panic|fatal error): (?P<text>.+)", "a program in Go"),
    _form(ENDS, r"thread '[^']{0,80}'(?: \(\d+\))? panicked at (?P<text>'.+|.+:)", "a program in Rust"),
    _form(ENDS, r"Exception in thread \"[^\"]{1,80}\" (?P<text>.+)", "a program in Java"),
    _form(ENDS, r"Caused by: (?P<text>.+)", "a program in Java"),
    _form(ENDS, r"Fortran runtime error: (?P<text>.+)", "a program in Fortran"),
    _form(ENDS, r" ?ERROR STOP (?P<text>\S.+)", "a program in Fortran"),
    _form(ENDS, r"awk: (?:\S{1,80}:|cmd\. line:)\d+:(?: \([^)]{1,80}\))? (?P<text>.+)", "awk"),
    _form(ENDS, r"sed: -e expression #\d+, char \d+: (?P<text>.+)", "sed"),
    _form(
        ENDS,
        r"(?:\([^)]{1,60}\) )?(?:ERROR|CRITICAL) \d\d-\d\d \d\d:\d\d:\d\d \[?[\w./-]{1,80}\.py:\d+\]? "
        r"(?P<text>[A-Z]\w{2,60}(?:Error|Exception): .+)",
        "vLLM",
    ),
    _form(ERRS, r"[A-Z]\w{1,60} \[(?:Error|ERROR)\]: (?P<text>.+)"),
    # The levels of syslog behind a name, as Flux prints them.
    _form(ENDS, r"(?P<program>[a-z][\w-]{1,30})\.(?:crit|alert|emerg)\[\d{1,9}\]: (?P<text>.+)"),
    _form(ERRS, r"(?P<program>[a-z][\w-]{1,30})\.err\[\d{1,9}\]: (?P<text>.+)"),
    _form(ENDS, r".{0,80}\bjob-exception: (?:id=\S{1,40} ?)?(?P<text>.+)", "Flux"),
    _form(
        ENDS, r"(?:\[?[\d.+]{3,20}\]? )?exception type=\S{1,40} severity=0 .{0,200}\bnote=\"(?P<text>[^\"]+)", "Flux"
    ),
    # Workflow managers, and programs that submit jobs.
    _form(ENDS, r"CRASH: {3}(?P<text>\S.+)", "canu"),
    _form(ENDS, r"ABORT: {3}(?P<text>\S.+)", "canu"),
    _form(ENDS, r"\s*canu::\w{1,30}::ca(?:Failure|Exit)\(['\"](?P<text>[^'\"]{3,200})['\"]", "canu"),
    _form(ENDS, r"canu failed with '(?P<text>.{3,300})'\.", "canu"),
    _form(ERRS, r"\+-> (?:ERROR|CRITICAL) at \d{4}-\S{1,20} \S{1,40}(?P<text>)$", "AiiDA"),
    _form(ERRS, r"[EF] #\w{2,8} +\[ *\d+\.\d+\] +\* (?P<text>(?!fsd_exc_new)\S.+)", "DRMAA"),
    _form(ERRS, r"(?P<program>[a-z]\w{1,30}): iberror: (?:\[[^\]]{1,80}\] [^:]{1,60}: )?failed: (?P<text>.+)"),
    _form(ENDS, r"Result message +\| +(?P<text>Failed; .+)", "MTT"),
    _form(NAMED, r"future: <Task finished .{1,400} exception=(?P<text>\w.+?)>$", "asyncio"),
    # structlog with its level, message, logger and values.
    _form(
        ERRS,
        r"\[(?:error|critical|exception) {0,9}\[?\] (?P<text>\S.{2,300}?)"
        r"(?: +\[[\w.]{1,80}\](?: +\w+=.*)?| {2,}\w+=.*| {2,})?$",
    ),
    _form(ERRS, r"[\w .-]{1,60} : .{0,30}\d\d:\d\d:\d\d.{0,14} : (?:ERROR|Error|error) ?: (?P<text>.+)"),
    _form(ENDS, r".{0,40}?(?P<text>\bProcess \d{1,9} \(\S{1,60}\) of user \d{1,9} dumped core\.)", "systemd"),
    _form(
        ENDS,
        r".{0,80}\b(?:stopp|abort|terminat|end|exit)(?:ed|s|ing) (?:due to|because of) "
        r"(?:the |a |an )?(?:following )?(?:fatal |internal )?error\W{0,4}(?P<text>)$",
    ),
    _form(ENDS, r"Exception Message: ?(?P<text>.*)", "a program of CMS"),
    _form(ENDS, r"\W{0,9}\*\* Severe +\*\* (?P<text>.+)", "EnergyPlus"),
    _form(ENDS, r"\[E::\w{1,60}\] (?P<text>.+)", "a program of htslib or bwa"),
    _form(
        ENDS,
        r"(?:WorkflowError|WildcardError|\w{0,40}RuleException|CyclicGraphException|ChildIOException|InputFunctionException)"
        r"(?: in (?:line|rule|file) .{1,200})?: ?(?P<text>.*)",
        "Snakemake",
    ),
    _form(ENDS, r"forrtl: (?:severe|error) \(\d+\): (?P<text>.+)", "a program in Fortran"),
    # NAG's run-time system, and the heading of an error of Cray's compilers, whose text is in the next line.
    _form(ENDS, r"Runtime Error: (?P<place>[^:\s]{1,300}, line \d+): (?P<text>.+)", "a program in Fortran"),
    _form(
        ENDS,
        r"\w{1,12}-\d{1,6} (?P<program>\w{1,20}): ERROR \S{1,100}, (?P<place>File = .{1,400}, Line = \d+).{0,30}(?P<text>)$",
    ),
    _form(
        ENDS, r"\"(?P<place>[^\"]{1,300})\", line \d+: (?:catastrophic |internal )?error: ?(?P<text>.+)", "the compiler"
    ),
    _form(ENDS, r"(?:PG)?FIO(?:-[FS]-\d+|[\w/-]{0,20}?)/(?P<text>.+)", "a program in Fortran"),
    _form(ENDS, r"\s*what\(\): +(?P<text>.+)", "a program in C++"),
    _form(ENDS, rf"(?P<program>{_NAME}): \S{{1,200}}:\d+: .{{0,300}}(?P<text>\bAssertion [`'\"].{{1,300}} failed.*)"),
    _form(ENDS, r"(?P<text>(?:Assertion|Check) failed: .+)"),
    _form(ENDS, r"F\S{0,8} .{0,120}?\S:\d+\] (?P<text>.+)"),
    _form(ENDS, r"Error in (?P<place>[^:]{1,120}\)) ?: ?(?P<text>.*)", "R"),
    _form(ENDS, r"(?:│ )?ERROR: (?:LoadError: |InitError: ){1,4}(?P<text>.+)", "Julia"),
    # MATLAB names the function, and prints the message below.
    _form(ENDS, r"Error using (?P<place>[\w./%@+>-]{1,120}(?: \(line \d+\))?)\s*(?P<text>)$", "MATLAB"),
    _form(ENDS, r"Error using (?P<text>.+)", "MATLAB"),
    _form(ENDS, r"(?P<place>\S{1,200}\.rb:\d+:in .{1,80}?): (?P<text>.+)", "Ruby"),
    _form(ERRS, r"(?P<text>\S.{1,300}) at (?P<place>\S{1,200}\.(?:p[lm]|PL)) line \d+(?:, <\w+> line \d+)?\.", "Perl"),
    # Libraries and programs of science.
    _form(ENDS, r"-+> FOAM FATAL (?:IO )?ERROR ?:?(?P<text>.*)", "OpenFOAM"),
    _form(
        ENDS,
        r"\[\d+\]PETSC ERROR: (?P<text>(?!-|See http|Petsc |Configure |#\d|Options |Unknown Name|\[\d)\S.*)",
        "PETSc",
    ),
    _form(ERRS, r"\s*#\d{3}: \S{1,200} line \d+ in \w{1,80}\(\): (?P<text>.+)", "HDF5"),
    _form(ENDS, r"[%\s]*Error in routine +(?P<place>\w{1,60}) \(-?\d+\):(?P<text>)", "Quantum ESPRESSO"),
    _form(ENDS, r"\s*from (?P<place>\w{1,60}) : error #\s+\d+(?P<text>)$", "Quantum ESPRESSO"),
    _form(ENDS, r"(?:Error in user input|Inconsistency in user input|File input/output error):(?P<text>)", "GROMACS"),
    _form(ENDS, r"\W{0,40}FATAL CALLED\W{0,40}(?P<text>)$", "WRF"),
    _form(ENDS, r"ERROR \d{1,4} \[file (?P<place>[^\]]{1,200})\]:(?P<text>)$", "GROMACS"),
    _form(ENDS, r"--- !(?:ERROR|BUG)(?P<text>)$", "ABINIT"),
    _form(ENDS, r"cdo {1,9}\w{1,40}(?: \(Abort\): |: (?=Open failed))(?P<text>.+)", "CDO"),
    _form(ERRS, r"cdo \(Abort\): (?P<text>.+)", "CDO"),
    _form(ENDS, r"\s{2,80}\^ (?P<text>(?:Operator|Too|Missing|Invalid|Unexpected|Unknown|Syntax)\b.{3,80})", "CDO"),
    _form(ENDS, r"(?P<program>BLAST\w{0,6}) (?:[\w/]{1,20} ){1,2}error: (?P<text>.+)"),
    _form(ENDS, r"\s*\*\*\* ERROR ABORT in subroutine (?P<place>\w{1,60}).{0,40}?(?P<text>)$", "I/O API"),
    _form(
        ENDS,
        r"\s*(?:Proc \d{1,6}: )?VRFY \((?P<text>.{3,200})\) failed at line {1,9}\d+ in \S{1,200}",
        "a test of HDF5",
    ),
    _form(ERRS, r"E {3,9}(?P<text>(?:fixture|assert|[A-Z]\w{2,60}(?:Error|Exception|Exit)\b).{2,300})", "pytest"),
    _form(
        ENDS,
        r"nox > (?P<text>(?:Program|Sessions?|Error|Python interpreter|Invalid|Failed|No|Unknown)\b.{0,300}"
        r"(?:not found|failed|missing|invalid|must|cannot).{0,100})",
        "nox",
    ),
    _form(ERRS, r"nox > (?P<text>Command .{1,300} failed with exit code \d+.*)", "nox"),
    _form(ENDS, r"[\w.-]{1,40}: failed with (?P<text>(?!exit|code|status|error).{4,300})", "tox"),
    _form(ENDS, r"E[A-Z]\d{4}: (?:\[PID: \d+\] )?(?:\d{4}-[\d.:-]{10,40} )?(?P<text>[A-Z].+)", "Ascend CANN"),
    _form(ERRS, r".{0,60}\|CCL_ERROR\| \S{1,80}:\d+ \w{1,80}: (?P<text>.+)", "oneCCL"),
    _form(ENDS, r"╭─+ Error ─+╮?(?P<text>)$"),  # Typer, with Rich
    _form(ENDS, r"Command line argument error: (?P<text>.+)", "BLAST"),
    _form(ENDS, r"\(ERR\): (?P<text>.+)", "Bowtie 2 or HISAT2"),
    _form(ENDS, r"Node: '[^']{1,300}'(?P<text>)$", "TensorFlow"),
    _form(ENDS, r"\s+\(0\) (?P<text>[A-Z].+)", "TensorFlow"),
    _form(ENDS, r"W \S{1,200}:\d+\] OP_REQUIRES failed at \S{1,100} : (?P<text>.+)", "TensorFlow"),
    _form(ERRS, r"\[[EF]\d{0,4} [^\]]{0,80}\.(?:cpp|cc|h):\d+\] (?:\[Rank \d+\] )?(?P<text>(?!\[PG ID).+)", "PyTorch"),
    _form(ERRS, r".{0,80}\bUCX +(?:ERROR|FATAL) +(?P<text>.+)", "UCX"),
    _form(ENDS, r"\s*\|\s+E{7}\s+R {5}R  R {5}R .*#\s+\|(?P<text>)$", "VASP"),
    _form(ENDS, r"-{4,20} (?:Partition \d+ )?Processor \d+ Exiting: Called CmiAbort -+(?P<text>)$", "Charm++"),
    _form(ENDS, r"(?:\S{1,80}: )?Rank \d+:\d+: (?P<place>MPI_\w+): (?P<text>.+)", "Platform MPI"),
    # Services. Sources: logfmt of Go's programs and capnslog, sssd's util/debug.c, haproxy's errors.c, nginx's ngx_log.c,
    # redis' config.c, chrony's logging.c.
    _form(
        ENDS,
        r"(?:\w{1,20}=(?:\"[^\"]{0,200}\"|\S{1,99}) ){0,4}(?:level|lvl)=\"?(?:fatal|panic|crit)\w{0,5}\"? .{0,200}?"
        r"(?P<text>\b(?:msg|err(?:or)?)=.+)",
    ),
    _form(
        ERRS,
        r"(?:\w{1,20}=(?:\"[^\"]{0,200}\"|\S{1,99}) ){0,4}(?:level|lvl)=\"?err?o?r\w{0,2}\"? .{0,200}?"
        r"(?P<text>\b(?:msg|err(?:or)?)=.+)",
    ),
    _form(ENDS, r"C \| (?P<program>[\w/-]{1,40}): (?P<text>.+)"),
    _form(ERRS, r"E \| (?P<program>[\w/-]{1,40}): (?P<text>.+)"),
    _form(ENDS, r"\[(?P<program>\w{2,40})(?:\[[^\]]{1,80}\])?\] \[(?P<place>\w{2,80})\] \(0x0010\): (?P<text>.+)"),
    _form(ERRS, r"\[(?P<program>\w{2,40})(?:\[[^\]]{1,80}\])?\] \[(?P<place>\w{2,80})\] \(0x0020\): (?P<text>.+)"),
    _form(ENDS, r"\[ALERT\] {1,9}(?:\d+/\d+ )?\(\d+\) : (?P<text>.+)", "haproxy"),
    _form(ENDS, r"(?:nginx: )?\[emerg\] (?:\d+#\d+: )?(?P<text>.+)", "nginx"),
    _form(ENDS, r"\*\*\* FATAL CONFIG FILE ERROR\b.{0,40}\*\*\*(?P<text>)$", "redis-server"),
    _form(ENDS, rf"(?P<program>{_NAME}): (?P<text>.+?) -- exiting\.?$"),
    _form(ENDS, r"TLS: (?P<text>could not use .+)", "slapd"),
    _form(ENDS, r"Fatal error : (?P<text>.+)"),
    _form(ENDS, r"(?P<program>mount\.nfs4?): (?P<text>(?!timeout set|trying |mount\(2\)|Either |prog ).+)"),
    _form(
        ENDS,
        r"(?P<program>kinit|kadmin(?:\.local)?|kvno|krb5kdc|kprop|mke2fs|mkfs\.ext\d|e2fsck|tune2fs|resize2fs): "
        r"(?P<text>.{3,200} while \w{3,20}ing\b.*)",
    ),
    _form(ENDS, r"(?P<program>ch-\w{2,20})\[\d+\]: error: (?P<text>.+)"),
    # Codes that print their errors in a form of their own.
    _form(ENDS, r"== Error == +(?P<text>(?!system call for)\S.+)", "SPAdes"),
    _form(ENDS, r"\w{1,60}\.cpp:\d+:\w{1,60} EXITING because of FATAL ERROR.{0,60}?: (?P<text>.+)", "STAR"),
    _form(ENDS, r"Exception : \[(?P<text>.+)\]$", "salmon"),
    _form(ENDS, r"\w{2,30} parsing error: (?P<text>(?!\d).{3,300})"),
    _form(ENDS, r"ERROR - \[(?P<place>[^\]\s]{1,200}:\d+)\] (?P<text>.+)", "LIKWID"),
    _form(ENDS, r"\s*\*ERROR (?:reading|in) \*?(?P<place>\w[\w ]{1,40}?): (?P<text>(?!Card image).+)", "CalculiX"),
    _form(ENDS, r"(?P<program>ECCODES|GRIB_API) ERROR +: +(?P<text>.+)"),
    _form(ENDS, r"\s*Error line number (?P<place>\d+, in file \S{1,200}), (?P<text>before +token .+)", "FreeFem++"),
    _form(ENDS, r"Error initializing output stream \S{1,9} -- (?P<text>.+)", "FFmpeg"),
    _form(
        ENDS,
        r"(?P<program>[\w.+-]{1,40}): (?P<text>.{3,300}?) @ (?:error|fatal)/(?P<place>\w{1,40}\.c/\w{1,80}/\d+)\.?$",
    ),
    _form(ENDS, r"(?:Alignment|Sequence|HMM) (?:input|file) (?:open|parse|read) failed\.(?P<text>)$", "HMMER"),
    _form(ENDS, r"\s*\*{3} +_?[\w/*+^-]{1,40}: (?P<text>(?:impossible|invalid|unknown|missing|error).+)", "PARI/GP"),
    # Tools. Snakemake prints the class of an exception alone, and its text in the next line.
    _form(
        ENDS,
        r"(?P<text>(?:Create\w{1,40}|Missing\w{1,30}|Protected\w{1,30}|Incomplete\w{1,30})Exception:)$",
        "Snakemake",
    ),
    _form(ENDS, r"\s*(?P<program>[A-Z]{2,12}): (?P<text>fatal (?:internal )?error (?:in|while|during) .+)"),
    _form(
        ENDS,
        r"(?:\d{1,7}:)?(?P<text>\S.{0,300}?):? ?Received an Error in Communication",
        "a program with Global Arrays",
    ),
    _form(ENDS, r"(?P<text>(?:\w{1,20} )?(?i:assert(?:ion)?) fail(?:ed|ure)? in .{1,100}: .+)"),
    _form(ENDS, r"\[file (?P<place>\S{1,200}\.\w{1,4}, line \d+)(?:, Process \d+)?\]: (?P<text>.+)", "ORCA"),
    _form(ENDS, r"\s*\*\s+SERIOUS PROBLEM IN (?P<place>\w{1,20})\s+\*(?P<text>)$", "ORCA"),
    _form(ENDS, r"-{4,20} EEEE -{4,20} G4Exception-START\b.{0,40}?(?P<text>)$", "Geant4"),
    _form(ENDS, r"(?:\w{1,20}: )?(?P<text>[Aa]bnormal termination: .+)"),
    _form(ENDS, r"STOP: (?P<text>(?!FDS (?:completed|stopped by|was|performed)).{3,100}) \(CHID: .{1,100}\)$", "FDS"),
    # Canu prints its own words of comfort so, and the end of another log.
    _form(
        ENDS,
        r"\s{0,8}ABORT: {1,2}(?P<text>(?!(?i:canu) |Don't panic|Try restarting|Disk space|Last \d+ lines|Aborting with)\S.+)",
    ),
    _form(ENDS, r"-- (?P<text>.{3,80} failed, tried \d+ times, giving up)\.", "Canu"),
    _form(ENDS, r"(?P<text>We are sorry, commands in file: \[.{1,300}\] failed)", "ParaFly"),
    _form(ERRS, r"(?:.{1,80}\.\.\. )?Error, cmd: ?(?P<text>.*)", "a program in Perl"),
    _form(
        ENDS,
        r"(?P<program>\w{2,40}::\w[\w:]{1,80})\(\): (?P<text>Error (?:invok|execut|runn|open|creat|read|writ)ing .+)",
    ),
    _form(ERRS, r"(?P<text>Error (?:launch|invok)ing \S.{1,300})"),
    _form(ENDS, r"(?P<text>Species \".{1,80}\" is not known to RepeatMasker\b.*)", "RepeatMasker"),
    _form(ENDS, r"\+{3} message follows \+{3}(?P<text>)$", "PLUMED"),
    _form(ENDS, r"(?P<text>I cannot understand line: .+)", "PLUMED"),
    _form(ENDS, r"PLUMED: ERROR in input to action (?P<place>\S{1,80}) with label \S{1,80} : (?P<text>.+)", "PLUMED"),
    _form(ENDS, r"\W{0,4}(?P<text>The simulation has become unstable\..*)"),
    _form(ERRS, r"ERROR in (?P<place>[A-Z]\w{2,20})\.?(?P<text>)$"),
    _form(ERRS, r"\s*Throw test that evaluated to true: .{1,300}?(?P<text>)$", "Trilinos"),
    _form(ENDS, r"Plugin error from (?P<place>\S{1,40}):(?P<text>)$", "QIIME 2"),
    # An exception that a program in Java prints with its calls, without the name of a thread.
    _form(
        NAMED,
        r"(?P<text>(?:java|javax|scala)\.[\w.]{1,80}(?:Exception|Error)(?:: .+)?)$",
        "a program in Java",
    ),
    _form(ENDS, r"The violated condition was: *(?P<text>.*)$", "deal.II"),
    _form(ENDS, r"\s*\*{3} WAVEWATCH[ -]III (?:FATAL )?ERROR IN (?P<place>\w{1,20}) ?:(?P<text>.*)", "WAVEWATCH III"),
    _form(ENDS, r"Log message:(?P<text>)$", "a pipeline of Martian"),
    _form(ERRS, r"\W{0,9}(?P<text>(?i:convergence (?:has )?not (?:been )?achieved)\b.*)"),
    # Tools.
    _form(ENDS, r"npm (?:ERR!|error) (?P<text>(?!A complete log|code |errno |path |syscall |command |\s).+)", "npm"),
    _form(ENDS, r"(?:docker: )?Error response from daemon: (?P<text>.+)", "the Docker service"),
    _form(ENDS, r"fatal: \[\S{1,80}\]: \w{1,20}! => (?P<text>.+)", "Ansible"),
    _form(ENDS, r"ERROR ~ (?P<text>.+)", "Nextflow"),
    _form(NAMED, r"Caused by:(?P<text>)$", "Nextflow"),
    _form(ENDS, r"== FAILED: Installation ended unsuccessfully .{0,300}?\): (?P<text>.+)", "EasyBuild"),
    _form(ENDS, r"g?make(?:\[\d+\])?: \*\*\* (?P<text>(?!\[).+?)\.? +Stop\.", "make"),
    _form(ENDS, r"(?P<place>\S{1,200}:\d+): \*\*\* (?P<text>.+?)\.? +Stop\.", "make"),
    _form(ENDS, r"(?P<program>scons|waf|bazel|b2|qmake): \*\*\* (?P<text>.+)"),
    _form(
        ERRS,
        r"mount(?:\.\w{1,12})?: (?P<text>/\S{0,200}: (?:mount\(2\) system call failed: |wrong fs type|unknown filesystem|"
        r"special device |can't (?:read|find)|permission denied|bad ).+|.{0,200}: mount point does not exist.*)",
        "mount",
    ),
    _form(ENDS, r"(?P<program>curl|rsync)(?:: \(\d+\)| error:) (?P<text>.+)"),
    _form(ENDS, r"E: (?P<text>.+)", "apt"),
    _form(
        ENDS,
        r"\s*(?:UNABLE to (?:CONFIGURE with GIVEN OPTIONS|EXECUTE BINARIES|FIND MODULE)|ERROR in COMMAND LINE ARGUMENT|"
        r"CONFIGURATION CRASH)\b[^:]{0,100}:?(?P<text>)$",
        "the configure of PETSc",
    ),
    _form(ENDS, r"\S{1,80}\(\d+\):ERROR:\d+: (?P<text>.+)", "the module system"),
    _form(ENDS, r".{0,300}?(?P<text>undefined reference to .+)", "the linker"),
    _form(ENDS, r"\w{1,12}-\d{1,6} (?P<program>\w{1,20}): (?:ERROR|FATAL)\b(?: in command line)?:?(?P<text>.*)"),
    _form(ENDS, rf"(?P<program>{_NAME}) (?:fatal|error) *: (?P<text>.+)"),
    # Python's `optparse` with an option before the word, as pip uses it.
    _form(ENDS, r"(?P<place>--?[\w-]{1,40}) error: (?P<text>.+)"),
    _form(
        ENDS,
        r"(?P<place>[^\s:]{1,300} ?[:(]\d+(?:[:,.]\d+){0,2}\)?) ?:? (?:fatal |internal compiler )?(?i:error)(?: \w{1,12})? ?: "
        r"(?P<text>.+)",
    ),
    # GCC in other languages.
    _form(
        ENDS,
        rf"(?P<place>[^\s:]{{1,300}}:\d+(?::\d+)?) ?: (?:{'|'.join(ERROR_ELSEWHERE)}) ?[:：] ?(?P<text>.+)",
        "the compiler",
    ),
    _form(ENDS, r"CMake Error(?: at (?P<place>\S{1,300}:\d+)(?: \(\w+\))?)?: ?(?P<text>.*)", "CMake"),
    # What all kinds of programs print.
    _form(
        ENDS,
        rf"(?P<program>{_NAME})(?:\[\d+\])?: (?i:(?:fatal|runtime|internal|unrecoverable) error|fatal|panic|critical)"
        r"(?: in \S{1,80})?: ?(?P<text>.+)",
    ),
    _form(ERRS, rf"(?P<program>{_NAME})(?:\[\d+\])?: (?i:error)(?: \w{{1,12}}){{0,4}}: ?(?P<text>.+)"),
    _form(
        ENDS,
        rf"{_HEAD}(?:Rank \d{{1,6}} (?:\[[^\]]{{1,80}}\] ){{0,2}}|\w{{1,12}} )?"
        r"(?i:fatal error|fatal|panic|critical error|critical|unrecoverable error)\b"
        rf"[^:\]\w]{{0,4}}{_WHERE}[:\]!]+-? *(?P<text>.*)",
    ),
    _form(
        ERRS,
        rf"{_HEAD}(?:ERROR|Error|error)(?: ?[\[(#]?(?!(?i:messages?|log|rate)\b|code \d)[\w.:-]{{1,40}}[\])]?)?{_WHERE} {{0,3}}"
        r"[:\]!]+-? *(?P<text>.*)",
    ),
    _form(ERRS, r"[*!#=-]{2,40} {0,4}(?:FATAL ERROR|FATAL|ERROR|Error) {0,4}[*!#=-]{2,40}(?P<text>)$"),
    _form(ERRS, r"(?P<program>[A-Z][A-Z0-9]{2,19}) (?:ERROR|Error): (?P<text>(?!\s*[-+]?[\d.]+\s*$).+)"),
    _form(ENDS, r"\s*\*\s+\\___/\s{1,40}(?P<text>\S.{3,80}?)\s*\*$", "CP2K"),
    _form(
        ERRS,
        r"\W{0,9}Error (?:while |when )?"
        r"(?P<text>(?:load|read|open|creat|writ|pars|connect|initiali[sz]|import|find|gett|sett)\w{0,5}ing\b .{3,300})",
    ),
    _form(ERRS, r"(?:Unhandled |Uncaught )?[Ee]xception(?: in [^:]{1,80})?: (?P<text>\S+ .+)"),
    _form(
        ERRS,
        r".{0,120}?(?:\[|\| |- |\s)(?:ERROR|FATAL|CRITICAL|SEVERE)(?:\]| {0,3}\|| {0,3}-| {0,3}:)\s*(?P<text>\S.*)",
    ),
    _form(ERRS, r"(?P<program>[a-z][\w.+-]{1,40}): ERROR (?P<text>\w.+)"),
    _form(ERRS, r"(?!__)\w{1,40} (?:ERROR|FATAL|CRITICAL)\b:? *(?P<text>\S.*)"),
    # The boxes of init scripts and of lists of checks.
    _form(ERRS, r"(?P<text>\S.{3,200}?)[. ]*\s{2,}\[ {0,4}(?:FAIL|FAILED|ERROR|FATAL) {0,4}\]\s*$"),
    _form(
        ENDS,
        r"(?:/\S{0,200}/)?(?P<program>python[\d.]{0,5}): (?P<text>Error while finding module specification for .+|"
        r"No module named .+|can't open file .+)",
    ),
    # The shell with the line of its script, and programs that name themselves.
    _form(
        ERRS,
        r"(?P<place>(?:\S{1,200}: line \d+|(?:\S{0,200}/)?\w{0,6}sh|\S{1,200}\.\w{0,4}sh: (?:line )?\d+)): (?P<text>\S.+)",
        only_system=True,
    ),
    _form(
        NAMED,
        rf"(?P<program>{_NAME})(?:\[\d+\])?: (?P<text>(?i:can ?not|can't|could(?: not|n't)|unable to|failed to|invalid |unknown "
        r"|unrecogni[sz]ed |unsupported |missing |no |not ).+)",
    ),
    _form(
        NAMED,
        rf"(?P<program>{_NAME})(?:\[\d+\])?: (?P<text>.{{5,200}}\b(?:does not exist|is missing|not found)\b.{{0,20}}"
        r"\b(?:Have you|Did you|Do you|You must|You need|Please)\b.+)",
    ),
    _form(NAMED, rf"(?P<program>{_NAME})(?:\[\d+\])?: (?P<text>.+)", only_system=True),
    _form(ENDS, r"(?P<text>Missing (?:required )?(?:parameter|argument|option|keyword|input)s?\b.{3,200}!)$"),
    _form(
        COMPLAINS,
        r"\W{0,6}(?:\[[\w.-]{1,30}\] )?(?P<text>(?i:can ?not|can't|could(?: not|n't)|unable to|failed to) .+)",
    ),
    _form(COMPLAINS, r"(?P<text>[A-Z]\w{0,30}(?: \w{1,30}){0,4} failed: [A-Z\"'`].{12,})"),
)


@cache
def report_forms() -> tuple[tuple[Form, re.Pattern[str]], ...]:
    """All forms with their compiled patterns: only a command that reads a log needs them."""
    return tuple((form, re.compile(form.pattern)) for form in _FORMS)


# A message that begins so is a frame around the error, or follows from it.
FRAME = re.compile(
    r"\W*$|-?\d{1,9}\W*$|[\d:.,+TZ -]{3,40}$|\[\w{1,40} error\]$|\(unknown error\)|(?:\w+(?:Error|Exception): ?)?"
    r"(?:error message$|in user code|Graph execution error|in `|<N/A|Traceback \(most|"
    r"metadata-generation|subprocess-exited|ld returned|"
    r"torch\.distributed\.elastic|.{0,40}returned \d+ exit status|\d+ root error\(s\) found|error stack|"
    r"see (?:above|below|log|build|the|https?://)|see [\"'`]?\S{1,300} (?:file )?for (?:more )?(?:details|information)|"
    r"The compiler has detected errors|Exception in callback|Exception:(?: Traceback.*)?$|"
    r"(?:the )?(?:following|above|previous) (?:error|command)|examine the |Pipestance failed\b|"
    r".{0,200}\breturned: \['$|.{0,200}non-?zero exit|"
    r"(?:the )?(?:command|process|subprocess|program|script|job|task|step|rule|recipe|test|child|worker|rank|shell)s?\b.{0,300}"
    r"(?:exited|returned|died|errored out|failed(?:$|\.| with (?:exit|error|return|status|code)))|"
    r".{0,120}(?:exited|exit|returned|failed|ended|terminated) (?:with|due to) (?:an? )?(?:exit |return |error |unexpected ){0,2}"
    r"(?:code|status|error|signal)|"
    r"(?:the )?(?:build|compilation|installation|configuration|execution|tests?)\b.{0,40}"
    r"(?:fail|abort|halt|stopp|incomplete)|"
    r"Error (?:building|compiling|installing|running|executing) \S+(?: \([^)]{1,40}\))?\W*$|"
    # The heading of a test that failed, as unittest prints it; the exception is below.
    r"(?:test\w*|(?:setUp|tearDown)(?:Class|Module)?) \([\w.]+\)$|"
    r"abort|exiting|terminat|stopping|Execution halted|Try |Usage:?\W*$|use --help|more information|run with|note:|"
    r"At least one job did not complete|(?:we )?had \d+ failures|\d+ (?:tasks|jobs) (?:failed|remain)|"
    r"cannot open the connection|there (?:was|were) \d+ (?:fatal )?errors?\b|"
    r"(?:errors?|failures?) (?:occurred|found|were|was)|An error (?:occurred|happened|was(?! encountered while running))|"
    r"(?:Task|Future) exception was never retrieved|(?:the )?server returned (?:an )?error$|Autosubmit Encounter too much errors|"
    r"Failed to pull \w+ image|"
    r".{0,30}see (?:the )?(?:log|above|output)|.{0,80}\bsee previous error)",
    re.IGNORECASE,
)


def follows(message: str | None) -> bool:
    """Whether a message says no more than that something failed: the error itself is elsewhere."""
    return message is not None and FRAME.match(message) is not None


# A message that only announces those in the next lines; the class of the exception before it stays.
HEADING = re.compile(
    r"^((?:\w+: ?)?)(?:\d+ root error\(s\) found\.?|in user code:|\d+ validation errors? for [\w.]+|backend='\w+' raised:)$"
)
# A line of the error stack of MPICH; and lines between a heading and its text.
STACK = re.compile(r"[\w()]{1,80}\(\d+\)[. ]{0,80}: ?(\S.*)?")
SKIPPED = re.compile(
    r"['\"]$|FATAL CALLED FROM|File (?!.{1,300} can ?not be )|Program: |Source file: |For more information|Output in format|"
    r"application called MPI_Abort|\[unset\]: |:$|system msg for |"
    r"\[\d+\]PETSC ERROR: (?:-{3}|See |Petsc |Configure |#\d|\S*/|Option|WARNING)|"
    r"\[ Info: |src_file: |src_line: \d|mpi_rank: \d|message: ?\|?$|"
    r"command: |input: |jobid: \d|output: |message: None$|[0-9a-f ]{16,}$|'[^']+' '"
)
