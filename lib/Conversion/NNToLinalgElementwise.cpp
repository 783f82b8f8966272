// Elementwise nn ops as one generic each; numpy broadcasting is in the indexing maps.
#include "ErrorFunction.h"
#include "LinalgBuilder.h"
#include "shoal/Dialect/NN/IR/NN.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

#include <numbers>

using namespace mlir;

namespace shoal::lowering {
namespace {

template <typename Op, Value (Scalars::*compute)(Value, Value)>
SmallVector<Value> binary(Op op, ValueRange operands, LinalgBuilder &linalg) {
  auto type = cast<RankedTensorType>(op.getType());
  return {linalg.elementwise(type.getShape(), type.getElementType(),
                             {linalg.broadcast(operands[0], type.getShape()),
                              linalg.broadcast(operands[1], type.getShape())},
                             [](Scalars &s, ValueRange x) { return (s.*compute)(x[0], x[1]); })};
}

template <typename Op, Value (*compute)(Scalars &, Value)>
SmallVector<Value> unary(Op op, ValueRange operands, LinalgBuilder &linalg) {
  auto type = cast<RankedTensorType>(op.getType());
  return {linalg.elementwise(type.getShape(), type.getElementType(), {linalg.same(operands[0])},
                             [](Scalars &s, ValueRange x) { return compute(s, x[0]); })};
}

Value neg(Scalars &s, Value x) { return s.b.create<arith::NegFOp>(s.loc, x); }
Value exp(Scalars &s, Value x) { return s.exp(x); }
Value log(Scalars &s, Value x) { return s.log(x); }
Value sqrt(Scalars &s, Value x) { return s.sqrt(x); }
Value rsqrt(Scalars &s, Value x) { return s.div(s.constant(x.getType(), 1), s.sqrt(x)); }
Value tanh(Scalars &s, Value x) { return s.b.create<math::TanhOp>(s.loc, x); }
Value relu(Scalars &s, Value x) { return s.max(x, s.constant(x.getType(), 0)); }
Value erf(Scalars &s, Value x) { return s.b.create<math::ErfOp>(s.loc, x); }
Value sin(Scalars &s, Value x) { return s.b.create<math::SinOp>(s.loc, x); }
Value cos(Scalars &s, Value x) { return s.b.create<math::CosOp>(s.loc, x); }
/// x sigmoid(z): with e = e^-|z|, which cannot overflow, x e / (1 + e) below zero and x / (1 + e) above.
Value timesSigmoid(Scalars &s, Value x, Value z) {
  auto c = [&](double value) { return s.constant(x.getType(), value); };
  FarExponential e = farExponential(s, neg(s, s.b.create<math::AbsFOp>(s.loc, z)));
  Value isBelow = s.b.create<arith::CmpFOp>(s.loc, arith::CmpFPredicate::OLT, z, c(0));
  Value numerator = s.select(isBelow, s.mul(e.timesUnit(s, x), e.value), x);
  return s.div(numerator, s.add(c(1), s.select(e.isFar, c(0), e.value)));
}
Value sigmoid(Scalars &s, Value x) { return timesSigmoid(s, s.constant(x.getType(), 1), x); }
Value silu(Scalars &s, Value x) { return timesSigmoid(s, x, x); }
/// (1 + tanh(u)) / 2 is sigmoid(2 u), which keeps its digits where it is small.
Value geluTanh(Scalars &s, Value x) {
  auto c = [&](double value) { return s.constant(x.getType(), value); };
  Value inner = s.add(c(1), s.mul(c(0.044715), s.mul(x, x)));
  Value twoU = s.mul(s.mul(c(2 * std::numbers::sqrt2 * std::numbers::inv_sqrtpi), x), inner);
  return timesSigmoid(s, x, twoU);
}
SmallVector<Value> gelu(nn::GeluOp op, ValueRange operands, LinalgBuilder &linalg) {
  return op.getForm() == nn::GeluForm::erf ? unary<nn::GeluOp, timesNormalDistribution>(op, operands, linalg)
                                           : unary<nn::GeluOp, geluTanh>(op, operands, linalg);
}

arith::CmpFPredicate floatPredicate(nn::Predicate predicate) {
  switch (predicate) {
  case nn::Predicate::eq:
    return arith::CmpFPredicate::OEQ;
  case nn::Predicate::ne:
    return arith::CmpFPredicate::UNE;
  case nn::Predicate::lt:
    return arith::CmpFPredicate::OLT;
  case nn::Predicate::le:
    return arith::CmpFPredicate::OLE;
  case nn::Predicate::gt:
    return arith::CmpFPredicate::OGT;
  case nn::Predicate::ge:
    return arith::CmpFPredicate::OGE;
  }
  llvm_unreachable("all predicates are listed");
}

arith::CmpIPredicate integerPredicate(nn::Predicate predicate) {
  switch (predicate) {
  case nn::Predicate::eq:
    return arith::CmpIPredicate::eq;
  case nn::Predicate::ne:
    return arith::CmpIPredicate::ne;
  case nn::Predicate::lt:
    return arith::CmpIPredicate::slt;
  case nn::Predicate::le:
    return arith::CmpIPredicate::sle;
  case nn::Predicate::gt:
    return arith::CmpIPredicate::sgt;
  case nn::Predicate::ge:
    return arith::CmpIPredicate::sge;
  }
  llvm_unreachable("all predicates are listed");
}

SmallVector<Value> compare(nn::CompareOp op, ValueRange operands, LinalgBuilder &linalg) {
  auto type = cast<RankedTensorType>(op.getType());
  ArrayRef<int64_t> shape = type.getShape();
  nn::Predicate predicate = op.getPredicate();
  return {linalg.elementwise(
      shape, type.getElementType(),
      {linalg.broadcast(operands[0], shape), linalg.broadcast(operands[1], shape)},
      [&](Scalars &s, ValueRange x) -> Value {
        if (isa<FloatType>(x[0].getType()))
          return s.b.create<arith::CmpFOp>(s.loc, floatPredicate(predicate), x[0], x[1]);
        return s.b.create<arith::CmpIOp>(s.loc, integerPredicate(predicate), x[0], x[1]);
      })};
}

SmallVector<Value> select(nn::SelectOp op, ValueRange operands, LinalgBuilder &linalg) {
  auto type = cast<RankedTensorType>(op.getType());
  ArrayRef<int64_t> shape = type.getShape();
  return {linalg.elementwise(shape, type.getElementType(),
                             {linalg.broadcast(operands[0], shape),
                              linalg.broadcast(operands[1], shape),
                              linalg.broadcast(operands[2], shape)},
                             [](Scalars &s, ValueRange x) { return s.select(x[0], x[1], x[2]); })};
}

SmallVector<Value> castElements(nn::CastOp op, ValueRange operands, LinalgBuilder &linalg) {
  return {linalg.cast(operands[0], elementType(op.getResult()))};
}

SmallVector<Value> mask(nn::MaskOp op, ValueRange operands, LinalgBuilder &linalg) {
  auto type = cast<RankedTensorType>(op.getType());
  SmallVector<Input> inputs{linalg.same(operands[0]), linalg.scalar(operands[1], type.getRank())};
  if (op.getOffset())
    inputs.push_back(linalg.scalar(operands[2], type.getRank()));
  double fill = op.getFill().convertToDouble();
  return {linalg.elementwise(
      type.getShape(), type.getElementType(), inputs, [&](Scalars &s, ValueRange x) -> Value {
        Value position = s.position(op.getDim());
        if (op.getOffset())
          position = s.add(x[2], position);
        Value keep = s.b.create<arith::CmpIOp>(s.loc, arith::CmpIPredicate::slt, position, x[1]);
        return s.select(keep, x[0], s.constant(x[0].getType(), fill));
      })};
}

SmallVector<Value> constant(nn::ConstantOp op, ValueRange, LinalgBuilder &linalg) {
  return {linalg.b.create<arith::ConstantOp>(linalg.loc, cast<TypedAttr>(op.getValue()))};
}

} // namespace

void attachElementwiseModels(MLIRContext &context) {
  attach<nn::AddOp, binary<nn::AddOp, &Scalars::add>>(context);
  attach<nn::SubOp, binary<nn::SubOp, &Scalars::sub>>(context);
  attach<nn::MulOp, binary<nn::MulOp, &Scalars::mul>>(context);
  attach<nn::DivOp, binary<nn::DivOp, &Scalars::div>>(context);
  attach<nn::MaximumOp, binary<nn::MaximumOp, &Scalars::max>>(context);
  attach<nn::MinimumOp, binary<nn::MinimumOp, &Scalars::min>>(context);
  attach<nn::NegOp, unary<nn::NegOp, neg>>(context);
  attach<nn::ExpOp, unary<nn::ExpOp, exp>>(context);
  attach<nn::LogOp, unary<nn::LogOp, log>>(context);
  attach<nn::SqrtOp, unary<nn::SqrtOp, sqrt>>(context);
  attach<nn::RsqrtOp, unary<nn::RsqrtOp, rsqrt>>(context);
  attach<nn::TanhOp, unary<nn::TanhOp, tanh>>(context);
  attach<nn::ReluOp, unary<nn::ReluOp, relu>>(context);
  attach<nn::SigmoidOp, unary<nn::SigmoidOp, sigmoid>>(context);
  attach<nn::SiluOp, unary<nn::SiluOp, silu>>(context);
  attach<nn::ErfOp, unary<nn::ErfOp, erf>>(context);
  attach<nn::ErfcOp, unary<nn::ErfcOp, complementaryError>>(context);
  attach<nn::SinOp, unary<nn::SinOp, sin>>(context);
  attach<nn::CosOp, unary<nn::CosOp, cos>>(context);
  attach<nn::GeluOp, gelu>(context);
  attach<nn::CompareOp, compare>(context);
  attach<nn::SelectOp, select>(context);
  attach<nn::CastOp, castElements>(context);
  attach<nn::MaskOp, mask>(context);
  attach<nn::ConstantOp, constant, LoweringKind::Constant>(context);
}

} // namespace shoal::lowering
