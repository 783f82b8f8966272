// dist-zero: which tensors of the step lie sharded by element over the batch axes. Annotations only; dist-pack lays
// them in buckets, and the partitioner makes the collectives.
#include "Strategy.h"

#include "shoal/Dialect/Dist/Transforms/Passes.h"
#include "shoal/Dialect/Dist/Transforms/SumTerms.h"
#include "shoal/Dialect/NN/IR/Roles.h"

namespace shoal::dist {
#define GEN_PASS_DEF_ZEROPASS
#include "shoal/passes/ShoalDist.h.inc"
} // namespace shoal::dist

using namespace mlir;
using namespace shoal;
using namespace shoal::dist;

namespace {

class Annotator {
public:
  Annotator(FunctionOpInterface func, MeshAttr mesh, ArrayRef<StringAttr> axes, int64_t stage)
      : func(func), mesh(mesh), axes(axes), stage(stage), arguments(func), signature(func) {}

  void run() {
    findShared();
    for (unsigned i = 0; i < func.getNumArguments(); ++i) {
      if (!isOurs(i))
        continue;
      auto state = func.getArgAttrOfType<nn::StateAttr>(i, nn::NNDialect::kStateAttr);
      auto parameter = state ? arguments.find(state.getOf()) : std::nullopt;
      if (state && (!parameter || isOurs(*parameter)))
        annotateArgument(i, /*perUse=*/false, "the optimizer's state");
      // Of a master copy the step reads a cast only, so it is never whole.
      else if (!state && (gathersPerUse(i) || func.getArgAttr(i, nn::NNDialect::kMasterAttr)))
        annotateArgument(i, gathersPerUse(i), "the parameters");
    }
    for (unsigned i = 0; i < func.getNumResults(); ++i) {
      auto gradient = func.getResultAttrOfType<StringAttr>(i, nn::NNDialect::kGradAttr);
      auto parameter = gradient ? arguments.find(gradient) : std::nullopt;
      if (!parameter || !isOurs(*parameter))
        continue;
      signature.setResultAttr(i, DistDialect::kFlatAttr, flat(/*perUse=*/stage >= 2 && !shared.contains(*parameter)));
      signature.setResultAttr(i, DistDialect::kWhyAttr, addCause(DictionaryAttr(), axes, cause("the gradients")));
    }
  }

private:
  /// Of a parameter that several stages of a pipeline read, each stage has the sum of its own terms when its last
  /// micro-batch is done, and not before.
  void findShared() {
    Operation *end = func.getFunctionBody().back().getTerminator();
    for (unsigned i = 0; i < func.getNumResults(); ++i) {
      auto gradient = func.getResultAttrOfType<StringAttr>(i, nn::NNDialect::kGradAttr);
      auto parameter = gradient ? arguments.find(gradient) : std::nullopt;
      if (!parameter || findStages(end->getOperand(i)).size() < 2)
        continue;
      shared.insert(*parameter);
      if (stage >= 2)
        emitRemark(func.getArgument(*parameter).getLoc(), "ZeRO shards \"")
            << gradient.getValue() << "\" as stage 1 does: stages of the pipeline that share it add up its gradient "
            << "over all micro-batches before it is reduced";
    }
  }
  bool gathersPerUse(unsigned parameter) const { return stage == 3 && !shared.contains(parameter); }

  /// A parameter or state that no hand has sharded over these axes. Tells once of one that is left alone.
  bool isOurs(unsigned index) {
    nn::ArgRole role = nn::getArgRole(func, index);
    if (role != nn::ArgRole::Param && role != nn::ArgRole::State)
      return false;
    auto [known, isNew] = ours.try_emplace(index, true);
    ShardingAttr sharding = getSharding(func.getArgument(index));
    if (!isNew || !sharding)
      return known->second;
    known->second = llvm::none_of(axes, [&](StringAttr axis) { return mesh.getAxisSize(axis) > 1 && sharding.uses(axis); });
    if (!known->second)
      emitRemark(func.getArgument(index).getLoc(), "ZeRO leaves \"")
          << nn::getArgName(func, index) << "\" as it is annotated: " << sharding;
    return known->second;
  }

  FlatAttr flat(bool perUse) { return FlatAttr::get(func.getContext(), axes, perUse); }
  CauseAttr cause(StringRef what) {
    return getStrategyCause(func.getContext(), kZeroStages[stage - 1], what);
  }

  void annotateArgument(unsigned index, bool perUse, StringRef what) {
    signature.setArgAttr(index, DistDialect::kFlatAttr, flat(perUse));
    auto why = dyn_cast_or_null<DictionaryAttr>(signature.getArgAttr(index, DistDialect::kWhyAttr));
    signature.setArgAttr(index, DistDialect::kWhyAttr, addCause(why, axes, cause(what)));
  }

  FunctionOpInterface func;
  MeshAttr mesh;
  ArrayRef<StringAttr> axes;
  int64_t stage;
  nn::ArgTable arguments;
  SignatureEdit signature;
  DenseMap<unsigned, bool> ours;
  DenseSet<unsigned> shared; // parameters that several stages read
};

struct ZeroPass : dist::impl::ZeroPassBase<ZeroPass> {
  using Base::Base;

  void runOnOperation() override {
    if (stage < 1 || stage > 3) {
      emitError(getOperation().getLoc(), "stage must be 1, 2 or 3, got: ") << stage.getValue();
      return signalPassFailure();
    }
    auto batch = resolveAxes(getOperation(), SmallVector<std::string>(axes.begin(), axes.end()), kZero);
    if (failed(batch))
      return signalPassFailure();
    bool found = false;
    for (auto func : getOperation().getOps<FunctionOpInterface>()) {
      if (func.isExternal() || !nn::hasGradient(func))
        continue;
      found = true;
      if (stage == 3 && !func->walk([](Operation *op) {
            return op->hasAttr(nn::NNDialect::kLayerAttr) ? WalkResult::interrupt() : WalkResult::advance();
          }).wasInterrupted())
        emitRemark(func->getLoc(), "ZeRO finds no layers (nn.layer): each parameter is gathered on its own");
      Annotator(func, batch->mesh.getMesh(), batch->axes, stage).run();
    }
    if (!found) {
      emitError(getOperation().getLoc(), "ZeRO shards what a training step keeps, no function has a gradient (nn.grad)");
      signalPassFailure();
    }
  }
};

} // namespace
