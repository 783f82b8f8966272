// nn-bound-indices: inputs say which rows or classes their elements index.
#include "shoal/Dialect/NN/Transforms/Passes.h"

#include "shoal/Dialect/Dist/IR/Dist.h"
#include "shoal/Dialect/NN/IR/Roles.h"

namespace shoal::nn {
#define GEN_PASS_DEF_BOUNDINDICESPASS
#include "shoal/passes/ShoalNN.h.inc"
} // namespace shoal::nn

using namespace mlir;
using namespace shoal;
using namespace shoal::nn;

static void bound(FunctionOpInterface func, unsigned index) {
  auto type = dyn_cast<RankedTensorType>(func.getArgumentTypes()[index]);
  if (getArgRole(func, index) != ArgRole::Input || !type ||
      !(type.getElementType().isInteger(32) || type.getElementType().isInteger(64)))
    return;
  std::optional<IndexRange> found =
      findIndexRange(func.getArgument(index), IndexUse::All, dist::getBodyArgument);
  if (!found)
    return;
  // What is there was found before, while more was in sight, or is the user's.
  if (std::optional<IndexRange> known = getIndexRange(func, index))
    found = intersect(*known, *found);
  func.setArgAttr(index, NNDialect::kIndicesAttr,
                  IndicesAttr::get(func.getContext(), found->size, found->ignored));
}

namespace {

struct BoundIndicesPass : shoal::nn::impl::BoundIndicesPassBase<BoundIndicesPass> {
  void runOnOperation() override {
    for (auto func : getOperation().getOps<FunctionOpInterface>())
      if (!func.isExternal())
        for (unsigned i = 0; i < func.getNumArguments(); ++i)
          bound(func, i);
  }
};

} // namespace
