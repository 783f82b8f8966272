// What an op that is a library call builds its rows from (LoweringOpInterface::lowerToRows): the
// buffers that its operands and results were given.
#ifndef SHOAL_DIALECT_EXEC_TRANSFORMS_ROWCONTEXT_H
#define SHOAL_DIALECT_EXEC_TRANSFORMS_ROWCONTEXT_H

#include "mlir/IR/Builders.h"

namespace shoal::exec {

class RowContext {
public:
  virtual ~RowContext() = default;
  /// Stands at the end of the rank program.
  virtual mlir::OpBuilder &getBuilder() = 0;
  /// The buffer of an operand or result, in its own shape, at a multiple of its element size.
  virtual mlir::Value bufferOf(mlir::Value tensor) = 0;
  /// The elements from `start` on of an operand or result, in another shape.
  virtual mlir::Value rangeOf(mlir::Value tensor, int64_t start,
                              llvm::ArrayRef<int64_t> shape) = 0;
  /// Whether the op's result is added to what its buffer holds; asked of ops that can (`canAdd`).
  virtual bool adds() = 0;
  /// The op's scratch memory, at a multiple of 64 bytes; null when it asks for none.
  virtual mlir::Value getWorkspace() = 0;
};

} // namespace shoal::exec

#endif // SHOAL_DIALECT_EXEC_TRANSFORMS_ROWCONTEXT_H
