// The last two steps of lowering, on a program whose rows stand: streams wait for each other,
// buffers get offsets.
#ifndef SHOAL_LIB_DIALECT_EXEC_TRANSFORMS_LAYOUT_H
#define SHOAL_LIB_DIALECT_EXEC_TRANSFORMS_LAYOUT_H

#include "shoal/Dialect/Exec/IR/Exec.h"

#include "llvm/ADT/DenseSet.h"

namespace shoal::exec {

/// Adds the tokens and waits that order rows of different streams which touch the same bytes of a
/// buffer, and makes stream 0 wait for all others at the end. A row of `paced` waits for what stream 0 does before it,
/// so that what it fetches takes no memory earlier.
void insertWaits(ProgramOp program, const llvm::DenseSet<mlir::Operation *> &paced);

/// Gives every argument and buffer its offset; sets the sizes of the program's arenas, and bytes by class.
void assignOffsets(ProgramOp program);

} // namespace shoal::exec

#endif // SHOAL_LIB_DIALECT_EXEC_TRANSFORMS_LAYOUT_H
