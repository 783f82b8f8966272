// What is true of each collective of a local program, read off the program; see Explain.h. How that is printed is
// ExplainText.cpp's.
#include "shoal/Dialect/Dist/Transforms/Explain.h"

#include "Causes.h"
#include "DimGroups.h"
#include "ExplainPipeline.h"
#include "ExplainRings.h"
#include "PlanMesh.h"
#include "Reasons.h"
#include "Traffic.h"

#include "shoal/Dialect/Dist/IR/Collectives.h"
#include "shoal/Dialect/Dist/IR/Positions.h"
#include "shoal/Dialect/Dist/Transforms/StepParts.h"
#include "shoal/Dialect/NN/IR/Roles.h"
#include "shoal/Interfaces/Origin.h"
#include "shoal/Support/Elements.h"

#include "shoal-rt/traffic.h"

#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/SmallSet.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/FormatVariadic.h"

#include <map>

using namespace mlir;

namespace shoal::dist {

/// Ops that cost nothing at run time: their result lies where their operand does.
static bool isFree(Operation *op) { return isa<nn::ReshapeOp, UnpackOp, PackOp>(op); }

bool passesOn(Operation *op) { return isFree(op) || isa<AllSliceOp>(op); }

/// The tensors of a bucket, which itself has a name that no user gave; else the name.
static std::string nameTensors(StringRef name, BucketAttr bucket) {
  if (!bucket)
    return "\"" + name.str() + "\"";
  SmallVector<StringRef> names;
  for (MemberAttr member : bucket.getMembers())
    names.push_back(member.getName());
  return listNames(names);
}

std::string nameArgument(FunctionOpInterface func, unsigned index) {
  return nameTensors(nn::getArgName(func, index),
                     func.getArgAttrOfType<BucketAttr>(index, DistDialect::kBucketAttr));
}

std::string nameResult(FunctionOpInterface func, unsigned index) {
  auto roles = nn::getResultRoles(func, index);
  if (roles.empty())
    return "result " + std::to_string(index);
  auto bucket = func.getResultAttrOfType<BucketAttr>(index, DistDialect::kBucketAttr);
  if (roles.front().role == nn::ResultRole::Updates)
    for (unsigned i = 0; i < func.getNumArguments() && !bucket; ++i)
      if (auto own = func.getArgAttrOfType<BucketAttr>(i, DistDialect::kBucketAttr);
          own && nn::getArgName(func, i) == roles.front().name)
        bucket = own;
  std::string name = nameTensors(roles.front().name, bucket);
  switch (roles.front().role) {
  case nn::ResultRole::Loss:
    return "the loss";
  case nn::ResultRole::Metric:
    return "metric " + name;
  case nn::ResultRole::Output:
    return "output " + name;
  case nn::ResultRole::Grad:
    return "the gradient of " + name;
  case nn::ResultRole::Updates:
    return "the new value of " + name;
  }
  llvm_unreachable("every role is listed");
}

// Overlap.

std::string printFlops(double flops) {
  constexpr std::pair<double, const char *> kUnits[] = {
      {1e12, "TFLOP"}, {1e9, "GFLOP"}, {1e6, "MFLOP"}, {1e3, "kFLOP"}};
  std::string text;
  llvm::raw_string_ostream os(text);
  for (auto [size, name] : kUnits)
    if (flops >= size) {
      os << llvm::format("%.3g ", flops / size) << name;
      return text;
    }
  os << llvm::format("%.0f FLOP", flops);
  return text;
}

bool runsAt(Operation *op, int64_t position) {
  for (; op; op = op->getParentOp())
    if (auto at = op->getAttrOfType<DenseI64ArrayAttr>(DistDialect::kAtAttr);
        at && !llvm::is_contained(at.asArrayRef(), position))
      return false;
  return true;
}

namespace {

/// An op in the words of a program: a collective as it is told, what closes a region by what that is for.
std::string nameOp(Operation *op) {
  if (isa<AccumulateOp>(op))
    return "a micro-batch";
  if (isa<YieldOp>(op))
    return isa<AccumulateOp>(op->getParentOp()) ? "the sum over micro-batches" : "the end of dist.group";
  if (auto collective = dyn_cast<CollectiveOpInterface>(op); collective && collective.communicates())
    return op->getName().stripDialect().str();
  return op->getName().getStringRef().str();
}

/// "nn.add in h.3 reads it", "the step returns it as output "y"".
std::string tellRead(OpOperand &use, Operation *here, bool namesLayers) {
  auto func = dyn_cast_or_null<FunctionOpInterface>(here->getParentOp());
  if (func && here->hasTrait<OpTrait::IsTerminator>())
    return "the step returns it as " + nameResult(func, use.getOperandNumber());
  std::string text = nameOp(here);
  if (auto layer = here->getAttrOfType<StringAttr>(nn::NNDialect::kLayerAttr); layer && namesLayers)
    text += " in " + layer.str();
  return text + " reads it";
}

/// What runs beside a collective until it is read.
struct Overlap {
  int64_t ops = 0;
  double flops = 0;
  std::string reads;

  std::string describe() const {
    if (ops == 0)
      return "nothing: " + reads + " at once";
    std::string text = std::to_string(ops) + (ops == 1 ? " op" : " ops");
    if (flops >= 1)
      text += ", " + printFlops(flops);
    return text + ", until " + reads;
  }
};

/// The computation of a block at one position, counted from its start, so that what lies between two ops is a
/// difference.
class Timeline {
public:
  Timeline(Block &block, MeshAttr mesh, int64_t position) : mesh(mesh), position(position) {
    int64_t ops = 0;
    double flops = 0;
    for (Operation &op : block) {
      // Before the op.
      before[&op] = {int64_t(before.size()), ops, flops};
      if (auto accumulate = dyn_cast<AccumulateOp>(op)) {
        accumulate.getBody().walk([&](Operation *inner) { add(inner, accumulate.getMicrobatches(), ops, flops); });
        continue;
      }
      add(&op, 1, ops, flops);
    }
  }

  Overlap find(Operation *op, bool namesLayers) const {
    OpOperand *use = findFirstUse(op, nullptr);
    Operation *reader = use ? placeOf(*use) : op->getBlock()->getTerminator();
    const Point &from = before.lookup(op), &to = before.lookup(reader);
    return {to.ops - from.ops, to.flops - from.flops, use ? tellRead(*use, reader, namesLayers) : "the step ends"};
  }

private:
  struct Point {
    int64_t index = 0, ops = 0;
    double flops = 0;
  };

  void add(Operation *op, int64_t times, int64_t &ops, double &flops) const {
    if (!isa_and_nonnull<nn::NNDialect>(op->getDialect()) || isFree(op) || op->hasTrait<OpTrait::ConstantLike>() ||
        !runsAt(op, position))
      return;
    ops += times;
    if (auto ruled = dyn_cast<ShardingRuleOpInterface>(op); ruled && !op->getNumRegions())
      flops += times * ruled.getFlops();
  }

  /// The op of the block that reads, or that holds the one which does; none where other positions read.
  Operation *placeOf(OpOperand &use) const {
    if (isa<SelectOp>(use.getOwner()) ? !getReadPositions(use, mesh).test(position) : !runsAt(use.getOwner(), position))
      return nullptr;
    for (Operation *op = use.getOwner(); op; op = op->getParentOp())
      if (before.contains(op))
        return op;
    return nullptr;
  }

  /// The first read in the block of what `op` makes, in another shape too; `first` where there is no earlier one.
  OpOperand *findFirstUse(Operation *op, OpOperand *first) const {
    for (OpOperand &use : op->getUses()) {
      Operation *here = placeOf(use);
      if (!here)
        continue;
      if (passesOn(here))
        first = findFirstUse(here, first);
      else if (!first || before.lookup(here).index < before.lookup(placeOf(*first)).index)
        first = &use;
    }
    return first;
  }

  MeshAttr mesh;
  int64_t position;
  DenseMap<Operation *, Point> before;
};

/// Overlap as the rank with the least of it has it: ranks of other stages run other ops in the meantime.
class Overlaps {
public:
  Overlaps(func::FuncOp func, MeshAttr mesh) : mesh(mesh), classOf(mesh.getNumDevices(), 0) {
    // Positions are of one class that run the same ops.
    llvm::SetVector<Attribute> limits;
    func.walk([&](Operation *op) {
      if (Attribute at = op->getAttr(DistDialect::kAtAttr))
        limits.insert(at);
    });
    for (Attribute at : limits) {
      std::map<std::pair<unsigned, bool>, unsigned> numbers; // asked, never walked
      for (auto [position, number] : llvm::enumerate(classOf)) {
        bool isNamed = llvm::is_contained(cast<DenseI64ArrayAttr>(at).asArrayRef(), int64_t(position));
        number = numbers.try_emplace({number, isNamed}, numbers.size()).first->second;
      }
    }
  }

  std::string describe(Operation *op, bool namesLayers) {
    std::optional<Overlap> least;
    llvm::SmallSet<unsigned, 8> seen;
    llvm::BitVector positions = getPositions(op, mesh);
    for (unsigned position : positions.set_bits()) {
      if (!seen.insert(classOf[position]).second)
        continue;
      std::unique_ptr<Timeline> &timeline = timelines[{op->getBlock(), classOf[position]}];
      if (!timeline)
        timeline = std::make_unique<Timeline>(*op->getBlock(), mesh, position);
      Overlap overlap = timeline->find(op, namesLayers);
      if (!least || overlap.ops < least->ops)
        least = std::move(overlap);
    }
    return least->describe();
  }

private:
  MeshAttr mesh;
  SmallVector<unsigned> classOf; // by position
  DenseMap<std::pair<Block *, unsigned>, std::unique_ptr<Timeline>> timelines;
};

// Removal.

bool isUpdate(Operation *op) { return isa_and_nonnull<nn::OptimizerUpdateOpInterface>(op); }

/// Whether a result goes into an optimizer's update or out of the function as a gradient.
bool isGradient(Operation *op) {
  if (op->getOperand(0).getDefiningOp<PackOp>())
    return true;
  return llvm::any_of(op->getUses(), [](OpOperand &use) {
    Operation *user = use.getOwner();
    if (isFree(user))
      return user->getNumResults() == 1 && !isa<PackOp>(user) && isGradient(user);
    if (auto update = dyn_cast<nn::OptimizerUpdateOpInterface>(user))
      return update.getGrad() == use.get();
    auto func = dyn_cast_or_null<func::FuncOp>(user->getParentOp());
    return func && isa<func::ReturnOp>(user) && func.getResultAttr(use.getOperandNumber(), nn::NNDialect::kGradAttr);
  });
}

/// The role of a function's result that the value is returned as, as messages call it; empty for none.
StringRef findReturnedRole(Operation *op) {
  for (OpOperand &use : op->getUses()) {
    auto func = dyn_cast_or_null<func::FuncOp>(use.getOwner()->getParentOp());
    if (!func || !isa<func::ReturnOp>(use.getOwner()))
      continue;
    for (nn::NamedRole named : nn::getResultRoles(func, use.getOperandNumber()))
      if (named.role == nn::ResultRole::Loss || named.role == nn::ResultRole::Metric)
        return named.role == nn::ResultRole::Loss ? "the loss" : "a metric";
    return "a result of the function";
  }
  return "";
}

/// A reader that needs a dimension whole by its rule.
Operation *findNeedy(Operation *op, int64_t dim) {
  for (OpOperand &use : op->getUses()) {
    auto ruled = dyn_cast<ShardingRuleOpInterface>(use.getOwner());
    if (!ruled || use.getOwner()->getNumRegions())
      continue;
    ShardingRule rule = ruled.getShardingRule();
    if (!fits(rule, use.getOwner()))
      continue;
    for (unsigned factor : rule.operands[use.getOperandNumber()][dim])
      if (rule.factors[factor].kind == FactorKind::NeedReplication)
        return use.getOwner();
  }
  return nullptr;
}

/// The layer that a collective belongs to: that of who asks, or of a bucket, for which nobody asks in one, that of its
/// tensors.
StringAttr findLayer(ReasonAttr reason) {
  if (!reason || reason.getLayer())
    return reason ? reason.getLayer() : StringAttr();
  llvm::SmallSetVector<StringAttr, 2> layers;
  for (CauseAttr cause : reason.getCauses())
    if (cause.getLayer())
      layers.insert(cause.getLayer());
  return layers.size() == 1 ? layers.front() : StringAttr();
}

class Removal {
public:
  /// `known`: the layer that goes without saying; none where all are named.
  Removal(Operation *op, AxesAttr axes, ReasonAttr reason, StringAttr known)
      : op(op), reason(reason), known(known), names(printAxes(axes.getAxes())) {}

  std::string describe() const {
    if (!reason)
      return "the author of the program, who wrote it there";
    if (auto exchange = say(&StrategyRemovals::ring); exchange && op->hasAttr(DistDialect::kRingAttr))
      return *exchange;
    if (auto exchange = say(&StrategyRemovals::exchange); exchange && isa<AllToAllOp>(op))
      return *exchange;
    if (auto reorder = say(&StrategyRemovals::reorder); reorder && isa<CollectivePermuteOp>(op))
      return *reorder;
    if (op->hasAttr(DistDialect::kRefetchAttr))
      return say(&StrategyRemovals::refetch)
          .value_or("leave out dist.refetch: what the forward pass gathered would be kept for the backward pass");
    bool isReduction = cast<CollectiveOpInterface>(op).getReduction().has_value();
    std::optional<std::string> gather = say(&StrategyRemovals::gather);
    if ((isReduction || gather) && isGradient(op))
      return say(&StrategyRemovals::gradient)
          .value_or(avoid() + ": ranks of " + names + " compute parts of the gradient of what they all hold");
    if (auto updated = say(&StrategyRemovals::updated); updated && isUpdate(op->getOperand(0).getDefiningOp()))
      return *updated;
    if (auto all = dyn_cast<AllGatherOp>(op)) {
      Operation *needy = findNeedy(op, all.getDim());
      if (auto told = say(&StrategyRemovals::gather, !needy || isa<CollectiveOpInterface>(needy)))
        return *told;
    }
    if (auto scatter = say(&StrategyRemovals::scatter); scatter && isa<ReduceScatterOp>(op))
      return *scatter;
    StringRef role = findReturnedRole(op);
    if (isReduction && !role.empty())
      return avoid() + ": " + role.str() + " is combined over the ranks of " + names;
    if (isReduction)
      return avoid() + ": what " + producer() + " combines lies on all ranks of " + names;
    for (Operation *user : op->getUsers())
      if (isa<nn::ReshapeOp>(user) && llvm::any_of(user->getUsers(), llvm::IsaPred<AccumulateOp>))
        return "one micro-batch: of several each rank computes a part, and has whole ones";
    int64_t dim = -1;
    if (auto gather = dyn_cast<AllGatherOp>(op))
      dim = gather.getDim();
    else if (auto exchange = dyn_cast<AllToAllOp>(op))
      dim = exchange.getConcat();
    if (Operation *needy = dim < 0 ? nullptr : findNeedy(op, dim))
      return avoid() + ": " + (isa<PackOp, UnpackOp>(needy) ? reader() : nameOp(needy)) + " needs dimension " +
             std::to_string(dim) + " whole";
    if (!role.empty())
      return "the result annotated as it lies, or " + avoid();
    return avoid() + ": " + reader() + " computes in another layout";
  }

private:
  /// What a strategy behind the collective says of it; none when no strategy knows.
  std::optional<std::string> say(StringLiteral StrategyRemovals::*kind, bool isOfStrategy = true) const {
    for (const StrategyRemovals &removals : getStrategyRemovals())
      if (!(removals.*kind).empty() && (isOfStrategy || !removals.ownGathers) &&
          llvm::any_of(reason.getCauses(), [&](CauseAttr cause) {
            return cause.getStrategy() && cause.getStrategy().getValue() == removals.strategy;
          }))
        return llvm::formatv((removals.*kind).data(), names, removals.strategy).str();
    return std::nullopt;
  }

  /// What a user does to be rid of the axes' causes: of all whose partial values are added, else of the first.
  std::string avoid() const {
    llvm::SetVector<StringAttr> flags;
    std::string hands;
    bool addsAll = isa<AllReduceOp>(op);
    for (CauseAttr cause : reason.getCauses())
      if (cause.getStrategy() && cause.getStrategy().getValue().starts_with("--"))
        flags.insert(cause.getStrategy());
      else if (!cause.getStrategy() && (hands.empty() || addsAll))
        hands += (hands.empty() ? "change " : " and ") + cause.getText(known);
    if (flags.empty())
      return hands.empty() ? "a mesh without " + names : hands;
    std::string text;
    for (StringAttr flag : flags.getArrayRef().take_front(addsAll ? flags.size() : 1))
      text += (text.empty() ? "leave out " : " and ") + flag.str();
    return text + (addsAll && !hands.empty() ? " and " + hands : "");
  }

  /// What made the value that is sent, in the words of a program.
  std::string producer() const {
    Value value = op->getOperand(0);
    while (Operation *def = value.getDefiningOp()) {
      if (isa<AccumulateOp>(def))
        return "the sum over micro-batches";
      if (!passesOn(def) || !def->getNumOperands())
        return nameOp(def);
      value = def->getOperand(0);
    }
    auto argument = cast<BlockArgument>(value);
    auto func = dyn_cast_or_null<FunctionOpInterface>(argument.getOwner()->getParentOp());
    StringRef name = func ? nn::getArgName(func, argument.getArgNumber()) : StringRef();
    return name.empty() ? "an argument" : "argument \"" + name.str() + "\"";
  }
  /// What reads it, of several the last.
  std::string reader() const {
    Operation *user = op;
    while (!user->use_empty() && (user == op || passesOn(user)))
      user = *user->user_begin();
    return user == op ? "no op" : nameOp(user);
  }

  Operation *op;
  ReasonAttr reason;
  StringAttr known;
  std::string names;
};

/// Whether what a collective brings along is computed again for the backward pass.
bool isRepeated(Operation *op) {
  Operation *def = op->getOperand(0).getDefiningOp();
  while (def && isFree(def) && !def->hasAttr(nn::NNDialect::kRecomputeAttr))
    def = def->getOperand(0).getDefiningOp();
  return def && def->hasAttr(nn::NNDialect::kRecomputeAttr);
}

const char *tellPart(const StepParts &parts, Operation *op) {
  if (!parts.hasGradients())
    return "";
  return isRepeated(op) ? "the forward pass computed again (--recompute)" : StepParts::kNames[parts.get(op)];
}

} // namespace

std::vector<Explanation> explain(func::FuncOp local, bool overlap, bool namesLayers) {
  std::vector<Explanation> explanations;
  MeshOp mesh = lookupMesh(local);
  if (!mesh)
    return explanations;
  StepParts parts(local);
  Overlaps overlaps(local, mesh.getMesh());
  // Copies of a ring for each micro-batch have its number, too.
  std::map<std::tuple<int64_t, Block *, const void *>, int64_t> rings; // asked, never walked
  local.walk<WalkOrder::PreOrder>([&](CollectiveOpInterface collective) {
    Operation *op = collective;
    AxesAttr axes = collective.getAxesAttr();
    int64_t ranks = mesh.getMesh().getSize(axes.getAxes());
    Traffic traffic = trafficOf(op, ranks);
    if (!collective.communicates() || traffic.opcode == rt::Opcode::Barrier ||
        (ranks == 1 && collective.isIdentityAlone()))
      return;
    Explanation &it = explanations.emplace_back();
    it.op = op;
    it.kind = rt::collectiveKind(traffic.opcode);
    it.axes = axes;
    it.ranks = ranks;
    it.type = getTensorType(op->getOperand(0));
    it.count = countRuns(op);
    it.part = tellPart(parts, op);
    it.sentBytes = it.count * sentBytes(traffic, ranks, elementBytes(it.type.getElementType()));
    auto reason = dyn_cast_or_null<ReasonAttr>(collective.getReasonAttr());
    if (auto ring = op->getAttrOfType<IntegerAttr>(DistDialect::kRingAttr); ring && reason)
      it.ring = rings.try_emplace({ring.getInt(), op->getBlock(), op->getAttr(origin::kScope).getAsOpaquePointer()},
                                  rings.size())
                    .first->second;
    StringAttr layer = findLayer(reason), known = namesLayers ? StringAttr() : layer;
    if (reason) {
      it.layer = layer ? layer.str() : "";
      Operation *made = op->getOperand(0).getDefiningOp();
      bool isUpdated = isUpdate(made);
      it.isBucket = !isOfPipeline(reason) && (isUpdated || isa_and_nonnull<PackOp>(made));
      // Buckets are alike as layers are.
      it.asker = namesLayers || !it.isBucket ? reason.getAskerText(namesLayers)
                 : isUpdated                 ? "a bucket of new parameters"
                                             : "a bucket of gradients";
      it.change = reason.getChange() ? reason.getChange().str() : "";
    } else if (StringAttr words = getReasonText(collective.getReasonAttr())) {
      it.asker = words.str();
    }
    bool ofPipeline = isOfPipeline(reason), returnsNothing = op->getNumResults() == 0;
    if (returnsNothing && !ofPipeline) {
      it.overlap = "nothing: a send ends when it is received";
    } else if (!overlap) {
      it.overlap = kNoOverlap;
    } else if (returnsNothing) {
      it.overlap = "what the schedule has both ranks do in the meantime";
    } else {
      it.overlap = overlaps.describe(op, namesLayers);
    }
    if (ofPipeline) {
      tellPipeline(it, parts);
      return;
    }
    if (reason)
      it.cause = reason.getCauseText(known);
    it.removal = Removal(op, axes, reason, known).describe();
  });
  return explanations;
}

} // namespace shoal::dist
