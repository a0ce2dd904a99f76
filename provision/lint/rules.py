"""All rules of the linter: how much each weighs, what it looks at, and what it finds.

`docs/reference/lint-rules.md` is written from this table.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

Weight = Literal["error", "warning", "advice"]
"""error: the job is refused, fails, or computes something else than was meant. warning: it loses time, files or resources, or
fails under conditions that the scripts do not show. advice: it works, and would be safer or easier to repeat otherwise."""
Subject = Literal["job", "job and site", "program", "program and site", "job and program"]
"""What a rule looks at: a job script, a job script and the profile of its site, a training script, or both scripts."""
WEIGHTS: tuple[Weight, ...] = ("error", "warning", "advice")


class Rule(NamedTuple):
    """A rule: its weight, what it looks at, and what it finds."""

    weight: Weight
    subject: Subject
    finds: str


RULES: dict[str, Rule] = {
    # Any job script
    "blank": Rule("error", "job", "a placeholder that was not replaced"),
    "late-directive": Rule("error", "job", "a directive at a place where the scheduler does not read it"),
    "glued-backslash": Rule("error", "job", "a backslash at the end of a line that joins two words"),
    "goes-on": Rule("advice", "job", "a script that continues after a command that failed"),
    "no-certificate": Rule("warning", "job", "a download from a server that is not verified"),
    "source-then": Rule("warning", "job", "a program that runs even if `source` failed"),
    "not-exported": Rule("warning", "job", "a variable of caches that programs do not see"),
    "path-in-pythonpath": Rule("warning", "job", "`PATH` in `PYTHONPATH`"),
    "module-version": Rule("advice", "job", "a module without a version"),
    "toolchains": Rule("warning", "job", "modules of different toolchain generations"),
    "modules-on-top": Rule("advice", "job", "modules that are added to those of the login shell"),
    "no-module-list": Rule("advice", "job", "output that does not record the loaded modules"),
    "horovodrun": Rule("warning", "job", "`horovodrun`, which opens servers that accept code"),
    "srun-cpus": Rule("warning", "job", "srun that does not pass on `--cpus-per-task`"),
    "ranks": Rule("error", "job", "a launcher that starts another number of ranks than the directives request"),
    "tasks-anywhere": Rule("warning", "job", "GPUs per task without a number of nodes"),
    "overlay-rw": Rule("warning", "job", "an overlay that is open for writing, so that only one job can use it"),
    "container-gpu": Rule("error", "job", "a container without `--nv` in a job with GPUs"),
    "container-env": Rule("error", "job", "several ranks in containers that hide the launcher's variables"),
    "image-gpu": Rule("error", "job", "an image without GPU support in a job with GPUs"),
    "line-ends": Rule("error", "job", "line ends of Windows"),
    "empty": Rule("error", "job", "a script without a command"),
    "no-interpreter": Rule("error", "job", "a first line without `#!`"),
    "lost-directive": Rule("warning", "job", "a directive that is a comment because it is misspelt"),
    "unmarked-directive": Rule("error", "job", "a directive without `#`"),
    "login-files": Rule("advice", "job", "a job that reads `~/.bashrc`"),
    "removes-more": Rule("warning", "job", "`rm -r` of a path that begins with a variable that may be empty"),
    "no-wait": Rule("error", "job", "a program in the background that nothing waits for"),
    "first-node-only": Rule("warning", "job", "files that are copied to a folder of the first node only"),
    "python-2": Rule("error", "job", "a module of Python 2"),
    "venv-before-modules": Rule("warning", "job", "a virtual environment that is activated before the modules"),
    "fewer-ranks": Rule("warning", "job", "a launcher that starts fewer ranks than the directives request"),
    "minutes": Rule("advice", "job", "a time in minutes that looks like one in hours"),
    "slurm-number": Rule("error", "job and program", "`SLURM_PROCID` under a launcher that is not srun"),
    # A job script at its site
    "on-service-node": Rule(
        "error", "job and site", "a program that runs on the service node instead of a compute node"
    ),
    "scheduler": Rule("error", "job and site", "directives of another scheduler"),
    "umask": Rule("advice", "job and site", "files that no other user can read"),
    "folder": Rule(
        "warning", "job and site", "a job that starts in the home folder instead of the folder of its submission"
    ),
    "burst-buffer": Rule("warning", "job and site", "many nodes that read data without the burst buffer"),
    "account": Rule("error", "job and site", "no account, or one that the site forbids"),
    "partition": Rule("error", "job and site", "no partition or queue, or one that the site forbids"),
    "qos": Rule("error", "job and site", "no QOS, or one that the site forbids"),
    "constraint": Rule("error", "job and site", "no constraint, or one that the queue does not have"),
    "filesystems": Rule("error", "job and site", "no file systems, although the site requires them"),
    "memory": Rule("error", "job and site", "no memory, or more than a node has"),
    "time": Rule("error", "job and site", "no time, or more than the queue allows"),
    "nodes": Rule("error", "job and site", "more or fewer nodes than the queue allows"),
    "gpus": Rule("error", "job and site", "more GPUs than a node has"),
    "cpus": Rule("error", "job and site", "more CPUs than a node has"),
    "threads": Rule("error", "job and site", "more threads than a node has"),
    "omp-owner": Rule("warning", "job and site", "a variable of OpenMP that the modules of the site set"),
    "intra-omp": Rule("warning", "job and site", "a thread pool of TensorFlow that differs from the threads of OpenMP"),
    "other-launcher": Rule("warning", "job and site", "a launcher that does not belong to the MPI of the site"),
    "one-cpu": Rule("warning", "job and site", "ranks whose threads share one CPU"),
    "placement": Rule("warning", "job and site", "ranks that are not spread over the nodes"),
    "unknown-queue": Rule("warning", "job and site", "a queue or QOS that the profile does not know"),
    "unknown-constraint": Rule("warning", "job and site", "a feature of nodes that the profile does not know"),
    "gpu-partition": Rule("error", "job and site", "GPUs and a partition that contradict each other"),
    "no-gpus-requested": Rule("warning", "job and site", "nodes with GPUs in a job that requests none"),
    "no-network": Rule("error", "job and site", "a download or installation on nodes without internet"),
    "installs-in-job": Rule("advice", "job and site", "an installation of packages inside the job"),
    "horovod-module": Rule("error", "job and site", "Horovod without the module of the site that provides it"),
    "home-data": Rule("advice", "job and site", "training data in the home folder"),
    "downloads": Rule("warning", "program and site", "data or weights that are fetched on nodes without internet"),
    # A job script and the training script that it starts
    "mirrored-tasks": Rule("error", "job and program", "MirroredStrategy in several tasks"),
    "mirrored-nodes": Rule("warning", "job and program", "MirroredStrategy on several nodes, of which it uses one"),
    "horovod-tasks": Rule("error", "job and program", "Horovod with one task and several GPUs"),
    "multiworker-launcher": Rule(
        "error", "job and program", "MultiWorkerMirroredStrategy that asks Slurm for its workers without srun"
    ),
    "proxies": Rule("warning", "job and program", "proxies that block the gRPC of MultiWorkerMirroredStrategy"),
    "gpu-by-local-rank": Rule("error", "job and program", "a GPU chosen by local rank if each task sees one GPU"),
    "threads-unread": Rule("warning", "job and program", "thread numbers that the training script does not read"),
    "tf1-names": Rule("error", "job and program", "names of TensorFlow 1 under TensorFlow 2"),
    "tf1-eager": Rule("error", "job and program", "a placeholder while TensorFlow runs eagerly"),
    "run-tf-function": Rule("error", "job and program", "`experimental_run_tf_function`, missing or not known"),
    "parallel-reads": Rule("advice", "job and program", "more parallel reads than threads"),
    "no-launcher": Rule("error", "job and program", "a script for several ranks that is started without a launcher"),
    "ranks-alone": Rule("error", "job and program", "several ranks of a program that uses nothing to train together"),
    "horovod-unused": Rule(
        "error", "job and program", "a job of `provision job horovod` whose program does not use Horovod"
    ),
    "strategy-unused": Rule(
        "error", "job and program", "a job for a strategy or a plug-in whose program does not use it"
    ),
    "kind-unseen": Rule(
        "warning",
        "job and program",
        "a program that shows no use of what its kind of job is for, but cannot be read as a whole",
    ),
    "one-process": Rule("advice", "job and program", "a job of one process whose program can use several"),
    "tasks-per-gpu": Rule("error", "job and program", "more tasks than GPUs, if each task takes its own"),
    "one-of-many-gpus": Rule("warning", "job and program", "several GPUs for a script that uses one"),
    "keras-3-names": Rule("error", "job and program", "names of files that Keras 3 refuses"),
    "multiworker-version": Rule(
        "error", "job and program", "MultiWorkerMirroredStrategy with a TensorFlow that is too old"
    ),
    "multiworker-keras-3": Rule("error", "job and program", "`fit` of Keras 3 under MultiWorkerMirroredStrategy"),
    # Any training script
    "no-python": Rule("error", "program", "a text that is not valid Python 3"),
    "horovod-not-initialised": Rule("error", "program", "Horovod without `hvd.init()`"),
    "not-distributed": Rule("error", "program", "Horovod without a wrapped optimizer or tape"),
    "no-broadcast": Rule("error", "program", "Horovod without a broadcast of the first weights"),
    "never-called": Rule("error", "program", "`hvd.rank` instead of `hvd.rank()`"),
    "slurm-number-in-horovod": Rule("warning", "program", "a rank of Slurm in a script with Horovod"),
    "all-ranks-write": Rule("warning", "program", "summaries and logs that every rank writes"),
    "text-is-no-number": Rule("error", "program", "a variable of the environment that is compared with a number"),
    "node-local-output": Rule("warning", "program", "output below /tmp, which is lost after the job"),
    "softmax-twice": Rule("warning", "program", "softmax in the model and again in the loss"),
    "no-global-step": Rule("error", "program", "steps that are not counted"),
    "hooks-unread": Rule("error", "program", "hooks that no session runs"),
    "graph-changed": Rule("error", "program", "a graph that is changed after it was finalized"),
    "callback-order": Rule("warning", "program", "callbacks in an order that makes ranks differ"),
    "dataset-unused": Rule("warning", "program", "a data set that is never used"),
    "buffer-in-bytes": Rule("advice", "program", "a buffer size that was not meant in bytes"),
    "horovod-not-imported": Rule("error", "program", "`hvd` that is never imported"),
    "all-ranks-save": Rule("error", "program", "checkpoints or models that every rank writes"),
    "no-such-name": Rule("error", "program", "`tf.session`, which no TensorFlow has"),
    "input-not-split": Rule("warning", "program", "data that every rank of Horovod reads as a whole"),
    "outside-scope": Rule("error", "program", "a model that is made outside the scope of its strategy"),
    "batch-of-all": Rule("advice", "program", "a batch of fixed size that a strategy divides among GPUs"),
    "arrays-in-strategy": Rule("advice", "program", "arrays instead of a data set under a strategy"),
    "parameter-server": Rule("advice", "program", "parameter servers"),
}
