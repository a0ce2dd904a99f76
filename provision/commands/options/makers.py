"""The options of the verbs for those who make stacks: `modules`, `stack`, `compat`, `lock`, `spack`."""

from __future__ import annotations

from provision.commands.options.common import PROFILE, SITE, TARGET, arch
from provision.commands.options.declare import option, subverb, verb

SHOWN = (
    *TARGET,
    PROFILE,
    option("--all", "every arch of every profile, from the profiles alone"),
)

COMMANDS = (
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
