// What blob and report share: a row's opcode and element types in the runtime's terms.
#ifndef SHOAL_LIB_CODEGEN_EMIT_ROWS_H
#define SHOAL_LIB_CODEGEN_EMIT_ROWS_H

#include "shoal-rt/program.h"
#include "shoal/Dialect/Exec/IR/Exec.h"

namespace shoal::codegen {

/// A module's rank program, and the evaluation that may stand beside a training program.
struct Programs {
  exec::ProgramOp step, evaluation; // no evaluation: null
};
/// An error when there is none or one too many.
mlir::FailureOr<Programs> findPrograms(mlir::ModuleOp module);

rt::Opcode opcodeOf(mlir::Operation *row);
rt::DType dtypeOf(mlir::Type elementType);

/// Per mesh position the mesh position of the other end of a permute, or kNone.
std::vector<uint32_t> permutePeers(exec::PermuteOp op, dist::MeshAttr mesh, bool sends);

} // namespace shoal::codegen

#endif // SHOAL_LIB_CODEGEN_EMIT_ROWS_H
