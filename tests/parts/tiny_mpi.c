/* An MPI of one process, for sites whose tests start no ranks: a stand-in with the names and meanings of MPI 3.1. */
#include "tiny_mpi.h"
#include <string.h>

static int begun = 0;
static int width(MPI_Datatype type) { return type == MPI_DOUBLE ? 8 : 1; }

int MPI_Initialized(int* flag) { *flag = begun; return MPI_SUCCESS; }
int MPI_Init(int* argc, char*** argv) { begun = 1; return MPI_SUCCESS; }
int MPI_Finalize(void) { return MPI_SUCCESS; }
int MPI_Comm_rank(MPI_Comm of, int* rank) { *rank = 0; return MPI_SUCCESS; }
int MPI_Comm_size(MPI_Comm of, int* size) { *size = 1; return MPI_SUCCESS; }
int MPI_Comm_split_type(MPI_Comm of, int type, int key, MPI_Info info, MPI_Comm* made) {
  *made = MPI_COMM_WORLD;
  return MPI_SUCCESS;
}
int MPI_Allreduce(const void* mine, void* sum, int count, MPI_Datatype type, MPI_Op op, MPI_Comm of) {
  memcpy(sum, mine, (size_t)count * width(type));
  return MPI_SUCCESS;
}
int MPI_Bcast(void* values, int count, MPI_Datatype type, int root, MPI_Comm of) { return MPI_SUCCESS; }
int MPI_Allgather(const void* mine, int length, MPI_Datatype type, void* all, int each, MPI_Datatype other, MPI_Comm of) {
  memcpy(all, mine, (size_t)length * width(type));
  return MPI_SUCCESS;
}
