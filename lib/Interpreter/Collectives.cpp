// What the collectives mean: the members' results from the members' inputs, element by element.
// Member k of a group of N holds elements [k * ceil(S/N), (k+1) * ceil(S/N)) of a dimension of
// size S that is sharded over the group.
#include "Combine.h"
#include "Indexing.h"
#include "Rendezvous.h"

#include "llvm/ADT/TypeSwitch.h"

#include <cmath>
#include <limits>

using namespace mlir;

namespace shoal::interp {

Tensor makePadding(RankedTensorType type) {
  Tensor tensor(type);
  tensor.f.assign(tensor.f.size(), std::numeric_limits<double>::quiet_NaN());
  tensor.i.assign(tensor.i.size(), kPaddingInt);
  normalize(tensor, Precision::F64);
  return tensor;
}

namespace {

using Results = FailureOr<SmallVector<Tensor>>;
using Inputs = ArrayRef<TensorRef>;

RankedTensorType typeOf(Value value) { return cast<RankedTensorType>(value.getType()); }

Tensor reduceAll(dist::ReduceKindAttrEnum kind, Inputs in) {
  Tensor result = *in[0];
  for (const TensorRef &input : in.drop_front())
    combine(kind, result, *input);
  return result;
}

// The member's shard of a whole dimension; what lies past the end stays as in `shard`.
void cut(Tensor &shard, const Tensor &whole, int64_t dim, int64_t member) {
  int64_t offset = member * shard.shape()[dim];
  forEachIndex(shard.shape(), [&](ArrayRef<int64_t> index, int64_t k) {
    Index from(index);
    from[dim] += offset;
    if (from[dim] < whole.shape()[dim])
      shard.copy(k, whole, linearIndex(from, whole.shape()));
  });
}

// All members' shards of a dimension put together; padding is dropped.
Tensor concatenate(RankedTensorType type, Inputs in, int64_t dim) {
  Tensor result(type);
  int64_t local = in[0]->shape()[dim];
  forEachIndex(result.shape(), [&](ArrayRef<int64_t> index, int64_t k) {
    Index from(index);
    from[dim] = index[dim] % local;
    result.copy(k, *in[index[dim] / local], linearIndex(from, in[0]->shape()));
  });
  return result;
}

Results forAll(size_t members, const Tensor &result) {
  return SmallVector<Tensor>(members, result);
}

Results reduceScatter(dist::ReduceScatterOp op, Inputs in) {
  Tensor whole = reduceAll(op.getKind(), in);
  SmallVector<Tensor> results;
  for (size_t member = 0; member < in.size(); ++member) {
    results.push_back(makePadding(typeOf(op.getResult())));
    cut(results.back(), whole, op.getDim(), member);
  }
  return results;
}

Results allToAll(dist::AllToAllOp op, Inputs in) {
  // First whole in `concat`, then cut in `split`.
  SmallVector<int64_t> shape(in[0]->shape());
  shape[op.getConcat()] = typeOf(op.getResult()).getDimSize(op.getConcat());
  Tensor whole = concatenate(in[0]->type.clone(shape), in, op.getConcat());
  SmallVector<Tensor> results;
  for (size_t member = 0; member < in.size(); ++member) {
    results.push_back(makePadding(typeOf(op.getResult())));
    cut(results.back(), whole, op.getSplit(), member);
  }
  return results;
}

Results scatter(dist::ScatterOp op, Inputs in) {
  SmallVector<Tensor> results;
  for (size_t member = 0; member < in.size(); ++member) {
    results.emplace_back(typeOf(op.getResult()));
    cut(results.back(), *in[op.getRoot()], 0, member);
  }
  return results;
}

Results gather(dist::GatherOp op, Inputs in) {
  SmallVector<Tensor> results(in.size(), Tensor(typeOf(op.getResult())));
  results[op.getRoot()] = concatenate(typeOf(op.getResult()), in, 0);
  return results;
}

template <typename PermuteOp> Results permute(PermuteOp op, Inputs in) {
  SmallVector<Tensor> results(in.size(), Tensor(typeOf(op.getInput())));
  for (auto [source, target] : llvm::zip_equal(op.getSources(), op.getTargets()))
    results[target] = *in[source];
  return results;
}

} // namespace

Tensor evaluateAllSlice(dist::AllSliceOp op, const Tensor &input, int64_t member) {
  Tensor result(typeOf(op.getResult())); // zeros past the end
  cut(result, input, op.getDim(), member);
  return result;
}

FailureOr<SmallVector<Tensor>> evaluateCollective(Operation *op, Inputs in) {
  return TypeSwitch<Operation *, Results>(op)
      .Case([&](dist::AllReduceOp op) { return forAll(in.size(), reduceAll(op.getKind(), in)); })
      .Case([&](dist::AllGatherOp op) {
        return forAll(in.size(), concatenate(typeOf(op.getResult()), in, op.getDim()));
      })
      .Case([&](dist::ReduceScatterOp op) { return reduceScatter(op, in); })
      .Case([&](dist::AllToAllOp op) { return allToAll(op, in); })
      .Case([&](dist::BroadcastOp op) { return forAll(in.size(), *in[op.getRoot()]); })
      .Case([&](dist::ScatterOp op) { return scatter(op, in); })
      .Case([&](dist::GatherOp op) { return gather(op, in); })
      .Case<dist::CollectivePermuteOp, dist::PermuteStartOp>(
          [&](auto op) { return permute(op, in); })
      .Case([&](dist::BarrierOp) { return SmallVector<Tensor>(); })
      .Default([](Operation *op) { return op->emitError("is no collective"); });
}

} // namespace shoal::interp
