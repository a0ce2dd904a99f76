"""DistributedDataParallel: one process for each GPU, or several on CPUs, on any number of nodes. For PyTorch 1.13 and newer.

    provision job ddp --site SITE --arch ARCH --script train.py

The job gives each process RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR and MASTER_PORT; so does torchrun on a machine without
a scheduler: `torchrun --nproc-per-node 2 train.py`. What several processes need is marked `differs:`.
"""

import argparse
import glob
import json
import os
import time

import numpy as np
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

try:
    from torch.utils.tensorboard import SummaryWriter
except ImportError:  # PyTorch does not install TensorBoard
    SummaryWriter = None

WARM_UP = 3  # epochs

parser = argparse.ArgumentParser()
parser.add_argument("--data-dir", default=os.environ.get("PROVISION_DATA", "data"), help="has mnist.npz or digits.npz")
parser.add_argument("--output-dir", default=os.environ.get("PROVISION_OUTPUT", "output"))
parser.add_argument("--resume-from", metavar="FOLDER", help="the checkpoints of an earlier job")
parser.add_argument("--epochs", type=int, default=6)
parser.add_argument("--batch-size", type=int, default=32, help="of each process")
parser.add_argument("--learning-rate", type=float, default=0.001, help="of one process")
args = parser.parse_args()

# differs: the processes find each other. NCCL is for GPUs, gloo for CPUs.
dist.init_process_group("nccl" if torch.cuda.is_available() else "gloo")
rank, size = dist.get_rank(), dist.get_world_size()
device = torch.device("cpu")
if torch.cuda.is_available():
    # differs: each process uses one GPU. Some schedulers show a task only its own GPU, others all GPUs of the node.
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"]) % torch.cuda.device_count())
    torch.cuda.set_device(device)
    print(f"rank {rank} of {size} uses {device}", flush=True)

files = [os.path.join(args.data_dir, name) for name in ("mnist.npz", "digits.npz")]
with np.load(next(filter(os.path.exists, files), files[0])) as archive:
    images, labels, test_images, test_labels = (
        torch.from_numpy(archive[name][:, None] / np.float32(255) if name[0] == "x" else archive[name].astype(np.int64))
        for name in ("x_train", "y_train", "x_test", "y_test")
    )

# differs: each process trains on its own part, and all make the same number of steps.
dataset = TensorDataset(images, labels)
sampler = DistributedSampler(dataset, shuffle=True, seed=1, drop_last=True)
loader = DataLoader(dataset, batch_size=args.batch_size, sampler=sampler, drop_last=True)

torch.manual_seed(1)
model = torch.nn.Sequential(
    torch.nn.Conv2d(1, 16, 5, stride=2),
    torch.nn.ReLU(),
    torch.nn.Flatten(),
    torch.nn.Linear(16 * 12 * 12, 64),
    torch.nn.ReLU(),
    torch.nn.Linear(64, 10),
).to(device)
# differs: a step sees as many images as all processes have, so the learning rate is that of one times their number.
rate = args.learning_rate * size
optimizer = torch.optim.Adam(model.parameters(), lr=rate)
loss_of = torch.nn.CrossEntropyLoss()

# A checkpoint has the weights, the optimizer's moments and the number of epochs. It gets its name when it is complete, so a
# job that is stopped while it writes has lost nothing. All processes read the same one.
checkpoints, first = os.path.join(args.output_dir, "checkpoints"), 0
os.makedirs(checkpoints, exist_ok=True)
found = sorted(glob.glob(os.path.join(checkpoints, "epoch-*.pt")))
if not found and args.resume_from:
    found = sorted(glob.glob(os.path.join(args.resume_from, "epoch-*.pt")))
if found:
    state = torch.load(found[-1], map_location=device)
    model.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    first = state["epochs_done"]
    if rank == 0:
        print(f"continues from {found[-1]}, after epoch {first}", flush=True)

# differs: it sends the weights of rank 0 to all, and averages the gradients of all in each step.
trained = DistributedDataParallel(model, device_ids=[device.index] if device.type == "cuda" else None)

writer = None
if rank == 0 and SummaryWriter is not None:  # differs: one process writes
    writer = SummaryWriter(os.path.join(args.output_dir, "tensorboard"))
seconds, began = [], time.time()
for epoch in range(first, args.epochs):
    began = time.time()
    sampler.set_epoch(epoch)  # differs: without it every epoch has the same order
    for group in optimizer.param_groups:
        # The scaled learning rate is too large for the first steps, so it grows over three epochs (arXiv 1706.02677).
        group["lr"] = rate * min(1.0, (1 + epoch) / WARM_UP)
    total = torch.zeros(1, device=device)
    for batch, answers in loader:
        optimizer.zero_grad()
        loss = loss_of(trained(batch.to(device)), answers.to(device))
        loss.backward()
        optimizer.step()
        total += loss.detach()
    dist.all_reduce(total)  # differs: the loss is an average over all processes
    mean = float(total) / (len(loader) * size)
    seconds.append(time.time() - began)
    if rank == 0:  # differs: one process prints and writes
        print(f"epoch {epoch + 1} of {args.epochs}: loss {mean:.4f}, {seconds[-1]:.1f} s", flush=True)
        path = os.path.join(checkpoints, f"epoch-{epoch + 1:04d}.pt")
        state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epochs_done": epoch + 1}
        torch.save(state, path + ".part")
        os.replace(path + ".part", path)
        if writer is not None:
            writer.add_scalar("loss", mean, epoch + 1)

if rank == 0:  # differs: one process measures and reports, with the images of all
    if writer is not None:
        writer.close()
    with torch.no_grad():
        accuracy = float((model(test_images.to(device)).argmax(1).cpu() == test_labels).float().mean())
    print(f"test accuracy {accuracy:.3f} after {max(first, args.epochs)} epochs", flush=True)
    if seconds[1:]:  # the first epoch includes the start-up
        images_of_all = len(loader) * args.batch_size * size
        figures = {"seconds": sum(seconds), "accuracy": accuracy}
        figures["images_per_second"] = images_of_all * len(seconds[1:]) / sum(seconds[1:])
        figures.update(batch=args.batch_size, pytorch=torch.__version__)
        ended = began + seconds[-1]
        clock = "%Y/%m/%d %H:%M:%S"  # as nvidia-smi writes times: GPUs count between these two
        figures["trained"] = [time.strftime(clock, time.localtime(one)) for one in (ended - sum(seconds), ended)]
        with open(os.path.join(args.output_dir, "report.json"), "w") as stream:  # for `provision scaling`
            json.dump(figures, stream)
dist.barrier()  # differs: nobody leaves while another still needs it
dist.destroy_process_group()
