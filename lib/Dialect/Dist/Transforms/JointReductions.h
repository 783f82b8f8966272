// Sums over axes of two partition runs, as of gradients over the tokens of a row and over the rows of a batch, are
// reduced over both at once. The first run reduces each gradient alone; the buckets that are then packed for the second
// take these reductions behind them, where they meet those of the second.
#ifndef SHOAL_LIB_DIALECT_DIST_TRANSFORMS_JOINTREDUCTIONS_H
#define SHOAL_LIB_DIALECT_DIST_TRANSFORMS_JOINTREDUCTIONS_H

#include "CollectiveRewrites.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace shoal::dist {

/// The reduction over `joint` axes that makes a gradient, or that every micro-batch makes of its part; null for none.
AllReduceOp findJointReduction(mlir::Value gradient, llvm::ArrayRef<mlir::StringAttr> joint);

/// Before packing over `axes`: what is partial over these is reduced over `joint` axes as soon as it is made, so that
/// buckets are cut in the order in which gradients are ready; gradients that every micro-batch reduces, in its region.
void reduceWhereMade(mlir::func::FuncOp func, MeshAttr mesh, llvm::ArrayRef<mlir::StringAttr> axes,
                     llvm::ArrayRef<mlir::StringAttr> joint);

/// A sum over `joint` axes of which padding becomes 0 is the sum of what has no padding.
bool reduceBehindMask(mlir::Operation *op, llvm::ArrayRef<mlir::StringAttr> joint, Retired &retired);

/// A bucket of sums over `joint` axes is the sum of buckets.
bool reduceBehindPack(mlir::Operation *op, llvm::ArrayRef<mlir::StringAttr> joint, Retired &retired);

/// A reduction of a sum over `joint` axes is one over all axes, or where it scatters, comes first: then what is summed
/// over the joint axes is a shard.
bool reduceJointly(mlir::Operation *op, llvm::ArrayRef<mlir::StringAttr> joint, Retired &retired);

} // namespace shoal::dist

#endif // SHOAL_LIB_DIALECT_DIST_TRANSFORMS_JOINTREDUCTIONS_H
