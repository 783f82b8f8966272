// pipe-unroll: the calls of stages in the order of a schedule, as one straight line for all ranks. What a rank computes
// is limited to its positions on the axis of the pipeline; what stages hand over becomes messages.
#include "NameNorm.h"
#include "PlaceRest.h"

#include "shoal/Dialect/Dist/IR/AxisRoles.h"
#include "shoal/Dialect/Dist/IR/Microbatches.h"
#include "shoal/Dialect/Dist/IR/Positions.h"
#include "shoal/Dialect/Dist/Transforms/PackGroups.h"
#include "shoal/Dialect/Dist/Transforms/SumTerms.h"
#include "shoal/Dialect/Exec/IR/Exec.h"
#include "shoal/Dialect/NN/IR/NN.h"
#include "shoal/Dialect/NN/IR/Roles.h"
#include "shoal/Dialect/Pipe/Transforms/Passes.h"
#include "shoal/Support/SignatureEdit.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;

namespace shoal::pipe {

#define GEN_PASS_DEF_UNROLLPASS
#include "shoal/passes/ShoalPipe.h.inc"

namespace {

using llvm::BitVector;

/// The step of all ranks while its region is unrolled.
class Unroller {
public:
  Unroller(func::FuncOp func, dist::AccumulateOp loop, const Schedule &schedule, PipeAxis axis, SymbolTable &symbols)
      : func(func), loop(loop), body(loop.getBody().front()), schedule(schedule), shape(schedule.shape), axis(axis),
        symbols(symbols), builder(loop), homes(shape.ranks) {}

  LogicalResult run();

private:
  using Key = std::pair<Value, int64_t>; // a value of the region, and the micro-batch

  LogicalResult collectCalls();
  LogicalResult checkCalls();
  void compute(const Action &action);
  void communicate(int64_t rank, ArrayRef<Action> actions);
  Value lookup(Value value, int64_t stage, int64_t micro);
  void copy(func::FuncOp callee, CallOp call, int64_t micro, const BitVector &at, StringAttr scope);
  void addTerms(CallOp call, int64_t micro, StringAttr scope);
  Value addTerm(Value sum, Value term, int64_t micro, StringAttr scope);
  void nameRest();
  void finishSums();
  LogicalResult placeArguments(const ReadersOf &readers);
  void limitGathers(const ReadersOf &readers);

  SmallVector<CallOp, 2> getCalls(const Action &action) const;
  SmallVector<Value> getMessage(int64_t from, int64_t to, bool backward) const;
  IntegerAttr getNumber(int64_t micro) const {
    return shape.microbatches > 1 ? Builder(axis.name.getContext()).getI64IntegerAttr(micro) : IntegerAttr();
  }

  func::FuncOp func;
  dist::AccumulateOp loop;
  Block &body;
  const Schedule &schedule;
  const Shape &shape;
  PipeAxis axis;
  SymbolTable &symbols;
  OpBuilder builder;
  Operation *before = nullptr; // the last op in front of the stages, if any
  int64_t freeGroup = 0; // of the step's buckets and its stages'

  std::map<std::pair<int64_t, Part>, CallOp> calls;
  DenseMap<Value, SmallVector<std::pair<unsigned, Value>>> sumsOf; // of a call's result, the sums that it is a term of
  SmallVector<Value> sums;
  SmallVector<BitVector> ranksOfSums;
  DenseMap<Key, Value> made, slices;
  DenseMap<std::pair<int64_t, Key>, Value> received; // by stage
  /// What the action under way has made, numbered from 1 as it stands in the block; an add as what it was put behind.
  /// The block's own order would be counted anew for each op that is put into its middle.
  DenseMap<Operation *, int64_t> current;
  /// A term that is still being reduced when its action ends.
  struct LateTerm {
    unsigned sum;
    Value term;
    int64_t micro;
    StringAttr scope;
  };
  SmallVector<SmallVector<LateTerm>> late; // by rank, of its last action
  Homes homes;
};

} // namespace

LogicalResult Unroller::collectCalls() {
  freeGroup = dist::findFreeGroup(func);
  for (auto call : body.getOps<CallOp>()) {
    freeGroup = std::max(freeGroup, dist::findFreeGroup(symbols.lookup(call.getCallee())));
    if (int64_t(call.getStage()) >= shape.getStages())
      return call.emitOpError() << "must be of one of the schedule's " << shape.getStages()
                                << " stages, got: " << call.getStage();
    if (!calls.try_emplace({call.getStage(), call.getPart()}, call).second)
      return call.emitOpError() << "is a second " << stringifyPart(call.getPart()) << " pass of stage "
                                << call.getStage();
  }
  sums.resize(loop.getNumResults());
  ranksOfSums.assign(loop.getNumResults(), BitVector(shape.ranks));
  late.resize(shape.ranks);
  for (auto [index, value] : llvm::enumerate(body.getTerminator()->getOperands())) {
    for (Value term : dist::collectTerms(value, body.getTerminator())) {
      if (!term.getDefiningOp<CallOp>())
        return emitError(term.getLoc()) << "a sum over micro-batches must be of what a pipe.call makes";
      sumsOf[term].push_back({index, term});
      ranksOfSums[index].set(shape.getRank(term.getDefiningOp<CallOp>().getStage()));
    }
    if (ranksOfSums[index].count() > 1)
      return emitError(value.getLoc()) << "a sum over micro-batches must be of what one rank of the pipeline makes, got "
                                          "terms of ranks "
                                       << ranksOfSums[index].find_first() << " and " << ranksOfSums[index].find_last()
                                       << "; yield a sum for each and add them behind the region";
  }
  return checkCalls();
}

/// Whether the schedule runs what the step has, once for each micro-batch, and no more.
LogicalResult Unroller::checkCalls() {
  DenseMap<Operation *, BitVector> ran; // for which micro-batches
  for (auto call : body.getOps<CallOp>())
    ran[call] = BitVector(shape.microbatches);
  for (const std::vector<Action> &actions : schedule.ranks)
    for (const Action &action : actions) {
      if (!action.isCompute())
        continue;
      SmallVector<CallOp, 2> called = getCalls(action);
      if (called.empty())
        return emitError(func.getLoc()) << "the schedule computes the " << stringifyPart(action.kind)
                                        << " pass of stage " << action.stage << ", of which the step has no pipe.call";
      for (CallOp call : called) {
        if (ran[call].test(action.microbatch))
          return call.emitOpError() << "must run once for each micro-batch, and the schedule runs it twice for "
                                    << action.microbatch << " (pipe-verify says more)";
        ran[call].set(action.microbatch);
      }
    }
  for (auto call : body.getOps<CallOp>())
    if (int missing = ran[call].find_first_unset(); missing >= 0)
      return call.emitOpError() << "must run once for each micro-batch, and the schedule does not run it for "
                                << missing << " (pipe-verify says more)";
  return success();
}

/// What a stage hands to the next, or to the one before.
SmallVector<Value> Unroller::getMessage(int64_t from, int64_t to, bool backward) const {
  llvm::SetVector<Value> values;
  for (auto it = calls.lower_bound({to, Part()}); it != calls.end() && it->first.first == to; ++it) {
    if ((it->first.second != Part::Forward) != backward)
      continue;
    for (Value input : CallOp(it->second).getInputs())
      if (auto source = input.getDefiningOp<CallOp>(); source && int64_t(source.getStage()) == from)
        values.insert(input);
  }
  return values.takeVector();
}

/// A value as a stage has it.
Value Unroller::lookup(Value value, int64_t stage, int64_t micro) {
  if (auto argument = dyn_cast<BlockArgument>(value); argument && argument.getOwner() == &body) {
    Value &slice = slices[{value, micro}];
    Value input = loop.getInputs()[argument.getArgNumber()];
    auto type = cast<RankedTensorType>(value.getType());
    if (shape.microbatches == 1)
      return input;
    if (!slice) {
      slice = builder.create<nn::SliceOp>(loop.getLoc(), type, input, /*dim=*/0, micro * type.getDimSize(0));
      slice.getDefiningOp()->setAttr(dist::kMicrobatchAttr, getNumber(micro));
    }
    return slice;
  }
  auto source = value.getDefiningOp<CallOp>();
  if (!source || source->getBlock() != &body)
    return value;
  if (shape.getRank(source.getStage()) == shape.getRank(stage))
    return made.lookup({value, micro});
  return received.lookup({stage, {value, micro}});
}

/// Adds what a call has made to the sums over micro-batches. Of the terms that are being reduced the last may arrive
/// while the rank computes its next action.
void Unroller::addTerms(CallOp call, int64_t micro, StringAttr scope) {
  Operation *last = nullptr; // reduction
  for (Value result : call.getResults())
    for (auto [index, term] : sumsOf.lookup(result))
      if (Operation *def = made.lookup({term, micro}).getDefiningOp();
          def && dist::isTensorCollective(def) && current.lookup(def) > current.lookup(last))
        last = def;
  for (Value result : call.getResults())
    for (auto [index, term] : sumsOf.lookup(result)) {
      Value value = made.lookup({term, micro});
      if (sums[index] && last && value.getDefiningOp() == last)
        late[shape.getRank(call.getStage())].push_back({index, value, micro, scope});
      else
        sums[index] = sums[index] ? addTerm(sums[index], value, micro, scope) : value;
    }
}

/// Behind what makes the term and the sum, so that the term is not held beside the sum for long; a term that is being
/// reduced is added last.
Value Unroller::addTerm(Value sum, Value term, int64_t micro, StringAttr scope) {
  OpBuilder b = builder;
  Operation *def = term.getDefiningOp(), *other = sum.getDefiningOp();
  int64_t number = current.size() + 1;
  if (current.contains(def) && !dist::isTensorCollective(def)) {
    Operation *later = current.lookup(def) > current.lookup(other) ? def : other;
    b.setInsertionPointAfter(later);
    number = current.lookup(later);
  }
  Operation *add = dist::addToRunningSum(b, sum, term, getNumber(micro));
  add->setAttr(exec::ExecDialect::kScopeAttr, scope);
  current.insert({add, number});
  return add->getResult(0);
}

void Unroller::copy(func::FuncOp callee, CallOp call, int64_t micro, const BitVector &at, StringAttr scope) {
  Block &block = callee.getBody().front();
  IRMapping mapping;
  DenseSet<Value> ofStages; // what needs no stage, as a mask, several actions may have in common
  for (auto [argument, input] : llvm::zip_equal(block.getArguments(), call.getInputs())) {
    mapping.map(argument, lookup(input, call.getStage(), micro));
    if (input.getDefiningOp<CallOp>())
      ofStages.insert(argument);
  }
  dist::GroupNumbers groups(freeGroup);
  for (Operation &op : block.without_terminator()) {
    Operation *copy = builder.clone(op, mapping);
    current.insert({copy, current.size() + 1});
    if (op.hasAttr(PipeDialect::kStageAttr) ||
        llvm::any_of(op.getOperands(), [&](Value operand) { return ofStages.contains(operand); })) {
      copy->setAttr(exec::ExecDialect::kScopeAttr, scope);
      dist::setPositions(copy, at); // also what a rank could compute that has nothing but inputs and parameters
      ofStages.insert(op.getResults().begin(), op.getResults().end());
    }
    if (IntegerAttr number = getNumber(micro))
      copy->setAttr(dist::kMicrobatchAttr, number);
    copy->walk([&](Operation *inner) {
      if (auto collective = dyn_cast<dist::CollectiveOpInterface>(inner); collective && collective.communicates())
        dist::setPositions(inner, at);
    });
    if (micro > 0)
      groups.renumber(copy);
  }
  for (auto [result, value] : llvm::zip_equal(call.getResults(), block.getTerminator()->getOperands()))
    made[{result, micro}] = mapping.lookup(value);
}

/// What an action calls. A whole backward pass is its two parts where the step has these.
SmallVector<CallOp, 2> Unroller::getCalls(const Action &action) const {
  SmallVector<CallOp, 2> found;
  auto add = [&](Part part) {
    if (auto call = calls.find({action.stage, part}); call != calls.end())
      found.push_back(call->second);
  };
  add(action.kind);
  if (found.empty() && action.kind == Part::Backward) {
    add(Part::BackwardInput);
    add(Part::BackwardWeight);
  }
  return found;
}

void Unroller::compute(const Action &action) {
  BitVector at = axis.getPositions(shape.getRank(action.stage));
  current.clear();
  auto scope = StringAttr::get(func.getContext(), getScope(action));
  // What was being reduced when the rank's last action ended arrives while it computes the next.
  SmallVector<LateTerm> arriving = std::exchange(late[shape.getRank(action.stage)], {});
  for (CallOp call : getCalls(action)) {
    copy(symbols.lookup<func::FuncOp>(call.getCallee()), call, action.microbatch, at, scope);
    for (const LateTerm &term : std::exchange(arriving, {}))
      sums[term.sum] = addTerm(sums[term.sum], term.term, action.microbatch, scope);
    addTerms(call, action.microbatch, scope);
  }
}

void Unroller::communicate(int64_t rank, ArrayRef<Action> actions) {
  SmallVector<Message> messages;
  SmallVector<std::pair<int64_t, Key>> arriving;
  for (const Action &action : actions) {
    bool isSend = action.kind == ActionKind::Send;
    int64_t from = isSend ? action.stage : action.getOtherStage(), to = isSend ? action.getOtherStage() : action.stage;
    dist::ReasonAttr reason = getReason(
        func.getContext(), action.backward ? "the cotangents between stages" : "the activations between stages",
        "stage " + Twine(to) + " reads what stage " + Twine(from) + " makes of micro-batch " +
            Twine(action.microbatch));
    auto scope = StringAttr::get(func.getContext(), getScope(action));
    for (Value value : getMessage(from, to, action.backward)) {
      Value sent = isSend ? lookup(value, action.stage, action.microbatch) : Value();
      messages.push_back({unsigned(action.peer), sent, value.getType(), reason, getNumber(action.microbatch), scope});
      if (!isSend)
        arriving.push_back({action.stage, {value, action.microbatch}});
    }
  }
  if (messages.empty())
    return;
  for (auto [key, value] : llvm::zip_equal(arriving, pipe::communicate(builder, loop.getLoc(), axis, rank, messages)))
    received[key] = value;
}

LogicalResult Unroller::run() {
  if (failed(collectCalls()))
    return failure();
  before = loop->getPrevNode();
  ReadersOf readers = findReaders(func, loop, shape); // before copies of the stages' ops read arguments, too
  if (failed(placeArguments(readers)))
    return failure();
  limitGathers(readers);
  // Any order that keeps each rank's does; a rank goes on while what it reads is there.
  SmallVector<size_t> next(shape.ranks, 0);
  auto isReady = [&](const Action &action) {
    if (!action.isCompute())
      return true;
    SmallVector<CallOp, 2> called = getCalls(action);
    return llvm::all_of(called, [&](CallOp call) {
      return llvm::all_of(call.getInputs(), [&](Value input) {
        auto source = input.getDefiningOp<CallOp>();
        return !source || llvm::is_contained(called, source) || lookup(input, action.stage, action.microbatch);
      });
    });
  };
  auto isSendable = [&](const Action &action) {
    if (action.kind != ActionKind::Send)
      return true;
    return llvm::all_of(getMessage(action.stage, action.getOtherStage(), action.backward),
                        [&](Value value) { return bool(lookup(value, action.stage, action.microbatch)); });
  };
  for (bool moved = true; moved;) {
    moved = false;
    for (int64_t rank = 0; rank < shape.ranks; ++rank) {
      const std::vector<Action> &actions = schedule.ranks[rank];
      for (size_t &i = next[rank]; i < actions.size() && isReady(actions[i]) && isSendable(actions[i]);) {
        moved = true;
        size_t end = i + 1;
        if (actions[i].isMessage()) {
          while (end < actions.size() && actions[end].isMessage() && actions[end].joined)
            ++end;
          communicate(rank, ArrayRef(actions).slice(i, end - i));
        } else if (actions[i].isCompute()) {
          compute(actions[i]);
        } // the norm and the update follow all of them
        i = end;
      }
    }
  }
  for (int64_t rank = 0; rank < shape.ranks; ++rank)
    if (next[rank] < schedule.ranks[rank].size())
      return emitError(func.getLoc()) << "the schedule cannot go on: rank " << rank << " waits with "
                              << format(schedule.ranks[rank][next[rank]], shape, rank) << " (pipe-verify says more)";
  finishSums();
  nameRest();
  nameNorm(func, axis.name);
  return success();
}

/// What is gathered of arguments for stages alone is gathered on the ranks of these.
void Unroller::limitGathers(const ReadersOf &readers) {
  for (auto &[op, of] : readers.ops) {
    auto collective = dyn_cast<dist::CollectiveOpInterface>(op);
    if (collective && collective.communicates() && !of.rest && !of.stages.all())
      dist::setPositions(op, axis.getPositions(of.stages));
  }
}

/// What follows the micro-batches is of the update.
void Unroller::nameRest() {
  auto scope = StringAttr::get(func.getContext(), getScope({.kind = ActionKind::Update}));
  for (Operation &op : func.getBody().front().without_terminator())
    if (!op.hasAttr(exec::ExecDialect::kScopeAttr) && op.getNumRegions() == 0 &&
        llvm::any_of(op.getOperands(), [](Value operand) {
          Operation *def = operand.getDefiningOp();
          return def && def->hasAttr(exec::ExecDialect::kScopeAttr);
        }))
      op.setAttr(exec::ExecDialect::kScopeAttr, scope);
}

/// Evaluation finds what training keeps where that keeps it.
LogicalResult Unroller::placeArguments(const ReadersOf &readers) {
  homes = pipe::placeArguments(func, loop, shape, readers);
  SignatureEdit signature(func);
  for (BlockArgument argument : func.getArguments()) {
    unsigned number = argument.getArgNumber();
    auto ranks = func.getArgAttrOfType<DenseI64ArrayAttr>(number, PipeDialect::kRanksAttr);
    if (!ranks)
      continue;
    BitVector home(shape.ranks);
    for (int64_t rank : ranks.asArrayRef()) {
      if (rank < 0 || rank >= shape.ranks)
        return emitError(argument.getLoc()) << "'" << PipeDialect::kRanksAttr << "' must be of the " << shape.ranks
                                            << " ranks of the pipeline, got: " << rank;
      home.set(rank);
    }
    BitVector missing = readers.arguments.lookup(argument).stages;
    if (missing.reset(home).any())
      return emitError(argument.getLoc()) << "'" << PipeDialect::kRanksAttr << "' must have rank "
                                          << missing.find_first() << " of the pipeline, a stage of which reads "
                                          << nn::getArgName(func, number);
    homes.set(argument, home);
    signature.setArgAttr(number, PipeDialect::kRanksAttr, {});
  }
  return success();
}

/// The sums in place of the region's results, and behind them what reads them.
void Unroller::finishSums() {
  for (ArrayRef<LateTerm> terms : late)
    for (const LateTerm &term : terms)
      sums[term.sum] = addTerm(sums[term.sum], term.term, term.micro, term.scope);
  for (auto [sum, ranks] : llvm::zip_equal(sums, ranksOfSums))
    if (Operation *def = sum.getDefiningOp(); def && (!before || before->isBeforeInBlock(def)))
      homes.set(sum, ranks); // what a stage hands on from outside is everywhere
  if (auto tags = loop->getAttrOfType<ArrayAttr>(dist::DistDialect::kGlobalsAttr); tags && shape.microbatches > 1)
    for (auto [sum, tag] : llvm::zip_equal(sums, tags))
      sum.getDefiningOp()->setAttr(dist::DistDialect::kGlobalsAttr, ArrayAttr::get(func.getContext(), {tag}));
  loop.replaceAllUsesWith(sums);
  Block *block = loop->getBlock();
  Operation *begin = loop->getNextNode();
  loop.erase();
  // Its terms are erased.
  Operation *last = begin->getPrevNode();
  placeRest({before ? before->getNextNode() : &block->front(), begin}, axis, homes);
  orderRest(last ? last->getNextNode() : &block->front(), axis);
}

namespace {

struct UnrollPass : impl::UnrollPassBase<UnrollPass> {
  using UnrollPassBase::UnrollPassBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    dist::MeshOp mesh = dist::lookupMesh(module);
    StringAttr axis = mesh ? dist::getPipeAxis(mesh.getMesh()) : StringAttr();
    auto schedules = llvm::to_vector(module.getOps<ScheduleOp>());
    SymbolTable symbols(module);
    llvm::SetVector<Operation *> called;
    for (auto func : llvm::to_vector(module.getOps<func::FuncOp>())) {
      if (func.isExternal())
        continue;
      dist::AccumulateOp loop;
      for (auto region : func.getBody().front().getOps<dist::AccumulateOp>())
        if (!region.getBody().front().getOps<CallOp>().empty())
          loop = region;
      if (!loop)
        continue;
      for (auto call : loop.getBody().front().getOps<CallOp>())
        called.insert(symbols.lookup(call.getCallee()));
      if (!axis || schedules.size() != 1) {
        loop.emitOpError() << "needs a mesh with an axis \"pipe\" and one pipe.schedule, got: " << schedules.size();
        return signalPassFailure();
      }
      Schedule schedule = schedules.front().getSchedule();
      if (schedule.shape.ranks != *mesh.getMesh().getAxisSize(axis) ||
          schedule.shape.microbatches != int64_t(loop.getMicrobatches())) {
        schedules.front().emitOpError() << "must be of " << *mesh.getMesh().getAxisSize(axis) << " ranks and "
                                        << loop.getMicrobatches() << " micro-batches, got: " << schedule.shape.ranks
                                        << " and " << schedule.shape.microbatches;
        return signalPassFailure();
      }
      if (schedule.shape.ranks > 1 && !schedule.hasMessages()) {
        schedules.front().emitOpError() << "must have the messages of its " << schedule.shape.ranks
                                        << " ranks, got: none; pipe-schedule derives them";
        return signalPassFailure();
      }
      if (failed(Unroller(func, loop, schedule, {mesh.getMesh(), axis}, symbols).run()))
        return signalPassFailure();
    }
    for (Operation *callee : called)
      symbols.erase(callee);
    for (ScheduleOp schedule : schedules)
      schedule.erase();
  }
};

} // namespace

} // namespace shoal::pipe
