// Builds short chains of `nn` ops at one location: what gradients and decompositions are written
// with.
#ifndef SHOAL_LIB_DIALECT_NN_IR_BUILD_H
#define SHOAL_LIB_DIALECT_NN_IR_BUILD_H

#include "shoal/Dialect/NN/IR/NN.h"
#include "shoal/Interfaces/AddFactors.h"
#include "shoal/Support/Elements.h"

namespace shoal::nn {

inline mlir::RankedTensorType typeOf(mlir::Value value) {
  return llvm::cast<mlir::RankedTensorType>(value.getType());
}
inline bool isFloat(mlir::Value value) {
  return llvm::isa<mlir::FloatType>(typeOf(value).getElementType());
}
/// The type of one number per row of a tensor (its last dimension), as wide as it is computed:
/// log-sum-exps, means.
inline mlir::RankedTensorType getRowStatisticType(mlir::Type rows) {
  auto type = llvm::cast<mlir::RankedTensorType>(rows);
  return mlir::RankedTensorType::get(type.getShape().drop_back(type.getRank() > 0),
                                     computeType(type.getElementType()));
}

/// Of `localize`: the index of a shard's first element, where an earlier partition over other axes may have left one.
inline mlir::Value addOffsets(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value earlier, mlir::Value shard) {
  if (!earlier || !shard)
    return earlier ? earlier : shard;
  return builder.create<AddOp>(loc, earlier, shard);
}
/// Of `localize`: `local` stands for `op` on one device.
inline llvm::LogicalResult finishLocalize(mlir::Operation *op, mlir::Operation *local,
                                          llvm::SmallVectorImpl<mlir::Value> &results) {
  local->setDiscardableAttrs(op->getDiscardableAttrDictionary());
  llvm::append_range(results, local->getResults());
  return mlir::success();
}

struct Build {
  mlir::OpBuilder &builder;
  mlir::Location loc;

  mlir::Value scalar(mlir::Type element, double value) {
    return builder.create<ConstantOp>(loc, mlir::RankedTensorType::get({}, element), value);
  }
  mlir::Value scalar(mlir::Value like, double value) {
    return scalar(typeOf(like).getElementType(), value);
  }
  mlir::Value add(mlir::Value a, mlir::Value b) { return builder.create<AddOp>(loc, a, b); }
  mlir::Value sub(mlir::Value a, mlir::Value b) { return builder.create<SubOp>(loc, a, b); }
  mlir::Value mul(mlir::Value a, mlir::Value b) { return builder.create<MulOp>(loc, a, b); }
  mlir::Value mul(mlir::Value a, double b) { return mul(a, scalar(a, b)); }
  mlir::Value div(mlir::Value a, mlir::Value b) { return builder.create<DivOp>(loc, a, b); }
  mlir::Value max(mlir::Value a, mlir::Value b) { return builder.create<MaximumOp>(loc, a, b); }
  mlir::Value min(mlir::Value a, mlir::Value b) { return builder.create<MinimumOp>(loc, a, b); }
  mlir::Value neg(mlir::Value a) { return builder.create<NegOp>(loc, a); }
  mlir::Value compare(Predicate predicate, mlir::Value a, mlir::Value b) {
    return builder.create<CompareOp>(loc, predicate, a, b);
  }
  mlir::Value select(mlir::Value condition, mlir::Value a, mlir::Value b) {
    return builder.create<SelectOp>(loc, condition, a, b);
  }
  mlir::Value cast(mlir::Value a, mlir::Type element) {
    if (typeOf(a).getElementType() == element)
      return a;
    return builder.create<CastOp>(loc, typeOf(a).clone(element), a);
  }
  /// In the type that is computed in: chains of ops on bf16 are rounded once, at their end.
  mlir::Value wide(mlir::Value a) { return cast(a, computeType(typeOf(a).getElementType())); }
  mlir::Value sum(mlir::Value a, llvm::ArrayRef<int64_t> dims, bool keepDims) {
    return builder.create<ReduceOp>(loc, Reduce::sum, a, dims, keepDims);
  }
  mlir::Value reshape(mlir::Value a, mlir::RankedTensorType type) {
    return typeOf(a) == type ? a : builder.create<ReshapeOp>(loc, type, a).getResult();
  }
  mlir::Value broadcast(mlir::Value a, mlir::RankedTensorType type) {
    return typeOf(a) == type ? a : builder.create<BroadcastOp>(loc, type, a).getResult();
  }

  /// The inverse of a numpy broadcast: sums over the dimensions that were stretched.
  mlir::Value reduceToShape(mlir::Value a, mlir::RankedTensorType type) {
    mlir::RankedTensorType from = typeOf(a);
    int64_t added = from.getRank() - type.getRank();
    llvm::SmallVector<int64_t> dims;
    for (int64_t d = 0; d < from.getRank(); ++d)
      if (d < added || (type.getDimSize(d - added) == 1 && from.getDimSize(d) != 1))
        dims.push_back(d);
    if (!dims.empty())
      a = sum(a, dims, /*keepDims=*/false);
    return reshape(a, type);
  }
};

/// Of a `localize` that makes several ops at the end of a block: the last one before them.
inline mlir::Operation *findLast(mlir::OpBuilder &builder) {
  mlir::Block *block = builder.getInsertionBlock();
  return block->empty() ? nullptr : &block->back();
}
/// What was made behind `last` says of itself what the op does. Positions, vectors of integers and what they are made of,
/// are the same for all layers.
inline void keepAttributes(mlir::Operation *op, mlir::OpBuilder &builder, mlir::Operation *last) {
  mlir::Block *block = builder.getInsertionBlock();
  for (mlir::Operation *made = last ? last->getNextNode() : &block->front(); made; made = made->getNextNode()) {
    auto type = mlir::dyn_cast<mlir::RankedTensorType>(made->getResult(0).getType());
    if (!type || type.getRank() > 1 || mlir::isa<mlir::FloatType>(type.getElementType()))
      for (mlir::NamedAttribute attr : op->getDiscardableAttrs())
        made->setDiscardableAttr(attr.getName(), attr.getValue());
  }
}

/// Of `localize`: the positions of a shard's rows, of which the first lies at `offset`, from those of all rows. Rows
/// past the end do not exist, as -1 says; so many stand behind the others that a shard without rows has nothing else.
inline mlir::Value takePositions(Build b, mlir::Value positions, mlir::Value offset, int64_t rows) {
  mlir::RankedTensorType shard = typeOf(positions).clone({rows});
  mlir::Value absent = b.builder.create<ConstantOp>(b.loc, shard, -1);
  mlir::RankedTensorType padded = typeOf(positions).clone({typeOf(positions).getDimSize(0) + rows});
  mlir::Value all = b.builder.create<ConcatOp>(b.loc, padded, mlir::ValueRange{positions, absent}, /*dim=*/0);
  return b.builder.create<DynamicSliceOp>(b.loc, shard, all, offset, /*dim=*/0);
}

} // namespace shoal::nn

#endif // SHOAL_LIB_DIALECT_NN_IR_BUILD_H
