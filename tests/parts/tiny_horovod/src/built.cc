// How this library was built.
#include <mpi.h>

extern "C" int tiny_mpi_built() { return MPI_VERSION; }
