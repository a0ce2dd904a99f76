"""Horovod with PyTorch: one process for each GPU, or several on CPUs, on any number of nodes. For PyTorch 1.13 and newer.

    provision job horovod --site SITE --arch ARCH --script train.py

It does what the example `ddp` does. What Horovod needs is marked `differs:`.
"""

import argparse
import glob
import json
import os
import time

import horovod.torch as hvd
import numpy as np
import torch
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
parser.add_argument("--batch-size", type=int, default=32, help="of each rank")
parser.add_argument("--learning-rate", type=float, default=0.001, help="of one rank")
args = parser.parse_args()

hvd.init()  # differs: before PyTorch uses a GPU
rank, size = hvd.rank(), hvd.size()
device = torch.device("cpu")
if torch.cuda.is_available():
    # differs: each rank uses one GPU. Some schedulers show a task only its own GPU, others all GPUs of the node.
    device = torch.device("cuda", hvd.local_rank() % torch.cuda.device_count())
    torch.cuda.set_device(device)
    print(f"rank {rank} of {size} uses {device}", flush=True)

files = [os.path.join(args.data_dir, name) for name in ("mnist.npz", "digits.npz")]
with np.load(next(filter(os.path.exists, files), files[0])) as archive:
    images, labels, test_images, test_labels = (
        torch.from_numpy(archive[name][:, None] / np.float32(255) if name[0] == "x" else archive[name].astype(np.int64))
        for name in ("x_train", "y_train", "x_test", "y_test")
    )

# differs: each rank trains on its own part, and all make the same number of steps.
dataset = TensorDataset(images, labels)
sampler = DistributedSampler(dataset, num_replicas=size, rank=rank, shuffle=True, seed=1, drop_last=True)
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
# differs: a step sees as many images as all ranks have, so the learning rate is that of one times their number.
rate = args.learning_rate * size
optimizer = torch.optim.Adam(model.parameters(), lr=rate)
loss_of = torch.nn.CrossEntropyLoss()

# A checkpoint has the weights, the optimizer's moments and the number of epochs. It gets its name when it is complete, so a
# job that is stopped while it writes has lost nothing. All ranks read the same one.
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

# differs: all ranks take the weights and moments of rank 0, and the optimizer averages the gradients of all ranks.
hvd.broadcast_parameters(model.state_dict(), root_rank=0)
hvd.broadcast_optimizer_state(optimizer, root_rank=0)
optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters())

writer = None
if rank == 0 and SummaryWriter is not None:  # differs: one rank writes
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
        loss = loss_of(model(batch.to(device)), answers.to(device))
        loss.backward()
        optimizer.step()
        total += loss.detach()
    mean = float(hvd.allreduce(total, name="loss")) / len(loader)  # differs: the average over all ranks
    seconds.append(time.time() - began)
    if rank == 0:  # differs: one rank prints and writes
        print(f"epoch {epoch + 1} of {args.epochs}: loss {mean:.4f}, {seconds[-1]:.1f} s", flush=True)
        path = os.path.join(checkpoints, f"epoch-{epoch + 1:04d}.pt")
        state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epochs_done": epoch + 1}
        torch.save(state, path + ".part")
        os.replace(path + ".part", path)
        if writer is not None:
            writer.add_scalar("loss", mean, epoch + 1)

if rank == 0:  # differs: one rank measures and reports, with the images of all
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
