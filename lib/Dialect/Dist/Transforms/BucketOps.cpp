// Ops on buckets; see BucketOps.h.
#include "BucketOps.h"

#include "Causes.h"

#include "mlir/IR/IRMapping.h"

using namespace mlir;

namespace shoal::dist {

ShardingAttr BucketOps::lies(FlatAttr flat, int64_t rank) const {
  auto whole = ShardingAttr::getReplicated(symbol, rank);
  if (!flat)
    return whole;
  return whole.withDims(DimShardingAttr::get(symbol.getContext(), flat.getAxes(), /*isClosed=*/true, /*priority=*/0));
}

Operation *BucketOps::build(OpBuilder &b, Operation *op, ArrayRef<Value> own, ArrayRef<Value> values,
                            const Bucket &bucket, ShardingAttr sharding) const {
  IRMapping mapping;
  for (auto [from, to] : llvm::zip_equal(own, values))
    mapping.map(from, to);
  Operation *made = b.clone(*op, mapping);
  for (NamedAttribute attr : op->getDiscardableAttrs())
    if (attr.getName() == nn::NNDialect::kLayerAttr || isa_and_nonnull<DistDialect>(attr.getNameDialect()))
      made->removeAttr(attr.getName());
  bool isScalar = cast<RankedTensorType>(values.front().getType()).getRank() == 0;
  for (Value result : made->getResults()) {
    if (!isScalar)
      result.setType(typeOf(bucket, result.getType()));
    setSharding(result, sharding);
  }
  return made;
}

DictionaryAttr BucketOps::findWhy(const Bucket &bucket, FlatAttr flat, DictionaryAttr attrs) const {
  const UpdateChain &chain = bucket.front();
  auto recorded = attrs ? attrs.getAs<DictionaryAttr>(DistDialect::kWhyAttr) : DictionaryAttr();
  DictionaryAttr why;
  for (StringAttr axis : chain.getFlatAxes()) {
    auto cause = dyn_cast_or_null<CauseAttr>(findCauses(recorded, axis));
    if (!cause)
      cause = chain.handCause;
    if (flat && flat.getPerUse() && chain.layer && chain.flatParam == flat)
      cause = CauseAttr::get(symbol.getContext(), cause.getWhat(), chain.layer, cause.getStrategy());
    why = addCause(why, axis, cause);
  }
  return why;
}

} // namespace shoal::dist
