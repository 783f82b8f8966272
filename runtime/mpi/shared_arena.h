// Ranges of the arenas of one machine's ranks in an MPI-3 shared window
// (MPI_Win_allocate_shared), so that every rank reads and writes the others' buffers at
// the same offsets. Only whole pages that hold such buffers move there: the rest of an
// arena stays on private, huge pages.
#ifndef SHOAL_RT_MPI_SHARED_ARENA_H
#define SHOAL_RT_MPI_SHARED_ARENA_H

#include "core/arena.h"

#include <atomic>
#include <string>
#include <vector>

#include <mpi.h>

namespace shoal::rt {

struct ByteRange {
  uint64_t begin, end; // offsets in the arena
};

class SharedArena {
public:
  // Collective over `node`, the ranks of a machine, with the same ranges and number of
  // counters on each. The ranges keep their contents and addresses. Where the machine
  // cannot do it, all its ranks get the same problem() and their arenas stay private.
  SharedArena(MPI_Comm node, const Arena &arena, std::vector<ByteRange> ranges, size_t counters);
  ~SharedArena(); // collective; the arena stays valid
  SharedArena(const SharedArena &) = delete;
  SharedArena &operator=(const SharedArena &) = delete;

  const std::string &problem() const { return problem_; } // empty: none
  uint64_t bytes() const { return bytes_; }               // of this rank, in shared pages

  // What is at `offset` of a rank's arena, which lies in one of the ranges. Our own has its
  // usual address: seen through the window, too, each page would count twice as resident.
  char *at(int nodeRank, uint64_t offset) const;
  // A counter of a rank, alone on its cache line; 0 at first.
  std::atomic<uint64_t> &counter(int nodeRank, size_t index) const;

private:
  struct Piece { // a range rounded to pages, and where it lies in a rank's part of the window
    uint64_t begin, end, inWindow;
  };

  void place(std::vector<ByteRange> ranges, size_t counters);
  std::string findRoom() const;
  std::string allocate();
  std::string fill(const Arena &arena);
  void overlay();
  // Collective: the same text on all ranks, of the first that has one.
  std::string agree(const std::string &mine) const;

  MPI_Comm node_;
  int nodeRank_ = 0;
  char *arena_;
  MPI_Win window_ = MPI_WIN_NULL;
  std::vector<Piece> pieces_;
  std::vector<char *> bases_; // of each rank's part, at a page
  uint64_t bytes_ = 0;
  char *alias_ = nullptr; // our part a second time: what the arena gets
  std::string problem_;
};

} // namespace shoal::rt

#endif // SHOAL_RT_MPI_SHARED_ARENA_H
