"""Stand-ins for what cannot be had: qsub and qstat of PBS Pro and of Cobalt, aprun, and mpiexec of PALS. Containers have
theirs in `parts/containers.py`.

They behave as part 7 of the site requirements and the manuals say, as far as our scripts can notice: PBS copies the script,
starts it in the home folder with umask 0077; Cobalt takes only an executable one, and runs it from where it is, on a node
from which ranks are reached by aprun alone; to ranks goes what is named by `-e` or `--env`, and nothing else.
"""

from __future__ import annotations

import sys
from pathlib import Path

COMMON = f"""\
#!{sys.executable}
import os, re, shutil, subprocess, sys
ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
KEPT = {{name: os.environ[name] for name in ("PATH", "HOME", "USER") if name in os.environ}}

def directives(text, prefix):
    found = []
    for line in text.splitlines():
        if line.startswith(prefix + " "):
            found.append(line[len(prefix) + 1:].strip())
        elif line.strip() and not line.startswith("#"):
            break
    return found

def end(code):
    with open(os.path.join(ROOT, "code"), "w") as file:
        file.write(str(code))
"""

PBS_QSUB = """
(script,) = sys.argv[1:]
text = open(script).read()
asked = directives(text, "#PBS")
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
(script,) = sys.argv[1:]
if not os.access(script, os.X_OK):
    sys.exit("command " + script + " not found, or is not executable file")
asked = directives(open(script).read(), "#COBALT")
if not any("filesystems=" in one for one in asked):
    sys.exit("job is held: no filesystems")
prefix = next(one[3:] for one in asked if one.startswith("-O "))
print("Memory mode set to cache", file=sys.stderr)
print("77", flush=True)
more = {"COBALT_JOBID": "77", "COBALT_JOBSIZE": "2"}
with open(prefix + ".output", "w") as out:
    done = subprocess.run([os.path.abspath(script)], env={**KEPT, **more}, stdout=out, stderr=out)
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
        key, _, text = value.partition("=")
        environ[key] = text
    words = words[2:]
if {hydra!r} and ranks > 1:
    # MPICH's own launcher, with options to hand on what is named and nothing else; ranks of MPI need one that they know.
    given = [word for key, text in environ.items() for word in ("-genv", key, text)]
    words = ["/bin/sh", "-c", 'export {rank}="$PMI_RANK"; exec "$@"', "sh", *words]
    sys.exit(subprocess.run([{hydra!r}, "-launcher", "fork", "-n", str(ranks), "-genvnone", *given, *words]).returncode)
for rank in range(ranks):
    own = {{"{rank}": str(rank), **({{"{local}": str(rank % each)}} if "{local}" else {{}})}}
    code = subprocess.run(words, env={{**environ, **own}}).returncode
    if code:
        sys.exit(code)
"""
APRUN = {"values": ("-n", "-N", "-d", "-j", "-cc", "-e"), "name": "aprun", "rank": "ALPS_APP_PE", "local": ""}
PALS = {
    "values": ("-n", "--ppn", "--depth", "--cpu-bind", "--env"),
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
