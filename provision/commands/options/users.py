"""The options of the verbs for users, beside `job`."""

from __future__ import annotations

from provision.commands.options.common import ANY_ENVIRONMENT, ENVIRONMENT, SITE, arch, positive, sizes
from provision.commands.options.declare import Option, one_of, option, subverb, verb
from provision.knowledge.examples import EXAMPLES

ARCH_OF_MODULE = arch("needed if several archs have this module")
PLACES = ("scratch", "project", "home")
# Where the completion script of each shell is kept.
SHELLS = {
    "bash": "~/.local/share/bash-completion/completions/provision",
    "zsh": "a folder of $fpath, as _provision",
    "fish": "~/.config/fish/completions/provision.fish",
}
KERNELS = one_of(
    option("--user", "your own kernels, below `~/.local/share/jupyter` (default)"),
    option("--prefix DIR", "those of all users of a Jupyter whose Python is below DIR"),
)


def place(name: str) -> tuple[Option, ...]:
    """The options that name a place at a site; the first has this name."""
    return (
        option(
            name,
            "the folder of the site (default: scratch, or the project's folder if the profile has no scratch)",
            to="place",
            choices=PLACES,
        ),
        option("--project NAME", "the project whose folder it is"),
        option("--user NAME", "your name at the site (default: the one in ssh's configuration)"),
        option("--host HOST", "the host for ssh (default: the profile's, unless this machine is at the site)"),
        SITE,
    )


COMMANDS = (
    verb(
        "activate",
        ENVIRONMENT,
        option(
            "--shell",
            "the shell that reads the code (default: sh, for bash, zsh and ksh too)",
            choices=("sh", "fish", "csh"),
            default="sh",
        ),
        SITE,
        ARCH_OF_MODULE,
        examples=('eval "$(provision activate tensorflow/2.15.1)"',),
    ),
    verb(
        "explain",
        option(
            "LOG",
            "a file (also .gz, .xz or .bz2), a folder with logs, the ID of a job, an environment, or `-` for stdin; with "
            "--list: words of the failures that are listed",
        ),
        option("--list", "list the known failures with these words, and what to do"),
        SITE,
        examples=("explain slurm-4711.out", "explain --list nccl"),
    ),
    verb(
        "example",
        option(
            "[NAME]",
            "the example to copy; without it, all are listed",
            choices=tuple(example.name for example in EXAMPLES),
        ),
        option("[DIR]", "a new folder for the copy (default: NAME)", to="folder"),
        examples=("example", "example horovod-keras mine"),
    ),
    subverb(
        "data fetch",
        "download a data set or weights, to where jobs find them",
        option(
            "WHAT",
            "a data set of Keras (mnist, cifar10), imagenet-weights:NETWORK, tfds:NAME, an address with --sha256, or a program "
            "of yours that downloads (FILE.py): that prints a script which runs it in the site's container",
        ),
        option("--sha256 HASH", "with an address: the sha256 that the file must have"),
        option("--name NAME", "with an address: the name of the file (default: the address's)"),
        option("--data-dir DIR", "with tfds:NAME: the folder that your program names in `data_dir=`, such as `.`"),
        SITE,
        examples=("data fetch mnist",),
    ),
    subverb(
        "data push",
        "write a script that copies a data set to a folder of the site",
        option("PATH", "a folder or a file", to="source"),
        option("--name NAME", "name of the copy at the site (default: the name of PATH)"),
        *place("--to"),
        examples=("data push ./images --site sigma2-saga > push.sh",),
    ),
    subverb(
        "data pull",
        "write a script that copies the output of a job from the site",
        option(
            "SOURCE",
            "a folder or a file at the site: an absolute path, or one below the folder of `--in`, such as `runs/4711`",
        ),
        option("[DIR]", "where to copy it (default: this folder)", to="folder", default="."),
        option("--name NAME", "name of the copy (default: the name of SOURCE)"),
        *place("--in"),
        examples=("data pull 4711 results --site sigma2-saga > pull.sh",),
    ),
    subverb(
        "venv create",
        "make one in which the stack imports and pip adds to it",
        option("DIR", "a new folder for the virtual environment", to="folder"),
        option(
            "--on ENVIRONMENT",
            "the environment to extend: name, fingerprint or module from `provision list`; or `loaded` (the module that this "
            "shell has loaded); or `modules` (the site's own framework: `provided` of the arch)",
            required=True,
        ),
        option("--kernel", "also install `ipykernel` and a kernel, so that Jupyter starts notebooks in it"),
        SITE,
        ARCH_OF_MODULE,
        examples=("venv create ~/venvs/mine --on tensorflow/2.15.1",),
    ),
    subverb(
        "venv check",
        "check one: is the environment under it the same, does a package hide one of the stack",
        option("DIR", "a virtual environment that `provision venv create` made", to="folder"),
        examples=("venv check ~/venvs/mine",),
    ),
    subverb(
        "kernel install",
        "install one for an environment, a virtual environment of yours, or a container",
        option(
            "WHERE",
            "an environment of `provision list`, a virtual environment of `provision venv create`, `modules` (the site's own "
            "framework), or `container` (the site's container with its overlay)",
        ),
        option("--name NAME", "name of the kernel in its folder (default: from the module or the folder)"),
        option("--display-name TEXT", "what Jupyter shows (default: the module and the site)"),
        KERNELS,
        option("--image IMAGE", "with `container`: another image than the site's"),
        option(
            "--overlay FILE",
            "with `container`: an overlay image to mount on top of the site's; can be repeated",
            again=True,
            default=list,
        ),
        option("--dry-run", "print the files, and write nothing"),
        SITE,
        ARCH_OF_MODULE,
        examples=("kernel install tensorflow/2.15.1",),
    ),
    subverb(
        "kernel list",
        "list those that were installed so",
        KERNELS,
        examples=("kernel list",),
    ),
    subverb(
        "kernel remove",
        "remove one",
        option("NAME", "a kernel of `provision kernel list`", to="kernel"),
        KERNELS,
        examples=("kernel remove tensorflow-2.15.1",),
    ),
    verb(
        "tensorboard",
        option("JOBID|DIR", "a job of yours, or a folder with the files of a run", to="summaries"),
        option(
            "--on ENVIRONMENT",
            "a published environment with TensorBoard, or `modules`, the site's own framework (default: the loaded one, or "
            "else one of the site, or else the modules)",
        ),
        option("--port PORT", "the port on this node (default: a free one)", read=int),
        option("--user NAME", "your name at the site, for the tunnel (default: here)"),
        option("--print", "print the commands, and start nothing", to="only_print"),
        SITE,
        arch("needed if several archs have the module of `--on`"),
        examples=("tensorboard 4711 --site sigma2-saga",),
    ),
    verb(
        "scaling",
        option("RUN...", "output folder of a job with `--record`, or its run.json", to="runs"),
        option("--plot FILE", "draw the speed-up and the ideal line (SVG)"),
        examples=("scaling runs/*",),
    ),
    verb(
        "startup",
        ANY_ENVIRONMENT,
        SITE,
        ARCH_OF_MODULE,
        option("--nodes SIZES", "numbers of nodes (default: 1,4,16,64,256)", read=sizes, default=(1, 4, 16, 64, 256)),
        option("--ranks-per-node N", "ranks on each node (default: 64)", read=positive, default=64),
        option(
            "--given NAME=VALUE",
            "a number of the site or the environment, as one value or as BEST:WORST; can be given several times",
            to="numbers",
            again=True,
            default=list,
        ),
        option("--plot FILE", "draw the ranges (SVG)"),
        examples=("startup tensorflow/2.21.0 --given lookups_per_s=80000",),
    ),
    verb(
        "completion",
        option("SHELL", "bash, zsh or fish", choices=tuple(SHELLS)),
        note=f"Write the script to {'; '.join(f'{place} ({shell})' for shell, place in SHELLS.items())}.",
        examples=("source <(provision completion bash)",),
    ),
)
