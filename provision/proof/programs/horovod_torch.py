"""The training run of several ranks of Horovod with PyTorch, on MNIST-shaped digits.

It is for stacks whose users train with `horovod.torch` (`proof.program = "horovod_torch"`). It does what such programs do on a
cluster: `DistributedOptimizer` around the optimizer, `broadcast_parameters` and `broadcast_optimizer_state` from rank 0, the
rate scaled by the number of ranks, the images of `DistributedSampler`. Half-way only rank 0 loads the file; the others get
weights and optimizer from it. `thorough_torch.py` proves the numbers.
"""

from horovod_rank import HorovodRanks, init_horovod
from pytorch_rank import TorchTrial, import_torch, take_device
from trial import main


class HorovodTorch(HorovodRanks, TorchTrial):
    """Ranks that average the gradients of an optimizer of torch."""

    def join(self):
        """Join the ranks of Horovod."""
        self.np, self.torch = import_torch(self.report)
        self.hvd = init_horovod(self.report, "torch")
        self.rank, self.size = self.hvd.rank(), self.hvd.size()
        self.place = take_device(self.report, self.torch, self.args.gpu)

    def evaluate(self, make):
        """The array of a tensor on any device."""
        return self.array(make())

    def optimizer(self, optimizer):
        """The optimizer that averages gradients; all ranks get the weights of rank 0."""
        self.hvd.broadcast_parameters(self.plain.state_dict(), root_rank=0)
        return self.hvd.DistributedOptimizer(optimizer, named_parameters=self.plain.named_parameters())

    def load_optimizer(self, state):
        """Load it on rank 0; the others get it from there."""
        if self.rank == 0:
            self.adam.load_state_dict(state)
        self.hvd.broadcast_optimizer_state(self.adam, root_rank=0)


if __name__ == "__main__":
    main(HorovodTorch, "Train a small network of PyTorch under Horovod; one JSON report per process.")
