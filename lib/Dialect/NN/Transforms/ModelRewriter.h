// What the passes on models share: finding the models of a module, and their ends.
#ifndef SHOAL_LIB_DIALECT_NN_TRANSFORMS_MODELREWRITER_H
#define SHOAL_LIB_DIALECT_NN_TRANSFORMS_MODELREWRITER_H

#include "shoal/Dialect/NN/IR/Roles.h"
#include "shoal/Interfaces/Origin.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"

namespace shoal::nn {

/// The functions of the module that are models, checked to have one block that ends in a return.
mlir::FailureOr<llvm::SmallVector<mlir::func::FuncOp>> getModels(mlir::ModuleOp module);

mlir::func::ReturnOp getReturn(mlir::func::FuncOp model);

/// The stage that a value belongs to (`pipe.stage`): of the op that makes it. What is in no stage, as arguments and
/// copies of parameters, belongs to that of its first reader that is in one. Null without stages.
mlir::Attribute findStage(mlir::Value value);

} // namespace shoal::nn

#endif // SHOAL_LIB_DIALECT_NN_TRANSFORMS_MODELREWRITER_H
