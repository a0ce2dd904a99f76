"""Stand-ins for what cannot be had: qsub and qstat of PBS Pro and of Cobalt, aprun, and mpiexec of PALS. Containers have
theirs in `parts/containers.py`.

They behave as the real programs do, as far as our scripts can notice; what they read is taken from these sources:

- qsub of PBS: `get_script` in src/cmds/qsub_sup.c, and src/lib/Libcmds/check_job_script.c, of OpenPBS 23.06.06. PBS copies the
  script, and starts it in the home folder with umask 0077.
- qsub of Cobalt: src/clients/POSIX/qsub.py and `cb_attrs` in src/lib/client_utils.py of Cobalt 1.0.33. It takes only an
  executable script, and runs it from where it is, on a node from which ranks are reached by aprun alone.
- aprun: aprun(1) of ALPS and HPE's "Run Applications Using the aprun Command" (a00114008en_us_v2): it forwards the environment
  to the compute nodes; `-e NAME=value`, once for each variable, sets one more there.
- mpiexec of PALS: the manual only; to its ranks goes what `--env` names, and nothing else, which no job of ours relies on.
"""

from __future__ import annotations

import sys
from pathlib import Path

COMMON = f"""\
#!{sys.executable}
import os, re, shutil, subprocess, sys
ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
KEPT = {{name: os.environ[name] for name in ("PATH", "HOME", "USER") if name in os.environ}}

def end(code):
    with open(os.path.join(ROOT, "code"), "w") as file:
        file.write(str(code))
"""

PBS_QSUB = """
(script,) = sys.argv[1:]
asked = []
for line in open(script):
    if line.lstrip().startswith("#PBS"):
        asked.append(line.lstrip()[len("#PBS"):].strip())
    elif line.strip() and line.lstrip()[0] != "#" and line[0] != ":":
        break  # the first line that a shell would run
if not any(one.startswith("-l filesystems=") for one in asked):
    sys.exit("qsub: Resource: filesystems is required to be set.")
if not any(one.startswith("-A ") for one in asked):
    sys.exit("qsub: no account")
folder = next(one[3:] for one in asked if one.startswith("-o "))
job, spool = "123.server", os.path.join(ROOT, "spool.sh")
shutil.copy(script, spool)
where = os.getcwd()
os.makedirs(os.path.join(where, folder), exist_ok=True)
print(job, flush=True)
os.umask(0o077)
more = {"PBS_O_WORKDIR": where, "PBS_JOBID": job}
with open(os.path.join(where, folder, job + ".OU"), "w") as out:
    done = subprocess.run(["bash", spool], env={**KEPT, **more}, cwd=KEPT["HOME"], stdout=out, stderr=out)
end(done.returncode)
"""

PBS_QSTAT = """
if sys.argv[1:] == ["-Q", "-f"]:
    for name in ("debug", "prod"):
        print(f"Queue: {name}\\n    queue_type = Execution\\n    enabled = True\\n")
    sys.exit()
job = sys.argv[-1]
if job != "123.server":
    sys.exit("qstat: Unknown Job Id " + job)
code = open(os.path.join(ROOT, "code")).read()
print(f"Job Id: {job}\\n    job_state = F\\n    resources_used.walltime = 00:00:01\\n    Exit_status = {code}")
"""

COBALT_QSTAT = """
print("Name  Users  MinTime  MaxTime  State\\n====\\ndebug-cache-quad  None  None  01:00:00  running")
"""

COBALT_QSUB = """
import optparse
(script,) = sys.argv[1:]
cmd = os.path.abspath(script)
if not os.path.isfile(cmd):
    sys.exit("command %s not found, or is not a file" % cmd)
if not os.access(cmd, os.X_OK | os.R_OK):
    sys.exit("command %s is not executable" % cmd)
# As in `validate_args`: the directives are directly behind `#!`, and the first other line is their end.
tag, words = "#COBALT ", []
with open(cmd) as file:
    line = file.readline()
    if line[0:2] == "#!":
        line = file.readline()
        while len(line) > len(tag):
            if line[:len(tag)] != tag:
                break
            words += line[len(tag):].split()
            line = file.readline()
if not words:
    sys.exit("No required options provided")
parser = optparse.OptionParser(prog="qsub", add_help_option=False)
for names in (("-n", "--nodecount"), ("-t", "--time"), ("-A", "--project"), ("-q", "--queue"), ("-O", "--outputprefix")):
    parser.add_option(*names, dest=names[1][2:])
for name in ("--jobname", "--mode", "--env"):
    parser.add_option(name)
parser.add_option("--attrs", action="append", default=[])
asked, left = parser.parse_args(words)
if left:  # Cobalt would run the first of them instead of the script
    sys.exit("command %s not found, or is not a file" % os.path.abspath(left[0]))
if len(asked.attrs) > 1:
    sys.exit("Multiple --attrs options not supported.  Specify multiple attributes as follows: --attrs FOO=1:BAR=2")
for attribute in "".join(asked.attrs).split(":"):
    if attribute.count("=") > 1:
        sys.exit("Improperly formatted argument to attrs : %s" % attribute)
if asked.time is None:
    sys.exit("'time' not provided")
if asked.nodecount is None:
    sys.exit("'nodecount' not provided")
prefix = os.path.join(os.getcwd(), asked.outputprefix.replace("$jobid", "77"))
if not os.path.isdir(os.path.dirname(prefix)):
    sys.exit("directory %s does not exist" % prefix)
# Not Cobalt's: what the site adds.
if "filesystems=" not in "".join(asked.attrs):
    sys.exit("job is held: no filesystems")
print("Memory mode set to cache", file=sys.stderr)
print("77", flush=True)
more = {"COBALT_JOBID": "77", "COBALT_JOBSIZE": asked.nodecount}
with open(prefix + ".output", "w") as out, open(prefix + ".error", "w") as err:
    done = subprocess.run([cmd], env={**KEPT, **more}, stdout=out, stderr=err)
end(done.returncode)
"""

LAUNCHER = """
LONG = {values}
words, ranks, each, environ = sys.argv[1:], 1, 1, {{}}
while words and words[0].startswith("-"):
    option, value = words[0], words[1]
    if option not in LONG:
        sys.exit("{name}: unknown option " + option)
    if option == "-n":
        ranks = int(value)
    if option in ("-N", "--ppn"):
        each = int(value)
    if option in ("-e", "--env"):
        key, separator, text = value.partition("=")
        if not separator:
            sys.exit("{name}: " + option + " wants NAME=value")
        environ[key] = text
    words = words[2:]
forwarded = dict(os.environ) if "{genv}" == "-genvall" else {{}}
if {hydra!r} and ranks > 1:
    # MPICH's own launcher, with options for what it hands on; ranks of MPI need one that they know.
    given = [word for key, text in environ.items() for word in ("-genv", key, text)]
    words = ["/bin/sh", "-c", 'export {rank}="$PMI_RANK"; exec "$@"', "sh", *words]
    sys.exit(subprocess.run([{hydra!r}, "-launcher", "fork", "-n", str(ranks), "{genv}", *given, *words]).returncode)
for rank in range(ranks):
    own = {{"{rank}": str(rank), **({{"{local}": str(rank % each)}} if "{local}" else {{}})}}
    code = subprocess.run(words, env={{**forwarded, **environ, **own}}).returncode
    if code:
        sys.exit(code)
"""
APRUN = {
    "values": ("-n", "-N", "-d", "-j", "-cc", "-e"),
    "genv": "-genvall",
    "name": "aprun",
    "rank": "ALPS_APP_PE",
    "local": "",
}
PALS = {
    "values": ("-n", "--ppn", "--depth", "--cpu-bind", "--env"),
    "genv": "-genvnone",
    "name": "mpiexec",
    "rank": "PALS_RANKID",
    "local": "PALS_LOCAL_RANKID",
}
PROGRAMS = {
    "pbs": {"qsub": PBS_QSUB, "qstat": PBS_QSTAT},
    "cobalt": {"qsub": COBALT_QSUB, "qstat": COBALT_QSTAT},
}
LAUNCHERS = {"pbs": PALS, "cobalt": APRUN}


def stand_ins(scheduler: str, folder: Path, hydra: Path | None = None) -> Path:
    """The stand-ins of this scheduler, and a `python`, in a folder for PATH.

    With `hydra`, MPICH's `mpiexec.hydra`, several ranks are started by it and are one job of MPI; else each is alone.
    """
    place = folder / "bin"
    place.mkdir(parents=True)
    launcher = LAUNCHERS[scheduler]
    started = LAUNCHER.format(hydra=str(hydra) if hydra else "", **launcher)
    for name, body in {**PROGRAMS[scheduler], str(launcher["name"]): started}.items():
        (place / name).write_text(COMMON + body)
        (place / name).chmod(0o755)
    (place / "python").symlink_to(sys.executable)
    return place
