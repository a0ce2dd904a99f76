"""A Horovod of a hundred lines over a real MPI: what users call first, and nothing for tensors."""

__version__ = "@VERSION@"
