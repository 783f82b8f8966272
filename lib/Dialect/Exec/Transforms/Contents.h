// What the bytes of a rank program hold at each mesh position.
#ifndef SHOAL_LIB_DIALECT_EXEC_TRANSFORMS_CONTENTS_H
#define SHOAL_LIB_DIALECT_EXEC_TRANSFORMS_CONTENTS_H

#include "shoal/Dialect/Exec/IR/Exec.h"

#include "mlir/IR/SymbolTable.h"

namespace shoal::exec {

/// Part of `exec-verify`: no row reads what nothing has written, and no position sends, reduces, returns
/// or keeps what was made of a message that it did not receive.
mlir::LogicalResult checkContents(ProgramOp program, const mlir::SymbolTable &kernels);

} // namespace shoal::exec

#endif // SHOAL_LIB_DIALECT_EXEC_TRANSFORMS_CONTENTS_H
