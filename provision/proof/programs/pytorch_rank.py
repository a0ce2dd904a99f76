"""What is PyTorch's own in the programs of a proof: imports, threads and GPUs, the sampler, a network and its training.

The rules of `rank.py` hold here too: it is imported by path, parses on Python 3.6, and imports torch late. Works with torch 1.13
and later.
"""

import os
import platform
import random

from rank import take_gpu, thread_counts
from trial import Trial, numbers_sha256, weights_sha256


def import_torch(report):
    """Import NumPy and torch, in a separate stage, because an illegal instruction fails here."""
    fields = report.fields
    fields["versions"] = {"python": platform.python_version()}

    report.stage("import torch")
    import numpy as np
    import torch

    # Debian's 1.13.1 calls itself 1.13.0a0; PyPI's versions may end in `+cpu` or `+cu128`.
    fields["versions"].update(numpy=np.__version__, torch=torch.__version__)
    if torch.version.cuda:
        fields["versions"]["cuda"] = torch.version.cuda
    return np, torch


def take_device(report, torch, gpu):
    """Take the threads and the device of this rank, which the function returns; with `gpu`, it must be a GPU."""
    report.stage("devices")
    inter, intra = thread_counts()
    if inter:
        torch.set_num_interop_threads(inter)
    if intra:
        torch.set_num_threads(intra)
    report.fields["threads"] = {"inter": torch.get_num_interop_threads(), "intra": torch.get_num_threads()}
    index = take_gpu(report.fields, torch.cuda.device_count(), gpu, bool(torch.version.cuda))
    if index is None:
        return torch.device("cpu")
    torch.cuda.set_device(index)
    report.fields["gpu"]["used"] = "GPU:{} ({})".format(index, torch.cuda.get_device_name(index))
    return torch.device("cuda", index)


class TorchTrial(Trial):
    """A network of about 56,000 weights, as that of Keras in `tensorflow_rank.py`, trained on the images of torch's own sampler.

    `join` sets `torch` and `place`, the device of this rank.
    """

    progress = staticmethod(lambda: None)
    """Called after each step."""

    def parallel(self, network):
        """The network as the strategy wraps it, or itself."""
        return network

    def optimizer(self, optimizer):
        """The optimizer as the strategy wraps it."""
        return optimizer

    def tensor(self, array):
        """An array on the device of this rank."""
        return self.torch.from_numpy(self.np.array(array)).to(self.place)

    def array(self, tensor):
        """A tensor as an array; the name of its device is kept for the report."""
        self.device = "GPU:{}".format(tensor.device.index) if tensor.is_cuda else "CPU"
        return tensor.detach().cpu().numpy()

    def share(self, count):
        """The images of the first epoch: `DistributedSampler` draws others for each epoch, if it knows the epoch."""
        from torch.utils.data.distributed import DistributedSampler

        if count < self.size:
            raise RuntimeError("{} training images cannot be shared among {} ranks".format(count, self.size))
        self.sampler = DistributedSampler(
            range(count), self.size, self.rank, shuffle=True, seed=self.args.seed, drop_last=True
        )
        mine = self.np.array(list(self.sampler))
        start = self.rank * len(mine)
        digest = numbers_sha256(self.np, self.np.sort(mine))
        return mine, {"start": start, "stop": start + len(mine), "sha256": digest, "orders": [], "shared": 0}

    def network(self, seed):
        """The network; all generators are seeded, so that its weights are those of this seed."""
        random.seed(seed)
        self.np.random.seed(seed % 2**32)
        self.torch.manual_seed(seed)
        nn = self.torch.nn
        layers = (
            *(nn.Conv2d(1, 16, 5, stride=2), nn.ReLU(), nn.Conv2d(16, 32, 3, stride=2), nn.ReLU(), nn.Flatten()),
            *(nn.Linear(32 * 5 * 5, 64), nn.ReLU(), nn.Linear(64, 10)),
        )
        return nn.Sequential(*layers).to(self.place)

    def build(self, seed):
        """The weights are those before the strategy wraps the network."""
        self.plain, self.step = self.network(seed), 0
        alone = self.weights()
        self.wrap()
        self.fields["weights_sha256_broadcast"] = weights_sha256(self.np, self.weights())
        return alone

    def wrap(self):
        """Let the strategy wrap the network and its optimizer."""
        self.model = self.parallel(self.plain)
        self.adam = self.optimizer(self.torch.optim.Adam(self.plain.parameters(), lr=self.learning_rate))

    def weights(self):
        """Copies of all weights."""
        return [tensor.detach().cpu().numpy().copy() for tensor in self.plain.state_dict().values()]

    def state(self):
        """The number of steps, and the weights."""
        return self.step, self.weights()

    def batch(self, images, numbers):
        """The images of these numbers as a tensor of 0..1."""
        return self.tensor(images[numbers]).float().div_(255.0)[:, None]

    def fit(self, first, last):
        """Train; the rate falls to zero, so that a short run ends steadily."""
        from torch.utils.data import BatchSampler

        began, (images, labels) = self.state(), self.whole
        labels = labels.astype("int64")
        for epoch in range(first, last):
            self.sampler.set_epoch(epoch)
            batches = list(BatchSampler(self.sampler, self.args.batch_size, drop_last=False))
            losses = hits = 0.0
            self.model.train()
            self.begin_epoch()
            for numbers in batches:
                loss, right = self.train_step(self.batch(images, numbers), self.tensor(labels[numbers]))
                losses += loss * len(numbers)
                hits += right
                self.progress()
            self.end_epoch(losses / self.images, hits / self.images)
            self.count_images(self.np.concatenate(batches))
        return began

    def train_step(self, images, labels):
        """One step; its mean loss and the number of images that were recognised."""
        for group in self.adam.param_groups:
            group["lr"] = self.learning_rate * (1.0 - self.step / float(self.args.epochs * self.steps))
        self.adam.zero_grad()
        guesses = self.model(images)
        loss = self.torch.nn.functional.cross_entropy(guesses, labels)
        loss.backward()
        self.adam.step()
        self.step += 1
        return loss.item(), (guesses.argmax(1) == labels).sum().item()

    def count_images(self, numbers):
        """Report the images of an epoch in their order, and how many of them another rank had too."""
        uses = self.np.zeros(len(self.whole[0]), self.np.float32)
        uses[numbers] = 1
        shard = self.fields["shard"]
        shard["orders"].append(numbers_sha256(self.np, numbers))
        if self.size > 1:
            shard["shared"] += int((self.allreduce([uses]) > 1).sum())

    def reload(self):
        """Rank 0 saves and loads; the others get the weights from rank 0 as at first."""
        path = os.path.join(self.checkpoints, "model.pt")
        if self.rank == 0:
            os.makedirs(self.checkpoints)
            state = {"model": self.plain.state_dict(), "optimizer": self.adam.state_dict(), "step": self.step}
            self.torch.save(state, path)
        self.mean([1.0])  # a barrier: no rank reads before rank 0 has written
        state = self.torch.load(path, map_location=self.place)
        self.plain = self.network(self.args.seed * 100003 + self.size + self.rank)
        if self.rank == 0:
            self.plain.load_state_dict(state["model"])
        self.step = state["step"]
        self.wrap()
        self.load_optimizer(state["optimizer"])

    def load_optimizer(self, state):
        """Continue with the state of the optimizer of rank 0, on all ranks."""
        self.adam.load_state_dict(state)

    def measure(self, images, labels):
        """In parts, without gradients, by the network without its strategy."""
        losses = hits = 0.0
        self.plain.eval()
        with self.torch.no_grad():
            for at in range(0, len(images), 1024):
                guesses = self.plain(self.tensor(images[at : at + 1024, None, :, :, 0]))
                wanted = self.tensor(labels[at : at + 1024].astype("int64"))
                losses += self.torch.nn.functional.cross_entropy(guesses, wanted, reduction="sum").item()
                hits += (guesses.argmax(1) == wanted).sum().item()
        return losses / len(images), hits / len(images)
