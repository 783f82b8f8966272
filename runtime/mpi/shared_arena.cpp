// A window mapped a second time, over the arena. Pages of a shared file system appear when
// they are touched, and a full one answers with SIGBUS: so room is looked for first, and
// then all pages are made by a call that can fail.
#include "mpi/shared_arena.h"
#include "core/error.h"
#include "mpi/world.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include <sys/mman.h>
#include <sys/statvfs.h>
#include <unistd.h>

namespace shoal::rt {
namespace {

constexpr uint64_t kCounterBytes = 64;     // a cache line
constexpr uint64_t kMarginBytes = 4 << 20; // for MPI's own part of the window

uint64_t pageBytes() { return uint64_t(sysconf(_SC_PAGESIZE)); }
uint64_t roundUp(uint64_t value, uint64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

// The folder where Open MPI puts windows, unless a file of its settings says otherwise. To
// ask for it (MPI_T) would cost 0.2 s at each start, and only MPI's own words depend on it.
std::string windowFolder() {
  const char *set = std::getenv("OMPI_MCA_osc_sm_backing_directory");
  return set ? set : "/dev/shm";
}

} // namespace

SharedArena::SharedArena(MPI_Comm node, const Arena &arena, std::vector<ByteRange> ranges,
                         size_t counters)
    : node_(node), arena_(arena.base()) {
  MPI_Comm_rank(node_, &nodeRank_);
  place(std::move(ranges), counters);
  problem_ = agree(findRoom());
  if (problem_.empty())
    problem_ = agree(allocate());
  if (problem_.empty())
    problem_ = agree(fill(arena));
  if (problem_.empty()) {
    overlay();
    return;
  }
  if (alias_)
    munmap(alias_, bytes_);
  if (window_ != MPI_WIN_NULL)
    MPI_Win_free(&window_);
}

SharedArena::~SharedArena() {
  if (window_ != MPI_WIN_NULL)
    MPI_Win_free(&window_);
}

// Counters first, then the pages of the ranges, of which overlapping ones are one piece.
void SharedArena::place(std::vector<ByteRange> ranges, size_t counters) {
  uint64_t page = pageBytes();
  bytes_ = roundUp(counters * kCounterBytes, page);
  std::sort(ranges.begin(), ranges.end(),
            [](const ByteRange &a, const ByteRange &b) { return a.begin < b.begin; });
  for (const ByteRange &range : ranges) {
    uint64_t begin = range.begin / page * page, end = roundUp(range.end, page);
    if (!pieces_.empty() && begin <= pieces_.back().end)
      pieces_.back().end = std::max(pieces_.back().end, end);
    else
      pieces_.push_back({begin, end, 0});
  }
  for (Piece &piece : pieces_) {
    piece.inWindow = bytes_;
    bytes_ += piece.end - piece.begin;
  }
}

std::string SharedArena::findRoom() const {
  int ranks = 1;
  MPI_Comm_size(node_, &ranks);
  std::string folder = windowFolder();
  uint64_t needed = uint64_t(ranks) * (bytes_ + pageBytes()) + kMarginBytes;
  struct statvfs info;
  if (statvfs(folder.c_str(), &info) != 0)
    return cat(folder, ": ", std::strerror(errno));
  uint64_t room = uint64_t(info.f_bavail) * info.f_frsize;
  if (room < needed)
    return cat(folder, " has room for ", room, " bytes, ", ranks, " ranks need ", needed);
  return "";
}

std::string SharedArena::allocate() {
  // Each part may start anywhere in a page, so it gets one page more.
  MPI_Info info;
  MPI_Info_create(&info);
  MPI_Info_set(info, "alloc_shared_noncontig", "true");
  void *base = nullptr;
  int status = MPI_Win_allocate_shared(MPI_Aint(bytes_ + pageBytes()), 1, info, node_, &base,
                                       &window_);
  MPI_Info_free(&info);
  if (status != MPI_SUCCESS)
    return cat("MPI cannot make a shared window: ", mpiErrorText(status));
  MPI_Win_set_errhandler(window_, MPI_ERRORS_RETURN);
  int ranks = 1;
  MPI_Comm_size(node_, &ranks);
  for (int rank = 0; rank < ranks; ++rank) {
    MPI_Aint size = 0;
    int unit = 0;
    status = MPI_Win_shared_query(window_, rank, &size, &unit, &base);
    if (status != MPI_SUCCESS)
      return cat("MPI cannot tell where a shared window is: ", mpiErrorText(status));
    bases_.push_back(reinterpret_cast<char *>(roundUp(reinterpret_cast<uintptr_t>(base), pageBytes())));
  }
  return "";
}

// Makes our pages, and puts into them what the arena holds.
std::string SharedArena::fill(const Arena &arena) {
  // Of a shared mapping, a move of no bytes makes another one of the same pages.
  void *alias = mremap(bases_[size_t(nodeRank_)], 0, bytes_, MREMAP_MAYMOVE);
  if (alias == MAP_FAILED)
    return cat("a shared window cannot be mapped a second time: ", std::strerror(errno));
  alias_ = static_cast<char *>(alias);
  if (madvise(alias_, bytes_, MADV_POPULATE_WRITE) != 0)
    return errno == EFAULT // where touching would have been SIGBUS
               ? cat("the folder of shared windows has no room for ", bytes_, " bytes more")
               : cat("the pages of a shared window cannot be had: ", std::strerror(errno));
  for (const Piece &piece : pieces_)
    std::memcpy(alias_ + piece.inWindow, arena_ + piece.begin,
                std::min(piece.end, arena.size()) - piece.begin);
  return "";
}

// Exchanges the arena's pages. A failure here would leave a hole in it and ends the run.
void SharedArena::overlay() {
  for (const Piece &piece : pieces_) {
    uint64_t bytes = piece.end - piece.begin;
    if (mremap(alias_ + piece.inWindow, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED,
               arena_ + piece.begin) == MAP_FAILED)
      workFailed("a shared window cannot be mapped into the arena: ", std::strerror(errno));
  }
  // The counters are used where MPI mapped them.
  munmap(alias_, pieces_.empty() ? bytes_ : pieces_[0].inWindow);
  alias_ = nullptr;
  // Nobody may look at pages that are still being filled.
  MPI_Barrier(node_);
}

std::string SharedArena::agree(const std::string &mine) const {
  int ranks = 1, first = 0;
  MPI_Comm_size(node_, &ranks);
  int candidate = mine.empty() ? ranks : nodeRank_;
  if (MPI_Allreduce(&candidate, &first, 1, MPI_INT, MPI_MIN, node_) != MPI_SUCCESS)
    workFailed("MPI cannot compare the states of this machine's ranks");
  if (first == ranks)
    return "";
  std::string text = mine;
  int length = int(text.size());
  MPI_Bcast(&length, 1, MPI_INT, first, node_);
  text.resize(size_t(length));
  MPI_Bcast(text.data(), length, MPI_CHAR, first, node_);
  return text;
}

char *SharedArena::at(int nodeRank, uint64_t offset) const {
  if (nodeRank == nodeRank_)
    return arena_ + offset;
  auto after = std::upper_bound(pieces_.begin(), pieces_.end(), offset,
                                [](uint64_t at, const Piece &piece) { return at < piece.begin; });
  const Piece &piece = *std::prev(after);
  return bases_[size_t(nodeRank)] + piece.inWindow + (offset - piece.begin);
}

std::atomic<uint64_t> &SharedArena::counter(int nodeRank, size_t index) const {
  static_assert(std::atomic<uint64_t>::is_always_lock_free, "shared between processes");
  return *reinterpret_cast<std::atomic<uint64_t> *>(bases_[size_t(nodeRank)] +
                                                    index * kCounterBytes);
}

} // namespace shoal::rt
