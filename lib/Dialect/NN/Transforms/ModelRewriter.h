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

/// The stage of the pipeline that an op opens (`pipe.stage`) opens with the op behind it, since this one will be erased.
void handOnStage(mlir::Operation *op);

/// The stages that values of a model belong to (`pipe.stage`), of what is there when the table is made.
class StageTable {
public:
  explicit StageTable(mlir::func::FuncOp model);
  /// Of the op that makes the value. What is in no stage, as arguments and copies of parameters, belongs to that of its
  /// first reader that is in one. Null without stages.
  mlir::Attribute find(mlir::Value value) const;

private:
  struct Reader {
    mlir::Operation *op = nullptr;
    int64_t number = 0; // the greater, the earlier it stands
  };
  llvm::DenseMap<mlir::Value, Reader> first; // that are in a stage, also through ops that are in none
};

} // namespace shoal::nn

#endif // SHOAL_LIB_DIALECT_NN_TRANSFORMS_MODELREWRITER_H
