"""The numerical proof that Horovod trains correctly with PyTorch, by named checks with figures, as `thorough.py` for TensorFlow.

`bench.py` says how a check compares, and is the course of the proof. The rules of `rank.py` hold here too.
"""

import sys

from bench import FEATURES, FP16_TOLERANCE, GRADIENT_TOLERANCE, TRAINING_TOLERANCE, VOCABULARY, Bench, main
from horovod_rank import init_horovod
from pytorch_rank import import_torch, take_device


class TorchBench(Bench):
    """The tools of the checks with PyTorch: a small network with an embedding, and its gradients."""

    def __init__(self, np, torch, hvd, seed, place):
        super().__init__(np, hvd, seed)
        self.torch, self.place = torch, place

    def tensor(self, array):
        """On the device of this rank."""
        return self.torch.from_numpy(self.np.array(array)).to(self.place)

    def model(self, same=True, sparse=False):
        """A network, with the same weights on all ranks or with different ones; its embedding has sparse gradients if wanted."""
        torch = self.torch
        draw = self.np.random.RandomState(self.seed + (0 if same else 1 + self.rank))

        class Network(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.words = torch.nn.Embedding(VOCABULARY, 4, sparse=sparse)
                self.inner, self.outer = torch.nn.Linear(FEATURES + 12, 8), torch.nn.Linear(8, 1)

            def forward(self, x, words):
                joined = torch.cat([x, self.words(words).flatten(1)], 1)
                return self.outer(torch.tanh(self.inner(joined)))

        model = Network()
        with torch.no_grad():
            for weights in model.parameters():
                weights.copy_(torch.from_numpy(0.3 * draw.normal(size=tuple(weights.shape))))
        return model.to(self.place)

    def backward(self, model, batch):
        """Add the gradient of the mean squared error to those of the weights."""
        x, words, y = map(self.tensor, batch)
        ((model(x, words.long()) - y) ** 2).mean().backward()

    def gradient(self, batch, model=None):
        """The gradient that one process computes for a batch without Horovod."""
        model = model or self.model()
        self.backward(model, batch)
        return [weights.grad for weights in model.parameters()]

    def flat(self, arrays):
        """Tensors or arrays, joined into one array of double precision; sparse tensors become dense."""
        return super().flat(
            [
                (array.to_dense() if array.is_sparse else array).detach().cpu().numpy()
                if isinstance(array, self.torch.Tensor)
                else array
                for array in arrays
            ]
        )

    def distributed(self, model, kind="SGD", options=None, **of_horovod):
        """An optimizer of Horovod, by default SGD of rate 1, which moves the weights by the gradient."""
        optimizer = getattr(self.torch.optim, kind)(model.parameters(), **(options or {"lr": 1.0}))
        return self.hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters(), **of_horovod)

    def step(self, what, expected, tolerance=GRADIENT_TOLERANCE, passes=1, sparse=False, **of_horovod):
        """Record how far a step of the optimizer with these options moves the weights, instead of by the `expected` gradient."""
        model = self.model(sparse=sparse)
        optimizer = self.distributed(model, **of_horovod)
        before = [weights.detach().clone() for weights in model.parameters()]
        for number in range(passes):
            self.backward(model, self.data(number))
        optimizer.step()
        moved = [old - new for old, new in zip(before, model.parameters())]
        self.compare(what, expected, moved, tolerance, self.gradient(self.data()))


def check_optimizer(bench):
    """DistributedOptimizer moves the weights by the gradient of the concatenated batch."""
    expected = bench.gradient(bench.everybody())
    bench.step("gradient", expected)
    bench.step("gradient, two groups", expected, groups=2)
    bench.step(
        "gradient, sum", [bench.size * part for part in expected], bench.size * GRADIENT_TOLERANCE, op=bench.hvd.Sum
    )


def check_sparse(bench):
    """Sparse gradients of an embedding are averaged, as sparse ones and as dense ones."""
    expected = bench.gradient(bench.everybody())
    bench.step("gradient", expected, sparse=True)
    bench.step("gradient, sparse_as_dense", expected, sparse=True, sparse_as_dense=True)


def check_fp16(bench):
    """With fp16 compression, the averaged gradient is correct to the last of its 11 bits."""
    bench.step("gradient", bench.gradient(bench.everybody()), FP16_TOLERANCE, compression=bench.hvd.Compression.fp16)
    vector = bench.np.arange(1, 9, dtype="float16")
    total = bench.hvd.allreduce(bench.tensor(vector * (bench.rank + 1)), op=bench.hvd.Sum, name="fp16")
    bench.compare("sum", [vector * (bench.size * (bench.size + 1) // 2)], [total], 0.0)


def check_accumulation(bench):
    """backward_passes_per_step: the gradients of two batches are added, then averaged over the ranks once."""
    first, second = (bench.gradient(bench.everybody(number)) for number in range(2))
    bench.step("gradient", [a + b for a, b in zip(first, second)], passes=2, backward_passes_per_step=2)


def check_broadcast(bench):
    """Parameters, the state of an optimizer and objects of rank 0 arrive on all ranks."""
    model = bench.model(same=False)
    bench.hvd.broadcast_parameters(model.state_dict(), root_rank=0)
    bench.across("parameters", model.parameters())
    adam = bench.torch.optim.Adam(model.parameters(), lr=0.01 * (bench.rank + 1))
    bench.backward(model, bench.data())
    adam.step()
    bench.hvd.broadcast_optimizer_state(adam, root_rank=0)
    state = [value for values in adam.state_dict()["state"].values() for _, value in sorted(values.items())]
    bench.across("state of Adam", [value if hasattr(value, "numpy") else [value] for value in state])
    bench.compare("learning rate", [[0.01]], [[adam.param_groups[0]["lr"]]], 0.0)
    received = bench.hvd.broadcast_object({"rank": bench.rank, "text": "x" * (1 + bench.rank)}, root_rank=0)
    bench.holds("object", received == {"rank": 0, "text": "x"}, seen=str(received))


def check_training(bench):
    """Training on N ranks equals training by one process on the same global batches, and all ranks end with the same bits."""
    # For a tiny gradient, Adam's step depends on rounding unless eps is larger than the rounding.
    for kind, options in (("SGD", {"lr": 0.05, "momentum": 0.9}), ("Adam", {"lr": 0.01, "eps": 1e-3})):
        model, alone = bench.model(), bench.model()
        by_horovod = bench.distributed(model, kind, options)
        by_one = getattr(bench.torch.optim, kind)(alone.parameters(), **options)
        for number in range(20):
            for optimizer, network, batch in (
                (by_horovod, model, bench.data(number)),
                (by_one, alone, bench.everybody(number)),
            ):
                optimizer.zero_grad()
                bench.backward(network, batch)
                optimizer.step()
        bench.compare("weights after 20 steps, " + kind, alone.parameters(), model.parameters(), TRAINING_TOLERANCE)
        bench.across("weights of all ranks, " + kind, model.parameters())


def check_process_sets(bench):
    """All ranks except the last average among themselves, without the last."""
    with bench.process_set() as (members, some):
        bench.holds("the set has its ranks", some.size() == len(members) if bench.rank in members else True)


CHECKS = (
    ("optimizer", check_optimizer),
    ("sparse", check_sparse),
    ("fp16", check_fp16),
    ("accumulation", check_accumulation),
    ("broadcast", check_broadcast),
    ("training", check_training),
    ("process_sets", check_process_sets),
)


def make_bench(args, report):
    """Join the ranks of Horovod."""
    np, torch = import_torch(report)
    hvd = init_horovod(report, "torch")
    place = take_device(report, torch, args.gpu)
    return TorchBench(np, torch, hvd, args.seed, place)


if __name__ == "__main__":
    sys.exit(main(CHECKS, make_bench))
