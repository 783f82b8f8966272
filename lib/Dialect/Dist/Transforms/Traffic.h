// What a collective of a local program sends, by the formulas of shoal-rt/traffic.h.
#ifndef SHOAL_LIB_DIALECT_DIST_TRANSFORMS_TRAFFIC_H
#define SHOAL_LIB_DIALECT_DIST_TRANSFORMS_TRAFFIC_H

#include "shoal/Dialect/Dist/IR/Dist.h"

#include "shoal-rt/traffic.h"

#include <optional>

namespace shoal::dist {

/// A collective as traffic.h counts it.
struct Traffic {
  rt::Opcode opcode = rt::Opcode::Barrier;
  int64_t elements = 0; // of the full buffer
  std::optional<int64_t> root = std::nullopt;
  bool leavesRank = true; // of messages between pairs
};

/// Of `ranks` in a group; a barrier for what sends nothing.
Traffic trafficOf(mlir::Operation *op, int64_t ranks);

/// By the rank that sends most. `bytes`: of an element.
uint64_t sentBytes(const Traffic &traffic, int64_t ranks, int64_t bytes);

} // namespace shoal::dist

#endif // SHOAL_LIB_DIALECT_DIST_TRANSFORMS_TRAFFIC_H
