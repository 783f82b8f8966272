// Makes failures happen at a known point: preloaded into a program, it raises a signal in one
// rank when that rank is about to make its k-th MPI call of those that others may wait for.
//   SHOAL_SIGNAL_RANK=2 SHOAL_SIGNAL_CALL=5 SHOAL_SIGNAL=19 SHOAL_SIGNAL_OUT=FILE
// FILE gets the name of the call, or nothing when the program makes fewer. Polling
// (MPI_Test...) does not count, since its number differs from run to run.
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <mpi.h>

namespace {

long number(const char *name) {
  const char *text = std::getenv(name);
  return text ? std::atol(text) : -1;
}

void reached(const char *call) {
  static long calls = 0;
  if (number("OMPI_COMM_WORLD_RANK") != number("SHOAL_SIGNAL_RANK") ||
      ++calls != number("SHOAL_SIGNAL_CALL"))
    return;
  const char *path = std::getenv("SHOAL_SIGNAL_OUT");
  if (std::FILE *file = path ? std::fopen(path, "w") : nullptr) {
    std::fputs(call, file);
    std::fclose(file);
  }
  std::raise(int(number("SHOAL_SIGNAL")));
}

} // namespace

extern "C" {

int MPI_Init_thread(int *argc, char ***argv, int required, int *provided) {
  reached("MPI_Init_thread");
  return PMPI_Init_thread(argc, argv, required, provided);
}
int MPI_Finalize(void) {
  reached("MPI_Finalize");
  return PMPI_Finalize();
}
int MPI_Comm_split(MPI_Comm c, int color, int key, MPI_Comm *made) {
  reached("MPI_Comm_split");
  return PMPI_Comm_split(c, color, key, made);
}
int MPI_Comm_split_type(MPI_Comm c, int type, int key, MPI_Info info, MPI_Comm *made) {
  reached("MPI_Comm_split_type");
  return PMPI_Comm_split_type(c, type, key, info, made);
}
int MPI_Allreduce(const void *in, void *out, int n, MPI_Datatype t, MPI_Op op, MPI_Comm c) {
  reached("MPI_Allreduce");
  return PMPI_Allreduce(in, out, n, t, op, c);
}
int MPI_Gather(const void *in, int n, MPI_Datatype t, void *out, int m, MPI_Datatype u, int root,
               MPI_Comm c) {
  reached("MPI_Gather");
  return PMPI_Gather(in, n, t, out, m, u, root, c);
}
int MPI_Gatherv(const void *in, int n, MPI_Datatype t, void *out, const int *m, const int *at,
                MPI_Datatype u, int root, MPI_Comm c) {
  reached("MPI_Gatherv");
  return PMPI_Gatherv(in, n, t, out, m, at, u, root, c);
}
int MPI_Send(const void *in, int n, MPI_Datatype t, int to, int tag, MPI_Comm c) {
  reached("MPI_Send");
  return PMPI_Send(in, n, t, to, tag, c);
}
int MPI_Isend(const void *in, int n, MPI_Datatype t, int to, int tag, MPI_Comm c, MPI_Request *r) {
  reached("MPI_Isend");
  return PMPI_Isend(in, n, t, to, tag, c, r);
}
int MPI_Ibarrier(MPI_Comm c, MPI_Request *r) {
  reached("MPI_Ibarrier");
  return PMPI_Ibarrier(c, r);
}
int MPI_Iallreduce(const void *in, void *out, int n, MPI_Datatype t, MPI_Op op, MPI_Comm c,
                   MPI_Request *r) {
  reached("MPI_Iallreduce");
  return PMPI_Iallreduce(in, out, n, t, op, c, r);
}
int MPI_Iallgather(const void *in, int n, MPI_Datatype t, void *out, int m, MPI_Datatype u,
                   MPI_Comm c, MPI_Request *r) {
  reached("MPI_Iallgather");
  return PMPI_Iallgather(in, n, t, out, m, u, c, r);
}
int MPI_Ireduce_scatter_block(const void *in, void *out, int n, MPI_Datatype t, MPI_Op op,
                              MPI_Comm c, MPI_Request *r) {
  reached("MPI_Ireduce_scatter_block");
  return PMPI_Ireduce_scatter_block(in, out, n, t, op, c, r);
}
int MPI_Ialltoall(const void *in, int n, MPI_Datatype t, void *out, int m, MPI_Datatype u,
                  MPI_Comm c, MPI_Request *r) {
  reached("MPI_Ialltoall");
  return PMPI_Ialltoall(in, n, t, out, m, u, c, r);
}
int MPI_Ibcast(void *buffer, int n, MPI_Datatype t, int root, MPI_Comm c, MPI_Request *r) {
  reached("MPI_Ibcast");
  return PMPI_Ibcast(buffer, n, t, root, c, r);
}

} // extern "C"
