// pipe-unroll: the calls of stages in the order of a schedule, as one straight line for all ranks. What a rank computes
// is limited to its positions on the axis of the pipeline; what stages hand over becomes messages.
#include "shoal/Dialect/Dist/IR/AxisRoles.h"
#include "shoal/Dialect/Dist/IR/Microbatches.h"
#include "shoal/Dialect/Dist/IR/Positions.h"
#include "shoal/Dialect/Dist/Transforms/PackGroups.h"
#include "shoal/Dialect/Dist/Transforms/SumTerms.h"
#include "shoal/Dialect/Exec/IR/Exec.h"
#include "shoal/Dialect/NN/IR/NN.h"
#include "shoal/Dialect/NN/IR/Roles.h"
#include "shoal/Dialect/Pipe/Transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
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
  Unroller(func::FuncOp func, dist::AccumulateOp loop, const Schedule &schedule, dist::MeshAttr mesh, StringAttr axis,
           SymbolTable &symbols)
      : func(func), loop(loop), body(loop.getBody().front()), schedule(schedule), shape(schedule.shape), mesh(mesh),
        axis(axis), symbols(symbols), builder(loop), freeGroup(dist::findFreeGroup(func)) {}

  LogicalResult run();

private:
  using Key = std::pair<Value, int64_t>; // a value of the region, and the micro-batch

  LogicalResult collectCalls();
  void runRank(int64_t rank, const Action &action);
  void compute(const Action &action);
  void communicate(int64_t rank, ArrayRef<Action> actions);
  Value lookup(Value value, int64_t stage, int64_t micro);
  void copy(func::FuncOp callee, CallOp call, int64_t micro, const BitVector &at);
  void addTerms(CallOp call, int64_t micro);
  void placeRest();
  void findReaders();
  LogicalResult checkUpdates();

  SmallVector<CallOp, 2> getCalls(const Action &action) const;
  SmallVector<Value> getMessage(int64_t from, int64_t to, bool backward) const;
  BitVector getPositions(const BitVector &ranks) const {
    BitVector positions(mesh.getNumDevices());
    for (int64_t position = 0; position < mesh.getNumDevices(); ++position)
      if (ranks.test(mesh.getIndexAlong(position, axis)))
        positions.set(position);
    return positions;
  }
  BitVector onlyRank(int64_t rank) const {
    BitVector ranks(shape.ranks);
    ranks.set(rank);
    return ranks;
  }
  IntegerAttr getNumber(int64_t micro) const {
    return shape.microbatches > 1 ? Builder(axis.getContext()).getI64IntegerAttr(micro) : IntegerAttr();
  }

  func::FuncOp func;
  dist::AccumulateOp loop;
  Block &body;
  const Schedule &schedule;
  const Shape &shape;
  dist::MeshAttr mesh;
  StringAttr axis;
  SymbolTable &symbols;
  OpBuilder builder;
  int64_t freeGroup;

  std::map<std::pair<int64_t, Part>, CallOp> calls;
  DenseMap<Value, SmallVector<std::pair<unsigned, Value>>> sumsOf; // of a call's result, the sums that it is a term of
  SmallVector<Value> sums;
  DenseMap<Key, Value> made, slices;
  DenseMap<std::pair<int64_t, Key>, Value> received; // by stage
  llvm::MapVector<StringAttr, BitVector> readers;    // of an argument, by name
  DenseMap<Value, BitVector> homes;                  // ranks of the pipeline that have a value; all without
};

} // namespace

LogicalResult Unroller::collectCalls() {
  for (auto call : body.getOps<CallOp>()) {
    if (int64_t(call.getStage()) >= shape.getStages())
      return call.emitOpError() << "must be of one of the schedule's " << shape.getStages()
                                << " stages, got: " << call.getStage();
    if (!calls.try_emplace({call.getStage(), call.getPart()}, call).second)
      return call.emitOpError() << "is a second " << stringifyPart(call.getPart()) << " pass of stage " << call.getStage();
  }
  for (auto [index, value] : llvm::enumerate(body.getTerminator()->getOperands()))
    for (Value term : dist::collectTerms(value, body.getTerminator())) {
      if (!term.getDefiningOp<CallOp>())
        return emitError(term.getLoc()) << "a sum over micro-batches must be of what a pipe.call makes";
      sumsOf[term].push_back({index, term});
    }
  sums.resize(loop.getNumResults());
  for (const std::vector<Action> &actions : schedule.ranks)
    for (const Action &action : actions)
      if (action.isCompute() && getCalls(action).empty())
        return emitError(func.getLoc()) << "the schedule computes the " << stringifyPart(action.kind) << " pass of stage "
                                << action.stage << ", of which the step has no pipe.call";
  return success();
}

/// What a stage hands to the next, or to the one before.
SmallVector<Value> Unroller::getMessage(int64_t from, int64_t to, bool backward) const {
  llvm::SetVector<Value> values;
  for (auto &[key, call] : calls) {
    if (key.first != to || (key.second != Part::Forward) != backward)
      continue;
    for (Value input : const_cast<CallOp &>(call).getInputs())
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

/// Adds what a call has made to the sums over micro-batches.
void Unroller::addTerms(CallOp call, int64_t micro) {
  for (Value result : call.getResults())
    for (auto [index, term] : sumsOf.lookup(result)) {
      Value value = made.lookup({term, micro});
      if (!sums[index]) {
        sums[index] = value;
        continue;
      }
      // The gradient is the sum; a term is on its way to it.
      if (Operation *def = value.getDefiningOp(); def && def->hasAttr(exec::ExecDialect::kClassAttr))
        exec::setClass(def, exec::StorageClass::workspace);
      auto add = builder.create<nn::AddOp>(value.getLoc(), sums[index], value);
      add->setAttr(dist::kRunningSumAttr, builder.getUnitAttr());
      if (IntegerAttr number = getNumber(micro))
        add->setAttr(dist::kMicrobatchAttr, number);
      sums[index] = add;
    }
}

void Unroller::copy(func::FuncOp callee, CallOp call, int64_t micro, const BitVector &at) {
  Block &block = callee.getBody().front();
  IRMapping mapping;
  for (auto [argument, input] : llvm::zip_equal(block.getArguments(), call.getInputs()))
    mapping.map(argument, lookup(input, call.getStage(), micro));
  DenseMap<int64_t, int64_t> groups; // of the function -> of this copy
  for (Operation &op : block.without_terminator()) {
    Operation *copy = builder.clone(op, mapping);
    if (IntegerAttr number = getNumber(micro))
      copy->setAttr(dist::kMicrobatchAttr, number);
    copy->walk([&](Operation *inner) {
      if (auto collective = dyn_cast<dist::CollectiveOpInterface>(inner); collective && collective.communicates())
        dist::setPositions(inner, at);
      // Buckets of two micro-batches are two.
      if (auto pack = dyn_cast<dist::PackOp>(inner); pack && micro > 0) {
        auto [group, isNew] = groups.try_emplace(pack.getGroup(), freeGroup);
        freeGroup += isNew;
        pack.setGroup(group->second);
      }
    });
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
  BitVector at = getPositions(onlyRank(shape.getRank(action.stage)));
  for (CallOp call : getCalls(action)) {
    copy(symbols.lookup<func::FuncOp>(call.getCallee()), call, action.microbatch, at);
    addTerms(call, action.microbatch);
  }
}

/// Messages that progress together; one alone needs no group.
void Unroller::communicate(int64_t rank, ArrayRef<Action> actions) {
  BitVector at = getPositions(onlyRank(rank));
  auto axes = dist::AxesAttr::get(func.getContext(), {axis});
  struct Message {
    Action action;
    Value value; // of the region
  };
  SmallVector<Message> messages;
  SmallVector<Type> types;
  for (const Action &action : actions) {
    bool isSend = action.kind == ActionKind::Send;
    int64_t other = action.getOtherStage();
    for (Value value : isSend ? getMessage(action.stage, other, action.backward) : getMessage(other, action.stage, action.backward)) {
      messages.push_back({action, value});
      if (!isSend)
        types.push_back(value.getType());
    }
  }
  if (messages.empty())
    return;
  Location loc = loop.getLoc();
  dist::GroupOp group;
  OpBuilder b = builder;
  DenseMap<int64_t, Value> peers;
  for (const Message &message : messages)
    if (Value &peer = peers[message.action.peer]; !peer)
      peer = builder.create<arith::ConstantIndexOp>(loc, message.action.peer);
  if (messages.size() > 1) {
    group = builder.create<dist::GroupOp>(loc, TypeRange(types));
    dist::setPositions(group, at);
    b = OpBuilder::atBlockEnd(&group.getBody().emplaceBlock());
  }
  SmallVector<Value> results;
  for (auto &[action, value] : messages) {
    bool isSend = action.kind == ActionKind::Send;
    int64_t from = isSend ? action.stage : action.getOtherStage(), to = isSend ? action.getOtherStage() : action.stage;
    std::string asker = ("stage " + Twine(to) + " reads what stage " + Twine(from) + " makes of micro-batch " +
                         Twine(action.microbatch)).str();
    auto what = StringAttr::get(func.getContext(), action.backward ? "the cotangents between stages" : "the activations between stages");
    auto cause = dist::CauseAttr::get(func.getContext(), what, {}, StringAttr::get(func.getContext(), "--pipeline-schedule"));
    auto reason = dist::ReasonAttr::get(func.getContext(), StringAttr::get(func.getContext(), asker), {}, {}, {cause});
    Operation *op;
    if (isSend) {
      op = b.create<dist::SendOp>(loc, axes, lookup(value, action.stage, action.microbatch), peers[action.peer], reason);
    } else {
      op = b.create<dist::RecvOp>(loc, value.getType(), axes, peers[action.peer], reason);
      results.push_back(op->getResult(0));
      if (!group)
        received[{action.stage, {value, action.microbatch}}] = op->getResult(0);
    }
    if (IntegerAttr number = getNumber(action.microbatch))
      op->setAttr(dist::kMicrobatchAttr, number);
    if (!group)
      dist::setPositions(op, at);
  }
  if (!group)
    return;
  b.create<dist::YieldOp>(loc, results);
  unsigned next = 0;
  for (auto &[action, value] : messages)
    if (action.kind == ActionKind::Recv)
      received[{action.stage, {value, action.microbatch}}] = group.getResult(next++);
}

LogicalResult Unroller::run() {
  if (failed(collectCalls()))
    return failure();
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
  findReaders();
  placeRest();
  return checkUpdates();
}

// What the step does beside the region

namespace {

/// Puts the rest of the step on the ranks that have what it reads, and brings together what no rank has all of: sums
/// of terms of several ranks by a reduction, other values by handing them to all.
class Placer {
public:
  Placer(func::FuncOp func, dist::MeshAttr mesh, StringAttr axis, DenseMap<Value, BitVector> &homes)
      : func(func), mesh(mesh), axis(axis), homes(homes), ranks(*mesh.getAxisSize(axis)) {}

  void run(Operation *begin);

private:
  BitVector of(Value value) const {
    auto found = homes.find(value);
    return found == homes.end() ? BitVector(ranks, true) : found->second;
  }
  Value settle(Value value, OpBuilder &b);
  Value reduce(ArrayRef<Value> leaves, Location loc, OpBuilder &b, StringRef asker);
  Value zeros(Type type, Location loc, OpBuilder &b);

  func::FuncOp func;
  dist::MeshAttr mesh;
  StringAttr axis;
  DenseMap<Value, BitVector> &homes;
  unsigned ranks;
  DenseMap<Value, SmallVector<Value>> pending; // sums of terms that no rank has all of
};

} // namespace

Value Placer::zeros(Type type, Location loc, OpBuilder &b) {
  auto tensor = cast<RankedTensorType>(type);
  return b.create<nn::ConstantOp>(loc, tensor, DenseElementsAttr::get(tensor, b.getZeroAttr(tensor.getElementType())));
}

/// The sum of values of which each is on some ranks, on all of them: each rank gives those that it is the first to have.
Value Placer::reduce(ArrayRef<Value> leaves, Location loc, OpBuilder &b, StringRef asker) {
  Type type = leaves.front().getType();
  SmallVector<Value> inputs, mine(ranks);
  for (Value leaf : leaves) {
    Value &sum = mine[of(leaf).find_first()];
    sum = sum ? Value(b.create<nn::AddOp>(loc, sum, leaf)) : leaf;
  }
  Value nothing;
  SmallVector<int64_t> choiceOf(ranks), choices;
  for (unsigned rank = 0; rank < ranks; ++rank) {
    if (!mine[rank])
      mine[rank] = nothing = nothing ? nothing : zeros(type, loc, b);
    auto found = llvm::find(inputs, mine[rank]);
    choiceOf[rank] = found - inputs.begin();
    if (found == inputs.end())
      inputs.push_back(mine[rank]);
  }
  for (int64_t position = 0; position < mesh.getNumDevices(); ++position)
    choices.push_back(choiceOf[mesh.getIndexAlong(position, axis)]);
  Value part = b.create<dist::SelectOp>(loc, type, choices, inputs);
  MLIRContext *context = func.getContext();
  auto cause = dist::CauseAttr::get(context, StringAttr::get(context, "the stages of the model"), {},
                                    StringAttr::get(context, "--pipeline-schedule"));
  auto reason = dist::ReasonAttr::get(context, StringAttr::get(context, asker), {}, {}, {cause});
  return b.create<dist::AllReduceOp>(loc, type, dist::AxesAttr::get(context, {axis}), dist::ReduceKindAttrEnum::sum, part, reason);
}

/// A value that an op reads, once it is somewhere.
Value Placer::settle(Value value, OpBuilder &b) {
  auto found = pending.find(value);
  if (found == pending.end())
    return value;
  Operation *def = value.getDefiningOp();
  BitVector home(ranks); // others take part and have no use for it
  for (Value leaf : found->second)
    home |= of(leaf);
  Value total = reduce(found->second, value.getLoc(), b, "a sum over stages");
  if (!home.all())
    homes[total] = home;
  if (Attribute tags = def->getAttr(dist::DistDialect::kGlobalsAttr))
    total.getDefiningOp()->setAttr(dist::DistDialect::kGlobalsAttr, tags);
  pending.erase(found);
  value.replaceAllUsesWith(total);
  return total;
}

void Placer::run(Operation *begin) {
  SmallVector<Operation *> dead;
  for (Operation *op = begin, *next; op; op = next) {
    next = op->getNextNode();
    BitVector home(ranks, true);
    bool isTerminator = op->hasTrait<OpTrait::IsTerminator>();
    for (Value operand : op->getOperands())
      home &= of(operand);
    OpBuilder b(op);
    if (auto add = dyn_cast<nn::AddOp>(op);
        add && (home.none() || pending.contains(add.getLhs()) || pending.contains(add.getRhs()))) {
      SmallVector<Value> leaves;
      for (Value operand : op->getOperands()) {
        auto found = pending.find(operand);
        if (found == pending.end())
          leaves.push_back(operand);
        else if (operand.hasOneUse())
          llvm::append_range(leaves, found->second);
        else
          leaves.push_back(settle(operand, b));
      }
      pending[add.getResult()] = leaves;
      dead.push_back(op);
      continue;
    }
    for (Value operand : llvm::to_vector(op->getOperands()))
      settle(operand, b);
    if (isTerminator)
      break;
    home = BitVector(ranks, true);
    for (Value operand : op->getOperands())
      home &= of(operand);
    if (home.none()) {
      // No rank has all of it: each value goes to all ranks.
      home.set();
      for (OpOperand &operand : op->getOpOperands())
        if (!of(operand.get()).all())
          operand.set(reduce({operand.get()}, op->getLoc(), b,
                             ("operand " + Twine(operand.getOperandNumber()) + " of " + op->getName().getStringRef()).str()));
    }
    if (home.all())
      continue;
    for (Value result : op->getResults())
      homes[result] = home;
    op->walk([&](Operation *inner) {
      auto collective = dyn_cast<dist::CollectiveOpInterface>(inner);
      if (!collective || !collective.communicates())
        return;
      BitVector at(mesh.getNumDevices());
      for (int64_t position = 0; position < mesh.getNumDevices(); ++position)
        if (home.test(mesh.getIndexAlong(position, axis)))
          at.set(position);
      dist::setPositions(inner, at);
    });
  }
  for (Operation *op : llvm::reverse(dead))
    op->erase();
}

/// What a rank reads in its stages it has updated by itself.
LogicalResult Unroller::checkUpdates() {
  Operation *end = func.getBody().front().getTerminator();
  for (auto [index, value] : llvm::enumerate(end->getOperands())) {
    auto name = func.getResultAttrOfType<StringAttr>(index, nn::NNDialect::kUpdatesAttr);
    auto home = homes.find(value);
    if (!name || home == homes.end())
      continue;
    BitVector missing = readers.lookup(name);
    missing.reset(home->second);
    if (missing.any())
      return emitError(func.getLoc()) << "rank " << missing.find_first() << " of the pipeline reads " << name
                              << ", and only other ranks update it";
  }
  return success();
}

/// Which ranks read what of the model's arguments in their stages, also through what is made of these alone.
void Unroller::findReaders() {
  for (BlockArgument argument : func.getArguments()) {
    SmallVector<Value> work{argument};
    BitVector ranks(shape.ranks);
    while (!work.empty())
      for (Operation *user : work.pop_back_val().getUsers())
        if (auto call = dyn_cast<CallOp>(user); call && call->getBlock() == &body)
          ranks.set(shape.getRank(call.getStage()));
        else if (user->getBlock() == loop->getBlock() && user != loop && user->isBeforeInBlock(loop))
          llvm::append_range(work, user->getResults());
    readers[StringAttr::get(func.getContext(), nn::getArgName(func, argument.getArgNumber()))] = ranks;
  }
}

void Unroller::placeRest() {
  for (auto [index, sum, result] : llvm::enumerate(sums, loop.getResults())) {
    homes[sum] = BitVector(shape.ranks);
    for (auto &[term, list] : sumsOf)
      for (auto [number, value] : list)
        if (number == index)
          homes[sum].set(shape.getRank(value.getDefiningOp<CallOp>().getStage()));
  }
  if (auto tags = loop->getAttrOfType<ArrayAttr>(dist::DistDialect::kGlobalsAttr); tags && shape.microbatches > 1)
    for (auto [sum, tag] : llvm::zip_equal(sums, tags))
      sum.getDefiningOp()->setAttr(dist::DistDialect::kGlobalsAttr, ArrayAttr::get(func.getContext(), {tag}));
  loop.replaceAllUsesWith(sums);
  Operation *begin = loop->getNextNode();
  loop.erase();
  Placer(func, mesh, axis, homes).run(begin);
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
      if (failed(Unroller(func, loop, schedule, mesh.getMesh(), axis, symbols).run()))
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
