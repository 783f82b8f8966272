// The trait of ops that have no attributes but their own and those of dialects (`nn.layer`, `dist.shardings`).
//
// MLIR keeps whatever else stands in an op's braces, so that a misspelt `transpose_b` would be silence. Attributes
// with a dialect's prefix are that dialect's to verify.
#ifndef SHOAL_INTERFACES_KNOWNATTRIBUTES_H
#define SHOAL_INTERFACES_KNOWNATTRIBUTES_H

#include "mlir/IR/OpDefinition.h"

namespace shoal {

/// Diagnoses an attribute that is neither the op's own nor of a dialect.
llvm::LogicalResult verifyAttributesKnown(mlir::Operation *op);

template <typename ConcreteOp>
class KnownAttributes : public mlir::OpTrait::TraitBase<ConcreteOp, KnownAttributes> {
public:
  static llvm::LogicalResult verifyTrait(mlir::Operation *op) { return verifyAttributesKnown(op); }
};

} // namespace shoal

#endif // SHOAL_INTERFACES_KNOWNATTRIBUTES_H
