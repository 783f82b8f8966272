// Arrive, reduce our part, wait until everybody has.
#include "mpi/window_all_reduce.h"
#include "shoal-rt/traffic.h"

#include <algorithm>

namespace shoal::rt {
namespace {

constexpr uint64_t kLine = 64;              // parts do not share cache lines
constexpr uint64_t kSliceBytes = 128 << 10; // of the result a call: some 50 us
// Larger buffers do not stay in the caches until they are used. In place the lines are
// there already, and plain stores are faster.
constexpr uint64_t kStreamBytes = 4 << 20;

} // namespace

WindowChannel::WindowChannel(const SharedArena &arena, std::vector<int> members, size_t me,
                             size_t counter)
    : arena_(arena), members_(std::move(members)), me_(me), in_(members_.size()),
      out_(members_.size()) {
  for (int member : members_)
    counters_.push_back(&arena_.counter(member, counter));
}

void WindowChannel::start(uint64_t in, uint64_t out, uint64_t elements, DType type,
                          Reduction reduction) {
  for (size_t place = 0; place < members_.size(); ++place) {
    in_[place] = arena_.at(members_[place], in);
    out_[place] = arena_.at(members_[place], out);
  }
  uint64_t bytes = elements * elementBytes(type), lines = (bytes + kLine - 1) / kLine;
  auto border = [&](size_t place) {
    return std::min(bytes, lines * place / members_.size() * kLine);
  };
  at_ = border(me_);
  end_ = border(me_ + 1);
  stream_ = in != out && bytes >= kStreamBytes;
  reduce_ = rangeReduce(type, reduction);
  reducing_ = true;
  reached_ = 0;
  ++number_;
  // Release: what we wrote to our input is there for whoever sees that we came.
  counters_[me_]->store(2 * number_ - 1, std::memory_order_release);
}

// A place that has reached a state never goes back, so each is waited for in turn.
bool WindowChannel::allReached(uint64_t state) {
  while (reached_ < counters_.size() &&
         counters_[reached_]->load(std::memory_order_acquire) >= state)
    ++reached_;
  return reached_ == counters_.size();
}

void WindowChannel::reduceSlice() {
  uint64_t bytes = std::min(kSliceBytes, end_ - at_);
  reduce_({in_.data(), out_.data(), uint32_t(members_.size())}, at_, bytes, stream_);
  at_ += bytes;
}

bool WindowChannel::test() {
  if (reducing_) {
    if (!allReached(2 * number_ - 1))
      return false;
    if (at_ < end_)
      reduceSlice();
    if (at_ < end_)
      return false;
    reducing_ = false;
    reached_ = 0;
    counters_[me_]->store(2 * number_, std::memory_order_release);
  }
  return allReached(2 * number_);
}

} // namespace shoal::rt
