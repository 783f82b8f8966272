// What the `nn` ops mean that only move elements.
#include "Indexing.h"
#include "NNReference.h"

#include <algorithm>

using namespace mlir;

namespace shoal::interp {
namespace {

// Every result element comes from the input element at `source(index)`.
template <typename Source> Tensor gather(Operation *op, const Tensor &input, Source source) {
  Tensor result = resultOf(op);
  forEachIndex(result.shape(),
               [&](ArrayRef<int64_t> index, int64_t k) { result.copy(k, input, source(index)); });
  return result;
}

// The input element whose index equals `index` but is shifted by `start` along one dimension.
int64_t shifted(ArrayRef<int64_t> index, ArrayRef<int64_t> shape, int64_t dim, int64_t start) {
  Index from(index);
  from[dim] += start;
  return linearIndex(from, shape);
}

Results reshape(nn::ReshapeOp op, Operands in) {
  Tensor result = *in[0];
  result.type = op.getResult().getType();
  return single(std::move(result));
}

Results transpose(nn::TransposeOp op, Operands in) {
  return single(gather(op, *in[0], [&](ArrayRef<int64_t> index) {
    Index from(index.size(), 0);
    for (auto [d, input] : llvm::enumerate(op.getPermutation()))
      from[input] = index[d];
    return linearIndex(from, in[0]->shape());
  }));
}

Results broadcast(nn::BroadcastOp op, Operands in) {
  return single(gather(
      op, *in[0], [&](ArrayRef<int64_t> index) { return broadcastIndex(index, in[0]->shape()); }));
}

Results slice(nn::SliceOp op, Operands in) {
  return single(gather(op, *in[0], [&](ArrayRef<int64_t> index) {
    return shifted(index, in[0]->shape(), op.getDim(), op.getStart());
  }));
}

Results dynamicSlice(nn::DynamicSliceOp op, Operands in) {
  int64_t dim = op.getDim();
  int64_t last = in[0]->shape()[dim] - op.getResult().getType().getDimSize(dim);
  int64_t start = std::clamp(in[1]->i[0], int64_t(0), last);
  return single(gather(op, *in[0], [&](ArrayRef<int64_t> index) {
    return shifted(index, in[0]->shape(), dim, start);
  }));
}

Results dynamicUpdateSlice(nn::DynamicUpdateSliceOp op, Operands in) {
  int64_t dim = op.getDim();
  int64_t last = in[0]->shape()[dim] - in[1]->shape()[dim];
  int64_t start = std::clamp(in[2]->i[0], int64_t(0), last);
  Tensor result = *in[0];
  forEachIndex(in[1]->shape(), [&](ArrayRef<int64_t> index, int64_t k) {
    result.copy(shifted(index, result.shape(), dim, start), *in[1], k);
  });
  return single(std::move(result));
}

Results concat(nn::ConcatOp op, Operands in) {
  Tensor result = resultOf(op);
  int64_t start = 0;
  for (const Tensor *input : in) {
    forEachIndex(input->shape(), [&](ArrayRef<int64_t> index, int64_t k) {
      result.copy(shifted(index, result.shape(), op.getDim(), start), *input, k);
    });
    start += input->shape()[op.getDim()];
  }
  return single(std::move(result));
}

Results iota(nn::IotaOp op, Operands) {
  Tensor result = resultOf(op);
  forEachIndex(result.shape(), [&](ArrayRef<int64_t> index, int64_t k) {
    result.i[k] = index[op.getDim()];
  });
  return single(std::move(result));
}

Results pad(nn::PadOp op, Operands in) {
  Tensor result = resultOf(op);
  forEachIndex(in[0]->shape(), [&](ArrayRef<int64_t> index, int64_t k) {
    result.copy(shifted(index, result.shape(), op.getDim(), op.getLow()), *in[0], k);
  });
  return single(std::move(result));
}

// A shard's rows past the end stay zeros.
Results zigzag(nn::ZigzagOp op, Operands in) {
  Tensor result = resultOf(op);
  nn::Zigzag order = op.getOrder();
  int64_t dim = op.getDim(), first = op.getOffset() ? in[1]->i[0] : 0;
  forEachIndex(result.shape(), [&](ArrayRef<int64_t> index, int64_t k) {
    int64_t place = first + index[dim];
    if (place < 0 || place >= order.size)
      return;
    Index from(index);
    from[dim] = op.getInverse() ? order.placeOf(place) : order.rowAt(place);
    result.copy(k, *in[0], linearIndex(from, in[0]->shape()));
  });
  return single(std::move(result));
}

} // namespace

void attachShapeReferences(MLIRContext &context) {
  attachReference<nn::ReshapeOp, reshape>(context);
  attachReference<nn::TransposeOp, transpose>(context);
  attachReference<nn::BroadcastOp, broadcast>(context);
  attachReference<nn::SliceOp, slice>(context);
  attachReference<nn::DynamicSliceOp, dynamicSlice>(context);
  attachReference<nn::PadOp, pad>(context);
  attachReference<nn::DynamicUpdateSliceOp, dynamicUpdateSlice>(context);
  attachReference<nn::ConcatOp, concat>(context);
  attachReference<nn::IotaOp, iota>(context);
  attachReference<nn::ZigzagOp, zigzag>(context);
}

} // namespace shoal::interp
