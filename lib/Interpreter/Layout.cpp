// Between whole tensors and the shards of ranks, and between doubles and element types.
#include "Indexing.h"

#include "shoal/Dialect/Dist/IR/Dist.h"
#include "shoal/Interpreter/Interpreter.h"

#include <limits>

using namespace mlir;

namespace shoal::interp {

SmallVector<int64_t> shardOffsets(ArrayRef<int64_t> localShape, dist::ShardingAttr sharding,
                                  dist::MeshAttr mesh, int64_t position) {
  SmallVector<int64_t> offsets;
  for (auto [d, size] : llvm::enumerate(localShape))
    offsets.push_back(size * mesh.getIndexAlong(position, sharding.getDimAxes(d)));
  return offsets;
}

// What leaves a reduction as it is.
static double identityOf(dist::ReduceKindAttrEnum kind) {
  switch (kind) {
  case dist::ReduceKindAttrEnum::sum:
    return 0;
  case dist::ReduceKindAttrEnum::max:
    return -std::numeric_limits<double>::infinity();
  case dist::ReduceKindAttrEnum::min:
    return std::numeric_limits<double>::infinity();
  }
  llvm_unreachable("unknown kind");
}

static int64_t intIdentityOf(dist::ReduceKindAttrEnum kind) {
  switch (kind) {
  case dist::ReduceKindAttrEnum::sum:
    return 0;
  case dist::ReduceKindAttrEnum::max:
    return std::numeric_limits<int64_t>::min();
  case dist::ReduceKindAttrEnum::min:
    return std::numeric_limits<int64_t>::max();
  }
  llvm_unreachable("unknown kind");
}

Tensor takeShard(const Tensor &whole, dist::ShardingAttr sharding, dist::MeshAttr mesh,
                 int64_t position) {
  Tensor shard(sharding.getLocalType(whole.type, mesh));
  SmallVector<int64_t> offsets = shardOffsets(shard.shape(), sharding, mesh, position);
  bool holdsValue = mesh.getIndexAlong(position, sharding.getUnreducedAxes()) == 0;
  forEachIndex(shard.shape(), [&](ArrayRef<int64_t> index, int64_t k) {
    Index global(index);
    bool inside = true;
    for (size_t d = 0; d < global.size(); ++d) {
      global[d] += offsets[d];
      inside &= global[d] < whole.shape()[d];
    }
    int64_t from = inside ? linearIndex(global, whole.shape()) : 0;
    if (shard.isFloat())
      shard.f[k] = !inside      ? std::numeric_limits<double>::quiet_NaN()
                   : holdsValue ? whole.f[from]
                                : identityOf(sharding.getUnreducedKind());
    else
      shard.i[k] = !inside      ? kPaddingInt
                   : holdsValue ? whole.i[from]
                                : intIdentityOf(sharding.getUnreducedKind());
  });
  normalize(shard, Precision::F64);
  return shard;
}

void normalize(Tensor &tensor, Precision precision) {
  Type element = tensor.type.getElementType();
  if (auto type = dyn_cast<FloatType>(element)) {
    if (precision == Precision::F64 || type.isF64())
      return;
    if (type.isF32()) {
      for (double &value : tensor.f)
        value = double(float(value));
      return;
    }
    for (double &value : tensor.f) {
      bool inexact;
      APFloat rounded(value);
      rounded.convert(type.getFloatSemantics(), APFloat::rmNearestTiesToEven, &inexact);
      rounded.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven, &inexact);
      value = rounded.convertToDouble();
    }
    return;
  }
  unsigned width = element.isIndex() ? 64 : element.getIntOrFloatBitWidth();
  if (width >= 64)
    return;
  for (int64_t &value : tensor.i)
    value = width == 1 ? value & 1 : int64_t(uint64_t(value) << (64 - width)) >> (64 - width);
}

} // namespace shoal::interp
