"""Each rule that the other tests of the linter do not try: a script with the fault, and the same script without it."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest

from parts.examples import PROGRAMS
from parts.profiles import profile
from parts.texts import replace_once
from provision.lint.arch_choice import on_other_nodes
from provision.lint.job_script import read_script
from provision.lint.rules import lint_job, lint_program, read_training
from provision.profile.site import find_faults
from provision.schedulers.node_kind import Cluster
from provision.schedulers.slurm import scheduler as slurm

SLURM = """\
#!/bin/bash
#SBATCH --account=nn1234k
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=4
#SBATCH --cpus-per-task=6
#SBATCH --gpus-per-task=1
#SBATCH --mem-per-cpu=8G
#SBATCH --time=00:30:00
#SBATCH --partition=accel
set -e
module reset
module load TensorFlow/2.11.0-foss-2022a-CUDA-11.7.0
module list
srun --cpus-per-task=6 python train.py
"""
ONE = SLURM.replace("--nodes=2", "--nodes=1").replace("--ntasks-per-node=4", "--ntasks=1")
PLAIN = "import tensorflow as tf\nmodel = tf.keras.Sequential()\nmodel.fit(x, y)\n"
HOROVOD = """\
import tensorflow as tf
import horovod.tensorflow.keras as hvd
hvd.init()
data = tf.data.TFRecordDataset(files).shard(hvd.size(), hvd.rank())
model = tf.keras.Sequential()
model.compile(hvd.DistributedOptimizer(tf.keras.optimizers.Adam()), "mse")
model.fit(data, callbacks=[hvd.callbacks.BroadcastGlobalVariablesCallback(0)])
"""
SESSION = """\
import tensorflow as tf
import horovod.tensorflow as hvd
hvd.init()
step = tf.train.get_or_create_global_step()
train = hvd.DistributedOptimizer(tf.train.AdamOptimizer(0.01 * hvd.size())).minimize(loss, global_step=step)
hooks = [hvd.BroadcastGlobalVariablesHook(0)]
folder = "ckpt" if hvd.rank() == 0 else None
with tf.train.MonitoredTrainingSession(checkpoint_dir=folder, hooks=hooks) as session:
    session.run(train)
"""
MIRRORED = """\
import tensorflow as tf
strategy = tf.distribute.MirroredStrategy()
data = tf.data.TFRecordDataset(files).batch(64 * strategy.num_replicas_in_sync)
with strategy.scope():
    model = tf.keras.Sequential()
    model.compile("adam", "mse")
model.fit(data)
"""


def in_job(
    text: str, training: str | None = None, *, site: str | None = None, arch: str | None = None
) -> dict[str, tuple[str, int]]:
    """The rules that find something in a job and its training script, with the file and line of the first finding."""
    at = profile(site) if site else None
    script = read_script(text, "job.sh")
    read = read_training(training, "train.py") if training is not None else None
    found = lint_job(script, read, at, at.arch(arch) if at and arch else None)
    found += lint_program(read, at, script) if read else ()
    assert all(finding.message and finding.fix and "archs." not in finding.fix for finding in found)
    return {finding.rule: (finding.file, finding.line) for finding in reversed(found)}


def found_at(text: str, old: str, new: str, rule: str, **where: str | None) -> tuple[str, int]:
    """The file and line of a finding that a script without findings has once a part of it is another one."""
    assert in_job(text, **where) == {}
    return in_job(replace_once(text, old, new), **where)[rule]


@pytest.mark.parametrize(
    ("old", "new", "rule", "line"),
    [
        ("#!/bin/bash\n", "#!/bin/bash\r\n", "line-ends", 1),
        ("#!/bin/bash\n", "\n", "no-interpreter", 1),
        ("#SBATCH --time", "# SBATCH --time", "lost-directive", 8),
        ("#SBATCH --time", "#SBTACH --time", "lost-directive", 8),
        ("#SBATCH --time", " #SBATCH --time", "late-directive", 8),
        ("set -e\n", "set -e\n#SBATCH --qos=devel\n", "late-directive", 11),
        ("set -e\n", "SBATCH --qos=devel\nset -e\n", "lost-directive", 10),
        ("set -e\n", "set -e\ncp -r data /tmp\n", "first-node-only", 11),
        ("set -e\n", "set -e\nwget --no-check-certificate https://x\n", "no-certificate", 11),
        ("set -e\n", "set -e\nAPPTAINER_CACHEDIR=/scratch/x\n", "not-exported", 11),
        ("set -e\n", "set -e\nexport PYTHONPATH=/ext3/bin:$PATH\n", "path-in-pythonpath", 11),
        ("set -e\n", "set -e\nmodule load cray-python/2.7.13.1\n", "python-2", 11),
        ("module reset\n", "source ~/tensor_env/bin/activate\nmodule reset\n", "venv-before-modules", 11),
        ("module reset\n", "", "modules-on-top", 11),
        ("/2.11.0-foss-2022a-CUDA-11.7.0", "", "module-version", 12),
        ("module list\n", "module load Python/3.8.2-GCCcore-9.3.0\nmodule list\n", "toolchains", 12),
        ("module list\n", "", "no-module-list", 12),
        ("srun --cpus-per-task=6", "srun", "srun-cpus", 14),
        ("srun --cpus-per-task=6", "horovodrun -np 8", "horovodrun", 14),
        ("python train.py", "python train.py &", "no-wait", 14),
        ("python train.py", "python x.py\\\ntrain.py", "glued-backslash", 14),
        ("python train.py", 'bash -c "source /ext3/env.sh; python train.py"', "source-then", 14),
        ("python train.py", "singularity exec --nv --overlay my.ext3 x.sif python train.py", "overlay-rw", 14),
        ("--time=00:30:00", "--time=24:00", "minutes", 8),
        ("--nodes=2", "--nodes = 2", "directive-value", 3),
        ("--time=00:30:00", "-time=00:30:00", "directive-value", 8),
        ("--time=00:30:00", "--time=$LONG", "directive-value", 8),
        ("--mem-per-cpu=8G", "--mem-per-cpu=8G --mem=20G", "directive-value", 7),
        ("--time=00:30:00", "--time=00:30:00 --export=NONE", "export-none", 8),
        ("srun --cpus-per-task=6", "mpirun", "mpirun-gpus", 6),
        ("module list\n", "module list\nconda activate tf\n", "python-hidden", 14),
        ("module list\n", "module list\npip install --user keras\n", "user-packages", 14),
        ("module list\n", "module list\nHOROVOD_GPU_OPERATIONS=NCCL pip install horovod\n", "horovod-build", 14),
        (
            "module list\n",
            "module list\npip install tensorflow==2.20.0\npip install horovod[keras]\n",
            "horovod-build",
            15,
        ),
        ("python train.py", "apptainer exec --nv tensorflow_2.15.0.sif python train.py", "image-gpu", 14),
        ("--partition=accel", "--partition=example-partition", "blank", 9),
        ("--account=nn1234k", "--account=nnXXXXk", "blank", 2),
        ("--account=nn1234k", "--account=<project>", "blank", 2),
        ("--account=nn1234k", "--account=?", "blank", 2),
        ("train.py", "/path/to/train.py", "blank", 14),
        ("train.py", "/scratch/NetID/train.py", "blank", 14),
        ("set -e\n", "set -e\nexport http_proxy=http://example_proxy.com\n", "blank", 11),
    ],
)
def test_a_fault_of_a_job_script_is_found(old: str, new: str, rule: str, line: int) -> None:
    assert found_at(SLURM, old, new, rule) == ("job.sh", line)


@pytest.mark.parametrize(
    ("text", "nothing"),
    [
        ("", True),
        ("#!/bin/bash\n# later: srun python train.py\n", True),
        (SLURM.partition("set -e")[0], True),
        (SLURM.replace("srun --", "# srun --"), True),
        ("#!/bin/bash\nset -e\nexport OMP_NUM_THREADS=4\nX=1\ncd data\n", True),
        ("#!/bin/bash\nhostname\n", False),
        (
            "#!/bin/bash\n#SBATCH -N 1\n#BB create_persistent name=data capacity=450GB access_mode=striped type=scratch\n",
            False,
        ),
        ("#!/bin/bash\nsource run.sh\n", False),
        ("#!/usr/bin/env python\n#SBATCH --nodes=1\nprint(1)\n", False),
    ],
)
def test_a_job_that_starts_nothing_is_not_sound(text: str, nothing: bool) -> None:
    script = read_script(text, "job.sh")
    assert ("starts-nothing" in {finding.rule for finding in lint_job(script, None, None, None)}) is nothing


@pytest.mark.parametrize(
    ("text", "alone", "in_a_job"),
    [
        ("", True, True),
        ('"""Trains."""\n# model.fit(x, y)\n', True, True),
        ("import tensorflow as tf\ndef main():\n    tf.zeros(1)\n", False, True),
        ("def main():\n    print(1)\nmain()\n", False, False),
        ("import mine\ndef other():\n    pass\n", False, False),
        ("import absl.app\n@absl.app.run\ndef main(_):\n    pass\n", False, False),
    ],
)
def test_a_program_that_runs_nothing_is_not_sound(text: str, alone: bool, in_a_job: bool) -> None:
    for script, nothing in ((None, alone), (read_script(SLURM, "job.sh"), in_a_job)):
        found = lint_program(read_training(text, "train.py"), None, script)
        assert ("starts-nothing" in {finding.rule for finding in found}) is nothing


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("#SBATCH --time", "##SBATCH --time"),
        ("python train.py", "python train.py &\nwait"),
        ("python train.py", "python train.py > log 2>&1"),
        ("set -e\n", "set -e\nsrun --ntasks-per-node=1 --cpus-per-task=6 cp -r data /tmp\n"),
        ("set -e\n", "set -e\ncat > note <<END\nwget --no-check-certificate https://x\nEND\n"),
        ("train.py\n", "train.py \\\n  --steps 3\\\n  --seed 4\n"),
        ("module list\n", "module list\nsource ~/tensor_env/bin/activate\n"),
        ("set -e\n", "set -e\necho 'usage: job.sh <your_account>'\n"),
        ("--time=00:30:00", "--time=30:00"),
        ("--time=00:30:00", "--time=1-0"),
        ("--time=00:30:00", "--time=00:30:00\n#SBATCH --job-name=<name>"),
        ("set -e\n", "set -e\nyour_cleanup() { rm -r x; }\ntrap your_cleanup USR1\n"),
        ("set -e\n", "set -e\nMyProject=/project/x # TODO\nls $MyProject\n"),
        ("--time=00:30:00", "--time=00:30:00 --export=ALL,A=1"),
        ("module list\n", "module list\nHOROVOD_WITH_MPI=1 pip install horovod==0.28.1\n"),
        ("module reset\n", "module --force swap StdEnv/1 Zen2Env/1\nmodule reset\n"),
        ("module reset\n", "conda activate tf\nmodule reset\n"),
        ("--time=00:30:00\n", "--time=00:30:00\n#SBATCH hetjob\n#SBATCH --nodes=many\n"),
        ("python train.py", "singularity exec --nv image-rocm.sif python train.py"),
        ("python train.py", "singularity exec image-rocm.sif python train.py"),
    ],
)
def test_a_correct_job_script_is_not_reported(old: str, new: str) -> None:
    assert in_job(replace_once(SLURM, old, new)) == {}


@pytest.mark.parametrize(
    ("old", "new", "rule", "line"),
    [
        ("#SBATCH --gpus-per-task=1\n", "", "gpu-partition", 8),
        ("#SBATCH --partition=accel\n", "", "gpu-partition", 6),
        ("--partition=accel", "--partition=nosuch", "unknown-queue", 9),
        ("#SBATCH --account=nn1234k\n", "", "account", 1),
        ("#SBATCH --time=00:30:00\n", "", "time", 1),
        ("--time=00:30:00", "--time=99-00:00:00", "time", 8),
        ("--mem-per-cpu=8G", "--mem-per-cpu=20G", "memory", 7),
        ("#SBATCH --mem-per-cpu=8G\n", "", "memory", 1),
        ("--mem-per-cpu=8G", "--mem=500G", "memory", 7),
        ("--nodes=2", "--nodes=8", "nodes", 3),
        ("--cpus-per-task=6\n#SBATCH --gpus", "--cpus-per-task=12\n#SBATCH --gpus", "cpus", 5),
        ("--gpus-per-task=1", "--gpus-per-task=2", "gpus", 6),
        ("set -e\n", "set -e\nexport OMP_NUM_THREADS=24\n", "threads", 11),
        ("set -e\n", "set -e\nexport NUM_INTER_THREADS=2 NUM_INTRA_THREADS=6\n", "threads", 11),
        ("set -e\n", "set -e\nexport OMP_NUM_THREADS=4 NUM_INTRA_THREADS=6\n", "intra-omp", 11),
        ("python train.py", "python train.py --data-dir $HOME/records", "home-data", 14),
    ],
)
def test_a_fault_against_saga_is_found_without_an_arch(old: str, new: str, rule: str, line: int) -> None:
    assert found_at(SLURM, old, new, rule, training="print(1)\n", site="sigma2-saga") == ("job.sh", line)


A100 = (ONE.replace("accel", "a100"), "sigma2-saga")
GREENE = (
    (
        "#!/bin/bash\n#SBATCH --nodes=1 --ntasks=1 --gres=gpu:2\nsingularity exec --nv --overlay my.ext3:ro "
        "/scratch/work/public/singularity/cuda12.1.1-cudnn8.9.0-devel-ubuntu22.04.2.sif bash -c "
        "'source /ext3/env.sh && python train.py'\n"
    ),
    "nyu-greene",
)
THETA = (
    (
        "#!/bin/bash\n#COBALT -n 1\n#COBALT -A x\n#COBALT -t 10\n#COBALT -q debug-cache-quad\n#COBALT --attrs filesystems=home\n"
        "export OMP_NUM_THREADS=62\naprun -n 1 -N 1 -d 62 -cc depth python train.py\n"
    ),
    "alcf-theta",
)
INTRA = "import tensorflow as tf\nc = tf.ConfigProto(intra_op_parallelism_threads={})\n"


@pytest.mark.parametrize(
    ("job", "old", "new", "training", "rule", "weight"),
    [
        (A100, "module reset\n", "module swap StdEnv Other\nmodule reset\n", "", "module-tree", "error"),
        ((SLURM, "sigma2-saga"), "--cpus-per-task=6\n#", "--cpus-per-task=30 --qos=devel\n#", "", "cpus", "error"),
        ((SLURM, "sigma2-saga"), "srun --cpus-per-task=6", "mpirun", "", "other-launcher", "warning"),
        (GREENE, "--gres=gpu:2", "", MIRRORED, "no-gpus-requested", "warning"),
        (GREENE, "--overlay my.ext3:ro ", "", "", "container-setup", "error"),
        (GREENE, "source /ext3/env.sh && ", "", "", "container-setup", "error"),
        (THETA, "#COBALT --attrs filesystems=home\n", "", "", "filesystems", "warning"),
        (THETA, "-q debug-cache-quad", "-q default", "", "nodes", "warning"),
        (THETA, "\n", "\n", INTRA.format(16), "intra-omp", "warning"),
    ],
)
def test_what_a_site_refuses_or_only_warns_of_is_found(
    job: tuple[str, str], old: str, new: str, training: str, rule: str, weight: str
) -> None:
    text, site = job
    script = read_script(text.replace(old, new, 1), "job.sh")
    found = lint_job(script, read_training(training, "train.py"), profile(site), None)
    assert {finding.weight for finding in found if finding.rule == rule} == {weight}
    sound = read_script(text.replace("module reset\n", "module swap StdEnv Zen2Env\nmodule reset\n"), "job.sh")
    program = INTRA.format(62) if rule == "intra-omp" else training
    rules = {f.rule for f in lint_job(sound, read_training(program, "train.py"), profile(site), None)}
    assert rule not in rules


def test_a_partition_of_another_arch_than_the_named_one_is_found() -> None:
    assert "arch-partition" in in_job(ONE, site="sigma2-saga", arch="a100")
    assert "arch-partition" not in in_job(ONE, site="sigma2-saga", arch="accel")


def test_a_reservation_of_pbs_is_not_an_unknown_queue() -> None:
    assert "unknown-queue" in in_job(POLARIS.replace("-q debug", "-q training"), site="alcf-polaris")
    assert "unknown-queue" not in in_job(POLARIS.replace("-q debug", "-q R123"), site="alcf-polaris")


def test_data_below_a_home_folder_are_found_in_the_program() -> None:
    text = "import tensorflow as tf\ndata = tf.data.TFRecordDataset('/global/homes/a/alice/x')\n"
    assert in_job(CORI, text, site="nersc-cori")["home-data"] == ("train.py", 2)


def test_without_an_arch_only_what_is_wrong_at_each_arch_is_reported() -> None:
    text = "#!/bin/bash\n#SBATCH --account=a --time=01:00:00 --nodes=1 --ntasks-per-node=1 --gpus-per-node=1\n"
    text += "#SBATCH --cpus-per-task=30 --mem-per-cpu=2G\nset -e\nsrun --cpus-per-task=30 ./x\n"
    for arch, wrong in ((None, False), ("accel", True), ("a100", False)):  # their nodes have 24 and 32 CPUs
        assert ("cpus" in in_job(text, site="sigma2-saga", arch=arch)) is wrong


PARTITIONS = """\
PartitionName=normal AllowAccounts=ALL AllowQos=ALL Default=YES MaxNodes=2 MaxTime=02:00:00 MinNodes=0 State=UP
PartitionName=other AllowAccounts=ml AllowQos=ALL Default=NO MaxNodes=UNLIMITED MaxTime=1-00:00:00 MinNodes=0 State=UP
"""
OF_PARTITION = """\
#!/bin/bash
#SBATCH --account=tests
#SBATCH --partition=normal
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --time=00:30:00
set -e
srun python train.py
"""


@pytest.mark.parametrize(
    ("old", "new", "rule", "fix"),
    [
        ("00:30:00", "99:00:00", "time", "`#SBATCH --time=02:00:00` or less, or another queue"),
        ("--nodes=2", "--nodes=3", "nodes", "`#SBATCH --nodes=2`, or another queue"),
        ("=normal", "=nornal", "partition", "`#SBATCH --partition=normal`"),
        ("=normal", "=other", "account", "there are ml"),
    ],
)
def test_a_script_is_compared_with_what_the_scheduler_here_says(old: str, new: str, rule: str, fix: str) -> None:
    there, site = Cluster(queues=slurm.parse_queues(PARTITIONS)), profile("generic-slurm")

    def fixes(text: str, cluster: Cluster | None) -> dict[str, str]:
        found = lint_job(read_script(text, "job.sh"), None, site, None, cluster)
        return {one.rule: one.fix for one in found if one.weight == "error"}

    wrong = replace_once(OF_PARTITION, old, new)
    assert (fixes(OF_PARTITION, there), fixes(wrong, None), fixes(wrong, there)) == ({}, {}, {rule: fix})


def test_a_time_over_that_of_every_queue_is_found_without_a_queue() -> None:
    text = OF_PARTITION.replace("partition=normal", "constraint=gpu")
    for time, wrong in (("47:00:00", False), ("99:00:00", True)):
        assert ("time" in in_job(text.replace("00:30:00", time), site="nersc-perlmutter")) is wrong


def test_memory_of_a_whole_node_counts_as_memory() -> None:
    assert in_job(replace_once(SLURM, "--mem-per-cpu=8G", "--mem=192G"), "print(1)\n", site="sigma2-saga") == {}


@pytest.mark.parametrize("new", ["pip install --user tfds", "wget -q https://example.org/x.tar"])
def test_an_installation_is_reported_where_nodes_have_no_internet_not_where_they_have_a_proxy(new: str) -> None:
    text = f"#!/bin/bash\nset -e\n{new}\n"
    assert in_job(text, site="alcf-theta")["no-network"] == ("job.sh", 3)
    assert "no-network" not in in_job(text, site="sigma2-saga")


@pytest.mark.parametrize(
    "new", ["pip install --no-index x.whl", "pip install -e .", "export https_proxy=p\npip install x"]
)
def test_an_installation_without_the_internet_is_not_reported(new: str) -> None:
    assert "no-network" not in in_job(f"#!/bin/bash\nset -e\n{new}\n", site="alcf-theta")


PERLMUTTER = """\
#!/bin/bash
#SBATCH -C gpu
#SBATCH -N 1
#SBATCH --ntasks-per-node=4
#SBATCH -c 32
#SBATCH --gpus-per-node=4
#SBATCH -t 10
set -e
module reset
module load tensorflow/2.15.0
module list
srun -c 32 python train.py
"""


@pytest.mark.parametrize(
    ("old", "new", "rule"),
    [
        ("srun -c 32", "mpirun -np 4", "other-launcher"),
        ("-C gpu", "-C volta", "unknown-constraint"),
        ("-c 32\n#SBATCH --gpus-per-node=4", "--gpus-per-node=4", "one-cpu"),
    ],
)
def test_a_fault_against_perlmutter_is_found_without_an_arch(old: str, new: str, rule: str) -> None:
    text = PERLMUTTER.replace("srun -c 32", "srun") if rule == "one-cpu" else PERLMUTTER
    assert in_job(PERLMUTTER, site="nersc-perlmutter") == {}
    assert rule in in_job(replace_once(text, old, new), site="nersc-perlmutter")


def test_a_job_on_gpu_nodes_that_requests_none_is_found() -> None:
    text = "#!/bin/bash\n#SBATCH --nodes=1\n#SBATCH --account=a\nset -e\nsingularity exec --nv x.sif python train.py\n"
    assert "no-gpus-requested" in in_job(text, site="nyu-greene", arch="gpu")
    assert "no-gpus-requested" not in in_job(text.replace("--nv ", ""), site="nyu-greene", arch="gpu")


def test_a_training_without_gpus_in_a_partition_of_gpu_nodes_is_found_in_a_profile_without_cpu_nodes() -> None:
    generic = profile("generic-slurm")
    site = replace(generic, archs=(generic.arch("gpu"),))
    text = "#!/bin/bash\n#SBATCH --nodes=1 --ntasks=1 --partition=gpu --constraint=a100\nset -e\nsrun python train.py\n"
    for job, program, expected in (
        (text, PLAIN, True),
        (text, "print('no training')\n", False),
        (text.replace("set -e\n", "set -e\nexport CUDA_VISIBLE_DEVICES=\n"), PLAIN, False),
        (text.replace("--ntasks=1", "--ntasks=1 --gres=gpu:1"), PLAIN, False),
    ):
        script = read_script(job, "job.sh")
        found = lint_job(script, read_training(program, "train.py"), site, None)
        assert ("no-gpus-requested" in {finding.rule for finding in found}) is expected


POLARIS = """\
#!/bin/bash
#PBS -A catalyst
#PBS -q debug
#PBS -l select=2:system=polaris
#PBS -l walltime=00:30:00
#PBS -l filesystems=home:eagle
set -e
umask 022
cd "$PBS_O_WORKDIR"
mpiexec -n 8 --ppn 4 --depth 8 --cpu-bind depth python train.py
"""


@pytest.mark.parametrize(
    ("old", "new", "rule", "fix"),
    [
        ("#PBS -l filesystems=home:eagle\n", "", "filesystems", "#PBS -l filesystems=home:eagle"),
        ("#PBS -A catalyst\n", "", "account", "#PBS -A ACCOUNT"),
        ("#PBS -l walltime=00:30:00\n", "", "time", "#PBS -l walltime="),
        ("select=2:", "select=4:", "nodes", "#PBS -l select=2"),
        ("walltime=00:30:00", "walltime=02:00:00", "time", "#PBS -l walltime=01:00:00"),
        (" --ppn 4 --depth 8 --cpu-bind depth", "", "placement", "--ppn 4"),
        (" --depth 8 --cpu-bind depth", "", "one-cpu", "--depth"),
    ],
)
def test_a_fix_is_a_line_for_the_owner_of_the_script(old: str, new: str, rule: str, fix: str) -> None:
    at = profile("alcf-polaris")
    found = lint_job(read_script(POLARIS, "job.sh"), None, at, None)
    assert found == ()
    found = lint_job(read_script(replace_once(POLARIS, old, new), "job.sh"), None, at, None)
    (finding,) = [finding for finding in found if finding.rule == rule]
    assert fix in finding.fix
    assert "archs." not in finding.fix


def test_threads_on_one_cpu_and_threads_given_by_aprun_are_found_at_theta() -> None:
    head = "#!/bin/bash\n#COBALT -n 1\n#COBALT -A x\n#COBALT -q debug-cache-quad\n#COBALT --attrs filesystems=home\nset -e\n"
    plain = f"{head}export OMP_NUM_THREADS=62\naprun -n 1 -N 1 python train.py\n"
    assert "one-cpu" in in_job(plain, site="alcf-theta")
    bound = "-d 62 -cc depth"
    assert in_job(plain.replace("-N 1", f"-N 1 {bound}"), site="alcf-theta") == {}
    ranks = bound.replace("62", "16")
    four = f"{head}export OMP_NUM_THREADS=62\naprun -n 4 -N 4 {ranks} python train.py\n"
    assert in_job(four, site="alcf-theta")["threads"] == ("job.sh", 7), "without -j aprun uses one thread of each core"
    assert "threads" not in in_job(four.replace("-N 4", "-N 4 -j 4"), site="alcf-theta")
    given = f"{head}aprun -n 4 -N 4 {bound} -e OMP_NUM_THREADS=128 python train.py\n"
    assert in_job(given, site="alcf-theta")["threads"] == ("job.sh", 7)


CORI = """\
#!/bin/bash
#SBATCH -C haswell
#SBATCH -N 1
#SBATCH --ntasks-per-node=1
#SBATCH -t 10
set -e
module load tensorflow/intel-1.15.0-py37
module list
srun python train.py
"""


def test_threads_that_the_modules_set_count_for_every_rank() -> None:
    short = CORI.replace("--ntasks-per-node=1\n", "-t 5\n").replace("-N 1", "-N 2").replace("srun", "srun -n 64")
    assert in_job(short, site="nersc-cori")["threads"] == ("job.sh", 9)
    assert "threads" not in in_job(short.replace("tensorflow/intel-1.15.0-py37", "gcc/8"), site="nersc-cori")
    alone = read_training(INTRA.format("272, inter_op_parallelism_threads=4"), "train.py")
    for arch, wrong in ((None, False), ("knl", True)):
        at = profile("nersc-cori")
        found = lint_program(alone, at, None, at.arch(arch) if arch else None)
        assert ("threads" in {finding.rule for finding in found}) is wrong
    assert "threads" not in in_job(CORI, site="nersc-cori")
    assert in_job(CORI.replace("node=1", "node=8"), site="nersc-cori")["threads"] == ("job.sh", 9)
    assert "omp-owner" in in_job(CORI.replace("set -e\n", "set -e\nexport KMP_AFFINITY=none\n"), site="nersc-cori")
    sets = "import os\nos.environ['OMP_NUM_THREADS'] = '4'\n"
    assert in_job(CORI, sets, site="nersc-cori")["omp-owner"] == ("train.py", 2)
    pools = "import tensorflow as tf\nc = tf.ConfigProto(inter_op_parallelism_threads=4, intra_op_parallelism_threads=272)\n"
    assert in_job(CORI, pools, site="nersc-cori")["threads"] == ("train.py", 2)


# A job and its training script


IN_FUNCTIONS = """\
import tensorflow as tf
strategy = tf.distribute.MirroredStrategy()
def build():
    return tf.keras.Sequential()
def train(data, strategy):
    with strategy.scope():
        model = build()
    model.fit(data)
def main(size=64 * strategy.num_replicas_in_sync):
    train(tf.data.TFRecordDataset(files).batch(size), strategy)
if __name__ == "__main__":
    main()
"""
BY_CLASS = """\
import tensorflow as tf
class Net(tf.keras.Model):
    pass
def main():
    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    with strategy.scope():
        model = Net()
    model.fit(tf.data.TFRecordDataset(files).batch(64 * strategy.num_replicas_in_sync))
main()
"""
BY_APP = """\
import tensorflow as tf
import horovod.tensorflow as hvd
def main(_):
    if hvd.rank() == 0:
        writer = tf.summary.FileWriter("logs")
tf.app.run()
"""
SHARDS = HOROVOD.replace(
    "data = tf.data.TFRecordDataset(files).shard(hvd.size(), hvd.rank())\n",
    "def read(parts, part):\n    return tf.data.TFRecordDataset(files).shard(parts, part)\ndata = read(hvd.size(), hvd.rank())\n",
)
MAIN = "def main():\n    return 1\nif __name__ == '__main__':\n    sys.exit(main())\n"


@pytest.mark.parametrize(
    ("text", "old", "new", "rule", "line"),
    [
        (IN_FUNCTIONS, "    with strategy.scope():\n        model", "    if True:\n        model", "outside-scope", 4),
        (IN_FUNCTIONS, "64 * strategy.num_replicas_in_sync", "64", "batch-of-all", 10),
        (SHARDS, "hvd.rank())\nmodel", "hvd.local_rank())\nmodel", "shard-by-local-rank", 5),
        (HOROVOD, "hvd.rank())", "hvd.local_rank())", "shard-by-local-rank", 4),
        (SESSION, "hooks = [", "hooks = [tf.train.CheckpointSaverHook('ckpt'), ", "all-ranks-save", 6),
        (SESSION, "hooks = [", "hooks = [tf.train.SummarySaverHook(output_dir='logs'), ", "all-ranks-write", 6),
        (PLAIN, "model.fit(x, y)\n", "model.fit(x, y)\ntf.keras.Sequential.save('m')\n", "unbound-save", 4),
        (PLAIN, "model.fit(x, y)\n", "model.fit(x, y)\np = 'runs/<job_id to load from>/ckpt'\n", "blank", 4),
        (MAIN, "sys.exit(main())", "main()", "exit-unread", 4),
        (BY_CLASS, "    with strategy.scope():\n        model", "    if True:\n        model", "outside-scope", 7),
        (BY_APP, "if hvd.rank() == 0:", "if True:", "all-ranks-write", 5),
    ],
)
def test_a_fault_that_functions_hide_is_found(text: str, old: str, new: str, rule: str, line: int) -> None:
    before, after = text, replace_once(text, old, new)
    found = [
        {f.rule: f.line for f in reversed(lint_program(read_training(one, "t.py"), None))} for one in (before, after)
    ]
    assert (found[0].get(rule), found[1].get(rule)) == (None, line)


OF_TF2 = (("mirrored", 31), ("horovod-loop", 34))
OF_1_15 = ONE.replace("TensorFlow/2.11.0-foss-2022a-CUDA-11.7.0", "tensorflow/intel-1.15.0-py37")
OF_2_21, TRAIN_4 = ONE.replace("2.11.0", "2.21.0"), ("train.py", 4)
EIGHT_TASKS = replace_once(SLURM, "per-node=4", "per-node=8").replace("gpus-per-task=1", "gpus-per-node=4")
KERAS_3_NAMES = (
    *("model.save('out')\n", "model.load_weights('w.ckpt')\n"),
    "c = tf.keras.callbacks.ModelCheckpoint('mnist-{epoch:04d}.ckpt', save_weights_only=True)\n",
    "import os; model.save_weights(os.path.join(folder, 'w.ckpt'))\n",
)
WORKERS = "import tensorflow as tf\ns = tf.distribute.MultiWorkerMirroredStrategy()\n"


@pytest.mark.parametrize(
    ("job", "training", "rule", "place"),
    [
        (SLURM.replace("srun --cpus-per-task=6 python", "python"), HOROVOD, "no-launcher", ("job.sh", 14)),
        (SLURM, PLAIN, "ranks-alone", ("train.py", 3)),
        (
            EIGHT_TASKS,
            HOROVOD + "tf.config.set_visible_devices(gpus[hvd.local_rank()], 'GPU')\n",
            "tasks-per-gpu",
            ("job.sh", 4),
        ),
        (ONE.replace("gpus-per-task=1", "gpus=4"), PLAIN, "one-of-many-gpus", ("job.sh", 6)),
        (ONE.replace("--nodes=1", "--nodes=2"), MIRRORED, "mirrored-nodes", ("job.sh", 4)),
        *((OF_2_21, PLAIN + line, "keras-3-names", TRAIN_4) for line in KERAS_3_NAMES),
        (OF_2_21, PLAIN + "d = tf.keras.datasets.mnist.load_data(path='/data/mnist.npz')\n", "keras-3-path", TRAIN_4),
        (OF_2_21, PLAIN + "d = tf.keras.datasets.mnist.load_data(f'{data}/mnist.npz')\n", "keras-3-path", TRAIN_4),
        (OF_1_15, PLAIN + "gpus = tf.config.list_physical_devices('GPU')\n", "tf2-names", TRAIN_4),
        (OF_1_15, PLAIN + "with tf.GradientTape() as tape: pass\n", "tf2-names", TRAIN_4),
        *((OF_1_15, PROGRAMS[f"{name}/train.py"], "tf2-names", ("train.py", line)) for name, line in OF_TF2),
        (
            SLURM.replace("srun --cpus-per-task=6 python", "apptainer exec --nv x.sif mpirun -np 8 python"),
            HOROVOD,
            "no-launcher",
            ("job.sh", 14),
        ),
        (
            SLURM.replace("--ntasks-per-node=4", "--cpus-per-task=6").replace(
                "srun --cpus-per-task=6 python", "python"
            ),
            HOROVOD,
            "no-launcher",
            ("job.sh", 14),
        ),
        (EIGHT_TASKS, HOROVOD, "gpu-not-pinned", ("job.sh", 14)),
        (
            ONE.replace("gpus-per-task=1", "gpus=4").replace("srun --cpus-per-task=6", "mpirun -np $SLURM_NTASKS"),
            HOROVOD,
            "horovod-tasks",
            ("job.sh", 4),
        ),
        (ONE.replace("2.11.0", "2.2.0"), WORKERS, "multiworker-version", ("train.py", 2)),
        (OF_2_21, MIRRORED.replace("Mirrored", "MultiWorkerMirrored"), "multiworker-keras-3", ("train.py", 7)),
    ],
)
def test_a_fault_between_a_job_and_its_program_is_found(
    job: str, training: str, rule: str, place: tuple[str, int]
) -> None:
    assert in_job(job, training)[rule] == place


@pytest.mark.parametrize(
    ("job", "training"),
    [
        (SLURM, HOROVOD),
        (ONE, PLAIN),
        (ONE.replace("gpus-per-task=1", "gpus=4"), MIRRORED),
        (SLURM, PLAIN + "part = os.environ['SLURM_PROCID']\n"),
        (SLURM, "from mine import train\n" + PLAIN),
        (ONE.replace("2.11.0", "2.21.0"), PLAIN + "model.save('out.keras')\nmodel.save(path)\n"),
        (ONE.replace("2.11.0", "2.15.1"), PLAIN + "model.save('out')\n"),
        (
            OF_2_21,
            PLAIN + "d = tf.keras.datasets.mnist.load_data('mnist.npz')\ntf.keras.Sequential.save(model, 'm.keras')\n",
        ),
        (ONE.replace("gpus-per-task=1", "gpus=4").replace("set -e", "set -e\nexport CUDA_VISIBLE_DEVICES=0"), PLAIN),
    ],
)
def test_a_job_that_fits_its_program_is_not_reported(job: str, training: str) -> None:
    assert in_job(job, training) == {}


def test_what_public_scripts_do_rightly_is_not_reported() -> None:
    ranks = ONE.replace("gpus-per-task=1", "gpus-per-node=4").replace("srun --cpus-per-task=6", "mpirun -n 8")
    assert "horovod-tasks" not in in_job(ranks, HOROVOD)
    for image, wrong in (("tensorflow_25.02-tf2-py3.sif", False), ("tensorflow_2.15.0.sif", True)):
        start = f"apptainer exec --nv {image} python train.py"
        assert ("image-gpu" in in_job(SLURM.replace("python train.py", start), HOROVOD)) is wrong


def test_horovod_without_its_module_is_found_at_saga() -> None:
    assert in_job(SLURM, HOROVOD, site="sigma2-saga")["horovod-module"] == ("job.sh", 12)
    loaded = "module load Horovod/0.28.1-foss-2022a-CUDA-11.7.0-TensorFlow-2.11.0\nmodule list\n"
    assert in_job(replace_once(SLURM, "module list\n", loaded), HOROVOD, site="sigma2-saga") == {}


@pytest.mark.parametrize(
    "line",
    [
        "tf.keras.datasets.mnist.load_data()",
        "tf.keras.datasets.mnist.load_data('mnist-%d.npz' % rank)",
        "tf.keras.applications.ResNet50(weights='imagenet', include_top=False)",
        "tf.keras.applications.ResNet50()",
        "tfds.load(name='cassava', with_info=True)",
        "tf.keras.utils.get_file('x', 'https://example.org/x')",
        "urllib.request.urlretrieve(ADDRESS + 'x', 'x')",
        "hub.load('https://tfhub.dev/x')",
    ],
)
def test_a_download_on_nodes_without_internet_is_found(line: str) -> None:
    text = f"import tensorflow as tf\nADDRESS = 'https://example.org/'\ndata = {line}\n"
    training = read_training(text, "train.py")
    assert [(f.rule, f.line) for f in lint_program(training, profile("alcf-theta"))] == [("downloads", 3)]
    assert lint_program(training, profile("nersc-perlmutter")) == lint_program(training, None) == ()


@pytest.mark.parametrize(
    "line",
    [
        "tf.keras.datasets.mnist.load_data('/scratch/mnist.npz')",
        "tf.keras.datasets.mnist.load_data(path)",
        "tf.keras.applications.ResNet50(weights=None)",
        "tfds.load('mnist', data_dir=folder)",
        "mine.load_data()",
        "tf.keras.utils.get_file('x', 'file:///x')",
    ],
)
def test_data_from_a_file_is_no_download(line: str) -> None:
    assert lint_program(read_training(f"data = {line}\n", "train.py"), profile("alcf-theta")) == ()


# A training script alone


ALL_RANKS_SAVE = ("all-ranks-save", 8)


@pytest.mark.parametrize(
    ("text", "old", "new", "found"),
    [
        (HOROVOD, "import horovod.tensorflow.keras as hvd\nhvd.init()\n", "", ("horovod-not-imported", 2)),
        (HOROVOD, ".shard(hvd.size(), hvd.rank())", "", ("input-not-split", 4)),
        (HOROVOD, "hvd.DistributedOptimizer", "", ("not-distributed", 2)),
        (HOROVOD, "hvd.init()\n", "", ("horovod-not-initialised", 2)),
        (HOROVOD, "hvd.callbacks.BroadcastGlobalVariablesCallback(0)", "", ("no-broadcast", 2)),
        (HOROVOD, "hvd.size()", "int(os.environ['SLURM_NTASKS'])", ("slurm-number-in-horovod", 4)),
        (HOROVOD, "model.fit(", "model.save('m.keras')\nmodel.fit(", ("all-ranks-save", 7)),
        (HOROVOD, "model.fit(", "w = tf.summary.create_file_writer('x')\nuse(w)\nmodel.fit(", ("all-ranks-write", 7)),
        (HOROVOD, "model.fit(", "w = tf.summary.FileWriter('logs')\nmodel.fit(", ("all-ranks-write", 7)),
        (HOROVOD, "model.fit(", "if hvd.rank == 0 or hvd.rank():\n    pass\nmodel.fit(", ("never-called", 7)),
        (HOROVOD, "model.fit(", "log = open('/tmp/train_logs', 'w')\nmodel.fit(", ("node-local-output", 7)),
        (SESSION, 'folder = "ckpt" if hvd.rank() == 0 else None', 'folder = "ckpt"', ALL_RANKS_SAVE),
        (SESSION, "checkpoint_dir=folder", 'checkpoint_dir="ckpt"', ALL_RANKS_SAVE),
        (SESSION, ", hooks=hooks", "", ("hooks-unread", 8)),
        (SESSION, "tf.train.MonitoredTrainingSession(checkpoint_dir=folder, ", "tf.session(", ("no-such-name", 8)),
        (MIRRORED, "with strategy.scope():\n", "if True:\n", ("outside-scope", 5)),
        (MIRRORED, "64 * strategy.num_replicas_in_sync", "64", ("batch-of-all", 3)),
        (MIRRORED, "model.fit(data)", "server = tf.train.Server(cluster)", ("parameter-server", 7)),
    ],
)
def test_a_fault_of_a_program_is_found(text: str, old: str, new: str, found: tuple[str, int]) -> None:
    assert lint_program(read_training(text, "train.py"), None) == ()
    findings = lint_program(read_training(replace_once(text, old, new), "train.py"), None)
    assert found in [(finding.rule, finding.line) for finding in findings]


@pytest.mark.parametrize(
    "writer",
    [
        "if hvd.rank() == 0:\n    model.save('m.keras')\n",
        "first = hvd.rank() == 0\nif first and True:\n    model.save('m.keras')\n",
        "def save():\n    model.save('m.keras')\nif hvd.rank() == 0:\n    save()\n",
        "def main():\n    if hvd.rank() != 0:\n        return\n    model.save('m.keras')\nmain()\n",
        "model.save(f'm-{hvd.rank()}.keras')\n",
        "c = tf.keras.callbacks.ModelCheckpoint('x')\nuse([c] if hvd.rank() == 0 else [])\n",
        "calls += [tf.keras.callbacks.TensorBoard('x')] if hvd.rank() == 0 else []\n",
        "class Mine:\n    def end(self):\n        model.save('m.keras')\n",
        "figure.save('x.png')\n",
    ],
)
def test_files_that_one_rank_writes_are_not_reported(writer: str) -> None:
    assert lint_program(read_training(HOROVOD + writer, "train.py"), None) == ()


@pytest.mark.parametrize(
    "writer",
    [
        "def save():\n    model.save('m.keras')\nsave()\n",
        "if hvd.size() > 1:\n    model.save('m.keras')\n",
        "c = tf.keras.callbacks.ModelCheckpoint('x')\nuse([c])\n",
        "model.save_weights('m.weights.h5')\n",
    ],
)
def test_files_that_every_rank_writes_are_reported(writer: str) -> None:
    assert [finding.rule for finding in lint_program(read_training(HOROVOD + writer, "train.py"), None)] == [
        "all-ranks-save"
    ]


@pytest.mark.parametrize(
    "split",
    [
        "files = files[hvd.rank()::hvd.size()]\n",
        "mine = data[int(hvd.rank()) * 9 :]\n",
        "seed = hvd.rank()\n",
        "steps = 500 // hvd.size()\n",
        "data = read(hvd)\n",
    ],
)
def test_a_use_of_the_rank_that_may_split_the_data_is_believed(split: str) -> None:
    text = replace_once(HOROVOD, ".shard(hvd.size(), hvd.rank())", "")
    assert (
        lint_program(read_training(replace_once(text, "hvd.init()\n", f"hvd.init()\n{split}"), "train.py"), None) == ()
    )
    for other in ("lr = 0.1 * hvd.size()\n", "print(hvd.rank())\n", "if hvd.rank() == 0:\n    print(1)\n"):
        found = lint_program(
            read_training(replace_once(text, "hvd.init()\n", f"hvd.init()\n{other}"), "train.py"), None
        )
        assert [finding.rule for finding in found] == ["input-not-split"]


def test_a_part_of_a_program_is_not_judged_as_a_whole() -> None:
    text = "from mine import optimizer\nimport horovod.tensorflow.keras as hvd\nhvd.init()\nmodel.fit(data)\n"
    assert lint_program(read_training(text, "train.py"), None) == ()
    whole = replace_once(text, "from mine import optimizer\n", "")
    assert {finding.rule for finding in lint_program(read_training(whole, "train.py"), None)} == {
        "not-distributed",
        "no-broadcast",
    }


# What must not be reported: each text is like one of Horovod's, TensorFlow's or a site's own examples


def rules(program: str, job: str = "", site: str | None = None) -> set[str]:
    """The rules that find something in a program, and in the job that starts it at a site."""
    found = {finding.rule for finding in lint_program(read_training(program, "train.py"), None)} if program else set()
    return found | set(in_job(job, program or None, site=site)) if site else found


@pytest.mark.parametrize(
    "line",
    [
        'parser.add_argument("--data-dir", default="/tmp/data")',
        'flags.DEFINE_string("cache", "/tmp/x", "where images are kept")',
        'data = data.cache("/tmp/images")',
        'model = tf.saved_model.load("/tmp/x")',
        'rows = open("/tmp/x.csv").read()',
        'if path == "/tmp/x": pass',
        'found = os.path.exists("/tmp/x")',
        'tf.__file__ = "/tmp/tf/__init__.py"',
        'filename = "/tmp/input_batch.json"',
    ],
)
def test_a_path_below_tmp_that_is_read_is_no_output(line: str) -> None:
    program = f"import os\nimport tensorflow as tf\n{line}\n"
    assert "node-local-output" not in rules(program)


@pytest.mark.parametrize(
    "line",
    [
        'parser.add_argument("--output-dir", default="/tmp/data")',
        'open("/tmp/x.csv", "w").write(rows)',
        'model.save("/tmp/cache.keras")',
        'callback = tf.keras.callbacks.BackupAndRestore(backup_dir="/tmp/x")',
        'working_dir = "/tmp/mine"',
    ],
)
def test_output_below_tmp_is_found(line: str) -> None:
    assert "node-local-output" in rules(f"import tensorflow as tf\n{line}\n")
    assert rules(f"import unittest\nimport tensorflow as tf\n{line}\n") == set()


def test_softmax_in_one_class_and_a_loss_in_another_one_are_two_models() -> None:
    text = """\
class One:
    def build(self):
        return Dense(10, activation="softmax")
class Two:
    def loss(self, y, x):
        return crossentropy(y, x, from_logits=True)
"""
    assert rules(text) == set()
    assert rules(replace_once(text, "class Two:\n", "")) == {"softmax-twice"}


SYNTHETIC = """\
import tensorflow as tf
import horovod.tensorflow.keras as hvd
hvd.init()
images = tf.random.uniform([32, 224, 224, 3])
labels = tf.random.uniform([32, 1], maxval=999, dtype=tf.int64)
data = tf.data.Dataset.from_tensor_slices((images, labels)).repeat().batch(32)
model = tf.keras.Sequential()
model.compile(hvd.DistributedOptimizer(tf.keras.optimizers.SGD(0.01 * hvd.size())), "mse")
model.fit(data, callbacks=[hvd.callbacks.BroadcastGlobalVariablesCallback(0)])
"""


def test_random_numbers_of_a_benchmark_need_not_be_split() -> None:
    assert rules(SYNTHETIC) == set()
    assert rules(SYNTHETIC.replace("tf.random.uniform(", "read(")) == {"input-not-split"}


NOTEBOOK = """\
import tensorflow as tf
model = tf.keras.Sequential()
model.fit(images, labels, batch_size=32)
data = data.batch(32)
model.fit(data)
strategy = tf.distribute.MirroredStrategy()
with strategy.scope():
    second = tf.keras.Sequential()
second.fit(big)
"""


def test_what_is_trained_before_the_strategy_is_made_is_not_its_input() -> None:
    assert rules(NOTEBOOK) == set()
    assert rules(f"{NOTEBOOK}second.fit(images, labels, batch_size=32)\n") == {"arrays-in-strategy", "batch-of-all"}


OTHER_NODES = """\
#!/bin/bash
#SBATCH -C gpu
#SBATCH -q debug
#SBATCH -A m1
#SBATCH -L SCRATCH
#SBATCH -t 00:30:00
#SBATCH --nodes=1 --ntasks-per-node=8 --gpus-per-task=1 --cpus-per-task=10
set -e
module load tensorflow/intel-1.15.0-py37
module list
srun -c 10 ./program
"""


def test_nodes_that_the_profile_does_not_describe_have_no_known_size() -> None:
    assert rules("", OTHER_NODES, "nersc-cori") == {"unknown-constraint"}
    assert {"gpus", "threads"} <= rules("", OTHER_NODES.replace("-C gpu", "-C haswell"), "nersc-cori")


def test_a_partition_of_large_memory_that_the_profile_does_not_list_is_only_unknown() -> None:
    text = """\
#!/bin/bash
#SBATCH --account=nn1234k --partition=largemem --time=01:00:00 --ntasks=1 --cpus-per-task=2 --mem-per-cpu=1000G
set -e
module reset
module load R/4.2.1-foss-2022a
module list
srun --cpus-per-task=2 Rscript x.R
"""
    assert rules("", text, "sigma2-saga") == {"unknown-queue"}
    assert on_other_nodes(read_script(text, "job.sh"), profile("sigma2-saga"))
    assert "memory" in rules("", text.replace("largemem", "normal"), "sigma2-saga")


def test_a_command_beside_another_one_in_one_shell_ends_with_it() -> None:
    text = "#!/bin/bash\n#SBATCH --nodes=1\nset -e\nsrun bash -c 'nvidia-smi --loop=1 & exec ./program'\n"
    assert "no-wait" not in rules("", text, "nersc-perlmutter")
    assert "no-wait" in rules("", text.replace("exec ./program'", "./program &'"), "nersc-perlmutter")


# Containers that hide the launcher's variables: refused in profiles, found in the jobs of users


CONTAINED = """\
#!/bin/bash
#SBATCH --ntasks=4
#SBATCH --time=00:30:00
set -e
module reset
module list
srun apptainer exec tf.sif python train.py
"""
HIDE = ["--cleanenv", "-e", "--containall", "-C", "--compat", "--cleanenv=true", "-ce", "-eC", "-ueB/data", "-pC"]
SHOW = ["--contain", "-c", "--no-home", "--nv", "--cleanenv=false", "-B/exec", "-cBe", "--env=A=e", "-H/Ce"]
VARIABLES = [
    f"{program}_{name}" for program in ("APPTAINER", "SINGULARITY") for name in ("CLEANENV", "CONTAINALL", "COMPAT")
]


def is_found(text: str) -> bool:
    return "container-env" in in_job(text)


@pytest.mark.parametrize("command", ["apptainer", "singularity"])
def test_a_profile_that_hides_the_environment_is_refused(command: str) -> None:
    """By an option of its containers, or by a variable."""
    for option in HIDE + SHOW:
        container = {"command": command, "image": "/x.sif", "options": ["--nv", option]}
        faults = find_faults({"container": container}, "x.toml", {}).lines
        assert any(fault.startswith("container.options[1]: ") for fault in faults) is (option in HIDE), option
    for table, name in itertools.product(("environ", "build_environ"), VARIABLES):
        for value, refused in (("1", True), ("true", True), (1, True), ("0", False), ("no", False)):
            faults = find_faults({"archs": {"x": {table: {name: value}}}}, "x.toml", {}).lines
            assert any(fault.startswith(f"archs.x.{table}.{name}: hides") for fault in faults) is refused, value


@pytest.mark.parametrize("option", HIDE)
def test_ranks_in_containers_that_hide_the_environment_are_found(option: str) -> None:
    for start in (
        f"srun apptainer exec {option} tf.sif python",
        "srun env -i apptainer exec tf.sif python",
        f"srun /usr/bin/singularity --quiet run --nv --bind /data {option} tf.sif",
        f"mpirun -np 4 singularity exec {option} tf.sif python",
        f'srun bash -c "apptainer exec {option} tf.sif python"',
        f"options='--nv {option}'\nsrun apptainer exec $options tf.sif python",
        f'options=(--nv {option})\nsrun apptainer exec "${{options[@]}}" tf.sif python',
    ):
        assert is_found(replace_once(CONTAINED, "srun apptainer exec tf.sif python", start)), start


@pytest.mark.parametrize("name", VARIABLES)
def test_ranks_in_containers_under_such_a_variable_are_found(name: str) -> None:
    assert is_found(replace_once(CONTAINED, "set -e\n", f"set -e\nexport {name}=1\n"))
    assert is_found(replace_once(CONTAINED, "srun", f"{name}=true srun"))
    assert is_found(replace_once(CONTAINED, "srun", f"srun --export=ALL,{name}=1"))
    assert not is_found(replace_once(CONTAINED, "set -e\n", f"set -e\nexport {name}=0\n"))
    assert not is_found(replace_once(CONTAINED, "set -e\n", f"set -e\n# {name}=1\n"))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        *[("exec", f"exec {option}") for option in SHOW],
        ("srun apptainer exec", "apptainer exec -e"),
        ("srun apptainer exec", "srun -n 1 apptainer exec --cleanenv"),
        ("exec tf.sif", "exec --cleanenv --env-file ranks.env tf.sif"),
        ("srun apptainer exec", "export APPTAINERENV_PMI_RANK=$PMI_RANK\nsrun apptainer exec -e"),
        ("python train.py", "bash -e train.sh"),
        ("exec tf.sif python train.py", "exec --pwd / -B /data:/data /images/sandbox sh -lc 'set -e; python train.py'"),
        ("exec tf.sif", "exec --bind -e tf.sif"),
        ("srun apptainer exec tf.sif", "apptainer exec -e tf.sif mpirun -np 4"),
        ("srun apptainer exec tf.sif python", "srun python -e --cleanenv"),
    ],
)
def test_containers_that_show_the_launchers_variables_are_not_reported(old: str, new: str) -> None:
    assert not is_found(replace_once(CONTAINED, old, new))
