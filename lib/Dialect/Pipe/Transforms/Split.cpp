// pipe-split: the region over micro-batches of a local step becomes calls of functions, one for each part of a stage,
// which say what stages send each other and what each keeps from its forward pass.
#include "SplitStages.h"

#include "shoal/Dialect/Dist/IR/AxisRoles.h"
#include "shoal/Dialect/Dist/Transforms/StepParts.h"
#include "shoal/Dialect/Dist/Transforms/SumTerms.h"
#include "shoal/Dialect/NN/IR/NN.h"
#include "shoal/Dialect/Pipe/Transforms/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Transforms/RegionUtils.h"

using namespace mlir;

namespace shoal::pipe {

#define GEN_PASS_DEF_SPLITPASS
#include "shoal/passes/ShoalPipe.h.inc"

namespace {

/// A part of a stage: what one function holds.
struct PartId {
  int64_t stage;
  Part part;
  bool isForward() const { return part == Part::Forward; }
  auto key() const { return std::pair(stage, part); }
  bool operator==(const PartId &) const = default;
  bool operator<(const PartId &other) const { return key() < other.key(); }
};

/// What a function takes and gives, as values of the region that is cut.
struct Interface {
  llvm::SetVector<Value> inputs, outputs;
  CallOp call;
};

/// What one stage adds to a result of the region.
struct StageSum {
  unsigned result;
  SmallVector<Value> terms;
};

class Splitter {
public:
  Splitter(func::FuncOp func, dist::AccumulateOp loop, int64_t stages, bool splitsBackward)
      : func(func), loop(loop), body(loop.getBody().front()), stages(stages), splitsBackward(splitsBackward),
        forward(dist::findModelOps(func)) {}

  LogicalResult run();

private:
  LogicalResult placeOps();
  void spreadOverTerms(OpOperand &use);
  void addRepeated(SmallVectorImpl<Value> &terms);
  void place(Operation *op, bool isTerm);
  void splitBackward();
  LogicalResult connect();
  LogicalResult request(PartId part, Value value);
  FailureOr<PartId> findSource(PartId part, Value value, ArrayRef<PartId> copies);
  void build();
  void buildFunction(PartId part, Interface &interface, OpBuilder &calls, IRMapping &outside);
  void replaceSums(dist::AccumulateOp fresh, ArrayRef<StageSum> sums);

  std::optional<int64_t> getStage(Operation *op) const {
    auto stage = op->getAttrOfType<IntegerAttr>(PipeDialect::kStageAttr);
    return stage ? std::optional(stage.getInt()) : std::nullopt;
  }
  /// That follow the op's operands; also of those in regions that it has.
  static SmallVector<Value> getReads(Operation *op) {
    SmallVector<Value> reads(op->getOperands());
    llvm::SetVector<Value> captured;
    getUsedValuesDefinedAbove(op->getRegions(), captured);
    llvm::append_range(reads, captured);
    return reads;
  }
  Operation *getInner(Value value) const {
    Operation *def = value.getDefiningOp();
    return def && def->getBlock() == &body ? def : nullptr;
  }
  /// Constants are where they are read, and no message.
  static bool isFree(Operation *op) { return op->hasTrait<OpTrait::ConstantLike>() || isa<nn::IotaOp, dist::AxisIndexOp>(op); }
  bool has(Operation *op, PartId part) const { return llvm::is_contained(copies.lookup(op), part); }
  Part getBackward() const { return splitsBackward ? Part::BackwardInput : Part::Backward; }
  std::string getName(PartId part) {
    return (func.getSymName() + ".stage" + Twine(part.stage) + "." + stringifyPart(part.part)).str();
  }

  func::FuncOp func;
  dist::AccumulateOp loop;
  Block &body;
  int64_t stages;
  bool splitsBackward;
  DenseSet<Operation *> forward;

  SmallVector<SmallVector<Value>> terms; // of each sum that the region yields
  DenseMap<Operation *, SmallVector<PartId, 1>> copies;
  DenseMap<Value, SmallVector<PartId, 2>> needs;         // the parts that read a value
  std::map<PartId, Interface> parts;                     // in the order of stages
};

} // namespace

/// Where ops that say no stage are computed: in every stage that reads them, as early as that does.
void Splitter::place(Operation *op, bool isTerm) {
  SmallVector<PartId, 1> &where = copies[op];
  if (std::optional<int64_t> stage = getStage(op)) {
    where.push_back({*stage, forward.contains(op) ? Part::Forward : Part::Backward});
    return;
  }
  for (Value result : op->getResults())
    for (PartId reader : needs.lookup(result)) {
      PartId *same = isFree(op) ? llvm::find(where, reader)
                                : llvm::find_if(where, [&](PartId other) { return other.stage == reader.stage; });
      if (same == where.end())
        where.push_back(reader);
      else
        *same = std::min(*same, reader);
    }
  if (!where.empty() || !isTerm)
    return;
  // A sum that nothing else reads is made where its terms are.
  SmallVector<Value> work = getReads(op);
  int64_t stage = 0;
  for (size_t i = 0; i < work.size(); ++i)
    if (Operation *def = getInner(work[i])) {
      if (std::optional<int64_t> own = getStage(def))
        stage = std::max(stage, *own);
      else
        llvm::append_range(work, getReads(def));
    }
  where.push_back({stage, forward.contains(op) ? Part::Forward : Part::Backward});
}

/// A cast or another shape of a sum of several stages' terms becomes the sum of those of the terms, so that each stage has
/// its own.
void Splitter::spreadOverTerms(OpOperand &use) {
  SmallVector<OpOperand *> work{&use};
  while (!work.empty()) {
    OpOperand *next = work.pop_back_val();
    Operation *op = next->get().getDefiningOp();
    if (!op || !op->hasOneUse())
      continue;
    if (isa<nn::AddOp>(op)) {
      work.push_back(&op->getOpOperand(0));
      work.push_back(&op->getOpOperand(1));
      continue;
    }
    auto sum = isa<nn::CastOp, nn::ReshapeOp, nn::TransposeOp>(op) ? op->getOperand(0).getDefiningOp<nn::AddOp>() : nullptr;
    if (!sum || !sum->hasOneUse() || getStage(op) || dist::findStages(sum.getResult()).size() < 2)
      continue;
    OpBuilder b(op);
    SmallVector<Value> parts;
    for (Value term : sum->getOperands()) {
      Operation *part = b.clone(*op);
      part->setOperand(0, term);
      parts.push_back(part->getResult(0));
    }
    auto whole = b.create<nn::AddOp>(sum.getLoc(), parts[0], parts[1]);
    next->set(whole);
    op->erase();
    sum->erase();
    work.push_back(next);
  }
}

/// A term that a sum has several times becomes one, which its stage makes.
void Splitter::addRepeated(SmallVectorImpl<Value> &terms) {
  llvm::MapVector<Value, Value> sums;
  OpBuilder b(body.getTerminator());
  for (Value term : terms) {
    auto [sum, isNew] = sums.insert({term, term});
    if (isNew)
      continue;
    sum->second = b.create<nn::AddOp>(term.getLoc(), sum->second, term);
    if (forward.contains(term.getDefiningOp()))
      forward.insert(sum->second.getDefiningOp());
  }
  terms = llvm::map_to_vector(sums, [](const auto &sum) { return sum.second; });
}

LogicalResult Splitter::placeOps() {
  for (OpOperand &yielded : body.getTerminator()->getOpOperands())
    spreadOverTerms(yielded);
  llvm::DenseSet<Value> yielded;
  for (Value value : body.getTerminator()->getOperands()) {
    terms.push_back(dist::collectTerms(value, body.getTerminator()));
    addRepeated(terms.back());
    yielded.insert(terms.back().begin(), terms.back().end());
  }
  for (const SmallVector<Value> &sum : terms)
    for (Value term : sum)
      if (!getInner(term))
        return emitError(term.getLoc()) << "a sum over micro-batches must be computed by a stage of the pipeline, got a "
                                           "value from outside";
  for (Operation &op : llvm::reverse(body.without_terminator())) {
    bool isTerm = llvm::any_of(op.getResults(), [&](Value result) { return yielded.contains(result); });
    bool isRead = llvm::any_of(op.getResults(), [&](Value result) { return needs.contains(result); });
    if (!isTerm && !isRead)
      continue;
    if (std::optional<int64_t> stage = getStage(&op); stage && *stage >= stages)
      return op.emitOpError() << "must be of one of the pipeline's " << stages << " stages, got: " << *stage;
    place(&op, isTerm);
    for (Value read : getReads(&op))
      if (getInner(read))
        for (PartId part : copies[&op])
          if (SmallVector<PartId, 2> &readers = needs[read]; !llvm::is_contained(readers, part))
            readers.push_back(part);
  }
  return success();
}

/// Of the backward pass what other stages wait for is its input part, the rest its weight part.
void Splitter::splitBackward() {
  DenseSet<std::pair<Value, int64_t>> early; // values that the input part of a stage reads
  for (Operation &op : llvm::reverse(body.without_terminator())) {
    auto found = copies.find(&op);
    if (found == copies.end())
      continue;
    for (PartId &copy : found->second) {
      if (copy.isForward())
        continue;
      bool isEarly = llvm::any_of(op.getResults(), [&](Value result) {
        return early.contains({result, copy.stage}) || llvm::any_of(needs.lookup(result), [&](PartId reader) {
                 return getStage(&op) && reader.stage != copy.stage;
               });
      });
      copy.part = isEarly ? Part::BackwardInput : Part::BackwardWeight;
      if (isEarly)
        for (Value read : getReads(&op))
          early.insert({read, copy.stage});
    }
  }
}

/// Which part hands a value to another, over all stages between theirs.
FailureOr<PartId> Splitter::findSource(PartId part, Value value, ArrayRef<PartId> copies) {
  for (PartId copy : copies)
    if (copy.stage == part.stage && copy < part)
      return copy;
  PartId copy = copies.front();
  if (copy.stage < part.stage && copy.isForward())
    return part.isForward() ? PartId{part.stage - 1, Part::Forward} : PartId{part.stage, Part::Forward};
  if (copy.stage > part.stage && !part.isForward())
    return part.part == Part::BackwardWeight ? PartId{part.stage, Part::BackwardInput}
                                             : PartId{part.stage + 1, getBackward()};
  auto diag = emitError(value.getLoc()) << "stages must follow the program's order: the " << stringifyPart(part.part)
                                        << " pass of stage " << part.stage << " reads what the "
                                        << stringifyPart(copy.part) << " pass of stage " << copy.stage << " makes";
  return diag;
}

LogicalResult Splitter::request(PartId part, Value value) {
  Operation *def = getInner(value);
  if (def && has(def, part))
    return success();
  if (!parts[part].inputs.insert(value) || !def)
    return success();
  FailureOr<PartId> source = findSource(part, value, copies[def]);
  if (failed(source) || failed(request(*source, value)))
    return failure();
  parts[*source].outputs.insert(value);
  return success();
}

/// What each function takes and gives.
LogicalResult Splitter::connect() {
  for (int64_t stage = 0; stage < stages; ++stage)
    parts[{stage, Part::Forward}];
  for (Operation &op : body.without_terminator())
    for (PartId part : copies.lookup(&op)) {
      parts[part];
      for (Value read : getReads(&op))
        if (!(read.getDefiningOp() && !getInner(read) && isFree(read.getDefiningOp())) && failed(request(part, read)))
          return failure();
    }
  for (const SmallVector<Value> &sum : terms)
    for (Value term : sum)
      parts[copies[getInner(term)].front()].outputs.insert(term);
  // A schedule has both passes of every stage, or forward passes alone.
  if (llvm::any_of(parts, [](const auto &part) { return !part.first.isForward(); }))
    for (int64_t stage = 0; stage < stages; ++stage)
      for (Part part : {getBackward(), splitsBackward ? Part::BackwardWeight : Part::Backward})
        parts[{stage, part}];
  return success();
}

/// The function of a part, and its call in the new region. `outside` maps what the region reads of it.
void Splitter::buildFunction(PartId id, Interface &interface, OpBuilder &calls, IRMapping &outside) {
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
    if (!has(&op, id))
      continue;
    for (Value read : getReads(&op))
      if (!local.contains(read))
        local.map(read, b.clone(*read.getDefiningOp())->getResult(cast<OpResult>(read).getResultNumber()));
    b.clone(op, local);
  }
  b.create<func::ReturnOp>(func.getLoc(), llvm::map_to_vector(outputs, [&](Value v) { return local.lookup(v); }));

  SmallVector<Value> operands;
  for (Value input : inputs) {
    Operation *def = getInner(input);
    if (!def) {
      operands.push_back(outside.lookupOrDefault(input));
      continue;
    }
    Interface &source = parts[*findSource(id, input, copies[def])];
    operands.push_back(source.call.getResult(llvm::find(source.outputs, input) - source.outputs.begin()));
  }
  interface.call = calls.create<CallOp>(func.getLoc(), TypeRange(typesOf(outputs)), id.part, id.stage, function.getSymName(), operands);
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
  for (auto [result, values] : llvm::enumerate(terms)) {
    std::map<int64_t, SmallVector<Value>> byStage;
    for (Value term : values)
      byStage[copies[getInner(term)].front().stage].push_back(term);
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
  for (auto &[id, interface] : parts)
    if (id.isForward())
      buildFunction(id, interface, calls, outside);
  for (int64_t stage = stages; stage-- > 0;)
    for (auto &[id, interface] : parts)
      if (id.stage == stage && !id.isForward())
        buildFunction(id, interface, calls, outside);
  SmallVector<Value> yields;
  for (const StageSum &sum : sums) {
    Value total;
    for (Value term : sum.terms) {
      Interface &source = parts[copies[getInner(term)].front()];
      Value value = source.call.getResult(llvm::find(source.outputs, term) - source.outputs.begin());
      total = total ? Value(calls.create<nn::AddOp>(term.getLoc(), total, value)) : value;
    }
    yields.push_back(total);
  }
  calls.create<dist::YieldOp>(loop.getLoc(), yields);
  replaceSums(fresh, sums);
  loop.erase();
}

LogicalResult Splitter::run() {
  if (failed(placeOps()))
    return failure();
  if (splitsBackward)
    splitBackward();
  if (failed(connect()))
    return failure();
  build();
  return success();
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
    dist::MeshOp mesh = dist::lookupMesh(getOperation());
    if (!mesh || !dist::getPipeAxis(mesh.getMesh()))
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
