// What the passes on models share: finding the models of a module, and adding to their ops.
#ifndef SHOAL_LIB_DIALECT_NN_TRANSFORMS_MODELREWRITER_H
#define SHOAL_LIB_DIALECT_NN_TRANSFORMS_MODELREWRITER_H

#include "shoal/Dialect/NN/IR/Roles.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"

namespace shoal::nn {

/// The functions of the module that are models, checked to have one block that ends in a return.
mlir::FailureOr<llvm::SmallVector<mlir::func::FuncOp>> getModels(mlir::ModuleOp module);

mlir::func::ReturnOp getReturn(mlir::func::FuncOp model);

/// While it lives, ops made by the builder belong to the layer of `op` (`nn.layer`), if it has one.
/// Constants belong to none, so that equal ones become one.
class LayerScope : public mlir::OpBuilder::Listener {
public:
  LayerScope(mlir::OpBuilder &builder, mlir::Operation *op)
      : builder(builder), layer(op->getDiscardableAttr(NNDialect::kLayerAttr)) {
    builder.setListener(this);
  }
  ~LayerScope() override { builder.setListener(nullptr); }
  void notifyOperationInserted(mlir::Operation *op, mlir::OpBuilder::InsertPoint) override {
    if (layer && !mlir::isa<ConstantOp>(op))
      op->setDiscardableAttr(NNDialect::kLayerAttr, layer);
  }

private:
  mlir::OpBuilder &builder;
  mlir::Attribute layer;
};

} // namespace shoal::nn

#endif // SHOAL_LIB_DIALECT_NN_TRANSFORMS_MODELREWRITER_H
