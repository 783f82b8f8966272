// Random ops: Philox 4x32-10 in scalar arithmetic on 32 bits, which loops vectorize. Bit for bit what
// shoal-rt/random.h draws.
#include "LinalgBuilder.h"
#include "shoal/Dialect/NN/IR/NN.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace shoal::lowering {
namespace {

/// The first word of Philox for a key and a counter of words.
Value philoxWord(Scalars &s, std::array<Value, 2> key, std::array<Value, 4> counter) {
  Type i32 = s.b.getI32Type();
  auto word = [&](uint32_t value) { return s.integer(i32, int32_t(value)); };
  auto multiply = [&](uint32_t factor, Value x) {
    return s.b.create<arith::MulUIExtendedOp>(s.loc, word(factor), x);
  };
  auto mix = [&](Value x, Value y, Value z) -> Value {
    return s.b.create<arith::XOrIOp>(s.loc, s.b.create<arith::XOrIOp>(s.loc, x, y), z);
  };
  for (int round = 0; round < 10; ++round) {
    auto p0 = multiply(0xD2511F53u, counter[0]), p1 = multiply(0xCD9E8D57u, counter[2]);
    counter = {mix(p1.getHigh(), counter[1], key[0]), p1.getLow(),
               mix(p0.getHigh(), counter[3], key[1]), p0.getLow()};
    key = {s.add(key[0], word(0x9E3779B9u)), s.add(key[1], word(0xBB67AE85u))};
  }
  return counter[0];
}

SmallVector<Value> dropout(nn::DropoutOp op, ValueRange operands, LinalgBuilder &linalg) {
  RankedTensorType type = tensorType(op.getResult());
  int64_t rank = type.getRank();
  SmallVector<Input> inputs{linalg.same(operands[0])};
  bool isTold = bool(op.getPositions());
  for (Value scalar : operands.drop_front().drop_back(isTold))
    inputs.push_back(linalg.scalar(scalar, rank));
  if (isTold)
    inputs.push_back({operands.back(), AffineMap::get(rank, 0, linalg.b.getAffineDimExpr(*op.getDim()))});
  double rate = op.getRate().convertToDouble();
  ArrayRef<int64_t> shape = op.getGlobal().value_or(type.getShape());
  return {linalg.elementwise(
      type.getShape(), type.getElementType(), inputs, [&](Scalars &s, ValueRange x) -> Value {
        Type i32 = s.b.getI32Type(), i64 = s.b.getI64Type();
        Value index = op.getOffset() ? x[3] : s.integer(i64, 0);
        int64_t stride = 1;
        for (int64_t dim = rank; dim-- > 0; stride *= shape[dim]) {
          Value position = isTold && dim == int64_t(*op.getDim()) ? x.back() : s.position(dim);
          index = s.add(index, s.mul(position, s.integer(i64, stride)));
        }
        auto low = [&](Value value) { return s.cast(value, i32); };
        auto high = [&](Value value) -> Value {
          return low(s.b.create<arith::ShRUIOp>(s.loc, value, s.integer(i64, 32)));
        };
        Value id = s.add(s.integer(i32, int32_t(uint32_t(op.getId()))), high(x[2]));
        Value drawn = philoxWord(s, {low(x[1]), high(x[1])}, {low(index), high(index), id, low(x[2])});
        Value threshold = s.integer(i32, int32_t(uint32_t(rate * 0x1p32)));
        Value keep = s.b.create<arith::CmpIOp>(s.loc, arith::CmpIPredicate::uge, drawn, threshold);
        Type compute = x[0].getType();
        return s.select(keep, s.mul(x[0], s.constant(compute, 1 / (1 - rate))), s.constant(compute, 0));
      })};
}

} // namespace

void attachRandomModels(MLIRContext &context) { attach<nn::DropoutOp, dropout>(context); }

} // namespace shoal::lowering
