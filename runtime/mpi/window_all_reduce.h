// All-reduces between ranks of one machine, in place in each other's memory: every rank
// reduces its part of the elements over all ranks' inputs and writes the result to all
// outputs. Nothing is sent, and nothing blocks: test() does a slice of the work a call.
#ifndef SHOAL_RT_MPI_WINDOW_ALL_REDUCE_H
#define SHOAL_RT_MPI_WINDOW_ALL_REDUCE_H

#include "mpi/range_reduce.h"
#include "mpi/shared_arena.h"

namespace shoal::rt {

// The all-reduces of one group of ranks on one stream, one after another. Each rank has
// one counter that all others read: 2k - 1 once it has come to the k-th all-reduce, its
// buffers in the others' hands, and 2k once its part of the result is everywhere. Counters
// only grow, so that none needs a reset that somebody could miss.
class WindowChannel {
public:
  // `members`: ranks of the machine in group order; `me`: our place among them; `counter`:
  // the channel's, the same on all.
  WindowChannel(const SharedArena &arena, std::vector<int> members, size_t me, size_t counter);

  // Offsets of the arena; out may be in. The one before must have ended.
  void start(uint64_t in, uint64_t out, uint64_t elements, DType type, Reduction reduction);
  // Whether it has ended. No rank reads or writes our buffers any more when it has.
  bool test();

private:
  bool allReached(uint64_t state);
  void reduceSlice();

  const SharedArena &arena_;
  std::vector<int> members_;
  size_t me_;
  std::vector<std::atomic<uint64_t> *> counters_; // by place
  uint64_t number_ = 0;                           // of the all-reduce under way, from 1
  size_t reached_ = 0;                            // places seen to have reached the state

  RangeReduce reduce_ = nullptr;
  std::vector<const char *> in_;
  std::vector<char *> out_;
  uint64_t at_ = 0, end_ = 0; // bytes of our part that are left
  bool reducing_ = false, stream_ = false;
};

} // namespace shoal::rt

#endif // SHOAL_RT_MPI_WINDOW_ALL_REDUCE_H
