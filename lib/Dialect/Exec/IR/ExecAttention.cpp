// The rows of attention and of its gradient: what they are given, and their numbers.
#include "shoal/Dialect/Exec/IR/Attention.h"

#include "shoal/Support/Elements.h"

using namespace mlir;

namespace shoal::exec {

namespace {
/// A buffer, the part it plays, and what its elements must be.
struct Part {
  StringRef name;
  Value buffer;
  Type element;
};
} // namespace

/// The type that is computed in where a buffer has it, else the one that q has.
template <typename Row> static Type typeOrWide(Row row, Value buffer) {
  Type element = row.getQ().getType().getElementType(), wide = computeType(element);
  return cast<BufferType>(buffer.getType()).getElementType() == wide ? wide : element;
}

/// `ofQueries`, `ofKeys`, `perQuery`: the other buffers with the shape of q, the shape of k, and one number per query.
template <typename Row>
static LogicalResult verifyAttention(Row row, bool backward, ArrayRef<Part> ofQueries, ArrayRef<Part> ofKeys,
                                     Value perQuery) {
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
  auto expect = [&](Part part, ArrayRef<int64_t> shape) -> LogicalResult {
    auto wanted = BufferType::get(row.getContext(), shape, part.element, Memory::device);
    if (part.buffer.getType() == wanted)
      return success();
    return row.emitOpError() << part.name << " must be " << wanted
                             << ", got: " << part.buffer.getType();
  };
  for (Part part : ofQueries)
    if (failed(expect(part, queries)))
      return failure();
  for (Part part : ofKeys)
    if (failed(expect(part, keys)))
      return failure();
  if (failed(expect({"lse", perQuery, computeType(element)}, queries.drop_back())))
    return failure();
  auto expectPair = [&](OperandRange pair, StringRef what, ArrayRef<int64_t> ofQueries,
                        ArrayRef<int64_t> ofKeys) -> LogicalResult {
    if (pair.empty())
      return success();
    if (pair.size() != 2)
      return row.emitOpError() << "takes the " << what << " of queries and of keys, or none, got: " << pair.size();
    Type i64 = IntegerType::get(row.getContext(), 64);
    std::string queryName = ("query " + what).str(), keyName = ("key " + what).str();
    return success(succeeded(expect({queryName, pair[0], i64}, ofQueries)) &&
                   succeeded(expect({keyName, pair[1], i64}, ofKeys)));
  };
  if (failed(expectPair(row.getSegments(), "segments", queries.take_front(2), keys.take_front(2))) ||
      failed(expectPair(row.getPositions(), "positions", queries[1], keys[1])))
    return failure();
  if ((row.getCausal() || row.getWindow()) && row.getPositions().empty() && queries[1] != keys[1])
    return row.emitOpError() << "a causal mask or a window needs as many queries as keys, or positions, got: "
                             << queries[1] << " and " << keys[1];
  if (row.getWindow() && int64_t(*row.getWindow()) < 1)
    return row.emitOpError() << "window must be at least 1, got: " << int64_t(*row.getWindow());
  if (!row.getScale().isFinite())
    return row.emitOpError() << "scale must be finite, got: " << row.getScale().convertToDouble();
  rt::AttentionShape shape = getAttentionShape(row);
  int64_t needed = int64_t(rt::attentionWorkspace(shape, backward) * rt::elementBytes(rt::attentionComputeType(shape)));
  if (row.getWorkspace().getType().getNumBytes() < needed)
    return row.emitOpError() << "workspace must have " << needed
                             << " bytes, got: " << row.getWorkspace().getType();
  return success();
}

// Forward

LogicalResult AttentionOp::verify() {
  Type element = getQ().getType().getElementType();
  return verifyAttention(*this, /*backward=*/false, {{"o", getO(), typeOrWide(*this, getO())}},
                         {{"v", getV(), element}}, getLse());
}
void AttentionOp::getReads(SmallVectorImpl<Value> &buffers) {
  buffers.append({getQ(), getK(), getV()});
  llvm::append_range(buffers, getSegments());
  llvm::append_range(buffers, getPositions());
}
void AttentionOp::getWrites(SmallVectorImpl<Value> &buffers) {
  buffers.append({getO(), getLse(), getWorkspace()});
}
bool AttentionOp::mayWorkInPlace(Value, Value) { return false; }
rt::LibraryFunction AttentionOp::getFunction() { return rt::LibraryFunction::Attention; }
void AttentionOp::getParams(SmallVectorImpl<int64_t> &params) {
  llvm::append_range(params, rt::attentionParams(getAttentionShape(*this)));
}

// Backward

LogicalResult AttentionGradOp::verify() {
  Type element = getQ().getType().getElementType(), o = typeOrWide(*this, getO()), grads = typeOrWide(*this, getDq());
  return verifyAttention(*this, /*backward=*/true,
                         {{"cotangent", getCotangent(), o}, {"o", getO(), o}, {"dq", getDq(), grads}},
                         {{"v", getV(), element}, {"dk", getDk(), grads}, {"dv", getDv(), grads}}, getLse());
}
void AttentionGradOp::getReads(SmallVectorImpl<Value> &buffers) {
  buffers.append({getCotangent(), getQ(), getK(), getV(), getO(), getLse()});
  llvm::append_range(buffers, getSegments());
  llvm::append_range(buffers, getPositions());
}
void AttentionGradOp::getWrites(SmallVectorImpl<Value> &buffers) {
  buffers.append({getDq(), getDk(), getDv(), getWorkspace()});
}
bool AttentionGradOp::mayWorkInPlace(Value, Value) { return false; }
rt::LibraryFunction AttentionGradOp::getFunction() { return rt::LibraryFunction::AttentionGrad; }
void AttentionGradOp::getParams(SmallVectorImpl<int64_t> &params) {
  llvm::append_range(params, rt::attentionParams(getAttentionShape(*this)));
}

} // namespace shoal::exec
