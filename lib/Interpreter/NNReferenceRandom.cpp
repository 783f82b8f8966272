// What the random ops of `nn` mean: the generator is the runtime's.
#include "Indexing.h"
#include "NNReference.h"

#include "shoal-rt/random.h"

using namespace mlir;

namespace shoal::interp {
namespace {

Results dropout(nn::DropoutOp op, Operands in) {
  if (!op.isSeeded())
    return op.emitOpError() << "has no seed and step to draw from; run nn-seed first";
  const Tensor &x = *in[0];
  Tensor result = resultOf(op);
  double rate = op.getRate().convertToDouble();
  uint64_t seed = uint64_t(in[1]->i[0]), offset = op.getOffset() ? uint64_t(in[3]->i[0]) : 0;
  uint64_t words = uint64_t(in[2]->i[0]);
  uint32_t step = uint32_t(words), id = uint32_t(op.getId()) + uint32_t(words >> 32);
  ArrayRef<int64_t> shape = op.getGlobal().value_or(x.shape());
  const Tensor *positions = op.getPositions() ? in.back() : nullptr;
  forEachIndex(x.shape(), [&](ArrayRef<int64_t> index, int64_t k) {
    uint64_t global = 0;
    for (auto [dim, size] : llvm::enumerate(shape)) {
      bool isTold = positions && int64_t(dim) == int64_t(*op.getDim());
      global = global * uint64_t(size) + uint64_t(isTold ? positions->i[index[dim]] : index[dim]);
    }
    if (rt::dropoutKeeps(rate, seed, step, id, offset + global))
      result.f[k] = x.f[k] * (1 / (1 - rate));
  });
  return single(std::move(result));
}

} // namespace

void attachRandomReferences(MLIRContext &context) { attachReference<nn::DropoutOp, dropout>(context); }

} // namespace shoal::interp
