// Vector-Jacobian products of the `nn` ops, built from `nn` ops. The cotangent of an operand that
// was broadcast is summed back to the operand's shape. A product of several factors is computed in f32 for bf16
// and rounded once, as the ops themselves do.
#include "Build.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace shoal;
using namespace shoal::nn;

using VJP = FailureOr<SmallVector<Value>>;

// Helpers.

/// A list with one null per operand, and the helper that fills it.
static SmallVector<Value> nulls(Operation *op) { return SmallVector<Value>(op->getNumOperands()); }

static VJP noGradient(Operation *op) { return op->emitOpError() << "has no gradient"; }

/// For elementwise ops: sums the cotangents of needed float operands back to their shapes.
static SmallVector<Value> toOperandShapes(Build b, Operation *op, const llvm::BitVector &needed,
                                          ArrayRef<llvm::function_ref<Value()>> cotangents) {
  SmallVector<Value> result = nulls(op);
  for (auto [i, cotangent] : llvm::enumerate(cotangents)) {
    Value operand = op->getOperand(i);
    if (needed.test(i) && isFloat(operand))
      result[i] = b.reduceToShape(cotangent(), typeOf(operand));
  }
  return result;
}

#define SHOAL_VJP(OP)                                                                              \
  VJP OP::buildVJP(OpBuilder &builder, ArrayRef<Value> cotangents, const llvm::BitVector &needed)

/// The start of every gradient with one result: nothing flows in, nothing flows out.
#define SHOAL_COTANGENT                                                                            \
  Value ct = cotangents[0];                                                                        \
  if (!ct)                                                                                         \
    return nulls(*this);                                                                           \
  [[maybe_unused]] Build b{builder, getLoc()};

/// The same of an op with one operand, whose cotangent is `build` of its result's: both in the type that is computed
/// in.
static SmallVector<Value> wideCotangent(Build b, Value ct, function_ref<Value(Value)> build) {
  return {b.cast(build(b.wide(ct)), typeOf(ct).getElementType())};
}

// Constant and elementwise.

SHOAL_VJP(ConstantOp) { return nulls(*this); }
SHOAL_VJP(CompareOp) { return nulls(*this); }

SHOAL_VJP(AddOp) {
  SHOAL_COTANGENT
  return toOperandShapes(b, *this, needed, {[&] { return ct; }, [&] { return ct; }});
}

SHOAL_VJP(SubOp) {
  SHOAL_COTANGENT
  return toOperandShapes(b, *this, needed, {[&] { return ct; }, [&] { return b.neg(ct); }});
}

SHOAL_VJP(MulOp) {
  SHOAL_COTANGENT
  return toOperandShapes(
      b, *this, needed, {[&] { return b.mul(ct, getRhs()); }, [&] { return b.mul(ct, getLhs()); }});
}

SHOAL_VJP(DivOp) {
  SHOAL_COTANGENT
  auto byNumerator = [&] { return b.div(ct, getRhs()); };
  auto byDenominator = [&] {
    Value slope = b.div(b.mul(b.wide(ct), b.wide(getResult())), b.wide(getRhs()));
    return b.cast(b.neg(slope), typeOf(ct).getElementType());
  };
  return toOperandShapes(b, *this, needed, {byNumerator, byDenominator});
}

/// Of two operands the chosen one gets the cotangent; equal ones get half of it each.
template <typename Op>
static VJP chooseVJP(Op op, Build b, Value ct, const llvm::BitVector &needed, Predicate wins) {
  auto share = [&](Value mine, Value other) {
    Value tie = b.select(b.compare(Predicate::eq, mine, other), b.mul(ct, 0.5), b.scalar(ct, 0));
    return b.select(b.compare(wins, mine, other), ct, tie);
  };
  return toOperandShapes(b, op, needed,
                         {[&] { return share(op.getLhs(), op.getRhs()); },
                          [&] { return share(op.getRhs(), op.getLhs()); }});
}

SHOAL_VJP(MaximumOp) {
  SHOAL_COTANGENT
  return chooseVJP(*this, b, ct, needed, Predicate::gt);
}

SHOAL_VJP(MinimumOp) {
  SHOAL_COTANGENT
  return chooseVJP(*this, b, ct, needed, Predicate::lt);
}

SHOAL_VJP(NegOp) {
  SHOAL_COTANGENT
  return SmallVector<Value>{b.neg(ct)};
}

SHOAL_VJP(ExpOp) {
  SHOAL_COTANGENT
  return SmallVector<Value>{b.mul(ct, getResult())};
}

SHOAL_VJP(LogOp) {
  SHOAL_COTANGENT
  return SmallVector<Value>{b.div(ct, getInput())};
}

SHOAL_VJP(SqrtOp) {
  SHOAL_COTANGENT
  return wideCotangent(b, ct, [&](Value ct) { return b.div(b.mul(ct, 0.5), b.wide(getResult())); });
}

SHOAL_VJP(RsqrtOp) {
  SHOAL_COTANGENT
  return wideCotangent(b, ct, [&](Value ct) {
    Value y = b.wide(getResult());
    return b.mul(b.mul(ct, -0.5), b.mul(y, b.mul(y, y)));
  });
}

SHOAL_VJP(TanhOp) {
  SHOAL_COTANGENT
  return wideCotangent(b, ct, [&](Value ct) {
    Value y = b.wide(getResult());
    return b.mul(ct, b.sub(b.scalar(y, 1), b.mul(y, y)));
  });
}

// Asks the result and not the input, which then need not be kept for the backward program.
SHOAL_VJP(ReluOp) {
  SHOAL_COTANGENT
  Value positive = b.compare(Predicate::gt, getResult(), b.scalar(ct, 0));
  return SmallVector<Value>{b.select(positive, ct, b.scalar(ct, 0))};
}

SHOAL_VJP(SigmoidOp) {
  SHOAL_COTANGENT
  return wideCotangent(b, ct, [&](Value ct) {
    Value y = b.wide(getResult());
    return b.mul(ct, b.mul(y, b.sub(b.scalar(y, 1), y)));
  });
}

// s + x s (1 - s), where y = x s.
SHOAL_VJP(SiluOp) {
  SHOAL_COTANGENT
  return wideCotangent(b, ct, [&](Value ct) {
    Value s = builder.create<SigmoidOp>(b.loc, b.wide(getInput()));
    return b.mul(ct, b.add(s, b.mul(b.wide(getResult()), b.sub(b.scalar(s, 1), s))));
  });
}

// 2/sqrt(pi) e^(-x^2).
static Value slopeOfErf(Build &b, Value x) {
  return b.mul(b.builder.create<ExpOp>(b.loc, b.neg(b.mul(x, x))), 2 * llvm::numbers::inv_sqrtpi);
}

SHOAL_VJP(ErfOp) {
  SHOAL_COTANGENT
  return wideCotangent(b, ct, [&](Value ct) { return b.mul(ct, slopeOfErf(b, b.wide(getInput()))); });
}

SHOAL_VJP(ErfcOp) {
  SHOAL_COTANGENT
  return wideCotangent(b, ct, [&](Value ct) { return b.neg(b.mul(ct, slopeOfErf(b, b.wide(getInput())))); });
}

SHOAL_VJP(SinOp) {
  SHOAL_COTANGENT
  return wideCotangent(b, ct, [&](Value ct) {
    return b.mul(ct, builder.create<CosOp>(b.loc, b.wide(getInput())));
  });
}

SHOAL_VJP(CosOp) {
  SHOAL_COTANGENT
  return wideCotangent(b, ct, [&](Value ct) {
    return b.neg(b.mul(ct, builder.create<SinOp>(b.loc, b.wide(getInput()))));
  });
}

/// The derivative of gelu at x.
static Value slopeOfGelu(Build &b, GeluForm form, Value x) {
  OpBuilder &builder = b.builder;
  Value one = b.scalar(x, 1);
  if (form == GeluForm::erf) {
    // cdf(x) + x pdf(x) of the normal distribution.
    Value cdf = b.mul(builder.create<ErfcOp>(b.loc, b.mul(x, -1 / llvm::numbers::sqrt2)), 0.5);
    Value e = builder.create<ExpOp>(b.loc, b.mul(b.mul(x, x), -0.5));
    Value pdf = b.mul(e, llvm::numbers::inv_sqrtpi / llvm::numbers::sqrt2);
    return b.add(cdf, b.mul(x, pdf));
  }
  // (1 + tanh(u)) / 2 is s = sigmoid(2 u), so that y = x s and y' = s + x s (1 - s) 2u'. From |x| = 32 on s or
  // 1 - s is 0 in every type. With x kept within, no factor overflows in any order of the products, and 0 times
  // infinity stays away.
  x = b.min(b.max(x, b.scalar(x, -32)), b.scalar(x, 32));
  Value square = b.mul(x, x);
  const double slope = 2 * llvm::numbers::sqrt2 * llvm::numbers::inv_sqrtpi, cubic = 0.044715;
  Value twoU = b.mul(b.mul(x, slope), b.add(b.mul(square, cubic), one));
  Value s = builder.create<SigmoidOp>(b.loc, twoU);
  Value inner = b.mul(b.add(b.mul(square, 3 * cubic), one), slope);
  Value bend = b.mul(b.mul(b.mul(x, s), b.sub(one, s)), inner);
  return b.add(s, bend);
}

SHOAL_VJP(GeluOp) {
  SHOAL_COTANGENT
  return wideCotangent(b, ct, [&](Value ct) { return b.mul(ct, slopeOfGelu(b, getForm(), b.wide(getInput()))); });
}

SHOAL_VJP(SelectOp) {
  SHOAL_COTANGENT
  Value zero = b.scalar(ct, 0);
  auto ifTrue = [&] { return b.select(getCondition(), ct, zero); };
  auto ifFalse = [&] { return b.select(getCondition(), zero, ct); };
  return toOperandShapes(b, *this, needed, {[&] { return Value(); }, ifTrue, ifFalse});
}

SHOAL_VJP(CastOp) {
  SHOAL_COTANGENT
  if (!isFloat(getInput()) || !isFloat(ct))
    return nulls(*this);
  return SmallVector<Value>{b.cast(ct, getInput().getType().getElementType())};
}

SHOAL_VJP(MaskOp) {
  SHOAL_COTANGENT
  SmallVector<Value> result = nulls(*this);
  if (isFloat(ct))
    result[0] = builder.create<MaskOp>(b.loc, ct, getLimit(), getOffset(), getDimAttr(),
                                       builder.getF64FloatAttr(0.0));
  return result;
}

// Shape.

SHOAL_VJP(ReshapeOp) {
  SHOAL_COTANGENT
  return SmallVector<Value>{b.reshape(ct, getInput().getType())};
}

SHOAL_VJP(TransposeOp) {
  SHOAL_COTANGENT
  SmallVector<int64_t> inverse(getPermutation().size());
  for (auto [to, from] : llvm::enumerate(getPermutation()))
    inverse[from] = to;
  return SmallVector<Value>{builder.create<TransposeOp>(b.loc, ct, inverse)};
}

SHOAL_VJP(BroadcastOp) {
  SHOAL_COTANGENT
  return SmallVector<Value>{b.reduceToShape(ct, getInput().getType())};
}

SHOAL_VJP(SliceOp) {
  SHOAL_COTANGENT
  return SmallVector<Value>{
      builder.create<PadOp>(b.loc, getInput().getType(), ct, getDimAttr(), getStartAttr())};
}

SHOAL_VJP(PadOp) {
  SHOAL_COTANGENT
  return SmallVector<Value>{
      builder.create<SliceOp>(b.loc, getInput().getType(), ct, getDimAttr(), getLowAttr())};
}

SHOAL_VJP(DynamicSliceOp) {
  SHOAL_COTANGENT
  SmallVector<Value> result = nulls(*this);
  Value zeros = b.broadcast(b.scalar(ct, 0), getInput().getType());
  result[0] =
      builder.create<DynamicUpdateSliceOp>(b.loc, typeOf(zeros), zeros, ct, getStart(), getDimAttr());
  return result;
}

SHOAL_VJP(DynamicUpdateSliceOp) {
  SHOAL_COTANGENT
  SmallVector<Value> result = nulls(*this);
  auto type = getUpdate().getType();
  if (needed.test(0)) {
    Value zeros = b.broadcast(b.scalar(ct, 0), type);
    result[0] =
        builder.create<DynamicUpdateSliceOp>(b.loc, typeOf(ct), ct, zeros, getStart(), getDimAttr());
  }
  if (needed.test(1))
    result[1] = builder.create<DynamicSliceOp>(b.loc, type, ct, getStart(), getDimAttr());
  return result;
}

SHOAL_VJP(ConcatOp) {
  SHOAL_COTANGENT
  SmallVector<Value> result = nulls(*this);
  int64_t start = 0;
  for (auto [i, input] : llvm::enumerate(getInputs())) {
    auto type = typeOf(input);
    if (needed.test(i))
      result[i] = builder.create<SliceOp>(b.loc, type, ct, getDim(), start);
    start += type.getDimSize(getDim());
  }
  return result;
}

SHOAL_VJP(IotaOp) { return nulls(*this); }

// Contractions and reductions.

SHOAL_VJP(MatmulOp) {
  SHOAL_COTANGENT
  auto aType = getA().getType(), bType = getB().getType();
  bool transposeA = getTransposeA(), transposeB = getTransposeB();
  bool sharedB = aType.getRank() > 2 && bType.getRank() == 2;
  // A product that keeps the digits of its sums is differentiated like one that does not.
  ct = b.cast(ct, aType.getElementType());
  auto matmul = [&](RankedTensorType type, Value x, bool transposeX, Value y, bool transposeY,
                    bool sumBatch) -> Value {
    return builder.create<MatmulOp>(b.loc, type, x, y, transposeX, transposeY, sumBatch);
  };
  // Every batch of a sum has the sum's cotangent.
  if (getSumBatch()) {
    SmallVector<int64_t> shape(aType.getShape().drop_back(2));
    llvm::append_range(shape, typeOf(ct).getShape());
    ct = b.broadcast(ct, typeOf(ct).clone(shape));
  }

  SmallVector<Value> result = nulls(*this);
  if (needed.test(0)) {
    if (!transposeA) {
      result[0] = matmul(aType, ct, false, getB(), !transposeB, false);
    } else if (!sharedB) {
      result[0] = matmul(aType, getB(), transposeB, ct, true, false);
    } else {
      // b without batches can only be the right operand, which yields the transpose.
      SmallVector<int64_t> shape(aType.getShape());
      std::swap(shape[shape.size() - 2], shape.back());
      Value transposed = matmul(aType.clone(shape), ct, false, getB(), !transposeB, false);
      auto permutation = llvm::to_vector(llvm::seq<int64_t>(0, aType.getRank()));
      std::swap(permutation[permutation.size() - 2], permutation.back());
      result[0] = builder.create<TransposeOp>(b.loc, transposed, permutation);
    }
  }
  if (needed.test(1))
    result[1] = transposeB ? matmul(bType, ct, true, getA(), transposeA, sharedB)
                           : matmul(bType, getA(), !transposeA, ct, false, sharedB);
  return result;
}

SHOAL_VJP(ReduceOp) {
  SHOAL_COTANGENT
  auto type = getInput().getType();
  if (!isFloat(ct))
    return nulls(*this);
  SmallVector<int64_t> kept(type.getShape());
  for (int64_t dim : getDims())
    kept[dim] = 1;
  ct = b.reshape(ct, type.clone(kept));
  switch (getKind()) {
  case Reduce::sum:
    return SmallVector<Value>{b.broadcast(ct, type)};
  case Reduce::mean: // refused by nn-differentiate
    break;
  case Reduce::max: {
    Value max = b.reshape(getResult(), type.clone(kept));
    Value isMax = b.compare(Predicate::eq, getInput(), max);
    Value ties = b.sum(b.cast(isMax, type.getElementType()), getDims(), /*keepDims=*/true);
    return SmallVector<Value>{b.select(isMax, b.div(ct, ties), b.scalar(ct, 0))};
  }
  }
  llvm_unreachable("a reduction without gradient");
}

SHOAL_VJP(SoftmaxOp) {
  SHOAL_COTANGENT
  return wideCotangent(b, ct, [&](Value ct) {
    Value y = b.wide(getResult());
    Value inner = b.sum(b.mul(ct, y), int64_t(getDim()), /*keepDims=*/true);
    return b.mul(y, b.sub(ct, inner));
  });
}

SHOAL_VJP(LogSoftmaxOp) {
  SHOAL_COTANGENT
  return wideCotangent(b, ct, [&](Value ct) {
    Value total = b.sum(ct, int64_t(getDim()), /*keepDims=*/true);
    Value p = builder.create<ExpOp>(b.loc, b.wide(getResult()));
    return b.sub(ct, b.mul(p, total));
  });
}

// Losses.

SHOAL_VJP(MseLossOp) {
  SHOAL_COTANGENT
  Value g = b.mul(b.sub(getPrediction(), getTarget()), b.mul(ct, 2.0));
  SmallVector<Value> result = nulls(*this);
  if (needed.test(0))
    result[0] = g;
  if (needed.test(1))
    result[1] = b.neg(g);
  return result;
}

SHOAL_VJP(CrossEntropyOp) {
  if (cotangents[1])
    return emitOpError() << "has no gradient through its log-sum-exp";
  SHOAL_COTANGENT
  if (needed.test(1))
    return emitOpError() << "has no gradient with respect to its targets";
  SmallVector<Value> result = nulls(*this);
  if (!needed.test(0))
    return result;
  result[0] = builder.create<CrossEntropyGradOp>(b.loc, getLogits().getType(), getLogits(), getTargets(), getLse(), ct,
                                                 getIgnoreIndexAttr());
  return result;
}

SHOAL_VJP(CrossEntropyGradOp) { return noGradient(*this); }

// Optimizer updates.

SHOAL_VJP(SgdUpdateOp) { return noGradient(*this); }
SHOAL_VJP(MomentumUpdateOp) { return noGradient(*this); }
SHOAL_VJP(AdamUpdateOp) { return noGradient(*this); }
