// Scalars are read at their probes, and travel when the step is over.
#include "core/scalar_results.h"
#include "core/box.h"
#include "core/element.h"

#include <utility>

namespace shoal::rt {

static bool isScalar(const Result &result) {
  return result.kind == ResultKind::Loss || result.kind == ResultKind::Metric;
}

ScalarResults::ScalarResults(const World &world, const Program &program, uint32_t position)
    : world_(world), program_(program), position_(position), read_(program.results().size()),
      values_(program.results().size()) {
  uint32_t first = program.positionOfRank(0);
  for (uint32_t index = 0; index < program.results().size(); ++index) {
    const Result &result = program.results()[index];
    if (isScalar(result) && !program.holds(result, first))
      senders_[firstHolders(program, {}, program.holders(result)).front()].push_back(index);
  }
  if (!senders_.empty())
    ranks_.push_back(0);
  for (const auto &[sender, results] : senders_)
    ranks_.push_back(program.deviceIds()[sender]);
}

void ScalarResults::onProbe(uint32_t index, const char *from) {
  const Result &result = program_.results()[index];
  if (isScalar(result))
    read_[index].push_back(loadElement(from, program_.views()[result.view].dtype, 0));
}

void ScalarResults::collect(uint64_t times) {
  std::swap(values_, read_);
  for (std::vector<double> &values : read_)
    values.clear();
  if (senders_.empty())
    return;
  Beacon::Together together(world_.beacon(), "the collection of losses and metrics", ranks_);
  std::vector<double> message;
  for (const auto &[sender, results] : senders_) {
    message.clear();
    if (sender == position_) {
      for (uint32_t result : results)
        message.insert(message.end(), values_[result].begin(), values_[result].end());
      world_.sendToFirst(reinterpret_cast<const char *>(message.data()), message.size() * sizeof message[0]);
    } else if (world_.rank() == 0) {
      message.resize(results.size() * times);
      world_.receiveFrom(int(program_.deviceIds()[sender]), reinterpret_cast<char *>(message.data()),
                         message.size() * sizeof message[0]);
      auto next = message.begin();
      for (uint32_t result : results) {
        values_[result].assign(next, next + ptrdiff_t(times));
        next += ptrdiff_t(times);
      }
    }
  }
}

} // namespace shoal::rt
