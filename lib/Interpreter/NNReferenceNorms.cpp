// What the `nn` ops mean that normalise rows, and those that turn pairs of elements by positions.
#include "Indexing.h"
#include "NNReference.h"

#include <cmath>

using namespace mlir;

namespace shoal::interp {
namespace {

Results layerNorm(nn::LayerNormOp op, Operands in) {
  const Tensor &x = *in[0], &scale = *in[1], &bias = *in[2];
  Tensor y = resultOf(op, 0), means = resultOf(op, 1), rstds = resultOf(op, 2);
  int64_t size = x.shape().back();
  for (int64_t row = 0; row < means.size(); ++row) {
    const double *from = x.f.data() + row * size;
    double sum = 0, squares = 0;
    for (int64_t k = 0; k < size; ++k)
      sum += from[k];
    double mean = sum / double(size);
    for (int64_t k = 0; k < size; ++k)
      squares += (from[k] - mean) * (from[k] - mean);
    double rstd = 1 / std::sqrt(squares / double(size) + op.getEps().convertToDouble());
    for (int64_t k = 0; k < size; ++k)
      y.f[row * size + k] = (from[k] - mean) * rstd * scale.f[k] + bias.f[k];
    means.f[row] = mean;
    rstds.f[row] = rstd;
  }
  return SmallVector<Tensor>{std::move(y), std::move(means), std::move(rstds)};
}

Results rmsNorm(nn::RmsNormOp op, Operands in) {
  const Tensor &x = *in[0], &scale = *in[1];
  Tensor y = resultOf(op, 0), rstds = resultOf(op, 1);
  int64_t size = x.shape().back();
  for (int64_t row = 0; row < rstds.size(); ++row) {
    const double *from = x.f.data() + row * size;
    double squares = 0;
    for (int64_t k = 0; k < size; ++k)
      squares += from[k] * from[k];
    double rstd = 1 / std::sqrt(squares / double(size) + op.getEps().convertToDouble());
    for (int64_t k = 0; k < size; ++k)
      y.f[row * size + k] = from[k] * rstd * scale.f[k];
    rstds.f[row] = rstd;
  }
  return SmallVector<Tensor>{std::move(y), std::move(rstds)};
}

// The element of a tensor over the sequence, or over batch and sequence, that belongs to `index`.
int64_t sequenceIndex(ArrayRef<int64_t> index, ArrayRef<int64_t> shape) {
  return shape.size() == 1 ? index[1] : index[0] * shape[1] + index[1];
}

Results rope(nn::RopeOp op, Operands in) {
  const Tensor &x = *in[0], &positions = *in[1];
  Tensor y = resultOf(op);
  int64_t size = x.shape().back(), half = size / 2;
  forEachIndex(x.shape(), [&](ArrayRef<int64_t> index, int64_t k) {
    int64_t pair = index.back() % half;
    bool isFirst = index.back() < half;
    double position = double(positions.i[sequenceIndex(index, positions.shape())]);
    double angle = position * std::pow(op.getBase().convertToDouble(), -double(pair) / double(half));
    double other = x.f[isFirst ? k + half : k - half];
    double sign = isFirst != op.getInverse() ? -1 : 1;
    y.f[k] = x.f[k] * std::cos(angle) + sign * other * std::sin(angle);
  });
  return single(std::move(y));
}

Results ropeTable(nn::RopeTableOp op, Operands in) {
  Tensor cos = resultOf(op, 0), sin = resultOf(op, 1);
  int64_t pairs = cos.shape().back();
  for (int64_t k = 0; k < cos.size(); ++k) {
    double angle = double(in[0]->i[k / pairs]) *
                   std::pow(op.getBase().convertToDouble(), -double(k % pairs) / double(pairs));
    cos.f[k] = std::cos(angle);
    sin.f[k] = std::sin(angle);
  }
  return SmallVector<Tensor>{std::move(cos), std::move(sin)};
}

Results rotate(nn::RotateOp op, Operands in) {
  const Tensor &x = *in[0], &cos = *in[1], &sin = *in[2];
  Tensor y = resultOf(op);
  int64_t pairs = x.shape().back();
  ArrayRef<int64_t> sequence = cos.shape().drop_back();
  forEachIndex(x.shape(), [&](ArrayRef<int64_t> index, int64_t k) {
    bool isFirst = index[index.size() - 2] == 0;
    int64_t at = sequenceIndex(index, sequence) * pairs + index.back();
    double other = x.f[isFirst ? k + pairs : k - pairs];
    double sign = isFirst != op.getInverse() ? -1 : 1;
    y.f[k] = x.f[k] * cos.f[at] + sign * other * sin.f[at];
  });
  return single(std::move(y));
}

} // namespace

void attachNormReferences(MLIRContext &context) {
  attachReference<nn::LayerNormOp, layerNorm>(context);
  attachReference<nn::RmsNormOp, rmsNorm>(context);
  attachReference<nn::RopeOp, rope>(context);
  attachReference<nn::RopeTableOp, ropeTable>(context);
  attachReference<nn::RotateOp, rotate>(context);
}

} // namespace shoal::interp
