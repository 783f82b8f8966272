// Reductions of buckets, and their sums of squares; see BucketGradients.h.
#include "BucketGradients.h"

#include "AccumulateResults.h"
#include "ForeignAttrs.h"
#include "Reasons.h"

#include "llvm/ADT/MapVector.h"

using namespace mlir;

namespace shoal::dist {

/// What a device has of the padding of a dimension counts in no sum of squares: it becomes 0 here.
Value BucketGradients::mask(const UpdateChain &chain, Value gradient, OpBuilder &b) {
  for (nn::MaskOp mask : chain.masks) {
    auto masked = b.create<nn::MaskOp>(mask.getLoc(), gradient.getType(), gradient, mask.getLimit(), mask.getOffset(),
                                       mask.getDimAttr(), mask.getFillAttr());
    setSharding(masked, getSharding(chain.gradient));
    gradient = masked;
  }
  return gradient;
}

/// The gradients one after another, and zeros.
Value BucketGradients::pack(const Bucket &bucket, OpBuilder &b, ArrayRef<Value> gradients) {
  SmallVector<Value> inputs(gradients);
  SmallVector<int64_t> begins, ends;
  for (const Bucket::Part &part : bucket.parts) {
    begins.push_back(part.begin);
    ends.push_back(part.end);
  }
  RankedTensorType type = typeOf(bucket, gradients.front().getType());
  Location loc = gradients.back().getLoc();
  if (int64_t padding = bucket.size - (bucket.end - bucket.begin)) {
    inputs.push_back(b.create<nn::ConstantOp>(loc, type.clone(ArrayRef(padding)), 0.0));
    setSharding(inputs.back(), lies({}));
    begins.push_back(0);
    ends.push_back(padding);
  }
  return b.create<PackOp>(loc, type, inputs, begins, ends, bucket.group, bucket.at);
}

/// The shard of the sum of what devices have of the bucket.
Value BucketGradients::reduce(const Bucket &bucket, OpBuilder &b, ArrayRef<Value> gradients, DictionaryAttr why) {
  ArrayRef<StringAttr> unreduced = getSharding(bucket.front().gradient).getUnreducedAxes();
  SmallVector<StringAttr> rest;
  for (StringAttr axis : unreduced)
    if (!llvm::is_contained(options.axes, axis))
      rest.push_back(axis);
  Value packed = pack(bucket, b, gradients);
  setSharding(packed, lies({}).withUnreduced(ReduceKindAttrEnum::sum, unreduced));
  // Of the two that one is the gradient which is kept over micro-batches.
  FlatAttr flat = bucket.front().flatGradient;
  bool keepsShards = flat && flat.getPerUse();
  setClass(packed.getDefiningOp(), keepsShards ? exec::StorageClass::workspace : exec::StorageClass::grad);
  ShardingAttr scattered = shard(bucket).withUnreduced(ReduceKindAttrEnum::sum, rest);
  auto reduced =
      b.create<ReshardOp>(packed.getLoc(), packed, scattered, b.getStringAttr(listGradients(bucket.names())));
  setSharding(reduced, scattered);
  setClass(reduced, keepsShards ? exec::StorageClass::grad : exec::StorageClass::workspace);
  reduced->setAttr(DistDialect::kWhyAttr, why);
  return reduced;
}

void BucketGradients::reduceInside(BucketPlan &plan) {
  llvm::MapVector<Operation *, SmallVector<Bucket *>> regions;
  for (Bucket *bucket : plan.getBuckets())
    if (bucket->bundle->reducesInside())
      regions[bucket->front().gradient.getDefiningOp()].push_back(bucket);
  for (auto &[op, buckets] : regions) {
    auto accumulate = cast<AccumulateOp>(op);
    Operation *yield = accumulate.getBody().front().getTerminator();
    OpBuilder b(yield);
    SmallVector<Value> shards;
    for (Bucket *bucket : buckets) {
      SmallVector<Value> gradients;
      for (const Bucket::Part &part : bucket->parts) {
        auto [at, isNew] = masked.try_emplace(part.chain);
        if (isNew)
          at->second = mask(*part.chain, yield->getOperand(cast<OpResult>(part.chain->gradient).getResultNumber()), b);
        gradients.push_back(at->second);
      }
      shards.push_back(
          reduce(*bucket, b, gradients, findWhy(*bucket, bucket->front().flatGradient, bucket->front().gradientAttrs)));
    }
    // Results of the new op in the place of the old one's.
    SmallVector<std::pair<UpdateChain *, unsigned>> held;
    for (BundleBuckets &bundle : plan.getBundles())
      for (UpdateChain &chain : bundle.chains)
        if (chain.gradient.getDefiningOp() == op)
          held.push_back({&chain, cast<OpResult>(chain.gradient).getResultNumber()});
    unsigned before = accumulate->getNumResults();
    accumulate = addResults(accumulate, shards);
    for (auto [chain, index] : held)
      chain->gradient = accumulate->getResult(index);
    for (auto [i, bucket] : llvm::enumerate(buckets))
      bucket->gradient = accumulate->getResult(before + i);
  }
}

void BucketGradients::reduce(Bucket &bucket, DictionaryAttr why) {
  SmallVector<Value> gradients;
  OpBuilder b(func.getContext());
  for (const Bucket::Part &part : bucket.parts) {
    auto [at, isNew] = masked.try_emplace(part.chain);
    if (isNew) {
      b.setInsertionPointAfter(part.chain->gradient.getDefiningOp());
      at->second = mask(*part.chain, part.chain->gradient, b);
    }
    gradients.push_back(at->second);
  }
  Operation *maker = gradients.back().getDefiningOp();
  Operation *&last = lastBehind.try_emplace(maker, maker).first->second;
  b.setInsertionPointAfter(last);
  bucket.gradient = reduce(bucket, b, gradients, why);
  last = bucket.gradient.getDefiningOp();
}

// The global norm.

/// The sum of squares of a bucket.
Value BucketGradients::addSquares(const Bucket &bucket, OpBuilder &b) {
  Value value = bucket.gradient;
  for (Operation *op : bucket.front().squares) {
    if (op) {
      value = build(b, op, {op->getOperand(0)}, {value}, bucket, getSharding(value))->getResult(0);
      continue;
    }
    value = b.create<nn::ReduceOp>(value.getLoc(), nn::Reduce::sum, value, ArrayRef<int64_t>{0}, /*keepDims=*/false);
    setSharding(value, lies({}, /*rank=*/0).withUnreduced(ReduceKindAttrEnum::sum, bucket.front().getFlatAxes()));
  }
  partialSums[value] = true;
  return value;
}

/// What stands for no part of one device's sum: the value is another one.
static void forget(Operation *add) {
  add->removeAttr(DistDialect::kIdAttr);
  add->removeAttr(DistDialect::kGlobalsAttr);
}

/// What a summand is added to on the way to the total is a sum of others from here on.
void BucketGradients::forgetNumbers(Value summand) {
  auto findSum = [](Value value) {
    return value.hasOneUse() ? dyn_cast<nn::AddOp>(*value.getUsers().begin()) : nn::AddOp();
  };
  for (nn::AddOp sum = findSum(summand), next; sum && (next = findSum(sum)) && renumbered.insert(sum).second; sum = next)
    forget(sum);
}

void BucketGradients::sumSquares(BundleBuckets &bundle) {
  if (bundle.front().squares.empty())
    return;
  OpBuilder b(bundle.front().update);
  Value sum;
  for (const Bucket &bucket : bundle.buckets) {
    Value squares = addSquares(bucket, b);
    if (sum) {
      squares = b.create<nn::AddOp>(squares.getLoc(), sum, squares);
      setSharding(squares, lies({}, /*rank=*/0));
    }
    sum = squares;
  }
  if (bundle.chains.size() > 1)
    for (const UpdateChain &chain : bundle.chains)
      forgetNumbers(chain.sumOfSquares);
  for (const UpdateChain &chain : bundle.chains.drop_front()) {
    Operation *add = *chain.sumOfSquares.getUsers().begin();
    Value rest = add->getOperand(add->getOperand(0) == chain.sumOfSquares ? 1 : 0);
    add->replaceAllUsesWith(ValueRange(rest));
    renumbered.erase(add);
    add->erase();
  }
  Value first = bundle.front().sumOfSquares;
  first.replaceAllUsesWith(sum);
  sums.push_back(sum);
}

void BucketGradients::leavePartial() {
  for (Value sum : sums)
    leavePartial(findTotal(sum));
}

bool BucketGradients::leavePartial(Value sum) {
  auto [at, isNew] = partialSums.try_emplace(sum, false);
  auto add = sum.getDefiningOp<nn::AddOp>();
  if (!isNew || !add)
    return at->second;
  bool isPartial = leavePartial(add.getLhs());
  isPartial &= leavePartial(add.getRhs());
  if (isPartial) {
    setSharding(sum, getSharding(add.getLhs()));
    forget(add); // the summands of other devices are others
  }
  return partialSums[sum] = isPartial;
}

} // namespace shoal::dist
