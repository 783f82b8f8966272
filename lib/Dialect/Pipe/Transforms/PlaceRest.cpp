// Sums over stages, and the ranks of what a step does beside them.
#include "PlaceRest.h"

#include "shoal/Dialect/Dist/IR/Positions.h"
#include "shoal/Dialect/NN/IR/NN.h"
#include "shoal/Dialect/NN/IR/Roles.h"
#include "shoal/Dialect/NN/IR/Updates.h"

using namespace mlir;

namespace shoal::pipe {

using llvm::BitVector;

namespace {

class Placer {
public:
  Placer(PipeAxis axis, Homes &homes) : axis(axis), ranks(axis.getSize()), homes(homes) {}

  void run(Rest rest);

private:
  using Leaves = SmallVector<Value>;

  /// Of the terms of a sum; a free one needs none.
  BitVector getHolders(ArrayRef<Value> leaves) const {
    BitVector holders(ranks);
    for (Value leaf : leaves)
      if (!homes.isFree(leaf))
        holders |= of(leaf);
    return holders.any() ? holders : holders.set();
  }
  BitVector of(Value value) const { return homes.get(value); }
  void place(Operation *begin, Operation *end);
  void settleForStages(Rest rest);
  void limit(Operation *op, const BitVector &home);
  void gather(nn::AddOp op);
  Value settle(Value value, OpBuilder &b);
  void handToAll(Operation *op, OpBuilder &b);
  void handReturned(Operation *end, OpBuilder &b);
  Value handOn(Value value, const BitVector &to, StringRef name, OpBuilder &b);
  SmallVector<Value> addOwn(ArrayRef<Value> leaves, Location loc, OpBuilder &b);
  Value select(ArrayRef<Value> byRank, Location loc, OpBuilder &b);
  Value reduce(ArrayRef<Value> leaves, Location loc, OpBuilder &b, const Twine &asker);
  Value exchange(ArrayRef<Value> leaves, const BitVector &holders, Location loc, OpBuilder &b);
  Value pass(Value value, unsigned from, unsigned to, const Twine &asker, OpBuilder &b);

  PipeAxis axis;
  unsigned ranks;
  Homes &homes;
  DenseMap<Value, Leaves> pending; // sums of terms that no rank has all of
  DenseSet<Value> byArgument;      // values that are not everywhere because an argument is not
  SmallVector<Operation *> dead;
};

} // namespace

/// What each rank gives to a sum: of values that several have, the first of them does. Null where it gives nothing.
SmallVector<Value> Placer::addOwn(ArrayRef<Value> leaves, Location loc, OpBuilder &b) {
  SmallVector<Value> own(ranks);
  BitVector holders = getHolders(leaves);
  for (Value leaf : leaves) {
    unsigned rank = (homes.isFree(leaf) ? holders : of(leaf)).find_first();
    if (Value &sum = own[rank]; !sum) {
      sum = leaf;
    } else {
      sum = b.create<nn::AddOp>(loc, sum, leaf);
      dist::setPositions(sum.getDefiningOp(), axis.getPositions(rank)); // arguments, as values, are everywhere
    }
  }
  return own;
}

/// The value of each rank, where it has one.
Value Placer::select(ArrayRef<Value> byRank, Location loc, OpBuilder &b) {
  SmallVector<Value> inputs;
  SmallVector<int64_t> choiceOf(ranks, 0), choices;
  for (unsigned rank = 0; rank < ranks; ++rank) {
    if (!byRank[rank])
      continue;
    auto found = llvm::find(inputs, byRank[rank]);
    choiceOf[rank] = found - inputs.begin();
    if (found == inputs.end())
      inputs.push_back(byRank[rank]);
  }
  for (int64_t position = 0; position < axis.mesh.getNumDevices(); ++position)
    choices.push_back(choiceOf[axis.mesh.getIndexAlong(position, axis.name)]);
  return b.create<dist::SelectOp>(loc, inputs.front().getType(), choices, inputs);
}

/// The sum of values of which each is on some ranks, on all of them, by a reduction.
Value Placer::reduce(ArrayRef<Value> leaves, Location loc, OpBuilder &b, const Twine &asker) {
  auto type = cast<RankedTensorType>(leaves.front().getType());
  SmallVector<Value> own = addOwn(leaves, loc, b);
  if (llvm::is_contained(own, Value())) {
    auto zero = DenseElementsAttr::get(type, b.getZeroAttr(type.getElementType()));
    Value zeros = b.create<nn::ConstantOp>(loc, type, zero);
    std::replace(own.begin(), own.end(), Value(), zeros);
  }
  return b.create<dist::AllReduceOp>(loc, type, axis.getAxes(), dist::ReduceKindAttrEnum::sum, select(own, loc, b),
                                     getReason(b.getContext(), "the stages of the model", asker));
}

/// A value of one rank, on another.
Value Placer::pass(Value value, unsigned from, unsigned to, const Twine &asker, OpBuilder &b) {
  dist::ReasonAttr reason = getReason(b.getContext(), "the stages of the model", asker);
  StringAttr scope = b.getStringAttr(getScope({.kind = ActionKind::Update}));
  communicate(b, value.getLoc(), axis, from, Message{to, value, value.getType(), reason, {}, scope});
  return communicate(b, value.getLoc(), axis, to, Message{from, {}, value.getType(), reason, {}, scope}).front();
}

/// The same on those ranks alone that have terms, with no part for the others: from the last, which ends its backward
/// passes first, to the first, each adding its own, and the whole back. All have the same bits.
Value Placer::exchange(ArrayRef<Value> leaves, const BitVector &holders, Location loc, OpBuilder &b) {
  SmallVector<Value> byRank = addOwn(leaves, loc, b);
  Value sum;
  unsigned at = 0;
  auto passOn = [&](unsigned rank) {
    return pass(sum, at, rank, "a sum over stages, of rank " + Twine(at) + " and rank " + Twine(rank) + " of the pipeline", b);
  };
  for (unsigned rank = ranks; rank-- > 0;) {
    if (!byRank[rank])
      continue;
    if (sum)
      sum = b.create<nn::AddOp>(loc, passOn(rank), byRank[rank]);
    else
      sum = byRank[rank];
    at = rank;
  }
  byRank.assign(ranks, Value());
  for (unsigned rank : holders.set_bits()) {
    if (rank != at)
      sum = passOn(rank);
    byRank[rank] = sum;
    at = rank;
  }
  return select(byRank, loc, b);
}

/// A value that an op reads, once it is somewhere. Of single elements one reduction is less to wait for than messages
/// from rank to rank.
Value Placer::settle(Value value, OpBuilder &b) {
  auto found = pending.find(value);
  if (found == pending.end())
    return value;
  BitVector home = getHolders(found->second);
  bool isSmall = cast<RankedTensorType>(value.getType()).getNumElements() == 1;
  Value total = home.all() || isSmall ? reduce(found->second, value.getLoc(), b, "a sum over stages")
                                      : exchange(found->second, home, value.getLoc(), b);
  homes.set(total, home); // others have no use for it
  if (Attribute tags = value.getDefiningOp()->getAttr(dist::DistDialect::kGlobalsAttr))
    total.getDefiningOp()->setAttr(dist::DistDialect::kGlobalsAttr, tags);
  pending.erase(found);
  value.replaceAllUsesWith(total);
  return total;
}

/// An add that becomes part of a sum over stages.
void Placer::gather(nn::AddOp op) {
  OpBuilder b(op);
  Leaves leaves;
  for (Value operand : op->getOperands()) {
    auto found = pending.find(operand);
    if (found == pending.end())
      leaves.push_back(operand);
    else if (operand.hasOneUse())
      llvm::append_range(leaves, found->second);
    else
      leaves.push_back(settle(operand, b));
  }
  pending[op.getResult()] = leaves;
  dead.push_back(op);
}

/// No rank has all that the op reads: each value goes to all ranks.
void Placer::handToAll(Operation *op, OpBuilder &b) {
  for (OpOperand &operand : op->getOpOperands())
    if (!of(operand.get()).all())
      operand.set(reduce({operand.get()}, op->getLoc(), b,
                         "operand " + Twine(operand.getOperandNumber()) + " of " + op->getName().getStringRef()));
}

/// A value that replaces an argument, on the ranks of that: from the first that has it, one by one.
Value Placer::handOn(Value value, const BitVector &to, StringRef name, OpBuilder &b) {
  BitVector home = of(value);
  SmallVector<Value> byRank(ranks);
  unsigned from = home.find_first();
  for (unsigned rank : home.set_bits())
    byRank[rank] = value;
  for (unsigned rank : to.set_bits())
    if (!byRank[rank])
      byRank[rank] = pass(value, from, rank,
                          "rank " + Twine(rank) + " of the pipeline reads '" + name + "', which rank " + Twine(from) +
                              " updates",
                          b);
  Value handed = select(byRank, value.getLoc(), b);
  if (Operation *def = value.getDefiningOp())
    if (Attribute tags = def->getAttr(dist::DistDialect::kGlobalsAttr); tags && def->getNumResults() == 1)
      handed.getDefiningOp()->setAttr(dist::DistDialect::kGlobalsAttr, tags);
  return handed;
}

/// An argument that is returned is read everywhere, unless it is what it was; what replaces one, on all ranks of that.
void Placer::handReturned(Operation *end, OpBuilder &b) {
  auto func = cast<func::FuncOp>(end->getParentOp());
  for (auto [operand, number] : llvm::zip_equal(end->getOpOperands(), nn::updatedArguments(func))) {
    auto argument = dyn_cast<BlockArgument>(operand.get());
    if (argument && number != argument.getArgNumber() && !of(argument).all()) {
      operand.set(reduce({argument}, end->getLoc(), b, "result " + Twine(operand.getOperandNumber())));
    } else if (number && !homes.isFree(operand.get())) {
      BitVector missing = of(func.getArgument(*number));
      if (missing.reset(of(operand.get())).any())
        operand.set(handOn(operand.get(), missing, nn::getArgName(func, *number), b));
    }
  }
}

/// Limits an op to its operands' ranks where nothing else does: arguments, as values, are everywhere.
void Placer::limit(Operation *op, const BitVector &home) {
  BitVector others(ranks, true);
  for (Value operand : op->getOperands())
    if (!isa<BlockArgument>(operand) && !byArgument.contains(operand))
      others &= of(operand);
  if (others != home) {
    dist::setPositions(op, axis.getPositions(home));
    byArgument.insert(op->getResults().begin(), op->getResults().end());
  }
}

void Placer::place(Operation *begin, Operation *end) {
  for (Operation *op = begin, *next; op != end; op = next) {
    next = op->getNextNode();
    if (homes.isSum(op)) {
      gather(cast<nn::AddOp>(op));
      continue;
    }
    OpBuilder b(op);
    for (Value operand : llvm::to_vector(op->getOperands()))
      settle(operand, b);
    if (op->hasTrait<OpTrait::IsTerminator>())
      return handReturned(op, b);
    BitVector home(ranks, true);
    for (Value operand : op->getOperands())
      home &= of(operand);
    if (home.none())
      handToAll(op, b);
    if (home.none() || home.all())
      continue;
    bool communicates = false;
    op->walk([&](Operation *inner) {
      auto collective = dyn_cast<dist::CollectiveOpInterface>(inner);
      if (!collective || !collective.communicates())
        return;
      communicates = true;
      if (!inner->hasAttr(dist::DistDialect::kAtAttr)) // what only stages read is where these are
        dist::setPositions(inner, axis.getPositions(home));
    });
    if (!communicates)
      limit(op, home);
  }
}

/// What stages read is there before they begin.
void Placer::settleForStages(Rest rest) {
  DenseSet<Operation *> ofStages;
  for (Operation *op = rest.stages; op != rest.begin; op = op->getNextNode())
    ofStages.insert(op);
  OpBuilder b(rest.stages);
  for (Operation *sum : dead)
    if (llvm::any_of(sum->getUsers(), [&](Operation *user) { return ofStages.contains(user); }))
      settle(sum->getResult(0), b);
}

void Placer::run(Rest rest) {
  Block &block = *rest.stages->getBlock();
  for (Operation *op = &block.front(); op != rest.stages; op = op->getNextNode())
    homes.follow(op);
  for (Operation *op = rest.begin; op; op = op->getNextNode())
    homes.follow(op);
  place(&rest.stages->getBlock()->front(), rest.stages);
  settleForStages(rest);
  place(rest.begin, nullptr);
  for (Operation *op : llvm::reverse(dead))
    op->erase();
}

void placeRest(Rest rest, PipeAxis axis, Homes &homes) { Placer(axis, homes).run(rest); }

} // namespace shoal::pipe
