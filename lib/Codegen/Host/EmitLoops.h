// A kernel plan as a function of loops over memrefs.
#ifndef SHOAL_LIB_CODEGEN_HOST_EMITLOOPS_H
#define SHOAL_LIB_CODEGEN_HOST_EMITLOOPS_H

#include "KernelPlan.h"

namespace shoal::codegen {

/// Temporaries up to this many bytes live on the stack, others in the workspace.
inline constexpr int64_t kMaxStackBytes = 65536;

/// Replaces the kernel by its bufferized form, under the same name.
LogicalResult emitLoops(KernelPlan &plan);

} // namespace shoal::codegen

#endif // SHOAL_LIB_CODEGEN_HOST_EMITLOOPS_H
