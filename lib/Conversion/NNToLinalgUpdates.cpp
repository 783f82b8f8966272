// Optimizer updates: one generic over the parameter with one result per new tensor, so that every
// buffer is read and written once. What depends on the step alone is computed once, as scalars.
#include "LinalgBuilder.h"
#include "shoal/Dialect/NN/IR/NN.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;

namespace shoal::lowering {
namespace {

SmallVector<Value> sgd(nn::SgdUpdateOp op, ValueRange operands, LinalgBuilder &linalg) {
  RankedTensorType type = tensorType(operands[0]);
  Type compute = computeType(type.getElementType());
  double decay = op.getWeightDecay().convertToDouble();
  return {linalg.elementwise(type.getShape(), type.getElementType(),
                             {linalg.same(operands[0]), linalg.same(operands[1]),
                              linalg.scalar(operands[2], type.getRank())},
                             [&](Scalars &s, ValueRange x) {
                               Value gradient = x[1];
                               if (decay != 0)
                                 gradient =
                                     s.add(gradient, s.mul(s.constant(compute, decay), x[0]));
                               return s.sub(x[0], s.mul(s.cast(x[2], compute), gradient));
                             })};
}

SmallVector<Value> momentum(nn::MomentumUpdateOp op, ValueRange operands, LinalgBuilder &linalg) {
  RankedTensorType type = tensorType(operands[0]);
  Type compute = computeType(type.getElementType());
  double decay = op.getWeightDecay().convertToDouble(),
         momentum = op.getMomentum().convertToDouble();
  SmallVector<Input> inputs{linalg.same(operands[0]), linalg.same(operands[1]),
                            linalg.same(operands[2]), linalg.scalar(operands[3], type.getRank())};
  return linalg.elementwise(
      type.getShape(), {type.getElementType(), type.getElementType()}, inputs,
      [&](Scalars &s, ValueRange x) -> SmallVector<Value> {
        Value gradient = x[1], factor = s.constant(compute, momentum);
        if (decay != 0)
          gradient = s.add(gradient, s.mul(s.constant(compute, decay), x[0]));
        Value velocity = s.add(s.mul(factor, x[2]), gradient);
        Value step = op.getNesterov() ? s.add(gradient, s.mul(factor, velocity)) : velocity;
        return {s.sub(x[0], s.mul(s.cast(x[3], compute), step)), velocity};
      });
}

/// 1 / (1 - beta^step), in double.
Value biasCorrection(LinalgBuilder &linalg, Value step, double beta) {
  Type f64 = linalg.b.getF64Type();
  return linalg.elementwise({}, f64, linalg.same(step), [&](Scalars &s, ValueRange x) {
    Value power = s.b.create<math::PowFOp>(s.loc, s.constant(f64, beta), s.cast(x[0], f64));
    Value one = s.constant(f64, 1);
    return s.div(one, s.sub(one, power));
  });
}

SmallVector<Value> adam(nn::AdamUpdateOp op, ValueRange operands, LinalgBuilder &linalg) {
  RankedTensorType type = tensorType(operands[0]);
  Type element = type.getElementType(), compute = computeType(element);
  int64_t rank = type.getRank();
  double beta1 = op.getBeta1().convertToDouble(), beta2 = op.getBeta2().convertToDouble(),
         eps = op.getEps().convertToDouble(), decay = op.getWeightDecay().convertToDouble();
  Value correction1 = biasCorrection(linalg, operands[5], beta1);
  Value correction2 = biasCorrection(linalg, operands[5], beta2);
  SmallVector<Input> inputs;
  for (Value tensor : operands.take_front(4))
    inputs.push_back(linalg.same(tensor));
  for (Value scalar : {operands[4], correction1, correction2})
    inputs.push_back(linalg.scalar(scalar, rank));
  return linalg.elementwise(
      type.getShape(), {element, element, element}, inputs,
      [&](Scalars &s, ValueRange x) -> SmallVector<Value> {
        auto c = [&](double value) { return s.constant(compute, value); };
        Value p = x[0], gradient = x[1], lr = s.cast(x[4], compute);
        if (decay != 0 && !op.getDecoupled())
          gradient = s.add(gradient, s.mul(c(decay), p));
        Value m = s.add(s.mul(c(beta1), x[2]), s.mul(c(1 - beta1), gradient));
        Value v = s.add(s.mul(c(beta2), x[3]), s.mul(c(1 - beta2), s.mul(gradient, gradient)));
        Value mean = s.mul(m, s.cast(x[5], compute)), square = s.mul(v, s.cast(x[6], compute));
        Value updated = s.sub(p, s.mul(lr, s.div(mean, s.add(s.sqrt(square), c(eps)))));
        if (decay != 0 && op.getDecoupled())
          updated = s.sub(updated, s.mul(s.mul(lr, c(decay)), p));
        return {updated, m, v};
      });
}

} // namespace

void attachUpdateModels(MLIRContext &context) {
  attach<nn::SgdUpdateOp, sgd>(context);
  attach<nn::MomentumUpdateOp, momentum>(context);
  attach<nn::AdamUpdateOp, adam>(context);
}

} // namespace shoal::lowering
