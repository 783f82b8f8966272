// The machine: every rank has a stack of regions in execution, and runs until it has to wait for
// others. Ranks take turns on one thread, so a run is the same every time, and when no rank can go
// on the program is in a deadlock.
#include "shoal/Interpreter/Interpreter.h"

#include "Combine.h"
#include "LocalOps.h"
#include "Rendezvous.h"

#include "shoal/Dialect/Dist/IR/Collectives.h"
#include "shoal/Dialect/Dist/IR/Positions.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/Support/MathExtras.h"

#include <limits>

using namespace mlir;

namespace shoal::interp {
namespace {

// A block in execution, and what its op needs until the block has ended.
struct Frame {
  Operation *owner = nullptr;
  Block::iterator next;
  int64_t iteration = 0;         // accumulate, scf.for
  SmallVector<TensorRef> values; // accumulate: sums so far; scf.for: iteration arguments
  SmallVector<Ticket> tickets;   // group: what was posted and is waited for at its end
};

struct Rank {
  int64_t position;
  std::vector<Frame> stack;
  llvm::DenseMap<Value, TensorRef> values;
  llvm::DenseMap<Value, Ticket> futures;
  SmallVector<Ticket> awaited; // the rank stands until all are done
  Operation *waitsIn = nullptr;
  TensorList results;
  bool finished = false;
};

class Machine {
public:
  Machine(func::FuncOp func, dist::MeshAttr mesh, const RunOptions &options)
      : func(func), mesh(mesh), options(options), rendezvous(mesh, options.precision) {}

  FailureOr<std::vector<TensorList>> run(const std::vector<TensorList> &arguments);

private:
  LogicalResult checkMemory();
  LogicalResult start(const std::vector<TensorList> &arguments);
  FailureOr<bool> runUntilBlocked(Rank &rank);
  LogicalResult step(Rank &rank);
  LogicalResult enterAccumulate(Rank &rank, dist::AccumulateOp op, int64_t part);
  LogicalResult enterFor(Rank &rank, scf::ForOp op, int64_t value);
  LogicalResult endRegion(Rank &rank, Operation *terminator);
  LogicalResult communicate(Rank &rank, Operation *op);
  void passBy(Rank &rank, Operation *op);
  /// Whether the rank runs an op that is in its way; of an argument (null): has it.
  bool runs(const Rank &rank, Operation *op) const {
    return !op || !mesh || !op->hasAttr(dist::DistDialect::kAtAttr) || dist::getPositions(op, mesh).test(rank.position);
  }
  Frame *enclosingGroup(Rank &rank);
  LogicalResult deadlock();

  FailureOr<SmallVector<TensorRef>> read(Rank &rank, Operation *op, ValueRange values);
  void define(Rank &rank, Operation *op, ArrayRef<TensorRef> results);
  void enter(Rank &rank, Operation *owner, Block &block) {
    Frame &frame = rank.stack.emplace_back();
    frame.owner = owner;
    frame.next = block.begin();
  }
  void forget(Rank &rank, Operation *op);
  void findLastUses();

  func::FuncOp func;
  dist::MeshAttr mesh;
  const RunOptions &options;
  Rendezvous rendezvous;
  std::vector<Rank> ranks;
  llvm::DenseMap<Operation *, SmallVector<Value>> lastUses;
};

// For every value the last op of its own block that uses it, so that tensors live no longer.
void Machine::findLastUses() {
  auto add = [&](Value value, Block *block) {
    Operation *last = nullptr;
    for (Operation *user : value.getUsers()) {
      Operation *ancestor = block->findAncestorOpInBlock(*user);
      if (ancestor && (!last || last->isBeforeInBlock(ancestor)))
        last = ancestor;
    }
    if (last)
      lastUses[last].push_back(value);
  };
  func->walk([&](Block *block) {
    for (BlockArgument argument : block->getArguments())
      add(argument, block);
    for (Operation &op : *block)
      for (Value result : op.getResults())
        add(result, block);
  });
}

void Machine::forget(Rank &rank, Operation *op) {
  auto found = lastUses.find(op);
  if (found == lastUses.end())
    return;
  for (Value value : found->second) {
    rank.values.erase(value);
    rank.futures.erase(value);
  }
}

FailureOr<SmallVector<TensorRef>> Machine::read(Rank &rank, Operation *op, ValueRange values) {
  SmallVector<TensorRef> read;
  for (Value value : values) {
    auto found = rank.values.find(value);
    if (found == rank.values.end()) {
      Operation *definition = value.getDefiningOp();
      if (!runs(rank, definition))
        return op->emitError() << "uses a value that mesh position " << rank.position << " does not have: "
                               << describe(definition) << " runs elsewhere (dist.at)";
      return op->emitError() << "uses a value before it is there: "
                             << (definition ? describe(definition) : "an argument")
                             << " completes at the end of its group";
    }
    read.push_back(found->second);
  }
  return read;
}

void Machine::define(Rank &rank, Operation *op, ArrayRef<TensorRef> results) {
  SmallVector<const Tensor *> seen;
  for (auto [value, result] : llvm::zip_equal(op->getResults(), results)) {
    if (!result)
      continue;
    if (!value.use_empty())
      rank.values[value] = result;
    seen.push_back(result.get());
  }
  if (options.observer && seen.size() == op->getNumResults() && !seen.empty())
    options.observer(op, rank.position, seen);
}

LogicalResult Machine::start(const std::vector<TensorList> &arguments) {
  if (func.isExternal())
    return emitError(func.getLoc()) << "has no body to run";
  for (auto [position, list] : llvm::enumerate(arguments)) {
    if (list.size() != func.getNumArguments())
      return emitError(func.getLoc())
             << "takes " << func.getNumArguments() << " arguments, got: " << list.size();
    Rank &rank = ranks.emplace_back();
    rank.position = position;
    for (auto [argument, tensor] : llvm::zip_equal(func.getArguments(), list)) {
      if (argument.getType() != tensor.type)
        return emitError(func.getLoc()) << "argument " << argument.getArgNumber() << " is a "
                                        << argument.getType() << ", got: " << tensor.type;
      Tensor copy = tensor;
      normalize(copy, options.precision);
      rank.values[argument] = std::make_shared<const Tensor>(std::move(copy));
    }
    enter(rank, func, func.getBody().front());
  }
  findLastUses();
  return success();
}

/// Every value alone; how many live at once is the program's own business.
LogicalResult Machine::checkMemory() {
  WalkResult walked = func->walk([](Operation *op) {
    for (Type type : op->getResultTypes())
      if (auto tensor = dyn_cast<RankedTensorType>(type); tensor && failed(checkFits(op->getLoc(), tensor)))
        return WalkResult::interrupt();
    return WalkResult::advance();
  });
  return failure(walked.wasInterrupted());
}

FailureOr<std::vector<TensorList>> Machine::run(const std::vector<TensorList> &arguments) {
  if (failed(checkMemory()) || failed(start(arguments)))
    return failure();
  for (bool finished = false; !finished;) {
    bool progress = false;
    finished = true;
    for (Rank &rank : ranks) {
      FailureOr<bool> advanced = runUntilBlocked(rank);
      if (failed(advanced))
        return failure();
      progress |= *advanced;
      finished &= rank.finished;
    }
    if (!finished && !progress)
      return deadlock();
  }
  std::vector<TensorList> results;
  for (Rank &rank : ranks)
    results.push_back(std::move(rank.results));
  return results;
}

FailureOr<bool> Machine::runUntilBlocked(Rank &rank) {
  for (bool advanced = false;; advanced = true) {
    if (rank.finished)
      return advanced;
    for (const Ticket &ticket : rank.awaited)
      if (!ticket.transfer->done)
        return advanced;
    for (const Ticket &ticket : rank.awaited)
      if (ticket.op->getNumResults())
        define(rank, ticket.op, ticket.transfer->results[ticket.member]);
    rank.awaited.clear();
    if (failed(step(rank)))
      return failure();
  }
}

LogicalResult Machine::deadlock() {
  std::string text;
  Operation *first = nullptr;
  for (const Rank &rank : ranks) {
    text += (text.empty() ? "rank " : "; rank ") + std::to_string(rendezvous.rankOf(rank.position));
    if (rank.finished) {
      text += " has ended";
      continue;
    }
    first = first ? first : rank.waitsIn;
    text += " waits in " + describe(rank.waitsIn);
  }
  return first->emitError() << "deadlock: " << text;
}

LogicalResult Machine::step(Rank &rank) {
  Operation *op = &*rank.stack.back().next;
  if (isa<func::ReturnOp, dist::YieldOp, scf::YieldOp>(op))
    return endRegion(rank, op);
  if (op->hasTrait<OpTrait::IsTerminator>())
    return op->emitError() << "the interpreter does not run '" << op->getName() << "'";
  ++rank.stack.back().next;
  if (!runs(rank, op)) {
    passBy(rank, op);
    return success();
  }

  if (auto accumulate = dyn_cast<dist::AccumulateOp>(op)) {
    enter(rank, op, *accumulate.getBody().begin());
    return enterAccumulate(rank, accumulate, 0);
  }
  if (auto group = dyn_cast<dist::GroupOp>(op)) {
    enter(rank, op, *group.getBody().begin());
    return success();
  }
  if (auto branch = dyn_cast<scf::IfOp>(op)) {
    FailureOr<SmallVector<TensorRef>> condition = read(rank, op, branch.getCondition());
    if (failed(condition))
      return failure();
    Region &region = (*condition)[0]->i[0] ? branch.getThenRegion() : branch.getElseRegion();
    if (region.empty())
      forget(rank, op);
    else
      enter(rank, op, region.front());
    return success();
  }
  if (auto branch = dyn_cast<scf::IndexSwitchOp>(op)) {
    FailureOr<SmallVector<TensorRef>> value = read(rank, op, branch.getArg());
    if (failed(value))
      return failure();
    auto found = llvm::find(branch.getCases(), (*value)[0]->i[0]);
    Region &region = found == branch.getCases().end()
                         ? branch.getDefaultRegion()
                         : branch.getCaseRegions()[found - branch.getCases().begin()];
    enter(rank, op, region.front());
    return success();
  }
  if (auto loop = dyn_cast<scf::ForOp>(op)) {
    FailureOr<SmallVector<TensorRef>> operands = read(rank, op, op->getOperands());
    if (failed(operands))
      return failure();
    if ((*operands)[2]->i[0] <= 0)
      return op->emitError() << "steps must be at least 1, got: " << (*operands)[2]->i[0];
    enter(rank, op, *loop.getBody());
    rank.stack.back().values.assign(operands->begin() + 3, operands->end());
    return enterFor(rank, loop, (*operands)[0]->i[0]);
  }
  auto collective = dyn_cast<dist::CollectiveOpInterface>(op);
  if ((collective && collective.communicates()) || isa<dist::WaitOp>(op))
    return communicate(rank, op);

  if (auto select = dyn_cast<dist::SelectOp>(op)) {
    if (!mesh)
      return op->emitError() << "'" << op->getName() << "' needs a mesh: the program runs on one device here";
    // What a position does not take need not be there.
    FailureOr<SmallVector<TensorRef>> taken = read(rank, op, select.getInputs()[select.getChoices()[rank.position]]);
    if (failed(taken))
      return failure();
    define(rank, op, *taken);
    forget(rank, op);
    return success();
  }

  FailureOr<SmallVector<TensorRef>> operands = read(rank, op, op->getOperands());
  if (failed(operands))
    return failure();
  SmallVector<const Tensor *> pointers;
  for (const TensorRef &operand : *operands)
    pointers.push_back(operand.get());
  FailureOr<SmallVector<Tensor>> results = evaluateLocal(op, pointers, mesh, rank.position);
  if (failed(results))
    return failure();
  SmallVector<TensorRef> references;
  for (Tensor &result : *results) {
    normalize(result, options.precision);
    references.push_back(std::make_shared<const Tensor>(std::move(result)));
  }
  define(rank, op, references);
  forget(rank, op);
  return success();
}

/// An op that this position does not run. What computes has no results; those of communication are padding, on which
/// what follows may compute as long as nobody sees it.
void Machine::passBy(Rank &rank, Operation *op) {
  auto collective = dyn_cast<dist::CollectiveOpInterface>(op);
  if (!isa<dist::GroupOp>(op) && !(collective && collective.communicates()))
    return forget(rank, op);
  for (Value result : op->getResults()) {
    auto padding = std::make_shared<const Tensor>(makePadding(dist::getTensorType(result)));
    if (!isa<dist::FutureType>(result.getType())) {
      if (!result.use_empty())
        rank.values[result] = padding;
      continue;
    }
    auto transfer = std::make_shared<Transfer>();
    transfer->results = {padding};
    transfer->done = true;
    rank.futures[result] = Ticket{transfer, 0, op};
  }
  forget(rank, op);
}

/// The group of messages that the rank is in, also below branches and loops; null when in none.
Frame *Machine::enclosingGroup(Rank &rank) {
  for (Frame &frame : llvm::reverse(rank.stack))
    if (isa<dist::GroupOp>(frame.owner))
      return &frame;
  return nullptr;
}

LogicalResult Machine::communicate(Rank &rank, Operation *op) {
  if (!mesh)
    return op->emitError() << "'" << op->getName()
                           << "' needs a mesh: the program runs on one device here";
  if (auto wait = dyn_cast<dist::WaitOp>(op)) {
    auto found = rank.futures.find(wait.getFuture());
    if (found == rank.futures.end())
      return op->emitError() << "waits for a future that no op of this function made";
    Ticket ticket = found->second;
    ticket.op = op;
    rank.awaited.push_back(ticket);
    rank.waitsIn = op;
    forget(rank, op);
    return success();
  }

  FailureOr<SmallVector<TensorRef>> operands = read(rank, op, op->getOperands());
  if (failed(operands))
    return failure();
  FailureOr<Ticket> ticket;
  if (auto send = dyn_cast<dist::SendOp>(op))
    ticket = rendezvous.send(send, rank.position, (*operands)[1]->i[0], (*operands)[0]);
  else if (auto recv = dyn_cast<dist::RecvOp>(op))
    ticket = rendezvous.recv(recv, rank.position, (*operands)[0]->i[0]);
  else
    ticket = rendezvous.join(op, cast<dist::CollectiveOpInterface>(op).getAxesAttr(), rank.position,
                             operands->empty() ? nullptr : operands->front());
  if (failed(ticket))
    return failure();
  if (auto start = dyn_cast<dist::PermuteStartOp>(op)) {
    rank.futures[start.getFuture()] = *ticket;
  } else if (Frame *group = enclosingGroup(rank); group && isa<dist::SendOp, dist::RecvOp>(op)) {
    group->tickets.push_back(*ticket);
  } else {
    rank.awaited.push_back(*ticket);
    rank.waitsIn = op;
  }
  forget(rank, op);
  return success();
}

LogicalResult Machine::enterAccumulate(Rank &rank, dist::AccumulateOp op, int64_t part) {
  Frame &frame = rank.stack.back();
  frame.iteration = part;
  frame.next = op.getBody().front().begin();
  FailureOr<SmallVector<TensorRef>> inputs = read(rank, op, op.getInputs());
  if (failed(inputs))
    return failure();
  for (auto [argument, input] : llvm::zip_equal(op.getBody().getArguments(), *inputs)) {
    Tensor slice(cast<RankedTensorType>(argument.getType()));
    if (slice.size() * int64_t(op.getMicrobatches()) != input->size())
      return op.emitError() << "splits " << input->type << " into " << op.getMicrobatches()
                            << " micro-batches of " << slice.type;
    for (int64_t k = 0; k < slice.size(); ++k)
      slice.copy(k, *input, part * slice.size() + k);
    rank.values[argument] = std::make_shared<const Tensor>(std::move(slice));
  }
  return success();
}

LogicalResult Machine::enterFor(Rank &rank, scf::ForOp op, int64_t value) {
  Frame &frame = rank.stack.back();
  FailureOr<SmallVector<TensorRef>> bound = read(rank, op, op.getUpperBound());
  if (failed(bound))
    return failure();
  if (value >= (*bound)[0]->i[0]) {
    SmallVector<TensorRef> results = std::move(frame.values);
    rank.stack.pop_back();
    define(rank, op, results);
    forget(rank, op);
    return success();
  }
  frame.iteration = value;
  frame.next = op.getBody()->begin();
  Type type = op.getInductionVar().getType();
  rank.values[op.getInductionVar()] = std::make_shared<const Tensor>(makeScalar(type, value));
  for (auto [argument, carried] : llvm::zip_equal(op.getRegionIterArgs(), frame.values))
    rank.values[argument] = carried;
  return success();
}

LogicalResult Machine::endRegion(Rank &rank, Operation *terminator) {
  Frame &frame = rank.stack.back();
  // What a group has posted completes together, here.
  if (!frame.tickets.empty()) {
    rank.awaited = std::move(frame.tickets);
    frame.tickets.clear();
    rank.waitsIn = frame.owner;
    return success();
  }
  // What runs elsewhere is no result here, of a function as of what is handed through a group.
  auto isElsewhere = [&](Value value) {
    bool handsOn = isa<dist::GroupOp>(frame.owner) && !rank.values.count(value);
    return (handsOn || isa<func::FuncOp>(frame.owner)) && !runs(rank, value.getDefiningOp());
  };
  SmallVector<TensorRef> yielded;
  for (Value value : terminator->getOperands()) {
    if (isElsewhere(value)) {
      yielded.push_back(nullptr);
      continue;
    }
    FailureOr<SmallVector<TensorRef>> one = read(rank, terminator, value);
    if (failed(one))
      return failure();
    yielded.push_back(one->front());
  }
  forget(rank, terminator);

  if (auto accumulate = dyn_cast<dist::AccumulateOp>(frame.owner)) {
    SmallVector<TensorRef> sums;
    for (auto [number, value] : llvm::enumerate(yielded)) {
      Tensor sum = *value;
      if (frame.iteration > 0)
        combine(dist::ReduceKindAttrEnum::sum, sum, *frame.values[number]);
      normalize(sum, options.precision);
      sums.push_back(std::make_shared<const Tensor>(std::move(sum)));
    }
    if (frame.iteration + 1 < int64_t(accumulate.getMicrobatches())) {
      frame.values = std::move(sums);
      return enterAccumulate(rank, accumulate, frame.iteration + 1);
    }
    yielded = std::move(sums);
  } else if (auto loop = dyn_cast<scf::ForOp>(frame.owner)) {
    FailureOr<SmallVector<TensorRef>> step = read(rank, loop, loop.getStep());
    if (failed(step))
      return failure();
    frame.values = std::move(yielded);
    int64_t next = 0; // past the largest number it is past the bound
    bool isPast = llvm::AddOverflow(frame.iteration, (*step)[0]->i[0], next);
    return enterFor(rank, loop, isPast ? std::numeric_limits<int64_t>::max() : next);
  } else if (isa<func::FuncOp>(frame.owner)) {
    for (const TensorRef &value : yielded)
      rank.results.push_back(value ? *value : Tensor());
    rank.finished = true;
    rank.values.clear();
    return success();
  }
  Operation *owner = frame.owner;
  rank.stack.pop_back();
  define(rank, owner, yielded);
  forget(rank, owner);
  return success();
}

} // namespace

FailureOr<TensorList> runGlobal(func::FuncOp func, const TensorList &arguments,
                                const RunOptions &options) {
  FailureOr<std::vector<TensorList>> results = Machine(func, nullptr, options).run({arguments});
  if (failed(results))
    return failure();
  return std::move(results->front());
}

FailureOr<std::vector<TensorList>> runLocal(func::FuncOp func, dist::MeshAttr mesh,
                                            const std::vector<TensorList> &arguments,
                                            const RunOptions &options) {
  int64_t devices = mesh ? mesh.getNumDevices() : 1;
  if (int64_t(arguments.size()) != devices)
    return emitError(func.getLoc())
           << "runs on " << devices << " devices, got arguments for: " << arguments.size();
  return Machine(func, mesh, options).run(arguments);
}

} // namespace shoal::interp
