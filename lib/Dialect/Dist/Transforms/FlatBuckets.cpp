// Bundles of updates as updates of buckets; see FlatBuckets.h.
#include "FlatBuckets.h"

#include "AccumulateResults.h"
#include "BucketGradients.h"
#include "ForeignAttrs.h"
#include "ParameterReads.h"
#include "Reasons.h"
#include "Signature.h"

#include "shoal/Support/SignatureEdit.h"

#include "mlir/Analysis/TopologicalSortUtils.h"

using namespace mlir;

namespace shoal::dist {
namespace {

class FlatPacker : BucketOps {
public:
  FlatPacker(func::FuncOp func, const BucketOptions &options, const StepParts &parts, BucketPlan &plan)
      : BucketOps(func, options), parts(parts), plan(plan), gradients(func, options), signature(func) {}

  void run();

private:
  void returnGradient(const Bucket &bucket);
  void update(Bucket &bucket);
  Value makeGradient(Bucket &bucket, OpBuilder &b, DictionaryAttr why);
  Value makeParam(const Bucket &bucket, OpBuilder &b);
  SmallVector<std::string> makeStates(const Bucket &bucket, SmallVectorImpl<Value> &states);
  static bool isParamWhole(const Bucket &bucket) { return !bucket.front().flatParam; }
  /// A parameter that devices have whole is one, and has the name of its first bucket.
  static StringRef paramName(const Bucket &bucket) {
    return isParamWhole(bucket) ? bucket.bundle->buckets.front().name : bucket.name;
  }
  Value keepPadding(const Bucket &bucket, Value updated, OpBuilder &b) const;
  void finish(BundleBuckets &bundle);
  BlockArgument addArgument(const Bucket &bucket, ArrayRef<Bucket::Part> held, int64_t size, FlatAttr flat,
                            function_ref<BlockArgument(const UpdateChain &)> argumentOf, NamedAttribute role);
  void replaceResult(const Bucket &bucket, StringRef replaced, Value value, FlatAttr flat, StringRef name);
  void read(const BundleBuckets &bundle);

  StringAttr text(const Twine &words) const { return StringAttr::get(symbol.getContext(), words); }
  nn::ParamAttr roleOf(StringRef param) const {
    auto zero = llvm::APFloat(0.0);
    return nn::ParamAttr::get(symbol.getContext(), text(param), nn::Init::zeros, zero, zero, DenseI64ArrayAttr());
  }
  StringRef stateName(BlockArgument state) const {
    return signature.getArgAttrs(state).getAs<nn::StateAttr>(nn::NNDialect::kStateAttr).getName().getValue();
  }

  const StepParts &parts;
  BucketPlan &plan;
  BucketGradients gradients;
  Signature signature;
  /// What a bundle is made into while its buckets are: its parameters, one argument or, sharded, one for each bucket,
  /// their new values and where those stand.
  struct Made {
    SmallVector<BlockArgument> params;
    SmallVector<Value> updated;
    Operation *update = nullptr;
  };
  DenseMap<const BundleBuckets *, Made> made;
  SmallVector<BucketRead> reads;
};

/// What members have in common, but for what each is and how it lies, of the argument that holds all of them.
BlockArgument FlatPacker::addArgument(const Bucket &bucket, ArrayRef<Bucket::Part> held, int64_t size, FlatAttr flat,
                                      function_ref<BlockArgument(const UpdateChain &)> argumentOf,
                                      NamedAttribute role) {
  MLIRContext *context = func.getContext();
  BlockArgument first = argumentOf(*held.front().chain);
  DictionaryAttr like = signature.getArgAttrs(first);
  NamedAttrList attrs;
  for (NamedAttribute attr : like)
    if (!isa_and_nonnull<DistDialect>(attr.getNameDialect()) && attr.getName() != role.getName())
      attrs.append(attr);
  SmallVector<MemberAttr> members;
  for (const Bucket::Part &part : held) {
    BlockArgument member = argumentOf(*part.chain);
    DictionaryAttr own = signature.getArgAttrs(member);
    auto global = own.getAs<GlobalAttr>(DistDialect::kGlobalAttr);
    members.push_back(MemberAttr::get(context, own.get(role.getName()), cast<RankedTensorType>(member.getType()),
                                      part.begin, part.end,
                                      global && !global.getSharding().isReplicated() ? global : GlobalAttr()));
    signature.erase(member);
  }
  attrs.set(role.getName(), role.getValue());
  attrs.set(DistDialect::kBucketAttr, BucketAttr::get(context, members));
  attrs.set(DistDialect::kShardingAttr, lies(flat));
  if (flat) {
    attrs.set(DistDialect::kWhyAttr, findWhy(bucket, flat, like));
    if (bucket.front().flatParam == flat)
      attrs.set(DistDialect::kFlatAttr, flat);
  }
  return signature.insertBefore(first, RankedTensorType::get({size}, getElementTypeOrSelf(first.getType())),
                                attrs.getDictionary(context));
}

/// A result in the place of the one that updates what is called `replaced`.
void FlatPacker::replaceResult(const Bucket &bucket, StringRef replaced, Value value, FlatAttr flat, StringRef name) {
  NamedAttrList attrs;
  attrs.set(nn::NNDialect::kUpdatesAttr, text(name));
  attrs.set(DistDialect::kShardingAttr, lies(flat));
  signature.insertResultBefore(nn::NNDialect::kUpdatesAttr, replaced, value, attrs.getDictionary(func.getContext()));
}

void FlatPacker::returnGradient(const Bucket &bucket) {
  MLIRContext *context = func.getContext();
  SmallVector<MemberAttr> members;
  for (const Bucket::Part &part : bucket.parts) {
    auto global = part.chain->gradientAttrs.getAs<GlobalAttr>(DistDialect::kGlobalAttr);
    members.push_back(MemberAttr::get(context, text(part.chain->name),
                                      cast<RankedTensorType>(part.chain->gradient.getType()), part.begin, part.end,
                                      global && !global.getSharding().isReplicated() ? global : GlobalAttr()));
    signature.eraseResult(nn::NNDialect::kGradAttr, part.chain->name);
  }
  NamedAttrList attrs;
  attrs.set(nn::NNDialect::kGradAttr, text(bucket.name));
  attrs.set(DistDialect::kShardingAttr, shard(bucket));
  attrs.set(DistDialect::kBucketAttr, BucketAttr::get(context, members));
  signature.insertResultBefore(nn::NNDialect::kGradAttr, bucket.front().name, bucket.gradient,
                               attrs.getDictionary(context));
}

/// The gradient as the update reads it.
Value FlatPacker::makeGradient(Bucket &bucket, OpBuilder &b, DictionaryAttr why) {
  const UpdateChain &front = bucket.front();
  if (!bucket.gradient)
    gradients.reduce(bucket, why);
  if (front.gradientAttrs)
    returnGradient(bucket);
  Value gradient = bucket.gradient, own = front.gradient;
  for (Operation *op : front.steps) {
    gradient = build(b, op, {own}, {gradient}, bucket, shard(bucket))->getResult(0);
    own = op->getResult(0);
  }
  return gradient;
}

/// The parameters of the bucket before the update. What devices have whole is read as it lies, so all of the bundle are
/// one argument.
Value FlatPacker::makeParam(const Bucket &bucket, OpBuilder &b) {
  BundleBuckets &bundle = *bucket.bundle;
  Made &all = made[&bundle];
  bool isWhole = isParamWhole(bucket);
  auto paramOf = [](const UpdateChain &chain) { return chain.param; };
  if (!isWhole || all.params.empty()) {
    SmallVector<Bucket::Part> wholes;
    for (UpdateChain &chain : bundle.chains)
      wholes.push_back({&chain, 0, chain.size()});
    all.params.push_back(addArgument(bucket, isWhole ? ArrayRef(wholes) : ArrayRef(bucket.parts),
                                     isWhole ? bundle.size() : bucket.size, bucket.front().flatParam, paramOf,
                                     {text(nn::NNDialect::kParamAttr), roleOf(bucket.name)}));
  }
  BlockArgument param = all.params.back();
  if (!isWhole || bundle.buckets.size() == 1)
    return param;
  Value old = b.create<UnpackOp>(param.getLoc(), typeOf(bucket, param.getType()), ValueRange(param), bucket.begin,
                                 bucket.begin + bucket.size);
  setSharding(old, lies({}));
  return old;
}

/// The states of the bucket's parameters before the update. Returns what they are called.
SmallVector<std::string> FlatPacker::makeStates(const Bucket &bucket, SmallVectorImpl<Value> &states) {
  const UpdateChain &front = bucket.front();
  SmallVector<std::string> names;
  for (auto [k, state] : llvm::enumerate(front.states)) {
    StringRef name = stateName(state);
    // "w.m" of "w" is "bucket.0.m" of "bucket.0".
    bool isSuffixed = name.consume_front(front.name) && name.starts_with(".");
    names.push_back(bucket.name + (isSuffixed ? name.str() : ".state" + std::to_string(k)));
    auto role = nn::StateAttr::get(func.getContext(), text(names.back()), text(paramName(bucket)), llvm::APFloat(0.0));
    states.push_back(addArgument(bucket, bucket.parts, bucket.size, front.flatStates[k],
                                 [k = k](const UpdateChain &chain) { return chain.states[k]; },
                                 {text(nn::NNDialect::kStateAttr), role}));
  }
  return names;
}

void FlatPacker::update(Bucket &bucket) {
  const UpdateChain &front = bucket.front();
  bool isWhole = isParamWhole(bucket);
  // In the order of the buckets.
  OpBuilder b(func.getBody().front().getTerminator());
  DictionaryAttr why = findWhy(bucket, front.flatGradient, front.gradientAttrs);
  nn::OptimizerUpdateOpInterface update = front.update;
  SmallVector<Value> from{update.getGrad(), front.param}, to;
  llvm::append_range(from, front.states);
  to.push_back(makeGradient(bucket, b, why));
  to.push_back(makeParam(bucket, b));
  SmallVector<std::string> stateNames = makeStates(bucket, to);

  // The update, on shards; what is to be whole is gathered.
  Operation *updated = build(b, update, from, to, bucket, shard(bucket));
  for (auto [state, flat] : llvm::zip_equal(front.states, front.flatStates))
    if (flat)
      why = findWhy(bucket, flat, signature.getArgAttrs(state));
  updated->setAttr(DistDialect::kWhyAttr, why);
  Value newParam = keepPadding(bucket, updated->getResult(0), b);
  if (isWhole)
    setClass(newParam.getDefiningOp(), exec::StorageClass::workspace); // until it is gathered
  auto gathered = [&](Value value, FlatAttr flat) -> Value {
    if (flat)
      return value;
    auto whole =
        b.create<ReshardOp>(value.getLoc(), value, lies({}), text("new values of " + listNames(bucket.names())));
    setSharding(whole, lies({}));
    return whole;
  };
  Made &all = made[bucket.bundle];
  all.updated.push_back(gathered(newParam, front.flatParam));
  all.update = updated;
  if (!isWhole)
    replaceResult(bucket, front.name, all.updated.back(), front.flatParam, bucket.name);
  for (auto [k, flat] : llvm::enumerate(front.flatStates))
    replaceResult(bucket, stateName(front.states[k]), gathered(updated->getResult(k + 1), flat), flat, stateNames[k]);
}

/// New values whose padding is zeros, whatever the update makes of zeros there.
Value FlatPacker::keepPadding(const Bucket &bucket, Value updated, OpBuilder &b) const {
  int64_t elements = bucket.end - bucket.begin;
  nn::OptimizerUpdateOpInterface update = bucket.front().update;
  if (elements == bucket.size || update.keepsZeros())
    return updated;
  auto scalar = RankedTensorType::get({}, b.getI64Type());
  auto limit = b.create<nn::ConstantOp>(updated.getLoc(), scalar, DenseIntElementsAttr::get(scalar, elements));
  setSharding(limit, lies({}, 0));
  auto masked = b.create<nn::MaskOp>(updated.getLoc(), updated.getType(), updated, limit, Value(),
                                     b.getI64IntegerAttr(0), b.getF64FloatAttr(0.0));
  setSharding(masked, getSharding(updated));
  return masked;
}

/// All buckets of the bundle are updated.
void FlatPacker::finish(BundleBuckets &bundle) {
  Made &all = made[&bundle];
  const Bucket &bucket = bundle.buckets.front();
  gradients.sumSquares(bundle);
  if (!bundle.front().flatParam) {
    Value value = all.updated.front();
    if (all.updated.size() > 1) {
      OpBuilder b(func.getBody().front().getTerminator());
      SmallVector<int64_t> begins(all.updated.size(), 0), ends;
      for (const Bucket &each : bundle.buckets)
        ends.push_back(each.size);
      value = b.create<PackOp>(value.getLoc(), all.params.front().getType(), all.updated, begins, ends,
                               plan.takeGroup(), /*at=*/0);
      setSharding(value, lies({}));
      setClass(value.getDefiningOp(), exec::StorageClass::param);
    }
    replaceResult(bucket, bundle.front().name, value, {}, bucket.name);
  }
  read(bundle);
  // Until the signature is written results still name the old ones.
  for (UpdateChain &chain : bundle.chains) {
    signature.eraseResult(nn::NNDialect::kUpdatesAttr, chain.name);
    for (BlockArgument state : chain.states)
      signature.eraseResult(nn::NNDialect::kUpdatesAttr, stateName(state));
    chain.update->replaceAllUsesWith(all.update->getResults());
    chain.update->erase();
  }
}

/// What the step reads of the parameters, in the type in which it does.
void FlatPacker::read(const BundleBuckets &bundle) {
  BucketRead &read = reads.emplace_back();
  read.flat = bundle.front().flatParam;
  for (auto [i, param] : llvm::enumerate(made[&bundle].params)) {
    ArrayRef<Operation *> casts = bundle.front().casts;
    read.buckets.push_back(
        {casts.empty() ? Value(param) : castBucket(casts.front(), param, lies(read.flat)), bundle.buckets[i].begin});
  }
  int64_t begin = 0;
  for (const UpdateChain &chain : bundle.chains) {
    int64_t end = begin + chain.size();
    if (chain.casts.empty())
      read.members.push_back({text(chain.name), chain.param, begin, end});
    for (Operation *cast : chain.casts)
      read.members.push_back({text(chain.name), cast->getResult(0), begin, end});
    begin = end;
  }
}

void FlatPacker::run() {
  gradients.reduceInside(plan);
  for (Bucket *bucket : plan.getBuckets()) {
    update(*bucket);
    if (bucket == &bucket->bundle->buckets.back())
      finish(*bucket->bundle);
  }
  gradients.leavePartial();
  readFromBuckets(func, options.mesh, reads, parts, options.overlap);
}

} // namespace

LogicalResult visitFlat(func::FuncOp func, function_ref<LogicalResult(Location, StringRef, FlatAttr)> visit) {
  for (BlockArgument argument : func.getArguments()) {
    unsigned i = argument.getArgNumber();
    if (auto flat = func.getArgAttrOfType<FlatAttr>(i, DistDialect::kFlatAttr))
      if (failed(visit(argument.getLoc(), ("\"" + nn::getArgName(func, i) + "\"").str(), flat)))
        return failure();
  }
  for (auto [i, value] : llvm::enumerate(func.getBody().front().getTerminator()->getOperands()))
    if (auto flat = func.getResultAttrOfType<FlatAttr>(i, DistDialect::kFlatAttr)) {
      auto name = func.getResultAttrOfType<StringAttr>(i, nn::NNDialect::kGradAttr);
      if (failed(visit(value.getLoc(), ("gradient of \"" + name.getValue() + "\"").str(), flat)))
        return failure();
    }
  return success();
}

/// A bucket is made in one run, and lies over axes of that alone.
static LogicalResult verifyFlatAxes(func::FuncOp func, ArrayRef<StringAttr> axes) {
  return visitFlat(func, [&](Location loc, StringRef name, FlatAttr flat) -> LogicalResult {
    auto isOfRun = [&](StringAttr axis) { return llvm::is_contained(axes, axis); };
    if (llvm::all_of(flat.getAxes(), isOfRun) || llvm::none_of(flat.getAxes(), isOfRun))
      return success();
    return emitError(loc) << name
                          << " must lie flat over axes that are partitioned together, all batch axes or none, got: "
                          << flat;
  });
}

/// What was to lie in a bucket of this run and does not is whole from here on, as is what belongs to a parameter of
/// `whole`, of which it is known why. Of all else a remark tells.
static void forgetFlat(func::FuncOp func, MeshAttr mesh, ArrayRef<StringAttr> axes, const DenseSet<StringRef> &whole) {
  auto tell = [](Location loc, const Twine &name, StringRef reason) {
    emitRemark(loc, name) << " stays whole and in no bucket: " << reason;
  };
  SignatureEdit signature(func);
  for (BlockArgument argument : func.getArguments()) {
    unsigned i = argument.getArgNumber();
    auto flat = func.getArgAttrOfType<FlatAttr>(i, DistDialect::kFlatAttr);
    if (!flat || func.getArgAttr(i, DistDialect::kBucketAttr))
      continue;
    StringRef name = nn::getArgName(func, i);
    auto state = func.getArgAttrOfType<nn::StateAttr>(i, nn::NNDialect::kStateAttr);
    bool isKnown = whole.contains(state ? state.getOf().getValue() : name);
    if (!isKnown && !llvm::is_contained(axes, flat.getAxes().front()))
      continue;
    signature.setArgAttr(i, DistDialect::kFlatAttr, {});
    if (!isKnown && isFlatOver(flat, mesh, axes))
      tell(argument.getLoc(), "\"" + name + "\"", state ? "no optimizer update reads it" : "no optimizer updates it");
  }
  for (auto [i, value] : llvm::enumerate(func.getBody().front().getTerminator()->getOperands())) {
    auto flat = func.getResultAttrOfType<FlatAttr>(i, DistDialect::kFlatAttr);
    auto name = func.getResultAttrOfType<StringAttr>(i, nn::NNDialect::kGradAttr);
    if (!flat)
      continue;
    bool isKnown = whole.contains(name.getValue());
    if (!isKnown && !llvm::is_contained(axes, flat.getAxes().front()))
      continue;
    for (StringRef attr : {DistDialect::kFlatAttr, DistDialect::kWhyAttr})
      signature.setResultAttr(i, attr, {});
    if (!isKnown && isFlatOver(flat, mesh, axes))
      tell(value.getLoc(), "gradient of \"" + name.getValue() + "\"", "no optimizer update reads it");
  }
}

static void pack(func::FuncOp func, const BucketOptions &options, DenseSet<StringRef> &whole) {
  StepParts parts(func);
  std::vector<Bundle> bundles = findBundles(func, MeshOp(options.mesh).getMesh(), options.axes,
                                            options.joint, parts, whole);
  if (bundles.empty())
    return;
  BucketPlan plan(func, options, bundles);
  FlatPacker(func, options, parts, plan).run();
  SmallVector<AccumulateOp> regions;
  func.walk([&](AccumulateOp op) { regions.push_back(op); });
  for (AccumulateOp op : regions)
    dropUnreadResults(op);
  // Updates that stood before the last gradient of a bucket now come after it.
  func.walk([&](Operation *op) {
    for (Region &region : op->getRegions())
      for (Block &block : region)
        sortTopologically(&block);
  });
}

LogicalResult packFlat(func::FuncOp func, const BucketOptions &options) {
  if (failed(verifyFlatAxes(func, options.axes)))
    return failure();
  repeatDerived(func);
  DenseSet<StringRef> whole;
  pack(func, options, whole);
  forgetFlat(func, MeshOp(options.mesh).getMesh(), options.axes, whole);
  return success();
}

} // namespace shoal::dist
