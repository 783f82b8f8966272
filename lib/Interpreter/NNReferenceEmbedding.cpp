// What embedding and its gradient mean: rows by their numbers, one after another.
#include "Indexing.h"
#include "NNReference.h"

#include <cmath>

using namespace mlir;

namespace shoal::interp {
namespace {

int64_t offsetOf(Operands in) { return in.size() > 2 ? in[2]->i[0] : 0; }

// Numbers may be anything, also what stands for padding: no difference of two is formed before it is
// known to fit.
std::optional<int64_t> rowOf(int64_t id, int64_t offset, int64_t rows) {
  if (id < offset || id >= offset + rows)
    return std::nullopt;
  return id - offset;
}

Results embedding(nn::EmbeddingOp op, Operands in) {
  const Tensor &table = *in[0], &ids = *in[1];
  Tensor result = resultOf(op);
  int64_t width = product(table.shape().drop_front());
  for (int64_t k = 0; k < ids.size(); ++k) {
    int64_t id = ids.i[k];
    bool isKnown = id >= 0 && id < op.getNumRows();
    std::optional<int64_t> row = rowOf(id, offsetOf(in), table.shape()[0]);
    for (int64_t j = 0; j < width; ++j)
      result.f[k * width + j] = !isKnown ? std::nan("") : row ? table.f[*row * width + j] : 0.0;
  }
  return single(std::move(result));
}

Results embeddingGrad(nn::EmbeddingGradOp op, Operands in) {
  const Tensor &ids = *in[0], &cotangent = *in[1];
  Tensor result = resultOf(op);
  int64_t width = product(result.shape().drop_front());
  for (int64_t k = 0; k < ids.size(); ++k)
    if (std::optional<int64_t> row = rowOf(ids.i[k], offsetOf(in), result.shape()[0]))
      for (int64_t j = 0; j < width; ++j)
        result.f[*row * width + j] += cotangent.f[k * width + j];
  return single(std::move(result));
}

} // namespace

void attachEmbeddingReferences(MLIRContext &context) {
  attachReference<nn::EmbeddingOp, embedding>(context);
  attachReference<nn::EmbeddingGradOp, embeddingGrad>(context);
}

} // namespace shoal::interp
