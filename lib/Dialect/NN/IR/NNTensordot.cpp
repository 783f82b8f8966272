// tensordot: its type, its sharding rule with a factor for every dimension, and its gradient, which
// is made of tensordots.
#include "Build.h"

using namespace mlir;
using namespace shoal;
using namespace shoal::nn;

/// The `axes` dimensions at one end of a shape, or what is left of it without them.
static ArrayRef<int64_t> inner(ArrayRef<int64_t> shape, int64_t axes, bool atFront) {
  return atFront ? shape.take_front(axes) : shape.take_back(axes);
}
static ArrayRef<int64_t> outer(ArrayRef<int64_t> shape, int64_t axes, bool atFront) {
  return atFront ? shape.drop_front(axes) : shape.drop_back(axes);
}

ArrayRef<int64_t> TensordotOp::getInnerOfA() {
  return inner(getA().getType().getShape(), getAxes(), getTransposeA());
}
ArrayRef<int64_t> TensordotOp::getOuterOfA() {
  return outer(getA().getType().getShape(), getAxes(), getTransposeA());
}
ArrayRef<int64_t> TensordotOp::getInnerOfB() {
  return inner(getB().getType().getShape(), getAxes(), !getTransposeB());
}
ArrayRef<int64_t> TensordotOp::getOuterOfB() {
  return outer(getB().getType().getShape(), getAxes(), !getTransposeB());
}

LogicalResult TensordotOp::inferReturnTypes(MLIRContext *, std::optional<Location> loc,
                                            ValueRange operands, DictionaryAttr attributes,
                                            OpaqueProperties properties, RegionRange regions,
                                            SmallVectorImpl<Type> &types) {
  Adaptor adaptor(operands, attributes, properties, regions);
  auto a = cast<RankedTensorType>(adaptor.getA().getType()),
       b = cast<RankedTensorType>(adaptor.getB().getType());
  if (a.getElementType() != b.getElementType())
    return emitOptionalError(loc, "element types must agree, got: ", a, " and ", b);
  int64_t axes = adaptor.getAxes(), most = std::min(a.getRank(), b.getRank());
  if (axes < 0 || axes > most)
    return emitOptionalError(loc, "axes must be in [0, ", most, "], got: ", axes);
  bool ta = adaptor.getTransposeA(), tb = adaptor.getTransposeB();
  ArrayRef<int64_t> inA = inner(a.getShape(), axes, ta), inB = inner(b.getShape(), axes, !tb);
  if (inA != inB)
    return emitOptionalError(loc, "inner dimensions must be equal, got: ",
                             RankedTensorType::get(inA, a.getElementType()), " in a and ",
                             RankedTensorType::get(inB, a.getElementType()), " in b");
  SmallVector<int64_t> shape(outer(a.getShape(), axes, ta));
  llvm::append_range(shape, outer(b.getShape(), axes, !tb));
  types.push_back(RankedTensorType::get(shape, a.getElementType()));
  return success();
}

bool TensordotOp::isCompatibleReturnTypes(TypeRange inferred, TypeRange actual) {
  auto wanted = cast<RankedTensorType>(inferred[0]), type = dyn_cast<RankedTensorType>(actual[0]);
  return type && type.getShape() == wanted.getShape() && isProductType(wanted.getElementType(), type.getElementType());
}

ShardingRule TensordotOp::getShardingRule() {
  ShardingRule rule;
  TensorFactors m = addFactors(rule, getOuterOfA()), n = addFactors(rule, getOuterOfB());
  TensorFactors k = addFactors(rule, getInnerOfA(), FactorKind::Reduction);
  auto join = [](const TensorFactors &first, const TensorFactors &second) {
    TensorFactors joined = first;
    llvm::append_range(joined, second);
    return joined;
  };
  rule.operands = {getTransposeA() ? join(k, m) : join(m, k),
                   getTransposeB() ? join(n, k) : join(k, n)};
  rule.results = {join(m, n)};
  rule.linear = {{0}, {1}};
  return rule;
}

/// With c = a b, as of matrices: da = dc b^T and db = a^T dc, or the transposes of both where an
/// operand is stored so.
FailureOr<SmallVector<Value>> TensordotOp::buildVJP(OpBuilder &builder, ArrayRef<Value> cotangents,
                                                    const llvm::BitVector &needed) {
  SmallVector<Value> result(2);
  Value ct = cotangents[0];
  TypedValue<RankedTensorType> a = getA(), b = getB();
  if (!ct)
    return result;
  bool ta = getTransposeA(), tb = getTransposeB();
  // A product that keeps the digits of its sums is differentiated like one that does not.
  ct = Build{builder, getLoc()}.cast(ct, a.getType().getElementType());
  auto product = [&](Value x, bool transposeX, Value y, bool transposeY, size_t axes) -> Value {
    return builder.create<TensordotOp>(getLoc(), x, y, axes, transposeX, transposeY);
  };
  size_t rows = getOuterOfA().size(), columns = getOuterOfB().size();
  if (needed.test(0))
    result[0] = ta ? product(b, tb, ct, true, columns) : product(ct, false, b, !tb, columns);
  if (needed.test(1))
    result[1] = tb ? product(ct, true, a, ta, rows) : product(a, !ta, ct, false, rows);
  return result;
}
