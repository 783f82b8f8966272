// What an op costs a rank: the one estimate that stages are cut by and schedules are timed with.
#ifndef SHOAL_DIALECT_DIST_TRANSFORMS_OPCOST_H
#define SHOAL_DIALECT_DIST_TRANSFORMS_OPCOST_H

#include "shoal/Dialect/Dist/IR/Dist.h"

namespace shoal::dist {

/// A device in round numbers: one core of a CPU in f32. Of a GPU all are larger, by factors that are alike within two.
inline constexpr double kFlopsPerSecond = 1.6e11;
inline constexpr double kBytesPerSecond = 2e10;     ///< read and written in memory
inline constexpr double kSentBytesPerSecond = 5e9;  ///< from rank to rank
inline constexpr double kSecondsPerMessage = 5e-6;  ///< beside its bytes

/// In floating-point operations, as many as the device does in the time of the op: those of products
/// (ShardingRuleOpInterface::getFlops), bytes of operands and results, and bytes sent by a collective on a ring, each as
/// operations of as much time. Of a program with local types what one rank does, of L1 what one device does.
double costOf(mlir::Operation *op, MeshAttr mesh = {});

inline double toSeconds(double cost) { return cost / kFlopsPerSecond; }

} // namespace shoal::dist

#endif // SHOAL_DIALECT_DIST_TRANSFORMS_OPCOST_H
