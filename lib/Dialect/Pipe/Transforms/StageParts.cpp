// Ops are placed from the last to the first, since what says no stage is computed where it is read; what a part reads
// of another then passes all stages between theirs.
#include "StageParts.h"

#include "shoal/Dialect/Dist/Transforms/StepParts.h"
#include "shoal/Dialect/Dist/Transforms/SumTerms.h"
#include "shoal/Dialect/NN/IR/NN.h"

#include "mlir/Transforms/RegionUtils.h"

using namespace mlir;

namespace shoal::pipe {

StageParts::StageParts(func::FuncOp func, dist::AccumulateOp loop, int64_t stages, bool splitsBackward)
    : body(loop.getBody().front()), stages(stages), splitsBackward(splitsBackward), forward(dist::findModelOps(func)) {}

SmallVector<Value> StageParts::getReads(Operation *op) {
  SmallVector<Value> reads(op->getOperands());
  llvm::SetVector<Value> captured;
  getUsedValuesDefinedAbove(op->getRegions(), captured);
  llvm::append_range(reads, captured);
  return reads;
}

static std::optional<int64_t> getStage(Operation *op) {
  auto stage = op->getAttrOfType<IntegerAttr>(PipeDialect::kStageAttr);
  return stage ? std::optional(stage.getInt()) : std::nullopt;
}

/// Constants are where they are read, and no message.
static bool isFree(Operation *op) {
  return op->hasTrait<OpTrait::ConstantLike>() || isa<nn::IotaOp, dist::AxisIndexOp>(op);
}

/// Forward passes go up the stages, and backward passes down.
static PartId getLater(PartId a, PartId b) {
  if (a.isForward() != b.isForward())
    return a.isForward() ? b : a;
  return (a.stage < b.stage) == a.isForward() ? b : a;
}

/// Where ops that say no stage are computed: in every stage that reads them, as early as that does.
void StageParts::place(Operation *op, bool isTerm) {
  SmallVector<PartId, 1> &where = copies[op];
  if (std::optional<int64_t> stage = getStage(op)) {
    where.push_back({*stage, getPass(op)});
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
  // What nothing else reads is made where the last of what it reads is made.
  PartId last{0, Part::Forward};
  llvm::SetVector<Value> work;
  auto follow = [&](Operation *reader) {
    SmallVector<Value> reads = getReads(reader);
    work.insert(reads.begin(), reads.end());
  };
  follow(op);
  for (size_t i = 0; i < work.size(); ++i)
    if (Operation *def = getInner(work[i])) {
      if (std::optional<int64_t> stage = getStage(def))
        last = getLater(last, {*stage, getPass(def)});
      else
        follow(def);
    }
  where.push_back({last.stage, getPass(op)});
}

/// A cast or another shape of a sum of several stages' terms becomes the sum of those of the terms, so that each stage has
/// its own.
void StageParts::spreadOverTerms(OpOperand &use) {
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
      part->removeAttr(dist::DistDialect::kGlobalsAttr);
      parts.push_back(part->getResult(0));
    }
    auto whole = b.create<nn::AddOp>(sum.getLoc(), parts[0], parts[1]);
    if (Attribute tag = op->getAttr(dist::DistDialect::kGlobalsAttr)) // what one device has is the sum of them
      whole->setAttr(dist::DistDialect::kGlobalsAttr, tag);
    forward.erase(sum);
    if (forward.erase(op))
      for (Operation *made : {parts[0].getDefiningOp(), parts[1].getDefiningOp(), whole.getOperation()})
        forward.insert(made);
    next->set(whole);
    op->erase();
    sum->erase();
    work.push_back(next);
  }
}

/// A term that a sum has several times becomes one, which its stage makes.
void StageParts::addRepeated(SmallVectorImpl<Value> &terms) {
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

LogicalResult StageParts::placeOps() {
  for (OpOperand &yielded : body.getTerminator()->getOpOperands())
    spreadOverTerms(yielded);
  llvm::DenseSet<Value> yielded;
  for (Value value : body.getTerminator()->getOperands()) {
    SmallVector<Value> &sum = terms.emplace_back(dist::collectTerms(value, body.getTerminator()));
    for (Value term : sum)
      if (!getInner(term))
        return emitError(term.getLoc()) << "a sum over micro-batches must be computed by a stage of the pipeline, got a "
                                           "value from outside";
    addRepeated(sum);
    yielded.insert(sum.begin(), sum.end());
  }
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
void StageParts::splitBackward() {
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

/// Over all stages between theirs.
FailureOr<PartId> StageParts::findSource(PartId part, Value value) const {
  ArrayRef<PartId> makers = copies.find(getInner(value))->second;
  for (PartId copy : makers)
    if (copy.stage == part.stage && copy < part)
      return copy;
  PartId copy = makers.front();
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

LogicalResult StageParts::request(PartId part, Value value) {
  Operation *def = getInner(value);
  if (def && has(def, part))
    return success();
  if (!interfaces[part].inputs.insert(value) || !def)
    return success();
  FailureOr<PartId> source = findSource(part, value);
  if (failed(source) || failed(request(*source, value)))
    return failure();
  interfaces[*source].outputs.insert(value);
  return success();
}

/// What each function takes and gives.
LogicalResult StageParts::connect() {
  for (int64_t stage = 0; stage < stages; ++stage)
    interfaces[{stage, Part::Forward}];
  for (Operation &op : body.without_terminator())
    for (PartId part : copies.lookup(&op)) {
      interfaces[part];
      for (Value read : getReads(&op))
        if (!(read.getDefiningOp() && !getInner(read) && isFree(read.getDefiningOp())) && failed(request(part, read)))
          return failure();
    }
  for (const SmallVector<Value> &sum : terms)
    for (Value term : sum)
      interfaces[getHome(term)].outputs.insert(term);
  // A schedule has both passes of every stage, or forward passes alone.
  if (llvm::any_of(interfaces, [](const auto &part) { return !part.first.isForward(); }))
    for (int64_t stage = 0; stage < stages; ++stage)
      for (Part part : {getBackward(), splitsBackward ? Part::BackwardWeight : Part::Backward})
        interfaces[{stage, part}];
  return success();
}

LogicalResult StageParts::run() {
  if (failed(placeOps()))
    return failure();
  if (splitsBackward)
    splitBackward();
  return connect();
}

} // namespace shoal::pipe
