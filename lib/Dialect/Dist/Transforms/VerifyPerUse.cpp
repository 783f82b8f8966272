// Parameters that lie sharded and are put together for each use: that none is whole from one part of the step to
// another. What is whole, and what is kept, says VerifyLocal.h.
//
// All ops that read any parameter between the op that puts one together and the last that reads it belong to one part
// of the step. So a gather for the backward pass stands behind the last op of the forward pass that reads a parameter,
// and one layer ahead is allowed. Values that are no more than a share are added up where one part of the step gives
// way to another.
#include "VerifyLocal.h"

#include "Derivation.h"

#include "shoal/Dialect/Dist/IR/Collectives.h"
#include "shoal/Dialect/Dist/IR/Dist.h"
#include "shoal/Dialect/Dist/Transforms/StepParts.h"
#include "shoal/Dialect/NN/IR/Roles.h"
#include "shoal/Interfaces/Lowering.h"

#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Support/MathExtras.h"

#include <map>

using namespace mlir;

namespace shoal::dist {

namespace {

/// What a value has of parameters.
struct Holding {
  /// The tensor that it is made of: an argument, or what was taken out of a bucket.
  const void *tensor;
  /// The elements of that tensor which a device keeps.
  int64_t share;
  /// The ops that put it together; none where it is no more than a share.
  SmallVector<Operation *, 1> gathers;
  /// An op that brought what is no piece of the device's own shard; none where it is whole.
  Operation *broughtBy = nullptr;
  /// What then stands for it in `partLives`: itself, or what it is a view of.
  Value part = {};

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

/// How long a value is kept that is no more than a share.
struct PartLife {
  Operation *broughtBy;
  const void *tensor;
  int64_t elements;
  size_t begin, end; // of the ops that read parameters or parts of them, those that run meanwhile
};

class PerUseVerifier {
public:
  PerUseVerifier(FunctionOpInterface func, MeshAttr mesh) : func(func), mesh(mesh), parts(func) {}

  LogicalResult verify() {
    for (BlockArgument argument : func.getArguments()) {
      auto flat = func.getArgAttrOfType<FlatAttr>(argument.getArgNumber(), DistDialect::kFlatAttr);
      if (!flat || !flat.getPerUse() || mesh.getSize(flat.getAxes()) == 1)
        continue;
      int64_t share = countElements(argument);
      const void *tensor = argument.getAsOpaquePointer();
      held[argument] = {tensor, share, {}};
      sources[tensor] = {nn::getArgName(func, argument.getArgNumber()), mesh.getSize(flat.getAxes()), tensor, share};
    }
    if (held.empty())
      return success();
    if (func->walk<WalkOrder::PreOrder>([&](Operation *op) { return WalkResult(visit(op)); }).wasInterrupted())
      return failure();
    if (failed(verifyLifetimes()))
      return failure();
    return verifyParts();
  }

private:
  /// The argument that a tensor lies in.
  struct Source {
    StringRef parameter;
    int64_t devices;
    const void *argument;
    int64_t share; // of the tensor
  };
  /// A range of elements that an op reads.
  struct Piece {
    Value value;
    int64_t begin, end;
  };

  static int64_t countElements(Value value) {
    RankedTensorType tensor = getTensorType(value);
    return tensor ? tensor.getNumElements() : 0;
  }
  const Holding *find(Value value) const {
    auto at = held.find(value);
    return at == held.end() ? nullptr : &at->second;
  }

  LogicalResult visit(Operation *op);
  void leave(YieldOp op);
  std::optional<Holding> combine(Operation *op, ArrayRef<Piece> pieces, bool takesOut, int64_t &elements);
  void collectPieces(UnpackOp op, SmallVectorImpl<Piece> &pieces);
  void hold(Value value, Holding holding, int64_t elements);
  bool prolongParts(Operation *op, bool isPart);
  LogicalResult read(Operation *op, bool isPart);
  SmallVector<size_t> countChanges(ArrayRef<Operation *> ops) const;
  LogicalResult verifyLifetimes();
  LogicalResult verifyParts();

  FunctionOpInterface func;
  MeshAttr mesh;
  StepParts parts;
  Derivation derivation;
  DenseMap<Value, Holding> held;
  DenseMap<const void *, Source> sources; // of tensors
  // A tensor by the ranges of others that it was taken out of, by whichever op.
  std::map<std::vector<std::tuple<const void *, int64_t, int64_t>>, const void *> taken;
  DenseMap<Operation *, SmallVector<int64_t>> packedEnds; // of the inputs of a dist.pack, in its bucket
  SmallVector<Operation *> readers; // of whole parameters, in program order
  llvm::MapVector<Operation *, Lifetime> lifetimes;
  SmallVector<Operation *> allReaders; // also of parts of them
  llvm::MapVector<Value, PartLife> partLives;
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
    // Of a bucket of many tensors each is taken out: only those that meet the range are looked at.
    SmallVector<int64_t> &inputEnds = packedEnds[pack]; // in the bucket
    if (inputEnds.empty())
      for (auto [begin, end] : llvm::zip_equal(pack.getBegins(), pack.getEnds()))
        inputEnds.push_back((inputEnds.empty() ? 0 : inputEnds.back()) + end - begin);
    for (size_t i = llvm::upper_bound(inputEnds, piece.begin) - inputEnds.begin(); i < inputEnds.size(); ++i) {
      int64_t begin = pack.getBegins()[i], at = i == 0 ? 0 : inputEnds[i - 1];
      if (at >= piece.end)
        break;
      int64_t first = std::max(piece.begin, at), last = std::min(piece.end, inputEnds[i]);
      if (first < last)
        work.push_back({pack.getInputs()[i], begin + first - at, begin + last - at});
    }
  }
}

/// What an op has that lays pieces one after another, some of which hold parameters. `takesOut` of a bucket: what is
/// whole is a tensor of its own.
std::optional<Holding> PerUseVerifier::combine(Operation *op, ArrayRef<Piece> pieces, bool takesOut,
                                               int64_t &elements) {
  Holding made{nullptr, 0, {}};
  std::vector<std::tuple<const void *, int64_t, int64_t>> ranges;
  bool isOne = true;
  for (const Piece &piece : pieces) {
    const Holding *from = find(piece.value);
    if (!from)
      continue;
    if (!made.tensor)
      std::tie(made.tensor, made.share) = std::tie(from->tensor, from->share);
    isOne &= made.tensor == from->tensor;
    elements += piece.end - piece.begin;
    ranges.push_back({from->tensor, piece.begin, piece.end});
    made.addGathers(*from);
    made.broughtBy = made.broughtBy ? made.broughtBy : from->broughtBy;
  }
  if (!made.tensor)
    return std::nullopt;
  if (made.gathers.empty()) {
    if (isOne && elements > made.share)
      made.gathers.push_back(op); // shards of several devices
    return made;
  }
  made.broughtBy = made.broughtBy ? made.broughtBy : made.gathers.front();
  if (takesOut || !isOne) {
    Source source = sources.lookup(made.tensor);
    source.share = made.share = llvm::divideCeil(elements, source.devices);
    made.tensor = taken.try_emplace(std::move(ranges), op).first->second;
    sources.try_emplace(made.tensor, source);
  }
  return made;
}

/// Of a value's elements so many are of the parameter.
void PerUseVerifier::hold(Value value, Holding holding, int64_t elements) {
  if (countElements(value) <= holding.share)
    holding.gathers.clear(); // as a shard, or a sum
  if (holding.isWhole())
    holding.broughtBy = nullptr;
  if (!holding.broughtBy)
    holding.part = {};
  else if (!holding.part)
    holding.part = value;
  if (holding.part == value)
    partLives[value] = {holding.broughtBy, holding.tensor, elements, allReaders.size(), allReaders.size()};
  held[value] = std::move(holding);
}

/// What a region yields is its op's. Over micro-batches it is summed, from the first on.
void PerUseVerifier::leave(YieldOp op) {
  Operation *region = op->getParentOp();
  for (auto [yielded, result] : llvm::zip_equal(op.getValues(), region->getResults())) {
    const Holding *from = find(yielded);
    if (!from)
      continue;
    Holding made = *from;
    if (!isa<AccumulateOp>(region)) {
      held[result] = std::move(made);
      continue;
    }
    if (made.isWhole()) {
      size_t begin = readers.size();
      for (Operation *gather : made.gathers)
        begin = std::min(begin, lifetimes[gather].begin);
      lifetimes.try_emplace(region, Lifetime{sources.lookup(made.tensor).parameter, begin, begin, {}});
      made.gathers = {region};
    }
    size_t begin = made.part ? partLives[made.part].begin : 0;
    bool isPart = bool(made.part);
    made.part = {};
    hold(result, std::move(made), countElements(result));
    if (isPart)
      partLives[result].begin = begin;
  }
}

LogicalResult PerUseVerifier::visit(Operation *op) {
  if (auto yield = dyn_cast<YieldOp>(op))
    return leave(yield), success();
  std::optional<Holding> made;
  int64_t elements = 0; // of parameters
  if (auto unpack = dyn_cast<UnpackOp>(op)) {
    SmallVector<Piece> pieces;
    collectPieces(unpack, pieces);
    made = combine(op, pieces, /*takesOut=*/true, elements);
  } else if (auto pack = dyn_cast<PackOp>(op)) {
    SmallVector<Piece> pieces;
    for (auto [input, begin, end] : llvm::zip_equal(pack.getInputs(), pack.getBegins(), pack.getEnds()))
      pieces.push_back({input, begin, end});
    made = combine(op, pieces, /*takesOut=*/false, elements);
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
    // Positions take one of several values as it is.
    if (!isa<SelectOp>(op) && !derivation.derives(op, isOfTensor)) {
      // Micro-batches have their rows of what they are given.
      if (auto accumulate = dyn_cast<AccumulateOp>(op))
        for (auto [input, argument] : llvm::zip_equal(accumulate.getInputs(), accumulate.getBody().getArguments()))
          if (const Holding *from = find(input)) {
            Holding rows = *from; // a copy: the map grows
            held[argument] = std::move(rows);
          }
      return read(op, /*isPart=*/true);
    }
    for (Value operand : op->getOperands())
      if (const Holding *from = find(operand)) {
        made->addGathers(*from);
        made->broughtBy = made->broughtBy ? made->broughtBy : from->broughtBy;
        if (lowersAs(op, LoweringKind::View))
          made->part = from->part;
      }
    auto collective = dyn_cast<CollectiveOpInterface>(op);
    if (made->isWhole())
      made->broughtBy = made->broughtBy ? made->broughtBy : made->gathers.front();
    else if (collective && collective.communicates())
      made->broughtBy = made->broughtBy ? made->broughtBy : op;
    if (!made->isWhole())
      made->gathers.push_back(op);
  }
  if (!made)
    return success();
  bool isWhole = false;
  for (Value result : op->getResults()) {
    hold(result, *made, elements ? elements : countElements(result));
    const Holding &mine = held[result];
    for (Operation *gather : mine.gathers)
      if (gather == op)
        lifetimes[op] = {sources.lookup(mine.tensor).parameter, readers.size(), readers.size(), {}};
    isWhole |= mine.isWhole();
  }
  if (!isWhole)
    return read(op, /*isPart=*/false);
  prolongParts(op, /*isPart=*/false);
  return success();
}

/// What the op reads lives up to it. Whether that is part of a parameter.
bool PerUseVerifier::prolongParts(Operation *op, bool isPart) {
  bool reads = false;
  for (Value operand : op->getOperands())
    if (const Holding *from = find(operand); from && from->part) {
      partLives[from->part].end = allReaders.size() + isPart;
      reads = true;
    }
  return reads;
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
    for (Operation *outer = op->getParentOp(); !outer->isAncestor(gather); outer = outer->getParentOp())
      isInMicrobatches |= isa<AccumulateOp>(outer);
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
  bool readsParts = prolongParts(op, isPart);
  if (isPart && !gathers.empty())
    readers.push_back(op);
  if (isPart && (readsParts || !gathers.empty()))
    allReaders.push_back(op);
  return success();
}

/// How often the part of the step has changed up to each op.
SmallVector<size_t> PerUseVerifier::countChanges(ArrayRef<Operation *> ops) const {
  SmallVector<size_t> changes;
  for (auto [i, op] : llvm::enumerate(ops))
    changes.push_back(i == 0 ? 0 : changes.back() + (parts.get(op) != parts.get(ops[i - 1])));
  return changes;
}

LogicalResult PerUseVerifier::verifyLifetimes() {
  SmallVector<size_t> changes = countChanges(readers);
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
    StringRef from = StepParts::kNames[parts.get(first)], to = StepParts::kNames[parts.get(readers[std::max(mine, other)])];
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

LogicalResult PerUseVerifier::verifyParts() {
  SmallVector<size_t> changes = countChanges(allReaders);
  SmallVector<std::pair<Value, PartLife>> kept;
  for (auto &[value, life] : partLives)
    if (life.begin < life.end && changes[life.begin] != changes[life.end - 1])
      kept.push_back({value, life});
  for (size_t i = 1; i < allReaders.size() && !kept.empty(); ++i) {
    if (changes[i] == changes[i - 1])
      continue;
    llvm::MapVector<const void *, int64_t> elements; // by tensor, and by argument
    for (auto &[value, life] : kept) {
      if (life.begin >= i || life.end <= i)
        continue;
      elements[life.tensor] += life.elements;
      if (const void *argument = sources.lookup(life.tensor).argument; argument != life.tensor)
        elements[argument] += life.elements;
    }
    for (auto &total : elements) {
      const void *tensor = total.first;
      Source source = sources.lookup(tensor);
      if (total.second <= source.share)
        continue;
      auto isOf = [&](auto &entry) {
        auto &[value, life] = entry;
        return life.begin < i && life.end > i &&
               (life.tensor == tensor || sources.lookup(life.tensor).argument == tensor);
      };
      InFlightDiagnostic diag = llvm::find_if(kept, isOf)->second.broughtBy->emitOpError("brings parameter \"")
                                << source.parameter << "\", of which " << total.second << " elements are kept from "
                                << StepParts::kNames[parts.get(allReaders[i - 1])] << " to " << StepParts::kNames[parts.get(allReaders[i])]
                                << ", more than a device's share of " << source.share
                                << ": what lies flat per_use is gathered for each of them";
      for (auto &entry : llvm::make_filter_range(kept, isOf))
        diag.attachNote(entry.first.getLoc()) << entry.second.elements << " of them are kept here";
      return diag;
    }
  }
  return success();
}

} // namespace

LogicalResult verifyPerUse(FunctionOpInterface func, MeshAttr mesh) { return PerUseVerifier(func, mesh).verify(); }

} // namespace shoal::dist
