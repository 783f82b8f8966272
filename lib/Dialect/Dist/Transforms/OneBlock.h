// The shape of a function that most passes take: one block.
#ifndef SHOAL_LIB_DIALECT_DIST_TRANSFORMS_ONEBLOCK_H
#define SHOAL_LIB_DIALECT_DIST_TRANSFORMS_ONEBLOCK_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace shoal::dist {

/// Emits an error unless the function has one block, as it must to be `changed` ("sharded").
inline llvm::LogicalResult requireOneBlock(mlir::FunctionOpInterface func, llvm::StringRef changed) {
  mlir::Region &body = func.getFunctionBody();
  if (body.hasOneBlock())
    return mlir::success();
  return func.emitOpError("must have one block to be ") << changed << ", got: " << llvm::range_size(body);
}

/// The same, unless it ends in func.return, too.
inline llvm::LogicalResult requireReturningBlock(mlir::FunctionOpInterface func, llvm::StringRef changed) {
  mlir::Region &body = func.getFunctionBody();
  if (body.hasOneBlock() && llvm::isa<mlir::func::ReturnOp>(body.front().getTerminator()))
    return mlir::success();
  return func.emitOpError("must have one block that ends in func.return to be ")
         << changed << ", got: " << llvm::range_size(body);
}

} // namespace shoal::dist

#endif // SHOAL_LIB_DIALECT_DIST_TRANSFORMS_ONEBLOCK_H
