// Builds short chains of `nn` ops at one location: what gradients and decompositions are written
// with.
#ifndef SHOAL_LIB_DIALECT_NN_IR_BUILD_H
#define SHOAL_LIB_DIALECT_NN_IR_BUILD_H

#include "shoal/Dialect/NN/IR/NN.h"

namespace shoal::nn {

using namespace mlir;

inline RankedTensorType typeOf(Value value) { return cast<RankedTensorType>(value.getType()); }
inline bool isFloat(Value value) { return isa<FloatType>(typeOf(value).getElementType()); }

struct Build {
  OpBuilder &builder;
  Location loc;

  Value scalar(Type element, double value) {
    return builder.create<ConstantOp>(loc, RankedTensorType::get({}, element), value);
  }
  Value scalar(Value like, double value) { return scalar(typeOf(like).getElementType(), value); }
  Value add(Value a, Value b) { return builder.create<AddOp>(loc, a, b); }
  Value sub(Value a, Value b) { return builder.create<SubOp>(loc, a, b); }
  Value mul(Value a, Value b) { return builder.create<MulOp>(loc, a, b); }
  Value mul(Value a, double b) { return mul(a, scalar(a, b)); }
  Value div(Value a, Value b) { return builder.create<DivOp>(loc, a, b); }
  Value max(Value a, Value b) { return builder.create<MaximumOp>(loc, a, b); }
  Value min(Value a, Value b) { return builder.create<MinimumOp>(loc, a, b); }
  Value neg(Value a) { return builder.create<NegOp>(loc, a); }
  Value compare(Predicate predicate, Value a, Value b) {
    return builder.create<CompareOp>(loc, predicate, a, b);
  }
  Value select(Value condition, Value a, Value b) {
    return builder.create<SelectOp>(loc, condition, a, b);
  }
  Value cast(Value a, Type element) {
    if (typeOf(a).getElementType() == element)
      return a;
    return builder.create<CastOp>(loc, typeOf(a).clone(element), a);
  }
  Value sum(Value a, ArrayRef<int64_t> dims, bool keepDims) {
    return builder.create<ReduceOp>(loc, Reduce::sum, a, dims, keepDims);
  }
  Value reshape(Value a, RankedTensorType type) {
    return typeOf(a) == type ? a : builder.create<ReshapeOp>(loc, type, a).getResult();
  }
  Value broadcast(Value a, RankedTensorType type) {
    return typeOf(a) == type ? a : builder.create<BroadcastOp>(loc, type, a).getResult();
  }

  /// The inverse of a numpy broadcast: sums over the dimensions that were stretched.
  Value reduceToShape(Value a, RankedTensorType type) {
    RankedTensorType from = typeOf(a);
    int64_t added = from.getRank() - type.getRank();
    SmallVector<int64_t> dims;
    for (int64_t d = 0; d < from.getRank(); ++d)
      if (d < added || (type.getDimSize(d - added) == 1 && from.getDimSize(d) != 1))
        dims.push_back(d);
    if (!dims.empty())
      a = sum(a, dims, /*keepDims=*/false);
    return reshape(a, type);
  }
};

} // namespace shoal::nn

#endif // SHOAL_LIB_DIALECT_NN_IR_BUILD_H
