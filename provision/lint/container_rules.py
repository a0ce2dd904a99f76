"""The rules for containers: what each must be given, and what hides the launcher's variables from the ranks in it."""

from __future__ import annotations

import re
from collections.abc import Iterator

from provision.knowledge.container_options import VARIABLES, hides_environment, is_no
from provision.knowledge.images import sees_no_gpu
from provision.lint.job_script import JobScript
from provision.lint.launch_rules import starts_several
from provision.lint.rule import Found, error, warning
from provision.lint.shell_lines import ShellCommand, ShellLine, base
from provision.profile.site import Site

# What puts the Python of an overlay on PATH.
SET_UP = re.compile(r"--overlay.*((source|\.) \S+|conda\S* (run|activate)|/python)", re.DOTALL)
# `tensorflow_25.02-tf2-py3.sif` is NVIDIA's, with CUDA.
PULLED = re.compile(r"tensorflow_(?!\d\d\.\d\d-tf)([\w.-]+)\.sif")
STARTS = re.compile(r"\b(apptainer|singularity)\b.{0,2000}\b(exec|run|shell)\b", re.DOTALL)
# The long options that take no value in the next word.
SWITCHES = re.compile(
    r"--(nv|nvccli|rocm|cleanenv|contain|containall|compat|writable|writable-tmpfs|no-\w+|fakeroot|pid|ipc|net|uts|userns|unsquash"
    r"|disable-cache|sharens|keep-privs|allow-setuid|quiet|silent|verbose|debug|nocolor|boot|oci|sif-fuse|passphrase)"
)
ASSIGNED = re.compile(r"\b(" + "|".join(VARIABLES) + r")=([\w'\"]*)")
# The user hands in the variables of the launcher.
HANDED_IN = re.compile(
    r"--env-file\b|(APPTAINER|SINGULARITY)_ENV_FILE=|(APPTAINER|SINGULARITY)ENV_(SLURM|PMI|PMIX|OMPI|PALS)_|"
    r"--env[= ]\S*(SLURM|PMI|PMIX|OMPI|PALS)_"
)


def _starts(job: JobScript) -> list[tuple[ShellLine, str]]:
    """The lines that start containers, with their variables replaced."""
    return [(line, job.filled(line.text)) for line in job.lines if STARTS.search(line.text)]


@warning("only one job at a time can use an overlay with write access{0}", "write `:ro` behind the overlay in jobs")
def overlay_rw(job: JobScript) -> Found:
    """An overlay that is open for writing, so that only one job can use it."""
    for line, text in _starts(job):
        bare = re.search(r"--overlay[ =]\"?([^\s:\"]+\.(?:ext3|img))\"?(?=\s|$)", text)
        if re.search(r":rw\b", text) or (bare and re.search(r"\bpython", text)):
            yield line, "" if ":rw" in text else ", which is the default"


@error("the container does not see the GPUs", "add `--nv` after `exec`, `run` or `shell`")
def container_gpu(job: JobScript) -> Found:
    """A container without `--nv` in a job with GPUs."""
    passed = {"SINGULARITY_NV", "APPTAINER_NV", "SINGULARITY_NVCCLI", "APPTAINER_NVCCLI"} & set(job.variables)
    # GPUs of AMD are devices that a site binds into every container.
    of_amd = re.search(r"rocm|amdgpu|lumi", job.text, re.IGNORECASE)
    for line, text in _starts(job) if job.gpus and not passed and not of_amd else ():
        if not re.search(r"(?:^|\s)(--nv|--nvccli|--rocm)(?=\s|$)", text):
            yield (line,)


@error("the image `{0}` has no GPU support", "use a tag that ends in `-gpu`")
def image_gpu(job: JobScript) -> Found:
    """An image without GPU support in a job with GPUs."""
    for command in job.commands if job.requests_gpus else ():
        if command.in_container:
            # `apptainer pull docker://tensorflow/tensorflow:2.15.0` writes `tensorflow_2.15.0.sif`.
            named = [(job.filled(word), PULLED.fullmatch(base(job.filled(word)))) for word in command.all_words]
            images = [(word, f"tensorflow/tensorflow:{pulled[1]}" if pulled else word) for word, pulled in named]
            yield from ((command.line, word) for word, image in images if sees_no_gpu(image))


@error("the image of `{0}` has no TensorFlow, and this {1}", "`{2}`; `provision job overlay` makes such an overlay")
def container_setup(job: JobScript, site: Site) -> Found:
    """The site's image without the overlay that has TensorFlow, or without its set-up file."""
    box = site.container
    if box is None or box.overlay is None or box.setup is None:
        return
    for line, text in _starts(job):
        missing = "starts it without an overlay", f"{box.command} exec --overlay {box.overlay}:ro …"
        if "--overlay" in text or "OVERLAY" in job.text:
            missing = f"does not read `{box.setup}`, by which the overlay's Python is found", f"source {box.setup} && …"
        if base(box.image) in text and re.search(r"\bpython", text) and not SET_UP.search(text[:4096]):
            yield line, site.name, *missing


@error(
    "`{0}` hides the launcher's variables from the program in the container, so every rank is rank 0 of 1 and trains alone",
    "leave it out; `--no-home`, or `--contain` with `--bind`, hide folders only",
)
def container_env(job: JobScript) -> Found:
    """Several ranks in containers that hide the launcher's variables."""
    if any(HANDED_IN.search(line.text) for line in job.lines):
        return
    exported = [(line, match[0]) for line in job.lines for match in ASSIGNED.finditer(line.text) if not is_no(match[2])]
    for command in job.commands:
        if not any(base(word) in ("apptainer", "singularity") for word in command.all_words):
            continue
        hiding = [(command.line, word) for word in _options(job, command) if hides_environment(word)]
        cleaned = re.search(r"\benv (-i|-|--ignore-environment)(?=\s)", command.line.text)
        hiding += [(command.line, cleaned[0])] if cleaned else []
        if (hiding or exported) and starts_several(job, command):
            yield (hiding or exported)[0]


def _options(job: JobScript, command: ShellCommand) -> Iterator[str]:
    """The options of a container's program, up to the image; variables and arrays of the script are read."""
    place = next(index for index, word in enumerate(command.all_words) if base(word) in ("apptainer", "singularity"))
    takes_value, subcommand = False, False
    words = [part for word in command.all_words[place + 1 :] for part in _expanded(job, word)]
    for word in words:
        if takes_value:
            takes_value = False
        elif word.startswith("-"):
            yield word
            short = len(word) == 2 and word[1] in "BHSWos"
            takes_value = short or (word.startswith("--") and "=" not in word and not SWITCHES.fullmatch(word))
        elif subcommand:
            return  # the image
        else:
            subcommand = True


def _expanded(job: JobScript, word: str) -> list[str]:
    """The words that a word with a variable stands for, as far as the script sets it."""
    array = re.fullmatch(r"\$\{(\w+)\[[@*]\]\}", word)
    if array:
        values = re.findall(rf"^\s*{array[1]}\+?=\(([^()]*)\)", job.text, re.MULTILINE)
        return " ".join(values).replace('"', "").replace("'", "").split()
    return job.filled(word).split() if word.startswith("$") else [word]
