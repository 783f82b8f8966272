// Rules of dist-verify-local with files of their own, or with other readers: what it asks of a single op is asked by
// passes that read local programs only.
#ifndef SHOAL_DIALECT_DIST_TRANSFORMS_VERIFYLOCAL_H
#define SHOAL_DIALECT_DIST_TRANSFORMS_VERIFYLOCAL_H

#include "shoal/Dialect/Dist/IR/Dist.h"

#include "mlir/Interfaces/FunctionInterfaces.h"

namespace shoal::dist {

/// Fails with an error when something of the op is still to be partitioned: it belongs to a global program (L1).
llvm::LogicalResult verifyNothingLeft(mlir::Operation *op);

/// Fails where a parameter that lies flat `per_use` is kept from one part of the step (forward, backward, update) to
/// another, or whole over micro-batches. The function is one straight line; see dist-fold-control-flow.
///
/// What is kept is a value of one parameter: computed of elements of one tensor, of constants and the position alone.
/// So it may have another type, shape, order or bucket, be scaled, a part, another device's, taken by some positions
/// only, or yielded by a region. One of more elements than the device's share is whole, and so is the parameter from
/// the op that puts it together to the last that reads it, or reads what is such a value of it. Those of no more
/// elements may be kept, as long as they are together no more than the share, for a tensor and for the bucket that it
/// lies in. The device's own shard and what is made of that alone do not count, nor do views count twice.
///
/// Not a kept parameter is a value of several (w1 + w2) or of a parameter and data (w * x, a mask drawn for the step):
/// it is the model's, as an activation is, and dist-pack keeps it from forward to backward, too. What arrives by
/// dist.recv is not followed. What a function returns is copied where it is complete, and prolongs nothing.
llvm::LogicalResult verifyPerUse(mlir::FunctionOpInterface func, MeshAttr mesh);

} // namespace shoal::dist

#endif // SHOAL_DIALECT_DIST_TRANSFORMS_VERIFYLOCAL_H
