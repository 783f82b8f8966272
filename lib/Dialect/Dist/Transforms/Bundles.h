// Updates that are done alike. From each optimizer update up to the gradient, and from there down to the sum of
// squares, runs a chain of ops; equal chains of many parameters are one chain on a bucket. As a vectorizer bundles
// scalar code that starts at stores, updates are where it starts here.
#ifndef SHOAL_LIB_DIALECT_DIST_TRANSFORMS_BUNDLES_H
#define SHOAL_LIB_DIALECT_DIST_TRANSFORMS_BUNDLES_H

#include "shoal/Dialect/Dist/IR/Dist.h"
#include "shoal/Dialect/Dist/Transforms/StepParts.h"
#include "shoal/Dialect/NN/IR/Roles.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include <vector>

namespace shoal::dist {

/// One parameter, how it is updated, and what else of it can be done for many at once.
struct UpdateChain {
  nn::OptimizerUpdateOpInterface update;
  mlir::BlockArgument param;
  llvm::SmallVector<mlir::BlockArgument> states;
  llvm::StringRef name;
  /// As the backward pass makes it, partial over the devices: the result `nn.grad` where there is one.
  mlir::Value gradient;
  /// What stands between it and the update, in order: clipping, casts.
  llvm::SmallVector<mlir::Operation *> steps;
  /// Of the result that it is; null where the step does not return it.
  mlir::DictionaryAttr gradientAttrs;
  /// From the gradient to the sum of its squares, null standing for the reduction over all elements; empty without.
  /// `masks` are those of padding on the way: in a bucket the gradient is masked instead.
  llvm::SmallVector<mlir::Operation *> squares;
  llvm::SmallVector<nn::MaskOp> masks;
  mlir::Value sumOfSquares;
  /// Through which alone the step reads the parameter, if it does so.
  llvm::SmallVector<mlir::Operation *> casts;
  /// What brings axes to it where nothing else is recorded.
  CauseAttr handCause;
  /// Over which axes each lies sharded by element; null where it is whole.
  FlatAttr flatParam, flatGradient;
  llvm::SmallVector<FlatAttr> flatStates;
  /// The layer that uses the parameter, null where there are several or none; whether backward reads it.
  mlir::StringAttr layer;
  bool isReadBackward = false;

  int64_t size() const { return llvm::cast<mlir::RankedTensorType>(param.getType()).getNumElements(); }
  llvm::ArrayRef<mlir::StringAttr> getFlatAxes() const;
};

/// Chains that differ in their tensors only, in the order in which their gradients are ready.
using Bundle = std::vector<UpdateChain>;

/// Whether elements lie sharded over axes of those, and not on one device.
bool isFlatOver(FlatAttr flat, MeshAttr mesh, llvm::ArrayRef<mlir::StringAttr> axes);

/// The bundles of a step, in the order in which their first gradients are ready. Of a parameter whose update
/// `dist.flat` wants in a bucket over the axes and cannot be, a remark says why, and its name goes into `whole`. Alike
/// are gradients that have been reduced over the same of the `joint` axes.
std::vector<Bundle> findBundles(mlir::func::FuncOp func, MeshAttr mesh, llvm::ArrayRef<mlir::StringAttr> axes,
                                llvm::ArrayRef<mlir::StringAttr> joint, const StepParts &parts,
                                llvm::DenseSet<llvm::StringRef> &whole);

/// The sum that a summand is part of, and of nothing else.
mlir::Value findTotal(mlir::Value summand);

/// Whether the gradient of one is ready before that of the other.
bool isReadyBefore(const UpdateChain &a, const UpdateChain &b);

} // namespace shoal::dist

#endif // SHOAL_LIB_DIALECT_DIST_TRANSFORMS_BUNDLES_H
