// exec-insert-transfers: ops run where the arguments lie that they read, and what they share with the other side is
// copied.
#include "HostValues.h"
#include "Widening.h"

#include "shoal/Dialect/Dist/IR/Memory.h"
#include "shoal/Dialect/Dist/IR/Positions.h"
#include "shoal/Dialect/Exec/Transforms/Passes.h"
#include "shoal/Dialect/Exec/Transforms/StepFunction.h"
#include "shoal/Dialect/NN/IR/Updates.h"
#include "shoal/Interfaces/Lowering.h"

#include "mlir/IR/Builders.h"
#include "llvm/ADT/DenseMap.h"

using namespace mlir;

namespace shoal::exec {

#define GEN_PASS_DEF_INSERTTRANSFERSPASS
#include "shoal/passes/ShoalExec.h.inc"

namespace {

/// What lies on the host, as the step is read op by op.
class HostValues {
public:
  explicit HostValues(func::FuncOp step) {
    for (BlockArgument argument : step.getArguments())
      if (dist::liesOnHost(step, argument.getArgNumber())) {
        kept.insert(argument);
        onHost.insert(argument);
      }
  }

  bool none() const { return onHost.empty(); }
  bool contains(Value value) const { return onHost.contains(value); }
  void addCopy(Value value) { onHost.insert(value); }

  /// The rule: a view stays where it is; a part of a kernel runs where what it reads is kept.
  bool runs(Operation *op) const {
    if (lowersAs(op, LoweringKind::View))
      return onHost.contains(op->getOperand(0));
    return lowersAs(op, LoweringKind::Kernel) &&
           llvm::any_of(op->getOperands(), [&](Value operand) { return kept.contains(operand); });
  }

  /// What an op makes there.
  void read(Operation *op) {
    auto transfer = dyn_cast<TransferOp>(op); // by hand, or of an earlier run
    bool brings = transfer && transfer.getMemory() == Memory::host;
    if (!brings && !runs(op))
      return;
    onHost.insert(op->result_begin(), op->result_end());
    if (brings || (lowersAs(op, LoweringKind::View) && kept.contains(op->getOperand(0))))
      kept.insert(op->getResult(0));
  }

private:
  llvm::DenseSet<Value> kept;   // arguments on the host, what transfers of the input bring there, and views of these
  llvm::DenseSet<Value> onHost; // these and what is computed there
};

class Transfers {
public:
  explicit Transfers(func::FuncOp step) : step(step), updated(nn::updatedArguments(step)), builder(step), host(step) {}

  void run() {
    if (host.none())
      return;
    for (Operation &op : llvm::make_early_inc_range(step.getBody().front()))
      visit(&op);
    narrowCopies();
  }

private:
  void visit(Operation *op);
  Value inMemory(Value value, Memory memory, Operation *reader, bool mayWiden = true);
  Memory memoryOf(OpOperand &use);
  void narrowCopies();

  func::FuncOp step;
  SmallVector<std::optional<unsigned>> updated; // by result the argument that it replaces
  OpBuilder builder;
  HostValues host;
  llvm::DenseMap<Value, Value> copies; // in the other memory
  llvm::DenseSet<Operation *> made;    // what makes these
};

} // namespace

/// The value, or its copy: behind the op that makes it, which frees its own memory the sooner; of an argument before
/// its first reader. What is widened crosses before that, and is read there as what came.
Value Transfers::inMemory(Value value, Memory memory, Operation *reader, bool mayWiden) {
  Operation *def = value.getDefiningOp();
  if (!isa<RankedTensorType>(value.getType()) || host.contains(value) == (memory == Memory::host) ||
      lowersAs(def, LoweringKind::Constant))
    return value;
  if (Value copy = copies.lookup(value))
    return copy;
  Value copy;
  if (mayWiden && isWidening(def)) {
    Value narrow = inMemory(def->getOperand(0), memory, def, /*mayWiden=*/false);
    builder.setInsertionPointAfter(def);
    Operation *widened = builder.clone(*def);
    widened->setOperand(0, narrow);
    copy = widened->getResult(0);
  } else {
    if (def)
      builder.setInsertionPointAfter(def);
    else
      builder.setInsertionPoint(reader);
    auto transfer = builder.create<TransferOp>(def ? def->getLoc() : reader->getLoc(), value.getType(), value, memory);
    // A copy counts as what it is a copy of.
    if (Attribute asked = def ? def->getAttr(ExecDialect::kClassAttr) : Attribute())
      transfer->setAttr(ExecDialect::kClassAttr, asked);
    copy = transfer;
  }
  made.insert(copy.getDefiningOp());
  if (memory == Memory::host)
    host.addCopy(copy);
  return copies[value] = copy;
}

/// Where a result of the step is wanted: an update where its argument lies.
Memory Transfers::memoryOf(OpOperand &use) {
  std::optional<unsigned> argument = updated[use.getOperandNumber()];
  return argument && dist::liesOnHost(step, *argument) ? Memory::host : Memory::device;
}

void Transfers::visit(Operation *op) {
  if (isa<TransferOp>(op))
    return host.read(op);
  if (lowersAs(op, LoweringKind::Constant))
    return;
  Memory memory = host.runs(op) ? Memory::host : Memory::device;
  bool ends = op->hasTrait<OpTrait::IsTerminator>();
  for (OpOperand &use : op->getOpOperands())
    use.set(inMemory(use.get(), ends ? memoryOf(use) : memory, op));
  for (Region &region : op->getRegions())
    region.walk([&](Operation *inner) {
      for (OpOperand &use : inner->getOpOperands())
        if (host.contains(use.get()))
          use.set(inMemory(use.get(), Memory::device, op));
    });
  host.read(op);
}

/// A copy is made at the mesh positions that have what it is of, and read it.
void Transfers::narrowCopies() {
  dist::MeshOp mesh = dist::lookupMesh(step);
  for (Operation &op : llvm::reverse(step.getBody().front())) {
    if (!mesh || op.getNumResults() != 1 || !made.contains(&op))
      continue;
    llvm::BitVector at(mesh.getMesh().getNumDevices());
    for (OpOperand &use : op.getUses())
      at |= dist::getReadPositions(use, mesh.getMesh());
    if (Operation *def = op.getOperand(0).getDefiningOp())
      at &= dist::getPositions(def, mesh.getMesh());
    if (at.any())
      dist::setPositions(&op, at);
  }
}

llvm::DenseSet<Operation *> findHostOps(func::FuncOp step) {
  HostValues host(step);
  llvm::DenseSet<Operation *> ops;
  for (Operation &op : step.getBody().front()) {
    if (host.runs(&op))
      ops.insert(&op);
    host.read(&op);
  }
  return ops;
}

namespace {
struct InsertTransfers : impl::InsertTransfersPassBase<InsertTransfers> {
  void runOnOperation() override {
    FailureOr<SmallVector<func::FuncOp>> steps = findSteps(getOperation());
    if (failed(steps))
      return signalPassFailure();
    for (func::FuncOp step : *steps)
      Transfers(step).run();
  }
};
} // namespace

} // namespace shoal::exec
