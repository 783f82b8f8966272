// Bundles of updates as updates of buckets; see FlatBuckets.h.
#include "FlatBuckets.h"

#include "Bundles.h"
#include "Causes.h"
#include "ForeignAttrs.h"
#include "ParameterReads.h"
#include "Signature.h"

#include "shoal/Support/DeadOps.h"
#include "shoal/Support/Elements.h"
#include "shoal/Support/SignatureEdit.h"

#include "mlir/Analysis/TopologicalSortUtils.h"

using namespace mlir;

namespace shoal::dist {
namespace {

/// A part of a bundle.
struct Bucket {
  MutableArrayRef<UpdateChain> chains;
  std::string name;
  int64_t size = 0; // with padding
  Value gradient;   // reduced, a shard

  const UpdateChain &front() const { return chains.front(); }
  SmallVector<StringRef> names() const {
    return llvm::map_to_vector(chains, [](const UpdateChain &chain) { return chain.name; });
  }
};

class FlatPacker {
public:
  FlatPacker(func::FuncOp func, const BucketOptions &options)
      : func(func), options(options), mesh(options.mesh), parts(func),
        symbol(FlatSymbolRefAttr::get(mesh.getSymNameAttr())) {}

  void run();

private:
  void cut(std::vector<Bundle> &bundles);
  Value reduce(const Bucket &bucket, OpBuilder &b, ArrayRef<Value> gradients);
  void reduceInside();
  void maskGradient(UpdateChain &chain, Value &gradient, OpBuilder &b);
  Value addSquares(const Bucket &bucket, OpBuilder &b);
  void sumSquares(const Bucket &bucket);
  bool leavePartial(Value sum);
  Value keepPadding(const Bucket &bucket, Value updated, OpBuilder &b);
  void update(Bucket &bucket, Signature &signature);
  BlockArgument addArgument(const Bucket &bucket, Signature &signature, ArrayRef<BlockArgument> members, FlatAttr flat,
                            NamedAttribute role);
  Operation *buildOn(OpBuilder &b, Operation *op, ArrayRef<Value> own, ArrayRef<Value> values, const Bucket &bucket,
                     ShardingAttr sharding);
  DictionaryAttr findWhy(const Bucket &bucket, FlatAttr flat, DictionaryAttr attrs) const;

  RankedTensorType typeOf(const Bucket &bucket, Type like) const {
    return RankedTensorType::get({bucket.size}, getElementTypeOrSelf(like));
  }
  /// Whole, or over flat axes; partial over others.
  ShardingAttr lies(FlatAttr flat, int64_t rank = 1) const;
  ShardingAttr shard(const Bucket &bucket) const {
    return lies(FlatAttr::get(func->getContext(), bucket.front().getFlatAxes(), false));
  }

  func::FuncOp func;
  const BucketOptions &options;
  MeshOp mesh;
  StepParts parts;
  FlatSymbolRefAttr symbol;
  SmallVector<Bucket> buckets;
  int64_t nextGroup = 0;
  SmallVector<Value> sums;           // of the squares of each bucket
  DenseMap<Value, bool> partialSums; // of those and of what they are added to: whether they are partial over flat axes
  SmallVector<BucketRead> reads;
  DictionaryAttr gradientWhy; // of the bucket at hand
};

ShardingAttr FlatPacker::lies(FlatAttr flat, int64_t rank) const {
  auto whole = ShardingAttr::getReplicated(symbol, rank);
  if (!flat)
    return whole;
  return whole.withDims(DimShardingAttr::get(func->getContext(), flat.getAxes(), /*isClosed=*/true, /*priority=*/0));
}

// Which tensors lie together.

void FlatPacker::cut(std::vector<Bundle> &bundles) {
  auto isTaken = [&](StringRef name) {
    return llvm::any_of(llvm::seq(func.getNumArguments()), [&](unsigned i) {
      StringRef other = nn::getArgName(func, i);
      return other.consume_front(name) && (other.empty() || other.front() == '.');
    });
  };
  SmallVector<MutableArrayRef<UpdateChain>> slices;
  for (Bundle &bundle : bundles) {
    size_t first = 0;
    int64_t bytes = 0;
    for (auto [i, chain] : llvm::enumerate(bundle)) {
      int64_t more = chain.size() * elementBytes(getElementTypeOrSelf(chain.param.getType()));
      if (bytes > 0 && more > options.bytes - bytes) {
        slices.push_back(MutableArrayRef(bundle).slice(first, i - first));
        first = i;
        bytes = 0;
      }
      bytes += more;
    }
    slices.push_back(MutableArrayRef(bundle).drop_front(first));
  }
  // What is whole first is reduced and updated first.
  llvm::sort(slices, [](auto a, auto b) { return isReadyBefore(a.back(), b.back()); });
  int64_t number = 0;
  for (MutableArrayRef<UpdateChain> chains : slices) {
    Bucket &bucket = buckets.emplace_back();
    bucket.chains = chains;
    do
      bucket.name = "bucket." + std::to_string(number++);
    while (isTaken(bucket.name));
    for (const UpdateChain &chain : chains)
      bucket.size += chain.size();
    int64_t devices = mesh.getMesh().getSize(bucket.front().getFlatAxes());
    bucket.size = shardSize(bucket.size, devices) * devices;
  }
}

// Gradients.

/// What a device has of the padding of a dimension counts in no sum of squares: it becomes 0 here.
void FlatPacker::maskGradient(UpdateChain &chain, Value &gradient, OpBuilder &b) {
  for (nn::MaskOp mask : chain.masks) {
    auto masked = b.create<nn::MaskOp>(mask.getLoc(), gradient.getType(), gradient, mask.getLimit(), mask.getOffset(),
                                       mask.getDimAttr(), mask.getFillAttr());
    setSharding(masked, getSharding(chain.gradient));
    gradient = masked;
  }
}

/// The gradients one after another, and the shard of their sum.
Value FlatPacker::reduce(const Bucket &bucket, OpBuilder &b, ArrayRef<Value> gradients) {
  MLIRContext *context = func.getContext();
  SmallVector<Value> inputs(gradients);
  SmallVector<int64_t> begins, ends;
  int64_t total = 0;
  for (Value gradient : inputs) {
    begins.push_back(0);
    ends.push_back(cast<RankedTensorType>(gradient.getType()).getNumElements());
    total += ends.back();
  }
  RankedTensorType type = typeOf(bucket, gradients.front().getType());
  Location loc = inputs.back().getLoc();
  ArrayRef<StringAttr> unreduced = getSharding(bucket.front().gradient).getUnreducedAxes();
  auto partialOver = [&](ShardingAttr sharding, ArrayRef<StringAttr> axes) {
    return sharding.withUnreduced(ReduceKindAttrEnum::sum, axes);
  };
  if (total < bucket.size) {
    auto zeros = type.clone(ArrayRef(bucket.size - total));
    Value padding = b.create<nn::ConstantOp>(loc, zeros, 0.0);
    setSharding(padding, lies({}));
    inputs.push_back(padding);
    begins.push_back(0);
    ends.push_back(bucket.size - total);
  }
  auto packed = b.create<PackOp>(loc, type, inputs, begins, ends, nextGroup++, /*at=*/0);
  setSharding(packed, partialOver(lies({}), unreduced));
  // Of the two that one is the gradient which is kept over micro-batches.
  FlatAttr flat = bucket.front().flatGradient;
  bool keepsShards = flat && flat.getPerUse();
  setClass(packed, keepsShards ? exec::StorageClass::workspace : exec::StorageClass::grad);
  SmallVector<StringAttr> rest, names;
  for (StringAttr axis : unreduced)
    if (!llvm::is_contained(options.axes, axis))
      rest.push_back(axis);
  for (StringRef name : bucket.names())
    names.push_back(StringAttr::get(context, name));
  std::string reason = (names.size() == 1 ? "gradient of " : "gradients of ") + listNames(names);
  ShardingAttr scattered = partialOver(shard(bucket), rest);
  auto reduced = b.create<ReshardOp>(loc, packed, scattered, b.getStringAttr(reason));
  setSharding(reduced, scattered);
  setClass(reduced, keepsShards ? exec::StorageClass::grad : exec::StorageClass::workspace);
  reduced->setAttr(DistDialect::kWhyAttr, gradientWhy);
  return reduced;
}

/// Appends a result, which has the layout of what the body yields.
static AccumulateOp addYield(AccumulateOp op, Value yielded) {
  Operation *yield = op.getBody().front().getTerminator();
  SmallVector<Value> values(yield->getOperands());
  values.push_back(yielded);
  yield->setOperands(values);
  SmallVector<Type> types(op->getResultTypes());
  types.push_back(yielded.getType());
  OpBuilder b(op);
  OperationState state(op.getLoc(), op->getName(), op->getOperands(), types, op->getAttrs());
  state.propertiesAttr = op->getPropertiesAsAttribute();
  state.addRegion()->takeBody(op.getBody());
  auto made = cast<AccumulateOp>(b.create(state));
  // Numbers and tags are those of all results.
  made->removeAttr(DistDialect::kIdAttr);
  made->removeAttr(DistDialect::kGlobalsAttr);
  if (auto shardings = op->getAttrOfType<ArrayAttr>(DistDialect::kShardingsAttr)) {
    SmallVector<Attribute> all(shardings.begin(), shardings.end());
    all.push_back(getSharding(yielded));
    made->setAttr(DistDialect::kShardingsAttr, b.getArrayAttr(all));
  }
  op->replaceAllUsesWith(made->getResults().drop_back());
  op->erase();
  return made;
}

/// Takes away the results that nothing reads.
static void dropUnread(AccumulateOp op) {
  llvm::BitVector unread(op->getNumResults());
  for (OpResult result : op->getResults())
    unread[result.getResultNumber()] = result.use_empty();
  if (unread.none())
    return;
  Operation *yield = op.getBody().front().getTerminator();
  yield->eraseOperands(unread);
  SmallVector<Value> kept;
  SmallVector<Attribute> shardings;
  auto old = op->getAttrOfType<ArrayAttr>(DistDialect::kShardingsAttr);
  for (OpResult result : op->getResults())
    if (!unread[result.getResultNumber()]) {
      kept.push_back(result);
      shardings.push_back(old ? old[result.getResultNumber()] : Attribute());
    }
  OpBuilder b(op);
  OperationState state(op.getLoc(), op->getName(), op->getOperands(), TypeRange(ValueRange(kept)), op->getAttrs());
  state.propertiesAttr = op->getPropertiesAsAttribute();
  state.addRegion()->takeBody(op.getBody());
  Operation *made = b.create(state);
  made->removeAttr(DistDialect::kIdAttr);
  made->removeAttr(DistDialect::kGlobalsAttr);
  if (old)
    made->setAttr(DistDialect::kShardingsAttr, b.getArrayAttr(shardings));
  for (auto [value, result] : llvm::zip_equal(kept, made->getResults()))
    value.replaceAllUsesWith(result);
  op->erase();
  eraseDeadOps(cast<AccumulateOp>(made).getBody().front());
}

/// Gradients that outlive no micro-batch whole are reduced in it, and summed up as shards.
void FlatPacker::reduceInside() {
  for (Bucket &bucket : buckets) {
    auto accumulate = bucket.front().gradient.getDefiningOp<AccumulateOp>();
    if (!accumulate || !bucket.front().flatGradient || !bucket.front().flatGradient.getPerUse())
      continue;
    Operation *yield = accumulate.getBody().front().getTerminator();
    OpBuilder b(yield);
    SmallVector<Value> gradients;
    for (UpdateChain &chain : bucket.chains) {
      Value gradient = yield->getOperand(cast<OpResult>(chain.gradient).getResultNumber());
      maskGradient(chain, gradient, b);
      gradients.push_back(gradient);
    }
    gradientWhy = findWhy(bucket, bucket.front().flatGradient, {});
    Value reduced = reduce(bucket, b, gradients);
    // Results of the new op in the place of the old one's.
    SmallVector<std::pair<UpdateChain *, unsigned>> held;
    for (Bucket &other : buckets)
      for (UpdateChain &chain : other.chains)
        if (chain.gradient.getDefiningOp() == accumulate)
          held.push_back({&chain, cast<OpResult>(chain.gradient).getResultNumber()});
    SmallVector<std::pair<Bucket *, unsigned>> shards;
    for (Bucket &other : buckets)
      if (other.gradient && other.gradient.getDefiningOp() == accumulate)
        shards.push_back({&other, cast<OpResult>(other.gradient).getResultNumber()});
    accumulate = addYield(accumulate, reduced);
    for (auto [chain, index] : held)
      chain->gradient = accumulate->getResult(index);
    for (auto [other, index] : shards)
      other->gradient = accumulate->getResult(index);
    bucket.gradient = accumulate->getResults().back();
  }
}

// Ops on buckets.

/// The op with `values` instead of its `own` tensors, on all elements of the bucket.
Operation *FlatPacker::buildOn(OpBuilder &b, Operation *op, ArrayRef<Value> own, ArrayRef<Value> values,
                               const Bucket &bucket, ShardingAttr sharding) {
  IRMapping mapping;
  for (auto [from, to] : llvm::zip_equal(own, values))
    mapping.map(from, to);
  Operation *made = b.clone(*op, mapping);
  for (NamedAttribute attr : op->getDiscardableAttrs())
    if (attr.getName() == nn::NNDialect::kLayerAttr || isa_and_nonnull<DistDialect>(attr.getNameDialect()))
      made->removeAttr(attr.getName());
  bool isScalar = cast<RankedTensorType>(values.front().getType()).getRank() == 0;
  for (Value result : made->getResults()) {
    if (!isScalar)
      result.setType(typeOf(bucket, result.getType()));
    setSharding(result, sharding);
  }
  return made;
}

/// The sum of squares of a bucket: of all its tensors.
Value FlatPacker::addSquares(const Bucket &bucket, OpBuilder &b) {
  Value value = bucket.gradient;
  for (Operation *op : bucket.front().squares) {
    if (op) {
      value = buildOn(b, op, {op->getOperand(0)}, {value}, bucket, getSharding(value))->getResult(0);
      continue;
    }
    value = b.create<nn::ReduceOp>(value.getLoc(), nn::Reduce::sum, value, ArrayRef<int64_t>{0}, /*keepDims=*/false);
    setSharding(value, ShardingAttr::getReplicated(symbol, 0)
                           .withUnreduced(ReduceKindAttrEnum::sum, bucket.front().getFlatAxes()));
  }
  return value;
}

/// One summand for the bucket in the place of one for each of its tensors.
void FlatPacker::sumSquares(const Bucket &bucket) {
  if (bucket.front().squares.empty())
    return;
  OpBuilder b(bucket.front().update->getContext());
  b.setInsertionPoint(bucket.chains.front().update);
  Value squares = addSquares(bucket, b);
  partialSums[squares] = true;
  sums.push_back(squares);
  for (const UpdateChain &chain : llvm::drop_begin(bucket.chains)) {
    Operation *add = *chain.sumOfSquares.getUsers().begin();
    Value rest = add->getOperand(add->getOperand(0) == chain.sumOfSquares ? 1 : 0);
    add->replaceAllUsesWith(ValueRange(rest));
    add->erase();
  }
  Value first = bucket.front().sumOfSquares;
  first.replaceAllUsesWith(squares);
}

/// A sum of nothing but sums of shards stays a sum of shards, so that all of them are reduced as one.
bool FlatPacker::leavePartial(Value sum) {
  auto [at, isNew] = partialSums.try_emplace(sum, false);
  auto add = sum.getDefiningOp<nn::AddOp>();
  if (!isNew || !add)
    return at->second;
  bool isPartial = leavePartial(add.getLhs());
  isPartial &= leavePartial(add.getRhs());
  if (isPartial) {
    setSharding(sum, getSharding(add.getLhs()));
    // No part of the sum that the number stands for: the summands of other devices are others.
    add->removeAttr(DistDialect::kIdAttr);
    add->removeAttr(DistDialect::kGlobalsAttr);
  }
  return partialSums[sum] = isPartial;
}

// The step.

/// What brought the flat axes to a bucket: recorded beside the annotation, else it is by hand.
DictionaryAttr FlatPacker::findWhy(const Bucket &bucket, FlatAttr flat, DictionaryAttr attrs) const {
  const UpdateChain &chain = bucket.front();
  auto recorded = attrs ? attrs.getAs<DictionaryAttr>(DistDialect::kWhyAttr) : DictionaryAttr();
  DictionaryAttr why;
  for (StringAttr axis : chain.getFlatAxes()) {
    auto cause = dyn_cast_or_null<CauseAttr>(findCauses(recorded, axis));
    if (!cause)
      cause = getHandCause(chain.param);
    if (flat && flat.getPerUse() && chain.layer && chain.flatParam == flat)
      cause = CauseAttr::get(func->getContext(), cause.getWhat(), chain.layer, cause.getStrategy());
    why = addCause(why, axis, cause);
  }
  return why;
}

BlockArgument FlatPacker::addArgument(const Bucket &bucket, Signature &signature, ArrayRef<BlockArgument> members,
                                      FlatAttr flat, NamedAttribute role) {
  MLIRContext *context = func.getContext();
  DictionaryAttr like = signature.getArgAttrs(members.front());
  // What members have in common, but for what each is and how it lies.
  NamedAttrList attrs;
  for (NamedAttribute attr : like)
    if (!isa_and_nonnull<DistDialect>(attr.getNameDialect()) && attr.getName() != role.getName())
      attrs.append(attr);
  SmallVector<MemberAttr> held;
  for (BlockArgument member : members) {
    DictionaryAttr own = signature.getArgAttrs(member);
    auto global = own.getAs<GlobalAttr>(DistDialect::kGlobalAttr);
    held.push_back(MemberAttr::get(context, own.get(role.getName()), cast<RankedTensorType>(member.getType()),
                                   global && !global.getSharding().isReplicated() ? global : GlobalAttr()));
    signature.erase(member);
  }
  attrs.set(role.getName(), role.getValue());
  attrs.set(DistDialect::kBucketAttr, BucketAttr::get(context, held));
  attrs.set(DistDialect::kShardingAttr, lies(flat));
  if (flat) {
    attrs.set(DistDialect::kWhyAttr, findWhy(bucket, flat, like));
    if (bucket.front().flatParam == flat)
      attrs.set(DistDialect::kFlatAttr, flat);
  }
  return signature.insertBefore(members.front(), typeOf(bucket, members.front().getType()),
                                attrs.getDictionary(context));
}

/// Whether an update leaves 0 where parameter, gradient and state are 0. Adam without epsilon divides 0 by 0 there.
static bool keepsZeros(nn::OptimizerUpdateOpInterface update) {
  auto adam = dyn_cast<nn::AdamUpdateOp>(*update);
  return !adam || !adam.getEps().isZero();
}

/// New values whose padding is zeros, whatever the update makes of zeros there.
Value FlatPacker::keepPadding(const Bucket &bucket, Value updated, OpBuilder &b) {
  int64_t elements = 0;
  for (const UpdateChain &chain : bucket.chains)
    elements += chain.size();
  if (elements == bucket.size || keepsZeros(bucket.front().update))
    return updated;
  auto scalar = RankedTensorType::get({}, b.getI64Type());
  auto limit = b.create<nn::ConstantOp>(updated.getLoc(), scalar, DenseIntElementsAttr::get(scalar, elements));
  setSharding(limit, lies({}, 0));
  auto masked = b.create<nn::MaskOp>(updated.getLoc(), updated.getType(), updated, limit, Value(),
                                     b.getI64IntegerAttr(0), b.getF64FloatAttr(0.0));
  setSharding(masked, getSharding(updated));
  return masked;
}

void FlatPacker::update(Bucket &bucket, Signature &signature) {
  MLIRContext *context = func.getContext();
  const UpdateChain &front = bucket.front();
  nn::OptimizerUpdateOpInterface old = front.update;
  // In the order of the buckets.
  OpBuilder b(func.getBody().front().getTerminator());
  auto text = [&](const Twine &words) { return StringAttr::get(context, words); };
  auto resultAttrs = [&](StringRef role, StringRef name, ShardingAttr sharding) {
    NamedAttrList attrs;
    attrs.set(role, text(name));
    attrs.set(DistDialect::kShardingAttr, sharding);
    return attrs;
  };

  // Gradients.
  SmallVector<StringRef> names = bucket.names();
  DictionaryAttr gradAttrs = signature.getResultAttrs(nn::NNDialect::kGradAttr, front.name);
  if (!bucket.gradient) {
    gradientWhy = findWhy(bucket, front.flatGradient, gradAttrs);
    SmallVector<Value> gradients;
    OpBuilder after(context);
    for (UpdateChain &chain : bucket.chains) {
      gradients.push_back(chain.gradient);
      after.setInsertionPointAfter(chain.gradient.getDefiningOp());
      maskGradient(chain, gradients.back(), after);
      after.setInsertionPointAfter(gradients.back().getDefiningOp());
    }
    bucket.gradient = reduce(bucket, after, gradients);
  }
  if (gradAttrs) {
    SmallVector<MemberAttr> members;
    for (const UpdateChain &chain : bucket.chains) {
      auto global = signature.getResultAttrs(nn::NNDialect::kGradAttr, chain.name)
                        .getAs<GlobalAttr>(DistDialect::kGlobalAttr);
      members.push_back(MemberAttr::get(context, text(chain.name), cast<RankedTensorType>(chain.gradient.getType()),
                                        global && !global.getSharding().isReplicated() ? global : GlobalAttr()));
    }
    NamedAttrList attrs = resultAttrs(nn::NNDialect::kGradAttr, bucket.name, shard(bucket));
    attrs.set(DistDialect::kBucketAttr, BucketAttr::get(context, members));
    signature.replaceResults(nn::NNDialect::kGradAttr, names, bucket.gradient, attrs.getDictionary(context));
  }
  sumSquares(bucket);
  Value gradient = bucket.gradient;
  Value own = front.gradient;
  for (Operation *op : front.steps) {
    gradient = buildOn(b, op, {own}, {gradient}, bucket, shard(bucket))->getResult(0);
    own = op->getResult(0);
  }

  // Arguments.
  auto stateName = [&](BlockArgument state) {
    return signature.getArgAttrs(state).getAs<nn::StateAttr>(nn::NNDialect::kStateAttr).getName().getValue();
  };
  SmallVector<BlockArgument> params = llvm::map_to_vector(bucket.chains, [](auto &chain) { return chain.param; });
  auto zero = llvm::APFloat(0.0);
  BlockArgument param = addArgument(
      bucket, signature, params, front.flatParam,
      {text(nn::NNDialect::kParamAttr),
       nn::ParamAttr::get(context, text(bucket.name), nn::Init::zeros, zero, zero, DenseI64ArrayAttr())});
  SmallVector<Value> from{old.getGrad(), front.param}, to{gradient, param};
  SmallVector<std::string> stateNames;
  for (auto [k, state] : llvm::enumerate(front.states)) {
    StringRef name = stateName(state);
    // "w.m" of "w" is "bucket.0.m" of "bucket.0".
    bool isSuffixed = name.consume_front(front.name) && name.starts_with(".");
    stateNames.push_back(bucket.name + (isSuffixed ? name.str() : ".state" + std::to_string(k)));
    SmallVector<BlockArgument> states =
        llvm::map_to_vector(bucket.chains, [k = k](auto &chain) { return chain.states[k]; });
    from.push_back(state);
    to.push_back(addArgument(bucket, signature, states, front.flatStates[k],
                             {text(nn::NNDialect::kStateAttr),
                              nn::StateAttr::get(context, text(stateNames.back()), text(bucket.name), zero)}));
  }

  // The update, on shards; what is to be whole is gathered.
  Operation *made = buildOn(b, old, from, to, bucket, shard(bucket));
  DictionaryAttr why = gradientWhy;
  for (auto [state, flat] : llvm::zip_equal(front.states, front.flatStates))
    if (flat)
      why = findWhy(bucket, flat, signature.getArgAttrs(state));
  made->setAttr(DistDialect::kWhyAttr, why);
  Value updated = keepPadding(bucket, made->getResult(0), b);
  if (!front.flatParam)
    setClass(updated.getDefiningOp(), exec::StorageClass::workspace); // until it is gathered
  SmallVector<StringAttr> listed = llvm::map_to_vector(names, [&](StringRef name) { return text(name); });
  auto replace = [&](Value value, FlatAttr flat, ArrayRef<StringRef> replaced, StringRef name) {
    if (!flat) {
      value = b.create<ReshardOp>(value.getLoc(), value, lies({}), text("new values of " + listNames(listed)));
      setSharding(value, lies({}));
    }
    signature.replaceResults(nn::NNDialect::kUpdatesAttr, replaced, value,
                             resultAttrs(nn::NNDialect::kUpdatesAttr, name, lies(flat)).getDictionary(context));
  };
  replace(updated, front.flatParam, names, bucket.name);
  for (auto [k, flat] : llvm::enumerate(front.flatStates)) {
    SmallVector<StringRef> replaced =
        llvm::map_to_vector(bucket.chains, [&, k = k](UpdateChain &chain) { return stateName(chain.states[k]); });
    replace(made->getResult(k + 1), flat, replaced, stateNames[k]);
  }

  // What the step reads of the parameters, in the type in which it does.
  BucketRead read{param, front.flatParam, {}};
  if (!front.casts.empty())
    read.bucket = castBucket(front.casts.front(), param, lies(front.flatParam));
  int64_t begin = 0;
  for (UpdateChain &chain : bucket.chains) {
    int64_t end = begin + chain.size();
    if (chain.casts.empty())
      read.members.push_back({text(chain.name), chain.param, begin, end});
    for (Operation *cast : chain.casts)
      read.members.push_back({text(chain.name), cast->getResult(0), begin, end});
    begin = end;
  }
  reads.push_back(std::move(read));
  // Until the signature is written results still name the old ones.
  for (UpdateChain &chain : bucket.chains) {
    chain.update->replaceAllUsesWith(made->getResults());
    chain.update->erase();
  }
}

void FlatPacker::run() {
  std::vector<Bundle> bundles = findBundles(func, mesh.getMesh(), options.axes, parts);
  if (bundles.empty())
    return;
  func.walk([&](PackOp op) { nextGroup = std::max<int64_t>(nextGroup, op.getGroup() + 1); });
  cut(bundles);
  {
    Signature signature(func);
    reduceInside();
    for (Bucket &bucket : buckets)
      update(bucket, signature);
    for (Value sum : sums)
      leavePartial(findTotal(sum));
    readFromBuckets(func, options.mesh, reads, parts, options.overlap);
  }
  SmallVector<AccumulateOp> regions;
  func.walk([&](AccumulateOp op) { regions.push_back(op); });
  for (AccumulateOp op : regions)
    dropUnread(op);
  // Updates that stood before the last gradient of a bucket now come after it.
  func.walk([&](Operation *op) {
    for (Region &region : op->getRegions())
      for (Block &block : region)
        sortTopologically(&block);
  });
}

} // namespace

/// What was to lie in a bucket of this run and does not is whole from here on.
static void forgetFlat(func::FuncOp func, ArrayRef<StringAttr> axes) {
  auto isOfRun = [&](Attribute attr) {
    auto flat = dyn_cast_or_null<FlatAttr>(attr);
    return flat && llvm::any_of(flat.getAxes(), [&](StringAttr axis) { return llvm::is_contained(axes, axis); });
  };
  SignatureEdit signature(func);
  for (unsigned i = 0; i < func.getNumArguments(); ++i)
    if (isOfRun(func.getArgAttr(i, DistDialect::kFlatAttr)) && !func.getArgAttr(i, DistDialect::kBucketAttr))
      signature.setArgAttr(i, DistDialect::kFlatAttr, {});
  for (unsigned i = 0; i < func.getNumResults(); ++i)
    if (isOfRun(func.getResultAttr(i, DistDialect::kFlatAttr)))
      for (StringRef name : {DistDialect::kFlatAttr, DistDialect::kWhyAttr})
        signature.setResultAttr(i, name, {});
}

void packFlat(func::FuncOp func, const BucketOptions &options) {
  repeatDerived(func);
  FlatPacker(func, options).run();
  forgetFlat(func, options.axes);
}

LogicalResult packAsTraining(func::FuncOp func, const BucketOptions &options) {
  auto buckets = func->getAttrOfType<ArrayAttr>(DistDialect::kBucketsAttr);
  if (!buckets)
    return success();
  repeatDerived(func);
  StepParts parts(func);
  SmallVector<BucketRead> reads;
  llvm::StringMap<BlockArgument> arguments;
  for (BlockArgument argument : func.getArguments())
    arguments[nn::getArgName(func, argument.getArgNumber())] = argument;
  Signature signature(func);
  for (auto attrs : buckets.getAsRange<DictionaryAttr>()) {
    auto lies = attrs.getAs<GlobalAttr>(DistDialect::kGlobalAttr);
    BucketRead read{{}, attrs.getAs<FlatAttr>(DistDialect::kFlatAttr), {}};
    SmallVector<BlockArgument> present;
    int64_t begin = 0;
    for (MemberAttr member : attrs.getAs<BucketAttr>(DistDialect::kBucketAttr).getMembers()) {
      int64_t end = begin + member.getType().getNumElements();
      if (BlockArgument argument = arguments.lookup(member.getName())) {
        if (argument.getType() != member.getType())
          return emitError(argument.getLoc(), "\"") << member.getName().getValue() << "\" must be " << member.getType()
                                                    << " as in training, got: " << argument.getType();
        present.push_back(argument);
        read.members.push_back({member.getName(), argument, begin, end});
      }
      begin = end;
    }
    if (present.empty())
      continue;
    NamedAttrList list(attrs);
    list.erase(DistDialect::kGlobalAttr);
    list.set(DistDialect::kShardingAttr, lies.getSharding());
    if (Attribute why = signature.getArgAttrs(present.front()).get(DistDialect::kWhyAttr); why && read.flat)
      list.set(DistDialect::kWhyAttr, why);
    BlockArgument bucket =
        signature.insertBefore(present.front(), lies.getType(), list.getDictionary(func.getContext()));
    read.bucket = bucket;
    // As training casts them, all or none.
    SmallVector<SmallVector<Operation *>> casts =
        llvm::map_to_vector(present, [](BlockArgument argument) { return findCasts(argument); });
    if (llvm::none_of(casts, [](auto &ops) { return ops.empty(); })) {
      read.bucket = castBucket(casts.front().front(), bucket, lies.getSharding());
      SmallVector<BucketRead::Member> members = std::move(read.members);
      for (auto [member, ops] : llvm::zip_equal(members, casts))
        for (Operation *cast : ops)
          read.members.push_back({member.name, cast->getResult(0), member.begin, member.end});
    }
    for (BlockArgument argument : present)
      signature.erase(argument);
    reads.push_back(std::move(read));
  }
  readFromBuckets(func, options.mesh, reads, parts, options.overlap);
  // Gathers that start the step stand behind the casts of their shards.
  sortTopologically(&func.getBody().front());
  func->removeAttr(DistDialect::kBucketsAttr);
  return success();
}

} // namespace shoal::dist
