// The shape of an attention call, for the runtime's formulas: of a row's buffers, or of the tensors
// that it is made from.
#ifndef SHOAL_DIALECT_EXEC_IR_ATTENTION_H
#define SHOAL_DIALECT_EXEC_IR_ATTENTION_H

#include "shoal-rt/attention.h"
#include "shoal/Dialect/Exec/IR/Exec.h"

namespace shoal::exec {

/// `queries` and `keys`: the shapes of q and k; `element` f32 or f64.
rt::AttentionShape getAttentionShape(llvm::ArrayRef<int64_t> queries, llvm::ArrayRef<int64_t> keys,
                                     mlir::Type element, bool causal,
                                     std::optional<uint64_t> window, bool segments,
                                     const llvm::APFloat &scale);

} // namespace shoal::exec

#endif // SHOAL_DIALECT_EXEC_IR_ATTENTION_H
