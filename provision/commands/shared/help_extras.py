"""What `--help` of a verb ends with, and the options that it leaves to `--help-all`."""

from __future__ import annotations

# Options that few need: of jobs, and those that only the job scripts of this tool use.
RARE = {
    "build": ("--plan", "--settings", "--requeue", "--events"),
    "test": ("--events",),
    "job": (
        *(
            "--no-lint",
            "--stage-in",
            "--burst-buffer-gb",
            "--sweep",
            "--out",
            "--inter",
            "--intra",
            "--constraint",
            "--mail",
        ),
        *("--array", "--extra", "--no-wait", "--module", "--launcher", "--image", "--overlay", "--no-overlay"),
        *("--watch-gpus", "--record", "--deliver"),
    ),
}

# Verb or sub-verb to commands that a person would type.
EXAMPLES = {
    "site list": ("site list",),
    "site show": ("site show nersc-perlmutter",),
    "site check": ("site check nersc-perlmutter",),
    "site new": ("site new snowy", "site new snowy --from nersc-perlmutter"),
    "modules": ("modules --site sigma2-saga",),
    "stack list": ("stack list",),
    "compat": ("compat", "compat --site sigma2-saga --arch a100"),
    "lock": ("lock tensorflow-2.15.1",),
    "spack setup": ("spack setup ~/spack --commit 9cf6633",),
    "spack show": ("spack show --site nersc-perlmutter --arch cpu",),
    "spack diff": ("spack diff --with spack-envs",),
    "doctor": ("doctor", "doctor --site sigma2-saga --arch a100"),
    "fetch": ("fetch --site sigma2-saga --arch a100",),
    "plan": ("plan", "plan --site nersc-cori --arch knl --profile"),
    "build": ("build", "build --site nersc-cori --arch knl --submit"),
    "test": ("test tensorflow/2.15.1", "test --all --submit --site sigma2-saga"),
    "list": ("list", "list --site sigma2-saga --json"),
    "show": ("show tensorflow/2.15.1",),
    "report": ("report /var/www/tensorflow --site sigma2-saga",),
    "verify": ("verify --all --site sigma2-saga", "verify --loaded"),
    "audit": ("audit --all --site sigma2-saga",),
    "upgrade": ("upgrade tensorflow-2.15.1 --site sigma2-saga",),
    "publish": ("publish tensorflow/2.15.1 --default",),
    "unpublish": ("unpublish tensorflow/2.15.1",),
    "rollback": ("rollback --arch knl --site nersc-cori",),
    "pack": ("pack tensorflow/2.15.1",),
    "pin": ("pin tensorflow/2.15.1 --reason 'paper of the climate group'",),
    "remove": ("remove tensorflow/2.15.1 --yes",),
    "prune": ("prune", "prune --yes --keep 2"),
    "job build": ("job build --site nersc-cori --arch knl",),
    "job follow": ("job follow 4711 --site sigma2-saga",),
    "job image": ("job image --site sigma2-olivia --account nn1234k",),
    "job overlay": ("job overlay --site nyu-greene --arch gpu",),
    "job single": ("job single --site sigma2-saga --arch a100 --account nn1234k",),
    "job mirrored": ("job mirrored --site sigma2-saga --arch a100 --account nn1234k",),
    "job multiworker": ("job multiworker --site nersc-perlmutter --arch gpu --nodes 2",),
    "job horovod": (
        "job horovod --site nersc-perlmutter --arch gpu --nodes 4",
        "job horovod --site nersc-perlmutter --arch gpu --nodes 4 --submit",
    ),
    "job cray-ml-plugin": ("job cray-ml-plugin --site alcf-theta --account datascience",),
    "job lint": ("job lint job.sh --site sigma2-saga", "job lint train.py"),
    "example": ("example", "example horovod-keras mine"),
    "data fetch": ("data fetch mnist",),
    "data push": ("data push ./images --site sigma2-saga > push.sh",),
    "data pull": ("data pull 4711 results --site sigma2-saga > pull.sh",),
    "scaling": ("scaling runs/*",),
    "venv create": ("venv create ~/venvs/mine --on tensorflow/2.15.1",),
    "venv check": ("venv check ~/venvs/mine",),
    "kernel install": ("kernel install tensorflow/2.15.1",),
    "kernel list": ("kernel list",),
    "kernel remove": ("kernel remove tensorflow-2.15.1",),
    "tensorboard": ("tensorboard 4711 --site sigma2-saga",),
    "activate": ('eval "$(provision activate tensorflow/2.15.1)"',),
    "explain": ("explain slurm-4711.out", "explain --list nccl"),
    "completion": ("source <(provision completion bash)",),
}


def examples_of(words: str) -> tuple[str, ...]:
    """The examples of a verb, or of a verb and a sub-verb, as a person types them."""
    return tuple(line if "provision " in line else f"provision {line}" for line in EXAMPLES.get(words, ()))
