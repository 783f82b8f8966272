// What sets messages of a pipeline apart: how they wait for each other, and who brings them.
#ifndef SHOAL_DIALECT_DIST_IR_MESSAGES_H
#define SHOAL_DIALECT_DIST_IR_MESSAGES_H

#include "llvm/ADT/StringRef.h"

namespace shoal::dist {

/// On dist.send and dist.recv, unit, of pipe-unroll: the message waits for what it carries and for those before it from
/// the same position to the same other one, and for nothing else that its position sends or receives (MPI_Isend,
/// MPI_Irecv). Without it a position has one message, or group of messages, after the other.
inline constexpr llvm::StringLiteral kAsyncAttr = "dist.async";

/// What a pipeline calls itself as the cause of messages and reductions between its stages (#dist.cause).
inline constexpr llvm::StringLiteral kPipelineStrategy = "the pipeline";

} // namespace shoal::dist

#endif // SHOAL_DIALECT_DIST_IR_MESSAGES_H
