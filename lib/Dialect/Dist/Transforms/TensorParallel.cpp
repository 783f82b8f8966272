// dist-tensor-parallel: which dimensions of parameters the tensor axis shards, found from the graph.
//
// Dimensions that hold one factor from op to op are a group (DimGroups.h), and a strategy shards groups. Worth
// sharding is a group that a contraction with a parameter makes (its columns) and another one sums over (its rows),
// whatever lies between, as long as all of it passes the dimension through: the hidden dimension of an MLP, heads
// of attention. So is a vocabulary: rows of a table that integers pick, columns whose logits a loss over sharded
// classes reads. Everything else follows by propagation from the parameters.
#include "DimGroups.h"
#include "Strategy.h"

#include "shoal/Dialect/Dist/Transforms/Passes.h"
#include "shoal/Dialect/Dist/Transforms/SplitAxis.h"
#include "shoal/Dialect/Dist/Transforms/StepParts.h"
#include "shoal/Dialect/NN/IR/Roles.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include <numeric>

namespace shoal::dist {
#define GEN_PASS_DEF_TENSORPARALLELPASS
#include "shoal/passes/ShoalDist.h.inc"
} // namespace shoal::dist

using namespace mlir;
using namespace shoal;
using namespace shoal::dist;

namespace {

/// What the forward program says of a group of dimensions.
struct GroupFacts {
  int64_t size = 1;
  bool isBlocked = false; // some op needs the dimension whole
  bool isColumn = false, isRow = false, isClass = false, isOutput = false, isTable = false;
  SmallVector<unsigned> entries;                       // ops that hold it
  SmallVector<std::pair<unsigned, unsigned>> arguments; // parameters and buffers: argument, dimension
  SmallVector<unsigned> parts;                         // of the axis, once chosen
  CauseAttr hand;                                      // of the axis, where the file shards the group over it
  bool isRefused = false;                              // by an annotation in the file

  bool isWorthSharding() const {
    return !isBlocked && !isRefused && size > 1 && (isTable || (isColumn && (isRow || isClass || isOutput)));
  }
};

class TensorParallel {
public:
  TensorParallel(FunctionOpInterface func, MeshOp mesh, StringRef axis, DimGroups &&groups)
      : func(func), mesh(mesh), axis(axis), groups(std::move(groups)), facts(this->groups.getNumGroups()),
        forward(findForwardOps(func)), origins(findOrigins(func)) {
    for (StringAttr part : resolveAxis(mesh.getMesh(), axis)) {
      names.push_back(part);
      sizes.push_back(*mesh.getMesh().getAxisSize(part));
    }
  }

  /// Chooses groups. What the axis must be split into is in getSizes() afterwards.
  void choose();
  ArrayRef<int64_t> getSizes() const { return sizes; }
  bool isSplit() const { return sizes.size() > names.size(); }
  bool isFound() const {
    return llvm::any_of(facts, [](const GroupFacts &group) { return !group.parts.empty(); });
  }
  /// Places the axis, or its parts, on the parameters of the chosen groups.
  void annotate(MeshOp mesh);

private:
  /// A contraction with a parameter, and the groups of the columns it makes, major to minor.
  struct Columns {
    unsigned entry;
    SmallVector<unsigned> groups;
  };

  void findArguments();
  void classify(unsigned index);
  void classifyFactor(const DimGroups::Entry &entry, unsigned index, unsigned factor, Columns &columns);
  void adoptAnnotations();
  void reportHalf(const GroupFacts &group, unsigned argument, unsigned dim, ShardingAttr kept);
  void refuse(GroupFacts &group, unsigned argument, unsigned dim, Location strategy);
  void give(ArrayRef<unsigned> candidates, unsigned entry);
  CauseAttr getCause(const GroupFacts &group) const;
  SmallVector<unsigned> freeParts(unsigned group) const;
  int64_t sizeOf(ArrayRef<unsigned> parts) const {
    int64_t size = 1;
    for (unsigned part : parts)
      size *= sizes[part];
    return size;
  }
  bool isParameter(Value value) const { return origins.parameters.contains(value); }
  /// Whether an annotation shards a dimension over the axis, or a part of it.
  bool holdsAxis(ShardingAttr hand, unsigned dim) const {
    return llvm::any_of(names, [&](StringAttr name) { return llvm::is_contained(hand.getDimAxes(dim), name); });
  }
  bool isPickedByIntegers(const DimGroups::Entry &entry, unsigned factor) const;

  FunctionOpInterface func;
  MeshOp mesh;
  StringRef axis;
  DimGroups groups;
  std::vector<GroupFacts> facts; // per group
  DenseSet<Operation *> forward;
  SmallVector<StringAttr> names;  // of the axis or its parts in the mesh
  SmallVector<int64_t> sizes;     // of its parts; one more than names once it is to be split
  Origins origins;
  std::vector<Columns> columns;
};

// Facts.

void TensorParallel::findArguments() {
  for (BlockArgument argument : func.getArguments()) {
    nn::ArgRole role = nn::getArgRole(func, argument.getArgNumber());
    auto type = dyn_cast<RankedTensorType>(argument.getType());
    // The batch is data parallelism's.
    if (nn::isBatchedInput(func, argument.getArgNumber()))
      if (unsigned group = groups.find(argument, nn::getBatchDim(func, argument.getArgNumber()));
          group != DimGroups::kNone)
        facts[group].isBlocked = true;
    if (type && (role == nn::ArgRole::Param || role == nn::ArgRole::Buffer))
      for (int64_t d = 0; d < type.getRank(); ++d)
        if (unsigned group = groups.find(argument, d); group != DimGroups::kNone)
          facts[group].arguments.push_back({argument.getArgNumber(), d});
  }
}

/// Whether a factor counts the rows of a table of parameters that integers pick: an operand that depends on the
/// inputs, so a table of positions, of which every device needs the same rows, is none.
bool TensorParallel::isPickedByIntegers(const DimGroups::Entry &entry, unsigned factor) const {
  bool isTable = false, isPicked = false;
  for (auto [operand, tensor] : llvm::zip_equal(entry.op->getOperands(), entry.rule.operands)) {
    auto type = dyn_cast<RankedTensorType>(operand.getType());
    if (holds(tensor, factor)) {
      if (!isParameter(operand) || isTable)
        return false;
      isTable = true;
    } else if (type && type.getRank() > 0 && isa<IntegerType>(type.getElementType())) {
      isPicked |= origins.inputs.contains(operand);
    }
  }
  return isTable && isPicked;
}

void TensorParallel::classifyFactor(const DimGroups::Entry &entry, unsigned index, unsigned f, Columns &made) {
  unsigned number = entry.groups[f];
  if (number == DimGroups::kNone)
    return;
  GroupFacts &group = facts[number];
  const Factor &factor = entry.rule.factors[f];
  group.size = std::max(group.size, factor.size);
  group.entries.push_back(index);
  if (factor.size == 1)
    return;
  bool inParameter = false, inOther = false, inResult = false;
  for (auto [operand, tensor] : llvm::zip_equal(entry.op->getOperands(), entry.rule.operands))
    if (holds(tensor, f))
      (isParameter(operand) ? inParameter : inOther) = true;
  for (const TensorFactors &tensor : entry.rule.results)
    inResult |= holds(tensor, f);
  bool multiplies = isContraction(entry.rule);
  switch (factor.kind) {
  case FactorKind::PassThrough:
    if (multiplies && inParameter && inResult) {
      group.isColumn = true;
      made.groups.push_back(number);
    }
    return;
  case FactorKind::Reduction:
    if (multiplies && inParameter && inOther && factor.reduce == ReduceKind::Sum)
      group.isRow = true;
    else if (isPickedByIntegers(entry, f))
      group.isTable = true;
    else
      group.isBlocked = true;
    return;
  case FactorKind::Decompose:
  case FactorKind::NeedReplication:
  case FactorKind::Permutation:
    (needsWhole(entry.op, factor) ? group.isBlocked : group.isClass) = true;
    return;
  }
}

void TensorParallel::classify(unsigned index) {
  const DimGroups::Entry &entry = groups.getEntries()[index];
  if (!forward.contains(entry.op))
    return;
  Columns made{index, {}};
  for (unsigned f = 0; f < entry.rule.factors.size(); ++f)
    classifyFactor(entry, index, f, made);
  if (!made.groups.empty())
    columns.push_back(std::move(made));
}

/// Goes on from what the file shards. Not through ops that need the dimension whole: one parameter sharded along the
/// hidden size would bring the axis to the hidden size of every layer.
void TensorParallel::adoptAnnotations() {
  for (GroupFacts &group : facts)
    for (auto [argument, d] : group.arguments)
      if (ShardingAttr hand = getSharding(func.getArgument(argument)); hand && holdsAxis(hand, d) && !group.isBlocked)
        for (auto [part, name] : llvm::enumerate(names))
          if (llvm::is_contained(hand.getDimAxes(d), name) && !llvm::is_contained(group.parts, part)) {
            group.parts.push_back(part);
            if (!group.hand)
              group.hand = getHandCause(func.getArgument(argument));
          }
}

void TensorParallel::refuse(GroupFacts &group, unsigned argument, unsigned dim, Location strategy) {
  group.isRefused = true;
  InFlightDiagnostic diag = emitRemark(func.getArgument(argument).getLoc())
                            << "the annotation of \"" << nn::getArgName(func, argument) << "\" keeps dimension " << dim
                            << " from being sharded over \"" << axis
                            << "\", so tensor parallelism leaves alone what belongs to it: "
                            << getSharding(func.getArgument(argument));
  diag.attachNote(strategy) << "it would be sharded for this op";
}

/// The file shards one parameter of a group over the axis, and keeps another one from it.
void TensorParallel::reportHalf(const GroupFacts &group, unsigned argument, unsigned dim, ShardingAttr kept) {
  for (auto [other, d] : group.arguments) {
    ShardingAttr hand = getSharding(func.getArgument(other));
    if (!hand || !holdsAxis(hand, d))
      continue;
    InFlightDiagnostic diag = emitRemark(func.getArgument(argument).getLoc())
                              << "the sharding of \"" << nn::getArgName(func, argument) << "\" keeps dimension "
                              << dim << " from \"" << axis << "\", over which that of \"" << nn::getArgName(func, other)
                              << "\" shards the same dimension; both are kept, and values between them move: "
                              << kept;
    diag.attachNote(func.getArgument(other).getLoc()) << "\"" << nn::getArgName(func, other) << "\" is annotated here";
    return;
  }
}

// Choice.

/// The parts of the axis that a group may take: not those of groups that it meets in an op.
SmallVector<unsigned> TensorParallel::freeParts(unsigned number) const {
  llvm::BitVector used(sizes.size());
  for (unsigned index : facts[number].entries)
    for (unsigned other : groups.getEntries()[index].groups)
      if (other != DimGroups::kNone && other != number)
        for (unsigned part : facts[other].parts)
          used.set(part);
  SmallVector<unsigned> free;
  for (unsigned part = 0; part < sizes.size(); ++part)
    if (!used.test(part))
      free.push_back(part);
  return free;
}

/// Deals the axis out to groups of one op, major to minor. One that is as large as the axis, or the last, takes
/// all of it, padded where it does not divide; a smaller one takes what divides it, and the next one the rest: so
/// few key/value heads lie on few devices, and their queries on all.
void TensorParallel::give(ArrayRef<unsigned> candidates, unsigned entry) {
  for (auto [i, number] : llvm::enumerate(candidates)) {
    GroupFacts &group = facts[number];
    SmallVector<unsigned> free = freeParts(number);
    int64_t devices = sizeOf(free);
    if (free.empty() || (devices == 1 && sizes.size() > 1))
      return;
    // The hand has the last word on each parameter of the group.
    for (auto [argument, d] : group.arguments)
      if (ShardingAttr hand = getSharding(func.getArgument(argument));
          hand && (hand.getDims()[d].getIsClosed() ||
                   llvm::any_of(names, [&, hand = hand](StringAttr name) { return hand.uses(name); }))) {
        refuse(group, argument, d, groups.getEntries()[entry].op->getLoc());
        break;
      }
    if (group.isRefused)
      return;
    if (i + 1 == candidates.size() || group.size >= devices) {
      group.parts = free;
      return;
    }
    int64_t common = std::gcd(group.size, devices);
    if (common == 1)
      continue;
    if (sizes.size() == 1 && names.size() == 1) { // split now; who had the whole axis has both parts
      sizes = {common, devices / common};
      for (GroupFacts &other : facts)
        if (!other.parts.empty())
          other.parts = {0, 1};
      free = {0, 1};
    }
    // Another op has decided where the axis is split: as many parts as divide the group.
    for (unsigned part : free) {
      if (group.size % (sizeOf(group.parts) * sizes[part]) != 0)
        break;
      group.parts.push_back(part);
    }
  }
}

void TensorParallel::choose() {
  findArguments();
  for (unsigned index = 0; index < groups.getEntries().size(); ++index)
    classify(index);
  Operation *terminator = func.getFunctionBody().front().getTerminator();
  for (auto [i, result] : llvm::enumerate(terminator->getOperands())) {
    auto type = dyn_cast<RankedTensorType>(result.getType());
    if (!type || !func.getResultAttr(i, nn::NNDialect::kOutputAttr))
      continue;
    for (int64_t d = 0; d < type.getRank(); ++d)
      if (unsigned group = groups.find(result, d); group != DimGroups::kNone)
        facts[group].isOutput = true;
  }
  for (auto [number, group] : llvm::enumerate(facts))
    group.isBlocked |= groups.isMixed(number);
  adoptAnnotations();

  auto candidatesOf = [&](ArrayRef<unsigned> made) {
    SmallVector<unsigned> candidates;
    for (unsigned number : made)
      if (facts[number].isWorthSharding() && facts[number].parts.empty())
        candidates.push_back(number);
    return candidates;
  };
  // Where there is a choice first: queries have key/value heads and groups of them, keys only the former.
  for (bool hasChoice : {true, false})
    for (const Columns &made : columns)
      if (SmallVector<unsigned> candidates = candidatesOf(made.groups);
          !candidates.empty() && (candidates.size() > 1) == hasChoice)
        give(candidates, made.entry);
  // Tables whose vocabulary no logits share.
  for (unsigned number = 0; number < facts.size(); ++number)
    if (facts[number].isTable && facts[number].isWorthSharding() && facts[number].parts.empty())
      give({number}, facts[number].entries.front());
}

/// What a group is to those who read why a collective exists. Where the hand began it, the flag only goes on.
CauseAttr TensorParallel::getCause(const GroupFacts &group) const {
  if (group.hand)
    return group.hand;
  auto cause = [&](const Twine &what, Operation *op) {
    return getStrategyCause(func->getContext(), kTensorParallel, what, op);
  };
  if (group.isTable || group.isClass)
    return cause("the vocabulary", nullptr);
  auto find = [&](function_ref<bool(const DimGroups::Entry &)> is) -> Operation * {
    for (unsigned index : group.entries)
      if (is(groups.getEntries()[index]))
        return groups.getEntries()[index].op;
    return nullptr;
  };
  if (Operation *attention = find([](const DimGroups::Entry &entry) { return isa<nn::AttentionOp>(entry.op); }))
    return cause("the heads of nn.attention", attention);
  Operation *product = find([](const DimGroups::Entry &entry) { return isContraction(entry.rule); });
  return cause("the columns of " + product->getName().getStringRef(), product);
}

void TensorParallel::annotate(MeshOp mesh) {
  SmallVector<StringAttr> parts = resolveAxis(mesh.getMesh(), axis);
  ArgAnnotator arguments(func, mesh);
  for (const GroupFacts &group : facts) {
    SmallVector<StringAttr> axes;
    for (unsigned part : group.parts)
      axes.push_back(parts[part]);
    if (!axes.empty())
      for (auto [argument, d] : group.arguments)
        switch (arguments.ask(argument, d, axes)) {
        case ArgAnnotator::Answer::Free:
          arguments.shard(argument, d, axes, getCause(group));
          break;
        case ArgAnnotator::Answer::HasThem:
          break;
        case ArgAnnotator::Answer::Closed:
        case ArgAnnotator::Answer::UsedElsewhere:
          reportHalf(group, argument, d, arguments.get(argument));
        }
  }
}

struct TensorParallelPass : dist::impl::TensorParallelPassBase<TensorParallelPass> {
  using Base::Base;

  void runOnOperation() override {
    auto mesh = getMeshWithAxes(getOperation(), {axis}, "tensor parallelism");
    if (failed(mesh))
      return signalPassFailure();
    bool found = false;
    auto annotate = [&](func::FuncOp func, DimGroups &&groups) {
      TensorParallel strategy(func, *mesh, axis, std::move(groups));
      strategy.choose();
      if (strategy.isSplit() &&
          failed(splitAxis(getOperation(), StringAttr::get(&getContext(), axis), strategy.getSizes())))
        return failure();
      strategy.annotate(*mesh);
      found |= strategy.isFound();
      return success();
    };
    if (failed(forEachModel(getOperation(), annotate)))
      return signalPassFailure();
    if (found)
      return;
    emitError(getOperation().getLoc(), "tensor parallelism over \"")
        << axis << "\" finds nothing to shard: no dimension that one product with a parameter makes and another one "
        << "sums over, no vocabulary; annotate parameters by hand or leave the strategy out";
    signalPassFailure();
  }
};

} // namespace
