// Arrive, do our part, wait until everybody has.
#include "mpi/window_channel.h"
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
    : arena_(arena), members_(std::move(members)), me_(me) {
  for (int member : members_)
    counters_.push_back(&arena_.counter(member, counter));
}

void WindowChannel::allReduce(uint64_t in, uint64_t out, uint64_t elements, DType type,
                              Reduction reduction) {
  uint64_t bytes = elements * elementBytes(type), lines = (bytes + kLine - 1) / kLine;
  auto border = [&](size_t place) {
    return std::min(bytes, lines * place / members_.size() * kLine);
  };
  Part part{{}, {}, border(me_), border(me_ + 1)};
  for (int member : members_) {
    part.in.push_back(arena_.at(member, in));
    part.out.push_back(arena_.at(member, out));
  }
  parts_ = {std::move(part)};
  begin(rangeReduce(type, reduction), in != out && bytes >= kStreamBytes);
}

void WindowChannel::reduceScatter(uint64_t in, char *to, uint64_t elements, DType type,
                                  Reduction reduction) {
  uint64_t chunk = elements / members_.size() * elementBytes(type);
  Part part{{}, {to}, 0, chunk};
  for (int member : members_)
    part.in.push_back(arena_.at(member, in) + me_ * chunk);
  parts_ = {std::move(part)};
  begin(rangeReduce(type, reduction), chunk >= kStreamBytes);
}

void WindowChannel::allGather(uint64_t in, char *to, uint64_t bytes) {
  parts_.clear();
  // Our own first, then the next place's: ranks do not all read from one at a time.
  for (size_t i = members_.size(); i-- > 0;) {
    size_t place = (me_ + i) % members_.size();
    parts_.push_back({{arena_.at(members_[place], in)}, {to + place * bytes}, 0, bytes});
  }
  // Of one input the reduction is a copy; bytes are of any type.
  begin(rangeReduce(DType::I1, Reduction::Max), bytes * members_.size() >= kStreamBytes);
}

void WindowChannel::begin(RangeReduce reduce, bool stream) {
  reduce_ = reduce;
  stream_ = stream;
  working_ = true;
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

// Whether something is left.
bool WindowChannel::workSlice() {
  Part &part = parts_.back();
  uint64_t bytes = std::min(kSliceBytes, part.end - part.at);
  if (bytes != 0)
    reduce_({part.in.data(), part.out.data(), uint32_t(part.in.size()), uint32_t(part.out.size())},
            part.at, bytes, stream_);
  part.at += bytes;
  if (part.at == part.end)
    parts_.pop_back();
  return !parts_.empty();
}

bool WindowChannel::test() {
  if (working_) {
    if (!allReached(2 * number_ - 1) || workSlice())
      return false;
    working_ = false;
    reached_ = 0;
    counters_[me_]->store(2 * number_, std::memory_order_release);
  }
  return allReached(2 * number_);
}

} // namespace shoal::rt
