// Whether the communication of a rank program comes to an end on every mesh position.
#ifndef SHOAL_LIB_DIALECT_EXEC_TRANSFORMS_RENDEZVOUS_H
#define SHOAL_LIB_DIALECT_EXEC_TRANSFORMS_RENDEZVOUS_H

#include "shoal/Dialect/Exec/IR/Exec.h"

namespace shoal::exec {

/// Fails when a message has no other end, when the two ends differ in size, or when rows of
/// different positions wait for each other. A send ends when its receive has started, as in MPI's
/// synchronous mode and NCCL; a program that needs buffering is refused.
mlir::LogicalResult checkRendezvous(ProgramOp program);

} // namespace shoal::exec

#endif // SHOAL_LIB_DIALECT_EXEC_TRANSFORMS_RENDEZVOUS_H
