// dist-context-parallel: the sequence over mesh axes. Annotations only: ops that align dimensions of the sequence,
// attention, are built on its shards by the partitioner. Keys left as they lie make a ring; keys that are gathered, or
// heads that take the axis instead of the sequence, are changes of layout around the op.
#include "HeadCounts.h"
#include "SequenceDims.h"
#include "Strategy.h"
#include "ZigzagOrder.h"

#include "shoal/Dialect/Dist/Transforms/Passes.h"
#include "shoal/Dialect/Dist/Transforms/SplitAxis.h"
#include "shoal/Dialect/Dist/Transforms/StepParts.h"
#include "shoal/Dialect/NN/IR/Roles.h"
#include "shoal/Dialect/NN/IR/SignatureErrors.h"
#include "shoal/Interfaces/Origin.h"

#include "llvm/ADT/StringExtras.h"

namespace shoal::dist {
#define GEN_PASS_DEF_CONTEXTPARALLELPASS
#include "shoal/passes/ShoalDist.h.inc"
} // namespace shoal::dist

using namespace mlir;
using namespace shoal;
using namespace shoal::dist;

namespace {

class ContextParallel {
public:
  ContextParallel(func::FuncOp func, MeshOp mesh, ArrayRef<StringAttr> axes, ArrayRef<StringAttr> headAxes,
                  bool keepGathered, const DimGroups &groups, const SequenceDims &sequence)
      : func(func), mesh(mesh), symbol(FlatSymbolRefAttr::get(mesh.getSymNameAttr())), axes(axes), headAxes(headAxes),
        keepGathered(keepGathered), groups(groups), sequence(sequence), known(func, groups),
        forward(findForwardOps(func)), why(getStrategyCause(func.getContext(), kContextParallel, "the sequence")) {}

  /// Inputs that have the sequence lie sharded along it; where none has, what first has it does.
  LogicalResult shardInputs();
  /// Of a strategy that lays inputs in an order of its own: no annotation says how tokens lie.
  LogicalResult verifyInputsAreFree();
  /// Tells of the first op for which tokens must be gathered, since it has no dimension of tokens alone.
  void remarkMergedTokens() const;
  /// Each op that aligns dimensions reads its passing operands whole: keys and values.
  void gatherKeys();
  /// Each of these ops works on all tokens of some heads.
  LogicalResult exchangeHeads();

  CauseAttr getCause() const { return why; }

private:
  /// Tells, true, of a length whose shards over all axes are not parts of those over what still shards it: rows move
  /// between those, too.
  bool remarkUnevenExchange(const DimGroups::Entry &entry, ArrayRef<StringAttr> rest);
  /// What is computed of values that have no dimension of tokens alone, and has one; false where there is nothing.
  bool shardBeginnings();
  /// Whether the heads of all layers can be dealt out to so many devices.
  bool fits(int64_t devices);
  /// The axes of each head factor beside those that it has.
  FailureOr<SmallVector<SmallVector<StringAttr>>> dealHeads(const DimGroups::Entry &entry, ArrayRef<unsigned> factors);

  ReshardOp reshard(OpBuilder &builder, Value value, ShardingAttr to, StringRef reason, Operation *cause);
  /// Who reads a result of an op has it as `wanted`, but those that read it as it is made.
  void reshardResult(Value value, ShardingAttr wanted, StringRef reason, function_ref<bool(Operation *)> readsMade);

  func::FuncOp func;
  MeshOp mesh;
  FlatSymbolRefAttr symbol;
  ArrayRef<StringAttr> axes, headAxes;
  bool keepGathered;
  const DimGroups &groups;
  const SequenceDims &sequence;
  GroupAxes known;
  DenseSet<Operation *> forward;
  CauseAttr why;
};

bool ContextParallel::shardBeginnings() {
  bool anySharded = false;
  for (const DimGroups::Entry &entry : groups.getEntries()) {
    auto hasTokens = [&](Value value) { return sequence.findDim(value).has_value(); };
    if (entry.op->getNumOperands() == 0 || llvm::any_of(entry.op->getOperands(), hasTokens))
      continue;
    for (Value result : entry.op->getResults())
      if (std::optional<unsigned> dim = sequence.findDim(result); dim && !getSharding(result)) {
        setSharding(result, shardAlong(symbol, result, *dim, axes));
        addCause(entry.op, axes, why);
        anySharded = true;
      }
  }
  return anySharded;
}

LogicalResult ContextParallel::shardInputs() {
  ArgAnnotator arguments(func, mesh);
  bool anySharded = false, anyHasTokens = false;
  for (BlockArgument argument : func.getArguments()) {
    unsigned index = argument.getArgNumber();
    std::optional<unsigned> dim = sequence.findDim(argument);
    if (!dim || nn::getArgRole(func, index) != nn::ArgRole::Input)
      continue;
    anyHasTokens = true;
    switch (arguments.ask(index, *dim, axes)) {
    case ArgAnnotator::Answer::Free:
      // Its other dimensions stay open, for the strategies that follow.
      if (!arguments.get(index))
        arguments.set(index, shardAlong(symbol, argument, *dim, {}));
      arguments.shard(index, *dim, axes, why);
      [[fallthrough]];
    case ArgAnnotator::Answer::HasThem:
      anySharded = true;
      break;
    case ArgAnnotator::Answer::Closed: // written by hand: these tokens stay together
      break;
    case ArgAnnotator::Answer::UsedElsewhere:
      return arguments.emitUsedElsewhere(index, *dim, axes, "context parallelism");
    }
  }
  if (anySharded || (!anyHasTokens && shardBeginnings()))
    return success();
  InFlightDiagnostic diag = func.emitError("context parallelism over ");
  llvm::interleaveComma(axes, diag);
  return diag
         << ": no input has the sequence of nn.attention as a dimension of its own, or annotations by hand keep it "
         << "whole";
}

LogicalResult ContextParallel::verifyInputsAreFree() {
  ArgAnnotator arguments(func, mesh);
  for (BlockArgument argument : func.getArguments()) {
    unsigned index = argument.getArgNumber();
    std::optional<unsigned> dim = sequence.findDim(argument);
    if (dim && nn::getArgRole(func, index) == nn::ArgRole::Input &&
        arguments.ask(index, *dim, axes) != ArgAnnotator::Answer::Free)
      return nn::emitArgError(func, index) << "the zigzag order lays dimension " << *dim
                                           << " itself, but an annotation says how it lies: " << arguments.get(index)
                                           << "; leave it out or take --context-parallel ring";
  }
  return success();
}

void ContextParallel::remarkMergedTokens() const {
  for (const DimGroups::Entry &entry : groups.getEntries())
    for (ArrayRef<TensorFactors> tensors : {ArrayRef(entry.rule.operands), ArrayRef(entry.rule.results)})
      for (const TensorFactors &tensor : tensors)
        for (ArrayRef<unsigned> dim : tensor)
          if (dim.size() > 1 &&
              llvm::any_of(dim, [&](unsigned factor) { return sequence.contains(entry.groups[factor]); })) {
            entry.op->emitRemark("merges the sequence with other dimensions, so that each device has all tokens here; "
                                 "keep batch and sequence apart for context parallelism to shard them");
            return;
          }
}

ReshardOp ContextParallel::reshard(OpBuilder &builder, Value value, ShardingAttr to, StringRef reason,
                                   Operation *cause) {
  auto op = builder.create<ReshardOp>(cause->getLoc(), value, to,
                                      builder.getStringAttr(reason + " " + cause->getName().getStringRef()));
  addCause(op, axes, why);
  copyOrigin(cause, op);
  return op;
}

void ContextParallel::reshardResult(Value value, ShardingAttr wanted, StringRef reason,
                                    function_ref<bool(Operation *)> readsMade) {
  Operation *op = value.getDefiningOp();
  OpBuilder builder(func.getContext());
  builder.setInsertionPointAfter(op);
  ReshardOp later = reshard(builder, value, wanted, reason, op);
  value.replaceUsesWithIf(later, [&](OpOperand &use) { return use.getOwner() != later && !readsMade(use.getOwner()); });
  if (later->use_empty())
    later.erase();
}

void ContextParallel::gatherKeys() {
  DenseMap<Value, Value> gathered[2]; // for each pass
  for (const DimGroups::Entry &entry : groups.getEntries())
    for (auto [lead, passing] : entry.rule.aligned) {
      bool isLater = !keepGathered && !forward.contains(entry.op);
      for (auto [i, tensor] : llvm::enumerate(entry.rule.operands)) {
        std::optional<unsigned> dim = findDim(tensor, passing);
        if (!dim)
          continue;
        OpOperand &operand = entry.op->getOpOperand(i);
        Value &whole = gathered[isLater][operand.get()];
        if (!whole) {
          OpBuilder builder(entry.op);
          ReshardOp gather = reshard(builder, operand.get(), shardAlong(symbol, operand.get(), *dim, {}),
                                     "all keys and values for", entry.op);
          if (isLater && gathered[0].contains(operand.get()))
            gather->setAttr(DistDialect::kRefetchAttr, builder.getUnitAttr());
          whole = gather;
        }
        operand.set(whole);
      }
      for (auto [i, tensor] : llvm::enumerate(entry.rule.results)) {
        std::optional<unsigned> dim = findDim(tensor, passing);
        if (!dim)
          continue;
        Value result = entry.op->getResult(i);
        reshardResult(result, shardAlong(symbol, result, *dim, axes),
                      "gradients of keys and values on their own devices behind", [](Operation *) { return false; });
      }
    }
}

bool ContextParallel::fits(int64_t devices) {
  SmallVector<HeadCounts> all = countHeads(groups, known, mesh.getMesh());
  SmallVector<int64_t> sizes = splitForHeads(devices, all);
  return llvm::all_of(all, [&](const HeadCounts &heads) { return heads.deal(sizes).has_value(); });
}

FailureOr<SmallVector<SmallVector<StringAttr>>> ContextParallel::dealHeads(const DimGroups::Entry &entry,
                                                                           ArrayRef<unsigned> factors) {
  MeshAttr attr = mesh.getMesh();
  HeadCounts heads = HeadCounts::of(entry, known, attr);
  auto sizes = llvm::map_to_vector(headAxes, [&](StringAttr axis) { return *attr.getAxisSize(axis); });
  std::optional<SmallVector<bool>> isKeyValue = heads.deal(sizes);
  if (!isKeyValue) {
    int64_t devices = attr.getSize(headAxes), fitting = devices - 1;
    while (fitting > 1 && (devices % fitting != 0 || !fits(fitting)))
      --fitting;
    InFlightDiagnostic diag = entry.op->emitError("Ulysses deals ")
                              << devices << " devices out to key/value heads, as many as divide these, and "
                              << "to the query heads of one, got: " << heads.keyValue
                              << (heads.keyValue == 1 ? " key/value head" : " key/value heads") << " of " << heads.query
                              << (heads.query == 1 ? " query head" : " query heads")
                              << (heads.keyValue == 1 ? "" : " each") << "; take --context-parallel ring or zigzag";
    if (fitting > 1)
      diag << ", or hybrid with an axis \"ulysses\" of " << fitting;
    return diag;
  }
  SmallVector<SmallVector<StringAttr>> dealt(factors.size());
  for (auto [axis, ofKeyValue] : llvm::zip_equal(headAxes, *isKeyValue))
    dealt[ofKeyValue ? 0 : dealt.size() - 1].push_back(axis);
  return dealt;
}

bool ContextParallel::remarkUnevenExchange(const DimGroups::Entry &entry, ArrayRef<StringAttr> rest) {
  int64_t outer = mesh.getMesh().getSize(rest), all = mesh.getMesh().getSize(axes);
  AlignedFactors pair = entry.rule.aligned.front();
  for (unsigned factor : {pair.lead, pair.passing}) {
    int64_t tokens = entry.rule.factors[factor].size, part = shardSize(tokens, all), whole = shardSize(tokens, outer);
    if (outer == 1 || whole * outer == part * all)
      continue;
    entry.op->emitRemark("a sequence of ")
        << tokens << " tokens is cut into parts of " << part << " over " << all << " devices and of " << whole
        << " over " << outer
        << ": tokens move between those before heads are exchanged, in three all-to-alls for one; take a multiple "
        << "of " << all << " tokens";
    return true;
  }
  return false;
}

LogicalResult ContextParallel::exchangeHeads() {
  SmallVector<StringAttr> rest; // of the sequence's axes, what still shards it
  for (StringAttr axis : axes)
    if (!llvm::is_contained(headAxes, axis))
      rest.push_back(axis);
  auto isAligning = [&](Operation *op) {
    auto ruled = dyn_cast<ShardingRuleOpInterface>(op);
    return ruled && !ruled.getShardingRule().aligned.empty();
  };
  DenseMap<Value, Value> exchanged;
  bool isTold = false;
  for (const DimGroups::Entry &entry : groups.getEntries()) {
    if (entry.rule.aligned.empty())
      continue;
    isTold = isTold || remarkUnevenExchange(entry, rest);
    SmallVector<unsigned> headFactors = findHeadFactors(entry);
    auto dealt = dealHeads(entry, headFactors);
    if (failed(dealt))
      return failure();
    AlignedFactors pair = entry.rule.aligned.front();
    // The value by heads, or by tokens; nothing where it has no tokens.
    auto layOut = [&](Value value, const TensorFactors &tensor, bool byHeads) -> ShardingAttr {
      std::optional<unsigned> tokens = findDim(tensor, pair.lead);
      if (!tokens)
        tokens = findDim(tensor, pair.passing);
      if (!tokens)
        return {};
      ShardingAttr sharding = shardAlong(symbol, value, *tokens, byHeads ? ArrayRef<StringAttr>(rest) : axes);
      SmallVector<DimShardingAttr> dims(sharding.getDims());
      for (auto [i, factor] : llvm::enumerate(headFactors))
        if (std::optional<unsigned> dim = findDim(tensor, factor)) {
          SmallVector<StringAttr> all(known.get(entry.groups[factor]));
          if (byHeads)
            llvm::append_range(all, (*dealt)[i]);
          dims[*dim] = DimShardingAttr::get(func.getContext(), all, /*isClosed=*/true, /*priority=*/0);
        }
      return sharding.withDims(dims);
    };
    for (auto [i, tensor] : llvm::enumerate(entry.rule.operands)) {
      OpOperand &operand = entry.op->getOpOperand(i);
      Operation *def = operand.get().getDefiningOp();
      ShardingAttr byHeads = layOut(operand.get(), tensor, /*byHeads=*/true);
      if (!byHeads || (def && isAligning(def)))
        continue;
      Value &value = exchanged[operand.get()];
      if (!value) {
        OpBuilder builder(entry.op);
        value = reshard(builder, operand.get(), byHeads, "all tokens of some heads for", entry.op);
      }
      operand.set(value);
    }
    for (auto [i, tensor] : llvm::enumerate(entry.rule.results)) {
      Value result = entry.op->getResult(i);
      if (ShardingAttr byTokens = layOut(result, tensor, /*byHeads=*/false))
        reshardResult(result, byTokens, "all heads of some tokens behind", isAligning);
    }
  }
  return success();
}

struct ContextParallelPass : dist::impl::ContextParallelPassBase<ContextParallelPass> {
  using Base::Base;

  void runOnOperation() override {
    ArrayRef<StringRef> modes = ArrayRef(kContextModes).drop_front();
    if (!llvm::is_contained(modes, mode.getValue())) {
      emitError(getOperation().getLoc(), "mode must be ") << llvm::join(modes, ", ") << ", got: " << mode;
      return signalPassFailure();
    }
    bool isHybrid = mode == "hybrid", exchangesHeads = isHybrid || mode == "ulysses";
    SmallVector<std::string> names{kContextAxis.str()};
    if (isHybrid)
      names.push_back(kUlyssesAxis.str());
    auto mesh = getMeshWithAxes(getOperation(), names, "context parallelism");
    if (failed(mesh))
      return signalPassFailure();
    StringAttr heads = StringAttr::get(&getContext(), isHybrid ? kUlyssesAxis : kContextAxis);
    auto annotate = [&](func::FuncOp func, DimGroups &&groups) -> LogicalResult {
      FailureOr<SequenceDims> sequence = SequenceDims::find(func, groups);
      if (failed(sequence))
        return failure();
      if (sequence->empty())
        return func.emitError("context parallelism shards the sequence of nn.attention, and the model has none");
      if (exchangesHeads && failed(splitForHeads(func, groups, heads)))
        return failure();
      SmallVector<StringAttr> axes, headAxes = resolveAxis(mesh->getMesh(), heads);
      for (StringRef name : names)
        llvm::append_range(axes, resolveAxis(mesh->getMesh(), name));
      ContextParallel strategy(func, *mesh, axes, headAxes, keepGathered, groups, *sequence);
      strategy.remarkMergedTokens();
      if (mode == "zigzag")
        return failed(strategy.verifyInputsAreFree())
                   ? failure()
                   : storeInZigzag(func, *mesh, *sequence, groups, axes, strategy.getCause());
      if (failed(strategy.shardInputs()))
        return failure();
      if (mode == "allgather")
        strategy.gatherKeys();
      return exchangesHeads ? strategy.exchangeHeads() : success();
    };
    if (failed(forEachModel(getOperation(), annotate)))
      return signalPassFailure();
  }

private:
  /// Where key/value heads are fewer than the axis has devices, they take parts of it.
  LogicalResult splitForHeads(func::FuncOp func, const DimGroups &groups, StringAttr axis) {
    MeshAttr mesh = lookupMesh(getOperation()).getMesh();
    if (resolveAxis(mesh, axis).size() != 1)
      return success(); // split already
    SmallVector<HeadCounts> heads = countHeads(groups, GroupAxes(func, groups), mesh);
    SmallVector<int64_t> sizes = dist::splitForHeads(*mesh.getAxisSize(axis), heads);
    return sizes.size() < 2 ? success() : splitAxis(getOperation(), axis, sizes);
  }
};

} // namespace
