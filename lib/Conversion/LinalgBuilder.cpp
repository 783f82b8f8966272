// Scalar and structured-op builders shared by the lowerings of nn ops.
#include "LinalgBuilder.h"

#include "shoal/Support/Decomposition.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

#include <algorithm>
#include <limits>

using namespace mlir;

namespace shoal::lowering {

// Scalars.

static bool isFloat(Value x) { return isa<FloatType>(x.getType()); }

Value Scalars::constant(Type type, double value) {
  if (auto real = dyn_cast<FloatType>(type))
    return b.create<arith::ConstantOp>(loc, b.getFloatAttr(real, value));
  // The identity of max is the smallest integer.
  if (std::isinf(value))
    return b.create<arith::ConstantOp>(
        loc,
        b.getIntegerAttr(type, value < 0 ? APInt::getSignedMinValue(type.getIntOrFloatBitWidth())
                                         : APInt::getSignedMaxValue(type.getIntOrFloatBitWidth())));
  return integer(type, int64_t(value));
}
Value Scalars::integer(Type type, int64_t value) {
  return b.create<arith::ConstantOp>(loc, b.getIntegerAttr(type, value));
}

Value Scalars::add(Value x, Value y) {
  return isFloat(x) ? Value(b.create<arith::AddFOp>(loc, x, y))
                    : b.create<arith::AddIOp>(loc, x, y);
}
Value Scalars::sub(Value x, Value y) {
  return isFloat(x) ? Value(b.create<arith::SubFOp>(loc, x, y))
                    : b.create<arith::SubIOp>(loc, x, y);
}
Value Scalars::mul(Value x, Value y) {
  return isFloat(x) ? Value(b.create<arith::MulFOp>(loc, x, y))
                    : b.create<arith::MulIOp>(loc, x, y);
}

Value Scalars::div(Value x, Value y) {
  if (isFloat(x))
    return b.create<arith::DivFOp>(loc, x, y);
  // x / -1 is written as a negation, because the quotient of the smallest integer would trap too.
  Value zero = constant(x.getType(), 0), one = constant(x.getType(), 1),
        minusOne = constant(x.getType(), -1);
  Value byZero = equal(y, zero), byMinusOne = equal(y, minusOne);
  Value divisor = select(b.create<arith::OrIOp>(loc, byZero, byMinusOne), one, y);
  Value quotient = b.create<arith::DivSIOp>(loc, x, divisor);
  return select(byZero, zero, select(byMinusOne, sub(zero, x), quotient));
}

Value Scalars::max(Value x, Value y) {
  return isFloat(x) ? Value(b.create<arith::MaximumFOp>(loc, x, y))
                    : b.create<arith::MaxSIOp>(loc, x, y);
}
Value Scalars::min(Value x, Value y) {
  return isFloat(x) ? Value(b.create<arith::MinimumFOp>(loc, x, y))
                    : b.create<arith::MinSIOp>(loc, x, y);
}
Value Scalars::exp(Value x) { return b.create<math::ExpOp>(loc, x); }
Value Scalars::log(Value x) { return b.create<math::LogOp>(loc, x); }
Value Scalars::sqrt(Value x) { return b.create<math::SqrtOp>(loc, x); }
Value Scalars::select(Value condition, Value x, Value y) {
  return b.create<arith::SelectOp>(loc, condition, x, y);
}

Value Scalars::cast(Value x, Type type) {
  Type from = x.getType();
  if (from == type)
    return x;
  bool fromFloat = isa<FloatType>(from), toFloat = isa<FloatType>(type);
  unsigned fromBits = from.getIntOrFloatBitWidth(), toBits = type.getIntOrFloatBitWidth();
  if (fromFloat && toFloat) {
    // bf16 and f64 meet in f32: only that step has an expansion for processors without bf16.
    if ((fromBits == 16 && toBits == 64) || (fromBits == 64 && toBits == 16))
      return cast(cast(x, b.getF32Type()), type);
    return fromBits < toBits ? Value(b.create<arith::ExtFOp>(loc, type, x))
                             : b.create<arith::TruncFOp>(loc, type, x);
  }
  if (toFloat) {
    if (toBits == 16)
      return cast(cast(x, b.getF32Type()), type);
    return fromBits == 1 ? Value(b.create<arith::UIToFPOp>(loc, type, x))
                         : b.create<arith::SIToFPOp>(loc, type, x);
  }
  if (fromFloat)
    return fromBits == 16 ? cast(cast(x, b.getF32Type()), type)
                          : b.create<arith::FPToSIOp>(loc, type, x);
  if (fromBits > toBits)
    return b.create<arith::TruncIOp>(loc, type, x);
  return fromBits == 1 ? Value(b.create<arith::ExtUIOp>(loc, type, x))
                       : b.create<arith::ExtSIOp>(loc, type, x);
}

Value Scalars::position(int64_t dim) {
  return b.create<arith::IndexCastOp>(loc, b.getI64Type(), b.create<linalg::IndexOp>(loc, dim));
}
Value Scalars::toIndex(Value x) { return b.create<arith::IndexCastOp>(loc, b.getIndexType(), x); }
Value Scalars::inRange(Value x, int64_t limit) {
  return b.create<arith::CmpIOp>(loc, arith::CmpIPredicate::ult, x, integer(x.getType(), limit));
}
Value Scalars::equal(Value x, Value y) {
  return isFloat(x) ? Value(b.create<arith::CmpFOp>(loc, arith::CmpFPredicate::OEQ, x, y))
                    : b.create<arith::CmpIOp>(loc, arith::CmpIPredicate::eq, x, y);
}
Value Scalars::extract(Value tensor, ValueRange indices) {
  Value element = b.create<tensor::ExtractOp>(loc, tensor, indices);
  return cast(element, computeType(element.getType()));
}

// Operands.

Input LinalgBuilder::same(Value tensor) {
  return {tensor, b.getMultiDimIdentityMap(tensorType(tensor).getRank())};
}

Input LinalgBuilder::broadcast(Value tensor, ArrayRef<int64_t> shape) {
  ArrayRef<int64_t> from = shapeOf(tensor);
  SmallVector<AffineExpr> exprs;
  for (auto [k, size] : llvm::enumerate(from)) {
    unsigned dim = shape.size() - from.size() + k;
    exprs.push_back(size == shape[dim] ? b.getAffineDimExpr(dim) : b.getAffineConstantExpr(0));
  }
  return {tensor, AffineMap::get(shape.size(), 0, exprs, b.getContext())};
}

Input LinalgBuilder::scalar(Value tensor, int64_t rank) {
  return {tensor, AffineMap::get(rank, 0, {}, b.getContext())};
}

Input LinalgBuilder::without(Value tensor, int64_t dim, int64_t rank) {
  return {tensor, b.getMultiDimIdentityMap(rank).dropResult(dim)};
}

// Structured ops.

SmallVector<Value> LinalgBuilder::generic(ArrayRef<int64_t> shape, ArrayRef<Type> elements,
                                          ArrayRef<Input> inputs, bool widen, Body body) {
  SmallVector<Value> operands, destinations;
  SmallVector<AffineMap> maps;
  for (const Input &input : inputs) {
    operands.push_back(input.tensor);
    maps.push_back(input.map);
  }
  SmallVector<Type> types;
  for (Type element : elements) {
    destinations.push_back(b.create<tensor::EmptyOp>(loc, shape, element));
    types.push_back(destinations.back().getType());
    maps.push_back(b.getMultiDimIdentityMap(shape.size()));
  }
  SmallVector<utils::IteratorType> iterators(shape.size(), utils::IteratorType::parallel);
  auto op = b.create<linalg::GenericOp>(
      loc, types, operands, destinations, maps, iterators,
      [&](OpBuilder &inner, Location loc, ValueRange args) {
        Scalars s{inner, loc};
        SmallVector<Value> values;
        for (Value arg : args.take_front(inputs.size()))
          values.push_back(widen ? s.cast(arg, computeType(arg.getType())) : arg);
        SmallVector<Value> results = body(s, values);
        for (auto [result, element] : llvm::zip_equal(results, elements))
          result = s.cast(result, element);
        inner.create<linalg::YieldOp>(loc, results);
      });
  return SmallVector<Value>(op.getResults());
}

SmallVector<Value> LinalgBuilder::elementwise(ArrayRef<int64_t> shape, ArrayRef<Type> elements,
                                              ArrayRef<Input> inputs, Body body) {
  return generic(shape, elements, inputs, /*widen=*/true, body);
}

Value LinalgBuilder::elementwise(ArrayRef<int64_t> shape, Type element, ArrayRef<Input> inputs,
                                 Body1 body) {
  return generic(shape, element, inputs, /*widen=*/true,
                 [&](Scalars &s, ValueRange args) { return SmallVector<Value>{body(s, args)}; })[0];
}

Value LinalgBuilder::move(ArrayRef<int64_t> shape, Type element, ArrayRef<Input> inputs,
                          Body1 body) {
  return generic(shape, element, inputs, /*widen=*/false,
                 [&](Scalars &s, ValueRange args) { return SmallVector<Value>{body(s, args)}; })[0];
}

Value LinalgBuilder::reduce(ArrayRef<int64_t> shape, ArrayRef<int64_t> dims, Type element,
                            double identity, ArrayRef<Input> inputs, Body1 body, bool keepDims) {
  Type type = computeType(element);
  SmallVector<utils::IteratorType> iterators(shape.size(), utils::IteratorType::parallel);
  for (int64_t dim : dims)
    iterators[dim] = utils::IteratorType::reduction;
  SmallVector<int64_t> resultShape;
  SmallVector<AffineExpr> resultExprs;
  for (auto [dim, size] : llvm::enumerate(shape))
    if (iterators[dim] == utils::IteratorType::parallel) {
      resultShape.push_back(size);
      resultExprs.push_back(b.getAffineDimExpr(dim));
    } else if (keepDims) {
      resultShape.push_back(1);
      resultExprs.push_back(b.getAffineConstantExpr(0));
    }
  // One fill per reduction: a shared one would be a value of its own.
  Value start = Scalars{b, loc}.constant(type, identity);
  Value empty = b.create<tensor::EmptyOp>(loc, resultShape, type);
  Value destination = b.create<linalg::FillOp>(loc, start, empty).getResult(0);
  SmallVector<Value> operands;
  SmallVector<AffineMap> maps;
  for (const Input &input : inputs) {
    operands.push_back(input.tensor);
    maps.push_back(input.map);
  }
  maps.push_back(AffineMap::get(shape.size(), 0, resultExprs, b.getContext()));
  auto op =
      b.create<linalg::GenericOp>(loc, destination.getType(), operands, destination, maps,
                                  iterators, [&](OpBuilder &inner, Location loc, ValueRange args) {
                                    Scalars s{inner, loc};
                                    SmallVector<Value> values;
                                    for (Value arg : args)
                                      values.push_back(s.cast(arg, computeType(arg.getType())));
                                    inner.create<linalg::YieldOp>(loc, body(s, values));
                                  });
  return op.getResult(0);
}

Value LinalgBuilder::reshape(Value tensor, RankedTensorType type) {
  RankedTensorType from = tensorType(tensor);
  if (from == type)
    return tensor;
  // Through one dimension: every reshape is a collapse and an expansion of it.
  auto flat = RankedTensorType::get(from.getNumElements(), from.getElementType());
  auto all = [](int64_t rank) {
    SmallVector<ReassociationIndices> groups;
    if (rank > 0)
      groups.push_back(llvm::to_vector(llvm::seq<int64_t>(0, rank)));
    return groups;
  };
  if (from.getRank() == 0)
    tensor = b.create<tensor::ExpandShapeOp>(loc, flat, tensor, all(0));
  else if (from.getRank() > 1)
    tensor = b.create<tensor::CollapseShapeOp>(loc, flat, tensor, all(from.getRank()));
  if (type.getRank() == 0)
    return b.create<tensor::CollapseShapeOp>(loc, type, tensor, all(0));
  if (type.getRank() > 1)
    return b.create<tensor::ExpandShapeOp>(loc, type, tensor, all(type.getRank()));
  return tensor;
}

SmallVector<Value> lowerByParts(ShardingRuleOpInterface op) {
  OpBuilder builder(op.getContext());
  Decomposition made = *decomposeBefore(op, builder, [&](OpBuilder &b) { return op.decompose(b); });
  for (Operation &part : llvm::make_early_inc_range(made.parts)) {
    builder.setInsertionPoint(&part);
    SmallVector<Value> lowered =
        *cast<LoweringOpInterface>(part).lowerToLinalg(builder, part.getOperands());
    for (auto [from, to] : llvm::zip_equal(part.getResults(), lowered)) {
      std::replace(made.values.begin(), made.values.end(), Value(from), to);
      from.replaceAllUsesWith(to);
    }
    part.erase();
  }
  return made.values;
}

Value LinalgBuilder::cast(Value tensor, Type element) {
  if (elementType(tensor) == element)
    return tensor;
  return elementwise(shapeOf(tensor), element, same(tensor),
                     [&](Scalars &s, ValueRange args) { return s.cast(args[0], element); });
}

} // namespace shoal::lowering
