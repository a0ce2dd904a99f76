"""The rules for PyTorch and mpi4py: each fault is found, and what is right, or may be, is not."""

from __future__ import annotations

import pytest

from parts.profiles import profile
from parts.texts import replace_once
from provision.lint.data_rules import downloads
from provision.lint.imports import parse
from provision.lint.job_script import read_script
from provision.lint.rules import lint_job, lint_program, read_training
from provision.lint.syntax import Syntax

JOB = """\
#!/bin/bash
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=4
#SBATCH --cpus-per-task=6
#SBATCH --gpus-per-node=4
#SBATCH --time=00:30:00
set -e
module reset
module load PyTorch/2.7.1
module list
export MASTER_ADDR=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
srun --cpus-per-task=6 python train.py
"""
TORCHRUN = replace_once(JOB, "--ntasks-per-node=4", "--ntasks-per-node=1").replace(
    "python train.py",
    "torchrun --nnodes=2 --nproc-per-node=4 --rdzv-backend=c10d --rdzv-endpoint=$MASTER_ADDR:29500 train.py",
)
DDP = """\
import os
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler

dist.init_process_group("nccl")
rank, local_rank = dist.get_rank(), int(os.environ["LOCAL_RANK"])
torch.cuda.set_device(local_rank)
model = DistributedDataParallel(torch.nn.Linear(4, 2).cuda(), device_ids=[local_rank])
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
sampler = DistributedSampler(data)
loader = DataLoader(data, batch_size=32, sampler=sampler)
for epoch in range(3):
    sampler.set_epoch(epoch)
    for images, labels in loader:
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(images.cuda()), labels.cuda()).backward()
        optimizer.step()
    if rank == 0:
        torch.save(model.state_dict(), "model.pt")
dist.destroy_process_group()
"""
ALONE = """\
import torch
model = torch.nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for images, labels in torch.load("data.pt"):
    torch.nn.functional.cross_entropy(model(images), labels).backward()
    optimizer.step()
"""
MPI = """\
import numpy as np
from mpi4py import MPI
comm = MPI.COMM_WORLD
rank = comm.Get_rank()
data = None
if rank == 0:
    data = np.load("data.npy")
data = comm.bcast(data, root=0)
"""
# A program in which nothing chooses a GPU.
FIRST_GPU = DDP.replace("torch.cuda.set_device(local_rank)\n", "").replace(", device_ids=[local_rank]", "")
FIRST_GPU = FIRST_GPU.replace(', local_rank = dist.get_rank(), int(os.environ["LOCAL_RANK"])', " = dist.get_rank()")


def found(job: str, program: str, *, site: str | None = None) -> dict[str, int]:
    """The rules that find something in a job and its training script, with the line of the first finding."""
    at = profile(site) if site else None
    script, training = read_script(job, "job.sh"), read_training(program, "train.py")
    findings = (*lint_job(script, training, None, None), *lint_program(training, at, script))
    assert all(finding.message and finding.fix for finding in findings)
    return {finding.rule: finding.line for finding in reversed(findings)}


def test_right_programs_of_pytorch_and_mpi_have_no_findings() -> None:
    assert found(JOB, DDP) == found(TORCHRUN, DDP) == {}
    assert found(JOB.replace("python train", "python -m mpi4py train"), MPI) == {}


@pytest.mark.parametrize(
    ("old", "new", "rule"),
    [
        ("    sampler.set_epoch(epoch)\n", "", "no-set-epoch"),
        ("sampler = DistributedSampler(data)", "sampler = DistributedSampler(data) if size > 1 else None", None),
        (", sampler=sampler", "", "input-not-split"),
        ("loader = DataLoader(", "loader = shared(sampler, DataLoader)(", None),
        ("    if rank == 0:\n        torch.save", "    torch.save", "all-ranks-save"),
        ("    if rank == 0:\n", "    if int(os.environ['SLURM_PROCID']) == 0:\n", None),
        ('"model.pt"', 'f"model-{rank}.pt"', None),
        (
            "optimizer = torch.optim",
            "from torch.utils.tensorboard import SummaryWriter\nw = SummaryWriter('a')\noptimizer = torch.optim",
            "all-ranks-write",
        ),
    ],
)
def test_a_fault_of_a_program_of_several_processes_is_found(old: str, new: str, rule: str | None) -> None:
    assert set(found(JOB, replace_once(DDP, old, new))) == ({rule} if rule else set())


@pytest.mark.parametrize(
    ("more", "rule"),
    [
        ("", "input-not-split"),
        ("data = torch.utils.data.Subset(data, range(rank, len(data), dist.get_world_size()))\n", None),
        ("mine = data[rank :: dist.get_world_size()]\n", None),
        ("import lightning\n", None),
        ("from my_data import data\n", None),
        ("print('size', dist.get_world_size())\n", "input-not-split"),
    ],
)
def test_data_that_nothing_splits_by_rank_is_found(more: str, rule: str | None) -> None:
    program = DDP.replace("sampler = DistributedSampler(data)\n", more).replace("    sampler.set_epoch(epoch)\n", "")
    program = program.replace(", sampler=sampler", "").replace(
        "from torch.utils.data.distributed import DistributedSampler\n", ""
    )
    assert set(found(JOB, program)) == ({rule} if rule else set())


@pytest.mark.parametrize(
    ("line", "accused"),
    [
        ("", True),
        ("import torch.distributed as dist\n", False),
        ("import lightning\n", False),
        ("from accelerate import Accelerator\n", False),
        ("import deepspeed\n", False),
        ("import ignite.distributed as idist\n", False),
        ("from transformers import TrainingArguments\nTrainingArguments()\n", False),
        ("import horovod.torch as hvd\n", False),
        ("from mpi4py import MPI\n", False),
        ("import ray\n", False),
        ("from fairseq import tasks\n", False),
        ("import os\nos.environ['RANK']\n", False),
        ("model = torch.nn.DataParallel(model)\n", True),
    ],
)
def test_ranks_of_pytorch_that_train_alone_are_found(line: str, accused: bool) -> None:
    program = ALONE.replace("import torch\n", f"import torch\n{line}" if "model" not in line else "import torch\n")
    program = program.replace("optimizer =", f"{line}optimizer =") if "model" in line else program
    assert ("ranks-alone" in found(JOB, program)) is accused


@pytest.mark.parametrize(
    ("old", "new", "rules"),
    [
        ("--ntasks-per-node=1", "--ntasks-per-node=4", {"torchrun-tasks"}),
        ("srun --cpus-per-task=6 ", "", {"torchrun-one-node"}),
        ("srun --cpus-per-task=6 ", "srun --cpus-per-task=6 --ntasks-per-node=4 ", {"torchrun-tasks"}),
        ("torchrun --nnodes", "python -m torch.distributed.run --nnodes", set()),
        ("srun --cpus-per-task=6 torchrun", "srun --cpus-per-task=6 -n 8 torchrun", {"torchrun-tasks", "ranks"}),
        ("srun --cpus-per-task=6 torchrun", "srun --cpus-per-task=6 -N 0 -n 8 torchrun", {"torchrun-tasks"}),
        ("--rdzv-endpoint=$MASTER_ADDR:29500", "--master_addr=$MASTER_ADDR", set()),
        ("$(scontrol", "localhost # $(scontrol", {"master-here"}),
    ],
)
def test_a_fault_in_the_way_torchrun_is_started_is_found(old: str, new: str, rules: set[str]) -> None:
    assert set(found(replace_once(TORCHRUN, old, new), DDP)) == rules


def test_torchrun_of_each_task_of_a_node_with_one_process_is_right() -> None:
    job = TORCHRUN.replace("--ntasks-per-node=1", "--ntasks-per-node=4").replace(
        "--nproc-per-node=4", "--nproc-per-node=1"
    )
    assert "torchrun-tasks" not in found(job, DDP)


@pytest.mark.parametrize(
    ("line", "accused"),
    [
        ("os.environ['MASTER_ADDR'] = 'localhost'\n", True),
        ("os.environ['MASTER_ADDR'] = '127.0.0.1'\n", True),
        ("os.environ.setdefault('MASTER_ADDR', 'localhost')\n", False),
        ("if 'MASTER_ADDR' not in os.environ:\n    os.environ['MASTER_ADDR'] = 'localhost'\n", False),
        ("os.environ['MASTER_ADDR'] = address\n", False),
    ],
)
def test_an_address_of_the_own_node_is_found_on_two_nodes(line: str, accused: bool) -> None:
    program = DDP.replace("dist.init_process_group", f"{line}dist.init_process_group", 1)
    assert ("master-here" in found(JOB, program)) is accused
    assert "master-here" not in found(JOB.replace("--nodes=2", "--nodes=1"), program)
    by_method = DDP.replace('("nccl")', '("nccl", init_method="tcp://localhost:29500")')
    assert ("master-here" in found(JOB, by_method)) is True


@pytest.mark.parametrize(
    ("job", "accused"),
    [
        (JOB, True),
        (TORCHRUN, True),
        (JOB.replace("--gpus-per-node=4", "--gpus-per-task=1"), False),
        (JOB.replace("--ntasks-per-node=4", "--ntasks-per-node=1").replace("per-node=4", "per-node=1"), False),
        (JOB.replace("python train", "./bind.sh python train"), False),
    ],
)
def test_processes_that_all_use_the_first_gpu_are_found(job: str, accused: bool) -> None:
    assert ("gpu-not-pinned" in found(job, FIRST_GPU)) is accused
    for other in (DDP, FIRST_GPU.replace(".cuda()", ".to(f'cuda:{rank % 4}')"), FIRST_GPU.replace(".cuda()", "")):
        assert "gpu-not-pinned" not in found(job, other)


def test_several_tasks_without_a_launcher_are_found() -> None:
    assert "no-launcher" in found(JOB.replace("srun --cpus-per-task=6 ", ""), DDP)
    spawned = DDP + "torch.multiprocessing.spawn(main, nprocs=4)\n"
    assert "no-launcher" not in found(JOB.replace("srun --cpus-per-task=6 ", ""), spawned)


@pytest.mark.parametrize(
    ("call", "what"),
    [
        ("torchvision.datasets.MNIST('data', download=True)", "the data set MNIST"),
        ("torchvision.datasets.MNIST('data', download=False)", None),
        ("torchvision.models.resnet50(pretrained=True)", "the weights of resnet50"),
        ("torchvision.models.resnet50(weights='DEFAULT')", "the weights of resnet50"),
        ("torchvision.models.resnet50(weights=None)", None),
        ("torchvision.models.resnet50()", None),
        ("torch.hub.load('pytorch/vision', 'resnet18')", "a model of PyTorch Hub"),
        ("torch.hub.load('folder', 'resnet18', source='local')", None),
        ("AutoModel.from_pretrained('bert-base-uncased')", "`bert-base-uncased` of Hugging Face"),
        ("AutoModel.from_pretrained('/scratch/bert')", None),
        ("AutoModel.from_pretrained('bert', local_files_only=True)", None),
    ],
)
def test_what_pytorch_downloads_is_known(call: str, what: str | None) -> None:
    text = f"import torch, torchvision\nfrom transformers import AutoModel\n{call}\n"
    assert [one.what for one in downloads(Syntax(parse(text)))] == ([what] if what else [])  # type: ignore[arg-type]
    assert ("downloads" in found(JOB, text, site="sigma2-saga")) is False, "the nodes of Saga reach the internet"


@pytest.mark.parametrize(
    ("old", "new", "accused"),
    [
        ("", "", True),
        ("np.load", "try_to_load", False),
        ('    data = np.load("data.npy")', '    raise SystemExit("no data")', True),
        (
            "comm = MPI.COMM_WORLD",
            "import sys\nsys.excepthook = lambda *why: MPI.COMM_WORLD.Abort(1)\ncomm = MPI.COMM_WORLD",
            False,
        ),
        ("data = comm.bcast(data, root=0)\n", "", False),
        ("if rank == 0:", "if True:", False),
    ],
)
def test_a_rank_that_may_leave_the_others_waiting_is_found(old: str, new: str, accused: bool) -> None:
    program = replace_once(MPI, old, new) if old else MPI
    assert ("rank-dies" in found(JOB, program)) is accused
    assert "rank-dies" not in found(JOB.replace("python train", "python -m mpi4py train"), program)
    assert "rank-dies" not in found(JOB.replace("srun", "srun -n 1"), program)


HVD = "import horovod.tensorflow as hvd\nhvd.init()\n"


@pytest.mark.parametrize(
    ("text", "accused"),
    [
        ("import mpi4py\nmpi4py.rc.initialize = False\nfrom mpi4py import MPI\n", True),
        ("import mpi4py\nmpi4py.rc.initialize = False\nfrom mpi4py import MPI\nMPI.Init()\n", False),
        (f"import mpi4py\nmpi4py.rc.initialize = False\nfrom mpi4py import MPI\n{HVD}", False),
        ("from mpi4py import MPI\nimport mpi4py\nmpi4py.rc.thread_level = 'multiple'\n", True),
        (f"import mpi4py\nmpi4py.rc.thread_level = 'serialized'\nfrom mpi4py import MPI\n{HVD}", True),
        (f"import mpi4py\nmpi4py.rc(threads=False)\nfrom mpi4py import MPI\n{HVD}", True),
        (f"import mpi4py\nmpi4py.rc.thread_level = 'multiple'\nfrom mpi4py import MPI\n{HVD}", False),
        ("import mpi4py\nmpi4py.rc.thread_level = 'serialized'\nfrom mpi4py import MPI\n", False),
        ("from mpi4py import rc\nrc.finalize = False\nfrom mpi4py import MPI\n", True),
        ("from mpi4py import rc\nrc.finalize = False\nfrom mpi4py import MPI\nMPI.Finalize()\n", False),
    ],
)
def test_settings_of_mpi_that_cannot_be_meant_are_found(text: str, accused: bool) -> None:
    assert ("mpi-settings" in found(JOB, text)) is accused


def test_a_gpu_that_is_chosen_after_mpi_has_started_is_found_where_mpi_uses_gpus() -> None:
    late = "import os\nfrom mpi4py import MPI\nos.environ['CUDA_VISIBLE_DEVICES'] = str(MPI.COMM_WORLD.rank)\n"
    early = "import os\nos.environ['CUDA_VISIBLE_DEVICES'] = os.environ['PMI_LOCAL_RANK']\nfrom mpi4py import MPI\n"
    assert found(JOB, late, site="alcf-polaris")["gpu-after-mpi"] == 3
    assert "gpu-after-mpi" not in {
        **found(JOB, early, site="alcf-polaris"),
        **found(JOB, late, site="nersc-perlmutter"),
    }


SRUN = "srun --cpus-per-task=6 python train.py"
STATIC = TORCHRUN.replace("--rdzv-backend=c10d --rdzv-endpoint=$MASTER_ADDR:29500", "--master-addr=$MASTER_ADDR")


@pytest.mark.parametrize(
    ("start", "accused"),
    [
        ("export RANK=$SLURM_PROCID LOCAL_RANK=$SLURM_LOCALID\nsrun -c 6 python train.py", True),
        ("RANK=$SLURM_PROCID srun -c 6 python ./train.py", True),
        ("export RANK=$SLURM_PROCID\nsrun -c 6 --cpu-bind none apptainer exec --bind /x x.sif python train.py", True),
        ("export RANK=$SLURM_PROCID\nsrun -c 6 bash -c 'RANK=$SLURM_PROCID python train.py'", False),
        ("export RANK=$SLURM_PROCID\nsrun -c 6 bash run.sh train.py", False),
        ("export RANK=${OMPI_COMM_WORLD_RANK}\nmpirun -np 8 python train.py", True),
        ("export RANK=$PMI_RANK\nmpiexec -n 8 python train.py", True),
        ('srun -c 6 bash -c "export RANK=$SLURM_PROCID; exec python train.py"', True),
        ("srun -c 6 python train.py --rank $SLURM_PROCID", True),
        ("srun -c 6 bash -c 'export RANK=$SLURM_PROCID; exec python train.py'", False),
        ('srun -c 6 bash -c "export RANK=\\$SLURM_PROCID; exec python train.py"', False),
        ("export RANK=$SLURM_PROCID\nsrun -c 6 ./wrapper python train.py", False),
        ("RUN='python train.py --rank $SLURM_PROCID'\nsrun -c 6 bash -c \"$RUN\"", False),
        ('RUN="python train.py --rank \\$SLURM_PROCID"\nsrun -c 6 bash -c "$RUN"', False),
        ('RUN="python train.py --rank $SLURM_PROCID"\nsrun -c 6 bash -c "$RUN"', True),
        ("srun -c 6 --output log-$SLURM_PROCID python train.py", False),
        ("srun -c 6 python train.py  # RANK=$SLURM_PROCID", False),
        ("srun -c 6 python train.py && echo $SLURM_PROCID", False),
        ("export RANK=$SLURM_PROCID\nsrun -n 1 -c 6 python train.py", False),
        ("export LOCAL_RANK=$SLURM_LOCALID\nsrun -c 6 --ntasks-per-node=1 python train.py", False),
    ],
)
def test_a_number_that_the_shell_of_the_job_gives_to_all_processes_is_found(start: str, accused: bool) -> None:
    job = replace_once(JOB, SRUN, start)
    assert ("number-of-shell" in found(job, DDP)) is accused
    if "export" in start.partition("srun")[0]:  # Lightning reads the variables of Slurm
        assert "number-of-shell" not in found(job, f"import lightning\n{DDP}")


@pytest.mark.parametrize(
    ("job", "old", "new", "rule"),
    [
        (TORCHRUN, "--nnodes=2", "--standalone", "torchrun-apart"),
        (TORCHRUN, "--nnodes=2 ", "", "torchrun-apart"),
        (TORCHRUN, "--nnodes=2", "--nnodes 1", "torchrun-apart"),
        (TORCHRUN, "--nnodes=2", "--nnodes=1:2", None),
        (TORCHRUN, "--nnodes=2", "${DISTRIBUTED_ARGS[@]}", None),
        (TORCHRUN, "--nnodes=2", "--nnodes=$SLURM_NNODES", None),
        (TORCHRUN, "--cpus-per-task=6 torchrun --nnodes=2", "-N 1 -c 6 torchrun --standalone", None),
        (STATIC, "--nnodes", "--node-rank $SLURM_NODEID --nnodes", "number-of-shell"),
        (STATIC, "--nnodes", "--node_rank=$SLURM_PROCID --nnodes", "number-of-shell"),
        (TORCHRUN, "--nnodes", "--node_rank=$SLURM_PROCID --nnodes", None),  # c10d gives the numbers itself
        (TORCHRUN, "--gpus-per-node=4", "--gpus-per-node=2", "processes-per-gpu"),
        (JOB, "srun", "export WORLD_SIZE=4\nsrun", "world-size"),
        (JOB, "srun", "export WORLD_SIZE=8\nsrun", None),
        (JOB, "srun --", "export WORLD_SIZE=4\nsrun -n 4 --", None),
        (JOB, "python train.py", "bash -c 'MASTER_ADDR=$(hostname) python train.py'", "master-here"),
        (JOB, "python train.py", 'bash -c "MASTER_ADDR=$(hostname) python train.py"', None),
        (JOB, "srun", "MASTER_ADDR=$(hostname) srun", None),
    ],
)
def test_nodes_that_do_not_meet_are_found(job: str, old: str, new: str, rule: str | None) -> None:
    assert set(found(job.replace(old, new), DDP)) == ({rule} if rule else set())


@pytest.mark.parametrize(
    "start",
    [
        "train() {\n  export RANK=$SLURM_PROCID\n  python train.py\n}\nexport -f train\nsrun -c 6 bash -c train",
        "srun -c 6 bash <<'EOF'\nexport RANK=$SLURM_PROCID\nexec python train.py\nEOF",
        'if [ -n "$SLURM_STEP_ID" ]; then\n  export RANK=$SLURM_PROCID\n  exec python train.py\nfi\nsrun -c 6 bash $0',
    ],
)
def test_a_program_that_a_launched_function_or_text_starts_has_a_launcher(start: str) -> None:
    assert found(replace_once(JOB, SRUN, start), DDP) == {}


def test_the_program_behind_torchrun_is_read() -> None:
    for start in ("torchrun --nproc-per-node=4 train.py", "accelerate launch train.py", "deepspeed train.py --x y"):
        main = read_script(JOB.replace(SRUN, start), "job.sh").main()
        assert main is not None and main.path == "train.py"
    assert read_script(JOB.replace(SRUN, "echo torchrun train.py"), "job.sh").main() is None


@pytest.mark.parametrize(
    ("old", "new", "rule"),
    [
        ("set_device(local_rank)", "set_device(dist.get_rank())", "rank-as-gpu"),
        ("set_device(local_rank)", "set_device(rank)", None),  # not known: of two values at once
        ("set_device(local_rank)", "set_device(int(os.environ['RANK']))", "rank-as-gpu"),
        ("set_device(local_rank)", "set_device(dist.get_rank() % 4)", None),
        ("torch.cuda.set_device(local_rank)\n", "print(f'{local_rank}')\n", "gpu-not-pinned"),
        ("torch.cuda.set_device(local_rank)\n", "device = torch.device(f'cuda:{local_rank}')\n", None),
        ("Linear(4, 2).cuda()", "Linear(4, 2).cuda(local_rank)", None),
        ('"nccl"', "'gloo'", "gloo-on-gpus"),
        ('"nccl"', "'gloo' if rehearsal else 'nccl'", None),
        ('dist.init_process_group("nccl")\n', "", "no-process-group"),
        ('dist.init_process_group("nccl")\n', "torch.distributed.init_device_mesh('cuda', (8,))\n", None),
        ('dist.init_process_group("nccl")\n', "from mine import setup\nsetup()\n", None),
        (", sampler=sampler", ", shuffle=True", "input-not-split"),
        ("        torch.save", "        dist.barrier()\n        torch.save", "collective-on-one"),
        ("    if rank == 0:\n", "    if rank == 0 and epoch:\n        dist.all_reduce(x)\n", "collective-on-one"),
        ("    if rank == 0:\n", "    dist.barrier()\n    if rank == 0:\n", None),
        (
            "    if rank == 0:\n",
            "    if rank != 0:\n        dist.barrier()\n    if rank == 0:\n        dist.barrier()\n",
            None,
        ),
        ("    if rank == 0:\n", "    if rank == 0:\n        dist.barrier(group=first)\n", None),
        (
            "DistributedDataParallel(torch.nn.Linear(4, 2).cuda(), device_ids=[local_rank])",
            "Net().cuda()",
            "ranks-alone",
        ),
    ],
)
def test_what_processes_of_pytorch_do_alone_is_found(old: str, new: str, rule: str | None) -> None:
    program = replace_once(DDP, old, new)
    if rule == "ranks-alone":
        # A name that is imported shares nothing, unless it is used under another one.
        shared = program.replace("import DistributedDataParallel", "import DistributedDataParallel as D").replace(
            "Net()", "D(Net())"
        )
        assert rule not in found(JOB, shared)
        shared = program.replace("        optimizer.step()", "        dist.all_reduce(x)\n        optimizer.step()")
        assert rule not in {**found(JOB, shared), **found(JOB, f"from mine import wrap\n{program}")}
    assert set(found(JOB, program)) == ({rule} if rule else set())


BOTH = "if rank == 0:\n    keep()\nelse:\n    keep()\n"


@pytest.mark.parametrize("called", ["if rank == 0:\n    keep()\n", "if rank == 0:\n    again()\n", "keep()\n", BOTH])
def test_a_collective_of_a_function_that_only_the_first_process_calls_is_found(called: str) -> None:
    functions = "def keep():\n    torch.save(1, f'{rank}')\n    dist.barrier()\ndef again():\n    keep()\n"
    last = "dist.destroy_process_group()\n"
    program = replace_once(DDP, last, f"{functions}{called}{last}")
    if "again" not in called:
        program = replace_once(program, "def again():\n    keep()\n", "")
    assert ("collective-on-one" in found(JOB, program)) is (called not in ("keep()\n", BOTH))
    assert "collective-on-one" not in found(JOB, program.replace(last, f"keep()\n{last}"))


def test_a_module_beside_the_program_may_choose_the_gpu() -> None:
    program = replace_once(DDP, "torch.cuda.set_device(local_rank)\n", "setup(local_rank)\n")
    beside = {"mine.py": "import torch\ndef setup(rank):\n    torch.cuda.set_device(rank)\n"}
    script = read_script(JOB, "job.sh")
    for modules, accused in ((None, True), (beside, False)):
        training = read_training(f"{'from mine import setup' if modules else ''}\n{program}", "train.py", modules)
        found_rules = {finding.rule for finding in lint_job(script, training, None, None)}
        assert ("gpu-not-pinned" in found_rules) is accused


def test_one_gpu_for_all_processes_is_found_where_it_is_named() -> None:
    program = DDP.replace("torch.cuda.set_device(local_rank)\n", "print(local_rank)\n")
    by_call = DDP.replace("set_device(local_rank)", "set_device(0)").replace("[local_rank]", "[0]")
    for at_zero in (by_call, program.replace("[local_rank]", "[0]"), FIRST_GPU.replace(".cuda()", ".to('cuda:0')")):
        assert "gpu-not-pinned" in found(JOB, at_zero)
        assert "gpu-not-pinned" in found(JOB.replace("srun", "source env.sh\nsrun"), at_zero)


def test_a_loader_that_shuffles_beside_a_split_for_tests_is_found() -> None:
    program = DDP.replace(
        "sampler = DistributedSampler(data)", "data, tests = torch.utils.data.random_split(full, [9, 1])"
    )
    program = program.replace("    sampler.set_epoch(epoch)\n", "").replace("sampler=sampler", "shuffle=True")
    program = program.replace("from torch.utils.data.distributed import DistributedSampler\n", "")
    assert set(found(JOB, program)) == {"input-not-split"}


def test_torchrun_without_words_behind_it_is_read() -> None:
    assert "torchrun-tasks" not in found(TORCHRUN.replace("train.py", "train.py\ntorchrun"), DDP)
