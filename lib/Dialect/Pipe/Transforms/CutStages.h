// Where a pipeline is cut: consecutive units into stages, by dynamic programming.
#ifndef SHOAL_LIB_DIALECT_PIPE_TRANSFORMS_CUTSTAGES_H
#define SHOAL_LIB_DIALECT_PIPE_TRANSFORMS_CUTSTAGES_H

#include "mlir/IR/Operation.h"
#include "llvm/ADT/MapVector.h"

#include <optional>
#include <string>

namespace shoal::pipe {

/// What is cut is between units: a layer, or an op that is in none.
struct StageUnit {
  llvm::SmallVector<mlir::Operation *> ops;
  double cost = 0;
  int64_t kept = 0;                                  ///< bytes of the whole batch that the backward pass reads
  llvm::SmallMapVector<mlir::Value, int64_t, 4> parameters; ///< and their bytes
};

/// What a rank holds of a stage.
struct StageMemory {
  double ofParameter = 1; ///< bytes that a rank holds for each byte of a parameter
  double ofBatch = 1;     ///< the part of the batch's activations that a rank holds of one micro-batch
  std::string recompute = "none";
  llvm::SmallVector<int64_t> live; ///< micro-batches at once, by stage; none: one
};

struct Cut {
  llvm::SmallVector<int64_t> begins; ///< of stages, by number of the unit
  double held = 0;                   ///< bytes of the stage that holds most, as far as an estimate tells
};

/// The slowest stage costs the least, of those cuts whose stages hold fewer bytes than `below`. Nothing where none does.
std::optional<Cut> cutStages(llvm::ArrayRef<StageUnit> units, int64_t stages, const StageMemory &memory, double below);

} // namespace shoal::pipe

#endif // SHOAL_LIB_DIALECT_PIPE_TRANSFORMS_CUTSTAGES_H
