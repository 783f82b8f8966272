// dist-narrow-positions: what computes runs at the positions that have its operands and need its result. One way
// forward finds where values are there, one way back where they are needed; sets of positions are kept once each, so
// that both cost what there are ops.
#include "FoldControlFlow.h"

#include "shoal/Dialect/Dist/IR/PositionSets.h"
#include "shoal/Dialect/Dist/IR/Positions.h"
#include "shoal/Dialect/Dist/Transforms/Passes.h"
#include "shoal/Dialect/NN/IR/Roles.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;

namespace shoal::dist {
#define GEN_PASS_DEF_NARROWPOSITIONSPASS
#include "shoal/passes/ShoalDist.h.inc"

namespace {

using llvm::BitVector;

class Narrowing {
public:
  using Id = PositionSets::Id;

  Narrowing(func::FuncOp func, MeshAttr mesh)
      : func(func), block(func.getBody().front()), mesh(mesh), sets(mesh.getNumDevices()) {}

  void run();

private:
  /// What an argument's update leaves as it is at some positions, by a dist.select of the argument itself.
  struct Kept {
    OpOperand *result; // of the function
    Value argument;
    BitVector at;
  };

  Id definedAt(Value value) const;
  void define(Operation *op, Id outside);
  Id readAt(OpOperand &use);
  void findKept();
  void narrow(Operation *op);
  void simplify(SelectOp op, Id at);
  void restore(const Kept &kept);

  func::FuncOp func;
  Block &block;
  MeshAttr mesh;
  PositionSets sets;
  llvm::DenseMap<Value, Id> defined; // values that not all positions have
  llvm::DenseMap<unsigned, Id> returned; // of results, where less is needed than there is
  SmallVector<Kept> keptArguments;
  llvm::DenseMap<Operation *, BitVector> unneeded; // of selects of `kept`
};

bool computes(Operation *op) {
  return op->getNumResults() > 0 && op->getNumRegions() == 0 && isMemoryEffectFree(op) &&
         !op->hasTrait<OpTrait::ConstantLike>() &&
         llvm::all_of(op->getResultTypes(), [](Type type) { return isa<RankedTensorType>(type); });
}

Narrowing::Id Narrowing::definedAt(Value value) const {
  auto at = defined.find(value);
  return at == defined.end() ? PositionSets::kAll : at->second;
}

void Narrowing::define(Operation *op, Id outside) {
  Id at = sets.intersect(outside, sets.of(op));
  auto set = [&](Value result, Id where) {
    if (where != PositionSets::kAll)
      defined[result] = where;
  };
  if (auto select = dyn_cast<SelectOp>(op)) {
    BitVector where = sets[at];
    for (auto [position, choice] : llvm::enumerate(select.getChoices()))
      if (!sets[definedAt(select.getInputs()[choice])].test(position))
        where.reset(position);
    return set(select.getResult(), sets.get(where));
  }
  for (Region &region : op->getRegions())
    for (Block &body : region) {
      for (Operation &inner : body)
        define(&inner, at);
      if (!body.empty() && body.back().hasTrait<OpTrait::IsTerminator>())
        for (auto [result, value] : llvm::zip(op->getResults(), body.back().getOperands()))
          set(result, sets.intersect(at, definedAt(value)));
    }
  if (op->getNumRegions())
    return;
  auto collective = dyn_cast<CollectiveOpInterface>(op);
  if (!collective || !collective.communicates())
    for (Value operand : op->getOperands())
      at = sets.intersect(at, definedAt(operand));
  for (Value result : op->getResults())
    set(result, at);
}

/// Where a use needs the value. What the function returns is needed where it is there; what a select would give, where
/// that was needed.
Narrowing::Id Narrowing::readAt(OpOperand &use) {
  Operation *user = use.getOwner();
  if (user == block.getTerminator()) {
    auto at = returned.find(use.getOperandNumber());
    return at == returned.end() ? definedAt(use.get()) : at->second;
  }
  if (!isa<SelectOp>(user))
    return sets.runsAt(user);
  return sets.get(getReadPositions(use, mesh));
}

/// The new value of an argument may be the old one at some positions: nothing needs to be done there.
void Narrowing::findKept() {
  nn::ArgTable arguments(func);
  for (OpOperand &result : block.getTerminator()->getOpOperands()) {
    auto name = dyn_cast_or_null<StringAttr>(
        func.getResultAttr(result.getOperandNumber(), nn::NNDialect::kUpdatesAttr));
    std::optional<unsigned> number = name ? arguments.find(name.getValue()) : std::nullopt;
    auto select = result.get().getDefiningOp<SelectOp>();
    if (!number || !select || !select->hasOneUse())
      continue;
    Value argument = func.getArgument(*number);
    BitVector at(mesh.getNumDevices());
    for (auto [position, choice] : llvm::enumerate(select.getChoices()))
      at[position] = select.getInputs()[choice] == argument;
    at &= sets[definedAt(select.getResult())];
    if (at.none() || at == sets[definedAt(select.getResult())])
      continue;
    unneeded[select] = at;
    keptArguments.push_back({&result, argument, at});
  }
}

/// A select that fewer positions run takes no more than these need; of one value, it is that value.
void Narrowing::simplify(SelectOp op, Id at) {
  SmallVector<int64_t> choices(op.getChoices());
  int64_t first = choices[sets[at].find_first()];
  SmallVector<Value> inputs;
  SmallVector<int64_t> numbers(op.getInputs().size(), -1);
  for (auto [position, choice] : llvm::enumerate(choices)) {
    if (!sets[at].test(position))
      choice = first;
    int64_t &number = numbers[choice];
    if (number < 0) {
      number = inputs.size();
      inputs.push_back(op.getInputs()[choice]);
    }
    choice = number;
  }
  if (inputs.size() == 1) {
    for (OpOperand &use : op->getUses())
      if (use.getOwner() == block.getTerminator())
        returned[use.getOperandNumber()] = at;
    op.getResult().replaceAllUsesWith(inputs.front());
    op.erase();
    return;
  }
  op.setChoices(choices);
  op.getInputsMutable().assign(inputs);
  setPositions(op, sets[at]);
}

void Narrowing::narrow(Operation *op) {
  if (!computes(op))
    return;
  Id needed = PositionSets::kNone, there = PositionSets::kNone;
  for (Value result : op->getResults()) {
    there = sets.unite(there, definedAt(result));
    for (OpOperand &use : result.getUses())
      needed = sets.unite(needed, readAt(use));
  }
  Id at = sets.intersect(needed, there);
  if (auto kept = unneeded.find(op); kept != unneeded.end()) {
    BitVector rest = sets[at];
    rest.reset(kept->second);
    at = sets.get(rest);
  }
  if (at == PositionSets::kNone) {
    // Who needs it where it is not there is told so by `exec-lower`.
    if (op->use_empty())
      op->erase();
    return;
  }
  if (auto select = dyn_cast<SelectOp>(op))
    return simplify(select, at);
  setPositions(op, sets[at]);
}

/// Where a position reads an argument, its new value is there, too, also where that is the old one.
void Narrowing::restore(const Kept &kept) {
  Id read = PositionSets::kNone;
  for (OpOperand &use : kept.argument.getUses())
    read = sets.unite(read, use.getOwner() == block.getTerminator() ? Id(PositionSets::kAll) : readAt(use));
  BitVector at = sets[read];
  at &= kept.at;
  if (at.none())
    return;
  Value updated = kept.result->get();
  SmallVector<int64_t> choices;
  for (unsigned position = 0; position < at.size(); ++position)
    choices.push_back(at.test(position));
  OpBuilder builder(block.getTerminator());
  auto select =
      builder.create<SelectOp>(updated.getLoc(), updated.getType(), choices, ValueRange{updated, kept.argument});
  if (Operation *def = updated.getDefiningOp())
    setPositions(select, at |= sets[sets.of(def)]);
  kept.result->set(select);
}

void Narrowing::run() {
  for (Operation &op : block.without_terminator())
    define(&op, PositionSets::kAll);
  findKept();
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block)))
    narrow(&op);
  for (const Kept &kept : keptArguments)
    restore(kept);
}

bool isLimited(func::FuncOp func) {
  return func
      ->walk([](Operation *op) {
        return op->hasAttr(DistDialect::kAtAttr) ? WalkResult::interrupt() : WalkResult::advance();
      })
      .wasInterrupted();
}

struct NarrowPositionsPass : impl::NarrowPositionsPassBase<NarrowPositionsPass> {
  using NarrowPositionsPassBase::NarrowPositionsPassBase;

  void runOnOperation() override {
    MeshOp mesh = lookupMesh(getOperation());
    if (!mesh)
      return;
    for (auto func : getOperation().getOps<func::FuncOp>())
      if (func.getBody().hasOneBlock() && isLimited(func) && !hasControlFlow(func))
        Narrowing(func, mesh.getMesh()).run();
  }
};

} // namespace
} // namespace shoal::dist
