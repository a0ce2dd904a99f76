// Sums over all ranks.
#include <mpi.h>

extern "C" int tiny_allreduce(const double* mine, double* sum, int count) {
  return MPI_Allreduce(mine, sum, count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}
