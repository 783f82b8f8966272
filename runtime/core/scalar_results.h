// Losses and metrics on rank 0, which tells them, whichever rank computed them.
#ifndef SHOAL_RT_CORE_SCALAR_RESULTS_H
#define SHOAL_RT_CORE_SCALAR_RESULTS_H

#include "core/program.h"
#include "mpi/world.h"

#include <map>
#include <vector>

namespace shoal::rt {

class ScalarResults {
public:
  ScalarResults(const World &world, const Program &program, uint32_t position);

  // When the host may read a result that is one, at `from`; others are passed over.
  void onProbe(uint32_t result, const char *from);
  // Collective, outside of a step: rank 0 gets what was read since the last time, each result `times` times. Of what it
  // does not hold itself the first position that does sends it, one message from each.
  void collect(uint64_t times);
  // On rank 0 what collect() brought, in the order of the steps; nothing of a result that is no scalar.
  const std::vector<double> &of(uint32_t result) const { return values_[result]; }

private:
  const World &world_;
  const Program &program_;
  uint32_t position_;
  std::map<uint32_t, std::vector<uint32_t>> senders_; // positions; the results of which each tells rank 0
  std::vector<uint32_t> ranks_;                       // that take part in that
  std::vector<std::vector<double>> read_, values_;    // per result: since the last collect(), and what that brought
};

} // namespace shoal::rt

#endif // SHOAL_RT_CORE_SCALAR_RESULTS_H
