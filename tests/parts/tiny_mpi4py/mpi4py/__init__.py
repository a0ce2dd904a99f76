"""The small "mpi4py": it starts MPI if nobody has, and asks it by the module that the site's wrapper for C compiled."""

import ctypes
import importlib.util
import types

__version__ = "@VERSION@"
_library = ctypes.CDLL(importlib.util.find_spec("mpi4py.MPI").origin, mode=ctypes.RTLD_GLOBAL)
if _library.tiny_begin():
    raise RuntimeError("MPI does not begin")


def allreduce(values):
    """The sums over all ranks of these numbers."""
    numbers = ctypes.c_double * len(values)
    sums = numbers()
    if _library.tiny_sum(numbers(*values), sums, len(values)):
        raise RuntimeError("MPI does not sum")
    return list(sums)


MPI = types.SimpleNamespace(rank=_library.tiny_rank, size=_library.tiny_size, allreduce=allreduce)
