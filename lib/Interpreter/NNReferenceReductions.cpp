// What the `nn` ops mean that contract, reduce or normalise a dimension.
#include "Indexing.h"
#include "NNReference.h"

#include <cmath>
#include <limits>

using namespace mlir;

namespace shoal::interp {
namespace {

// A matrix of `rows` x `columns`, stored the other way round when `isTransposed`.
std::vector<double> matrix(const double *data, int64_t rows, int64_t columns, bool isTransposed) {
  std::vector<double> result(data, data + rows * columns);
  for (int64_t i = 0; isTransposed && i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j)
      result[i * columns + j] = data[j * rows + i];
  return result;
}

// sum += left (m x k) times right (k x n).
void addProduct(const std::vector<double> &left, const std::vector<double> &right, int64_t m,
                int64_t n, int64_t k, double *sum) {
  for (int64_t i = 0; i < m; ++i)
    for (int64_t l = 0; l < k; ++l)
      for (int64_t j = 0; j < n; ++j)
        sum[i * n + j] += left[i * k + l] * right[l * n + j];
}

Results matmul(nn::MatmulOp op, Operands in) {
  const Tensor &a = *in[0], &b = *in[1];
  Tensor result = resultOf(op);
  int64_t rankA = a.type.getRank(), rankB = b.type.getRank();
  int64_t m = a.shape()[rankA - 2], k = a.shape()[rankA - 1], n = b.shape()[rankB - 1];
  if (op.getTransposeA())
    std::swap(m, k);
  if (op.getTransposeB())
    n = b.shape()[rankB - 2];
  int64_t batches = product(a.shape().drop_back(2));
  bool sharedB = rankB == 2;
  for (int64_t batch = 0; batch < batches; ++batch) {
    auto left = matrix(a.f.data() + batch * m * k, m, k, op.getTransposeA());
    auto right = matrix(b.f.data() + (sharedB ? 0 : batch * k * n), k, n, op.getTransposeB());
    addProduct(left, right, m, n, k,
               result.f.data() + (op.getSumBatch() ? 0 : batch * m * n));
  }
  return single(std::move(result));
}

Results tensordot(nn::TensordotOp op, Operands in) {
  Tensor result = resultOf(op);
  int64_t m = product(op.getOuterOfA()), n = product(op.getOuterOfB()),
          k = product(op.getInnerOfA());
  addProduct(matrix(in[0]->f.data(), m, k, op.getTransposeA()),
             matrix(in[1]->f.data(), k, n, op.getTransposeB()), m, n, k, result.f.data());
  return single(std::move(result));
}

// The element of the reduced tensor that an input element goes into.
int64_t reducedIndex(ArrayRef<int64_t> index, ArrayRef<int64_t> shape, ArrayRef<int64_t> dims) {
  int64_t linear = 0;
  for (int64_t d = 0; d < int64_t(shape.size()); ++d)
    if (!llvm::is_contained(dims, d))
      linear = linear * shape[d] + index[d];
  return linear;
}

Results reduce(nn::ReduceOp op, Operands in) {
  const Tensor &x = *in[0];
  Tensor result = resultOf(op);
  bool isMax = op.getKind() == nn::Reduce::max;
  if (isMax) {
    result.f.assign(result.f.size(), -std::numeric_limits<double>::infinity());
    result.i.assign(result.i.size(), std::numeric_limits<int64_t>::min());
  }
  forEachIndex(x.shape(), [&](ArrayRef<int64_t> index, int64_t k) {
    int64_t to = reducedIndex(index, x.shape(), op.getDims());
    if (!x.isFloat())
      result.i[to] = isMax ? std::max(result.i[to], x.i[k])
                           : int64_t(uint64_t(result.i[to]) + uint64_t(x.i[k]));
    else if (!isMax)
      result.f[to] += x.f[k];
    else if (std::isnan(x.f[k]) || x.f[k] > result.f[to])
      result.f[to] = x.f[k]; // once NaN it stays: nothing compares greater
  });
  if (op.getKind() == nn::Reduce::mean) {
    int64_t count = x.size() / std::max<int64_t>(result.size(), 1);
    for (int64_t k = 0; k < result.size(); ++k)
      if (result.isFloat())
        result.f[k] /= double(count);
      else if (count != 0) // a mean of nothing, as of floats, is no number
        result.i[k] /= count;
  }
  return single(std::move(result));
}

Tensor logSoftmaxOver(const Tensor &x, int64_t dim) {
  Tensor result = x;
  int64_t size = x.shape()[dim], inner = product(x.shape().drop_front(dim + 1));
  for (int64_t outer = 0; outer < product(x.shape().take_front(dim)); ++outer)
    for (int64_t i = 0; i < inner; ++i) {
      int64_t base = outer * size * inner + i;
      double max = -std::numeric_limits<double>::infinity();
      for (int64_t k = 0; k < size; ++k) {
        double value = x.f[base + k * inner];
        if (std::isnan(value) || value > max)
          max = value;
      }
      double sum = 0;
      for (int64_t k = 0; k < size; ++k)
        sum += std::exp(x.f[base + k * inner] - max);
      for (int64_t k = 0; k < size; ++k)
        result.f[base + k * inner] = x.f[base + k * inner] - max - std::log(sum);
    }
  return result;
}

Results logSoftmax(nn::LogSoftmaxOp op, Operands in) {
  return single(logSoftmaxOver(*in[0], op.getDim()));
}

Results softmax(nn::SoftmaxOp op, Operands in) {
  Tensor result = logSoftmaxOver(*in[0], op.getDim());
  for (double &value : result.f)
    value = std::exp(value);
  return single(std::move(result));
}

Results batchNorm(nn::BatchNormOp op, Operands in) {
  const Tensor &x = *in[0];
  double momentum = op.getMomentum().convertToDouble(), eps = op.getEps().convertToDouble();
  Tensor y = resultOf(op, 0), newMean = resultOf(op, 1), newVar = resultOf(op, 2);
  for (int64_t feature = 0; feature < newMean.size(); ++feature) {
    auto forEachOfFeature = [&](auto visit) {
      forEachIndex(x.shape(), [&](ArrayRef<int64_t> index, int64_t k) {
        if (index[1] == feature)
          visit(k);
      });
    };
    double count = 0, sum = 0, squares = 0;
    forEachOfFeature([&](int64_t k) { sum += x.f[k], ++count; });
    double mean = sum / count;
    forEachOfFeature([&](int64_t k) { squares += (x.f[k] - mean) * (x.f[k] - mean); });
    double deviation = std::sqrt(squares / count + eps);
    forEachOfFeature([&](int64_t k) {
      y.f[k] = (x.f[k] - mean) / deviation * in[1]->f[feature] + in[2]->f[feature];
    });
    double unbiased = count > 1 ? squares / (count - 1) : squares;
    newMean.f[feature] = (1 - momentum) * in[3]->f[feature] + momentum * mean;
    newVar.f[feature] = (1 - momentum) * in[4]->f[feature] + momentum * unbiased;
  }
  return SmallVector<Tensor>{std::move(y), std::move(newMean), std::move(newVar)};
}

} // namespace

void attachReductionReferences(MLIRContext &context) {
  attachReference<nn::MatmulOp, matmul>(context);
  attachReference<nn::TensordotOp, tensordot>(context);
  attachReference<nn::ReduceOp, reduce>(context);
  attachReference<nn::BatchNormOp, batchNorm>(context);
  attachReference<nn::SoftmaxOp, softmax>(context);
  attachReference<nn::LogSoftmaxOp, logSoftmax>(context);
}

} // namespace shoal::interp
