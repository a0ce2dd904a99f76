/* The part of mpi.h that `tiny_horovod` needs, for `tiny_mpi.c`. */
#ifdef __cplusplus
extern "C" {
#endif
typedef int MPI_Comm;
typedef int MPI_Datatype;
typedef int MPI_Op;
typedef int MPI_Info;
enum { MPI_SUCCESS, MPI_VERSION = 3, MPI_COMM_NULL = 0, MPI_COMM_WORLD, MPI_INFO_NULL = 0 };
enum { MPI_COMM_TYPE_SHARED = 1, MPI_CHAR = 1, MPI_DOUBLE, MPI_SUM = 1 };
int MPI_Initialized(int*);
int MPI_Init(int*, char***);
int MPI_Finalize(void);
int MPI_Comm_rank(MPI_Comm, int*);
int MPI_Comm_size(MPI_Comm, int*);
int MPI_Comm_split_type(MPI_Comm, int, int, MPI_Info, MPI_Comm*);
int MPI_Allreduce(const void*, void*, int, MPI_Datatype, MPI_Op, MPI_Comm);
int MPI_Bcast(void*, int, MPI_Datatype, int, MPI_Comm);
int MPI_Allgather(const void*, int, MPI_Datatype, void*, int, MPI_Datatype, MPI_Comm);
#ifdef __cplusplus
}
#endif
