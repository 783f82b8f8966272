// Start, end and agreement of the processes of a run.
#include "mpi/world.h"
#include "core/file.h"
#include "core/trace.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sched.h>
#include <thread>
#include <unistd.h>

#include <mpi.h>

namespace shoal::rt {
namespace {

constexpr int kTag = 1;
constexpr uint64_t kMessageBytes = 1 << 30; // MPI counts are ints
constexpr auto kAbortPatience = std::chrono::seconds(2);

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

// Our rank as the launcher tells it before MPI has started.
std::optional<uint32_t> launchedRank() {
  for (const char *name : {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK"}) {
    const char *text = std::getenv(name);
    uint32_t rank = 0;
    if (text && std::from_chars(text, text + std::strlen(text), rank).ec == std::errc())
      return rank;
  }
  return std::nullopt;
}

} // namespace

std::string mpiErrorText(int status) {
  char text[MPI_MAX_ERROR_STRING];
  int length = 0;
  MPI_Error_string(status, text, &length);
  return std::string(text, size_t(length));
}

// The launcher's board is there before MPI is, so that the start is watched, too.
void World::joinLauncher(double timeout) {
  std::string_view value = std::getenv(kBoardVariable);
  size_t colon = value.find(':');
  std::string path(value.substr(std::min(colon, value.size() - 1) + 1));
  std::optional<uint32_t> rank = launchedRank();
  try {
    if (!rank)
      badInput(kBoardVariable, " is set, but no launcher of MPI says which rank this is");
    Board board = Board::open(path, 0);
    if (*rank >= board.ranks())
      badInput(path, ": is no progress board of this run: it is for ", board.ranks(),
               " ranks, and this is rank ", *rank);
    board_ = std::move(board);
  } catch (const Error &error) {
    startError_ = error;
    return;
  }
  // What MPI shares between ranks lies beside the board, where the launcher removes it.
  std::string folder = path.substr(0, path.rfind('/'));
  setenv("OMPI_MCA_btl_vader_backing_directory", folder.c_str(), 0);
  setenv("OMPI_MCA_osc_sm_backing_directory", folder.c_str(), 0);
  guard(*rank, timeout);
}

// Without a launcher of ours the first rank of the node makes the board. Its name is gone as soon
// as all have it.
void World::shareBoard(void *nodeCommunicator, double timeout) {
  MPI_Comm node = *static_cast<MPI_Comm *>(nodeCommunicator);
  int place = 0;
  MPI_Comm_rank(node, &place);
  char path[256] = "";
  if (place == 0) {
    std::snprintf(path, sizeof path, "%s/shoal-board-%d", sharedFolder().c_str(), int(getpid()));
    try {
      board_ = Board::create(path, uint32_t(size_));
    } catch (const Error &error) {
      startError_ = error;
      path[0] = '\0';
    }
  }
  require("share the progress board", MPI_Bcast(path, int(sizeof path), MPI_CHAR, 0, node));
  if (place != 0 && path[0] != '\0') {
    try {
      board_ = Board::open(path, uint32_t(size_));
    } catch (const Error &error) {
      startError_ = error;
    }
  }
  require("share the progress board", MPI_Barrier(node));
  if (place == 0 && path[0] != '\0')
    unlink(path);
  if (board_.ranks() != 0)
    guard(uint32_t(rank_), timeout);
}

void World::guard(uint32_t rank, double timeout) {
  beacon_ = std::make_unique<Beacon>(board_.entry(rank));
  watchdog_ = std::make_unique<Watchdog>(board_, rank, *beacon_, board_.ranks() > 1 ? timeout : 0,
                                         [this] { endAll(kExitWorkFailed); });
}

World::World(int *argc, char ***argv, double timeout) {
  // Settings of Open MPI, which other MPIs ignore and the user's own override. Where MPI
  // itself has to wait, other ranks of this machine may need the core. Its default for
  // non-blocking all-reduces of few ranks moves the whole buffer log2(N) times; this one
  // moves what a ring does, and small buffers as fast. All ranks get the same bits.
  setenv("OMPI_MCA_mpi_yield_when_idle", "1", 0);
  setenv("OMPI_MCA_coll_libnbc_iallreduce_algorithm", "3", 0); // Rabenseifner's
  const char *launcher = std::getenv(kBoardVariable);
  bool launched = launcher && std::string_view(launcher).starts_with(hostName() + ":");
  if (launched)
    joinLauncher(timeout);
  int provided = MPI_THREAD_SINGLE, status = MPI_SUCCESS;
  std::optional<Beacon::Together> together;
  if (beacon_)
    together.emplace(*beacon_, "the start of MPI");
  status = MPI_Init_thread(argc, argv, MPI_THREAD_SERIALIZED, &provided);
  if (status != MPI_SUCCESS) {
    if (beacon_)
      beacon_->setState(RankState::Failed);
    workFailed("MPI cannot be started");
  }
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
  MPI_Comm_size(MPI_COMM_WORLD, &size_);
  canAbort_ = true;
  MPI_Comm node = MPI_COMM_NULL;
  require("find the ranks of this machine",
          MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node));
  int neighbours = 1;
  MPI_Comm_size(node, &neighbours);
  if (!launched && size_ > 1)
    shareBoard(&node, timeout);
  MPI_Comm_free(&node);
  together.reset();
  if (!beacon_) {
    board_ = Board::makePrivate(uint32_t(size_));
    guard(uint32_t(rank_), 0);
  }
  if (&beacon_->entry() != &board_.entry(uint32_t(rank_)) && !startError_)
    startError_ = Error(kExitWorkFailed, cat("MPI calls this rank ", rank_,
                                             ", its launcher said another number"));
  beacon_->setState(RankState::Running);
  // The handler tells its own line, so that neither launcher nor watchdogs have to.
  MappedFile::atFault(
      [](void *world) {
        World &self = *static_cast<World *>(world);
        self.board_.claimReport(uint32_t(self.rank_));
        self.beacon_->setState(RankState::Failed);
      },
      this);
  if (provided < MPI_THREAD_SERIALIZED)
    abort(Error(kExitWorkFailed, "this MPI must support MPI_THREAD_SERIALIZED"));
  crowded_ = ownCores() < 2 || sysconf(_SC_NPROCESSORS_ONLN) < 2 * long(neighbours);
}

World::~World() {
  MappedFile::atFault(nullptr, nullptr);
  if (exitCode_ != 0) // before mpirun sees the first of us end, and kills the rest
    beacon_->setState(RankState::Failed);
  {
    Beacon::Together together(*beacon_, "the end of MPI");
    canAbort_ = false;
    MPI_Finalize();
  }
  beacon_->setState(exitCode_ == 0 ? RankState::Finished : RankState::Failed);
}

// A rank that failed in a call of all ranks cannot tell them in another one.
void World::require(const char *what, int status) const {
  if (status != MPI_SUCCESS)
    abort(Error(kExitWorkFailed, cat("MPI cannot ", what, ": ", mpiErrorText(status))));
}

int World::agree(const std::optional<Error> &error) const {
  Beacon::Together together(*beacon_, "the agreement on errors");
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

// MPI_Abort may return, or never come back. One rank alone has nobody to stop, and Open MPI's
// helper of such a rank complains when its pipes are full.
void World::endAll(int code) const {
  if (canAbort_ && size_ > 1) {
    std::thread([code] {
      std::this_thread::sleep_for(kAbortPatience);
      std::_Exit(code);
    }).detach();
    MPI_Abort(MPI_COMM_WORLD, code);
  }
  std::_Exit(code);
}

void World::abort(const Error &error) const {
  if (!board_.ranks() || board_.claimReport(uint32_t(rank_)))
    printLine(size_ > 1 ? cat("rank ", rank_, ": ", error.what()) : error.what());
  else
    std::this_thread::sleep_for(kAbortPatience); // whoever failed first ends all
  if (beacon_)
    beacon_->setState(RankState::Failed);
  endAll(error.code);
}

std::vector<std::string> World::gather(const std::string &text) const {
  Beacon::Together together(*beacon_, "the collection of texts");
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

void World::broadcast(char *data, uint64_t bytes) const {
  Beacon::Together together(*beacon_, "the broadcast from rank 0");
  require("bring bytes from rank 0", MPI_Bcast(data, int(bytes), MPI_BYTE, 0, MPI_COMM_WORLD));
}

std::string World::broadcastText(std::string text) const {
  uint64_t size = text.size();
  broadcast(reinterpret_cast<char *>(&size), sizeof size);
  text.resize(size);
  broadcast(text.data(), size);
  return text;
}

std::vector<uint64_t> World::maxima(std::vector<uint64_t> numbers) const {
  Beacon::Together together(*beacon_, "the comparison of numbers");
  std::vector<uint64_t> most(numbers.size());
  require("compare numbers", MPI_Allreduce(numbers.data(), most.data(), int(numbers.size()), MPI_UINT64_T, MPI_MAX,
                                           MPI_COMM_WORLD));
  return most;
}

// Cristian's way: the other clock is read in the middle of the shortest of some round trips. Clocks
// that agree within the error of that are one clock: ranks of a machine share theirs.
int64_t World::commonMoment() const {
  Beacon::Together together(*beacon_, "the comparison of clocks");
  constexpr int rounds = 16;
  auto check = [&](int status) { require("compare clocks", status); };
  int64_t moment = nowNanoseconds(), shortest = INT64_MAX, ahead = 0, theirs = 0;
  for (int other = 1; other < size_; ++other)
    for (int round = 0; round < rounds; ++round) {
      if (rank_ == 0) {
        check(MPI_Recv(&theirs, 1, MPI_INT64_T, other, kTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        int64_t now = nowNanoseconds();
        check(MPI_Send(&now, 1, MPI_INT64_T, other, kTag, MPI_COMM_WORLD));
      } else if (rank_ == other) {
        int64_t begin = nowNanoseconds();
        check(MPI_Send(&begin, 1, MPI_INT64_T, 0, kTag, MPI_COMM_WORLD));
        check(MPI_Recv(&theirs, 1, MPI_INT64_T, 0, kTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        int64_t trip = nowNanoseconds() - begin;
        if (trip >= shortest)
          continue;
        shortest = trip;
        ahead = theirs - (begin + trip / 2);
      }
    }
  check(MPI_Bcast(&moment, 1, MPI_INT64_T, 0, MPI_COMM_WORLD));
  return std::abs(ahead) <= shortest / 2 ? moment : moment - ahead;
}

} // namespace shoal::rt
