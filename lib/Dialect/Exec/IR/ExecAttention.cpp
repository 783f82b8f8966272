// The rows of attention and of its gradient: what they are given, and their numbers.
#include "shoal/Dialect/Exec/IR/Attention.h"

#include "shoal/Support/Elements.h"

using namespace mlir;

namespace shoal::exec {

rt::AttentionShape getAttentionShape(ArrayRef<int64_t> queries, ArrayRef<int64_t> keys,
                                     Type element, bool causal, std::optional<uint64_t> window,
                                     bool segments, const APFloat &scale) {
  return {queries[0],       queries[1],
          keys[1],          queries[2],
          queries[3],       queries[4],
          causal,           window ? int64_t(*window) : 0,
          segments,         scale.convertToDouble(),
          getDType(element)};
}

template <typename Row> static rt::AttentionShape getShape(Row row) {
  BufferType q = row.getQ().getType(), k = row.getK().getType();
  return getAttentionShape(q.getShape(), k.getShape(), q.getElementType(), row.getCausal(),
                           row.getWindow(), !row.getSegments().empty(), row.getScale());
}

namespace {
/// A buffer and the part it plays.
struct Part {
  StringRef name;
  Value buffer;
};
} // namespace

/// `ofQueries`, `ofKeys`, `perQuery`: the other buffers with the type of q, the type of k, and one
/// number per query.
template <typename Row>
static LogicalResult verifyAttention(Row row, bool backward, ArrayRef<Part> ofQueries,
                                     ArrayRef<Part> ofKeys, Part perQuery) {
  BufferType q = row.getQ().getType(), k = row.getK().getType();
  Type element = q.getElementType();
  ArrayRef<int64_t> queries = q.getShape(), keys = k.getShape();
  if (queries.size() != 5 || keys.size() != 4 || queries[0] != keys[0] || queries[2] != keys[2] ||
      queries[4] != keys[3] || llvm::is_contained(queries, 0) || llvm::is_contained(keys, 0))
    return row.emitOpError()
           << "takes queries of [batch, sequence, kv heads, groups, head size] and keys "
              "of [batch, sequence, kv heads, head size], got: "
           << q << " and " << k;
  if (!isa<Float32Type, Float64Type, BFloat16Type>(element))
    return row.emitOpError() << "must be f32, f64 or bf16, got: " << element;
  auto expect = [&](Part part, ArrayRef<int64_t> shape, Type type) -> LogicalResult {
    auto wanted = BufferType::get(row.getContext(), shape, type, Memory::device);
    if (part.buffer.getType() == wanted)
      return success();
    return row.emitOpError() << part.name << " must be " << wanted
                             << ", got: " << part.buffer.getType();
  };
  for (Part part : ofQueries)
    if (failed(expect(part, queries, element)))
      return failure();
  for (Part part : ofKeys)
    if (failed(expect(part, keys, element)))
      return failure();
  if (failed(expect(perQuery, queries.drop_back(), computeType(element))))
    return failure();
  if (!row.getSegments().empty()) {
    if (row.getSegments().size() != 2)
      return row.emitOpError() << "takes the segments of queries and of keys, or none, got: "
                               << row.getSegments().size();
    Type i64 = IntegerType::get(row.getContext(), 64);
    if (failed(expect({"query segments", row.getSegments()[0]}, queries.take_front(2), i64)) ||
        failed(expect({"key segments", row.getSegments()[1]}, keys.take_front(2), i64)))
      return failure();
  }
  if ((row.getCausal() || row.getWindow()) && queries[1] != keys[1])
    return row.emitOpError() << "a causal mask or a window needs as many queries as keys, got: "
                             << queries[1] << " and " << keys[1];
  if (row.getWindow() && int64_t(*row.getWindow()) < 1)
    return row.emitOpError() << "window must be at least 1, got: " << int64_t(*row.getWindow());
  if (!row.getScale().isFinite())
    return row.emitOpError() << "scale must be finite, got: " << row.getScale().convertToDouble();
  rt::AttentionShape shape = getShape(row);
  int64_t needed = int64_t(rt::attentionWorkspace(shape, backward) * rt::elementBytes(rt::attentionComputeType(shape)));
  if (row.getWorkspace().getType().getNumBytes() < needed)
    return row.emitOpError() << "workspace must have " << needed
                             << " bytes, got: " << row.getWorkspace().getType();
  return success();
}

// Forward

LogicalResult AttentionOp::verify() {
  return verifyAttention(*this, /*backward=*/false, {{"o", getO()}}, {{"v", getV()}},
                         {"lse", getLse()});
}
void AttentionOp::getReads(SmallVectorImpl<Value> &buffers) {
  buffers.append({getQ(), getK(), getV()});
  llvm::append_range(buffers, getSegments());
}
void AttentionOp::getWrites(SmallVectorImpl<Value> &buffers) {
  buffers.append({getO(), getLse(), getWorkspace()});
}
bool AttentionOp::mayWorkInPlace(Value, Value) { return false; }
rt::LibraryFunction AttentionOp::getFunction() { return rt::LibraryFunction::Attention; }
void AttentionOp::getParams(SmallVectorImpl<int64_t> &params) {
  llvm::append_range(params, rt::attentionParams(getShape(*this)));
}

// Backward

LogicalResult AttentionGradOp::verify() {
  return verifyAttention(*this, /*backward=*/true,
                         {{"cotangent", getCotangent()}, {"o", getO()}, {"dq", getDq()}},
                         {{"v", getV()}, {"dk", getDk()}, {"dv", getDv()}}, {"lse", getLse()});
}
void AttentionGradOp::getReads(SmallVectorImpl<Value> &buffers) {
  buffers.append({getCotangent(), getQ(), getK(), getV(), getO(), getLse()});
  llvm::append_range(buffers, getSegments());
}
void AttentionGradOp::getWrites(SmallVectorImpl<Value> &buffers) {
  buffers.append({getDq(), getDk(), getDv(), getWorkspace()});
}
bool AttentionGradOp::mayWorkInPlace(Value, Value) { return false; }
rt::LibraryFunction AttentionGradOp::getFunction() { return rt::LibraryFunction::AttentionGrad; }
void AttentionGradOp::getParams(SmallVectorImpl<int64_t> &params) {
  llvm::append_range(params, rt::attentionParams(getShape(*this)));
}

} // namespace shoal::exec
