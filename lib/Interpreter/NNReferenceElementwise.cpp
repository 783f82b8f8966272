// What the elementwise `nn` ops mean.
#include "Indexing.h"
#include "NNReference.h"

#include <cmath>
#include <numbers>

using namespace mlir;

namespace shoal::interp {
namespace {

template <typename Function> Tensor mapFloat(Operation *op, Operands in, Function function) {
  Tensor result = resultOf(op);
  for (int64_t k = 0; k < result.size(); ++k)
    result.f[k] = function(in[0]->f[k]);
  return result;
}

Results neg(nn::NegOp op, Operands in) {
  return single(mapFloat(op, in, [](double x) { return -x; }));
}
Results exp(nn::ExpOp op, Operands in) {
  return single(mapFloat(op, in, [](double x) { return std::exp(x); }));
}
Results log(nn::LogOp op, Operands in) {
  return single(mapFloat(op, in, [](double x) { return std::log(x); }));
}
Results sqrt(nn::SqrtOp op, Operands in) {
  return single(mapFloat(op, in, [](double x) { return std::sqrt(x); }));
}
Results rsqrt(nn::RsqrtOp op, Operands in) {
  return single(mapFloat(op, in, [](double x) { return 1.0 / std::sqrt(x); }));
}
Results tanh(nn::TanhOp op, Operands in) {
  return single(mapFloat(op, in, [](double x) { return std::tanh(x); }));
}
Results relu(nn::ReluOp op, Operands in) {
  return single(mapFloat(op, in, [](double x) { return x > 0 || std::isnan(x) ? x : 0.0; }));
}
// x sigmoid(z). Below zero the fraction is extended by e^z, as e^-z overflows before the product is 0.
double timesSigmoid(double x, double z) {
  return z < 0 ? x * std::exp(z) / (1 + std::exp(z)) : x / (1 + std::exp(-z));
}
Results sigmoid(nn::SigmoidOp op, Operands in) {
  return single(mapFloat(op, in, [](double x) { return timesSigmoid(1, x); }));
}
Results silu(nn::SiluOp op, Operands in) {
  return single(mapFloat(op, in, [](double x) { return timesSigmoid(x, x); }));
}
Results erf(nn::ErfOp op, Operands in) {
  return single(mapFloat(op, in, [](double x) { return std::erf(x); }));
}
Results erfc(nn::ErfcOp op, Operands in) {
  return single(mapFloat(op, in, [](double x) { return std::erfc(x); }));
}
Results sin(nn::SinOp op, Operands in) {
  return single(mapFloat(op, in, [](double x) { return std::sin(x); }));
}
Results cos(nn::CosOp op, Operands in) {
  return single(mapFloat(op, in, [](double x) { return std::cos(x); }));
}
Results gelu(nn::GeluOp op, Operands in) {
  auto byErf = [](double x) { return 0.5 * x * std::erfc(-x / std::numbers::sqrt2); };
  // (1 + tanh(u)) / 2 is sigmoid(2 u), which keeps its digits where it is small.
  auto byTanh = [](double x) {
    double u = std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x);
    return timesSigmoid(x, 2 * u);
  };
  return single(op.getForm() == nn::GeluForm::erf ? mapFloat(op, in, byErf)
                                                  : mapFloat(op, in, byTanh));
}

// `function` is called with two doubles or two integers, by the operands' type.
template <typename Function> Tensor mapBinary(Operation *op, Operands in, Function function) {
  Tensor result = resultOf(op);
  forEachIndex(result.shape(), [&](ArrayRef<int64_t> index, int64_t k) {
    int64_t a = broadcastIndex(index, in[0]->shape()), b = broadcastIndex(index, in[1]->shape());
    if (in[0]->isFloat())
      result.f[k] = function(in[0]->f[a], in[1]->f[b]);
    else
      result.i[k] = function(in[0]->i[a], in[1]->i[b]);
  });
  return result;
}

// Integers wrap around: computed unsigned, where overflow is defined.
int64_t wrap(uint64_t x) { return int64_t(x); }

struct Add {
  double operator()(double a, double b) const { return a + b; }
  int64_t operator()(int64_t a, int64_t b) const { return wrap(uint64_t(a) + uint64_t(b)); }
};
struct Sub {
  double operator()(double a, double b) const { return a - b; }
  int64_t operator()(int64_t a, int64_t b) const { return wrap(uint64_t(a) - uint64_t(b)); }
};
struct Mul {
  double operator()(double a, double b) const { return a * b; }
  int64_t operator()(int64_t a, int64_t b) const { return wrap(uint64_t(a) * uint64_t(b)); }
};
struct Maximum {
  double operator()(double a, double b) const {
    return std::isnan(a) || std::isnan(b) ? a + b : std::max(a, b);
  }
  int64_t operator()(int64_t a, int64_t b) const { return std::max(a, b); }
};
struct Minimum {
  double operator()(double a, double b) const {
    return std::isnan(a) || std::isnan(b) ? a + b : std::min(a, b);
  }
  int64_t operator()(int64_t a, int64_t b) const { return std::min(a, b); }
};

template <typename OpT, typename Function> Results binary(OpT op, Operands in) {
  return single(mapBinary(op, in, Function()));
}

Results div(nn::DivOp op, Operands in) {
  struct Div {
    double operator()(double a, double b) const { return a / b; }
    int64_t operator()(int64_t a, int64_t b) const {
      if (b == 0)
        return 0;
      return b == -1 ? wrap(0 - uint64_t(a)) : a / b;
    }
  };
  return single(mapBinary(op, in, Div()));
}

template <typename T> bool holds(nn::Predicate predicate, T a, T b) {
  switch (predicate) {
  case nn::Predicate::eq:
    return a == b;
  case nn::Predicate::ne:
    return a != b;
  case nn::Predicate::lt:
    return a < b;
  case nn::Predicate::le:
    return a <= b;
  case nn::Predicate::gt:
    return a > b;
  case nn::Predicate::ge:
    return a >= b;
  }
  llvm_unreachable("unknown predicate");
}

Results compare(nn::CompareOp op, Operands in) {
  Tensor result = resultOf(op);
  forEachIndex(result.shape(), [&](ArrayRef<int64_t> index, int64_t k) {
    int64_t a = broadcastIndex(index, in[0]->shape()), b = broadcastIndex(index, in[1]->shape());
    result.i[k] = in[0]->isFloat() ? holds(op.getPredicate(), in[0]->f[a], in[1]->f[b])
                                   : holds(op.getPredicate(), in[0]->i[a], in[1]->i[b]);
  });
  return single(std::move(result));
}

Results select(nn::SelectOp op, Operands in) {
  Tensor result = resultOf(op);
  forEachIndex(result.shape(), [&](ArrayRef<int64_t> index, int64_t k) {
    bool condition = in[0]->i[broadcastIndex(index, in[0]->shape())];
    const Tensor &chosen = condition ? *in[1] : *in[2];
    int64_t from = broadcastIndex(index, chosen.shape());
    if (result.isFloat())
      result.f[k] = chosen.f[from];
    else
      result.i[k] = chosen.i[from];
  });
  return single(std::move(result));
}

Results cast(nn::CastOp op, Operands in) {
  Tensor result = resultOf(op);
  for (int64_t k = 0; k < result.size(); ++k) {
    if (result.isFloat()) {
      result.f[k] = in[0]->at(k);
    } else if (!in[0]->isFloat()) {
      result.i[k] = in[0]->i[k];
    } else {
      double value = in[0]->f[k];
      if (!(std::abs(value) < 0x1p63))
        return op.emitOpError("casts a float that no integer holds, got: ") << value;
      result.i[k] = int64_t(value);
    }
  }
  return single(std::move(result));
}

Results mask(nn::MaskOp op, Operands in) {
  Tensor result = *in[0];
  int64_t limit = in[1]->i[0], offset = in.size() > 2 ? in[2]->i[0] : 0;
  double fill = op.getFill().convertToDouble();
  forEachIndex(result.shape(), [&](ArrayRef<int64_t> index, int64_t k) {
    if (offset + index[op.getDim()] >= limit)
      result.set(k, fill);
  });
  return single(std::move(result));
}

Results constant(nn::ConstantOp op, Operands) {
  Tensor result = resultOf(op);
  auto dense = dyn_cast<DenseElementsAttr>(op.getValue());
  if (!dense)
    return op.emitOpError("holds a constant that is not dense");
  int64_t k = 0;
  if (result.isFloat()) {
    for (APFloat value : dense.getValues<APFloat>()) {
      bool inexact;
      value.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven, &inexact);
      result.f[k++] = value.convertToDouble();
    }
  } else {
    bool isBool = result.type.getElementType().isInteger(1);
    for (APInt value : dense.getValues<APInt>())
      result.i[k++] = isBool ? int64_t(value.getZExtValue()) : value.getSExtValue();
  }
  return single(std::move(result));
}

} // namespace

void attachElementwiseReferences(MLIRContext &context) {
  attachReference<nn::NegOp, neg>(context);
  attachReference<nn::ExpOp, exp>(context);
  attachReference<nn::LogOp, log>(context);
  attachReference<nn::SqrtOp, sqrt>(context);
  attachReference<nn::RsqrtOp, rsqrt>(context);
  attachReference<nn::TanhOp, tanh>(context);
  attachReference<nn::ReluOp, relu>(context);
  attachReference<nn::SigmoidOp, sigmoid>(context);
  attachReference<nn::SiluOp, silu>(context);
  attachReference<nn::ErfOp, erf>(context);
  attachReference<nn::ErfcOp, erfc>(context);
  attachReference<nn::SinOp, sin>(context);
  attachReference<nn::CosOp, cos>(context);
  attachReference<nn::GeluOp, gelu>(context);
  attachReference<nn::AddOp, binary<nn::AddOp, Add>>(context);
  attachReference<nn::SubOp, binary<nn::SubOp, Sub>>(context);
  attachReference<nn::MulOp, binary<nn::MulOp, Mul>>(context);
  attachReference<nn::DivOp, div>(context);
  attachReference<nn::MaximumOp, binary<nn::MaximumOp, Maximum>>(context);
  attachReference<nn::MinimumOp, binary<nn::MinimumOp, Minimum>>(context);
  attachReference<nn::CompareOp, compare>(context);
  attachReference<nn::SelectOp, select>(context);
  attachReference<nn::CastOp, cast>(context);
  attachReference<nn::MaskOp, mask>(context);
  attachReference<nn::ConstantOp, constant>(context);
}

} // namespace shoal::interp
