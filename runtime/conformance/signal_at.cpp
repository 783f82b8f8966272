// Makes failures happen at a known point: preloaded into a program, it raises a signal in one
// rank when that rank is about to make its k-th MPI call of those that others may wait for,
//   SHOAL_SIGNAL_RANK=2 SHOAL_SIGNAL_CALL=5 SHOAL_SIGNAL=19 SHOAL_SIGNAL_OUT=FILE
// or while it waits in a transfer from a step on, as the progress board of shoal-run shows it:
//   SHOAL_SIGNAL_RANK=2 SHOAL_SIGNAL_IN='all_reduce {data} w' SHOAL_SIGNAL_STEP=3 ...
// FILE gets the moment (CLOCK_MONOTONIC, seconds) and the name of the call or transfer, or
// nothing when the program does not come there. Polling (MPI_Test...) does not count, since its
// number differs from run to run.
#include "core/board.h"

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <exception>
#include <thread>

#include <mpi.h>
#include <unistd.h>

namespace {

using shoal::rt::Board;
using shoal::rt::Phase;
using shoal::rt::RankPlace;

long number(const char *name) {
  const char *text = std::getenv(name);
  return text ? std::atol(text) : -1;
}

bool isTheRank() {
  return std::getenv("SHOAL_SIGNAL_RANK") &&
         number("OMPI_COMM_WORLD_RANK") == number("SHOAL_SIGNAL_RANK");
}

void raiseIt(const char *where) {
  const char *path = std::getenv("SHOAL_SIGNAL_OUT");
  if (std::FILE *file = path ? std::fopen(path, "w") : nullptr) {
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    std::fprintf(file, "%.6f %s", double(now.tv_sec) + 1e-9 * double(now.tv_nsec), where);
    std::fclose(file);
  }
  kill(getpid(), int(number("SHOAL_SIGNAL")));
}

void reached(const char *call) {
  static long calls = 0;
  if (isTheRank() && ++calls == number("SHOAL_SIGNAL_CALL"))
    raiseIt(call);
}

// Never ends by itself: the process ends first, or is ended by the signal.
void watchBoard(const char *transfer) {
  try {
    const char *board = std::getenv(shoal::rt::kBoardVariable);
    const char *path = board ? std::strchr(board, ':') : nullptr;
    if (!path)
      return;
    Board watched = Board::open(path + 1, 0);
    uint32_t rank = uint32_t(number("SHOAL_SIGNAL_RANK"));
    uint64_t step = uint64_t(number("SHOAL_SIGNAL_STEP"));
    while (true) {
      RankPlace place = watched.read(rank);
      if (place.step >= step && place.phase == Phase::Waiting && place.awaited == transfer)
        return raiseIt(transfer);
      std::this_thread::yield();
    }
  } catch (const std::exception &error) {
    std::fprintf(stderr, "signal_at: %s\n", error.what());
  }
}

__attribute__((constructor)) void startWatching() {
  if (const char *transfer = std::getenv("SHOAL_SIGNAL_IN"); transfer && isTheRank())
    std::thread(watchBoard, transfer).detach();
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
int MPI_Comm_free(MPI_Comm *c) {
  reached("MPI_Comm_free");
  return PMPI_Comm_free(c);
}
int MPI_Win_allocate_shared(MPI_Aint bytes, int unit, MPI_Info info, MPI_Comm c, void *base,
                            MPI_Win *made) {
  reached("MPI_Win_allocate_shared");
  return PMPI_Win_allocate_shared(bytes, unit, info, c, base, made);
}
int MPI_Win_free(MPI_Win *window) {
  reached("MPI_Win_free");
  return PMPI_Win_free(window);
}
int MPI_Barrier(MPI_Comm c) {
  reached("MPI_Barrier");
  return PMPI_Barrier(c);
}
int MPI_Bcast(void *buffer, int n, MPI_Datatype t, int root, MPI_Comm c) {
  reached("MPI_Bcast");
  return PMPI_Bcast(buffer, n, t, root, c);
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
int MPI_Recv(void *out, int n, MPI_Datatype t, int from, int tag, MPI_Comm c, MPI_Status *status) {
  reached("MPI_Recv");
  return PMPI_Recv(out, n, t, from, tag, c, status);
}
int MPI_Irecv(void *out, int n, MPI_Datatype t, int from, int tag, MPI_Comm c, MPI_Request *r) {
  reached("MPI_Irecv");
  return PMPI_Irecv(out, n, t, from, tag, c, r);
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
int MPI_Igather(const void *in, int n, MPI_Datatype t, void *out, int m, MPI_Datatype u, int root,
                MPI_Comm c, MPI_Request *r) {
  reached("MPI_Igather");
  return PMPI_Igather(in, n, t, out, m, u, root, c, r);
}
int MPI_Iscatter(const void *in, int n, MPI_Datatype t, void *out, int m, MPI_Datatype u, int root,
                 MPI_Comm c, MPI_Request *r) {
  reached("MPI_Iscatter");
  return PMPI_Iscatter(in, n, t, out, m, u, root, c, r);
}

} // extern "C"
