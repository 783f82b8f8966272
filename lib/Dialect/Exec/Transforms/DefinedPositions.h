// Which mesh positions have the values of a step, and whether each has what it communicates and returns.
#ifndef SHOAL_LIB_DIALECT_EXEC_TRANSFORMS_DEFINEDPOSITIONS_H
#define SHOAL_LIB_DIALECT_EXEC_TRANSFORMS_DEFINEDPOSITIONS_H

#include "shoal/Dialect/Dist/IR/PositionSets.h"
#include "shoal/Dialect/Exec/IR/Exec.h"

namespace shoal::exec {

class DefinedPositions {
public:
  /// Fails, with an error, where a position would send or reduce what only other positions have (`dist.at`), or no
  /// position has what the step returns.
  mlir::LogicalResult find(mlir::func::FuncOp step, dist::MeshAttr mesh);

  /// Whether some positions lack the value.
  bool isLimited(mlir::Value value) const { return known.count(value); }
  /// Where the value is there, as `dist.at` has it; null: everywhere.
  mlir::DenseI64ArrayAttr of(mlir::Value value) const;

private:
  mlir::LogicalResult visit(mlir::Block &block);
  mlir::LogicalResult visit(mlir::Operation *op);
  dist::PositionSets::Id get(mlir::Value value) const;

  std::optional<dist::PositionSets> sets; // none where nothing is limited
  llvm::DenseMap<mlir::Value, dist::PositionSets::Id> known; // values that not all positions have
};

} // namespace shoal::exec

#endif // SHOAL_LIB_DIALECT_EXEC_TRANSFORMS_DEFINEDPOSITIONS_H
