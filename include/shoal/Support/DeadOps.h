// Erasing what nothing uses, for passes that leave such ops behind.
#ifndef SHOAL_SUPPORT_DEADOPS_H
#define SHOAL_SUPPORT_DEADOPS_H

#include "mlir/IR/Block.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace shoal {

/// Erases, last to first, the ops of a block that have no effect and whose results nothing uses. `beforeErasing` sees
/// each when what stands behind it is used.
inline void eraseDeadOps(mlir::Block &block, llvm::function_ref<void(mlir::Operation *)> beforeErasing = {}) {
  for (mlir::Operation &op : llvm::make_early_inc_range(llvm::reverse(block)))
    if (mlir::isOpTriviallyDead(&op)) {
      if (beforeErasing)
        beforeErasing(&op);
      op.erase();
    }
}

} // namespace shoal

#endif // SHOAL_SUPPORT_DEADOPS_H
