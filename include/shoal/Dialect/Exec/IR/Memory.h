// The memory space of exec.arg, as attributes of the ops: what lies in the host's memory is numbered behind the arena, which
// is the device's.
#ifndef SHOAL_DIALECT_EXEC_IR_MEMORY_H
#define SHOAL_DIALECT_EXEC_IR_MEMORY_H

#include "shoal/Dialect/Exec/IR/Exec.h"

namespace shoal::exec {

/// On exec.arg: "host". On exec.program: the bytes that its arguments take there, at offsets from the end of the arena on.
inline constexpr llvm::StringLiteral kMemoryAttr = "exec.memory", kHostBytesAttr = "exec.host_bytes";

inline bool liesOnHost(ArgOp argument) { return argument->hasAttr(kMemoryAttr); }
inline int64_t getHostBytes(ProgramOp program) {
  auto bytes = program->getAttrOfType<mlir::IntegerAttr>(kHostBytesAttr);
  return bytes ? bytes.getInt() : 0;
}

} // namespace shoal::exec

#endif // SHOAL_DIALECT_EXEC_IR_MEMORY_H
