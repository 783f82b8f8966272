// The last two steps of lowering, on a program whose rows stand: streams wait for each other,
// buffers get offsets.
#ifndef SHOAL_LIB_DIALECT_EXEC_TRANSFORMS_LAYOUT_H
#define SHOAL_LIB_DIALECT_EXEC_TRANSFORMS_LAYOUT_H

#include "shoal/Dialect/Exec/IR/Exec.h"

namespace shoal::exec {

/// Adds the tokens and waits that order rows of different streams which touch the same bytes of a
/// buffer, and makes stream 0 wait for all others at the end.
void insertWaits(ProgramOp program);

/// Gives every argument and buffer its offset; sets the program's arena size and bytes by class.
void assignOffsets(ProgramOp program);

} // namespace shoal::exec

#endif // SHOAL_LIB_DIALECT_EXEC_TRANSFORMS_LAYOUT_H
