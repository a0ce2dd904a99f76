"""The options of `job`: of the jobs that build, and of users' jobs."""

from __future__ import annotations

from provision.commands.options.common import (
    BACKEND,
    PROFILE,
    QUEUE,
    SITE,
    TARGET,
    account,
    arch,
    positive,
    sizes,
    whole,
)
from provision.commands.options.declare import CommandOptions, Group, Option, option, subverb
from provision.profile.choices import LAUNCHERS

ON_ONE_NODE = ("single", "mirrored")
PLUGIN = "cray-ml-plugin"


PROGRAM = (
    option("--script FILE", "training script (default: train.py in the folder of the submission)"),
    option("--no-lint", "write the job even if `provision job lint` finds errors in the script", rare=True),
    option("--arguments TEXT", "arguments of the script, quoted as one word", default=""),
    option("--data PATH", "path of the training data; the job stops if it does not exist"),
    option("--stage-in PATH", "copy the data to the burst buffer before the job", rare=True),
    option("--burst-buffer-gb N", "with --stage-in: its size (default: 10)", read=positive, rare=True),
    option("--resume-from JOBID", "continue from the checkpoints of this job"),
)
NODES = (
    option("--nodes N", "number of nodes", read=positive),
    option("--ranks-per-node N", "ranks on each node", read=positive),
)
GPUS = option("--gpus N", "GPUs on each node", read=positive)
SWEEP = (
    option(
        "--sweep SIZES",
        "one recorded job per size, for `provision scaling`: 1,2,4,8 GPUs (ranks if the nodes have none); needs --submit or "
        "--out",
        read=sizes,
        rare=True,
    ),
    option("--out DIR", "with --sweep: write the scripts to this folder", rare=True),
)
SIZE = (
    option("--no-gpu", "use CPUs only, for a quick start in the queue"),
    option("--cpus N", "CPUs of each rank", read=positive),
    option("--memory SIZE", "memory for each CPU: 8G"),
    option("--inter N", "TensorFlow's inter-op threads; 0: TensorFlow decides", read=whole, rare=True),
    option("--intra N", "TensorFlow's intra-op threads; 0: TensorFlow decides", read=whole, rare=True),
)
IN_QUEUE = (
    account(),
    *QUEUE,
    option("--qos QOS", "quality of service, beside the partition"),
    option("--constraint CONSTRAINT", "kind of node, in the scheduler's notation", rare=True),
    option("--name NAME", "name of the job (default: KIND-ARCH)"),
    option("--mail ADDRESS", "send messages about the end of the job to this address", rare=True),
    option("--array NUMBERS", "one job for each number: 1-8; it is in $PROVISION_TASK", rare=True),
    option("--requeue", "if the scheduler ends the job early and starts it again, continue from its checkpoints"),
    option(
        "--extra DIRECTIVE",
        "another directive in the scheduler's notation: '#SBATCH --nice=100'; can be given several times",
        again=True,
        default=list,
        rare=True,
    ),
    option("--submit", "submit the job and follow it to its end"),
    option("--no-wait", "with --submit: print the job ID and exit", rare=True),
)
RUNTIME = (
    option("--runtime", "where the framework comes from", choices=("venv", "modules", "container")),
    option(
        "--module, --modules NAME...",
        "modules to load, in this order, instead of the profile's; with --runtime venv: the module of our environment",
        again=True,
        rare=True,
    ),
    option(
        "--launcher NAME",
        "what starts the ranks (default: the profile's)",
        choices=tuple(sorted({*sum(LAUNCHERS.values(), ())})),
        rare=True,
    ),
    option("--image IMAGE", "with --runtime container: another image", rare=True),
    option(
        "--overlay FILE",
        "with --runtime container: an overlay image to mount on top of the site's; can be repeated",
        again=True,
        default=list,
        rare=True,
    ),
    option("--no-overlay", "with --runtime container: without the site's overlay", rare=True),
)
DELIVER = option(
    "--deliver",
    "how ranks get the environment: its files, or one image that each node mounts",
    choices=("files", "image"),
    rare=True,
)
VENV = option("--venv DIR", "your own virtual environment, made with the modules that the job loads")
OUTPUT = (
    option("--watch-gpus", "write the use of the GPUs to gpu.csv", rare=True),
    option("--record", "write run.json, which `provision scaling` reads", rare=True),
)
# The options that some kinds of users' jobs do not have.
OF_SOME_KINDS = (*NODES, *SWEEP, *RUNTIME)


def kind(name: str, purpose: str, *examples: str) -> CommandOptions:
    """A kind of users' job; the default of each option is in the profile."""
    size: tuple[Option, ...] = (*(() if name in ON_ONE_NODE else NODES), GPUS, *(() if name == "single" else SWEEP))
    groups = {
        "program": PROGRAM,
        "size": (*size, *SIZE),
        "queue": IN_QUEUE,
        "runtime": (*(() if name == PLUGIN else RUNTIME), DELIVER, VENV),
        "output": OUTPUT,
    }
    return subverb(
        f"job {name}",
        purpose,
        *TARGET,
        *(Group(title=title, options=options) for title, options in groups.items()),
        run="job.user:run",
        examples=examples,
    )


COMMANDS = (
    subverb(
        "job build",
        "write the job that builds an environment",
        *TARGET,
        BACKEND,
        account(),
        PROFILE,
        run="job.prepare:run_build",
        examples=("job build --site nersc-cori --arch knl",),
    ),
    subverb(
        "job follow",
        "follow a job to its end",
        option("ID", "the ID of the job, as the scheduler gave it", to="job"),
        SITE,
        run="job.follow:run",
        examples=("job follow 4711 --site sigma2-saga",),
    ),
    subverb(
        "job image",
        "write the script that pulls a container image by digest",
        SITE,
        arch("needed if the site has several"),
        option("--image IMAGE", "image in a registry, docker://NAME (default: the site's)"),
        account(),
        *QUEUE,
        run="job.prepare:run_image",
        examples=("job image --site sigma2-olivia --arch accel --account nn1234k",),
    ),
    subverb(
        "job overlay",
        "write the job that puts TensorFlow, or your own packages, into an overlay",
        *TARGET,
        option("--cpus N", "CPUs of the job", read=positive),
        account(),
        *QUEUE,
        Group(
            title="your own packages",
            text="A second, small overlay over the one with TensorFlow; jobs mount it with `--overlay FILE`.",
            options=(
                option(
                    "--requirements FILE",
                    "packages to add, in pip's format; versions that conflict with those of the lock are refused",
                ),
                option(
                    "--overlay FILE",
                    "with --requirements: the new overlay (default: beside the site's, named like FILE)",
                ),
            ),
        ),
        Group(
            title="size",
            text="The job takes the smallest of the site's templates that is large enough.",
            options=(
                option("--gb N", "gigabytes (default: 9, with --requirements 1)", read=positive),
                option("--files N", "files (default: 100000, with --requirements 50000)", read=positive),
            ),
        ),
        run="job.prepare:run_overlay",
        examples=("job overlay --site nyu-greene --arch gpu",),
    ),
    kind(
        "single",
        "write a job of one process that uses at most one GPU",
        "job single --site sigma2-saga --arch a100 --account nn1234k",
    ),
    kind(
        "mirrored",
        "write a job of one process on all GPUs of a node",
        "job mirrored --site sigma2-saga --arch a100 --account nn1234k",
    ),
    kind(
        "multiworker",
        "write a job with MultiWorkerMirroredStrategy",
        "job multiworker --site nersc-perlmutter --arch gpu --nodes 2",
    ),
    kind(
        "horovod",
        "write a job with Horovod: one rank per GPU, any number of nodes",
        "job horovod --site nersc-perlmutter --arch gpu --nodes 4",
        "job horovod --site nersc-perlmutter --arch gpu --nodes 4 --submit",
    ),
    kind(
        "ddp",
        "write a job with PyTorch's DistributedDataParallel: one process per GPU, any number of nodes",
        "job ddp --site nersc-perlmutter --arch gpu --nodes 2",
    ),
    kind(
        "mpi",
        "write a job of any program with mpi4py",
        "job mpi --site sigma2-saga --arch normal --account nn1234k",
    ),
    kind(
        PLUGIN,
        "write a job with the plug-in of a site's own modules",
        "job cray-ml-plugin --site alcf-theta --account datascience",
    ),
    subverb(
        "job lint",
        "check a job script, a training script, or both",
        option("FILE", "a job script or a training script (`.py`); `-`: stdin; exit 2 if it has errors"),
        SITE,
        arch("only what is wrong at every arch that the script may be for"),
        option("--script PROGRAM", "training script (default: those that the job runs)"),
        run="job.lint:run",
        examples=("job lint job.sh --site sigma2-saga", "job lint train.py"),
    ),
)
