// exec-insert-transfers: ops run where the arguments lie that they read, and what they share with the other side is
// copied.
#include "HostValues.h"
#include "StepFunction.h"
#include "Widening.h"

#include "shoal/Dialect/Dist/IR/Memory.h"
#include "shoal/Dialect/Exec/Transforms/Passes.h"
#include "shoal/Interfaces/Lowering.h"

#include "mlir/IR/Builders.h"
#include "llvm/ADT/DenseMap.h"

using namespace mlir;

namespace shoal::exec {

#define GEN_PASS_DEF_INSERTTRANSFERSPASS
#include "shoal/passes/ShoalExec.h.inc"

namespace {

class Transfers {
public:
  explicit Transfers(func::FuncOp step) : step(step), arguments(step), builder(step) {}

  void run() {
    for (BlockArgument argument : step.getArguments())
      if (dist::liesOnHost(step, argument.getArgNumber())) {
        kept.insert(argument);
        onHost.insert(argument);
      }
    if (kept.empty())
      return;
    for (Operation &op : llvm::make_early_inc_range(step.getBody().front()))
      visit(&op);
  }

private:
  void visit(Operation *op);
  Value inMemory(Value value, Memory memory, Operation *reader);
  Memory memoryOf(OpOperand &use);

  func::FuncOp step;
  nn::ArgTable arguments;
  OpBuilder builder;
  llvm::DenseSet<Value> kept;   // arguments on the host, what transfers of the input bring there, and views of these
  llvm::DenseSet<Value> onHost; // these and what is computed there
  llvm::DenseMap<Value, Value> copies; // in the other memory
};

} // namespace

/// The value, or its copy: behind the op that makes it, which frees its own memory the sooner; of an argument before
/// its first reader.
Value Transfers::inMemory(Value value, Memory memory, Operation *reader) {
  Operation *def = value.getDefiningOp();
  if (!isa<RankedTensorType>(value.getType()) || onHost.contains(value) == (memory == Memory::host) ||
      lowersAs(def, LoweringKind::Constant))
    return value;
  if (Value copy = copies.lookup(value))
    return copy;
  Value copy;
  if (isWidening(def)) {
    Value narrow = inMemory(def->getOperand(0), memory, def);
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
  if (memory == Memory::host)
    onHost.insert(copy);
  return copies[value] = copy;
}

/// Where a result of the step is wanted: an update where its argument lies.
Memory Transfers::memoryOf(OpOperand &use) {
  auto name = step.getResultAttrOfType<StringAttr>(use.getOperandNumber(), nn::NNDialect::kUpdatesAttr);
  std::optional<unsigned> argument = name ? arguments.find(name.getValue()) : std::nullopt;
  return argument && dist::liesOnHost(step, *argument) ? Memory::host : Memory::device;
}

void Transfers::visit(Operation *op) {
  if (auto transfer = dyn_cast<TransferOp>(op)) { // by hand, or by this pass before
    if (transfer.getMemory() == Memory::host) {
      kept.insert(transfer);
      onHost.insert(transfer);
    }
    return;
  }
  if (lowersAs(op, LoweringKind::Constant))
    return;
  auto isKept = [&](Value operand) { return kept.contains(operand); };
  bool isView = lowersAs(op, LoweringKind::View);
  bool runsOnHost = isView ? onHost.contains(op->getOperand(0))
                           : lowersAs(op, LoweringKind::Kernel) && llvm::any_of(op->getOperands(), isKept);
  bool ends = op->hasTrait<OpTrait::IsTerminator>();
  for (OpOperand &use : op->getOpOperands()) {
    Memory memory = runsOnHost ? Memory::host : Memory::device;
    use.set(inMemory(use.get(), ends ? memoryOf(use) : memory, op));
  }
  for (Region &region : op->getRegions())
    region.walk([&](Operation *inner) {
      for (OpOperand &use : inner->getOpOperands())
        if (onHost.contains(use.get()))
          use.set(inMemory(use.get(), Memory::device, op));
    });
  if (!runsOnHost)
    return;
  onHost.insert(op->result_begin(), op->result_end());
  if (isView && isKept(op->getOperand(0)))
    kept.insert(op->getResult(0));
}

llvm::DenseSet<Operation *> findHostOps(func::FuncOp step) {
  llvm::DenseSet<Value> values;
  llvm::DenseSet<Operation *> ops;
  for (BlockArgument argument : step.getArguments())
    if (dist::liesOnHost(step, argument.getArgNumber()))
      values.insert(argument);
  for (Operation &op : step.getBody().front()) {
    auto transfer = dyn_cast<TransferOp>(op);
    bool reads = llvm::any_of(op.getOperands(), [&](Value operand) { return values.contains(operand); });
    bool runsOnHost = reads && (lowersAs(&op, LoweringKind::Kernel) || lowersAs(&op, LoweringKind::View));
    if (runsOnHost)
      ops.insert(&op);
    if (runsOnHost || (transfer && transfer.getMemory() == Memory::host))
      values.insert(op.result_begin(), op.result_end());
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
