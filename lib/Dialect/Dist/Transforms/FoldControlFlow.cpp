// dist-fold-control-flow: control flow that depends on the position becomes one straight line for
// all positions. The function is executed on all of them at once: scalars have a value per position,
// tensors are ops of the new body, and the set of positions that are in a region goes onto the
// communication there.
#include "FoldControlFlow.h"

#include "shoal/Dialect/Dist/IR/Collectives.h"
#include "shoal/Dialect/Dist/IR/Positions.h"
#include "shoal/Dialect/Dist/Transforms/Passes.h"
#include "shoal/Dialect/NN/IR/NN.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace shoal::dist {
#define GEN_PASS_DEF_FOLDCONTROLFLOWPASS
#include "shoal/passes/ShoalDist.h.inc"

namespace {

using llvm::BitVector;

/// A scalar's value per position, null where it has none.
using Table = SmallVector<Attribute, 0>;

bool isScalar(Value value) { return value.getType().isIntOrIndex(); }

bool isScalarOp(Operation *op) {
  return op->getNumResults() && op->getNumRegions() == 0 && isMemoryEffectFree(op) &&
         llvm::all_of(op->getResults(), isScalar);
}

/// A tensor by a condition that may depend on the position.
bool selectsTensor(arith::SelectOp op) {
  return isScalar(op.getCondition()) && isa<RankedTensorType>(op.getType());
}

/// What positions hold after a region that they went through in different ways.
class Merge {
public:
  explicit Merge(unsigned positions) : choices(positions, 0) {}

  void add(const BitVector &at, ArrayRef<Value> values) {
    if (at.none())
      return;
    for (unsigned position : at.set_bits())
      choices[position] = ways.size();
    ways.emplace_back(values);
  }

  bool empty() const { return ways.empty(); }

  /// The values of one result, each once.
  SmallVector<Value> inputs(unsigned result) const {
    SmallVector<Value> inputs;
    for (const SmallVector<Value> &way : ways)
      if (!llvm::is_contained(inputs, way[result]))
        inputs.push_back(way[result]);
    return inputs;
  }

  Value get(OpBuilder &builder, Location loc, unsigned result) const {
    SmallVector<Value> values = inputs(result);
    if (values.size() == 1)
      return values.front();
    SmallVector<int64_t> taken;
    for (int64_t choice : choices)
      taken.push_back(llvm::find(values, ways[choice][result]) - values.begin());
    return builder.create<SelectOp>(loc, values.front().getType(), taken, values);
  }

private:
  SmallVector<int64_t> choices; // way per position
  SmallVector<SmallVector<Value>> ways;
};

/// A region and the positions that are in it.
struct Branch {
  Region *region;
  BitVector at;
};

/// A branch that is being visited, from where it has come to.
struct Track {
  const Branch *branch;
  Block::iterator next;
  SmallVector<Operation *> meetings; // collectives whose groups the branch has only a part of
};

class Folder {
public:
  Folder(func::FuncOp func, MeshAttr mesh, int64_t maxOps)
      : func(func), mesh(mesh), positions(mesh.getNumDevices()), left(maxOps), maxOps(maxOps),
        builder(func.getContext()) {}

  LogicalResult run();

private:
  LogicalResult visit(Block &block, const BitVector &at);
  LogicalResult visit(Operation *op, const BitVector &at);
  LogicalResult visitScalar(Operation *op, const BitVector &at);
  FailureOr<std::pair<BitVector, BitVector>> splitBy(Value condition, const BitVector &at);
  LogicalResult visitIf(scf::IfOp op, const BitVector &at);
  LogicalResult visitSwitch(scf::IndexSwitchOp op, const BitVector &at);
  LogicalResult visitFor(scf::ForOp op, const BitVector &at);
  LogicalResult visitBranches(Operation *op, ArrayRef<Branch> branches);
  SmallVector<Operation *> findMeetings(Block &block, const BitVector &at);
  bool canMeet(ArrayRef<Track> tracks);
  LogicalResult meet(MutableArrayRef<Track> tracks, unsigned number);
  LogicalResult give(Operation *op, MutableArrayRef<Table> tables, Merge &merge);
  LogicalResult visitSelect(arith::SelectOp op, const BitVector &at);
  LogicalResult visitFromElements(tensor::FromElementsOp op, const BitVector &at);
  LogicalResult visitRegion(Operation *op, const BitVector &at);
  LogicalResult visitCommunication(CollectiveOpInterface op, const BitVector &at);
  LogicalResult clone(Operation *op);
  FailureOr<BitVector> narrow(Operation *op, const BitVector &at);

  FailureOr<Attribute> lookup(Value scalar, unsigned position);
  FailureOr<int64_t> integerAt(Value scalar, unsigned position);
  LogicalResult read(Value value, const BitVector &at, Table &table);
  LogicalResult spend(Operation *op);
  Value materialize(Location loc, Value scalar, const BitVector &at);
  Value merged(const Merge &merge, Location loc, unsigned result);
  void leaveGroup(ValueRange operands);

  func::FuncOp func;
  MeshAttr mesh;
  unsigned positions;
  int64_t left, maxOps;
  OpBuilder builder;
  IRMapping map; // tensors and futures
  DenseMap<Value, Table> scalars;
};

// Scalars

FailureOr<Attribute> Folder::lookup(Value scalar, unsigned position) {
  auto at = scalars.find(scalar);
  if (at != scalars.end() && at->second[position])
    return at->second[position];
  return emitError(scalar.getLoc())
         << "control flow and peers may depend only on the position and on constants, got: "
         << scalar.getType();
}

FailureOr<int64_t> Folder::integerAt(Value scalar, unsigned position) {
  FailureOr<Attribute> attr = lookup(scalar, position);
  if (failed(attr))
    return failure();
  return readInteger(scalar.getLoc(), *attr);
}

LogicalResult Folder::visitScalar(Operation *op, const BitVector &at) {
  SmallVector<Table> tables(op->getNumResults(), Table(positions));
  for (unsigned position : at.set_bits()) {
    FailureOr<SmallVector<Attribute>> results = foldAt(
        op, mesh, position, [&](Value operand) { return lookup(operand, position); });
    if (failed(results))
      return failure();
    for (auto [table, attr] : llvm::zip_equal(tables, *results))
      table[position] = attr;
  }
  for (auto [result, table] : llvm::zip_equal(op->getResults(), tables))
    scalars[result] = std::move(table);
  return success();
}

/// Copies what a scalar is at some positions into a table; nothing for other values.
LogicalResult Folder::read(Value value, const BitVector &at, Table &table) {
  if (!isScalar(value))
    return success();
  for (unsigned position : at.set_bits()) {
    FailureOr<Attribute> attr = lookup(value, position);
    if (failed(attr))
      return failure();
    table[position] = *attr;
  }
  return success();
}

/// A scalar as an `index` of the new body.
Value Folder::materialize(Location loc, Value scalar, const BitVector &at) {
  SmallVector<int64_t> values(positions, -1); // nobody asks outside `at`
  for (unsigned position : at.set_bits())
    values[position] = *integerAt(scalar, position);
  int64_t first = values[at.find_first()];
  if (llvm::all_of(at.set_bits(), [&](unsigned position) { return values[position] == first; }))
    return builder.create<arith::ConstantIndexOp>(loc, first);
  return builder.create<PositionConstantOp>(loc, builder.getIndexType(), values);
}

LogicalResult Folder::visitFromElements(tensor::FromElementsOp op, const BitVector &at) {
  auto type = dyn_cast<RankedTensorType>(op.getType());
  if (!type || type.getRank() != 0 || !type.getElementType().isInteger(64))
    return op.emitOpError() << "makes a tensor<i64> of one scalar here, got: " << op.getType();
  SmallVector<int64_t> values(positions, 0);
  for (unsigned position : at.set_bits()) {
    FailureOr<int64_t> value = integerAt(op.getElements().front(), position);
    if (failed(value))
      return failure();
    values[position] = *value;
  }
  OpBuilder::InsertionGuard guard(builder);
  leaveGroup({});
  int64_t first = values[at.find_first()];
  if (llvm::all_of(at.set_bits(), [&](unsigned position) { return values[position] == first; }))
    map.map(op.getResult(), builder.create<nn::ConstantOp>(
                                op.getLoc(), type, DenseElementsAttr::get(type, first)));
  else
    map.map(op.getResult(), builder.create<PositionConstantOp>(op.getLoc(), type, values));
  return success();
}

// Tensors

LogicalResult Folder::spend(Operation *op) {
  if (left-- > 0)
    return success();
  return op->emitOpError() << "control flow unrolls to more than " << maxOps
                           << " ops (option max-ops)";
}

/// What a group of messages does not wait for comes before it.
void Folder::leaveGroup(ValueRange operands) {
  auto group = dyn_cast<GroupOp>(builder.getInsertionBlock()->getParentOp());
  if (group && llvm::none_of(operands, [&](Value operand) {
        return group->isAncestor(operand.getParentBlock()->getParentOp());
      }))
    builder.setInsertionPoint(group);
}

Value Folder::merged(const Merge &merge, Location loc, unsigned result) {
  OpBuilder::InsertionGuard guard(builder);
  leaveGroup(merge.inputs(result));
  return merge.get(builder, loc, result);
}

/// A copy of an op that every position may run.
LogicalResult Folder::clone(Operation *op) {
  for (Value operand : op->getOperands())
    if (!map.contains(operand))
      return op->emitOpError() << "cannot take a scalar of type " << operand.getType()
                               << "; tensor.from_elements makes a tensor<i64> of it";
  OpBuilder::InsertionGuard guard(builder);
  if (!op->hasTrait<OpTrait::IsTerminator>())
    leaveGroup(llvm::map_to_vector(op->getOperands(),
                                   [&](Value operand) { return map.lookup(operand); }));
  builder.clone(*op, map);
  return success();
}

/// The positions that run communication in a region that those of `at` are in.
FailureOr<BitVector> Folder::narrow(Operation *op, const BitVector &at) {
  if (!op->hasAttr(DistDialect::kAtAttr))
    return at;
  if (at != getPositions(op->getParentOp(), mesh))
    return op->emitOpError() << "says dist.at below control flow that says it already";
  BitVector own = getPositions(op, mesh);
  if (own.none())
    return op->emitOpError() << "runs at no mesh position: the group around it says dist.at, too";
  return own;
}

LogicalResult Folder::visitCommunication(CollectiveOpInterface op, const BitVector &inside) {
  FailureOr<BitVector> narrowed = narrow(op, inside);
  if (failed(narrowed))
    return failure();
  const BitVector &at = *narrowed;
  SmallVector<Value> peers;
  for (Value operand : op->getOperands())
    if (isScalar(operand)) {
      for (unsigned position : at.set_bits())
        if (failed(integerAt(operand, position)))
          return failure();
      map.map(operand, materialize(op.getLoc(), operand, at));
      peers.push_back(operand);
    }
  if (failed(verifyWholeGroups(op, mesh, at)))
    return failure();
  Operation *copy = builder.clone(*op, map);
  setPositions(copy, at);
  for (Value peer : peers)
    map.erase(peer);
  return success();
}

/// An op with one region that runs once as written: a group of messages, micro-batches.
LogicalResult Folder::visitRegion(Operation *op, const BitVector &inside) {
  FailureOr<BitVector> at = narrow(op, inside);
  if (failed(at))
    return failure();
  Operation *copy = op->cloneWithoutRegions(map);
  builder.insert(copy);
  if (isa<GroupOp>(op))
    setPositions(copy, *at);
  Block &body = op->getRegion(0).front();
  Block &fresh = copy->getRegion(0).emplaceBlock();
  for (BlockArgument argument : body.getArguments())
    map.map(argument, fresh.addArgument(argument.getType(), argument.getLoc()));
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToEnd(&fresh);
  return success(succeeded(visit(body, *at)) && succeeded(clone(body.getTerminator())));
}

// Control flow

/// The results of an op with regions: scalars by position, tensors merged.
LogicalResult Folder::give(Operation *op, MutableArrayRef<Table> tables, Merge &merge) {
  for (auto [number, result] : llvm::enumerate(op->getResults())) {
    if (isScalar(result))
      scalars[result] = std::move(tables[number]);
    else if (!isa<RankedTensorType>(result.getType()))
      return op->emitOpError() << "cannot give a value of type " << result.getType();
    else
      map.map(result, merged(merge, op->getLoc(), number));
  }
  return success();
}

/// The collectives directly in a block that need positions which take another branch.
SmallVector<Operation *> Folder::findMeetings(Block &block, const BitVector &at) {
  SmallVector<Operation *> meetings;
  for (Operation &op : block.without_terminator()) {
    auto collective = dyn_cast<CollectiveOpInterface>(op);
    if (collective && collective.communicates() && !isa<SendOp, RecvOp>(op) &&
        findGap(mesh, collective.getAxesAttr().getAxes(), at))
      meetings.push_back(&op);
  }
  return meetings;
}

/// Whether two collectives of different branches are one.
static bool areEqual(Operation *a, Operation *b) {
  return doTheSame(a, b, [](StringRef) { return false; });
}

/// Whether all branches come to the same collectives, with whole groups when they are together.
bool Folder::canMeet(ArrayRef<Track> tracks) {
  if (tracks.size() < 2)
    return false;
  BitVector together(positions);
  for (const Track &track : tracks) {
    together |= track.branch->at;
    if (track.meetings.size() != tracks.front().meetings.size())
      return false;
  }
  for (auto [number, op] : llvm::enumerate(tracks.front().meetings)) {
    auto isTensor = [](Type type) { return isa<RankedTensorType>(type); };
    if (!llvm::all_of(op->getOperandTypes(), isTensor) || !llvm::all_of(op->getResultTypes(), isTensor) ||
        findGap(mesh, cast<CollectiveOpInterface>(op).getAxesAttr().getAxes(), together))
      return false;
    for (const Track &track : tracks)
      if (!areEqual(op, track.meetings[number]))
        return false;
  }
  return true;
}

/// Goes on in every branch up to its next collective of the kind, and makes one of them all.
LogicalResult Folder::meet(MutableArrayRef<Track> tracks, unsigned number) {
  BitVector together(positions);
  Merge merge(positions);
  for (Track &track : tracks) {
    Operation *op = track.meetings[number];
    for (; &*track.next != op; ++track.next)
      if (failed(visit(&*track.next, track.branch->at)))
        return failure();
    ++track.next;
    if (failed(narrow(op, track.branch->at)))
      return failure();
    merge.add(track.branch->at, llvm::map_to_vector(op->getOperands(), [&](Value operand) {
                return map.lookup(operand);
              }));
    together |= track.branch->at;
  }
  Operation *first = tracks.front().meetings[number];
  if (failed(spend(first)))
    return failure();
  IRMapping operands;
  for (auto [index, operand] : llvm::enumerate(first->getOperands()))
    operands.map(operand, merged(merge, first->getLoc(), index));
  Operation *copy = builder.clone(*first, operands);
  setPositions(copy, together);
  for (Track &track : tracks)
    map.map(track.meetings[number]->getResults(), copy->getResults());
  return success();
}

LogicalResult Folder::visitBranches(Operation *op, ArrayRef<Branch> branches) {
  SmallVector<Track, 2> tracks, meeting;
  for (const Branch &branch : branches) {
    if (branch.at.none() || branch.region->empty())
      continue;
    Block &block = branch.region->front();
    tracks.push_back({&branch, block.begin(), findMeetings(block, branch.at)});
  }
  llvm::copy_if(tracks, std::back_inserter(meeting), [](const Track &track) { return !track.meetings.empty(); });
  // Else visiting the first of them tells which position does not come.
  if (canMeet(meeting)) {
    for (unsigned number = 0; number < meeting.front().meetings.size(); ++number)
      if (failed(meet(meeting, number)))
        return failure();
    for (Track &track : tracks)
      for (const Track &met : meeting)
        if (met.branch == track.branch)
          track = met;
  }
  Merge merge(positions);
  SmallVector<Table> tables(op->getNumResults(), Table(positions));
  for (Track &track : tracks) {
    const BitVector &at = track.branch->at;
    Block &block = track.branch->region->front();
    for (; &*track.next != block.getTerminator(); ++track.next)
      if (failed(visit(&*track.next, at)))
        return failure();
    SmallVector<Value> values;
    for (auto [number, value] : llvm::enumerate(block.getTerminator()->getOperands())) {
      values.push_back(map.lookupOrNull(value));
      if (failed(read(value, at, tables[number])))
        return failure();
    }
    merge.add(at, values);
  }
  return give(op, tables, merge);
}

/// The positions of `at` where the condition holds, and those where it does not.
FailureOr<std::pair<BitVector, BitVector>> Folder::splitBy(Value condition, const BitVector &at) {
  BitVector taken(positions), others = at;
  for (unsigned position : at.set_bits()) {
    FailureOr<int64_t> holds = integerAt(condition, position);
    if (failed(holds))
      return failure();
    if (*holds)
      taken.set(position);
  }
  others.reset(taken);
  return std::pair(taken, others);
}

LogicalResult Folder::visitIf(scf::IfOp op, const BitVector &at) {
  auto split = splitBy(op.getCondition(), at);
  if (failed(split))
    return failure();
  return visitBranches(op, {{&op.getThenRegion(), split->first}, {&op.getElseRegion(), split->second}});
}

LogicalResult Folder::visitSwitch(scf::IndexSwitchOp op, const BitVector &at) {
  SmallVector<Branch> branches;
  branches.push_back({&op.getDefaultRegion(), BitVector(positions)});
  for (Region &region : op.getCaseRegions())
    branches.push_back({&region, BitVector(positions)});
  for (unsigned position : at.set_bits()) {
    FailureOr<int64_t> value = integerAt(op.getArg(), position);
    if (failed(value))
      return failure();
    auto found = llvm::find(op.getCases(), *value);
    unsigned branch = found == op.getCases().end() ? 0 : 1 + (found - op.getCases().begin());
    branches[branch].at.set(position);
  }
  return visitBranches(op, branches);
}

LogicalResult Folder::visitFor(scf::ForOp op, const BitVector &at) {
  SmallVector<int64_t> next(positions), end(positions), step(positions);
  for (unsigned position : at.set_bits())
    for (auto [value, list] : {std::pair(op.getLowerBound(), &next),
                               std::pair(op.getUpperBound(), &end), std::pair(op.getStep(), &step)}) {
      FailureOr<int64_t> integer = integerAt(value, position);
      if (failed(integer))
        return failure();
      (*list)[position] = *integer;
      if (list == &step && *integer < 1)
        return op.emitOpError() << "steps must be at least 1, got: " << *integer << " at position "
                                << position;
    }
  SmallVector<Value> carried;
  SmallVector<Table> tables; // of scalars that are carried, per argument
  for (Value value : op.getInitArgs()) {
    carried.push_back(map.lookupOrNull(value));
    tables.push_back(Table(positions));
    if (failed(read(value, at, tables.back())))
      return failure();
    if (!isScalar(value) && !isa<RankedTensorType>(value.getType()))
      return op.emitOpError() << "cannot carry a value of type " << value.getType();
  }
  Merge merge(positions);
  Type type = op.getInductionVar().getType();
  for (BitVector active = at; active.any();) {
    BitVector ending(positions);
    for (unsigned position : active.set_bits())
      if (next[position] >= end[position])
        ending.set(position);
    merge.add(ending, carried);
    active.reset(ending);
    if (active.none())
      break;
    if (failed(spend(op)))
      return failure();
    Table induction(positions);
    for (unsigned position : active.set_bits()) {
      induction[position] = IntegerAttr::get(type, next[position]);
      if (llvm::AddOverflow(next[position], step[position], next[position]))
        next[position] = end[position];
    }
    scalars[op.getInductionVar()] = std::move(induction);
    for (auto [argument, value, table] :
         llvm::zip_equal(op.getRegionIterArgs(), carried, tables)) {
      if (isScalar(argument))
        scalars[argument] = table;
      else
        map.map(argument, value);
    }
    if (failed(visit(*op.getBody(), active)))
      return failure();
    for (auto [value, current, table] :
         llvm::zip_equal(op.getBody()->getTerminator()->getOperands(), carried, tables)) {
      current = map.lookupOrNull(value);
      if (failed(read(value, active, table)))
        return failure();
    }
  }
  return give(op, tables, merge);
}

LogicalResult Folder::visitSelect(arith::SelectOp op, const BitVector &at) {
  auto split = splitBy(op.getCondition(), at);
  if (failed(split))
    return failure();
  Merge merge(positions);
  merge.add(split->first, {map.lookup(op.getTrueValue())});
  merge.add(split->second, {map.lookup(op.getFalseValue())});
  map.map(op.getResult(), merged(merge, op.getLoc(), 0));
  return success();
}

LogicalResult Folder::visit(Operation *op, const BitVector &at) {
  if (failed(spend(op)))
    return failure();
  if (isScalarOp(op))
    return visitScalar(op, at);
  return llvm::TypeSwitch<Operation *, LogicalResult>(op)
      .Case([&](scf::IfOp op) { return visitIf(op, at); })
      .Case([&](scf::IndexSwitchOp op) { return visitSwitch(op, at); })
      .Case([&](scf::ForOp op) { return visitFor(op, at); })
      .Case([&](tensor::FromElementsOp op) { return visitFromElements(op, at); })
      .Case<GroupOp, AccumulateOp>([&](auto op) { return visitRegion(op, at); })
      .Case([&](arith::SelectOp op) -> LogicalResult {
        return selectsTensor(op) ? visitSelect(op, at) : clone(op);
      })
      .Default([&](Operation *) -> LogicalResult {
        auto collective = dyn_cast<CollectiveOpInterface>(op);
        if (collective && collective.communicates())
          return visitCommunication(collective, at);
        if (op->getNumRegions() || !isMemoryEffectFree(op))
          return op->emitOpError() << "cannot be folded per position: of control flow only scf.if, "
                                      "scf.for and scf.index_switch can";
        return clone(op);
      });
}

LogicalResult Folder::visit(Block &block, const BitVector &at) {
  for (Operation &op : block.without_terminator())
    if (failed(visit(&op, at)))
      return failure();
  return success();
}

LogicalResult Folder::run() {
  Block &old = func.getBody().front();
  auto *fresh = new Block;
  func.getBody().push_back(fresh);
  for (BlockArgument argument : old.getArguments())
    map.map(argument, fresh->addArgument(argument.getType(), argument.getLoc()));
  builder.setInsertionPointToEnd(fresh);
  if (failed(visit(old, BitVector(positions, true))) || failed(clone(old.getTerminator()))) {
    fresh->erase();
    return failure();
  }
  old.erase();
  return success();
}

} // namespace

bool hasControlFlow(func::FuncOp func) {
  return func
      ->walk([](Operation *op) {
        auto select = dyn_cast<arith::SelectOp>(op);
        bool asks = isa_and_nonnull<scf::SCFDialect, tensor::TensorDialect>(op->getDialect()) ||
                    (select && selectsTensor(select));
        return asks ? WalkResult::interrupt() : WalkResult::advance();
      })
      .wasInterrupted();
}

LogicalResult foldControlFlow(func::FuncOp func, MeshAttr mesh, int64_t maxOps) {
  return Folder(func, mesh, maxOps).run();
}

namespace {
struct FoldControlFlowPass : impl::FoldControlFlowPassBase<FoldControlFlowPass> {
  using FoldControlFlowPassBase::FoldControlFlowPassBase;

  void runOnOperation() override {
    MeshOp mesh = lookupMesh(getOperation());
    for (auto func : getOperation().getOps<func::FuncOp>()) {
      if (!func.getBody().hasOneBlock() || !hasControlFlow(func))
        continue;
      if (!mesh) {
        func.emitOpError() << "has control flow over the positions of a mesh, but the module has "
                              "no dist.mesh";
        return signalPassFailure();
      }
      if (failed(foldControlFlow(func, mesh.getMesh(), maxOps)))
        return signalPassFailure();
    }
  }
};

} // namespace
} // namespace shoal::dist
