"""The ranks of MPI, by the library that was compiled with the site's wrapper. Numbers come and go as lists."""

import atexit
import ctypes
import json
import os

# Global, as Horovod loads it: parts of MPI look for its symbols.
_library = ctypes.CDLL(os.path.join(os.path.dirname(__file__), "mpi_lib.so"), mode=ctypes.RTLD_GLOBAL)
_LONGEST = 256


def _must(code):
    if code:
        raise RuntimeError("MPI answers {}".format(code))


def init():
    """Join the other ranks."""
    _must(_library.tiny_init())
    atexit.register(_library.tiny_finalize)


rank, size = _library.tiny_rank, _library.tiny_size
local_rank, local_size = _library.tiny_local_rank, _library.tiny_local_size


def allreduce(values):
    """The sums over all ranks of these numbers."""
    numbers = ctypes.c_double * len(values)
    sums = numbers()
    _must(_library.tiny_allreduce(numbers(*values), sums, len(values)))
    return list(sums)


def broadcast(values, root_rank=0):
    """The numbers of one rank."""
    numbers = (ctypes.c_double * len(values))(*values)
    _must(_library.tiny_broadcast(numbers, len(values), root_rank))
    return list(numbers)


def allgather_object(value):
    """A small value of each rank."""
    text = json.dumps(value).encode().ljust(_LONGEST)
    everything = ctypes.create_string_buffer(_LONGEST * size())
    _must(_library.tiny_allgather(text, _LONGEST, everything))
    return [json.loads(everything.raw[at : at + _LONGEST]) for at in range(0, _LONGEST * size(), _LONGEST)]


def mpi_built():
    """Whether MPI is built in."""
    return bool(_library.tiny_mpi_built())


def gloo_built():
    """Whether Gloo is built in: it never is."""
    return False
