"""The forms in which programs report their errors, from the most particular to the most general."""

from __future__ import annotations

import re
from functools import cache

from provision.knowledge.failures.forms import COMPLAINS, ENDS, ERRS, HEAD, NAME, NAMED, WHERE, Form, form
from provision.knowledge.failures.forms_of_languages import LANGUAGES
from provision.knowledge.failures.forms_of_programs import PROGRAMS
from provision.knowledge.failures.words import word_set

# Words of the forms and of the system's texts, apart from those that each sign of a failure has.
FORM_WORDS = word_set(
    "eeeeeee cmiabort err alert emerg impossible fehler erreur errore erro "
    "panic panicked severe caused halted stop busy refused denied implemented stale ioctl permitted temporarily unreachable "
    "timed broken reset invalid unrecognized unsupported missing petsc exist crash "
    "fio received violated evaluated unstable plugin chid nonexistent wavewatch giving notice"
)
# `error` and `fatal error` of GCC in other languages: Chinese, Japanese, French, German, Russian, Ukrainian, Swedish, Dutch,
# Danish, Finnish, Turkish and Spanish. Source: the message catalogues of GCC 12, gcc-12.mo in Debian's gcc-12-locales.
ERROR_ELSEWHERE = (
    *("错误", "致命错误", "錯誤", "嚴重錯誤", "エラー", "致命的エラー", "erreur", "erreur fatale"),
    *("Fehler", "schwerwiegender Fehler", "ошибка", "фатальная ошибка", "помилка", "критична помилка"),
    *("fel", "ödesdigert fel", "fout", "fatale fout", "fejl", "fatal fejl", "virhe", "vakava virhe"),
    *("hata", "ölümcül hata", "error fatal"),
)
OTHERS = (
    # Tools.
    form(ENDS, r"npm (?:ERR!|error) (?P<text>(?!A complete log|code |errno |path |syscall |command |\s).+)", "npm"),
    form(ENDS, r"(?:docker: )?Error response from daemon: (?P<text>.+)", "the Docker service"),
    form(ENDS, r"fatal: \[\S{1,80}\]: \w{1,20}! => (?P<text>.+)", "Ansible"),
    form(ENDS, r"ERROR ~ (?P<text>.+)", "Nextflow"),
    form(NAMED, r"Caused by:(?P<text>)$"),  # Nextflow, Cargo
    form(ENDS, r"== FAILED: Installation ended unsuccessfully .{0,300}?\): (?P<text>.+)", "EasyBuild"),
    form(ENDS, r"g?make(?:\[\d+\])?: \*\*\* (?P<text>(?!\[).+?)\.? +Stop\.", "make"),
    form(ENDS, r"(?P<place>\S{1,200}:\d+): \*\*\* (?P<text>.+?)\.? +Stop\.", "make"),
    form(ENDS, r"\s*(?P<program>scons|waf|bazel|b2|qmake): \*\*\* (?P<text>.+)"),
    form(
        ERRS,
        r"mount(?:\.\w{1,12})?: (?P<text>/\S{0,200}: (?:mount\(2\) system call failed: |wrong fs type|unknown filesystem|"
        r"special device |can't (?:read|find)|permission denied|bad ).+|.{0,200}: mount point does not exist.*)",
        "mount",
    ),
    form(ENDS, r"(?P<program>curl|rsync)(?:: \(\d+\)| error:) (?P<text>.+)"),
    form(ENDS, r"E: (?P<text>.+)", "apt"),
    form(
        ENDS,
        r"\s*(?:UNABLE to (?:CONFIGURE with GIVEN OPTIONS|EXECUTE BINARIES|FIND MODULE)|ERROR in COMMAND LINE ARGUMENT|"
        r"CONFIGURATION CRASH)\b[^:]{0,100}:?(?P<text>)$",
        "the configure of PETSc",
    ),
    form(ENDS, r"\S{1,80}\(\d+\):ERROR:\d+: (?P<text>.+)", "the module system"),
    form(ENDS, r".{0,300}?(?P<text>undefined reference to .+)", "the linker"),
    form(ENDS, r"\w{1,12}-\d{1,6} (?P<program>\w{1,20}): (?:ERROR|FATAL)\b(?: in command line)?:?(?P<text>.*)"),
    form(ENDS, rf"(?P<program>{NAME}) (?:fatal|error) *: (?P<text>.+)"),
    # Python's `optparse` with an option before the word, as pip uses it.
    form(ENDS, r"(?P<place>--?[\w-]{1,40}) error: (?P<text>.+)"),
    form(
        ENDS,
        r"(?P<place>[^\s:]{1,300} ?[:(]\d+(?:[:,.]\d+){0,2}\)?) ?:? (?:fatal |internal compiler )?(?i:error)(?: \w{1,12})? ?: "
        r"(?P<text>.+)",
    ),
    # GCC in other languages.
    form(
        ENDS,
        rf"(?P<place>[^\s:]{{1,300}}:\d+(?::\d+)?) ?: (?:{'|'.join(ERROR_ELSEWHERE)}) ?[:：] ?(?P<text>.+)",
        "the compiler",
    ),
    form(ENDS, r"CMake Error(?: at (?P<place>\S{1,300}:\d+)(?: \(\w+\))?)?: ?(?P<text>.*)", "CMake"),
    # What all kinds of programs print.
    form(
        ENDS,
        rf"(?P<program>{NAME})(?:\[\d+\])?: (?i:(?:fatal|runtime|internal|unrecoverable) error|fatal|panic|critical)"
        r"(?: in \S{1,80})?: ?(?P<text>.+)",
    ),
    form(ERRS, rf"(?P<program>{NAME})(?:\[\d+\])?: (?i:error)(?: \w{{1,12}}){{0,4}}: ?(?P<text>.+)"),
    form(
        ENDS,
        rf"{HEAD}(?:Rank \d{{1,6}} (?:\[[^\]]{{1,80}}\] ){{0,2}}|\w{{1,12}} )?"
        r"(?i:fatal error|fatal|panic|critical error|critical|unrecoverable error)\b"
        rf"[^:\]\w]{{0,4}}{WHERE}[:\]!]+-? *(?P<text>.*)",
    ),
    form(
        ERRS,
        rf"{HEAD}(?:ERROR|Error|error)(?: ?[\[(#]?(?!(?i:messages?|log|rate)\b|code \d)[\w.:-]{{1,40}}[\])]?)?{WHERE} {{0,3}}"
        r"[:\]!]+-? *(?P<text>.*)",
    ),
    form(ERRS, r"[*!#=-]{2,40} {0,4}(?:FATAL ERROR|FATAL|ERROR|Error) {0,4}[*!#=-]{2,40}(?P<text>)$"),
    form(ERRS, r"(?P<program>[A-Z][A-Z0-9]{2,19}) (?:ERROR|Error): (?P<text>(?!\s*[-+]?[\d.]+\s*$).+)"),
    form(ENDS, r"\s*\*\s+\\___/\s{1,40}(?P<text>\S.{3,80}?)\s*\*$", "CP2K"),
    form(
        ERRS,
        r"\W{0,9}Error (?:while |when )?"
        r"(?P<text>(?:load|read|open|creat|writ|pars|connect|initiali[sz]|import|find|gett|sett)\w{0,5}ing\b .{3,300})",
    ),
    form(ERRS, r"(?:Unhandled |Uncaught )?[Ee]xception(?: in [^:]{1,80})?: (?P<text>\S+ .+)"),
    form(
        ERRS,
        r".{0,120}?(?:\[|\| |- |\s)(?:ERROR|FATAL|CRITICAL|SEVERE)(?:\]| {0,3}\|| {0,3}-| {0,3}:)\s*(?P<text>\S.*)",
    ),
    form(ERRS, r"(?P<program>[a-z][\w.+-]{1,40}): ERROR (?P<text>\w.+)"),
    form(ERRS, r"(?!__)\w{1,40} (?:ERROR|FATAL|CRITICAL)\b:? *(?P<text>\S.*)"),
    # The boxes of init scripts and of lists of checks.
    form(ERRS, r"(?P<text>\S.{3,200}?)[. ]{0,99}\s\s\[ {0,4}(?:FAIL|FAILED|ERROR|FATAL) {0,4}\]\s*$"),
    form(
        ENDS,
        r"(?:/\S{0,200}/)?(?P<program>python[\d.]{0,5}): (?P<text>Error while finding module specification for .+|"
        r"No module named .+|can't open file .+)",
    ),
    # The shell with the line of its script, and programs that name themselves.
    form(
        ERRS,
        r"(?P<place>(?:\S{1,200}: line \d+|(?:\S{0,200}/)?\w{0,6}sh|\S{1,200}\.\w{0,4}sh: (?:line )?\d+)): (?P<text>\S.+)",
        only_system=True,
    ),
    form(
        NAMED,
        rf"(?P<program>{NAME})(?:\[\d+\])?: (?P<text>(?i:can ?not|can't|could(?: not|n't)|unable to|failed to|invalid |unknown "
        r"|unrecogni[sz]ed |unsupported |missing |no |not ).+)",
    ),
    form(
        NAMED,
        rf"(?P<program>{NAME})(?:\[\d+\])?: (?P<text>.{{5,200}}\b(?:does not exist|is missing|not found)\b.{{0,20}}"
        r"\b(?:Have you|Did you|Do you|You must|You need|Please)\b.+)",
    ),
    form(NAMED, rf"(?P<program>{NAME})(?:\[\d+\])?: (?P<text>.+)", only_system=True),
    form(ENDS, r"(?P<text>Missing (?:required )?(?:parameter|argument|option|keyword|input)s?\b.{3,200}!)$"),
    form(
        COMPLAINS,
        r"\W{0,6}(?:\[[\w.-]{1,30}\] )?(?P<text>(?i:can ?not|can't|could(?: not|n't)|unable to|failed to) .+)",
    ),
    form(COMPLAINS, r"(?P<text>[A-Z]\w{0,30}(?: \w{1,30}){0,4} failed: [A-Z\"'`].{12,})"),
)


@cache
def report_forms() -> tuple[tuple[Form, re.Pattern[str]], ...]:
    """All forms with their compiled patterns: only a command that reads a log needs them."""
    return tuple((found, re.compile(found.pattern)) for found in (*LANGUAGES, *PROGRAMS, *OTHERS))


# A message that begins so is a frame around the error, or follows from it.
FRAME = re.compile(
    r"\W*$|-?\d{1,9}\W*$|[\d:.,+TZ -]{3,40}$|\[\w{1,40} error\]$|\(unknown error\)|(?:\w+(?:Error|Exception): ?)?"
    r"(?:error message$|in user code|Graph execution error|in `|<N/A|Traceback \(most|"
    r"metadata-generation|subprocess-exited|.{0,200}\bOPS function error: .{1,80}, error code is \d+$|Inner Error!?$|"
    r"ld returned|"
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
    r".{0,40}\bexiting abnormally$|process didn.t exit successfully|too many errors emitted|"
    # The place of an error, and marks around the messages of one rank.
    r"Filename: \S+$|\W{0,9}Rank \d+ m[ae]ssages? |"
    r"Unknown error submitted to shr_abort|The line numbers in the error traceback|Exception in Future\b|"
    r"Future .{1,120} expired, which indicates|"
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
    r"['\"]$|FATAL CALLED FROM|"
    r"File (?!not found|.{1,300} can ?not be )|Program: |Source file: |For more information|Output in format|"
    r"application called MPI_Abort|\[unset\]: |:$|system msg for |"
    r"\[\d+\]PETSC ERROR: (?:-{3}|See |Petsc |Configure |#\d|\S*/|Option|WARNING)|"
    r"Current pipeline object is no longer valid|\[ Info: |src_file: |src_line: \d|mpi_rank: \d|message: ?\|?$|"
    r"command: |input: |jobid: \d|output: |message: None$|[0-9a-f ]{16,}$|'[^']+' '"
)
