// pipe-split: the region over micro-batches of a local step becomes calls of functions, one for each part of a stage,
// which say what stages send each other and what each keeps from its forward pass.
#include "SplitStages.h"
#include "StageParts.h"

#include "shoal/Dialect/Dist/IR/AxisRoles.h"
#include "shoal/Dialect/NN/IR/NN.h"
#include "shoal/Dialect/Pipe/Transforms/Passes.h"

#include "mlir/IR/IRMapping.h"

using namespace mlir;

namespace shoal::pipe {

#define GEN_PASS_DEF_SPLITPASS
#include "shoal/passes/ShoalPipe.h.inc"

namespace {

/// What one stage adds to a result of the region.
struct StageSum {
  unsigned result;
  SmallVector<Value> terms;
};

/// Replaces the region of one step.
class Splitter {
public:
  Splitter(func::FuncOp func, dist::AccumulateOp loop, int64_t stages, bool splitsBackward)
      : func(func), loop(loop), body(loop.getBody().front()), stages(stages),
        parts(func, loop, stages, splitsBackward) {}

  LogicalResult run() {
    if (failed(parts.run()))
      return failure();
    build();
    return success();
  }

private:
  void build();
  void buildFunction(PartId part, const PartInterface &interface, OpBuilder &calls, IRMapping &outside);
  void replaceSums(dist::AccumulateOp fresh, ArrayRef<StageSum> sums);

  /// What the call of a part gives for a value of the old region.
  Value getResult(PartId part, Value value) {
    const auto &outputs = parts.getInterfaces().at(part).outputs;
    return made.at(part).getResult(llvm::find(outputs, value) - outputs.begin());
  }
  std::string getName(PartId part) {
    return (func.getSymName() + ".stage" + Twine(part.stage) + "." + stringifyPart(part.part)).str();
  }

  func::FuncOp func;
  dist::AccumulateOp loop;
  Block &body;
  int64_t stages;
  StageParts parts;
  std::map<PartId, CallOp> made;
};

} // namespace

/// The function of a part, and its call in the new region. `outside` maps what the region reads of it.
void Splitter::buildFunction(PartId id, const PartInterface &interface, OpBuilder &calls, IRMapping &outside) {
  OpBuilder b(func->getContext());
  b.setInsertionPoint(func);
  auto typesOf = [](ArrayRef<Value> values) { return llvm::map_to_vector(values, [](Value v) { return v.getType(); }); };
  ArrayRef<Value> inputs = interface.inputs.getArrayRef(), outputs = interface.outputs.getArrayRef();
  auto function = b.create<func::FuncOp>(func.getLoc(), getName(id),
                                         b.getFunctionType(typesOf(inputs), typesOf(outputs)));
  function.setPrivate();
  Block *entry = function.addEntryBlock();
  b.setInsertionPointToEnd(entry);
  IRMapping local;
  local.map(inputs, entry->getArguments());
  for (Operation &op : body.without_terminator()) {
    if (!parts.has(&op, id))
      continue;
    for (Value read : StageParts::getReads(&op))
      if (!local.contains(read))
        local.map(read, b.clone(*read.getDefiningOp())->getResult(cast<OpResult>(read).getResultNumber()));
    b.clone(op, local);
  }
  b.create<func::ReturnOp>(func.getLoc(), llvm::map_to_vector(outputs, [&](Value v) { return local.lookup(v); }));

  SmallVector<Value> operands;
  for (Value input : inputs)
    operands.push_back(parts.getInner(input) ? getResult(*parts.findSource(id, input), input)
                                             : outside.lookupOrDefault(input));
  made[id] = calls.create<CallOp>(func.getLoc(), TypeRange(typesOf(outputs)), id.part, id.stage,
                                  function.getSymName(), operands);
}

/// The results of the old region, each as the sum of what stages have made of it.
void Splitter::replaceSums(dist::AccumulateOp fresh, ArrayRef<StageSum> sums) {
  OpBuilder b(func->getContext());
  b.setInsertionPointAfter(fresh);
  auto tags = loop->getAttrOfType<ArrayAttr>(dist::DistDialect::kGlobalsAttr);
  SmallVector<Value> totals(loop.getNumResults());
  for (auto [sum, part] : llvm::zip_equal(sums, fresh.getResults())) {
    Value &total = totals[sum.result];
    total = total ? Value(b.create<nn::AddOp>(part.getLoc(), total, part)) : Value(part);
  }
  if (tags && totals.size() == sums.size())
    fresh->setAttr(dist::DistDialect::kGlobalsAttr, tags);
  else if (tags)
    for (auto [total, tag] : llvm::zip_equal(totals, tags))
      if (auto add = total.getDefiningOp<nn::AddOp>())
        add->setAttr(dist::DistDialect::kGlobalsAttr, b.getArrayAttr(tag));
  loop.replaceAllUsesWith(totals);
}

void Splitter::build() {
  SmallVector<StageSum> sums;
  for (auto [result, values] : llvm::enumerate(parts.getTerms())) {
    std::map<int64_t, SmallVector<Value>> byStage;
    for (Value term : values)
      byStage[parts.getHome(term).stage].push_back(term);
    for (auto &[stage, own] : byStage)
      sums.push_back({unsigned(result), std::move(own)});
  }
  OpBuilder b(loop);
  auto types = llvm::map_to_vector(sums, [&](const StageSum &sum) { return loop.getResult(sum.result).getType(); });
  auto fresh = b.create<dist::AccumulateOp>(loop.getLoc(), TypeRange(types), loop.getInputs(), loop.getMicrobatchesAttr());
  for (NamedAttribute attr : loop->getDiscardableAttrs())
    if (attr.getName() != dist::DistDialect::kGlobalsAttr)
      fresh->setAttr(attr.getName(), attr.getValue());
  Block &block = fresh.getBody().emplaceBlock();
  IRMapping outside;
  for (BlockArgument argument : body.getArguments())
    outside.map(argument, block.addArgument(argument.getType(), argument.getLoc()));
  OpBuilder calls = OpBuilder::atBlockEnd(&block);
  for (auto &[id, interface] : parts.getInterfaces())
    if (id.isForward())
      buildFunction(id, interface, calls, outside);
  for (int64_t stage = stages; stage-- > 0;)
    for (auto &[id, interface] : parts.getInterfaces())
      if (id.stage == stage && !id.isForward())
        buildFunction(id, interface, calls, outside);
  SmallVector<Value> yields;
  for (const StageSum &sum : sums) {
    Value total;
    for (Value term : sum.terms) {
      Value value = getResult(parts.getHome(term), term);
      total = total ? Value(calls.create<nn::AddOp>(term.getLoc(), total, value)) : value;
    }
    yields.push_back(total);
  }
  calls.create<dist::YieldOp>(loop.getLoc(), yields);
  replaceSums(fresh, sums);
  loop.erase();
}

/// The region over micro-batches that stages share; null after an error.
static dist::AccumulateOp findLoop(func::FuncOp func) {
  dist::AccumulateOp found, single;
  for (auto loop : func.getBody().front().getOps<dist::AccumulateOp>()) {
    llvm::SmallSetVector<Attribute, 4> stages;
    for (Operation &op : loop.getBody().front())
      if (Attribute stage = op.getAttr(PipeDialect::kStageAttr))
        stages.insert(stage);
    if (stages.size() == 1 && !single)
      single = loop;
    if (stages.size() < 2)
      continue;
    if (found) {
      auto diag = loop.emitOpError() << "is a second region over micro-batches with ops of several stages: what it sums "
                                        "is needed before the others begin, which no schedule has a place for";
      diag.attachNote(found.getLoc()) << "the first one";
      return {};
    }
    found = loop;
  }
  if (!found)
    found = single; // the others compute nothing, as those behind an output of inference
  if (!found)
    emitError(func.getLoc()) << "a pipeline needs a region over micro-batches (dist-microbatch) with ops of its "
                                "stages, got: none";
  return found;
}

LogicalResult splitStages(ModuleOp module, int64_t stages, bool splitsBackward) {
  for (auto func : llvm::to_vector(module.getOps<func::FuncOp>())) {
    if (func.isExternal())
      continue;
    dist::AccumulateOp loop = findLoop(func);
    if (!loop || failed(Splitter(func, loop, stages, splitsBackward).run()))
      return failure();
  }
  return success();
}

namespace {

struct SplitPass : impl::SplitPassBase<SplitPass> {
  using SplitPassBase::SplitPassBase;

  void runOnOperation() override {
    if (!dist::hasPipeline(getOperation()))
      return;
    auto schedules = llvm::to_vector(getOperation().getOps<ScheduleOp>());
    if (schedules.size() != 1) {
      getOperation().emitError() << "stages are those of one pipe.schedule, got: " << schedules.size();
      return signalPassFailure();
    }
    Schedule schedule = schedules.front().getSchedule();
    bool splitsBackward = pipe::splitsBackward(schedule);
    if (failed(splitStages(getOperation(), schedule.shape.getStages(), splitsBackward)))
      signalPassFailure();
  }
};

} // namespace

} // namespace shoal::pipe
