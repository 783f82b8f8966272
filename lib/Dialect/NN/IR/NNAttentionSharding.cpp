// How attention lies on devices: its sharding rules, and what a device runs of it. Batch and heads are independent.
// Queries are independent, too; keys whole, each device serves its queries. Keys that are sharded as the queries are
// pass by all of them in a ring (Liu, Zaharia and Abbeel 2023): each device serves its queries with the keys that it
// has while the next ones are on their way.
#include "Build.h"

using namespace mlir;
using namespace shoal;
using namespace shoal::nn;

namespace {

// Rules. Query heads of one key/value head are independent, but dk and dv are sums over them, as over the queries.

struct AttentionRule {
  template <typename Op> explicit AttentionRule(Op op, FactorKind perQuery) {
    auto q = op.getQ().getType();
    unsigned batch = rule.addFactor(q.getDimSize(0));
    unsigned queries = rule.addFactor(q.getDimSize(1), perQuery);
    unsigned keys = rule.addFactor(op.getK().getType().getDimSize(1), FactorKind::Permutation);
    unsigned kvHeads = rule.addFactor(q.getDimSize(2)), groups = rule.addFactor(q.getDimSize(3), perQuery);
    unsigned size = rule.addFactor(q.getDimSize(4), FactorKind::NeedReplication);
    rule.aligned = {{queries, keys}};
    ofQueries = {{batch}, {queries}, {kvHeads}, {groups}, {size}};
    ofKeys = {{batch}, {keys}, {kvHeads}, {size}};
    ofLse = {{batch}, {queries}, {kvHeads}, {groups}};
    if (!op.getSegments().empty())
      masks = {{{batch}, {queries}}, {{batch}, {keys}}};
    // Small, and each device wants other parts of them at every step: whole.
    for (Value positions : op.getPositions()) {
      unsigned rows = rule.addFactor(typeOf(positions).getDimSize(0), FactorKind::NeedReplication);
      masks.push_back({{rows}});
    }
  }
  ShardingRule rule;
  TensorFactors ofQueries, ofKeys, ofLse;
  SmallVector<TensorFactors> masks;
};

// On devices.

/// Where the keys of a step of a ring come from: so many places before, along a chain of hops in one direction.
struct Step {
  int64_t back, direction;
  bool isFirst, isLast; // of the chain
};

/// What a device runs, built from local operands by the context of `op`, whose operands `q` and `k` are.
template <typename Op> class AttentionBuilder {
public:
  AttentionBuilder(Op op, OpBuilder &builder, ValueRange operands, const LocalizeContext &ctx, unsigned q)
      : op(op), b{builder, op.getLoc()}, operands(operands), ctx(ctx), q(q), k(q + 1),
        queries(op.getQ().getType().getDimSize(1)), keys(op.getK().getType().getDimSize(1)),
        queryShards(ctx.operandShards(q, 1)), keyShards(ctx.operandShards(k, 1)), segments(find(op.getSegments())) {
    SmallVector<Value> rows = find(op.getPositions());
    if (!rows.empty())
      queryRows = rows[0], keyRows = rows[1];
    // Of shards, where a mask asks for them or something pads; of a whole sequence as the op has them.
    placed = queryRows || queries % queryShards != 0 || keys % keyShards != 0 ||
             ((op.getCausal() || op.getWindow()) && queryShards > 1);
    if (placed)
      queryRows = getPositions(q, queryRows, queries, queryShards, 0);
  }

protected:
  /// The local operands that stand for some of the op's.
  SmallVector<Value> find(OperandRange some) const {
    if (some.empty())
      return {};
    return llvm::to_vector(operands.slice(some.getBeginOperandIndex(), some.size()));
  }

  /// The positions of the rows that the device `back` places before has of operand `of`; -1 where it has none.
  Value getPositions(unsigned of, Value whole, int64_t rows, int64_t shards, int64_t back) {
    Type i64 = b.builder.getI64Type();
    if (shards == 1)
      return whole ? whole : create<IotaOp>(RankedTensorType::get({rows}, i64), 0);
    int64_t size = shardSize(rows, shards);
    Value first = ctx.neighborOffset(b.builder, of, 1, back);
    if (whole)
      return takePositions(b, whole, first, size);
    auto type = RankedTensorType::get({size}, i64), scalar = RankedTensorType::get({}, i64);
    Value mine = b.add(create<IotaOp>(type, 0), first);
    if (rows % shards == 0)
      return mine;
    Value limit = create<ConstantOp>(scalar, DenseIntElementsAttr::get(scalar, rows));
    return create<MaskOp>(type, mine, limit, first, b.builder.getI64IntegerAttr(0), b.builder.getF64FloatAttr(-1));
  }

  template <typename Made, typename... Args> Value create(Args &&...args) {
    return b.builder.create<Made>(b.loc, std::forward<Args>(args)...)->getResult(0);
  }

  /// The masks of the queries with the keys that the device `back` places before has.
  SmallVector<Value> getKeyPositions(int64_t back) {
    if (!placed)
      return {};
    return {queryRows, getPositions(k, keyRows, keys, keyShards, back)};
  }

  bool isRing() const { return keyShards > 1; }

  /// How rows of a window lie on shards: of each `rows` that are further away, some may be one more device away, before
  /// this one as they are earlier, or on either side.
  struct Spread {
    int64_t rows;
    bool goesBothWays;
  };
  /// None where positions are told that can be anything.
  std::optional<Spread> findSpread() {
    if (op.getPositions().empty())
      return Spread{shardSize(keys, keyShards), !op.getCausal()};
    for (Value positions : op.getPositions()) {
      auto zigzag = positions.template getDefiningOp<ZigzagOp>();
      if (!zigzag || !zigzag.getInput().template getDefiningOp<IotaOp>() || zigzag.getInverse() || zigzag.getOffset() ||
          int64_t(zigzag.getRanks()) != keyShards || typeOf(positions).getDimSize(0) != keys)
        return std::nullopt;
    }
    // From the front half of a shard the earlier rows are on devices before, from the back half on devices behind.
    return Spread{std::max<int64_t>(1, Zigzag(keys, keyShards).back), true};
  }

  /// The steps of the ring in each direction: keys of that many devices before, and behind. A window that needs no
  /// other devices' keys ends the way early.
  std::pair<int64_t, int64_t> countSteps() {
    int64_t all = keyShards - 1;
    std::optional<Spread> spread = op.getWindow() ? findSpread() : std::nullopt;
    if (!spread)
      return {all, 0};
    int64_t reach = std::min<int64_t>(shardSize(int64_t(*op.getWindow()) - 1, spread->rows), all);
    if (!spread->goesBothWays)
      return {reach, 0};
    return 2 * reach >= all ? std::pair(all, int64_t(0)) : std::pair(reach, reach);
  }

  /// Calls `make(i)` for each of some values; for one that is the same as another before, what that gave.
  template <typename Make> static SmallVector<Value> makeOnce(ArrayRef<Value> values, Make make) {
    SmallVector<Value> made;
    for (auto [i, value] : llvm::enumerate(values))
      if (size_t first = llvm::find(values, value) - values.begin(); first < i)
        made.push_back(made[first]);
      else
        made.push_back(make(i));
    return made;
  }
  SmallVector<Value> start(ArrayRef<Value> values, int64_t forward) {
    StringRef names[] = {"keys", "values", "segments of keys"};
    if (values[0] == values[1])
      names[0] = "keys and values";
    return makeOnce(values,
                    [&](size_t i) { return ctx.startShift(b.builder, values[i], k, 1, forward, names[i]); });
  }
  SmallVector<Value> finish(ArrayRef<Value> started) {
    return makeOnce(started, [&](size_t i) { return ctx.finishShift(b.builder, started[i]); });
  }

  /// Calls `serve(values, step)` for the keys of every device, its own first, with the next ones on their way.
  template <typename Serve> void goAround(ArrayRef<Value> own, Serve serve) {
    auto [before, behind] = countSteps();
    SmallVector<Value> fromBefore, fromBehind;
    if (before)
      fromBefore = start(own, 1);
    if (behind)
      fromBehind = start(own, -1);
    serve(own, Step{0, 0, false, false});
    for (auto [passing, steps, direction] : {std::tuple(&fromBefore, before, 1), std::tuple(&fromBehind, behind, -1)})
      for (int64_t i = 1; i <= steps; ++i) {
        SmallVector<Value> arrived = finish(*passing);
        if (i < steps)
          *passing = start(arrived, direction);
        serve(arrived, Step{direction * i, direction, i == 1, i == steps});
      }
  }

  Op op;
  Build b;
  ValueRange operands;
  const LocalizeContext &ctx;
  unsigned q, k; // operands
  int64_t queries, keys, queryShards, keyShards;
  SmallVector<Value> segments;
  Value queryRows, keyRows; // positions, where they are placed
  bool placed;
};

class ForwardBuilder : AttentionBuilder<AttentionOp> {
public:
  using AttentionBuilder::AttentionBuilder;

  SmallVector<Value> run() {
    Value v = operands[k + 1];
    RankedTensorType o = ctx.localResultType(0);
    if (!isRing())
      return attend({operands[k], v}, segments, 0, o);
    SmallVector<Value> own{operands[k], v};
    llvm::append_range(own, ArrayRef(segments).drop_front(segments.empty() ? 0 : 1));
    RankedTensorType wide = o.clone(computeType(o.getElementType()));
    SmallVector<Value> sum;
    goAround(own, [&](ValueRange passing, Step step) {
      SmallVector<Value> masks;
      if (!segments.empty())
        masks = {segments[0], passing[2]};
      SmallVector<Value> part = attend(passing.take_front(2), masks, step.back, wide);
      if (sum.empty())
        sum = part;
      else
        sum = SmallVector<Value>(
            b.builder.create<MergeAttentionOp>(b.loc, sum[0].getType(), sum[1].getType(), sum[0], sum[1], part[0], part[1])
                ->getResults());
    });
    return {b.cast(sum[0], o.getElementType()), sum[1]};
  }

private:
  SmallVector<Value> attend(ValueRange kv, ValueRange masks, int64_t back, RankedTensorType o) {
    auto part = b.builder.create<AttentionOp>(b.loc, o, AttentionOp::getLseType(o), operands[q], kv[0], kv[1], masks,
                                              getKeyPositions(back), op.getCausalAttr(), op.getWindowAttr(),
                                              op.getScaleAttr());
    return SmallVector<Value>(part->getResults());
  }
};

class BackwardBuilder : AttentionBuilder<AttentionGradOp> {
public:
  using AttentionBuilder::AttentionBuilder;

  SmallVector<Value> run() {
    SmallVector<RankedTensorType> types;
    for (unsigned i = 0; i < 3; ++i)
      types.push_back(ctx.localResultType(i));
    Value v = operands[k + 1];
    if (!isRing())
      return differentiate({operands[k], v}, segments, 0, types);
    SmallVector<Value> own{operands[k], v};
    llvm::append_range(own, ArrayRef(segments).drop_front(segments.empty() ? 0 : 1));
    SmallVector<RankedTensorType> wide = llvm::map_to_vector(
        types, [](RankedTensorType type) { return cast<RankedTensorType>(type.clone(computeType(type.getElementType()))); });
    SmallVector<Value> sums;       // dq, and of dk and dv what is of this device's own keys
    SmallVector<Value> travelling; // dk and dv of the keys that passed by last, on their way
    SmallVector<SmallVector<Value>> home;
    goAround(own, [&](ValueRange passing, Step step) {
      SmallVector<Value> masks;
      if (!segments.empty())
        masks = {segments[0], passing[2]};
      SmallVector<Value> part = differentiate(passing.take_front(2), masks, step.back, wide);
      if (step.back == 0) {
        sums = part;
        return;
      }
      sums[0] = b.add(sums[0], part[0]);
      // What devices before have added up for these keys comes with them; the last one sends it home.
      for (unsigned i : {0, 1}) {
        Value sum = part[1 + i];
        if (!step.isFirst)
          sum = b.add(ctx.finishShift(b.builder, travelling[i]), sum);
        part[1 + i] = ctx.startShift(b.builder, sum, k, 1, step.isLast ? -step.back : step.direction,
                                     i == 0 ? "gradient of the keys" : "gradient of the values");
      }
      travelling = {part[1], part[2]};
      if (step.isLast)
        home.push_back(travelling);
    });
    for (ArrayRef<Value> arriving : home)
      for (unsigned i : {0, 1})
        sums[1 + i] = b.add(sums[1 + i], ctx.finishShift(b.builder, arriving[i]));
    for (auto [sum, type] : llvm::zip_equal(sums, types))
      if (sum.getType() != type)
        sum = create<CastOp>(type, sum, /*of_terms=*/true);
    return sums;
  }

private:
  SmallVector<Value> differentiate(ValueRange kv, ValueRange masks, int64_t back, ArrayRef<RankedTensorType> types) {
    auto part = b.builder.create<AttentionGradOp>(
        b.loc, types[0], types[1], types[2], operands[0], operands[q], kv[0], kv[1], operands[k + 2], operands[k + 3],
        masks, getKeyPositions(back), op.getCausalAttr(), op.getWindowAttr(), op.getScaleAttr());
    return SmallVector<Value>(part->getResults());
  }
};

template <typename Builder, typename Op>
LogicalResult localizeAttention(Op op, OpBuilder &builder, ValueRange operands, const LocalizeContext &ctx, unsigned q,
                                SmallVectorImpl<Value> &results) {
  Operation *last = findLast(builder);
  llvm::append_range(results, Builder(op, builder, operands, ctx, q).run());
  keepAttributes(op, builder, last);
  return success();
}

} // namespace

ShardingRule AttentionOp::getShardingRule() {
  AttentionRule r(*this, FactorKind::PassThrough);
  r.rule.operands = {r.ofQueries, r.ofKeys, r.ofKeys};
  llvm::append_range(r.rule.operands, r.masks);
  r.rule.results = {r.ofQueries, r.ofLse};
  return r.rule;
}

LogicalResult AttentionOp::localize(OpBuilder &builder, ValueRange operands, const LocalizeContext &ctx,
                                    SmallVectorImpl<Value> &results) {
  return localizeAttention<ForwardBuilder>(*this, builder, operands, ctx, /*q=*/0, results);
}

ShardingRule AttentionGradOp::getShardingRule() {
  AttentionRule r(*this, FactorKind::Reduction);
  r.rule.operands = {r.ofQueries, r.ofQueries, r.ofKeys, r.ofKeys, r.ofQueries, r.ofLse};
  llvm::append_range(r.rule.operands, r.masks);
  r.rule.results = {r.ofQueries, r.ofKeys, r.ofKeys};
  r.rule.linear = {{0}};
  return r.rule;
}

LogicalResult AttentionGradOp::localize(OpBuilder &builder, ValueRange operands, const LocalizeContext &ctx,
                                        SmallVectorImpl<Value> &results) {
  return localizeAttention<BackwardBuilder>(*this, builder, operands, ctx, /*q=*/1, results);
}

// Two products forward; five backward, which makes the scores again.
template <typename Op> static double getFlopsOfProduct(Op op) {
  return 2 * double(op.getQ().getType().getNumElements()) * double(op.getK().getType().getDimSize(1));
}
double AttentionOp::getFlops() { return 2 * getFlopsOfProduct(*this); }
double AttentionGradOp::getFlops() { return 5 * getFlopsOfProduct(*this); }
