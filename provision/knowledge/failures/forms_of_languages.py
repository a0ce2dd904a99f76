"""How the runtimes of languages, compilers and workflow managers report errors."""

from __future__ import annotations

from provision.knowledge.failures.forms import ENDS, ERRS, NAME, NAMED, form

LANGUAGES = (
    # The runtimes of languages. Sources: Go's `panic`, Rust's `std::panicking`, Java's `Thread.dispatchUncaughtException`,
    # libgfortran, Intel's `forrtl`, NVIDIA's PGFIO, libstdc++, glibc's `assert`, abseil's `CHECK`, R, Julia, MATLAB, Ruby, Perl.
    form(ENDS, r"(?:panic|fatal error): (?P<text>(?!too many errors emitted).+)", "a program in Go"),
    form(ENDS, r"thread '[^']{0,80}'(?: \(\d+\))? panicked at (?P<text>'.+|.+:)", "a program in Rust"),
    form(ENDS, r"Exception in thread \"[^\"]{1,80}\" (?P<text>.+)", "a program in Java"),
    form(ENDS, r"Caused by: (?P<text>.+)", "a program in Java"),
    form(
        ENDS,
        r"(?:fatal )?Fortran runtime error(?:\((?P<place>[^)]{1,300})\))?: (?P<text>.+)",
        "a program in Fortran",
    ),
    form(ENDS, r" ?ERROR STOP (?P<text>\S.+)", "a program in Fortran"),
    form(ENDS, r"awk: (?:\S{1,80}:|cmd\. line:)\d+:(?: \([^)]{1,80}\))? (?P<text>.+)", "awk"),
    form(ENDS, r"sed: -e expression #\d+, char \d+: (?P<text>.+)", "sed"),
    form(
        ENDS,
        r"(?:\([^)]{1,60}\) )?(?:ERROR|CRITICAL) \d\d-\d\d \d\d:\d\d:\d\d \[?[\w./-]{1,80}\.py:\d+\]? "
        r"(?P<text>[A-Z]\w{2,60}(?:Error|Exception): .+)",
        "vLLM",
    ),
    form(ERRS, r"[A-Z]\w{1,60} \[(?:Error|ERROR)\]: (?P<text>.+)"),
    # The levels of syslog behind a name, as Flux prints them.
    form(ENDS, r"(?P<program>[a-z][\w-]{1,30})\.(?:crit|alert|emerg)\[\d{1,9}\]: (?P<text>.+)"),
    form(ENDS, r"broker\.err\[\d{1,9}\]: rc1(?:\.\d)?: (?P<text>(?!.{0,200} Exited).+)", "Flux"),
    form(ERRS, r"(?P<program>[a-z][\w-]{1,30})\.err\[\d{1,9}\]: (?P<text>.+)"),
    form(ENDS, r".{0,80}\bjob\.exception (?:\S{1,40} )?type=\S{1,40} severity=0 (?P<text>.+)", "Flux"),
    form(ENDS, r".{0,80}\bjob-exception: (?:id=\S{1,40} ?)?(?P<text>.+)", "Flux"),
    form(ENDS, r"(?:\[?[\d.+]{3,20}\]? )?exception type=\S{1,40} severity=0 .{0,200}\bnote=\"(?P<text>[^\"]+)", "Flux"),
    # Workflow managers, and programs that submit jobs.
    form(ENDS, r"CRASH: {3}(?P<text>\S.+)", "canu"),
    form(ENDS, r"ABORT: {3}(?P<text>\S.+)", "canu"),
    form(ENDS, r"\s*canu::\w{1,30}::ca(?:Failure|Exit)\(['\"](?P<text>[^'\"]{3,200})['\"]", "canu"),
    form(ENDS, r"canu failed with '(?P<text>.{3,300})'\.", "canu"),
    form(ERRS, r"\+-> (?:ERROR|CRITICAL) at \d{4}-\S{1,20} \S{1,40}(?P<text>)$", "AiiDA"),
    form(ERRS, r"[EF] #\w{2,8} +\[ *\d+\.\d+\] +\* (?P<text>(?!fsd_exc_new)\S.+)", "DRMAA"),
    form(ERRS, r"(?P<program>[a-z]\w{1,30}): iberror: (?:\[[^\]]{1,80}\] [^:]{1,60}: )?failed: (?P<text>.+)"),
    form(ENDS, r"Result message +\| +(?P<text>Failed; .+)", "MTT"),
    form(NAMED, r"future: <Task finished .{1,400} exception=(?P<text>\w.+?)>$", "asyncio"),
    # structlog with its level, message, logger and values.
    form(
        ERRS,
        r"\[(?:error|critical|exception) {0,9}\[?\] (?P<text>\S.{2,300}?)"
        r"(?: +\[[\w.]{1,80}\](?: +\w+=.*)?| {2,}\w+=.*| {2,})?$",
    ),
    form(ERRS, r"[\w .-]{1,60} : .{0,30}\d\d:\d\d:\d\d.{0,14} : (?:ERROR|Error|error) ?: (?P<text>.+)"),
    form(ENDS, r".{0,40}?(?P<text>\bProcess \d{1,9} \(\S{1,60}\) of user \d{1,9} dumped core\.)", "systemd"),
    form(
        ENDS,
        r".{0,80}\b(?:stopp|abort|terminat|end|exit)(?:ed|s|ing) (?:due to|because of) "
        r"(?:the |a |an )?(?:following )?(?:fatal |internal )?error\W{0,4}(?P<text>)$",
    ),
    form(ENDS, r"Exception Message: ?(?P<text>.*)", "a program of CMS"),
    form(ENDS, r"\W{0,9}\*\* Severe +\*\* (?P<text>.+)", "EnergyPlus"),
    form(ENDS, r"\[E::\w{1,60}\] (?P<text>.+)", "a program of htslib or bwa"),
    form(
        ENDS,
        r"(?:WorkflowError|WildcardError|\w{0,40}RuleException|CyclicGraphException|ChildIOException|InputFunctionException)"
        r"(?: in (?:line|rule|file) .{1,200})?: ?(?P<text>.*)",
        "Snakemake",
    ),
    form(ENDS, r"forrtl: (?:severe|error) \(\d+\): (?P<text>.+)", "a program in Fortran"),
    # NAG's run-time system, and the heading of an error of Cray's compilers, whose text is in the next line.
    form(ENDS, r"Runtime Error: (?P<place>[^:\s]{1,300}, line \d+): (?P<text>.+)", "a program in Fortran"),
    form(
        ENDS,
        r"\w{1,12}-\d{1,6} (?P<program>\w{1,20}): ERROR \S{1,100}, (?P<place>File = .{1,400}, Line = \d+).{0,30}(?P<text>)$",
    ),
    form(
        ENDS, r"\"(?P<place>[^\"]{1,300})\", line \d+: (?:catastrophic |internal )?error: ?(?P<text>.+)", "the compiler"
    ),
    form(ENDS, r"(?:PG)?FIO(?:-[FS]-\d+|[\w/-]{0,20}?)/(?P<text>.+)", "a program in Fortran"),
    form(ENDS, r"\s*what\(\): +(?P<text>.+)", "a program in C++"),
    form(ENDS, rf"(?P<program>{NAME}): \S{{1,200}}:\d+: .{{0,300}}(?P<text>\bAssertion [`'\"].{{1,300}} failed.*)"),
    form(ENDS, r"(?P<text>(?:Assertion|Check) failed: .+)"),
    form(ENDS, r"F\S{0,8} .{0,120}?\S:\d+\] (?P<text>.+)"),
    form(ENDS, r"Error in (?P<place>[^:]{1,120}\)) ?: ?(?P<text>.*)", "R"),
    form(ENDS, r"(?:│ )?ERROR: (?:LoadError: |InitError: ){1,4}(?P<text>(?!TaskFailedException).+)", "Julia"),
    form(ENDS, r"(?P<text>(?:MethodError|UndefVarError|BoundsError|InexactError): .+)", "Julia"),
    form(ENDS, r"\s+nested task error: (?P<text>(?!TaskFailedException).+)", "Julia"),
    form(ENDS, r"ERROR \(unhandled task failure\): (?P<text>.+)", "Julia"),
    # MATLAB names the function, and prints the message below.
    form(ENDS, r"\W{0,4}Error using (?P<place>[\w./%@+>-]{1,120}(?: \(line \d+\))?)\s*(?P<text>)$", "MATLAB"),
    form(ENDS, r"Error using (?P<text>.+)", "MATLAB"),
    form(ENDS, r"(?P<text>Undefined function (?:or variable )?'\w{1,80}'.{0,120})$", "MATLAB"),
    # R in German, French, Italian, Portuguese and Spanish.
    form(ENDS, r"(?:Fehler in|Erreur dans|Errore in|Erro em|Error en) (?P<place>.{1,160}?\)) ?: ?(?P<text>.*)$", "R"),
    form(ENDS, r"(?P<place>\S{1,200}\.rb:\d+:in .{1,80}?): (?P<text>.+)", "Ruby"),
    # These words of Perl are warnings. Source: perldiag, the classes W and D.
    form(
        ERRS,
        r"(?!Use of uninitialized|Argument \".{0,200}\" isn't numeric|Odd number of elements|Deep recursion on|Useless use of|"
        r"Name \".{1,200}\" used only once|Subroutine \S{1,200} redefined|Possible |Wide character in|substr outside of|"
        r"\w{1,20}\(\) on (?:closed|unopened) |Statement unlikely|Smartmatch is|Scalar value @|splice\(\) offset past|"
        r"Reference found where|Prototype mismatch|Unquoted string|Use of \S{1,40} is deprecated)"
        r"(?P<text>\S.{1,300}) at (?P<place>\S{1,200}\.(?:p[lm]|PL)) line \d+(?:, <\w+> line \d+)?\.",
        "Perl",
    ),
    # What a library prints before the next line, as `The following error occurred in m_config:`.
    form(
        ERRS,
        r"\W{0,9}[Tt]he following (?:fatal |internal )?errors? (?:has |have |was |were )?(?:been )?occ?urr?ed"
        r"(?: (?:in|while|during|at) [^:]{1,80})?:(?P<text>)$",
    ),
)
