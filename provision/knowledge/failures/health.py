"""What shows that a log ends well, or that something failed although no entry of the catalogue names it."""

from __future__ import annotations

import re

from provision.knowledge.failures.words import word_set

# A program, an installation or a job ended well.
SUCCESS = re.compile(
    r"\bSuccessfully (?:installed|built|tagged|uninstalled)\b|\[100%\] Built target\b|\bBUILD SUCCESS|"
    r"\b(?:[Tt]raining|[Bb]uild|[Ii]nstallation|[Ii]nstall|[Tt]ests?|[Ee]valuation) (?:is |was |has |run )?(?:been )?"
    r"(?:complete|completed|finished|done|successful|succeeded|passed)\b(?! with (?:errors|exit|status|code [1-9]))|"
    r"\b[Ff]inished (?:[Tt]raining|successfully)|\b[Cc]ompleted successfully\b(?!, but)|\b[Ss]uccessfully (?:completed|"
    r"finished|trained|saved)|"
    r"\b\d+ passed\b|\b[Ee]xit(?:ed)?(?: with)? ?(?:code|status)[:= ]+0\b|\bExit_status ?= ?0\b|"
    r"\bState: COMPLETED\b|\bAll tests passed|^OK(?: \([^()]{1,80}\))?$|"
    r"(?:[Tt]est|[Ff]inal|[Vv]al\w{0,20}) (?:accuracy|loss|acc|score)\b ?[:=]|"
    r"(?<!Debug info has been )(?<!odel state was )\bsaved (?:model |checkpoint )?to\b|"
    r"^\[\+\] /|\bexited (?:normally|successfully)|\bsuccessfully\.?$|"
    r"\"status\": \"success\"|"
    # Test suites: CTest, prove. Workflows: Snakemake, Airflow, Luigi, Cromwell. YOLO.
    r"\b100% tests passed|^Result: PASS$|\bsteps \(100%\) done|\bMarking task as SUCCESS|\bprogress looks :\)|"
    r"\bstatus '(?:Succeeded|Done)'|\bERROR count: 0\b|\bLoss for final step: |\bEpoch \d+: early stopping|"
    r"\bepochs completed in\b|\bFinished in state Completed\b|"
    # What job scripts print of `$?`.
    r"\b(?:status|rc)[ :=]{1,3}0$|\b[Aa]ll (?:steps|tasks|jobs) (?:are )?(?:done|completed?|finished)\b|\bfinished ok$|"
    # Scientific programs: Quantum ESPRESSO, NWChem, ABINIT, CP2K, Gaussian, ORCA, WRF, SIESTA, MOPAC, MITgcm, Elmer.
    r"^\s*JOB DONE\.|^ Total times +cpu: |\bCalculation completed\.$|\bPROGRAM ENDED AT\b|\bNormal termination of \w|"
    r"\bTERMINATED NORMALLY\b|\bSUCCESS COMPLETE \w|^>> End of run: |== MOPAC DONE ==|\bExecution ended Normally\b|"
    r"\bRunning as primary controller\b|\bELMER SOLVER FINISHED\b|\bSUCCESSFUL TERMINATION\b|"
    # Installers: conda, yum, apt, R, Cargo, BuildKit, Ninja; configure and CMake when they are done.
    r"\bExecuting transaction: .{0,20}\bdone$|^# To activate this environment, use|^Complete!$|^Processing triggers for |"
    r"^\* DONE \(|^\s*Finished .{1,60} target\(s\) in|\bnaming to \S+ (?:[\d.]+s )?done|=> => naming to |^\[(\d+)/\1\] |"
    r"\bBuild files have been written to\b|^configure: exit 0$"
)
# `Build did NOT complete successfully` is no success.
NEGATION = re.compile(
    r"\b(?:will|to|must|can) successfully\b|"
    r"\bonly \d+ (?:out )?of\b|\b0 out of\b|\b(?:not|NOT|never|cannot|unable)\b|n't\b|\b[1-9]\d* (?:failed|failures?|errors?)\b|"
    r"\bFAILED\b"
)
# Only an installation or a build ended well: that says nothing about a program which failed before.
INSTALLED = re.compile(
    r"\bSuccessfully (?:installed|built|tagged|uninstalled)\b|\[100%\] Built target\b|\bBUILD SUCCESS|^\[\+\] /|"
    r"\b(?:[Bb]uild|[Ii]nstall(?:ation)?) (?:is |was |has |run )?(?:been )?(?:complete|finished|done|succe)|"
    r"\bExecuting transaction: |^# To activate this environment|^Complete!|^Processing triggers|^\* DONE \(|"
    r"^\s*Finished .{1,60} target\(s\) in|\bnaming to |^\[(\d+)/\1\] |\bBuild files have been|^configure: exit 0"
)
# Launchers, schedulers and pip print these when something is over: nothing that other ranks or commands print later excuses it.
FATAL = re.compile(
    r"\bmpi(?:run|exec) (?:noticed|detected) that|\bPrimary job +terminated normally|\bBAD TERMINATION OF|"
    r"\bMPI_ABORT was invoked|srun: error: \S{1,200} tasks? \S{1,200} (?:Exited with|Out Of Memory|Killed|"
    r"Segmentation|Aborted|Bus error|Illegal|Floating)|"
    r"\bCANCELLED AT (?!.{0,60}(?:PREEMPT|REQUEUE))|\boom[-_]kill event|\bOOM Killed\b|"
    r"\bErrors detected in keywords\. +Job stopped|"  # MOPAC says below that its job ended normally
    r"\bCannot find source file:|"  # CMake goes on, and writes incomplete files
    r"\bNo matching distribution found|DO NOT MATCH THE HASHES|\bCould not install packages due|"
    r"\bCould not build wheels for|\bFailed to build installable|\bEncountered problems while solving\b"
)
SUCCESS_WORDS = word_set(
    "successfully built success complete completed finished done successful succeeded passed exit exited "
    "status rc all accuracy score saved "
    "normally tests result pass steps marking looks epochs executing activate triggers target naming built written "
    "building linking calculation total ended normal normally terminated end complete mopac solver successful primary "
)
# A training that goes on.
PROGRESS = re.compile(
    r"(?:\b|_)loss['\"]?(?: \([a-z]+\))? ?[:=> ]+-?\d|\baccuracy[:= ]+\d|\b\d+/\d+ \[=[>.=]{0,200}\]|\b\d+/\d+ [━ ]+ |"
    r"\bimages?/sec\b.{0,40}\d|\bstep[:= ]+\d+.{0,80}\bloss\b|"
    r"\bImg/sec per\b|\bglobal_step/sec\b|\bIter #\d+|\bEpoch ?:? ?\[? ?\d+(?:/\d+)?\]?|\b(?:Train|Test|Val\w*):? ?\[ ?\d+/\d+\]",
    re.IGNORECASE,
)
PROGRESS_WORDS = word_set("loss accuracy images img step epoch iter sec train test val valid validation")
# A line that says that something failed. A log with such a line, and no known failure, is an unknown failure.
FAILED = re.compile(
    r"^\W{0,4}(?:\S{1,99}: )?(?:fatal |internal |runtime )?(?:error|ERROR|Error|FATAL|Fatal)\b(?: \d+)?(?: "
    r"\w+)?\s{0,4}[:!\]]|: (?:fatal )?error(?: \w+)?:|: fatal: |"
    r"\bsymbol lookup error\b|: error #\d+:|\bline \d+: +\d+ (?:Killed|Aborted|Bus error|Illegal instruction)|"
    r"\bwas unable to find\b|\bis not compatible with the current\b|\bnot found \(required by |^\w{3,60}NotFound:|"
    r"\b(?:ERROR|FATAL|CRITICAL)\b|^\s{0,8}Exception: |^\s{0,8}(?:[A-Za-z_]\w{0,80}\.){0,9}[A-Z]\w{0,80}(?:Error|Exception|"
    r"Interrupt)(?: \(see above for traceback\))?: ?|\bTraceback \(most recent|"
    r"^[A-Z][\w-]{1,30} Error: (?!\s*[-+]?[\d.]+\s*$)|"
    r"\bSegmentation fault\b|\bcore dumped\b|\bdumped core\b|\b(?:exit\w{0,3}|terminat\w{1,3}) abnormally\b|"
    r"\b[Aa]bnormal (?:exit|termination)\b|^\s*(?:Aborted(?=\s*$| \(| by PBS)|Killed\b|Terminated\b)|"
    r"[\\ ](?:Killed|Terminated)$|\bterminate called\b|\bcommand not found\b|"
    r"\bexit(?:ed|ing)? (?:with )?(?:code|status|value)?[ :=]{0,3}[1-9]\d{0,2}\b|\b[Ff]atal error\b|"
    r"\b(?:Job)?State ?[=:] ?(?:FAILED|OUT_OF_ME|TIMEOUT|NODE_FAIL|CANCELLED)|"
    r"\berror while loading shared libraries\b|\bExit_status ?= ?-?[1-9]\d*\b|\bFAILED\b|"
    r"^F(?:\d{4} \d| \S{1,200}:\d+\])|\bundefined reference\b|\berror: (?=[A-Za-z'\"`(])|"
    r"\b[Pp]ermission denied\b|\bNo such file or directory\b|\bcannot open shared object\b|\bError [1-9]\d*$|"
    r"\bfailed (?:with|to|because)\b|\bFailed to \w+|"
    r"\bCANCELLED\b|\bDUE TO\b|\bsignal \d+\b|\bCheck failed:|\bassert(?:ion)? .{0,80}failed|==[^=\s]+ from |"
    r"\bExpected sha256|\bGot {2,}[0-9a-f]{64}|"
    r"\b[Uu]nable to\b|\b[Cc]annot (?:allocate|open|connect|create|find|access|load|execute)|\b[Cc]ould not "
    r"(?:find|open|load|connect|create|resolve)|"
    r"^[Ee]rror in \S{0,200}\.(?:sh|bash|csh|ksh|py|pl|cmake): \S|"
    r"\bfailed: |\bfailed for some reason\b|\b[Ee]rror (?:in|executing) (?:rule|process|routine)\b|^\w{3,60}NotFound:|"
    r"\bfollowing errors? (?:has |have )?occ?urr?ed\b|\bCHECK IN FILE : \S*warning\.log\b|"
    r"\b[Aa]n error (?:has )?occurred\b|\bunhandled \w+ error\b|\[E\d{3,4} |: not found$|\bversion `?\w+_[\d.]+'? not found|"
    r"\b[Dd]isk quota exceeded\b|\bexceeded (?:\w+ ){0,3}(?:limit|quota)\b|\bcaught collective operation timeout|"
    r"\b[Nn]ot enough (?:slots|memory|space|resources)\b|\bare unable to\b|\blost (?:communication|connection) with\b|"
    r"\b[Pp]roblems? (?:building|compiling|installing|running|while|with the)\b|\btimed out\b|"
    r"\b[Tt]imeout (?:was )?(?:reached|expired|exceeded|waiting|after|while)\b|\bnot defined\b|\bcannot be determined\b|"
    r"\bRunning setup\.py \w+ for .{1,100}\.\.\. error$|\bexceeds (?:the )?(?:number|maximum|limit|size|allowed)\b|"
    # Test suites: pytest, unittest, Automake, TAP, prove, Ansible's recap. Workflows: Cromwell, Snakemake. Solvers.
    r"\b[1-9]\d* (?:tests? )?failed\b|\b[1-9]\d* errors? in \d|^FAIL: |^not ok \d|^Result: FAIL|\b(?:failed|unreachable)=[1-9]|"
    r"\b[Ss]tatus\W{1,4}[Ff]ailed\b|"
    r"\bprogress looks :[(|]|^\s{0,4}evaluation failed :\(|"
    r"\bjob execution failed\b|^Error (?:launch|invok)ing \S.{1,300}:$|\bError, cmd:|\*\*\* Caught standard std::exception|"
    r"\bhas been cancell?ed\b|\bconvergence NOT achieved|\bCONVERGENCE HAS NOT BEEN ACHIEVED|"
    r"\b(?:ended|finished|terminated) with (?:exit )?(?:code|status) [1-9]|\bwill now abort\b|^\s*Error compiling Cython file|"
    r"^\*\*\* Error code [1-9]|^\s?\* \[ABORT\] |"
    r"\b(?:level|lvl)=err|"  # a service in Go goes on after most of them
    r"^HDF5-DIAG: Error detected\b|^\s*#\d{3}: \S+ line \d+ in \w+\(\): "
)
# A program that only says this usually goes on without what it did not get: it counts at the end of a log.
COMPLAINS = re.compile(
    r"\b[Uu]nable to\b|\b[Cc]annot \w+|\b[Cc]ould not \w+|\b[Pp]ermission denied\b|\bNo such file or directory\b|\btimed out\b|"
    r"\bFailed to \w+|\b[Tt]imeout \w+|\bnot defined\b|\bexceeds (?:the )?\w+|"
    r"\b(?:level|lvl)=err|"
    r"^HDF5-DIAG: Error detected\b|^\s*#\d{3}: \S+ line \d+ in \w+\(\): "
)
FAILED_WORDS = word_set(
    "error errors fatal critical traceback segmentation core aborted killed terminated terminate command exit "
    "exited exiting failed undefined permission "
    "such cannot cancelled due signal check assertion assert from expected got unable could "
    "state reason rule process routine occurred unhandled found quota exceeded caught enough lost problem problems "
    "abort timed timeout defined determined exceeds fail ok result unreachable status cancelled canceled convergence "
    "abnormally abnormal dumped looks evaluation "
    "ended finished terminated execution compatible lookup resolvepackagenotfound"
)
NOISE = re.compile(
    r"subprocess-exited-with-error|This error originates from|Failed building wheel|Failed to build|\bnote:|-Werror|"
    r"ninja: build stopped|returned non-zero exit status|^\s*raise |/errors?\.|error\.(?:py|h|cc)\b|"
    # pip runs setup.py with a small program, and prints that program when it fails.
    r"provides a clear error|except ImportError as error|Can not execute .setup|Rebuild target|CMakeError.log|"
    r"oneDNN|\berrors? (?:found|are found)"
)

# So many lines of a training after the last error show that it went on.
WENT_ON = 2
# So many lines after a complaint, such as `unable to open x`, show that the program did without it.
AFTER_COMPLAINT = 5
# So many lines after a complaint that the catalogue knows: the reports of schedulers at the end of a job are shorter.
AFTER_KNOWN_COMPLAINT = 40
# So many lines between what a job did without and another failure show that it ended nothing.
AFTER_PREAMBLE = 15
# So many lines after the last error show that a service went on, if no line says that a program ended.
AFTER_ERROR = 200
# After a traceback it takes more: other ranks print on for a while after one has died.
WENT_ON_AFTER_TRACEBACK = 20
# A sign of success in the last so many lines shows that the log is whole.
NEAR_END = 50


def shows_success(text: str, words: frozenset[str]) -> bool:
    """Whether a line with these words says that something ended well."""
    if words.isdisjoint(SUCCESS_WORDS) and not text.startswith("OK"):
        return False
    return SUCCESS.search(text) is not None and NEGATION.search(text) is None


def shows_installation(text: str) -> bool:
    """Whether a line that shows success says no more than that something was installed or built."""
    return INSTALLED.search(text) is not None


def is_fatal(text: str) -> bool:
    """Whether a line says that a rank, a job or an installation is over because it failed."""
    return FATAL.search(text) is not None


def shows_progress(text: str) -> bool:
    """Whether a line is from a training that goes on."""
    return PROGRESS.search(text) is not None


def shows_failure(text: str, words: frozenset[str]) -> bool:
    """Whether a line with these words says that something failed."""
    if (
        words.isdisjoint(FAILED_WORDS)
        and "rror" not in text
        and "xception" not in text
        and text.lstrip()[:1] not in ("F", "n", "#")
    ):
        return False
    return FAILED.search(text) is not None and NOISE.search(text) is None


def only_complains(text: str) -> bool:
    """Whether a line that shows a failure says no more than that something was not found or not allowed."""
    return FAILED.search(COMPLAINS.sub("", text)) is None
