"""The options of users' jobs."""

from __future__ import annotations

import argparse

from provision.commands.job.sweep import sizes
from provision.commands.shared.options import add_account, add_queue, add_target, positive, whole
from provision.profile.launcher import LAUNCHERS

ON_ONE_NODE = ("single", "mirrored")
PLUGIN = "cray-ml-plugin"


def add_arguments(parser: argparse.ArgumentParser, *, kind: str) -> None:
    """The options of one kind of job; the default of each is in the profile."""
    parser.set_defaults(runtime=None, module=None, launcher=None, overlay=[], no_overlay=False, sweep=None, out=None)
    add_target(parser)
    program = parser.add_argument_group("program")
    program.add_argument(
        "--script", metavar="FILE", help="training script (default: train.py in the folder of the submission)"
    )
    program.add_argument(
        "--no-lint", action="store_true", help="write the job even if `provision job lint` finds errors in the script"
    )
    program.add_argument("--arguments", metavar="TEXT", default="", help="arguments of the script, quoted as one word")
    program.add_argument("--data", metavar="PATH", help="path of the training data; the job stops if it does not exist")
    program.add_argument("--stage-in", metavar="PATH", help="copy the data to the burst buffer before the job")
    program.add_argument(
        "--burst-buffer-gb", type=positive, metavar="N", help="with --stage-in: its size (default: 10)"
    )
    program.add_argument("--resume-from", metavar="JOBID", help="continue from the checkpoints of this job")
    size = parser.add_argument_group("size")
    if kind not in ON_ONE_NODE:
        size.add_argument("--nodes", type=positive, metavar="N", help="number of nodes")
        size.add_argument("--ranks-per-node", type=positive, metavar="N", help="ranks on each node")
    size.add_argument("--gpus", type=positive, metavar="N", help="GPUs on each node")
    if kind != "single":
        size.add_argument(
            "--sweep",
            type=sizes,
            metavar="SIZES",
            help="one recorded job per size, for `provision scaling`: 1,2,4,8 GPUs (ranks if the nodes have none); needs "
            "--submit or --out",
        )
        size.add_argument("--out", metavar="DIR", help="with --sweep: write the scripts to this folder")
    size.add_argument("--no-gpu", action="store_true", help="use CPUs only, for a quick start in the queue")
    size.add_argument("--cpus", type=positive, metavar="N", help="CPUs of each rank")
    size.add_argument("--memory", metavar="SIZE", help="memory for each CPU: 8G")
    size.add_argument("--inter", type=whole, metavar="N", help="TensorFlow's inter-op threads; 0: TensorFlow decides")
    size.add_argument("--intra", type=whole, metavar="N", help="TensorFlow's intra-op threads; 0: TensorFlow decides")
    queue = parser.add_argument_group("queue")
    add_account(queue)
    add_queue(queue)
    queue.add_argument("--qos", help="quality of service, beside the partition")
    queue.add_argument("--constraint", help="kind of node, in the scheduler's notation")
    queue.add_argument("--name", help="name of the job (default: KIND-ARCH)")
    queue.add_argument("--mail", metavar="ADDRESS", help="send messages about the end of the job to this address")
    queue.add_argument("--array", metavar="NUMBERS", help="one job for each number: 1-8; it is in $PROVISION_TASK")
    queue.add_argument(
        "--requeue",
        action="store_true",
        help="if the scheduler ends the job early and starts it again, continue from its checkpoints",
    )
    queue.add_argument(
        "--extra",
        action="append",
        default=[],
        metavar="DIRECTIVE",
        help="another directive in the scheduler's notation: '#SBATCH --nice=100'; can be given several times",
    )
    queue.add_argument("--submit", action="store_true", help="submit the job and follow it to its end")
    queue.add_argument("--no-wait", action="store_true", help="with --submit: print the job ID and exit")
    runtime = parser.add_argument_group("runtime")
    if kind != PLUGIN:
        runtime.add_argument("--runtime", choices=("venv", "modules", "container"), help="where TensorFlow comes from")
        runtime.add_argument(
            "--module",
            "--modules",
            nargs="+",
            action="extend",
            metavar="NAME",
            help="modules to load, in this order, instead of the profile's; with --runtime venv: the module of our environment",
        )
        runtime.add_argument(
            "--launcher",
            choices=sorted({*sum(LAUNCHERS.values(), ())}),
            metavar="NAME",
            help="what starts the ranks (default: the profile's)",
        )
        runtime.add_argument("--image", metavar="IMAGE", help="with --runtime container: another image")
        runtime.add_argument(
            "--overlay",
            action="append",
            default=[],
            metavar="FILE",
            help="with --runtime container: an overlay image to mount on top of the site's; can be repeated",
        )
        runtime.add_argument(
            "--no-overlay", action="store_true", help="with --runtime container: without the site's overlay"
        )
    runtime.add_argument(
        "--deliver",
        choices=("files", "image"),
        help="how ranks get the environment: its files, or one image that each node mounts",
    )
    runtime.add_argument(
        "--venv", metavar="DIR", help="your own virtual environment, made with the modules that the job loads"
    )
    output = parser.add_argument_group("output")
    output.add_argument("--watch-gpus", action="store_true", help="write the use of the GPUs to gpu.csv")
    output.add_argument("--record", action="store_true", help="write run.json, which `provision scaling` reads")
