// Collectives between ranks of one machine, in each other's memory. Of an all-reduce every rank reduces its part of the
// elements over all ranks' inputs and writes the result to all outputs; of a reduce-scatter its own chunk, to its own
// output; of an all-gather it copies all ranks' inputs to its own output. Nothing is sent, and nothing blocks: test()
// does a slice of the work a call.
#ifndef SHOAL_RT_MPI_WINDOW_CHANNEL_H
#define SHOAL_RT_MPI_WINDOW_CHANNEL_H

#include "mpi/range_reduce.h"
#include "mpi/shared_arena.h"

namespace shoal::rt {

// The collectives of one group of ranks on one stream, one after another. Each rank has
// one counter that all others read: 2k - 1 once it has come to the k-th collective, its
// buffers in the others' hands, and 2k once its part of the result is where it belongs. Counters
// only grow, so that none needs a reset that somebody could miss.
class WindowChannel {
public:
  // `members`: ranks of the machine in group order; `me`: our place among them; `counter`:
  // the channel's, the same on all.
  WindowChannel(const SharedArena &arena, std::vector<int> members, size_t me, size_t counter);

  // The one before must have ended. `in`, and of an all-reduce `out`, which may be `in`, are offsets of the arena that
  // all see; `elements` those of the input. `to` is read and written by this rank alone.
  void allReduce(uint64_t in, uint64_t out, uint64_t elements, DType type, Reduction reduction);
  void reduceScatter(uint64_t in, char *to, uint64_t elements, DType type, Reduction reduction);
  void allGather(uint64_t in, char *to, uint64_t bytes);
  // Whether it has ended. No rank reads or writes our buffers any more when it has.
  bool test();

private:
  // A range of bytes of some inputs, reduced into outputs.
  struct Part {
    std::vector<const char *> in;
    std::vector<char *> out;
    uint64_t at, end; // bytes that are left
  };

  void begin(RangeReduce reduce, bool stream);
  bool allReached(uint64_t state);
  bool workSlice();

  const SharedArena &arena_;
  std::vector<int> members_;
  size_t me_;
  std::vector<std::atomic<uint64_t> *> counters_; // by place
  uint64_t number_ = 0;                           // of the collective under way, from 1
  size_t reached_ = 0;                            // places seen to have reached the state

  RangeReduce reduce_ = nullptr;
  std::vector<Part> parts_; // the last first
  bool working_ = false, stream_ = false;
};

} // namespace shoal::rt

#endif // SHOAL_RT_MPI_WINDOW_CHANNEL_H
