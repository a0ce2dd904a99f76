// The beginning and the end of a process.
#include <mpi.h>

extern "C" int tiny_init() {
  int done = 0;
  MPI_Initialized(&done);
  return done ? MPI_SUCCESS : MPI_Init(nullptr, nullptr);
}

extern "C" int tiny_finalize() { return MPI_Finalize(); }
