// What an op belongs to: the attributes that ride along wherever a pass makes ops for another op.
//
// Who makes ops for one op gives them its origin, by copyOrigin or an OriginScope, whether they stand for it, lead to
// it or come from it. What several ops share has none, so that it is made once: constants, the tables of a rotation,
// offsets of a micro-batch, copies of parameters. `dist.why` is no origin: it explains annotations, and what is made
// has its own; the partitioner alone hands it on, to the parts of an op.
#ifndef SHOAL_INTERFACES_ORIGIN_H
#define SHOAL_INTERFACES_ORIGIN_H

#include "mlir/IR/Builders.h"
#include "mlir/IR/Operation.h"

namespace shoal {
namespace origin {

/// A name: the layer of the model, which is the unit of prefetch, recompute and reports. Gradients and updates are of
/// the layer whose ops they come from.
inline constexpr llvm::StringLiteral kLayer = "nn.layer";

/// Unit: the op computes for the backward pass what the forward pass has computed. What is made for it does so, too,
/// and is kept apart from what was made for the op that it repeats; but for single integers, which hold nothing.
inline constexpr llvm::StringLiteral kRecompute = "nn.recompute";

/// i64: the stage of the pipeline that computes the op. Gradients and updates are of the stage of their forward ops, so
/// that no stage lacks what its backward pass reads. Ops of two stages are never one: the attribute keeps them apart.
inline constexpr llvm::StringLiteral kStage = "pipe.stage";

/// A name: the action of the pipeline's schedule that the op is part of, "F3@5"; since `pipe-unroll`. Kernels are of one.
inline constexpr llvm::StringLiteral kScope = "exec.scope";

inline constexpr llvm::StringLiteral kAll[] = {kLayer, kRecompute, kStage, kScope};

} // namespace origin

/// `to` is made for `from`: it belongs to what that belongs to. What `from` has no part in stays as it is.
void copyOrigin(mlir::Operation *from, mlir::Operation *to);

/// While it lives, ops made by the builder have the origin of `op`, in another stage if one is given. Scopes nest, the
/// innermost holds.
class OriginScope : public mlir::OpBuilder::Listener {
public:
  OriginScope(mlir::OpBuilder &builder, mlir::Operation *op, mlir::Attribute stage = {})
      : builder(builder), outer(builder.getListener()), op(op), stage(stage) {
    builder.setListener(this);
  }
  ~OriginScope() override { builder.setListener(outer); }
  OriginScope(const OriginScope &) = delete;
  OriginScope &operator=(const OriginScope &) = delete;
  void notifyOperationInserted(mlir::Operation *made, mlir::OpBuilder::InsertPoint) override;

private:
  mlir::OpBuilder &builder;
  mlir::OpBuilder::Listener *outer;
  mlir::Operation *op;
  mlir::Attribute stage;
};

} // namespace shoal

#endif // SHOAL_INTERFACES_ORIGIN_H
