// Chains around optimizer updates, and which of them are alike; see Bundles.h.
#include "Bundles.h"

#include "shoal/Dialect/Dist/Transforms/SumTerms.h"

#include "Causes.h"
#include "JointReductions.h"
#include "ParameterReads.h"

#include "shoal/Dialect/NN/IR/Updates.h"
#include "shoal/Interfaces/Origin.h"

#include <map>

using namespace mlir;

namespace shoal::dist {

ArrayRef<StringAttr> UpdateChain::getFlatAxes() const {
  if (flatGradient)
    return flatGradient.getAxes();
  if (flatParam)
    return flatParam.getAxes();
  for (FlatAttr state : flatStates)
    if (state)
      return state.getAxes();
  return {};
}

/// Where a value of the step is ready: the op of the function's block, and the one inside of its micro-batches; null
/// where they only hand it on.
static std::pair<Operation *, Operation *> findMaker(Value value) {
  Operation *op = value.getDefiningOp();
  if (auto accumulate = dyn_cast_or_null<AccumulateOp>(op)) {
    Block &body = accumulate.getBody().front();
    Operation *inner = body.getTerminator()->getOperand(cast<OpResult>(value).getResultNumber()).getDefiningOp();
    return {op, inner && inner->getBlock() == &body ? inner : nullptr};
  }
  return {op, nullptr};
}

bool isReadyBefore(const UpdateChain &a, const UpdateChain &b) {
  auto [outer, inner] = findMaker(a.gradient);
  auto [otherOuter, otherInner] = findMaker(b.gradient);
  if (outer != otherOuter)
    return outer->isBeforeInBlock(otherOuter);
  if (inner != otherInner)
    return !inner || (otherInner && inner->isBeforeInBlock(otherInner));
  return a.param.getArgNumber() < b.param.getArgNumber();
}

Value findTotal(Value summand) {
  while (summand.hasOneUse() && isa<nn::AddOp>(*summand.getUsers().begin()))
    summand = summand.getUsers().begin()->getResult(0);
  return summand;
}

namespace {

bool isScalar(Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  return type && type.getRank() == 0;
}

/// The operand to every element of which an op does what scalars say, leaving 0 as it is: zeros behind the last tensor of
/// a bucket stay zeros. Null when the op is none.
Value findStepInput(Operation *op) {
  Value input;
  if (isa_and_nonnull<nn::NegOp, nn::CastOp>(op))
    input = op->getOperand(0);
  else if (isa_and_nonnull<nn::MulOp, nn::DivOp>(op) && isScalar(op->getOperand(1)))
    input = op->getOperand(0);
  else if (isa_and_nonnull<nn::MulOp>(op) && isScalar(op->getOperand(0)))
    input = op->getOperand(1);
  auto shape = [](Value value) { return cast<RankedTensorType>(value.getType()).getShape(); };
  return input && shape(input) == shape(op->getResult(0)) ? input : Value();
}

class ChainFinder {
public:
  ChainFinder(func::FuncOp func, MeshAttr mesh, ArrayRef<StringAttr> axes, const StepParts &parts)
      : func(func), mesh(mesh), axes(axes), parts(parts), updated(nn::updatedArguments(func)) {
    for (unsigned i = 0; i < func.getNumResults(); ++i)
      if (auto name = func.getResultAttrOfType<StringAttr>(i, nn::NNDialect::kGradAttr))
        gradients[name] = i;
  }

  /// Whether something of the update is to lie in a bucket; `reason` says why it cannot, if so.
  bool find(nn::OptimizerUpdateOpInterface update, UpdateChain &chain, std::string &reason);

private:
  bool collectFlat(UpdateChain &chain, std::string &reason);
  std::string followGradient(UpdateChain &chain);
  void followSquares(UpdateChain &chain);
  bool followSquares(UpdateChain &chain, Operation *first);
  void readUses(UpdateChain &chain);
  /// Whether a result of the update replaces the argument, and is nothing else.
  bool replaces(Value result, BlockArgument argument) const {
    return result.hasOneUse() && isa<func::ReturnOp>(*result.user_begin()) &&
           updated[result.use_begin()->getOperandNumber()] == argument.getArgNumber();
  }

  func::FuncOp func;
  MeshAttr mesh;
  ArrayRef<StringAttr> axes;
  const StepParts &parts;
  SmallVector<std::optional<unsigned>> updated; // by result the argument that it replaces
  DenseMap<StringAttr, unsigned> gradients;
};

bool ChainFinder::collectFlat(UpdateChain &chain, std::string &reason) {
  auto flatOf = [&](BlockArgument argument) {
    return func.getArgAttrOfType<FlatAttr>(argument.getArgNumber(), DistDialect::kFlatAttr);
  };
  chain.flatParam = flatOf(chain.param);
  SmallVector<FlatAttr> all{chain.flatParam};
  for (BlockArgument state : chain.states)
    all.push_back(chain.flatStates.emplace_back(flatOf(state)));
  if (auto result = gradients.find(StringAttr::get(func->getContext(), chain.name)); result != gradients.end())
    all.push_back(chain.flatGradient = func.getResultAttrOfType<FlatAttr>(result->second, DistDialect::kFlatAttr));
  // Of axes of another run the next one takes care.
  if (llvm::none_of(all, [&](FlatAttr flat) { return isFlatOver(flat, mesh, axes); }))
    return false;
  ArrayRef<StringAttr> flat = chain.getFlatAxes();
  if (llvm::any_of(all, [&](FlatAttr other) { return other && other.getAxes() != flat; }))
    reason = "its parts lie flat over different axes";
  return true;
}

std::string ChainFinder::followGradient(UpdateChain &chain) {
  auto result = gradients.find(StringAttr::get(func->getContext(), chain.name));
  Value wanted = result == gradients.end() ? Value()
                                           : func.getBody().front().getTerminator()->getOperand(result->second);
  Value value = chain.update.getGrad();
  while (value != wanted) {
    Value input = value.hasOneUse() ? findStepInput(value.getDefiningOp()) : Value();
    if (!input)
      break;
    chain.steps.push_back(value.getDefiningOp());
    value = input;
  }
  if (wanted && value != wanted)
    return "its update reads something else than the gradient times scalars";
  std::reverse(chain.steps.begin(), chain.steps.end());
  chain.gradient = value;
  if (wanted)
    chain.gradientAttrs = func.getResultAttrDict(result->second);
  ShardingAttr sharding = getSharding(value);
  if (!value.getDefiningOp() || !sharding)
    return "its gradient is no value of the step";
  if (llvm::any_of(sharding.getDims(), [](DimShardingAttr dim) { return !dim.getAxes().empty(); }))
    return "its gradient is sharded by dimension";
  if (!sharding.getUnreducedAxes().empty() && sharding.getUnreducedKind() != ReduceKindAttrEnum::sum)
    return "its gradient is no sum";
  return "";
}

/// From `op`, which reads the gradient, to a scalar that others are added to. Nothing on the way is read otherwise.
bool ChainFinder::followSquares(UpdateChain &chain, Operation *op) {
  SmallVector<Operation *> way;
  SmallVector<nn::MaskOp> masks;
  bool isSquared = false, isSummed = isScalar(chain.gradient);
  Value value = chain.gradient;
  while (!(isSquared && isSummed && isa<nn::AddOp, nn::SqrtOp>(op))) {
    auto mul = dyn_cast<nn::MulOp>(op);
    auto mask = dyn_cast<nn::MaskOp>(op);
    auto reduce = dyn_cast<nn::ReduceOp>(op);
    if (mul && !isSquared && mul.getLhs() == value && mul.getRhs() == value)
      isSquared = true;
    else if (mask && isSquared && !isSummed && mask.getFill().isZero() && mask.getInput() == value)
      masks.push_back(mask);
    else if (reduce && isSquared && !isSummed && reduce.getKind() == nn::Reduce::sum && !reduce.getKeepDims() &&
             int64_t(reduce.getDims().size()) == cast<RankedTensorType>(value.getType()).getRank())
      isSummed = true;
    else if (!isa<nn::CastOp>(op) && !(isSummed && isa<AllReduceOp>(op)))
      return false;
    if (!mask && !reduce)
      way.push_back(op);
    if (reduce || (mul && isSummed && isScalar(chain.gradient)))
      way.push_back(nullptr);
    value = op->getResult(0);
    // A square is one reader, though by two operands.
    op = value.use_empty() ? nullptr : *value.getUsers().begin();
    if (!op || op->getBlock() != way.front()->getBlock() ||
        llvm::any_of(value.getUsers(), [&](Operation *user) { return user != op; }))
      return false;
  }
  chain.squares = std::move(way);
  chain.masks = std::move(masks);
  chain.sumOfSquares = value;
  return true;
}

void ChainFinder::followSquares(UpdateChain &chain) {
  for (Operation *user : chain.gradient.getUsers())
    if (!llvm::is_contained(chain.steps, user) && isa<nn::MulOp, nn::CastOp>(user) &&
        user->getBlock() == &func.getBody().front() && followSquares(chain, user))
      return;
}

void ChainFinder::readUses(UpdateChain &chain) {
  chain.casts = findCasts(chain.param, chain.update);
  SmallVector<Operation *> readers;
  for (Operation *cast : chain.casts)
    llvm::append_range(readers, cast->getUsers());
  if (chain.casts.empty())
    llvm::append_range(readers, chain.param.getUsers());
  bool hasLayer = true;
  for (Operation *reader : readers) {
    StepParts::Part part = parts.get(reader);
    chain.isReadBackward |= part == StepParts::Backward;
    if (part != StepParts::Forward)
      continue;
    auto layer = reader->getAttrOfType<StringAttr>(nn::NNDialect::kLayerAttr);
    hasLayer &= layer && (!chain.layer || chain.layer == layer);
    chain.layer = layer;
  }
  if (!hasLayer)
    chain.layer = {};
}

bool ChainFinder::find(nn::OptimizerUpdateOpInterface update, UpdateChain &chain, std::string &reason) {
  chain.update = update;
  auto param = dyn_cast<BlockArgument>(update.getParam());
  if (!param || param.getOwner() != &func.getBody().front() ||
      nn::getArgRole(func, param.getArgNumber()) != nn::ArgRole::Param)
    return false;
  chain.param = param;
  chain.name = nn::getArgName(func, param.getArgNumber());
  chain.handCause = getHandCause(param);
  bool replacesAll = replaces(update->getResult(0), param);
  for (auto [i, value] : llvm::enumerate(update.getStates())) {
    auto state = dyn_cast<BlockArgument>(value);
    replacesAll &= state && state.hasOneUse() && nn::getArgRole(func, state.getArgNumber()) == nn::ArgRole::State &&
                   replaces(update->getResult(i + 1), state);
    if (state && state.getOwner() == param.getOwner())
      chain.states.push_back(state);
  }
  if (!collectFlat(chain, reason))
    return false;
  if (chain.size() == 0)
    reason = "it has no elements";
  if (reason.empty() && !replacesAll)
    reason = "its update is more than the new value of the parameter and its state";
  if (reason.empty())
    reason = followGradient(chain);
  if (!reason.empty())
    return true;
  followSquares(chain);
  readUses(chain);
  return true;
}

/// What chains have in common that are done alike, as a sequence of unique pointers and numbers.
class Key {
public:
  Key(func::FuncOp func, MeshAttr mesh, ArrayRef<StringAttr> joint, const UpdateChain &chain) {
    add(chain.flatParam);
    add(chain.flatGradient);
    add(chain.gradientAttrs ? &kEnd : nullptr);
    for (int64_t stage : findStages(chain.gradient))
      add(IntegerAttr::get(IntegerType::get(func.getContext(), 64), stage));
    add(&kEnd);
    add(chain.gradient.getType(), true);
    add(chain.casts.empty() ? Type() : chain.casts.front()->getResult(0).getType(), true);
    ShardingAttr sharding = getSharding(chain.gradient);
    for (StringAttr axis : sharding.getUnreducedAxes())
      if (mesh.getAxisSize(axis) > 1)
        add(axis);
    AllReduceOp reduction = findJointReduction(chain.gradient, joint);
    add(reduction ? reduction.getAxesAttr() : AxesAttr());
    add(chain.gradient.getDefiningOp<AccumulateOp>().getOperation());
    addArgument(func, chain.param);
    for (auto [state, flat] : llvm::zip_equal(chain.states, chain.flatStates)) {
      addArgument(func, state);
      add(flat);
    }
    if (chain.flatParam && chain.flatParam.getPerUse()) {
      // A parameter without a layer is a unit of its own.
      chain.layer ? add(chain.layer) : add(chain.param.getAsOpaquePointer());
      add(chain.isReadBackward ? &kEnd : nullptr);
      // What another axis has reduced comes in that one's buckets, behind the backward pass: no other gradient of its
      // layer is to wait for it.
      add(chain.gradient.getDefiningOp<UnpackOp>() ? &kEnd : nullptr);
    }
    Value value = chain.gradient;
    for (Operation *op : chain.steps)
      value = addOp(op, value);
    add(&kEnd);
    for (Operation *op : chain.squares)
      op ? (void)addOp(op, op->getOperand(0)) : add(&kEnd);
    if (chain.sumOfSquares)
      add(findTotal(chain.sumOfSquares).getAsOpaquePointer());
    nn::OptimizerUpdateOpInterface update = chain.update;
    SmallVector<Value> own{update.getParam(), update.getGrad()};
    llvm::append_range(own, update.getStates());
    addOp(update, own);
  }
  bool operator<(const Key &other) const { return parts < other.parts; }

private:
  static constexpr char kEnd = 0;

  void add(const void *part) { parts.push_back(part); }
  void add(Attribute attr) { add(attr.getAsOpaquePointer()); }
  void add(Type type, bool elementOnly = false) {
    add((elementOnly && type ? getElementTypeOrSelf(type) : type).getAsOpaquePointer());
  }

  /// What an argument is beside its name and how it lies.
  void addArgument(func::FuncOp func, BlockArgument argument) {
    add(argument.getType(), true);
    for (NamedAttribute attr : FunctionOpInterface(func).getArgAttrs(argument.getArgNumber())) {
      StringRef name = attr.getName();
      if (isa_and_nonnull<DistDialect>(attr.getNameDialect()) || name == nn::NNDialect::kParamAttr ||
          name == nn::NNDialect::kStateAttr)
        continue;
      add(attr.getName());
      add(attr.getValue());
    }
    add(&kEnd);
  }

  Value addOp(Operation *op, ArrayRef<Value> own) {
    add(op->getName().getAsOpaquePointer());
    NamedAttrList attrs(op->getAttrDictionary());
    for (NamedAttribute attr : op->getDiscardableAttrs())
      attrs.erase(attr.getName());
    attrs.erase("reason");
    add(Attribute(attrs.getDictionary(op->getContext())));
    for (Value operand : op->getOperands())
      add(llvm::is_contained(own, operand) ? &kEnd : operand.getAsOpaquePointer());
    for (Type type : op->getResultTypes())
      add(type, true);
    return op->getResult(0);
  }

  std::vector<const void *> parts;
};

} // namespace

bool isFlatOver(FlatAttr flat, MeshAttr mesh, ArrayRef<StringAttr> axes) {
  return flat && llvm::all_of(flat.getAxes(), [&](StringAttr axis) { return llvm::is_contained(axes, axis); }) &&
         mesh.getSize(flat.getAxes()) > 1;
}

/// A cast of a gradient that its update and its norm share, as CSE leaves it, is one of each: on the way of either nobody
/// else reads what is on it.
static void separateCasts(func::FuncOp func) {
  for (unsigned i = 0; i < func.getNumResults(); ++i) {
    if (!func.getResultAttr(i, nn::NNDialect::kGradAttr))
      continue;
    for (Operation *user : llvm::to_vector(func.getBody().front().getTerminator()->getOperand(i).getUsers())) {
      if (!isa<nn::CastOp>(user))
        continue;
      llvm::SetVector<Operation *> readers(user->user_begin(), user->user_end());
      OpBuilder b(user);
      b.setInsertionPointAfter(user);
      for (Operation *reader : llvm::drop_begin(readers.getArrayRef(), readers.empty() ? 0 : 1))
        reader->replaceUsesOfWith(user->getResult(0), b.clone(*user)->getResult(0));
    }
  }
}

std::vector<Bundle> findBundles(func::FuncOp func, MeshAttr mesh, ArrayRef<StringAttr> axes,
                                ArrayRef<StringAttr> joint, const StepParts &parts,
                                DenseSet<StringRef> &whole) {
  separateCasts(func);
  ChainFinder finder(func, mesh, axes, parts);
  std::vector<UpdateChain> chains;
  for (Operation &op : func.getBody().front()) {
    auto update = dyn_cast<nn::OptimizerUpdateOpInterface>(op);
    if (!update)
      continue;
    UpdateChain chain;
    std::string reason;
    if (!finder.find(update, chain, reason))
      continue;
    if (reason.empty()) {
      chains.push_back(std::move(chain));
      continue;
    }
    whole.insert(chain.name);
    emitRemark(op.getLoc(), "\"") << chain.name << "\" stays whole and in no bucket: " << reason;
  }
  llvm::sort(chains, isReadyBefore);
  // A summand that stands for several tensors is no bundle's alone.
  DenseMap<Value, unsigned> summands;
  for (const UpdateChain &chain : chains)
    ++summands[chain.sumOfSquares];
  for (UpdateChain &chain : chains)
    if (chain.sumOfSquares && summands[chain.sumOfSquares] > 1) {
      chain.sumOfSquares = {};
      chain.squares.clear();
      chain.masks.clear();
    }
  std::vector<Bundle> bundles;
  std::map<Key, size_t> known; // never iterated
  for (UpdateChain &chain : chains) {
    auto [at, isNew] = known.try_emplace(Key(func, mesh, joint, chain), bundles.size());
    if (isNew)
      bundles.emplace_back();
    bundles[at->second].push_back(std::move(chain));
  }
  return bundles;
}

} // namespace shoal::dist
