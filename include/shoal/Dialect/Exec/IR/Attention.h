// The shape of an attention call, for the runtime's formulas: of a row's buffers, or of the tensors
// that it is made from.
#ifndef SHOAL_DIALECT_EXEC_IR_ATTENTION_H
#define SHOAL_DIALECT_EXEC_IR_ATTENTION_H

#include "shoal-rt/attention.h"
#include "shoal/Dialect/Exec/IR/Exec.h"

namespace shoal::exec {

/// Of an op of attention or of its gradient, on tensors or on buffers.
template <typename Op> rt::AttentionShape getAttentionShape(Op op) {
  auto q = op.getQ().getType();
  llvm::ArrayRef<int64_t> queries = q.getShape(), keys = op.getK().getType().getShape();
  auto isWide = [&](auto value) { return value.getType().getElementType() != q.getElementType(); };
  rt::AttentionShape shape{queries[0],
                           queries[1],
                           keys[1],
                           queries[2],
                           queries[3],
                           queries[4],
                           op.getCausal(),
                           int64_t(op.getWindow().value_or(0)),
                           !op.getSegments().empty(),
                           op.getScale().convertToDouble(),
                           getDType(q.getElementType()),
                           !op.getPositions().empty(),
                           isWide(op.getO())};
  if constexpr (requires { op.getDq(); })
    shape.wideGrads = isWide(op.getDq());
  return shape;
}

} // namespace shoal::exec

#endif // SHOAL_DIALECT_EXEC_IR_ATTENTION_H
