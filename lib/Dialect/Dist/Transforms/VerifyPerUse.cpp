// Parameters that lie sharded and are put together for each use: that none is whole from one part of the step to
// another.
//
// A device has a parameter whole from the op that puts it together, mostly an all_gather, to the last op that reads it,
// or reads what is made of it alone: the same elements in another type, shape, order or bucket, or a part of them that
// is more than the device's share. All ops in between that read any such parameter belong to one part of the step: its
// forward pass, its backward pass or its update. So a gather for the backward pass stands behind the last op of the forward
// pass that reads a parameter, and one layer ahead is allowed. Nor does anything whole reach into micro-batches.
// What a function or region returns is copied where it is complete, and prolongs nothing.
#include "VerifyLocal.h"

#include "Derivation.h"

#include "shoal/Dialect/Dist/IR/Dist.h"
#include "shoal/Dialect/Dist/Transforms/StepParts.h"
#include "shoal/Dialect/NN/IR/Roles.h"

#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace shoal::dist {

namespace {

/// What a value has of parameters.
struct Holding {
  /// The tensor that it is made of: an argument, or what was taken out of a bucket.
  const void *tensor;
  /// The elements of that tensor which a device keeps.
  int64_t share;
  /// The ops that put it together; none where it is a shard.
  SmallVector<Operation *, 1> gathers;

  bool isWhole() const { return !gathers.empty(); }
  void addGathers(const Holding &other) {
    for (Operation *gather : other.gathers)
      if (!llvm::is_contained(gathers, gather))
        gathers.push_back(gather);
  }
};

/// How long what an op puts together is whole.
struct Lifetime {
  StringRef parameter;
  size_t begin, end; // of the ops that read whole parameters, those that run meanwhile
  SmallVector<size_t, 2> readers; // those that read this one
  Operation *last = nullptr;
};

class PerUseVerifier {
public:
  PerUseVerifier(FunctionOpInterface func, MeshAttr mesh) : func(func), mesh(mesh), parts(func) {}

  LogicalResult verify() {
    for (BlockArgument argument : func.getArguments()) {
      auto flat = func.getArgAttrOfType<FlatAttr>(argument.getArgNumber(), DistDialect::kFlatAttr);
      if (!flat || !flat.getPerUse())
        continue;
      int64_t share = countElements(argument);
      held[argument] = {argument.getAsOpaquePointer(), share, {}};
      sources[argument.getAsOpaquePointer()] = {nn::getArgName(func, argument.getArgNumber()),
                                                  mesh.getSize(flat.getAxes())};
    }
    if (held.empty())
      return success();
    if (func->walk<WalkOrder::PreOrder>([&](Operation *op) { return WalkResult(visit(op)); }).wasInterrupted())
      return failure();
    return verifyLifetimes();
  }

private:
  struct Source {
    StringRef parameter;
    int64_t devices;
  };
  /// A range of elements that an op reads.
  struct Piece {
    Value value;
    int64_t begin, end;
  };

  static int64_t countElements(Value value) {
    auto type = value.getType();
    if (auto future = dyn_cast<FutureType>(type))
      type = future.getTensor();
    auto tensor = dyn_cast<RankedTensorType>(type);
    return tensor ? tensor.getNumElements() : 0;
  }
  const Holding *find(Value value) const {
    auto at = held.find(value);
    return at == held.end() ? nullptr : &at->second;
  }

  LogicalResult visit(Operation *op);
  std::optional<Holding> combine(Operation *op, ArrayRef<Piece> pieces, bool takesOut);
  void collectPieces(UnpackOp op, SmallVectorImpl<Piece> &pieces);
  LogicalResult read(Operation *op, bool isPart);
  LogicalResult verifyLifetimes();

  FunctionOpInterface func;
  MeshAttr mesh;
  StepParts parts;
  Derivation derivation;
  DenseMap<Value, Holding> held;
  DenseMap<const void *, Source> sources; // of tensors
  SmallVector<Operation *> readers;       // of whole parameters, in program order
  llvm::MapVector<Operation *, Lifetime> lifetimes;
};

/// The ranges of values that lie in those of an unpack, also where these were packed before.
void PerUseVerifier::collectPieces(UnpackOp op, SmallVectorImpl<Piece> &pieces) {
  SmallVector<Piece> work;
  for (auto [bucket, begin, end] : llvm::zip_equal(op.getBuckets(), op.getBegins(), op.getEnds()))
    work.push_back({bucket, begin, end});
  while (!work.empty()) {
    Piece piece = work.pop_back_val();
    auto pack = piece.value.getDefiningOp<PackOp>();
    if (!pack) {
      pieces.push_back(piece);
      continue;
    }
    int64_t at = 0;
    for (auto [input, begin, end] : llvm::zip_equal(pack.getInputs(), pack.getBegins(), pack.getEnds())) {
      int64_t first = std::max(piece.begin, at), last = std::min(piece.end, at + end - begin);
      if (first < last)
        work.push_back({input, begin + first - at, begin + last - at});
      at += end - begin;
    }
  }
}

/// What an op has that lays pieces one after another, some of which hold parameters. `takesOut` of a bucket: what is
/// whole is a tensor of its own.
std::optional<Holding> PerUseVerifier::combine(Operation *op, ArrayRef<Piece> pieces, bool takesOut) {
  Holding made{nullptr, 0, {}};
  int64_t elements = 0;
  bool isOne = true;
  for (const Piece &piece : pieces) {
    const Holding *from = find(piece.value);
    if (!from)
      continue;
    if (!made.tensor)
      std::tie(made.tensor, made.share) = std::tie(from->tensor, from->share);
    isOne &= made.tensor == from->tensor;
    elements += piece.end - piece.begin;
    made.addGathers(*from);
  }
  if (!made.tensor)
    return std::nullopt;
  if (made.gathers.empty()) {
    if (isOne && elements > made.share)
      made.gathers.push_back(op); // shards of several devices
    return made;
  }
  if (takesOut || !isOne) {
    Source source = sources.lookup(made.tensor);
    made.tensor = op;
    made.share = llvm::divideCeil(elements, source.devices);
    sources[op] = source;
  }
  return made;
}

LogicalResult PerUseVerifier::visit(Operation *op) {
  std::optional<Holding> made;
  if (auto unpack = dyn_cast<UnpackOp>(op)) {
    SmallVector<Piece> pieces;
    collectPieces(unpack, pieces);
    made = combine(op, pieces, /*takesOut=*/true);
  } else if (auto pack = dyn_cast<PackOp>(op)) {
    SmallVector<Piece> pieces;
    for (auto [input, begin, end] : llvm::zip_equal(pack.getInputs(), pack.getBegins(), pack.getEnds()))
      pieces.push_back({input, begin, end});
    made = combine(op, pieces, /*takesOut=*/false);
  } else {
    for (Value operand : op->getOperands())
      if (const Holding *from = find(operand); from && !made)
        made = Holding{from->tensor, from->share, {}};
    if (!made)
      return success();
    auto isOfTensor = [&](Value operand) {
      const Holding *from = find(operand);
      return from && from->tensor == made->tensor;
    };
    if (!derivation.derives(op, isOfTensor))
      return read(op, /*isPart=*/true);
    for (Value operand : op->getOperands())
      if (const Holding *from = find(operand))
        made->addGathers(*from);
    if (made->gathers.empty())
      made->gathers.push_back(op);
  }
  if (!made)
    return success();
  bool isWhole = false;
  for (Value result : op->getResults()) {
    Holding &mine = held[result] = *made;
    if (countElements(result) <= mine.share)
      mine.gathers.clear(); // as a shard, or a sum
    for (Operation *gather : mine.gathers)
      if (gather == op)
        lifetimes[op] = {sources.lookup(mine.tensor).parameter, readers.size(), readers.size(), {}};
    isWhole |= mine.isWhole();
  }
  return isWhole ? success() : read(op, /*isPart=*/false);
}

/// An op that makes nothing whole of what it reads. `isPart` of the step: what is made of parameters alone is made
/// where it stands, for whatever reads it.
LogicalResult PerUseVerifier::read(Operation *op, bool isPart) {
  if (op->hasTrait<OpTrait::IsTerminator>())
    return success();
  llvm::SmallSetVector<Operation *, 2> gathers;
  for (Value operand : op->getOperands())
    if (const Holding *from = find(operand))
      gathers.insert(from->gathers.begin(), from->gathers.end());
  for (Operation *gather : gathers) {
    Lifetime &lifetime = lifetimes[gather];
    bool isInMicrobatches = isa<AccumulateOp>(op);
    for (Operation *inside = op; inside->getBlock() != gather->getBlock(); inside = inside->getParentOp())
      isInMicrobatches |= isa<AccumulateOp>(inside->getParentOp());
    if (isInMicrobatches) {
      InFlightDiagnostic diag = gather->emitOpError("puts parameter \"")
                                << lifetime.parameter
                                << "\" together for all micro-batches: what lies flat per_use is gathered in each";
      diag.attachNote(op->getLoc()) << "read here";
      return diag;
    }
    lifetime.last = op;
    lifetime.end = readers.size() + isPart;
    if (isPart)
      lifetime.readers.push_back(readers.size());
  }
  if (isPart && !gathers.empty())
    readers.push_back(op);
  return success();
}

LogicalResult PerUseVerifier::verifyLifetimes() {
  constexpr const char *kPasses[] = {"the forward pass", "the backward pass", "the update"};
  SmallVector<size_t> changes; // how often the part has changed up to a reader
  for (auto [i, reader] : llvm::enumerate(readers))
    changes.push_back(i == 0 ? 0 : changes.back() + (parts.get(reader) != parts.get(readers[i - 1])));
  for (auto &[gather, lifetime] : lifetimes) {
    if (lifetime.begin == lifetime.end || changes[lifetime.begin] == changes[lifetime.end - 1])
      continue;
    size_t mine = lifetime.readers.empty() ? lifetime.end - 1 : lifetime.readers.back();
    auto isOther = [&](size_t i) { return parts.get(readers[i]) != parts.get(readers[mine]); };
    auto own = llvm::find_if(lifetime.readers, isOther);
    bool readsBoth = own != lifetime.readers.end();
    size_t other = readsBoth ? *own : *llvm::find_if(llvm::seq(lifetime.begin, lifetime.end), isOther);
    bool isThrough = !readsBoth && other < mine;
    Operation *first = readers[std::min(mine, other)];
    StringRef from = kPasses[parts.get(first)], to = kPasses[parts.get(readers[std::max(mine, other)])];
    InFlightDiagnostic diag = gather->emitOpError("keeps parameter \"") << lifetime.parameter << "\" whole ";
    if (isThrough)
      diag << "through " << from << " for " << to << ": gather it behind the last op of " << from
           << " that reads a parameter";
    else
      diag << "from " << from << " to " << to << ": what lies flat per_use is gathered for each of them";
    diag.attachNote(first->getLoc()) << (isThrough ? "a parameter is read by " : "read by ") << from << " here";
    if (lifetime.readers.empty() || mine < other)
      diag.attachNote(lifetime.last->getLoc()) << "read here";
    else
      diag.attachNote(readers[mine]->getLoc()) << "read by " << to << " here";
    return diag;
  }
  return success();
}

} // namespace

LogicalResult verifyPerUse(FunctionOpInterface func, MeshAttr mesh) { return PerUseVerifier(func, mesh).verify(); }

} // namespace shoal::dist
