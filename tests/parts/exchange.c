/* Two ranks of a node exchange 1 MiB through MPI, and read each other's memory as single-copy transports do.
 *
 * Rank 0 prints whether every byte arrived, what process_vm_readv says (CMA: Open MPI and UCX use it), and the seconds of the
 * fastest of some rounds. Ranks in namespaces of their own would not be allowed to read each other.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <mpi.h>
#include <stdio.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

enum { SIZE = 1 << 20, ROUNDS = 200 };
static unsigned char mine[SIZE], theirs[SIZE];

int main(int count, char **words) {
  int rank, size, wrong = 0, all_wrong = 0;
  MPI_Init(&count, &words);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (size != 2) MPI_Abort(MPI_COMM_WORLD, 1);
  for (int at = 0; at < SIZE; at++) mine[at] = (unsigned char)(at * 7 + rank);
  double best = 1e9;
  for (int round = 0; round < ROUNDS; round++) {
    double began = MPI_Wtime();
    MPI_Sendrecv(mine, SIZE, MPI_BYTE, 1 - rank, 0, theirs, SIZE, MPI_BYTE, 1 - rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    double spent = MPI_Wtime() - began;
    if (spent < best) best = spent;
  }
  for (int at = 0; at < SIZE; at++) wrong += theirs[at] != (unsigned char)(at * 7 + 1 - rank);
  long here[2] = {getpid(), (long)mine}, there[2];
  MPI_Sendrecv(here, 2, MPI_LONG, 1 - rank, 1, there, 2, MPI_LONG, 1 - rank, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  memset(theirs, 0, SIZE);
  struct iovec local = {theirs, SIZE}, remote = {(void *)there[1], SIZE};
  int allowed = process_vm_readv((pid_t)there[0], &local, 1, &remote, 1, 0) == SIZE;
  const char *cma = allowed ? "works" : strerror(errno);
  for (int at = 0; at < SIZE && allowed; at++) wrong += theirs[at] != (unsigned char)(at * 7 + 1 - rank);
  MPI_Reduce(&wrong, &all_wrong, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
  if (rank == 0) printf("wrong %d, cma %s, seconds %.6f\n", all_wrong, cma, best);
  MPI_Finalize();
  return 0;
}
