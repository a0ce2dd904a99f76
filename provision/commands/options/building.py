"""The options of the verbs that prepare and make a build, and of those for people who make stacks."""

from __future__ import annotations

from provision.commands.options.common import BACKEND, PROFILE, SITE, STACK, TARGET, account, arch
from provision.commands.options.declare import one_of, option, subverb, verb

A_SITE = option("SITE", "a site of `provision site list`, or the path of a profile")

SHOWN = (
    *TARGET,
    PROFILE,
    option("--all", "every arch of every profile, from the profiles alone"),
)

COMMANDS = (
    subverb(
        "site list",
        "list the sites, their schedulers and archs",
        run="site.browse:run_list",
        examples=("site list",),
    ),
    subverb(
        "site show",
        "show a site: archs, scheduler, runtimes, stack",
        A_SITE,
        option("--values", "show each value, the file that has it, and its source"),
        run="site.browse:run_show",
        examples=("site show nersc-perlmutter",),
    ),
    subverb(
        "site check",
        "check a profile, its stacks and its jobs, without its machine",
        A_SITE,
        run="site.check:run",
        examples=("site check nersc-perlmutter",),
    ),
    subverb(
        "site new",
        "write the profile of a new site, from a profile with blanks",
        option(
            "NAME",
            "name of the new site: sites/NAME.toml below $PROVISION_CONFIG, or else below ~/.config/provision; if that exists, "
            "its blanks are filled in",
        ),
        option("--from SITE", "the profile to fill in, for a new site (default: generic-slurm)", to="source"),
        option(
            "--arch ARCH",
            "of a new profile: only this arch; of one that exists: add this arch; can be repeated (default: one for each "
            "kind of node that Slurm has)",
            again=True,
        ),
        option(
            "--set KEY=VALUE",
            "the value of a blank (`-`: leave the key out); can be repeated",
            again=True,
            default=list,
        ),
        run="site.new:run",
        examples=("site new snowy", "site new snowy --from nersc-perlmutter"),
    ),
    verb(
        "doctor",
        SITE,
        arch("default: all of them"),
        STACK,
        examples=("doctor", "doctor --site sigma2-saga --arch a100"),
    ),
    verb(
        "fetch",
        *TARGET,
        BACKEND,
        option("--python VERSION", "minor version (3.11) of the nodes' Python, if this machine does not have it"),
        examples=("fetch --site sigma2-saga --arch a100",),
    ),
    verb(
        "plan",
        *TARGET,
        BACKEND,
        PROFILE,
        account("with --profile: "),
        option("--verbose", "also list the patches and the reason for each step"),
        option("--commands", "also show the commands of every step"),
        examples=("plan", "plan --site nersc-cori --arch knl --profile"),
    ),
    verb(
        "build",
        SITE,
        one_of(
            option(
                "--arch ARCH",
                "an arch (kind of node) of the site; needed if the site has several; with --submit it can be repeated",
                to="archs",
                again=True,
            ),
            option("--all-archs", "with --submit: a job for each arch of the site"),
        ),
        STACK,
        BACKEND,
        option("--submit", "write the job, submit it, follow it to its end"),
        option(
            "--no-wait",
            "with --submit: print the job ID and exit; without: fail if another process builds this environment",
        ),
        option("--rebuild", "build a second one beside the first, prove it, and let users load the second"),
        option("--no-publish", "stop after the proof; pilots can load it from a module path of its own"),
        account("with --submit: "),
        option(
            "--plan FILE",
            "compare this plan (`-`: stdin) with the plan made on this machine; stop if they differ",
            rare=True,
        ),
        option("--verbose", "in the plan, also list the patches and the reason for each step"),
        option(
            "--settings FILE",
            "used in generated jobs: file with the settings of pip, uv and the proxy; the job removes it at its end",
            rare=True,
        ),
        option(
            "--requeue",
            "in a job of Slurm: when it announces the time limit (SIGUSR1), end, and put the job back into the queue",
            rare=True,
        ),
        option("--events FILE", "write every event to this file, one JSON object per line", rare=True),
        examples=("build", "build --site nersc-cori --arch knl --submit"),
    ),
    verb(
        "modules",
        SITE,
        option(
            "[NAME]",
            "tensorflow, horovod, python, compiler, mpi, cmake, cuda, cudnn or nccl; or a part of a module's name",
        ),
        examples=("modules --site sigma2-saga",),
    ),
    subverb("stack list", "list the stacks", examples=("stack list",)),
    verb(
        "compat",
        SITE,
        arch("needed if the site has several"),
        option("--verbose", "also show what each TensorFlow needs, with the sources"),
        examples=("compat", "compat --site sigma2-saga --arch a100"),
    ),
    verb(
        "lock",
        option("[NAME...]", "requirements/NAME.in", to="names"),
        option("--all", "all in the first configuration folder that has any"),
        option("--python VERSION", "only for this minor version (3.11); can be repeated", again=True),
        option("--upgrade", "use the newest versions that the input allows"),
        examples=("lock tensorflow-2.15.1",),
    ),
    subverb(
        "spack setup",
        "copy one commit of Spack below the root, with what runs it",
        option(
            "[DIR]",
            "a checkout of Spack, an archive (.tar.gz, .tar.xz) of one, or the URL of its git repository (default: "
            "$SPACK_ROOT)",
            to="source",
        ),
        SITE,
        option(
            "--commit COMMIT",
            "the commit to use; without it, the one that is checked out; an archive does not name its own",
        ),
        option(
            "--cache DIR",
            "a folder or URL: the build cache of another root (its `cache/spack/buildcache`), from which all packages come",
        ),
        examples=("spack setup ~/spack --commit 9cf6633",),
    ),
    subverb(
        "spack show",
        "write spack.yaml and its packages, or print spack.yaml",
        *SHOWN,
        option("--into DIR", "write the files below this folder instead of printing spack.yaml"),
        examples=("spack show --site nersc-perlmutter --arch cpu",),
    ),
    subverb(
        "spack diff",
        "compare a folder of environments with what show writes",
        *SHOWN,
        option("--with DIR", "the folder to compare, which `show` wrote", to="into", required=True),
        examples=("spack diff --with spack-envs",),
    ),
)
