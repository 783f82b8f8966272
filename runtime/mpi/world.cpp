// Start, end and agreement of the processes of a run.
#include "mpi/world.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <sched.h>
#include <unistd.h>

#include <mpi.h>

namespace shoal::rt {
namespace {

constexpr int kTag = 1;
constexpr uint64_t kMessageBytes = 1 << 30; // MPI counts are ints

// Cores that this process may use.
int ownCores() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) != 0)
    return 1;
  return CPU_COUNT(&set);
}

void printLine(const std::string &line) {
  std::fprintf(stderr, "error: %s\n", line.c_str());
  std::fflush(stderr);
}

} // namespace

std::string mpiErrorText(int status) {
  char text[MPI_MAX_ERROR_STRING];
  int length = 0;
  MPI_Error_string(status, text, &length);
  return std::string(text, size_t(length));
}

World::World(int *argc, char ***argv) {
  // Settings of Open MPI, which other MPIs ignore and the user's own override. Where MPI
  // itself has to wait, other ranks of this machine may need the core. Its default for
  // non-blocking all-reduces of few ranks moves the whole buffer log2(N) times; this one
  // moves what a ring does, and small buffers as fast. All ranks get the same bits.
  setenv("OMPI_MCA_mpi_yield_when_idle", "1", 0);
  setenv("OMPI_MCA_coll_libnbc_iallreduce_algorithm", "3", 0); // Rabenseifner's
  int provided = MPI_THREAD_SINGLE;
  if (MPI_Init_thread(argc, argv, MPI_THREAD_SERIALIZED, &provided) != MPI_SUCCESS)
    workFailed("MPI cannot be started");
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
  MPI_Comm_size(MPI_COMM_WORLD, &size_);
  if (provided < MPI_THREAD_SERIALIZED)
    abort(Error(kExitWorkFailed, "this MPI must support MPI_THREAD_SERIALIZED"));

  MPI_Comm node = MPI_COMM_NULL;
  require("find the ranks of this machine",
          MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node));
  int neighbours = 1;
  MPI_Comm_size(node, &neighbours);
  MPI_Comm_free(&node);
  crowded_ = ownCores() < 2 || sysconf(_SC_NPROCESSORS_ONLN) < 2 * long(neighbours);
}

World::~World() { MPI_Finalize(); }

// A rank that failed in a call of all ranks cannot tell them in another one.
void World::require(const char *what, int status) const {
  if (status != MPI_SUCCESS)
    abort(Error(kExitWorkFailed, cat("MPI cannot ", what, ": ", mpiErrorText(status))));
}

int World::agree(const std::optional<Error> &error) const {
  int code = error ? error->code : 0, worst = 0;
  require("compare the ranks' states",
          MPI_Allreduce(&code, &worst, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD));
  if (worst == 0)
    return 0;
  std::vector<std::string> lines = gather(error ? error->what() : "");
  // The same line everywhere is one error; else each is told with its rank.
  bool same = std::all_of(lines.begin(), lines.end(),
                          [&](const std::string &line) { return line == lines[0]; });
  std::vector<std::string> told;
  for (size_t i = 0; i < lines.size(); ++i) {
    if (lines[i].empty() || std::find(told.begin(), told.end(), lines[i]) != told.end())
      continue;
    told.push_back(lines[i]);
    printLine(same ? lines[i] : cat("rank ", i, ": ", lines[i]));
  }
  return worst;
}

void World::abort(const Error &error) const {
  printLine(size_ > 1 ? cat("rank ", rank_, ": ", error.what()) : error.what());
  MPI_Abort(MPI_COMM_WORLD, error.code);
  std::_Exit(error.code); // MPI_Abort may return in a run without a launcher
}

std::vector<std::string> World::gather(const std::string &text) const {
  int length = int(text.size());
  std::vector<int> lengths(rank_ == 0 ? size_ : 0), starts;
  require("bring text to rank 0", MPI_Gather(&length, 1, MPI_INT, lengths.data(), 1, MPI_INT, 0,
                                             MPI_COMM_WORLD));
  int total = 0;
  for (int one : lengths) {
    starts.push_back(total);
    total += one;
  }
  std::string all(size_t(total), '\0');
  require("bring text to rank 0",
          MPI_Gatherv(text.data(), length, MPI_CHAR, all.data(), lengths.data(), starts.data(),
                      MPI_CHAR, 0, MPI_COMM_WORLD));
  std::vector<std::string> texts;
  for (size_t i = 0; i < lengths.size(); ++i)
    texts.push_back(all.substr(size_t(starts[i]), size_t(lengths[i])));
  return texts;
}

static void checkMessage(int status) {
  if (status != MPI_SUCCESS)
    workFailed("MPI cannot bring a tensor to rank 0: ", mpiErrorText(status));
}

void World::sendToFirst(const char *data, uint64_t bytes) const {
  for (uint64_t at = 0; at < bytes; at += kMessageBytes)
    checkMessage(MPI_Send(data + at, int(std::min(kMessageBytes, bytes - at)), MPI_BYTE, 0, kTag,
                          MPI_COMM_WORLD));
}

void World::receiveFrom(int rank, char *data, uint64_t bytes) const {
  for (uint64_t at = 0; at < bytes; at += kMessageBytes)
    checkMessage(MPI_Recv(data + at, int(std::min(kMessageBytes, bytes - at)), MPI_BYTE, rank,
                          kTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
}

} // namespace shoal::rt
