// dist-data-parallel: the batch over the batch axes. Annotations only; the partitioner makes the collectives.
#include "Strategy.h"

#include "shoal/Dialect/Dist/Transforms/Passes.h"
#include "shoal/Dialect/NN/IR/SignatureErrors.h"

namespace shoal::dist {
#define GEN_PASS_DEF_DATAPARALLELPASS
#include "shoal/passes/ShoalDist.h.inc"
} // namespace shoal::dist

using namespace mlir;
using namespace shoal;
using namespace shoal::dist;

namespace {

struct DataParallelPass : dist::impl::DataParallelPassBase<DataParallelPass> {
  using Base::Base;

  void runOnOperation() override {
    auto batch = resolveAxes(getOperation(), SmallVector<std::string>(axes.begin(), axes.end()), kDataParallel);
    if (failed(batch))
      return signalPassFailure();
    bool found = false;
    for (auto func : getOperation().getOps<FunctionOpInterface>()) {
      if (func.isExternal() || !nn::hasBatchedInput(func))
        continue;
      found = true;
      if (failed(annotate(func, batch->mesh, batch->axes)))
        return signalPassFailure();
    }
    if (!found) {
      emitError(getOperation().getLoc(), "data parallelism needs a batched input (nn.input = \"name\"), "
                                         "no function has one");
      signalPassFailure();
    }
  }

private:
  LogicalResult annotate(FunctionOpInterface func, MeshOp mesh, ArrayRef<StringAttr> split) {
    ArgAnnotator arguments(func, mesh);
    bool anySplit = false;
    for (unsigned index = 0; index < func.getNumArguments(); ++index) {
      if (!nn::isBatchedInput(func, index))
        continue;
      unsigned dim = nn::getBatchDim(func, index);
      switch (arguments.ask(index, dim, split)) {
      case ArgAnnotator::Answer::Free:
        arguments.shard(index, dim, split,
                        getStrategyCause(&getContext(), kDataParallel,
                                         "the batch of \"" + nn::getArgName(func, index) + "\""));
        [[fallthrough]];
      case ArgAnnotator::Answer::HasThem:
        anySplit = true;
        break;
      case ArgAnnotator::Answer::Closed: // written by hand: these rows stay together
        break;
      case ArgAnnotator::Answer::UsedElsewhere:
        return arguments.emitUsedElsewhere(index, dim, split, "data parallelism");
      }
    }
    if (anySplit)
      return success();
    InFlightDiagnostic diag = func.emitError("data parallelism over ");
    llvm::interleaveComma(split, diag);
    return diag << ": annotations by hand keep every batched input whole";
  }
};

} // namespace
