"""The options of the verbs that look after environments."""

from __future__ import annotations

from provision.commands.options.common import (
    ANY_ENVIRONMENT,
    DRY_RUN,
    ENVIRONMENT,
    SITE,
    TARGET,
    account,
    arch,
    positive,
    whole,
)
from provision.commands.options.declare import one_of, option, verb

ARCH_OF_NAME = arch("needed if the name matches environments of several archs")
ORDERS = ("name", "age", "size", "state")
YES = option("--yes", "remove it; without this, only show what would go")

COMMANDS = (
    verb(
        "list",
        SITE,
        arch("default: all of them"),
        option("--stack STACK", "only environments of this stack"),
        option("--state STATE", "only environments in this state: for example unfinished"),
        option("--sort", "by name (default), the newest or the largest first", choices=ORDERS, default="name"),
        examples=("list", "list --site sigma2-saga --json"),
    ),
    verb(
        "show",
        ENVIRONMENT,
        SITE,
        arch("needed if several archs have this module"),
        option("--diff ENVIRONMENT", "show only what differs between this environment and ENVIRONMENT"),
        examples=("show tensorflow/2.15.1",),
    ),
    verb(
        "report",
        option("DIR", "folder of the pages; it is made, or an earlier report in it replaced", to="folder"),
        option("--markdown", "write Markdown, for a wiki, instead of HTML"),
        SITE,
        examples=("report /var/www/tensorflow --site sigma2-saga",),
    ),
    verb(
        "verify",
        ANY_ENVIRONMENT,
        SITE,
        ARCH_OF_NAME,
        option("--all", "verify every environment that passed its proof, and what users can load"),
        option(
            "--hashes",
            "read every file: also finds what changed without a change of size, time or mode, but takes minutes on a slow disk",
        ),
        option("--loaded", "compare the module that this shell has loaded with the record of its build and proof"),
        examples=("verify --all --site sigma2-saga", "verify --loaded"),
    ),
    verb(
        "test",
        ANY_ENVIRONMENT,
        option(
            "--provided", "test the modules that the site itself provides for `--arch`, with the proof of `--stack`"
        ),
        option(
            "--thorough", "run the numerical proof, which takes minutes: gradients, weights, callbacks, checkpoints"
        ),
        option("--all", "prove every environment that users load; with --arch, of that arch"),
        option("--submit", "prove it in a job, with --all in one for each arch, followed in one table"),
        option("--no-wait", "with --submit: print the job IDs and exit"),
        account("with --submit: "),
        option("--events FILE", "write every event to this file, one JSON object per line", rare=True),
        *TARGET,
        examples=("test tensorflow/2.15.1", "test --all --submit --site sigma2-saga"),
    ),
    verb(
        "audit",
        ANY_ENVIRONMENT,
        SITE,
        option("--all", "all environments of the site"),
        option("--stack STACK", "the locks of a stack of `provision stack list`, instead of an environment"),
        option(
            "--advisories FILE",
            "read newer advisories: a file like `advisories.json` of this tool, or the zip file of all PyPI records of osv.dev",
        ),
        option(
            "--ignore ID",
            "an advisory that does not count for the exit code; can be repeated",
            again=True,
            default=list,
        ),
        option("--verbose", "name every advisory, also of packages with many"),
        examples=("audit --all --site sigma2-saga",),
    ),
    verb(
        "upgrade",
        option("STACK", "a stack of `provision stack list`"),
        SITE,
        option(
            "--arch ARCH",
            "an arch of the site; can be repeated (default: all on which users load the stack)",
            to="archs",
            again=True,
        ),
        DRY_RUN,
        option(
            "--locks DIR", "take the newer locks from this folder instead of compiling them, which needs the network"
        ),
        option("--recompile", "compile again, also if an upgrade that failed left newer locks"),
        option("--submit", "build each arch in a job, and follow all of them"),
        option(
            "--no-wait",
            "with --submit: print the job IDs and exit; the same command publishes when the jobs have ended",
        ),
        account("with --submit: "),
        option("--undo", "let users load again, on all archs, what they loaded before the last upgrade"),
        option("--verbose", "in each plan, also list the patches and the reasons"),
        examples=("upgrade tensorflow-2.15.1 --site sigma2-saga",),
    ),
    verb(
        "publish",
        ENVIRONMENT,
        SITE,
        ARCH_OF_NAME,
        one_of(
            option("--default", "users who give no version get this one"),
            option("--no-default", "let the module system choose the version again"),
        ),
        one_of(
            option("--hidden", "hidden from `module avail`; still loads by its full name"),
            option("--visible", "`module avail` lists it again"),
        ),
        one_of(
            option(
                "--deprecate DATE TEXT",
                "warn users who load it that it may be gone after DATE (2027-03-01), and what to do",
            ),
            option("--no-deprecate", "stop warning"),
        ),
        option("--force REASON", "publish it although its proof failed; the record and `module help` show the reason"),
        DRY_RUN,
        examples=("publish tensorflow/2.15.1 --default",),
    ),
    verb("unpublish", ENVIRONMENT, SITE, ARCH_OF_NAME, DRY_RUN, examples=("unpublish tensorflow/2.15.1",)),
    verb(
        "rollback",
        SITE,
        arch("needed if something was published for several"),
        option("--generation NUMBER", "go to this generation instead of the one before", read=positive),
        option("--list", "only list the generations of the arch"),
        DRY_RUN,
        examples=("rollback --arch knl --site nersc-cori",),
    ),
    verb(
        "pin",
        ENVIRONMENT,
        SITE,
        ARCH_OF_NAME,
        option("--reason TEXT", "why it must stay", default="an admin wants to keep it"),
        option("--off", "remove the pin"),
        examples=("pin tensorflow/2.15.1 --reason 'paper of the climate group'",),
    ),
    verb("pack", ENVIRONMENT, SITE, ARCH_OF_NAME, examples=("pack tensorflow/2.15.1",)),
    verb("remove", ENVIRONMENT, SITE, ARCH_OF_NAME, YES, examples=("remove tensorflow/2.15.1 --yes",)),
    verb(
        "prune",
        SITE,
        option(
            "--keep NUMBER",
            "of each module name and arch, keep this many that passed their proof and are not published (default: 2)",
            read=whole,
            default=2,
        ),
        option("--older DAYS", "only environments of at least this age, in days (default: 30)", read=whole, default=30),
        option(
            "--unused-for DAYS",
            "with --usage: only environments that no user loaded for this many days",
            read=whole,
        ),
        option("--usage FILE", "a log of module loads (`-`: stdin), as docs/howto/lifecycle.md describes it"),
        option(
            "--generations NUMBER",
            "keep this many older generations of each arch, for `rollback` (default: 10)",
            read=whole,
            default=10,
        ),
        YES,
        examples=("prune", "prune --yes --keep 2"),
    ),
)
